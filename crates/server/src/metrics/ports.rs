//! Metrics of ports, and of the profiles of streams on them.

use allosaur_engine::stats::{DirectionCounters, SIZE_CLASS_MAX};

use super::encoder::Encoder;
use super::family::{Family, Kind, Read, Row};
use crate::control::catalog::{Catalog, CatalogPort, CatalogProfile};
use crate::counters::{PortCounters, Snapshot};

const PORT: &[&str] = &["port"];
const DIRECTION: &[&str] = &["port", "direction"];
const PROFILE: &[&str] = &["port", "profile"];

/// What frames are counted in: both directions of a port.
type Direction = (&'static str, fn(&PortCounters) -> &DirectionCounters);

const DIRECTIONS: [Direction; 2] = [
    ("tx", |port| &port.transmit.sent),
    ("rx", |port| &port.receive),
];

pub(super) fn families() -> Vec<Family> {
    vec![about(), link_up(), sending(), packets(), bytes(), frames()]
        .into_iter()
        .chain(misses().map(|(family, _)| family))
        .chain(profiles().map(|(family, _)| family))
        .collect()
}

fn about() -> Family {
    let labels = &["port", "driver", "interface", "description", "mode"];
    let help = "What a port is; mode is STL where it is for streams, ASTF where it is for flows";
    Family::new(Kind::Info, "port", labels, help)
}

fn link_up() -> Family {
    let help = "1 while the link of a port is up, else 0";
    Family::new(Kind::Gauge, "port_link_up", PORT, help)
}

fn sending() -> Family {
    let help = "1 while a port sends streams or a capture, or has flows, else 0";
    Family::new(Kind::Gauge, "port_sending", PORT, help)
}

fn packets() -> Family {
    let help = "Frames that a port sent (tx) and received (rx)";
    Family::new(Kind::Counter, "port_packets", DIRECTION, help)
}

fn bytes() -> Family {
    let help = "Bytes of these frames, with 4 of FCS each";
    Family::new(Kind::Counter, "port_bytes", DIRECTION, help)
}

fn frames() -> Family {
    let help = "Sizes of these frames, with FCS, in the classes of RFC 2819";
    Family::new(Kind::Histogram, "port_frame_bytes", DIRECTION, help)
}

/// What was not as it should be.
fn misses() -> impl Iterator<Item = (Family, Read<PortCounters, u64>)> {
    let rows: [Row<PortCounters, u64>; 4] = [
        (
            "port_missed_packets",
            "Frames that were due and that the data threads could not send in time: missed load",
            |port| port.transmit.missed_packets,
        ),
        (
            "port_queue_full",
            "Times that the transmit queue was full and a burst had to wait",
            |port| port.transmit.queue_full,
        ),
        (
            "port_tx_lost_packets",
            "Frames that could not leave a port, and that it does not count as sent: the kernel \
             refused them, or they still waited when traffic had ended",
            |port| port.transmit.lost_packets,
        ),
        (
            "port_rx_lost_packets",
            "Frames that were lost on the way to a receive thread: by the kernel or the device, \
             or by a link in memory that was told to",
            |port| port.receive_lost_packets,
        ),
    ];
    rows.into_iter()
        .map(|(name, help, of)| (Family::new(Kind::Counter, name, PORT, help), of))
}

fn profiles() -> impl Iterator<Item = (Family, Read<CatalogProfile, usize>)> {
    let rows: [Row<CatalogProfile, usize>; 2] = [
        (
            "profile_streams",
            "Streams that a profile has on a port",
            |profile| profile.streams,
        ),
        (
            "profile_running",
            "1 while a profile is sent on a port, or pauses, else 0",
            |profile| usize::from(profile.is_running),
        ),
    ];
    let when = "profiles that have streams";
    rows.into_iter()
        .map(move |(name, help, of)| (Family::new(Kind::Gauge, name, PROFILE, help).when(when), of))
}

pub(super) fn write(catalog: &Catalog, snapshot: &Snapshot, encoder: &mut Encoder) {
    let about = about();
    let mut series = encoder.family(&about);
    for (id, port) in catalog.ports.iter().enumerate() {
        let texts = [&*port.driver, &port.interface, &port.description, port.mode];
        let [driver, interface, description, mode] = texts.map(Into::into);
        series.value(&[id.into(), driver, interface, description, mode], 1);
    }
    let states: [(Family, Read<CatalogPort, bool>); 2] = [
        (link_up(), |port| port.is_link_up),
        (sending(), |port| port.is_sending),
    ];
    for (family, is_so) in &states {
        let mut series = encoder.family(family);
        for (id, port) in catalog.ports.iter().enumerate() {
            series.value(&[id.into()], u8::from(is_so(port)));
        }
    }
    write_directions(snapshot, encoder);
    for (family, of) in misses() {
        let mut series = encoder.family(&family);
        for (id, port) in snapshot.ports.iter().enumerate() {
            series.value(&[id.into()], of(port));
        }
    }
    for (family, of) in profiles() {
        let mut series = encoder.family(&family);
        for (id, port) in catalog.ports.iter().enumerate() {
            for profile in &port.profiles {
                series.value(&[id.into(), profile.name.as_str().into()], of(profile));
            }
        }
    }
}

fn write_directions(snapshot: &Snapshot, encoder: &mut Encoder) {
    let each = || {
        let ports = snapshot.ports.iter().enumerate();
        ports.flat_map(|(id, port)| {
            DIRECTIONS.map(|(name, of)| ([id.into(), name.into()], of(port)))
        })
    };
    let numbers: [(Family, Read<DirectionCounters, u64>); 2] = [
        (packets(), |counted| counted.packets),
        (bytes(), |counted| counted.bytes),
    ];
    for (family, of) in &numbers {
        let mut series = encoder.family(family);
        for (labels, counted) in each() {
            series.value(&labels, of(counted));
        }
    }
    let frames = frames();
    let mut series = encoder.family(&frames);
    for (labels, counted) in each() {
        let bounds = SIZE_CLASS_MAX.iter().take(SIZE_CLASS_MAX.len() - 1);
        let bounds = bounds.map(|bytes| *bytes as f64);
        series.histogram(&labels, bounds, &counted.by_size, counted.bytes as f64);
    }
}
