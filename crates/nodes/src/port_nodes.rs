//! All nodes of a port.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::sync::Arc;

use allosaur_netdev::netlink_batch::{NetlinkBatch, NetlinkSocket, VethEnd};

use nix::errno::Errno;

use crate::error::{NodesError, mac_text};
use crate::namespace::{NetworkNamespace, share_folder};
use crate::node::{LinuxNode, NodeIpv4, NodeIpv6, NodePlacement};
use crate::owner::Owner;

/// The most nodes of a port.
pub const NODES_MAX: usize = 20_000;
/// The MTUs that a node may have: IPv4 needs the one (RFC 791), frames of a port allow the other.
const MTU_RANGE: std::ops::RangeInclusive<u32> = 68..=9_216;
const MTU: u32 = 1500;
/// The number of the loopback in each namespace.
pub(crate) const LOOPBACK: u32 = 1;
/// The number of a node's interface where it is alone in its namespace.
const ALONE: u32 = 2;
/// Outer ends, and interfaces in shared namespaces, are numbered from here on.
const FIRST: u32 = 100;
/// In the namespace with BIRD each port has numbers of its own: more than its nodes use up, however often
/// they are removed and added.
const PORT_INDEXES: u32 = 60_000_000;
/// No interface of the outer namespace speaks IPv6: only its nodes do.
const OUTER_WITHOUT_IPV6: &str = "/proc/sys/net/ipv6/conf/default/disable_ipv6";

/// All nodes of a port, and their namespaces. When this is dropped they are gone.
#[derive(Debug)]
pub struct PortNodes {
    port: u8,
    owner: Arc<Owner>,
    outer: Outer,
    nodes: BTreeMap<[u8; 6], LinuxNode>,
    shared: BTreeMap<String, NetworkNamespace>,
    last_index: u32,
}

/// The namespace with the outer ends of all nodes.
#[derive(Debug)]
struct Outer {
    namespace: NetworkNamespace,
    socket: NetlinkSocket,
}

impl Outer {
    fn make(owner: &Owner, port: u8) -> Result<Outer, NodesError> {
        let (namespace, socket) = NetworkNamespace::make(&owner.port_prefix(port), || {
            // A kernel without IPv6 has no such setting, and needs none.
            if fs::exists(OUTER_WITHOUT_IPV6).unwrap_or(false) {
                fs::write(OUTER_WITHOUT_IPV6, "1")
                    .map_err(|error| NodesError::refused("write to /proc/sys/net", error))?;
            }
            open_netlink()
        })?;
        Ok(Outer { namespace, socket })
    }
}

impl PortNodes {
    /// None yet.
    ///
    /// # Errors
    ///
    /// A missing privilege, and what the system says.
    pub fn open(owner: Arc<Owner>, port: u8) -> Result<PortNodes, NodesError> {
        share_folder()?;
        Ok(PortNodes {
            outer: Outer::make(&owner, port)?,
            port,
            owner,
            nodes: BTreeMap::new(),
            shared: BTreeMap::new(),
            last_index: FIRST,
        })
    }

    /// The namespace in which the outer ends are.
    pub fn outer(&self) -> &NetworkNamespace {
        &self.outer.namespace
    }

    /// All nodes.
    pub fn nodes(&self) -> impl Iterator<Item = &LinuxNode> {
        self.nodes.values()
    }

