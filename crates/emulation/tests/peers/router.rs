//! A router that has every address that it is asked for.

use std::net::{Ipv4Addr, Ipv6Addr};

use allosaur_packet::MacAddress;
use allosaur_packet::builder::{FrameBuilder, LinkHeader};
use allosaur_packet::frame::{Transport, parse};
use allosaur_packet::link::arp::{ArpHeader, ArpOperation};
use allosaur_packet::link::ethernet::EtherType;
use allosaur_packet::network::icmpv4::Icmpv4Header;
use allosaur_packet::network::icmpv6::Icmpv6Header;
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::network::ipv4::Ipv4Header;
use allosaur_packet::network::ipv6::{ALL_NODES, Ipv6Header};
use allosaur_packet::network::neighbor::{NeighborOptions, PrefixInformation};

/// The router.
const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
const LINK_LOCAL: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0xff, 0xfe00, 1);

/// What the router answers to a frame.
pub(crate) fn answer(frame: &[u8]) -> Option<Vec<u8>> {
    let layout = parse(frame);
    let mac: [u8; 6] = frame[6..12].try_into().ok()?;
    let tags = &frame[12..usize::from(layout.network_offset) - 2];
    let packet = &frame[usize::from(layout.network_offset)..];
    let mut reply = Vec::new();
    let link = LinkHeader {
        destination: MacAddress(mac),
        source: MAC,
        tags,
    };
    let builder = FrameBuilder::new(&mut reply, &link);
    match layout.transport {
        _ if layout.ether_type == EtherType::ARP => {
            let asked = ArpHeader::parse(packet).ok()?;
            let is_query =
                asked.operation == ArpOperation::REQUEST && asked.target_ip != asked.sender_ip;
            is_query.then(|| builder.arp(&arp(&asked)))?;
            // The recorded router did not pad its answers.
            reply.truncate(usize::from(layout.network_offset) + arp(&asked).buffer_len());
        }
        Transport::Icmpv4 => {
            let ip = Ipv4Header::parse(packet).ok()?;
            let message = Icmpv4Header::parse(layout.segment(frame)).ok()?;
            let (source, destination) = (ip.destination, ip.source);
            echo4(
                builder,
                (source, destination),
                &message,
                layout.payload(frame),
            )?;
        }
        Transport::Icmpv6 => {
            let ip = Ipv6Header::parse(packet).ok()?;
            let message = Icmpv6Header::parse(layout.segment(frame)).ok()?;
            icmpv6(builder, &ip, &message, layout.payload(frame))?;
        }
        _ => return None,
    }
    Some(reply)
}

/// What some neighbors say of themselves without being asked.
pub(crate) fn advertisements(count: u16) -> impl Iterator<Item = Vec<u8>> {
    (0..count).map(|number| {
        let [high, low] = number.to_be_bytes();
        let mac = MacAddress([2, 0, 0, 9, high, low]);
        let address = Ipv6Addr::new(0x2001, 0xdb8, 9, 0, 0, 0, 0, number + 1);
        let mut frame = Vec::new();
        let link = LinkHeader {
            destination: MacAddress::of_group(ALL_NODES),
            source: mac,
            tags: &[],
        };
        let ip = header(address, ALL_NODES, 255);
        let message = advertisement(mac, address, false);
        FrameBuilder::new(&mut frame, &link).icmpv6(&ip, &message, &[]);
        frame
    })
}

fn arp(asked: &ArpHeader) -> ArpHeader {
    ArpHeader {
        operation: ArpOperation::REPLY,
        sender_mac: MAC,
        sender_ip: asked.target_ip,
        target_mac: asked.sender_mac,
        target_ip: asked.sender_ip,
    }
}

fn echo4(
    builder: FrameBuilder<'_>,
    (source, destination): (Ipv4Addr, Ipv4Addr),
    message: &Icmpv4Header,
    data: &[u8],
) -> Option<()> {
    let Icmpv4Header::EchoRequest {
        identifier,
        sequence,
    } = *message
    else {
        return None;
    };
    let ip = Ipv4Header::new(source, destination, IpProtocol::ICMPV4);
    let reply = Icmpv4Header::EchoReply {
        identifier,
        sequence,
    };
    builder.icmpv4(&ip, &reply, data);
    Some(())
}

fn icmpv6(
    builder: FrameBuilder<'_>,
    ip: &Ipv6Header,
    message: &Icmpv6Header,
    data: &[u8],
) -> Option<()> {
    match *message {
        Icmpv6Header::EchoRequest {
            identifier,
            sequence,
        } => {
            let reply = Icmpv6Header::EchoReply {
                identifier,
                sequence,
            };
            builder.icmpv6(&header(ip.destination, ip.source, 64), &reply, data);
        }
        Icmpv6Header::RouterSolicitation { .. } => {
            builder.icmpv6(&header(LINK_LOCAL, ALL_NODES, 255), &router(), &[]);
        }
        Icmpv6Header::NeighborSolicitation { target, .. } if !ip.source.is_unspecified() => {
            let reply = advertisement(MAC, target, true);
            builder.icmpv6(&header(target, ip.source, 255), &reply, &[]);
        }
        _ => return None,
    }
    Some(())
}

fn header(source: Ipv6Addr, destination: Ipv6Addr, hop_limit: u8) -> Ipv6Header {
    Ipv6Header {
        hop_limit,
        ..Ipv6Header::new(source, destination, IpProtocol::ICMPV6)
    }
}

fn advertisement(mac: MacAddress, target: Ipv6Addr, solicited: bool) -> Icmpv6Header {
    Icmpv6Header::NeighborAdvertisement {
        router: false,
        solicited,
        override_known: true,
        target,
        options: NeighborOptions::target(mac),
    }
}

fn router() -> Icmpv6Header {
    Icmpv6Header::RouterAdvertisement {
        hop_limit: 64,
        managed: false,
        other_configuration: false,
        lifetime_s: 1800,
        reachable_ms: 0,
        retransmit_ms: 0,
        options: NeighborOptions {
            source_link: Some(MAC),
            mtu_bytes: Some(1400),
            prefix: Some(PrefixInformation {
                length_bits: 64,
                on_link: true,
                autonomous: true,
                valid_s: 86_400,
                preferred_s: 14_400,
                prefix: Ipv6Addr::new(0x2001, 0xdb8, 0x77, 0, 0, 0, 0, 0),
            }),
            target_link: None,
        },
    }
}
