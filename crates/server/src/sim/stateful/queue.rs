//! The transmit queue of a simulated port: what an engine sends waits here for the link.

use allosaur_engine::time::{Due, Gap, Nanos};
use allosaur_engine::transmit::{FrameHandle, PortIndex, QueueOp, Transmit, TxQueues};

/// Frames of one engine, in the order of sending.
#[derive(Debug)]
pub(super) struct Queue {
    frames: Vec<Vec<u8>>,
    /// Frames that it takes in a turn.
    room: usize,
}

impl Queue {
    /// A queue that takes so many frames between two calls of [`take`](Queue::take).
    pub(super) fn new(room: usize) -> Queue {
        Queue {
            frames: Vec::new(),
            room,
        }
    }

    /// What was sent since the last time.
    pub(super) fn take(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.frames)
    }
}

impl TxQueues for Queue {
    fn with_queue<J: QueueOp>(&mut self, _port: PortIndex, job: J) -> J::Output {
        job.run(self)
    }
}

impl Transmit for Queue {
    const REUSES: bool = false;

    fn slot(&mut self, _at: Nanos, len: usize) -> Option<&mut [u8]> {
        if self.frames.len() >= self.room {
            return None;
        }
        // Not zeros: who leaves a byte unwritten shall be seen.
        self.frames.push(vec![0xcc; len]);
        self.frames.last_mut().map(Vec::as_mut_slice)
    }

    fn repeat(&mut self, _: FrameHandle, _: Due, _: Gap, _: u32) -> u32 {
        unreachable!("flows register no frame")
    }

    fn reuse(&mut self, _: Nanos, _: FrameHandle, _: usize) -> Option<&mut [u8]> {
        unreachable!("flows register no frame")
    }

    fn register(&mut self, _: &[u8]) -> Option<FrameHandle> {
        None
    }

    fn unregister(&mut self, _: FrameHandle) {}
}
