//! Commands about the asynchronous channel.

use crate::command::{Access, Command, Empty, Example, Types};
use crate::events::QueuedEvent;
use crate::json_schema::JsonSchema;
use crate::method::{Method, ServerMethod};
use serde::{Deserialize, Serialize};

/// Parameters of `publish_now`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct PublishNow {
    /// A number of the client's choice.
    pub key: u32,
    /// Mark the frame as the start of a count.
    pub baseline: bool,
}

/// Parameters of `get_async_events`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct EventsParams {
    /// Accepted.
    #[schemars(extend("x-default" = "not used"))]
    pub user: Option<String>,
    /// The session.
    #[serde(rename = "session_id")]
    pub session: u32,
}

/// Reply of `get_async_events`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Events {
    /// The events, oldest first.
    pub data: Vec<QueuedEvent>,
}

/// The items of the command table.
pub const COMMANDS: &[Command] = &[
    Command {
        method: Method::Server(ServerMethod::PublishNow),
        name: "publish_now",
        access: Access::Api,
        doc: "Publishes a statistics frame and a notification at once. A client that has just \
              subscribed calls it until it hears one.",
        types: Types::of::<PublishNow, Empty>(),
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
        types: Types::of::<EventsParams, Events>(),
        errors: &["there are too many sessions"],
        example: Example {
            params: r#"{"session_id": 3415546078}"#,
            result: r#"{"data": [{"name": "trex-event", "type": 14, "data": {"port_id": 0, "profile_id": "_"}, "seq": 6}]}"#,
        },
    },
];
