//! Any frame to the port of a tunnel: no panic, the packet that is found lies in the frame, and what is put
//! in front of an answer is read at the other end. The first byte picks the tunnel, and whether the frame
//! begins with its headers, so that mutations get further than those.

use std::net::Ipv4Addr;

use allosaur_engine::encapsulation::{Encapsulation, LinkPrefix, Stripped, Vxlan};
use allosaur_packet::MacAddress;
use allosaur_packet::link::ethernet::EtherType;
use allosaur_packet::shared_payload::SplitFrame;

const ENDS: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 2)];
const MACS: [MacAddress; 2] = [
    MacAddress([2, 0, 0, 0, 0, 1]),
    MacAddress([2, 0, 0, 0, 0, 2]),
];

pub(crate) fn check(bytes: &[u8]) {
    let Some((&choice, bytes)) = bytes.split_first() else {
        return;
    };
    let vlan = (choice & 1 != 0).then_some(7);
    let end = |own: usize| Vxlan {
        vlan,
        takes_any_vni: choice & 2 != 0,
        own: MACS[own],
        peer: MACS[1 - own],
        ..Vxlan::new(ENDS[own], ENDS[1 - own], 100)
    };
    let mut frame = Vec::new();
    if choice & 4 != 0 {
        frame = prefix(&end(1).into(), bytes.len());
    }
    frame.extend(bytes);
    let Stripped::Packet {
        packet_offset,
        came_in,
        ..
    } = Encapsulation::from(end(0)).strip(&SplitFrame::whole(0, &frame))
    else {
        return;
    };
    assert!(packet_offset <= frame.len());
    let Encapsulation::Tunnel(_) = came_in else {
        return;
    };
    // The other end reads the answer, and would answer that in the same network.
    let other = Vxlan {
        takes_any_vni: true,
        ..end(1)
    };
    let answer = prefix(&came_in, 40);
    let answer = SplitFrame::whole(0, &answer);
    if let Stripped::Packet { came_in: back, .. } = Encapsulation::from(other).strip(&answer) {
        assert!(!back.is_tunnel() || back.network() == came_in.network());
    }
}

/// What stands in front of a packet of so many bytes.
fn prefix(encapsulation: &Encapsulation, packet_bytes: usize) -> Vec<u8> {
    let prefix = LinkPrefix::new(MACS[0], MACS[1], encapsulation, EtherType::IPV4);
    let mut bytes = vec![0; prefix.bytes()];
    prefix.write(packet_bytes, || 0x1234, &mut bytes);
    bytes
}
