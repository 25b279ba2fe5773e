//! Frames with their payload apart: the same happens as with whole frames. Bursts of them: the same but
//! that segments which arrive together are acknowledged together.

use std::collections::BTreeMap;

use allosaur_engine::app::Transport;
use allosaur_engine::encapsulation::Encapsulation;
use allosaur_engine::stateful::{GroupCounters, Holdings, StatefulCommand};
use allosaur_engine::tcp::TcpCounters;
use allosaur_engine::template::{ProfileSpec, Tunable};
use allosaur_engine::time::SECOND;
use allosaur_engine::transmit::PortIndex;
use allosaur_packet::frame::{self, Network};
use allosaur_packet::transport::tcp::{TcpFlags, TcpView};

use super::world::{MS, World, http, mac, profile, receive, send};

/// How frames come and go.
#[derive(Clone, Copy, Debug)]
struct Way {
    splits: bool,
    in_bursts: bool,
}

const PLAIN: Way = Way {
    splits: false,
    in_bursts: false,
};

const SPLIT: Way = Way {
    splits: true,
    in_bursts: false,
};

const BURSTS: [Way; 2] = [
    Way {
        splits: false,
        in_bursts: true,
    },
    Way {
        splits: true,
        in_bursts: true,
    },
];

/// All frames that were sent, and what was counted.
type Account = (Vec<(PortIndex, Vec<u8>)>, [GroupCounters; 2], Holdings);

fn run(way: Way, profile: &ProfileSpec, prepare: impl Fn(&mut World)) -> Account {
    let mut world = World::new(10_000);
    world.in_bursts = way.in_bursts;
    if way.splits {
        world.split_frames();
    }
    world.heard = Some(Vec::new());
    prepare(&mut world);
    world.start(profile, 1.0, Some(SECOND / 2));
    world.run_for(20 * SECOND);
    let heard = world.heard.take().expect("it was listened to");
    (heard, world.sides().clone(), world.engine.holdings())
}

fn assert_same(what: &str, profile: &ProfileSpec, prepare: impl Fn(&mut World)) {
    let plain = run(PLAIN, profile, &prepare);
    assert!(plain.0.len() > 50, "{what}: {} frames", plain.0.len());
    let split = run(SPLIT, profile, &prepare);
    let differs = plain.0.iter().zip(&split.0).position(|(a, b)| a != b);
    assert_eq!(differs, None, "{what}, {SPLIT:?}");
    assert!(plain == split, "{what}, {SPLIT:?}");
    for way in BURSTS {
        assert_alike(
            &format!("{what}, {way:?}"),
            &plain,
            &run(way, profile, &prepare),
        );
    }
}

/// What may not depend on how many segments are acknowledged at once.
fn assert_alike(what: &str, plain: &Account, burst: &Account) {
    assert!(streams(&plain.0) == streams(&burst.0), "{what}");
    assert_eq!(plain.2, burst.2, "{what}");
    for (one, other) in plain.1.iter().zip(&burst.1) {
        let (tcp, others) = (&one.flows.tcp, &other.flows.tcp);
        let of = |tcp: &TcpCounters| {
            [
                tcp.connects,
                tcp.closed,
                tcp.drops,
                tcp.sndbyte,
                tcp.sndbyte_ok,
                tcp.rcvbyte,
                tcp.rcvackbyte,
            ]
        };
        assert_eq!(of(tcp), of(others), "{what}");
        assert_eq!(tcp.rcvoffloads, 0, "{what}");
        assert!(others.preddat >= others.rcvoffloads, "{what}");
        assert!(others.rcvpack >= others.rcvoffloads, "{what}");
    }
}

/// The bytes of each direction of each connection, in any order. What was sent again was the same.
fn streams(frames: &[(PortIndex, Vec<u8>)]) -> Vec<Vec<u8>> {
    let mut done = Vec::new();
    let mut open: BTreeMap<(PortIndex, Vec<u8>), (u32, Vec<u8>)> = BTreeMap::new();
    for (port, bytes) in frames {
        let layout = frame::parse(bytes);
        let segment = TcpView::new_unchecked(layout.segment(bytes));
        let addresses = match layout.network {
            Network::Ipv4 => 12..20,
            _ => 8..40,
        };
        let packet = &bytes[usize::from(layout.network_offset)..];
        let ends = [&packet[addresses], &layout.segment(bytes)[..4]].concat();
        let ends = (*port, ends);
        if segment.flags().contains(TcpFlags::SYN) {
            let first = segment.sequence().wrapping_add(1);
            if open.get(&ends).is_none_or(|(known, _)| *known != first) {
                let old = open.insert(ends, (first, Vec::new()));
                done.extend(old.map(|(_, bytes)| bytes));
            }
            continue;
        }
        let Some((first, stream)) = open.get_mut(&ends) else {
            continue;
        };
        let at = segment.sequence().wrapping_sub(*first) as usize;
        for (place, byte) in (at..).zip(layout.payload(bytes)) {
            match stream.get(place) {
                Some(known) => assert_eq!(known, byte),
                None => {
                    assert_eq!(place, stream.len(), "nothing is left out");
                    stream.push(*byte);
                }
            }
        }
    }
    done.extend(open.into_values().map(|(_, bytes)| bytes));
    done.sort();
    done
}

fn with(mut profile: ProfileSpec, tunables: &[(Tunable, u64)]) -> ProfileSpec {
    for (tunable, value) in tunables {
        profile.client.set(*tunable, *value);
        profile.server.set(*tunable, *value);
    }
    profile
}

