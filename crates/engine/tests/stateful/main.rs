//! Profiles that run on one core, between a client port and a server port.

mod again;
mod anything;
mod applications;
mod beginners;
mod bursts;
mod captures;
mod damage;
mod endless;
mod ends;
mod executions;
mod floods;
mod fuzz;
mod hosts;
mod icmp_errors;
mod links;
mod many;
mod memory;
mod outcomes;
mod outside;
mod packets;

mod peer;
mod rss;
mod tunnels;
mod world;

use proptest::prelude::ProptestConfig;

use allosaur_engine::app::{Addon, ProgramCommand as Step, Transport};
use allosaur_engine::session::app_latency::{HEADER_BYTES, Header};
use allosaur_engine::session::wire::{Addresses, Arrival, Content, Envelope};
use allosaur_engine::stateful::{EndCause, Event, FlowTableCounters, RunIndex, StatefulCommand};
use allosaur_engine::tcp::{Segment, Seq};
use allosaur_engine::template::{AssociationSpec, ProfileSpec, Tunable};
use allosaur_engine::time::{MILLISECOND, SECOND};
use allosaur_packet::MacAddress;
use allosaur_packet::network::checksum::Sum;
use allosaur_packet::transport::tcp::TcpFlags;

use outside::{Ends, read};
use world::{MS, RUN, START, World, ethernet_link, http, profile, receive, send};

/// How many cases a property is tried with: `PROPTEST_CASES`, else what takes a few seconds.
fn cases(usual: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok();
    ProptestConfig::with_cases(asked.and_then(|text| text.parse().ok()).unwrap_or(usual))
}

/// All frames were of flows.
fn assert_nothing_wrong(world: &World) {
    let none = FlowTableCounters::default();
    assert_eq!(world.engine.counters(), &[none.clone(), none]);
}

#[test]
fn flows_begin_at_their_rate_and_all_end() {
    let mut world = World::new(10_000);
    world.start(&http(32_000, 100.0), 2.0, Some(SECOND));
    world.run_for(SECOND - MS);
    let attempts = world.sides()[0].flows.tcp.connattempt;
    assert!((198..=200).contains(&attempts), "{attempts}");
    world.run_for(5 * SECOND);
    let [client, server] = world.sides();
    assert_eq!(client.flows.tcp.connects, 200);
    assert_eq!(server.flows.tcp.accepts, 200);
    assert_eq!(client.flows.tcp.rcvbyte, 200 * 32_000);
    assert_eq!(server.flows.tcp.rcvbyte, 200 * 100);
    assert_eq!(
        (client.flows.tcp.closed, server.flows.tcp.closed),
        (200, 200)
    );
    assert_eq!((client.active, server.active), (0, 0));
    assert_eq!((client.established, client.missed), (0, 0));
    assert_eq!(world.engine.flows(), 0);
    assert_nothing_wrong(&world);
    // Both ends of all flows were here: their TIME-WAIT holds nobody up.
    let in_time = START + SECOND..START + SECOND + 50 * MS;
    let ended = matches!(world.events[..], [Event::Ended { run: RUN, at, cause: EndCause::Done }] if in_time.contains(&at));
    assert!(ended, "{:?}", world.events);
}

#[test]
fn a_run_with_a_lost_last_segment_waits_for_it() {
    let mut world = World::new(10_000);
    world.lost_ppm = 30_000;
    world.delay = 5 * MS;
    world.start(&http(100, 400.0), 1.0, Some(SECOND));
    world.run_for(SECOND + 100 * MS);
    // Some servers wait for the last acknowledgment, so all clients stay for it.
    assert!(world.sides()[1].active > 0 && world.events.is_empty());
    world.run_for(300 * SECOND);
    let [client, server] = world.sides();
    assert_eq!((client.active, server.active), (0, 0));
    assert_eq!(client.flows.tcp.closed, server.flows.tcp.closed);
    assert_eq!(client.flows.tcp.rcvbyte, 400 * 100);
    assert_eq!(world.engine.flows(), 0);
    assert_nothing_wrong(&world);
}

