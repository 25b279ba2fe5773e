//! Commands that change traffic while it runs: pause, resume and update, of profiles and of single
//! streams.

use crate::command::{Access, Command, Empty, Example, Types};
use crate::commands::ports::default_profile;
use crate::commands::traffic::{Multiplier, ProfileParams, RateChange, absolute};
use crate::json_schema::JsonSchema;
use crate::limits::STREAMS_MAX;
use crate::method::{Method, StatelessMethod};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// Parameters of `update_traffic`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct UpdateTraffic {
    /// How fast, or by how much.
    #[serde(rename = "mul")]
    pub rate: RateChange,
    /// The port's number.
    #[serde(rename = "port_id")]
    pub port: u8,
    /// The profile on the port.
    #[serde(rename = "profile_id", default = "default_profile")]
    pub profile: String,
    /// Even faster than the line.
    pub force: bool,
}

/// Parameters of `pause_streams` and `resume_streams`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct StreamsParams {
    /// The port's number.
    #[serde(rename = "port_id")]
    pub port: u8,
    /// The profile on the port.
    #[serde(rename = "profile_id", default = "default_profile")]
    pub profile: String,
    /// The streams' numbers.
    #[serde(deserialize_with = "stream_ids")]
    pub stream_ids: Vec<u32>,
}

/// Parameters of `update_streams`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct UpdateStreams {
    /// The port's number.
    #[serde(rename = "port_id")]
    pub port: u8,
    /// The profile on the port.
    #[serde(rename = "profile_id", default = "default_profile")]
    pub profile: String,
    /// The streams' numbers.
    #[serde(deserialize_with = "stream_ids")]
    pub stream_ids: Vec<u32>,
    /// How fast each of the streams.
    #[serde(rename = "mul", deserialize_with = "absolute")]
    #[schemars(with = "crate::commands::traffic::AbsoluteRate")]
    pub multiplier: Multiplier,
    /// Even faster than the line.
    pub force: bool,
}

impl UpdateStreams {
    /// Which streams.
    pub fn streams(&self) -> StreamsParams {
        StreamsParams {
            port: self.port,
            profile: self.profile.clone(),
            stream_ids: self.stream_ids.clone(),
        }
    }
}

/// Reads numbers of streams: in order, each once.
fn stream_ids<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u32>, D::Error> {
    let mut ids = Vec::<u32>::deserialize(deserializer)?;
    if ids.is_empty() || ids.len() > STREAMS_MAX {
        return Err(D::Error::custom(format_args!(
            "has {} elements; give 1 to {STREAMS_MAX} stream numbers",
            ids.len()
        )));
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}

/// Reply of `update_traffic` and `update_streams`.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Updated {
    /// The factor of the rates in the streams.
    pub multiplier: f64,
}

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
        types: Types::of::<ProfileParams, Empty>(),
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
        types: Types::of::<ProfileParams, Empty>(),
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
        types: Types::of::<UpdateTraffic, Updated>(),
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
        types: Types::of::<StreamsParams, Empty>(),
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
        types: Types::of::<StreamsParams, Empty>(),
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
        types: Types::of::<UpdateStreams, Updated>(),
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
