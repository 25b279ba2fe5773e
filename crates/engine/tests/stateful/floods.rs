//! A server that is flooded from made up addresses serves the others: all of their flows come to
//! their end, and what the flood leaves is bounded (RFC 4987); and who guesses at a connection
//! harms nobody (RFC 5961).

use allosaur_engine::app::{ProgramCommand as Step, Transport};
use allosaur_engine::session::wire::Arrival;
use allosaur_engine::stateful::{Holdings, StatefulCommand};
use allosaur_engine::tcp::{Segment, Seq};
use allosaur_engine::template::{ProfileSpec, Tunable};
use allosaur_engine::time::{MILLISECOND, Nanos, SECOND};
use allosaur_packet::transport::tcp::TcpFlags;

use crate::outside::{Bytes, Ends, read};
use crate::world::{MS, RUN, World, http, profile};

const ACK: TcpFlags = TcpFlags::ACK;
/// How long a flood lasts, and how many frames of it come in a millisecond.
const FLOOD: Nanos = SECOND;
const PER_MS: u32 = 25;
/// Good flows that begin meanwhile, and what they get.
const GOOD: u64 = 100;
const RESPONSE: u64 = 10_000;

/// Frames for addresses of the flood, 10.0.0.0/8 and ee00::/8, get nowhere.
fn is_for_nobody(frame: &[u8]) -> bool {
    match frame[12..14] {
        [0x08, 0x00] => frame[30] == 10,
        _ => frame[38] == 0xee,
    }
}

fn nobody(number: u32) -> Ends {
    let address = 0x0a00_0000 | number.wrapping_mul(2_654_435_761) >> 8;
    Ends::to_server(address, number as u16)
}

/// Floods a server that has room for `flows_max` flows while good clients come.
fn flood(profile: &ProfileSpec, flows_max: usize, mut frame: impl FnMut(u32) -> Vec<u8>) -> World {
    let mut world = World::new(flows_max);
    world.loses = is_for_nobody;
    world.start(profile, 1.0, Some(FLOOD));
    let mut number = 0;
    while world.now < crate::world::START + FLOOD {
        for _ in 0..PER_MS {
            world.inject(1, frame(number));
            number += 1;
        }
        world.run_for(MILLISECOND);
        assert!(world.engine.flows() <= flows_max);
    }
    world.engine.audit().expect("all rules hold");
    world
}

fn good() -> ProfileSpec {
    http(RESPONSE, GOOD as f64 * SECOND as f64 / FLOOD as f64)
}

/// All good flows are through, and in a while nothing is left.
fn assert_served(mut world: World, most: u64) {
    world.run_for(20 * SECOND);
    let [client, server] = world.sides();
    let tcp = &client.flows.tcp;
    assert_eq!((tcp.connattempt, tcp.closed), (GOOD, GOOD));
    assert_eq!(tcp.rcvbyte, GOOD * RESPONSE);
    assert_eq!((tcp.conndrops, tcp.drops), (0, 0), "no good flow failed");
    assert_eq!((client.active, server.active), (0, 0));
    assert!(
        tcp.rexmttimeo_syn <= most,
        "{} asked again",
        tcp.rexmttimeo_syn
    );
    assert_eq!(world.engine.counters()[0].err_flow_overflow, 0);
    assert_eq!(world.engine.holdings(), Holdings::default());
}

#[test]
fn who_only_asks_keeps_nobody_out() {
    // With much room, and with so little that a flood fills its half within 20 ms, or 6 ms: that is
    // how long a place is kept, and must be longer than a round trip.
    for flows_max in [100_000, 1_000, 300] {
        let world = flood(&good(), flows_max, |number| {
            nobody(number).flags(TcpFlags::SYN, number, 0)
        });
        let [_, server] = world.engine.counters();
        assert_eq!(server.err_flow_overflow > 0, flows_max <= 1_000);
        assert_served(world, 0);
    }
}

#[test]
fn ipv6_prefixes_without_number_keep_nobody_out() {
    let mut profile = good();
    profile.client.set(Tunable::Ipv6Enable, 1);
    let world = flood(&profile, 2_000, |number| {
        let ends = Ends::to_server_v6(0xee00_0000 | number, number, number as u16);
        ends.flags(TcpFlags::SYN, number, 0)
    });
    assert_served(world, 0);
}

#[test]
fn messages_from_nobody_keep_nobody_out() {
    let message = |buffer| Step::SendMessage { buffer };
    let wait = |messages| Step::ReceiveMessages {
        messages,
        clear: false,
    };
    let programs = [
        vec![message(0), wait(1), message(0), wait(2)],
        vec![wait(1), message(1), wait(2), message(1)],
    ];
    let rate_cps = GOOD as f64 * SECOND as f64 / FLOOD as f64;
    let profile = profile(Transport::Datagram, programs, 500, rate_cps);
    for flows_max in [100_000, 1_000] {
        let mut world = flood(&profile, flows_max, |number| nobody(number).datagram(10));
        world.run_for(20 * SECOND);
        let udp = &world.sides()[0].flows.udp;
        assert_eq!((udp.rcvpkt, udp.closed), (2 * GOOD, GOOD));
        assert_eq!(udp.keepdrops, 0);
        assert_eq!(world.engine.holdings(), Holdings::default());
    }
}

