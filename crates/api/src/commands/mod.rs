//! The commands, one file a noun: parameters, replies, and the table's items; and the list of all nouns.

pub mod bird;
pub mod captures;
pub mod changes;
pub mod events;
pub mod groups;
pub mod layers;
pub mod metrics;
pub mod nodes;
pub mod ports;
pub mod remote;
pub mod routes;
pub mod server;
pub mod service;
pub mod stateful;
pub mod statistics;
pub mod status;
pub mod streams;
pub mod traffic;

use crate::command::Command;

/// The commands of each noun, in the order of the reference page: the title of its section, the module
/// of its types, its commands.
pub(crate) const NOUNS: &[(&str, &str, &[Command])] = &[
    ("Server", "server", server::COMMANDS),
    ("Status", "status", status::COMMANDS),
    ("Ports", "ports", ports::COMMANDS),
    ("Addresses and pushed packets", "layers", layers::COMMANDS),
    ("Service mode", "service", service::COMMANDS),
    ("Captures", "captures", captures::COMMANDS),
    ("Linux nodes", "nodes", nodes::COMMANDS),
    ("BGP speakers", "routes", routes::COMMANDS),
    ("Profiles and streams", "streams", streams::COMMANDS),
    ("Traffic", "traffic", traffic::COMMANDS),
    ("Traffic that runs", "changes", changes::COMMANDS),
    ("Captures that are sent", "remote", remote::COMMANDS),
    ("Statistics", "statistics", statistics::COMMANDS),
    ("Metrics", "metrics", metrics::COMMANDS),
    ("Packet groups", "groups", groups::COMMANDS),
    ("Events", "events", events::COMMANDS),
    (
        "Stateful mode: the server",
        "stateful_server",
        stateful::context::COMMANDS,
    ),
    (
        "Stateful mode: profiles",
        "stateful_profiles",
        stateful::profiles::COMMANDS,
    ),
    (
        "Stateful mode: runs",
        "stateful_runs",
        stateful::runs::COMMANDS,
    ),
    (
        "Stateful mode: counters",
        "stateful_counters",
        stateful::counters::COMMANDS,
    ),
    (
        "Stateful mode: latency",
        "stateful_latency",
        stateful::latency::COMMANDS,
    ),
    (
        "Stateful mode: clients",
        "stateful_clients",
        stateful::clients::COMMANDS,
    ),
    (
        "Stateful mode: topology",
        "stateful_topology",
        stateful::topology::COMMANDS,
    ),
    (
        "Stateful mode: tunnels",
        "stateful_tunnels",
        stateful::tunnels::COMMANDS,
    ),
];
