//! Any bytes, and any requests in any VLANs: nothing panics, and an answer is a good one.

use allosaur_engine::host::HostSettings;
use allosaur_packet::frame::{self, Health, Network, Transport};
use allosaur_packet::network::checksum::pseudo_header_v6;
use allosaur_packet::network::icmpv4::Icmpv4View;
use allosaur_packet::network::icmpv6::Icmpv6View;
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::network::ipv4::Ipv4View;
use allosaur_packet::network::ipv6::Ipv6View;
use allosaur_testkit::data;
use proptest::prelude::*;

use crate::anything;
use crate::requests::*;

/// A request of each kind, behind tags.
fn request(kind: usize, tags: &[u8], data: &[u8]) -> Vec<u8> {
    match kind {
        0 => arp(BROADCAST, tags, &arp_header()),
        1 => arp(OWN_MAC, tags, &arp_header()),
        2 => echo_v4(OWN_MAC, tags, &ipv4_header(), data),
        3 => echo_v6(OWN_MAC, tags, &ipv6_header(PEER_V6, OWN_V6, 64), data),
        4 => solicit(tags, OWN_LOCAL),
        _ => echo_v6(
            ALL_NODES_MAC,
            tags,
            &ipv6_header(PEER_LOCAL, ALL_NODES, 1),
            data,
        ),
    }
}

const KINDS: usize = 6;

/// An answer is whole, from us to one who can be answered, with right checksums.
fn check(reply: &[u8], vlans: &[u16]) -> Result<(), TestCaseError> {
    let layout = frame::parse(reply);
    prop_assert_eq!(layout.health, Health::Whole);
    prop_assert!(reply.len() >= 60);
    prop_assert_eq!(&reply[6..12], &OWN_MAC);
    let found: Vec<u16> = layout.vlans().iter().map(|tag| tag & 0xfff).collect();
    prop_assert_eq!(found, vlans);
    let network = &reply[usize::from(layout.network_offset)..];
    match (layout.network, layout.transport) {
        (Network::Arp, _) => prop_assert_eq!(&network[6..8], &[0, 2]),
        (Network::Ipv4, Transport::Icmpv4) => {
            let packet = Ipv4View::new_checked(network).expect("the layout says so");
            prop_assert!(packet.has_right_checksum());
            prop_assert_eq!(packet.source(), OWN_V4);
            let message = Icmpv4View::new_checked(packet.payload()).expect("the layout says so");
            prop_assert!(message.has_right_checksum());
        }
        (Network::Ipv6, Transport::Icmpv6) => {
            let packet = Ipv6View::new_checked(network).expect("the layout says so");
            prop_assert!([OWN_LOCAL, OWN_V6].contains(&packet.source()));
            let pseudo_header = pseudo_header_v6(
                packet.source(),
                packet.destination(),
                IpProtocol::ICMPV6,
                u32::from(packet.payload_bytes()),
            );
            let message = Icmpv6View::new_checked(packet.payload()).expect("the layout says so");
            prop_assert!(message.has_right_checksum(pseudo_header));
        }
        other => prop_assert!(false, "{other:?}"),
    }
    let padding = &reply[usize::from(layout.end_offset)..];
    if layout.network != Network::Arp {
        prop_assert!(padding.iter().all(|&byte| byte == 0));
    }
    Ok(())
}

prop_compose! {
    /// VLANs with the tags of a frame that is in them: types and priorities as they come.
    fn any_vlans()(
        tags in prop::collection::vec((any::<bool>(), 0_u16..8, 0_u16..4096), 0..=2),
    ) -> (Vec<u16>, Vec<u8>) {
        let vlans = tags.iter().map(|tag| tag.2).collect();
        let bytes = tags.iter().flat_map(|&(is_service, priority, vlan)| {
            let kind: u16 = if is_service { 0x88a8 } else { 0x8100 };
            let control = (priority << 13) | vlan;
            [kind.to_be_bytes(), control.to_be_bytes()].concat()
        });
        (vlans, bytes.collect())
    }
}

/// The settings of these tests in other VLANs.
fn in_vlans(vlan: &[u16]) -> HostSettings {
    HostSettings {
        vlan: vlan.to_vec(),
        ..settings()
    }
}

proptest! {
    #[test]
    fn every_request_is_answered_in_its_vlans(
        kind in 0..KINDS,
        (vlans, tags) in any_vlans(),
        data in prop::collection::vec(any::<u8>(), 0..200),
        padding in 0..40_usize,
    ) {
        let mut frame = request(kind, &tags, &data);
        frame.extend(vec![0xa5; padding]);
        let reply = ask(&in_vlans(&vlans), &frame).expect("an answer");
        check(&reply, &vlans)?;
        prop_assert_eq!(&reply[..6], &PEER_MAC);
        prop_assert_eq!(&reply[12..12 + tags.len()], &tags[..]);
        let layout = frame::parse(&reply);
        if kind != 4 && layout.network != Network::Arp {
            prop_assert_eq!(layout.payload(&reply), &data[..]);
            let segment = layout.segment(&reply);
            prop_assert_eq!(&segment[4..8], &[0xab, 0xcd, 0, 7]);
        }
    }

    #[test]
    fn other_vlans_are_not_ours(
        kind in 0..KINDS, (vlans, tags) in any_vlans(), (others, _) in any_vlans(),
    ) {
        let reply = ask(&in_vlans(&others), &request(kind, &tags, b"data"));
        prop_assert_eq!(reply.is_some(), vlans == others);
    }

    #[test]
    fn any_bytes_are_safe(
        (vlans, tags) in any_vlans(),
        ether_type in prop::sample::select(vec![0x0806_u16, 0x0800, 0x86dd, 0x8100]),
        bytes in prop::collection::vec(any::<u8>(), 0..120),
        as_they_are: bool,
    ) {
        let frame = if as_they_are {
            bytes
        } else {
            ethernet(OWN_MAC, &tags, ether_type, &bytes)
        };
        if let Some(reply) = ask(&in_vlans(&vlans), &frame) {
            check(&reply, &vlans)?;
        }
    }

    #[test]
    fn damaged_requests_are_safe(
        kind in 0..KINDS,
        (vlans, tags) in any_vlans(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<prop::sample::Index>(),
        is_cut: bool,
    ) {
        let mut frame = request(kind, &tags, b"some data");
        for (at, value) in changes {
            let at = at.index(frame.len());
            frame[at] = value;
        }
        if is_cut {
            frame.truncate(cut.index(frame.len()));
        }
        if let Some(reply) = ask(&in_vlans(&vlans), &frame) {
            check(&reply, &vlans)?;
        }
    }
}

#[test]
fn seeds_of_the_fuzz_target_are_right() {
    for (name, bytes) in data::seeds("host") {
        println!("{name}");
        anything::check(&bytes);
    }
}
