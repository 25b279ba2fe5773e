//! Commands about profiles and the streams in them. A stream's own JSON is in [`stream`].

pub mod stream;
pub mod stream_fields;

use std::collections::BTreeMap;

use crate::command::{Access, AnyObject, Command, Empty, Example, Types};
use crate::commands::ports::{PortParams, default_profile};
use crate::commands::traffic::ProfilesParams;
use crate::fields::{FieldError, Fields};
use crate::json_schema::JsonSchema;
use crate::method::{Method, StatelessMethod};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// Parameters of commands on one stream.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct StreamParams {
    /// Accepted.
    #[serde(default = "yes")]
    pub get_pkt: bool,
    /// The port's number.
    #[serde(rename = "port_id")]
    pub port: u8,
    /// The profile on the port.
    #[serde(rename = "profile_id", default = "default_profile")]
    pub profile: String,
    /// The stream's number.
    pub stream_id: u32,
}

/// Parameters of `get_all_streams`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct AllStreamsParams {
    /// Accepted.
    #[serde(default = "yes")]
    pub get_pkt: bool,
    /// The port's number.
    #[serde(rename = "port_id")]
    pub port: u8,
    /// The profile on the port; `*` for all.
    #[serde(rename = "profile_id", default = "default_profile")]
    pub profile: String,
}

/// Parameters of `add_stream`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct AddStreamParams {
    /// The stream, see below.
    pub stream: AnyObject,
    /// The port's number.
    #[serde(rename = "port_id")]
    pub port: u8,
    /// The profile on the port.
    #[serde(rename = "profile_id", default = "default_profile")]
    pub profile: String,
    /// The stream's number, unique in the profile.
    pub stream_id: u32,
}

fn yes() -> bool {
    true
}

/// What `add_stream` is to add.
#[derive(Clone, Debug, PartialEq)]
pub struct AddStream<'a> {
    /// The port.
    pub port: u8,
    /// The profile.
    pub profile: String,
    /// The stream's number, unique in the profile.
    pub stream_id: u32,
    /// The stream; [`stream::Stream::parse`] reads it.
    pub stream: &'a Value,
}

impl<'a> AddStream<'a> {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'a>) -> Result<AddStream<'a>, FieldError> {
        let params: AddStreamParams = fields.read()?;
        Ok(AddStream {
            port: params.port,
            profile: params.profile,
            stream_id: params.stream_id,
            stream: fields.value("stream")?,
        })
    }
}

/// The names of profiles.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct ProfileNames(pub Vec<String>);

/// The numbers of a profile's streams; for `*` an object of them by profile.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum StreamNumbers {
    /// Of one profile.
    One(Vec<u32>),
    /// Of all, by name.
    All(BTreeMap<String, Vec<u32>>),
}

/// Reply of `get_all_streams`.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct AllStreams<'a> {
    /// Of one profile: its streams by number, as they were given to `add_stream`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<BTreeMap<u32, serde_json::Map<String, Value>>>")]
    pub streams: Option<BTreeMap<u32, &'a RawValue>>,
    /// For `*`: the streams by number, by profile, without profiles that have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<BTreeMap<String, BTreeMap<u32, serde_json::Map<String, Value>>>>")]
    pub profiles: Option<BTreeMap<String, BTreeMap<u32, &'a RawValue>>>,
}

/// Reply of `get_stream`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OneStream<'a> {
    /// The stream, as it was given to `add_stream`.
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub stream: &'a RawValue,
}

/// The items of the command table.
pub const COMMANDS: &[Command] = &[
    Command {
        method: Method::Stateless(StatelessMethod::ProfileList),
        name: "get_profile_list",
        access: Access::Api,
        doc: "The profiles on a port. The profile `_` is always there; others appear with their \
              first stream.",
        types: Types::of::<PortParams, ProfileNames>(),
        errors: &["no such port"],
        example: Example {
            params: r#"{"port_id": 0}"#,
            result: r#"["_"]"#,
        },
    },
    Command {
        method: Method::Stateless(StatelessMethod::StreamList),
        name: "get_stream_list",
        access: Access::Api,
        doc: "The numbers of a profile's streams.",
        types: Types::of::<ProfilesParams, StreamNumbers>(),
        errors: &["no such port", "no such profile"],
        example: Example {
            params: r#"{"port_id": 0, "profile_id": "_"}"#,
            result: "[1, 2]",
        },
    },
    Command {
        method: Method::Stateless(StatelessMethod::AllStreams),
        name: "get_all_streams",
        access: Access::Api,
        doc: "All streams of a profile, as they were given to `add_stream`.",
        types: Types::of::<AllStreamsParams, AllStreams<'static>>(),
        errors: &["no such port", "no such profile"],
        example: Example {
            params: r#"{"port_id": 0, "profile_id": "*"}"#,
            result: r#"{"profiles": {}}"#,
        },
    },
    Command {
        method: Method::Stateless(StatelessMethod::Stream),
        name: "get_stream",
        access: Access::Api,
        doc: "One stream, as it was given to `add_stream`.",
        types: Types::of::<StreamParams, OneStream<'static>>(),
        errors: &["no such port", "no such profile", "no such stream"],
        example: Example {
            params: r#"{"port_id": 0, "stream_id": 1, "get_pkt": true}"#,
            result: r#"{"stream": {"enabled": true}}"#,
        },
    },
    Command {
        method: Method::Stateless(StatelessMethod::AddStream),
        name: "add_stream",
        access: Access::Owner,
        doc: "Adds a stream to a profile, which must not be transmitting. Each field is checked \
              here; what depends on other streams, at `start_traffic`.",
        types: Types::of::<AddStreamParams, Empty>(),
        errors: &[
            "the port is not yours",
            "the profile is transmitting",
            "there is a stream of that number",
            "the profile has 20,000 streams, or the port 128 profiles",
            "a field of the stream is wrong: the text names the stream, the field and what would \
             be right",
        ],
        example: Example {
            params: r#"{"port_id": 0, "stream_id": 1, "stream": {"enabled": true, "self_start": true, "flags": 0, "action_count": 0, "isg": 0.0, "next_stream_id": -1, "mode": {"type": "continuous", "rate": {"type": "pps", "value": 100}}, "packet": {"binary": "AAAAAQAAAAAAAgAACABFAAAuAAEAAEAROr0QAAABMAAAAQQBAAwAGn9veHh4eHh4eHh4eHh4eHh4eHh4", "meta": ""}, "vm": {"instructions": []}, "flow_stats": {"enabled": false}}}"#,
            result: "{}",
        },
    },
    Command {
        method: Method::Stateless(StatelessMethod::RemoveStream),
        name: "remove_stream",
        access: Access::Owner,
        doc: "Removes a stream from a profile, which must not be transmitting.",
        types: Types::of::<StreamParams, Empty>(),
        errors: &[
            "the port is not yours",
            "the profile is transmitting",
            "no such stream",
        ],
        example: Example {
            params: r#"{"port_id": 0, "profile_id": "_", "stream_id": 1}"#,
            result: "{}",
        },
    },
    Command {
        method: Method::Stateless(StatelessMethod::RemoveAllStreams),
        name: "remove_all_streams",
        access: Access::Owner,
        doc: "Removes all streams of a profile, or of all profiles with `*`. None of them may be \
              transmitting.",
        types: Types::of::<ProfilesParams, Empty>(),
        errors: &[
            "the port is not yours",
            "a profile is transmitting",
            "no such profile",
        ],
        example: Example {
            params: r#"{"port_id": 0, "profile_id": "_"}"#,
            result: "{}",
        },
    },
];
