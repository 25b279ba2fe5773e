//! How flows end, each in one way: any program against any peer, over either family of addresses.

use std::net::{Ipv4Addr, Ipv6Addr};

use allosaur_engine::app::{ProgramCommand as Step, Transport};
use allosaur_engine::session::OutcomeCounters;
use allosaur_engine::session::wire::Addresses;
use allosaur_engine::stateful::StatefulCommand;
use allosaur_engine::template::{ProfileSpec, Tunable};
use allosaur_engine::time::SECOND;

use crate::peer::{Act, Peer};
use crate::world::{MS, RUN, World, profile, receive, send};

use Act::{Ack, Data, DeafFin, Fin, Message, Rst, Syn, SynAck, Text, Wait};
use Then::{CutOff, Silence};

/// Longer than any silence that TCP bears.
const LONG: u64 = 24 * 3600 * SECOND;
const UNTIL_CLOSE: Step = Step::ReceiveUntilClose;
const LOOP: Step = Step::Jump {
    offset: -2,
    condition: None,
};

/// What ends a case.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Then {
    /// Silence.
    Silence,
    /// The end of the test.
    CutOff,
}

/// Counters of one flow that ended so.
fn one(name: &str, is_unanswered: bool) -> OutcomeCounters {
    let mut names = OutcomeCounters::NAMES.iter();
    let place = names.position(|known| *known == name);
    let mut values = [0; OutcomeCounters::NAMES.len()];
    values[place.expect("it is one of them")] = 1;
    let mut counters = OutcomeCounters::from_values(values);
    counters.unanswered = u64::from(is_unanswered);
    counters
}

fn single(transport: Transport, programs: [Vec<Step>; 2], is_ipv6: bool) -> ProfileSpec {
    let mut spec = profile(transport, programs, 1_000, 1_000.0);
    spec.templates[0].client.limit = Some(1);
    let ipv6 = u64::from(is_ipv6);
    spec.client.set(Tunable::Ipv6Enable, ipv6);
    spec.server.set(Tunable::Ipv6Enable, ipv6);
    spec
}

fn finish(world: &mut World, then: Then) {
    if then == Then::CutOff {
        let abort = true;
        world.tell(StatefulCommand::Stop { run: RUN, abort });
    }
    world.run_for(LONG);
    assert_eq!(world.engine.flows(), 0);
    world.engine.audit().expect("all is right");
}

/// What a client of ours ends in whose peer does this.
fn client_ends(
    transport: Transport,
    program: &[Step],
    script: &[Act],
    then: Then,
    is_ipv6: bool,
) -> OutcomeCounters {
    let other = match transport {
        Transport::Stream => receive(1),
        Transport::Datagram => messages(1),
    };
    let mut world = World::new(100);
    world.heard = Some(Vec::new());
    world.loses = |_| true;
    let programs = [program.to_vec(), vec![other]];
    world.start(&single(transport, programs, is_ipv6), 1.0, None);
    world.run_for(2 * MS);
    Peer::of_client(&world).play(&mut world, script);
    finish(&mut world, then);
    world.sides()[0].flows.outcomes.clone()
}

/// The same of a server of ours.
fn server_ends(
    transport: Transport,
    program: &[Step],
    script: &[Act],
    then: Then,
    is_ipv6: bool,
) -> OutcomeCounters {
    let other = match transport {
        Transport::Stream => send(0),
        Transport::Datagram => Step::SendMessage { buffer: 0 },
    };
    let mut world = World::new(100);
    world.heard = Some(Vec::new());
    world.clients = 0;
    world.loses = |_| true;
    let programs = [vec![other], program.to_vec()];
    world.start(&single(transport, programs, is_ipv6), 1.0, None);
    let addresses = match is_ipv6 {
        false => Addresses::V4(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(48, 0, 0, 1)),
        true => Addresses::V6(
            Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1),
            Ipv6Addr::from(0x3000_0001_u128),
        ),
    };
    Peer::of_server(addresses).play(&mut world, script);
    finish(&mut world, then);
    world.sides()[1].flows.outcomes.clone()
}

fn messages(messages: u64) -> Step {
    Step::ReceiveMessages {
        messages,
        clear: false,
    }
}

