//! Frames on their way out.

/// A frame to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit<'q> {
    /// The port that it leaves by.
    pub port: u16,
    /// All of it, without the frame check sequence. Not padded.
    pub frame: &'q [u8],
}

/// Frames that wait to be sent, in one block of memory that is used again.
#[derive(Debug, Default)]
pub(crate) struct TxQueue {
    bytes: Vec<u8>,
    frames: Vec<(u16, u32)>,
    /// The next frame to give out, and where it begins.
    next: usize,
    at: usize,
    pub(crate) packets: u64,
    pub(crate) octets: u64,
}

impl TxQueue {
    /// Room for a frame of `len` zeros.
    #[inline]
    pub(crate) fn push(&mut self, port: u16, len: usize) -> &mut [u8] {
        let at = self.bytes.len();
        self.bytes.resize(at + len, 0);
        let end = u32::try_from(self.bytes.len()).expect("the queue is drained after every call");
        self.frames.push((port, end));
        self.packets += 1;
        self.octets += len as u64;
        &mut self.bytes[at..]
    }

    /// The next frame.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Transmit<'_>> {
        let Some(&(port, end)) = self.frames.get(self.next) else {
            self.bytes.clear();
            self.frames.clear();
            (self.next, self.at) = (0, 0);
            return None;
        };
        let from = std::mem::replace(&mut self.at, end as usize);
        self.next += 1;
        let frame = &self.bytes[from..end as usize];
        Some(Transmit { port, frame })
    }
}
