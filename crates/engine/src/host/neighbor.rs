//! Neighbor discovery for IPv6 (RFC 4861), as the one who is asked.

use std::net::Ipv6Addr;

use allosaur_packet::MacAddress;
use allosaur_packet::builder::{FrameBuilder, LinkHeader};
use allosaur_packet::network::icmpv6::Icmpv6Header;
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::network::ipv6::{ALL_NODES, Ipv6Header};
use allosaur_packet::network::neighbor::NeighborOptions;

use super::HostSettings;
use super::link::Arrival;

/// Messages of neighbor discovery have this hop limit, which no router lets through.
const HOP_LIMIT: u8 = 255;

/// Answers a solicitation for one of our addresses (RFC 4861 section 7.2.4).
pub(super) fn answer(
    settings: &HostSettings,
    arrival: &Arrival<'_>,
    asked: &Ipv6Header,
    (target, options): (Ipv6Addr, NeighborOptions),
    reply: &mut Vec<u8>,
) -> Option<()> {
    if !is_valid(asked, target, &options) || !settings.ipv6.contains(&target) {
        return None;
    }
    let is_to_group = arrival.destination.is_multicast();
    let is_for_us = if asked.destination == solicited_node(target) {
        is_to_group || settings.is_addressed(arrival)
    } else {
        settings.ipv6.contains(&asked.destination) && settings.is_addressed(arrival)
    };
    if !is_for_us {
        return None;
    }
    // Who has no address yet asks whether another has it: all shall hear the answer.
    let is_probe = asked.source.is_unspecified();
    let (destination, mac) = if is_probe {
        (ALL_NODES, MacAddress::of_group(ALL_NODES))
    } else {
        let link = options.source_link.unwrap_or(arrival.source);
        (asked.source, link)
    };
    if !is_probe && (!mac.is_unicast() || mac == settings.mac()) {
        return None;
    }
    let link = LinkHeader {
        destination: mac,
        ..arrival.reply(settings.mac())
    };
    advertise(&link, (target, destination), !is_probe, reply);
    Some(())
}

/// Says to all on the link where one of our addresses is (RFC 4861 section 7.2.6).
pub(super) fn announce(mac: MacAddress, own: Ipv6Addr, tags: &[u8], frame: &mut Vec<u8>) {
    let link = LinkHeader {
        destination: MacAddress::of_group(ALL_NODES),
        source: mac,
        tags,
    };
    advertise(&link, (own, ALL_NODES), false, frame);
}

/// The checks of RFC 4861 section 7.1.1 that are left after length, checksum, code and options.
fn is_valid(asked: &Ipv6Header, target: Ipv6Addr, options: &NeighborOptions) -> bool {
    let is_probe = asked.source.is_unspecified();
    let is_valid_probe =
        asked.destination == solicited_node(target) && options.source_link.is_none();
    asked.hop_limit == HOP_LIMIT && !target.is_multicast() && (!is_probe || is_valid_probe)
}

/// The group in which those are that have an address like this one (RFC 4291 section 2.7.1).
fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    let (high, low) = (0xff00 | u16::from(a), u16::from_be_bytes([b, c]));
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, high, low)
}

/// Writes an advertisement of the address that it comes from, the first of `addresses`, to the other.
fn advertise(
    link: &LinkHeader<'_>,
    addresses: (Ipv6Addr, Ipv6Addr),
    solicited: bool,
    frame: &mut Vec<u8>,
) {
    let (own, destination) = addresses;
    let ip = Ipv6Header {
        hop_limit: HOP_LIMIT,
        ..Ipv6Header::new(own, destination, IpProtocol::ICMPV6)
    };
    let meaning = Icmpv6Header::NeighborAdvertisement {
        router: false,
        solicited,
        override_known: true,
        target: own,
        options: NeighborOptions::target(link.source),
    };
    FrameBuilder::new(frame, link).icmpv6(&ip, &meaning, &[]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_an_address() {
        // The example of RFC 4291 section 2.7.1.
        let address = "4037::01:800:200e:8c6c".parse().expect("an address");
        let group: Ipv6Addr = "ff02::1:ff0e:8c6c".parse().expect("an address");
        assert_eq!(solicited_node(address), group);
        assert_eq!(
            MacAddress::of_group(group),
            MacAddress([0x33, 0x33, 0xff, 0x0e, 0x8c, 0x6c])
        );
    }
}
