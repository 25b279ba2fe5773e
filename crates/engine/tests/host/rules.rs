//! Who is answered and who is not, one deviation from a good request at a time.

use std::net::{Ipv4Addr, Ipv6Addr};

use allosaur_engine::host::{ANNOUNCE_INTERVAL, Host, HostSettings};
use allosaur_engine::time::SECOND;
use allosaur_packet::MacAddress;
use allosaur_packet::link::arp::ArpOperation;
use allosaur_packet::network::icmpv6::Icmpv6Header;
use allosaur_packet::network::ip_protocol::IpProtocol;
use allosaur_packet::network::ipv4::{Ipv4Header, Ipv4Option, Ipv4View};
use allosaur_packet::network::ipv6::Ipv6Header;

use crate::requests::*;

const GROUP_MAC_V4: [u8; 6] = [1, 0, 0x5e, 0, 0, 1];
const OTHER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 0x42];

fn is_answered(frame: &[u8]) -> bool {
    ask(&settings(), frame).is_some()
}

/// The same frame from another Ethernet address.
fn from(mac: [u8; 6], mut frame: Vec<u8>) -> Vec<u8> {
    frame[6..12].copy_from_slice(&mac);
    frame
}

#[test]
fn arp_is_answered_outside_of_service_mode_too() {
    let settings = HostSettings {
        answers_echo: false,
        ..settings()
    };
    for to in [OWN_MAC, BROADCAST] {
        assert!(ask(&settings, &arp(to, &[], &arp_header())).is_some());
    }
    assert!(ask(&settings, &solicit(&[], OWN_V6)).is_some());
    assert!(ask(&settings, &echo_v4(OWN_MAC, &[], &ipv4_header(), b"?")).is_none());
    let header = ipv6_header(PEER_V6, OWN_V6, 64);
    assert!(ask(&settings, &echo_v6(OWN_MAC, &[], &header, b"?")).is_none());
}

#[test]
fn arp_that_is_no_question_for_us() {
    let header = arp_header();
    let change = |change: fn(&mut allosaur_packet::link::arp::ArpHeader)| {
        let mut changed = header;
        change(&mut changed);
        arp(BROADCAST, &[], &changed)
    };
    let cases = [
        ("another's address", change(|arp| arp.target_ip = PEER_V4)),
        ("a reply", change(|arp| arp.operation = ArpOperation::REPLY)),
        (
            "another operation",
            change(|arp| arp.operation = ArpOperation(3)),
        ),
        ("our own address", change(|arp| arp.sender_ip = OWN_V4)),
        (
            "our own MAC",
            change(|arp| arp.sender_mac = MacAddress(OWN_MAC)),
        ),
        (
            "to a group",
            change(|arp| arp.sender_mac = MacAddress(GROUP_MAC_V4)),
        ),
        ("to nobody", change(|arp| arp.sender_mac = MacAddress::ZERO)),
        ("to all", change(|arp| arp.sender_ip = Ipv4Addr::BROADCAST)),
        (
            "to an IP group",
            change(|arp| arp.sender_ip = Ipv4Addr::new(224, 0, 0, 1)),
        ),
        ("to another's MAC", arp(OTHER_MAC, &[], &header)),
        ("from us", from(OWN_MAC, arp(BROADCAST, &[], &header))),
        ("from all", from(BROADCAST, arp(BROADCAST, &[], &header))),
    ];
    for (what, frame) in cases {
        assert!(!is_answered(&frame), "{what}");
    }
    let good = arp(BROADCAST, &[], &header);
    assert!(!is_answered(&good[..41]), "cut off");
    for (at, value) in [(15, 6), (16, 9), (18, 8), (19, 16)] {
        let mut other = good.clone();
        other[at] = value;
        assert!(!is_answered(&other), "byte {at}: another link or protocol");
    }
}

#[test]
fn arp_answers_go_to_whom_the_question_names() {
    // Not where the frame came from: a proxy may have passed it on (RFC 826, "Packet Reception").
    let frame = from(OTHER_MAC, arp(BROADCAST, &[], &arp_header()));
    let reply = ask(&settings(), &frame).expect("a reply");
    assert_eq!(reply[..6], PEER_MAC);
}

