//! Address resolution for IPv4 (RFC 826): answers, announcements and requests.

use std::net::Ipv4Addr;

use allosaur_packet::MacAddress;
use allosaur_packet::builder::{FrameBuilder, LinkHeader};
use allosaur_packet::link::arp::{ArpHeader, ArpOperation};

use super::HostSettings;
use super::link::Arrival;

/// Answers a request for our address. Probes (RFC 5227 section 2.1.1), whose sender has no
/// address yet, are requests too.
pub(super) fn answer(
    settings: &HostSettings,
    arrival: &Arrival<'_>,
    reply: &mut Vec<u8>,
) -> Option<()> {
    let own = settings.ipv4?;
    let asked = ArpHeader::parse(arrival.payload).ok()?;
    let is_for_us = settings.is_addressed(arrival) || arrival.destination.is_broadcast();
    let is_request = asked.operation == ArpOperation::REQUEST && asked.target_ip == own;
    if !is_for_us || !is_request || !is_other_station(settings, &asked) {
        return None;
    }
    let told = ArpHeader {
        operation: ArpOperation::REPLY,
        sender_mac: settings.mac(),
        sender_ip: own,
        target_mac: asked.sender_mac,
        target_ip: asked.sender_ip,
    };
    let link = LinkHeader {
        destination: asked.sender_mac,
        ..arrival.reply(settings.mac())
    };
    FrameBuilder::new(reply, &link).arp(&told);
    Some(())
}

/// Says to all on the link where our address is (RFC 5227 section 2.3): a request for the address
/// that it comes from.
pub(super) fn announce(mac: MacAddress, own: Ipv4Addr, tags: &[u8], frame: &mut Vec<u8>) {
    ask(mac, own, own, tags, frame);
}

/// Asks all on the link for the address of `whom`.
pub(super) fn ask(
    mac: MacAddress,
    own: Ipv4Addr,
    whom: Ipv4Addr,
    tags: &[u8],
    frame: &mut Vec<u8>,
) {
    let request = ArpHeader {
        operation: ArpOperation::REQUEST,
        sender_mac: mac,
        sender_ip: own,
        target_mac: MacAddress::ZERO,
        target_ip: whom,
    };
    let link = LinkHeader {
        destination: MacAddress::BROADCAST,
        source: mac,
        tags,
    };
    FrameBuilder::new(frame, &link).arp(&request);
}

/// The asker can be answered, and is not us: one who has our address too did not ask.
fn is_other_station(settings: &HostSettings, asked: &ArpHeader) -> bool {
    asked.sender_mac.is_unicast()
        && asked.sender_mac != settings.mac()
        && Some(asked.sender_ip) != settings.ipv4
        && !asked.sender_ip.is_broadcast()
        && !asked.sender_ip.is_multicast()
}
