//! Metrics of streams that are counted by themselves: those with a packet group, which the label
//! `stream` names by its `pg_id`.

use allosaur_engine::flow_stats::PacketGroupCounters;

use super::catalog::{Catalog, CatalogGroup, Readout};
use super::latency::{self, Latency};
use super::row::{Label, Row, Sink, Table};
use crate::counters::{GroupReadout, GroupTraffic};

const COUNTED: &str = "streams with flow_stats";

const DIRECTIONS: Table<'_, PacketGroupCounters> = Table {
    prefix: "",
    labels: &["stream", "profile", "port", "direction"],
    when: COUNTED,
    rows: &[
        Row::counter(
            "stream_packets",
            "Packets of a stream that a port sent (tx) and received (rx)",
            |counted| counted.packets,
        ),
        Row::counter(
            "stream_bytes",
            "Bytes of these packets, as get_pgid_stats counts them",
            |counted| counted.bytes,
        ),
    ],
};

const SENDERS: Table<'_, PacketGroupCounters> = Table {
    prefix: "",
    labels: &["stream", "profile", "port"],
    when: COUNTED,
    rows: &[Row::counter(
        "stream_missed_packets",
        "Packets of a stream that were due and could not be sent in time: missed load",
        |sent: &PacketGroupCounters| sent.missed_packets,
    )
    .error()],
};

const LATENCY: Table<'_, Latency> = Table {
    prefix: "stream",
    labels: &["stream", "profile"],
    when: "streams with latency, from their first packet on",
    rows: &[latency::times("Time on the way of a stream's packets")],
};

/// A group, and what was counted of it on each port.
struct Traffic<'c> {
    group: &'c CatalogGroup,
    ports: Vec<GroupTraffic>,
}

pub(super) fn show(readout: &Readout<'_>, sink: &mut dyn Sink) {
    // There may be thousands of streams, and each is read on all ports.
    let groups = match sink.wants("stream_") {
        true => &readout.catalog.groups[..],
        false => &[],
    };
    let traffic = groups
        .iter()
        .map(|group| Traffic::read(group, readout.groups));
    let traffic: Vec<Traffic<'_>> = traffic.collect();
    let receivers = receivers(readout.catalog);
    let directions = traffic.iter().flat_map(|one| one.directions(&receivers));
    DIRECTIONS.show(sink, directions);
    let senders = traffic.iter().flat_map(|one| {
        let [stream, profile] = one.group.labels();
        let senders = one.senders();
        senders.map(move |(port, counted)| ([stream, profile, port.into()], counted.sent))
    });
    SENDERS.show(sink, senders);
    let measured = groups.iter();
    let measured =
        measured.filter_map(|group| Some((group.labels(), latency(group, readout.groups)?)));
    let measured: Vec<_> = measured.collect();
    let measured = measured.iter().map(|(labels, measured)| (labels, measured));
    latency::show(&LATENCY, sink, measured);
}

/// What was measured of a group, if it was.
fn latency(group: &CatalogGroup, counters: &dyn GroupReadout) -> Option<Latency> {
    if !group.group.is_latency() {
        return None;
    }
    let (n, version) = (group.group.wire_id(), group.version);
    let stats = counters.latency(n, version)?;
    let times = counters.latency_times(n, version, &stats);
    Some(Latency::new(stats, times))
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
    fn read(group: &'c CatalogGroup, counters: &dyn GroupReadout) -> Traffic<'c> {
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
    fn senders(&self) -> impl Iterator<Item = (usize, &GroupTraffic)> + Clone {
        let is_sender = |(port, counted): &(usize, &GroupTraffic)| {
            let sent = &counted.sent;
            has(self.group.senders, *port) || sent.packets > 0 || sent.missed_packets > 0
        };
        self.ports.iter().enumerate().filter(is_sender)
    }

    /// What ports sent (0) and received (1): those that send it, those that its packets should
    /// arrive at, and those that they did arrive at. With all the others there would be thousands
    /// of series that say nothing.
    fn directions<'t>(
        &'t self,
        receivers: &[u32],
    ) -> impl Iterator<Item = ([Label<'t>; 4], PacketGroupCounters)> + Clone + use<'t, 'c> {
        let [stream, profile] = self.group.labels();
        let receivers = self.senders().map(|(port, _)| receivers.get(port).copied());
        let expected = receivers.fold(0, |all, ports| all | ports.unwrap_or(0));
        let labels = move |port: usize, direction| [stream, profile, port.into(), direction];
        let sent = self.senders();
        let sent = sent.map(move |(port, counted)| (labels(port, "tx".into()), counted.sent));
        let received = self
            .ports
            .iter()
            .enumerate()
            .filter(move |(port, counted)| has(expected, *port) || counted.received.packets > 0);
        let received =
            received.map(move |(port, counted)| (labels(port, "rx".into()), counted.received));
        sent.chain(received)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use allosaur_engine::flow_stats::Group;

    use super::*;
    use crate::counters::Counters;

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
        let seen = traffic.directions(&[0b0010, 0b0001, 0b1000, 0b0100]);
        let seen = seen.map(|(labels, _)| match labels {
            [_, _, Label::Number(port), Label::Text(direction)] => (port, direction),
            labels => panic!("a port has a number: {labels:?}"),
        });
        let seen: Vec<_> = seen.collect();
        assert_eq!(seen, [(0, "tx"), (1, "rx"), (3, "rx")]);
    }
}
