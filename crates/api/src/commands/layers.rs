//! Commands about the addresses of a port: layer 2, layer 3, IPv6, VLAN; and packets pushed out
//! of it at once.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::command::{Access, Command, Empty, Example, Types};
use crate::fields::{FieldError, Fields};
use crate::json_schema::JsonSchema;
use crate::method::{Method, PortMethod, StatelessMethod};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// Most VLAN tags of a port.
pub const VLAN_TAGS_MAX: usize = 2;
/// The highest VLAN tag.
const VLAN_TAG_MAX: u16 = 4095;
/// Most packets of one `push_pkts`.
pub const PUSHED_PACKETS_MAX: usize = 20_000;
/// The longest time that one `push_pkts` may take, in microseconds.
pub const PUSHED_US_MAX: u64 = 1_000_000;

/// Parameters of `set_l2`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct SetL2 {
    /// Accepted; nothing here takes long.
    #[schemars(extend("x-default" = "true"))]
    pub block: Option<bool>,
    /// The port's number.
    #[serde(rename = "port_id")]
    pub port: u8,
    /// Where its frames go, as `aa:bb:cc:dd:ee:ff`.
    #[serde(rename = "dst_mac", deserialize_with = "mac")]
    #[schemars(with = "String")]
    pub destination_mac: [u8; 6],
}

/// Parameters of `set_l3`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct SetL3 {
    /// Accepted; nothing here takes long.
    #[schemars(extend("x-default" = "true"))]
    pub block: Option<bool>,
    /// The port's number.
    #[serde(rename = "port_id")]
    pub port: u8,
    /// The port's own IPv4 address.
    #[serde(rename = "src_addr", deserialize_with = "ipv4")]
    #[schemars(with = "String")]
    pub source: Ipv4Addr,
    /// The gateway's or peer's, which its frames go to.
    #[serde(rename = "dst_addr", deserialize_with = "ipv4")]
    #[schemars(with = "String")]
    pub destination: Ipv4Addr,
    /// The MAC address that ARP found for `dst_addr`.
    #[serde(default, deserialize_with = "some_mac")]
    #[schemars(with = "Option<String>", extend("x-default" = "not resolved"))]
    pub resolved_mac: Option<[u8; 6]>,
}

/// Parameters of `conf_ipv6`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct ConfigureIpv6 {
    /// Accepted; nothing here takes long.
    #[schemars(extend("x-default" = "true"))]
    pub block: Option<bool>,
    /// The port's address; empty is the link-local one of its MAC address (RFC 4291).
    #[serde(rename = "src_ipv6", default, deserialize_with = "some_ipv6")]
    #[schemars(with = "Option<String>", extend("x-default" = "\"\""))]
    pub source: Option<Ipv6Addr>,
    /// The port's number.
    #[serde(rename = "port_id")]
    pub port: u8,
    /// On or off.
    pub enabled: bool,
}

/// Parameters of `set_vlan`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct SetVlan {
    /// Accepted; nothing here takes long.
    #[schemars(extend("x-default" = "true"))]
    pub block: Option<bool>,
    /// None, one or two of 1 to 4095, the outer first.
    #[serde(rename = "vlan", deserialize_with = "vlan")]
    pub tags: Vec<u16>,
    /// The port's number.
    #[serde(rename = "port_id")]
    pub port: u8,
}

impl SetVlan {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'_>) -> Result<SetVlan, FieldError> {
        let params: SetVlan = fields.read()?;
        // A tag has 12 bits: beyond them its type is wrong, as of any number.
        fields.uint_array("vlan", VLAN_TAG_MAX.into(), "uint16")?;
        if params.tags.contains(&0) {
            return Err(fields.bad("vlan", "has the tag 0; give 1 to 4095"));
        }
        Ok(params)
    }
}

/// The highest network number of VXLAN.
pub const VNI_MAX: u32 = (1 << 24) - 1;
/// Where VXLAN listens (RFC 7348, section 8). As nothing is imported from `packet`, it stands here too; the
/// server checks that both are the same.
pub const VXLAN_PORT: u16 = 4789;

/// Parameters of `set_vxlan`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct SetVxlan {
    /// Accepted; nothing here takes long.
    #[schemars(extend("x-default" = "true"))]
    pub block: Option<bool>,
    /// The tunnel; none takes it away.
    #[serde(default)]
    pub vxlan: Option<VxlanTunnel>,
    /// The port's number.
    #[serde(rename = "port_id")]
    pub port: u8,
}

