//! Metrics of echo streams, by which latency is measured beside flows.

use super::catalog::{CatalogEcho, Readout};
use super::latency::{self, Latency};
use super::row::{Label, Row, Sink, Table};
use crate::counters::EchoTraffic;

const PORT: &[&str] = &["port", "profile"];
const STARTED: &str = "ports of the echo streams that run, or ran last";

const PACKETS: Table<'_, u64> = Table {
    prefix: "",
    labels: &["port", "profile", "direction"],
    when: STARTED,
    rows: &[Row::counter(
        "echo_packets",
        "Echo messages that a port sent (tx), and that arrived and were measured (rx)",
        |packets| *packets,
    )],
};

const MISSED: Table<'_, EchoTraffic> = Table {
    prefix: "",
    labels: PORT,
    when: STARTED,
    rows: &[Row::counter(
        "echo_missed_packets",
        "Echo messages that were due and could not be sent in time: missed load",
        |port: &EchoTraffic| port.counters.not_sent,
    )
    .error()],
};

/// What is wrong with messages that are not measured.
const WRONG: Table<'_, u64> = Table {
    prefix: "",
    labels: &["port", "profile", "reason"],
    when: STARTED,
    rows: &[Row::counter(
        "echo_wrong_packets",
        "Echo messages that arrived and were not measured: without our stamp (no_stamp), of \
         another run or port (foreign), with a wrong length or checksum",
        |packets| *packets,
    )
    .error()],
};

const LATENCY: Table<'_, Latency> = Table {
    prefix: "echo",
    labels: PORT,
    when: STARTED,
    rows: &[latency::times(
        "Times of echo messages that arrived at a port: on their way from the other port, or there \
         and back where a host answers in its place",
    )],
};

pub(super) fn show(readout: &Readout<'_>, sink: &mut dyn Sink) {
    let read = |echo: &CatalogEcho| echo.block.ports().collect::<Vec<_>>();
    let echo = readout.catalog.echo.as_ref();
    let ports = echo.map(read).unwrap_or_default();
    let profile = echo.map_or("", |echo| &echo.profile);
    let ports = ports.iter().map(|port| -> ([Label<'_>; 2], _) {
        ([usize::from(port.port).into(), profile.into()], port)
    });
    let directions = ports.clone().flat_map(|([number, profile], port)| {
        let counted = [("tx", port.counters.sent), ("rx", port.counters.received)];
        counted.map(|(direction, packets)| ([number, profile, direction.into()], packets))
    });
    PACKETS.show(sink, directions);
    MISSED.show(sink, ports.clone());
    let wrong = ports.clone().flat_map(|([number, profile], port)| {
        let counted = &port.counters;
        let reasons = [
            ("no_stamp", counted.no_stamp),
            ("foreign", counted.foreign),
            ("length", counted.length),
            ("network_checksum", counted.network_checksum),
            ("transport_checksum", counted.transport_checksum),
        ];
        reasons.map(|(reason, packets)| ([number, profile, reason.into()], packets))
    });
    WRONG.show(sink, wrong);
    let measured = ports.map(|(labels, port)| {
        let times = Some(port.times.clone());
        (labels, Latency::new(port.latency, times))
    });
    let measured: Vec<_> = measured.collect();
    let measured = measured.iter().map(|(labels, measured)| (labels, measured));
    latency::show(&LATENCY, sink, measured);
}
