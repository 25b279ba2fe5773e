//! Metrics of echo streams, by which latency is measured beside flows.

use allosaur_engine::echo::EchoCounters;

use super::encoder::{Encoder, Label};
use super::family::{Family, Kind, Read};
use super::latency::{Latency, Measured};
use crate::control::catalog::{Catalog, CatalogEcho};
use crate::counters::EchoTraffic;

const PORT: &[&str] = &["port", "profile"];
const DIRECTION: &[&str] = &["port", "profile", "direction"];
const REASON: &[&str] = &["port", "profile", "reason"];
const STARTED: &str = "ports of the echo streams that run, or ran last";

const LATENCY: Measured = Measured {
    prefix: "echo",
    labels: PORT,
    help: "Times of echo messages that arrived at a port: on their way from the other port, or there \
           and back where a host answers in its place",
    when: STARTED,
};

/// What is wrong with messages that are not measured.
const WRONG: [(&str, Read<EchoCounters, u64>); 5] = [
    ("no_stamp", |counted| counted.no_stamp),
    ("foreign", |counted| counted.foreign),
    ("length", |counted| counted.length),
    ("network_checksum", |counted| counted.network_checksum),
    ("transport_checksum", |counted| counted.transport_checksum),
];

pub(super) fn families() -> Vec<Family> {
    let mut all = vec![packets(), missed(), wrong()];
    all.extend(LATENCY.families());
    all
}

fn packets() -> Family {
    let help = "Echo messages that a port sent (tx), and that arrived and were measured (rx)";
    Family::new(Kind::Counter, "echo_packets", DIRECTION, help).when(STARTED)
}

fn missed() -> Family {
    let help = "Echo messages that were due and could not be sent in time: missed load";
    Family::new(Kind::Counter, "echo_missed_packets", PORT, help).when(STARTED)
}

fn wrong() -> Family {
    let help = "Echo messages that arrived and were not measured: without our stamp (no_stamp), of \
                another run or port (foreign), with a wrong length or checksum";
    Family::new(Kind::Counter, "echo_wrong_packets", REASON, help).when(STARTED)
}

pub(super) fn write(catalog: &Catalog, encoder: &mut Encoder) {
    let read = |echo: &CatalogEcho| echo.block.ports().collect::<Vec<_>>();
    let ports = catalog.echo.as_ref().map(read).unwrap_or_default();
    let profile = catalog.echo.as_ref().map_or("", |echo| &echo.profile);
    let labels =
        |port: &EchoTraffic| -> [Label<'_>; 2] { [usize::from(port.port).into(), profile.into()] };
    let family = packets();
    let mut series = encoder.family(&family);
    for port in &ports {
        let [number, profile] = labels(port);
        series.value(&[number, profile, "tx".into()], port.counters.sent);
        series.value(&[number, profile, "rx".into()], port.counters.received);
    }
    let family = missed();
    let mut series = encoder.family(&family);
    for port in &ports {
        series.value(&labels(port), port.counters.not_sent);
    }
    let family = wrong();
    let mut series = encoder.family(&family);
    for port in &ports {
        let [number, profile] = labels(port);
        for (reason, of) in WRONG {
            series.value(&[number, profile, reason.into()], of(&port.counters));
        }
    }
    let measured = ports.iter();
    let measured = measured.map(|one| Latency::new(labels(one), one.latency, Some(&one.times)));
    LATENCY.write(&measured.collect::<Vec<_>>(), encoder);
}
