//! Replies that wait: for data threads, for the receive thread, or for a job.
//!
//! A handler says while it runs what its reply waits for ([`Pendings::await_end`], `tell`, `ask` and
//! `begin_job` of the core). What it changes, it changes at once, so requests that come meanwhile find the
//! state that they would find afterwards. What is done with an answer is kept by the domain that asked.

use std::collections::BTreeMap;

use allosaur_api::Error;
use allosaur_engine::stream::ProfileKey;
use allosaur_engine::time::{MILLISECOND, Nanos, SECOND};

use crate::control::config::View;
use crate::control::reply::Reply;

/// How long a reply waits for threads, at most. They answer within a millisecond, but on a machine that
/// is short of CPUs; clients wait 3 s, and would say less than we do.
const THREADS_MAX: Nanos = 2500 * MILLISECOND;
/// How long a reply waits for a job, at most: a gigabyte from a slow disk takes a minute.
const JOB_MAX: Nanos = 120 * SECOND;

/// A request whose reply comes later, by [`Action::Reply`](crate::control::Action::Reply).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PendingId(pub u64);

/// A question to the receive thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QuestionId(pub u64);

/// A job of the job thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobId(pub u64);

impl JobId {
    /// Of jobs whose results nobody wants.
    pub const NOBODYS: JobId = JobId(0);
}

/// What became of a request.
#[derive(Debug)]
pub enum Handled {
    /// It was answered.
    Replied(Reply),
    /// It will be.
    Pending(PendingId),
}

/// What has to happen before a reply leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::control) enum Wait {
    /// A run ends, on all its data threads.
    End(ProfileKey),
    /// A run has changed, on all its data threads.
    Change(ProfileKey),
    Question(QuestionId),
    Job(JobId),
}

/// A request that waits.
#[derive(Debug)]
pub(in crate::control) struct PendingRequest {
    method: String,
    pub(in crate::control) waits: Vec<Wait>,
    /// With what it is answered, unless what it waits for says otherwise.
    pub(in crate::control) reply: Reply,
    until: Nanos,
}

/// All requests that wait.
#[derive(Debug, Default)]
pub(in crate::control) struct Pendings {
    last_id: u64,
    /// What the request at hand waits for.
    waits: Vec<Wait>,
    requests: BTreeMap<PendingId, PendingRequest>,
    /// What no request waits for any more, though it was asked or begun.
    abandoned: Vec<Wait>,
}

impl Pendings {
    /// Begins with a request that waits for nothing yet.
    pub(in crate::control) fn begin(&mut self) {
        self.waits.clear();
    }

    /// The handler of the request at hand is through. Who is refused need not wait.
    pub(in crate::control) fn end(&mut self, method: &str, reply: Reply, now_ns: Nanos) -> Handled {
        let waits = std::mem::take(&mut self.waits);
        if waits.is_empty() || reply.is_err() {
            return Handled::Replied(reply);
        }
        let pending = PendingId(self.next_id());
        let request = PendingRequest {
            method: method.to_owned(),
            until: now_ns + time_max(&waits),
            waits,
            reply,
        };
        self.requests.insert(pending, request);
        Handled::Pending(pending)
    }

    /// The request at hand is answered when a run has ended.
    pub(in crate::control) fn await_end(&mut self, run: ProfileKey) {
        self.waits.push(Wait::End(run));
    }

    /// The request at hand is answered when a change of a run has taken effect.
    pub(in crate::control) fn await_change(&mut self, run: ProfileKey) {
        self.waits.push(Wait::Change(run));
    }

    /// The request at hand is answered when that has happened.
    pub(in crate::control) fn await_also(&mut self, wait: Wait) {
        self.waits.push(wait);
    }

    /// A number that no request, question or job has had.
    pub(in crate::control) fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// How many requests wait.
    pub(in crate::control) fn count(&self) -> usize {
        self.requests.len()
    }

    /// When the first request has waited long enough.
    pub(in crate::control) fn poll_timeout(&self) -> Option<Nanos> {
        self.requests.values().map(|request| request.until).min()
    }

    /// What was waited for has brought more to wait for: the request that waits for it goes on
    /// waiting.
    pub(in crate::control) fn go_on(&mut self, wait: Wait, now_ns: Nanos) {
        let more = std::mem::take(&mut self.waits);
        let pending = self.waiting_for(wait).filter(|_| !more.is_empty());
        if let Some(request) = pending.and_then(|pending| self.requests.get_mut(&pending)) {
            request.until = now_ns + time_max(&more);
            request.waits.extend(more);
        }
    }

    /// What requests may wait for has happened; `reply` takes the place of theirs. Gives those that wait
    /// for nothing more.
    pub(in crate::control) fn settle(
        &mut self,
        wait: Wait,
        mut reply: Option<Reply>,
    ) -> Vec<(PendingId, Reply)> {
        let mut finished = Vec::new();
        while let Some(pending) = self.waiting_for(wait) {
            let request = self.requests.get_mut(&pending);
            let request = request.expect("it was just found");
            request.waits.retain(|other| *other != wait);
            if let Some(reply) = reply.take() {
                request.reply = reply;
            }
            if !request.waits.is_empty() && request.reply.is_ok() {
                continue;
            }
            if let Some(request) = self.requests.remove(&pending) {
                self.abandoned.extend(request.waits);
                finished.push((pending, request.reply));
            }
        }
        finished
    }

    /// Takes the requests that have waited long enough.
    pub(in crate::control) fn take_late(
        &mut self,
        now_ns: Nanos,
    ) -> Vec<(PendingId, PendingRequest)> {
        let requests = self.requests.iter();
        let due = requests.filter(|(_, request)| request.until <= now_ns);
        let due: Vec<PendingId> = due.map(|(pending, _)| *pending).collect();
        let taken = due.into_iter().filter_map(|pending| {
            let request = self.requests.remove(&pending)?;
            let method = &request.method;
            tracing::warn!(method, "no answer in time: {:?}", request.waits);
            Some((pending, request))
        });
        taken.collect()
    }

    /// Takes what no request waits for any more.
    pub(in crate::control) fn take_abandoned(&mut self) -> Vec<Wait> {
        std::mem::take(&mut self.abandoned)
    }

    fn waiting_for(&self, wait: Wait) -> Option<PendingId> {
        let mut requests = self.requests.iter();
        let found = requests.find(|(_, request)| request.waits.contains(&wait));
        found.map(|(pending, _)| *pending)
    }
}

fn time_max(waits: &[Wait]) -> Nanos {
    match waits.iter().any(|wait| matches!(wait, Wait::Job(_))) {
        true => JOB_MAX,
        false => THREADS_MAX,
    }
}

/// The error of a request whose question the receive thread did not answer in time.
pub(in crate::control) fn no_answer(view: &View<'_>) -> Error {
    let time = view.endpoints.receive_time();
    let time = time.unwrap_or_else(|| "See the server's log".to_owned());
    Error::execution(format!(
        "the receive thread did not answer within {:.1} s: try again. {time}",
        THREADS_MAX as f64 / SECOND as f64
    ))
}

/// What is wrong with a job that was not done in time.
pub(in crate::control) fn too_slow() -> String {
    format!(
        "it takes longer than {} s: try again with less, or when the server's machine is less busy",
        JOB_MAX / SECOND
    )
}
