//! The data threads of stateful mode, between two memory ports.

mod world;

use self::world::{AHEAD, REQUEST_BYTES, RESPONSE_BYTES, RUN, World, mac, profile};
use allosaur_engine::StatelessCommand;
use allosaur_engine::capture::{CaptureSettings, Overflow};
use allosaur_engine::flow_stats::tag::{Rule, Tagging};
use allosaur_engine::flow_stats::{Group, VxlanPorts};
use allosaur_engine::host::HostSettings;
use allosaur_engine::stateful::EndCause;
use allosaur_engine::stream::{
    CoreShare, DestinationMac, Mode, Profile, ProfileKey, Rate, StreamPortInfo, StreamSpec,
};
use allosaur_engine::template::AssociationSpec;
use allosaur_engine::time::{MICROSECOND, MILLISECOND};
use allosaur_engine::vm::Checksums;
use allosaur_port::memory::LinkSettings;
use allosaur_server::control::worker_command::{FlowCommand, FlowReport};
use allosaur_server::counters::GroupReadout;
use allosaur_server::rx_taps::filter::Filter;
use allosaur_server::rx_taps::{
    Answer, CaptureAnswer, CaptureRequest, HostAnswer, HostRequest, MacFilter, PortAnswer,
    PortRequest, Reception, Request, RxQueueAnswer, RxQueueRequest, ServiceMask, ServiceMode,
    TapRequest,
};
use allosaur_server::threads::data::Report;

const FLOWS: u64 = 300;

/// A link that no two threads can share.
fn delayed() -> LinkSettings {
    LinkSettings {
        delay_ns: 200 * MICROSECOND,
        ..LinkSettings::default()
    }
}

/// All flows of a profile came, talked and went; nothing was lost or strange.
fn check_all_talked(world: &World) {
    let [client, server] = world.totals();
    let (client, server) = (&client.flows.tcp, &server.flows.tcp);
    assert_eq!(
        (client.connattempt, client.connects, client.closed),
        (FLOWS, FLOWS, FLOWS)
    );
    assert_eq!(
        (server.accepts, server.connects, server.closed),
        (FLOWS, FLOWS, FLOWS)
    );
    assert_eq!(client.rcvbyte, FLOWS * RESPONSE_BYTES);
    assert_eq!(server.rcvbyte, FLOWS * REQUEST_BYTES);
    assert_eq!((client.sndrexmitpack, server.sndrexmitpack), (0, 0));
    for name in [
        "err_cwf",
        "err_no_syn",
        "err_no_template",
        "rss_redirect_drops",
    ] {
        assert_eq!(world.table_counter(name), 0, "{name}");
    }
    let ports = world.snapshot().ports;
    for (sent, received) in [(&ports[0], &ports[1]), (&ports[1], &ports[0])] {
        assert_eq!(sent.transmit.sent, received.receive);
        assert!(sent.transmit.sent.packets > 3 * FLOWS);
    }
}

#[test]
fn one_thread_serves_both_ends() {
    let mut world = World::new(1, LinkSettings::default());
    world.start(&profile(10_000.0, Some(FLOWS as u32)), None);
    assert_eq!(world.until_ended(), [EndCause::Done]);
    check_all_talked(&world);
    assert_eq!(world.table_counter("rss_redirect_tx"), 0);
}

#[test]
fn several_threads_each_have_their_ring() {
    let mut world = World::new(3, LinkSettings::default());
    world.start(&profile(10_000.0, Some(FLOWS as u32)), None);
    assert_eq!(world.until_ended(), [EndCause::Done; 3]);
    check_all_talked(&world);
    assert_eq!(world.table_counter("rss_redirect_tx"), 0);
    for block in &world.blocks {
        assert_eq!(block.totals()[0].flows.tcp.connects, FLOWS / 3);
    }
}

#[test]
fn one_of_several_threads_reads_a_queue_and_passes_on_what_is_the_others() {
    let mut world = World::new(3, delayed());
    world.start(&profile(10_000.0, Some(FLOWS as u32)), None);
    assert_eq!(world.until_ended(), [EndCause::Done; 3]);
    world.threads.iter_mut().for_each(|thread| thread.publish());
    check_all_talked(&world);
    let passed = world.table_counter("rss_redirect_tx");
    assert!(passed > 3 * FLOWS, "{passed}");
    assert_eq!(world.table_counter("rss_redirect_rx"), passed);
}

