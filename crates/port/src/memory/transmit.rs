//! The transmit queues of memory ports, and the frames that they keep ready.

use std::sync::Arc;

use super::ring::{FRAME_BYTES_MAX, Producer, Record};
use super::sink::{SinkGauge, SinkTx};
use crate::buffers::Gauge;
use crate::registered::Registered;
use crate::{FrameId, TxQueue};

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
    /// How full it is, for others to look at.
    pub(crate) fn gauge(&self) -> Arc<dyn Gauge> {
        match self {
            MemoryTx::Ring(queue) => Arc::new(queue.ring.gauge()),
            MemoryTx::Sink(_) => Arc::new(SinkGauge),
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
    registered: Registered<Record>,
}

impl RingTx {
    pub(super) fn new(ring: Producer) -> RingTx {
        RingTx {
            ring,
            registered: Registered::new(),
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
