//! Flows that programs make.

use std::collections::BTreeMap;

use allosaur_engine::app::{ProgramCommand as Step, ProgramSpec, Transport};
use allosaur_engine::stateful::{GroupCounters, StatefulCommand};
use allosaur_engine::template::{AssociationSpec, ProfileSpec};
use allosaur_engine::time::SECOND;
use allosaur_packet::transport::tcp::TcpFlags;

use crate::world::{MS, RUN, World, flags_of, profile, receive, send};

const EXECUTE: Step = Step::ExecuteTemplate;

fn choose(group: u32) -> Step {
    Step::SetTemplate { group }
}

/// A profile with a template for each pair of programs, each a group with the numbers 1, 2, ... on
/// the ports 81, 82, ...; only the first has a rate. The response has 1,000 bytes.
pub(crate) fn chain(rate_cps: f64, pairs: Vec<[Vec<Step>; 2]>) -> ProfileSpec {
    let first = pairs[0].clone();
    let mut profile = profile(Transport::Stream, first, 1_000, rate_cps);
    let template = profile.templates[0].clone();
    profile.templates.clear();
    profile.programs.clear();
    for (programs, number) in pairs.into_iter().zip(0_u16..) {
        let mut template = template.clone();
        template.client.program = profile.programs.len() as u32;
        template.server.program = template.client.program + 1;
        template.client.port = 81 + number;
        template.server.associations = vec![AssociationSpec::port(81 + number)];
        template.group = u32::from(number) + 1;
        if number > 0 {
            template.client.rate_cps = 0.0;
        }
        profile.templates.push(template);
        profile.groups.push(format!("group {number}"));
        profile
            .programs
            .extend(programs.map(|commands| ProgramSpec {
                commands,
                transport: Transport::Stream,
                addon: None,
            }));
    }
    profile
}

/// Asks, and gets the response.
fn get() -> [Vec<Step>; 2] {
    [vec![send(0), receive(1_000)], vec![receive(100), send(1)]]
}

fn groups(world: &World) -> &[[GroupCounters; 2]] {
    world.engine.groups(RUN).expect("it runs")
}

fn attempts(world: &World) -> Vec<u64> {
    let groups = groups(world).iter().skip(1);
    groups
        .map(|[client, _]| client.flows.tcp.connattempt)
        .collect()
}

#[test]
fn a_connection_waits_for_the_one_that_it_opens() {
    let control = vec![
        choose(2),
        send(0),
        receive(1_000),
        EXECUTE,
        send(0),
        receive(1_000),
    ];
    let server = vec![receive(100), send(1), receive(100), send(1)];
    let mut world = World::new(1_000);
    world.heard = Some(Vec::new());
    world.start(
        &chain(10.0, vec![[control, server], get()]),
        1.0,
        Some(SECOND),
    );
    world.run_for(10 * SECOND);
    let all = groups(&world);
    let received = |group: usize| all[group][0].flows.tcp.rcvbyte;
    assert_eq!((received(1), received(2)), (10 * 2_000, 10 * 1_000));
    let application = &all[1][0].flows.application;
    assert_eq!((application.flows_total, application.flows_other), (10, 0));
    assert_eq!(world.engine.holdings(), Default::default());
    assert_eq!(world.events.len(), 1);
    // Both have the same ends, and the first is there before the second.
    let mut open = BTreeMap::new();
    let mut opened = 0;
    for (port, frame) in world.heard.as_ref().expect("it listens") {
        if *port != 0 || !flags_of(frame).contains(TcpFlags::SYN) {
            continue;
        }
        let ends: [u8; 8] = frame[26..34].try_into().expect("eight bytes");
        let to = u16::from_be_bytes([frame[36], frame[37]]);
        match to {
            81 => open.insert(ends, ()),
            _ => open.remove(&ends).inspect(|()| opened += 1),
        };
    }
    assert_eq!(opened, 10);
}

#[test]
fn programs_hand_on_which_is_next() {
    // The first opens one of group 2, whose program says that group 3 is next.
    let first = vec![choose(2), EXECUTE, EXECUTE, EXECUTE];
    let second = vec![choose(3), send(0), receive(1_000)];
    let [client, server] = get();
    let profile = chain(
        10.0,
        vec![
            [first, vec![receive(1)]],
            [second, server.clone()],
            [client, server],
        ],
    );
    let mut world = World::new(1_000);
    world.start(&profile, 1.0, Some(SECOND));
    world.run_for(10 * SECOND);
    assert_eq!(attempts(&world), [10, 10, 20]);
    let application = &groups(&world)[1][0].flows.application;
    assert_eq!((application.flows_total, application.flows_other), (30, 10));
    assert_eq!(world.engine.holdings(), Default::default());
}

#[test]
fn templates_of_a_group_take_turns() {
    let first = vec![choose(2), EXECUTE, EXECUTE];
    let mut profile = chain(10.0, vec![[first, vec![receive(1)]], get(), get()]);
    profile.templates[2].group = 2;
    profile.groups.pop();
    let mut world = World::new(1_000);
    world.heard = Some(Vec::new());
    world.start(&profile, 1.0, Some(SECOND));
    world.run_for(10 * SECOND);
    assert_eq!(attempts(&world), [10, 20]);
    let mut ports = BTreeMap::new();
    for (port, frame) in world.heard.as_ref().expect("it listens") {
        if *port == 0 && flags_of(frame) == TcpFlags::SYN {
            *ports.entry(frame[37]).or_insert(0) += 1;
        }
    }
    assert_eq!(ports, BTreeMap::from([(81, 10), (82, 10), (83, 10)]));
}

