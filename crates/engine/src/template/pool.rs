//! Which addresses of a pool a core has, and in which order it uses them.

use super::spec::{Distribution, PerCore, PoolSpec};
use crate::rng::Lcg;

/// Which core asks, of how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolShare {
    /// The core, among those of its pair of ports.
    pub rank: u32,
    /// Cores of each pair of ports.
    pub cores: u32,
    /// The pair of ports.
    pub pair: u32,
    /// How many pairs there are.
    pub pairs: u32,
}

impl PoolShare {
    /// One core with one pair of ports.
    pub const ONLY: PoolShare = PoolShare {
        rank: 0,
        cores: 1,
        pair: 0,
        pairs: 1,
    };

    /// The number of this core among the cores of all pairs.
    pub fn thread(&self) -> u32 {
        self.rank * self.pairs + self.pair
    }

    /// The cores of all pairs.
    pub fn threads(&self) -> u32 {
        self.cores * self.pairs
    }

    /// This core's share of a number of flows: all shares together are the number.
    pub fn part_of(&self, flows: u32, base: u32) -> u32 {
        let threads = self.threads();
        let place = (u64::from(base) + u64::from(self.thread())) % u64::from(threads);
        flows / threads + u32::from(place < u64::from(flows % threads))
    }
}

/// Addresses in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRange {
    /// The first.
    pub first: u32,
    /// The last.
    pub last: u32,
}

impl AddressRange {
    /// What a core has of a pool. Where there are fewer addresses than cores, cores share some.
    pub fn of(pool: &PoolSpec, share: PoolShare) -> AddressRange {
        let (part, parts) = match pool.per_core {
            PerCore::Default => (share.thread(), share.threads()),
            PerCore::Sequence => (share.rank, share.cores),
        };
        let count = pool.count().max(1);
        let parts = u64::from(parts).min(count);
        let part = u64::from(part) % parts;
        let (each, rest) = (count / parts, count % parts);
        // The last ones have what is left over, one more each.
        let later = (part + rest).saturating_sub(parts);
        let has_more = part >= parts - rest;
        let first = part * each + later;
        let last = first + each + u64::from(has_more) - 1;
        let base = pool
            .first
            .wrapping_add(share.pair.wrapping_mul(pool.offset));
        AddressRange {
            first: base.wrapping_add(first as u32),
            last: base.wrapping_add(last as u32),
        }
    }

    /// How many.
    pub fn count(&self) -> u64 {
        u64::from(self.last.wrapping_sub(self.first)) + 1
    }

    /// Whether an address is one of these.
    pub fn contains(&self, address: u32) -> bool {
        address.wrapping_sub(self.first) <= self.last.wrapping_sub(self.first)
    }
}

/// The addresses of a range, over and over.
#[derive(Clone, Debug)]
pub struct AddressSequence {
    range: AddressRange,
    distribution: Distribution,
    /// The next place, when they come one after another.
    next: u64,
    rng: Lcg,
}

impl AddressSequence {
    /// The sequence of a range. `seed` matters when it is random: give each core and each pool
    /// their own.
    pub fn new(range: AddressRange, distribution: Distribution, seed: u32) -> AddressSequence {
        AddressSequence {
            range,
            distribution,
            next: 0,
            rng: Lcg::new(seed),
        }
    }

    /// The addresses that it gives.
    pub fn range(&self) -> AddressRange {
        self.range
    }

    /// The next address.
    #[inline]
    pub fn next_address(&mut self) -> u32 {
        let place = match self.distribution {
            Distribution::Sequence => {
                let place = self.next;
                self.next = if place + 1 == self.range.count() {
                    0
                } else {
                    place + 1
                };
                place
            }
            Distribution::Random => self.random_place(),
        };
        self.range.first.wrapping_add(place as u32)
    }

    /// One after another, the next address is that after this one. Random ones stay random.
    pub fn go_on_after(&mut self, address: u32) {
        let place = u64::from(address.wrapping_sub(self.range.first)) + 1;
        self.next = if place < self.range.count() { place } else { 0 };
    }

