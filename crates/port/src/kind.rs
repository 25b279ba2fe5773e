//! Queues of any kind of port, side by side.
//!
//! They are enums, so that a caller can branch once a burst and run its loop on the kind
//! ([`by_kind`](crate::by_kind)).

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use allosaur_packet::shared_payload::{SharedPayload, SplitFrame};

use crate::af_packet::{AfPacketRx, AfPacketTx};
use crate::af_xdp::{AfXdpRx, AfXdpTx};
use crate::buffers::{Buffers, Gauge};
use crate::dpdk::{DpdkRx, DpdkTx};
use crate::memory::{FRAME_BYTES_MAX, MemoryRx, RingTx, SinkTx};
use crate::time::TimeSource;
use crate::{FrameId, RxFrame, RxQueue, TxQueue};

/// A transmit queue of any kind of port.
#[derive(Debug)]
pub enum PortTx {
    /// In memory, with a peer.
    Memory(RingTx),
    /// In memory, without a peer.
    Sink(SinkTx),
    /// On an interface.
    AfPacket(AfPacketTx),
    /// On a hardware queue of an interface.
    AfXdp(AfXdpTx),
    /// On a device of DPDK's.
    Dpdk(DpdkTx),
}

/// A receive queue of any kind of port.
#[derive(Debug)]
pub enum PortRx {
    /// In memory.
    Memory(MemoryRx),
    /// On an interface.
    AfPacket(AfPacketRx),
    /// On hardware queues of an interface.
    AfXdp(AfXdpRx),
    /// On a device of DPDK's.
    Dpdk(DpdkRx),
}

/// Does something with a [`PortTx`], by the type of its kind: what it does compiles once for each.
#[macro_export]
macro_rules! by_kind {
    ($any:expr, $queue:ident => $does:expr) => {
        match $any {
            $crate::kind::PortTx::Memory($queue) => $does,
            $crate::kind::PortTx::Sink($queue) => $does,
            $crate::kind::PortTx::AfPacket($queue) => $does,
            $crate::kind::PortTx::AfXdp($queue) => $does,
            $crate::kind::PortTx::Dpdk($queue) => $does,
        }
    };
}

impl PortTx {
    /// How full it is, for others to look at.
    pub(crate) fn gauge(&self) -> Arc<dyn Gauge> {
        by_kind!(self, queue => queue.gauge())
    }

    /// The longest frame, in bytes without FCS.
    pub fn frame_bytes_max(&self) -> usize {
        match self {
            PortTx::Memory(_) | PortTx::Sink(_) => FRAME_BYTES_MAX,
            PortTx::AfPacket(queue) => queue.frame_bytes_max(),
            PortTx::AfXdp(queue) => queue.frame_bytes_max(),
            PortTx::Dpdk(queue) => queue.frame_bytes_max(),
        }
    }
}

impl Buffers {
    /// Those of these queues.
    pub fn of(queues: &[PortTx]) -> Buffers {
        let longest = queues.iter().map(PortTx::frame_bytes_max).max();
        let gauges = queues.iter().map(PortTx::gauge).collect();
        Buffers::new(gauges, longest.unwrap_or(0))
    }
}

impl From<RingTx> for PortTx {
    fn from(queue: RingTx) -> PortTx {
        PortTx::Memory(queue)
    }
}

impl From<SinkTx> for PortTx {
    fn from(queue: SinkTx) -> PortTx {
        PortTx::Sink(queue)
    }
}

impl From<MemoryRx> for PortRx {
    fn from(queue: MemoryRx) -> PortRx {
        PortRx::Memory(queue)
    }
}

impl TxQueue for PortTx {
    fn slot(&mut self, now_ns: u64, len: usize) -> Option<&mut [u8]> {
        by_kind!(self, queue => queue.slot(now_ns, len))
    }

    fn slot_sharing(
        &mut self,
        now_ns: u64,
        head_bytes: usize,
        payload: SharedPayload<'_>,
    ) -> Option<&mut [u8]> {
        by_kind!(self, queue => queue.slot_sharing(now_ns, head_bytes, payload))
    }

    fn forget_payloads(&mut self) {
        by_kind!(self, queue => queue.forget_payloads())
    }

    fn has_room(&mut self, now_ns: u64, len: usize) -> bool {
        by_kind!(self, queue => queue.has_room(now_ns, len))
    }

    fn repeat(&mut self, now_ns: u64, frame: FrameId, count: u32) -> u32 {
        by_kind!(self, queue => queue.repeat(now_ns, frame, count))
    }

    fn register(&mut self, frame: &[u8]) -> Option<FrameId> {
        by_kind!(self, queue => queue.register(frame))
    }

    fn unregister(&mut self, frame: FrameId) {
        by_kind!(self, queue => queue.unregister(frame))
    }

    fn copy_registered(&self, frame: FrameId, copy: &mut Vec<u8>) {
        by_kind!(self, queue => queue.copy_registered(frame, copy))
    }

    #[inline]
    fn flush(&mut self) {
        by_kind!(self, queue => queue.flush())
    }

    fn has_unsent(&self) -> bool {
        by_kind!(self, queue => queue.has_unsent())
    }

