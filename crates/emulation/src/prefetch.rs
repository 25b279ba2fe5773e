//! Asks the cache for the clients of a burst of frames, or of timers, before they are handled one after
//! the other.
//!
//! Of a million clients few are in the caches of a core: each answer would wait for the memory two or
//! three times. Here all clients of a burst are found in a short loop, and asked for by
//! [`allosaur_packet::prefetch`], so that the cache misses wait together. Nothing but the time that the
//! frames take changes by it. The same holds for timers, whose clients were mostly not touched since the
//! timers were set.

use std::net::{Ipv4Addr, Ipv6Addr};

use allosaur_packet::link::ethernet::EtherType;
use allosaur_packet::network::ip_protocol::IpProtocol;

use crate::client::{ClientId, Clients};
use crate::emulation::Emulation;
use crate::frame;
use crate::namespace::NamespaceKey;
use crate::plugin::PluginId;

/// With fewer timers, all that they need is in the caches anyway.
const TIMERS_MIN: usize = 16_384;

/// The address that a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Destination {
    Ipv4(Ipv4Addr),
    Ipv6(Ipv6Addr),
}

impl Emulation {
    /// Asks the cache for the clients of frames that a port received and that
    /// [`Emulation::handle_frame`] gets next, in any number: it takes less time then. Nothing is answered
    /// and nothing changes.
    pub fn prefetch<'f>(&self, port: u16, frames: impl IntoIterator<Item = &'f [u8]>) {
        for frame in frames {
            if let Some((clients, id)) = self.client_of(port, frame) {
                clients.prefetch(id);
            }
        }
    }

    /// Asks the cache for the clients, and their states, of the timers that were gathered.
    pub(crate) fn prefetch_for_timers(&self) {
        let timers = &self.shared.timers;
        if timers.len() < TIMERS_MIN {
            return;
        }
        for owner in timers.gathered() {
            let Some(entry) = self.namespaces.get(owner.namespace) else {
                continue;
            };
            let client = ClientId(owner.client);
            entry.namespace.clients.prefetch(client);
            if let Some(plugin) = entry.plugins.get(PluginId(owner.plugin)) {
                plugin.prefetch(client);
            }
        }
    }

    /// The client that a frame asks for, if the frame is one of the plain kinds.
    #[inline]
    fn client_of(&self, port: u16, frame: &[u8]) -> Option<(&Clients, ClientId)> {
        let (key, destination) = destination(port, frame)?;
        let entry = self.namespaces.get(self.namespace_index(&key)?)?;
        let clients = &entry.namespace.clients;
        let id = match destination {
            Destination::Ipv4(address) => clients.by_ipv4(address),
            Destination::Ipv6(address) => clients
                .by_ipv6(address)
                .or_else(|| clients.by_eui64(address)),
        };
        Some((clients, id?))
    }
}

/// The namespace of a frame, and the address that ARP, neighbor discovery or IP name in it.
#[inline]
fn destination(port: u16, bytes: &[u8]) -> Option<(NamespaceKey, Destination)> {
    let (key, ether_type, at) = frame::tags_of(port, bytes)?;
    let packet = bytes.get(at..)?;
    let destination = match ether_type {
        EtherType::ARP => Destination::Ipv4(Ipv4Addr::from(*array(packet, 24)?)),
        EtherType::IPV4 => Destination::Ipv4(Ipv4Addr::from(*array(packet, 16)?)),
        // RFC 4861 section 4.3: the target of a solicitation is behind 8 bytes of ICMPv6.
        EtherType::IPV6
            if packet.get(6) == Some(&IpProtocol::ICMPV6.0) && packet.get(40) == Some(&135) =>
        {
            Destination::Ipv6(Ipv6Addr::from(*array(packet, 48)?))
        }
        EtherType::IPV6 => Destination::Ipv6(Ipv6Addr::from(*array(packet, 24)?)),
        _ => return None,
    };
    Some((key, destination))
}