#[test]
fn traffic_begins_and_ends_when_it_shall() {
    for cores in [1, 3] {
        let mut world = World::new(cores, LinkSettings::default());
        // They have slept for long.
        for _ in 0..50 {
            world.step();
        }
        let told_at = world.clock.now_ns();
        let duration = 300 * MILLISECOND;
        world.start(&profile(1_000.0, None), Some(duration));
        world.until_ended();
        let active = world.active.expect("there was traffic");
        let start_at = told_at + AHEAD;
        assert!((told_at..=start_at + MILLISECOND).contains(&active.first));
        let end = active.last - start_at;
        assert!(
            (duration - 2 * MILLISECOND..duration + 10 * MILLISECOND).contains(&end),
            "{end}"
        );
        let [client, _] = world.totals();
        let begun = client.flows.tcp.connattempt;
        assert!((298..=301).contains(&begun), "{cores} cores began {begun}");
        assert_eq!(client.missed, 0);
    }
}

#[test]
fn counters_are_published_while_flows_run() {
    let mut world = World::new(1, delayed());
    world.start(&profile(2_000.0, None), None);
    let mut seen = Vec::new();
    for _ in 0..20 {
        let until = world.clock.now_ns() + 10 * MILLISECOND;
        world.until("10 ms", |world| world.clock.now_ns() >= until);
        seen.push((
            world.totals()[0].flows.tcp.connattempt,
            world.snapshot().ports[1].receive.packets,
        ));
    }
    for two in seen.windows(2) {
        assert!(two[0].0 < two[1].0 && two[0].1 < two[1].1, "{seen:?}");
    }
}

#[test]
fn flows_are_sampled_as_long_as_the_run_is_known() {
    let mut world = World::new(1, delayed());
    world.start(&profile(2_000.0, None), None);
    let interval = Some(20 * MILLISECOND);
    world.control[0].send(FlowCommand::Sample { run: RUN, interval });
    let samples = |world: &World| {
        let samples = world.reports.iter().filter_map(|(_, report)| match report {
            Report::Flows(FlowReport::Samples { at, records, .. }) => Some((*at, records.len())),
            _ => None,
        });
        samples.collect::<Vec<_>>()
    };
    world.until("five samples", |world| samples(world).len() == 5);
    let seen = samples(&world);
    for two in seen.windows(2) {
        let between = two[1].0 - two[0].0;
        assert!(
            (20 * MILLISECOND..25 * MILLISECOND).contains(&between),
            "{seen:?}"
        );
    }
    assert!(seen[4].1 > 0, "{seen:?}");
    world.control[0].send(allosaur_engine::stateful::StatefulCommand::Remove { run: RUN });
    let until = world.clock.now_ns() + 100 * MILLISECOND;
    world.until("100 ms", |world| world.clock.now_ns() >= until);
    assert_eq!(samples(&world).len(), 5);
}

fn ask<R>(world: &World, request: R) -> R::Answer
where
    R: TapRequest<Answer: TryFrom<Answer>> + Into<Request>,
{
    world
        .asking
        .ask(request)
        .expect("the receive thread answers")
}

