//! The timers of a connection: a table of deadlines in milliseconds, on one time line.
//!
//! What they do when they expire is in `timeout`.

/// A timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// Retransmission; or with PERSIST, the next window probe.
    Retransmit,
    /// Delayed ACK.
    DelayedAck,
    /// Keepalive; before the connection is established, the connect timeout.
    Keep,
    /// The end of TIME-WAIT, or of FIN-WAIT-2.
    TimeWait,
}

/// All of them, in the order in which those that are due at once are handled.
pub(super) const TIMERS: [Timer; 4] = [
    Timer::Retransmit,
    Timer::DelayedAck,
    Timer::Keep,
    Timer::TimeWait,
];

/// Deadlines: [`Timer::TimeWait`] shares that of [`Timer::Retransmit`], which is never set then, as all
/// is acknowledged.
const DEADLINES: usize = TIMERS.len() - 1;

impl Timer {
    #[inline]
    const fn place(self) -> usize {
        self as usize % DEADLINES
    }
}

/// Deadlines in milliseconds, which wrap around as sequence numbers do. Packed, as there are millions
/// of them at once.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, packed(1))]
pub(super) struct Timers {
    deadlines_ms: [u32; DEADLINES],
    armed: u8,
}

impl Timers {
    /// Makes `timer` due at `at_ms`, whatever it was before.
    #[inline]
    pub(super) fn set(&mut self, timer: Timer, at_ms: u32) {
        self.deadlines_ms[timer.place()] = at_ms;
        self.armed |= 1 << timer as u8;
        debug_assert!(
            !self.is_set(Timer::Retransmit) || !self.is_set(Timer::TimeWait),
            "they share a place"
        );
    }

    /// Makes it never due.
    #[inline]
    pub(super) fn stop(&mut self, timer: Timer) {
        self.armed &= !(1 << timer as u8);
    }

    /// None is due any more.
    pub(super) fn stop_all(&mut self) {
        self.armed = 0;
    }

    /// Whether it is set.
    #[inline]
    pub(super) fn is_set(&self, timer: Timer) -> bool {
        self.armed >> timer as u8 & 1 == 1
    }

    /// When `timer` is due, if no other is set.
    #[inline]
    pub(super) fn only(&self, timer: Timer) -> Option<u32> {
        (self.armed == 1 << timer as u8).then_some(self.deadlines_ms[timer.place()])
    }

    /// Whether it is set, and due at `now_ms`.
    pub(super) fn is_due(&self, timer: Timer, now_ms: u32) -> bool {
        self.is_set(timer) && left_ms(self.deadlines_ms[timer.place()], now_ms) <= 0
    }

    /// In how many milliseconds from `now_ms` the first is due; 0 when it is late.
    #[inline]
    pub(super) fn first_ms(&self, now_ms: u32) -> Option<u32> {
        let mut first: Option<i32> = None;
        for timer in TIMERS {
            if self.is_set(timer) {
                let left = left_ms(self.deadlines_ms[timer.place()], now_ms);
                first = Some(first.map_or(left, |first| first.min(left)));
            }
        }
        first.map(|left| left.max(0) as u32)
    }
}

#[inline]
fn left_ms(deadline_ms: u32, now_ms: u32) -> i32 {
    deadline_ms.wrapping_sub(now_ms) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_go_round() {
        let mut timers = Timers::default();
        assert_eq!(timers.first_ms(5), None);
        timers.set(Timer::Keep, 10);
        timers.set(Timer::DelayedAck, u32::MAX - 5);
        assert_eq!(timers.first_ms(u32::MAX - 10), Some(5));
        timers.stop(Timer::DelayedAck);
        assert_eq!(timers.first_ms(u32::MAX - 10), Some(21));
        assert!(!timers.is_due(Timer::Keep, 9) && timers.is_due(Timer::Keep, 10));
        assert_eq!(timers.first_ms(12), Some(0));
    }
}
