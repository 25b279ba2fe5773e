//! Tests of sharing out: the same flow to the same share, nothing lost, doubled or out of order.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::TxQueue;
use crate::memory::{self, LinkSettings, MemoryRx, RingTx};

/// A packet of a flow.
#[derive(Clone, Debug)]
struct Packet {
    tags: usize,
    ipv6: bool,
    protocol: u8,
    hosts: [u8; 2],
    ports: [u16; 2],
    back: bool,
    /// Of a fragment that is not the first: its offset; of one that is, 0.
    fragment: Option<u16>,
}

impl Packet {
    fn of(hosts: [u8; 2], ports: [u16; 2]) -> Packet {
        Packet {
            tags: 0,
            ipv6: false,
            protocol: 17,
            hosts,
            ports,
            back: false,
            fragment: None,
        }
    }

    fn frame(&self, number: u16) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
        for tag in 0..self.tags {
            frame.extend([0x81, 0x00, 0, 7 + tag as u8]);
        }
        let turn = |pair: [_; 2]| if self.back { [pair[1], pair[0]] } else { pair };
        let hosts = turn([self.hosts[0], self.hosts[1].wrapping_add(128)]);
        let [from, to] = if self.back {
            [self.ports[1], self.ports[0]]
        } else {
            self.ports
        };
        match self.ipv6 {
            false => ipv4(&mut frame, self, hosts),
            true => ipv6(&mut frame, self, hosts),
        }
        frame.extend(from.to_be_bytes());
        frame.extend(to.to_be_bytes());
        // A header of UDP or TCP, whichever it is, of 20 bytes.
        frame.extend([0, 26, 0, 0, 0, 0, 0, 0, 0x50, 0, 0, 0, 0, 0, 0, 0]);
        frame.extend(number.to_be_bytes());
        frame.resize(frame.len().max(60), 0);
        frame
    }
}

fn ipv4(frame: &mut Vec<u8>, packet: &Packet, hosts: [u8; 2]) {
    frame.extend([0x08, 0x00, 0x45, 0, 0, 42, 0, 0]);
    let more = if packet.fragment == Some(0) {
        0x2000
    } else {
        0
    };
    frame.extend(((packet.fragment.unwrap_or(0) / 8) | more).to_be_bytes());
    frame.extend([64, packet.protocol, 0, 0]);
    for host in hosts {
        frame.extend([16, 0, 0, host]);
    }
}

fn ipv6(frame: &mut Vec<u8>, packet: &Packet, hosts: [u8; 2]) {
    let extension = if packet.fragment.is_some() { 8 } else { 0 };
    let next = if packet.fragment.is_some() {
        44
    } else {
        packet.protocol
    };
    frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 22 + extension, next, 64]);
    for host in hosts {
        frame.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
    }
    if let Some(offset) = packet.fragment {
        let more = u16::from(offset == 0);
        frame.extend([packet.protocol, 0]);
        frame.extend((offset | more).to_be_bytes());
        frame.extend([0; 4]);
    }
}

fn packets() -> impl Strategy<Value = Packet> {
    let fragment = prop_oneof![3 => Just(None), 1 => Just(Some(0)), 1 => Just(Some(64))];
    let protocol = prop::sample::select(vec![6, 17, 1, 58, 132]);
    let hosts = prop::array::uniform2(0..4u8);
    let ports = prop::array::uniform2(1000..1003u16);
    let parts = (
        0..3usize,
        any::<bool>(),
        protocol,
        hosts,
        ports,
        any::<bool>(),
        fragment,
    );
    parts.prop_map(
        |(tags, ipv6, protocol, hosts, ports, back, fragment)| Packet {
            tags,
            ipv6,
            protocol,
            hosts,
            ports,
            back,
            fragment,
        },
    )
}

fn send(tx: &mut RingTx, now_ns: u64, frame: &[u8]) {
    let slot = tx.slot(now_ns, frame.len());
    slot.expect("the ring has room").copy_from_slice(frame);
    tx.flush();
}

