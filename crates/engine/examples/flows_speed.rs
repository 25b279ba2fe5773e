//! How many instructions a short connection costs with all that is around TCP: programs, frames,
//! checksums, the table of flows and the timers. 100 bytes are asked, 32,000 answered, or as many
//! as the second argument says; the third is the rate at which they begin, 100,000 a second (where
//! it is given, there are as many flows in TIME-WAIT before the first is measured), the fourth how
//! long a turn is in microseconds, 20. With `udp` for the second, each is a question and an answer in
//! a datagram.
//!
//! A client port and a server port of one core, rings between, virtual time. Instructions are the
//! same on every run; count them with
//!
//!     cargo build --release -p allosaur-engine --example flows_speed
//!     valgrind --tool=callgrind --toggle-collect='*run_turns*' \
//!         target/release/examples/flows_speed 1000
//!
//! and divide by the connections (two sides each) or by the frames that are printed.

use std::sync::Arc;
use std::time::Instant;

use allosaur_engine::app::{ProgramCommand, Transport};
use allosaur_engine::session::Encapsulation;
use allosaur_engine::stateful::{
    Config, FlowPortInfo, RunIndex, RunLimits, StatefulCommand, StatefulEngine,
};
use allosaur_engine::template::{
    CompiledProfile, Layout, PoolShare, PoolSpec, ProfileSpec, Side, Tunable,
};
use allosaur_engine::time::{Due, Gap, MICROSECOND, Nanos, SECOND};
use allosaur_engine::transmit::{FrameHandle, PortIndex, QueueOp, Transmit, TxQueues};
use allosaur_packet::MacAddress;

const RUN: RunIndex = RunIndex(0);
const SLOT_BYTES: usize = 2048;
const SLOTS: usize = 1024;
/// Parts of a run that are measured by themselves, for who shares a machine with others.
const PARTS: u64 = 20;
/// Connections that begin in a second.
const RATE_CPS: u64 = 100_000;
/// Enough for a second of TIME-WAIT at a high rate.
const FLOWS_MAX: usize = 1 << 20;
const TURN_US: u64 = 20;

fn main() {
    let is_udp = std::env::args().any(|argument| argument == "udp");
    let arguments = std::env::args().skip(1);
    let mut numbers = arguments.filter_map(|text| text.parse::<u64>().ok());
    let connections = numbers.next().unwrap_or(100_000);
    let response_bytes = match is_udp {
        true => 64,
        false => numbers.next().unwrap_or(32_000),
    };
    let rate_given = numbers.next();
    let rate_cps = rate_given.unwrap_or(RATE_CPS);
    let turn = numbers.next().unwrap_or(TURN_US) * MICROSECOND;
    let (mut engine, mut rings) = (engine(), Rings::new(turn));
    let mut profile = profile(response_bytes, rate_cps as f64);
    if is_udp {
        exchange_messages(&mut profile);
    }
    let compiled = CompiledProfile::compile(&profile, Layout::SMALLEST);
    let command = StatefulCommand::Start {
        run: RUN,
        profile: Arc::new(compiled.expect("the profile is right")),
        factor: 1.0,
        start_at: SECOND,
        duration: None,
        clients: u32::MAX,
        limits: RunLimits::default(),
    };
    engine.handle_command(SECOND, command, &mut rings);
    let mut now = SECOND;
    // The memory of flows fills up first.
    let warm = rate_given.unwrap_or_default() + 2_000;
    run_warm(&mut engine, &mut rings, &mut now, warm);
    let (mut done, mut frames, mut each_ns) = (0, 0, Vec::new());
    for _ in 0..PARTS {
        let begin = Instant::now();
        let part = run_turns(&mut engine, &mut rings, &mut now, connections / PARTS);
        each_ns.push(begin.elapsed().as_nanos() / u128::from(part.0.max(1)));
        (done, frames) = (done + part.0, frames + part.1);
    }
    each_ns.sort_unstable();
    let (best, median) = (each_ns[0], each_ns[each_ns.len() / 2]);
    println!("{done} connections, {frames} frames: {median} ns each, {best} at best");
}

/// Connections that servers have closed.
fn closed(engine: &StatefulEngine) -> u64 {
    let groups = engine.groups(RUN).expect("it runs");
    let flows = &groups[0][1].flows;
    flows.tcp.closed + flows.udp.closed
}

#[inline(never)]
fn run_warm(engine: &mut StatefulEngine, rings: &mut Rings, now: &mut Nanos, connections: u64) {
    turns(engine, rings, now, connections);
}

/// Runs until so many connections are over. Returns how many, and frames.
#[inline(never)]
fn run_turns(
    engine: &mut StatefulEngine,
    rings: &mut Rings,
    now: &mut Nanos,
    connections: u64,
) -> (u64, u64) {
    turns(engine, rings, now, connections)
}

