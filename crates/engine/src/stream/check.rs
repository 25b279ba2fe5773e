//! What must hold for the streams of one profile together, before anything is compiled.

use std::collections::HashMap;

use thiserror::Error;

use super::spec::{
    GAP_MAX, Mode, PACKET_BYTES_MAX, PACKET_BYTES_MIN, RATE_PPS_MAX, STREAMS_MAX, StreamId,
    StreamSpec,
};
use crate::flow_stats::TagError;
use crate::vm::InstructionError;

/// Why a profile cannot run, and what to do.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum CompileError {
    /// Too many streams.
    #[error("the profile has {0} streams; a profile holds at most {STREAMS_MAX}: split it")]
    TooManyStreams(usize),
    /// Two streams with one number.
    #[error("stream {0} is there twice: give each stream of a profile its own id")]
    Duplicate(StreamId),
    /// A packet template that is too short or too long.
    #[error(
        "stream {stream}: packet is {bytes} bytes; it must be {PACKET_BYTES_MIN} to \
         {PACKET_BYTES_MAX} (without the 4 bytes of FCS)"
    )]
    PacketSize {
        /// The stream.
        stream: StreamId,
        /// Its template's size.
        bytes: usize,
    },
    /// A rate that sends nothing.
    #[error("stream {stream}: rate is {value}; it must be above zero and finite")]
    Rate {
        /// The stream.
        stream: StreamId,
        /// The number given.
        value: f64,
    },
    /// A number of packets or bursts that is zero.
    #[error("stream {stream}: {field} is 0; it must be at least 1")]
    Empty {
        /// The stream.
        stream: StreamId,
        /// The field's name in the RPC.
        field: &'static str,
    },
    /// A delay beyond all use.
    #[error("stream {stream}: {field} is longer than a year; give it in microseconds")]
    Delay {
        /// The stream.
        stream: StreamId,
        /// The field's name in the RPC.
        field: &'static str,
    },
    /// A chain that leads nowhere.
    #[error("stream {stream}: next stream {next} does not exist or is disabled: add or enable it")]
    NextUnknown {
        /// The stream.
        stream: StreamId,
        /// What its `next` names.
        next: StreamId,
    },
    /// A stream without end that has a successor.
    #[error(
        "stream {0}: a continuous stream never ends, so it cannot have a next stream: make it a burst"
    )]
    ContinuousNext(StreamId),
    /// A loop of one stream without a number of rounds.
    #[error(
        "stream {0}: its next stream is itself without an action_count: set action_count, or make it continuous"
    )]
    EndlessSelfLoop(StreamId),
    /// A loop that takes no time.
    #[error(
        "stream {0}: its chain comes back to it at the same instant, forever: give a stream of the chain an isg above zero, or an action_count"
    )]
    TimelessLoop(StreamId),
    /// A stream that nothing starts.
    #[error(
        "stream {0} never starts: set self_start, or name it as the next of a stream that starts"
    )]
    Unreachable(StreamId),
    /// A pinned stream without its core.
    #[error("stream {stream}: core_id is {core}, but the data cores are 0 to {}: choose one of them", cores.saturating_sub(1))]
    PinnedCore {
        /// The stream.
        stream: StreamId,
        /// The core asked for.
        core: u8,
        /// How many there are.
        cores: usize,
    },
    /// A chain over several cores.
    #[error(
        "stream {stream} and its next stream {next} have different core_ids: give all streams of a chain the same"
    )]
    PinnedChain {
        /// The stream.
        stream: StreamId,
        /// Its successor.
        next: StreamId,
    },
    /// A packet that has no place for the sign of what it is counted as.
    #[error("stream {stream}: {error}")]
    Mark {
        /// The stream.
        stream: StreamId,
        /// What is wrong.
        error: TagError,
    },
    /// A stream that is measured for latency and pinned.
    #[error(
        "stream {0}: core_id cannot be set for a stream whose latency is measured, which the first core of the port sends: leave core_id -1"
    )]
    SequencedCore(StreamId),
    /// A chain of streams of which some are measured for latency.
    #[error(
        "stream {stream} and its next stream {next}: only one of them is measured for latency, so they cannot follow each other: measure both or none"
    )]
    SequencedChain {
        /// The stream.
        stream: StreamId,
        /// Its successor.
        next: StreamId,
    },
    /// A field engine program that is not right.
    #[error("stream {stream}: {error}")]
    Program {
        /// The stream.
        stream: StreamId,
        /// What is wrong.
        error: InstructionError,
    },
}

/// The enabled streams of a profile, with `next` resolved to positions.
#[derive(Debug)]
pub(super) struct Chains<'a> {
    pub(super) streams: Vec<&'a StreamSpec>,
    pub(super) next: Vec<Option<usize>>,
}