#[test]
fn a_bad_link_loses_no_byte() {
    let mut world = World::new(10_000);
    world.lost_ppm = 20_000;
    world.delay = 20 * MS;
    world.start(&http(32_000, 50.0), 1.0, Some(SECOND));
    world.run_for(300 * SECOND);
    let [client, server] = world.sides();
    assert_eq!(client.flows.tcp.rcvbyte, 50 * 32_000);
    assert_eq!(server.flows.tcp.rcvbyte, 50 * 100);
    assert!(server.flows.tcp.sndrexmitpack > 0);
    assert_eq!(world.engine.flows(), 0);
}

#[test]
fn ports_that_are_full_hold_flows_up() {
    let mut world = World::new(10_000);
    world.limit_room(3);
    world.start(&http(32_000, 100.0), 1.0, Some(SECOND / 2));
    world.run_for(20 * SECOND);
    let [client, server] = world.sides();
    assert_eq!(client.flows.tcp.rcvbyte, 50 * 32_000);
    assert_eq!(server.flows.tcp.sndrexmitpack, 0);
    assert_eq!(world.engine.flows(), 0);
}

#[test]
fn many_templates_begin_at_once_with_the_same_client() {
    let mut profile = http(100, 1.0);
    profile.pools[0].last = profile.pools[0].first;
    profile.pools[1].last = profile.pools[1].first;
    profile.templates[0].client.limit = Some(1);
    for port in 81..81 + 299 {
        let mut template = profile.templates[0].clone();
        // They could have the same ports, if they knew of each other; a device under test that
        // translates addresses is glad of different ones.
        template.client.port = port;
        template.server.associations = vec![AssociationSpec::port(port)];
        profile.templates.push(template);
    }
    // These do share the server's port with the first.
    for _ in 0..100 {
        let mut template = profile.templates[0].clone();
        template.server.associations = vec![AssociationSpec::port(1000)];
        template.server.associations[0].port += profile.templates.len() as u16;
        profile.templates.push(template);
    }
    let mut world = World::new(10_000);
    world.start(&profile, 1.0, None);
    world.run_for(10 * SECOND);
    let [client, server] = world.sides();
    assert_eq!(
        (client.flows.tcp.closed, server.flows.tcp.closed),
        (400, 400)
    );
    assert_nothing_wrong(&world);
}

#[test]
fn a_last_message_that_had_to_wait_for_room_ends_its_flow() {
    let message = |buffer| Step::SendMessage { buffer };
    let wait = Step::ReceiveMessages {
        messages: 1,
        clear: false,
    };
    let (client, server) = (vec![message(0)], vec![wait]);
    let mut profile = profile(Transport::Datagram, [client, server], 300, 1000.0);
    profile.templates[0].client.limit = Some(10);
    let mut world = World::new(10_000);
    world.limit_room(1);
    // Ten flows at once: most have to wait.
    world.start(&profile, 1e6, None);
    // Less than the silence that would end them.
    world.run_for(SECOND / 4);
    let [client, server] = world.sides();
    assert_eq!((client.flows.udp.closed, server.flows.udp.closed), (10, 10));
    assert_eq!(client.flows.udp.keepdrops, 0);
    assert_eq!(world.engine.flows(), 0);
}

/// What both ends counted as dropped by keepalive, where the server pauses before it answers and both
/// pause once more before they end.
fn keepdrops_of(keepalive_ms: Option<u32>, answer_ms: u64, end_ms: u64) -> [u64; 2] {
    let message = |buffer| Step::SendMessage { buffer };
    let pause = |ms: u64| Step::Delay { duration: ms * MS };
    let wait = Step::ReceiveMessages {
        messages: 1,
        clear: false,
    };
    let keepalive = keepalive_ms.map(|timeout_ms| Step::Keepalive {
        timeout_ms,
        received_only: false,
    });
    let with = |steps: Vec<Step>| keepalive.into_iter().chain(steps).collect();
    let programs = [
        with(vec![message(0), wait, pause(end_ms)]),
        with(vec![wait, pause(answer_ms), message(1), pause(end_ms)]),
    ];
    let mut world = World::new(1_000);
    world.delay = 300 * MILLISECOND / 1000;
    let profile = profile(Transport::Datagram, programs, 512, 10.0);
    world.start(&profile, 1.0, Some(SECOND));
    world.run_for(20 * SECOND);
    assert_eq!(world.engine.flows(), 0);
    let [client, server] = world.sides();
    [client.flows.udp.keepdrops, server.flows.udp.keepdrops]
}

