//! What the receive thread measured of the groups whose latency is measured.
//!
//! The slots of a group are many, so they are made when control first expects the group, and
//! control reads only those that lie between the shortest and the longest time.

use std::ops::RangeInclusive;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use allosaur_engine::latency::histogram::{SLOTS, slot};
use allosaur_engine::latency::meter::WORDS;
use allosaur_engine::latency::{Histogram, LatencyStats};
use allosaur_engine::time::Nanos;

use super::CounterCells;

/// What control wants of a group whose latency is measured: this version of it, and this run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatencyTerms {
    /// Changes when the group is made anew, and all that was measured is forgotten. 0 is none.
    pub version: u32,
    /// Changes with each run: the packets' numbers begin again.
    pub run: u8,
}

/// What was measured of one group, with one writer, and what control expects of it.
#[derive(Debug, Default)]
pub(super) struct LatencyCell {
    terms: AtomicU64,
    /// Whose numbers these are; 0 while they are nobody's.
    version: AtomicU64,
    stats: CounterCells<WORDS>,
    times: OnceLock<Box<[AtomicU64]>>,
}

impl LatencyCell {
    /// Tells the receive thread what to expect, and makes room for it. Only control may.
    pub(super) fn expect(&self, terms: LatencyTerms) {
        self.times.get_or_init(|| {
            let zero = || const { AtomicU64::new(0) };
            std::iter::repeat_with(zero).take(SLOTS).collect()
        });
        let word = u64::from(terms.version) << 8 | u64::from(terms.run);
        self.terms.store(word, Ordering::Release);
    }

    /// What control expects.
    #[inline]
    pub(super) fn terms(&self) -> LatencyTerms {
        let word = self.terms.load(Ordering::Acquire);
        LatencyTerms {
            version: (word >> 8) as u32,
            run: word as u8,
        }
    }

    /// Counts a time. Only the receive thread may.
    #[inline]
    pub(super) fn count(&self, latency_ns: Nanos) {
        // Control made room before it said what to expect.
        if let Some(times) = self.times.get() {
            let count = &times[slot(latency_ns)];
            count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    /// Forgets the times of a version that is over, of which `stats` was all. Only the receive
    /// thread may.
    pub(super) fn forget(&self, stats: &LatencyStats) {
        self.disown();
        let times = self.times.get().filter(|_| stats.packets > 0);
        for slot in times.into_iter().flat_map(|times| &times[slots(stats)]) {
            slot.store(0, Ordering::Relaxed);
        }
    }

    /// Publishes the sums of a version. Only the receive thread may.
    pub(super) fn store(&self, version: u32, stats: &LatencyStats) {
        if self.version.load(Ordering::Relaxed) != u64::from(version) {
            self.disown();
        }
        for (i, word) in stats.to_words().into_iter().enumerate() {
            self.stats.store(i, word);
        }
        self.version.store(version.into(), Ordering::Release);
    }

    /// The sums of a version, if there are any.
    pub(super) fn load(&self, version: u32) -> Option<LatencyStats> {
        self.load_of(version, || {
            let words = std::array::from_fn(|i| self.stats.load(i));
            LatencyStats::from_words(&words)
        })
    }

    /// The times of a version, of which `stats` were the sums.
    pub(super) fn times(&self, version: u32, stats: &LatencyStats) -> Option<Histogram> {
        let times = self.times.get()?;
        self.load_of(version, || {
            let counts = slots(stats).map(|slot| (slot, times[slot].load(Ordering::Relaxed)));
            Histogram::new(counts, stats.min_ns, stats.max_ns)
        })
    }

    /// Nobody shall take numbers of one version for those of another.
    fn disown(&self) {
        self.version.store(0, Ordering::Relaxed);
        fence(Ordering::Release);
    }

    /// Reads, if all that is read is of that version.
    fn load_of<T>(&self, version: u32, read: impl FnOnce() -> T) -> Option<T> {
        if self.version.load(Ordering::Acquire) != u64::from(version) {
            return None;
        }
        let value = read();
        fence(Ordering::Acquire);
        (self.version.load(Ordering::Relaxed) == u64::from(version)).then_some(value)
    }
}

fn slots(stats: &LatencyStats) -> RangeInclusive<usize> {
    slot(stats.min_ns)..=slot(stats.max_ns)
}

#[cfg(test)]
mod tests {
    use allosaur_engine::latency::Meter;

    use super::*;

    fn measure(cell: &LatencyCell, meter: &mut Meter, times: &[Nanos]) {
        for (n, &time) in times.iter().enumerate() {
            meter.record(time, n as u32, 0);
            cell.count(time);
        }
    }

    #[test]
    fn times_of_a_version_are_not_those_of_the_one_before() {
        let cell = LatencyCell::default();
        let mut meter = Meter::default();
        cell.expect(LatencyTerms { version: 1, run: 1 });
        measure(&cell, &mut meter, &[5_000, 90_000, 2_000_000]);
        cell.store(1, meter.stats());
        let old = *meter.stats();
        let times = cell.times(1, &old).expect("it is of version 1");
        assert_eq!((times.packets(), times.percentile_ns(1.0)), (3, 5_004));
        assert_eq!(cell.times(2, &old), None);

        cell.forget(&old);
        assert_eq!(cell.load(1), None);
        assert_eq!(cell.times(1, &old), None);
        meter = Meter::default();
        measure(&cell, &mut meter, &[4_000, 3_000_000]);
        assert_eq!(cell.load(2), None, "nothing is published yet");
        cell.store(2, meter.stats());
        let stats = cell.load(2).expect("it is of version 2");
        let times = cell.times(2, &stats).expect("it is of version 2");
        assert_eq!(times.times(), [(4_002, 1), (3_000_000, 1)]);
    }

    #[test]
    fn there_is_no_room_for_groups_that_nobody_expects() {
        let cell = LatencyCell::default();
        cell.count(7);
        assert!(cell.times.get().is_none());
        cell.forget(&LatencyStats::default());
    }
}
