//! The ring between two memory ports: one producer, one consumer, frames back to back; and the
//! transmit queue that writes into it.
//!
//! # Layout
//!
//! The ring is a power of two of *lines* of 64 bytes, a cache line each. Positions count lines
//! from the start of time and never wrap; a position's place is its low bits. Records stand back
//! to back, each begins a line and none crosses the end of the memory:
//!
//! | record | first 4 bytes | then |
//! |---|---|---|
//! | frame | its length | its bytes, padded to whole lines |
//! | split frame | [`SPLIT`], and the length of its head | its head, padding, and in the last 16 bytes the [`Reference`] to its payload |
//! | message | [`MESSAGE`] | nothing; the consumer takes one from the queue of `payloads` |
//! | time  | [`TIME`] | 4 bytes unused, 8 bytes: the time at which the frames behind it were sent |
//! | skip  | [`SKIP`] | nothing; the next record is at the start of the memory |
//!
//! So a frame of 60 bytes, the shortest there is without FCS, is exactly one line, and a burst
//! that was sent at one time pays for that time once. Of a frame whose payload others share only the
//! headers are in the ring: 2 lines of TCP over IPv4 or IPv6, however long it is.
//!
//! # Who may touch what
//!
//! `released <= consumer's position <= published <= producer's position <= released + capacity`.
//! The consumer reads lines from `released` to `published`, the producer writes the others. Each
//! side owns one index and publishes it with Release; the other side reads it with Acquire, and
//! only when the copy that it keeps no longer says enough.

mod consumer;
mod gauge;
mod payloads;
mod record;

use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use allosaur_packet::prefetch_for_write;
use allosaur_packet::shared_payload::SharedPayload;

use crate::buffers::Gauge;
use crate::registered::Registered;
use crate::{FrameId, TxQueue, copy_payload};
pub(crate) use consumer::Consumer;
use gauge::RingGauge;
use payloads::{Messages, SentPayloads};
use record::Record;

/// Bytes of a line.
pub(super) const LINE_BYTES: usize = 64;
/// Bytes in front of a frame.
const HEADER_BYTES: usize = 4;
/// Header of a record that carries a time.
const TIME: u32 = 1 << 31;
/// Header of a record that says: go on at the start of the memory. Frames are shorter than this.
const SKIP: u32 = 1 << 30;
/// Header of a record that stands for a message of `payloads`.
const MESSAGE: u32 = SKIP | 1;
/// In the header of a frame whose payload is elsewhere: the rest is the length of its head.
const SPLIT: u32 = 1 << 29;
/// How far ahead of the lines that are written others are fetched: the core that read them last has to
/// give them up, which takes longer than to write one, and the processor waits for few at a time.
const PREFETCH_LINES: u64 = 16;
/// Where a time record keeps its time.
const TIME_OFFSET: usize = 8;

/// Longest frame that a ring takes, in bytes without FCS.
pub const FRAME_BYTES_MAX: usize = 9238;
/// Longest slot: a frame, and what a tap puts in front of it.
const SLOT_BYTES_MAX: usize = FRAME_BYTES_MAX + 1;

/// What the ring is made of.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line([u8; LINE_BYTES]);

/// Where the payload of a split frame is.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Reference {
    /// Its number, see `payloads`.
    number: u32,
    offset: u32,
    len: u32,
    sum: u32,
}

const REFERENCE_BYTES: usize = size_of::<Reference>();

/// A number on cache lines of its own, so that its writer disturbs nobody else.
#[derive(Debug)]
#[repr(align(128))]
struct Padded(AtomicU64);

/// Makes a ring of at least `bytes` bytes, rounded up to a power of two.
pub(crate) fn ring(bytes: usize) -> (Producer, Consumer) {
    let least = 2 * lines_of(SLOT_BYTES_MAX) as usize + 2;
    let lines = bytes.div_ceil(LINE_BYTES).max(least).next_power_of_two();
    let shared = Arc::new(Shared {
        published: Padded(AtomicU64::new(0)),
        released: Padded(AtomicU64::new(0)),
        memory: Memory::new(lines),
        messages: Messages::default(),
    });
    let producer = Producer {
        base: shared.memory.base,
        capacity: lines as u64,
        position: 0,
        end: lines as u64,
        published: 0,
        time_ns: 0,
        payloads: SentPayloads::default(),
        shared: Arc::clone(&shared),
    };
    (producer, Consumer::new(shared, lines as u64))
}

