//! Commands about ports: state, attributes and ownership.

use crate::command::{Access, Command, Example, Kind, PORT_ID, PROFILE_ID, Param, Types};
use crate::fields::{FieldError, Fields};
use crate::limits::{LEASE_S_MAX, LEASE_S_MIN, USER_BYTES_MAX, VXLAN_PORTS_MAX};
use crate::method::{Method, PortMethod};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Parameters of commands that name a port only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct PortParams {
    /// The port's number.
    #[serde(rename = "port_id")]
    pub port: u8,
}

/// Reads the parameter `port_id`.
pub fn port_id(fields: &Fields<'_>) -> Result<u8, FieldError> {
    fields.byte("port_id")
}

/// The profile of a command, `_` when none is named.
pub fn profile_id(fields: &Fields<'_>) -> Result<String, FieldError> {
    let name = fields.optional(PROFILE_ID.name, Fields::string)?;
    Ok(name.unwrap_or("_").to_owned())
}

/// Reads the parameter `lease_s`: after how many seconds without a word of the owner what it owns
/// is stopped and released. `None` is never.
pub fn lease_s(fields: &Fields<'_>) -> Result<Option<f64>, FieldError> {
    let Some(lease_s) = fields.optional(LEASE_S.name, Fields::double)? else {
        return Ok(None);
    };
    if (LEASE_S_MIN..=LEASE_S_MAX).contains(&lease_s) {
        return Ok(Some(lease_s));
    }
    let problem = format!("is {lease_s}; give {LEASE_S_MIN} to {LEASE_S_MAX} seconds");
    Err(fields.bad(LEASE_S.name, problem))
}

/// The parameter of `acquire` that TRex's clients do not know.
pub const LEASE_S: Param = Param::optional(
    "lease_s",
    Kind::Double,
    "no end",
    "For how many seconds, 1 to 3600, the server waits for the next request of the owner: one with \
     the `handler`, or `get_async_events` with the session. Without any, it stops the traffic \
     that this session has started, releases what was acquired (events 1 and 6) and logs why. Time in which the server itself \
     stands still does not count.",
);

/// Parameters of `get_port_status`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortStatusParams {
    /// The port.
    pub port: u8,
    /// The profile whose state is wanted too; `*` for all.
    pub profile: Option<String>,
}

impl PortStatusParams {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'_>) -> Result<PortStatusParams, FieldError> {
        fields.optional("block", Fields::boolean)?;
        Ok(PortStatusParams {
            port: port_id(fields)?,
            profile: fields
                .optional("profile_id", Fields::string)?
                .map(str::to_owned),
        })
    }
}

/// Parameters of `set_port_attr`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetPortAttribute {
    /// The port.
    pub port: u8,
    /// Take frames for other MAC addresses.
    pub promiscuous: Option<bool>,
    /// Take all multicast frames.
    pub multicast: Option<bool>,
    /// Switch the link up or down.
    pub link_up: Option<bool>,
    /// The UDP ports that carry VXLAN besides 4789.
    pub vxlan_ports: Option<Vec<u16>>,
    /// The names of other attributes that were given.
    pub others: Vec<String>,
}

impl SetPortAttribute {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'_>) -> Result<SetPortAttribute, FieldError> {
        let attributes = fields.object("attr")?;
        let mut params = SetPortAttribute {
            port: port_id(fields)?,
            ..SetPortAttribute::default()
        };
        for name in attributes.names() {
            match name {
                "promiscuous" => params.promiscuous = enabled(&attributes, name)?,
                "multicast" => params.multicast = enabled(&attributes, name)?,
                "link_status" => {
                    params.link_up = attributes.object(name)?.boolean("up").map(Some)?;
                }
                "vxlan_fs" => params.vxlan_ports = vxlan_ports(&attributes, name).map(Some)?,
                other => params.others.push(other.to_owned()),
            }
        }
        Ok(params)
    }
}

fn enabled(attributes: &Fields<'_>, name: &str) -> Result<Option<bool>, FieldError> {
    attributes.object(name)?.boolean("enabled").map(Some)
}

fn vxlan_ports(attributes: &Fields<'_>, name: &str) -> Result<Vec<u16>, FieldError> {
    let ports = attributes.uint_array(name, u16::MAX.into(), "uint16")?;
    if ports.len() > VXLAN_PORTS_MAX {
        let problem = format!("has {} ports; the most is {VXLAN_PORTS_MAX}", ports.len());
        return Err(attributes.bad(name, problem));
    }
    if ports.contains(&0) {
        return Err(attributes.bad(name, "has port 0; give ports from 1 to 65535"));
    }
    Ok(ports.into_iter().map(|port| port as u16).collect())
}

