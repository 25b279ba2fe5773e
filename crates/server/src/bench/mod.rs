//! The benchmark of one data core, on in-memory ports or others: the data thread's own loop, as fast
//! as it goes, measured as JSON; `bench/run.py` compares runs and machines.

mod case;
pub mod connections;
pub mod holding;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use allosaur_engine::StatelessCommand;
use allosaur_engine::flow_stats::{Tagging, VxlanPorts};
use allosaur_engine::stats::TransmitCounters;
use allosaur_engine::stream::{CompileError, CoreShare, Profile, ProfileKey, StreamPortInfo};
use allosaur_engine::time::SECOND;
use allosaur_engine::transmit::PortIndex;
use allosaur_engine::vm::Checksums;
use allosaur_port::description::PortDescription;
use allosaur_port::kind::PortTx;
use allosaur_port::memory::{LinkSettings, NOMINAL_RATE_BPS};
use allosaur_port::open;
use allosaur_port::{PortError, QueueCounts};
use serde::Serialize;
use thiserror::Error;

pub use case::Case;

use crate::config::polling::Poll;
use crate::counters::{Counters, Snapshot};
use crate::threads::clock::Clock;
use crate::threads::data::{DataThread, Report, WorkerCommand};
use crate::threads::mailbox::{ControlEnd, mailbox};
use crate::threads::receive::Receiver;
use crate::threads::waker::{Notify, Waker};

/// What was measured.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Measured {
    /// Frames sent in the measured time.
    pub packets: u64,
    /// The measured time, in seconds.
    pub seconds: f64,
    /// Frames per second.
    pub rate_pps: f64,
    /// Frames per second that this thread ran: what others take from its CPU does not count. None where
    /// the kernel does not tell.
    pub rate_running_pps: Option<f64>,
    /// Bits per second at layer 2, with FCS.
    pub rate_bps: f64,
    /// Ticks of the time stamp counter per frame.
    pub cycles_per_packet: f64,
    /// Frames that the other port received meanwhile, when there is one.
    pub received_packets: u64,
    /// Times that the link was full.
    pub queue_full: u64,
}

/// Runs one case for `seconds` on this thread. With `receive`, the frames cross a link to a
/// second port that a second thread reads; without, they go to a sink.
pub fn run(case: Case, receive: bool, seconds: f64) -> Result<Measured, CompileError> {
    let clock = Clock::start();
    let description = PortDescription::Memory(LinkSettings::default());
    let descriptions = vec![description; if receive { 2 } else { 1 }];
    let ports = open::open(&descriptions, QueueCounts::ONE);
    let mut ports = ports.expect("ports in memory can always be opened");
    let counters = Counters::new(ports.len(), 1);
    let tx_queues = ports.iter_mut().map(|port| port.tx.remove(0));
    let (mut control, thread) = data_thread(tx_queues, &counters, &clock);
    control.send(start(case, 0, clock.now_ns())?);
    let stop = AtomicBool::new(false);
    let receivers = ports.into_iter().map(|mut port| port.rx.pop());
    let receiver = Receiver::new(receivers, counters.receive.clone(), clock.clone());
    let measured = thread::scope(|scope| {
        let stop = &stop;
        if receive {
            scope.spawn(move || receiver.run(Poll::Busy, stop, &waker()));
        }
        let measured = measure(thread, &counters, &clock, seconds);
        stop.store(true, Ordering::Relaxed);
        measured
    });
    Ok(measured)
}