/// All that the shares get at `now_ns`, as (time, frame).
fn receive(
    reader: &mut SpreadReader<MemoryRx>,
    ends: &mut [SpreadEnd],
    now_ns: u64,
) -> Vec<Vec<(u64, Vec<u8>)>> {
    let mut shares = vec![Vec::new(); 1 + ends.len()];
    reader.receive(now_ns, usize::MAX, |at, frame| {
        shares[0].push((at, frame.to_vec()))
    });
    for (end, share) in ends.iter_mut().zip(&mut shares[1..]) {
        let front = end.next_arrival_ns();
        end.receive(now_ns, usize::MAX, |at, frame| {
            share.push((at, frame.to_vec()))
        });
        assert_eq!(front, share.first().map(|(at, _)| *at));
    }
    shares
}

proptest! {
    #[test]
    fn every_frame_reaches_the_share_of_its_flow_once_and_in_order(
        packets in prop::collection::vec(packets(), 1..200),
        shares in 1..6usize,
    ) {
        let (mut a, b) = memory::pair(1, 1, &LinkSettings::default());
        let (mut reader, mut ends) = spread(b.rx, shares);
        let mut expected = vec![Vec::new(); shares];
        for (number, packet) in (0..).zip(&packets) {
            let frame = packet.frame(number);
            let at = u64::from(number / 3);
            send(&mut a.tx[0], at, &frame);
            expected[share_of(flow_hash(&frame), shares)].push((at, frame));
        }
        prop_assert_eq!(receive(&mut reader, &mut ends, 1000), expected);
        prop_assert_eq!(reader.lost_packets(), 0);
    }

    #[test]
    fn both_directions_of_a_flow_and_all_its_tags_are_the_same(packet in packets()) {
        let flow = flow_hash(&packet.frame(1));
        prop_assert_ne!(flow, 0);
        let back = Packet { back: !packet.back, tags: (packet.tags + 1) % 3, ..packet };
        prop_assert_eq!(flow, flow_hash(&back.frame(2)));
    }

    #[test]
    fn fragments_of_a_datagram_stay_together(packet in packets()) {
        let part = |offset| Packet { fragment: Some(offset), ..packet.clone() };
        let first = flow_hash(&part(0).frame(1));
        prop_assert_eq!(first, flow_hash(&part(128).frame(2)));
        let other = Packet { ports: [7, 9], ..part(0) };
        prop_assert_eq!(first, flow_hash(&other.frame(1)), "ports do not matter");
    }

    #[test]
    fn what_a_router_says_about_a_packet_reaches_the_share_of_its_flow(
        ipv6 in any::<bool>(),
        protocol in prop::sample::select(vec![6u8, 17]),
        hosts in any::<[u8; 2]>(),
        ports in any::<[u16; 2]>(),
        kind in 0..3usize,
    ) {
        let packet = Packet { ipv6, protocol, ..Packet::of(hosts, ports) };
        let about = packet.frame(1);
        let flow = flow_hash(&about);
        let quoted = &about[14..14 + if ipv6 { 40 } else { 20 } + 8];
        // From a router to the one that sent the packet.
        let router = Packet { ipv6, protocol: if ipv6 { 58 } else { 1 }, ..Packet::of([77, 78], [0, 0]) };
        let message = |kind: u8, quoted: &[u8]| {
            let mut frame = router.frame(0);
            let network = if ipv6 { 40 } else { 20 };
            frame.truncate(14 + network);
            let bytes = (8 + quoted.len()) as u16;
            let at = if ipv6 { 14 + 4 } else { 14 + 2 };
            let length = if ipv6 { bytes } else { bytes + 20 };
            frame[at..at + 2].copy_from_slice(&length.to_be_bytes());
            frame.extend([kind, 4, 0, 0, 0, 0, 5, 120]);
            frame.extend_from_slice(quoted);
            frame
        };
        let kind = if ipv6 { [1, 2, 3][kind] } else { [3, 11, 12][kind] };
        prop_assert_eq!(flow_hash(&message(kind, quoted)), flow);
        // An answer to an echo request quotes nothing, and less than the ports says nothing.
        let echo = if ipv6 { 129 } else { 0 };
        let by_addresses = flow_hash(&message(echo, &[]));
        prop_assert_eq!(flow_hash(&message(echo, quoted)), by_addresses);
        prop_assert_eq!(flow_hash(&message(kind, &quoted[..quoted.len() - 5])), by_addresses);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        prop_assert!(share_of(flow_hash(&bytes), 3) < 3);
    }
}

