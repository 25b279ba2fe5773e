//! Metrics of streams that are counted by themselves: those with a packet group, which the label
//! `stream` names by its `pg_id`.

use super::encoder::{Encoder, Label};
use super::family::{Family, Kind, Read};
use super::latency::{Latency, Measured};
use crate::control::catalog::{Catalog, CatalogGroup};
use crate::counters::{Counters, GroupReadout, GroupTraffic};

const STREAM: &[&str] = &["stream", "profile"];
const PORT: &[&str] = &["stream", "profile", "port"];
const DIRECTION: &[&str] = &["stream", "profile", "port", "direction"];
const COUNTED: &str = "streams with flow_stats";

const LATENCY: Measured = Measured {
    prefix: "stream",
    labels: STREAM,
    help: "Time on the way of a stream's packets",
    when: "streams with latency, from their first packet on",
};

/// A group, and what was counted of it on each port.
struct Traffic<'c> {
    group: &'c CatalogGroup,
    ports: Vec<GroupTraffic>,
}

pub(super) fn families() -> Vec<Family> {
    let mut all = vec![packets(), bytes(), missed()];
    all.extend(LATENCY.families());
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
    let groups = catalog.groups.iter();
    let measured = groups.filter_map(|group| latency(group, counters));
    LATENCY.write(&measured.collect::<Vec<_>>(), encoder);
}

/// What was measured of a group, if it was.
fn latency<'c>(group: &'c CatalogGroup, counters: &Counters) -> Option<Latency<'c>> {
    if !group.group.is_latency() {
        return None;
    }
    let (n, version) = (group.group.wire_id(), group.version);
    let stats = counters.latency(n, version)?;
    let times = counters.latency_times(n, version, &stats);
    Some(Latency::new(group.labels(), stats, times.as_ref()))
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use allosaur_engine::flow_stats::Group;

    use super::*;

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
