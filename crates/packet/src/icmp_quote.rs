//! The packet that an ICMP error quotes (RFC 792, RFC 4443): its sender, which is told what became of
//! it, finds its flow by the quotation.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::frame::{Fragment, Layout, Transport};
use crate::network::ip_protocol::IpProtocol;
use crate::network::{ipv4, ipv6};

/// Bytes in front of the quotation.
const ICMP_BYTES: usize = 8;
const IPV4_BYTES_MIN: usize = ipv4::HEADER_BYTES_MIN;
const IPV6_BYTES: usize = ipv6::HEADER_BYTES;
/// Kinds of ICMP for IPv4 that quote a packet which was not delivered.
const DESTINATION_UNREACHABLE: u8 = 3;
const TIME_EXCEEDED: u8 = 11;
const PARAMETER_PROBLEM: u8 = 12;
/// The bit of an ICMPv6 kind that no error has (RFC 4443, section 2.1).
const NO_ERROR: u8 = 0x80;

/// The packet that an ICMP error quotes: its IP header, and what is quoted behind that. Checksums are not
/// looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotedPacket<'f> {
    /// The sender of the packet.
    pub source: IpAddr,
    /// Where it was to go, of the family of `source`.
    pub destination: IpAddr,
    /// What it carried. In IPv6 the kind of the first extension header, if there is one.
    pub protocol: IpProtocol,
    /// Bytes of its IP header, without extension headers.
    pub header_bytes: usize,
    /// Bytes of the whole packet, as its header says.
    pub total_bytes: usize,
    /// What is quoted behind the IP header: mostly its first eight bytes.
    pub segment: &'f [u8],
}

