//! Which shard has a namespace, and which a client: all threads that share frames or calls out ask the same
//! table.

use allosaur_packet::MacAddress;

use crate::frame;
use crate::namespace::{NamespaceKey, Tag};

/// Which shard has a namespace, and which a client of it.
///
/// A namespace has a *home*, where all that is of the namespace as a whole is. Of its clients, those whose
/// plugins keep nothing for all ([`Scope::Client`](crate::spec::Scope::Client)) stand on all shards of the
/// port, by their MAC addresses; the others stand at the home.
#[derive(Clone, Debug)]
pub struct ShardMap {
    /// Of each port, the shards that can send there.
    ports: Vec<Vec<usize>>,
    shards: usize,
    /// Clients whose MAC addresses follow each other and that are together.
    neighbors: u64,
}

impl ShardMap {
    /// The shards of each port that can send there, of so many that there are. Namespaces of other ports,
    /// which lead nowhere, are on the first.
    ///
    /// # Panics
    /// When there is no shard, or a port has one that is not there.
    pub fn new(ports: Vec<Vec<usize>>, shards: usize) -> ShardMap {
        let mut named = ports.iter().flatten();
        assert!(shards > 0 && named.all(|shard| *shard < shards));
        ShardMap {
            ports,
            shards,
            neighbors: NEIGHBORS,
        }
    }

    /// The same, with so many clients together whose MAC addresses follow each other: a test with few clients
    /// wants them apart.
    #[must_use]
    pub fn with_neighbors(self, neighbors: u64) -> ShardMap {
        ShardMap { neighbors, ..self }
    }

    /// One shard, which has all.
    pub fn single() -> ShardMap {
        ShardMap::new(Vec::new(), 1)
    }

    /// How many shards there are.
    pub fn shards(&self) -> usize {
        self.shards
    }

    /// The shard that is a namespace's home. Those of neighboring VLANs are on different ones.
    #[inline]
    pub fn home(&self, key: &NamespaceKey) -> usize {
        match self.of_port(key.port) {
            [] => 0,
            [only] => *only,
            shards => {
                let vlans = key.tags.map(|tag| usize::from(tag.vlan));
                shards[(usize::from(key.port) + vlans[0] + vlans[1]) % shards.len()]
            }
        }
    }

    /// The shard of a client that may stand on any. Those whose MAC addresses follow each other are
    /// together, some at a time, so that requests that add many are done in few parts.
    #[inline]
    pub fn client_owner(&self, key: &NamespaceKey, mac: MacAddress) -> usize {
        match self.of_port(key.port) {
            [] => 0,
            [only] => *only,
            shards => {
                let [a, b, c, d, e, f] = mac.octets();
                let number = u64::from_be_bytes([0, 0, a, b, c, d, e, f]) / self.neighbors;
                // The upper half of a product has something of all bits.
                let mixed = number.wrapping_mul(MULTIPLIER) >> 32;
                shards[((mixed * shards.len() as u64) >> 32) as usize]
            }
        }
    }

    /// The shards of a namespace besides its home: none where it stands on one.
    pub fn away(&self, key: &NamespaceKey) -> impl Iterator<Item = usize> {
        let home = self.home(key);
        let shards = self.of_port(key.port).iter().copied();
        shards.filter(move |shard| *shard != home)
    }

    /// Whether the clients of a port's namespaces may stand on several shards.
    #[inline]
    pub fn is_shared(&self, port: u16) -> bool {
        self.of_port(port).len() > 1
    }

    /// The home of the namespace of a frame that a port received.
    #[inline]
    pub fn home_of_frame(&self, port: u16, bytes: &[u8]) -> usize {
        match self.of_port(port) {
            [] => 0,
            [only] => *only,
            _ => self.home(&frame::tags_of(port, bytes).map_or_else(
                || NamespaceKey {
                    port,
                    tags: [Tag::default(); 2],
                },
                |(key, ..)| key,
            )),
        }
    }

