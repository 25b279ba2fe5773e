//! Replies that wait: for data threads, for the receive thread, or for a job.
//!
//! A handler says while it runs what its reply waits for ([`Pendings::await_end`], [`Control::tell`],
//! [`Control::ask`], [`Control::begin_job`]). What it changes, it changes at once, so requests that
//! come meanwhile find the state that they would find afterwards.

use std::collections::BTreeMap;
use std::fmt;

use allosaur_api::Error;
use allosaur_engine::stream::ProfileKey;
use allosaur_engine::time::{MILLISECOND, Nanos, SECOND};
use serde_json::Value;

use super::job::{Job, JobResult};
use super::{Action, Control, Reply, View};
use crate::rx_taps::{Answer, Request, TapRequest};

/// How long a reply waits for threads, at most. They answer within a millisecond, but on a machine that
/// is short of CPUs; clients wait 3 s, and would say less than we do.
const THREADS_MAX: Nanos = 2500 * MILLISECOND;
/// How long a reply waits for a job, at most: a gigabyte from a slow disk takes a minute.
const JOB_MAX: Nanos = 120 * SECOND;

/// A request whose reply comes later, by [`Action::Reply`].
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
pub(super) enum Wait {
    /// A run ends, on all its data threads.
    End(ProfileKey),
    /// A run has changed, on all its data threads.
    Change(ProfileKey),
    Question(QuestionId),
    Job(JobId),
}

/// What is done with an answer or with the result of a job; gives the reply of the request.
struct Then<T>(ThenFn<T>);

