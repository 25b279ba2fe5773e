//! The bytes in front of the IP packets of a link, MAC addresses included: written once, and of each
//! frame only what depends on its packet: lengths of outer headers, the checksum of an outer IPv4 header,
//! and the source port of an outer UDP header.

use std::net::Ipv4Addr;

use allosaur_packet::MacAddress;
use allosaur_packet::link::ethernet::{self, EtherType};
use allosaur_packet::network::checksum::Sum;
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::network::ipv4;
use allosaur_packet::transport::udp;

use super::Encapsulation;

/// The longest prefix, with room for two tags and the headers of a tunnel over IPv6.
pub const PREFIX_BYTES_MAX: usize = 128;
/// Two tags are shorter.
const SHORT_BYTES: usize = 32;
/// Lengths of outer headers in one prefix.
const LENGTHS_MAX: usize = 3;
const IPV4_BYTES: usize = ipv4::HEADER_BYTES_MIN;
/// Of outer packets.
const TIME_TO_LIVE: u8 = 64;
/// Source ports of tunnels over UDP: the dynamic ones (RFC 7348, section 5).
const SOURCE_PORT_FIRST: u16 = 49_152;

/// A field with a length: where it is, and what is added to the bytes of the packet.
#[derive(Clone, Copy, Debug, Default)]
struct LengthField {
    at: u8,
    added: u16,
}

/// An outer IPv4 header: where its checksum is, and the sum of its other fields without the length.
#[derive(Clone, Copy, Debug, Default)]
struct OuterIpv4 {
    at: u8,
    added: u16,
    sum: Sum,
}

/// What of a prefix depends on the packet.
#[derive(Clone, Copy, Debug, Default)]
struct Fixups {
    ipv4: Option<OuterIpv4>,
    lengths: [LengthField; LENGTHS_MAX],
    length_count: u8,
    /// Where the source port of an outer UDP header is; 0 is nowhere.
    source_port: u8,
}

/// What stands in front of the IP packets of a link.
#[derive(Clone, Debug)]
pub struct LinkPrefix {
    bytes: [u8; PREFIX_BYTES_MAX],
    len: u8,
    /// Nothing of it depends on the packet.
    is_constant: bool,
    fixups: Fixups,
}

impl LinkPrefix {
    /// That of packets of this type, to `peer` from `own` in `encapsulation`.
    pub fn new(
        peer: MacAddress,
        own: MacAddress,
        encapsulation: &Encapsulation,
        packet: EtherType,
    ) -> LinkPrefix {
        let mut prefix = PrefixBuilder::default();
        prefix.push(&peer.0);
        prefix.push(&own.0);
        encapsulation.push(packet, &mut prefix);
        prefix.finish()
    }

    /// How many bytes it has.
    #[inline(always)]
    pub fn bytes(&self) -> usize {
        usize::from(self.len)
    }

    /// Whether it is a header of Ethernet and nothing else.
    #[inline(always)]
    pub fn is_ethernet(&self) -> bool {
        self.bytes() == ethernet::HEADER_BYTES
    }

    /// The header of Ethernet, where there is nothing else.
    #[inline(always)]
    pub(crate) fn ethernet(&self) -> &[u8; ethernet::HEADER_BYTES] {
        let header = self.bytes.first_chunk();
        header.expect("a prefix has room for it")
    }

    /// Writes it at the beginning of a frame, in front of a packet of `packet_bytes`, its header included;
    /// the packet is written after it. `flow_hash` is asked where it decides a source port.
    ///
    /// # Panics
    ///
    /// When `frame` is not as long as [`bytes`](LinkPrefix::bytes) says.
    #[inline(always)]
    pub fn write(&self, packet_bytes: usize, flow_hash: impl FnOnce() -> u16, frame: &mut [u8]) {
        // A copy of a length that is known costs little, and the packet covers what was too much.
        match frame.first_chunk_mut::<SHORT_BYTES>() {
            Some(front) if self.bytes() <= SHORT_BYTES => {
                *front = *self.bytes.first_chunk().expect("there are more");
            }
            _ => frame[..self.bytes()].copy_from_slice(&self.bytes[..self.bytes()]),
        }
        if !self.is_constant {
            self.fix_up(packet_bytes as u16, flow_hash(), frame);
        }
    }

    /// Writes what depends on the packet.
    #[inline(never)]
    fn fix_up(&self, packet_bytes: u16, flow_hash: u16, prefix: &mut [u8]) {
        let mut put = |at: u8, value: u16| {
            let at = usize::from(at);
            prefix[at..at + 2].copy_from_slice(&value.to_be_bytes());
        };
        let fixups = &self.fixups;
        for field in &fixups.lengths[..usize::from(fixups.length_count)] {
            put(field.at, packet_bytes.wrapping_add(field.added));
        }
        if let Some(ipv4) = fixups.ipv4 {
            let total = packet_bytes.wrapping_add(ipv4.added);
            put(ipv4.at + 2, total);
            put(ipv4.at + 10, ipv4.sum.and_u16(total).checksum());
        }
        if fixups.source_port != 0 {
            put(fixups.source_port, SOURCE_PORT_FIRST | flow_hash >> 2);
        }
    }
}