#[test]
fn what_belongs_to_nobody_is_answered_once_and_leaves_nothing() {
    let kinds = [
        ACK,
        TcpFlags::RST,
        ACK | TcpFlags::FIN,
        ACK | TcpFlags::RST,
        TcpFlags::NONE,
    ];
    for flags in kinds {
        let world = flood(&good(), 1_000, |number| {
            nobody(number).flags(flags, number, number)
        });
        assert_served(world, 0);
        let mut world = World::new(1_000);
        world.loses = |_| true;
        world.heard = Some(Vec::new());
        world.start(&http(1_000, 0.001), 0.0, None);
        for number in 0..1_000 {
            world.inject(1, nobody(number).flags(flags, number, number));
        }
        world.run_for(SECOND);
        let answers = world.heard.take().map_or(0, |heard| heard.len());
        let is_reset = flags.contains(TcpFlags::RST);
        assert_eq!(answers, if is_reset { 0 } else { 1_000 }, "{flags:?}");
        assert_eq!(world.engine.holdings(), Holdings::default());
    }
}

#[test]
fn garbage_keeps_nobody_out() {
    let world = flood(&good(), 1_000, |number| {
        let seed = number.to_be_bytes();
        let mut bytes = Bytes::new(&seed);
        match number % 3 {
            0 => bytes.garbage(number as usize % 1_514),
            1 => {
                let mut frame = nobody(number).flags(TcpFlags::SYN, number, 0);
                frame[14 + number as usize % 40] ^= 0x55;
                frame
            }
            _ => {
                let mut frame = nobody(number).flags(TcpFlags::SYN, number, 0);
                frame.truncate(number as usize % 60);
                frame
            }
        }
    });
    assert_served(world, 0);
}

/// What a half-open flow sends before it is given up.
#[test]
fn a_flood_is_not_answered_by_a_larger_one() {
    let mut world = World::new(10_000);
    world.loses = |_| true;
    world.heard = Some(Vec::new());
    world.start(&http(1_000, 0.001), 0.0, None);
    for number in 0..1_000 {
        world.inject(1, nobody(number).flags(TcpFlags::SYN, number, 0));
    }
    world.run_for(100 * SECOND);
    let answers = world.heard.take().map_or(0, |heard| heard.len());
    assert!(
        (1_000..=4_000).contains(&answers),
        "{answers} answers to 1000 SYNs"
    );
    assert_eq!(world.engine.holdings(), Holdings::default());
}

/// Who sees nothing guesses numbers: near what is right, but not right.
#[test]
fn who_guesses_numbers_neither_ends_a_flow_nor_adds_to_it() {
    let mut world = World::new(1_000);
    world.delay = 5 * MS;
    world.heard = Some(Vec::new());
    world.start(&http(200_000, 20.0), 1.0, Some(SECOND));
    let mut guesses = 0;
    while world.now < crate::world::START + 2 * SECOND {
        world.run_for(3 * MS);
        let heard = world.heard.replace(Vec::new()).unwrap_or_default();
        // Not at answers to guesses: they would be more and more.
        for (port, frame) in heard
            .iter()
            .rev()
            .filter(|(_, frame)| frame.len() > 100)
            .take(2)
        {
            guesses += 1;
            for guess in guesses_at(guesses, frame) {
                world.inject(1 - port, guess);
            }
        }
    }
    world.run_for(60 * SECOND);
    assert!(guesses > 200);
    let [client, server] = world.sides();
    assert_eq!(client.flows.tcp.rcvbyte, 20 * 200_000);
    assert_eq!(server.flows.tcp.rcvbyte, 20 * 100);
    assert_eq!((client.flows.tcp.drops, server.flows.tcp.drops), (0, 0));
    assert_eq!(client.flows.tcp.closed, 20);
    assert_eq!(world.engine.holdings(), Holdings::default());
}

/// Segments in the name of the sender of `frame`, whose numbers are in the window or far from it,
/// but not the next: a reset, a SYN, and data that acknowledges what was never sent.
fn guesses_at(seed: u32, frame: &[u8]) -> Vec<Vec<u8>> {
    let received = read(frame).expect("it was sent by an engine");
    let Arrival::Tcp(segment) = received.arrival else {
        return Vec::new();
    };
    if segment.has(TcpFlags::SYN) {
        return Vec::new();
    }
    let ends = Ends {
        addresses: received.addresses,
        ports: received.ports,
    };
    // Never what comes next, nor what came just before.
    let far = segment.seq + 5_000 + seed * 7 % 20_000;
    let guess = |flags, seq: Seq, ack: Seq, len| {
        ends.segment(&Segment {
            flags,
            seq,
            ack,
            len,
            window: 0xffff,
            ..Segment::default()
        })
    };
    vec![
        guess(TcpFlags::RST, far, Seq(0), 0),
        guess(ACK | TcpFlags::RST, far + 300, segment.ack, 0),
        guess(TcpFlags::SYN, far, Seq(0), 0),
        guess(TcpFlags::SYN, segment.seq - 9, Seq(0), 0),
        guess(ACK, far, segment.ack + (1 << 30), 500),
        guess(ACK | TcpFlags::FIN, far, segment.ack - (1 << 30), 0),
    ]
}

#[test]
fn a_stop_at_once_ends_a_flood_too() {
    let mut world = flood(&good(), 1_000, |number| {
        nobody(number).flags(TcpFlags::SYN, number, 0)
    });
    world.tell(StatefulCommand::Stop {
        run: RUN,
        abort: true,
    });
    world.run_for(2 * SECOND);
    assert_eq!(world.engine.holdings(), Holdings::default());
    assert_eq!(world.events.len(), 1);
}