/// As with TRex, which looks at silent flows every 100 ms, so that CSIT's programs live.
#[test]
fn a_pause_as_long_as_the_keepalive_is_no_silence() {
    for ms in [1, 100, 300, 2_000] {
        assert_eq!(keepdrops_of(Some(ms as u32), ms, ms), [0, 0], "{ms} ms");
        let longer = ms + 101;
        assert_eq!(
            keepdrops_of(Some(ms as u32), 1, longer),
            [10, 10],
            "{longer} ms"
        );
    }
}

#[test]
fn without_a_word_a_flow_may_be_silent_for_a_second() {
    assert_eq!(keepdrops_of(None, 700, 900), [0, 0]);
    assert_eq!(keepdrops_of(None, 1_000, 1_000), [0, 0]);
    assert_eq!(keepdrops_of(None, 1_101, 1)[1], 10);
}

/// The type of service of every packet that a flow sends.
fn classes_of(transport: Transport, tos: u64, ecn: u64, ipv6: u64) -> Vec<u8> {
    let programs = match transport {
        Transport::Stream => [vec![send(0), receive(2_000)], vec![receive(100), send(1)]],
        Transport::Datagram => {
            let (message, wait) = (
                |buffer| Step::SendMessage { buffer },
                Step::ReceiveMessages {
                    messages: 1,
                    clear: false,
                },
            );
            [vec![message(0), wait], vec![wait, message(1)]]
        }
    };
    let bytes = if transport == Transport::Stream {
        2_000
    } else {
        512
    };
    let mut profile = profile(transport, programs, bytes, 1.0);
    for side in [&mut profile.client, &mut profile.server] {
        side.set(Tunable::Tos, tos);
        side.set(Tunable::Ecn, ecn);
        side.set(Tunable::Ipv6Enable, ipv6);
    }
    let mut world = World::new(10);
    world.heard = Some(Vec::new());
    world.start(&profile, 1.0, Some(SECOND / 2));
    world.run_for(3 * SECOND);
    let class = |frame: &[u8]| match ipv6 {
        0 => frame[15],
        _ => frame[14] << 4 | frame[15] >> 4,
    };
    let heard = world.heard.expect("it listens");
    let mut classes: Vec<u8> = heard.iter().map(|(_, frame)| class(frame)).collect();
    assert!(!classes.is_empty());
    classes.sort_unstable();
    classes.dedup();
    classes
}

#[test]
fn tos_is_as_the_user_says_and_ecn_has_its_bits_where_tcp_does_ecn() {
    for ipv6 in [0, 1] {
        for tos in [0, 2, 3, 131, 186] {
            for transport in [Transport::Stream, Transport::Datagram] {
                assert_eq!(classes_of(transport, tos, 0, ipv6), [tos as u8]);
            }
            // Of TCP that does ECN data may be marked, and all else not (RFC 3168, section 6.1).
            let dscp = tos as u8 & 0xfc;
            assert_eq!(
                classes_of(Transport::Stream, tos, 1, ipv6),
                [dscp, dscp | 2]
            );
            assert_eq!(classes_of(Transport::Datagram, tos, 1, ipv6), [tos as u8]);
        }
    }
}

/// The segments among frames that go to this port.
fn segments_to(port: u16, frames: Option<Vec<(u8, Vec<u8>)>>) -> Vec<Segment> {
    let received = frames.iter().flatten().filter_map(|(_, frame)| read(frame));
    let meant = received.filter(|received| received.ports.1 == port);
    meant
        .filter_map(|received| match received.arrival {
            Arrival::Tcp(segment) => Some(segment),
            Arrival::Udp(_) => None,
        })
        .collect()
}

