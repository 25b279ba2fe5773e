//! The topology of stateful clients: which network they seem to be in, and the commands about it.

use std::net::Ipv4Addr;

use serde_json::Value;

use crate::command::{Access, Command, Example, Types};
use crate::commands::layers::mac_field;
use crate::commands::stateful::objects;
use crate::commands::stateful::profiles::{FRAGMENT, Fragment};
use crate::fields::{FieldError, Fields};
use crate::method::{Method, StatefulMethod};

/// A topology, as JSON has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology {
    /// Virtual interfaces.
    pub interfaces: Vec<Interface>,
    /// Which gateway clients use, and from which interface.
    pub gateways: Vec<Gateway>,
}

/// A virtual interface (a VIF).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The port that it is on.
    pub port: u8,
    /// Its number there, from 1 on.
    pub number: u32,
    /// Its MAC address.
    pub mac: [u8; 6],
    /// Its VLAN; 0 is none.
    pub vlan: u16,
}

/// The gateway of a range of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// The port of the clients.
    pub port: u8,
    /// The interface that they are behind; 0 is the port itself.
    pub interface: u32,
    /// The first client.
    pub first: Ipv4Addr,
    /// The last client.
    pub last: Ipv4Addr,
    /// The gateway's MAC address.
    pub mac: [u8; 6],
}

/// Largest number of a VLAN.
const VLAN_MAX: u32 = 4094;

impl Topology {
    /// Reads a topology.
    pub fn parse(value: &Value) -> Result<Topology, FieldError> {
        let fields = Fields::of(value, "topology")?;
        let interfaces = match fields.is_missing("vifs") {
            true => Vec::new(),
            false => objects(&fields, "vifs", "vifs", interface)?,
        };
        let gateways = match fields.is_missing("gws") {
            true => Vec::new(),
            false => objects(&fields, "gws", "gws", gateway)?,
        };
        Ok(Topology {
            interfaces,
            gateways,
        })
    }
}

fn interface(fields: &Fields<'_>) -> Result<Interface, FieldError> {
    let number = fields.uint32("sub_if")?;
    if number == 0 {
        return Err(fields.bad("sub_if", "is 0, which is the port itself; give 1 or more"));
    }
    let vlan = fields.optional("vlan", Fields::uint32)?.unwrap_or(0);
    if vlan > VLAN_MAX {
        return Err(fields.bad(
            "vlan",
            format!("is {vlan}; give at most {VLAN_MAX}, 0 is none"),
        ));
    }
    Ok(Interface {
        port: fields.byte("trex_port")?,
        number,
        mac: mac_field(fields, "src_mac")?,
        vlan: vlan as u16,
    })
}

fn gateway(fields: &Fields<'_>) -> Result<Gateway, FieldError> {
    let address = |name| -> Result<Ipv4Addr, FieldError> {
        let text = fields.string(name)?;
        let problem = || format!("is '{text:.40}', which is no IPv4 address");
        text.parse().map_err(|_| fields.bad(name, problem()))
    };
    let (first, last) = (address("src_start")?, address("src_end")?);
    if first > last {
        let problem = format!("is {last}, before src_start, which is {first}: swap them");
        return Err(fields.bad("src_end", problem));
    }
    Ok(Gateway {
        port: fields.byte("trex_port")?,
        interface: fields.uint32("sub_if")?,
        first,
        last,
        mac: mac_field(fields, "dst_mac")?,
    })
}

/// The items of the command table.
pub const COMMANDS: &[Command] = &[
    Command {
        method: Method::Stateful(StatefulMethod::Topology),
        name: "topo_get",
        access: Access::Api,
        doc: "The topology that was loaded.",
        types: Types::prose(
            &[],
            "`topo_data`, with `vifs` and `gws` as they were loaded; `null` without.",
            |_| Ok(()),
        ),
        errors: &[],
        example: Example {
            params: "{}",
            result: r#"{"topo_data": {"vifs": null, "gws": null}}"#,
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::TopologyFragment),
        name: "topo_fragment",
        access: Access::Context,
        doc: "Loads a topology, as JSON in parts, as `profile_fragment` does; `profile_id` means \
              nothing. `vifs` are virtual interfaces: `trex_port`, `sub_if` (from 1 on), `src_mac`, \
              and `vlan` (0 is none). `gws` are the gateways of ranges of clients: `trex_port`, \
              `sub_if` (the interface; 0 is the port), `src_start`, `src_end`, and `dst_mac`. The \
              topology holds for flows that begin from now on.",
        types: Types::prose(
            &FRAGMENT,
            "`null`; after the first part `{\"matches_loaded\": true}` when this very text is \
                loaded.",
            |f| Fragment::parse(f).map(drop),
        ),
        errors: &[
            "traffic runs",
            "the text is no topology, or does not have the MD5 that was told",
            "a port or an interface is not there, or ranges overlap",
        ],
        example: Example {
            params: r#"{"fragment": "{\"vifs\": [], \"gws\": []}", "frag_first": true, "frag_last": true, "md5": "99914b932bd37a50b983c5e7c90ae93b"}"#,
            result: "null",
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::TopologyClear),
        name: "topo_clear",
        access: Access::Context,
        doc: "Forgets the topology.",
        types: Types::prose(&[], "`null`.", |_| Ok(())),
        errors: &["traffic runs"],
        example: Example {
            params: "{}",
            result: "null",
        },
    },
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let interface = json!({"trex_port": 0, "sub_if": 0, "src_mac": "02:00:00:00:00:01"});
        let error = Topology::parse(&json!({"vifs": [interface]})).expect_err("0 is the port");
        assert!(error.to_string().contains("vifs[0].sub_if"), "{error}");
        let gateway = json!({"trex_port": 0, "sub_if": 0, "src_start": "16.0.0.9",
            "src_end": "16.0.0.1", "dst": "1.1.1.1", "dst_mac": "02:00:00:00:00:02"});
        let error = Topology::parse(&json!({"gws": [gateway]})).expect_err("the wrong way round");
        assert!(error.to_string().contains("gws[0].src_end"), "{error}");
        let unresolved = json!({"trex_port": 0, "sub_if": 0, "src_start": "16.0.0.1",
            "src_end": "16.0.0.9", "dst": "1.1.1.1", "dst_mac": null});
        let error = Topology::parse(&json!({"gws": [unresolved]})).expect_err("no MAC");
        assert!(error.to_string().contains("gws[0].dst_mac"), "{error}");
    }

    #[test]
    fn nothing_at_all_is_a_topology() {
        let none = Topology::parse(&json!({"vifs": null, "gws": null}));
        assert_eq!(none, Ok(Topology::default()));
    }
}
