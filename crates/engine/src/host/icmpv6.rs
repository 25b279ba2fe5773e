//! ICMPv6 (RFC 4443) to our addresses: which messages are whole and for us, and echo. Neighbor
//! discovery is taken further by `neighbor`.

use std::net::Ipv6Addr;

use allosaur_packet::MacAddress;
use allosaur_packet::builder::FrameBuilder;
use allosaur_packet::network::checksum::pseudo_header_v6;
use allosaur_packet::network::icmpv6::{Icmpv6Header, Icmpv6View};
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::network::ipv6::{ALL_NODES, Ipv6Header, Ipv6View};

use super::link::Arrival;
use super::{HostSettings, neighbor};

/// The six bits of the traffic class that a reply takes over; see the same of IPv4.
const DSCP: u8 = 0xfc;

/// A message that arrived whole.
struct Message<'a> {
    /// The header in front of it.
    ip: Ipv6Header,
    /// What it says.
    meaning: Icmpv6Header,
    /// What follows its first eight bytes.
    data: &'a [u8],
}

/// Whether a packet is ICMPv6 as far as its first header says. One look; nothing else is checked.
/// Behind extension headers nothing is asked that a host must answer: neighbor discovery has none
/// in practice, and fragments are not put together.
#[inline]
pub(super) fn is_icmp(packet: &[u8]) -> bool {
    Ipv6View::new_checked(packet).is_ok_and(|packet| packet.next_header() == IpProtocol::ICMPV6)
}

/// Answers a neighbor solicitation or an echo request to one of our addresses.
pub(super) fn answer(
    settings: &HostSettings,
    arrival: &Arrival<'_>,
    reply: &mut Vec<u8>,
) -> Option<()> {
    let ip = Ipv6Header::parse(arrival.payload).ok()?;
    let is_heard = ip.destination.is_multicast() || settings.ipv6.contains(&ip.destination);
    let is_other_station = !ip.source.is_multicast() && !settings.ipv6.contains(&ip.source);
    if !is_heard || !is_other_station {
        return None;
    }
    let message = read(ip, arrival.payload)?;
    match message.meaning {
        Icmpv6Header::NeighborSolicitation { target, options } => {
            neighbor::answer(settings, arrival, &message.ip, (target, options), reply)
        }
        Icmpv6Header::EchoRequest {
            identifier,
            sequence,
        } => {
            let meaning = Icmpv6Header::EchoReply {
                identifier,
                sequence,
            };
            answer_echo(settings, arrival, &message, meaning, reply)
        }
        _ => None,
    }
}

/// The message of a packet, if it ends within the frame and is intact.
fn read(ip: Ipv6Header, packet: &[u8]) -> Option<Message<'_>> {
    let end = usize::from(ip.payload_bytes).checked_add(ip.buffer_len())?;
    let bytes = packet.get(ip.buffer_len()..end)?;
    let view = Icmpv6View::new_checked(bytes).ok()?;
    let length = u32::from(ip.payload_bytes);
    let pseudo_header = pseudo_header_v6(ip.source, ip.destination, IpProtocol::ICMPV6, length);
    if !view.has_right_checksum(pseudo_header) {
        return None;
    }
    let meaning = Icmpv6Header::parse(bytes).ok()?;
    let data = &bytes[allosaur_packet::network::icmpv6::HEADER_BYTES..];
    Some(Message { ip, meaning, data })
}

fn answer_echo(
    settings: &HostSettings,
    arrival: &Arrival<'_>,
    request: &Message<'_>,
    meaning: Icmpv6Header,
    reply: &mut Vec<u8>,
) -> Option<()> {
    let from = request.ip.source;
    if !settings.answers_echo || from.is_unspecified() || from.is_loopback() {
        return None;
    }
    let own = own_address(settings, arrival, &request.ip)?;
    let ip = Ipv6Header {
        traffic_class: request.ip.traffic_class & DSCP,
        ..Ipv6Header::new(own, from, IpProtocol::ICMPV6)
    };
    let link = arrival.reply(settings.mac());
    FrameBuilder::new(reply, &link).icmpv6(&ip, &meaning, request.data);
    Some(())
}

/// Which of our addresses answers an echo request: the one that was asked. A question to all on
/// the link is answered too (RFC 4443 section 4.2), for that is how neighbors are found; then it
/// is the first of our addresses that is as local as the asker's, or else the first.
fn own_address(
    settings: &HostSettings,
    arrival: &Arrival<'_>,
    asked: &Ipv6Header,
) -> Option<Ipv6Addr> {
    let own = &settings.ipv6;
    if asked.destination == ALL_NODES {
        let is_near = |address: &Ipv6Addr| address.is_unicast_link_local();
        let alike = own
            .iter()
            .find(|&address| is_near(address) == is_near(&asked.source));
        let is_to_all = arrival.destination == MacAddress::of_group(ALL_NODES);
        return alike.or(own.first()).copied().filter(|_| is_to_all);
    }
    let is_ours = settings.is_addressed(arrival) && own.contains(&asked.destination);
    is_ours.then_some(asked.destination)
}