    fn random_place(&mut self) -> u64 {
        let mut bits = 0;
        for _ in 0..3 {
            bits = (bits << 15) | u128::from(self.rng.next15());
        }
        ((bits * u128::from(self.range.count())) >> 45) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::Side;
    use proptest::prelude::*;

    fn pool(first: u32, last: u32, offset: u32, per_core: PerCore) -> PoolSpec {
        PoolSpec {
            first,
            last,
            distribution: Distribution::Sequence,
            side: Side::Client,
            offset,
            per_core,
            hosts: None,
        }
    }

    fn shares(cores: u32, pairs: u32) -> impl Iterator<Item = PoolShare> {
        (0..cores * pairs).map(move |thread| PoolShare {
            rank: thread / pairs,
            cores,
            pair: thread % pairs,
            pairs,
        })
    }

    #[test]
    fn the_last_cores_have_one_more() {
        let pool = pool(100, 109, 0, PerCore::Default);
        let ranges = shares(4, 1).map(|share| AddressRange::of(&pool, share));
        let ranges: Vec<_> = ranges.map(|range| (range.first, range.last)).collect();
        assert_eq!(ranges, [(100, 101), (102, 103), (104, 106), (107, 109)]);
    }

    #[test]
    fn pairs_of_ports_differ_by_the_offset() {
        let pool = pool(0x1000_0000, 0x1000_00ff, 0x0100_0000, PerCore::Default);
        let share = |pair| PoolShare {
            pair,
            pairs: 2,
            ..PoolShare::ONLY
        };
        let first = AddressRange::of(&pool, share(0));
        assert_eq!((first.first, first.last), (0x1000_0000, 0x1000_007f));
        let second = AddressRange::of(&pool, share(1));
        assert_eq!((second.first, second.last), (0x1100_0080, 0x1100_00ff));
    }

    #[test]
    fn in_sequence_each_pair_has_the_whole_range() {
        let pool = pool(10, 13, 100, PerCore::Sequence);
        let ranges = shares(2, 2).map(|share| AddressRange::of(&pool, share));
        let ranges: Vec<_> = ranges.map(|range| (range.first, range.last)).collect();
        assert_eq!(ranges, [(10, 11), (110, 111), (12, 13), (112, 113)]);
    }

    #[test]
    fn few_servers_are_shared() {
        let pool = pool(7, 8, 0, PerCore::Default);
        let firsts = shares(5, 1).map(|share| AddressRange::of(&pool, share));
        let firsts: Vec<_> = firsts.map(|range| (range.first, range.count())).collect();
        assert_eq!(firsts, [(7, 1), (8, 1), (7, 1), (8, 1), (7, 1)]);
    }

    #[test]
    fn all_addresses_there_are_fit() {
        let all = pool(0, u32::MAX, 0, PerCore::Default);
        let range = AddressRange::of(&all, PoolShare::ONLY);
        assert_eq!(range.count(), 1 << 32);
        let mut sequence = AddressSequence::new(range, Distribution::Random, 3);
        assert_ne!(sequence.next_address(), sequence.next_address());
    }

    #[test]
    fn a_sequence_goes_round() {
        let range = AddressRange { first: 5, last: 7 };
        let mut sequence = AddressSequence::new(range, Distribution::Sequence, 1);
        let addresses: Vec<u32> = (0..7).map(|_| sequence.next_address()).collect();
        assert_eq!(addresses, [5, 6, 7, 5, 6, 7, 5]);
    }

    #[test]
    fn random_addresses_are_all_used_and_the_same_for_a_seed() {
        let range = AddressRange { first: 0, last: 99 };
        let draw = |seed| {
            let mut sequence = AddressSequence::new(range, Distribution::Random, seed);
            (0..10_000)
                .map(|_| sequence.next_address())
                .collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        let mut counts = [0; 100];
        draw(7)
            .into_iter()
            .for_each(|address| counts[address as usize] += 1);
        assert!(
            counts.iter().all(|count| (50..=160).contains(count)),
            "{counts:?}"
        );
    }

    proptest! {
        #[test]
        fn cores_share_a_pool_without_gap_or_overlap(
            first in any::<u32>(), count in 64_u32..5000, cores in 1_u32..9, pairs in 1_u32..8,
        ) {
            let pool = pool(first, first.saturating_add(count), 0, PerCore::Default);
            let mut ranges: Vec<_> =
                shares(cores, pairs).map(|share| AddressRange::of(&pool, share)).collect();
            if pool.count() < u64::from(cores * pairs) {
                return Ok(());
            }
            ranges.sort_by_key(|range| range.first);
            prop_assert_eq!(ranges[0].first, pool.first);
            prop_assert_eq!(ranges[ranges.len() - 1].last, pool.last);
            for two in ranges.windows(2) {
                prop_assert_eq!(two[0].last + 1, two[1].first);
            }
        }

        #[test]
        fn shares_of_a_limit_are_the_limit(
            flows in 0_u32..10_000, base in any::<u32>(), cores in 1_u32..9, pairs in 1_u32..5,
        ) {
            let parts = shares(cores, pairs).map(|share| share.part_of(flows, base));
            prop_assert_eq!(parts.sum::<u32>(), flows);
        }

        #[test]
        fn sequences_stay_in_their_range(
            first in any::<u32>(), last in any::<u32>(), seed in any::<u32>(),
        ) {
            let range = AddressRange { first: first.min(last), last: first.max(last) };
            for distribution in [Distribution::Sequence, Distribution::Random] {
                let mut sequence = AddressSequence::new(range, distribution, seed);
                for _ in 0..20 {
                    prop_assert!(range.contains(sequence.next_address()));
                }
            }
        }
    }
}
