//! Virtual time: a clock that a test moves by hand.

/// A clock that stands still until it is told to move. Nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VirtualClock {
    now_ns: u64,
}

impl VirtualClock {
    /// A clock that shows `now_ns`.
    pub fn starting_at(now_ns: u64) -> VirtualClock {
        VirtualClock { now_ns }
    }

    /// Moves to `now_ns`, which is not in the past.
    pub fn advance_to(&mut self, now_ns: u64) {
        assert!(
            now_ns >= self.now_ns,
            "virtual time runs forwards: it is {} ns, asked for {now_ns} ns",
            self.now_ns
        );
        self.now_ns = now_ns;
    }

    /// Moves on by `span_ns`.
    pub fn advance_by(&mut self, span_ns: u64) {
        self.advance_to(self.now_ns + span_ns);
    }

    /// What the clock shows.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_moves_when_told() {
        let mut clock = VirtualClock::starting_at(5);
        clock.advance_by(10);
        clock.advance_to(15);
        assert_eq!(clock.now_ns(), 15);
    }

    #[test]
    #[should_panic(expected = "runs forwards")]
    fn time_does_not_run_backwards() {
        VirtualClock::starting_at(5).advance_to(4);
    }
}
