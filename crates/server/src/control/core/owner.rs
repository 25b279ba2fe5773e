//! Who owns a port or the server, and how long it may be silent.

use allosaur_engine::time::{Nanos, SECOND};

/// Traffic that does not end delays the release of its port so long at most. Flows that are closed get
/// five seconds.
const RELEASE_DELAY_MAX: Nanos = 10 * SECOND;

/// Who owns a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::control) struct Owner {
    pub(in crate::control) user: String,
    pub(in crate::control) session: u32,
    pub(in crate::control) handler: String,
    /// Until when it may be silent.
    pub(in crate::control) lease: Option<Lease>,
}

/// How long an owner may be silent, and is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::control) struct Lease {
    length: Nanos,
    pub(in crate::control) silent: Nanos,
    /// It is over, and since then so much time has passed: the traffic was told to stop.
    pub(in crate::control) over: Option<Nanos>,
}

/// What a tick means for a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::control) enum Step {
    Holds,
    /// It ended just now.
    Ends,
    /// It ended before, and what it was for may still run.
    IsOver,
    /// It ended long ago.
    IsOverdue,
}

impl Lease {
    /// A lease of so many seconds.
    pub(in crate::control) fn new(length_s: f64) -> Lease {
        Lease {
            length: (length_s * SECOND as f64) as Nanos,
            silent: 0,
            over: None,
        }
    }

    /// How long it is, in seconds.
    pub(in crate::control) fn length_s(&self) -> f64 {
        self.length as f64 / SECOND as f64
    }

    fn pass(&mut self, time: Nanos) -> Step {
        if let Some(over) = &mut self.over {
            *over += time;
            return match *over >= RELEASE_DELAY_MAX {
                true => Step::IsOverdue,
                false => Step::IsOver,
            };
        }
        self.silent += time;
        if self.silent < self.length {
            return Step::Holds;
        }
        self.over = Some(0);
        Step::Ends
    }
}

impl Owner {
    /// So much time has passed without a word of its session.
    pub(in crate::control) fn pass(&mut self, time: Nanos) -> Step {
        self.lease
            .as_mut()
            .map_or(Step::Holds, |lease| lease.pass(time))
    }
}