/// Who asks for segments of a byte would get a packet for each: BSD's floor is 64, and TRex's. What the
/// user sets holds, and what the port takes.
#[test]
fn segments_are_not_shorter_than_64_bytes_at_a_peers_wish() {
    let longest_of = |peer: Option<u16>, own: u64| {
        let ends = Ends::to_server(0x0a00_0001, 4_000);
        let mut profile = http(1_000, 0.001);
        profile.server.set(Tunable::Mss, own);
        let mut world = World::new(10);
        world.heard = Some(Vec::new());
        // Of the clients here none is the one that asks.
        world.loses = |frame| frame[36..38] == 4_000_u16.to_be_bytes();
        world.start(&profile, 1.0, None);
        let syn = Segment {
            flags: TcpFlags::SYN,
            seq: Seq(99),
            window: 0xffff,
            mss: peer,
            ..Segment::default()
        };
        world.inject(1, ends.segment(&syn));
        world.run_for(100 * MS);
        let answers = segments_to(4_000, world.heard.take());
        let answer = answers.first().expect("the server answers");
        world.heard = Some(Vec::new());
        let request = Segment {
            flags: TcpFlags::ACK,
            seq: Seq(100),
            ack: answer.seq + 1,
            len: 100,
            ..syn
        };
        world.inject(
            1,
            ends.segment(&Segment {
                mss: None,
                ..request
            }),
        );
        world.run_for(100 * MS);
        let answers = segments_to(4_000, world.heard.take());
        let lens = answers.iter().map(|segment| segment.len);
        lens.max().expect("it answers")
    };
    for peer in [0, 1, 20, 63, 64] {
        assert_eq!(longest_of(Some(peer), 1460), 64, "{peer}");
        assert_eq!(longest_of(Some(peer), 30), 30, "{peer}");
    }
    assert_eq!(longest_of(Some(65), 1460), 65);
    assert_eq!(longest_of(Some(500), 1460), 500);
    assert_eq!(longest_of(None, 1460), 536);
}

#[test]
fn messages_run_over_ipv6_too() {
    for ipv6 in [0, 1] {
        let message = |buffer| Step::SendMessage { buffer };
        let wait = Step::ReceiveMessages {
            messages: 1,
            clear: false,
        };
        let programs = [vec![message(0), wait], vec![wait, message(1)]];
        let mut profile = profile(Transport::Datagram, programs, 512, 100.0);
        profile.client.set(Tunable::Ipv6Enable, ipv6);
        profile.server.set(Tunable::Ipv6Enable, ipv6);
        let mut world = World::new(1_000);
        world.start(&profile, 1.0, Some(SECOND));
        world.run_for(3 * SECOND);
        let [client, server] = world.sides();
        assert_eq!(client.flows.udp.rcvbyte, 100 * 512, "IPv6 {ipv6}");
        assert_eq!(server.flows.udp.rcvpkt, 100);
        assert_eq!(
            (client.flows.udp.closed, server.flows.udp.closed),
            (100, 100)
        );
        assert_eq!(client.flows.udp.keepdrops + server.flows.udp.keepdrops, 0);
        assert_eq!(world.engine.flows(), 0);
    }
}

#[test]
fn no_frame_is_longer_than_its_port_takes() {
    for (ipv6, mss) in [(0, 1_460), (1, 1_460), (0, 9_216), (1, 9_216)] {
        let mut profile = http(100_000, 10.0);
        for side in [&mut profile.client, &mut profile.server] {
            side.set(Tunable::Ipv6Enable, ipv6);
            side.set(Tunable::Mss, mss);
        }
        let mut world = World::new(1_000);
        world.heard = Some(Vec::new());
        world.start(&profile, 1.0, Some(SECOND));
        world.run_for(5 * SECOND);
        assert_eq!(world.sides()[0].flows.tcp.rcvbyte, 10 * 100_000);
        let heard = world.heard.take().expect("it listens");
        let longest = heard.iter().map(|(_, frame)| frame.len()).max();
        assert_eq!(longest, Some(1_514), "IPv6 {ipv6}, MSS {mss}");
    }
}

