//! Who begins flows, how fast, and from where: rates, ramps, limits, many cores; and who serves
//! them by their first bytes.

use std::collections::BTreeSet;

use allosaur_engine::app::{ProgramCommand as Step, ProgramSpec, Transport};
use allosaur_engine::stateful::{EndCause, Event, StatefulCommand};
use allosaur_engine::template::{
    AssociationSpec, Distribution, L7Map, PoolShare, ProfileSpec, Tunable,
};
use allosaur_engine::time::{Nanos, SECOND};
use allosaur_packet::transport::tcp::TcpFlags;

use crate::world::{MS, RUN, START, World, flags_of, http, profile, receive, send};

fn attempts(world: &World) -> u64 {
    world.sides()[0].flows.tcp.connattempt
}

fn update(factor: f64) -> StatefulCommand {
    StatefulCommand::Update { run: RUN, factor }
}

fn share(rank: u32, cores: u32) -> PoolShare {
    PoolShare {
        rank,
        cores,
        ..PoolShare::ONLY
    }
}

/// Client, server and ports of the flows that began.
fn tuples(world: &World) -> Vec<[u8; 12]> {
    let heard = world.heard.as_ref().expect("it listens").iter();
    let asks = heard.filter(|(port, frame)| *port == 0 && flags_of(frame) == TcpFlags::SYN);
    asks.map(|(_, frame)| frame[26..38].try_into().expect("twelve bytes"))
        .collect()
}

#[test]
fn another_rate_holds_from_now_on() {
    let mut world = World::new(10_000);
    world.start(&http(1_000, 0.01), 1.0, None);
    world.run_for(SECOND);
    assert_eq!(attempts(&world), 1, "the next would be due in 100 s");
    world.tell(update(100_000.0));
    world.run_for(SECOND);
    let fast = attempts(&world) - 1;
    assert!((990..=1_001).contains(&fast), "{fast}");
    world.tell(update(1_000.0));
    world.run_for(SECOND);
    let slow = attempts(&world) - 1 - fast;
    assert!((9..=11).contains(&slow), "{slow}");
    assert_eq!(world.sides()[0].missed, 0);
}

#[test]
fn cores_stay_one_after_another_when_the_rate_changes() {
    let begun: Vec<Vec<Nanos>> = (0..4)
        .map(|rank| {
            let mut world = World::with_share(1_000, share(rank, 4));
            world.start(&http(1_000, 10.0), 1.0, None);
            world.run_for(SECOND + 3 * MS);
            world.tell(update(10.0));
            let mut times = Vec::new();
            for _ in 0..1_000 {
                let before = attempts(&world);
                world.run_for(MS);
                times.extend((before..attempts(&world)).map(|_| world.now));
            }
            times
        })
        .collect();
    let mut all: Vec<Nanos> = begun.into_iter().flatten().collect();
    all.sort_unstable();
    assert!((99..=101).contains(&all.len()), "{}", all.len());
    let gaps = all.windows(2).map(|two| two[1] - two[0]);
    let even = gaps.filter(|gap| (8 * MS..=12 * MS).contains(gap)).count();
    assert_eq!(even, all.len() - 1);
}

#[test]
fn a_rate_rises_evenly_and_an_update_changes_its_height() {
    let mut profile = http(1_000, 100.0);
    profile.client.set(Tunable::RampupSec, 4);
    let mut world = World::new(10_000);
    world.start(&profile, 1.0, None);
    let mut begun = Vec::new();
    for second in 0..6 {
        if second == 2 {
            world.tell(update(2.0));
        }
        let before = attempts(&world);
        world.run_for(SECOND);
        begun.push(attempts(&world) - before);
    }
    // 100/8 * (1, 3), twice 100/8 * (5, 7), then the height.
    let expected = [12.5, 37.5, 125.0, 175.0, 200.0, 200.0];
    for (begun, expected) in begun.iter().zip(expected) {
        assert!(
            (*begun as f64 - expected).abs() <= 1.5,
            "{begun} {expected}"
        );
    }
    assert_eq!(world.sides()[0].missed, 0);
}

#[test]
fn what_is_too_late_is_missed_and_counted() {
    for ramp in [None, Some(3)] {
        let mut profile = http(1_000, 100.0);
        if let Some(seconds) = ramp {
            profile.client.set(Tunable::RampupSec, seconds);
        }
        let mut world = World::new(10_000);
        world.start(&profile, 1.0, Some(10 * SECOND));
        world.run_for(SECOND);
        // The core is away for a second.
        world.now += SECOND;
        world.run_for(10 * SECOND);
        let all = attempts(&world) + world.sides()[0].missed;
        let expected = if ramp.is_some() { 850 } else { 1_000 };
        assert!(
            (expected - 2..=expected + 2).contains(&all),
            "{ramp:?} {all}"
        );
        let expected = if ramp.is_some() { 43..=46 } else { 89..=91 };
        assert!(expected.contains(&world.sides()[0].missed));
    }
}