/// Makes a prefix, header by header.
#[derive(Debug)]
pub struct PrefixBuilder {
    bytes: [u8; PREFIX_BYTES_MAX],
    len: usize,
    fixups: Fixups,
}

impl Default for PrefixBuilder {
    fn default() -> PrefixBuilder {
        PrefixBuilder {
            bytes: [0; PREFIX_BYTES_MAX],
            len: 0,
            fixups: Fixups::default(),
        }
    }
}

impl PrefixBuilder {
    /// Adds bytes.
    ///
    /// # Panics
    ///
    /// When all together are more than [`PREFIX_BYTES_MAX`].
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.len..][..bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    /// Adds a VLAN tag: its type, and its tag control information.
    pub fn push_tag(&mut self, ether_type: EtherType, tag: u16) {
        self.push(&ether_type.0.to_be_bytes());
        self.push(&tag.to_be_bytes());
    }

    /// Adds a field with a length: of what follows `from` bytes before the field, packet included.
    pub fn push_length(&mut self, from: usize) {
        let count = usize::from(self.fixups.length_count);
        self.fixups.lengths[count] = LengthField {
            at: self.len as u8,
            // Where it counts from, until all is there.
            added: (self.len - from) as u16,
        };
        self.fixups.length_count += 1;
        self.push(&[0; 2]);
    }

    /// Adds an IPv4 header. Routers do not fragment its packets.
    pub fn push_ipv4(&mut self, from: Ipv4Addr, to: Ipv4Addr, protocol: IpProtocol) {
        let at = self.len;
        self.push(&[0x45, 0, 0, 0, 0, 0, 0x40, 0, TIME_TO_LIVE, protocol.0, 0, 0]);
        self.push(&from.octets());
        self.push(&to.octets());
        self.fixups.ipv4 = Some(OuterIpv4 {
            at: at as u8,
            added: 0,
            sum: Sum::of(&self.bytes[at..at + IPV4_BYTES]),
        });
    }

    /// Adds a UDP header without a checksum, from a port that the flow decides: so do routers and cards
    /// tell flows apart.
    pub fn push_udp(&mut self, to: u16) {
        let at = self.len;
        self.fixups.source_port = at as u8;
        self.push(&[0; 2]);
        self.push(&to.to_be_bytes());
        self.push_length(self.len - at);
        self.push(&[0; 2]);
        debug_assert_eq!(self.len - at, udp::HEADER_BYTES);
    }

    fn finish(mut self) -> LinkPrefix {
        let (len, fixups) = (self.len as u16, &mut self.fixups);
        let lengths = &mut fixups.lengths[..usize::from(fixups.length_count)];
        for field in lengths.iter_mut() {
            field.added = len - field.added;
        }
        if let Some(ipv4) = &mut fixups.ipv4 {
            ipv4.added = len - u16::from(ipv4.at);
        }
        let is_constant =
            fixups.length_count == 0 && fixups.ipv4.is_none() && fixups.source_port == 0;
        LinkPrefix {
            bytes: self.bytes,
            len: self.len as u8,
            is_constant,
            fixups: self.fixups,
        }
    }
}

/// What a flow has of its own in a few bits, the same in each of its packets: from its addresses, of
/// IPv6 their last 32 bits, and its ports.
#[inline]
pub(crate) fn flow_hash(from: u32, to: u32, ports: (u16, u16)) -> u16 {
    let ports = u64::from(ports.0) << 16 | u64::from(ports.1);
    let addresses = u64::from(from) << 32 | u64::from(to);
    // Fibonacci hashing: the upper bits of a product with 2^64 by the golden ratio.
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = (addresses.wrapping_mul(GOLDEN) ^ ports).wrapping_mul(GOLDEN);
    (mixed >> 48) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACS: [MacAddress; 2] = [
        MacAddress([2, 0, 0, 0, 0, 1]),
        MacAddress([2, 0, 0, 0, 0, 2]),
    ];

    fn written(encapsulation: &Encapsulation, packet: EtherType) -> Vec<u8> {
        let prefix = LinkPrefix::new(MACS[0], MACS[1], encapsulation, packet);
        let mut bytes = vec![0xaa; prefix.bytes()];
        prefix.write(40, || 0xffff, &mut bytes);
        bytes
    }

    #[test]
    fn tags_are_written_with_their_types() {
        let plain = written(&Encapsulation::Ethernet, EtherType::IPV6);
        assert_eq!(plain, [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd]);
        let vlan = written(&Encapsulation::Vlan(0x2007), EtherType::IPV4);
        assert_eq!(vlan[12..], [0x81, 0, 0x20, 7, 8, 0]);
        let (outer, inner) = (0x6064, 200);
        let both = written(&Encapsulation::QinQ { outer, inner }, EtherType::IPV4);
        assert_eq!(both[12..], [0x88, 0xa8, 0x60, 0x64, 0x81, 0, 0, 200, 8, 0]);
    }

    #[test]
    fn flows_spread_over_source_ports() {
        let hashes = (0..64).map(|port| flow_hash(1, 2, (1024 + port, 80)));
        let ports = hashes.map(|hash| SOURCE_PORT_FIRST | hash >> 2);
        let ports: std::collections::HashSet<u16> = ports.collect();
        assert!(ports.len() > 60 && ports.iter().all(|port| *port >= SOURCE_PORT_FIRST));
    }
}
