//! Commands that start and stop traffic.

use crate::command::{Access, Command, Empty, Example, Types};
use crate::commands::ports::default_profile;
use crate::json_schema::JsonSchema;
use crate::method::{Method, StatelessMethod};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// Parameters of `start_traffic`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct StartTraffic {
    /// Bit n: the n-th data thread of the port takes part.
    #[serde(default = "all_cores")]
    #[schemars(extend("x-default" = "all"))]
    pub core_mask: u64,
    /// The port's number.
    #[serde(rename = "port_id")]
    pub port: u8,
    /// The profile on the port.
    #[serde(rename = "profile_id", default = "default_profile")]
    pub profile: String,
    /// How fast.
    #[serde(rename = "mul", deserialize_with = "absolute")]
    #[schemars(with = "AbsoluteRate")]
    pub multiplier: Multiplier,
    /// Seconds, at most 10⁹, or -1 for no end.
    #[serde(rename = "duration", deserialize_with = "duration")]
    #[schemars(with = "f64")]
    pub duration_s: Option<f64>,
    /// Even faster than the line, and before the gateway's MAC address is known.
    pub force: bool,
    /// When, in seconds on the clock of `ping`.
    #[serde(rename = "start_at_ts", default, deserialize_with = "start_at")]
    #[schemars(with = "Option<f64>", extend("x-default" = "0: now"))]
    pub start_at_s: Option<f64>,
}

fn all_cores() -> u64 {
    u64::MAX
}

fn start_at<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    f64::deserialize(deserializer).map(|ts| (ts != 0.0).then_some(ts))
}

/// Longest duration, about thirty years; what is longer is meant to have no end.
const DURATION_S_MAX: f64 = 1e9;

/// Reads `duration`.
pub(crate) fn duration<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<f64>, D::Error> {
    let seconds = f64::deserialize(deserializer)?;
    if seconds == -1.0 {
        return Ok(None);
    }
    if seconds <= 0.0 || seconds > DURATION_S_MAX {
        return Err(D::Error::custom(format_args!(
            "is {seconds}; it must be above 0 and at most {DURATION_S_MAX} seconds, or -1 for no \
             end"
        )));
    }
    Ok(Some(seconds))
}

/// A rate, all of a profile's highest rate.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct AbsoluteRate {
    /// The rate is the new one.
    pub op: AbsoluteOperation,
    /// What the value is: `raw` (a factor of the streams' rates), `pps`, `bps` (layer 2), `bpsl1`
    /// (layer 1) or `percentage` (of the line rate, at layer 1).
    #[serde(rename = "type")]
    pub unit: MultiplierUnit,
    /// The value, above 0.
    #[serde(deserialize_with = "above_zero")]
    pub value: f64,
}

/// A rate, or a change of it.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct RateChange {
    /// What the value is: the new rate, or so much more or less than now.
    pub op: MultiplierOperation,
    /// As of `start_traffic`.
    #[serde(rename = "type")]
    pub unit: MultiplierUnit,
    /// The value, above 0.
    #[serde(deserialize_with = "above_zero")]
    pub value: f64,
}

/// How a rate is meant that cannot be a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum AbsoluteOperation {
    /// The new rate.
    #[serde(rename = "abs")]
    Absolute,
}

/// How the rate of an update is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum MultiplierOperation {
    /// The new rate.
    #[serde(rename = "abs")]
    Absolute,
    /// So much more than now.
    #[serde(rename = "add")]
    Add,
    /// So much less than now.
    #[serde(rename = "sub")]
    Subtract,
}

/// What a rate is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MultiplierUnit {
    /// A factor of the rates in the streams.
    Raw,
    /// Bits per second at layer 2.
    Bps,
    /// Bits per second at layer 1.
    BpsL1,
    /// Packets per second.
    Pps,
    /// Percent of the line rate, at layer 1.
    Percentage,
}

fn above_zero<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let value = f64::deserialize(deserializer)?;
    if value <= 0.0 {
        return Err(D::Error::custom(format_args!(
            "is {value}; it must be above 0"
        )));
    }
    Ok(value)
}

/// Reads `mul` where nothing but `op` `abs` makes sense.
pub(crate) fn absolute<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Multiplier, D::Error> {
    let rate = AbsoluteRate::deserialize(deserializer)?;
    Ok(Multiplier::new(rate.unit, rate.value))
}

/// How fast a profile runs, see [`StartTraffic`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Multiplier {
    /// A factor of the rates in the streams.
    Factor(f64),
    /// The profile's highest rate, in packets per second.
    PacketsPerSecond(f64),
    /// The profile's highest rate, in bits per second at layer 2.
    BitsPerSecondL2(f64),
    /// The profile's highest rate, in bits per second at layer 1.
    BitsPerSecondL1(f64),
    /// The profile's highest rate at layer 1, in percent of the port's line rate.
    Percent(f64),
}

impl Multiplier {
    /// A value in its unit.
    pub fn new(unit: MultiplierUnit, value: f64) -> Multiplier {
        match unit {
            MultiplierUnit::Raw => Multiplier::Factor(value),
            MultiplierUnit::Bps => Multiplier::BitsPerSecondL2(value),
            MultiplierUnit::BpsL1 => Multiplier::BitsPerSecondL1(value),
            MultiplierUnit::Pps => Multiplier::PacketsPerSecond(value),
            MultiplierUnit::Percentage => Multiplier::Percent(value),
        }
    }
}