#[test]
fn a_limit_is_kept_and_filled_up_again_where_that_is_wanted() {
    for (continuous, expected) in [(false, 7..=7), (true, 60..=400)] {
        let mut profile = http(1_000, 1_000.0);
        profile.templates[0].client.limit = Some(7);
        profile.templates[0].client.continuous = continuous;
        let mut world = World::new(1_000);
        world.start(&profile, 1.0, Some(30 * SECOND));
        world.run_for(29 * SECOND);
        let [client, server] = world.sides();
        let begun = client.flows.tcp.connattempt;
        assert!(expected.contains(&begun), "{continuous} {begun}");
        assert!(client.active <= 7);
        assert!((begun - 7..=begun).contains(&server.flows.tcp.accepts));
        assert_eq!(!world.events.is_empty(), !continuous);
    }
}

#[test]
fn too_many_flows_are_counted_and_the_others_go_on() {
    let mut world = World::new(20);
    world.start(&http(1_000, 1_000.0), 1.0, Some(SECOND));
    world.run_for(10 * SECOND);
    let overflow = world.engine.counters()[0].err_flow_overflow;
    assert!(overflow > 0);
    let begun = world.sides()[0].flows.tcp.connattempt;
    assert_eq!(begun + overflow, 1_000);
    assert_eq!(world.engine.flows(), 0);
}

#[test]
fn what_was_reset_leaves_no_stray() {
    let client = vec![send(0), receive(1_000), Step::Reset];
    let server = vec![receive(100), send(1)];
    let mut world = World::new(1_000);
    world.delay = 5 * MS;
    world.start(
        &profile(Transport::Stream, [client, server], 50_000, 100.0),
        1.0,
        Some(SECOND),
    );
    world.run_for(5 * SECOND);
    assert_nothing_wrong(&world);
    assert_eq!(world.sides()[1].flows.tcp.drops, 100);
    assert_eq!(world.engine.flows(), 0);
}

#[test]
fn a_stop_ends_flows_at_once_when_asked() {
    let client = vec![send(0), receive(1)];
    let server = vec![receive(1_000)];
    let forever = profile(Transport::Stream, [client, server], 1_000, 100.0);
    let mut world = World::new(1_000);
    world.start(&forever, 1.0, None);
    world.run_for(SECOND);
    assert!(world.sides()[0].established > 90);
    world.tell(StatefulCommand::Stop {
        run: RUN,
        abort: true,
    });
    world.run_for(SECOND);
    assert_eq!(world.events.len(), 1);
    assert_eq!(world.engine.flows(), 0);
    world.tell(StatefulCommand::Remove { run: RUN });
    assert!(world.engine.groups(RUN).is_none());
}

#[test]
fn garbage_is_counted_and_harms_nobody() {
    let mut world = World::new(1_000);
    world.start(&http(1_000, 10.0), 1.0, Some(SECOND));
    for length in 0..200_u32 {
        let frame = (0..length).map(|n| (n * length) as u8).collect();
        world.inject((length % 2) as u8, frame);
    }
    world.run_for(5 * SECOND);
    let [client, server] = world.engine.counters();
    assert_eq!(client.err_no_tcp_udp + server.err_no_tcp_udp, 200);
    assert_eq!(world.sides()[0].flows.tcp.rcvbyte, 10_000);
}

#[test]
fn who_asks_for_what_nobody_serves_is_refused() {
    let mut profile = http(1_000, 10.0);
    profile.templates[0].client.port = 81;
    let mut world = World::new(1_000);
    world.start(&profile, 1.0, Some(SECOND));
    world.run_for(5 * SECOND);
    assert_eq!(world.engine.counters()[1].err_no_template, 10);
    assert_eq!(world.sides()[0].flows.tcp.conndrops, 10);
    assert_eq!(world.engine.flows(), 0);
}

#[test]
fn all_profiles_that_may_run_at_once_are_asked() {
    let mut world = World::new(1_000);
    for number in 0..=255 {
        let mut profile = http(1_000, 10.0);
        profile.templates[0].client.rate_cps = 0.0;
        world.start_as(RunIndex(number), &profile);
    }
    let mut profile = http(1_000, 10.0);
    profile.templates[0].client.port = 81;
    world.start(&profile, 1.0, Some(SECOND));
    world.run_for(5 * SECOND);
    assert_eq!(world.engine.counters()[1].err_no_template, 10);
}

