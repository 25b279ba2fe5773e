//! The network of the recorded conversations about DNS: a router that knows its hosts by what they
//! send and passes datagrams on, and a group that hears itself.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use allosaur_packet::MacAddress;
use allosaur_packet::builder::{FrameBuilder, LinkHeader};
use allosaur_packet::frame::parse;
use allosaur_packet::link::arp::{ArpHeader, ArpOperation};
use allosaur_packet::link::ethernet::EtherType;
use allosaur_packet::network::ipv4::Ipv4View;

use super::Peer;

/// The router.
const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

/// The groups of multicast DNS.
const GROUP_IPV4: [u8; 6] = [0x01, 0, 0x5e, 0, 0, 0xfb];
const GROUP_IPV6: [u8; 6] = [0x33, 0x33, 0, 0, 0, 0xfb];

/// The router's table.
#[derive(Default)]
pub(crate) struct Network {
    hosts: HashMap<Ipv4Addr, [u8; 6]>,
    /// Another router resolves addresses.
    is_silent: bool,
}

impl Peer for Network {
    fn answer(&mut self, frame: &[u8]) -> Vec<Vec<u8>> {
        self.deliver(frame).into_iter().collect()
    }
}

impl Network {
    /// One that passes datagrams on, and leaves it to another to resolve addresses.
    pub(crate) fn behind_a_router() -> Network {
        Network {
            is_silent: true,
            ..Network::default()
        }
    }

    /// The frame that a client gets back for one that was sent.
    fn deliver(&mut self, frame: &[u8]) -> Option<Vec<u8>> {
        let layout = parse(frame);
        let source: [u8; 6] = frame[6..12].try_into().ok()?;
        let packet = &frame[usize::from(layout.network_offset)..];
        if layout.ether_type == EtherType::ARP {
            return self.resolve(source, &ArpHeader::parse(packet).ok()?);
        }
        if frame[..6] == GROUP_IPV4 || frame[..6] == GROUP_IPV6 {
            return Some(frame.to_vec());
        }
        if layout.ether_type != EtherType::IPV4 {
            return None;
        }
        let view = Ipv4View::new_checked(packet).ok()?;
        let mut frame = frame.to_vec();
        frame[..6].copy_from_slice(self.hosts.get(&view.destination())?);
        frame[6..12].copy_from_slice(&MAC);
        Some(frame)
    }

    fn resolve(&mut self, source: [u8; 6], asked: &ArpHeader) -> Option<Vec<u8>> {
        self.hosts.insert(asked.sender_ip, source);
        let is_query = !self.is_silent
            && asked.operation == ArpOperation::REQUEST
            && asked.target_ip != asked.sender_ip;
        let reply = ArpHeader {
            operation: ArpOperation::REPLY,
            sender_mac: MacAddress(MAC),
            sender_ip: asked.target_ip,
            target_mac: asked.sender_mac,
            target_ip: asked.sender_ip,
        };
        let link = LinkHeader {
            destination: MacAddress(source),
            source: MacAddress(MAC),
            tags: &[],
        };
        let mut bytes = Vec::new();
        is_query.then(|| FrameBuilder::new(&mut bytes, &link).arp(&reply))?;
        Some(bytes)
    }
}
