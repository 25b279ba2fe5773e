//! The transmit queues of memory ports, and the frames that they keep ready.

use super::ring::{FRAME_BYTES_MAX, Producer, Record};
use super::sink::{SINK_BYTES, SinkTx};
use crate::buffers::Gauge;
use crate::{FrameId, TxQueue};

/// What the frames that a queue keeps ready have together at most, in rounded up bytes.
pub const REGISTERED_BYTES_MAX: usize = 16 << 20;
/// A transmit queue of a memory port.
///
/// The kinds are types of their own, so that a caller can branch once a burst and run its loop
/// on the kind itself.
#[derive(Debug)]
pub enum MemoryTx {
    /// Of a port with a peer.
    Ring(RingTx),
    /// Of a port without.
    Sink(SinkTx),
}

impl MemoryTx {
    /// Its room, for others to look at.
    pub(crate) fn gauge(&self) -> Gauge {
        match self {
            MemoryTx::Ring(queue) => Gauge::Ring(queue.ring.gauge()),
            MemoryTx::Sink(_) => Gauge::Bytes(SINK_BYTES),
        }
    }
}

impl TxQueue for MemoryTx {
    #[inline]
    fn slot(&mut self, now_ns: u64, len: usize) -> Option<&mut [u8]> {
        match self {
            MemoryTx::Ring(queue) => queue.slot(now_ns, len),
            MemoryTx::Sink(queue) => queue.slot(now_ns, len),
        }
    }

    fn has_room(&mut self, now_ns: u64, len: usize) -> bool {
        match self {
            MemoryTx::Ring(queue) => queue.has_room(now_ns, len),
            MemoryTx::Sink(queue) => queue.has_room(now_ns, len),
        }
    }

    #[inline]
    fn repeat(&mut self, now_ns: u64, frame: FrameId, count: u32) -> u32 {
        match self {
            MemoryTx::Ring(queue) => queue.repeat(now_ns, frame, count),
            MemoryTx::Sink(queue) => queue.repeat(now_ns, frame, count),
        }
    }

    fn register(&mut self, frame: &[u8]) -> Option<FrameId> {
        match self {
            MemoryTx::Ring(queue) => queue.register(frame),
            MemoryTx::Sink(queue) => queue.register(frame),
        }
    }

    fn unregister(&mut self, frame: FrameId) {
        match self {
            MemoryTx::Ring(queue) => queue.unregister(frame),
            MemoryTx::Sink(queue) => queue.unregister(frame),
        }
    }

    fn copy_registered(&self, frame: FrameId, copy: &mut Vec<u8>) {
        match self {
            MemoryTx::Ring(queue) => queue.copy_registered(frame, copy),
            MemoryTx::Sink(queue) => queue.copy_registered(frame, copy),
        }
    }

    #[inline]
    fn flush(&mut self) {
        match self {
            MemoryTx::Ring(queue) => queue.flush(),
            MemoryTx::Sink(queue) => queue.flush(),
        }
    }
}

/// A transmit queue that writes into a ring to the peer.
#[derive(Debug)]
pub struct RingTx {
    ring: Producer,
    /// By frame number.
    registered: Vec<Option<Record>>,
    /// Numbers that were unregistered, for the next ones.
    free_numbers: Vec<u32>,
    registered_bytes: usize,
}

impl RingTx {
    pub(super) fn new(ring: Producer) -> RingTx {
        RingTx {
            ring,
            registered: Vec::new(),
            free_numbers: Vec::new(),
            registered_bytes: 0,
        }
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
    fn repeat(&mut self, now_ns: u64, frame: FrameId, count: u32) -> u32 {
        let record = self.registered[frame.0 as usize]
            .as_ref()
            .expect("a frame is repeated only while it is registered");
        self.ring.repeat(now_ns, record, count)
    }

    fn register(&mut self, frame: &[u8]) -> Option<FrameId> {
        let record = Record::new(frame);
        let bytes = self.registered_bytes + record.bytes();
        if bytes > REGISTERED_BYTES_MAX {
            return None;
        }
        self.registered_bytes = bytes;
        let number = self.free_numbers.pop().unwrap_or_else(|| {
            self.registered.push(None);
            self.registered.len() as u32 - 1
        });
        self.registered[number as usize] = Some(record);
        Some(FrameId(number))
    }

    fn unregister(&mut self, frame: FrameId) {
        if let Some(record) = self.registered[frame.0 as usize].take() {
            self.registered_bytes -= record.bytes();
            self.free_numbers.push(frame.0);
        }
    }

    fn copy_registered(&self, frame: FrameId, copy: &mut Vec<u8>) {
        let record = self.registered[frame.0 as usize]
            .as_ref()
            .expect("a frame is copied only while it is registered");
        record.copy_frame(copy);
    }

    #[inline]
    fn flush(&mut self) {
        self.ring.flush();
    }
}
