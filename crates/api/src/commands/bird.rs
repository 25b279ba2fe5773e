//! The commands of the routing daemon BIRD, which have a TCP port of their own: TRex's PyBird.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::command::{Command, Empty, Example, Types};
use crate::error::Error;
use crate::json_schema::JsonSchema;

/// The server refuses: another client has BIRD, or nobody has it.
pub const BIRD_REFUSED: i32 = -32096;
/// A configuration did not arrive as it was sent.
pub const BIRD_FRAGMENTS: i32 = -32097;
/// BIRD itself does not run or does not answer.
pub const BIRD_SYSTEM: i32 = -32099;
/// The version of these commands, which clients name.
pub const BIRD_API: &str = "1.0";

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // Each is documented where it is described: in `COMMANDS`.
pub enum BirdMethod {
    Connect,
    Acquire,
    Release,
    Disconnect,
    Config,
    Protocols,
    SetConfig,
    SetEmptyConfig,
    Status,
}

/// Parameters of `connect`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct BirdConnect {
    /// The version of the commands that the client knows: `1.0`.
    pub version: String,
}

/// Parameters of `acquire`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct BirdAcquire {
    /// Take BIRD away from who has it: for instance from a client that is gone.
    #[serde(default)]
    pub force: bool,
}

/// Parameters of commands of who has BIRD.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct BirdHandler {
    /// What `acquire` answered.
    pub handler: u32,
}

/// Parameters of `set_config`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct BirdFragment {
    /// What `acquire` answered.
    pub handler: u32,
    /// The next part of the configuration.
    pub fragment: String,
    /// It is the first part.
    #[serde(default)]
    pub frag_first: bool,
    /// It is the last part.
    #[serde(default)]
    pub frag_last: bool,
    /// With the first of several parts: the MD5 of the whole configuration, in hexadecimal digits.
    pub md5: Option<String>,
}

/// Reply of `get_status`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BirdStatus {
    /// The version of BIRD.
    pub version: String,
    /// The namespace that it is in, for `ip netns exec`.
    pub namespace: String,
    /// The number of its process; `null` while it is not running.
    pub pid: Option<u32>,
    /// How often it ended and was started again.
    pub restarts: u64,
    /// `running`; `restarting` after it has ended; `config_given_up` when it ended six times in a row with its
    /// configuration, and has the empty one until it is given another.
    pub state: &'static str,
    /// Whether a client has it.
    pub is_acquired: bool,
}

impl BirdMethod {
    /// The names of parameters that clients may give as a list, in its order.
    fn listed(self) -> &'static [&'static str] {
        match self {
            BirdMethod::Connect => &["version"],
            BirdMethod::Acquire => &["force"],
            BirdMethod::Release | BirdMethod::SetEmptyConfig => &["handler"],
            _ => &[],
        }
    }
}

/// The command of that name.
pub fn bird_command(name: &str) -> Option<&'static Command<BirdMethod>> {
    COMMANDS.iter().find(|command| command.name == name)
}

/// Parameters by their names, where a client gives a list of them.
pub(crate) fn by_name(method: &str, list: Vec<Value>) -> Map<String, Value> {
    let names = bird_command(method).map_or(&[][..], |command| command.method.listed());
    let names = names.iter().map(|name| (*name).to_owned());
    names.zip(list).collect()
}

/// An error as PyBird's clients know it.
pub fn bird_error(code: i32, text: impl std::fmt::Display) -> Error {
    Error {
        code,
        message: format!("Bird Server: {text}"),
        specific: None,
    }
}

