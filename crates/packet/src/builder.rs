//! Frames, written front to back into a buffer that is kept: Ethernet, tags, IP, and what is in it.

use crate::address::MacAddress;
use crate::link::arp::ArpHeader;
use crate::link::ethernet::{EtherType, FRAME_BYTES_MIN};
use crate::network::checksum::pseudo_header_v6;
use crate::network::icmpv4::{Icmpv4Header, Icmpv4View};
use crate::network::icmpv6::{Icmpv6Header, Icmpv6View};
use crate::network::ipv4::Ipv4Header;
use crate::network::ipv6::Ipv6Header;

/// What stands in front of the type of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkHeader<'a> {
    /// Where the frame goes.
    pub destination: MacAddress,
    /// Where it comes from.
    pub source: MacAddress,
    /// VLAN tags as they are on the wire, with their types in front.
    pub tags: &'a [u8],
}

/// A frame that is being written. It ends with what it carries, and is padded with zeros to the
/// length that Ethernet wants.
#[derive(Debug)]
pub struct FrameBuilder<'f> {
    frame: &'f mut Vec<u8>,
}

impl<'f> FrameBuilder<'f> {
    /// Begins a frame, in place of what was there.
    pub fn new(frame: &'f mut Vec<u8>, link: &LinkHeader<'_>) -> Self {
        frame.clear();
        frame.extend(link.destination.octets());
        frame.extend(link.source.octets());
        frame.extend(link.tags);
        FrameBuilder { frame }
    }

    /// A frame of ARP.
    pub fn arp(mut self, header: &ArpHeader) {
        header.emit(self.payload(EtherType::ARP, header.buffer_len()));
        self.pad();
    }

    /// A frame of ICMP over IPv4: a message, and the data behind it. The lengths and checksums are
    /// written here.
    ///
    /// # Panics
    /// When the packet is longer than IPv4 can say.
    pub fn icmpv4(mut self, ip: &Ipv4Header, message: &Icmpv4Header, data: &[u8]) {
        let packet = self.ipv4(ip, message.buffer_len() + data.len());
        packet[message.buffer_len()..].copy_from_slice(data);
        message.emit(packet);
        Icmpv4View::new_unchecked(packet).fill_checksum();
        self.pad();
    }

    /// A frame of ICMP over IPv6: a message, and the data behind it. The lengths and the checksum are
    /// written here.
    ///
    /// # Panics
    /// When the packet is longer than IPv6 can say.
    pub fn icmpv6(mut self, ip: &Ipv6Header, message: &Icmpv6Header, data: &[u8]) {
        let bytes = message.buffer_len() + data.len();
        let packet = self.ipv6(ip, bytes);
        packet[message.buffer_len()..].copy_from_slice(data);
        message.emit(packet);
        let length = u32::try_from(bytes).expect("it fits into a packet");
        let sum = pseudo_header_v6(ip.source, ip.destination, ip.next_header, length);
        Icmpv6View::new_unchecked(packet).fill_checksum(sum);
        self.pad();
    }

    /// The header of IPv4 with the right length and checksum; returns its payload, to be written.
    fn ipv4(&mut self, ip: &Ipv4Header, payload_bytes: usize) -> &mut [u8] {
        let bytes = ip.buffer_len() + payload_bytes;
        let header = Ipv4Header {
            total_bytes: u16::try_from(bytes).expect("a packet has at most 65,535 bytes"),
            ..*ip
        };
        let packet = self.payload(EtherType::IPV4, bytes);
        header.emit(packet);
        &mut packet[header.buffer_len()..]
    }

    /// The header of IPv6 with the right length; returns its payload, to be written.
    fn ipv6(&mut self, ip: &Ipv6Header, payload_bytes: usize) -> &mut [u8] {
        let header = Ipv6Header {
            payload_bytes: u16::try_from(payload_bytes)
                .expect("a payload has at most 65,535 bytes"),
            ..*ip
        };
        let packet = self.payload(EtherType::IPV6, header.buffer_len() + payload_bytes);
        header.emit(packet);
        &mut packet[header.buffer_len()..]
    }