/// Checks all streams, and how they follow each other.
pub(super) fn check(specs: &[StreamSpec], cores: usize) -> Result<Chains<'_>, CompileError> {
    if specs.len() > STREAMS_MAX {
        return Err(CompileError::TooManyStreams(specs.len()));
    }
    let streams: Vec<&StreamSpec> = specs.iter().filter(|spec| spec.enabled).collect();
    let mut position = HashMap::with_capacity(streams.len());
    for (i, spec) in streams.iter().enumerate() {
        check_stream(spec, cores)?;
        if position.insert(spec.id, i).is_some() {
            return Err(CompileError::Duplicate(spec.id));
        }
    }
    let mut next = Vec::with_capacity(streams.len());
    for spec in &streams {
        next.push(check_next(spec, &streams, &position)?);
    }
    let chains = Chains { streams, next };
    check_loops(&chains)?;
    check_reachable(&chains)?;
    Ok(chains)
}

fn check_stream(spec: &StreamSpec, cores: usize) -> Result<(), CompileError> {
    let stream = spec.id;
    let bytes = spec.packet.len();
    if !(PACKET_BYTES_MIN..=PACKET_BYTES_MAX).contains(&bytes) {
        return Err(CompileError::PacketSize { stream, bytes });
    }
    let value = spec.rate.value();
    if !(value > 0.0 && value <= RATE_PPS_MAX * 1e6) {
        return Err(CompileError::Rate { stream, value });
    }
    let empty = |field| Err(CompileError::Empty { stream, field });
    match spec.mode {
        Mode::SingleBurst { packets: 0 } => return empty("total_pkts"),
        Mode::MultiBurst {
            packets_per_burst: 0,
            ..
        } => return empty("pkts_per_burst"),
        Mode::MultiBurst { bursts: 0, .. } => return empty("count"),
        Mode::MultiBurst { gap, .. } if gap > GAP_MAX => {
            return Err(CompileError::Delay {
                stream,
                field: "ibg",
            });
        }
        _ => {}
    }
    if spec.start_delay > GAP_MAX {
        return Err(CompileError::Delay {
            stream,
            field: "isg",
        });
    }
    match spec.core {
        Some(_) if spec.is_sequenced() => Err(CompileError::SequencedCore(stream)),
        Some(core) if usize::from(core) >= cores => Err(CompileError::PinnedCore {
            stream,
            core,
            cores,
        }),
        _ => Ok(()),
    }
}

fn check_next(
    spec: &StreamSpec,
    streams: &[&StreamSpec],
    position: &HashMap<StreamId, usize>,
) -> Result<Option<usize>, CompileError> {
    let Some(next) = spec.next else {
        return Ok(None);
    };
    let stream = spec.id;
    let Some(&successor) = position.get(&next) else {
        return Err(CompileError::NextUnknown { stream, next });
    };
    if spec.mode == Mode::Continuous {
        return Err(CompileError::ContinuousNext(stream));
    }
    if next == stream && spec.action_count == 0 {
        return Err(CompileError::EndlessSelfLoop(stream));
    }
    if streams[successor].is_sequenced() != spec.is_sequenced() {
        return Err(CompileError::SequencedChain { stream, next });
    }
    if streams[successor].core != spec.core {
        return Err(CompileError::PinnedChain { stream, next });
    }
    Ok(Some(successor))
}

/// Every loop must take time or have an end; else one instant would hold endless packets.
fn check_loops(chains: &Chains<'_>) -> Result<(), CompileError> {
    // The walk that a stream was first seen in; a walk that meets itself has closed a loop.
    let mut seen_in = vec![usize::MAX; chains.streams.len()];
    for start in 0..chains.streams.len() {
        let mut at = Some(start);
        while let Some(i) = at {
            if seen_in[i] == start {
                check_loop(chains, i)?;
                break;
            }
            if seen_in[i] != usize::MAX {
                break;
            }
            seen_in[i] = start;
            at = chains.next[i];
        }
    }
    Ok(())
}

fn check_loop(chains: &Chains<'_>, first: usize) -> Result<(), CompileError> {
    let mut i = first;
    loop {
        let spec = chains.streams[i];
        if takes_time(spec) || spec.action_count > 0 {
            return Ok(());
        }
        i = chains.next[i].expect("every stream of a loop has a successor");
        if i == first {
            return Err(CompileError::TimelessLoop(chains.streams[first].id));
        }
    }
}

fn takes_time(spec: &StreamSpec) -> bool {
    spec.start_delay > 0
        || match spec.mode {
            Mode::Continuous => true,
            Mode::SingleBurst { packets } => packets > 1,
            Mode::MultiBurst {
                packets_per_burst,
                gap,
                bursts,
            } => packets_per_burst > 1 || (gap > 0 && bursts > 1),
        }
}

fn check_reachable(chains: &Chains<'_>) -> Result<(), CompileError> {
    let mut reached = vec![false; chains.streams.len()];
    for start in 0..chains.streams.len() {
        let mut at = Some(start).filter(|&i| chains.streams[i].self_start);
        while let Some(i) = at.filter(|&i| !reached[i]) {
            reached[i] = true;
            at = chains.next[i];
        }
    }
    match reached.iter().position(|&reached| !reached) {
        Some(i) => Err(CompileError::Unreachable(chains.streams[i].id)),
        None => Ok(()),
    }
}