#[test]
fn flows_that_grow_together_are_spread_evenly() {
    for shares in [2, 3, 4, 7] {
        let mut counts: HashMap<usize, usize> = HashMap::new();
        for flow in 0..4000u16 {
            let host = flow as u8;
            let packet = Packet::of([host, host], [1024 + flow, 1024 + flow]);
            *counts
                .entry(share_of(flow_hash(&packet.frame(0)), shares))
                .or_default() += 1;
        }
        let even = 4000 / shares;
        for share in 0..shares {
            let count = counts[&share];
            assert!(
                (even * 9 / 10..even * 11 / 10).contains(&count),
                "{shares}: {counts:?}"
            );
        }
    }
}

#[test]
fn what_is_no_ip_belongs_to_the_reader() {
    let mut arp = vec![0xff; 42];
    arp[12..22].copy_from_slice(&[8, 6, 0, 1, 8, 0, 6, 4, 0, 1]);
    let ipv4_cut_off = Packet::of([1, 2], [3, 4]).frame(0)[..30].to_vec();
    for frame in [arp, ipv4_cut_off, vec![0; 60], vec![]] {
        assert_eq!(share_of(flow_hash(&frame), 64), 0, "{frame:?}");
    }
}

#[test]
fn what_finds_no_room_is_counted_as_lost() {
    let (mut a, b) = memory::pair(1, 1, &LinkSettings::default());
    let (mut reader, mut ends) = spread(b.rx, 2);
    let mine = |share| {
        let frames = (0..).map(|port| Packet::of([1, 2], [port, 80]).frame(0));
        let mut mine = frames.filter(|frame| share_of(flow_hash(frame), 2) == share);
        mine.next().expect("there are many flows")
    };
    let (own, other) = (mine(0), mine(1));
    let (mut sent, mut kept) = (0u64, 0);
    while reader.lost_packets() == 0 {
        for _ in 0..1000 {
            send(&mut a.tx[0], 5, &other);
        }
        send(&mut a.tx[0], 5, &own);
        sent += 1000;
        let taken = reader.receive(9, usize::MAX, |_, frame| kept += u32::from(frame == own));
        assert_eq!(taken, 1001, "the reader tells that something came");
        assert!(sent < 1_000_000, "a ring has an end");
    }
    assert_eq!(reader.take_passed(), 0b10);
    assert_eq!(reader.take_passed(), 0);
    assert_eq!(
        u64::from(kept),
        sent / 1000,
        "the reader's own share loses nothing"
    );
    let got = ends[0].receive(9, usize::MAX, |_, _| ()) as u64;
    assert_eq!(got + reader.lost_packets(), sent);
    // A line of 64 bytes each.
    assert!(got >= (SPREAD_BYTES / 64 - 2) as u64);
}

#[test]
fn the_rules_by_port_look_at_one_port_each_in_all_headers() {
    for ipv6 in [false, true] {
        for tags in 0..3 {
            let packet = Packet {
                ipv6,
                tags,
                ..Packet::of([1, 2], [1027, 80])
            };
            let frame = packet.frame(0);
            assert_eq!(Sharing::BySourcePort.share_of(&frame, 4), 3);
            assert_eq!(Sharing::ByDestinationPort.share_of(&frame, 64), 16);
            let part = Packet {
                fragment: Some(64),
                ..packet.clone()
            };
            let ping = Packet {
                protocol: 1,
                ..packet
            };
            for other in [part.frame(0), ping.frame(0), vec![0; 20]] {
                assert_eq!(Sharing::BySourcePort.share_of(&other, 4), 0);
            }
        }
    }
}

