//! How flows end, each in one way: the words, and what is counted. `judge` decides.

use crate::app::StatusClass;
use crate::stats::counters;

counters! {
    /// How the flows of one side of the templates of a group ended, each in one way, and what their
    /// programs met. All only grow.
    OutcomeCounters;
    /// Their program came to its end, and all that it sent was acknowledged.
    completed,
    /// The peer reset them before.
    reset,
    /// The peer closed them in order before.
    closed_early,
    /// The peer was silent.
    timed_out,
    /// The peer refused them.
    refused,
    /// The end of the test ended them.
    cut_off,
    /// We gave them up: for want of room, or as what came made no sense.
    aborted,
    /// Flows whose program waits for data, and that ended without any.
    unanswered,
    /// Answers over HTTP/1 with a status of 100 to 199.
    http_1xx,
    /// 200 to 299.
    http_2xx,
    /// 300 to 399.
    http_3xx,
    /// 400 to 499.
    http_4xx,
    /// 500 to 599.
    http_5xx,
    /// Answers to requests of HTTP/1 that begin with no status line.
    http_other,
}

/// How a flow ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowOutcome {
    /// Its program came to its end, and all that it sent was acknowledged.
    Completed,
    /// The peer reset it before.
    Reset,
    /// The peer closed it in order before.
    ClosedEarly,
    /// The peer was silent.
    TimedOut,
    /// The peer refused it.
    Refused,
    /// The end of the test ended it.
    CutOff,
    /// We gave it up: for want of room, or as what came made no sense.
    Aborted,
}

impl OutcomeCounters {
    /// How many of the counters are of ends; the first of all.
    pub const ENDS: usize = 7;

    /// Flows that were judged: each has ended in one of these ways.
    pub fn judged(&self) -> u64 {
        self.values()[..Self::ENDS].iter().sum()
    }

    /// Counts a flow.
    pub(super) fn count(&mut self, outcome: FlowOutcome) {
        *match outcome {
            FlowOutcome::Completed => &mut self.completed,
            FlowOutcome::Reset => &mut self.reset,
            FlowOutcome::ClosedEarly => &mut self.closed_early,
            FlowOutcome::TimedOut => &mut self.timed_out,
            FlowOutcome::Refused => &mut self.refused,
            FlowOutcome::CutOff => &mut self.cut_off,
            FlowOutcome::Aborted => &mut self.aborted,
        } += 1;
    }

    /// Counts an answer over HTTP/1.
    pub(super) fn count_status(&mut self, class: StatusClass) {
        *match class {
            StatusClass::Of(1) => &mut self.http_1xx,
            StatusClass::Of(2) => &mut self.http_2xx,
            StatusClass::Of(3) => &mut self.http_3xx,
            StatusClass::Of(4) => &mut self.http_4xx,
            StatusClass::Of(5) => &mut self.http_5xx,
            _ => &mut self.http_other,
        } += 1;
    }
}