#[test]
fn cores_share_clients_ports_and_limits() {
    for distribution in [Distribution::Sequence, Distribution::Random] {
        let mut profile = http(1_000, 1_000.0);
        profile.pools[0].last = profile.pools[0].first + 9;
        profile.pools[0].distribution = distribution;
        profile.pools[1].distribution = distribution;
        profile.templates[0].client.limit = Some(203);
        profile.templates[0].client.core_base = 2;
        let mut all = Vec::new();
        let mut of_cores = Vec::new();
        for rank in 0..4 {
            let mut world = World::with_share(1_000, share(rank, 4));
            world.heard = Some(Vec::new());
            world.start(&profile, 1.0, None);
            world.run_for(20 * SECOND);
            let tuples = tuples(&world);
            assert_eq!(
                world.sides()[0].flows.tcp.rcvbyte,
                tuples.len() as u64 * 1_000
            );
            assert!(matches!(
                world.events[..],
                [Event::Ended {
                    cause: EndCause::Done,
                    ..
                }]
            ));
            of_cores.push(tuples.len());
            all.extend(tuples);
        }
        // The larger shares are those of the cores that make a place below three with the base.
        assert_eq!(of_cores, [51, 50, 51, 51]);
        let different: BTreeSet<_> = all.iter().collect();
        assert_eq!(different.len(), 203);
        let clients: BTreeSet<u8> = all.iter().map(|tuple| tuple[3]).collect();
        assert_eq!(clients, (0..10).collect());
    }
}

#[test]
fn a_place_under_a_limit_is_filled_again_though_there_was_no_room() {
    let mut profile = http(1_000, 1_000.0);
    profile.templates[0].client.limit = Some(9);
    profile.templates[0].client.continuous = true;
    let mut world = World::new(7);
    world.start(&profile, 1.0, None);
    world.run_for(20 * SECOND);
    let early = attempts(&world);
    assert!(world.engine.counters()[0].err_flow_overflow > 0);
    world.run_for(20 * SECOND);
    assert!(attempts(&world) > early + 20, "it goes on");
}

#[test]
fn who_only_serves_waits_for_its_time() {
    let mut world = World::new(1_000);
    world.clients = 0;
    world.start(&http(1_000, 100.0), 1.0, Some(SECOND));
    world.run_for(SECOND / 2);
    assert!(world.events.is_empty());
    let syn = crate::world::syn(
        "16.0.0.1".parse().expect("an address"),
        "48.0.0.1".parse().expect("an address"),
        (2_000, 80),
    );
    world.inject(1, syn);
    world.run_for(MS);
    assert_eq!(world.sides()[1].flows.tcp.accepts, 1);
    assert_eq!(attempts(&world), 0);
    world.run_for(60 * SECOND);
    let ended = matches!(world.events[..], [Event::Ended { at, cause: EndCause::Done, .. }] if at >= START + SECOND);
    assert!(ended, "{:?}", world.events);
}

/// Three templates on one port: by their first byte and address, by their first byte and another
/// address, and all others. Each answers with so many bytes.
fn shared_port(transport: Transport) -> ProfileSpec {
    let programs = |response: u32, request: u32| match transport {
        Transport::Stream => [
            vec![send(request), receive(u64::from(response) * 1_000)],
            vec![receive(2), send(2 + response)],
        ],
        Transport::Datagram => {
            let wait = Step::ReceiveMessages {
                messages: 1,
                clear: false,
            };
            let message = |buffer| Step::SendMessage { buffer };
            [
                vec![message(request), wait],
                vec![wait, message(2 + response)],
            ]
        }
    };
    let mut profile = profile(transport, programs(1, 0), 1_000, 20.0);
    let buffer = |base: &[u8], bytes| allosaur_engine::app::BufferSpec {
        base: base.to_vec(),
        bytes,
        fill: Vec::new(),
    };
    profile.buffers = vec![buffer(b"A.", None), buffer(b"B.", None)];
    profile
        .buffers
        .extend((0..4).map(|n| buffer(b"r", Some((n * 1_000).max(1)))));
    // Half of the servers' addresses each.
    profile.pools[1].last = profile.pools[1].first + 0xff;
    let mut upper = profile.pools[1];
    upper.first += 0x100;
    upper.last += 0x100;
    profile.pools.push(upper);
    let template = profile.templates[0].clone();
    profile.templates.clear();
    profile.programs.clear();
    // Response, request, pool, and whether the first byte decides.
    for (response, request, pool, by_byte) in [(1, 0, 1, true), (2, 1, 1, true), (3, 0, 2, false)] {
        let mut template = template.clone();
        template.client.program = profile.programs.len() as u32;
        template.client.server_pool = pool;
        template.server.program = template.client.program + 1;
        template.group = response;
        let range = profile.pools[pool as usize];
        template.server.associations = vec![AssociationSpec {
            port: 80,
            first: range.first,
            last: range.last,
            l7_map: by_byte.then(|| L7Map {
                offsets: vec![0],
                ..L7Map::default()
            }),
        }];
        profile.templates.push(template);
        profile.groups.push(format!("answers {response}"));
        let programs = programs(response, request);
        profile
            .programs
            .extend(programs.map(|commands| ProgramSpec {
                commands,
                transport,
                addon: None,
            }));
    }
    profile
}

