//! When a thread that receives stays awake: a sleep would be measured with the next frame.

use std::sync::Arc;

use allosaur_engine::time::{Nanos, SECOND};

use crate::counters::ReceiveBlock;

/// For so long after a frame whose latency was measured, or after control has said that there will
/// be some, more are likely.
pub(super) const MEASURING: Nanos = 2 * SECOND;

/// Knows when frames to measure are likely soon.
#[derive(Debug)]
pub(super) struct AwakePolicy {
    /// When the last frame was measured, or announced.
    measured_at: Option<Nanos>,
    /// What control has announced up to now.
    expectations: u64,
    block: Arc<ReceiveBlock>,
}

impl AwakePolicy {
    pub(super) fn new(block: Arc<ReceiveBlock>) -> AwakePolicy {
        AwakePolicy {
            measured_at: None,
            expectations: 0,
            block,
        }
    }

    /// A frame was measured.
    pub(super) fn note(&mut self, now: Nanos) {
        self.measured_at = Some(now);
    }

    /// Whether frames to measure are likely soon.
    pub(super) fn expect_more(&mut self, now: Nanos) -> bool {
        let expectations = self.block.expectations();
        if self.expectations != expectations {
            self.expectations = expectations;
            self.measured_at = Some(now);
        }
        let last = self.measured_at;
        last.is_some_and(|at| now.saturating_sub(at) < MEASURING)
    }
}
