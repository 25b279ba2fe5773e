//! Ports change hands between the threads of both modes while a server runs: nothing is lost or
//! counted twice, and each pair of ports works in either mode.

use std::sync::Arc;
use std::time::{Duration, Instant};

use allosaur_engine::StatelessCommand;
use allosaur_engine::encapsulation::Encapsulation;
use allosaur_engine::flow_stats::tag::{Rule, Tagging};
use allosaur_engine::flow_stats::{Group, VxlanPorts};
use allosaur_engine::stateful::{self, Config, EndCause, Event, FlowPortInfo, RunIndex, RunLimits};
use allosaur_engine::stream::{
    CoreShare, DestinationMac, Mode, Profile, ProfileKey, Rate, StreamPortInfo, StreamSpec,
};
use allosaur_engine::template::{
    CompiledProfile, Layout as FlowLayout, PoolShare, PoolSpec, ProfileSpec, Side,
};
use allosaur_engine::time::{MILLISECOND, Nanos};
use allosaur_engine::vm::Checksums;
use allosaur_packet::MacAddress;
use allosaur_port::description::PortDescription;
use allosaur_port::memory::FRAME_BYTES_MAX;
use allosaur_port::open;
use allosaur_server::config::polling::Poll;
use allosaur_server::control::worker_command::{FlowCommand, FlowReport, PortMode};
use allosaur_server::counters::{Counters, GroupReadout, RunBlock, Snapshot};
use allosaur_server::threads::clock::Clock;
use allosaur_server::threads::data::Report;
use allosaur_server::threads::layout::{DataCore, Layout};
use allosaur_server::threads::{Emulated, HandoverError, RxHandle, Threads};

const PORTS: usize = 4;
const CONNECTIONS: u32 = 240;
const RESPONSE_BYTES: u64 = 14 * 1460;
/// A busy machine may take long; a run that hangs ends here.
const GIVE_UP: Duration = Duration::from_secs(60);

fn mac(port: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, port]
}

fn layout(cores: usize, receive_threads: usize, is_stateful: bool) -> Layout {
    let core = DataCore {
        ports: (0..PORTS).collect(),
        cpu: None,
    };
    Layout {
        data: vec![core; cores],
        data_poll: Poll::Adaptive,
        receive: vec![None; receive_threads],
        receive_poll: Poll::Adaptive,
        control: None,
        flow_queues: vec![cores; PORTS],
        is_stateful,
        warnings: Vec::new(),
    }
}

fn flow_config(core: usize, cores: usize) -> Config {
    let port = |port: u8| {
        Some(FlowPortInfo {
            side: [Side::Client, Side::Server][usize::from(port % 2)],
            own_mac: MacAddress(mac(port)),
            peer_mac: MacAddress(mac(port ^ 1)),
            encapsulation: Encapsulation::Ethernet,
            frame_bytes_max: FRAME_BYTES_MAX,
            share: PoolShare {
                rank: core as u32,
                cores: cores as u32,
                pair: u32::from(port / 2),
                pairs: PORTS as u32 / 2,
            },
        })
    };
    Config {
        ports: (0..PORTS as u8).map(port).collect(),
        rss: Vec::new(),
        flows_max: 1 << 12,
        seed: 7 + core as u64,
    }
}

/// Threads that really run, on ports in memory: 0 is joined with 1, and 2 with 3.
struct Server {
    threads: Threads,
    _rx_handle: RxHandle,
    counters: Counters,
    clock: Clock,
    cores: usize,
    seen: Snapshot,
    blocks: Vec<Arc<RunBlock>>,
    profiles: u32,
}

impl Server {
    fn start(link: &str, layout: &Layout) -> Server {
        let link = PortDescription::Memory(link.parse().expect("a link"));
        let queues = layout.queues(PORTS);
        let ports = open::open_each(&vec![link; PORTS], &queues).expect("there is memory");
        let (clock, cores) = (Clock::start(), layout.data.len());
        let counters = Counters::new(PORTS, cores).with_receive_threads(layout.receive.len());
        let counters = counters.with_flows();
        let flows = (0..cores).map(|core| flow_config(core, cores)).collect();
        let started = Threads::start(
            ports,
            layout,
            Some(flows),
            &counters,
            &clock,
            Emulated::default(),
        );
        let (threads, rx_handle) = started.expect("the system has threads");
        Server {
            threads,
            _rx_handle: rx_handle,
            counters,
            clock,
            cores,
            seen: Snapshot::default(),
            blocks: Vec::new(),
            profiles: 0,
        }
    }

