//! The reading side of a ring.

use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use allosaur_packet::shared_payload::SplitFrame;

use super::payloads::ReceivedPayloads;
use super::{
    HEADER_BYTES, Line, MESSAGE, Reference, SKIP, SPLIT, Shared, TIME_OFFSET, frame_lines_of,
    line_of, lines_of, split_lines_of,
};
use crate::RxFrame;

/// The consumer gives lines back when it has read this share of the ring, or all there is.
const RELEASE_SHARE: u64 = 16;
/// Frames that are handed over together at most: their lines stay in the cache of the first level.
pub(super) const BURST: usize = 32;

/// The reading side.
#[derive(Debug)]
pub(crate) struct Consumer {
    base: NonNull<Line>,
    capacity: u64,
    /// Where it reads.
    cursor: Cursor,
    /// Lines from there to here may be read.
    visible: u64,
    /// What the producer was told last.
    pub(super) released: u64,
    /// Lines of the frame that `peek` found; zero before.
    front_lines: u64,
    payloads: ReceivedPayloads,
    /// A split frame in one piece, for who wants it so.
    scratch: Vec<u8>,
    shared: Arc<Shared>,
}

// SAFETY: the only consumer of its ring; the memory that `base` points to is kept by `shared`.
unsafe impl Send for Consumer {}

/// A place in a ring to read at.
#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    /// The next record to read.
    position: u64,
    /// The last time record's time.
    time_ns: u64,
}

/// Fills a burst with up to `most` frames; returns how many there are.
#[inline(always)]
fn fill<F>(burst: &mut [F], most: usize, mut next: impl FnMut() -> Option<F>) -> usize {
    let mut frames = 0;
    for place in burst.iter_mut().take(most) {
        let Some(frame) = next() else {
            break;
        };
        *place = frame;
        frames += 1;
    }
    frames
}

impl Consumer {
    /// Reads a ring of so many lines from its beginning.
    pub(super) fn new(shared: Arc<Shared>, capacity: u64) -> Consumer {
        Consumer {
            base: shared.memory.base,
            capacity,
            cursor: Cursor::default(),
            visible: 0,
            released: 0,
            front_lines: 0,
            payloads: ReceivedPayloads::default(),
            scratch: Vec::new(),
            shared,
        }
    }

    /// Hands up to `budget` frames to `each`, as (time sent, bytes); returns how many.
    #[inline]
    pub(crate) fn drain(&mut self, budget: usize, each: &mut impl FnMut(u64, &[u8])) -> usize {
        let mut scratch = std::mem::take(&mut self.scratch);
        let taken = self.drain_by(budget, |ring, _| {
            if !ring.find_frame() {
                return 0;
            }
            let frame = ring.front();
            each(frame.at_ns, frame.bytes(&mut scratch));
            ring.pop();
            1
        });
        self.scratch = scratch;
        taken
    }