/// What both sides hold.
#[derive(Debug)]
struct Shared {
    /// Up to here the producer has written: the consumer may read.
    published: Padded,
    /// Up to here the consumer has read: the producer may write again.
    released: Padded,
    memory: Memory,
    /// What the producer tells of payloads.
    messages: Messages,
}

/// The lines, zeroed by the operating system when they are first touched.
#[derive(Debug)]
struct Memory {
    allocation: NonNull<[u8]>,
    base: NonNull<Line>,
}

impl Memory {
    fn new(lines: usize) -> Memory {
        // A plain zeroed byte vector stays untouched until it is used, which an allocation with
        // an alignment of its own would not; so align by hand.
        let bytes = vec![0u8; (lines + 1) * LINE_BYTES].into_boxed_slice();
        let allocation = NonNull::from(Box::leak(bytes));
        let start = allocation.cast::<u8>();
        let to_line = start.addr().get().wrapping_neg() % LINE_BYTES;
        // SAFETY: `to_line` is below LINE_BYTES and the allocation is one line longer than
        // `lines`, so the lines from there on are inside it.
        let base = unsafe { start.add(to_line) }.cast::<Line>();
        Memory { allocation, base }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: `allocation` came from a box in `new` and is freed only here; producer and
        // consumer hold the `Arc` around it as long as they use `base`.
        drop(unsafe { Box::from_raw(self.allocation.as_ptr()) });
    }
}

// SAFETY: `Memory` only owns the allocation; who may read or write which line is settled by the
// two indices, see the module's documentation.
unsafe impl Send for Memory {}
// SAFETY: as above; `&Memory` gives no access to the lines by itself.
unsafe impl Sync for Memory {}

/// A transmit queue that writes into a ring to the peer.
#[derive(Debug)]
pub struct RingTx {
    ring: Producer,
    registered: Registered<Record>,
}

impl RingTx {
    pub(super) fn new(ring: Producer) -> RingTx {
        RingTx {
            ring,
            registered: Registered::new(),
        }
    }

    /// How full it is, for others to look at.
    pub(crate) fn gauge(&self) -> Arc<dyn Gauge> {
        Arc::new(RingGauge {
            shared: Arc::clone(&self.ring.shared),
            capacity: self.ring.capacity,
        })
    }
}

impl TxQueue for RingTx {
    #[inline(always)]
    fn slot(&mut self, now_ns: u64, len: usize) -> Option<&mut [u8]> {
        assert!(len <= FRAME_BYTES_MAX, "frame too long for a port");
        self.ring.slot(now_ns, len)
    }

    fn has_room(&mut self, now_ns: u64, len: usize) -> bool {
        assert!(len <= FRAME_BYTES_MAX, "frame too long for a port");
        self.ring.has_room(now_ns, len)
    }

    #[inline]
    fn slot_sharing(
        &mut self,
        now_ns: u64,
        head_bytes: usize,
        payload: SharedPayload<'_>,
    ) -> Option<&mut [u8]> {
        let len = head_bytes + payload.len;
        assert!(len <= FRAME_BYTES_MAX, "frame too long for a port");
        match self.ring.payload_number(payload.bytes) {
            Some(number) => self.ring.slot_split(now_ns, head_bytes, number, payload),
            None => copy_payload(self, now_ns, head_bytes, payload),
        }
    }

    fn forget_payloads(&mut self) {
        self.ring.payloads.forget();
    }

    #[inline]
    fn repeat(&mut self, now_ns: u64, frame: FrameId, count: u32) -> u32 {
        self.ring
            .repeat(now_ns, self.registered.frame(frame), count)
    }

    fn register(&mut self, frame: &[u8]) -> Option<FrameId> {
        self.registered.insert(Record::new(frame))
    }

    fn unregister(&mut self, frame: FrameId) {
        self.registered.remove(frame);
    }

    fn copy_registered(&self, frame: FrameId, copy: &mut Vec<u8>) {
        self.registered.frame(frame).copy_frame(copy);
    }

    #[inline]
    fn flush(&mut self) {
        self.ring.flush();
    }
}

