//! The benchmark of open flows: what each costs in memory, and what they cost while they do
//! nothing.

use std::fs;
use std::time::Duration;

use allosaur_engine::app::ProgramCommand as Step;
use allosaur_engine::stateful::{GroupCounters, memory};
use allosaur_engine::template::Tunable;
use allosaur_engine::time::SECOND;
use serde::Serialize;
use thiserror::Error;

use super::connections::{self, RUN};
use super::running_ns;
use crate::config::polling::Poll;
use crate::threads::clock::Clock;
use crate::threads::data::DataThread;

/// Conversations that begin in a second.
const RATE_CPS: f64 = 100_000.0;
/// A silence that no measurement reaches.
const SILENCE_S: u64 = 65_000;
/// Between two turns until all is quiet.
const REST: Duration = Duration::from_micros(500);
/// All must be open by then.
const OPENING_S_MAX: u64 = 120;

/// What was measured.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Holding {
    /// Ends of TCP connections, both of each conversation on this core.
    pub ends: u64,
    /// Memory that the process took for them, all counted.
    pub bytes: u64,
    /// The same for one end.
    pub bytes_per_end: f64,
    /// Memory of an end in TIME-WAIT, by the sizes of its parts.
    pub bytes_per_time_wait_end: u64,
    /// Memory of the process before: table, rings and all.
    pub bytes_before: u64,
    /// How much of a core they take while they do nothing.
    pub core_share: f64,
    /// Frames sent in that time: keepalive, if the flows ask for it.
    pub frames: u64,
    /// How long it was measured.
    pub seconds: f64,
}

/// Why nothing was measured.
#[derive(Debug, Error)]
pub enum HoldingError {
    /// Not all came to be.
    #[error(
        "only {opened} of {asked} flow ends were open after {OPENING_S_MAX} s: ask for fewer by --flows"
    )]
    Opening {
        /// Those that were.
        opened: u64,
        /// Those that were asked for.
        asked: u64,
    },
    /// The system does not say.
    #[error("the kernel does not tell how much memory or time this process takes: /proc is needed")]
    Untold,
}

/// Opens `ends` ends of flows, and lets them be for `seconds` on a thread that rests as those of a
/// server by `--poll adaptive`. With `keepalive` each asks the
/// other after five seconds of silence, as the profile's default is; else they say nothing.
///
/// # Errors
///
/// When not all flows came to be, or the kernel tells nothing.
pub fn run(ends: u64, keepalive: bool, seconds: f64) -> Result<Holding, HoldingError> {
    let clock = Clock::start();
    let (mut control, mut thread) = connections::flow_thread(&clock, ends as usize);
    let bytes_before = resident_bytes().ok_or(HoldingError::Untold)?;
    control.send(connections::start(
        &profile(ends, keepalive),
        clock.now_ns(),
    ));
    open(&clock, &mut thread, ends)?;
    let bytes = resident_bytes().ok_or(HoldingError::Untold)?;
    let bytes = bytes.saturating_sub(bytes_before);
    // What was said last is acknowledged, and the first questions are asked.
    settle(&clock, &mut thread, if keepalive { 6.0 } else { 1.0 });
    let (from_ns, from_running_ns) = (clock.now_ns(), running_ns());
    let before = sent(&thread);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(Duration::from_secs_f64(seconds));
            control.close();
        });
        thread.run(Poll::Adaptive);
    });
    let frames = sent(&thread) - before;
    let passed_ns = clock.now_ns() - from_ns;
    let ran_ns = running_ns()
        .zip(from_running_ns)
        .map(|(to, from)| to - from);
    let parts = memory::end_in_time_wait();
    Ok(Holding {
        ends,
        bytes,
        bytes_per_end: bytes as f64 / ends as f64,
        bytes_per_time_wait_end: parts.iter().map(|(_, bytes)| *bytes as u64).sum(),
        bytes_before,
        core_share: ran_ns.ok_or(HoldingError::Untold)? as f64 / passed_ns as f64,
        frames,
        seconds: passed_ns as f64 / SECOND as f64,
    })
}

/// Turns until all are open.
fn open(clock: &Clock, thread: &mut DataThread, asked: u64) -> Result<(), HoldingError> {
    let until = clock.now_ns() + OPENING_S_MAX * SECOND;
    while clock.now_ns() < until {
        for _ in 0..256 {
            thread.turn();
        }
        if opened(thread) == asked {
            return Ok(());
        }
    }
    let opened = opened(thread);
    Err(HoldingError::Opening { opened, asked })
}

fn opened(thread: &DataThread) -> u64 {
    let groups = thread.flows().and_then(|flows| flows.groups(RUN));
    let sides = groups.into_iter().flatten().flatten();
    sides.map(|side: &GroupCounters| side.established).sum()
}

/// Turns now and then.
fn settle(clock: &Clock, thread: &mut DataThread, seconds: f64) {
    let until = clock.now_ns() + (seconds * SECOND as f64) as u64;
    while clock.now_ns() < until {
        while thread.turn() > 0 {}
        std::thread::sleep(REST);
    }
}

/// Frames that flows have sent.
fn sent(thread: &DataThread) -> u64 {
    let ports = thread
        .flows()
        .into_iter()
        .flat_map(|flows| flows.transmitted());
    ports.map(|port| port.sent.packets).sum()
}

/// A question, an answer, and then both wait for what nobody says.
fn profile(ends: u64, keepalive: bool) -> allosaur_engine::template::ProfileSpec {
    let mut profile = connections::profile(connections::REQUEST_BYTES, RATE_CPS);
    for program in &mut profile.programs {
        program.commands.push(Step::Receive {
            bytes: 1 << 30,
            clear: false,
        });
    }
    profile.templates[0].client.limit = Some((ends / 2) as u32);
    for side in [&mut profile.client, &mut profile.server] {
        if !keepalive {
            side.set(Tunable::KeepIdle, SILENCE_S);
        }
    }
    profile
}

/// What the process has in memory.
fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}