/// A case of a table.
type Case<'a> = (&'a [Step], &'a [Act], Then, &'a str, bool);

fn check(
    transport: Transport,
    cases: &[Case<'_>],
    ends: fn(Transport, &[Step], &[Act], Then, bool) -> OutcomeCounters,
) {
    for is_ipv6 in [false, true] {
        for (program, script, then, name, is_unanswered) in cases {
            let ended = ends(transport, program, script, *then, is_ipv6);
            assert_eq!(
                ended,
                one(name, *is_unanswered),
                "{program:?} {script:?} {then:?}, IPv6: {is_ipv6}"
            );
        }
    }
}

const ASKS: &[Step] = &[send(0), receive(1_000)];
const TWICE: &[Step] = &[send(0), receive(1_000), send(0), receive(2_000)];
const TO_THE_END: &[Step] = &[send(0), UNTIL_CLOSE];
const RESETS: &[Step] = &[send(0), receive(10), Step::Reset];
const WAITS: &[Step] = &[send(0), receive(10), Step::WaitForPeerClose];
const SENDS: &[Step] = &[send(1)];
const LINGERS: &[Step] = &[Step::Delay { duration: SECOND }];

/// Program, what the peer does, what ends it; then its outcome, and whether it was unanswered.
const CLIENTS_OVER_TCP: &[Case<'_>] = &[
    (
        ASKS,
        &[SynAck, Data(1_000), Fin],
        Silence,
        "completed",
        false,
    ),
    // More than was asked for is no failure.
    (
        ASKS,
        &[SynAck, Data(1_200), Fin],
        Silence,
        "completed",
        false,
    ),
    // Whatever comes after the program's end changes nothing.
    (
        ASKS,
        &[SynAck, Data(1_000), Rst],
        Silence,
        "completed",
        false,
    ),
    (ASKS, &[SynAck, Data(1_000)], Silence, "completed", false),
    (
        ASKS,
        &[SynAck, Data(1_000), Ack],
        CutOff,
        "completed",
        false,
    ),
    (ASKS, &[SynAck, Data(1_000)], CutOff, "completed", false),
    (ASKS, &[], Silence, "timed_out", true),
    (ASKS, &[], CutOff, "cut_off", true),
    (ASKS, &[Rst], Silence, "refused", true),
    (ASKS, &[SynAck], Silence, "timed_out", true),
    (ASKS, &[SynAck], CutOff, "cut_off", true),
    (ASKS, &[SynAck, Rst], Silence, "reset", true),
    (ASKS, &[SynAck, Ack, Rst], Silence, "reset", true),
    (ASKS, &[SynAck, Ack, Fin], Silence, "closed_early", true),
    (ASKS, &[SynAck, DeafFin, Rst], Silence, "closed_early", true),
    (
        ASKS,
        &[SynAck, Data(300), Fin],
        Silence,
        "closed_early",
        false,
    ),
    (
        ASKS,
        &[SynAck, Data(300), Fin],
        CutOff,
        "closed_early",
        false,
    ),
    (ASKS, &[SynAck, Data(300), Rst], Silence, "reset", false),
    (ASKS, &[SynAck, Data(300)], Silence, "timed_out", false),
    (ASKS, &[SynAck, Data(300)], CutOff, "cut_off", false),
    // Between two answers, too: a client that asks waits for its answer.
    (
        TWICE,
        &[SynAck, Data(1_000), Ack, Fin],
        Silence,
        "closed_early",
        false,
    ),
    (
        TWICE,
        &[SynAck, Data(1_000), Data(1_000), Fin],
        Silence,
        "completed",
        false,
    ),
    (
        TO_THE_END,
        &[SynAck, Data(300), Fin],
        Silence,
        "completed",
        false,
    ),
    (
        TO_THE_END,
        &[SynAck, Data(1_000), Data(1_000), Fin],
        Silence,
        "completed",
        false,
    ),
    (TO_THE_END, &[SynAck, Ack, Fin], Silence, "completed", true),
    (
        TO_THE_END,
        &[SynAck, Data(300), Rst],
        Silence,
        "reset",
        false,
    ),
    (
        TO_THE_END,
        &[SynAck, Data(300)],
        Silence,
        "timed_out",
        false,
    ),
    (TO_THE_END, &[SynAck, Data(300)], CutOff, "cut_off", false),
    (RESETS, &[SynAck, Data(10)], Silence, "completed", false),
    (
        RESETS,
        &[SynAck, Data(5), Fin],
        Silence,
        "closed_early",
        false,
    ),
    (WAITS, &[SynAck, Data(10), Fin], Silence, "completed", false),
    (WAITS, &[SynAck, Data(10), Rst], Silence, "reset", false),
    (WAITS, &[SynAck, Data(10)], CutOff, "cut_off", false),
    // It waits for no data.
    (SENDS, &[SynAck, Ack, Fin], Silence, "completed", false),
    (SENDS, &[SynAck, Rst], Silence, "reset", false),
    (SENDS, &[SynAck, DeafFin], Silence, "timed_out", false),
    (
        LINGERS,
        &[SynAck, Wait(2 * SECOND), Fin],
        Silence,
        "completed",
        false,
    ),
    (LINGERS, &[Rst], Silence, "refused", false),
    (LINGERS, &[Wait(2 * SECOND), Rst], Silence, "refused", false),
];

#[test]
fn clients_over_tcp() {
    check(Transport::Stream, CLIENTS_OVER_TCP, client_ends);
}

const ANSWERS_SERVER: &[Step] = &[receive(100), send(1)];
const KEEPS_ON_SERVER: &[Step] = &[
    Step::Receive {
        bytes: 100,
        clear: true,
    },
    send(1),
    LOOP,
];
const TO_THE_END_SERVER: &[Step] = &[UNTIL_CLOSE, send(1)];

/// Program, what the peer does, what ends it; then its outcome, and whether it was unanswered.
const SERVERS_OVER_TCP: &[Case<'_>] = &[
    (
        ANSWERS_SERVER,
        &[Syn, Ack, Data(100), Ack, Fin],
        Silence,
        "completed",
        false,
    ),
    (
        ANSWERS_SERVER,
        &[Syn, Ack, Data(100), Ack, Rst],
        Silence,
        "completed",
        false,
    ),
    // Half of a connection that is closed: the answer is taken all the same.
    (
        ANSWERS_SERVER,
        &[Syn, Ack, Data(100), Fin, Ack],
        Silence,
        "completed",
        false,
    ),
    (
        ANSWERS_SERVER,
        &[Syn, Ack, Data(50), Fin],
        Silence,
        "closed_early",
        false,
    ),
    (
        ANSWERS_SERVER,
        &[Syn, Ack, Data(50), Rst],
        Silence,
        "reset",
        false,
    ),
    (
        ANSWERS_SERVER,
        &[Syn, Ack, Data(50)],
        Silence,
        "timed_out",
        false,
    ),
    (
        ANSWERS_SERVER,
        &[Syn, Ack, Data(50)],
        CutOff,
        "cut_off",
        false,
    ),
    (
        ANSWERS_SERVER,
        &[Syn, Ack, Data(100), Rst],
        Silence,
        "reset",
        false,
    ),
    (
        ANSWERS_SERVER,
        &[Syn, Ack, Data(100), DeafFin, Rst],
        Silence,
        "closed_early",
        false,
    ),
    (
        ANSWERS_SERVER,
        &[Syn, Ack, Data(100)],
        Silence,
        "timed_out",
        false,
    ),
    (
        ANSWERS_SERVER,
        &[Syn, Ack, Data(100)],
        CutOff,
        "cut_off",
        false,
    ),
    (ANSWERS_SERVER, &[Syn], Silence, "timed_out", true),
    (ANSWERS_SERVER, &[Syn], CutOff, "cut_off", true),
    (ANSWERS_SERVER, &[Syn, Rst], Silence, "reset", true),
    (ANSWERS_SERVER, &[Syn, Ack, Rst], Silence, "reset", true),
    // The peer may go before it asks, but it is told.
    (ANSWERS_SERVER, &[Syn, Ack, Fin], Silence, "completed", true),
    (
        KEEPS_ON_SERVER,
        &[Syn, Ack, Data(100), Ack, Data(100), Ack, Fin],
        Silence,
        "completed",
        false,
    ),
    (
        KEEPS_ON_SERVER,
        &[Syn, Ack, Data(100), Ack, Data(50), Fin],
        Silence,
        "closed_early",
        false,
    ),
    (
        KEEPS_ON_SERVER,
        &[Syn, Ack, Data(100), Ack, Rst],
        Silence,
        "reset",
        false,
    ),
    (
        KEEPS_ON_SERVER,
        &[Syn, Ack, Data(100), Ack],
        CutOff,
        "cut_off",
        false,
    ),
    (
        TO_THE_END_SERVER,
        &[Syn, Ack, Data(70), Fin, Ack],
        Silence,
        "completed",
        false,
    ),
    (
        TO_THE_END_SERVER,
        &[Syn, Ack, Data(70), Rst],
        Silence,
        "reset",
        false,
    ),
];

#[test]
fn servers_over_tcp() {
    check(Transport::Stream, SERVERS_OVER_TCP, server_ends);
}

#[test]
fn clients_and_servers_over_udp() {
    let message = Step::SendMessage { buffer: 0 };
    let asks = &[message, messages(1)][..];
    let sends = &[message][..];
    let (silence, cut) = (Then::Silence, Then::CutOff);
    check(
        Transport::Datagram,
        &[
            (asks, &[Message(10)], silence, "completed", false),
            (asks, &[], silence, "timed_out", true),
            (asks, &[], cut, "cut_off", true),
            (sends, &[], silence, "completed", false),
        ],
        client_ends,
    );
    let answers = &[messages(1), message][..];
    let twice = &[messages(1), message, messages(2), message][..];
    check(
        Transport::Datagram,
        &[
            (answers, &[Message(10)], silence, "completed", false),
            (
                twice,
                &[Message(10), Message(10)],
                silence,
                "completed",
                false,
            ),
            (twice, &[Message(10)], silence, "timed_out", false),
            (twice, &[Message(10)], cut, "cut_off", false),
        ],
        server_ends,
    );
}

#[test]
fn a_profile_that_resets_expects_it_at_its_other_end() {
    // The client has its answer and resets; the server waits for its end, or for another request.
    for server in [
        vec![receive(100), send(1), Step::WaitForPeerClose],
        vec![
            Step::Receive {
                bytes: 100,
                clear: true,
            },
            send(1),
            LOOP,
        ],
    ] {
        let client = vec![send(0), receive(1_000), Step::Reset];
        let mut world = World::new(100);
        world.start(
            &single(Transport::Stream, [client, server], false),
            1.0,
            None,
        );
        world.run_for(5 * SECOND);
        let outcomes = world
            .sides()
            .each_ref()
            .map(|side| side.flows.outcomes.clone());
        assert_eq!(outcomes, [one("completed", false), one("completed", false)]);
    }
}

#[test]
fn who_gives_way_to_others_was_aborted() {
    let mut world = World::new(8);
    world.heard = Some(Vec::new());
    world.clients = 0;
    world.loses = |_| true;
    let programs = [vec![send(0)], vec![receive(100)]];
    world.start(&single(Transport::Stream, programs, false), 1.0, None);
    for client in 1..=40 {
        let from = Ipv4Addr::new(10, 0, 0, client);
        let server = Addresses::V4(from, Ipv4Addr::new(48, 0, 0, 1));
        Peer::of_server(server).play(&mut world, &[Syn]);
    }
    let given_up = world.sides()[1].flows.outcomes.aborted;
    assert!(given_up > 20, "{given_up}");
    world.engine.audit().expect("all is right");
}

/// What a client counts that asks over HTTP and hears these parts.
fn answers(parts: &[Act], requests: usize) -> OutcomeCounters {
    let mut program = Vec::new();
    for _ in 0..requests {
        program.extend([
            send(0),
            Step::Receive {
                bytes: 40,
                clear: true,
            },
        ]);
    }
    let mut spec = single(Transport::Stream, [program, vec![receive(1)]], false);
    spec.buffers[0].base = b"GET / HTTP/1.1\r\nHost: 48.0.0.1\r\n\r\n".to_vec();
    let mut world = World::new(100);
    world.heard = Some(Vec::new());
    world.loses = |_| true;
    world.start(&spec, 1.0, None);
    world.run_for(2 * MS);
    let mut peer = Peer::of_client(&world);
    peer.play(&mut world, &[SynAck]);
    peer.play(&mut world, parts);
    finish(&mut world, Then::CutOff);
    world.sides()[0].flows.outcomes.clone()
}

#[test]
fn answers_over_http_are_counted_by_their_class() {
    const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 21\r\n\r\n.";
    const BUSY: &str = "HTTP/1.1 503 Service Unavailable\r\n\r\n......";
    let classes = |of: &OutcomeCounters| of.values()[OutcomeCounters::NAMES.len() - 6..].to_vec();
    for (parts, requests, expected) in [
        (&[Text(OK)][..], 1, [0, 1, 0, 0, 0, 0]),
        (&[Text(BUSY)], 1, [0, 0, 0, 0, 1, 0]),
        (&[Text(BUSY), Fin], 1, [0, 0, 0, 0, 1, 0]),
        (&[Text(OK), Text(BUSY), Text(OK)], 3, [0, 2, 0, 0, 1, 0]),
        (
            &[Text("HTTP/1."), Text("1 4"), Text("04 Not Found\r\n\r\n")],
            1,
            [0, 0, 0, 1, 0, 0],
        ),
        (
            &[Ack, Text("HTTP/1.0 301 Moved\r\n\r\n")],
            1,
            [0, 0, 1, 0, 0, 0],
        ),
        (
            &[Text("HTTP/1.1 100 Continue\r\n\r\n"), Text(OK)],
            1,
            [1, 0, 0, 0, 0, 0],
        ),
        (&[Data(40)], 1, [0, 0, 0, 0, 0, 1]),
        (&[Fin], 1, [0; 6]),
    ] {
        let counted = answers(parts, requests);
        assert_eq!(classes(&counted), expected, "{parts:?}");
    }
}

#[test]
fn times_are_those_that_passed() {
    let (span, work) = (20 * MS, 300 * MS);
    let client = vec![send(0), receive(32_000)];
    let server = vec![receive(100), Step::Delay { duration: work }, send(1)];
    let mut spec = single(Transport::Stream, [client, server], false);
    spec.buffers[1].bytes = Some(32_000);
    let mut world = World::new(100);
    world.delay = span;
    world.start(&spec, 1.0, None);
    world.run_for(10 * SECOND);
    let times = world.engine.times(RUN).expect("it runs");
    let near = |told: f64, nanos: u64| {
        let right = nanos as f64 / 1e9;
        assert!((told - right).abs() < 0.02 * right, "{told} for {right}");
    };
    assert_eq!(times.handshake.total(), 0, "nothing secures it");
    for times in [&times.connect, &times.first_byte, &times.program] {
        assert_eq!(times.total(), 1);
        assert_eq!(times.min_s(), times.max_s());
        near(times.quantile_s(0.5), (times.max_s() * 1e9) as u64);
    }
    near(times.connect.max_s(), 2 * span);
    near(times.first_byte.max_s(), 4 * span + work);
    // The answer takes two flights or three.
    let flight = 2.0 * span as f64 / 1e9;
    let rest = times.program.sum_s() - times.first_byte.sum_s();
    assert!((flight..=2.1 * flight).contains(&rest), "{rest}");
}

#[test]
fn failures_count_no_time_of_a_program() {
    let mut world = World::new(100);
    world.heard = Some(Vec::new());
    world.loses = |_| true;
    let programs = [vec![send(0), receive(1_000)], vec![receive(1)]];
    world.start(&single(Transport::Stream, programs, false), 1.0, None);
    world.run_for(2 * MS);
    Peer::of_client(&world).play(&mut world, &[SynAck, Data(10), Fin]);
    finish(&mut world, Then::Silence);
    let times = world.engine.times(RUN).expect("it runs");
    assert_eq!(times.all().map(|times| times.total()), [1, 1, 0, 0, 0, 0]);
}
