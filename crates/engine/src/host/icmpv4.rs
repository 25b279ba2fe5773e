//! Echo over IPv4 (RFC 792), as the one who is asked.

use std::net::Ipv4Addr;

use allosaur_packet::link::ethernet::EtherType;
use allosaur_packet::network::icmpv4::{Icmpv4Header, Icmpv4View};
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::network::ipv4::{HEADER_BYTES_MIN, Ipv4Header, Ipv4Options, Ipv4View};

use super::HostSettings;
use super::link::{self, Arrival};

/// Hops that a reply may take.
const TIME_TO_LIVE: u8 = 64;
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
    let header = reply_header(&packet, own)?;
    let tags = arrival.tags;
    link::begin(reply, arrival.source, settings.mac(), tags, EtherType::IPV4);
    header.emit(link::append(reply, header.buffer_len()));
    let written = link::append(reply, packet.payload().len());
    let mut answer = Icmpv4View::new_unchecked(written);
    answer.payload_mut().copy_from_slice(message.payload());
    let written = answer.into_inner();
    let kind = Icmpv4Header::EchoReply {
        identifier,
        sequence,
    };
    kind.emit(written);
    Icmpv4View::new_unchecked(written).fill_checksum();
    link::pad(reply);
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

fn reply_header(request: &Ipv4View<&[u8]>, own: Ipv4Addr) -> Option<Ipv4Header> {
    let total_bytes = HEADER_BYTES_MIN + request.payload().len();
    Some(Ipv4Header {
        type_of_service: request.type_of_service() & DSCP,
        total_bytes: u16::try_from(total_bytes).ok()?,
        // A packet that is never cut needs no number (RFC 6864 section 4.1), and one of zero is
        // no sign of a packet group.
        identification: 0,
        dont_fragment: true,
        more_fragments: false,
        fragment_offset_bytes: 0,
        time_to_live: TIME_TO_LIVE,
        protocol: IpProtocol::ICMPV4,
        source: own,
        destination: request.source(),
        options: Ipv4Options::EMPTY,
    })
}