#[test]
fn echo_over_ipv4_that_is_not_for_us() {
    let header = ipv4_header();
    let change = |change: fn(&mut Ipv4Header)| {
        let mut changed = header;
        change(&mut changed);
        echo_v4(OWN_MAC, &[], &changed, b"data")
    };
    let good = echo_v4(OWN_MAC, &[], &header, b"data");
    assert!(is_answered(&good));
    let cases = [
        ("another's", change(|ip| ip.destination = PEER_V4)),
        (
            "broadcast",
            change(|ip| ip.destination = Ipv4Addr::BROADCAST),
        ),
        (
            "a group",
            change(|ip| ip.destination = Ipv4Addr::new(224, 0, 0, 1)),
        ),
        ("from us", change(|ip| ip.source = OWN_V4)),
        ("from all", change(|ip| ip.source = Ipv4Addr::BROADCAST)),
        (
            "from a group",
            change(|ip| ip.source = Ipv4Addr::new(239, 1, 1, 1)),
        ),
        (
            "from nobody",
            change(|ip| ip.source = Ipv4Addr::UNSPECIFIED),
        ),
        (
            "from loopback",
            change(|ip| ip.source = Ipv4Addr::LOCALHOST),
        ),
        ("a first fragment", change(|ip| ip.more_fragments = true)),
        (
            "a later fragment",
            change(|ip| ip.fragment_offset_bytes = 8),
        ),
        (
            "another protocol",
            change(|ip| ip.protocol = IpProtocol::UDP),
        ),
        ("to all MACs", echo_v4(BROADCAST, &[], &header, b"data")),
        (
            "to a MAC group",
            echo_v4(GROUP_MAC_V4, &[], &header, b"data"),
        ),
        (
            "to another's MAC",
            echo_v4(OTHER_MAC, &[], &header, b"data"),
        ),
        ("from our MAC", from(OWN_MAC, good.clone())),
        ("from a MAC group", from(GROUP_MAC_V4, good.clone())),
        ("cut off", good[..good.len() - 1].to_vec()),
    ];
    for (what, frame) in cases {
        assert!(!is_answered(&frame), "{what}");
    }
}

#[test]
fn any_flipped_bit_of_an_echo_request_is_noticed() {
    // Behind the Ethernet header all is under one of the two checksums.
    let over_ipv4 = echo_v4(OWN_MAC, &[], &ipv4_header(), b"data");
    for bit in 8 * 14..8 * over_ipv4.len() {
        let mut frame = over_ipv4.clone();
        frame[bit / 8] ^= 1 << (bit % 8);
        assert!(!is_answered(&frame), "bit {bit}");
    }
    let over_ipv6 = echo_v6(OWN_MAC, &[], &ipv6_header(PEER_V6, OWN_V6, 64), b"data");
    // Its own header has no checksum; addresses and length are in the pseudo header.
    for bit in (8 * 18..8 * 21).chain(8 * 22..8 * over_ipv6.len()) {
        let mut frame = over_ipv6.clone();
        frame[bit / 8] ^= 1 << (bit % 8);
        assert!(!is_answered(&frame), "bit {bit}");
    }
}

#[test]
fn options_of_ipv4_are_left_out() {
    let mut header = ipv4_header();
    let route = Ipv4Option::Other {
        kind: 131,
        data: &[4, 10, 0, 0, 7],
    };
    header.options.push(route).expect("room");
    let reply = ask(&settings(), &echo_v4(OWN_MAC, &[], &header, &[7; 100])).expect("a reply");
    let reply = Ipv4View::new_checked(&reply[14..]).expect("IPv4");
    assert_eq!((reply.header_bytes(), reply.total_bytes()), (20, 128));
}

#[test]
fn congestion_marks_of_a_request_are_not_taken_over() {
    let mut header = ipv4_header();
    header.type_of_service = 0xbb;
    let reply = ask(&settings(), &echo_v4(OWN_MAC, &[], &header, b"")).expect("a reply");
    assert_eq!(reply[15], 0xb8);
    let mut header = ipv6_header(PEER_V6, OWN_V6, 1);
    header.traffic_class = 0xbb;
    let reply = ask(&settings(), &echo_v6(OWN_MAC, &[], &header, b"")).expect("a reply");
    assert_eq!(reply[14..18], [0x6b, 0x80, 0, 0]);
}