/// Parameters of `acquire`.
#[derive(Clone, Debug, PartialEq)]
pub struct Acquire {
    /// The port.
    pub port: u8,
    /// Who takes it.
    pub user: String,
    /// The user's session; not 0.
    pub session: u32,
    /// Even when it belongs to somebody.
    pub force: bool,
    /// How long the owner may be silent, in seconds.
    pub lease_s: Option<f64>,
}

impl Acquire {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'_>) -> Result<Acquire, FieldError> {
        let session = fields.uint32("session_id")?;
        if session == 0 {
            return Err(fields.bad("session_id", "is 0; it must be a number above 0"));
        }
        let user = fields.string("user")?;
        if user.is_empty() {
            // An owner without a name looks like none.
            return Err(fields.bad("user", "is empty; give a name"));
        }
        if user.len() > USER_BYTES_MAX {
            let problem = format!("has {} bytes; the most is {USER_BYTES_MAX}", user.len());
            return Err(fields.bad("user", problem));
        }
        Ok(Acquire {
            port: port_id(fields)?,
            user: user.to_owned(),
            session,
            force: fields.boolean("force")?,
            lease_s: lease_s(fields)?,
        })
    }
}

/// Reply of `get_port_status`.
#[derive(Clone, Debug, Serialize)]
pub struct PortStatus {
    /// The owner; empty when free.
    pub owner: String,
    /// `IDLE`, `STREAMS` or `TX`: the busiest of its profiles.
    pub state: &'static str,
    /// The state of the profile that was asked for, or of each for `*`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_profile: Option<Value>,
    /// Service mode.
    pub service: bool,
    /// Service mode for some protocols only.
    pub service_filtered: bool,
    /// Profiles on the port; at least one.
    pub profile_count: usize,
    /// The highest stream number on the port.
    pub max_stream_id: u32,
    /// Attributes.
    pub attr: PortAttributes,
    /// Receive features.
    pub rx_info: Value,
}

/// Attributes of a port.
#[derive(Clone, Debug, Serialize)]
pub struct PortAttributes {
    /// Takes frames for other MAC addresses.
    pub promiscuous: Enabled,
    /// Takes all multicast frames.
    pub multicast: Enabled,
    /// The link.
    pub link: Link,
    /// Line rate in Gb/s.
    pub speed: f64,
    /// What reaches the receive thread.
    pub rx_filter_mode: &'static str,
    /// UDP ports that are VXLAN.
    pub vxlan_fs: Vec<u16>,
    /// Flow control: mode −1 for a port without.
    pub fc: Value,
    /// VLAN tags of the port itself.
    pub vlan: Value,
    /// Addresses.
    pub layer_cfg: Value,
}

/// Something that is on or off.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Enabled {
    /// On.
    pub enabled: bool,
}

/// The link of a port.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Link {
    /// Up.
    pub up: bool,
    /// Why it is down, where that is known.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub cause: &'static str,
    /// The MTU of the interface, where it is not what it was when the server started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<MtuChange>,
}

/// An MTU that somebody has changed while the server runs, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MtuChange {
    /// Now.
    pub now: usize,
    /// When the server started.
    pub at_start: usize,
}

