//! Any frames to a host: no panic, and what it answers is a whole frame from itself to another.
//! The first byte picks its VLANs and whether frames get the start of one that is for it, so that
//! mutations get further than the addresses.

use std::net::{Ipv4Addr, Ipv6Addr};

use allosaur_engine::host::{Host, HostSettings};
use allosaur_packet::frame::{self, Health};

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

pub(crate) fn check(bytes: &[u8]) {
    let Some((&choice, bytes)) = bytes.split_first() else {
        return;
    };
    let vlan = [100, 200][..usize::from(choice) % 3].to_vec();
    let host = Host::new(settings(vlan.clone()), 0);
    let mut given = Vec::new();
    if choice & 0x80 != 0 {
        given.extend(MAC);
        given.extend([2, 0, 0, 0, 0, 9]);
        for &identifier in &vlan {
            given.extend([0x81, 0, 0, identifier as u8]);
        }
    }
    given.extend(bytes);
    let mut reply = vec![0xee; 3];
    if !host.handle_frame(&given, &mut reply) {
        assert!(reply.is_empty());
        return;
    }
    let layout = frame::parse(&reply);
    assert_eq!(layout.health, Health::Whole, "{layout}");
    assert!(reply.len() >= 60 && reply[6..12] == MAC && reply[..6] != MAC);
    assert!(layout.vlans().iter().map(|tag| tag & 0xfff).eq(vlan));
    // An answer is no question: two hosts never keep each other busy.
    assert!(!host.handle_frame(&reply, &mut Vec::new()));
}

fn settings(vlan: Vec<u16>) -> HostSettings {
    HostSettings {
        mac: MAC,
        vlan,
        ipv4: Some(Ipv4Addr::new(10, 0, 0, 1)),
        gateway: None,
        ipv6: vec![Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1)],
        answers_echo: true,
        is_passive: false,
    }
}