#[test]
fn echo_over_ipv6_that_is_not_for_us() {
    let echo =
        |to, source, destination| echo_v6(to, &[], &ipv6_header(source, destination, 64), b"data");
    let good = echo(OWN_MAC, PEER_V6, OWN_V6);
    assert!(is_answered(&good));
    let routers = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
    let cases = [
        ("another's", echo(OWN_MAC, PEER_V6, PEER_LOCAL)),
        (
            "another group",
            echo([0x33, 0x33, 0, 0, 0, 2], PEER_V6, routers),
        ),
        ("from us", echo(OWN_MAC, OWN_LOCAL, OWN_V6)),
        ("from a group", echo(OWN_MAC, ALL_NODES, OWN_V6)),
        ("from nobody", echo(OWN_MAC, Ipv6Addr::UNSPECIFIED, OWN_V6)),
        ("from loopback", echo(OWN_MAC, Ipv6Addr::LOCALHOST, OWN_V6)),
        ("to all MACs", echo(BROADCAST, PEER_V6, OWN_V6)),
        ("to another's MAC", echo(OTHER_MAC, PEER_V6, OWN_V6)),
        (
            "to all, at another's MAC",
            echo(OTHER_MAC, PEER_V6, ALL_NODES),
        ),
        ("from our MAC", from(OWN_MAC, good.clone())),
        ("from a MAC group", from(ALL_NODES_MAC, good.clone())),
        ("cut off", good[..good.len() - 1].to_vec()),
    ];
    for (what, frame) in cases {
        assert!(!is_answered(&frame), "{what}");
    }
}

#[test]
fn neighbors_that_look_for_all_find_us() {
    for (source, own) in [(PEER_V6, OWN_V6), (PEER_LOCAL, OWN_LOCAL)] {
        let request = echo_v6(ALL_NODES_MAC, &[], &ipv6_header(source, ALL_NODES, 1), b"");
        let reply = ask(&settings(), &request).expect("a reply");
        let header = Ipv6Header::parse(&reply[14..]).expect("IPv6");
        assert_eq!((header.source, header.destination), (own, source));
        assert_eq!((&reply[..6], &reply[6..12]), (&PEER_MAC[..], &OWN_MAC[..]));
    }
    let only_local = HostSettings {
        ipv6: vec![OWN_LOCAL],
        ..settings()
    };
    let request = echo_v6(ALL_NODES_MAC, &[], &ipv6_header(PEER_V6, ALL_NODES, 1), b"");
    let reply = ask(&only_local, &request).expect("a reply");
    assert_eq!(
        Ipv6Header::parse(&reply[14..]).expect("IPv6").source,
        OWN_LOCAL
    );
}

/// A solicitation with every part given: (MAC, from, to, hops), target, link option.
fn solicit_as(
    (to, source, destination, hops): ([u8; 6], Ipv6Addr, Ipv6Addr, u8),
    target: Ipv6Addr,
    link: Option<[u8; 6]>,
) -> Vec<u8> {
    let header = ipv6_header(source, destination, hops);
    icmpv6(to, &[], &header, &solicitation(target, link), &[])
}

#[test]
fn solicitations_that_are_answered() {
    let nobody = Ipv6Addr::UNSPECIFIED;
    let group = (OWN_GROUP_MAC, PEER_LOCAL, OWN_GROUP, 255);
    let cases = [
        (
            solicit_as(group, OWN_LOCAL, Some(PEER_MAC)),
            OWN_LOCAL,
            PEER_MAC,
        ),
        (
            solicit_as(group, OWN_V6, Some(OTHER_MAC)),
            OWN_V6,
            OTHER_MAC,
        ),
        (solicit_as(group, OWN_V6, None), OWN_V6, PEER_MAC),
        // Still there? (RFC 4861 section 7.3: to the address itself, often without the option.)
        (
            solicit_as((OWN_MAC, PEER_V6, OWN_V6, 255), OWN_V6, None),
            OWN_V6,
            PEER_MAC,
        ),
        (
            solicit_as((OWN_GROUP_MAC, nobody, OWN_GROUP, 255), OWN_V6, None),
            OWN_V6,
            ALL_NODES_MAC,
        ),
    ];
    for (frame, own, mac) in cases {
        let reply = ask(&settings(), &frame).expect("a reply");
        assert_eq!((&reply[..6], &reply[6..12]), (&mac[..], &OWN_MAC[..]));
        let header = Ipv6Header::parse(&reply[14..]).expect("IPv6");
        assert_eq!((header.source, header.hop_limit), (own, 255));
        let meaning = Icmpv6Header::parse(&reply[54..]).expect("ICMPv6");
        let Icmpv6Header::NeighborAdvertisement {
            target, solicited, ..
        } = meaning
        else {
            panic!("{meaning:?}");
        };
        assert_eq!((target, solicited), (own, mac != ALL_NODES_MAC));
    }
}

