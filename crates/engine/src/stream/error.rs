//! Why a profile cannot run: in words, with the remedy.

use thiserror::Error;

use super::spec::{PACKET_BYTES_MAX, PACKET_BYTES_MIN, STREAMS_MAX, StreamId};
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
    /// A packet with a tunnel of its own on a port that has one.
    #[error(
        "stream {0}: the packet is VXLAN by itself, and the port has a tunnel that it would be sent in: \
         take the tunnel away (set_vxlan), or leave it out of the packet"
    )]
    TunnelInTunnel(StreamId),
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
