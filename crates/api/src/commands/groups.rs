//! Commands about packet groups: statistics of single streams, and tagged packet groups.
//!
//! This version has no tagged packet groups; what clients ask of them at every start and stop is
//! answered with the empty forms.

use std::collections::BTreeMap;

use crate::command::{Access, Command, Example, Kind, PORT_ID, PROFILE_ID, Param, Types};
use crate::commands::traffic::ProfileParams;
use crate::fields::{FieldError, Fields};
use crate::limits::PGIDS_MAX;
use crate::method::{Method, StatelessMethod};
use serde::Serialize;

/// Reads the parameter `pgids` of `get_pgid_stats`.
pub fn pgids(fields: &Fields<'_>) -> Result<Vec<u64>, FieldError> {
    let ids = fields.uint_array("pgids", u32::MAX.into(), "uint32")?;
    if ids.len() > PGIDS_MAX {
        let problem = format!("has {} elements; the most is {PGIDS_MAX}", ids.len());
        return Err(fields.bad("pgids", problem));
    }
    Ok(ids)
}

/// Reply of `get_active_pgids`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ActivePgids {
    /// The groups by what is counted of them.
    pub ids: PgidLists,
}

/// Numbers of packet groups.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PgidLists {
    /// Those that are only counted.
    pub flow_stats: Vec<u32>,
    /// Those whose latency is measured.
    pub latency: Vec<u32>,
}

/// The counters of one packet group, each by port.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct GroupStats {
    /// Packets received.
    pub rp: BTreeMap<usize, u64>,
    /// Bytes received, with FCS.
    pub rb: BTreeMap<usize, u64>,
    /// Packets sent.
    pub tp: BTreeMap<usize, u64>,
    /// Bytes sent, with FCS.
    pub tb: BTreeMap<usize, u64>,
    /// Packets that could not be sent in time.
    pub missed: BTreeMap<usize, u64>,
    /// Packets received, a second.
    pub rps: BTreeMap<usize, f64>,
    /// Bits received, a second.
    pub rbs: BTreeMap<usize, f64>,
    /// Packets sent, a second.
    pub tps: BTreeMap<usize, f64>,
    /// Bits sent, a second.
    pub tbs: BTreeMap<usize, f64>,
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
        method: Method::Stateless(StatelessMethod::ActivePgids),
        name: "get_active_pgids",
        access: Access::Api,
        doc: "The packet groups that are counted: those of all streams there are.",
        types: Types::prose(
            &[],
            "`ids`: `flow_stats` and `latency`, lists of numbers.",
            |_| Ok(()),
        ),
        errors: &[],
        example: Example {
            params: "{}",
            result: r#"{"ids": {"flow_stats": [7], "latency": []}}"#,
        },
    },
    Command {
        method: Method::Stateless(StatelessMethod::PgidStats),
        name: "get_pgid_stats",
        access: Access::Api,
        doc: "The counters of packet groups. They grow from the time that a group's first stream \
              is added; unknown groups are left out of the reply.",
        types: Types::prose(
            &[Param::required(
                "pgids",
                Kind::Array,
                "The groups, at most 1152; empty for all.",
            )],
            "`flow_stats`: of each group `rp`, `rb`, `tp`, `tb` (packets and bytes with FCS, received \
                and sent), `missed` (packets that could not be sent in time) and `rps`, `rbs`, `tps`, `tbs` (packets and bits a second), each by port. \
                `latency`: of each group that has received packets `lat`, in microseconds \
                (`average`, `total_min`, `total_max`, `last_max` of the last second or less, `jit` \
                after RFC 3550, `histogram` by lower bound, `min`, `max` and \
                the percentiles `p50`, `p90`, `p99` and `p99_9` with decimals, right within 0.1 %, and `hdrh`, an HdrHistogram of whole \
                microseconds up to 10 s with three significant digits in its compressed V2 encoding, \
                base64; and `packets` and `sum_ns`, for averages over parts of a run), and `er` if there are errors: `drp` \
                missing, `ooo` out of order, `dup` duplicates, `sth` and `stl` numbers above and \
                below what was expected, `imp` packets that arrived before they were sent, by the \
                clocks, so that their times are in no other number; and `g`, packets of no group (`old_flow` of a run that \
                is over, `bad_header`). `ver_id`: of each group a number that changes when the group \
                is made anew, and its counters begin at zero. `null` in place of no groups.",
            |f| pgids(f).map(drop),
        ),
        errors: &[],
        example: Example {
            params: r#"{"pgids": [7]}"#,
            result: r#"{"flow_stats": {"7": {"rp": {"0": 0, "1": 10}, "rb": {"0": 0, "1": 640}, "tp": {"0": 10, "1": 0}, "tb": {"0": 640, "1": 0}, "missed": {"0": 0, "1": 0}, "rps": {"0": 0.0, "1": 0.0}, "rbs": {"0": 0.0, "1": 0.0}, "tps": {"0": 0.0, "1": 0.0}, "tbs": {"0": 0.0, "1": 0.0}}}, "latency": {"g": null}, "ver_id": {"7": 1}}"#,
        },
    },
    Command {
        method: Method::Stateless(StatelessMethod::RemoveRxFilters),
        name: "remove_rx_filters",
        access: Access::Owner,
        doc: "Ends the counting of packet groups on the port, for cards that count in hardware. \
              Clients call it after each run. Here nothing has to be taken down: the groups stay \
              until their streams are removed.",
        types: Types::prose(&[PORT_ID, PROFILE_ID], "`{}`.", |f| {
            ProfileParams::parse(f).map(drop)
        }),
        errors: &["no such profile", "the profile is being sent"],
        example: Example {
            params: r#"{"port_id": 0}"#,
            result: "{}",
        },
    },
    Command {
        method: Method::Stateless(StatelessMethod::TpgStatus),
        name: "get_tpg_status",
        access: Access::Api,
        doc: "Whether tagged packet groups are on. They never are in this version; clients ask \
              before they take or give back a port. Exactly one parameter must be given.",
        types: Types::prose(
            &[
                Param::optional("username", Kind::String, "`port_id` is given", "Of a user."),
                Param::optional("port_id", Kind::Byte, "`username` is given", "Of a port."),
            ],
            "`enabled` and `data`.",
            |f| TpgStatus::parse(f).map(drop),
        ),
        errors: &["no such port"],
        example: Example {
            params: r#"{"port_id": 0}"#,
            result: r#"{"enabled": false, "data": {"acquired_ports": [], "rx_ports": [], "username": "-", "num_tpgids": 0, "num_tags": 0}}"#,
        },
    },
];
