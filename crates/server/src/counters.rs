//! Counters as control sees them: a copy of what every thread counted.
//!
//! What lives here: the snapshot, and the blocks that threads publish their counters in, each
//! with one writer. What does not: rates and the RPC's names (control derives them).

use allosaur_engine::stats::{DirectionCounters, TransmitCounters};

/// What all threads counted since the server started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Of each port, by port number.
    pub ports: Vec<PortCounters>,
    /// Of each data thread.
    pub cores: Vec<CoreCounters>,
    /// Of the receive thread.
    pub receive: CoreCounters,
}

/// One port, summed over the threads that use it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// What the data threads sent, and what they missed.
    pub transmit: TransmitCounters,
    /// What the receive thread received.
    pub receive: DirectionCounters,
    /// Frames that the link towards this port lost, as it was told to.
    pub receive_lost_packets: u64,
}

/// How busy one thread was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreCounters {
    /// Time spent in turns that did something.
    pub busy_ns: u64,
    /// All the time since the thread started.
    pub total_ns: u64,
}
