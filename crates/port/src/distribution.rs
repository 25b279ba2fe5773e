//! Which receive queue of a port a frame arrives at, as far as that is known.

use std::sync::Arc;

use allosaur_packet::rss::Rss;

use crate::sharing::Sharing;

/// Which of a port's receive queues a frame arrives at.
#[derive(Clone, Debug)]
pub enum RxDistribution {
    /// At the queue of the number of the transmit queue by which the peer sent it; where the peer has
    /// more of these, the numbers begin again.
    ByTxQueue,
    /// At the queue of the share that this rule gives it: one by a port of TCP and UDP.
    ByPort(Sharing),
    /// By the hash of a network card, whose first queues are read. Where these are more than the port's
    /// receive queues, the numbers of the port's begin again.
    Rss {
        /// The card's hash and table.
        rss: Arc<Rss>,
        /// How many of the card's queues are read; what arrives at the others does not come here.
        queues: usize,
    },
    /// All frames of one direction of a flow arrive at one queue, and nobody knows at which. Why is
    /// said in words, with the remedy if there is one.
    ByFlow(String),
    /// Nothing is known. Why is said in words, with the remedy if there is one.
    Unknown(String),
}