/// Why there was nothing to measure.
#[derive(Debug, Error)]
pub enum BenchError {
    /// A case that cannot be compiled.
    #[error(transparent)]
    Case(#[from] CompileError),
    /// A port that cannot be opened.
    #[error(transparent)]
    Port(#[from] PortError),
}

/// Runs one case for `seconds` on this thread, on all of these ports at once. Nobody receives.
pub fn run_on(ports: &[PortDescription], case: Case, seconds: f64) -> Result<Measured, BenchError> {
    let clock = Clock::start();
    let mut ports = open::open(ports, QueueCounts::ONE)?;
    let counters = Counters::new(ports.len(), 1);
    let tx_queues = ports.iter_mut().map(|port| port.tx.remove(0));
    let (mut control, thread) = data_thread(tx_queues, &counters, &clock);
    for number in 0..ports.len() {
        control.send(start(case, number as u8, clock.now_ns())?);
    }
    Ok(measure(thread, &counters, &clock, seconds))
}

const DESCRIPTORS: &str = "the machine has file descriptors left";

fn waker() -> Waker {
    Waker::new().expect(DESCRIPTORS)
}

/// A data thread of these queues, and control's way to it.
fn data_thread(
    tx_queues: impl Iterator<Item = PortTx>,
    counters: &Counters,
    clock: &Clock,
) -> (ControlEnd<WorkerCommand, Report>, DataThread) {
    let (control, mail) = mailbox(&Notify::new().expect(DESCRIPTORS), &waker());
    let block = counters.cores[0].clone();
    let thread = DataThread::new(tx_queues.map(Some).collect(), mail, block, clock.clone());
    (control, thread)
}

fn measure(mut thread: DataThread, counters: &Counters, clock: &Clock, seconds: f64) -> Measured {
    let mut turn_until = |until| {
        while clock.now_ns() < until {
            for _ in 0..64 {
                thread.turn();
            }
        }
        thread.publish();
        let mut snapshot = Snapshot::default();
        counters.read(&mut snapshot);
        snapshot
    };
    // The first tenth of a second warms caches and branch predictors.
    let before = turn_until(clock.now_ns() + SECOND / 10);
    let ticks = quanta::Clock::new();
    let from_running_ns = running_ns();
    let (from_ticks, from_ns) = (ticks.raw(), clock.now_ns());
    let after = turn_until(from_ns + (seconds * SECOND as f64) as u64);
    let ticks = (ticks.raw() - from_ticks) as f64;
    let running_ns = running_ns();
    let seconds = (clock.now_ns() - from_ns) as f64 / SECOND as f64;
    let (first, last) = (sent(&before), sent(&after));
    let packets = last.sent.packets - first.sent.packets;
    let bytes = last.sent.bytes - first.sent.bytes;
    let received = |snapshot: &Snapshot| snapshot.ports.last().map_or(0, |p| p.receive.packets);
    Measured {
        packets,
        seconds,
        rate_pps: packets as f64 / seconds,
        rate_running_pps: running_ns
            .zip(from_running_ns)
            .map(|(to, from)| packets as f64 * 1e9 / to.saturating_sub(from) as f64),
        rate_bps: bytes as f64 * 8.0 / seconds,
        cycles_per_packet: ticks / packets as f64,
        received_packets: received(&after) - received(&before),
        queue_full: last.queue_full - first.queue_full,
    }
}

/// How long this thread ran since it began.
fn running_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// What all ports sent.
fn sent(snapshot: &Snapshot) -> TransmitCounters {
    let mut sum = TransmitCounters::default();
    for port in &snapshot.ports {
        sum.sent.packets += port.transmit.sent.packets;
        sum.sent.bytes += port.transmit.sent.bytes;
        sum.queue_full += port.transmit.queue_full;
    }
    sum
}

/// Asks for more than any core can do.
fn start(case: Case, port: PortIndex, now: u64) -> Result<StatelessCommand, CompileError> {
    let facts = StreamPortInfo {
        line_rate_bps: NOMINAL_RATE_BPS,
        source_mac: [2, 0, 0, 0, 0, 1],
        destination_mac: [2, 0, 0, 0, 0, 2],
        checksums: Checksums::Complete,
        data_cores: 1,
        marking: Some(Tagging::Server),
        vxlan: VxlanPorts::STANDARD,
        tunnel: None,
    };
    let profile = Profile::compile(&case.streams(), &facts)?;
    let factor = 1e11 / profile.rates().pps_max;
    Ok(StatelessCommand::StartProfile {
        port,
        profile: ProfileKey(0),
        program: Box::new(profile.core_program(factor, CoreShare::ONLY)),
        start_at: now,
        duration: None,
    })
}