#[inline(always)]
fn turns(
    engine: &mut StatefulEngine,
    rings: &mut Rings,
    now: &mut Nanos,
    connections: u64,
) -> (u64, u64) {
    let before = closed(engine);
    let mut frames = 0;
    while closed(engine) - before < connections {
        *now += rings.turn;
        for port in 0..2 {
            let mut arrived = rings.take(1 - port);
            let all = (0..arrived.len).map(|place| arrived.frame(place));
            engine.fetch_asked(port as PortIndex, all);
            for place in 0..arrived.len {
                engine.handle_frame(*now, port as PortIndex, arrived.frame(place), rings);
            }
            frames += arrived.len as u64;
            arrived.len = 0;
            rings.spare = arrived;
        }
        engine.poll_transmit(*now, false, rings);
    }
    (closed(engine) - before, frames)
}

/// Frames that a port sent.
struct Ring {
    bytes: Vec<u8>,
    lens: Vec<usize>,
    len: usize,
}

impl Ring {
    fn new() -> Ring {
        Ring {
            bytes: vec![0; SLOTS * SLOT_BYTES],
            lens: vec![0; SLOTS],
            len: 0,
        }
    }

    fn frame(&self, place: usize) -> &[u8] {
        &self.bytes[place * SLOT_BYTES..][..self.lens[place]]
    }
}

impl Transmit for Ring {
    const REUSES: bool = false;

    #[inline]
    fn slot(&mut self, _at: Nanos, len: usize) -> Option<&mut [u8]> {
        let place = self.len;
        *self.lens.get_mut(place)? = len;
        self.len += 1;
        Some(&mut self.bytes[place * SLOT_BYTES..][..len])
    }

    fn repeat(&mut self, _: FrameHandle, _: Due, _: Gap, _: u32) -> u32 {
        unreachable!("flows have no frame twice")
    }

    fn reuse(&mut self, _: Nanos, _: FrameHandle, _: usize) -> Option<&mut [u8]> {
        unreachable!("flows have no frame twice")
    }

    fn register(&mut self, _: &[u8]) -> Option<FrameHandle> {
        None
    }

    fn unregister(&mut self, _: FrameHandle) {}
}

/// What each port sent in this turn, and one that is being read.
struct Rings {
    turn: Nanos,
    sent: [Ring; 2],
    spare: Ring,
}

impl Rings {
    fn new(turn: Nanos) -> Rings {
        Rings {
            turn,
            sent: [Ring::new(), Ring::new()],
            spare: Ring::new(),
        }
    }

    /// What a port sent; put it back as the spare one.
    fn take(&mut self, port: usize) -> Ring {
        let empty = Ring {
            bytes: Vec::new(),
            lens: Vec::new(),
            len: 0,
        };
        let spare = std::mem::replace(&mut self.spare, empty);
        std::mem::replace(&mut self.sent[port], spare)
    }
}

impl TxQueues for Rings {
    #[inline]
    fn with_queue<J: QueueOp>(&mut self, port: PortIndex, job: J) -> J::Output {
        job.run(&mut self.sent[usize::from(port)])
    }
}

fn engine() -> StatefulEngine {
    let facts = |side, own: u8| {
        Some(FlowPortInfo {
            side,
            own_mac: MacAddress([2, 0, 0, 0, 0, own]),
            peer_mac: MacAddress([2, 0, 0, 0, 0, 1 - own]),
            encapsulation: Encapsulation::Ethernet,
            frame_bytes_max: 1514,
            rss: None,
            share: PoolShare::ONLY,
        })
    };
    let config = Config {
        ports: vec![facts(Side::Client, 0), facts(Side::Server, 1)],
        flows_max: FLOWS_MAX,
        seed: 1,
    };
    StatefulEngine::new(config, SECOND)
}

fn profile(response_bytes: u64, rate_cps: f64) -> ProfileSpec {
    let pools = [
        PoolSpec::new(Side::Client, 0x1000_0000, 0x1000_ffff),
        PoolSpec::new(Side::Server, 0x3000_0000, 0x3000_ffff),
    ];
    let mut profile = ProfileSpec::request_response([100, response_bytes], pools, rate_cps);
    for tunables in [&mut profile.client, &mut profile.server] {
        tunables.set(Tunable::InitialWindow, 2);
    }
    profile
}

/// Has its flows ask and answer by a message each.
fn exchange_messages(profile: &mut ProfileSpec) {
    let receive = ProgramCommand::ReceiveMessages {
        messages: 1,
        clear: false,
    };
    let send = |buffer| ProgramCommand::SendMessage { buffer };
    let programs = [
        vec![send(0), receive, ProgramCommand::CloseMessage],
        vec![receive, send(1)],
    ];
    for (program, commands) in profile.programs.iter_mut().zip(programs) {
        (program.transport, program.commands) = (Transport::Datagram, commands);
    }
}