impl<'f> QuotedPacket<'f> {
    /// The packet that a frame quotes, if the frame is an ICMP error and quotes the IP header of a first
    /// or only fragment.
    #[inline]
    pub fn read(frame: &'f [u8], layout: &Layout) -> Option<QuotedPacket<'f>> {
        match layout.transport {
            Transport::Icmpv4 | Transport::Icmpv6 if layout.fragment == Fragment::No => {}
            _ => return None,
        }
        let message = layout.segment(frame);
        let (kind, quoted) = (*message.first()?, message.get(ICMP_BYTES..)?);
        match layout.transport {
            Transport::Icmpv4 => {
                let kinds = [DESTINATION_UNREACHABLE, TIME_EXCEEDED, PARAMETER_PROBLEM];
                kinds.contains(&kind).then(|| read_v4(quoted))?
            }
            _ => (kind & NO_ERROR == 0).then(|| read_v6(quoted))?,
        }
    }

    /// The source and destination port of TCP or UDP.
    #[inline]
    pub fn ports(&self) -> Option<(u16, u16)> {
        let &[a, b, c, d] = self.segment.first_chunk()?;
        let has_ports = matches!(self.protocol, IpProtocol::TCP | IpProtocol::UDP);
        has_ports.then(|| (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
    }
}

fn read_v4(quoted: &[u8]) -> Option<QuotedPacket<'_>> {
    let header: &[u8; IPV4_BYTES_MIN] = quoted.first_chunk()?;
    let header_bytes = 4 * usize::from(header[0] & 0x0f);
    let is_first = u16::from_be_bytes([header[6], header[7]]) & 0x1fff == 0;
    if header[0] >> 4 != 4 || header_bytes < IPV4_BYTES_MIN || !is_first {
        return None;
    }
    let address = |at: usize| Some(Ipv4Addr::from(*header[at..].first_chunk::<4>()?).into());
    Some(QuotedPacket {
        source: address(12)?,
        destination: address(16)?,
        protocol: IpProtocol(header[9]),
        header_bytes,
        total_bytes: u16::from_be_bytes([header[2], header[3]]).into(),
        segment: quoted.get(header_bytes..)?,
    })
}

fn read_v6(quoted: &[u8]) -> Option<QuotedPacket<'_>> {
    let (header, segment) = quoted.split_first_chunk::<IPV6_BYTES>()?;
    if header[0] >> 4 != 6 {
        return None;
    }
    let address = |at: usize| Some(Ipv6Addr::from(*header[at..].first_chunk::<16>()?).into());
    Some(QuotedPacket {
        source: address(8)?,
        destination: address(24)?,
        protocol: IpProtocol(header[6]),
        header_bytes: IPV6_BYTES,
        total_bytes: IPV6_BYTES + usize::from(u16::from_be_bytes([header[4], header[5]])),
        segment,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::frame::parse;
    use crate::network::ipv4::Ipv4Header;
    use crate::network::ipv6::Ipv6Header;

    /// A frame with an ICMP message of a kind, which ends with `quoted`.
    fn message(is_v6: bool, kind: u8, quoted: &[u8]) -> Vec<u8> {
        let bytes = u16::try_from(ICMP_BYTES + quoted.len()).expect("it is short");
        let mut frame = vec![2; 12];
        if is_v6 {
            let from = Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 1);
            let mut header = Ipv6Header::new(from, from, IpProtocol::ICMPV6);
            header.payload_bytes = bytes;
            frame.extend([0x86, 0xdd]);
            frame.resize(14 + header.buffer_len(), 0);
            header.emit(&mut frame[14..]);
        } else {
            let from = Ipv4Addr::new(10, 0, 0, 254);
            let mut header = Ipv4Header::new(from, from, IpProtocol::ICMPV4);
            header.total_bytes = 20 + bytes;
            frame.extend([8, 0]);
            frame.resize(14 + header.buffer_len(), 0);
            header.emit(&mut frame[14..]);
        }
        frame.extend([kind, 0, 0, 0, 0, 0, 0, 0]);
        frame.extend(quoted);
        frame
    }

    fn read(frame: &[u8]) -> Option<QuotedPacket<'_>> {
        QuotedPacket::read(frame, &parse(frame))
    }

    #[test]
    fn kinds_that_are_no_error_quote_nothing() {
        let mut quoted = vec![0; 28];
        Ipv4Header::new(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST, IpProtocol::UDP)
            .emit(&mut quoted);
        let is_read = |kind: &u8| read(&message(false, *kind, &quoted)).is_some();
        assert_eq!((0..=255).filter(is_read).collect::<Vec<_>>(), [3, 11, 12]);
        let mut quoted = vec![0; 48];
        Ipv6Header::new(Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, IpProtocol::UDP)
            .emit(&mut quoted);
        let is_read = |kind: &u8| read(&message(true, *kind, &quoted)).is_some();
        assert!((0..=255).filter(is_read).eq(0..128));
    }

    #[test]
    fn what_has_a_wrong_header_is_not_read() {
        let mut quoted = vec![0; 28];
        Ipv4Header::new(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST, IpProtocol::TCP)
            .emit(&mut quoted);
        assert!(read(&message(false, 3, &quoted)).is_some());
        for (at, byte) in [(0, 0x65), (0, 0x44), (0, 0x48), (7, 1)] {
            let mut wrong = quoted.clone();
            wrong[at] = byte;
            assert_eq!(
                read(&message(false, 3, &wrong)),
                None,
                "byte {at} is {byte:#x}"
            );
        }
        assert_eq!(read(&message(false, 3, &quoted[..19])), None);
        assert_eq!(read(&message(true, 1, &[0x60; 39])), None);
        assert_eq!(read(&message(true, 1, &[0x45; 40])), None);
    }

    #[test]
    fn only_tcp_and_udp_have_ports() {
        let ports = |protocol, bytes: usize| {
            let mut quoted = vec![0; 20 + bytes];
            Ipv4Header::new(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST, protocol).emit(&mut quoted);
            let frame = message(false, 3, &quoted);
            read(&frame).expect("the header is there").ports()
        };
        assert_eq!(ports(IpProtocol::TCP, 4), Some((0, 0)));
        assert_eq!(ports(IpProtocol::UDP, 8), Some((0, 0)));
        assert_eq!(ports(IpProtocol::TCP, 3), None);
        assert_eq!(ports(IpProtocol::ICMPV4, 8), None);
    }

    proptest! {
        #[test]
        fn what_was_sent_is_what_is_quoted(
            addresses: (u32, u32),
            wide: (u128, u128),
            ports: (u16, u16),
            is_tcp: bool,
            is_v6: bool,
            total_bytes in 28_u16..1500,
        ) {
            let protocol = if is_tcp { IpProtocol::TCP } else { IpProtocol::UDP };
            let (mut quoted, source, destination) = if is_v6 {
                let (source, destination) = (wide.0.into(), wide.1.into());
                let mut header = Ipv6Header::new(source, destination, protocol);
                header.payload_bytes = total_bytes - 40.min(total_bytes);
                let mut quoted = vec![0; 40];
                header.emit(&mut quoted);
                (quoted, IpAddr::V6(source), IpAddr::V6(destination))
            } else {
                let (source, destination) = (addresses.0.into(), addresses.1.into());
                let mut header = Ipv4Header::new(source, destination, protocol);
                header.total_bytes = total_bytes;
                let mut quoted = vec![0; 20];
                header.emit(&mut quoted);
                (quoted, IpAddr::V4(source), IpAddr::V4(destination))
            };
            let header_bytes = quoted.len();
            quoted.extend([ports.0.to_be_bytes(), ports.1.to_be_bytes(), [0; 2], [0; 2]].concat());
            let mut frame = message(is_v6, 3, &quoted);
            frame.extend([0xee; 6]);
            let read = read(&frame).expect("it is an error");
            prop_assert_eq!((read.source, read.destination), (source, destination));
            prop_assert_eq!((read.protocol, read.header_bytes), (protocol, header_bytes));
            prop_assert_eq!(read.ports(), Some(ports));
            prop_assert_eq!(read.total_bytes, usize::from(total_bytes).max(header_bytes));
            prop_assert_eq!(read.segment, &quoted[header_bytes..]);
        }

        #[test]
        fn any_bytes_are_safe(
            is_v6: bool,
            kind in 0_u8..16,
            bytes in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            let frame = message(is_v6, kind, &bytes);
            if let Some(quoted) = read(&frame) {
                prop_assert!(quoted.segment.len() + quoted.header_bytes == bytes.len());
                let _ = quoted.ports();
            }
        }
    }
}
