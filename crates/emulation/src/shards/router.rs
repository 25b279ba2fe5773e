//! Which shards a received frame is for.
//!
//! A frame to one client is for the shard of that client, which its MAC address says. One to all is for each
//! shard of the namespace; of them the home counts it. An ARP request, which goes to all, is for one client
//! after all: its shard alone gets it. An answer of ARP to all is none, which the home counts.

use std::net::Ipv4Addr;
use std::sync::Arc;

use allosaur_packet::MacAddress;
use allosaur_packet::link::ethernet::EtherType;
use rustc_hash::FxHashMap;

use crate::address_hash::AddressMap;
use crate::frame;
use crate::namespace::NamespaceKey;
use crate::placements::{PlacedAddress, Placement};
use crate::shard_map::ShardMap;

/// Which shards a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameRoute {
    /// One.
    One(usize),
    /// All of the port. Others than the first, `counting`, get a copy
    /// ([`Emulation::handle_copy`](crate::Emulation::handle_copy)).
    All {
        /// Where it is counted.
        counting: usize,
    },
}

/// Shares received frames out.
#[derive(Debug)]
pub struct FrameRouter {
    map: Arc<ShardMap>,
    namespaces: FxHashMap<NamespaceKey, Places>,
}

/// Shards by addresses that they told of.
#[derive(Debug, Default)]
struct Places {
    by_ipv4: AddressMap<Ipv4Addr>,
    by_mac: AddressMap<MacAddress>,
}

/// ARP behind the EtherType: where the operation and the target's address are.
const ARP_OPERATION: std::ops::Range<usize> = 6..8;
const ARP_TARGET: std::ops::Range<usize> = 24..28;
const ARP_REQUEST: [u8; 2] = [0, 1];

impl FrameRouter {
    /// For clients that are shared out by a table.
    pub fn new(map: Arc<ShardMap>) -> FrameRouter {
        FrameRouter {
            map,
            namespaces: FxHashMap::default(),
        }
    }

    /// The table.
    pub fn map(&self) -> &ShardMap {
        &self.map
    }

    /// A shard tells where a client is. Of two shards that have had an address, the one that has it now
    /// counts, whichever comes first.
    pub fn handle_placement(&mut self, shard: usize, placement: Placement) {
        let Placement {
            key,
            address,
            is_here,
        } = placement;
        let places = self.namespaces.entry(key).or_default();
        let shard = shard as u32;
        match (address, is_here) {
            (PlacedAddress::Ipv4(address), true) => {
                places.by_ipv4.insert(address, shard);
            }
            (PlacedAddress::Mac(mac), true) => {
                places.by_mac.insert(mac, shard);
            }
            (PlacedAddress::Ipv4(address), false)
                if places.by_ipv4.get(&address) == Some(&shard) =>
            {
                places.by_ipv4.remove(&address);
            }
            (PlacedAddress::Mac(mac), false) if places.by_mac.get(&mac) == Some(&shard) => {
                places.by_mac.remove(&mac);
            }
            _ => {}
        }
        if places.by_ipv4.is_empty() && places.by_mac.is_empty() {
            self.namespaces.remove(&key);
        }
    }

    /// The shards of a frame that a port received.
    #[inline]
    pub fn route(&self, port: u16, bytes: &[u8]) -> FrameRoute {
        if !self.map.is_shared(port) {
            return FrameRoute::One(self.map.home_of_frame(port, bytes));
        }
        let Some((key, ether_type, at)) = frame::tags_of(port, bytes) else {
            return FrameRoute::One(self.map.home_of_frame(port, bytes));
        };
        let destination = MacAddress(
            *bytes
                .first_chunk()
                .expect("it has a type, behind two addresses"),
        );
        let places = self.namespaces.get(&key);
        let owner = match destination.is_multicast() {
            true => self.map.home(&key),
            false => {
                let known = places.and_then(|places| places.by_mac.get(&destination));
                known.map_or_else(
                    || self.map.client_owner(&key, destination),
                    |known| *known as usize,
                )
            }
        };
        if ether_type == EtherType::ARP {
            let packet = &bytes[at..];
            let is_request = packet.get(ARP_OPERATION) == Some(&ARP_REQUEST[..]);
            let target = packet.get(ARP_TARGET).filter(|_| is_request);
            let target = target.and_then(|target| target.first_chunk::<4>());
            let known = places.zip(target);
            let known =
                known.and_then(|(places, target)| places.by_ipv4.get(&Ipv4Addr::from(*target)));
            return match known {
                Some(shard) => FrameRoute::One(*shard as usize),
                None if is_request => FrameRoute::All { counting: owner },
                None => FrameRoute::One(owner),
            };
        }
        match destination.is_multicast() {
            true => FrameRoute::All { counting: owner },
            false => FrameRoute::One(owner),
        }
    }

    /// Whether a shard gets a copy of a frame for all of a port, which another counts.
    #[inline]
    pub fn has_copy(&self, port: u16, counting: usize, shard: usize) -> bool {
        shard != counting && self.map.of_port(port).contains(&shard)
    }
}
