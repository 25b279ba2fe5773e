//! How many instructions a short connection costs with all that is around TCP: programs, frames,
//! checksums, the table of flows and the timers. 100 bytes are asked, 32,000 answered, or as many
//! as the second argument says; the third is the rate at which they begin, 100,000 a second (where
//! it is given, there are as many flows in TIME-WAIT before the first is measured), the fourth how
//! long a turn is in microseconds, 20. With `udp` for the second, each is a question and an answer in
//! a datagram. `ipv6` has them over IPv6; `vlan` and `qinq` have frames in tags, `vxlan` in that tunnel.
//! With `application` for the second, the server is an application over bytes that echoes
//! the 100 bytes; with `program`, a program that answers as many.
//!
//! A client port and a server port of one core, rings between, virtual time. Instructions are the
//! same on every run; count them with
//!
//!     cargo build --release -p allosaur-engine --example flows_speed
//!     valgrind --tool=callgrind --toggle-collect='*run_turns*' \
//!         target/release/examples/flows_speed 1000
//!
//! and divide by the connections (two sides each) or by the frames that are printed.

mod loopback;

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Instant;

use allosaur_engine::app::{
    AppCore, AppFlowInfo, AppFlows, Application, ApplicationContext, ApplicationFactory, CoreInfo,
    FlowEvent, Output, ProgramCommand, Transport, VariablePool,
};
use allosaur_engine::encapsulation::{Encapsulation, Vxlan};
use allosaur_engine::stateful::StatefulEngine;
use allosaur_engine::template::{CompiledProfile, Layout, ProfileSpec, ProgramIndex, Tunable};
use allosaur_engine::time::{MICROSECOND, Nanos, SECOND};
use allosaur_engine::transmit::PortIndex;
use loopback::{RUN, Rings, engine, profile, start};

/// Parts of a run that are measured by themselves, for who shares a machine with others.
const PARTS: u64 = 20;
/// Connections that begin in a second.
const RATE_CPS: u64 = 100_000;
const TURN_US: u64 = 20;

fn main() {
    let has = |word: &str| std::env::args().any(|argument| argument == word);
    let is_udp = has("udp");
    let arguments = std::env::args().skip(1);
    let mut numbers = arguments.filter_map(|text| text.parse::<u64>().ok());
    let connections = numbers.next().unwrap_or(100_000);
    let is_echo = has("application") || has("program");
    let response_bytes = match (is_udp, is_echo) {
        (true, _) => 64,
        (_, true) => 100,
        _ => numbers.next().unwrap_or(32_000),
    };
    let rate_given = numbers.next();
    let rate_cps = rate_given.unwrap_or(RATE_CPS);
    let turn = numbers.next().unwrap_or(TURN_US) * MICROSECOND;
    let end = Ipv4Addr::new(192, 0, 2, 1);
    let (outer, inner) = (100, 200);
    let encapsulations = [
        ("vlan", Encapsulation::Vlan(outer)),
        ("qinq", Encapsulation::QinQ { outer, inner }),
        ("vxlan", Vxlan::new(end, end, 100).into()),
    ];
    let asked = encapsulations.into_iter().find(|(word, _)| has(word));
    let encapsulation = asked.map_or(Encapsulation::Ethernet, |(_, asked)| asked);
    let (mut engine, mut rings) = (engine(encapsulation), Rings::new(turn));
    let mut profile = profile(response_bytes, rate_cps as f64);
    if is_udp {
        exchange_messages(&mut profile);
    }
    if has("ipv6") {
        for tunables in [&mut profile.client, &mut profile.server] {
            tunables.set(Tunable::Ipv6Enable, 1);
        }
    }
    let compiled = CompiledProfile::compile(&profile, Layout::SMALLEST);
    let mut compiled = compiled.expect("the profile is right");
    if has("application") {
        compiled = compiled.with_application(ProgramIndex(1), Arc::new(Echoes));
    }
    start(&mut engine, compiled, &mut rings);
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

/// Sends back what it receives, and closes when its peer has.
#[derive(Debug, Default)]
struct Echo {
    waiting: Vec<u8>,
    is_peer_closed: bool,
}

impl Application for Echo {
    /// Memory of flows that are gone.
    type Shared = Vec<Vec<u8>>;

    fn start(spare: &mut Vec<Vec<u8>>, _: &mut ApplicationContext<'_>, _: &AppFlowInfo) -> Echo {
        Echo {
            waiting: spare.pop().unwrap_or_default(),
            is_peer_closed: false,
        }
    }

    fn handle_event(
        &mut self,
        _: &mut Vec<Vec<u8>>,
        _: &mut ApplicationContext<'_>,
        event: FlowEvent,
    ) {
        self.is_peer_closed |= event == FlowEvent::PeerClosed;
    }

    fn handle_data(
        &mut self,
        _: &mut Vec<Vec<u8>>,
        _: &mut ApplicationContext<'_>,
        data: &[u8],
    ) -> usize {
        self.waiting.extend_from_slice(data);
        data.len()
    }

    fn poll_output(
        &mut self,
        _: &mut Vec<Vec<u8>>,
        _: &mut ApplicationContext<'_>,
        _: usize,
        out: &mut Vec<u8>,
    ) -> Option<Output> {
        if self.waiting.is_empty() {
            return std::mem::take(&mut self.is_peer_closed).then_some(Output::Close);
        }
        out.append(&mut self.waiting);
        Some(Output::Data)
    }

    fn release(self, spare: &mut Vec<Vec<u8>>, _: &mut VariablePool) {
        spare.push(self.waiting);
    }
}

#[derive(Debug)]
struct Echoes;

impl ApplicationFactory for Echoes {
    fn core(&self, _: &CoreInfo) -> Box<dyn AppCore> {
        Box::new(AppFlows::<Echo>::new(Vec::new()))
    }
}
