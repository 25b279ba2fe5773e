//! Commands about ports: state, attributes and ownership.

use std::collections::BTreeMap;

use crate::command::{Access, AnyObject, Command, Empty, Example, Types};
use crate::fields::{FieldError, Fields};
use crate::json_schema::JsonSchema;
use crate::limits::{LEASE_S_MAX, LEASE_S_MIN, USER_BYTES_MAX, VXLAN_PORTS_MAX};
use crate::method::{Method, PortMethod};
pub use crate::port_attributes::{
    Enabled, EtherConfig, FlowControl, Ipv4Config, Ipv6Config, LayerConfig, Link, MtuChange,
    PortAttributes, VlanTags,
};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// Parameters of commands that name a port only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct PortParams {
    /// The port's number.
    #[serde(rename = "port_id")]
    pub port: u8,
}

/// The profile of a command that names none.
pub(crate) fn default_profile() -> String {
    "_".to_owned()
}

/// Reads `lease_s`: after how many seconds without a word of the owner what it owns is stopped and
/// released. `None` is never.
pub(crate) fn lease_s<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let lease_s = f64::deserialize(deserializer)?;
    if (LEASE_S_MIN..=LEASE_S_MAX).contains(&lease_s) {
        return Ok(Some(lease_s));
    }
    let problem = format_args!("is {lease_s}; give {LEASE_S_MIN} to {LEASE_S_MAX} seconds");
    Err(D::Error::custom(problem))
}

/// Parameters of `get_port_status`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct PortStatusParams {
    /// Accepted; nothing here takes long.
    #[schemars(extend("x-default" = "true"))]
    pub block: Option<bool>,
    /// The port's number.
    #[serde(rename = "port_id")]
    pub port: u8,
    /// The profile whose state is wanted too; `*` for all.
    #[serde(rename = "profile_id")]
    #[schemars(extend("x-default" = "no `state_profile` in the reply"))]
    pub profile: Option<String>,
}

/// Parameters of `set_port_attr`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct PortAttributeParams {
    /// What to change: `promiscuous: {enabled}`, `multicast: {enabled}`, `link_status: {up}`,
    /// `vxlan_fs: [UDP port]`.
    #[serde(rename = "attr")]
    pub attributes: AnyObject,
    /// The port's number.
    #[serde(rename = "port_id")]
    pub port: u8,
}

/// What `set_port_attr` is to change.
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
        let PortAttributeParams { port, .. } = fields.read()?;
        let attributes = fields.object("attr")?;
        let mut params = SetPortAttribute {
            port,
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
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct Acquire {
    /// The user's session, above 0.
    #[serde(rename = "session_id", deserialize_with = "session")]
    pub session: u32,
    /// Who takes it.
    #[serde(deserialize_with = "user")]
    pub user: String,
    /// The port's number.
    #[serde(rename = "port_id")]
    pub port: u8,
    /// Even when it belongs to somebody.
    pub force: bool,
    /// For how many seconds, 1 to 3600, the server waits for the next request of the owner: one with
    /// the `handler`, or `get_async_events` with the session. Without any, it stops the traffic that
    /// this session has started, releases what was acquired (events 1 and 6) and logs why. Time in
    /// which the server itself stands still does not count.
    #[serde(default, deserialize_with = "lease_s")]
    #[schemars(extend("x-default" = "no end"))]
    pub lease_s: Option<f64>,
}

pub(crate) fn session<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        0 => Err(D::Error::custom("is 0; it must be a number above 0")),
        session => Ok(session),
    }
}

pub(crate) fn user<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let user = String::deserialize(deserializer)?;
    if user.is_empty() {
        // An owner without a name looks like none.
        return Err(D::Error::custom("is empty; give a name"));
    }
    if user.len() > USER_BYTES_MAX {
        let bytes = user.len();
        let problem = format_args!("has {bytes} bytes; the most is {USER_BYTES_MAX}");
        return Err(D::Error::custom(problem));
    }
    Ok(user)
}

/// The handler, a string: commands that change the port must carry it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Handler(pub String);

/// Reply of `get_owner`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PortOwnerName {
    /// The user, `<FREE>` when there is none.
    pub owner: String,
}

/// Reply of `get_port_status`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PortStatus {
    /// The owner; empty when free.
    pub owner: String,
    /// `IDLE`, `STREAMS` or `TX`: the busiest of its profiles.
    pub state: &'static str,
    /// The state of the profile that was asked for, or for `*` of each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_profile: Option<ProfileStates>,
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
    pub rx_info: ReceiveFeatures,
}

/// The states of a port's profiles.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ProfileStates {
    /// Of one.
    One(&'static str),
    /// Of all, by name.
    All(BTreeMap<String, &'static str>),
}

/// What watches a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ReceiveFeatures {
    /// Always off.
    pub latency: Feature,
    /// The receive queue.
    pub queue: QueueFeature,
    /// Always on.
    pub stack: Feature,
    /// Whether the port announces its IPv4 address.
    pub grat_arp: AnnounceFeature,
    /// The socket that the port is joined to.
    pub capture_port: SocketFeature,
    /// Always off.
    pub capwap_proxy: Feature,
}

/// A receive feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Feature {
    /// On.
    pub is_active: bool,
}

/// A receive queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct QueueFeature {
    /// On.
    pub is_active: bool,
    /// Frames that it keeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u32>,
    /// Frames that it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
}

/// Announcements of an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AnnounceFeature {
    /// On.
    pub is_active: bool,
    /// Seconds between two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval_sec: Option<u64>,
}

/// A socket that a port is joined to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SocketFeature {
    /// On.
    pub is_active: bool,
    /// Its address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Which of the received frames, in the language of tcpdump.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bpf_filter: Option<String>,
    /// Always true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub socket_open: Option<bool>,
}

/// The items of the command table.
pub const COMMANDS: &[Command] = &[
    Command {
        method: Method::Ports(PortMethod::PortStatus),
        name: "get_port_status",
        access: Access::Api,
        doc: "Owner, state, attributes and receive features of a port.",
        types: Types::of::<PortStatusParams, PortStatus>(),
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
        types: Types::of::<PortParams, PortOwnerName>(),
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
        types: Types::of::<PortAttributeParams, Empty>(),
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
        types: Types::of::<Acquire, Handler>(),
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
        types: Types::of::<PortParams, Empty>(),
        errors: &["no such port", "the port is not yours"],
        example: Example {
            params: r#"{"port_id": 0}"#,
            result: "{}",
        },
    },
];
