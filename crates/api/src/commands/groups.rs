//! Commands about packet groups: statistics of single streams, and tagged packet groups.
//!
//! This version has neither; what clients ask at every start and stop is answered with the
//! empty forms.

use crate::command::{Access, Command, Example, Kind, Method, Param};
use crate::fields::{FieldError, Fields};
use crate::limits::PGIDS_MAX;

/// Reads the parameter `pgids` of `get_pgid_stats`.
pub fn pgids(fields: &Fields<'_>) -> Result<Vec<u64>, FieldError> {
    let ids = fields.uint_array("pgids", u32::MAX.into(), "uint32")?;
    if ids.len() > PGIDS_MAX {
        let problem = format!("has {} elements; the most is {PGIDS_MAX}", ids.len());
        return Err(fields.bad("pgids", problem));
    }
    Ok(ids)
}

/// Parameters of `get_tpg_status`: of a user or of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TpgStatus {
    /// Of a user.
    User(String),
    /// Of a port.
    Port(u8),
}

impl TpgStatus {
    /// Reads the parameters: exactly one of both.
    pub fn parse(fields: &Fields<'_>) -> Result<TpgStatus, FieldError> {
        let user = fields.optional("username", Fields::string)?;
        let port = fields.optional("port_id", Fields::byte)?;
        match (user, port) {
            (Some(user), None) => Ok(TpgStatus::User(user.to_owned())),
            (None, Some(port)) => Ok(TpgStatus::Port(port)),
            _ => Err(fields.bad("username", "or field 'port_id' must be given, and not both")),
        }
    }
}

/// The items of the command table.
pub const COMMANDS: &[Command] = &[
    Command {
        method: Method::ActivePgids,
        name: "get_active_pgids",
        access: Access::Api,
        doc: "The packet groups that are counted. This version counts none.",
        params: &[],
        reply: "`ids`: `flow_stats` and `latency`, lists of numbers.",
        errors: &[],
        example: Example {
            params: "{}",
            result: r#"{"ids": {"flow_stats": [], "latency": []}}"#,
        },
        check: |_| Ok(()),
    },
    Command {
        method: Method::PgidStats,
        name: "get_pgid_stats",
        access: Access::Api,
        doc: "The counters of packet groups. This version counts none; unknown groups are left \
              out of the reply, as always.",
        params: &[Param::required(
            "pgids",
            Kind::Array,
            "The groups, at most 1152; empty for all.",
        )],
        reply: "`flow_stats`, `latency`, `ver_id`.",
        errors: &[],
        example: Example {
            params: r#"{"pgids": []}"#,
            result: r#"{"flow_stats": null, "latency": {"g": null}, "ver_id": null}"#,
        },
        check: |f| pgids(f).map(drop),
    },
    Command {
        method: Method::TpgStatus,
        name: "get_tpg_status",
        access: Access::Api,
        doc: "Whether tagged packet groups are on. They never are in this version; clients ask \
              before they take or give back a port. Exactly one parameter must be given.",
        params: &[
            Param::optional("username", Kind::String, "`port_id` is given", "Of a user."),
            Param::optional("port_id", Kind::Byte, "`username` is given", "Of a port."),
        ],
        reply: "`enabled` and `data`.",
        errors: &["no such port"],
        example: Example {
            params: r#"{"port_id": 0}"#,
            result: r#"{"enabled": false, "data": {"acquired_ports": [], "rx_ports": [], "username": "-", "num_tpgids": 0, "num_tags": 0}}"#,
        },
        check: |f| TpgStatus::parse(f).map(drop),
    },
];
