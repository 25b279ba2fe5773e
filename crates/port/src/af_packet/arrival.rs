//! When frames arrived: the kernel notes it for each by the calendar's clock, and ports tell it by
//! the clock of who receives.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::time::TimeSource;

/// How fast the two clocks may drift apart: by a tenth. A calendar's clock that is put right gently
/// runs up to a twelfth faster or slower for a while.
const DRIFT_SHARE: u64 = 10;
/// A frame cannot arrive so long after its ring was looked at: the calendar's clock was set.
const AHEAD_MAX_NS: i64 = 10_000_000;
/// The distance is measured again while it is known less well than this, but not for ever.
const WIDTH_MAX_NS: i64 = 500;
const TRIES_MAX: usize = 4;

/// The distance of the two clocks, measured each time the ring is looked at.
///
/// Ours is read before and after the calendar's, so the distance lies between the two that they give,
/// whatever kept the thread in between; what was known before, less the drift, narrows that. Frames
/// are told to have arrived by the middle, which is off by half of the width at most, either way.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    distance: Option<Distance>,
    /// When the ring was last looked at, by our clock.
    looked_ns: u64,
    /// What is in the ring may have got its time before the calendar's clock was set.
    was_set: bool,
    /// No frame that is in the ring arrived before this.
    earliest_ns: u64,
}

/// Our clock less the calendar's, in nanoseconds: between these two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Distance {
    least_ns: i64,
    most_ns: i64,
}

impl Distance {
    /// The calendar's clock was read between two looks at ours.
    fn between(before_ns: u64, calendar_ns: i64, after_ns: u64) -> Distance {
        Distance {
            least_ns: (before_ns as i64).wrapping_sub(calendar_ns),
            most_ns: (after_ns as i64).wrapping_sub(calendar_ns),
        }
    }

    fn width_ns(self) -> i64 {
        self.most_ns.wrapping_sub(self.least_ns)
    }

    fn middle_ns(self) -> i64 {
        self.least_ns.wrapping_add(self.width_ns() / 2)
    }

    /// What it may have become some time later.
    fn after(self, passed_ns: u64) -> Distance {
        let drift = (passed_ns / DRIFT_SHARE) as i64;
        Distance {
            least_ns: self.least_ns.wrapping_sub(drift),
            most_ns: self.most_ns.wrapping_add(drift),
        }
    }

    /// What both say, if that can be.
    fn and(self, other: Distance) -> Option<Distance> {
        let both = Distance {
            least_ns: self.least_ns.max(other.least_ns),
            most_ns: self.most_ns.min(other.most_ns),
        };
        (both.least_ns <= both.most_ns).then_some(both)
    }
}

impl Arrivals {
    /// The ring is looked at: measures the distance until it is known well.
    pub(super) fn measure(&mut self, clock: &dyn TimeSource) {
        self.was_set = false;
        for _ in 0..TRIES_MAX {
            let before_ns = clock.now_ns();
            // A clock that was set before 1970 is no help.
            let calendar = SystemTime::now().duration_since(UNIX_EPOCH);
            let calendar_ns = calendar.ok().map(|since| since.as_nanos() as i64);
            self.note(before_ns, calendar_ns, clock.now_ns());
            let known = self.distance.map(Distance::width_ns);
            if known.is_none_or(|width_ns| width_ns <= WIDTH_MAX_NS) {
                break;
            }
        }
    }

    /// The ring is looked at when our clock shows `now_ns`; nobody knows more of it.
    pub(super) fn note_unknown(&mut self, now_ns: u64) {
        self.note(now_ns, None, now_ns);
    }

    fn note(&mut self, before_ns: u64, calendar_ns: Option<i64>, after_ns: u64) {
        let passed_ns = after_ns.saturating_sub(self.looked_ns);
        self.looked_ns = after_ns;
        let Some(calendar_ns) = calendar_ns else {
            self.distance = None;
            return;
        };
        let found = Distance::between(before_ns, calendar_ns, after_ns);
        let known = self.distance.map(|known| known.after(passed_ns));
        let both = known.map(|known| known.and(found));
        self.was_set |= both == Some(None);
        self.distance = Some(both.flatten().unwrap_or(found));
    }

