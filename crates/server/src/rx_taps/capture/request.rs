//! What can be asked of captures.

use allosaur_engine::capture::{CaptureSettings, Captured};
use allosaur_engine::time::Nanos;

use crate::rx_taps::endpoint::{Endpoint, PacketSink};
use crate::rx_taps::filter::Filter;
use crate::rx_taps::tap_request::TapRequest;

/// Most captures at a time.
pub const CAPTURES_MAX: usize = 10;
/// Memory for the packets of one capture, and of all of them.
pub const CAPTURE_MEMORY_MAX: u64 = 256 << 20;
/// See [`CAPTURE_MEMORY_MAX`].
pub(in crate::rx_taps) const CAPTURES_MEMORY_MAX: u64 = 512 << 20;

/// What can be asked of captures.
#[derive(Debug)]
pub enum CaptureRequest {
    /// Start a capture.
    Start {
        /// What it wants.
        settings: CaptureSettings,
        /// Which frames.
        filter: Filter,
        /// Where its packets go at once; it keeps them when there is nothing.
        endpoint: Option<(Endpoint, Box<dyn PacketSink>)>,
    },
    /// Take no more packets.
    Stop(u32),
    /// Take packets out of a capture, the oldest first.
    Fetch {
        /// The capture.
        capture: u32,
        /// Packets at most.
        packets_max: usize,
    },
    /// Forget a capture and its packets.
    Remove(u32),
    /// Tell of all captures.
    List,
}

/// What captures answer.
#[derive(Debug, PartialEq)]
pub enum CaptureAnswer {
    /// It is done.
    Done,
    /// There is no such capture.
    Unknown,
    /// There are as many captures as may be.
    Full,
    /// A capture was started.
    Started {
        /// Its number.
        capture: u32,
    },
    /// A capture was stopped.
    Stopped {
        /// Packets to be fetched, or still on the way to the endpoint.
        pending: u64,
        /// Where they go; empty for a capture that keeps them.
        endpoint: String,
    },
    /// Packets out of a capture.
    Packets {
        /// The packets.
        packets: Vec<Captured>,
        /// How many are left.
        pending: u64,
        /// When the capture was started.
        started_at: Nanos,
    },
    /// All captures.
    Captures(Vec<CaptureState>),
}

impl TapRequest for CaptureRequest {
    type Answer = CaptureAnswer;

    fn looks_back(&self) -> bool {
        matches!(self, CaptureRequest::Stop(_) | CaptureRequest::Fetch { .. })
    }
}

/// What is to be told of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureState {
    /// Its number.
    pub number: u32,
    /// What it wants.
    pub settings: CaptureSettings,
    /// The text of its filter.
    pub filter: String,
    /// Whether it takes packets.
    pub is_active: bool,
    /// Frames that it wanted.
    pub matched: u64,
    /// Packets that were fetched, or handed on.
    pub fetched: u64,
    /// Packets that it keeps, or that are on the way to the endpoint.
    pub count: u64,
    /// Their bytes; of all that were handed on for a capture with an endpoint.
    pub bytes: u64,
    /// Frames and packets that found no room on the way to it or to its endpoint.
    pub lost: u64,
    /// Where its packets go.
    pub endpoint: Option<Endpoint>,
}
