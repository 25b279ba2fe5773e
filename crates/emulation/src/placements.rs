//! Where clients are, told to who shares frames out: which shard has an address, where the address alone
//! does not say so.

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::sync::Arc;

use allosaur_packet::MacAddress;

use crate::namespace::NamespaceKey;
use crate::shard_map::ShardMap;

/// An address that tells where a frame belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacedAddress {
    /// The one that ARP requests ask for.
    Ipv4(Ipv4Addr),
    /// The destination of a frame, of a client that is not where its MAC address says.
    Mac(MacAddress),
}

/// A shard has the client of an address now, or has it no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The client's namespace.
    pub key: NamespaceKey,
    /// Its address.
    pub address: PlacedAddress,
    /// Whether the shard has it.
    pub is_here: bool,
}

/// What a shard has to tell. A shard that has whole namespaces alone has nothing.
#[derive(Debug, Default)]
pub(crate) struct Placements {
    shards: Option<(Arc<ShardMap>, usize)>,
    waiting: VecDeque<Placement>,
}

impl Placements {
    /// Those of one of the shards of a table.
    pub(crate) fn new(shards: Option<Arc<ShardMap>>, shard: u32) -> Placements {
        Placements {
            shards: shards.map(|map| (map, shard as usize)),
            waiting: VecDeque::new(),
        }
    }

    /// The number of this shard.
    pub(crate) fn own_shard(&self) -> u32 {
        self.shards.as_ref().map_or(0, |(_, own)| *own as u32)
    }

    /// The shard that is the home of a namespace of which this may have a part.
    pub(crate) fn home_elsewhere(&self, key: &NamespaceKey) -> Option<u32> {
        let (map, own) = self.shards.as_ref()?;
        let is_away = map.away(key).any(|shard| shard == *own);
        is_away.then(|| map.home(key) as u32)
    }

    /// A client has another IPv4 address; unspecified is none.
    pub(crate) fn ipv4_changed(&mut self, key: NamespaceKey, old: Ipv4Addr, new: Ipv4Addr) {
        if self.is_shared(&key) {
            for (address, is_here) in [(old, false), (new, true)] {
                if !address.is_unspecified() {
                    self.tell(key, PlacedAddress::Ipv4(address), is_here);
                }
            }
        }
    }

    /// A client came or went.
    pub(crate) fn client_changed(&mut self, key: NamespaceKey, mac: MacAddress, is_here: bool) {
        let shards = self.shards.as_ref();
        if shards.is_some_and(|(map, own)| map.client_owner(&key, mac) != *own) {
            self.tell(key, PlacedAddress::Mac(mac), is_here);
        }
    }

    /// The next thing to tell.
    pub(crate) fn pop(&mut self) -> Option<Placement> {
        self.waiting.pop_front()
    }

    fn is_shared(&self, key: &NamespaceKey) -> bool {
        let shards = self.shards.as_ref();
        shards.is_some_and(|(map, _)| map.is_shared(key.port))
    }

    fn tell(&mut self, key: NamespaceKey, address: PlacedAddress, is_here: bool) {
        self.waiting.push_back(Placement {
            key,
            address,
            is_here,
        });
    }
}
