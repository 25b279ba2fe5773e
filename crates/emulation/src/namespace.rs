//! A namespace: one broadcast domain behind a port, told apart by up to two VLAN tags.

use std::fmt;
use std::net::Ipv6Addr;

use allosaur_packet::MacAddress;

use crate::client::Clients;
use crate::sockets::Sockets;

/// A VLAN tag: its type and the number of the VLAN. Number 0 is no tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tag {
    /// The type in front of it, such as 0x8100.
    pub tpid: u16,
    /// The number of the VLAN, 1 to 4095.
    pub vlan: u16,
}

/// What tells namespaces apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NamespaceKey {
    /// The port, called virtual port in the RPC.
    pub port: u16,
    /// The tags, outer first.
    pub tags: [Tag; 2],
}

impl fmt::Display for NamespaceKey {
    /// As the reference's errors have it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [outer, inner] = self.tags;
        write!(
            f,
            "{},{{{:04x}:{:04x}}},{{{:04x}:{:04x}}}",
            self.port, outer.tpid, outer.vlan, inner.tpid, inner.vlan
        )
    }
}

/// The router that IPv6 clients of a namespace learnt of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Router {
    /// Its address.
    pub address: Ipv6Addr,
    /// Its MAC address, if it said so.
    pub mac: Option<MacAddress>,
    /// The longest packet of the link.
    pub mtu: u16,
    /// The prefix of addresses, and its length.
    pub prefix: Option<(Ipv6Addr, u8)>,
}

/// What the plugins of a namespace share.
#[derive(Debug)]
pub struct Namespace {
    key: NamespaceKey,
    /// The tags as they are on the wire, with their types in front.
    tags: [u8; 8],
    tag_bytes: u8,
    /// The shard that is its home, where this is another.
    home: Option<u32>,
    /// The hosts in it.
    pub clients: Clients,
    /// The router of IPv6, once one announced itself.
    pub router: Option<Router>,
    /// The sockets of its clients.
    pub sockets: Sockets,
}

impl Namespace {
    /// An empty namespace, or the part of one whose home is another shard.
    pub fn new(key: NamespaceKey, home: Option<u32>) -> Namespace {
        let mut tags = [0; 8];
        let mut tag_bytes = 0;
        for tag in key.tags.iter().take_while(|tag| tag.vlan != 0) {
            tags[tag_bytes..tag_bytes + 2].copy_from_slice(&tag.tpid.to_be_bytes());
            tags[tag_bytes + 2..tag_bytes + 4].copy_from_slice(&tag.vlan.to_be_bytes());
            tag_bytes += 4;
        }
        Namespace {
            key,
            tags,
            tag_bytes: tag_bytes as u8,
            home,
            clients: Clients::default(),
            router: None,
            sockets: Sockets::default(),
        }
    }

    /// What tells it apart.
    pub fn key(&self) -> NamespaceKey {
        self.key
    }

    /// The shard that is its home, where this is another.
    pub fn home_elsewhere(&self) -> Option<u32> {
        self.home
    }

    /// Whether what is of the namespace as a whole is here.
    pub fn is_home(&self) -> bool {
        self.home.is_none()
    }

    /// Its tags as they are on the wire, with their types in front.
    pub fn tags(&self) -> &[u8] {
        &self.tags[..usize::from(self.tag_bytes)]
    }
}