#[test]
fn servers_of_one_port_are_told_apart_by_first_bytes_and_addresses() {
    for transport in [Transport::Stream, Transport::Datagram] {
        let mut world = World::new(1_000);
        world.start(&shared_port(transport), 1.0, Some(SECOND));
        world.run_for(20 * SECOND);
        let groups = world.engine.groups(RUN).expect("it runs");
        for (group, response) in groups[1..].iter().zip(1_u64..) {
            let [client, server] = group;
            match transport {
                Transport::Stream => {
                    assert_eq!(client.flows.tcp.rcvbyte, 20 * response * 1_000);
                    assert_eq!(server.flows.tcp.sndbyte, 20 * response * 1_000);
                    assert_eq!(client.flows.tcp.drops, 0);
                }
                Transport::Datagram => {
                    // What is longer than a frame cannot leave.
                    let sent = if response == 1 { 20_000 } else { 0 };
                    assert_eq!(client.flows.udp.rcvbyte, sent, "group {response}");
                    assert_eq!(server.flows.udp.rcvpkt, 20);
                }
            }
            assert_eq!((client.active, server.active), (0, 0));
        }
        let server = &world.engine.counters()[1];
        assert_eq!(
            (server.err_no_template, server.err_defer_no_template),
            (0, 0)
        );
        let deferred = if transport == Transport::Stream {
            40
        } else {
            0
        };
        assert_eq!(server.defer_template, deferred);
        assert_eq!(world.engine.holdings(), Default::default());
    }
}

#[test]
fn the_first_bytes_are_not_those_that_come_first() {
    let mut profile = shared_port(Transport::Stream);
    profile.client.set(Tunable::NoDelay, 1);
    // Each client says "A." or "B." and at once the other; a lost segment brings the other first.
    for (template, first) in [(0, 0), (2, 1)] {
        profile.programs[template].commands.splice(
            ..1,
            [
                Step::Connect,
                Step::SendMode { blocking: false },
                send(first),
                Step::Delay { duration: MS },
                send(1 - first),
            ],
        );
        profile.programs[template + 1].commands[0] = receive(4);
    }
    let mut world = World::new(1_000);
    world.delay = 20 * MS;
    world.lost_ppm = 200_000;
    world.start(&profile, 1.0, Some(SECOND));
    world.run_for(200 * SECOND);
    let groups = world.engine.groups(RUN).expect("it runs");
    // Until it is known whose they are, they are the first one's.
    assert!(groups[1][1].flows.tcp.rcvoopack > 0);
    for (group, response) in [(1, 1_000), (2, 2_000)] {
        let client = &groups[group][0];
        assert!(client.flows.tcp.connects > 10);
        assert_eq!(
            client.flows.tcp.rcvbyte,
            client.flows.tcp.connects * response
        );
    }
    assert_eq!(world.engine.counters()[1].err_defer_no_template, 0);
}

#[test]
fn first_bytes_that_nobody_knows_are_counted_and_refused() {
    let mut profile = shared_port(Transport::Stream);
    // The second template's clients say what no server expects.
    profile.templates[1].client.program = 4;
    profile.buffers[0].base = b"X.".to_vec();
    profile.templates[1].server.associations[0].l7_map = Some(L7Map {
        offsets: vec![0],
        values: Some(vec![b'B']),
        ..L7Map::default()
    });
    profile.templates[0].server.associations[0].l7_map = Some(L7Map {
        offsets: vec![0],
        values: Some(vec![b'A']),
        ..L7Map::default()
    });
    let mut world = World::new(1_000);
    world.start(&profile, 1.0, Some(SECOND));
    world.run_for(20 * SECOND);
    assert_eq!(world.engine.counters()[1].err_defer_no_template, 40);
    let groups = world.engine.groups(RUN).expect("it runs");
    let drops = |group: usize, side: usize| groups[group][side].flows.tcp.drops;
    // Until then, the first of those that share the port has them.
    assert_eq!((drops(1, 0), drops(2, 0), drops(1, 1)), (20, 20, 40));
    assert_eq!(groups[3][0].flows.tcp.rcvbyte, 20 * 3_000);
    assert_eq!(world.engine.holdings(), Default::default());
}
