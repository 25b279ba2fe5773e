//! Commands that start and stop traffic.

use crate::command::{Access, Command, Example, Kind, PORT_ID, PROFILE_ID, Param, Types};
use crate::commands::ports::{port_id, profile_id};
use crate::fields::{FieldError, Fields};
use crate::method::{Method, StatelessMethod};
use serde::Serialize;

/// Parameters of `start_traffic`.
#[derive(Clone, Debug, PartialEq)]
pub struct StartTraffic {
    /// The port.
    pub port: u8,
    /// The profile.
    pub profile: String,
    /// How fast.
    pub multiplier: Multiplier,
    /// How long, in seconds; `None` without end.
    pub duration_s: Option<f64>,
    /// Even faster than the line, and before the gateway's MAC address is known.
    pub force: bool,
    /// Bit n: the n-th data thread of the port takes part.
    pub core_mask: u64,
    /// When, on the clock of `ping`, in seconds; `None` for now.
    pub start_at_s: Option<f64>,
}

impl StartTraffic {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'_>) -> Result<StartTraffic, FieldError> {
        let core_mask = fields.optional("core_mask", Fields::uint64)?;
        Ok(StartTraffic {
            port: port_id(fields)?,
            profile: profile_id(fields)?,
            multiplier: Multiplier::parse_absolute(&fields.object("mul")?)?,
            duration_s: duration(fields)?,
            force: fields.boolean("force")?,
            core_mask: core_mask.unwrap_or(u64::MAX),
            start_at_s: fields
                .optional("start_at_ts", Fields::double)?
                .filter(|ts| *ts != 0.0),
        })
    }
}

/// Longest duration, about thirty years; what is longer is meant to have no end.
const DURATION_S_MAX: f64 = 1e9;

/// Reads `duration`.
pub(crate) fn duration(fields: &Fields<'_>) -> Result<Option<f64>, FieldError> {
    let seconds = fields.double("duration")?;
    if seconds == -1.0 {
        return Ok(None);
    }
    if seconds <= 0.0 || seconds > DURATION_S_MAX {
        let problem = format!(
            "is {seconds}; it must be above 0 and at most {DURATION_S_MAX} seconds, or -1 for no \
             end"
        );
        return Err(fields.bad("duration", problem));
    }
    Ok(Some(seconds))
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
    /// Reads `mul` where nothing but `op` `abs` makes sense.
    pub(crate) fn parse_absolute(fields: &Fields<'_>) -> Result<Multiplier, FieldError> {
        fields.one_of("op", &["abs"])?;
        Multiplier::parse(fields)
    }

    /// Reads `mul`, but not its `op`.
    pub(crate) fn parse(fields: &Fields<'_>) -> Result<Multiplier, FieldError> {
        let kinds = ["raw", "bps", "bpsl1", "pps", "percentage"];
        let kind = fields.one_of("type", &kinds)?;
        let value = fields.double("value")?;
        if value <= 0.0 {
            return Err(fields.bad("value", format!("is {value}; it must be above 0")));
        }
        Ok(match kind {
            "raw" => Multiplier::Factor(value),
            "bps" => Multiplier::BitsPerSecondL2(value),
            "bpsl1" => Multiplier::BitsPerSecondL1(value),
            "pps" => Multiplier::PacketsPerSecond(value),
            _ => Multiplier::Percent(value),
        })
    }
}

/// Parameters of `stop_traffic`, and of others that name a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProfileParams {
    /// The port.
    pub port: u8,
    /// The profile; `*` for all.
    pub profile: String,
}

impl ProfileParams {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'_>) -> Result<ProfileParams, FieldError> {
        Ok(ProfileParams {
            port: port_id(fields)?,
            profile: profile_id(fields)?,
        })
    }
}

/// Reply of `validate`.
#[derive(Clone, Debug, Serialize)]
pub struct Validated {
    /// The highest rates at a multiplier of 1.
    pub rate: ValidatedRates,
    /// The rate over time.
    pub graph: ValidatedGraph,
}

/// Part of [`Validated`]; `min` is what no multiplier changes.
#[derive(Clone, Copy, Debug, Serialize)]
#[allow(missing_docs)] // The names say it.
pub struct ValidatedRates {
    pub max_bps_l2: f64,
    pub max_bps_l1: f64,
    pub max_pps: f64,
    pub max_line_util: f64,
    pub min_bps_l2: f64,
    pub min_bps_l1: f64,
    pub min_pps: f64,
    pub min_line_util: f64,
}

/// Part of [`Validated`].
#[derive(Clone, Debug, Serialize)]
pub struct ValidatedGraph {
    /// Microseconds until the last packet; -1 when there is no end.
    pub expected_duration: f64,
    /// How many events there are, also those that are left out here.
    pub events_count: usize,
    /// The first events, at most [`GRAPH_EVENTS_MAX`].
    pub events: Vec<ValidatedEvent>,
}

/// A stream begins or ends; how much the rate changes with that.
#[derive(Clone, Copy, Debug, Serialize)]
#[allow(missing_docs)] // The names say it.
pub struct ValidatedEvent {
    pub time_usec: f64,
    pub diff_bps_l2: f64,
    pub diff_bps_l1: f64,
    pub diff_pps: f64,
    pub stream_id: u32,
}

/// Most events in the reply of `validate`.
pub const GRAPH_EVENTS_MAX: usize = 100;

/// Reply of `start_traffic`.
#[derive(Clone, Copy, Debug, Serialize)]
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
        types: Types::prose(
            &[
                PORT_ID,
                PROFILE_ID,
                Param::required(
                    "mul",
                    Kind::Object,
                    "How fast. `type`: `raw` (a factor of the streams' rates), `pps`, `bps` (layer \
                 2), `bpsl1` (layer 1) or `percentage` (of the line rate, at layer 1), all of \
                 the profile's highest rate; `op`: `abs`; `value`: above 0.",
                ),
                Param::required(
                    "duration",
                    Kind::Double,
                    "Seconds, at most 10⁹, or -1 for no end.",
                ),
                Param::required(
                    "force",
                    Kind::Boolean,
                    "Even faster than the line, and before the gateway's MAC address is known.",
                ),
                Param::optional(
                    "core_mask",
                    Kind::Uint64,
                    "all",
                    "Bit n: the n-th data thread of the port takes part.",
                ),
                Param::optional(
                    "start_at_ts",
                    Kind::Double,
                    "0: now",
                    "When, in seconds on the clock of `ping`.",
                ),
            ],
            "`multiplier`: the factor; `ts`: when it starts, on the clock of `ping`.",
            |f| StartTraffic::parse(f).map(drop),
        ),
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
        types: Types::prose(
            &[PORT_ID, PROFILE_ID],
            "`rate`: the highest rates, and as `min_...` the part that no multiplier changes; \
                `graph`: `expected_duration` in microseconds (-1: no end), and how the rate \
                changes when streams begin and end, the first 100 `events`.",
            |f| ProfileParams::parse(f).map(drop),
        ),
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
        types: Types::prose(&[PORT_ID, PROFILE_ID], "`{}`.", |f| {
            ProfileParams::parse(f).map(drop)
        }),
        errors: &["the port is not yours", "no such profile"],
        example: Example {
            params: r#"{"port_id": 0, "profile_id": "_"}"#,
            result: "{}",
        },
    },
];