    /// Whether there are neither nodes nor shared namespaces.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty() && self.shared.is_empty()
    }

    /// The node of a MAC address.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn node(&self, mac: [u8; 6]) -> Result<&LinuxNode, NodesError> {
        self.nodes.get(&mac).ok_or_else(|| self.unknown(mac))
    }

    /// Adds a node.
    ///
    /// # Errors
    ///
    /// A MAC address twice, no such shared namespace, no BIRD, too many nodes, and what the system says.
    pub fn add(
        &mut self,
        mac: [u8; 6],
        placement: NodePlacement<'_>,
    ) -> Result<&LinuxNode, NodesError> {
        self.check_new(mac)?;
        let common = self.common_namespace(placement)?.cloned();
        self.last_index += 1;
        let outer_index = self.last_index;
        let mut node = LinuxNode {
            mac,
            namespace: self.next_name(),
            is_alone: common.is_none(),
            is_bird: placement == NodePlacement::Bird,
            is_port: placement == NodePlacement::Port,
            inner_name: "eth0".to_owned(),
            inner_index: ALONE,
            outer_name: format!("node{outer_index}"),
            outer_index,
            ipv4: None,
            ipv6: None,
        };
        match common {
            Some(namespace) => {
                node.namespace = namespace.name().to_owned();
                (node.inner_index, node.inner_name) = match node.is_bird {
                    // Nodes of all ports are in it.
                    true => (
                        outer_index + u32::from(self.port) * PORT_INDEXES,
                        format!("eth{}-{outer_index}", self.port),
                    ),
                    false => (outer_index, format!("eth{outer_index}")),
                };
                namespace.within(|| self.make_veth(&node))?;
            }
            None => drop(NetworkNamespace::make(&node.namespace, || {
                self.make_veth(&node)
            })?),
        }
        Ok(self.nodes.entry(mac).or_insert(node))
    }

    /// Removes a node, and its namespace where that is its own.
    ///
    /// # Errors
    ///
    /// There is none, and what the system says.
    pub fn remove(&mut self, mac: [u8; 6]) -> Result<LinuxNode, NodesError> {
        let node = self.node(mac)?.clone();
        let mut batch = NetlinkBatch::default();
        batch.remove_link(node.outer_index);
        let removed = self.outer.socket.apply(&batch);
        // Who runs inside may have removed it.
        removed.or_else(|refused| match is(&refused.error, Errno::ENODEV) {
            true => Ok(()),
            false => Err(refused),
        })?;
        if node.is_alone {
            self.namespace_of(&node).remove();
        }
        self.nodes.remove(&mac);
        Ok(node)
    }

    /// Removes all nodes but the port's own and all shared namespaces at once. There is a new outer
    /// namespace behind.
    ///
    /// # Errors
    ///
    /// What the system says to the new one.
    pub fn remove_all(&mut self) -> Result<(), NodesError> {
        self.remove_names(|node| !node.is_port);
        self.nodes.retain(|_, node| node.is_port);
        self.shared.clear();
        // With the old one go all pairs, also those with a process at their other end.
        let before = std::mem::replace(&mut self.outer, Outer::make(&self.owner, self.port)?);
        let Some(port) = self.nodes.values().next() else {
            return Ok(());
        };
        // The port's own is taken along, so that what runs in its namespace keeps its network.
        let outer = self.outer.namespace.file()?;
        let mut batch = NetlinkBatch::default();
        batch.move_link(port.outer_index, outer.as_fd());
        before.socket.apply(&batch)?;
        let mut batch = NetlinkBatch::default();
        batch.set_up(port.outer_index);
        Ok(self.outer.socket.apply(&batch)?)
    }

    /// Adds a namespace without nodes.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn add_shared(&mut self) -> Result<&str, NodesError> {
        self.last_index += 1;
        let name = self.next_name();
        let (namespace, ()) = NetworkNamespace::make(&name, || {
            let mut batch = NetlinkBatch::default();
            batch.set_up(LOOPBACK);
            Ok(open_netlink()?.apply(&batch)?)
        })?;
        Ok(self.shared.entry(name).or_insert(namespace).name())
    }

    /// Removes a shared namespace without nodes.
    ///
    /// # Errors
    ///
    /// There is none of that name, or it has nodes.
    pub fn remove_shared(&mut self, name: &str) -> Result<(), NodesError> {
        self.shared_namespace(name)?;
        let nodes = self.nodes().filter(|node| node.namespace == name).count();
        if nodes > 0 {
            return Err(NodesError::Unfit(format!(
                "the shared namespace '{name}' has nodes ({nodes}): remove them first"
            )));
        }
        if let Some(namespace) = self.shared.remove(name) {
            namespace.remove();
        }
        Ok(())
    }

    /// Sets the address for IPv4 and the gateway, or takes them away.
    ///
    /// # Errors
    ///
    /// There is no such node, and what the system says; then it has what it had.
    pub fn set_ipv4(&mut self, mac: [u8; 6], ipv4: Option<NodeIpv4>) -> Result<(), NodesError> {
        let node = self.node(mac)?;
        let change = |from: &Option<NodeIpv4>, to: &Option<NodeIpv4>| {
            let mut batch = NetlinkBatch::default();
            // The routes by an address go with it.
            if let Some(from) = from {
                batch.remove_address(node.inner_index, from.interface_address());
            }
            if let Some(to) = to {
                batch.add_address(node.inner_index, to.interface_address());
                if let Some(gateway) = to.gateway {
                    batch.set_default_gateway(node.inner_index, IpAddr::V4(gateway));
                }
            }
            batch
        };
        self.apply_or_undo(mac, &change(&node.ipv4, &ipv4), &change(&ipv4, &node.ipv4))?;
        self.node_mut(mac)?.ipv4 = ipv4;
        Ok(())
    }

    /// Sets the addresses for IPv6, or takes them away.
    ///
    /// # Errors
    ///
    /// There is no such node, and what the system says; then it has what it had.
    pub fn set_ipv6(&mut self, mac: [u8; 6], ipv6: Option<NodeIpv6>) -> Result<(), NodesError> {
        let node = self.node(mac)?;
        let change = |from: &Option<NodeIpv6>, to: &Option<NodeIpv6>| {
            let mut batch = NetlinkBatch::default();
            for address in from.iter().flat_map(|from| from.interface_addresses(mac)) {
                batch.remove_address(node.inner_index, address);
            }
            for address in to.iter().flat_map(|to| to.interface_addresses(mac)) {
                batch.add_address(node.inner_index, address);
            }
            batch
        };
        self.apply_or_undo(mac, &change(&node.ipv6, &ipv6), &change(&ipv6, &node.ipv6))?;
        self.node_mut(mac)?.ipv6 = ipv6;
        Ok(())
    }

    /// Sets the gateway of all nodes of a shared namespace.
    ///
    /// # Errors
    ///
    /// There is none of that name, no node has the gateway in its network, and what else the system says.
    pub fn set_gateway(&mut self, shared: &str, gateway: IpAddr) -> Result<(), NodesError> {
        let mut batch = NetlinkBatch::default();
        batch.set_reachable_gateway(gateway);
        self.shared_namespace(shared)?
            .within(|| Ok(open_netlink()?.apply(&batch)?))
            .map_err(|error| match error {
                NodesError::System(_, error) if is(&error, Errno::ENETUNREACH) => {
                    NodesError::Unfit(format!(
                        "'dg' is {gateway}, and no node of '{shared}' has it in its subnet: set_ipv4 first"
                    ))
                }
                other => other,
            })
    }

    /// Sets the MTU of a node, at both ends of its pair.
    ///
    /// # Errors
    ///
    /// There is no such node, the MTU is none, and what the system says.
    pub fn set_mtu(&mut self, mac: [u8; 6], mtu: u32) -> Result<(), NodesError> {
        if !MTU_RANGE.contains(&mtu) {
            let (least, most) = (MTU_RANGE.start(), MTU_RANGE.end());
            let text = format!("'mtu' is {mtu}: give {least} to {most}");
            return Err(NodesError::Unfit(text));
        }
        let node = self.node(mac)?;
        let mut outer = NetlinkBatch::default();
        outer.set_mtu(node.outer_index, mtu);
        let mut inner = NetlinkBatch::default();
        inner.set_mtu(node.inner_index, mtu);
        self.outer.socket.apply(&outer)?;
        self.apply_to(mac, &inner)
    }

    fn check_new(&self, mac: [u8; 6]) -> Result<(), NodesError> {
        let problem = if self.nodes.contains_key(&mac) {
            format!(
                "port {} has a node {} already: give each its own MAC address",
                self.port,
                mac_text(mac)
            )
        } else if mac[0] & 1 == 1 || mac == [0; 6] {
            format!(
                "'mac' is {}, which is no host's: give one such as 02:00:00:00:00:01",
                mac_text(mac)
            )
        } else if self.nodes.len() >= NODES_MAX {
            format!(
                "port {} has {NODES_MAX} nodes, which is the most: remove some",
                self.port
            )
        } else {
            return Ok(());
        };
        Err(NodesError::Unfit(problem))
    }

    /// Makes the pair of a node; in its namespace.
    fn make_veth(&self, node: &LinuxNode) -> Result<(), NodesError> {
        let outer = self.outer.namespace.file()?;
        let inner = VethEnd {
            index: node.inner_index,
            name: &node.inner_name,
            mac: Some(node.mac),
            mtu: MTU,
        };
        let far = VethEnd {
            index: node.outer_index,
            name: &node.outer_name,
            mac: None,
            mtu: MTU,
        };
        let mut batch = NetlinkBatch::default();
        batch.add_veth(&inner, &far, outer.as_fd());
        batch.keep_without_link_local(node.inner_index);
        batch.set_up(node.inner_index);
        batch.set_up(LOOPBACK);
        open_netlink()?.apply(&batch)?;
        let mut batch = NetlinkBatch::default();
        batch.set_up(node.outer_index);
        Ok(self.outer.socket.apply(&batch)?)
    }

    fn apply_to(&self, mac: [u8; 6], batch: &NetlinkBatch) -> Result<(), NodesError> {
        let namespace = self.namespace_of(self.node(mac)?);
        namespace.within(|| Ok(open_netlink()?.apply(batch)?))
    }

    /// Changes a node. Where a change is refused, all are undone.
    fn apply_or_undo(
        &self,
        mac: [u8; 6],
        batch: &NetlinkBatch,
        undo: &NetlinkBatch,
    ) -> Result<(), NodesError> {
        self.apply_to(mac, batch).inspect_err(|_| {
            // What was not done cannot be undone.
            let _ = self.apply_to(mac, undo);
        })
    }

    fn namespace_of(&self, node: &LinuxNode) -> NetworkNamespace {
        NetworkNamespace::named(&node.namespace)
    }

    /// The namespace that a node shares with others, if it does.
    fn common_namespace(
        &self,
        placement: NodePlacement<'_>,
    ) -> Result<Option<&NetworkNamespace>, NodesError> {
        match placement {
            NodePlacement::Own | NodePlacement::Port => Ok(None),
            NodePlacement::Shared(name) => self.shared_namespace(name).map(Some),
            NodePlacement::Bird => self.owner.bird().map(Some).ok_or_else(|| {
                NodesError::Unfit(
                    "'is_bird' is true, and this server has no BIRD: start it with --bird-server \
                     ('bird_port' in its configuration)"
                        .to_owned(),
                )
            }),
        }
    }

    fn shared_namespace(&self, name: &str) -> Result<&NetworkNamespace, NodesError> {
        let unknown = || NodesError::UnknownShared {
            port: self.port,
            name: name.to_owned(),
        };
        self.shared.get(name).ok_or_else(unknown)
    }

    fn node_mut(&mut self, mac: [u8; 6]) -> Result<&mut LinuxNode, NodesError> {
        let unknown = self.unknown(mac);
        self.nodes.get_mut(&mac).ok_or(unknown)
    }

    fn unknown(&self, mac: [u8; 6]) -> NodesError {
        NodesError::UnknownNode {
            port: self.port,
            mac: mac_text(mac),
        }
    }

    fn next_name(&self) -> String {
        format!("{}-{}", self.owner.port_prefix(self.port), self.last_index)
    }

    fn remove_names(&self, is_wanted: impl Fn(&LinuxNode) -> bool) {
        self.outer.namespace.remove();
        let own = self.nodes().filter(|node| node.is_alone && is_wanted(node));
        own.for_each(|node| self.namespace_of(node).remove());
        self.shared.values().for_each(NetworkNamespace::remove);
    }
}

impl Drop for PortNodes {
    fn drop(&mut self) {
        self.remove_names(|_| true);
    }
}

fn is(error: &io::Error, expected: Errno) -> bool {
    error.raw_os_error() == Some(expected as i32)
}

pub(crate) fn open_netlink() -> Result<NetlinkSocket, NodesError> {
    NetlinkSocket::open().map_err(|error| NodesError::refused("open a netlink socket", error))
}