    fn unsent(&mut self, each: &mut dyn FnMut(usize)) {
        by_kind!(self, queue => queue.unsent(each))
    }

    fn take_lost(&mut self, each: &mut dyn FnMut(usize)) {
        by_kind!(self, queue => queue.take_lost(each))
    }

    fn end_traffic(&mut self) -> bool {
        by_kind!(self, queue => queue.end_traffic())
    }
}

impl PortRx {
    /// Shares the queues of one port out anew, over `count` threads if they can be: rings in memory.
    /// Others stay as they are.
    pub fn reshare(queues: Vec<PortRx>, count: usize) -> Vec<PortRx> {
        let (mut memory, mut others) = (Vec::new(), Vec::new());
        for queue in queues {
            match queue {
                PortRx::Memory(queue) => memory.push(queue),
                queue => others.push(queue),
            }
        }
        if !memory.is_empty() {
            let shares = MemoryRx::join(memory).split(count);
            others.extend(shares.into_iter().map(PortRx::Memory));
        }
        others
    }

    /// Frames that were lost on the way to this queue: those that a link was told to lose, and
    /// those that an interface had no room for.
    pub fn lost_packets(&self) -> u64 {
        match self {
            PortRx::Memory(queue) => queue.lost_packets(),
            PortRx::AfPacket(queue) => queue.lost_packets(),
            PortRx::AfXdp(queue) => queue.lost_packets(),
            PortRx::Dpdk(queue) => queue.lost_packets(),
        }
    }

    /// Brings a link in memory up or down; that of an interface is the system's.
    pub fn set_up(&mut self, up: bool) {
        match self {
            PortRx::Memory(queue) => queue.set_up(up),
            PortRx::AfPacket(_) | PortRx::AfXdp(_) | PortRx::Dpdk(_) => {}
        }
    }

    /// When the next frame arrives (or has), where that is known beforehand; on a device of
    /// DPDK's, which tells nobody, when to look for one.
    pub fn next_arrival_ns(&mut self) -> Option<u64> {
        match self {
            PortRx::Memory(queue) => queue.next_arrival_ns(),
            PortRx::AfPacket(_) | PortRx::AfXdp(_) => None,
            PortRx::Dpdk(queue) => Some(queue.next_look_ns()),
        }
    }

    /// Whether it tells of each frame when it arrived, also when that is read later.
    pub fn knows_arrivals(&self) -> bool {
        matches!(self, PortRx::AfPacket(queue) if queue.knows_arrivals())
    }

    /// By which clock it tells when frames arrived, where it knows that by another one.
    pub fn set_clock(&mut self, clock: &Arc<dyn TimeSource>) {
        if let PortRx::AfPacket(queue) = self {
            queue.set_clock(Arc::clone(clock));
        }
    }

    /// Whether only threads of this process send to it.
    pub fn is_memory(&self) -> bool {
        matches!(self, PortRx::Memory(_))
    }

    /// Whether somebody can tell of each frame that arrives: the kernel does, or who sends it in this
    /// process.
    pub fn wakes(&self) -> bool {
        self.is_memory() || self.file().is_some()
    }

    /// What becomes readable when a frame arrives, where the kernel tells.
    pub fn file(&self) -> Option<BorrowedFd<'_>> {
        match self {
            PortRx::Memory(_) | PortRx::Dpdk(_) => None,
            PortRx::AfPacket(queue) => Some(queue.as_fd()),
            PortRx::AfXdp(queue) => Some(queue.as_fd()),
        }
    }
}

impl RxQueue for PortRx {
    #[inline]
    fn receive(&mut self, now_ns: u64, budget: usize, each: impl FnMut(u64, &[u8])) -> usize {
        match self {
            PortRx::Memory(queue) => queue.receive(now_ns, budget, each),
            PortRx::AfPacket(queue) => queue.receive(now_ns, budget, each),
            PortRx::AfXdp(queue) => queue.receive(now_ns, budget, each),
            PortRx::Dpdk(queue) => queue.receive(now_ns, budget, each),
        }
    }

    #[inline]
    fn receive_bursts(
        &mut self,
        now_ns: u64,
        budget: usize,
        each: impl FnMut(&[RxFrame<'_>]),
    ) -> usize {
        match self {
            PortRx::Memory(queue) => queue.receive_bursts(now_ns, budget, each),
            PortRx::AfPacket(queue) => queue.receive_bursts(now_ns, budget, each),
            PortRx::AfXdp(queue) => queue.receive_bursts(now_ns, budget, each),
            PortRx::Dpdk(queue) => queue.receive_bursts(now_ns, budget, each),
        }
    }

    #[inline]
    fn receive_split(
        &mut self,
        now_ns: u64,
        budget: usize,
        each: impl FnMut(&[SplitFrame<'_>]),
    ) -> usize {
        match self {
            PortRx::Memory(queue) => queue.receive_split(now_ns, budget, each),
            PortRx::AfPacket(queue) => queue.receive_split(now_ns, budget, each),
            PortRx::AfXdp(queue) => queue.receive_split(now_ns, budget, each),
            PortRx::Dpdk(queue) => queue.receive_split(now_ns, budget, each),
        }
    }
}