#[inline]
fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<&[u8; N]> {
    bytes.get(at..)?.first_chunk()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Settings, frame};
    use serde_json::json;

    fn frame_of(tags: &[u8], ether_type: u16, packet: &[u8]) -> Vec<u8> {
        [&[2; 12], tags, &ether_type.to_be_bytes(), packet].concat()
    }

    /// A packet of zeros, with an address somewhere.
    fn packet(at: usize, address: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; 64];
        packet[at..at + address.len()].copy_from_slice(address);
        packet
    }

    #[test]
    fn the_namespace_is_the_one_that_the_frame_is_given_to() {
        let arp = packet(24, &[10, 0, 0, 7]);
        for tags in [
            &[][..],
            &[0x81, 0, 0x60, 5],
            &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 6],
        ] {
            let frame = frame_of(tags, 0x0806, &arp);
            let (key, asked) = destination(3, &frame).expect("ARP names an address");
            assert_eq!(key, frame::key(3, &frame, &frame::parse(&frame)));
            assert_eq!(asked, Destination::Ipv4(Ipv4Addr::new(10, 0, 0, 7)));
        }
    }

    #[test]
    fn addresses_are_found_where_the_protocols_have_them() {
        let ipv4 = frame_of(&[], 0x0800, &packet(16, &[10, 0, 0, 8]));
        let ipv4 = destination(0, &ipv4).map(|(_, asked)| asked);
        assert_eq!(ipv4, Some(Destination::Ipv4(Ipv4Addr::new(10, 0, 0, 8))));
        let address = Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 9);
        let echo = frame_of(&[], 0x86dd, &packet(24, &address.octets()));
        let echo = destination(0, &echo).map(|(_, asked)| asked);
        assert_eq!(echo, Some(Destination::Ipv6(address)));
        let mut solicitation = packet(48, &address.octets());
        (solicitation[6], solicitation[40]) = (58, 135);
        let solicitation = frame_of(&[], 0x86dd, &solicitation);
        let solicitation = destination(0, &solicitation).map(|(_, asked)| asked);
        assert_eq!(solicitation, Some(Destination::Ipv6(address)));
    }

    #[test]
    fn what_is_cut_or_of_another_kind_names_no_address() {
        let whole = frame_of(&[0x81, 0, 0, 5], 0x0806, &[0; 28]);
        for length in 0..whole.len() {
            assert_eq!(destination(0, &whole[..length]), None, "{length} bytes");
        }
        assert!(destination(0, &whole).is_some());
        assert_eq!(destination(0, &frame_of(&[], 0x88cc, &[0; 60])), None);
    }

    fn arp_request(number: u8) -> Vec<u8> {
        let mut packet = vec![0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 9, 9, 10, 0, 1, 1];
        packet.extend([0, 0, 0, 0, 0, 0, 10, 0, 0, number]);
        frame_of(&[], 0x0806, &packet)
    }

    #[test]
    fn frames_that_were_asked_for_are_answered_as_ever() {
        let mut emulation = Emulation::new(Settings::default(), 0);
        let clients: Vec<_> = (0..100_u8)
            .map(
                |n| json!({"mac": [2, 0, 0, 0, 0, n], "ipv4": [10, 0, 0, n], "plugs": {"arp": {}}}),
            )
            .collect();
        let mut ask = |method, params| emulation.handle_request(0, method, &params);
        ask("ctx_add", json!({"tunnels": [{"vport": 0}]})).expect("a namespace");
        let params = json!({"tun": {"vport": 0}, "clients": clients});
        ask("ctx_client_add", params).expect("a hundred clients");
        while emulation.poll_transmit().is_some() {}
        let mut frames: Vec<_> = (0..=u8::MAX).map(arp_request).collect();
        frames.extend([vec![], vec![0; 13], vec![0xff; 64]]);
        emulation.prefetch(0, frames.iter().map(Vec::as_slice));
        emulation.prefetch(9, frames.iter().map(Vec::as_slice));
        assert!(!emulation.has_transmit());
        for frame in &frames {
            emulation.handle_frame(1, 0, frame);
        }
        let mut answered = 0;
        while let Some(sent) = emulation.poll_transmit() {
            assert_eq!(sent.frame[28..32], [10, 0, 0, answered]);
            answered += 1;
        }
        assert_eq!(answered, 100);
    }

    /// Times at which clients whose DISCOVER gets no answer send again, by their number.
    fn repeats(clients: u32) -> Vec<(u64, u32)> {
        let mut emulation = Emulation::new(Settings::default(), 0);
        let mut ask = |now, method, params| emulation.handle_request(now, method, &params);
        ask(0, "ctx_add", json!({"tunnels": [{"vport": 0}]})).expect("a namespace");
        for number in 0..clients {
            let [a, b, c, d] = number.to_be_bytes();
            let client = json!({"mac": [2, 0, a, b, c, d], "plugs": {"dhcp": {}}});
            let params = json!({"tun": {"vport": 0}, "clients": [client]});
            ask(u64::from(number) * 1_000, "ctx_client_add", params).expect("a client");
        }
        while emulation.poll_transmit().is_some() {}
        let mut sent = Vec::new();
        while let Some(at) = emulation.poll_timeout().filter(|at| *at < 6_000_000_000) {
            emulation.handle_timeout(at);
            while let Some(transmit) = emulation.poll_transmit() {
                let number = transmit.frame[8..12].try_into().expect("four bytes");
                sent.push((at, u32::from_be_bytes(number)));
            }
        }
        sent
    }

    #[test]
    fn timers_of_many_come_as_those_of_few() {
        let many = TIMERS_MIN as u32 + 100;
        let sent = repeats(many);
        let expected = (0..many).map(|number| (5_000_000_000 + u64::from(number) * 1_000, number));
        assert!(sent.iter().copied().eq(expected));
        assert_eq!(sent[..100], repeats(100));
    }
}
