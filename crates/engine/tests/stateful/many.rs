//! Several profiles on one core: who serves, who no longer does, and how many there may be.

use std::net::Ipv4Addr;

use allosaur_engine::stateful::{RUNS_MAX, RunIndex, StatefulCommand};
use allosaur_engine::time::SECOND;
use allosaur_packet::transport::tcp::TcpFlags;

use crate::world::{MS, RUN, World, flags_of, http, syn};

const OTHER: RunIndex = RunIndex(1);

fn accepts(world: &World, run: RunIndex) -> u64 {
    let groups = world.engine.groups(run).expect("it is known");
    groups[0][1].flows.tcp.accepts
}

/// A profile whose flows are over.
fn ended() -> World {
    let mut world = World::new(1_000);
    world.heard = Some(Vec::new());
    world.start(&http(1_000, 10.0), 1.0, Some(SECOND));
    world.run_for(3 * SECOND);
    assert_eq!(world.events.len(), 1);
    assert_eq!(accepts(&world, RUN), 10);
    world
}

/// A peer without a flow sends a SYN; the flags of the answer.
fn ask(world: &mut World) -> TcpFlags {
    world.heard = Some(Vec::new());
    let (from, to) = (Ipv4Addr::new(9, 9, 9, 9), Ipv4Addr::new(48, 0, 0, 1));
    world.inject(1, syn(from, to, (1234, 80)));
    world.run_for(MS);
    let mut heard = world.heard.iter().flatten();
    let (_, answer) = heard.find(|(port, _)| *port == 1).expect("an answer");
    flags_of(answer)
}

#[test]
fn a_profile_that_is_over_leaves_flows_to_those_that_run() {
    let mut world = ended();
    world.start_as(OTHER, &http(1_000, 10.0));
    world.run_for(SECOND);
    assert_eq!(accepts(&world, RUN), 10);
    assert!(accepts(&world, OTHER) >= 10);
}

#[test]
fn it_serves_clients_of_other_cores_until_all_cores_are_through() {
    let mut world = ended();
    assert_eq!(ask(&mut world), TcpFlags::SYN | TcpFlags::ACK);
    assert_eq!(accepts(&world, RUN), 11);
    let mut world = ended();
    world.tell(StatefulCommand::Retire { run: RUN });
    assert!(ask(&mut world).contains(TcpFlags::RST));
    assert_eq!(accepts(&world, RUN), 10);
    assert_eq!(world.engine.counters()[1].err_no_template, 1);
}

#[test]
fn a_retired_profile_starts_again_by_its_number() {
    let mut world = ended();
    world.tell(StatefulCommand::Retire { run: RUN });
    world.tell(StatefulCommand::Remove { run: RUN });
    world.start_as(RUN, &http(1_000, 10.0));
    world.run_for(SECOND);
    assert!(accepts(&world, RUN) >= 10);
}

#[test]
fn a_thousand_profiles_run_side_by_side() {
    let mut world = World::new(10_000);
    let runs = (0..1_000).map(|number| RunIndex(RUNS_MAX - 1 - number));
    for (run, port) in runs.clone().zip(9_000..) {
        let mut one = http(1_000, 1.0);
        one.templates[0].client.port = port;
        one.templates[0].server.associations[0].port = port;
        world.start_as(run, &one);
    }
    world.run_for(SECOND / 2);
    for run in runs.clone() {
        assert_eq!(accepts(&world, run), 1, "{run:?}");
        world.tell(StatefulCommand::Remove { run });
    }
    assert_eq!(world.engine.flows(), 0);
    assert_eq!(world.engine.poll_timeout(), None);
}

/// With a table so large that what begins next is looked up beforehand, some at a time.
#[test]
fn many_that_begin_together_all_talk_and_end() {
    let mut world = World::new(200_000);
    world.start(&http(1, 2_000_000.0), 1.0, Some(10 * MS));
    world.run_for(10 * MS);
    assert!(world.engine.flows() > 1 << 14);
    world.run_for(3 * SECOND);
    let groups = world.engine.groups(RUN).expect("it is known");
    for side in &groups[0] {
        let tcp = &side.flows.tcp;
        assert_eq!((tcp.connects, tcp.closed, tcp.drops), (20_000, 20_000, 0));
        assert_eq!((side.missed, side.active), (0, 0));
    }
    assert_eq!(world.engine.counters()[0].err_c_tuple_err, 0);
    assert_eq!(world.engine.flows(), 0);
}