    /// When a frame arrived to which the kernel gave this time; when the ring was looked at, where
    /// that is not known.
    pub(super) fn at(&mut self, seconds: u32, nanoseconds: u32) -> u64 {
        let calendar_ns = i64::from(seconds) * 1_000_000_000 + i64::from(nanoseconds);
        let distance = self.distance.filter(|_| !self.was_set);
        let at = distance.map(|distance| calendar_ns.wrapping_add(distance.middle_ns()));
        let at = match at {
            Some(at) if at.wrapping_sub(self.looked_ns as i64) < AHEAD_MAX_NS => at.max(0) as u64,
            _ => {
                self.distance = None;
                self.looked_ns
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

    /// One more look, in which both clocks were read at once.
    fn look(arrivals: &mut Arrivals, now_ns: u64, calendar_ns: i64) {
        arrivals.was_set = false;
        arrivals.note(now_ns, Some(calendar_ns), now_ns);
    }

    #[test]
    fn a_frame_that_waited_arrived_before_it_is_read() {
        let mut arrivals = Arrivals::default();
        look(&mut arrivals, NOW, CALENDAR);
        assert_eq!(at(&mut arrivals, CALENDAR - 70_000), NOW - 70_000);
        assert_eq!(at(&mut arrivals, CALENDAR - 20), NOW - 20);
        // This one came while the others were read.
        assert_eq!(at(&mut arrivals, CALENDAR + 300), NOW + 300);
    }

    #[test]
    fn a_thread_that_was_stopped_between_the_clocks_is_off_by_no_more_than_the_drift() {
        let mut arrivals = Arrivals::default();
        look(&mut arrivals, NOW, CALENDAR);
        // A millisecond later; 5 ms lie before or after the look at the calendar.
        for (before, calendar, after) in [
            (1_000_000, 6_000_000, 6_000_000),
            (7_000_000, 7_000_000, 12_000_000),
        ] {
            arrivals.note(NOW + before, Some(CALENDAR + calendar), NOW + after);
            let said = at(&mut arrivals, CALENDAR + calendar) as i64;
            let off = said - (NOW as i64 + calendar);
            assert!(off.abs() <= (after / DRIFT_SHARE) as i64, "{off}");
        }
        // The next look finds it out.
        look(&mut arrivals, NOW + 20_000_000, CALENDAR + 20_000_000);
        assert_eq!(at(&mut arrivals, CALENDAR + 19_000_000), NOW + 19_000_000);
        // And another one, for which the clocks drifted apart as fast as they may.
        look(&mut arrivals, NOW + 21_000_000, CALENDAR + 21_083_000);
        assert_eq!(at(&mut arrivals, CALENDAR + 21_082_000), NOW + 20_999_000);
    }

    #[test]
    fn a_thread_that_sleeps_long_between_looks_says_the_right_time() {
        let mut arrivals = Arrivals::default();
        for n in 0..1000 {
            let passed = n * 3_000_000;
            // A vCPU is slow to read: 200 ns lie on each side.
            let (now, calendar) = (NOW + passed, CALENDAR + passed as i64);
            arrivals.note(now - 200, Some(calendar), now + 200);
            let said = at(&mut arrivals, calendar - 100);
            assert!(said.abs_diff(now - 100) <= 200, "{said} of {now}");
        }
    }

    #[test]
    fn the_first_look_may_be_the_bad_one() {
        let mut arrivals = Arrivals::default();
        arrivals.note(NOW, Some(CALENDAR + 5_000_000), NOW + 5_000_000);
        look(&mut arrivals, NOW + 5_001_000, CALENDAR + 5_001_000);
        assert_eq!(at(&mut arrivals, CALENDAR + 5_000_900), NOW + 5_000_900);
    }

    #[test]
    fn a_clock_that_is_set_is_found_out() {
        for step in [-3_600_000_000_000, -5_000_000, 5_000_000, 3_600_000_000_000] {
            let mut arrivals = Arrivals::default();
            look(&mut arrivals, NOW, CALENDAR);
            arrivals.note_empty(NOW + 500);
            look(&mut arrivals, NOW + 1_000, CALENDAR + step + 1_000);
            // By which clock these got their times, nobody knows.
            for calendar in [CALENDAR + 800, CALENDAR + step + 900] {
                assert_eq!(at(&mut arrivals, calendar), NOW + 1_000);
            }
            look(&mut arrivals, NOW + 2_000, CALENDAR + step + 2_000);
            assert_eq!(at(&mut arrivals, CALENDAR + step + 1_950), NOW + 1_950);
        }
    }

    #[test]
    fn frames_stay_in_order_and_after_the_ring_was_empty() {
        let mut arrivals = Arrivals::default();
        arrivals.note_empty(NOW - 100);
        look(&mut arrivals, NOW, CALENDAR);
        assert_eq!(at(&mut arrivals, CALENDAR - 5_000), NOW - 100);
        assert_eq!(at(&mut arrivals, CALENDAR - 40), NOW - 40);
        assert_eq!(at(&mut arrivals, CALENDAR - 60), NOW - 40);
    }

    #[test]
    fn without_a_calendar_frames_arrive_when_they_are_read() {
        let mut arrivals = Arrivals::default();
        arrivals.note(NOW, None, NOW);
        assert_eq!(at(&mut arrivals, 0), NOW);
    }

    /// A clock that reads what it is told, one after the other.
    #[derive(Debug)]
    struct Told(std::sync::Mutex<Vec<u64>>);

    impl TimeSource for Told {
        fn now_ns(&self) -> u64 {
            let mut left = self.0.lock().expect("one thread has it");
            left.pop().expect("no more than so many looks")
        }
    }

    #[test]
    fn the_distance_is_measured_again_until_it_is_known_well() {
        // The thread was stopped in the first two tries; in the third it was not.
        let reads = [0, 90_000, 90_100, 700_000, 700_100, 700_300];
        let clock = Told(reads.into_iter().rev().collect::<Vec<_>>().into());
        let mut arrivals = Arrivals::default();
        arrivals.measure(&clock);
        let width = arrivals.distance.map(Distance::width_ns);
        assert!(width.is_some_and(|width| width <= 200), "{width:?}");
        assert_eq!(clock.0.lock().expect("one thread has it").len(), 0);
    }
}
