//! Commands about the server as a whole in stateful mode: its owner, its state, service mode.

use std::collections::{BTreeMap, BTreeSet};

use crate::command::{Access, Command, Empty, Example, Types};
use crate::commands::ports::lease_s;
use crate::events::StatefulPhase;
use crate::fields::{FieldError, Fields};
use crate::json_schema::JsonSchema;
use crate::limits::USER_BYTES_MAX;
use crate::method::{Method, StatefulMethod};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// Parameters of `acquire` in stateful mode.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct AcquireContext {
    /// Who takes it.
    #[serde(deserialize_with = "user")]
    pub user: String,
    /// The user's session, not 0.
    #[serde(rename = "session_id", deserialize_with = "session")]
    pub session: u32,
    /// Take it from whoever has it, oneself included. Streams that its ports send are
    /// stopped, and flows when other ports are taken than before.
    pub force: bool,
    /// The ports, in pairs: an even one with clients, and the next with servers. TRex's
    /// servers do not have it.
    #[schemars(extend("x-default" = "with `force` all, else all that nobody has in stateless mode"))]
    #[serde(default, deserialize_with = "ports")]
    pub ports: Option<Vec<u8>>,
    /// As of `acquire` in stateless mode.
    #[serde(default, deserialize_with = "lease_s")]
    #[schemars(extend("x-default" = "no end"))]
    pub lease_s: Option<f64>,
}

fn user<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let user = String::deserialize(deserializer)?;
    if user.len() > USER_BYTES_MAX {
        let bytes = user.len();
        let problem = format_args!("has {bytes} bytes, the most is {USER_BYTES_MAX}");
        return Err(D::Error::custom(problem));
    }
    Ok(user)
}

fn session<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        0 => Err(D::Error::custom("is 0; give any other number")),
        session => Ok(session),
    }
}

/// Numbers of ports, in order.
fn ports<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<u8>>, D::Error> {
    let numbers = Vec::<u8>::deserialize(deserializer)?;
    let numbers: BTreeSet<u8> = numbers.into_iter().collect();
    if numbers.is_empty() {
        return Err(D::Error::custom(
            "is empty; name ports, or leave it out for all",
        ));
    }
    Ok(Some(numbers.into_iter().collect()))
}

/// Reply of `acquire` in stateful mode.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ContextHandlers {
    /// What commands of the server's owner carry.
    pub handler: String,
    /// By port, what commands of a port's owner carry.
    pub ports: BTreeMap<u8, String>,
}

/// Parameters of `sync`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct Sync {
    /// Any name: then `state_profile` is in the reply.
    #[schemars(extend("x-default" = "no states of single profiles"))]
    pub profile_id: Option<String>,
}

/// Reply of `sync`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Synced {
    /// How often stateful traffic has begun.
    pub epoch: u64,
    /// What all profiles do together.
    pub state: StatefulPhase,
    /// What each profile does, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_profile: Option<BTreeMap<String, StatefulPhase>>,
}

/// Reply of `inc_epoch`.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Epoch {
    /// How often stateful traffic has begun.
    pub epoch: u64,
}

/// Parameters of `service` in stateful mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct ContextService {
    /// On, for some classes of frames only.
    #[serde(default)]
    pub filtered: bool,
    /// Classes of frames, as bits: 1 neither TCP nor UDP (always set while filtered), 2
    /// BGP, 4 DHCP, 8 TCP and UDP ports from 0xff00, 16 multicast DNS.
    #[serde(default)]
    pub mask: u8,
    /// On or off.
    pub enabled: bool,
}

/// The class of what is neither TCP nor UDP, which belongs to each filter: TCP and UDP are flows.
const NO_TCP_UDP: u8 = 1;

impl ContextService {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'_>) -> Result<ContextService, FieldError> {
        let params: ContextService = fields.read()?;
        let mask = params.mask;
        if params.filtered && mask & NO_TCP_UDP == 0 {
            let problem = format!(
                "is {mask}; add {NO_TCP_UDP} (what is neither TCP nor UDP) while it is filtered: \
                 the rest belongs to flows"
            );
            return Err(fields.bad("mask", problem));
        }
        Ok(params)
    }
}

/// The items of the command table.
pub const COMMANDS: &[Command] = &[
    Command {
        method: Method::Stateful(StatefulMethod::Acquire),
        name: "acquire",
        access: Access::Api,
        doc: "Takes stateful mode, with its ports. There is one owner; with `force` it changes. Where \
              ports can be in both modes, those that are taken change to this one, and those that \
              are not leave it.",
        types: Types::of::<AcquireContext, ContextHandlers>(),
        errors: &[
            "somebody has it and `force` is false",
            "somebody has one of `ports` in stateless mode, or it sends, and `force` is false",
            "half of a pair, or ports without a partner",
            "a port has two VLAN tags",
            "the server is in stateful mode only and `ports` are not all",
        ],
        example: Example {
            params: r#"{"user": "ann", "session_id": 1734, "force": true}"#,
            result: r#"{"handler": "aLi4hnTk", "ports": {"0": "ocoRvN1Z", "1": "layDxac8"}}"#,
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::Release),
        name: "release",
        access: Access::Context,
        doc: "Gives the server back. Traffic goes on.",
        types: Types::of::<Empty, ()>(),
        errors: &[],
        example: Example {
            params: "{}",
            result: "null",
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::Sync),
        name: "sync",
        access: Access::Api,
        doc: "What the profiles do. States: 0 idle, 1 loaded, 2 parse, 3 build, 4 transmit, 5 \
              cleanup (no more flows begin, and those that there are end), 6 delete.",
        types: Types::of::<Sync, Synced>(),
        errors: &[],
        example: Example {
            params: r#"{"profile_id": "sync"}"#,
            result: r#"{"epoch": 2, "state": 1, "state_profile": {"_": 1}}"#,
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::IncEpoch),
        name: "inc_epoch",
        access: Access::Context,
        doc: "Begins a new epoch, so that clients ask anew what counters there are.",
        types: Types::of::<Empty, Epoch>(),
        errors: &[],
        example: Example {
            params: "{}",
            result: r#"{"epoch": 3}"#,
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::Service),
        name: "service",
        access: Access::Context,
        doc: "Switches service mode of all ports. In it, frames that belong to no flow are shown to \
              captures, receive queues and capture ports, and pings are answered. With `filtered` \
              that holds for the classes of frames in `mask`.",
        types: Types::of::<ContextService, Empty>(),
        errors: &[],
        example: Example {
            params: r#"{"enabled": true, "filtered": false, "mask": 0}"#,
            result: "{}",
        },
    },
];
