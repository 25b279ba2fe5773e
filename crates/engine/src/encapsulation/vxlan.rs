//! VXLAN (RFC 7348): frames in UDP over IPv4, numbered by the network that they belong to.

use std::net::Ipv4Addr;

use allosaur_packet::MacAddress;
use allosaur_packet::link::ethernet::{self, EtherType};
use allosaur_packet::network::checksum::{Sum, pseudo_header_v4};
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::network::ipv4;
use allosaur_packet::shared_payload::SplitFrame;
use allosaur_packet::transport::udp::{self, UdpView};
use allosaur_packet::transport::vxlan::{HAS_VNI, HEADER_BYTES, PORT};

use super::{Encapsulation, PrefixBuilder, Stripped, TunnelKind};

const IPV4_BYTES: usize = ipv4::HEADER_BYTES_MIN;
/// An IPv4 header without options, and one of UDP.
const OUTER_BYTES: usize = IPV4_BYTES + udp::HEADER_BYTES;
/// The header of VXLAN, and that of the frame in it.
const INNER_BYTES: usize = HEADER_BYTES + ethernet::HEADER_BYTES;

/// One network between two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Vxlan {
    /// The tag of the outer frame.
    pub vlan: Option<u16>,
    /// The address of our end (VTEP).
    pub local: Ipv4Addr,
    /// That of the other end.
    pub remote: Ipv4Addr,
    /// The UDP port of both.
    pub port: u16,
    /// The number of the network, of 24 bits.
    pub vni: u32,
    /// As the setting of a port: it takes frames of any network, and answers in it.
    pub takes_any_vni: bool,
    /// MAC addresses in the tunnel: ours.
    pub own: MacAddress,
    /// And that of the gateway or host there.
    pub peer: MacAddress,
}

impl Vxlan {
    /// A network between two ends, at the port of the standard.
    pub fn new(local: Ipv4Addr, remote: Ipv4Addr, vni: u32) -> Vxlan {
        Vxlan {
            vlan: None,
            local,
            remote,
            port: PORT,
            vni,
            takes_any_vni: false,
            own: MacAddress::default(),
            peer: MacAddress::default(),
        }
    }
}

impl TunnelKind for Vxlan {
    const NAME: &'static str = "vxlan";

    fn push(&self, packet: EtherType, prefix: &mut PrefixBuilder) {
        Encapsulation::from(self.vlan).push(EtherType::IPV4, prefix);
        prefix.push_ipv4(self.local, self.remote, IpProtocol::UDP);
        prefix.push_udp(self.port);
        prefix.push(&[HAS_VNI, 0, 0, 0]);
        prefix.push(&(self.vni << 8).to_be_bytes());
        prefix.push(&self.peer.0);
        prefix.push(&self.own.0);
        prefix.push(&packet.0.to_be_bytes());
    }

    fn strip(&self, frame: &SplitFrame<'_>) -> Stripped {
        let tags = Encapsulation::strip_tags(frame.head);
        let Stripped::Packet {
            packet_offset,
            packet: EtherType::IPV4,
            came_in,
        } = tags
        else {
            return tags;
        };
        let Some(outer) = Outer::read(frame.head, packet_offset) else {
            return tags;
        };
        if outer.to != (self.local, self.port) {
            return tags;
        }
        if outer.has_checksum && !outer.is_intact(frame, packet_offset + IPV4_BYTES) {
            return Stripped::Malformed;
        }
        let inner_offset = packet_offset + OUTER_BYTES;
        let inner = frame.head.get(inner_offset..);
        let inner: Option<&[u8; INNER_BYTES]> = inner.and_then(<[u8]>::first_chunk);
        let Some(inner) = inner else {
            return Stripped::Malformed;
        };
        let [flags, _, _, _, high, middle, low, _, rest @ ..] = *inner;
        if flags & HAS_VNI == 0 {
            return Stripped::Malformed;
        }
        let vni = u32::from_be_bytes([0, high, middle, low]);
        if vni != self.vni && !self.takes_any_vni {
            return Stripped::OtherNetwork;
        }
        let [
            t0,
            t1,
            t2,
            t3,
            t4,
            t5,
            f0,
            f1,
            f2,
            f3,
            f4,
            f5,
            type_high,
            type_low,
        ] = rest;
        let answer = Vxlan {
            vlan: match came_in {
                Encapsulation::Vlan(tag) => Some(tag),
                _ => None,
            },
            remote: outer.from,
            vni,
            takes_any_vni: false,
            own: MacAddress([t0, t1, t2, t3, t4, t5]),
            peer: MacAddress([f0, f1, f2, f3, f4, f5]),
            ..*self
        };
        Stripped::Packet {
            packet_offset: inner_offset + INNER_BYTES,
            packet: EtherType(u16::from_be_bytes([type_high, type_low])),
            came_in: answer.into(),
        }
    }

