//! What sessions of BGP speakers have counted, as those who read metrics see it.

use std::sync::{Mutex, PoisonError};

use allosaur_api::commands::routes::BgpCounters;

/// What a session has counted, with one writer and any readers.
#[derive(Debug, Default)]
pub struct BgpSessionBlock(Mutex<BgpSessionReading>);

/// What a session had counted when it last did something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BgpSessionReading {
    /// Whether it is established.
    pub is_established: bool,
    /// Tables that wait to be sent.
    pub queued: u64,
    /// What it has counted, without `bytes_unacknowledged`, which is the kernel's.
    pub counters: BgpCounters,
}

impl BgpSessionBlock {
    /// Publishes. Only the thread that has the session may.
    pub fn publish(&self, is_established: bool, queued: u64, counters: BgpCounters) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = BgpSessionReading {
            is_established,
            queued,
            counters,
        };
    }

    /// What was published last.
    pub fn read(&self) -> BgpSessionReading {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
