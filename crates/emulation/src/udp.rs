//! Datagrams on their way out, with their checksums.

use std::net::{SocketAddrV4, SocketAddrV6};

use allosaur_packet::MacAddress;
use allosaur_packet::network::checksum::{Sum, pseudo_header_v4, pseudo_header_v6};
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::network::ipv4::Ipv4Header;
use allosaur_packet::network::ipv6::Ipv6Header;
use allosaur_packet::transport::udp::{HEADER_BYTES, UdpHeader, UdpView};

use crate::plugin::Context;

/// Time to live of IPv4 packets to one host, and the identification of all, as the reference has them.
pub(crate) const TIME_TO_LIVE: u8 = 128;
const IDENTIFICATION: u16 = 0x00cc;

/// The Ethernet addresses of a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Macs {
    /// Where it comes from.
    pub(crate) source: MacAddress,
    /// Where it goes.
    pub(crate) destination: MacAddress,
}

/// What the network header of a datagram says beside its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Service {
    /// Type of service, or traffic class.
    pub(crate) type_of_service: u8,
    /// Time to live, or hop limit.
    pub(crate) hops: u8,
}

impl Service {
    /// So many hops, and nothing special.
    pub(crate) const fn hops(hops: u8) -> Service {
        Service {
            type_of_service: 0,
            hops,
        }
    }
}

impl Context<'_> {
    /// Sends a datagram over IPv4; `write` writes its payload of `bytes` zeros.
    pub(crate) fn send_udp_ipv4(
        &mut self,
        macs: Macs,
        service: Service,
        source: SocketAddrV4,
        destination: SocketAddrV4,
        bytes: usize,
        write: impl FnOnce(&mut [u8]),
    ) {
        let header = Ipv4Header {
            time_to_live: service.hops,
            type_of_service: service.type_of_service,
            identification: IDENTIFICATION,
            dont_fragment: false,
            ..Ipv4Header::new(*source.ip(), *destination.ip(), IpProtocol::UDP)
        };
        let length = HEADER_BYTES + bytes;
        let datagram = self.send_ipv4(macs.source, macs.destination, &header, length);
        let length = length as u16;
        let sum = pseudo_header_v4(*source.ip(), *destination.ip(), IpProtocol::UDP, length);
        fill(datagram, (source.port(), destination.port()), sum, write);
    }

    /// Sends a datagram over IPv6; `write` writes its payload of `bytes` zeros.
    pub(crate) fn send_udp_ipv6(
        &mut self,
        macs: Macs,
        service: Service,
        source: SocketAddrV6,
        destination: SocketAddrV6,
        bytes: usize,
        write: impl FnOnce(&mut [u8]),
    ) {
        let header = Ipv6Header {
            hop_limit: service.hops,
            traffic_class: service.type_of_service,
            ..Ipv6Header::new(*source.ip(), *destination.ip(), IpProtocol::UDP)
        };
        let length = HEADER_BYTES + bytes;
        let datagram = self.send_ipv6(macs.source, macs.destination, &header, length);
        let length = length as u32;
        let sum = pseudo_header_v6(*source.ip(), *destination.ip(), IpProtocol::UDP, length);
        fill(datagram, (source.port(), destination.port()), sum, write);
    }
}

fn fill(datagram: &mut [u8], ports: (u16, u16), sum: Sum, write: impl FnOnce(&mut [u8])) {
    let header = UdpHeader {
        source_port: ports.0,
        destination_port: ports.1,
        // The network header, made before, checked that it fits.
        length_bytes: datagram.len() as u16,
    };
    header.emit(datagram);
    write(&mut datagram[HEADER_BYTES..]);
    UdpView::new_unchecked(datagram).fill_checksum(sum);
}
