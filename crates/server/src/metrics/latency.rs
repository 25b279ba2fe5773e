//! Times on the way, as metrics: the same for streams and for echo streams, under names of their own.

use allosaur_engine::latency::meter::{BUCKETS, bucket_usec};
use allosaur_engine::latency::{Histogram, LatencyStats};
use allosaur_engine::time::MICROSECOND;

use super::encoder::{Encoder, Label};
use super::family::{Family, Kind, Read, Row};
use super::seconds;

/// Bounds below the first bucket of the RPC's histogram, which has all times below 10 µs in one: 1
/// to 9 µs.
const FINE_BOUNDS: usize = 9;
/// All bounds: those, and the lower ones of the RPC's buckets but the first.
const BOUNDS: usize = FINE_BOUNDS + BUCKETS - 1;

/// What is measured: how its metrics are called, and what they say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    /// The first word of the names.
    pub(super) prefix: &'static str,
    /// The labels.
    pub(super) labels: &'static [&'static str],
    /// What the histogram says.
    pub(super) help: &'static str,
    /// When there are series.
    pub(super) when: &'static str,
}

/// What was measured of one of them.
#[derive(Debug)]
pub(super) struct Latency<'c> {
    /// In the order of [`Measured::labels`].
    labels: [Label<'c>; 2],
    stats: LatencyStats,
    /// By the bounds; the last is above all.
    counts: [u64; BOUNDS + 1],
}

impl Measured {
    /// All metrics, in the order in which they are written.
    pub(super) fn families(self) -> Vec<Family> {
        let mut all = vec![self.histogram()];
        all.extend(self.times().map(|(family, _)| family));
        all.push(self.dropped());
        all.extend(self.counts().map(|(family, _)| family));
        all
    }

