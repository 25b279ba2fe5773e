//! Metrics of streams that are counted by themselves: those with a packet group, which the label
//! `stream` names by its `pg_id`.

use allosaur_engine::latency::LatencyStats;
use allosaur_engine::latency::meter::{BUCKETS, bucket_usec};
use allosaur_engine::time::MICROSECOND;

use super::encoder::{Encoder, Label};
use super::family::{Family, Kind, Read, Row};
use super::seconds;
use crate::control::catalog::{Catalog, CatalogGroup};
use crate::counters::{Counters, GroupReadout, GroupTraffic};

const STREAM: &[&str] = &["stream", "profile"];
const PORT: &[&str] = &["stream", "profile", "port"];
const DIRECTION: &[&str] = &["stream", "profile", "port", "direction"];
const COUNTED: &str = "streams with flow_stats";
const MEASURED: &str = "streams with latency, from their first packet on";

/// Bounds below the first bucket of the RPC's histogram, which has all times below 10 µs in one: 1
/// to 9 µs.
const FINE_BOUNDS: usize = 9;
/// All bounds: those, and the lower ones of the RPC's buckets but the first.
const BOUNDS: usize = FINE_BOUNDS + BUCKETS - 1;

/// A group, and what was counted of it on each port.
struct Traffic<'c> {
    group: &'c CatalogGroup,
    ports: Vec<GroupTraffic>,
}

/// A group whose latency was measured.
struct Latency<'c> {
    group: &'c CatalogGroup,
    stats: LatencyStats,
    /// By the bounds; the last is above all.
    counts: [u64; BOUNDS + 1],
}

pub(super) fn families() -> Vec<Family> {
    let mut all = vec![packets(), bytes(), missed(), latency()];
    all.extend(gauges().map(|(family, _)| family));
    all.extend(counts().map(|(family, _)| family));
    all
}

fn packets() -> Family {
    let help = "Packets of a stream that a port sent (tx) and received (rx)";
    Family::new(Kind::Counter, "stream_packets", DIRECTION, help).when(COUNTED)
}

fn bytes() -> Family {
    let help = "Bytes of these packets, as get_pgid_stats counts them";
    Family::new(Kind::Counter, "stream_bytes", DIRECTION, help).when(COUNTED)
}

fn missed() -> Family {
    let help = "Packets of a stream that were due and could not be sent in time: missed load";
    Family::new(Kind::Counter, "stream_missed_packets", PORT, help).when(COUNTED)
}

fn latency() -> Family {
    let help = "Time on the way of a stream's packets";
    Family::new(Kind::Histogram, "stream_latency_seconds", STREAM, help).when(MEASURED)
}

fn gauges() -> impl Iterator<Item = (Family, Read<LatencyStats, f64>)> {
    let rows: [Row<LatencyStats, f64>; 5] = [
        (
            "stream_latency_min_seconds",
            "The shortest of these times",
            |stats| seconds(stats.min_ns),
        ),
        (
            "stream_latency_max_seconds",
            "The longest of these times",
            |stats| seconds(stats.max_ns),
        ),
        (
            "stream_latency_last_max_seconds",
            "The longest of the last half to whole second with packets",
            |stats| seconds(stats.last_max_ns),
        ),
        (
            "stream_jitter_seconds",
            "Jitter of these times (RFC 3550, section 6.4.1)",
            |stats| seconds(stats.jitter_ns),
        ),
        (
            "stream_dropped_packets",
            "Packets that are missing by their numbers; falls when one of them comes late",
            |stats| stats.dropped as f64,
        ),
    ];
    rows.into_iter().map(|(name, help, of)| {
        (
            Family::new(Kind::Gauge, name, STREAM, help).when(MEASURED),
            of,
        )
    })
}

fn counts() -> impl Iterator<Item = (Family, Read<LatencyStats, u64>)> {
    let rows: [Row<LatencyStats, u64>; 4] = [
        (
            "stream_out_of_order_packets",
            "Packets that came after a later one",
            |stats| stats.out_of_order,
        ),
        (
            "stream_duplicate_packets",
            "Packets that came again",
            |stats| stats.duplicates,
        ),
        (
            "stream_sequence_too_high",
            "Times that a packet's number was higher than expected",
            |stats| stats.sequence_too_high,
        ),
        (
            "stream_sequence_too_low",
            "Times that a packet's number was lower than expected",
            |stats| stats.sequence_too_low,
        ),
    ];
    rows.into_iter().map(|(name, help, of)| {
        let family = Family::new(Kind::Counter, name, STREAM, help);
        (family.when(MEASURED), of)
    })
}

pub(super) fn write(catalog: &Catalog, counters: &Counters, encoder: &mut Encoder) {
    let groups = catalog.groups.iter();
    let traffic: Vec<Traffic<'_>> = groups.map(|group| Traffic::read(group, counters)).collect();
    let receivers = receivers(catalog);
    let numbers: [(Family, Read<GroupTraffic, [u64; 2]>); 2] = [
        (packets(), |t| [t.sent.packets, t.received.packets]),
        (bytes(), |t| [t.sent.bytes, t.received.bytes]),
    ];
    for (family, of) in &numbers {
        let mut series = encoder.family(family);
        for one in &traffic {
            one.write_directions(&receivers, |labels, counted, direction| {
                series.value(labels, of(counted)[direction]);
            });
        }
    }
    let missed = missed();
    let mut series = encoder.family(&missed);
    for one in &traffic {
        for (port, counted) in one.senders() {
            let [stream, profile] = one.group.labels();
            series.value(&[stream, profile, port.into()], counted.sent.missed_packets);
        }
    }
    write_latency(catalog, counters, encoder);
}

