//! Receive-side scaling: which receive queue a network card puts a frame into.
//!
//! The card hashes the addresses and ports of a packet by Toeplitz's method with a key, and looks
//! the low bits of the hash up in its indirection table (Microsoft, "RSS Hashing Types" and
//! "Verifying the RSS Hash Calculation"). The hash of a whole is the XOR of those of its parts: each
//! part is looked up byte by byte in a table of its place, and parts that many packets have in
//! common are hashed once.

use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;

use thiserror::Error;

/// Bytes of the key that the hash of an IPv6 packet with ports needs.
pub const KEY_BYTES_MIN: usize = 40;
/// Most entries of an indirection table.
pub const ENTRIES_MAX: usize = 1 << 16;

/// What a card makes of the key and a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashFunction {
    /// Of source and destination address, then source and destination port.
    Toeplitz,
    /// The same, where each of the two addresses, and each of the two ports, is replaced by the XOR
    /// of both (`symmetric-xor` of ethtool): both directions of a flow have the same hash.
    SymmetricXor,
}

/// Why a key and a table say nothing about queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RssError {
    /// The key ends before the packet does.
    #[error("its hash key has {bytes} bytes, and {KEY_BYTES_MIN} are needed")]
    ShortKey {
        /// Bytes that it has.
        bytes: usize,
    },
    /// Low bits of a hash cannot be looked up there.
    #[error("its indirection table has {entries} entries, which is no power of two up to 65536")]
    Table {
        /// Entries that it has.
        entries: usize,
    },
}

/// How a card shares out over its queues what arrives.
#[derive(Clone)]
pub struct Rss {
    ipv4: PacketHash,
    ipv6: PacketHash,
    /// A power of two of them.
    queues: Vec<u16>,
}

impl Rss {
    /// By the key and the indirection table, an entry of which is the number of a queue.
    ///
    /// # Errors
    ///
    /// When the key is too short, or the number of entries is not a power of two.
    pub fn new(key: &[u8], table: &[u16], function: HashFunction) -> Result<Rss, RssError> {
        if key.len() < KEY_BYTES_MIN {
            return Err(RssError::ShortKey { bytes: key.len() });
        }
        let entries = table.len();
        if !entries.is_power_of_two() || entries > ENTRIES_MAX {
            return Err(RssError::Table { entries });
        }
        Ok(Rss {
            ipv4: PacketHash::new(key, 4, function),
            ipv6: PacketHash::new(key, 16, function),
            queues: table.to_vec(),
        })
    }

    /// How packets of a family are hashed.
    pub fn packet_hash(&self, is_ipv6: bool) -> &PacketHash {
        if is_ipv6 { &self.ipv6 } else { &self.ipv4 }
    }

    /// The hash of a packet of TCP or UDP; 0 when one address is of IPv4 and the other is not.
    pub fn hash(&self, addresses: (IpAddr, IpAddr), ports: (u16, u16)) -> u32 {
        let of = |hash: &PacketHash, source: &[u8], destination: &[u8]| {
            let addresses = hash.source(0, source) ^ hash.destination(0, destination);
            addresses ^ hash.source_port(ports.0) ^ hash.destination_port(ports.1)
        };
        match addresses {
            (IpAddr::V4(from), IpAddr::V4(to)) => of(&self.ipv4, &from.octets(), &to.octets()),
            (IpAddr::V6(from), IpAddr::V6(to)) => of(&self.ipv6, &from.octets(), &to.octets()),
            _ => 0,
        }
    }

    /// The queue of a hash.
    #[inline]
    pub fn queue(&self, hash: u32) -> u16 {
        self.queues[self.entry(hash)]
    }

    /// The queues of all entries of the indirection table.
    pub fn table(&self) -> &[u16] {
        &self.queues
    }

    #[inline]
    fn entry(&self, hash: u32) -> usize {
        hash as usize & (self.queues.len() - 1)
    }

