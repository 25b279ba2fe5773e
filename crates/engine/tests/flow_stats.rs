//! Packet groups from end to end, without ports: what is marked is found, and nothing else.

use allosaur_engine::flow_stats::receive::{FlowTag, flow_tag_of};
use allosaur_engine::flow_stats::tag::{clear, tag};
use allosaur_engine::flow_stats::{
    FLOW_GROUPS, Group, GroupTable, PacketGroupCounters, Rule, TagError, Tagging, VXLAN_PORTS_MAX,
    VxlanPorts,
};
use allosaur_packet::network::checksum::checksum;
use proptest::prelude::*;

const MACS: [u8; 12] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];

fn rule(n: u16) -> Rule {
    let group = Group::flow(n).expect("a group");
    Rule {
        group,
        vxlan: false,
        run: 0,
    }
}

/// A frame with UDP to `port` over IPv4 or IPv6, behind VLAN tags.
fn frame(tags: usize, ipv6: bool, id: u16, port: u16, payload: &[u8]) -> Vec<u8> {
    let udp_bytes = 8 + payload.len();
    let mut frame = MACS.to_vec();
    for tag in 0..tags {
        let outer = tag == 0 && tags == 2;
        frame.extend(if outer { [0x88, 0xa8] } else { [0x81, 0x00] });
        frame.extend([0, 1 + tag as u8]);
    }
    if ipv6 {
        frame.extend([0x86, 0xdd, 0x60, 0x00]);
        frame.extend(id.to_be_bytes());
        frame.extend((udp_bytes as u16).to_be_bytes());
        frame.extend([17, 64]);
        frame.extend([0x20; 32]);
    } else {
        frame.extend([0x08, 0x00]);
        let at = frame.len();
        frame.extend([0x45, 0x00]);
        frame.extend((20 + udp_bytes as u16).to_be_bytes());
        frame.extend(id.to_be_bytes());
        frame.extend([0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        let sum = checksum(&frame[at..]);
        frame[at + 10..at + 12].copy_from_slice(&sum.to_be_bytes());
    }
    frame.extend([0x04, 0x00]);
    frame.extend(port.to_be_bytes());
    frame.extend((udp_bytes as u16).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(payload);
    frame
}

proptest! {
    #[test]
    fn what_is_marked_is_found_again(
        n in 0..FLOW_GROUPS, tags in 0..=2_usize, ipv6: bool, id: u16, port in 0..4789_u16,
    ) {
        let before = frame(tags, ipv6, id, port, &[7; 30]);
        let mut packet = before.clone();
        tag(&mut packet, rule(n), Tagging::Server, &VxlanPorts::STANDARD).expect("it is IP");
        prop_assert_eq!(flow_tag_of(&packet, &VxlanPorts::STANDARD), Group::flow(n).map(FlowTag::Flow));
        let at = 14 + 4 * tags;
        if !ipv6 {
            prop_assert_eq!(checksum(&packet[at..at + 20]), 0);
        }
        let changed = before.iter().zip(&packet).filter(|(a, b)| a != b).count();
        prop_assert!(changed <= 4, "{} bytes changed", changed);
    }

    #[test]
    fn within_vxlan_the_inner_packet_is_marked(n in 0..FLOW_GROUPS, ipv6: bool, inner_ipv6: bool) {
        let mut payload = vec![8, 0, 0, 0, 0, 0, 1, 0];
        payload.extend(frame(0, inner_ipv6, 1, 80, &[7; 30]));
        let before = frame(0, ipv6, 1, 4789, &payload);
        let mut packet = before.clone();
        let group = Group::flow(n).expect("a group");
        tag(&mut packet, Rule { group, vxlan: true, run: 0 }, Tagging::Server, &VxlanPorts::STANDARD).expect("it is VXLAN");
        prop_assert_eq!(flow_tag_of(&packet, &VxlanPorts::STANDARD), Some(FlowTag::Flow(group)));
        let outer = if ipv6 { 14 + 40 + 8 } else { 14 + 20 + 8 };
        prop_assert_eq!(&packet[..outer], &before[..outer]);
    }

    #[test]
    fn the_ports_of_vxlan_are_those_that_were_named_and_the_standard_one(
        n in 0..FLOW_GROUPS, ipv6: bool, others in prop::collection::vec(1..u16::MAX, 1..=8),
        port in 1..u16::MAX,
    ) {
        let ports = VxlanPorts::with(&others).expect("not too many");
        let group = Group::flow(n).expect("a group");
        let mut payload = vec![8, 0, 0, 0, 0, 0, 1, 0];
        payload.extend(frame(0, false, 1, 80, &[7; 30]));
        let rule = Rule { group, vxlan: true, run: 0 };
        for port in others.iter().copied().chain([4789]) {
            let mut packet = frame(0, ipv6, 1, port, &payload);
            tag(&mut packet, rule, Tagging::Server, &ports).expect("it is VXLAN");
            prop_assert_eq!(flow_tag_of(&packet, &ports), Some(FlowTag::Flow(group)));
            let known = (port == 4789).then_some(FlowTag::Flow(group));
            prop_assert_eq!(flow_tag_of(&packet, &VxlanPorts::STANDARD), known);
        }
        if port != 4789 && !others.contains(&port) {
            let mut packet = frame(0, ipv6, 1, port, &payload);
            let refused = tag(&mut packet, rule, Tagging::Server, &ports);
            prop_assert_eq!(refused, Err(TagError::NotVxlan));
        }
    }

    #[test]
    fn what_is_not_counted_has_no_sign(tags in 0..=2_usize, ipv6: bool, id: u16) {
        let before = frame(tags, ipv6, id, 80, &[7; 30]);
        let mut packet = before.clone();
        clear(&mut packet, Tagging::Server);
        prop_assert_eq!(flow_tag_of(&packet, &VxlanPorts::STANDARD), None);
        if id < 0xfc00 {
            prop_assert_eq!(packet, before);
        } else {
            let at = 14 + 4 * tags;
            let field = at + if ipv6 { 2 } else { 4 };
            let left = u16::from_be_bytes([packet[field], packet[field + 1]]);
            prop_assert_eq!(left, id & 0x7fff);
            prop_assert!(ipv6 || checksum(&packet[at..at + 20]) == 0);
        }
    }

    /// TRex asks for the type and 20 or 40 bytes, and its users send headers with an IHL of 0.
    #[test]
    fn what_an_ip_header_says_of_itself_does_not_matter(
        n in 0..FLOW_GROUPS, tags in 0..=2_usize, ipv6: bool, first: u8, lengths: u16, last: u16,
    ) {
        let mut packet = frame(tags, ipv6, last, 80, &[7; 30]);
        let at = 14 + 4 * tags;
        packet[at] = first;
        let length_at = if ipv6 { at + 4 } else { at + 2 };
        packet[length_at..length_at + 2].copy_from_slice(&lengths.to_be_bytes());
        let mut counted = packet.clone();
        let marked = tag(&mut counted, rule(n), Tagging::Server, &VxlanPorts::STANDARD);
        prop_assert_eq!(marked, Ok(()));
        prop_assert_eq!(flow_tag_of(&counted, &VxlanPorts::STANDARD), Group::flow(n).map(FlowTag::Flow));
        clear(&mut packet, Tagging::Server);
        prop_assert_eq!(flow_tag_of(&packet, &VxlanPorts::STANDARD), None);
    }

    #[test]
    fn any_bytes_are_looked_at(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0..4) {
        let mut bytes = bytes;
        if let Some(ether_type) = bytes.get_mut(12..14) {
            let kinds = [[8, 0], [0x86, 0xdd], [0x81, 0], [1, 2]];
            ether_type.copy_from_slice(&kinds[kind as usize]);
        }
        let _ = flow_tag_of(&bytes, &VxlanPorts::STANDARD);
        let _ = tag(&mut bytes, rule(0), Tagging::Server, &VxlanPorts::STANDARD);
        clear(&mut bytes, Tagging::Server);
    }
}

#[test]
fn a_checksum_that_is_wrong_on_purpose_stays_wrong() {
    let mut packet = frame(0, false, 1, 80, &[7; 30]);
    packet[25] ^= 0x11;
    tag(&mut packet, rule(0), Tagging::Server, &VxlanPorts::STANDARD).expect("it is IPv4");
    assert_ne!(checksum(&packet[14..34]), 0);
}

#[test]
fn packets_without_a_place_for_the_sign_are_refused() {
    let arp = [&MACS[..], &[8, 6], &[0; 46]].concat();
    let refused = tag(
        &mut arp.clone(),
        rule(0),
        Tagging::Server,
        &VxlanPorts::STANDARD,
    );
    assert_eq!(refused, Err(TagError::NotIp));
    let mut udp = frame(0, false, 1, 80, &[0; 60]);
    let group = Group::flow(0).expect("a group");
    let refused = tag(
        &mut udp,
        Rule {
            group,
            vxlan: true,
            run: 0,
        },
        Tagging::Server,
        &VxlanPorts::STANDARD,
    );
    assert_eq!(refused, Err(TagError::NotVxlan));
}

#[test]
fn a_trailer_is_not_written_over_a_header_whose_length_is_0() {
    let rule = Rule {
        group: Group::latency(3).expect("a group"),
        vxlan: false,
        run: 1,
    };
    let mut packet = frame(0, false, 1, 80, &[]);
    packet[14] = 0x40;
    let mut mark_with = |bytes: usize| {
        packet.resize(bytes, 0);
        tag(&mut packet, rule, Tagging::Server, &VxlanPorts::STANDARD)
    };
    assert_eq!(mark_with(34 + 15), Err(TagError::NoRoom));
    assert_eq!(mark_with(34 + 16), Ok(()));
}

#[test]
fn more_ports_of_vxlan_than_there_is_room_for_are_refused() {
    assert_eq!(VxlanPorts::with(&[1; VXLAN_PORTS_MAX + 1]), None);
    assert_eq!(VxlanPorts::with(&[]), Some(VxlanPorts::STANDARD));
}

#[test]
fn a_table_shows_what_has_changed_and_only_that() {
    let mut table = GroupTable::default();
    let groups = [0, 63, 64, 1022].map(|n| Group::flow(n).expect("a group"));
    for (i, group) in groups.into_iter().enumerate() {
        table.count(group, 1 + i as u64, 64);
    }
    let mut seen = Vec::new();
    table.take_changed(|index, counters| seen.push((index, counters.packets)));
    assert_eq!(seen, [(0, 1), (63, 2), (64, 3), (1022, 4)]);
    table.take_changed(|index, _| panic!("{index} has not changed"));
    table.count(groups[1], 1, 60);
    table.miss(groups[1], 7);
    let counters = PacketGroupCounters {
        packets: 3,
        bytes: 124,
        missed_packets: 7,
    };
    let mut seen = Vec::new();
    table.take_changed(|index, counters| seen.push((index, counters)));
    assert_eq!(seen, [(63, counters)]);
}