    fn network(&self) -> u32 {
        self.vni + 1
    }
}

/// What the outer headers say of a datagram that is no fragment.
struct Outer {
    from: Ipv4Addr,
    to: (Ipv4Addr, u16),
    has_checksum: bool,
}

impl Outer {
    /// Reads the headers at `at`. What has IP options is from no tunnel's end.
    #[inline]
    fn read(frame: &[u8], at: usize) -> Option<Outer> {
        let headers: &[u8; OUTER_BYTES] = frame.get(at..)?.first_chunk()?;
        let (network, _) = headers.split_first_chunk::<IPV4_BYTES>()?;
        let is_whole = u16::from_be_bytes([network[6], network[7]]) & 0x3fff == 0;
        let is_datagram = network[0] == 0x45 && network[9] == IpProtocol::UDP.0 && is_whole;
        if !is_datagram || Sum::of_header(network).checksum() != 0 {
            return None;
        }
        let address = |at: usize| {
            Ipv4Addr::new(
                network[at],
                network[at + 1],
                network[at + 2],
                network[at + 3],
            )
        };
        let port = u16::from_be_bytes([headers[IPV4_BYTES + 2], headers[IPV4_BYTES + 3]]);
        Some(Outer {
            from: address(12),
            to: (address(16), port),
            has_checksum: headers[IPV4_BYTES + udp::CHECKSUM_OFFSET..] != [0; 2],
        })
    }

