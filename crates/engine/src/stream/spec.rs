//! A stream as the user asks for it: template, rate, mode, chain, field engine program.

use crate::flow_stats::Rule;
use crate::time::{FCS_BYTES, LAYER1_OVERHEAD_BYTES, Nanos, SECOND};
use crate::vm::Instruction;

/// The user's number of a stream, unique within its profile.
pub type StreamId = u32;

/// A profile on a port, as control numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProfileKey(pub u32);

/// Shortest packet template, in bytes without FCS: an Ethernet header.
pub const PACKET_BYTES_MIN: usize = 14;
/// Longest packet template, in bytes without FCS.
pub const PACKET_BYTES_MAX: usize = 9238;
/// Shorter templates are padded with zeros to this size, the shortest Ethernet frame without FCS.
pub const PACKET_BYTES_PADDED: usize = 60;
/// Most streams of one profile.
pub const STREAMS_MAX: usize = 20_000;
/// Fastest rate of one stream after the multiplier, in packets per second; faster ones are held
/// to it. No port comes near.
pub const RATE_PPS_MAX: f64 = 1e12;
/// Longest delay before or between bursts: a year.
pub const GAP_MAX: Nanos = 365 * 24 * 3600 * SECOND;

/// One stream.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamSpec {
    /// The user's number.
    pub id: StreamId,
    /// A stream that is not enabled is ignored; pointing to it is an error.
    pub enabled: bool,
    /// Starts with the profile; otherwise only when another stream's `next` names it.
    pub self_start: bool,
    /// The stream that starts when this one ends.
    pub next: Option<StreamId>,
    /// How many times this stream may run; after the last the chain ends. 0 is without limit.
    pub action_count: u32,
    /// Delay before the first packet, each time that the stream starts ("inter-stream gap").
    pub start_delay: Nanos,
    /// The multiplier makes that delay shorter as it makes gaps between packets: so it is in a
    /// chain of single packets, whose delays are all the rate that it has.
    pub scales_delay: bool,
    /// How many packets, in which groups.
    pub mode: Mode,
    /// How fast, before the multiplier.
    pub rate: Rate,
    /// The packet template: [`PACKET_BYTES_MIN`] to [`PACKET_BYTES_MAX`] bytes, without FCS.
    pub packet: Vec<u8>,
    /// Keep the template's source MAC instead of the port's.
    pub keep_source_mac: bool,
    /// Where the destination MAC comes from.
    pub destination_mac: DestinationMac,
    /// Sends nothing and only takes its time: a delay in a chain.
    pub dummy: bool,
    /// Waits where it starts until it is resumed.
    pub start_paused: bool,
    /// Seed of the field engine's random variables; 0 is the same as 1.
    pub random_seed: u32,
    /// Runs on this data core alone.
    pub core: Option<u8>,
    /// What is counted of it, besides the sums of its port.
    pub rule: Option<Rule>,
    /// The field engine program; empty sends the template as it is.
    pub program: Vec<Instruction>,
}

impl StreamSpec {
    /// Whether its packets carry sequence numbers: then one core alone sends them, the lowest of
    /// those that share the profile, and no multiplier changes its rate.
    pub fn is_sequenced(&self) -> bool {
        self.rule.is_some_and(|rule| rule.group.is_latency())
    }
}

/// How many packets a stream sends, in which groups.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    /// Without end.
    Continuous,
    /// A number of packets, once.
    SingleBurst {
        /// Packets in all; at least 1.
        packets: u64,
    },
    /// Bursts with a gap from the last packet of one to the first of the next.
    MultiBurst {
        /// Packets of one burst; at least 1.
        packets_per_burst: u64,
        /// The gap between bursts.
        gap: Nanos,
        /// Bursts in all; at least 1.
        bursts: u64,
    },
}

/// A rate before the multiplier. All are above zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// Packets per second.
    PacketsPerSecond(f64),
    /// Bits per second at layer 1: with FCS, preamble and inter-packet gap.
    BitsPerSecondL1(f64),
    /// Bits per second at layer 2: with FCS.
    BitsPerSecondL2(f64),
    /// Percent of the port's line rate, at layer 1.
    Percent(f64),
}

impl Rate {
    /// This rate in packets per second, for frames of `frame_bytes` on average (without FCS) on a
    /// port of `line_rate_bps` bits per second.
    pub fn packets_per_second(self, frame_bytes: f64, line_rate_bps: f64) -> f64 {
        let l2_bits = (frame_bytes + FCS_BYTES as f64) * 8.0;
        let l1_bits = l2_bits + LAYER1_OVERHEAD_BYTES as f64 * 8.0;
        match self {
            Rate::PacketsPerSecond(pps) => pps,
            Rate::BitsPerSecondL1(bps) => bps / l1_bits,
            Rate::BitsPerSecondL2(bps) => bps / l2_bits,
            Rate::Percent(percent) => percent / 100.0 * line_rate_bps / l1_bits,
        }
    }

    /// The number that the user gave, whatever its unit.
    pub fn value(self) -> f64 {
        match self {
            Rate::PacketsPerSecond(v)
            | Rate::BitsPerSecondL1(v)
            | Rate::BitsPerSecondL2(v)
            | Rate::Percent(v) => v,
        }
    }
}

/// Where a stream's destination MAC comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DestinationMac {
    /// The port's configured or resolved destination.
    #[default]
    Port,
    /// The packet template's own.
    Packet,
    /// The port's, which must have been resolved by ARP.
    Resolved,
}

/// How many packets in which groups, the same form for all modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// [`u64::MAX`] is without end.
    pub(crate) packets_per_burst: u64,
    pub(crate) bursts: u64,
    pub(crate) burst_gap: Nanos,
}