    /// The same in bursts of up to [`BURST`] frames.
    pub(crate) fn drain_bursts(
        &mut self,
        budget: usize,
        each: &mut impl FnMut(&[RxFrame<'_>]),
    ) -> usize {
        self.drain_by(budget, |ring, most| {
            let (mut cursor, mut burst) = (ring.cursor, [RxFrame::default(); BURST]);
            let frames = fill(&mut burst, most, || ring.next_whole(&mut cursor));
            if frames > 0 {
                each(&burst[..frames]);
            }
            (ring.cursor, ring.front_lines) = (cursor, 0);
            match frames {
                0 => ring.drain_one(each),
                frames => frames,
            }
        })
    }

    /// A burst of the next frame, whatever it is; returns how many there were.
    fn drain_one(&mut self, each: &mut impl FnMut(&[RxFrame<'_>])) -> usize {
        if !self.find_frame() {
            return 0;
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        let frame = self.front();
        let (at_ns, bytes) = (frame.at_ns, frame.bytes(&mut scratch));
        each(&[RxFrame { at_ns, bytes }]);
        self.scratch = scratch;
        self.pop();
        1
    }

    /// Hands up to `budget` frames to `each` as they are, whole or split, in bursts of up to
    /// [`BURST`]; returns how many.
    pub(crate) fn drain_split(
        &mut self,
        budget: usize,
        each: &mut impl FnMut(&[SplitFrame<'_>]),
    ) -> usize {
        self.drain_by(budget, |ring, most| {
            // Messages are taken between bursts, whose frames are slices of what they told before.
            if !ring.find_frame() {
                return 0;
            }
            let (mut cursor, mut burst) = (ring.cursor, [SplitFrame::default(); BURST]);
            let frames = fill(&mut burst, most, || ring.next_frame(&mut cursor));
            each(&burst[..frames]);
            (ring.cursor, ring.front_lines) = (cursor, 0);
            frames
        })
    }

    /// Takes up to `budget` frames by `take`, which takes some of those that are visible, at most so
    /// many, and none only where none is visible. Looks once for more; returns how many were taken.
    #[inline(always)]
    fn drain_by(
        &mut self,
        budget: usize,
        mut take: impl FnMut(&mut Consumer, usize) -> usize,
    ) -> usize {
        let (mut taken, mut looked) = (0, false);
        while taken < budget {
            let frames = take(self, budget - taken);
            taken += frames;
            if frames == 0 && (std::mem::replace(&mut looked, true) || !self.refresh()) {
                break;
            }
        }
        self.release();
        taken
    }

    /// Looks once at what the producer has published; true if there is something to read.
    #[inline]
    pub(crate) fn refresh(&mut self) -> bool {
        self.visible = self.shared.published.0.load(Ordering::Acquire);
        self.visible != self.cursor.position
    }

    /// The oldest frame of those seen by the last [`refresh`](Consumer::refresh).
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<SplitFrame<'_>> {
        self.find_frame().then(|| self.front())
    }

    /// Leaves the frame that was peeked at behind.
    #[inline(always)]
    pub(crate) fn pop(&mut self) {
        self.cursor.position += self.front_lines;
        self.front_lines = 0;
    }

    /// Gives lines that were read back to the producer, when they are many or all.
    #[inline]
    pub(crate) fn release(&mut self) {
        let read = self.cursor.position - self.released;
        let due = read >= self.capacity / RELEASE_SHARE || self.cursor.position == self.visible;
        if read > 0 && due {
            self.released = self.cursor.position;
            let released = &self.shared.released.0;
            released.store(self.cursor.position, Ordering::Release);
        }
    }

    /// Goes to the next frame, over what is not one; false when no frame is visible.
    #[inline(always)]
    fn find_frame(&mut self) -> bool {
        while self.cursor.position != self.visible {
            let header = self.header(self.cursor.position);
            if header < SKIP {
                self.front_lines = frame_lines_of(header);
                return true;
            }
            if header == MESSAGE {
                self.payloads.take(&self.shared.messages);
                self.cursor.position += 1;
            } else {
                self.cursor = self.behind(self.cursor, header);
            }
        }
        false
    }

    /// The next frame from a place on, if it is whole, and moves the place behind it; none at any other
    /// frame, at a message, and when no frame is visible.
    #[inline(always)]
    fn next_whole(&self, cursor: &mut Cursor) -> Option<RxFrame<'_>> {
        while cursor.position != self.visible {
            let header = self.header(cursor.position);
            if header < SPLIT {
                let bytes = self.bytes(cursor.position, header as usize);
                cursor.position += lines_of(header as usize);
                let at_ns = cursor.time_ns;
                return Some(RxFrame { at_ns, bytes });
            }
            if header < SKIP || header == MESSAGE {
                return None;
            }
            *cursor = self.behind(*cursor, header);
        }
        None
    }

    /// The next frame from a place on, which moves behind it; none at a message, and when no frame is
    /// visible.
    #[inline(always)]
    fn next_frame(&self, cursor: &mut Cursor) -> Option<SplitFrame<'_>> {
        while cursor.position != self.visible {
            let header = self.header(cursor.position);
            if header < SKIP {
                let frame = self.frame(*cursor, header);
                cursor.position += frame_lines_of(header);
                return Some(frame);
            }
            if header == MESSAGE {
                return None;
            }
            *cursor = self.behind(*cursor, header);
        }
        None
    }

    /// The place behind a record that is no frame.
    #[inline]
    fn behind(&self, cursor: Cursor, header: u32) -> Cursor {
        let position = cursor.position;
        if header == SKIP {
            let position = position + self.capacity - position % self.capacity;
            return Cursor { position, ..cursor };
        }
        let record = line_of(self.base, position, self.capacity);
        // SAFETY: the line is published and not released: the producer does not write it. A
        // time record's time is aligned and was written before the record was published.
        let time_ns = unsafe { record.byte_add(TIME_OFFSET).cast::<u64>().read() };
        Cursor {
            position: position + 1,
            time_ns,
        }
    }

    /// The first bytes of the record at `position`, which is visible.
    #[inline(always)]
    fn header(&self, position: u64) -> u32 {
        let record = line_of(self.base, position, self.capacity);
        // SAFETY: the line is inside the memory, published and not released, so the producer
        // does not write it; lines are aligned for u32.
        unsafe { record.cast::<u32>().read() }
    }

    /// The `len` bytes of the frame at `position`, which is visible and whose header says so.
    #[inline(always)]
    fn bytes(&self, position: u64, len: usize) -> &[u8] {
        let record = line_of(self.base, position, self.capacity);
        // SAFETY: the producer wrote `len` bytes behind the header of this frame or head, contiguous,
        // and published all of them at once; they stay untouched until `release`, which needs
        // `&mut self` and so cannot run while the slice lives.
        unsafe {
            let start = record.cast::<u8>().add(HEADER_BYTES);
            slice::from_raw_parts(start.as_ptr(), len)
        }
    }

    /// The frame of any kind at a place, which is visible and whose header is given.
    #[inline(always)]
    fn frame(&self, place: Cursor, header: u32) -> SplitFrame<'_> {
        if header < SPLIT {
            let bytes = self.bytes(place.position, header as usize);
            return SplitFrame::whole(place.time_ns, bytes);
        }
        let head_bytes = (header & !SPLIT) as usize;
        let record = line_of(self.base, place.position, self.capacity);
        // SAFETY: the lines of the record are inside the memory, contiguous, published and not
        // released, so the producer does not write them; it wrote the reference to the end of the
        // last one, aligned, before it published them.
        let reference = unsafe {
            let end = record.add(split_lines_of(head_bytes) as usize);
            end.cast::<Reference>().sub(1).read()
        };
        let Reference {
            number,
            offset,
            len,
            sum,
        } = reference;
        SplitFrame {
            at_ns: place.time_ns,
            head: self.bytes(place.position, head_bytes),
            payload: self.payloads.slice(number, offset, len),
            payload_sum: sum as u16,
        }
    }

    /// The frame at the front, which [`find_frame`](Consumer::find_frame) found there.
    #[inline(always)]
    fn front(&self) -> SplitFrame<'_> {
        self.frame(self.cursor, self.header(self.cursor.position))
    }
}