    /// Writes all metrics, of all that was measured.
    pub(super) fn write(self, measured: &[Latency<'_>], encoder: &mut Encoder) {
        let family = self.histogram();
        let mut series = encoder.family(&family);
        for one in measured {
            let sum = seconds(one.stats.sum_ns);
            series.histogram(&one.labels, bounds_seconds(), &one.counts, sum);
        }
        for (family, of) in self.times() {
            let mut series = encoder.family(&family);
            // Where no time was measured there is none, not one of zero.
            for one in measured.iter().filter(|one| one.stats.packets > 0) {
                series.value(&one.labels, of(&one.stats));
            }
        }
        let dropped = self.dropped();
        let mut series = encoder.family(&dropped);
        for one in measured {
            series.value(&one.labels, one.stats.dropped as f64);
        }
        for (family, of) in self.counts() {
            let mut series = encoder.family(&family);
            for one in measured {
                series.value(&one.labels, of(&one.stats));
            }
        }
    }

    fn histogram(self) -> Family {
        self.family(Kind::Histogram, "latency_seconds", self.help)
    }

    fn times(self) -> impl Iterator<Item = (Family, Read<LatencyStats, f64>)> {
        let rows: [Row<LatencyStats, f64>; 4] = [
            (
                "latency_min_seconds",
                "The shortest of these times",
                |stats| seconds(stats.min_ns),
            ),
            (
                "latency_max_seconds",
                "The longest of these times",
                |stats| seconds(stats.max_ns),
            ),
            (
                "latency_last_max_seconds",
                "The longest of the last half to whole second with packets",
                |stats| seconds(stats.last_max_ns),
            ),
            (
                "jitter_seconds",
                "Jitter of these times (RFC 3550, section 6.4.1)",
                |stats| seconds(stats.jitter_ns),
            ),
        ];
        let family = move |(name, help, of)| (self.family(Kind::Gauge, name, help), of);
        rows.into_iter().map(family)
    }

    fn dropped(self) -> Family {
        let help = "Packets that are missing by their numbers; falls when one of them comes late";
        self.family(Kind::Gauge, "dropped_packets", help)
    }

    fn counts(self) -> impl Iterator<Item = (Family, Read<LatencyStats, u64>)> {
        let rows: [Row<LatencyStats, u64>; 5] = [
            (
                "out_of_order_packets",
                "Packets that came after a later one",
                |stats| stats.out_of_order,
            ),
            ("duplicate_packets", "Packets that came again", |stats| {
                stats.duplicates
            }),
            (
                "sequence_too_high",
                "Times that a packet's number was higher than expected",
                |stats| stats.sequence_too_high,
            ),
            (
                "sequence_too_low",
                "Times that a packet's number was lower than expected",
                |stats| stats.sequence_too_low,
            ),
            (
                "impossible_times",
                "Packets that arrived before they were sent, by the clocks; no other metric has their times",
                |stats| stats.impossible_times,
            ),
        ];
        let family = move |(name, help, of)| (self.family(Kind::Counter, name, help), of);
        rows.into_iter().map(family)
    }

    fn family(self, kind: Kind, name: &str, help: &'static str) -> Family {
        let name = format!("{}_{name}", self.prefix);
        Family::new(kind, &name, self.labels, help).when(self.when)
    }
}

impl<'c> Latency<'c> {
    /// Sums, and times that may be newer than the sums; of none those below 10 µs count as just
    /// below.
    pub(super) fn new(
        labels: [Label<'c>; 2],
        stats: LatencyStats,
        times: Option<&Histogram>,
    ) -> Latency<'c> {
        let mut counts = [0; BOUNDS + 1];
        // A bucket has the times from its own bound to the next.
        counts[FINE_BOUNDS..].copy_from_slice(&stats.histogram);
        // What is not below one of the fine bounds is below the next.
        let mut left = stats.histogram[0];
        for (time_ns, packets) in times.into_iter().flat_map(Histogram::times) {
            let place = (time_ns / MICROSECOND) as usize;
            if place >= FINE_BOUNDS {
                break;
            }
            let packets = left.min(*packets);
            counts[place] += packets;
            left -= packets;
        }
        counts[FINE_BOUNDS] = left;
        Latency {
            labels,
            stats,
            counts,
        }
    }
}

/// The bounds of [`Latency::counts`].
fn bounds_seconds() -> impl Iterator<Item = f64> {
    let fine = 1..=FINE_BOUNDS as u64;
    let all = fine.chain((1..BUCKETS).map(bucket_usec));
    all.map(|usec| usec as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use allosaur_engine::latency::Meter;
    use allosaur_engine::latency::histogram::slot;

    use super::*;

    #[test]
    fn times_are_counted_by_bounds_of_one_to_nine_of_each_power_of_ten() {
        let mut meter = Meter::default();
        let times = [
            900,
            1_000,
            1_999,
            8_980,
            9_500,
            10_000,
            19_999,
            30_000,
            20_000_000_000,
        ];
        for (n, time) in (0..).zip(times) {
            meter.record(time, n, 0);
        }
        let stats = *meter.stats();
        let slots = times.map(|time| (slot(time), 1));
        let fine = Histogram::new(slots.into_iter(), stats.min_ns, stats.max_ns);
        let measured = Latency::new([7.into(), "_".into()], stats, Some(&fine));
        let bounds: Vec<f64> = bounds_seconds().collect();
        assert_eq!(
            (bounds.len(), bounds[0], bounds[BOUNDS - 1]),
            (BOUNDS, 1e-6, 10.0)
        );
        let below = |bound: f64| {
            let place = bounds.iter().position(|other| *other == bound);
            let place = place.unwrap_or_else(|| panic!("{bound} is no bound: {bounds:?}"));
            measured.counts[..=place].iter().sum::<u64>()
        };
        let wanted = [
            (1e-6, 1),
            (2e-6, 3),
            (8e-6, 3),
            (9e-6, 4),
            (1e-5, 5),
            (2e-5, 7),
            (4e-5, 8),
        ];
        for (bound, packets) in wanted {
            assert_eq!(below(bound), packets, "below {bound}");
        }
        assert_eq!((below(10.0), measured.counts[BOUNDS]), (8, 1));
    }
}
