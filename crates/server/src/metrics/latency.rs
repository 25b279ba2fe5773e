//! Times on the way, as metrics: the same for streams and for echo streams, under names of their own.

use std::borrow::Borrow;

use allosaur_engine::latency::meter::{BUCKETS, bucket_usec};
use allosaur_engine::latency::{Histogram, LatencyStats};
use allosaur_engine::time::MICROSECOND;

use super::row::{Distribution, Label, QUANTILES, Row, Sink, Table};
use super::seconds;

/// Bounds below the first bucket of the RPC's histogram, which has all times below 10 µs in one: 1
/// to 9 µs.
const FINE_BOUNDS: usize = 9;
/// All bounds: those, and the lower ones of the RPC's buckets but the first.
const BOUNDS: usize = FINE_BOUNDS + BUCKETS - 1;

/// What was measured of one stream, or of one port.
#[derive(Debug)]
pub(super) struct Latency {
    stats: LatencyStats,
    /// By the bounds; the last is above all.
    counts: [u64; BOUNDS + 1],
    /// All times, finely sorted; they may be newer than the sums.
    times: Option<Histogram>,
}

/// The metrics beside the times themselves.
const ROWS: &[Row<Latency>] = &[
    Row::gauge_if_any(
        "latency_min_seconds",
        "The shortest of these times",
        |measured| measured.time(|stats| stats.min_ns),
    ),
    Row::gauge_if_any(
        "latency_max_seconds",
        "The longest of these times",
        |measured| measured.time(|stats| stats.max_ns),
    ),
    Row::gauge_if_any(
        "latency_last_max_seconds",
        "The longest of the last half to whole second with packets",
        |measured| measured.time(|stats| stats.last_max_ns),
    ),
    Row::gauge_if_any(
        "jitter_seconds",
        "Jitter of these times (RFC 3550, section 6.4.1)",
        |measured| measured.time(|stats| stats.jitter_ns),
    ),
    Row::gauge(
        "dropped_packets",
        "Packets that are missing by their numbers; falls when one of them comes late",
        |measured: &Latency| measured.stats.dropped,
    )
    .error(),
    Row::counter(
        "out_of_order_packets",
        "Packets that came after a later one",
        |measured: &Latency| measured.stats.out_of_order,
    )
    .error(),
    Row::counter(
        "duplicate_packets",
        "Packets that came again",
        |measured: &Latency| measured.stats.duplicates,
    )
    .error(),
    Row::counter(
        "sequence_too_high",
        "Times that a packet's number was higher than expected",
        |measured: &Latency| measured.stats.sequence_too_high,
    )
    .error(),
    Row::counter(
        "sequence_too_low",
        "Times that a packet's number was lower than expected",
        |measured: &Latency| measured.stats.sequence_too_low,
    )
    .error(),
    Row::counter(
        "impossible_times",
        "Packets that arrived before they were sent, by the clocks; no other metric has their times",
        |measured: &Latency| measured.stats.impossible_times,
    )
    .error(),
];

/// The times themselves: what they are is different from table to table.
pub(super) const fn times(help: &'static str) -> Row<Latency> {
    Row::histogram("latency_seconds", help, |measured| {
        Some(measured.distribution())
    })
}

/// Shows the metrics of a table, and then all others that there are of what was measured.
pub(super) fn show<'a, L, T>(
    table: &Table<'_, Latency>,
    sink: &mut dyn Sink,
    measured: impl Iterator<Item = (L, T)> + Clone,
) where
    L: AsRef<[Label<'a>]>,
    T: Borrow<Latency>,
{
    table.show(sink, measured.clone());
    let others = Table {
        rows: ROWS,
        ..*table
    };
    others.show(sink, measured);
}

impl Latency {
    /// Sums, and times that may be newer than the sums; of none those below 10 µs count as just
    /// below.
    pub(super) fn new(stats: LatencyStats, times: Option<Histogram>) -> Latency {
        let mut counts = [0; BOUNDS + 1];
        // A bucket has the times from its own bound to the next.
        counts[FINE_BOUNDS..].copy_from_slice(&stats.histogram);
        // What is not below one of the fine bounds is below the next.
        let mut left = stats.histogram[0];
        for (time_ns, packets) in times.iter().flat_map(Histogram::times) {
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
            stats,
            counts,
            times,
        }
    }

    /// Where no time was measured there is none, not one of zero.
    fn time(&self, of: fn(&LatencyStats) -> u64) -> Option<f64> {
        (self.stats.packets > 0).then(|| seconds(of(&self.stats)))
    }

    fn distribution(&self) -> Distribution {
        let times = self.times.as_ref().filter(|times| times.packets() > 0);
        let quantile = |times: &Histogram, share: f64| seconds(times.percentile_ns(share * 100.0));
        let quantiles =
            times.map(|times| QUANTILES.map(|(name, share)| (name, quantile(times, share))));
        Distribution {
            count: self.counts.iter().sum(),
            sum: seconds(self.stats.sum_ns),
            buckets: bounds_seconds().zip(self.counts).collect(),
            quantiles: quantiles.into_iter().flatten().collect(),
            extremes: self
                .time(|stats| stats.min_ns)
                .zip(self.time(|stats| stats.max_ns)),
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
        let measured = Latency::new(stats, Some(fine));
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