/// Parameters of commands that name a profile.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct ProfileParams {
    /// The port's number.
    #[serde(rename = "port_id")]
    pub port: u8,
    /// The profile on the port.
    #[serde(rename = "profile_id", default = "default_profile")]
    pub profile: String,
}

/// Parameters of `stop_traffic`, and of others that name a profile or all.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct ProfilesParams {
    /// The port's number.
    #[serde(rename = "port_id")]
    pub port: u8,
    /// The profile on the port; `*` for all.
    #[serde(rename = "profile_id", default = "default_profile")]
    pub profile: String,
}

/// Reply of `validate`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Validated {
    /// The highest rates at a multiplier of 1.
    pub rate: ValidatedRates,
    /// The rate over time.
    pub graph: ValidatedGraph,
}

/// Part of [`Validated`]; `min` is what no multiplier changes.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct ValidatedRates {
    /// Bits a second at layer 2.
    pub max_bps_l2: f64,
    /// Bits a second at layer 1.
    pub max_bps_l1: f64,
    /// Packets a second.
    pub max_pps: f64,
    /// At layer 1, in percent of the line rate.
    pub max_line_util: f64,
    /// Of `max_bps_l2`, what no multiplier changes.
    pub min_bps_l2: f64,
    /// Of `max_bps_l1`, what no multiplier changes.
    pub min_bps_l1: f64,
    /// Of `max_pps`, what no multiplier changes.
    pub min_pps: f64,
    /// Of `max_line_util`, what no multiplier changes.
    pub min_line_util: f64,
}

/// Part of [`Validated`].
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ValidatedGraph {
    /// Microseconds until the last packet; -1 when there is no end.
    pub expected_duration: f64,
    /// How many events there are, also those that are left out here.
    pub events_count: usize,
    /// The first events, at most [`GRAPH_EVENTS_MAX`].
    pub events: Vec<ValidatedEvent>,
}

/// A stream begins or ends; how much the rate changes with that.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct ValidatedEvent {
    /// When, in microseconds from the start.
    pub time_usec: f64,
    /// Bits a second at layer 2.
    pub diff_bps_l2: f64,
    /// Bits a second at layer 1.
    pub diff_bps_l1: f64,
    /// Packets a second.
    pub diff_pps: f64,
    /// The stream.
    pub stream_id: u32,
}

/// Most events in the reply of `validate`.
pub const GRAPH_EVENTS_MAX: usize = 100;

/// Reply of `start_traffic`.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Started {
    /// The factor of the rates in the streams.
    pub multiplier: f64,
    /// When the traffic starts, on the clock of `ping`, in seconds.
    pub ts: f64,
}

/// The items of the command table.
pub const COMMANDS: &[Command] = &[
    Command {
        method: Method::Stateless(StatelessMethod::StartTraffic),
        name: "start_traffic",
        access: Access::Owner,
        doc: "Starts a profile. Events 10 (profile started) and, for the first profile of the \
              port, 0 (port started) are published before the reply; 14 and 4 when all is sent \
              or the duration is over.",
        types: Types::of::<StartTraffic, Started>(),
        errors: &[
            "the port is not yours",
            "the profile has no streams, or is transmitting",
            "a stream is wrong: the text names it and the field",
            "the rate at layer 1 is above 100.01 % of the line rate and `force` is false",
            "the core mask selects no thread",
            "`start_at_ts` has passed, or is more than a day ahead",
        ],
        example: Example {
            params: r#"{"port_id": 0, "profile_id": "_", "mul": {"type": "pps", "op": "abs", "value": 10000}, "duration": 3, "force": false, "core_mask": 18446744073709551615, "start_at_ts": 0}"#,
            result: r#"{"multiplier": 100.0, "ts": 32.67520834456265}"#,
        },
    },
    Command {
        method: Method::Stateless(StatelessMethod::Validate),
        name: "validate",
        access: Access::Owner,
        doc: "Compiles a profile as `start_traffic` does, and tells its rates at a multiplier of \
              1, without sending anything.",
        types: Types::of::<ProfileParams, Validated>(),
        errors: &[
            "the port is not yours",
            "the profile has no streams",
            "a stream is wrong: the text names it and the field",
        ],
        example: Example {
            params: r#"{"port_id": 0, "profile_id": "_"}"#,
            result: r#"{"rate": {"max_bps_l2": 51200.0, "max_bps_l1": 67200.0, "max_pps": 100.0, "max_line_util": 0.000672, "min_bps_l2": 0.0, "min_bps_l1": 0.0, "min_pps": 0.0, "min_line_util": 0.0}, "graph": {"expected_duration": -1.0, "events_count": 1, "events": [{"time_usec": 0.0, "diff_bps_l2": 51200.0, "diff_bps_l1": 67200.0, "diff_pps": 100.0, "stream_id": 1}]}}"#,
        },
    },
    Command {
        method: Method::Stateless(StatelessMethod::StopTraffic),
        name: "stop_traffic",
        access: Access::Owner,
        doc: "Stops a profile, or all of the port with `*`. The reply comes when the data \
              threads have stopped; events 11 and, for the last profile, 1 are published before \
              it. Stopping what does not run is no error.",
        types: Types::of::<ProfilesParams, Empty>(),
        errors: &["the port is not yours", "no such profile"],
        example: Example {
            params: r#"{"port_id": 0, "profile_id": "_"}"#,
            result: "{}",
        },
    },
];
