//! Datagrams that an application said at once, and how many of them have left.

use crate::app::DatagramBatch;

/// A batch that is being sent, and how much of it has left.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchProgress {
    pub(super) batch: DatagramBatch,
    pub(super) sent_bytes: usize,
}

impl BatchProgress {
    pub(super) fn new(batch: DatagramBatch) -> BatchProgress {
        BatchProgress {
            batch,
            sent_bytes: 0,
        }
    }
}