/// A client that sends a message every 10 ms and waits for each answer, with the add-on.
fn measured(count: u64) -> ProfileSpec {
    let wait = Step::ReceiveMessages {
        messages: 1,
        clear: false,
    };
    let send = |buffer| Step::SendMessage { buffer };
    let begin = Step::SetVariable {
        variable: 0,
        value: count,
    };
    let again = |offset| Step::JumpNotZero {
        variable: 0,
        offset,
    };
    let delay = Step::Delay { duration: 10 * MS };
    let client = vec![begin, send(0), wait, delay, again(-3)];
    let server = vec![begin, wait, send(1), again(-2)];
    let mut profile = profile(Transport::Datagram, [client, server], 300, 10.0);
    for program in &mut profile.programs {
        program.addon = Some(Addon::Latency);
    }
    profile
}

#[test]
fn the_add_on_measures_the_way_there_and_back() {
    let mut world = World::new(1_000);
    world.start(&measured(5), 1.0, Some(SECOND));
    world.run_for(3 * SECOND);
    let [client, server] = world.sides();
    let [min, max, measured, total, messages] = client.flows.latency.values();
    assert_eq!((measured, messages), (50, 50));
    let round_us = 2 * world.delay / 1_000;
    assert!(min >= round_us && max < round_us + 10, "{min} {max}");
    assert!((50 * min..=50 * max).contains(&total));
    assert_eq!(server.flows.latency.values(), [0, 0, 0, 0, 50]);
    assert_nothing_wrong(&world);
}

#[test]
fn an_answer_from_elsewhere_is_known_by_its_connection() {
    for (connection, known) in [(0x1234_5678, true), (0x1234_5679, false)] {
        let mut profile = measured(1);
        profile.templates[0].client.limit = Some(1);
        let mut world = World::new(1_000);
        world.lost_ppm = 1_000_000;
        world.start(&profile, 1.0, None);
        world.run_for(150 * MS);
        let asked = world.sides()[0].flows.udp.sndpkt;
        assert_eq!(asked, 1);
        let header = Header {
            sequence: 0,
            sent_us: (START / 1_000) as u32,
            connection,
        };
        world.inject(0, answer_from_elsewhere(header));
        world.run_for(MS);
        let client = &world.sides()[0].flows;
        assert_eq!(client.latency.measure_cnt, u64::from(known));
        assert_eq!(client.udp.rcvpkt, u64::from(known));
        assert_eq!(world.engine.counters()[0].err_cwf, u64::from(!known));
        // What is over is known no more.
        world.run_for(SECOND);
        world.inject(0, answer_from_elsewhere(header));
        world.run_for(MS);
        assert_eq!(world.engine.flows(), 0);
        assert_eq!(world.engine.counters()[0].err_cwf, 1 + u64::from(!known));
    }
}

/// A message with a header, from an address and a port that nobody asked.
fn answer_from_elsewhere(header: Header) -> Vec<u8> {
    let mac = |last| MacAddress([2, 0, 0, 0, 0, last]);
    let envelope = Envelope {
        link: &ethernet_link(mac(1), mac(2), false),
        addresses: Addresses::V4([9, 9, 9, 9].into(), [16, 0, 0, 0].into()),
        ports: (9, 9),
        type_of_service: 0,
        time_to_live: 64,
        identification: 0,
    };
    let content = Content::Udp(HEADER_BYTES as u16);
    let mut frame = vec![0; envelope.frame_bytes(&content)];
    envelope.write(&content, &mut frame, |data| {
        data.copy_from_slice(&header.to_bytes());
        Sum::of(data)
    });
    frame
}

#[test]
fn flows_that_were_due_before_the_end_begin_a_little_after_it_or_are_missed() {
    // The core turns at the start, and then so long after the end.
    for (late, begun) in [(10 * MS, 50), (60 * MS, 1)] {
        let mut world = World::new(1000);
        world.start(&http(1000, 1000.0), 1.0, Some(50 * MS));
        world.run_for(0);
        world.now += 50 * MS + late;
        world.run_for(SECOND);
        let [client, _] = world.sides();
        assert_eq!(client.flows.tcp.connattempt, begun);
        assert_eq!(client.missed, 50 - begun);
        assert!(matches!(world.events[..], [Event::Ended { .. }]));
    }
}
