//! How a run ends: by itself, by its limits, by a stop.

use allosaur_engine::app::{ProgramCommand as Step, Transport};
use allosaur_engine::stateful::{EndCause, Event, RunLimits, StatefulCommand};
use allosaur_engine::template::ProfileSpec;
use allosaur_engine::time::{Nanos, SECOND};
use allosaur_packet::transport::tcp::TcpFlags;

use crate::world::{MS, RUN, START, World, flags_of, http, profile, receive, send};

/// Flows that never end by themselves.
fn endless(rate_cps: f64) -> ProfileSpec {
    let client = vec![send(0), receive(1_000_000)];
    let server = vec![receive(1_000_000)];
    profile(Transport::Stream, [client, server], 1_000, rate_cps)
}

fn within(establish_max: Option<Nanos>, close_max: Option<Nanos>) -> RunLimits {
    RunLimits {
        establish_max,
        close_max,
    }
}

/// When the run ended, and why.
fn the_end(world: &World) -> (Nanos, EndCause) {
    match world.events[..] {
        [
            Event::Ended {
                run: RUN,
                at,
                cause,
            },
        ] => (at, cause),
        _ => panic!("{:?}", world.events),
    }
}

/// Segments with RST that left a port.
fn resets(world: &World, from: u8) -> usize {
    let heard = world.heard.as_ref().expect("it listens");
    let resets = heard
        .iter()
        .filter(|(port, frame)| *port == from && flags_of(frame).contains(TcpFlags::RST));
    resets.count()
}

#[test]
fn flows_that_are_left_are_reset_when_their_time_is_over() {
    for close_max in [0, 200 * MS] {
        let mut world = World::new(1_000);
        world.heard = Some(Vec::new());
        world.start_within(
            &endless(100.0),
            1.0,
            Some(SECOND),
            within(None, Some(close_max)),
        );
        world.run_for(SECOND - MS);
        assert_eq!(world.sides()[0].established, 100);
        assert_eq!(resets(&world, 0), 0);
        world.run_for(5 * SECOND);
        let (at, cause) = the_end(&world);
        let expected = START + SECOND + close_max;
        assert!((expected..expected + 20 * MS).contains(&at), "{at}");
        assert_eq!(cause, EndCause::Done);
        let [client, server] = world.sides();
        assert_eq!((client.active, client.established), (0, 0));
        let tcp = [&client.flows.tcp, &server.flows.tcp];
        assert_eq!(tcp.map(|tcp| tcp.testdrops), [100; 2]);
        assert_eq!(tcp.map(|tcp| tcp.drops + tcp.conndrops), [0; 2]);
        assert_eq!(tcp.map(|tcp| tcp.closed), [100; 2]);
        assert_eq!((resets(&world, 0), resets(&world, 1)), (100, 100));
        assert_eq!(world.engine.flows(), 0);
    }
}

#[test]
fn what_ends_in_time_is_not_reset() {
    let mut world = World::new(1_000);
    world.heard = Some(Vec::new());
    let limits = within(Some(SECOND), Some(10 * SECOND));
    world.start_within(&http(32_000, 100.0), 1.0, Some(SECOND), limits);
    world.run_for(20 * SECOND);
    assert_eq!(the_end(&world).1, EndCause::Done);
    assert_eq!(world.sides()[0].flows.tcp.testdrops, 0);
    assert_eq!(world.sides()[0].flows.tcp.rcvbyte, 100 * 32_000);
    assert_eq!(resets(&world, 0) + resets(&world, 1), 0);
}

#[test]
fn a_stop_waits_for_flows_as_long_as_was_said() {
    let mut world = World::new(1_000);
    world.start_within(&endless(100.0), 1.0, None, within(None, Some(SECOND / 2)));
    world.run_for(SECOND);
    world.tell(StatefulCommand::Stop {
        run: RUN,
        abort: false,
    });
    world.run_for(SECOND / 2 - MS);
    assert!(world.events.is_empty());
    assert_eq!(world.sides()[0].established, 101);
    world.run_for(SECOND);
    let (at, cause) = the_end(&world);
    assert!((START + SECOND * 3 / 2..START + SECOND * 8 / 5).contains(&at));
    assert_eq!(cause, EndCause::Stopped);
}