    /// The type of the frame; returns the bytes behind it, to be written.
    fn payload(&mut self, ether_type: EtherType, bytes: usize) -> &mut [u8] {
        self.frame.extend(ether_type.0.to_be_bytes());
        let at = self.frame.len();
        self.frame.resize(at + bytes, 0);
        &mut self.frame[at..]
    }

    fn pad(self) {
        let length = self.frame.len().max(FRAME_BYTES_MIN);
        self.frame.resize(length, 0);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use super::*;
    use crate::frame::{Health, Network, Transport, parse};
    use crate::link::arp::ArpOperation;
    use crate::link::vlan::tags_of;
    use crate::network::ip_protocol::IpProtocol;
    use crate::network::ipv4::Ipv4View;

    const DESTINATION: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
    const SOURCE: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);

    fn link(tags: &[u8]) -> LinkHeader<'_> {
        LinkHeader {
            destination: DESTINATION,
            source: SOURCE,
            tags,
        }
    }

    fn macs() -> Vec<u8> {
        [DESTINATION.octets(), SOURCE.octets()].concat()
    }

    #[test]
    fn arp_is_padded_behind_its_tags() {
        let header = ArpHeader {
            operation: ArpOperation::REQUEST,
            sender_mac: SOURCE,
            sender_ip: Ipv4Addr::new(10, 0, 0, 2),
            target_mac: MacAddress::ZERO,
            target_ip: Ipv4Addr::new(10, 0, 0, 1),
        };
        let mut frame = vec![9; 100];
        FrameBuilder::new(&mut frame, &link(&tags_of(&[5]))).arp(&header);
        assert_eq!(frame.len(), 60);
        assert_eq!(frame[..12], macs());
        assert_eq!(frame[12..18], [0x81, 0, 0, 5, 8, 6]);
        assert_eq!(ArpHeader::parse(&frame[18..]), Ok(header));
        assert!(
            frame[18 + header.buffer_len()..]
                .iter()
                .all(|&byte| byte == 0)
        );
    }

    #[test]
    fn messages_over_both_versions_are_whole() {
        let tags = tags_of(&[100, 200]);
        for data in [&b""[..], &[0xab; 100]] {
            let mut frame = Vec::new();
            let (from, to) = (Ipv4Addr::new(10, 0, 0, 2), Ipv4Addr::new(10, 0, 0, 1));
            let ip = Ipv4Header::new(from, to, IpProtocol::ICMPV4);
            let message = Icmpv4Header::EchoRequest {
                identifier: 7,
                sequence: 9,
            };
            FrameBuilder::new(&mut frame, &link(&tags)).icmpv4(&ip, &message, data);
            let layout = parse(&frame);
            assert_eq!(
                (layout.network, layout.transport),
                (Network::Ipv4, Transport::Icmpv4)
            );
            assert_eq!(
                (layout.health, layout.vlans()),
                (Health::Whole, &[100, 200][..])
            );
            assert_eq!(layout.payload(&frame), data);
            let view = Ipv4View::new_unchecked(&frame[22..]);
            assert!(view.has_right_checksum());
            assert_eq!(usize::from(view.total_bytes()), 28 + data.len());
            assert!(Icmpv4View::new_unchecked(layout.segment(&frame)).has_right_checksum());
            assert_eq!(frame.len(), (50 + data.len()).max(60));

            let (from, to) = (Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED);
            let ip = Ipv6Header::new(from, to, IpProtocol::ICMPV6);
            let message = Icmpv6Header::EchoReply {
                identifier: 7,
                sequence: 9,
            };
            FrameBuilder::new(&mut frame, &link(&[])).icmpv6(&ip, &message, data);
            let layout = parse(&frame);
            assert_eq!(
                (layout.network, layout.transport),
                (Network::Ipv6, Transport::Icmpv6)
            );
            assert_eq!(layout.health, Health::Whole);
            assert_eq!(layout.payload(&frame), data);
            let segment = layout.segment(&frame);
            let length = u32::try_from(segment.len()).expect("a short one");
            let sum = pseudo_header_v6(from, to, IpProtocol::ICMPV6, length);
            assert!(Icmpv6View::new_unchecked(segment).has_right_checksum(sum));
        }
    }
}
