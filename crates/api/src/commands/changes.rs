//! Commands that change traffic while it runs: pause, resume and update, of profiles and of single
//! streams.

use crate::command::{Access, Command, Example, Kind, PORT_ID, PROFILE_ID, Param, Types};
use crate::commands::ports::{port_id, profile_id};
use crate::commands::traffic::{Multiplier, ProfileParams};
use crate::fields::{FieldError, Fields};
use crate::limits::STREAMS_MAX;
use crate::method::{Method, StatelessMethod};
use serde::Serialize;

/// How the rate of an update is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MultiplierOperation {
    /// The new rate.
    Absolute,
    /// So much more than now.
    Add,
    /// So much less than now.
    Subtract,
}

/// Parameters of `update_traffic`.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdateTraffic {
    /// The port.
    pub port: u8,
    /// The profile.
    pub profile: String,
    /// How fast, or by how much.
    pub multiplier: Multiplier,
    /// How that is meant.
    pub operation: MultiplierOperation,
    /// Even faster than the line.
    pub force: bool,
}

impl UpdateTraffic {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'_>) -> Result<UpdateTraffic, FieldError> {
        let mul = fields.object("mul")?;
        let operation = match mul.one_of("op", &["abs", "add", "sub"])? {
            "abs" => MultiplierOperation::Absolute,
            "add" => MultiplierOperation::Add,
            _ => MultiplierOperation::Subtract,
        };
        Ok(UpdateTraffic {
            port: port_id(fields)?,
            profile: profile_id(fields)?,
            multiplier: Multiplier::parse(&mul)?,
            operation,
            force: fields.boolean("force")?,
        })
    }
}

/// Parameters of `pause_streams` and `resume_streams`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamsParams {
    /// The port.
    pub port: u8,
    /// The profile.
    pub profile: String,
    /// The streams, in order, each once.
    pub stream_ids: Vec<u32>,
}

impl StreamsParams {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'_>) -> Result<StreamsParams, FieldError> {
        Ok(StreamsParams {
            port: port_id(fields)?,
            profile: profile_id(fields)?,
            stream_ids: stream_ids(fields)?,
        })
    }
}

/// Parameters of `update_streams`.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdateStreams {
    /// Which streams.
    pub streams: StreamsParams,
    /// How fast each of them.
    pub multiplier: Multiplier,
    /// Even faster than the line.
    pub force: bool,
}

impl UpdateStreams {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'_>) -> Result<UpdateStreams, FieldError> {
        Ok(UpdateStreams {
            streams: StreamsParams::parse(fields)?,
            multiplier: Multiplier::parse_absolute(&fields.object("mul")?)?,
            force: fields.boolean("force")?,
        })
    }
}

fn stream_ids(fields: &Fields<'_>) -> Result<Vec<u32>, FieldError> {
    let ids = fields.uint_array("stream_ids", u32::MAX.into(), "uint32")?;
    if ids.is_empty() || ids.len() > STREAMS_MAX {
        let problem = format!(
            "has {} elements; give 1 to {STREAMS_MAX} stream numbers",
            ids.len()
        );
        return Err(fields.bad("stream_ids", problem));
    }
    let mut ids: Vec<u32> = ids.into_iter().map(|id| id as u32).collect();
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}

/// Reply of `update_traffic` and `update_streams`.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Updated {
    /// The factor of the rates in the streams.
    pub multiplier: f64,
}

const STREAM_IDS: Param = Param::required("stream_ids", Kind::Array, "The streams' numbers.");
const FORCE: Param = Param::required("force", Kind::Boolean, "Even faster than the line.");
const NOT_RUNNING: &str = "the profile is not running";
const NO_STREAM: &str = "no such stream, or it is not enabled";