#[test]
fn who_has_no_room_for_another_goes_on() {
    // Two places: the first flow's ends. Its child finds none.
    let first = vec![
        choose(2),
        send(0),
        receive(1_000),
        EXECUTE,
        send(0),
        receive(1_000),
    ];
    let server = vec![receive(100), send(1), receive(100), send(1)];
    let mut world = World::new(2);
    world.start(
        &chain(1.0, vec![[first, server], get()]),
        1.0,
        Some(SECOND / 2),
    );
    world.run_for(10 * SECOND);
    assert_eq!(attempts(&world), [1, 0]);
    assert_eq!(groups(&world)[1][0].flows.tcp.rcvbyte, 2_000);
    assert_eq!(world.engine.counters()[0].err_flow_overflow, 1);
    assert_eq!(world.engine.holdings(), Default::default());
}

#[test]
fn flows_that_open_themselves_have_the_room_that_there_is() {
    let endless = vec![choose(1), EXECUTE];
    let mut world = World::new(1_000);
    world.start(
        &chain(1.0, vec![[endless, vec![receive(1)]]]),
        1.0,
        Some(SECOND / 2),
    );
    world.run_for(SECOND / 4);
    world.engine.audit().expect("all holds");
    assert!(attempts(&world)[0] > 400);
    assert!(world.engine.counters()[0].err_flow_overflow > 0);
    world.tell(StatefulCommand::Stop {
        run: RUN,
        abort: true,
    });
    world.run_for(5 * SECOND);
    assert_eq!(world.engine.holdings(), Default::default());
    assert_eq!(world.events.len(), 1);
}

#[test]
fn a_flow_outlives_who_opened_it() {
    let first = vec![choose(2), EXECUTE, send(0)];
    // The server resets the first while the second is under way.
    let server = vec![Step::Delay { duration: 100 * MS }, Step::Reset];
    let [client, slow] = get();
    let slow = [vec![Step::Delay { duration: 400 * MS }], slow].concat();
    let profile = chain(10.0, vec![[first, server], [client, slow]]);
    let mut world = World::new(1_000);
    world.start(&profile, 1.0, Some(SECOND));
    world.run_for(SECOND - MS);
    world.engine.audit().expect("all holds");
    world.run_for(10 * SECOND);
    let all = groups(&world);
    assert_eq!(all[1][0].flows.tcp.drops, 10);
    assert_eq!(all[2][0].flows.tcp.rcvbyte, 10 * 1_000);
    assert_eq!(world.engine.holdings(), Default::default());
}

#[test]
fn what_was_begun_is_finished_after_a_stop() {
    let first = vec![
        choose(2),
        Step::Delay { duration: 100 * MS },
        EXECUTE,
        send(0),
        receive(1_000),
    ];
    let server = vec![receive(100), send(1)];
    let mut world = World::new(1_000);
    world.start(&chain(10.0, vec![[first, server], get()]), 1.0, None);
    world.run_for(SECOND + 10 * MS);
    world.tell(StatefulCommand::Stop {
        run: RUN,
        abort: false,
    });
    world.run_for(10 * SECOND);
    assert_eq!(attempts(&world), [11, 11]);
    assert_eq!(groups(&world)[1][0].flows.tcp.rcvbyte, 11_000);
    assert_eq!(world.events.len(), 1);
}

#[test]
fn a_limit_counts_only_what_the_rate_begins() {
    let first = vec![choose(2), EXECUTE];
    let mut profile = chain(100.0, vec![[first, vec![receive(1)]], get()]);
    profile.templates[0].client.limit = Some(3);
    profile.templates[0].client.continuous = true;
    let mut world = World::new(1_000);
    world.delay = 50 * MS;
    world.start(&profile, 1.0, Some(10 * SECOND));
    for _ in 0..50 {
        world.run_for(SECOND / 10);
        assert!(groups(&world)[1][0].active <= 3);
        assert!(groups(&world)[2][0].active <= 3);
    }
    world.run_for(20 * SECOND);
    let attempts = attempts(&world);
    assert_eq!(attempts[0], attempts[1]);
    assert_eq!(world.engine.holdings(), Default::default());
}

#[test]
fn messages_open_flows_too_and_servers_none() {
    let message = Step::SendMessage { buffer: 0 };
    let wait = Step::ReceiveMessages {
        messages: 1,
        clear: false,
    };
    let first = vec![choose(2), message, EXECUTE, wait];
    let server = vec![wait, choose(2), EXECUTE, message];
    let mut profile = chain(10.0, vec![[first, server], get()]);
    for program in &mut profile.programs[..2] {
        program.transport = Transport::Datagram;
    }
    let mut world = World::new(1_000);
    world.start(&profile, 1.0, Some(SECOND));
    world.run_for(10 * SECOND);
    let all = groups(&world);
    assert_eq!(all[1][0].flows.udp.rcvpkt, 10);
    assert_eq!(attempts(&world), [0, 10]);
    assert_eq!(world.engine.holdings(), Default::default());
}
