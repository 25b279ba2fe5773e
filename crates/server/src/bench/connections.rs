//! The benchmark of flows: a client and a server on one core, with rings between them, by the
//! profile of the paper's benchmark (100 bytes asked, 32 KB answered, a connection each).

use std::sync::Arc;

use allosaur_engine::encapsulation::Encapsulation;
use allosaur_engine::stateful::{Config, FlowPortInfo, RunIndex, RunLimits, StatefulCommand};
use allosaur_engine::template::{
    CompiledProfile, Layout, PoolShare, PoolSpec, ProfileSpec, Side, Tunable,
};
use allosaur_engine::time::{Nanos, SECOND};
use allosaur_packet::MacAddress;
use allosaur_port::kind::PortTx;
use allosaur_port::memory::{self, FRAME_BYTES_MAX, LinkSettings, MemoryPort};
use allosaur_port::{RxQueue, TxQueue};
use serde::Serialize;

use super::{data_thread, waker};
use crate::counters::Counters;
use crate::threads::clock::Clock;
use crate::threads::data::{DataThread, FlowLinks, FlowRx, FlowState, Report, WorkerCommand};
use crate::threads::forward::{Watched, forward_channel};
use crate::threads::mailbox::ControlEnd;

pub(super) const REQUEST_BYTES: u64 = 100;
const FLOWS_MAX: usize = 1 << 20;
pub(super) const RUN: RunIndex = RunIndex(0);

/// What was measured.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Connections {
    /// Connections that ended in the measured time.
    pub connections: u64,
    /// The measured time, in seconds.
    pub seconds: f64,
    /// Connections per second.
    pub rate_cps: f64,
    /// Bits of data per second, from server to client.
    pub rate_bps: f64,
    /// Ticks of the time stamp counter per connection, both sides.
    pub cycles_per_connection: f64,
    /// Segments that were sent again.
    pub resent: u64,
    /// Flows that were due and were not begun in time.
    pub missed: u64,
}

/// Asks `rate_cps` connections a second for `seconds`, each for `response_bytes`.
pub fn run(response_bytes: u64, rate_cps: f64, seconds: f64) -> Connections {
    let clock = Clock::start();
    let (mut control, mut thread) = flow_thread(&clock, FLOWS_MAX);
    control.send(start(&profile(response_bytes, rate_cps), clock.now_ns()));
    let mut turn_until = |until| {
        while clock.now_ns() < until {
            for _ in 0..16 {
                thread.turn();
            }
        }
        let groups = thread.flows().and_then(|flows| flows.groups(RUN));
        let groups = groups.expect("it runs");
        groups[0].clone()
    };
    // Windows, pools and the memory of flows fill up first.
    let before = turn_until(clock.now_ns() + SECOND / 4);
    let ticks = quanta::Clock::new();
    let (from_ticks, from_ns) = (ticks.raw(), clock.now_ns());
    let after = turn_until(from_ns + (seconds * SECOND as f64) as u64);
    let ticks = (ticks.raw() - from_ticks) as f64;
    let seconds = (clock.now_ns() - from_ns) as f64 / SECOND as f64;
    let ([client, server], [old_client, old_server]) = (&after, &before);
    let tcp = (&client.flows.tcp, &old_client.flows.tcp);
    let connections = server.flows.tcp.closed - old_server.flows.tcp.closed;
    let bytes = tcp.0.rcvbyte - tcp.1.rcvbyte;
    Connections {
        connections,
        seconds,
        rate_cps: connections as f64 / seconds,
        rate_bps: bytes as f64 * 8.0 / seconds,
        cycles_per_connection: ticks / connections as f64,
        resent: server.flows.tcp.sndrexmitpack - old_server.flows.tcp.sndrexmitpack,
        missed: client.missed - old_client.missed,
    }
}

pub(super) fn start(profile: &ProfileSpec, start_at: Nanos) -> StatefulCommand {
    let profile = CompiledProfile::compile(profile, Layout::SMALLEST);
    StatefulCommand::Start {
        run: RUN,
        profile: Arc::new(profile.expect("the profile is right")),
        factor: 1.0,
        start_at,
        duration: None,
        clients: u32::MAX,
        limits: RunLimits::default(),
    }
}

/// A data thread with room for so many flows, and control's way to it.
pub(super) fn flow_thread(
    clock: &Clock,
    flows_max: usize,
) -> (ControlEnd<WorkerCommand, Report>, DataThread) {
    let link = LinkSettings::default();
    let facts = |side, own: u8| {
        Some(FlowPortInfo {
            side,
            own_mac: MacAddress([2, 0, 0, 0, 0, own]),
            peer_mac: MacAddress([2, 0, 0, 0, 0, 1 - own]),
            encapsulation: Encapsulation::Ethernet,
            frame_bytes_max: FRAME_BYTES_MAX,
            share: PoolShare::ONLY,
        })
    };
    let config = Config {
        ports: vec![facts(Side::Client, 0), facts(Side::Server, 1)],
        rss: Vec::new(),
        flows_max,
        seed: 1,
    };
    let (mut tx_queues, mut rx_queues) = (Vec::new(), Vec::new());
    let (a, b) = memory::pair(1, 1, &link);
    let mut ports = [a, b];
    touch(&mut ports, clock);
    for mut port in ports {
        tx_queues.push(PortTx::Memory(port.tx.remove(0)));
        rx_queues.push(Some(FlowRx::Whole(port.rx.into())));
    }
    let counters = Counters::new(2, 1).with_flows();
    let (_, forward) = forward_channel(waker(), waker(), Watched::default());
    let links = FlowLinks {
        forward,
        arrivals: counters.flows[0].clone(),
        receive: counters.receive.clone(),
    };
    let flows = FlowState::new(config, rx_queues, links, clock.now_ns());
    let (control, thread) = data_thread(tx_queues.into_iter(), &counters, clock);
    (control, thread.with_flows(Box::new(flows)))
}

/// Passes frames until all of the links' memory has been used, so that none of it is taken while
/// something is measured.
fn touch(ports: &mut [MemoryPort], clock: &Clock) {
    let frames = 2 * memory::RING_BYTES / FRAME_BYTES_MAX;
    for _ in 0..frames {
        for port in &mut *ports {
            let queue = &mut port.tx[0];
            if let Some(frame) = queue.slot(clock.now_ns(), FRAME_BYTES_MAX) {
                frame.fill(0);
            }
            queue.flush();
        }
        for port in &mut *ports {
            port.rx.receive(clock.now_ns(), 64, |_, _| {});
        }
    }
}

pub(super) fn profile(response_bytes: u64, rate_cps: f64) -> ProfileSpec {
    let pools = [
        PoolSpec::new(Side::Client, 0x1000_0000, 0x1000_ffff),
        PoolSpec::new(Side::Server, 0x3000_0000, 0x3000_ffff),
    ];
    let mut profile =
        ProfileSpec::request_response([REQUEST_BYTES, response_bytes], pools, rate_cps);
    for tunables in [&mut profile.client, &mut profile.server] {
        tunables.set(Tunable::InitialWindow, 2);
    }
    profile
}
