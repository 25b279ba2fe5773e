//! Frames with their payload apart, and bursts of them: the same happens as with whole frames, one by one.

use allosaur_engine::app::Transport;
use allosaur_engine::session::wire::Encapsulation;
use allosaur_engine::stateful::{GroupCounters, Holdings, StatefulCommand};
use allosaur_engine::template::{ProfileSpec, Tunable};
use allosaur_engine::time::SECOND;
use allosaur_engine::transmit::PortIndex;

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

const OTHERS: [Way; 3] = [
    Way {
        splits: true,
        in_bursts: false,
    },
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
    for way in OTHERS {
        let other = run(way, profile, &prepare);
        let differs = plain.0.iter().zip(&other.0).position(|(a, b)| a != b);
        assert_eq!(differs, None, "{what}, {way:?}");
        assert!(plain == other, "{what}, {way:?}");
    }
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
