//! Ethernet and VLAN tags of the frames of a host, and the frame around a message of ICMPv6, which
//! both echo and neighbor discovery write.

use std::net::Ipv6Addr;

use allosaur_packet::MacAddress;
use allosaur_packet::network::checksum::pseudo_header_v6;
use allosaur_packet::link::ethernet::{self, EtherType, EthernetView};
use allosaur_packet::network::icmpv6::{Icmpv6Header, Icmpv6View};
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::network::ipv6::Ipv6Header;
use allosaur_packet::link::vlan::{self, VlanView};

/// Frames are at least this long without FCS; shorter ones are padded with zeros.
pub(super) const FRAME_BYTES_MIN: usize = 60;

/// All stations on the link.
pub(super) const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// Where the type of the first tag lies, or the type of the frame when it has none.
const TYPES_OFFSET: usize = 12;

/// A frame with the tags of the host.
pub(super) struct Arrival<'a> {
    /// Where it went.
    pub(super) destination: MacAddress,
    /// Where it came from.
    pub(super) source: MacAddress,
    /// The tags as they are, with their types in front of them.
    pub(super) tags: &'a [u8],
    /// What is behind the tags.
    pub(super) ether_type: EtherType,
    /// The bytes behind the tags, with any padding.
    pub(super) payload: &'a [u8],
}

impl<'a> Arrival<'a> {
    /// Reads a frame; `None` when it is cut off or is not in `vlans`. Priorities do not matter,
    /// and either kind of tag may stand for each VLAN.
    #[inline]
    pub(super) fn read(frame: &'a [u8], vlans: &[u16]) -> Option<Arrival<'a>> {
        let ethernet = EthernetView::new_checked(frame).ok()?;
        let mut ether_type = ethernet.ether_type();
        let mut at = ethernet::HEADER_BYTES;
        for &identifier in vlans {
            let tag = VlanView::new_checked(&frame[at..]).ok()?;
            if !ether_type.is_vlan() || tag.identifier() != identifier {
                return None;
            }
            ether_type = tag.ether_type();
            at += vlan::HEADER_BYTES;
        }
        Some(Arrival {
            destination: ethernet.destination(),
            source: ethernet.source(),
            tags: &frame[TYPES_OFFSET..TYPES_OFFSET + vlan::HEADER_BYTES * vlans.len()],
            ether_type,
            payload: &frame[at..],
        })
    }
}

/// The tags of a host that was not asked: the outer one of two is a service tag.
pub(super) fn tags_of(vlans: &[u16], tags: &mut Vec<u8>) {
    tags.clear();
    for (n, identifier) in vlans.iter().enumerate() {
        let is_inner = n + 1 == vlans.len();
        let kind = if is_inner {
            EtherType::VLAN
        } else {
            EtherType::QINQ
        };
        tags.extend(kind.0.to_be_bytes());
        tags.extend(identifier.to_be_bytes());
    }
}

/// Begins a frame, in place of what was there.
pub(super) fn begin(
    frame: &mut Vec<u8>,
    destination: MacAddress,
    source: MacAddress,
    tags: &[u8],
    ether_type: EtherType,
) {
    frame.clear();
    frame.extend(destination.octets());
    frame.extend(source.octets());
    frame.extend(tags);
    frame.extend(ether_type.0.to_be_bytes());
}

/// Room for a header at the end of a frame.
pub(super) fn append(frame: &mut Vec<u8>, header_bytes: usize) -> &mut [u8] {
    let at = frame.len();
    frame.resize(at + header_bytes, 0);
    &mut frame[at..]
}

/// Makes a frame as long as frames must be.
pub(super) fn pad(frame: &mut Vec<u8>) {
    let length = frame.len().max(FRAME_BYTES_MIN);
    frame.resize(length, 0);
}

/// The Ethernet address of a group (RFC 2464 section 7).
pub(super) fn group_mac(group: Ipv6Addr) -> MacAddress {
    let [.., a, b, c, d] = group.octets();
    MacAddress([0x33, 0x33, a, b, c, d])
}

/// Writes a message of ICMPv6 from the second to the first of `macs`, with `data` behind it.
pub(super) fn write_icmpv6(
    macs: (MacAddress, MacAddress),
    tags: &[u8],
    ip: &Ipv6Header,
    meaning: &Icmpv6Header,
    data: &[u8],
    frame: &mut Vec<u8>,
) {
    begin(frame, macs.0, macs.1, tags, EtherType::IPV6);
    ip.emit(append(frame, ip.buffer_len()));
    let at = frame.len();
    meaning.emit(append(frame, meaning.buffer_len()));
    frame.extend(data);
    let length = u32::from(ip.payload_bytes);
    let pseudo_header = pseudo_header_v6(ip.source, ip.destination, IpProtocol::ICMPV6, length);
    Icmpv6View::new_unchecked(&mut frame[at..]).fill_checksum(pseudo_header);
    pad(frame);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_tags_of_the_host_are_taken_off() {
        let mut frame = vec![2; 12];
        frame.extend([0x88, 0xa8, 0xe0, 100, 0x81, 0, 0, 200, 8, 6, 0xaa]);
        let arrival = Arrival::read(&frame, &[100, 200]).expect("its tags");
        assert_eq!(
            (arrival.ether_type, arrival.payload),
            (EtherType::ARP, &[0xaa][..])
        );
        assert_eq!(arrival.tags, [0x88, 0xa8, 0xe0, 100, 0x81, 0, 0, 200]);
        for other in [&[100, 201][..], &[200, 100], &[100, 200, 300]] {
            assert!(Arrival::read(&frame, other).is_none(), "{other:?}");
        }
        // With fewer tags than the frame has, the rest is no protocol that a host knows.
        for fewer in [&[][..], &[100]] {
            let arrival = Arrival::read(&frame, fewer).expect("a prefix of its tags");
            assert!(arrival.ether_type.is_vlan());
        }
    }

    #[test]
    fn own_tags_are_those_that_switches_expect() {
        let mut tags = vec![9];
        tags_of(&[], &mut tags);
        assert_eq!(tags, []);
        tags_of(&[5], &mut tags);
        assert_eq!(tags, [0x81, 0, 0, 5]);
        tags_of(&[100, 0x234], &mut tags);
        assert_eq!(tags, [0x88, 0xa8, 0, 100, 0x81, 0, 2, 0x34]);
    }
}
