//! Frames that are kept as records, and copied into a ring again and again.

use super::{FRAME_BYTES_MAX, HEADER_BYTES, LINE_BYTES, Line, Producer, lines_of};
use crate::registered::RegisteredFrame;

/// A frame with its header, ready to be copied into a ring.
#[derive(Debug)]
pub(super) struct Record {
    lines: Box<[Line]>,
    /// Of the frame, without header and padding.
    frame_bytes: usize,
}

impl Record {
    /// Keeps a copy of a frame of at most [`FRAME_BYTES_MAX`] bytes.
    pub(super) fn new(frame: &[u8]) -> Record {
        assert!(frame.len() <= FRAME_BYTES_MAX, "frame too long for a ring");
        let mut bytes = (frame.len() as u32).to_ne_bytes().to_vec();
        bytes.extend_from_slice(frame);
        bytes.resize(lines_of(frame.len()) as usize * LINE_BYTES, 0);
        let mut lines = vec![Line([0; LINE_BYTES]); bytes.len() / LINE_BYTES];
        for (line, bytes) in lines.iter_mut().zip(bytes.chunks_exact(LINE_BYTES)) {
            line.0.copy_from_slice(bytes);
        }
        Record {
            lines: lines.into_boxed_slice(),
            frame_bytes: frame.len(),
        }
    }

    /// Writes the frame to `copy`, in the place of what was there.
    pub(super) fn copy_frame(&self, copy: &mut Vec<u8>) {
        copy.clear();
        for line in &self.lines {
            copy.extend_from_slice(&line.0);
        }
        copy.drain(..HEADER_BYTES);
        copy.truncate(self.frame_bytes);
    }
}

impl RegisteredFrame for Record {
    fn bytes(&self) -> usize {
        self.lines.len() * LINE_BYTES
    }
}

impl Producer {
    /// Writes up to `count` copies of a record; returns how many fitted.
    #[inline]
    pub(super) fn repeat(&mut self, now_ns: u64, record: &Record, count: u32) -> u32 {
        let lines = record.lines.len() as u64;
        let mut left = u64::from(count);
        while left > 0 && self.prepare(now_ns, lines) {
            let room = self.end - self.position;
            let copies = left.min(if lines == 1 { room } else { room / lines });
            self.fill(record, copies as usize);
            self.position += copies * lines;
            left -= copies;
        }
        count - left as u32
    }

    /// Writes `copies` of a record; there is contiguous room for them. Nothing but stores: the processor
    /// sees by itself what comes next.
    #[inline(always)]
    fn fill(&mut self, record: &Record, copies: usize) {
        let lines = record.lines.len();
        debug_assert!(self.position + (copies * lines) as u64 <= self.end);
        let from = record.lines.as_ptr();
        let to = self.line(self.position).as_ptr();
        // SAFETY: `copies * lines` lines from `to` on lie before `end`, so they are inside the
        // memory and the producer's; a record's lines are never part of a ring.
        unsafe {
            match lines {
                1 => fill_with::<1>(from, to, copies),
                2 => fill_with::<2>(from, to, copies),
                _ => {
                    for copy in 0..copies {
                        from.copy_to_nonoverlapping(to.add(copy * lines), lines);
                    }
                }
            }
        }
    }
}

/// Writes `copies` of `LINES` lines; the constant size keeps them in registers.
///
/// # Safety
///
/// `from` is valid for reading `LINES` lines and `to` for writing `copies * LINES`.
#[inline(always)]
unsafe fn fill_with<const LINES: usize>(from: *const Line, to: *mut Line, copies: usize) {
    let to = to.cast::<[Line; LINES]>();
    // SAFETY: the caller says so; arrays of lines have the alignment of a line.
    unsafe {
        let pattern = from.cast::<[Line; LINES]>().read();
        for copy in 0..copies {
            to.add(copy).write(pattern);
        }
    }
}
