//! Commands about the addresses of a port: layer 2, layer 3, IPv6, VLAN; and packets pushed out
//! of it at once.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::command::{Access, Command, Example, Kind, PORT_ID, Param, Types};
use crate::commands::ports::port_id;
use crate::fields::{FieldError, Fields};
use crate::method::{Method, PortMethod, StatelessMethod};

/// Most VLAN tags of a port.
pub const VLAN_TAGS_MAX: usize = 2;
/// Most packets of one `push_pkts`.
pub const PUSHED_PACKETS_MAX: usize = 20_000;
/// The longest time that one `push_pkts` may take, in microseconds.
pub const PUSHED_US_MAX: u64 = 1_000_000;

/// Parameters of `set_l2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetL2 {
    /// The port.
    pub port: u8,
    /// Where its frames go.
    pub destination_mac: [u8; 6],
}

impl SetL2 {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'_>) -> Result<SetL2, FieldError> {
        block(fields)?;
        Ok(SetL2 {
            port: port_id(fields)?,
            destination_mac: mac(fields, "dst_mac")?,
        })
    }
}

/// Parameters of `set_l3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetL3 {
    /// The port.
    pub port: u8,
    /// Its own address.
    pub source: Ipv4Addr,
    /// The gateway or peer that its frames go to.
    pub destination: Ipv4Addr,
    /// The MAC address that ARP found for the destination; without, it is not resolved yet.
    pub resolved_mac: Option<[u8; 6]>,
}

impl SetL3 {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'_>) -> Result<SetL3, FieldError> {
        block(fields)?;
        Ok(SetL3 {
            port: port_id(fields)?,
            source: ipv4(fields, "src_addr")?,
            destination: ipv4(fields, "dst_addr")?,
            resolved_mac: fields.optional("resolved_mac", mac)?,
        })
    }
}

/// Parameters of `conf_ipv6`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigureIpv6 {
    /// The port.
    pub port: u8,
    /// On or off.
    pub enabled: bool,
    /// Its address; without, the link-local one that follows from its MAC address.
    pub source: Option<Ipv6Addr>,
}

impl ConfigureIpv6 {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'_>) -> Result<ConfigureIpv6, FieldError> {
        block(fields)?;
        let text = fields.optional("src_ipv6", Fields::string)?;
        let source = match text.filter(|text| !text.is_empty()) {
            None => None,
            Some(text) => Some(text.parse().map_err(|_| {
                let problem = format!("is '{text:.64}'; give an IPv6 address such as 2001:db8::1");
                fields.bad("src_ipv6", problem)
            })?),
        };
        Ok(ConfigureIpv6 {
            port: port_id(fields)?,
            enabled: fields.boolean("enabled")?,
            source,
        })
    }
}

/// Parameters of `set_vlan`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetVlan {
    /// The port.
    pub port: u8,
    /// Outer tag first; none, one or two.
    pub tags: Vec<u16>,
}

impl SetVlan {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'_>) -> Result<SetVlan, FieldError> {
        block(fields)?;
        let tags = fields.uint_array("vlan", 4095, "uint16")?;
        if tags.len() > VLAN_TAGS_MAX {
            let problem = format!("has {} tags; the most is {VLAN_TAGS_MAX}", tags.len());
            return Err(fields.bad("vlan", problem));
        }
        if tags.contains(&0) {
            return Err(fields.bad("vlan", "has the tag 0; give 1 to 4095"));
        }
        Ok(SetVlan {
            port: port_id(fields)?,
            tags: tags.into_iter().map(|tag| tag as u16).collect(),
        })
    }
}

/// Parameters of `push_pkts`.
#[derive(Clone, Debug, PartialEq)]
pub struct PushPackets<'a> {
    /// The port.
    pub port: u8,
    /// In the order of sending.
    pub packets: Vec<PushedPacket<'a>>,
    /// Between one packet and the next, in microseconds.
    pub gap_us: u32,
}

/// One packet of `push_pkts`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PushedPacket<'a> {
    /// The frame without FCS, as base64.
    pub base64: &'a str,
    /// It gets the destination MAC of the port.
    pub port_destination_mac: bool,
    /// It gets the source MAC of the port.
    pub port_source_mac: bool,
}

impl<'a> PushPackets<'a> {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'a>) -> Result<PushPackets<'a>, FieldError> {
        fields.optional("force", Fields::boolean)?;
        let packets = fields.array("pkts")?;
        let gap_us = fields.optional("ipg_usec", Fields::uint32)?.unwrap_or(0);
        if packets.is_empty() || packets.len() > PUSHED_PACKETS_MAX {
            let count = packets.len();
            let problem = format!("has {count} packets; give 1 to {PUSHED_PACKETS_MAX}");
            return Err(fields.bad("pkts", problem));
        }
        if packets.len() as u64 * u64::from(gap_us) > PUSHED_US_MAX {
            let problem = "makes the packets last longer than 1 s; push fewer, or use a stream";
            return Err(fields.bad("ipg_usec", problem));
        }
        let read = |(i, packet)| pushed_packet(&Fields::of(packet, &format!("pkts[{i}]"))?);
        Ok(PushPackets {
            port: port_id(fields)?,
            packets: packets
                .iter()
                .enumerate()
                .map(read)
                .collect::<Result<_, _>>()?,
            gap_us,
        })
    }
}

