//! Which shard has a namespace: all threads that share frames or calls out ask the same table.

use crate::frame;
use crate::namespace::{NamespaceKey, Tag};

/// Which shard has a namespace.
#[derive(Clone, Debug)]
pub struct ShardMap {
    /// Of each port, the shards that can send there.
    ports: Vec<Vec<usize>>,
    shards: usize,
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
        ShardMap { ports, shards }
    }

    /// One shard, which has all.
    pub fn single() -> ShardMap {
        ShardMap::new(Vec::new(), 1)
    }

    /// How many shards there are.
    pub fn shards(&self) -> usize {
        self.shards
    }

    /// The shard of a namespace. Those of neighboring VLANs are on different ones.
    #[inline]
    pub fn owner(&self, key: &NamespaceKey) -> usize {
        match self.of_port(key.port) {
            [] => 0,
            [only] => *only,
            shards => {
                let vlans = key.tags.map(|tag| usize::from(tag.vlan));
                shards[(usize::from(key.port) + vlans[0] + vlans[1]) % shards.len()]
            }
        }
    }

    /// The shard of the namespace of a frame that a port received.
    #[inline]
    pub fn owner_of_frame(&self, port: u16, bytes: &[u8]) -> usize {
        match self.of_port(port) {
            [] => 0,
            [only] => *only,
            _ => self.owner(&frame::tags_of(port, bytes).map_or_else(
                || NamespaceKey {
                    port,
                    tags: [Tag::default(); 2],
                },
                |(key, ..)| key,
            )),
        }
    }

    #[inline]
    fn of_port(&self, port: u16) -> &[usize] {
        let shards = self.ports.get(usize::from(port));
        shards.map_or(&[], Vec::as_slice)
    }
}

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
            let owners = vlans.iter().map(|vlan| map.owner(&key(0, *vlan, 0)));
            assert_eq!(2 * owners.sum::<usize>(), vlans.len());
        }
        // Without tags, those of a pair of ports are not together.
        assert_ne!(map.owner(&key(0, 0, 0)), map.owner(&key(1, 0, 0)));
        let inner = [1, 2].map(|inner| map.owner(&key(0, 5, inner)));
        assert_ne!(inner[0], inner[1]);
        assert_eq!(map.owner(&key(2, 7, 8)), 2);
        assert_eq!(map.owner(&key(3, 7, 8)), 0, "there is no such port");
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
            let owner = map.owner(&key(0, outer, inner));
            assert_eq!(map.owner_of_frame(0, &frame), owner, "{outer}.{inner}");
        }
        for length in 0..14 {
            map.owner_of_frame(0, &vec![0x81; length]);
        }
    }
}
