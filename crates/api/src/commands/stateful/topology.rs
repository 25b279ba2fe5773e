//! The topology of stateful clients: which network they seem to be in, and the commands about it.

use std::net::Ipv4Addr;

use crate::json_schema::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::command::{Access, Command, Empty, Example, Types};
use crate::commands::layers::{VNI_MAX, ipv4, mac, some_ipv4};
use crate::commands::stateful::profiles::{Fragment, FragmentReply};
use crate::fields::{FieldError, Fields};
use crate::method::{Method, StatefulMethod};

/// A topology, as JSON has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Topology {
    /// Virtual interfaces.
    #[serde(rename = "vifs", default)]
    pub interfaces: Vec<VirtualInterface>,
    /// Which gateway clients use, and from which interface.
    #[serde(rename = "gws", default)]
    pub gateways: Vec<Gateway>,
}

/// A virtual interface (a VIF).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct VirtualInterface {
    /// The port that it is on.
    #[serde(rename = "trex_port")]
    pub port: u8,
    /// Its number there, from 1 on.
    #[serde(rename = "sub_if", deserialize_with = "number")]
    pub number: u32,
    /// Its MAC address.
    #[serde(rename = "src_mac", deserialize_with = "mac")]
    #[schemars(with = "String")]
    pub mac: [u8; 6],
    /// Its VLAN; 0 or nothing is none.
    #[serde(default, deserialize_with = "vlan")]
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub vlan: Option<u16>,
    /// The network of VXLAN that its clients are in, behind the tunnel's end of the port (`set_vxlan`); its
    /// MAC address and that of the gateway are then those within the tunnel.
    #[serde(default)]
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub vxlan: Option<InterfaceTunnel>,
}

/// The network of VXLAN of a virtual interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InterfaceTunnel {
    /// The number of the network, 0 to 16777215.
    pub vni: u32,
    /// The address of the other end.
    #[serde(default, deserialize_with = "some_ipv4")]
    #[schemars(with = "Option<String>", extend("x-default" = "that of the port"))]
    pub remote: Option<Ipv4Addr>,
}

/// The gateway of a range of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct Gateway {
    /// The port of the clients.
    #[serde(rename = "trex_port")]
    pub port: u8,
    /// The interface that they are behind; 0 is the port itself.
    #[serde(rename = "sub_if")]
    pub interface: u32,
    /// The first client.
    #[serde(rename = "src_start", deserialize_with = "ipv4")]
    #[schemars(with = "String")]
    pub first: Ipv4Addr,
    /// The last client.
    #[serde(rename = "src_end", deserialize_with = "ipv4")]
    #[schemars(with = "String")]
    pub last: Ipv4Addr,
    /// The gateway's MAC address.
    #[serde(rename = "dst_mac", deserialize_with = "mac")]
    #[schemars(with = "String")]
    pub mac: [u8; 6],
}

/// Reply of `topo_get`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LoadedTopology<'a> {
    /// The topology.
    pub topo_data: TopologyAsLoaded<'a>,
}

/// A topology, as it was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TopologyAsLoaded<'a> {
    /// Virtual interfaces; `null` without.
    #[schemars(with = "Option<Vec<VirtualInterface>>")]
    pub vifs: Option<&'a Value>,
    /// Gateways of ranges of clients; `null` without.
    #[schemars(with = "Option<Vec<Gateway>>")]
    pub gws: Option<&'a Value>,
}

/// Largest number of a VLAN.
const VLAN_MAX: u32 = 4094;

impl Topology {
    /// Reads a topology.
    pub fn parse(value: &Value) -> Result<Topology, FieldError> {
        let fields = Fields::of(value, "topology")?;
        let topology: Topology = fields.read()?;
        for (i, interface) in topology.interfaces.iter().enumerate() {
            let vni = interface.vxlan.map_or(0, |vxlan| vxlan.vni);
            if vni > VNI_MAX {
                let problem = format!("is {vni}; give 0 to {VNI_MAX}");
                return Err(fields.bad(&format!("vifs[{i}].vxlan.vni"), problem));
            }
        }
        for (i, gateway) in topology.gateways.iter().enumerate() {
            let (first, last) = (gateway.first, gateway.last);
            if first > last {
                let problem = format!("is {last}, before src_start, which is {first}: swap them");
                return Err(fields.bad(&format!("gws[{i}].src_end"), problem));
            }
        }
        Ok(topology)
    }
}

fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        0 => Err(D::Error::custom(
            "is 0, which is the port itself; give 1 or more",
        )),
        number => Ok(number),
    }
}

fn vlan<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u16>, D::Error> {
    match u32::deserialize(deserializer)? {
        0 => Ok(None),
        vlan @ 1..=VLAN_MAX => Ok(Some(vlan as u16)),
        vlan => Err(D::Error::custom(format_args!(
            "is {vlan}; give at most {VLAN_MAX}, 0 is none"
        ))),
    }
}

/// The items of the command table.
pub const COMMANDS: &[Command] = &[
    Command {
        method: Method::Stateful(StatefulMethod::Topology),
        name: "topo_get",
        access: Access::Api,
        doc: "The topology that was loaded.",
        types: Types::of::<Empty, LoadedTopology<'_>>(),
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
              `vlan` (0 is none), and `vxlan` with `vni` and `remote`, which TRex does not know. `gws` are the gateways of ranges of clients: `trex_port`, \
              `sub_if` (the interface; 0 is the port), `src_start`, `src_end`, and `dst_mac`. The \
              topology holds for flows that begin from now on.",
        types: Types::of::<Fragment<'_>, Option<FragmentReply>>(),
        errors: &[
            "traffic runs",
            "the text is no topology, or does not have the MD5 that was told",
            "a port or an interface is not there, or ranges overlap",
            "an interface has `vxlan`, and its port no tunnel, or one that takes another network alone",
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
        types: Types::of::<Empty, ()>(),
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
    fn an_interface_may_be_in_a_tunnel() {
        let of = |vxlan: Value| {
            let interface = json!({"trex_port": 0, "sub_if": 1, "src_mac": "02:00:00:00:00:01",
                "vxlan": vxlan});
            Topology::parse(&json!({"vifs": [interface]}))
        };
        let given = of(json!({"vni": 7, "remote": "192.0.2.2"})).expect("it is right");
        let remote = Some(Ipv4Addr::new(192, 0, 2, 2));
        let expected = InterfaceTunnel { vni: 7, remote };
        assert_eq!(given.interfaces[0].vxlan, Some(expected));
        for (wrong, place) in [
            (json!({"vni": 1 << 24}), "vifs[0].vxlan.vni"),
            (json!({"vni": 1, "remote": "here"}), "vifs[0].vxlan.remote"),
            (json!({"vni": 1, "vlan": 3}), "vifs[0].vxlan"),
        ] {
            let error = of(wrong).expect_err("it is wrong").to_string();
            assert!(error.contains(place), "{error}");
        }
    }

    #[test]
    fn nothing_at_all_is_a_topology() {
        let none = Topology::parse(&json!({"vifs": null, "gws": null}));
        assert_eq!(none, Ok(Topology::default()));
    }
}
