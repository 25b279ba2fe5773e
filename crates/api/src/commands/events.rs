//! Commands about the asynchronous channel.

use crate::command::{Access, Command, Example, Kind, Param, Types};
use crate::fields::{FieldError, Fields};
use crate::method::{Method, ServerMethod};
use serde::Serialize;
use serde_json::Value;

/// Parameters of `publish_now`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishNow {
    /// A number of the client's choice.
    pub key: u32,
    /// Mark the frame as the start of a count.
    pub baseline: bool,
}

impl PublishNow {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'_>) -> Result<PublishNow, FieldError> {
        Ok(PublishNow {
            key: fields.uint32("key")?,
            baseline: fields.boolean("baseline")?,
        })
    }
}

/// Reads the parameter `session_id` of `get_async_events`.
pub fn session_id(fields: &Fields<'_>) -> Result<u32, FieldError> {
    fields.optional("user", Fields::string)?;
    fields.uint32("session_id")
}

/// Reply of `get_async_events`.
#[derive(Clone, Debug, Serialize)]
pub struct Events {
    /// The events, oldest first.
    pub data: Vec<Value>,
}

/// The items of the command table.
pub const COMMANDS: &[Command] = &[
    Command {
        method: Method::Server(ServerMethod::PublishNow),
        name: "publish_now",
        access: Access::Api,
        doc: "Publishes a statistics frame and a notification at once. A client that has just \
              subscribed calls it until it hears one.",
        types: Types::prose(
            &[
                Param::required("key", Kind::Uint32, "A number of the client's choice."),
                Param::required(
                    "baseline",
                    Kind::Boolean,
                    "Mark the frame as the start of a count.",
                ),
            ],
            "`{}`.",
            |f| PublishNow::parse(f).map(drop),
        ),
        errors: &[],
        example: Example {
            params: r#"{"key": 684601549, "baseline": false}"#,
            result: "{}",
        },
    },
    Command {
        method: Method::Server(ServerMethod::AsyncEvents),
        name: "get_async_events",
        access: Access::Api,
        doc: "Takes the events out of a session's queue. An unknown session is added as a \
              reader.",
        types: Types::prose(
            &[
                Param::required("session_id", Kind::Uint32, "The session."),
                Param::optional("user", Kind::String, "not used", "Accepted."),
            ],
            "`data`: the events, oldest first.",
            |f| session_id(f).map(drop),
        ),
        errors: &["there are too many sessions"],
        example: Example {
            params: r#"{"session_id": 3415546078}"#,
            result: r#"{"data": [{"name": "trex-event", "type": 14, "data": {"port_id": 0, "profile_id": "_"}, "seq": 6}]}"#,
        },
    },
];
