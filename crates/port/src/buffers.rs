//! How much room for frames the transmit queues of a port have, for whoever is asked about it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::dpdk::PoolGauge;
use crate::kind::PortTx;
use crate::memory::RingGauge;

/// Frames that find room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferSpace {
    /// Now.
    pub free: u64,
    /// When nothing waits.
    pub total: u64,
}

/// The room of one transmit queue.
#[derive(Clone, Debug)]
pub(crate) enum Gauge {
    /// A ring in memory, where short frames take less of it than long ones.
    Ring(RingGauge),
    /// So many bytes, written over and over: frames are forgotten at once.
    Bytes(u64),
    /// Places of one size, and how many frames wait in them for the kernel.
    Places {
        /// How many places.
        count: u64,
        /// As the queue saw it when it was flushed.
        waiting: Arc<AtomicU64>,
    },
    /// A pool of DPDK's.
    #[cfg_attr(not(feature = "dpdk"), allow(dead_code))]
    Pool(PoolGauge),
}

impl Gauge {
    fn room(&self, frame_bytes: usize) -> BufferSpace {
        match self {
            Gauge::Ring(ring) => ring.room(frame_bytes),
            Gauge::Bytes(bytes) => {
                let total = bytes / frame_bytes.max(1) as u64;
                BufferSpace { free: total, total }
            }
            Gauge::Places { count, waiting } => BufferSpace {
                free: count.saturating_sub(waiting.load(Ordering::Relaxed)),
                total: *count,
            },
            Gauge::Pool(pool) => pool.room(),
        }
    }
}

/// The room of all transmit queues of a port.
#[derive(Clone, Debug, Default)]
pub struct Buffers {
    gauges: Vec<Gauge>,
    frame_bytes_max: usize,
}

impl Buffers {
    /// That of these queues.
    pub fn of(queues: &[PortTx]) -> Buffers {
        Buffers {
            gauges: queues.iter().map(PortTx::gauge).collect(),
            frame_bytes_max: queues
                .iter()
                .map(PortTx::frame_bytes_max)
                .max()
                .unwrap_or(0),
        }
    }

    /// For frames of so many bytes without FCS, or of the longest that the port sends if that is less.
    pub fn room(&self, frame_bytes: usize) -> BufferSpace {
        let frame_bytes = frame_bytes.min(self.frame_bytes_max);
        let rooms = self.gauges.iter().map(|gauge| gauge.room(frame_bytes));
        rooms.fold(BufferSpace::default(), |sum, room| BufferSpace {
            free: sum.free + room.free,
            total: sum.total + room.total,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{LinkSettings, pair, sink};
    use crate::{RxQueue, TxQueue};

    #[test]
    fn a_ring_has_less_room_while_frames_wait_in_it() {
        let (mut a, mut b) = pair(2, 1, &LinkSettings::default());
        let queues = a.tx.drain(..).map(PortTx::Memory).collect::<Vec<_>>();
        let buffers = Buffers::of(&queues);
        let [short, long] = [64, 9216].map(|bytes| buffers.room(bytes));
        assert_eq!((short.free, long.free), (short.total, long.total));
        assert!(
            long.total >= 2 && short.total > 10 * long.total,
            "{short:?} {long:?}"
        );
        let mut queues = queues;
        for _ in 0..10 {
            queues[1].slot(0, 64).expect("room").fill(1);
        }
        queues[1].flush();
        let now = buffers.room(64);
        assert_eq!((now.total, short.free - now.free), (short.total, 10));
        let mut arrived = 0;
        while arrived < 10 {
            arrived += b.rx.receive(1_000_000_000, 64, |_, _| {});
        }
        assert_eq!(b.rx.receive(1_000_000_000, 64, |_, _| {}), 0);
        assert_eq!(buffers.room(64), short);
    }

    #[test]
    fn every_kind_of_queue_has_room_for_any_frame() {
        let queues = sink(1).tx.into_iter().map(PortTx::Memory);
        let buffers = Buffers::of(&queues.collect::<Vec<_>>());
        assert_eq!(buffers.room(1 << 20), buffers.room(9238));
        assert!(buffers.room(9238).total >= 1);
        let waiting = Arc::new(AtomicU64::new(0));
        let gauge = Gauge::Places {
            count: 8,
            waiting: Arc::clone(&waiting),
        };
        waiting.store(3, Ordering::Relaxed);
        assert_eq!(gauge.room(1500), BufferSpace { free: 5, total: 8 });
    }
}
