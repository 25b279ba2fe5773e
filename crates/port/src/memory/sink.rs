//! The transmit queue of a port without a peer: frames are counted and forgotten.

use std::sync::Arc;

use super::ring::FRAME_BYTES_MAX;
use crate::buffers::{BufferSpace, Gauge};
use crate::registered::Registered;
use crate::{FrameId, TxQueue};

/// Frames are written behind each other into this much memory, over and over: little enough to
/// stay in the nearest cache.
const AREA_BYTES: usize = 16 * 1024;
/// Frames begin at multiples of this.
const ALIGNMENT_BYTES: usize = 64;

/// A transmit queue that counts frames and forgets them.
#[derive(Debug)]
pub struct SinkTx {
    area: Box<[u8]>,
    position: usize,
    sent_packets: u64,
    /// For taps, as nothing else reads them.
    registered: Registered,
}

/// What a sink could hold: nothing waits in it.
#[derive(Debug)]
struct SinkGauge;

impl Gauge for SinkGauge {
    fn space(&self, frame_bytes: usize) -> BufferSpace {
        let total = (AREA_BYTES / frame_bytes.max(1)) as u64;
        BufferSpace { free: total, total }
    }
}

impl SinkTx {
    pub(super) fn new() -> SinkTx {
        SinkTx {
            area: vec![0; AREA_BYTES + FRAME_BYTES_MAX].into_boxed_slice(),
            position: 0,
            sent_packets: 0,
            registered: Registered::new(),
        }
    }

    /// How full it is, for others to look at.
    pub(crate) fn gauge(&self) -> Arc<dyn Gauge> {
        Arc::new(SinkGauge)
    }

    /// Frames that were sent here.
    pub fn sent_packets(&self) -> u64 {
        self.sent_packets
    }
}

impl TxQueue for SinkTx {
    #[inline(always)]
    fn slot(&mut self, _now_ns: u64, len: usize) -> Option<&mut [u8]> {
        let start = self.position;
        self.position = (start + len + ALIGNMENT_BYTES - 1) & !(ALIGNMENT_BYTES - 1);
        if self.position >= AREA_BYTES {
            self.position = 0;
        }
        self.sent_packets += 1;
        Some(&mut self.area[start..start + len])
    }

    fn has_room(&mut self, _now_ns: u64, _len: usize) -> bool {
        true
    }

    #[inline(always)]
    fn repeat(&mut self, _now_ns: u64, _frame: FrameId, count: u32) -> u32 {
        self.sent_packets += u64::from(count);
        count
    }

    fn register(&mut self, frame: &[u8]) -> Option<FrameId> {
        self.registered.insert(frame.into())
    }

    fn unregister(&mut self, frame: FrameId) {
        self.registered.remove(frame);
    }

    fn copy_registered(&self, frame: FrameId, copy: &mut Vec<u8>) {
        copy.clear();
        copy.extend_from_slice(self.registered.frame(frame));
    }

    #[inline(always)]
    fn flush(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_finds_room_and_every_frame_is_counted() {
        let mut sink = SinkTx::new();
        for len in 0..=FRAME_BYTES_MAX {
            let slot = sink.slot(0, len).expect("a sink is never full");
            assert_eq!(slot.len(), len);
            slot.fill(0xee);
        }
        let frame = sink.register(&[0; 60]).expect("a sink keeps nothing");
        assert_eq!(sink.repeat(0, frame, 1000), 1000);
        assert_eq!(sink.sent_packets(), FRAME_BYTES_MAX as u64 + 1 + 1000);
    }

    #[test]
    fn short_frames_use_the_area_in_turn() {
        let mut sink = SinkTx::new();
        let mut starts: Vec<usize> = Vec::new();
        for _ in 0..=AREA_BYTES / ALIGNMENT_BYTES {
            let slot = sink.slot(0, 60).expect("a sink is never full");
            starts.push(slot.as_ptr().addr());
        }
        assert_eq!(starts.pop(), Some(starts[0]));
        starts.dedup();
        assert_eq!(starts.len(), AREA_BYTES / ALIGNMENT_BYTES);
    }
}