/// A frame in VXLAN over IPv4 or IPv6, from any port.
fn in_vxlan(inner: &[u8], ipv6: bool, port: u16) -> Vec<u8> {
    let outer = Packet {
        ipv6,
        protocol: 17,
        ..Packet::of([9, 8], [port, 4789])
    };
    let mut frame = outer.frame(0);
    let header_bytes = if ipv6 { 40 } else { 20 };
    frame.truncate(14 + header_bytes + 8);
    let udp_bytes = (8 + 8 + inner.len()) as u16;
    let udp = 14 + header_bytes;
    frame[udp + 4..udp + 6].copy_from_slice(&udp_bytes.to_be_bytes());
    match ipv6 {
        true => frame[18..20].copy_from_slice(&udp_bytes.to_be_bytes()),
        false => frame[16..18].copy_from_slice(&(20 + udp_bytes).to_be_bytes()),
    }
    frame.extend([8, 0, 0, 0, 0, 0, 7, 0]);
    frame.extend(inner);
    frame
}

#[test]
fn the_rules_by_port_look_into_vxlan() {
    for (ipv6, outer_v6) in [(false, false), (false, true), (true, false), (true, true)] {
        let packet = Packet {
            ipv6,
            ..Packet::of([1, 2], [1027, 80])
        };
        for outer_port in [50_000, 50_001, 50_002] {
            let frame = in_vxlan(&packet.frame(0), outer_v6, outer_port);
            assert_eq!(Sharing::BySourcePort.share_of(&frame, 4), 3);
            assert_eq!(Sharing::ByDestinationPort.share_of(&frame, 64), 16);
        }
    }
    // What is no VXLAN by its header goes by its own ports, whatever it is.
    let mut other = in_vxlan(&[0; 60], false, 50_001);
    other[42] = 0;
    assert_eq!(Sharing::BySourcePort.share_of(&other, 4), 1);
    other.truncate(45);
    assert_eq!(Sharing::BySourcePort.share_of(&other, 4), 1);
}

#[test]
fn a_queue_is_shared_out_by_the_rule_that_is_given() {
    let (mut a, b) = memory::pair(1, 1, &LinkSettings::default());
    let (mut reader, mut ends) = spread_by(b.rx, 3, Sharing::BySourcePort);
    for port in 1000..1030 {
        let frame = Packet::of([1, 2], [port, 80]).frame(0);
        let slot = a.tx[0].slot(0, frame.len());
        slot.expect("the ring has room").copy_from_slice(&frame);
    }
    a.tx[0].flush();
    let mut kept = 0;
    assert_eq!(reader.receive(0, 64, |_, _| kept += 1), 30);
    let others: Vec<usize> = ends
        .iter_mut()
        .map(|e| e.receive(0, 64, |_, _| {}))
        .collect();
    assert_eq!((kept, others), (10, vec![10, 10]));
    assert_eq!((reader.passed_packets(), reader.take_passed()), (20, 0b110));
}

#[test]
fn a_share_gives_no_frame_before_its_time() {
    let (mut a, b) = memory::pair(1, 1, &LinkSettings::default());
    let (mut reader, mut ends) = spread_by(b.rx, 2, Sharing::BySourcePort);
    for (sent_ns, port) in [(1000, 1001), (2000, 1003)] {
        let frame = Packet::of([1, 2], [port, 80]).frame(0);
        let slot = a.tx[0].slot(sent_ns, frame.len());
        slot.expect("the ring has room").copy_from_slice(&frame);
    }
    a.tx[0].flush();
    assert_eq!(reader.receive(2000, 64, |_, _| {}), 2);
    // The turn of who reads the share may have begun before the reader's.
    let mut received_at = |now_ns| {
        let mut times = Vec::new();
        ends[0].receive(now_ns, 64, |at, _| times.push(at));
        times
    };
    assert_eq!(received_at(999), [0; 0]);
    assert_eq!(received_at(1000), [1000]);
    assert_eq!(received_at(3000), [2000]);
}
