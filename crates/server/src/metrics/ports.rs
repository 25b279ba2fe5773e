//! Metrics of ports, and of the profiles of streams on them.

use allosaur_engine::stats::{DirectionCounters, SIZE_CLASS_MAX};

use super::catalog::{CatalogPort, CatalogProfile, Readout};
use super::row::{Distribution, Row, Sink, Table};
use crate::counters::PortCounters;

const ABOUT: Table<'_, ()> = Table {
    prefix: "",
    labels: &["port", "driver", "interface", "description", "mode"],
    when: "",
    rows: &[Row::info(
        "port",
        "What a port is; mode is STL where it is for streams, ASTF where it is for flows",
    )],
};

const STATES: Table<'_, CatalogPort> = Table {
    prefix: "",
    labels: &["port"],
    when: "",
    rows: &[
        Row::gauge(
            "port_link_up",
            "1 while the link of a port is up, else 0",
            |port| port.is_link_up.into(),
        ),
        Row::gauge(
            "port_sending",
            "1 while a port sends streams or a capture, or has flows, else 0",
            |port| port.is_sending.into(),
        ),
    ],
};

const DIRECTIONS: Table<'_, DirectionCounters> = Table {
    prefix: "",
    labels: &["port", "direction"],
    when: "",
    rows: &[
        Row::counter(
            "port_packets",
            "Frames that a port sent (tx) and received (rx)",
            |counted| counted.packets,
        ),
        Row::counter(
            "port_bytes",
            "Bytes of these frames, with 4 of FCS each",
            |counted| counted.bytes,
        ),
        Row::histogram(
            "port_frame_bytes",
            "Sizes of these frames, with FCS, in the classes of RFC 2819",
            |counted| Some(sizes(counted)),
        ),
    ],
};

/// What was not as it should be.
const MISSES: Table<'_, PortCounters> = Table {
    prefix: "",
    labels: &["port"],
    when: "",
    rows: &[
        Row::counter(
            "port_missed_packets",
            "Frames that were due and that the data threads could not send in time: missed load",
            |port: &PortCounters| port.transmit.missed_packets,
        )
        .error(),
        Row::counter(
            "port_queue_full",
            "Times that the transmit queue was full and a burst had to wait",
            |port: &PortCounters| port.transmit.queue_full,
        ),
        Row::counter(
            "port_tx_lost_packets",
            "Frames that could not leave a port, and that it does not count as sent: the kernel \
             refused them, or they still waited when traffic had ended",
            |port: &PortCounters| port.transmit.lost_packets,
        )
        .error(),
        Row::counter(
            "port_rx_lost_packets",
            "Frames that were lost on the way to a receive thread: by the kernel or the device, \
             or by a link in memory that was told to",
            |port: &PortCounters| port.receive_lost_packets,
        )
        .error(),
        Row::counter(
            "port_rx_tunnel_network_errors",
            "Frames for the end of a port's tunnel, of a network (VNI) that its streams are not in",
            |port: &PortCounters| port.tunnel_errors.other_network,
        )
        .error(),
        Row::counter(
            "port_rx_tunnel_header_errors",
            "Frames for the end of a port's tunnel, with a wrong header or checksum there, while it has streams",
            |port: &PortCounters| port.tunnel_errors.bad_header,
        )
        .error(),
    ],
};

const PROFILES: Table<'_, CatalogProfile> = Table {
    prefix: "",
    labels: &["port", "profile"],
    when: "profiles that have streams",
    rows: &[
        Row::gauge(
            "profile_streams",
            "Streams that a profile has on a port",
            |profile: &CatalogProfile| profile.streams as u64,
        )
        .unit("streams"),
        Row::gauge(
            "profile_running",
            "1 while a profile is sent on a port, or pauses, else 0",
            |profile: &CatalogProfile| profile.is_running.into(),
        ),
    ],
};

pub(super) fn show(readout: &Readout<'_>, sink: &mut dyn Sink) {
    let ports = readout.catalog.ports.iter().enumerate();
    let about = ports.clone().map(|(id, port)| {
        let texts = [&*port.driver, &port.interface, &port.description, port.mode];
        let [driver, interface, description, mode] = texts.map(Into::into);
        ([id.into(), driver, interface, description, mode], ())
    });
    ABOUT.show(sink, about);
    STATES.show(sink, ports.clone().map(|(id, port)| ([id.into()], port)));
    let counted = readout.snapshot.ports.iter().enumerate();
    let directions = counted.clone().flat_map(|(id, port)| {
        let directions = [("tx", &port.transmit.sent), ("rx", &port.receive)];
        directions.map(|(name, counted)| ([id.into(), name.into()], counted))
    });
    DIRECTIONS.show(sink, directions);
    MISSES.show(sink, counted.map(|(id, port)| ([id.into()], port)));
    let profiles = ports.flat_map(|(id, port)| {
        let profiles = port.profiles.iter();
        profiles.map(move |profile| ([id.into(), profile.name.as_str().into()], profile))
    });
    PROFILES.show(sink, profiles);
}

fn sizes(counted: &DirectionCounters) -> Distribution {
    let classes = SIZE_CLASS_MAX.iter().zip(counted.by_size);
    let bounded = classes.take(SIZE_CLASS_MAX.len() - 1);
    Distribution {
        count: counted.by_size.iter().sum(),
        sum: counted.bytes as f64,
        buckets: bounded.map(|(max, count)| (*max as f64, count)).collect(),
        ..Distribution::default()
    }
}
