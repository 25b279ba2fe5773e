//! Commands about packet groups: statistics of single streams, and tagged packet groups.
//!
//! This version has no tagged packet groups; what clients ask of them at every start and stop is
//! answered with the empty forms.

use std::collections::BTreeMap;

use crate::command::{Access, Command, Empty, Example, Types};
use crate::commands::traffic::ProfileParams;
use crate::fields::{FieldError, Fields};
use crate::json_schema::JsonSchema;
use crate::limits::PGIDS_MAX;
use crate::method::{Method, StatelessMethod};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// Parameters of `get_pgid_stats`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct PgidStatsParams {
    /// The groups, at most 1152; empty for all.
    #[serde(deserialize_with = "pgids")]
    pub pgids: Vec<u32>,
}

fn pgids<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u32>, D::Error> {
    let ids = Vec::<u32>::deserialize(deserializer)?;
    if ids.len() > PGIDS_MAX {
        let count = ids.len();
        let problem = format_args!("has {count} elements; the most is {PGIDS_MAX}");
        return Err(D::Error::custom(problem));
    }
    Ok(ids)
}

/// Reply of `get_active_pgids`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ActivePgids {
    /// The groups by what is counted of them.
    pub ids: PgidLists,
}

/// Numbers of packet groups.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PgidLists {
    /// Those that are only counted.
    pub flow_stats: Vec<u32>,
    /// Those whose latency is measured.
    pub latency: Vec<u32>,
}

/// Reply of `get_pgid_stats`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct PgidStats {
    /// The counters of each group, `null` in place of no groups.
    pub flow_stats: Option<BTreeMap<u32, GroupStats>>,
    /// What was measured of each group that has received packets.
    pub latency: GroupLatencies,
    /// Of each group a number that changes when the group is made anew, and its counters begin at
    /// zero; `null` in place of no groups.
    pub ver_id: Option<BTreeMap<u32, u32>>,
}

/// What was measured of packet groups.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct GroupLatencies {
    /// Packets of no group; `null` when there are none.
    pub g: Option<StrayPackets>,
    /// By group.
    #[serde(flatten)]
    pub groups: BTreeMap<String, GroupLatency>,
}

/// Packets of no group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StrayPackets {
    /// Of a run that is over.
    #[serde(skip_serializing_if = "is_zero")]
    pub old_flow: u64,
    /// With a header that cannot be.
    #[serde(skip_serializing_if = "is_zero")]
    pub bad_header: u64,
}

/// What was measured of one packet group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct GroupLatency {
    /// Times, in microseconds.
    pub lat: LatencyTimes,
    /// Errors, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub er: Option<SequenceErrors>,
}

/// Times from the sending of packets to their arrival, in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct LatencyTimes {
    /// Packets that were measured.
    pub packets: u64,
    /// The sum of their times in nanoseconds, for averages over parts of a run.
    pub sum_ns: u64,
    /// The mean, with decimals.
    pub average: f64,
    /// The least, whole.
    pub total_min: u64,
    /// The most, whole.
    pub total_max: u64,
    /// The least, with decimals.
    pub min: f64,
    /// The most, with decimals.
    pub max: f64,
    /// The most of the last second or less.
    pub last_max: u64,
    /// The jitter, after RFC 3550.
    pub jit: u64,
    /// Packets by the lower bound of their times.
    pub histogram: BTreeMap<String, u64>,
    /// So long or less did half of the packets take, right within 0.1 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50: Option<f64>,
    /// The same of 90 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p90: Option<f64>,
    /// The same of 99 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99: Option<f64>,
    /// The same of 99.9 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_9: Option<f64>,
    /// An HdrHistogram of whole microseconds up to 10 s with three significant digits, in its
    /// compressed V2 encoding, base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hdrh: Option<String>,
}

/// Packets whose numbers or times are not as expected; what is 0 is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SequenceErrors {
    /// Missing.
    #[serde(skip_serializing_if = "is_zero")]
    pub drp: u64,
    /// Out of order.
    #[serde(skip_serializing_if = "is_zero")]
    pub ooo: u64,
    /// Duplicates.
    #[serde(skip_serializing_if = "is_zero")]
    pub dup: u64,
    /// Numbers above what was expected.
    #[serde(skip_serializing_if = "is_zero")]
    pub sth: u64,
    /// Numbers below what was expected.
    #[serde(skip_serializing_if = "is_zero")]
    pub stl: u64,
    /// Packets that arrived before they were sent, by the clocks, so that their times are in no other
    /// number.
    #[serde(skip_serializing_if = "is_zero")]
    pub imp: u64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The counters of one packet group, each by port.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
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
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct TpgStatusParams {
    /// Of a user.
    #[schemars(extend("x-default" = "`port_id` is given"))]
    pub username: Option<String>,
    /// Of a port.
    #[serde(rename = "port_id")]
    #[schemars(extend("x-default" = "`username` is given"))]
    pub port: Option<u8>,
}

/// Whose tagged packet groups are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TpgStatus {
    /// Those of a user.
    User(String),
    /// Those of a port.
    Port(u8),
}

impl TpgStatus {
    /// Reads the parameters: exactly one of both.
    pub fn parse(fields: &Fields<'_>) -> Result<TpgStatus, FieldError> {
        let TpgStatusParams { username, port } = fields.read()?;
        match (username, port) {
            (Some(user), None) => Ok(TpgStatus::User(user)),
            (None, Some(port)) => Ok(TpgStatus::Port(port)),
            _ => Err(fields.bad("username", "or field 'port_id' must be given, and not both")),
        }
    }
}

/// Reply of `get_tpg_status`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TpgState {
    /// Whether they are on: never.
    pub enabled: bool,
    /// Their empty form.
    pub data: TpgData,
}

/// What TRex's servers tell of tagged packet groups.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TpgData {
    /// Empty.
    pub acquired_ports: Vec<u8>,
    /// Empty.
    pub rx_ports: Vec<u8>,
    /// `-`.
    pub username: &'static str,
    /// 0.
    pub num_tpgids: u32,
    /// 0.
    pub num_tags: u32,
}

/// The items of the command table.
pub const COMMANDS: &[Command] = &[
    Command {
        method: Method::Stateless(StatelessMethod::ActivePgids),
        name: "get_active_pgids",
        access: Access::Api,
        doc: "The packet groups that are counted: those of all streams there are.",
        types: Types::of::<Empty, ActivePgids>(),
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
        types: Types::of::<PgidStatsParams, PgidStats>(),
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
        types: Types::of::<ProfileParams, Empty>(),
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
        types: Types::of::<TpgStatusParams, TpgState>(),
        errors: &["no such port"],
        example: Example {
            params: r#"{"port_id": 0}"#,
            result: r#"{"enabled": false, "data": {"acquired_ports": [], "rx_ports": [], "username": "-", "num_tpgids": 0, "num_tags": 0}}"#,
        },
    },
];
