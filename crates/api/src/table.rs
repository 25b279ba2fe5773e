//! The command table: all commands, by name.
//!
//! A method that is not here is answered "Method … not registered". A method that is here works.

use crate::command::Command;
use crate::commands::{
    captures, changes, events, groups, layers, ports, remote, server, service, stateful,
    statistics, status, streams, traffic,
};
use crate::method::Mode;

/// The commands of each noun, in the order of the reference page.
pub const NOUNS: &[(&str, &[Command])] = &[
    ("Server", server::COMMANDS),
    ("Status", status::COMMANDS),
    ("Ports", ports::COMMANDS),
    ("Addresses and pushed packets", layers::COMMANDS),
    ("Service mode", service::COMMANDS),
    ("Captures", captures::COMMANDS),
    ("Profiles and streams", streams::COMMANDS),
    ("Traffic", traffic::COMMANDS),
    ("Traffic that runs", changes::COMMANDS),
    ("Captures that are sent", remote::COMMANDS),
    ("Statistics", statistics::COMMANDS),
    ("Packet groups", groups::COMMANDS),
    ("Events", events::COMMANDS),
    ("Stateful mode: the server", stateful::context::COMMANDS),
    ("Stateful mode: profiles", stateful::profiles::COMMANDS),
    ("Stateful mode: runs", stateful::runs::COMMANDS),
    ("Stateful mode: counters", stateful::counters::COMMANDS),
    ("Stateful mode: latency", stateful::latency::COMMANDS),
    ("Stateful mode: clients", stateful::clients::COMMANDS),
    ("Stateful mode: topology", stateful::topology::COMMANDS),
    ("Stateful mode: tunnels", stateful::tunnels::COMMANDS),
];

/// All commands, of all modes.
pub fn commands() -> impl Iterator<Item = &'static Command> {
    NOUNS.iter().flat_map(|(_, commands)| commands.iter())
}

/// The command of that name, in that mode of the server.
pub fn command(name: &str, mode: Mode) -> Option<&'static Command> {
    commands().find(|command| command.name == name && command.method.is_in(mode))
}