    fn set_mode(&mut self, ports: [u8; 2], mode: PortMode) {
        for port in ports {
            let set = self.threads.set_port_mode(port, mode);
            set.expect("all threads give queues away");
        }
    }

    /// All cores send so many packets from a port, a share each.
    fn start_streams(&mut self, port: u8, packets: u64) {
        self.profiles += 1;
        let facts = StreamPortInfo {
            line_rate_bps: 100e9,
            source_mac: mac(port),
            destination_mac: mac(port ^ 1),
            checksums: Checksums::Complete,
            data_cores: self.cores,
            marking: Some(Tagging::Server),
            vxlan: VxlanPorts::STANDARD,
            tunnel: None,
        };
        let compiled = Profile::compile(&[stream(packets)], &facts).expect("the stream is right");
        for core in 0..self.cores {
            let share = CoreShare {
                core,
                rank: core,
                cores: self.cores,
            };
            let command = StatelessCommand::StartProfile {
                port,
                profile: ProfileKey(self.profiles),
                program: Box::new(compiled.core_program(1.0, share)),
                start_at: self.clock.now_ns() + MILLISECOND,
                duration: None,
            };
            self.threads.send(core, command);
        }
    }

    /// Clients of a port open all connections.
    fn start_flows(&mut self, run: RunIndex, port: u8) {
        let layout = FlowLayout {
            cores: self.cores as u32,
            pairs: PORTS as u32 / 2,
        };
        let compiled = CompiledProfile::compile(&flow_profile(), layout);
        let compiled = Arc::new(compiled.expect("the profile is right"));
        self.blocks.clear();
        for core in 0..self.cores {
            let block = Arc::new(RunBlock::new(1, 0));
            self.blocks.push(Arc::clone(&block));
            self.threads.send(core, FlowCommand::Publish { run, block });
            let command = stateful::StatefulCommand::Start {
                run,
                profile: Arc::clone(&compiled),
                factor: 1.0,
                start_at: self.clock.now_ns() + MILLISECOND,
                duration: None,
                clients: 1 << port,
                limits: RunLimits::default(),
            };
            self.threads.send(core, command);
        }
    }

    /// Looks at the counters: none goes back.
    fn look(&mut self) {
        let mut now = Snapshot::default();
        self.counters.read(&mut now);
        for (before, now) in self.seen.ports.iter().zip(&now.ports) {
            assert!(now.receive.packets >= before.receive.packets);
            assert!(now.receive.bytes >= before.receive.bytes);
            assert!(now.receive_lost_packets >= before.receive_lost_packets);
        }
        self.seen = now;
    }

