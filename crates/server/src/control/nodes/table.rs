//! The nodes of a port with what the server does for them: VLAN tags and filters.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use allosaur_api::Error;
use allosaur_api::commands::nodes::{NodeEther, NodeInfo, NodeIpv4Info, NodeIpv6Info, NodeVlan};
use allosaur_nodes::namespace::NetworkNamespace;
use allosaur_nodes::node::link_local;
use allosaur_nodes::owner::Owner;
use allosaur_nodes::{LinuxNode, NodesError, PortNodes};

use crate::control::config::mac_text;
use crate::routes::SpeakerPlace;
use crate::rx_taps::filter::Filter;
use crate::rx_taps::{NodeChange, NodeEntry, NodeFilter};

/// In the mask of a filter: all but TCP and UDP.
pub(super) const OTHERS: u8 = 1;
/// In the mask of a filter: TCP and UDP.
const TCP_UDP: u8 = 2;

/// The nodes of a port.
#[derive(Debug)]
pub(super) struct NodeTable {
    pub(super) nodes: PortNodes,
    links: BTreeMap<[u8; 6], NodeLink>,
}

/// What the server does with the frames of a node.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeLink {
    /// Its VLAN.
    pub(super) vlan: NodeVlan,
    /// Which frames it gets, by a mask; 0 is all.
    pub(super) mask: u8,
    /// The same, as for tcpdump.
    pub(super) bpf: String,
}

impl NodeTable {
    /// None yet.
    pub(super) fn open(owner: Arc<Owner>, port: u8) -> Result<NodeTable, NodesError> {
        Ok(NodeTable {
            nodes: PortNodes::open(owner, port)?,
            links: BTreeMap::new(),
        })
    }

    /// The namespace in which the outer ends are.
    pub(super) fn outer(&self) -> &NetworkNamespace {
        self.nodes.outer()
    }

    /// Whether there are nodes with MAC addresses other than the port's.
    pub(super) fn has_others(&self) -> bool {
        self.nodes.nodes().any(|node| !node.is_port)
    }

    /// The MAC address of the port, where it is a node.
    pub(super) fn port_mac(&self) -> Option<[u8; 6]> {
        let mut nodes = self.nodes.nodes();
        nodes.find(|node| node.is_port).map(|node| node.mac)
    }

    /// Where a node is, and its addresses that others can reach.
    pub(super) fn place(&self, mac: [u8; 6]) -> Result<SpeakerPlace, NodesError> {
        let node = self.nodes.node(mac)?;
        let ipv4 = node.ipv4.map(|ipv4| IpAddr::V4(ipv4.address));
        let ipv6 = node.ipv6.and_then(|ipv6| ipv6.address).map(IpAddr::V6);
        Ok(SpeakerPlace {
            namespace: Some(node.network_namespace()),
            addresses: ipv4.into_iter().chain(ipv6).collect(),
        })
    }

    /// Changes what the server does with the frames of a node.
    pub(super) fn change_link(
        &mut self,
        mac: [u8; 6],
        change: impl FnOnce(&mut NodeLink),
    ) -> Result<(), NodesError> {
        self.nodes.node(mac)?;
        change(self.links.entry(mac).or_default());
        Ok(())
    }

    /// A node is gone.
    pub(super) fn forget(&mut self, mac: [u8; 6]) {
        self.links.remove(&mac);
    }

    /// All nodes are gone but the port itself.
    pub(super) fn forget_all(&mut self) {
        let port = self.port_mac();
        self.links.retain(|mac, _| Some(*mac) == port);
    }

    /// What the receive thread must know of a node.
    pub(super) fn change_of(&self, mac: [u8; 6]) -> Result<NodeChange, Error> {
        let Ok(node) = self.nodes.node(mac) else {
            return Ok(NodeChange::Remove(mac));
        };
        let link = self.links.get(&mac).cloned().unwrap_or_default();
        let bpf = Filter::compile(&link.bpf);
        let bpf = bpf.map_err(|error| Error::execution(error.to_string()))?;
        let vlan = link.vlan.tpids.iter().zip(&link.vlan.tags);
        let address = node.ipv6.and_then(|ipv6| ipv6.address);
        let own = node.ipv6.map(|_| link_local(mac));
        Ok(NodeChange::Set(Box::new(NodeEntry {
            mac,
            is_port: node.is_port,
            interface: node.outer_index,
            tags: vlan.map(|(tpid, tag)| [*tpid, *tag]).collect(),
            filter: NodeFilter {
                tcp_udp: link.mask == 0 || link.mask & TCP_UDP != 0,
                others: link.mask == 0 || link.mask & OTHERS != 0,
                bpf,
            },
            ipv4: node.ipv4.map(|ipv4| ipv4.address),
            ipv6: own.into_iter().chain(address).collect(),
        })))
    }

    /// A node as `get_nodes_info` tells it.
    pub(super) fn info(&self, mac: [u8; 6]) -> Result<NodeInfo, NodesError> {
        let node = self.nodes.node(mac)?;
        let link = self.links.get(&mac).cloned().unwrap_or_default();
        Ok(NodeInfo {
            ether: NodeEther { src: mac_text(mac) },
            vlan: link.vlan,
            ipv4: ipv4_info(node),
            ipv6: ipv6_info(node),
            namespace: node.namespace.clone(),
            is_shared: !node.is_alone && !node.is_bird,
            inner: node.inner_name.clone(),
            outer: node.outer_name.clone(),
            bpf: link.bpf,
            vlan_filter: link.mask,
            is_bird: node.is_bird,
            is_port: node.is_port,
        })
    }
}

fn ipv4_info(node: &LinuxNode) -> NodeIpv4Info {
    let ipv4 = node.ipv4.as_ref();
    NodeIpv4Info {
        state: ipv4.is_none().then_some("none"),
        src: ipv4.map(|ipv4| ipv4.address.to_string()),
        dst: ipv4.and_then(|ipv4| Some(ipv4.gateway?.to_string())),
        subnet: ipv4.and_then(|ipv4| ipv4.subnet),
    }
}

fn ipv6_info(node: &LinuxNode) -> NodeIpv6Info {
    let ipv6 = node.ipv6.as_ref();
    NodeIpv6Info {
        enabled: ipv6.is_some(),
        src: ipv6.and_then(|ipv6| Some(ipv6.address?.to_string())),
        subnet: ipv6.and_then(|ipv6| ipv6.subnet),
    }
}
