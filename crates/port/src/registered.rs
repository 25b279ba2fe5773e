//! The frames that a transmit queue keeps ready, see [`TxQueue::register`](crate::TxQueue::register).

use crate::FrameId;
use crate::memory::REGISTERED_BYTES_MAX;

/// Frames by number, [`REGISTERED_BYTES_MAX`] together at most.
#[derive(Debug, Default)]
pub(crate) struct Registered {
    frames: Vec<Option<Box<[u8]>>>,
    /// Numbers that were removed, for the next ones.
    free_numbers: Vec<u32>,
    bytes: usize,
}

impl Registered {
    /// Keeps a copy; `None` when there is no room.
    pub(crate) fn insert(&mut self, frame: &[u8]) -> Option<FrameId> {
        if self.bytes + frame.len() > REGISTERED_BYTES_MAX {
            return None;
        }
        self.bytes += frame.len();
        let number = self.free_numbers.pop().unwrap_or_else(|| {
            self.frames.push(None);
            self.frames.len() as u32 - 1
        });
        self.frames[number as usize] = Some(frame.into());
        Some(FrameId(number))
    }

    /// Forgets a frame.
    pub(crate) fn remove(&mut self, frame: FrameId) {
        if let Some(removed) = self.frames[frame.0 as usize].take() {
            self.bytes -= removed.len();
            self.free_numbers.push(frame.0);
        }
    }

    /// The bytes of a frame.
    ///
    /// # Panics
    ///
    /// When it is not there.
    pub(crate) fn frame(&self, frame: FrameId) -> &[u8] {
        let frame = self.frames[frame.0 as usize].as_ref();
        frame.expect("a frame is used only while it is registered")
    }
}
