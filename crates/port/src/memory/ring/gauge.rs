//! How full a ring is, for others to look at.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Shared, lines_of};
use crate::buffers::{BufferSpace, Gauge};

/// How full a ring is, seen from any thread.
#[derive(Debug)]
pub(super) struct RingGauge {
    pub(super) shared: Arc<Shared>,
    pub(super) capacity: u64,
}

impl Gauge for RingGauge {
    fn space(&self, frame_bytes: usize) -> BufferSpace {
        // In this order: what is released was published before.
        let released = self.shared.released.0.load(Ordering::Acquire);
        let published = self.shared.published.0.load(Ordering::Acquire);
        let waiting = published.saturating_sub(released).min(self.capacity);
        let lines = lines_of(frame_bytes);
        BufferSpace {
            free: (self.capacity - waiting) / lines,
            total: self.capacity / lines,
        }
    }
}
