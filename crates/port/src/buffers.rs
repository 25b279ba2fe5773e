//! How full the transmit queues of a port are, for whoever asks: rings, slots and pools seen from any
//! thread, without the queues.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Frames that find room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferSpace {
    /// Now.
    pub free: u64,
    /// When nothing waits.
    pub total: u64,
}

/// How full one transmit queue is.
pub(crate) trait Gauge: Debug + Send + Sync {
    /// For frames of so many bytes.
    fn space(&self, frame_bytes: usize) -> BufferSpace;
}

/// Slots of one size, some of which wait for the kernel.
#[derive(Debug)]
pub(crate) struct SlotGauge {
    /// How many slots.
    pub(crate) count: u64,
    /// Those that waited when the queue was flushed last.
    pub(crate) waiting: Arc<AtomicU64>,
}

impl Gauge for SlotGauge {
    fn space(&self, _frame_bytes: usize) -> BufferSpace {
        BufferSpace {
            free: self
                .count
                .saturating_sub(self.waiting.load(Ordering::Relaxed)),
            total: self.count,
        }
    }
}

/// How full all transmit queues of a port are.
#[derive(Clone, Debug, Default)]
pub struct Buffers {
    gauges: Vec<Arc<dyn Gauge>>,
    frame_bytes_max: usize,
}

impl Buffers {
    /// Those of queues that send frames up to a length.
    pub(crate) fn new(gauges: Vec<Arc<dyn Gauge>>, frame_bytes_max: usize) -> Buffers {
        Buffers {
            gauges,
            frame_bytes_max,
        }
    }

    /// For frames of so many bytes without FCS, or of the longest that the port sends if that is less.
    pub fn space(&self, frame_bytes: usize) -> BufferSpace {
        let frame_bytes = frame_bytes.min(self.frame_bytes_max);
        let each = self.gauges.iter().map(|gauge| gauge.space(frame_bytes));
        each.fold(BufferSpace::default(), |sum, space| BufferSpace {
            free: sum.free + space.free,
            total: sum.total + space.total,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::PortTx;
    use crate::memory::{LinkSettings, pair, sink};
    use crate::{RxQueue, TxQueue};

    #[test]
    fn a_ring_has_less_room_while_frames_wait_in_it() {
        let (mut a, mut b) = pair(2, 1, &LinkSettings::default());
        let queues = a.tx.drain(..).map(PortTx::Memory).collect::<Vec<_>>();
        let buffers = Buffers::of(&queues);
        let [short, long] = [64, 9216].map(|bytes| buffers.space(bytes));
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
        let now = buffers.space(64);
        assert_eq!((now.total, short.free - now.free), (short.total, 10));
        let mut arrived = 0;
        while arrived < 10 {
            arrived += b.rx.receive(1_000_000_000, 64, |_, _| {});
        }
        assert_eq!(b.rx.receive(1_000_000_000, 64, |_, _| {}), 0);
        assert_eq!(buffers.space(64), short);
    }

    #[test]
    fn every_kind_of_queue_has_room_for_any_frame() {
        let queues = sink(1).tx.into_iter().map(PortTx::Sink);
        let buffers = Buffers::of(&queues.collect::<Vec<_>>());
        assert_eq!(buffers.space(1 << 20), buffers.space(9238));
        assert!(buffers.space(9238).total >= 1);
        let waiting = Arc::new(AtomicU64::new(0));
        let gauge = SlotGauge {
            count: 8,
            waiting: Arc::clone(&waiting),
        };
        waiting.store(3, Ordering::Relaxed);
        assert_eq!(gauge.space(1500), BufferSpace { free: 5, total: 8 });
    }
}