    /// Whether a packet gets to every entry of the table by its destination port alone, one of
    /// `ports`, whatever its addresses and its source port are.
    fn reaches_all(&self, ports: RangeInclusive<u16>) -> bool {
        [&self.ipv4, &self.ipv6].into_iter().all(|hash| {
            let mut is_reached = vec![false; self.queues.len()];
            for port in ports.clone() {
                is_reached[self.entry(hash.destination_port(port))] = true;
            }
            // The rest of the packet only exchanges entries.
            !is_reached.contains(&false)
        })
    }
}

impl fmt::Debug for Rss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = self.queues.len();
        write!(f, "Rss with {entries} entries")
    }
}

/// The hash of packets of one family, part by part: the hash of a packet is the XOR of those of all
/// its parts.
#[derive(Clone)]
pub struct PacketHash {
    address_bytes: usize,
    /// Of each byte of the input, by its value.
    places: Vec<[u32; 256]>,
}

impl PacketHash {
    fn new(key: &[u8], address_bytes: usize, function: HashFunction) -> PacketHash {
        let count = 2 * address_bytes + 4;
        let mut places: Vec<_> = (0..count).map(|place| hashes_at(key, place)).collect();
        if function == HashFunction::SymmetricXor {
            let ports = 2 * address_bytes;
            let addresses = (0..address_bytes).map(|place| (place, place + address_bytes));
            for (one, other) in addresses.chain([(ports, ports + 2), (ports + 1, ports + 3)]) {
                // Either value stands in both places, beside the other.
                let both = std::array::from_fn(|value| places[one][value] ^ places[other][value]);
                (places[one], places[other]) = (both, both);
            }
        }
        PacketHash {
            address_bytes,
            places,
        }
    }

    /// Of a part of the source address that begins at this byte of it.
    #[inline]
    pub fn source(&self, at: usize, bytes: &[u8]) -> u32 {
        self.part(at, bytes)
    }

    /// Of a part of the destination address that begins at this byte of it.
    #[inline]
    pub fn destination(&self, at: usize, bytes: &[u8]) -> u32 {
        self.part(self.address_bytes + at, bytes)
    }

    /// Of the source port.
    #[inline]
    pub fn source_port(&self, port: u16) -> u32 {
        self.part(2 * self.address_bytes, &port.to_be_bytes())
    }

    /// Of the destination port.
    #[inline]
    pub fn destination_port(&self, port: u16) -> u32 {
        self.part(2 * self.address_bytes + 2, &port.to_be_bytes())
    }

    #[inline]
    fn part(&self, at: usize, bytes: &[u8]) -> u32 {
        let places = self.places[at..].iter().zip(bytes);
        places.fold(0, |hash, (place, byte)| hash ^ place[usize::from(*byte)])
    }
}

impl fmt::Debug for PacketHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PacketHash of {} bytes", self.places.len())
    }
}

/// The hashes of a byte at a place of the input, by its value: for each of its bits that is set, the
/// 32 bits of the key from that bit of the input on.
fn hashes_at(key: &[u8], place: usize) -> [u32; 256] {
    let window = |bit: u32| {
        let first =
            u32::from_be_bytes([key[place], key[place + 1], key[place + 2], key[place + 3]]);
        match bit {
            0 => first,
            _ => first << bit | u32::from(key[place + 4]) >> (8 - bit),
        }
    };
    std::array::from_fn(|value| {
        let is_set = |bit: &u32| value >> (7 - bit) & 1 == 1;
        let bits = (0..8).filter(is_set);
        bits.fold(0, |hash, bit| hash ^ window(bit))
    })
}

/// The part of what a card shares out that one reader gets.
#[derive(Clone, Debug)]
pub struct RssShare {
    rss: Arc<Rss>,
    /// Of each entry of the table, whether its queue is read here.
    is_own: Vec<bool>,
}

impl RssShare {
    /// That of who reads the queues that `reads` says.
    pub fn new(rss: Arc<Rss>, reads: impl Fn(u16) -> bool) -> RssShare {
        let is_own = rss.queues.iter().map(|queue| reads(*queue)).collect();
        RssShare { rss, is_own }
    }

    /// The distribution that it is a part of.
    pub fn rss(&self) -> &Rss {
        &self.rss
    }

    /// Whether packets of this hash come here.
    #[inline]
    pub fn has(&self, hash: u32) -> bool {
        self.is_own[self.rss.entry(hash)]
    }