#[test]
fn a_run_without_any_flow_ends_early() {
    let mut world = World::new(1_000);
    world.lost_ppm = 1_000_000;
    let limits = within(Some(SECOND / 2), Some(0));
    world.start_within(&http(1_000, 100.0), 1.0, Some(20 * SECOND), limits);
    world.run_for(SECOND / 2 - MS);
    assert!(world.events.is_empty());
    world.run_for(SECOND);
    let (at, cause) = the_end(&world);
    assert!((START + SECOND / 2..START + SECOND / 2 + 20 * MS).contains(&at));
    assert_eq!(cause, EndCause::NotEstablished);
    let client = &world.sides()[0];
    assert!((49..=51).contains(&client.flows.tcp.connattempt));
    assert_eq!(client.flows.tcp.testdrops, client.flows.tcp.connattempt);
    assert_eq!(client.flows.tcp.conndrops, 0);
    assert_eq!(world.engine.flows(), 0);
}

#[test]
fn one_flow_that_is_established_is_enough() {
    let mut world = World::new(1_000);
    let limits = within(Some(SECOND / 2), Some(0));
    world.start_within(&http(1_000, 100.0), 1.0, Some(2 * SECOND), limits);
    world.run_for(SECOND / 4);
    world.lost_ppm = 1_000_000;
    world.run_for(4 * SECOND);
    let (at, cause) = the_end(&world);
    assert!(at >= START + 2 * SECOND);
    assert_eq!(cause, EndCause::Done);
}

#[test]
fn resets_wait_for_room_but_not_for_ever() {
    for room in [1, 0] {
        let mut world = World::new(1_000);
        world.heard = Some(Vec::new());
        world.start(&endless(100.0), 1.0, None);
        world.run_for(SECOND - MS);
        world.limit_room(room);
        world.tell(StatefulCommand::Stop {
            run: RUN,
            abort: true,
        });
        world.run_for(5 * SECOND);
        let (at, cause) = the_end(&world);
        assert_eq!(cause, EndCause::Stopped);
        assert!(at <= START + SECOND * 8 / 5, "room {room}: {at}");
        assert_eq!(resets(&world, 0), 100 * room);
        let [client, server] = world.sides();
        let tcp = [&client.flows.tcp, &server.flows.tcp];
        assert_eq!(tcp.map(|tcp| tcp.testdrops), [100; 2]);
        assert_eq!(tcp.map(|tcp| tcp.closed), [100; 2]);
        assert_eq!(world.engine.holdings(), Default::default());
    }
}

#[test]
fn more_flows_than_a_turn_ends_all_end() {
    let mut world = World::new(20_000);
    world.start(&endless(10_000.0), 1.0, None);
    world.run_for(SECOND);
    world.tell(StatefulCommand::Stop {
        run: RUN,
        abort: true,
    });
    world.run_for(SECOND);
    assert_eq!(the_end(&world).1, EndCause::Stopped);
    assert!(world.sides()[0].flows.tcp.testdrops >= 10_000);
    assert_eq!(world.engine.holdings(), Default::default());
}

#[test]
fn what_waits_for_room_is_forgotten_with_its_run() {
    let client = vec![
        Step::SetVariable {
            variable: 0,
            value: 1,
        },
        send(0),
        send(0),
        receive(1_000_000),
    ];
    let server = vec![receive(1_000_000)];
    let profile = profile(Transport::Stream, [client, server], 1_000, 100.0);
    let mut world = World::new(1_000);
    world.start(&profile, 1.0, None);
    world.run_for(SECOND);
    world.limit_room(0);
    world.tell(StatefulCommand::Remove { run: RUN });
    assert!(world.engine.groups(RUN).is_none());
    assert_eq!(world.engine.holdings(), Default::default());
}