/// The items of the command table.
pub const COMMANDS: &[Command] = &[
    Command {
        method: Method::Ports(PortMethod::PortStatus),
        name: "get_port_status",
        access: Access::Api,
        doc: "Owner, state, attributes and receive features of a port.",
        types: Types::prose(
            &[
                PORT_ID,
                Param::optional(
                    "profile_id",
                    Kind::String,
                    "no `state_profile` in the reply",
                    "The profile whose state is wanted too; `*` for all.",
                ),
                Param::optional(
                    "block",
                    Kind::Boolean,
                    "true",
                    "Accepted; nothing here takes long.",
                ),
            ],
            "`owner` (empty when free), `state` (`IDLE`, `STREAMS`, `TX`), `state_profile` (a \
                string, or an object by profile for `*`), `service`, `service_filtered`, \
                `profile_count`, `max_stream_id`, `attr`, `rx_info`.",
            |f| PortStatusParams::parse(f).map(drop),
        ),
        errors: &["no such port", "no such profile"],
        example: Example {
            params: r#"{"port_id": 0, "profile_id": "*", "block": false}"#,
            result: r#"{"owner": "", "state": "IDLE", "state_profile": {"_": "IDLE"}, "service": false, "service_filtered": false, "profile_count": 1, "max_stream_id": 0, "attr": {"promiscuous": {"enabled": false}, "multicast": {"enabled": false}, "link": {"up": true}, "speed": 100.0, "rx_filter_mode": "all", "vxlan_fs": [], "fc": {"mode": -1}, "vlan": {"tags": []}, "layer_cfg": {"ether": {"src": "02:a1:05:00:00:00", "dst": "02:a1:05:00:00:01", "state": "configured"}, "ipv4": {"state": "none"}, "ipv6": {"enabled": false}}}, "rx_info": {"latency": {"is_active": false}, "queue": {"is_active": false}, "stack": {"is_active": false}, "grat_arp": {"is_active": false}, "capture_port": {"is_active": false}, "capwap_proxy": {"is_active": false}}}"#,
        },
    },
    Command {
        method: Method::Ports(PortMethod::Owner),
        name: "get_owner",
        access: Access::Api,
        doc: "Who owns a port.",
        types: Types::prose(
            &[PORT_ID],
            "`owner`: the user, `<FREE>` when there is none.",
            |f| port_id(f).map(drop),
        ),
        errors: &["no such port"],
        example: Example {
            params: r#"{"port_id": 0}"#,
            result: r#"{"owner": "<FREE>"}"#,
        },
    },
    Command {
        method: Method::Ports(PortMethod::SetPortAttribute),
        name: "set_port_attr",
        access: Access::Api,
        doc: "Sets attributes of a port. In stateful mode a port that is not `promiscuous` takes frames \
              to its own MAC address, broadcasts, and multicast to all hosts, all nodes and solicited \
              nodes, or with `multicast` all of it; others are dropped and counted nowhere. With streams \
              alone, in-memory ports take every frame, and interfaces what their drivers let through. \
              `link_status` switches the \
              link, which the two ports of a pair share: while it is down, what is sent is lost \
              and counted as lost, in both directions, and so is what was under way. `vxlan_fs` \
              are UDP ports that carry VXLAN besides 4789, for `flow_stats.vxlan`: streams of \
              this port may use them, and what arrives at it within them is counted; an empty \
              list forgets them. Sends event 8 for each port that has changed. An error changes \
              nothing.",
        types: Types::prose(
            &[
                PORT_ID,
                Param::required(
                    "attr",
                    Kind::Object,
                    "`promiscuous: {enabled}`, `multicast: {enabled}`, `link_status: {up}`, \
                 `vxlan_fs: [UDP port]`.",
                ),
            ],
            "`{}`.",
            |f| SetPortAttribute::parse(f).map(drop),
        ),
        errors: &[
            "no such port",
            "unknown attribute",
            "the port cannot do it: `led_status`, `flow_ctrl_mode`",
            "more UDP ports than may be named",
        ],
        example: Example {
            params: r#"{"port_id": 0, "attr": {"promiscuous": {"enabled": true}}}"#,
            result: "{}",
        },
    },
    Command {
        method: Method::Ports(PortMethod::Acquire),
        name: "acquire",
        access: Access::Api,
        doc: "Takes a port, so that nobody else changes it. The same user and session get their \
              handler again; with `force`, a new one. Creates the session's event queue.",
        types: Types::prose(
            &[
                PORT_ID,
                Param::required("user", Kind::String, "Who takes it."),
                Param::required("session_id", Kind::Uint32, "The user's session, above 0."),
                Param::required("force", Kind::Boolean, "Even when it belongs to somebody."),
                LEASE_S,
            ],
            "The handler, a string: commands that change the port must carry it.",
            |f| Acquire::parse(f).map(drop),
        ),
        errors: &[
            "no such port",
            "the port belongs to another user, or to another session of the same, and `force` \
             is false",
            "the port is in stateful mode, where somebody has it or flows run, and `force` is \
             false; with it, stateful mode loses its owner and its flows end",
        ],
        example: Example {
            params: r#"{"port_id": 0, "user": "ann", "session_id": 3415546078, "force": false}"#,
            result: r#""9gEFztcg""#,
        },
    },
    Command {
        method: Method::Ports(PortMethod::Release),
        name: "release",
        access: Access::Owner,
        doc: "Gives a port back. Its traffic goes on, and its streams stay.",
        types: Types::prose(&[PORT_ID], "`{}`.", |f| port_id(f).map(drop)),
        errors: &["no such port", "the port is not yours"],
        example: Example {
            params: r#"{"port_id": 0}"#,
            result: "{}",
        },
    },
];