fn pushed_packet<'a>(fields: &Fields<'a>) -> Result<PushedPacket<'a>, FieldError> {
    Ok(PushedPacket {
        base64: fields.string("binary")?,
        port_destination_mac: fields.boolean("use_port_dst_mac")?,
        port_source_mac: fields.boolean("use_port_src_mac")?,
    })
}

/// Accepted everywhere: nothing here takes long enough to be asked for again.
fn block(fields: &Fields<'_>) -> Result<(), FieldError> {
    fields.optional("block", Fields::boolean).map(drop)
}

fn ipv4(fields: &Fields<'_>, name: &str) -> Result<Ipv4Addr, FieldError> {
    let text = fields.string(name)?;
    text.parse().map_err(|_| {
        let problem = format!("is '{text:.64}'; give an IPv4 address such as 192.0.2.1");
        fields.bad(name, problem)
    })
}

pub(crate) fn mac(fields: &Fields<'_>, name: &str) -> Result<[u8; 6], FieldError> {
    let text = fields.string(name)?;
    let mut mac = [0; 6];
    let mut parts = text.split(':');
    let all_read = mac.iter_mut().all(|byte| {
        let part = parts.next().filter(|part| (1..=2).contains(&part.len()));
        let value = part.and_then(|part| u8::from_str_radix(part, 16).ok());
        value.map(|value| *byte = value).is_some()
    });
    if all_read && parts.next().is_none() {
        return Ok(mac);
    }
    let problem = format!("is '{text:.64}'; give a MAC address such as 02:00:00:00:00:01");
    Err(fields.bad(name, problem))
}

const BLOCK: Param = Param::optional(
    "block",
    Kind::Boolean,
    "true",
    "Accepted; nothing here takes long.",
);

/// The items of the command table.
pub const COMMANDS: &[Command] = &[
    Command {
        method: Method::Ports(PortMethod::SetL2),
        name: "set_l2",
        access: Access::Api,
        doc: "Layer 2 mode: frames of the port go to this MAC address, unless a stream has its \
              own. Ends layer 3 mode. As in TRex, it takes no handler.",
        types: Types::prose(
            &[
                PORT_ID,
                Param::required("dst_mac", Kind::String, "As `aa:bb:cc:dd:ee:ff`."),
                BLOCK,
            ],
            "`{}`.",
            |f| SetL2::parse(f).map(drop),
        ),
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
        types: Types::prose(
            &[
                PORT_ID,
                Param::required("src_addr", Kind::String, "The port's own IPv4 address."),
                Param::required("dst_addr", Kind::String, "The gateway's or peer's."),
                Param::optional(
                    "resolved_mac",
                    Kind::String,
                    "not resolved",
                    "The MAC address of `dst_addr`.",
                ),
                BLOCK,
            ],
            "`{}`.",
            |f| SetL3::parse(f).map(drop),
        ),
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
        types: Types::prose(
            &[
                PORT_ID,
                Param::required("enabled", Kind::Boolean, "On or off."),
                Param::optional(
                    "src_ipv6",
                    Kind::String,
                    "\"\"",
                    "The port's address; empty is the link-local one of its MAC address (RFC 4291).",
                ),
                BLOCK,
            ],
            "`{}`.",
            |f| ConfigureIpv6::parse(f).map(drop),
        ),
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
        types: Types::prose(
            &[
                PORT_ID,
                Param::required(
                    "vlan",
                    Kind::Array,
                    "None, one or two of 1 to 4095, the outer first.",
                ),
                BLOCK,
            ],
            "`{}`.",
            |f| SetVlan::parse(f).map(drop),
        ),
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
        method: Method::Stateless(StatelessMethod::PushPackets),
        name: "push_pkts",
        access: Access::Api,
        doc: "Sends packets out of the port, once, beside whatever runs there. As in TRex, it takes no \
              handler.",
        types: Types::prose(
            &[
                PORT_ID,
                Param::required(
                    "pkts",
                    Kind::Array,
                    "1 to 20,000 of `{binary, use_port_dst_mac, use_port_src_mac}`; `binary` is base64 \
                 of 14 to 9238 bytes.",
                ),
                Param::optional(
                    "ipg_usec",
                    Kind::Uint32,
                    "0",
                    "Between two packets; all together take at most 1 s.",
                ),
                Param::optional("force", Kind::Boolean, "false", "Accepted."),
            ],
            "`sent`: how many; `ts`: when the first leaves, in seconds of the server's clock.",
            |f| PushPackets::parse(f).map(drop),
        ),
        errors: &["no such port", "a packet is too short or too long"],
        example: Example {
            params: r#"{"port_id": 0, "pkts": [{"binary": "////////AgAAAAABCAYAAQgABgQAAQIAAAAAAQEBAQEAAAAAAAABAQEC", "use_port_dst_mac": false, "use_port_src_mac": false}], "ipg_usec": 1000}"#,
            result: r#"{"sent": 1, "ts": 29.216}"#,
        },
    },
];
