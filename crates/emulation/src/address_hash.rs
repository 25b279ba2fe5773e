//! The hash of addresses in tables of clients: eight that follow each other lie side by side.
//!
//! Clients mostly have addresses that follow each other, and who asks all of them mostly does so in that
//! order. A table of a million is larger than the caches of a core: with a hash that scatters, each
//! look at it waits for the memory, twice.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table by address.
pub(crate) type AddressMap<A> = HashMap<A, u32, BuildHasherDefault<AddressHasher>>;

/// Addresses that differ in these bits alone are neighbors.
const NEAR_BITS: u32 = 3;
/// An odd number with as many ones as zeros: 2^64 by the golden ratio.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// The hash of an address; of its bytes, the last is the one by which neighbors differ.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let mut words = bytes.rchunks_exact(8);
        let mut rest = [0; 8];
        let mut before = 0;
        if let Some(last) = words.next() {
            before = words.next().map_or(0, word);
            self.0 = word(last);
        } else {
            rest[8 - bytes.len()..].copy_from_slice(bytes);
            self.0 = u64::from_be_bytes(rest);
        }
        self.0 ^= mixed(before) << NEAR_BITS;
    }

    /// The length of an array, which is the same for all addresses of a table.
    #[inline]
    fn write_usize(&mut self, _: usize) {}

    /// The table takes the place from the low bits, and tells those at a place apart by the upper ones.
    #[inline]
    fn finish(&self) -> u64 {
        let near = self.0 & ((1 << NEAR_BITS) - 1);
        (mixed(self.0 >> NEAR_BITS) << NEAR_BITS | near) ^ near << (64 - NEAR_BITS)
    }
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes.try_into().expect("a chunk is eight bytes"))
}

/// All bits of a number in all bits of another.
#[inline]
fn mixed(number: u64) -> u64 {
    let product = u128::from(number) * u128::from(MULTIPLIER);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::hash::{BuildHasher, Hash};
    use std::net::{Ipv4Addr, Ipv6Addr};

    use allosaur_packet::MacAddress;

    fn hash(address: impl Hash) -> u64 {
        BuildHasherDefault::<AddressHasher>::default().hash_one(address)
    }

    #[test]
    fn addresses_that_follow_each_other_have_places_that_do() {
        for first in [0_u32, 0x1000_0000, 0xffff_fff8] {
            let hashes: Vec<u64> = (first..=first + 7)
                .map(|address| hash(Ipv4Addr::from_bits(address)))
                .collect();
            let places: Vec<u64> = hashes.iter().map(|hash| hash & 0xffff).collect();
            let expected: Vec<u64> = (places[0]..places[0] + 8).collect();
            assert_eq!(places, expected);
            let marks: HashSet<u64> = hashes.iter().map(|hash| hash >> 57).collect();
            assert_eq!(
                marks.len(),
                8,
                "they are told apart without a look at the addresses"
            );
        }
    }

    /// How many of the places of a table as large as twice the addresses are taken, by blocks of eight.
    fn places(addresses: impl ExactSizeIterator<Item = impl Hash>) -> f64 {
        let count = addresses.len();
        let mask = (2 * count as u64).next_power_of_two() - 1;
        let places: HashSet<u64> = addresses.map(|address| hash(address) & mask).collect();
        places.len() as f64 / count as f64
    }

    #[test]
    fn steps_of_any_size_scatter() {
        for shift in [0, 1, 3, 4, 8, 12, 16] {
            let ipv4 = (0..4096_u32).map(|n| Ipv4Addr::from_bits(0x0a00_0000 + (n << shift)));
            let mac = (0..4096_u32).map(|n| {
                let octets = (0x0200_0000_0000 + (u64::from(n) << shift)).to_be_bytes();
                MacAddress(octets[2..].try_into().expect("six bytes"))
            });
            let ipv6 = (0..4096_u32)
                .map(|n| Ipv6Addr::from_bits((0x2001 << 112) + (u128::from(n) << shift)));
            let upper = (0..4096_u32)
                .map(|n| Ipv6Addr::from_bits((u128::from(n) << (64 + shift)) + 0xfffe_0001));
            // With steps of eight or more only every eighth place is one to begin at.
            let least = if shift < 3 { 0.4 } else { 0.11 };
            for (what, found) in [
                ("ipv4", places(ipv4)),
                ("mac", places(mac)),
                ("ipv6", places(ipv6)),
                ("prefixes", places(upper)),
            ] {
                let least = if what == "prefixes" { 0.11 } else { least };
                assert!(found >= least, "{what}, steps of {}: {found}", 1 << shift);
            }
        }
    }
}