    /// The shards that can send on a port.
    #[inline]
    pub(crate) fn of_port(&self, port: u16) -> &[usize] {
        let shards = self.ports.get(usize::from(port));
        shards.map_or(&[], Vec::as_slice)
    }
}

/// Clients whose MAC addresses follow each other and that are together, unless a test wants it otherwise.
const NEIGHBORS: u64 = 32;
/// An odd number with as many ones as zeros: 2^64 by the golden ratio.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::*;

    fn key(port: u16, outer: u16, inner: u16) -> NamespaceKey {
        let tag = |vlan| match vlan {
            0 => Tag::default(),
            vlan => Tag { tpid: 0x8100, vlan },
        };
        NamespaceKey {
            port,
            tags: [outer, inner].map(tag),
        }
    }

    #[test]
    fn namespaces_of_a_port_are_shared_out_evenly_over_its_shards() {
        let map = ShardMap::new(vec![vec![0, 1], vec![0, 1], vec![2]], 3);
        for vlans in [&[0, 1][..], &[10, 11, 12, 13]] {
            let owners = vlans.iter().map(|vlan| map.home(&key(0, *vlan, 0)));
            assert_eq!(2 * owners.sum::<usize>(), vlans.len());
        }
        // Without tags, those of a pair of ports are not together.
        assert_ne!(map.home(&key(0, 0, 0)), map.home(&key(1, 0, 0)));
        let inner = [1, 2].map(|inner| map.home(&key(0, 5, inner)));
        assert_ne!(inner[0], inner[1]);
        assert_eq!(map.home(&key(2, 7, 8)), 2);
        assert_eq!(map.home(&key(3, 7, 8)), 0, "there is no such port");
    }

    #[test]
    fn clients_of_a_namespace_are_shared_out_evenly_some_neighbors_at_a_time() {
        let map = ShardMap::new(vec![vec![0, 1, 2], vec![1]], 3);
        let owner = |number: u32| {
            let [b, c, d, e] = number.to_be_bytes();
            map.client_owner(&key(0, 7, 0), MacAddress([2, 0, b, c, d, e]))
        };
        for step in [1, 2, 32, 256, 65_536] {
            let mut counts = [0; 3];
            (0..30_000).for_each(|number| counts[owner(number * step)] += 1);
            assert!(
                counts.iter().all(|count| (8_500..11_500).contains(count)),
                "{step}: {counts:?}"
            );
        }
        let changes = (1..32_000).filter(|number| owner(number - 1) != owner(*number));
        assert!(changes.count() < 1_000);
        assert_eq!(map.client_owner(&key(1, 7, 0), MacAddress([2; 6])), 1);
        let away: Vec<_> = map.away(&key(0, 7, 0)).collect();
        assert_eq!((map.home(&key(0, 7, 0)), away), (1, vec![0, 2]));
        assert_eq!(map.away(&key(1, 7, 0)).count(), 0);
    }

    #[test]
    fn a_frame_is_for_the_shard_of_its_namespace() {
        let map = ShardMap::new(vec![vec![0, 1, 2]], 3);
        for (outer, inner) in [(0, 0), (1, 0), (2, 0), (5, 9), (4095, 1)] {
            let mut frame = vec![0xff; 12];
            for vlan in [outer, inner].into_iter().filter(|vlan| *vlan != 0) {
                // The priority is no part of a namespace.
                frame.extend([0x81, 0, 0xe0 | (vlan >> 8) as u8, vlan as u8]);
            }
            frame.extend([8, 6]);
            frame.resize(60, 0);
            let owner = map.home(&key(0, outer, inner));
            assert_eq!(map.home_of_frame(0, &frame), owner, "{outer}.{inner}");
        }
        for length in 0..14 {
            map.home_of_frame(0, &vec![0x81; length]);
        }
    }
}