/// The writing side.
#[derive(Debug)]
pub(crate) struct Producer {
    base: NonNull<Line>,
    capacity: u64,
    /// Where the next record goes.
    position: u64,
    /// Lines from `position` to here are ours and contiguous.
    end: u64,
    /// What the consumer was told last.
    published: u64,
    /// The time that the consumer will take the next frame to be sent at.
    time_ns: u64,
    payloads: SentPayloads,
    shared: Arc<Shared>,
}

// SAFETY: the only producer of its ring; the memory that `base` points to is kept by `shared`.
unsafe impl Send for Producer {}

impl Producer {
    /// Room for a frame of `len` bytes that is sent at `now_ns`; `None` when the ring is full.
    /// The frame is published by the next [`flush`](Producer::flush).
    #[inline(always)]
    pub(crate) fn slot(&mut self, now_ns: u64, len: usize) -> Option<&mut [u8]> {
        assert!(len <= SLOT_BYTES_MAX, "frame too long for a ring");
        let lines = lines_of(len);
        if !self.prepare(now_ns, lines) {
            return None;
        }
        let record = self.line(self.position);
        self.prefetch_ahead(lines);
        self.position += lines;
        // SAFETY: `prepare` made sure that `lines` lines from `record` on are inside the memory
        // and belong to the producer until `flush`, which needs `&mut self` and so cannot run
        // while the slice lives. They are initialised: zeroed at first, then old records.
        unsafe {
            record.cast::<u32>().write(len as u32);
            let bytes = record.cast::<u8>().add(HEADER_BYTES);
            Some(slice::from_raw_parts_mut(bytes.as_ptr(), len))
        }
    }

    /// The same for a frame of `head_bytes` and a payload, which the consumer knows by `number`: room
    /// for the head.
    ///
    /// # Panics
    ///
    /// When the payload reaches beyond what it is a slice of.
    #[inline(always)]
    fn slot_split(
        &mut self,
        now_ns: u64,
        head_bytes: usize,
        number: u32,
        payload: SharedPayload<'_>,
    ) -> Option<&mut [u8]> {
        let len = payload.slice().len();
        let lines = split_lines_of(head_bytes);
        if !self.prepare(now_ns, lines) {
            return None;
        }
        let record = self.line(self.position);
        self.position += lines;
        // Both fit: a payload is numbered only if all of it can be counted in 32 bits.
        let reference = Reference {
            number,
            offset: payload.offset as u32,
            len: len as u32,
            sum: payload.sum.into(),
        };
        // SAFETY: as in `slot`; the lines have room for the header, the head and the reference,
        // which ends with the last of them and so is aligned to its 16 bytes.
        unsafe {
            record.cast::<u32>().write(SPLIT | head_bytes as u32);
            let end = record.add(lines as usize).cast::<Reference>();
            end.sub(1).write(reference);
            let bytes = record.cast::<u8>().add(HEADER_BYTES);
            Some(slice::from_raw_parts_mut(bytes.as_ptr(), head_bytes))
        }
    }

    /// The number by which the consumer knows a payload, or will when it comes to the frames that are
    /// written next; `None` when there is no room for another one.
    #[inline]
    fn payload_number(&mut self, bytes: &Arc<[u8]>) -> Option<u32> {
        match self.payloads.number(bytes) {
            Some(number) => Some(number),
            None => self.keep_payload(bytes),
        }
    }

    #[cold]
    fn keep_payload(&mut self, bytes: &Arc<[u8]>) -> Option<u32> {
        self.tell_forgotten();
        let can_keep = self.payloads.has_room(bytes) && !self.payloads.has_forgotten;
        if !can_keep || !self.put_message() {
            return None;
        }
        Some(self.payloads.keep(bytes, &self.shared.messages))
    }

    /// Has the consumer forget payloads, if they are to be forgotten and there is room to say so.
    fn tell_forgotten(&mut self) {
        if self.payloads.has_forgotten && self.put_message() {
            self.payloads.tell_forgotten(&self.shared.messages);
        }
    }

    /// Writes a record for a message, which the caller sends before the next flush; false when the
    /// ring is full.
    fn put_message(&mut self) -> bool {
        if self.position == self.end && !self.make_room(1) {
            return false;
        }
        // SAFETY: the line at `position` is before `end`: inside the memory and the producer's.
        unsafe { self.line(self.position).cast::<u32>().write(MESSAGE) };
        self.position += 1;
        true
    }

