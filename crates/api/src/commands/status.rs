//! The command that tells what a server does: who owns what, and what runs since when.

use crate::command::{Access, Command, Empty, Example, Types};
use crate::json_schema::JsonSchema;
use crate::method::{Method, ServerMethod};
use serde::Serialize;

/// Reply of `get_status`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Status {
    /// The mode that the request is for: `STL` or `ASTF`.
    pub mode: &'static str,
    /// The modes that ports can be in.
    pub modes: Vec<&'static str>,
    /// How long the server runs, in seconds.
    pub uptime_s: f64,
    /// The ports, in order.
    pub ports: Vec<PortUse>,
    /// Profiles of flows; none in stateless mode.
    pub profiles: Vec<ProfileUse>,
}

/// Who owns a port, and what it does.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PortUse {
    /// Its number.
    pub port_id: u8,
    /// Its mode: `STL` or `ASTF`.
    pub mode: &'static str,
    /// Who owns it, if somebody does.
    pub owner: Option<PortOwner>,
    /// As `get_port_status` calls it.
    pub state: &'static str,
    /// Its profiles that have streams.
    pub profiles: Vec<ProfileUse>,
}

/// Who owns a port.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PortOwner {
    /// The user.
    pub user: String,
    /// The user's session.
    pub session_id: u32,
    /// How long it may be silent, in seconds; `null` for ever.
    pub lease_s: Option<f64>,
}

/// What a profile does.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ProfileUse {
    /// Its name.
    pub profile_id: String,
    /// What it does.
    pub state: ProfileState,
    /// Its streams; `null` of a stateful one.
    pub streams: Option<usize>,
    /// What runs of it, if something does.
    pub run: Option<RunUse>,
}

/// What a profile does, in the words of its mode.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ProfileState {
    /// Of streams, as `get_port_status` calls it.
    Stateless(&'static str),
    /// Of flows, as `sync` does.
    Stateful(u8),
}

/// What runs.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct RunUse {
    /// Since how many seconds; negative before a start that lies ahead.
    pub running_s: f64,
    /// For how many seconds in all; `null` until it is stopped.
    pub duration_s: Option<f64>,
    /// What its rates are multiplied by.
    pub multiplier: f64,
}

/// The items of the command table.
pub const COMMANDS: &[Command] = &[Command {
    method: Method::Server(ServerMethod::Status),
    name: "get_status",
    access: Access::Api,
    doc: "Tells who owns which port, and what runs since when. TRex's servers do not have it.",
    types: Types::of::<Empty, Status>(),
    errors: &[],
    example: Example {
        params: "{}",
        result: r#"{"mode": "STL", "uptime_s": 61.5, "ports": [{"port_id": 0, "owner": {"user": "ann", "session_id": 1734, "lease_s": 10.0}, "state": "TX", "profiles": [{"profile_id": "_", "state": "TX", "streams": 3, "run": {"running_s": 4.2, "duration_s": 10.0, "multiplier": 2.0}}]}], "profiles": []}"#,
    },
}];
