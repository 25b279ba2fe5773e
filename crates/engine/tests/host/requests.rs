//! The host of these tests, and requests to it from its neighbor, made of packet's own headers.

use std::net::{Ipv4Addr, Ipv6Addr};

use allosaur_engine::host::{Host, HostSettings};
use allosaur_packet::MacAddress;
use allosaur_packet::link::arp::{ArpHeader, ArpOperation};
use allosaur_packet::network::checksum::pseudo_header_v6;
use allosaur_packet::network::icmpv4::{Icmpv4Header, Icmpv4View};
use allosaur_packet::network::icmpv6::{Icmpv6Header, Icmpv6View};
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::network::ipv4::{Ipv4Header, Ipv4Options};
use allosaur_packet::network::ipv6::Ipv6Header;
use allosaur_packet::network::neighbor::NeighborOptions;

pub(crate) const OWN_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub(crate) const PEER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 0x99];
pub(crate) const BROADCAST: [u8; 6] = [0xff; 6];
pub(crate) const OWN_V4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub(crate) const PEER_V4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);
pub(crate) const OWN_LOCAL: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
pub(crate) const PEER_LOCAL: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0x99);
pub(crate) const OWN_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
pub(crate) const PEER_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 9);
/// The group of both of our addresses, for they end alike.
pub(crate) const OWN_GROUP: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00, 1);
pub(crate) const OWN_GROUP_MAC: [u8; 6] = [0x33, 0x33, 0xff, 0, 0, 1];
pub(crate) const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
pub(crate) const ALL_NODES_MAC: [u8; 6] = [0x33, 0x33, 0, 0, 0, 1];

/// A host with every kind of address, in service mode.
pub(crate) fn settings() -> HostSettings {
    HostSettings {
        mac: OWN_MAC,
        vlan: Vec::new(),
        ipv4: Some(OWN_V4),
        gateway: None,
        ipv6: vec![OWN_LOCAL, OWN_V6],
        answers_echo: true,
        is_passive: false,
    }
}

/// What a host answers; `None` when it does not.
pub(crate) fn ask(settings: &HostSettings, frame: &[u8]) -> Option<Vec<u8>> {
    let host = Host::new(settings.clone(), 0);
    // Whatever was there before must be gone.
    let mut reply = vec![0xee; 99];
    let is_answered = host.handle_frame(frame, &mut reply);
    assert_eq!(is_answered, !reply.is_empty(), "the return value says it");
    is_answered.then_some(reply)
}

/// Ethernet, tags with their types, a type and what it is of.
pub(crate) fn ethernet(to: [u8; 6], tags: &[u8], ether_type: u16, payload: &[u8]) -> Vec<u8> {
    [&to, &PEER_MAC, tags, &ether_type.to_be_bytes(), payload].concat()
}

/// A request of the neighbor's for our address.
pub(crate) fn arp_header() -> ArpHeader {
    ArpHeader {
        operation: ArpOperation::REQUEST,
        sender_mac: MacAddress(PEER_MAC),
        sender_ip: PEER_V4,
        target_mac: MacAddress::ZERO,
        target_ip: OWN_V4,
    }
}

pub(crate) fn arp(to: [u8; 6], tags: &[u8], header: &ArpHeader) -> Vec<u8> {
    let mut bytes = [0; 28];
    header.emit(&mut bytes);
    ethernet(to, tags, 0x0806, &bytes)
}

/// The header of an echo request of the neighbor's; its length is set when it is written.
pub(crate) fn ipv4_header() -> Ipv4Header {
    Ipv4Header {
        type_of_service: 0,
        total_bytes: 0,
        identification: 0x1234,
        dont_fragment: false,
        more_fragments: false,
        fragment_offset_bytes: 0,
        time_to_live: 3,
        protocol: IpProtocol::ICMPV4,
        source: PEER_V4,
        destination: OWN_V4,
        options: Ipv4Options::EMPTY,
    }
}

pub(crate) fn echo_v4(to: [u8; 6], tags: &[u8], header: &Ipv4Header, data: &[u8]) -> Vec<u8> {
    let mut message = [&[0; 8], data].concat();
    let request = Icmpv4Header::EchoRequest {
        identifier: 0xabcd,
        sequence: 7,
    };
    request.emit(&mut message);
    Icmpv4View::new_unchecked(&mut message).fill_checksum();
    let mut header = *header;
    header.total_bytes = (header.buffer_len() + message.len()) as u16;
    let mut bytes = vec![0; header.buffer_len()];
    header.emit(&mut bytes);
    bytes.extend(message);
    ethernet(to, tags, 0x0800, &bytes)
}

pub(crate) fn ipv6_header(source: Ipv6Addr, destination: Ipv6Addr, hop_limit: u8) -> Ipv6Header {
    Ipv6Header {
        traffic_class: 0,
        flow_label: 0x12345,
        payload_bytes: 0,
        next_header: IpProtocol::ICMPV6,
        hop_limit,
        source,
        destination,
    }
}

/// An ICMPv6 message with whatever header; length and checksum are set.
pub(crate) fn icmpv6(
    to: [u8; 6],
    tags: &[u8],
    header: &Ipv6Header,
    meaning: &Icmpv6Header,
    data: &[u8],
) -> Vec<u8> {
    let mut message = vec![0; meaning.buffer_len()];
    meaning.emit(&mut message);
    message.extend(data);
    let length = message.len() as u16;
    let pseudo_header = pseudo_header_v6(
        header.source,
        header.destination,
        IpProtocol::ICMPV6,
        u32::from(length),
    );
    Icmpv6View::new_unchecked(&mut message).fill_checksum(pseudo_header);
    let mut bytes = vec![0; 40];
    let header = Ipv6Header {
        payload_bytes: length,
        ..*header
    };
    header.emit(&mut bytes);
    bytes.extend(message);
    ethernet(to, tags, 0x86dd, &bytes)
}

pub(crate) fn echo_v6(to: [u8; 6], tags: &[u8], header: &Ipv6Header, data: &[u8]) -> Vec<u8> {
    let meaning = Icmpv6Header::EchoRequest {
        identifier: 0xabcd,
        sequence: 7,
    };
    icmpv6(to, tags, header, &meaning, data)
}

pub(crate) fn solicitation(target: Ipv6Addr, source_link: Option<[u8; 6]>) -> Icmpv6Header {
    let options = NeighborOptions {
        source_link: source_link.map(MacAddress),
        ..NeighborOptions::NONE
    };
    Icmpv6Header::NeighborSolicitation { target, options }
}

/// A solicitation as neighbors send it.
pub(crate) fn solicit(tags: &[u8], target: Ipv6Addr) -> Vec<u8> {
    let header = ipv6_header(PEER_LOCAL, OWN_GROUP, 255);
    let meaning = solicitation(target, Some(PEER_MAC));
    icmpv6(OWN_GROUP_MAC, tags, &header, &meaning, &[])
}
