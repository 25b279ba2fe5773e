//! Commands about profiles and the streams in them. A stream's own JSON is in [`stream`].

pub mod stream;

use crate::command::{Access, Command, Example, Kind, PORT_ID, PROFILE_ID, Param, Types};
use crate::commands::ports::{port_id, profile_id};
use crate::commands::traffic::ProfileParams;
use crate::fields::{FieldError, Fields};
use crate::method::{Method, StatelessMethod};
use serde_json::Value;

/// Parameters of `add_stream`.
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
        fields.object("stream")?;
        Ok(AddStream {
            port: port_id(fields)?,
            profile: profile_id(fields)?,
            stream_id: fields.uint32("stream_id")?,
            stream: fields.value("stream")?,
        })
    }
}

/// Parameters of commands on one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamParams {
    /// The port.
    pub port: u8,
    /// The profile.
    pub profile: String,
    /// The stream.
    pub stream_id: u32,
}

impl StreamParams {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'_>) -> Result<StreamParams, FieldError> {
        fields.optional("get_pkt", Fields::boolean)?;
        Ok(StreamParams {
            port: port_id(fields)?,
            profile: profile_id(fields)?,
            stream_id: fields.uint32("stream_id")?,
        })
    }
}

const STREAM_ID: Param = Param::required("stream_id", Kind::Uint32, "The stream's number.");
const ALL_PROFILES: Param = Param::optional(
    "profile_id",
    Kind::String,
    "\"_\"",
    "The profile on the port; `*` for all.",
);
const GET_PKT: Param = Param::optional("get_pkt", Kind::Boolean, "true", "Accepted.");

/// The items of the command table.
pub const COMMANDS: &[Command] = &[
    Command {
        method: Method::Stateless(StatelessMethod::ProfileList),
        name: "get_profile_list",
        access: Access::Api,
        doc: "The profiles on a port. The profile `_` is always there; others appear with their \
              first stream.",
        types: Types::prose(&[PORT_ID], "A list of names.", |f| port_id(f).map(drop)),
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
        types: Types::prose(
            &[PORT_ID, ALL_PROFILES],
            "A list of numbers; for `*` an object by profile.",
            |f| ProfileParams::parse(f).map(drop),
        ),
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
        types: Types::prose(
            &[PORT_ID, ALL_PROFILES, GET_PKT],
            "`streams`: an object by stream number; for `*`, `profiles`: an object by \
                profile, without those that have no streams.",
            |f| {
                fields_get_pkt(f)?;
                ProfileParams::parse(f).map(drop)
            },
        ),
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
        types: Types::prose(
            &[PORT_ID, PROFILE_ID, STREAM_ID, GET_PKT],
            "`stream`: the stream.",
            |f| StreamParams::parse(f).map(drop),
        ),
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
        types: Types::prose(
            &[
                PORT_ID,
                PROFILE_ID,
                STREAM_ID,
                Param::required("stream", Kind::Object, "The stream, see below."),
            ],
            "`{}`.",
            |f| AddStream::parse(f).map(drop),
        ),
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
        types: Types::prose(&[PORT_ID, PROFILE_ID, STREAM_ID], "`{}`.", |f| {
            StreamParams::parse(f).map(drop)
        }),
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
        types: Types::prose(&[PORT_ID, ALL_PROFILES], "`{}`.", |f| {
            ProfileParams::parse(f).map(drop)
        }),
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

fn fields_get_pkt(fields: &Fields<'_>) -> Result<Option<bool>, FieldError> {
    fields.optional("get_pkt", Fields::boolean)
}
