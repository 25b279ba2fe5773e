//! What can be asked of receive queues.

use allosaur_engine::capture::Captured;
use allosaur_engine::transmit::PortIndex;

use crate::rx_taps::tap_request::TapRequest;

/// What can be asked of receive queues.
#[derive(Debug)]
pub enum RxQueueRequest {
    /// Keep the last `packets_max` frames that a port receives; 0 is no more.
    Set {
        /// The port.
        port: PortIndex,
        /// Frames to keep.
        packets_max: u32,
    },
    /// Take all frames out of a port's queue.
    Take(PortIndex),
}

/// What receive queues answer.
#[derive(Debug, PartialEq)]
pub enum RxQueueAnswer {
    /// It is done.
    Done,
    /// The port has no queue.
    Unknown,
    /// The frames of a queue.
    Packets(Vec<Captured>),
}

impl TapRequest for RxQueueRequest {
    type Answer = RxQueueAnswer;

    fn looks_back(&self) -> bool {
        matches!(self, RxQueueRequest::Take(_))
    }
}