fn write_latency(catalog: &Catalog, counters: &Counters, encoder: &mut Encoder) {
    let groups = catalog.groups.iter();
    let measured: Vec<_> = groups
        .filter_map(|group| Latency::read(group, counters))
        .collect();
    let family = latency();
    let mut series = encoder.family(&family);
    for one in &measured {
        let sum = seconds(one.stats.sum_ns);
        series.histogram(&one.group.labels(), bounds_seconds(), &one.counts, sum);
    }
    for (family, of) in gauges() {
        let mut series = encoder.family(&family);
        for one in &measured {
            series.value(&one.group.labels(), of(&one.stats));
        }
    }
    for (family, of) in counts() {
        let mut series = encoder.family(&family);
        for one in &measured {
            series.value(&one.group.labels(), of(&one.stats));
        }
    }
}

/// The ports at the other end of each port's link, a bit each; all where nobody knows.
fn receivers(catalog: &Catalog) -> Vec<u32> {
    let bits = |peer: Option<u8>| peer.map_or(u32::MAX, |peer| 1 << peer);
    catalog.ports.iter().map(|port| bits(port.peer)).collect()
}

fn has(ports: u32, port: usize) -> bool {
    ports >> port & 1 == 1
}

impl CatalogGroup {
    fn labels(&self) -> [Label<'_>; 2] {
        [(self.pg_id as usize).into(), (&*self.profiles).into()]
    }
}

impl<'c> Traffic<'c> {
    fn read(group: &'c CatalogGroup, counters: &Counters) -> Traffic<'c> {
        let ports = group.before.iter().enumerate().map(|(port, before)| {
            let now = counters.group(port, group.group);
            GroupTraffic {
                sent: now.sent.since(before.sent),
                received: now.received.since(before.received),
            }
        });
        Traffic {
            group,
            ports: ports.collect(),
        }
    }

    /// The ports that send it, or have.
    fn senders(&self) -> impl Iterator<Item = (usize, &GroupTraffic)> {
        let is_sender = |(port, counted): &(usize, &GroupTraffic)| {
            let sent = &counted.sent;
            has(self.group.senders, *port) || sent.packets > 0 || sent.missed_packets > 0
        };
        self.ports.iter().enumerate().filter(is_sender)
    }

    /// What ports sent (0) and received (1): those that send it, those that its packets should
    /// arrive at, and those that they did arrive at. With all the others there would be thousands
    /// of series that say nothing.
    fn write_directions(
        &self,
        receivers: &[u32],
        mut write: impl FnMut(&[Label<'_>], &GroupTraffic, usize),
    ) {
        let [stream, profile] = self.group.labels();
        let mut expected = 0;
        for (port, counted) in self.senders() {
            expected |= receivers.get(port).copied().unwrap_or(0);
            write(&[stream, profile, port.into(), "tx".into()], counted, 0);
        }
        for (port, counted) in self.ports.iter().enumerate() {
            if has(expected, port) || counted.received.packets > 0 {
                write(&[stream, profile, port.into(), "rx".into()], counted, 1);
            }
        }
    }
}

impl<'c> Latency<'c> {
    fn read(group: &'c CatalogGroup, counters: &Counters) -> Option<Latency<'c>> {
        if !group.group.is_latency() {
            return None;
        }
        let (n, version) = (group.group.wire_id(), group.version);
        let stats = counters.latency(n, version)?;
        let mut counts = [0; BOUNDS + 1];
        // A bucket has the times from its own bound to the next.
        counts[FINE_BOUNDS..].copy_from_slice(&stats.histogram);
        let fine = counters.latency_times(n, version, &stats);
        // What is not below one of the fine bounds is below the next.
        let mut left = stats.histogram[0];
        for (time_ns, packets) in fine.iter().flat_map(|times| times.times()) {
            let place = (time_ns / MICROSECOND) as usize;
            if place >= FINE_BOUNDS {
                break;
            }
            // The times may be newer than the sums.
            let packets = left.min(*packets);
            counts[place] += packets;
            left -= packets;
        }
        counts[FINE_BOUNDS] = left;
        Some(Latency {
            group,
            stats,
            counts,
        })
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
    use std::sync::Arc;

    use allosaur_engine::flow_stats::Group;
    use allosaur_engine::latency::Meter;

    use super::*;
    use crate::counters::LatencyTerms;

    fn group(place: Group, ports: usize, senders: u32) -> CatalogGroup {
        CatalogGroup {
            pg_id: 7,
            group: place,
            version: 1,
            before: vec![GroupTraffic::default(); ports].into(),
            profiles: Arc::from("_"),
            senders,
        }
    }

    #[test]
    fn times_are_counted_by_bounds_of_one_to_nine_of_each_power_of_ten() {
        let counters = Counters::new(2, 1);
        let terms = LatencyTerms { version: 1, run: 1 };
        counters.receive.expect_latency(0, terms);
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
            meter.record(time, n, time);
            counters.receive.count_latency(0, time);
        }
        counters.receive.publish_latency(0, 1, meter.stats());
        let group = group(Group::latency(0).expect("the first"), 2, 1);
        let measured = Latency::read(&group, &counters).expect("it was measured");
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

    #[test]
    fn ports_that_have_nothing_to_do_with_a_stream_have_no_series_of_it() {
        let group = group(Group::flow(0).expect("the first"), 4, 0b0001);
        let mut traffic = Traffic::read(&group, &Counters::new(4, 1));
        traffic.ports[3].received.packets = 5;
        let mut seen = Vec::new();
        traffic.write_directions(&[0b0010, 0b0001, 0b1000, 0b0100], |labels, _, direction| {
            let Label::Number(port) = labels[2] else {
                panic!("a port has a number");
            };
            seen.push((port, direction));
        });
        assert_eq!(seen, [(0, 0), (1, 1), (3, 1)]);
    }
}