#[test]
fn solicitations_that_are_not_answered() {
    let nobody = Ipv6Addr::UNSPECIFIED;
    let group = (OWN_GROUP_MAC, PEER_LOCAL, OWN_GROUP, 255);
    let with = |to, source, destination, hops| {
        solicit_as((to, source, destination, hops), OWN_V6, Some(PEER_MAC))
    };
    let other = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 7, 1);
    let probe = (OWN_MAC, nobody, OWN_V6, 255);
    let cases = [
        (
            "a hop too far",
            with(OWN_GROUP_MAC, PEER_LOCAL, OWN_GROUP, 254),
        ),
        ("from us", with(OWN_GROUP_MAC, OWN_LOCAL, OWN_GROUP, 255)),
        (
            "from a group",
            with(OWN_GROUP_MAC, ALL_NODES, OWN_GROUP, 255),
        ),
        ("to another", with(OWN_MAC, PEER_LOCAL, PEER_V6, 255)),
        ("to another's MAC", with(OTHER_MAC, PEER_LOCAL, OWN_V6, 255)),
        ("to all", with(ALL_NODES_MAC, PEER_LOCAL, ALL_NODES, 255)),
        (
            "an address like ours",
            solicit_as(group, other, Some(PEER_MAC)),
        ),
        (
            "a group as target",
            solicit_as(group, OWN_GROUP, Some(PEER_MAC)),
        ),
        ("at our own MAC", solicit_as(group, OWN_V6, Some(OWN_MAC))),
        ("at a MAC group", solicit_as(group, OWN_V6, Some(BROADCAST))),
        (
            "a probe with a link",
            with(OWN_GROUP_MAC, nobody, OWN_GROUP, 255),
        ),
        ("a probe to one", solicit_as(probe, OWN_V6, None)),
        ("from our MAC", from(OWN_MAC, solicit(&[], OWN_V6))),
    ];
    for (what, frame) in cases {
        assert!(!is_answered(&frame), "{what}");
    }
    let mut damaged = solicit(&[], OWN_V6);
    damaged[58] ^= 1;
    assert!(!is_answered(&damaged), "a wrong checksum");
}

#[test]
fn a_host_without_addresses_is_silent() {
    let nobody = HostSettings {
        ipv4: None,
        ipv6: Vec::new(),
        ..settings()
    };
    let mut host = Host::new(nobody.clone(), 0);
    assert!(host.is_silent());
    assert_eq!(host.poll_timeout(), None);
    assert!(!host.poll_transmit(u64::MAX, &mut Vec::new()));
    for frame in [
        arp(BROADCAST, &[], &arp_header()),
        solicit(&[], OWN_V6),
        echo_v4(OWN_MAC, &[], &ipv4_header(), b""),
    ] {
        assert_eq!(ask(&nobody, &frame), None);
    }
}

#[test]
fn one_family_does_not_answer_for_the_other() {
    let only_v4 = HostSettings {
        ipv6: Vec::new(),
        ..settings()
    };
    let only_v6 = HostSettings {
        ipv4: None,
        ..settings()
    };
    let over_ipv4 = [
        arp(BROADCAST, &[], &arp_header()),
        echo_v4(OWN_MAC, &[], &ipv4_header(), b""),
    ];
    let over_ipv6 = [
        solicit(&[], OWN_V6),
        echo_v6(OWN_MAC, &[], &ipv6_header(PEER_V6, OWN_V6, 9), b""),
        echo_v6(ALL_NODES_MAC, &[], &ipv6_header(PEER_V6, ALL_NODES, 9), b""),
    ];
    for frame in &over_ipv4 {
        assert!(ask(&only_v4, frame).is_some() && ask(&only_v6, frame).is_none());
    }
    for frame in &over_ipv6 {
        assert!(ask(&only_v6, frame).is_some() && ask(&only_v4, frame).is_none());
    }
}

#[test]
fn announcements_start_again_when_something_changed() {
    let mut host = Host::new(settings(), 0);
    let mut frame = Vec::new();
    let mut round = |host: &mut Host, now| {
        let mut frames = 0;
        while host.poll_transmit(now, &mut frame) {
            frames += 1;
        }
        frames
    };
    assert_eq!(round(&mut host, 5), 3);
    assert_eq!(host.poll_timeout(), Some(5 + ANNOUNCE_INTERVAL));

    let mut same = settings();
    same.answers_echo = false;
    host.configure(same, SECOND);
    assert_eq!(host.poll_timeout(), Some(5 + ANNOUNCE_INTERVAL));
    assert_eq!(round(&mut host, SECOND), 0);

    let changes: [fn(&mut HostSettings); 4] = [
        |host| host.mac = OTHER_MAC,
        |host| host.vlan = vec![7],
        |host| host.ipv4 = None,
        |host| host.ipv6 = vec![OWN_V6],
    ];
    for change in changes {
        let mut host = Host::new(settings(), 0);
        round(&mut host, 0);
        let mut changed = settings();
        change(&mut changed);
        host.configure(changed.clone(), SECOND);
        assert_eq!(host.poll_timeout(), Some(SECOND), "{changed:?}");
        let addresses = usize::from(changed.ipv4.is_some()) + changed.ipv6.len();
        assert_eq!(round(&mut host, SECOND), addresses);
    }

    // A late round is not made up for.
    assert_eq!(round(&mut host, 1000 * SECOND), 3);
    assert_eq!(host.poll_timeout(), Some(1000 * SECOND + ANNOUNCE_INTERVAL));
}