    /// Whether any packet comes here.
    pub fn is_empty(&self) -> bool {
        !self.is_own.contains(&true)
    }

    /// Whether each packet has one of these destination ports with which it comes here, whatever its
    /// addresses and its source port are.
    pub fn is_reached_by(&self, ports: RangeInclusive<u16>) -> bool {
        !self.is_empty() && self.rss.reaches_all(ports)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The key of Microsoft's verification suite.
    const KEY: [u8; 40] = [
        0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f,
        0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
        0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
    ];

    fn rss(key: &[u8], function: HashFunction) -> Rss {
        Rss::new(key, &[0, 1, 2, 3], function).expect("a whole key")
    }

    /// The hash bit by bit, as the specification says it.
    fn hash_by_bits(key: &[u8], input: &[u8]) -> u32 {
        let bit = |bytes: &[u8], at: usize| bytes[at / 8] >> (7 - at % 8) & 1;
        let mut hash = 0;
        for at in (0..input.len() * 8).filter(|at| bit(input, *at) == 1) {
            hash ^= (at..at + 32).fold(0, |window, at| window << 1 | u32::from(bit(key, at)));
        }
        hash
    }

    fn input(addresses: (IpAddr, IpAddr), ports: (u16, u16)) -> Vec<u8> {
        let octets = |address| match address {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        };
        let ports = [ports.0.to_be_bytes(), ports.1.to_be_bytes()].concat();
        [octets(addresses.0), octets(addresses.1), ports].concat()
    }

    /// Destination, its port, source, its port; the hashes without ports and with them.
    const VECTORS: [(&str, u16, &str, u16, u32, u32); 8] = [
        (
            "161.142.100.80",
            1766,
            "66.9.149.187",
            2794,
            0x323e_8fc2,
            0x51cc_c178,
        ),
        (
            "65.69.140.83",
            4739,
            "199.92.111.2",
            14230,
            0xd718_262a,
            0xc626_b0ea,
        ),
        (
            "12.22.207.184",
            38024,
            "24.19.198.95",
            12898,
            0xd2d0_a5de,
            0x5c2b_394a,
        ),
        (
            "209.142.163.6",
            2217,
            "38.27.205.30",
            48228,
            0x8298_9176,
            0xafc7_327f,
        ),
        (
            "202.188.127.2",
            1303,
            "153.39.163.191",
            44251,
            0x5d18_09c5,
            0x10e8_28a2,
        ),
        (
            "3ffe:2501:200:3::1",
            1766,
            "3ffe:2501:200:1fff::7",
            2794,
            0x2cc1_8cd5,
            0x4020_7d3d,
        ),
        (
            "ff02::1",
            4739,
            "3ffe:501:8::260:97ff:fe40:efab",
            14230,
            0x0f0c_461c,
            0xdde5_1bbf,
        ),
        (
            "fe80::200:f8ff:fe21:67cf",
            38024,
            "3ffe:1900:4545:3:200:f8ff:fe21:67cf",
            44251,
            0x4b61_e985,
            0x02d1_feef,
        ),
    ];

    #[test]
    fn hashes_are_those_that_microsoft_publishes() {
        let rss = rss(&KEY, HashFunction::Toeplitz);
        for (to, to_port, from, from_port, without_ports, with_ports) in VECTORS {
            let address = |text: &str| text.parse::<IpAddr>().expect("an address");
            let (from, to) = (address(from), address(to));
            assert_eq!(
                rss.hash((from, to), (from_port, to_port)),
                with_ports,
                "{to}"
            );
            assert_eq!(rss.hash((from, to), (0, 0)), without_ports, "{to}");
        }
    }

    #[test]
    fn keys_and_tables_that_say_nothing_are_refused() {
        let made = |key: &[u8], entries| {
            let table = vec![0; entries];
            Rss::new(key, &table, HashFunction::Toeplitz).map(drop)
        };
        assert_eq!(made(&KEY[..39], 4), Err(RssError::ShortKey { bytes: 39 }));
        for entries in [0, 3, 100, 2 * ENTRIES_MAX] {
            assert_eq!(made(&KEY, entries), Err(RssError::Table { entries }));
        }
        assert_eq!(made(&KEY, ENTRIES_MAX), Ok(()));
        assert_eq!(made(&[1; 52], 1), Ok(()));
    }

    #[test]
    fn a_share_is_reached_when_ports_change_the_entry() {
        let client_ports = || 1024..=u16::MAX;
        let share = |key: &[u8], table: &[u16], queue| {
            let rss = Rss::new(key, table, HashFunction::Toeplitz).expect("well formed");
            RssShare::new(Arc::new(rss), |own| own == queue)
        };
        let table: Vec<u16> = (0..128).map(|entry| entry % 4).collect();
        assert!(share(&KEY, &table, 3).is_reached_by(client_ports()));
        let repeated: Vec<u8> = [0x6d, 0x5a].repeat(20);
        assert!(share(&repeated, &table, 3).is_reached_by(client_ports()));
        // Nothing is sent to queue 4; eight ports cannot choose among 128 entries; the hash of a key
        // of zeros is always 0.
        assert!(!share(&KEY, &table, 4).is_reached_by(client_ports()));
        assert!(!share(&KEY, &table, 3).is_reached_by(1024..=1031));
        assert!(!share(&[0; 40], &table, 0).is_reached_by(client_ports()));
    }

    fn addresses() -> impl Strategy<Value = (IpAddr, IpAddr)> {
        let v4 = any::<[[u8; 4]; 2]>().prop_map(|[a, b]| (a.into(), b.into()));
        let v6 = any::<[[u8; 16]; 2]>().prop_map(|[a, b]| (a.into(), b.into()));
        prop_oneof![v4, v6]
    }

    proptest! {
        #[test]
        fn tables_hash_as_bits_do(
            key in prop::collection::vec(any::<u8>(), 40..=52),
            addresses in addresses(),
            ports in any::<(u16, u16)>(),
        ) {
            let hash = rss(&key, HashFunction::Toeplitz).hash(addresses, ports);
            prop_assert_eq!(hash, hash_by_bits(&key, &input(addresses, ports)));
        }

        #[test]
        fn both_directions_have_one_hash_by_a_repeated_key_and_by_xor(
            half in any::<[u8; 2]>(),
            key in prop::collection::vec(any::<u8>(), 40),
            addresses in addresses(),
            ports in any::<(u16, u16)>(),
        ) {
            let back = ((addresses.1, addresses.0), (ports.1, ports.0));
            let by_key = rss(&half.repeat(20), HashFunction::Toeplitz);
            prop_assert_eq!(by_key.hash(addresses, ports), by_key.hash(back.0, back.1));
            let by_xor = rss(&key, HashFunction::SymmetricXor);
            prop_assert_eq!(by_xor.hash(addresses, ports), by_xor.hash(back.0, back.1));
            // The kernel's way: both addresses and both ports are replaced before the hash.
            let mut xored = input(addresses, ports);
            let address_bytes = (xored.len() - 4) / 2;
            let pairs = (0..address_bytes).map(|at| (at, at + address_bytes));
            let ports_at = 2 * address_bytes;
            for (a, b) in pairs.chain([(ports_at, ports_at + 2), (ports_at + 1, ports_at + 3)]) {
                let both = xored[a] ^ xored[b];
                (xored[a], xored[b]) = (both, both);
            }
            prop_assert_eq!(by_xor.hash(addresses, ports), hash_by_bits(&key, &xored));
        }

        #[test]
        fn every_packet_comes_to_one_share(
            queues in prop::collection::vec(0u16..4, 16),
            addresses in addresses(),
            ports in any::<(u16, u16)>(),
        ) {
            let rss = Arc::new(Rss::new(&KEY, &queues, HashFunction::Toeplitz).expect("a key"));
            let hash = rss.hash(addresses, ports);
            let shares = (0..4).map(|own| RssShare::new(Arc::clone(&rss), move |q| q == own));
            let having: Vec<bool> = shares.map(|share| share.has(hash)).collect();
            let expected: Vec<bool> = (0..4).map(|own| own == rss.queue(hash)).collect();
            prop_assert_eq!(having, expected);
        }
    }
}
