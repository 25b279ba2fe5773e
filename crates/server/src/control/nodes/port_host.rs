//! A port as a host in a network namespace, whose addresses are the port's: the stack `linux_based`.

use std::net::Ipv6Addr;

use allosaur_api::Error;
use allosaur_api::commands::nodes::{NodeCommand, NodeVlan};
use allosaur_nodes::NodesError;
use allosaur_nodes::node::{NodeIpv4, NodeIpv6, NodePlacement};

use super::table::{NodeTable, OTHERS};
use crate::control::config::mac_text;
use crate::control::core::layers::Layers;

/// What stands in front of the tags of a port, one or two.
const TPIDS: [&[u16]; 3] = [&[], &[0x8100], &[0x88a8, 0x8100]];

/// The addresses of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PortAddresses {
    pub(super) mac: [u8; 6],
    ipv4: Option<NodeIpv4>,
    ipv6: Option<Ipv6Addr>,
    vlan: Vec<u16>,
}

impl PortAddresses {
    /// Those of a port with this MAC address.
    pub(super) fn of(layers: &Layers, mac: [u8; 6]) -> PortAddresses {
        PortAddresses {
            mac,
            ipv4: layers.ipv4.map(|layer| NodeIpv4 {
                address: layer.source,
                subnet: None,
                gateway: Some(layer.destination),
            }),
            ipv6: layers.ipv6,
            vlan: layers.tags().to_vec(),
        }
    }

    /// Has the port's node have them; makes it if there is none.
    pub(super) fn set(&self, table: &mut NodeTable) -> Result<(), NodesError> {
        let mac = self.mac;
        if table.port_mac().is_none() {
            table.nodes.add(mac, NodePlacement::Port)?;
            // TCP and UDP are those of streams and flows, which a kernel would refuse.
            table.change_link(mac, |link| link.mask = OTHERS)?;
        }
        let tags = self.vlan.clone();
        let tpids = TPIDS[tags.len()].to_vec();
        table.change_link(mac, |link| link.vlan = NodeVlan { tags, tpids })?;
        let before = table.nodes.node(mac)?.clone();
        if before.ipv4 != self.ipv4 {
            table.nodes.set_ipv4(mac, self.ipv4)?;
        }
        let ipv6 = self.ipv6.map(|address| NodeIpv6 {
            address: Some(address),
            subnet: None,
        });
        if before.ipv6 != ipv6 {
            table.nodes.set_ipv6(mac, ipv6)?;
        }
        Ok(())
    }
}

/// Refuses to change by commands of nodes what commands of ports change.
pub(super) fn check(command: &NodeCommand, port: Option<[u8; 6]>) -> Result<(), Error> {
    let (mac, remedy) = match command {
        NodeCommand::RemoveNode(mac) => (*mac, "set_l2 takes its IPv4 address away"),
        NodeCommand::SetIpv4(params) => (params.mac, "use set_l3"),
        NodeCommand::ClearIpv4(mac) => (*mac, "use set_l2"),
        NodeCommand::SetIpv6(params) => (params.mac, "use conf_ipv6"),
        NodeCommand::SetVlans(params) => (params.mac, "use set_vlan"),
        _ => return Ok(()),
    };
    match Some(mac) == port {
        false => Ok(()),
        true => Err(Error::execution(format!(
            "node {} is the port itself, whose addresses are those of the port: {remedy}",
            mac_text(mac)
        ))),
    }
}
