//! The attributes of a port, as its status and the event of their change have them.

use crate::json_schema::JsonSchema;
use serde::Serialize;

/// Attributes of a port.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
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
    pub fc: FlowControl,
    /// VLAN tags of the port itself; absent in events that do not change it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vlan: Option<VlanTags>,
    /// Addresses; absent in events that do not change them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer_cfg: Option<LayerConfig>,
}

/// Flow control of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FlowControl {
    /// −1 for a port without.
    pub mode: i32,
}

/// The VLAN tags of a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct VlanTags {
    /// The outer first.
    pub tags: Vec<u16>,
}

/// The addresses of a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LayerConfig {
    /// Layer 2.
    pub ether: EtherConfig,
    /// Layer 3.
    pub ipv4: Ipv4Config,
    /// IPv6.
    pub ipv6: Ipv6Config,
}

/// The MAC addresses of a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EtherConfig {
    /// Its own.
    pub src: String,
    /// Where its frames go.
    pub dst: String,
    /// `configured`, or `unconfigured` while the gateway's is not known.
    pub state: &'static str,
}

/// The IPv4 addresses of a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Ipv4Config {
    /// `none` in layer 2 mode, or whether the gateway's MAC address is known: `resolved` or
    /// `unresolved`.
    pub state: &'static str,
    /// Its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub src: Option<String>,
    /// The gateway's or peer's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dst: Option<String>,
}

/// The IPv6 address of a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Ipv6Config {
    /// On.
    pub enabled: bool,
    /// Its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub src: Option<String>,
}

/// Something that is on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Enabled {
    /// On.
    pub enabled: bool,
}

/// The link of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MtuChange {
    /// Now.
    pub now: usize,
    /// When the server started.
    pub at_start: usize,
}
