//! Times on the way, sorted so finely that every percentile is right within 0.1 %.
//!
//! Slots are as in an HdrHistogram, in nanoseconds: each power of two is cut into 512 of the same
//! width, and times below 1024 ns have one each.
//!
//! | times | width of a slot |
//! |---|---|
//! | below 1.024 µs | 1 ns |
//! | about 10 µs | 16 ns |
//! | about 1 ms | 1.024 µs |
//! | about 10 s | 17 ms |
//!
//! Slots of one group take 104 KiB. Only groups that are measured have them.

use crate::time::Nanos;

/// Slots of a power of two: half the width of one is less than 0.1 % of any time in it.
const STEPS_BITS: u32 = 9;
/// Times above are counted as this, 17 s.
const LATENCY_MAX: Nanos = (1 << 34) - 1;
/// Slots of one group.
pub const SLOTS: usize = slot(LATENCY_MAX) + 1;

/// The slot that a time is counted in.
#[inline]
pub const fn slot(latency_ns: Nanos) -> usize {
    let latency_ns = if latency_ns < LATENCY_MAX {
        latency_ns
    } else {
        LATENCY_MAX
    };
    let bits = u64::BITS - latency_ns.leading_zeros();
    let power = bits.saturating_sub(STEPS_BITS + 1);
    ((power as usize) << STEPS_BITS) + (latency_ns >> power) as usize
}

/// The time in the middle of a slot.
const fn middle(slot: usize) -> Nanos {
    let power = (slot >> STEPS_BITS).saturating_sub(1);
    let lowest = ((slot - (power << STEPS_BITS)) as Nanos) << power;
    lowest + (1 << power) / 2
}

/// What the slots of one group had counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    /// Times in rising order, and how many packets took about that long.
    times: Vec<(Nanos, u64)>,
    packets: u64,
}

impl Histogram {
    /// From slots in rising order with their counts. No time is below `min_ns` or above `max_ns`,
    /// which are known exactly.
    pub fn new(
        slots: impl Iterator<Item = (usize, u64)>,
        min_ns: Nanos,
        max_ns: Nanos,
    ) -> Histogram {
        let counted = slots.filter(|(_, count)| *count > 0);
        let times: Vec<_> = counted
            .map(|(slot, count)| (middle(slot).max(min_ns).min(max_ns), count))
            .collect();
        let packets = times.iter().map(|(_, count)| count).sum();
        Histogram { times, packets }
    }

    /// Packets counted.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Times in rising order, and how many packets took about that long.
    pub fn times(&self) -> &[(Nanos, u64)] {
        &self.times
    }

    /// The shortest time that this many percent of all packets did not exceed; 0 of no packets.
    pub fn percentile_ns(&self, percent: f64) -> Nanos {
        let rank = (self.packets as f64 * percent / 100.0).ceil() as u64;
        let mut below = 0;
        let found = self.times.iter().find(|(_, count)| {
            below += count;
            below >= rank
        });
        found
            .or(self.times.last())
            .map_or(0, |(time_ns, _)| *time_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn histogram(times: &[Nanos]) -> Histogram {
        let mut counts = vec![0; SLOTS];
        for &time in times {
            counts[slot(time)] += 1;
        }
        let (min, max) = (times.iter().min(), times.iter().max());
        let (min, max) = (*min.expect("some"), *max.expect("some"));
        Histogram::new(counts.into_iter().enumerate(), min, max)
    }

    #[test]
    fn slots_follow_each_other_without_gaps() {
        assert_eq!((slot(0), slot(1), slot(1023)), (0, 1, 1023));
        assert_eq!((slot(1024), slot(1025), slot(1026)), (1024, 1024, 1025));
        assert_eq!(SLOTS, 13_312);
        for n in 0..SLOTS {
            assert_eq!(slot(middle(n)), n);
        }
        assert_eq!(slot(Nanos::MAX), SLOTS - 1);
    }

    #[test]
    fn percentiles_are_those_of_the_nearest_rank() {
        let times: Vec<_> = (1..=1000).collect();
        let histogram = histogram(&times);
        for (percent, expected) in [(50.0, 500), (90.0, 900), (99.0, 990), (99.9, 999)] {
            assert_eq!(histogram.percentile_ns(percent), expected);
        }
        assert_eq!(histogram.percentile_ns(100.0), 1000);
        assert_eq!(Histogram::default().percentile_ns(50.0), 0);
    }

    #[test]
    fn a_single_packet_is_every_percentile_exactly() {
        let histogram = histogram(&[1_000_300]);
        assert_eq!(histogram.percentile_ns(50.0), 1_000_300);
        assert_eq!(histogram.percentile_ns(99.9), 1_000_300);
    }

    proptest! {
        #[test]
        fn every_percentile_is_within_a_thousandth(
            mut times in prop::collection::vec((0_u32..34).prop_flat_map(|e| 0_u64..1 << e), 1..200),
            percent in 0.0..=100.0_f64,
        ) {
            let histogram = histogram(&times);
            times.sort_unstable();
            let rank = ((times.len() as f64 * percent / 100.0).ceil() as usize).max(1);
            let exact = times[rank - 1];
            let off = histogram.percentile_ns(percent).abs_diff(exact);
            prop_assert!(off * 1000 <= exact, "{off} of {exact}");
        }
    }
}