/// One end of a network of VXLAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VxlanTunnel {
    /// The number of the network, 0 to 16777215.
    pub vni: u32,
    /// The address of this end (VTEP).
    #[serde(default, deserialize_with = "some_ipv4")]
    #[schemars(with = "Option<String>", extend("x-default" = "the port's IPv4 address"))]
    pub local: Option<Ipv4Addr>,
    /// The address of the other end, which clients send to. Servers answer to whoever asked.
    #[serde(default, deserialize_with = "some_ipv4")]
    #[schemars(with = "Option<String>", extend("x-default" = "the port's gateway"))]
    pub remote: Option<Ipv4Addr>,
    /// The UDP port of both ends.
    #[serde(default = "vxlan_port")]
    pub udp_port: u16,
    /// Where frames go inside of the tunnel.
    #[serde(default, deserialize_with = "some_mac")]
    #[schemars(with = "Option<String>", extend("x-default" = "the port's destination"))]
    pub inner_mac: Option<[u8; 6]>,
    /// Takes frames of any network, and answers in it.
    #[serde(default)]
    pub any_vni: bool,
}

fn vxlan_port() -> u16 {
    VXLAN_PORT
}

impl VxlanTunnel {
    /// One with nothing but a number.
    pub fn new(vni: u32) -> VxlanTunnel {
        VxlanTunnel {
            vni,
            local: None,
            remote: None,
            udp_port: VXLAN_PORT,
            inner_mac: None,
            any_vni: false,
        }
    }
}

impl SetVxlan {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'_>) -> Result<SetVxlan, FieldError> {
        let params: SetVxlan = fields.read()?;
        let vni = params.vxlan.map_or(0, |vxlan| vxlan.vni);
        if vni > VNI_MAX {
            let problem = format!("has vni {vni}; give 0 to {VNI_MAX}");
            return Err(fields.bad("vxlan", problem));
        }
        Ok(params)
    }
}

/// Parameters of `push_pkts`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct PushPackets<'a> {
    /// Accepted.
    #[serde(default)]
    pub force: bool,
    /// 1 to 20,000, in the order of sending.
    #[serde(rename = "pkts", borrow)]
    pub packets: Vec<PushedPacket<'a>>,
    /// Microseconds between one packet and the next; all together take at most 1 s.
    #[serde(rename = "ipg_usec", default)]
    pub gap_us: u32,
    /// The port's number.
    #[serde(rename = "port_id")]
    pub port: u8,
}

/// One packet of `push_pkts`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct PushedPacket<'a> {
    /// The frame without FCS, 14 to 9238 bytes as base64.
    #[serde(rename = "binary")]
    pub base64: &'a str,
    /// It gets the destination MAC of the port.
    #[serde(rename = "use_port_dst_mac")]
    pub port_destination_mac: bool,
    /// It gets the source MAC of the port.
    #[serde(rename = "use_port_src_mac")]
    pub port_source_mac: bool,
}

impl<'a> PushPackets<'a> {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'a>) -> Result<PushPackets<'a>, FieldError> {
        let params: PushPackets<'a> = fields.read()?;
        let count = params.packets.len();
        if !(1..=PUSHED_PACKETS_MAX).contains(&count) {
            let problem = format!("has {count} packets; give 1 to {PUSHED_PACKETS_MAX}");
            return Err(fields.bad("pkts", problem));
        }
        if count as u64 * u64::from(params.gap_us) > PUSHED_US_MAX {
            let problem = "makes the packets last longer than 1 s; push fewer, or use a stream";
            return Err(fields.bad("ipg_usec", problem));
        }
        Ok(params)
    }
}

/// Reply of `push_pkts`.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct PacketsPushed {
    /// How many packets.
    pub sent: usize,
    /// When the first leaves, in seconds of the server's clock.
    pub ts: f64,
}

fn vlan<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u16>, D::Error> {
    let tags = Vec::<u16>::deserialize(deserializer)?;
    if tags.len() > VLAN_TAGS_MAX {
        let count = tags.len();
        let problem = format_args!("has {count} tags; the most is {VLAN_TAGS_MAX}");
        return Err(D::Error::custom(problem));
    }
    Ok(tags)
}

/// Reads an IPv4 address.
pub(crate) fn ipv4<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Ipv4Addr, D::Error> {
    let text = <&str>::deserialize(deserializer)?;
    text.parse().map_err(|_| {
        D::Error::custom(format_args!(
            "is '{text:.64}'; give an IPv4 address such as 192.0.2.1"
        ))
    })
}

/// Reads an address that may be missing.
pub(crate) fn some_ipv4<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Ipv4Addr>, D::Error> {
    ipv4(deserializer).map(Some)
}

/// Reads an address that may be missing.
pub(crate) fn some_ipv6<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Ipv6Addr>, D::Error> {
    let text = <&str>::deserialize(deserializer)?;
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| {
        D::Error::custom(format_args!(
            "is '{text:.64}'; give an IPv6 address such as 2001:db8::1"
        ))
    })
}

/// Reads a MAC address.
pub(crate) fn mac<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[u8; 6], D::Error> {
    let text = <&str>::deserialize(deserializer)?;
    parse_mac(text).ok_or_else(|| {
        D::Error::custom(format_args!(
            "is '{text:.64}'; give a MAC address such as 02:00:00:00:00:01"
        ))
    })
}