    /// Asks for `lines` lines that will be written soon. They may still be the consumer's: it is a hint.
    /// Not for split frames: the core that writes those is mostly the one that reads them.
    #[inline(always)]
    fn prefetch_ahead(&self, lines: u64) {
        let ahead = self.position + PREFETCH_LINES;
        for position in ahead..ahead + lines {
            prefetch_for_write(self.line(position).as_ptr());
        }
    }

    /// Whether the next `slot` of these arguments finds room.
    pub(super) fn has_room(&mut self, now_ns: u64, len: usize) -> bool {
        assert!(len <= SLOT_BYTES_MAX, "frame too long for a ring");
        self.prepare(now_ns, lines_of(len))
    }

    /// Makes what was written visible to the consumer.
    #[inline]
    pub(crate) fn flush(&mut self) {
        if self.payloads.has_forgotten {
            self.tell_forgotten();
        }
        if self.published != self.position {
            self.published = self.position;
            let published = &self.shared.published.0;
            published.store(self.position, Ordering::Release);
        }
    }

    /// Makes sure that a record of `lines` fits at `position`, behind a time record if the time
    /// is a new one.
    #[inline(always)]
    fn prepare(&mut self, now_ns: u64, lines: u64) -> bool {
        if now_ns != self.time_ns {
            return self.stamp(now_ns, lines);
        }
        self.position + lines <= self.end || self.make_room(lines)
    }

    /// Writes a time record, if `lines` fit behind it.
    #[inline]
    fn stamp(&mut self, now_ns: u64, lines: u64) -> bool {
        if self.position + 1 + lines > self.end && !self.make_room(1 + lines) {
            return false;
        }
        let record = self.line(self.position);
        // SAFETY: the line at `position` is before `end`: inside the memory and the producer's.
        // A line is aligned to 64, so both fields are aligned.
        unsafe {
            record.cast::<u32>().write(TIME);
            record.byte_add(TIME_OFFSET).cast::<u64>().write(now_ns);
        }
        self.position += 1;
        self.time_ns = now_ns;
        true
    }

    /// Looks again at what the consumer has given back, and goes to the start of the memory if
    /// `lines` do not fit before its end. False when the ring is full.
    #[cold]
    fn make_room(&mut self, lines: u64) -> bool {
        let limit = self.shared.released.0.load(Ordering::Acquire) + self.capacity;
        let to_wrap = self.capacity - self.position % self.capacity;
        if to_wrap < lines {
            if self.position + to_wrap + lines > limit {
                return false;
            }
            // SAFETY: the line at `position` is before `limit`, so it is the producer's; every
            // line is inside the memory.
            unsafe { self.line(self.position).cast::<u32>().write(SKIP) };
            self.position += to_wrap;
        }
        let wrap = self.position - self.position % self.capacity + self.capacity;
        self.end = limit.min(wrap);
        self.position + lines <= self.end
    }

    #[inline(always)]
    fn line(&self, position: u64) -> NonNull<Line> {
        line_of(self.base, position, self.capacity)
    }
}

/// The line of a position: the capacity is a power of two and `base` has as many lines.
#[inline(always)]
fn line_of(base: NonNull<Line>, position: u64, capacity: u64) -> NonNull<Line> {
    let index = (position & (capacity - 1)) as usize;
    // SAFETY: `index` is below the capacity, the number of lines that `base` points to.
    unsafe { base.add(index) }
}

/// Lines that a frame of `len` bytes takes with its header.
#[inline(always)]
fn lines_of(len: usize) -> u64 {
    (len + HEADER_BYTES).div_ceil(LINE_BYTES) as u64
}

/// Lines that a split frame takes with its header and the reference to its payload.
#[inline(always)]
fn split_lines_of(head_bytes: usize) -> u64 {
    (HEADER_BYTES + head_bytes + REFERENCE_BYTES).div_ceil(LINE_BYTES) as u64
}

/// Lines of a frame with this header.
#[inline(always)]
fn frame_lines_of(header: u32) -> u64 {
    if header < SPLIT {
        lines_of(header as usize)
    } else {
        split_lines_of((header & !SPLIT) as usize)
    }
}

#[cfg(test)]
mod tests;