#[test]
fn a_gateway_is_asked_for_until_it_answers() {
    let second = 1_000_000_000;
    let seeking = HostSettings {
        gateway: Some(PEER_V4),
        ipv6: Vec::new(),
        ..settings()
    };
    let mut host = Host::new(seeking.clone(), 0);
    let mut sent = Vec::new();
    let mut frame = Vec::new();
    let tenth = second / 10;
    for now in (0..40).map(|n| n * tenth) {
        while host.poll_transmit(now, &mut frame) {
            sent.push((now, frame[38..42].to_vec()));
        }
    }
    let (own, gateway) = (OWN_V4.octets().to_vec(), PEER_V4.octets().to_vec());
    // After 0.1, 0.2, 0.4 and 0.8 seconds, and then once a second.
    let asked = [0, 1, 3, 7, 15, 25, 35].map(|n| (n * tenth, gateway.clone()));
    let expected = [&[(0, own)][..], &asked].concat();
    assert_eq!(sent, expected);
    assert_eq!(host.poll_timeout(), Some(45 * tenth));

    // The gateway's answer to the request at hand, and others that are not it.
    let gateway_host = HostSettings {
        mac: PEER_MAC,
        ipv4: Some(PEER_V4),
        ..settings()
    };
    let answer = ask(&gateway_host, &frame_of_request(&mut host, 45 * tenth)).expect("an answer");
    for spoil in [0, 21, 31, 12] {
        let mut other = answer.clone();
        other[spoil] ^= 1;
        host.receive_gateway(46 * tenth, &other);
        assert!(host.is_seeking(), "byte {spoil}");
    }
    for end in 0..42 {
        host.receive_gateway(46 * tenth, &answer[..end]);
    }
    assert_eq!(host.gateway_mac(), None);
    host.receive_gateway(46 * tenth, &answer);
    assert_eq!(host.gateway_mac(), Some(PEER_MAC));
    assert!(!host.is_seeking());
    assert_eq!(host.poll_timeout(), Some(ANNOUNCE_INTERVAL));
    host.configure(
        HostSettings {
            gateway: None,
            ..seeking
        },
        5 * second,
    );
    assert_eq!((host.gateway_mac(), host.is_seeking()), (None, false));
}

#[test]
fn a_gateway_that_announces_itself_is_asked_at_once_and_not_too_often() {
    let second = 1_000_000_000;
    let seeking = HostSettings {
        gateway: Some(PEER_V4),
        ipv6: Vec::new(),
        ..settings()
    };
    let mut host = Host::new(seeking, 0);
    let mut frame = Vec::new();
    let mut now = 0;
    while now < 10 * second {
        while host.poll_transmit(now, &mut frame) {}
        now = host.poll_timeout().expect("it seeks");
    }
    // Its last request is older than a tenth of a second, and the next is due in a second.
    let last = now - second;
    let announcing = |address| HostSettings {
        mac: PEER_MAC,
        ipv4: Some(address),
        ipv6: Vec::new(),
        ..settings()
    };
    let announcement = |of: HostSettings| {
        let mut frame = Vec::new();
        assert!(Host::new(of, 0).poll_transmit(0, &mut frame));
        frame
    };
    let heard_at = last + second / 2;
    host.receive_gateway(
        heard_at,
        &announcement(announcing(Ipv4Addr::new(10, 9, 9, 9))),
    );
    assert_eq!(host.poll_timeout(), Some(now), "another host");
    let gateway = announcement(announcing(PEER_V4));
    host.receive_gateway(heard_at, &gateway);
    assert_eq!(host.poll_timeout(), Some(heard_at));
    assert_eq!(
        frame_of_request(&mut host, heard_at)[38..42],
        PEER_V4.octets()
    );
    assert!(host.is_seeking(), "an announcement is no answer");
    host.receive_gateway(heard_at + 1, &gateway);
    assert_eq!(host.poll_timeout(), Some(heard_at + second / 10));
}

fn frame_of_request(host: &mut Host, now: u64) -> Vec<u8> {
    let mut frame = Vec::new();
    assert!(host.poll_transmit(now, &mut frame));
    frame
}