/// Reads a MAC address that may be missing.
pub(crate) fn some_mac<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<[u8; 6]>, D::Error> {
    mac(deserializer).map(Some)
}

fn parse_mac(text: &str) -> Option<[u8; 6]> {
    let mut mac = [0; 6];
    let mut parts = text.split(':');
    let all_read = mac.iter_mut().all(|byte| {
        let part = parts.next().filter(|part| (1..=2).contains(&part.len()));
        let value = part.and_then(|part| u8::from_str_radix(part, 16).ok());
        value.map(|value| *byte = value).is_some()
    });
    (all_read && parts.next().is_none()).then_some(mac)
}

/// The items of the command table.
pub const COMMANDS: &[Command] = &[
    Command {
        method: Method::Ports(PortMethod::SetL2),
        name: "set_l2",
        access: Access::Api,
        doc: "Layer 2 mode: frames of the port go to this MAC address, unless a stream has its \
              own. Ends layer 3 mode. As in TRex, it takes no handler.",
        types: Types::of::<SetL2, Empty>(),
        errors: &["no such port", "the port transmits"],
        example: Example {
            params: r#"{"port_id": 0, "dst_mac": "02:00:00:00:00:02", "block": false}"#,
            result: "{}",
        },
    },
    Command {
        method: Method::Ports(PortMethod::SetL3),
        name: "set_l3",
        access: Access::Api,
        doc: "Layer 3 mode: the port has an IPv4 address, and its frames go to another, whose \
              MAC address the client finds by ARP. Until it is given, streams that take the \
              port's destination cannot start. As in TRex, it takes no handler.",
        types: Types::of::<SetL3, Empty>(),
        errors: &["no such port", "the port transmits"],
        example: Example {
            params: r#"{"port_id": 0, "src_addr": "192.0.2.1", "dst_addr": "192.0.2.2", "resolved_mac": "02:00:00:00:00:02", "block": false}"#,
            result: "{}",
        },
    },
    Command {
        method: Method::Ports(PortMethod::ConfigureIpv6),
        name: "conf_ipv6",
        access: Access::Api,
        doc: "Switches IPv6 of the port on or off. As in TRex, it takes no handler.",
        types: Types::of::<ConfigureIpv6, Empty>(),
        errors: &["no such port", "the port transmits"],
        example: Example {
            params: r#"{"port_id": 0, "enabled": true, "src_ipv6": "2001:db8::1", "block": false}"#,
            result: "{}",
        },
    },
    Command {
        method: Method::Ports(PortMethod::SetVlan),
        name: "set_vlan",
        access: Access::Api,
        doc: "The VLAN tags that the client puts on its own packets (ARP, ping) on this port. \
              Streams have the tags of their packets. In stateful mode flows have it too, and there is \
              one at most. As in TRex, it takes no handler.",
        types: Types::of::<SetVlan, Empty>(),
        errors: &[
            "no such port",
            "the port transmits",
            "two tags in stateful mode",
        ],
        example: Example {
            params: r#"{"port_id": 0, "vlan": [100, 200], "block": false}"#,
            result: "{}",
        },
    },
    Command {
        method: Method::Ports(PortMethod::SetVxlan),
        name: "set_vxlan",
        access: Access::Api,
        doc: "The tunnel of VXLAN (RFC 7348) that flows and streams of the port are in. Clients send in it, \
              frames of the port are recognised by it, servers answer in what they were asked in. Frames of \
              another network are counted in `err_tunnel_network`, with streams in the port's extended \
              counter `rx_tunnel_network_errors`. Streams are sent in it, and looked for in it. Pushed packets \
              and replayed captures leave as they are. TRex has no such method.",
        types: Types::of::<SetVxlan, Empty>(),
        errors: &[
            "no such port",
            "the port transmits",
            "the number is above 16777215",
            "an end has no address",
        ],
        example: Example {
            params: r#"{"port_id": 0, "vxlan": {"vni": 100, "local": "192.0.2.1", "remote": "192.0.2.2", "inner_mac": "02:00:00:00:00:02"}}"#,
            result: "{}",
        },
    },
    Command {
        method: Method::Stateless(StatelessMethod::PushPackets),
        name: "push_pkts",
        access: Access::Api,
        doc: "Sends packets out of the port, once, beside whatever runs there. As in TRex, it takes no \
              handler.",
        types: Types::of::<PushPackets<'static>, PacketsPushed>(),
        errors: &["no such port", "a packet is too short or too long"],
        example: Example {
            params: r#"{"port_id": 0, "pkts": [{"binary": "////////AgAAAAABCAYAAQgABgQAAQIAAAAAAQEBAQEAAAAAAAABAQEC", "use_port_dst_mac": false, "use_port_src_mac": false}], "ipg_usec": 1000}"#,
            result: r#"{"sent": 1, "ts": 29.216}"#,
        },
    },
];
