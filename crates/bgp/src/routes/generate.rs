//! Tables made of a seed, with the proportions of the internet's table, and plain ranges.
//!
//! The proportions approximate a table of the internet without being one: lengths of prefixes, lengths of AS
//! paths, how many prefixes share their attributes, communities.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::table::{RouteGroup, RouteTable};
use crate::random::SeededRandom;
use crate::wire::attributes::{AsSegment, PathAttributes, PathOrigin};
use crate::wire::prefix::{AddressFamily, Prefix};

/// Most routes of a table: three times the internet's. With more, its share of prefixes of 16 bits would be
/// more than there are.
pub const ROUTES_MAX: u32 = 3_000_000;

/// Lengths of prefixes and their shares of ten thousand.
const LENGTHS_IPV4: [(u8, u32); 14] = [
    (24, 6150),
    (23, 1010),
    (22, 1110),
    (21, 510),
    (20, 440),
    (19, 250),
    (18, 140),
    (17, 85),
    (16, 135),
    (15, 20),
    (14, 12),
    (13, 6),
    (12, 3),
    (11, 1),
];
const LENGTHS_IPV6: [(u8, u32); 9] = [
    (48, 4800),
    (32, 1450),
    (44, 1100),
    (40, 900),
    (36, 550),
    (46, 450),
    (33, 350),
    (47, 250),
    (29, 150),
];
/// How often a path has 1, 2, 3, ... autonomous systems behind the first.
const PATH_LENGTHS: [u32; 8] = [2, 16, 34, 28, 12, 5, 2, 1];
/// How often a group has so many communities: 0, 1, 2, ...
const COMMUNITIES: [u32; 12] = [25, 10, 12, 12, 10, 8, 6, 5, 4, 3, 3, 2];
/// Odd and prime, so that a walk by it meets every block of a space once.
const STRIDE: u64 = 2_654_435_761;

/// Why no table was made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RoutesError {
    /// None, or more than we hold.
    #[error("count: {0} routes; a table has 1 to 3000000")]
    Count(u32),
    /// The range leaves its family.
    #[error(
        "prefix: {count} routes from {first} on go past the last address; take fewer, or an earlier prefix"
    )]
    PastTheEnd {
        /// The first prefix.
        first: Prefix,
        /// How many were asked for.
        count: u32,
    },
}

fn check_count(count: u32) -> Result<(), RoutesError> {
    if !(1..=ROUTES_MAX).contains(&count) {
        return Err(RoutesError::Count(count));
    }
    Ok(())
}

/// `count` prefixes, one behind the other from `first` on, with the same attributes.
///
/// # Errors
/// Where `count` is out of bounds, or the addresses are.
pub fn range(
    first: Prefix,
    count: u32,
    attributes: PathAttributes,
) -> Result<RouteTable, RoutesError> {
    check_count(count)?;
    let prefixes = (0..count).map(|index| first.offset(index));
    let prefixes: Option<Vec<Prefix>> = prefixes.collect();
    let prefixes = prefixes.ok_or(RoutesError::PastTheEnd { first, count })?;
    let group = RouteGroup {
        attributes,
        prefixes,
    };
    Ok(RouteTable::new(first.family(), vec![group]))
}

/// `count` routes like the internet's. `prefix_seed` says which prefixes, `attribute_seed` what they have in
/// common: another one makes the same prefixes change their attributes.
///
/// # Errors
/// Where `count` is out of bounds.
pub fn internet(
    family: AddressFamily,
    count: u32,
    prefix_seed: u64,
    attribute_seed: u64,
) -> Result<RouteTable, RoutesError> {
    check_count(count)?;
    let mut prefixes = PrefixGenerator::new(family, prefix_seed);
    let mut random = SeededRandom::new(attribute_seed);
    let mut groups = Vec::new();
    let mut left = count;
    while left > 0 {
        let length = group_len(&mut random).min(left);
        left -= length;
        groups.push(RouteGroup {
            attributes: attributes(&mut random),
            prefixes: (0..length).map(|_| prefixes.draw()).collect(),
        });
    }
    Ok(RouteTable::new(family, groups))
}

/// Most groups have one or two, few have hundreds; half as many are twice as large. Between four and five on
/// average.
fn group_len(random: &mut SeededRandom) -> u32 {
    let halvings = random.next_u64().leading_zeros().min(11);
    let base = 1_u32 << halvings.saturating_sub(1);
    base + random.below(base)
}