type ThenFn<T> = Box<dyn FnOnce(&mut Control, T, &View<'_>) -> Reply>;

#[derive(Debug)]
struct PendingRequest {
    method: String,
    waits: Vec<Wait>,
    /// With what it is answered, unless what it waits for says otherwise.
    reply: Reply,
    until: Nanos,
}

/// All that waits.
#[derive(Debug, Default)]
pub(super) struct Pendings {
    last_id: u64,
    /// What the request at hand waits for.
    waits: Vec<Wait>,
    requests: BTreeMap<PendingId, PendingRequest>,
    answers: BTreeMap<QuestionId, Then<Answer>>,
    results: BTreeMap<JobId, Then<JobResult>>,
}

impl Pendings {
    /// Begins with a request that waits for nothing yet.
    pub(super) fn begin(&mut self) {
        self.waits.clear();
    }

    /// The handler of the request at hand is through. Who is refused need not wait.
    pub(super) fn end(&mut self, method: &str, reply: Reply, now_ns: Nanos) -> Handled {
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
    pub(super) fn await_end(&mut self, run: ProfileKey) {
        self.waits.push(Wait::End(run));
    }

    /// The request at hand is answered when a change of a run has taken effect.
    pub(super) fn await_change(&mut self, run: ProfileKey) {
        self.waits.push(Wait::Change(run));
    }

    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    fn waiting_for(&self, wait: Wait) -> Option<PendingId> {
        let mut requests = self.requests.iter();
        let found = requests.find(|(_, request)| request.waits.contains(&wait));
        found.map(|(pending, _)| *pending)
    }

    fn forget(&mut self, waits: &[Wait]) {
        for wait in waits {
            match wait {
                Wait::Question(question) => drop(self.answers.remove(question)),
                Wait::Job(job) => drop(self.results.remove(job)),
                Wait::End(_) | Wait::Change(_) => {}
            }
        }
    }

    /// When the first request has waited long enough.
    pub(super) fn poll_timeout(&self) -> Option<Nanos> {
        self.requests.values().map(|request| request.until).min()
    }
}

impl Control {
    /// How many requests wait for their replies.
    pub fn pending(&self) -> usize {
        self.pendings.requests.len()
    }

    /// Tells the receive thread something; the request at hand is answered when it has heard.
    pub(super) fn tell(&mut self, request: impl Into<Request>) {
        self.send_question(request.into());
    }

    /// Asks the receive thread. What this gives stands for the reply, which `then` makes.
    /// There is no answer when no tap takes such requests.
    pub(super) fn ask<R: TapRequest<Answer: TryFrom<Answer>> + Into<Request>>(
        &mut self,
        request: R,
        then: impl FnOnce(&mut Control, Option<R::Answer>, &View<'_>) -> Reply + 'static,
    ) -> Reply {
        let question = self.send_question(request.into());
        let then = move |control: &mut Control, answer: Answer, view: &View<'_>| {
            then(control, R::Answer::try_from(answer).ok(), view)
        };
        let then = Then(Box::new(then));
        self.pendings.answers.insert(question, then);
        Ok(Value::Null)
    }

    /// Asks the receive thread; no request waits for what `then` does with the answer.
    pub(super) fn ask_aside<R: TapRequest<Answer: TryFrom<Answer>> + Into<Request>>(
        &mut self,
        request: R,
        then: impl FnOnce(&mut Control, Option<R::Answer>, &View<'_>) + 'static,
    ) -> QuestionId {
        let question = QuestionId(self.pendings.next_id());
        let request = request.into();
        let then = move |control: &mut Control, answer: Answer, view: &View<'_>| {
            then(control, R::Answer::try_from(answer).ok(), view);
            Ok(Value::Null)
        };
        let then = Then(Box::new(then));
        self.pendings.answers.insert(question, then);
        self.actions.push_back(Action::Ask { question, request });
        question
    }

    /// Nobody wants any more what was asked or begun aside.
    pub(super) fn forget_wait(&mut self, wait: Wait) {
        self.pendings.forget(&[wait]);
    }

    fn send_question(&mut self, request: Request) -> QuestionId {
        let question = QuestionId(self.pendings.next_id());
        self.pendings.waits.push(Wait::Question(question));
        self.actions.push_back(Action::Ask { question, request });
        question
    }

    /// Has a job done; the request at hand is answered by what `then` makes of its result.
    pub(super) fn begin_job(
        &mut self,
        work: Job,
        then: impl FnOnce(&mut Control, JobResult, &View<'_>) -> Reply + 'static,
    ) -> JobId {
        let job = self.begin_job_aside(work, then);
        self.pendings.waits.push(Wait::Job(job));
        job
    }

    /// The same, for which no request waits.
    pub(super) fn begin_job_aside(
        &mut self,
        work: Job,
        then: impl FnOnce(&mut Control, JobResult, &View<'_>) -> Reply + 'static,
    ) -> JobId {
        let job = JobId(self.pendings.next_id());
        let then = Then(Box::new(then));
        self.pendings.results.insert(job, then);
        self.actions.push_back(Action::Job { job, work });
        job
    }

    /// Nobody wants the result of a job any more: who waits for it gets this error.
    pub(super) fn cancel_job(&mut self, job: JobId, error: Error) {
        self.pendings.results.remove(&job);
        self.settle(Wait::Job(job), Some(Err(error)));
    }

    /// The receive thread has answered.
    pub fn handle_answer(&mut self, question: QuestionId, answer: Answer, view: &View<'_>) {
        self.pendings.begin();
        let then = self.pendings.answers.remove(&question);
        let reply = then.map(|then| then.0(self, answer, view));
        self.settle_and_go_on(Wait::Question(question), reply, view.now_ns);
    }

    /// A job is done.
    pub fn handle_job(&mut self, job: JobId, result: JobResult, view: &View<'_>) {
        self.pendings.begin();
        let then = self.pendings.results.remove(&job);
        let reply = then.map(|then| then.0(self, result, view));
        self.settle_and_go_on(Wait::Job(job), reply, view.now_ns);
    }

    /// The request goes on waiting when what was done with the answer says so.
    fn settle_and_go_on(&mut self, wait: Wait, reply: Option<Reply>, now_ns: Nanos) {
        let more = std::mem::take(&mut self.pendings.waits);
        let pending = self.pendings.waiting_for(wait).filter(|_| !more.is_empty());
        let request = pending.and_then(|pending| self.pendings.requests.get_mut(&pending));
        if let Some(request) = request {
            request.until = now_ns + time_max(&more);
            request.waits.extend(more);
        }
        self.settle(wait, reply);
        self.ring_doorbell();
    }

    /// What requests may wait for has happened; `reply` takes the place of theirs.
    pub(super) fn settle(&mut self, wait: Wait, mut reply: Option<Reply>) {
        while let Some(pending) = self.pendings.waiting_for(wait) {
            let request = self.pendings.requests.get_mut(&pending);
            let request = request.expect("it was just found");
            request.waits.retain(|other| *other != wait);
            if let Some(reply) = reply.take() {
                request.reply = reply;
            }
            if request.waits.is_empty() || request.reply.is_err() {
                self.finish(pending);
            }
        }
    }

    fn finish(&mut self, pending: PendingId) {
        if let Some(request) = self.pendings.requests.remove(&pending) {
            self.pendings.forget(&request.waits);
            let reply = request.reply;
            self.actions.push_back(Action::Reply { pending, reply });
        }
    }

    /// Answers the requests that have waited long enough: without the data threads, or that the
    /// receive thread or a job does not answer.
    pub(super) fn give_up_waiting(&mut self, view: &View<'_>) {
        let requests = self.pendings.requests.iter();
        let due = requests.filter(|(_, request)| request.until <= view.now_ns);
        let due: Vec<PendingId> = due.map(|(pending, _)| *pending).collect();
        for pending in due {
            let Some(mut request) = self.pendings.requests.remove(&pending) else {
                continue;
            };
            let method = request.method;
            tracing::warn!(method, "no answer in time: {:?}", request.waits);
            for wait in request.waits {
                match wait {
                    Wait::End(_) | Wait::Change(_) => {}
                    Wait::Question(question) => {
                        self.pendings.answers.remove(&question);
                        request.reply = Err(no_answer(view));
                    }
                    Wait::Job(job) => {
                        let then = self.pendings.results.remove(&job);
                        let late = || JobResult::Failed(too_slow());
                        request.reply =
                            then.map_or(request.reply, |then| then.0(self, late(), view));
                    }
                }
            }
            let reply = request.reply;
            self.actions.push_back(Action::Reply { pending, reply });
        }
    }
}

fn time_max(waits: &[Wait]) -> Nanos {
    match waits.iter().any(|wait| matches!(wait, Wait::Job(_))) {
        true => JOB_MAX,
        false => THREADS_MAX,
    }
}

fn no_answer(view: &View<'_>) -> Error {
    let time = view.endpoints.receive_time();
    let time = time.unwrap_or_else(|| "See the server's log".to_owned());
    Error::execution(format!(
        "the receive thread did not answer within {:.1} s: try again. {time}",
        THREADS_MAX as f64 / SECOND as f64
    ))
}

fn too_slow() -> String {
    format!(
        "it takes longer than {} s: try again with less, or when the server's machine is less busy",
        JOB_MAX / SECOND
    )
}

impl<T> fmt::Debug for Then<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Then")
    }
}
