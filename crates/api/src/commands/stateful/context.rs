//! Commands about the server as a whole in stateful mode: its owner, its state, service mode.

use std::collections::BTreeSet;

use crate::command::{Access, Command, Example, Kind, Param, Types};
use crate::commands::ports::{LEASE_S, lease_s};
use crate::fields::{FieldError, Fields};
use crate::limits::USER_BYTES_MAX;
use crate::method::{Method, StatefulMethod};

/// Parameters of `acquire` in stateful mode.
#[derive(Clone, Debug, PartialEq)]
pub struct AcquireContext {
    /// Who takes the server.
    pub user: String,
    /// The user's session, not 0.
    pub session: u32,
    /// Take it from whoever has it.
    pub force: bool,
    /// The ports to take; `None` is all that can be had.
    pub ports: Option<Vec<u8>>,
    /// How long the owner may be silent, in seconds.
    pub lease_s: Option<f64>,
}

impl AcquireContext {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'_>) -> Result<AcquireContext, FieldError> {
        let user = fields.string("user")?;
        if user.len() > USER_BYTES_MAX {
            let problem = format!("has {} bytes, the most is {USER_BYTES_MAX}", user.len());
            return Err(fields.bad("user", problem));
        }
        let session = fields.uint32("session_id")?;
        if session == 0 {
            return Err(fields.bad("session_id", "is 0; give any other number"));
        }
        Ok(AcquireContext {
            user: user.to_owned(),
            session,
            force: fields.boolean("force")?,
            ports: fields.optional("ports", ports)?,
            lease_s: lease_s(fields)?,
        })
    }
}

/// Numbers of ports, in order.
fn ports(fields: &Fields<'_>, name: &str) -> Result<Vec<u8>, FieldError> {
    let numbers = fields.uint_array(name, u64::from(u8::MAX), "byte")?;
    let numbers: BTreeSet<u8> = numbers.into_iter().map(|number| number as u8).collect();
    if numbers.is_empty() {
        return Err(fields.bad(name, "is empty; name ports, or leave it out for all"));
    }
    Ok(numbers.into_iter().collect())
}

/// Parameters of `sync`: whether the states of the single profiles are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sync {
    /// They are.
    pub with_profiles: bool,
}

impl Sync {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'_>) -> Result<Sync, FieldError> {
        let name = fields.optional("profile_id", Fields::string)?;
        Ok(Sync {
            with_profiles: name.is_some(),
        })
    }
}

/// Parameters of `service` in stateful mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextService {
    /// On or off.
    pub enabled: bool,
    /// On, for the classes of frames in `mask` only.
    pub filtered: bool,
    /// Classes of frames, as bits.
    pub mask: u8,
}

/// The class of what is neither TCP nor UDP, which belongs to each filter: TCP and UDP are flows.
const NO_TCP_UDP: u8 = 1;

impl ContextService {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'_>) -> Result<ContextService, FieldError> {
        let filtered = fields.optional("filtered", Fields::boolean)? == Some(true);
        let mask = fields.optional("mask", Fields::byte)?.unwrap_or(0);
        if filtered && mask & NO_TCP_UDP == 0 {
            let problem = format!(
                "is {mask}; add {NO_TCP_UDP} (what is neither TCP nor UDP) while it is filtered: \
                 the rest belongs to flows"
            );
            return Err(fields.bad("mask", problem));
        }
        Ok(ContextService {
            enabled: fields.boolean("enabled")?,
            filtered,
            mask,
        })
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
        types: Types::prose(
            &[
                Param::required("user", Kind::String, "Who takes it."),
                Param::required("session_id", Kind::Uint32, "The user's session, not 0."),
                Param::required(
                    "force",
                    Kind::Boolean,
                    "Take it from whoever has it, oneself included. Streams that its ports send are \
                 stopped, and flows when other ports are taken than before.",
                ),
                Param::optional(
                    "ports",
                    Kind::Array,
                    "with `force` all, else all that nobody has in stateless mode",
                    "The ports, in pairs: an even one with clients, and the next with servers. TRex's \
                 servers do not have it.",
                ),
                LEASE_S,
            ],
            "`handler`: the string that commands of the server's owner carry. `ports`: by number, \
                the one that commands of a port's owner carry.",
            |f| AcquireContext::parse(f).map(drop),
        ),
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
        types: Types::prose(&[], "`null`.", |_| Ok(())),
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
        types: Types::prose(
            &[Param::optional(
                "profile_id",
                Kind::String,
                "no states of single profiles",
                "Any name: then `state_profile` is in the reply.",
            )],
            "`epoch`: how often traffic has begun. `state`: that of the busiest profile. \
                `state_profile`: by profile.",
            |f| Sync::parse(f).map(drop),
        ),
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
        types: Types::prose(&[], "`epoch`.", |_| Ok(())),
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
        types: Types::prose(
            &[
                Param::required("enabled", Kind::Boolean, "On or off."),
                Param::optional(
                    "filtered",
                    Kind::Boolean,
                    "false",
                    "On, for some classes of frames only.",
                ),
                Param::optional(
                    "mask",
                    Kind::Byte,
                    "0",
                    "Classes of frames, as bits: 1 neither TCP nor UDP (always set while filtered), 2 \
                 BGP, 4 DHCP, 8 TCP and UDP ports from 0xff00, 16 multicast DNS.",
                ),
            ],
            "`{}`.",
            |f| ContextService::parse(f).map(drop),
        ),
        errors: &[],
        example: Example {
            params: r#"{"enabled": true, "filtered": false, "mask": 0}"#,
            result: "{}",
        },
    },
];