    /// Goes on until all cores have told of the end of so many runs of streams, and of flows.
    fn until_ended(&mut self, streams: usize, flows: usize) {
        let give_up = Instant::now() + GIVE_UP;
        let (mut streams, mut flows) = (streams * self.cores, flows * self.cores);
        while streams + flows > 0 {
            assert!(Instant::now() < give_up, "{streams} streams, {flows} flows");
            while let Some((_, report)) = self.threads.poll_report() {
                match report {
                    Report::Event(_) => streams -= 1,
                    Report::Flows(FlowReport::Event(Event::Ended { cause, .. })) => {
                        assert_eq!(cause, EndCause::Done);
                        flows -= 1;
                    }
                    Report::Detached { .. } => panic!("somebody waited for that"),
                    Report::Flows(FlowReport::Samples { .. }) | Report::Retired(_) => {}
                }
            }
            self.look();
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits until all that was sent has arrived, or was lost on the way.
    fn settle(&mut self) {
        let give_up = Instant::now() + GIVE_UP;
        let arrived = |seen: &Snapshot, port: usize| {
            seen.ports[port].receive.packets + seen.ports[port].receive_lost_packets
        };
        let sent = |seen: &Snapshot, port: usize| seen.ports[port ^ 1].transmit.sent.packets;
        while (0..PORTS).any(|port| arrived(&self.seen, port) != sent(&self.seen, port)) {
            assert!(Instant::now() < give_up, "{:#?}", self.seen.ports);
            std::thread::sleep(Duration::from_millis(1));
            self.look();
        }
    }

    /// All connections came, talked and went.
    fn check_connections(&self, case: &str) {
        let mut totals = <[stateful::GroupCounters; 2]>::default();
        for block in &self.blocks {
            for (total, counters) in totals.iter_mut().zip(block.totals()) {
                total.add(&counters);
            }
        }
        let [client, server] = totals.map(|side| side.flows.tcp);
        let all = u64::from(CONNECTIONS) / 2;
        assert_eq!(
            (client.connattempt, client.connects),
            (all, all),
            "{case}: {client:?} {server:?}"
        );
        assert_eq!((server.accepts, server.connects), (all, all));
        assert_eq!((client.closed, server.closed), (all, all));
        assert_eq!((client.rcvbyte, client.drops), (all * RESPONSE_BYTES, 0));
    }
}

fn group() -> Group {
    Group::flow(5).expect("there is such a group")
}

fn stream(packets: u64) -> StreamSpec {
    StreamSpec {
        id: 1,
        enabled: true,
        self_start: true,
        next: None,
        action_count: 0,
        start_delay: 0,
        scales_delay: false,
        mode: Mode::SingleBurst { packets },
        rate: Rate::PacketsPerSecond(20_000.0),
        packet: datagram(),
        keep_source_mac: false,
        destination_mac: DestinationMac::Port,
        dummy: false,
        start_paused: false,
        random_seed: 1,
        core: None,
        rule: Some(Rule {
            group: group(),
            vxlan: false,
            run: 0,
        }),
        program: Vec::new(),
    }
}

/// A UDP packet that no template serves.
fn datagram() -> Vec<u8> {
    let mut frame = vec![0; 12];
    frame.extend([8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0x66, 0xbd]);
    frame.extend([10, 0, 0, 1, 10, 0, 0, 2, 0x30, 0, 0x30, 1, 0, 26]);
    frame.resize(60, 0);
    frame
}

fn flow_profile() -> ProfileSpec {
    let pools = [
        PoolSpec::new(Side::Client, 0x1000_0001, 0x1000_00ff),
        PoolSpec::new(Side::Server, 0x3000_0001, 0x3000_00ff),
    ];
    let mut profile = ProfileSpec::request_response([100, RESPONSE_BYTES], pools, 2_000.0);
    profile.templates[0].client.limit = Some(CONNECTIONS);
    profile
}

#[test]
fn streams_run_on_one_pair_while_flows_run_on_the_other_and_then_the_other_way_round() {
    for (cores, receive_threads, link) in
        [(1, 1, ""), (2, 1, ""), (2, 2, ""), (2, 1, "delay=200us")]
    {
        let mut server = Server::start(link, &layout(cores, receive_threads, false));
        for (run, streams, flows) in [
            (0, [0, 1], [2, 3]),
            (1, [2, 3], [0, 1]),
            (2, [0, 1], [2, 3]),
        ] {
            server.set_mode(streams, PortMode::Stateless);
            server.set_mode(flows, PortMode::Stateful);
            for port in streams {
                server.start_streams(port, 2_000);
            }
            server.start_flows(RunIndex(run), flows[0]);
            server.until_ended(2, 1);
            server.settle();
            server.check_connections(&format!("{cores} {receive_threads} {link} run {run}"));
            for core in 0..cores {
                let run = RunIndex(run);
                let remove = stateful::StatefulCommand::Remove { run };
                server.threads.send(core, remove);
            }
        }
        let group = server.counters.group(0, group());
        assert_eq!(group.received.packets, 4_000);
        server.threads.end();
    }
}

#[test]
fn no_frame_is_lost_or_counted_twice_while_a_port_changes_hands() {
    for (cores, receive_threads, link) in [(1, 1, ""), (2, 3, ""), (3, 1, "loss=10%:delay=100us")] {
        let mut server = Server::start(link, &layout(cores, receive_threads, false));
        let until = server.clock.now_ns() + 400 * MILLISECOND;
        server.start_streams(0, 8_000);
        let mut changes: Nanos = 0;
        while server.clock.now_ns() < until {
            let modes = [PortMode::Stateful, PortMode::Stateless];
            server.set_mode([0, 1], modes[(changes % 2) as usize]);
            changes += 1;
            server.look();
        }
        server.until_ended(1, 0);
        server.settle();
        assert!(changes > 2, "{changes}");
        let port = server.seen.ports[1];
        let group = server.counters.group(1, group());
        assert_eq!(group.received.packets, port.receive.packets);
        assert_eq!(port.receive_lost_packets > 0, link.contains("loss"));
        server.threads.end();
    }
}

#[test]
fn ports_of_a_stateful_server_stay_as_they_are() {
    let mut server = Server::start("", &layout(1, 1, true));
    let threads = &mut server.threads;
    assert_eq!(threads.set_port_mode(1, PortMode::Stateful), Ok(()));
    let refused = threads.set_port_mode(1, PortMode::Stateless);
    assert_eq!(refused, Err(HandoverError::OneMode));
    let unknown = threads.set_port_mode(4, PortMode::Stateful);
    assert_eq!(unknown, Err(HandoverError::UnknownPort(4)));
    server.threads.end();
}
