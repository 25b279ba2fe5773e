//! The frames that a transmit queue keeps ready, see [`TxQueue::register`](crate::TxQueue::register).

use crate::FrameId;

/// What the frames that a queue keeps ready have together at most.
pub(crate) const REGISTERED_BYTES_MAX: usize = 16 << 20;

/// A frame in the form in which a queue keeps it.
pub(crate) trait RegisteredFrame {
    /// The memory that it takes.
    fn bytes(&self) -> usize;
}

impl RegisteredFrame for Box<[u8]> {
    fn bytes(&self) -> usize {
        self.len()
    }
}

/// Frames by number, [`REGISTERED_BYTES_MAX`] together at most.
#[derive(Debug)]
pub(crate) struct Registered<F = Box<[u8]>> {
    frames: Vec<Option<F>>,
    /// Numbers that were removed, for the next ones.
    free_numbers: Vec<u32>,
    bytes: usize,
}

impl<F: RegisteredFrame> Registered<F> {
    /// None yet.
    pub(crate) fn new() -> Registered<F> {
        Registered {
            frames: Vec::new(),
            free_numbers: Vec::new(),
            bytes: 0,
        }
    }

    /// Keeps a frame; `None` when there is no memory left for it.
    pub(crate) fn insert(&mut self, frame: F) -> Option<FrameId> {
        let bytes = self.bytes + frame.bytes();
        if bytes > REGISTERED_BYTES_MAX {
            return None;
        }
        self.bytes = bytes;
        let number = self.free_numbers.pop().unwrap_or_else(|| {
            self.frames.push(None);
            self.frames.len() as u32 - 1
        });
        self.frames[number as usize] = Some(frame);
        Some(FrameId(number))
    }

    /// Forgets a frame.
    pub(crate) fn remove(&mut self, frame: FrameId) {
        if let Some(removed) = self.frames[frame.0 as usize].take() {
            self.bytes -= removed.bytes();
            self.free_numbers.push(frame.0);
        }
    }

    /// A frame.
    ///
    /// # Panics
    ///
    /// When it is not there.
    #[inline]
    pub(crate) fn frame(&self, frame: FrameId) -> &F {
        let frame = self.frames[frame.0 as usize].as_ref();
        frame.expect("a frame is used only while it is registered")
    }
}