/// The items of the command table.
pub const COMMANDS: &[Command<BirdMethod>] = &[
    Command {
        name: "connect",
        doc: "Compares versions; a client begins with it.",
        example: Example {
            params: r#"{"version": "1.0"}"#,
            result: r#""Connection established""#,
        },
        ..Command::of(BirdMethod::Connect, Types::of::<BirdConnect, String>())
    },
    Command {
        name: "acquire",
        doc: "Takes BIRD for this client; the answer is the handler that commands of its owner want.",
        errors: &["another client has it, and `force` is not given"],
        example: Example {
            params: r#"{"force": false}"#,
            result: "2596996162",
        },
        ..Command::of(BirdMethod::Acquire, Types::of::<BirdAcquire, u32>())
    },
    Command {
        name: "release",
        doc: "Gives BIRD back. Its configuration stays.",
        errors: &["another client has it, or none"],
        example: Example {
            params: r#"{"handler": 2596996162}"#,
            result: r#""Client released successfully""#,
        },
        ..Command::of(BirdMethod::Release, Types::of::<BirdHandler, String>())
    },
    Command {
        name: "disconnect",
        doc: "Ends what `connect` began.",
        example: Example {
            params: "{}",
            result: "null",
        },
        ..Command::of(BirdMethod::Disconnect, Types::of::<Empty, ()>())
    },
    Command {
        name: "get_config",
        doc: "Tells the configuration that BIRD has.",
        example: Example {
            params: "{}",
            result: r#""router id 100.100.100.100;\nprotocol device {\n    scan time 1;\n}\n""#,
        },
        ..Command::of(BirdMethod::Config, Types::of::<Empty, String>())
    },
    Command {
        name: "get_protocols_info",
        doc: "Tells BIRD's protocols and their states, as `birdc show protocols` does.",
        example: Example {
            params: "{}",
            result: r#""Name       Proto      Table      State  Since         Info\ndevice1    Device     ---        up     10:05:12.345""#,
        },
        ..Command::of(BirdMethod::Protocols, Types::of::<Empty, String>())
    },
    Command {
        name: "set_config",
        doc: "Gives BIRD another configuration, in fragments. The answer to one that is not the last is `send_another_frag`, unless the server knows the MD5 of the whole. A configuration that BIRD refuses is answered by its words, and the one before stays.",
        errors: &[
            "another client has BIRD, or none",
            "the fragments are not what the MD5 says, or the first is missing",
            "BIRD does not run",
        ],
        example: Example {
            params: r#"{"handler": 2596996162, "fragment": "router id 1.1.1.3;\n", "frag_first": true, "frag_last": true}"#,
            result: r#""Configured successfully""#,
        },
        ..Command::of(BirdMethod::SetConfig, Types::of::<BirdFragment, String>())
    },
    Command {
        name: "set_empty_config",
        doc: "Gives BIRD a configuration without routes and peers.",
        errors: &["another client has BIRD, or none", "BIRD does not run"],
        example: Example {
            params: r#"{"handler": 2596996162}"#,
            result: r#""Configured successfully""#,
        },
        ..Command::of(
            BirdMethod::SetEmptyConfig,
            Types::of::<BirdHandler, String>(),
        )
    },
    Command {
        name: "get_status",
        doc: "Tells how BIRD is doing. TRex's servers do not have it.",
        example: Example {
            params: "{}",
            result: r#"{"version": "2.0.12", "namespace": "allosaur-1234-bird", "pid": 1240, "restarts": 0, "state": "running", "is_acquired": true}"#,
        },
        ..Command::of(BirdMethod::Status, Types::of::<Empty, BirdStatus>())
    },
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_are_read_by_the_names_of_the_command() {
        let named = |method: &str, list: Value| {
            Value::Object(by_name(
                method,
                serde_json::from_value(list).expect("a list"),
            ))
        };
        assert_eq!(named("connect", json!(["1.0"])), json!({"version": "1.0"}));
        assert_eq!(named("acquire", json!([true, 5])), json!({"force": true}));
        assert_eq!(named("get_config", json!([])), json!({}));
        assert_eq!(named("no_such", json!([1])), json!({}));
    }

    #[test]
    fn each_example_is_read_as_the_server_does() {
        for command in COMMANDS {
            let example = command.example.to_json();
            let params = example["params"].as_object().expect("an object");
            let fields = crate::Fields::new(params);
            let read = match command.method {
                BirdMethod::Connect => fields.read::<BirdConnect>().map(drop),
                BirdMethod::Acquire => fields.read::<BirdAcquire>().map(drop),
                BirdMethod::Release | BirdMethod::SetEmptyConfig => {
                    fields.read::<BirdHandler>().map(drop)
                }
                BirdMethod::SetConfig => fields.read::<BirdFragment>().map(drop),
                _ => fields.read::<Empty>().map(drop),
            };
            assert_eq!(read, Ok(()), "{}", command.name);
            assert_eq!(
                bird_command(command.name).map(|one| one.method),
                Some(command.method)
            );
        }
    }
}
