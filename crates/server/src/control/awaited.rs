//! What a domain does with the answers that it waits for.

use std::fmt;
use std::ops::ControlFlow;

use allosaur_api::Error;
use serde_json::Value;

use super::config::View;
use super::core::Core;
use super::core::pending::{JobId, QuestionId, Wait};
use super::domain::{Others, Outcome, TakesOutcomes};
use super::job::{Job, JobResult, Work};
use super::reply::Reply;
use crate::rx_taps::{Answer, Request, TapRequest};

/// What `D` does with each answer or result that it waits for; gives the reply of the request.
pub(in crate::control) struct Awaited<D> {
    then: Vec<(Wait, ThenFn<D>)>,
}

type ThenFn<D> = Box<dyn FnOnce(&mut D, &mut Core, &mut Others<'_>, Outcome, &View<'_>) -> Reply>;

impl<D> Default for Awaited<D> {
    fn default() -> Awaited<D> {
        Awaited { then: Vec::new() }
    }
}

impl<D> Awaited<D> {
    /// Asks the receive thread. What this gives stands for the reply, which `then` makes. There is
    /// no answer when no tap takes such requests.
    pub(in crate::control) fn ask<R: TapRequest<Answer: TryFrom<Answer>> + Into<Request>>(
        &mut self,
        control: &mut Core,
        request: R,
        then: impl FnOnce(&mut D, &mut Core, &mut Others<'_>, Option<R::Answer>, &View<'_>) -> Reply
        + 'static,
    ) -> Reply {
        let question = control.ask(request.into());
        self.keep_answer::<R>(question, then);
        Ok(Value::Null)
    }

    /// The same, for which no request waits.
    pub(in crate::control) fn ask_aside<R: TapRequest<Answer: TryFrom<Answer>> + Into<Request>>(
        &mut self,
        control: &mut Core,
        request: R,
        then: impl FnOnce(&mut D, &mut Core, &mut Others<'_>, Option<R::Answer>, &View<'_>) -> Reply
        + 'static,
    ) -> QuestionId {
        let question = control.ask_aside(request.into());
        self.keep_answer::<R>(question, then);
        question
    }

    fn keep_answer<R: TapRequest<Answer: TryFrom<Answer>>>(
        &mut self,
        question: QuestionId,
        then: impl FnOnce(&mut D, &mut Core, &mut Others<'_>, Option<R::Answer>, &View<'_>) -> Reply
        + 'static,
    ) {
        let then: ThenFn<D> = Box::new(move |domain, control, others, outcome, view| {
            let answer = match outcome {
                Outcome::Answer(answer) => R::Answer::try_from(answer).ok(),
                Outcome::Job(_) => None,
            };
            then(domain, control, others, answer, view)
        });
        self.then.push((Wait::Question(question), then));
    }

    /// Has a job done; the request at hand is answered by what `then` makes of its result.
    pub(in crate::control) fn begin_job<W: Work>(
        &mut self,
        control: &mut Core,
        work: W,
        then: impl FnOnce(&mut D, &mut Core, Result<W::Output, String>, &View<'_>) -> Reply + 'static,
    ) -> JobId {
        let job = self.begin_job_aside(control, work, then);
        control.pendings.await_also(Wait::Job(job));
        job
    }

    /// The same, for which no request waits.
    pub(in crate::control) fn begin_job_aside<W: Work>(
        &mut self,
        control: &mut Core,
        work: W,
        then: impl FnOnce(&mut D, &mut Core, Result<W::Output, String>, &View<'_>) -> Reply + 'static,
    ) -> JobId {
        let job = control.begin_job(Job::new(work));
        let then: ThenFn<D> = Box::new(move |domain, control, _, outcome, view| match outcome {
            Outcome::Job(result) => then(domain, control, result.of::<W>(), view),
            Outcome::Answer(_) => Ok(Value::Null),
        });
        self.then.push((Wait::Job(job), then));
        job
    }

    /// The request at hand waits for what begins later, until the wait is settled. Who settles it forgets
    /// it here.
    pub(in crate::control) fn await_later(&mut self, control: &mut Core) -> Wait {
        let wait = Wait::Job(JobId(control.pendings.next_id()));
        control.pendings.await_also(wait);
        let then: ThenFn<D> = Box::new(|_, _, _, outcome, _| match outcome {
            Outcome::Job(JobResult::Failed(problem)) => Err(Error::execution(problem)),
            _ => Ok(Value::Null),
        });
        self.then.push((wait, then));
        wait
    }

    /// Takes what is done with an answer or a result, if it is waited for here.
    fn take(&mut self, wait: Wait) -> Option<ThenFn<D>> {
        let place = self.then.iter().position(|(other, _)| *other == wait)?;
        Some(self.then.remove(place).1)
    }

    /// It is not waited for any more.
    pub(in crate::control) fn forget(&mut self, wait: Wait) {
        self.then.retain(|(other, _)| *other != wait);
    }
}

/// Where a domain keeps what it waits for, if there is anything that it waits for.
pub(in crate::control) trait Awaits: fmt::Debug + Sized {
    /// What it waits for.
    fn awaited(&mut self) -> Option<&mut Awaited<Self>> {
        None
    }
}

impl<D: Awaits> TakesOutcomes for D {
    fn handle_outcome(
        &mut self,
        control: &mut Core,
        others: &mut Others<'_>,
        wait: Wait,
        outcome: Outcome,
        view: &View<'_>,
    ) -> ControlFlow<Reply, Outcome> {
        match self.awaited().and_then(|awaited| awaited.take(wait)) {
            Some(then) => ControlFlow::Break(then(self, control, others, outcome, view)),
            None => ControlFlow::Continue(outcome),
        }
    }

    fn forget(&mut self, wait: Wait) {
        if let Some(awaited) = self.awaited() {
            awaited.forget(wait);
        }
    }
}

impl<D> fmt::Debug for Awaited<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waits = self.then.iter().map(|(wait, _)| wait);
        f.debug_list().entries(waits).finish()
    }
}