    /// Whether the checksum of the datagram at `at` is right. One that is not 0 covers all that it
    /// carries, and what fails it must be dropped by who verifies it (RFC 7348, section 5).
    #[inline(never)]
    fn is_intact(&self, frame: &SplitFrame<'_>, at: usize) -> bool {
        let Some(bytes) = frame.head.get(at..) else {
            return false;
        };
        let datagram = UdpView::new_unchecked(bytes);
        let length_bytes = datagram.length_bytes();
        let pseudo_header = pseudo_header_v4(self.from, self.to.0, IpProtocol::UDP, length_bytes);
        if !frame.is_split() {
            return datagram.has_right_checksum(pseudo_header);
        }
        // All headers have an even number of bytes, so the payload's sum is that at an even place.
        let sum = pseudo_header.and(bytes).and_sum(frame.sum());
        usize::from(length_bytes) == bytes.len() + frame.payload.len() && sum.checksum() == 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::encapsulation::LinkPrefix;

    const OURS: Vxlan = Vxlan {
        vlan: Some(7),
        local: Ipv4Addr::new(192, 0, 2, 1),
        remote: Ipv4Addr::new(192, 0, 2, 2),
        port: 4789,
        vni: 0x12_3456,
        takes_any_vni: false,
        own: MacAddress([2, 0, 0, 0, 1, 1]),
        peer: MacAddress([2, 0, 0, 0, 1, 2]),
    };
    const THEIRS: Vxlan = Vxlan {
        local: OURS.remote,
        remote: OURS.local,
        own: OURS.peer,
        peer: OURS.own,
        ..OURS
    };

    fn stripped(ours: Vxlan, frame: &[u8]) -> Stripped {
        ours.strip(&SplitFrame::whole(0, frame))
    }

    /// What the other end sends in front of a packet.
    fn sent(tunnel: Vxlan, packet_bytes: usize) -> Vec<u8> {
        let (peer, own) = (MacAddress([4; 6]), MacAddress([2; 6]));
        let prefix = LinkPrefix::new(peer, own, &tunnel.into(), EtherType::IPV6);
        let mut bytes = vec![0xaa; prefix.bytes()];
        prefix.write(packet_bytes, || 0x1234, &mut bytes);
        bytes
    }

    #[test]
    fn what_is_written_is_read_and_answered() {
        let prefix = sent(THEIRS, 1_000);
        assert_eq!(prefix.len(), 12 + 4 + 2 + 20 + 8 + 8 + 14);
        let (network, datagram) = (&prefix[18..38], &prefix[38..46]);
        assert_eq!(network[2..4], (20 + 8 + 8 + 14 + 1_000_u16).to_be_bytes());
        assert_eq!(Sum::of(network).checksum(), 0);
        assert_eq!(datagram[4..6], (8 + 8 + 14 + 1_000_u16).to_be_bytes());
        assert_eq!(datagram[6..8], [0, 0], "no checksum");
        let expected = Stripped::Packet {
            packet_offset: prefix.len(),
            packet: EtherType::IPV6,
            came_in: OURS.into(),
        };
        assert_eq!(stripped(OURS, &prefix), expected);
    }

    #[test]
    fn a_checksum_covers_the_payload_wherever_that_is() {
        let mut bytes = sent(THEIRS, 60);
        let head_bytes = bytes.len();
        bytes.extend((0..60).map(|n| n * 3 + 1));
        let mut datagram = UdpView::new_unchecked(&mut bytes[38..]);
        let length_bytes = datagram.length_bytes();
        let (from, to) = (OURS.remote, OURS.local);
        datagram.fill_checksum(pseudo_header_v4(from, to, IpProtocol::UDP, length_bytes));
        let (head, payload) = bytes.split_at(head_bytes);
        let split = SplitFrame {
            at_ns: 0,
            head,
            payload,
            payload_sum: Sum::of(payload).folded(),
        };
        let is_packet =
            |frame: &SplitFrame<'_>| matches!(OURS.strip(frame), Stripped::Packet { .. });
        assert!(is_packet(&split) && is_packet(&SplitFrame::whole(0, &bytes)));
        let payload_sum = split.payload_sum ^ 1;
        let wrong = [
            SplitFrame {
                payload_sum,
                ..split
            },
            SplitFrame {
                payload: &payload[1..],
                ..split
            },
            SplitFrame::whole(0, &bytes[..bytes.len() - 1]),
        ];
        for frame in &wrong {
            assert_eq!(OURS.strip(frame), Stripped::Malformed);
        }
    }

    #[test]
    fn another_network_is_told_from_another_end() {
        let frame = sent(Vxlan { vni: 5, ..THEIRS }, 40);
        assert_eq!(stripped(OURS, &frame), Stripped::OtherNetwork);
        let any = Vxlan {
            takes_any_vni: true,
            ..OURS
        };
        let answer = Vxlan { vni: 5, ..OURS };
        let Stripped::Packet { came_in, .. } = stripped(any, &frame) else {
            panic!("it takes any");
        };
        assert_eq!(came_in, answer.into());
        let elsewhere = sent(
            Vxlan {
                port: 8_472,
                ..THEIRS
            },
            40,
        );
        let as_it_is = Stripped::Packet {
            packet_offset: 18,
            packet: EtherType::IPV4,
            came_in: Encapsulation::Vlan(7),
        };
        assert_eq!(stripped(OURS, &elsewhere), as_it_is);
    }

    #[test]
    fn a_header_that_is_wrong_or_cut_off_is_malformed() {
        let mut frame = sent(THEIRS, 40);
        assert_eq!(
            stripped(OURS, &frame[..frame.len() - 1]),
            Stripped::Malformed
        );
        frame[46] = 0;
        assert_eq!(stripped(OURS, &frame), Stripped::Malformed);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(
            cut in any::<prop::sample::Index>(),
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        ) {
            let mut frame = sent(THEIRS, 40);
            for (place, byte) in damage {
                let at = place.index(frame.len());
                frame[at] = byte;
            }
            let _ = stripped(OURS, &frame[..cut.index(frame.len() + 1)]);
        }
    }
}
