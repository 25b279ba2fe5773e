//! When frames arrived: the kernel notes it for each by the calendar's clock, and ports tell it by
//! the clock of who receives.

use std::time::{SystemTime, UNIX_EPOCH};

/// How fast the two clocks may drift apart: by a tenth. A calendar's clock that is put right gently
/// runs up to a twelfth faster or slower for a while.
const DRIFT_SHARE: u64 = 10;
/// A frame cannot arrive so long after its ring was looked at: the calendar's clock was set.
const AHEAD_MAX_NS: i64 = 10_000_000;

/// The distance of the two clocks, measured each time the ring is looked at.
///
/// Ours is read first. Whatever keeps the thread from reading the calendar's clock at once makes
/// the distance smaller, so the largest one is nearest to the truth, and none is above it: no frame is
/// said to have arrived later than it did.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// Our clock less the calendar's, in nanoseconds, and when that was found out by ours.
    distance_ns: Option<i64>,
    measured_at_ns: u64,
    /// No frame that is in the ring arrived before this.
    earliest_ns: u64,
}

impl Arrivals {
    /// Our clock shows `now_ns`; reads the other.
    pub(super) fn measure(&mut self, now_ns: u64) {
        // A clock that was set before 1970 is no help.
        let calendar = SystemTime::now().duration_since(UNIX_EPOCH);
        let calendar_ns = calendar.ok().map(|since| since.as_nanos() as i64);
        self.note(now_ns, calendar_ns);
    }

    fn note(&mut self, now_ns: u64, calendar_ns: Option<i64>) {
        let age_ns = now_ns.saturating_sub(self.measured_at_ns);
        self.measured_at_ns = now_ns;
        let Some(calendar_ns) = calendar_ns else {
            self.distance_ns = None;
            return;
        };
        let found = (now_ns as i64).wrapping_sub(calendar_ns);
        let drift = (age_ns / DRIFT_SHARE) as i64;
        let known = self.distance_ns.map(|known| known.wrapping_sub(drift));
        self.distance_ns = Some(known.map_or(found, |known| known.max(found)));
    }

    /// When a frame arrived to which the kernel gave this time.
    pub(super) fn at(&mut self, seconds: u32, nanoseconds: u32) -> u64 {
        let calendar_ns = i64::from(seconds) * 1_000_000_000 + i64::from(nanoseconds);
        let looked_ns = self.measured_at_ns;
        let at = self
            .distance_ns
            .map(|distance| calendar_ns.wrapping_add(distance));
        let at = match at {
            Some(at) if at.wrapping_sub(looked_ns as i64) < AHEAD_MAX_NS => at.max(0) as u64,
            _ => {
                self.distance_ns = None;
                looked_ns
            }
        };
        self.earliest_ns = at.max(self.earliest_ns);
        self.earliest_ns
    }

    /// The ring was looked at when our clock showed `now_ns`, and nothing is left in it.
    pub(super) fn note_empty(&mut self, now_ns: u64) {
        self.earliest_ns = self.earliest_ns.max(now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026, and our clock is a second old.
    const CALENDAR: i64 = 1_790_000_000_000_000_000;
    const NOW: u64 = 1_000_000_000;

    fn at(arrivals: &mut Arrivals, calendar_ns: i64) -> u64 {
        let (seconds, rest) = (calendar_ns / 1_000_000_000, calendar_ns % 1_000_000_000);
        arrivals.at(seconds as u32, rest as u32)
    }

    #[test]
    fn a_frame_that_waited_arrived_before_it_is_read() {
        let mut arrivals = Arrivals::default();
        arrivals.note(NOW, Some(CALENDAR));
        assert_eq!(at(&mut arrivals, CALENDAR - 70_000), NOW - 70_000);
        assert_eq!(at(&mut arrivals, CALENDAR - 20), NOW - 20);
        // This one came while the others were read.
        assert_eq!(at(&mut arrivals, CALENDAR + 300), NOW + 300);
    }

    #[test]
    fn a_thread_that_was_stopped_between_both_clocks_learns_nothing_wrong() {
        let mut arrivals = Arrivals::default();
        arrivals.note(NOW, Some(CALENDAR));
        // A millisecond later; reading the second clock takes 5 ms more.
        arrivals.note(NOW + 1_000_000, Some(CALENDAR + 6_000_000));
        let said = at(&mut arrivals, CALENDAR + 990_000);
        assert!((NOW + 890_000..=NOW + 990_000).contains(&said), "{said}");
        // And another one, for which the clocks drifted apart as fast as they may.
        arrivals.note(NOW + 2_000_000, Some(CALENDAR + 2_083_000));
        assert_eq!(at(&mut arrivals, CALENDAR + 2_082_000), NOW + 1_999_000);
    }

    #[test]
    fn the_first_look_may_be_the_bad_one() {
        let mut arrivals = Arrivals::default();
        arrivals.note(NOW, Some(CALENDAR + 5_000_000));
        arrivals.note(NOW + 1_000, Some(CALENDAR + 1_000));
        assert_eq!(at(&mut arrivals, CALENDAR + 900), NOW + 900);
    }

    #[test]
    fn a_clock_that_is_set_is_found_out() {
        for step in [-3_600_000_000_000, 3_600_000_000_000] {
            let mut arrivals = Arrivals::default();
            arrivals.note(NOW, Some(CALENDAR));
            arrivals.note_empty(NOW + 500);
            arrivals.note(NOW + 1_000, Some(CALENDAR + step + 1_000));
            let said = at(&mut arrivals, CALENDAR + step + 900);
            assert!((NOW + 500..=NOW + 1_000).contains(&said), "{said}");
            arrivals.note(NOW + 2_000, Some(CALENDAR + step + 2_000));
            assert_eq!(at(&mut arrivals, CALENDAR + step + 1_950), NOW + 1_950);
        }
    }

    #[test]
    fn frames_stay_in_order_and_after_the_ring_was_empty() {
        let mut arrivals = Arrivals::default();
        arrivals.note_empty(NOW - 100);
        arrivals.note(NOW, Some(CALENDAR));
        assert_eq!(at(&mut arrivals, CALENDAR - 5_000), NOW - 100);
        assert_eq!(at(&mut arrivals, CALENDAR - 40), NOW - 40);
        assert_eq!(at(&mut arrivals, CALENDAR - 60), NOW - 40);
    }

    #[test]
    fn without_a_calendar_frames_arrive_when_they_are_read() {
        let mut arrivals = Arrivals::default();
        arrivals.note(NOW, None);
        assert_eq!(at(&mut arrivals, 0), NOW);
    }
}