/// An AS number that is neither reserved nor private: of two octets most often.
fn as_number(random: &mut SeededRandom) -> u32 {
    if random.below(10) < 6 {
        1 + random.below(23_000)
    } else {
        131_072 + random.below(270_000)
    }
}

fn attributes(random: &mut SeededRandom) -> PathAttributes {
    let hops = 1 + random.weighted(&PATH_LENGTHS);
    let mut path: Vec<u32> = (0..hops).map(|_| as_number(random)).collect();
    let origin_as = path[hops - 1];
    // The last one puts itself into the path several times, to make it less liked.
    if random.below(10) == 0 {
        path.extend((0..1 + random.below(4)).map(|_| origin_as));
    }
    let communities = random.weighted(&COMMUNITIES);
    let carriers: Vec<u32> = path.iter().copied().filter(|n| *n < 65_536).collect();
    let community = |random: &mut SeededRandom| {
        let carrier = *carriers.first().unwrap_or(&3356);
        carrier << 16 | random.below(10_000)
    };
    let large = if random.below(8) == 0 {
        1 + random.below(4)
    } else {
        0
    };
    PathAttributes {
        origin: [PathOrigin::Igp, PathOrigin::Incomplete, PathOrigin::Egp]
            [random.weighted(&[900, 97, 3])],
        multi_exit_disc: (random.below(3) == 0).then(|| random.below(200)),
        atomic_aggregate: random.below(30) == 0,
        aggregator: (random.below(12) == 0).then(|| {
            (
                origin_as,
                Ipv4Addr::from_bits(0x0b00_0000 | random.below(1 << 24)),
            )
        }),
        communities: (0..communities).map(|_| community(random)).collect(),
        large_communities: (0..large)
            .map(|_| [origin_as, random.below(100), random.below(1000)])
            .collect(),
        as_path: vec![AsSegment::Sequence(path)],
        ..PathAttributes::default()
    }
}

/// Draws prefixes, none of them twice.
struct PrefixGenerator {
    family: AddressFamily,
    random: SeededRandom,
    lengths: &'static [(u8, u32)],
    weights: Vec<u32>,
    /// Where the walk through all blocks of each length is.
    walks: Vec<u64>,
}

impl PrefixGenerator {
    fn new(family: AddressFamily, seed: u64) -> Self {
        let lengths: &[(u8, u32)] = match family {
            AddressFamily::Ipv4 => &LENGTHS_IPV4,
            AddressFamily::Ipv6 => &LENGTHS_IPV6,
        };
        let mut random = SeededRandom::new(seed);
        Self {
            family,
            lengths,
            weights: lengths.iter().map(|(_, weight)| *weight).collect(),
            walks: lengths.iter().map(|_| random.next_u64() >> 32).collect(),
            random,
        }
    }

    fn draw(&mut self) -> Prefix {
        let index = self.random.weighted(&self.weights);
        let (length, _) = self.lengths[index];
        loop {
            let step = self.walks[index];
            self.walks[index] += 1;
            let prefix = match self.family {
                AddressFamily::Ipv4 => ipv4(length, step),
                AddressFamily::Ipv6 => ipv6(length, step),
            };
            if let Some(prefix) = prefix {
                return prefix;
            }
        }
    }
}

/// A block of the unicast space, without those that no peer takes: this network, private and loopback.
fn ipv4(length: u8, step: u64) -> Option<Prefix> {
    let blocks = 1_u64 << length;
    let block = (step % blocks).wrapping_mul(STRIDE) % blocks;
    let address = Ipv4Addr::from_bits((block << (32 - length)) as u32);
    let [first, ..] = address.octets();
    // A short prefix that begins outside of a reserved /8 holds none of it: all are longer than /8.
    let is_reserved = matches!(
        first,
        0 | 10 | 100 | 127 | 169 | 172 | 192 | 198 | 203 | 224..
    );
    (!is_reserved).then(|| Prefix::new(IpAddr::V4(address), length))?
}

/// A block of 2000::/3, without 2001::/16 and 2002::/16.
fn ipv6(length: u8, step: u64) -> Option<Prefix> {
    let blocks = 1_u64 << (length - 3);
    let block = (step % blocks).wrapping_mul(STRIDE) % blocks;
    let bits = (1_u128 << 125) | (u128::from(block) << (128 - u32::from(length)));
    let address = Ipv6Addr::from_bits(bits);
    let is_reserved = matches!(address.segments()[0], 0x2001 | 0x2002);
    (!is_reserved).then(|| Prefix::new(IpAddr::V6(address), length))?
}
