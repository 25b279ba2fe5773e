//! The time of the server: nanoseconds since it started, from the processor's counter.
//!
//! What lives here: the one clock that all threads read. What does not: calendar time.

use allosaur_engine::time::Nanos;

/// A clock that all threads share by copies; it never goes back.
#[derive(Clone, Debug)]
pub struct Clock {
    clock: quanta::Clock,
    start: u64,
}

impl Clock {
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
