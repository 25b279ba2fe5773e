//! Echo over IPv4 (RFC 792), as the one who is asked.

use std::net::Ipv4Addr;

use allosaur_packet::builder::FrameBuilder;
use allosaur_packet::network::icmpv4::{Icmpv4Header, Icmpv4View};
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::network::ipv4::{Ipv4Header, Ipv4View};

use super::HostSettings;
use super::link::Arrival;

/// The six bits of the type of service that a reply takes over. The other two are about congestion
/// on the way of the request (RFC 3168), which is not the way of the reply.
const DSCP: u8 = 0xfc;

/// Whether a packet is ICMP as far as its protocol says. One look; nothing else is checked.
#[inline]
pub(super) fn is_icmp(packet: &[u8]) -> bool {
    Ipv4View::new_checked(packet).is_ok_and(|packet| packet.protocol() == IpProtocol::ICMPV4)
}

/// Answers an echo request to our address: the same message as a reply. Options of the request,
/// source routes among them, are not taken over.
pub(super) fn answer(
    settings: &HostSettings,
    arrival: &Arrival<'_>,
    reply: &mut Vec<u8>,
) -> Option<()> {
    let own = settings.ipv4?;
    let packet = Ipv4View::new_checked(arrival.payload).ok()?;
    if !settings.is_addressed(arrival) || packet.destination() != own || !is_whole(&packet) {
        return None;
    }
    if !is_other_station(packet.source(), own) {
        return None;
    }
    let message = Icmpv4View::new_checked(packet.payload()).ok()?;
    let kind = Icmpv4Header::parse(packet.payload()).ok()?;
    let Icmpv4Header::EchoRequest {
        identifier,
        sequence,
    } = kind
    else {
        return None;
    };
    if !message.has_right_checksum() {
        return None;
    }
    let ip = Ipv4Header {
        type_of_service: packet.type_of_service() & DSCP,
        // Its number of zero is no sign of a packet group.
        ..Ipv4Header::new(own, packet.source(), IpProtocol::ICMPV4)
    };
    let answer = Icmpv4Header::EchoReply {
        identifier,
        sequence,
    };
    let link = arrival.reply(settings.mac());
    FrameBuilder::new(reply, &link).icmpv4(&ip, &answer, message.payload());
    Some(())
}

/// The packet is intact, ends within the frame, and is not a part of a larger one.
fn is_whole(packet: &Ipv4View<&[u8]>) -> bool {
    let total_bytes = usize::from(packet.total_bytes());
    packet.version() == 4
        && total_bytes == packet.header_bytes() + packet.payload().len()
        && !packet.more_fragments()
        && packet.fragment_offset_bytes() == 0
        && packet.has_right_checksum()
}

/// There is one station with this address, and it is not us (RFC 1122 section 3.2.1.3).
fn is_other_station(source: Ipv4Addr, own: Ipv4Addr) -> bool {
    source != own
        && !source.is_unspecified()
        && !source.is_broadcast()
        && !source.is_multicast()
        && !source.is_loopback()
}