#[test]
fn responses_of_any_size_are_the_same() {
    for bytes in [1, 127, 128, 1000, 1500, 32_000, 300_000] {
        assert_same(&format!("{bytes} bytes"), &http(bytes, 20.0), |_| {});
    }
}

#[test]
fn so_they_are_over_ipv6_and_in_a_vlan() {
    let long = http(50_000, 20.0);
    assert_same(
        "IPv6",
        &with(long.clone(), &[(Tunable::Ipv6Enable, 1)]),
        |_| {},
    );
    let tag = |world: &mut World| {
        for port in 0..2 {
            world.tell(StatefulCommand::SetLink {
                port,
                own_mac: mac(port + 1),
                peer_mac: mac(2 - port),
                encapsulation: Encapsulation::Vlan(100),
            });
        }
    };
    assert_same("VLAN", &long, tag);
}

#[test]
fn so_they_are_on_links_that_lose_double_and_delay() {
    for seed in 0..8 {
        assert_same(&format!("seed {seed}"), &http(60_000, 20.0), |world| {
            world.seed_link(seed);
            (world.lost_ppm, world.doubled_ppm, world.late_ppm) = (20_000, 20_000, 50_000);
        });
    }
}

#[test]
fn so_they_are_when_queues_are_full() {
    for room in [1, 3, 10] {
        assert_same(&format!("room for {room}"), &http(60_000, 20.0), |world| {
            world.limit_room(room);
        });
    }
}

#[test]
fn so_they_are_with_other_windows() {
    let tunables = [
        vec![
            (Tunable::InitialWindow, 10),
            (Tunable::ReceiveBuffer, 200_000),
        ],
        vec![(Tunable::DelayedAck, 20), (Tunable::ReceiveBuffer, 5_000)],
        vec![(Tunable::Rfc1323, 0), (Tunable::Mss, 900)],
        vec![(Tunable::TransmitBuffer, 5_000)],
    ];
    for tunables in tunables {
        let what = format!("{tunables:?}");
        assert_same(&what, &with(http(200_000, 10.0), &tunables), |_| {});
    }
}

#[test]
fn so_are_answers_of_several_parts_both_ways() {
    // The client goes on in the middle of what arrives together.
    let client = vec![
        send(0),
        receive(3_000),
        send(1),
        receive(17_000),
        send(0),
        receive(60_000),
    ];
    let server = vec![
        receive(100),
        send(1),
        send(1),
        send(0),
        send(1),
        receive(20_200),
        send(1),
    ];
    let profile = profile(Transport::Stream, [client, server], 20_000, 20.0);
    assert_same("several parts", &profile, |_| {});
    assert_same("several parts, with loss", &profile, |world| {
        world.seed_link(7);
        (world.lost_ppm, world.late_ppm) = (10_000, 20_000);
        world.delay = 2 * MS;
    });
}

/// Source port, number, what is acknowledged, and how much data there is.
fn numbers(frame: &[u8]) -> (u16, u32, u32, usize) {
    let layout = frame::parse(frame);
    let segment = TcpView::new_unchecked(layout.segment(frame));
    let (seq, ack) = (segment.sequence(), segment.acknowledgment());
    (segment.source_port(), seq, ack, layout.payload(frame).len())
}

fn one_response(prepare: impl Fn(&mut World)) -> Account {
    let way = BURSTS[0];
    let windows = [
        (Tunable::InitialWindow, 10),
        (Tunable::ReceiveBuffer, 60_000),
    ];
    run(way, &with(http(60_000, 2.0), &windows), prepare)
}

#[test]
fn segments_that_arrive_together_are_acknowledged_together() {
    let (frames, sides, _) = one_response(|_| {});
    let of_client = frames.iter().filter(|(port, _)| *port == 0);
    let acks = of_client.map(|(_, frame)| numbers(frame)).skip(2);
    let acks: Vec<u32> = acks.filter(|ack| ack.3 == 0).map(|ack| ack.2).collect();
    let [client, server] = sides.map(|side| side.flows.tcp);
    // The first segment of all acknowledges the request, and so is handled alone. Then come windows of
    // 12 segments and of 14, and what is left.
    let bytes = acks.windows(2).map(|two| two[1].wrapping_sub(two[0]));
    assert_eq!(bytes.take(2).collect::<Vec<_>>(), [12 * 1448, 14 * 1448]);
    assert_eq!((client.rcvbyte, client.rcvpack), (60_000, 42));
    assert_eq!(client.rcvtotal, server.sndtotal);
    assert_eq!(server.rcvtotal, client.sndtotal);
    assert_eq!(client.rcvoffloads, 8 + 11 + 13 + 4);
}

#[test]
fn each_segment_behind_a_gap_is_acknowledged_for_itself() {
    // The third of the server with data, by its identification, which is always the same.
    let is_third = |frame: &[u8]| numbers(frame).0 == 80 && frame[18..20] == [62, 49];
    let (frames, sides, _) = one_response(|world| world.loses = is_third);
    let lost = frames.iter().find(|(_, frame)| is_third(frame));
    let (_, gap, _, _) = numbers(&lost.expect("it was sent").1);
    let asks = frames.iter().filter(|(port, frame)| {
        let (_, _, ack, bytes) = numbers(frame);
        *port == 0 && bytes == 0 && ack == gap
    });
    let [client, server] = sides.map(|side| side.flows.tcp);
    // One for the two before it, and one for each behind it: seven of the first ten, and new ones.
    assert_eq!(asks.count() as u64, 1 + client.rcvoopack);
    assert!(client.rcvoopack >= 7, "{}", client.rcvoopack);
    assert_eq!(client.rcvbyte, 60_000);
    assert_eq!((server.rexmttimeo, server.sndrexmitpack), (0, 1));
}
