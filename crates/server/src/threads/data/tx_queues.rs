//! The transmit queues of a data thread, as engines see them: adapters by type for each kind of
//! port.

use allosaur_engine::time::{Due, Gap, Nanos};
use allosaur_engine::transmit::{FrameHandle, PortIndex, QueueOp, Transmit, TxQueues};
use allosaur_packet::offload::TxChecksumOffload;
use allosaur_port::kind::PortTx;
use allosaur_port::memory::MemoryTx;
use allosaur_port::tap::{TapIn, Tapped};
use allosaur_port::{FrameId, TxQueue};

/// Why a queue is there.
const SERVED: &str = "control tells a thread only of ports that it serves";

/// The transmit queues of one thread, one of each port that it serves, and the time of the turn.
#[derive(Debug)]
pub(super) struct Queues {
    now: Nanos,
    queues: Vec<Option<PortTx>>,
    pub(super) tap: Option<TapIn>,
    /// The ports whose frames are copied, as bits.
    tapped: u64,
}

impl Queues {
    /// Queues, one of each port that is served.
    pub(super) fn new(queues: Vec<Option<PortTx>>, now: Nanos) -> Queues {
        Queues {
            now,
            queues,
            tap: None,
            tapped: 0,
        }
    }

    /// Frames leave at `now` until the next turn; those of the ports in `tapped` are copied.
    #[inline]
    pub(super) fn begin_turn(&mut self, now: Nanos, tapped: u64) {
        self.now = now;
        self.tapped = tapped;
    }

    /// What was written leaves.
    #[inline]
    pub(super) fn flush(&mut self) {
        for queue in self.queues.iter_mut().flatten() {
            queue.flush();
        }
        if let Some(tap) = &mut self.tap {
            tap.flush();
        }
    }

    /// Whether a queue could not pass all on.
    pub(super) fn has_unsent(&self) -> bool {
        self.queues.iter().flatten().any(PortTx::has_unsent)
    }

    /// As `with_queue`, for a port that is watched.
    #[cold]
    fn with_tapped_queue<J: QueueOp>(&mut self, port: PortIndex, op: J) -> J::Output {
        let now = self.now;
        let queue = self.queues[usize::from(port)].as_mut().expect(SERVED);
        let Some(tap) = &mut self.tap else {
            return op.run(&mut Adapter { queue, now });
        };
        let queue = &mut Tapped::new(queue, tap, port);
        op.run(&mut Adapter { queue, now })
    }
}

impl TxQueues for Queues {
    #[inline]
    fn with_queue<J: QueueOp>(&mut self, port: PortIndex, op: J) -> J::Output {
        let now = self.now;
        if self.tapped >> port & 1 == 1 {
            return self.with_tapped_queue(port, op);
        }
        match self.queues[usize::from(port)].as_mut().expect(SERVED) {
            PortTx::Memory(MemoryTx::Ring(queue)) => op.run(&mut Adapter { queue, now }),
            PortTx::Memory(MemoryTx::Sink(queue)) => op.run(&mut Adapter { queue, now }),
            PortTx::AfPacket(queue) => op.run(&mut Adapter { queue, now }),
            PortTx::AfXdp(queue) => op.run(&mut Adapter { queue, now }),
            PortTx::Dpdk(queue) => op.run(&mut Adapter { queue, now }),
        }
    }
}

/// A port's queue as the engine sees it. Packets leave at the time of the turn: their exact time
/// is the engine's account, which the simulator keeps and a port cannot.
struct Adapter<'a, Q> {
    queue: &'a mut Q,
    now: Nanos,
}

impl<Q: TxQueue> Transmit for Adapter<'_, Q> {
    const REUSES: bool = Q::REUSES;

    #[inline(always)]
    fn slot(&mut self, _at: Nanos, len: usize) -> Option<&mut [u8]> {
        self.queue.slot(self.now, len)
    }

    #[inline(always)]
    fn repeat(&mut self, frame: FrameHandle, _first: Due, _gap: Gap, count: u32) -> u32 {
        self.queue.repeat(self.now, FrameId(frame.0), count)
    }

    #[inline(always)]
    fn reuse(&mut self, _at: Nanos, frame: FrameHandle, len: usize) -> Option<&mut [u8]> {
        self.queue.reuse(self.now, FrameId(frame.0), len)
    }

    fn register(&mut self, frame: &[u8]) -> Option<FrameHandle> {
        self.queue.register(frame).map(|id| FrameHandle(id.0))
    }

    fn register_offloaded(
        &mut self,
        frame: &[u8],
        offload: &TxChecksumOffload,
    ) -> Option<FrameHandle> {
        let id = self.queue.register_offloaded(frame, offload)?;
        Some(FrameHandle(id.0))
    }

    fn unregister(&mut self, frame: FrameHandle) {
        self.queue.unregister(FrameId(frame.0));
    }
}
