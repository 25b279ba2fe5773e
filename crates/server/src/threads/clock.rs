//! The time of the server: nanoseconds since it started, from the processor's counter.

use std::sync::Arc;

use allosaur_engine::time::Nanos;
use allosaur_port::time::TimeSource;

/// A clock that all threads share by copies; it never goes back.
#[derive(Clone, Debug)]
pub struct Clock {
    clock: quanta::Clock,
    start: u64,
}

/// Moves a clock that stands still otherwise.
#[derive(Clone, Debug)]
pub struct Hand(Arc<quanta::Mock>);

impl Hand {
    /// Moves the clock on.
    pub fn advance(&self, by_ns: Nanos) {
        self.0.increment(by_ns);
    }
}

impl Clock {
    /// A clock that starts at zero and moves only by its hand: for whoever drives threads one turn
    /// at a time.
    pub fn by_hand() -> (Clock, Hand) {
        let (clock, mock) = quanta::Clock::mock();
        let start = clock.raw();
        (Clock { clock, start }, Hand(mock))
    }

    /// A clock that starts at zero now. Calibrates the processor's counter, once a process, in
    /// about a millisecond; where there is no steady counter, it asks the kernel instead.
    pub fn start() -> Clock {
        let clock = quanta::Clock::new();
        let start = clock.raw();
        Clock { clock, start }
    }

    /// Now.
    #[inline]
    pub fn now_ns(&self) -> Nanos {
        self.clock.delta_as_nanos(self.start, self.clock.raw())
    }
}

impl TimeSource for Clock {
    fn now_ns(&self) -> u64 {
        Clock::now_ns(self)
    }
}