/// The items of the command table.
pub const COMMANDS: &[Command] = &[
    Command {
        method: Method::Stateless(StatelessMethod::PauseTraffic),
        name: "pause_traffic",
        access: Access::Owner,
        doc: "Lets a profile stand still. The reply comes when nothing more leaves; nothing \
              counts as missed because of it. All its streams must be continuous, and it must \
              have been started without a duration. Events 12 and, when the port has no other \
              profile that transmits, 2 are published before the reply.",
        types: Types::prose(&[PORT_ID, PROFILE_ID], "`{}`.", |f| {
            ProfileParams::parse(f).map(drop)
        }),
        errors: &[
            "the port is not yours",
            "no such profile (`*` is none)",
            "the profile is not transmitting",
            "a stream is not continuous: the text names it",
            "the profile has a duration",
        ],
        example: Example {
            params: r#"{"port_id": 0, "profile_id": "_"}"#,
            result: "{}",
        },
    },
    Command {
        method: Method::Stateless(StatelessMethod::ResumeTraffic),
        name: "resume_traffic",
        access: Access::Owner,
        doc: "Lets a paused profile go on where it stood still, all streams together: the next \
              packet of each is the one that would have been next, after the rest of its gap. \
              Streams that were paused by `pause_streams` stay so. Events 13 and, when all the \
              port's profiles were paused, 3 are published before the reply.",
        types: Types::prose(&[PORT_ID, PROFILE_ID], "`{}`.", |f| {
            ProfileParams::parse(f).map(drop)
        }),
        errors: &[
            "the port is not yours",
            "no such profile (`*` is none)",
            "the profile is not paused",
        ],
        example: Example {
            params: r#"{"port_id": 0, "profile_id": "_"}"#,
            result: "{}",
        },
    },
    Command {
        method: Method::Stateless(StatelessMethod::UpdateTraffic),
        name: "update_traffic",
        access: Access::Owner,
        doc: "Changes the rate of a profile that runs or is paused, of all its streams, also of \
              those that `update_streams` changed. The gap changes at once: the part of it that \
              is over counts.",
        types: Types::prose(
            &[
                PORT_ID,
                PROFILE_ID,
                Param::required(
                    "mul",
                    Kind::Object,
                    "As for `start_traffic`, but `op` may also be `add` or `sub`: so much more or \
                 less than now.",
                ),
                FORCE,
            ],
            "`multiplier`: the new factor of the streams' rates.",
            |f| UpdateTraffic::parse(f).map(drop),
        ),
        errors: &[
            "the port is not yours",
            NOT_RUNNING,
            "`sub` leaves no rate",
            "the rate at layer 1 is above 100.01 % of the line rate and `force` is false",
        ],
        example: Example {
            params: r#"{"port_id": 0, "profile_id": "_", "mul": {"type": "pps", "op": "abs", "value": 5000.0}, "force": false}"#,
            result: r#"{"multiplier": 25.0}"#,
        },
    },
    Command {
        method: Method::Stateless(StatelessMethod::PauseStreams),
        name: "pause_streams",
        access: Access::Owner,
        doc: "Lets single streams of a profile stand still while the others go on. As in TRex, all \
              streams of the profile must be continuous. The reply comes when nothing more of them leaves. The profile's state stays as it \
              is.",
        types: Types::prose(&[PORT_ID, PROFILE_ID, STREAM_IDS], "`{}`.", |f| {
            StreamsParams::parse(f).map(drop)
        }),
        errors: &[
            "the port is not yours",
            NOT_RUNNING,
            NO_STREAM,
            "a stream of the profile, be it another one, is not continuous: the text names it",
            "the profile was started with a duration",
        ],
        example: Example {
            params: r#"{"port_id": 0, "profile_id": "_", "stream_ids": [1]}"#,
            result: "{}",
        },
    },
    Command {
        method: Method::Stateless(StatelessMethod::ResumeStreams),
        name: "resume_streams",
        access: Access::Owner,
        doc: "Lets single streams go on where they stood still, or start if they have \
              `start_paused`. While their profile is paused, they wait for it.",
        types: Types::prose(&[PORT_ID, PROFILE_ID, STREAM_IDS], "`{}`.", |f| {
            StreamsParams::parse(f).map(drop)
        }),
        errors: &["the port is not yours", NOT_RUNNING, NO_STREAM],
        example: Example {
            params: r#"{"port_id": 0, "profile_id": "_", "stream_ids": [1]}"#,
            result: "{}",
        },
    },
    Command {
        method: Method::Stateless(StatelessMethod::UpdateStreams),
        name: "update_streams",
        access: Access::Owner,
        doc: "Changes the rate of single continuous streams, until the next `update_traffic`. Of \
              streams whose latency is measured the rate stays as it is: they may be named.",
        types: Types::prose(
            &[
                PORT_ID,
                PROFILE_ID,
                Param::required(
                    "mul",
                    Kind::Object,
                    "As for `start_traffic`, with `op` `abs`; each of the streams gets this rate.",
                ),
                FORCE,
                STREAM_IDS,
            ],
            "`multiplier`: the new factor of the first of the streams that change; that of the profile when none does.",
            |f| UpdateStreams::parse(f).map(drop),
        ),
        errors: &[
            "the port is not yours",
            NOT_RUNNING,
            NO_STREAM,
            "a stream is not continuous, or is a dummy without a rate",
            "the rate at layer 1 is above 100.01 % of the line rate and `force` is false",
        ],
        example: Example {
            params: r#"{"port_id": 0, "profile_id": "_", "mul": {"type": "pps", "op": "abs", "value": 2000.0}, "force": false, "stream_ids": [1]}"#,
            result: r#"{"multiplier": 20.0}"#,
        },
    },
];
