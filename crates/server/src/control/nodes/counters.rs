//! What is counted of a port's nodes, as commands of theirs tell it.

use allosaur_api::commands::nodes::{CountersMeta, NodeCounterMeta};

use crate::rx_taps::NodeCounters;

/// A counter of a port's nodes, as TRex's clients are told it.
struct CounterRow {
    name: &'static str,
    help: &'static str,
    units: &'static str,
    is_error: bool,
    read: fn(&NodeCounters) -> u64,
}

impl CounterRow {
    const fn frames(
        name: &'static str,
        help: &'static str,
        read: fn(&NodeCounters) -> u64,
    ) -> CounterRow {
        CounterRow {
            name,
            help,
            units: "pkts",
            is_error: false,
            read,
        }
    }

    const fn bytes(
        name: &'static str,
        help: &'static str,
        read: fn(&NodeCounters) -> u64,
    ) -> CounterRow {
        CounterRow {
            units: "bytes",
            ..CounterRow::frames(name, help, read)
        }
    }

    const fn lost(
        name: &'static str,
        help: &'static str,
        read: fn(&NodeCounters) -> u64,
    ) -> CounterRow {
        CounterRow {
            is_error: true,
            ..CounterRow::frames(name, help, read)
        }
    }
}

/// The counters by their numbers.
const COUNTERS: [CounterRow; 22] = [
    CounterRow::frames("rx_pkts", "frames that nodes were given", |all| {
        all.received.total().frames
    }),
    CounterRow::bytes("rx_bytes", "bytes of them", |all| {
        all.received.total().bytes
    }),
    CounterRow::frames("tx_pkts", "frames that nodes sent", |all| {
        all.sent.total().frames
    }),
    CounterRow::bytes("tx_bytes", "bytes of them", |all| all.sent.total().bytes),
    CounterRow::lost(
        "tx_drop_no_room",
        "frames that the port had no room for",
        |all| all.send_lost,
    ),
    CounterRow::lost(
        "rx_drop_no_room",
        "frames that a node had no room for",
        |all| all.receive_lost,
    ),
    CounterRow::frames(
        "rx_other_vlan",
        "frames for nodes that were in another VLAN",
        |all| all.other_vlan,
    ),
    CounterRow::frames(
        "rx_filtered",
        "frames that a node's filter left out",
        |all| all.filtered,
    ),
    CounterRow::frames("rx_flooded", "frames to all nodes", |all| all.flooded),
    CounterRow::lost(
        "rx_flood_drop",
        "frames to all nodes when too many waited",
        |all| all.flood_lost,
    ),
    CounterRow::frames(
        "rx_unicast_pkts",
        "frames to one station that nodes were given",
        |all| all.received.unicast.frames,
    ),
    CounterRow::bytes("rx_unicast_bytes", "bytes of them", |all| {
        all.received.unicast.bytes
    }),
    CounterRow::frames(
        "rx_multicast_pkts",
        "frames to a group that nodes were given",
        |all| all.received.multicast.frames,
    ),
    CounterRow::bytes("rx_multicast_bytes", "bytes of them", |all| {
        all.received.multicast.bytes
    }),
    CounterRow::frames(
        "rx_broadcast_pkts",
        "frames to all that nodes were given",
        |all| all.received.broadcast.frames,
    ),
    CounterRow::bytes("rx_broadcast_bytes", "bytes of them", |all| {
        all.received.broadcast.bytes
    }),
    CounterRow::frames(
        "tx_unicast_pkts",
        "frames to one station that nodes sent",
        |all| all.sent.unicast.frames,
    ),
    CounterRow::bytes("tx_unicast_bytes", "bytes of them", |all| {
        all.sent.unicast.bytes
    }),
    CounterRow::frames(
        "tx_multicast_pkts",
        "frames to a group that nodes sent",
        |all| all.sent.multicast.frames,
    ),
    CounterRow::bytes("tx_multicast_bytes", "bytes of them", |all| {
        all.sent.multicast.bytes
    }),
    CounterRow::frames(
        "tx_broadcast_pkts",
        "frames to all that nodes sent",
        |all| all.sent.broadcast.frames,
    ),
    CounterRow::bytes("tx_broadcast_bytes", "bytes of them", |all| {
        all.sent.broadcast.bytes
    }),
];

pub(super) fn meta() -> CountersMeta {
    let rows = COUNTERS.iter().enumerate();
    let data = rows.map(|(id, row)| NodeCounterMeta {
        id,
        name: row.name,
        help: row.help,
        units: row.units,
        zero: false,
        info: if row.is_error { "error" } else { "info" },
    });
    CountersMeta {
        name: "",
        data: data.collect(),
    }
}

pub(super) fn values(
    counters: &NodeCounters,
    zeros: bool,
) -> serde_json::Map<String, serde_json::Value> {
    let rows = COUNTERS.iter().enumerate();
    let values = rows.map(|(id, row)| (id, (row.read)(counters)));
    let shown = values.filter(|(_, value)| zeros || *value != 0);
    shown
        .map(|(id, value)| (id.to_string(), value.into()))
        .collect()
}