fn captured(world: &World) -> u64 {
    match ask(world, CaptureRequest::List) {
        CaptureAnswer::Captures(captures) => captures[0].matched,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_capture_sees_what_flows_send_and_receive() {
    for cores in [1, 3] {
        let mut world = World::new(cores, delayed());
        let settings = CaptureSettings {
            transmit_ports: 0b01,
            receive_ports: 0b10,
            packets_max: 100,
            overflow: Overflow::KeepLast,
            snap_bytes: 0,
            memory_max: 1 << 20,
        };
        let capture = CaptureRequest::Start {
            settings,
            filter: Filter::compile("tcp port 80").expect("a filter"),
            endpoint: None,
        };
        assert_eq!(ask(&world, capture), CaptureAnswer::Started { capture: 1 });
        world.start(&profile(10_000.0, Some(FLOWS as u32)), None);
        world.until_ended();
        let sent = world.snapshot().ports[0].transmit.sent.packets;
        // What was passed on is on its way: seen once as it left, and once as it arrived.
        while captured(&world) < 2 * sent {
            world.step();
            std::thread::yield_now();
        }
        assert_eq!(captured(&world), 2 * sent);
    }
}

#[test]
fn ports_answer_for_their_addresses_while_flows_run() {
    let mut world = World::new(3, LinkSettings::default());
    world.start(&profile(10_000.0, None), None);
    let addresses = [[10, 0, 0, 1], [10, 0, 0, 2]].map(Into::into);
    for port in 0..2u8 {
        let settings = HostSettings {
            mac: mac(port),
            ipv4: Some(addresses[usize::from(port)]),
            gateway: Some(addresses[usize::from(1 - port)]),
            answers_echo: true,
            is_passive: false,
            ..HostSettings::default()
        };
        assert_eq!(
            ask(&world, HostRequest::Set { port, settings }),
            HostAnswer::Done
        );
    }
    let gateway = |world: &World, port| match ask(world, PortRequest::State(port)) {
        PortAnswer::State(state) => state.gateway_mac,
        other => panic!("{other:?}"),
    };
    for port in 0..2u8 {
        while gateway(&world, port) != Some(mac(1 - port)) {
            world.step();
        }
    }
    world.until("flows", |world| world.totals()[0].flows.tcp.closed > FLOWS);
    assert_eq!(world.totals()[0].flows.tcp.drops, 0);
}

/// A UDP packet that no template serves.
fn datagram() -> Vec<u8> {
    let mut frame = [mac(1), mac(0)].concat();
    frame.extend([0x08, 0x00]);
    frame.extend([
        0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
    ]);
    let sum = frame[14..].chunks(2).fold(0u32, |sum, two| {
        sum + u32::from(u16::from_be_bytes([two[0], two[1]]))
    });
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame.extend([0x30, 0, 0x30, 1, 0, 26, 0, 0]);
    frame.resize(60, 0);
    frame
}

/// 500 packets of a group, 10,000 a second.
fn counted_burst(group: Group) -> StreamSpec {
    StreamSpec {
        id: 1,
        enabled: true,
        self_start: true,
        next: None,
        action_count: 0,
        start_delay: 0,
        scales_delay: false,
        mode: Mode::SingleBurst { packets: 500 },
        rate: Rate::PacketsPerSecond(10_000.0),
        packet: datagram(),
        keep_source_mac: false,
        destination_mac: DestinationMac::Port,
        dummy: false,
        start_paused: false,
        random_seed: 1,
        core: None,
        rule: Some(Rule {
            group,
            vxlan: false,
            run: 0,
        }),
        program: Vec::new(),
    }
}

#[test]
fn streams_run_beside_flows_and_are_counted_by_themselves() {
    let group = Group::flow(5).expect("there is such a group");
    let facts = StreamPortInfo {
        line_rate_bps: 100e9,
        source_mac: mac(0),
        destination_mac: mac(1),
        checksums: Checksums::Complete,
        data_cores: 2,
        marking: Some(Tagging::Server),
        vxlan: VxlanPorts::STANDARD,
        tunnel: None,
    };
    let compiled = Profile::compile(&[counted_burst(group)], &facts).expect("the stream is right");
    let mut world = World::new(2, LinkSettings::default());
    world.start(&profile(10_000.0, Some(FLOWS as u32)), None);
    for (core, control) in world.control.iter_mut().enumerate() {
        let share = CoreShare {
            core,
            rank: core,
            cores: 2,
        };
        control.send(StatelessCommand::StartProfile {
            port: 0,
            profile: ProfileKey(1),
            program: Box::new(compiled.core_program(1.0, share)),
            start_at: world.clock.now_ns() + AHEAD,
            duration: None,
        });
    }
    world.until_ended();
    let done = |world: &World| {
        let reports = world.reports.iter();
        reports
            .filter(|(_, report)| matches!(report, Report::Event(_)))
            .count()
    };
    world.until("the stream is over", |world| done(world) == 2);
    let received = |world: &World| world.counters.group(1, group).received.packets;
    world.until("all is counted", |world| received(world) == 500);
    assert_eq!(world.counters.group(0, group).sent.packets, 500);
    // They are nobody's flows, and no error.
    assert_eq!(world.table_counter("err_no_template"), 0);
    let [client, server] = world.totals();
    assert_eq!(
        (client.flows.tcp.closed, server.flows.tcp.closed),
        (FLOWS, FLOWS)
    );
}

#[test]
fn service_mode_takes_its_classes_before_flows_and_answers_no_strays() {
    let mut world = World::new(1, LinkSettings::default());
    let mode = |mask| ServiceMode::Filtered(ServiceMask(mask).beside_flows());
    let set = |world: &World, mode| {
        for port in 0..2 {
            assert_eq!(
                ask(world, PortRequest::SetService { port, mode }),
                PortAnswer::Done
            );
        }
    };
    let queue = RxQueueRequest::Set {
        port: 1,
        packets_max: 100,
    };
    assert_eq!(ask(&world, queue), RxQueueAnswer::Done);
    // Neither TCP nor UDP, and high ports: flows are from and to others.
    set(&world, mode(1 | 8));
    let run = |world: &mut World, port: u16| {
        let mut profile = profile(10_000.0, Some(10));
        profile.templates[0].client.port = port;
        profile.templates[0].server.associations = vec![AssociationSpec::port(port)];
        world.start(&profile, Some(50 * MILLISECOND));
        let until = world.clock.now_ns() + 300 * MILLISECOND;
        world.until("0.3 s", |world| world.clock.now_ns() >= until);
        let served = world.blocks[world.blocks.len() - 1].totals()[1]
            .flows
            .tcp
            .accepts;
        world.control[0].send(allosaur_engine::stateful::StatefulCommand::Remove { run: RUN });
        world.step();
        served
    };
    assert_eq!(run(&mut world, 0xff01), 0);
    let until = world.clock.now_ns() + 100 * MILLISECOND;
    world.until("0.1 s", |world| world.clock.now_ns() >= until);
    let redirected = world.table_counter("redirect_rx_ok");
    assert!(redirected >= 10, "{redirected}");
    let queued = |world: &World| match ask(world, PortRequest::State(1)) {
        PortAnswer::State(state) => state.queue.expect("there is a queue").1,
        other => panic!("{other:?}"),
    };
    // They are on their way to the thread that has the queue.
    while queued(&world) < redirected.min(100) {
        std::thread::yield_now();
    }
    assert_eq!(queued(&world), redirected.min(100));
    assert_eq!(run(&mut world, 80), 10);
    assert_eq!(world.table_counter("redirect_rx_ok"), redirected);
    assert_eq!(world.table_counter("err_no_template"), 0);
}

#[test]
fn frames_for_other_stations_are_dropped_while_a_port_is_not_promiscuous() {
    // Port 0 sends to port 1's address; who is somebody else takes nothing.
    let somebody_else = [2, 0, 0, 0, 0, 0x99];
    for (filter, is_taken) in [
        (MacFilter::new(mac(1), false, false), true),
        (MacFilter::new(somebody_else, false, true), false),
        (MacFilter::new(somebody_else, true, false), true),
    ] {
        for (cores, link) in [(1, LinkSettings::default()), (3, delayed())] {
            let mut world = World::new(cores, link);
            let reception = Reception {
                mac_filter: filter,
                ..Reception::default()
            };
            let port = 1;
            let answer = ask(&world, PortRequest::SetReception { port, reception });
            assert_eq!(answer, PortAnswer::Done);
            world.start(&profile(10_000.0, Some(12)), None);
            let until = world.clock.now_ns() + 300 * MILLISECOND;
            world.until("0.3 s", |world| world.clock.now_ns() >= until);
            let [client, server] = world.totals();
            assert_eq!(client.flows.tcp.connattempt, 12);
            let served = server.flows.tcp.accepts;
            assert_eq!(served > 0, is_taken, "{filter:?}, {cores} threads");
            let received = world.snapshot().ports[1].receive.packets;
            assert_eq!(received > 0, is_taken, "what is not taken is not counted");
        }
    }
}
