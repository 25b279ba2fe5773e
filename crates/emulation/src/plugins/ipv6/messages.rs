//! Messages of neighbor discovery: which are valid, and how ours look.

use std::net::Ipv6Addr;

use allosaur_packet::MacAddress;
use allosaur_packet::network::checksum::pseudo_header_v6;
use allosaur_packet::network::icmpv6::{Icmpv6Header, Icmpv6View};
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::network::ipv6::{ALL_NODES, Ipv6Header};
use allosaur_packet::network::neighbor::{NeighborOptions, PrefixInformation};

use crate::plugin::Context;

/// Messages of neighbor discovery have this hop limit, which no router lets through.
pub(super) const HOP_LIMIT: u8 = 255;
/// All routers of the link.
const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
/// A router is a default router for this long at most (RFC 4861 section 6.2.1).
pub(super) const LIFETIME_MAX_S: u16 = 9000;
/// Bytes of a router advertisement before its options.
const ADVERTISEMENT_BYTES: usize = 16;
/// Interface identifiers are as long as the rest of this.
pub(super) const PREFIX_BITS: u8 = 64;

/// The group in which those are that have an address like this one (RFC 4291 section 2.7.1).
pub(super) fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    let (high, low) = (0xff00 | u16::from(a), u16::from_be_bytes([b, c]));
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, high, low)
}

/// Asks who has an address; from the unspecified address, whether anybody has it (RFC 4862
/// section 5.4.2).
pub(super) fn solicit(
    context: &mut Context<'_>,
    mac: MacAddress,
    source: Ipv6Addr,
    target: Ipv6Addr,
) {
    let options = if source.is_unspecified() {
        NeighborOptions::NONE
    } else {
        NeighborOptions::source(mac)
    };
    let group = solicited_node(target);
    let message = Icmpv6Header::NeighborSolicitation { target, options };
    send(
        context,
        mac,
        MacAddress::of_group(group),
        (source, group),
        &message,
    );
}

/// Says to all on the link where an address is. Who asked for it gets no override flag.
pub(super) fn advertise_to_all(
    context: &mut Context<'_>,
    mac: MacAddress,
    source: Ipv6Addr,
    target: Ipv6Addr,
    override_known: bool,
) {
    let message = advertisement(mac, target, false, override_known);
    let destination = MacAddress::of_group(ALL_NODES);
    send(context, mac, destination, (source, ALL_NODES), &message);
}

/// Answers a neighbor that asked for an address.
pub(super) fn advertise(
    context: &mut Context<'_>,
    mac: MacAddress,
    target: Ipv6Addr,
    (asker_mac, asker): (MacAddress, Ipv6Addr),
) {
    let message = advertisement(mac, target, true, true);
    send(context, mac, asker_mac, (target, asker), &message);
}

fn advertisement(
    mac: MacAddress,
    target: Ipv6Addr,
    solicited: bool,
    override_known: bool,
) -> Icmpv6Header {
    Icmpv6Header::NeighborAdvertisement {
        router: false,
        solicited,
        override_known,
        target,
        options: NeighborOptions::target(mac),
    }
}

/// Asks for routers.
pub(super) fn solicit_routers(context: &mut Context<'_>, mac: MacAddress) {
    let options = NeighborOptions::NONE;
    let message = Icmpv6Header::RouterSolicitation { options };
    let destination = MacAddress::of_group(ALL_ROUTERS);
    let addresses = (Ipv6Addr::UNSPECIFIED, ALL_ROUTERS);
    send(context, mac, destination, addresses, &message);
}

fn send(
    context: &mut Context<'_>,
    mac: MacAddress,
    destination_mac: MacAddress,
    (source, destination): (Ipv6Addr, Ipv6Addr),
    message: &Icmpv6Header,
) {
    let ip = Ipv6Header {
        hop_limit: HOP_LIMIT,
        ..Ipv6Header::new(source, destination, IpProtocol::ICMPV6)
    };
    let bytes = message.buffer_len();
    let payload = context.send_ipv6(mac, destination_mac, &ip, bytes);
    message.emit(payload);
    let sum = pseudo_header_v6(source, destination, IpProtocol::ICMPV6, bytes as u32);
    Icmpv6View::new_unchecked(payload).fill_checksum(sum);
}

/// The prefix of which hosts make addresses: the first that says so and is valid (RFC 4862
/// section 5.5.3), not longer than the rest that the interface identifier needs.
pub(super) fn prefix(advertisement: &[u8]) -> Option<(Ipv6Addr, u8)> {
    let mut rest = advertisement.get(ADVERTISEMENT_BYTES..)?;
    while let Some(&units) = rest.get(1) {
        let (option, behind) = rest.split_at_checked(8 * usize::from(units))?;
        let options = NeighborOptions::parse(option).ok()?;
        if let Some(prefix) = options.prefix.filter(is_usable) {
            return Some((prefix.prefix, prefix.length_bits));
        }
        if units == 0 {
            return None;
        }
        rest = behind;
    }
    None
}

fn is_usable(prefix: &PrefixInformation) -> bool {
    prefix.autonomous
        && prefix.length_bits <= PREFIX_BITS
        && prefix.preferred_s != 0
        && prefix.valid_s != 0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_first_usable_prefix_is_taken() {
        let option = |length_bits, valid_s, autonomous, last: u16| {
            let options = NeighborOptions {
                prefix: Some(PrefixInformation {
                    length_bits,
                    on_link: true,
                    autonomous,
                    valid_s,
                    preferred_s: 10,
                    prefix: Ipv6Addr::new(0x2001, 0xdb8, 0, last, 0, 0, 0, 0),
                }),
                ..NeighborOptions::NONE
            };
            let mut bytes = vec![0; options.buffer_len()];
            options.emit(&mut bytes);
            bytes
        };
        let parts = [
            vec![0; 16],
            option(64, 0, true, 1),
            option(96, 9, true, 2),
            option(64, 9, false, 3),
            vec![24, 1, 0, 0, 0, 0, 0, 0],
            option(56, 9, true, 4),
            option(64, 9, true, 5),
        ];
        let bytes = parts.concat();
        let taken = Some(("2001:db8:0:4::".parse().expect("an address"), 56));
        assert_eq!(prefix(&bytes), taken);
        assert_eq!(prefix(&bytes[..bytes.len() - 72]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_safe(bytes in prop::collection::vec(0u8..6, 0..120)) {
            let _ = prefix(&bytes);
        }
    }
}
