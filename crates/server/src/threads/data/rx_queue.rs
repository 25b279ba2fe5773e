//! What the flows of a data thread read of one port: a queue of its own, or a share of one that
//! one thread reads for several.

use std::os::fd::BorrowedFd;

use allosaur_engine::stateful::{Disposition, FlowTableCounters, StatefulEngine};
use allosaur_engine::template::Side;
use allosaur_engine::time::Nanos;
use allosaur_engine::transmit::{PortIndex, TxQueues};
use allosaur_port::RxQueue;
use allosaur_port::kind::PortRx;
use allosaur_port::spread::{Sharing, SpreadEnd, SpreadReader, spread_by};

use crate::clock::Clock;
use crate::counters::ArrivalBlock;
use crate::observe::{MacFilter, Reception, ServiceMode};
use crate::threads::arrivals::{Arrivals, FrameForwarder};
use crate::threads::forward::ForwardTx;
use crate::waker::Waker;

/// Frames taken from one port before the next has its turn.
const BUDGET: usize = 64;

/// A receive queue as a data thread has it.
#[derive(Debug)]
pub enum FlowRx {
    /// All of a port's queue.
    Whole(PortRx),
    /// The queue of a port, of which other threads get their shares from here.
    Reader {
        /// The queue.
        queue: SpreadReader<PortRx>,
        /// Wakes the threads of the other shares, in their order.
        others: Vec<Waker>,
    },
    /// A share of a queue that another thread reads.
    Share {
        /// The share.
        queue: SpreadEnd,
        /// Whether the queue tells of each frame when it arrived.
        knows_arrivals: bool,
    },
}

impl FlowRx {
    /// Shares a queue out over threads, the first of which reads it; the others are woken by
    /// `others`. All frames of a flow go to one thread: the one that the client's port belongs to.
    pub fn share_out(queue: PortRx, others: Vec<Waker>, side: Side) -> Vec<FlowRx> {
        let sharing = match side {
            Side::Client => Sharing::ByDestinationPort,
            Side::Server => Sharing::BySourcePort,
        };
        let knows_arrivals = queue.knows_arrivals();
        let (queue, ends) = spread_by(queue, others.len() + 1, sharing);
        let share = |queue| FlowRx::Share {
            queue,
            knows_arrivals,
        };
        let reader = FlowRx::Reader { queue, others };
        std::iter::once(reader)
            .chain(ends.into_iter().map(share))
            .collect()
    }

    /// The real queue, of who reads one.
    fn real(&self) -> Option<&PortRx> {
        match self {
            FlowRx::Whole(queue) => Some(queue),
            FlowRx::Reader { queue, .. } => Some(queue.queue()),
            FlowRx::Share { .. } => None,
        }
    }

    fn real_mut(&mut self) -> Option<&mut PortRx> {
        match self {
            FlowRx::Whole(queue) => Some(queue),
            FlowRx::Reader { queue, .. } => Some(queue.queue_mut()),
            FlowRx::Share { .. } => None,
        }
    }

    fn knows_arrivals(&self) -> bool {
        match self {
            FlowRx::Share { knows_arrivals, .. } => *knows_arrivals,
            _ => self.real().is_some_and(PortRx::knows_arrivals),
        }
    }

    fn lost_packets(&self) -> u64 {
        let real = self.real().map_or(0, PortRx::lost_packets);
        match self {
            FlowRx::Reader { queue, .. } => real + queue.lost_packets(),
            _ => real,
        }
    }

    /// Wakes those whose frames were passed on.
    fn wake_others(&mut self) {
        let FlowRx::Reader { queue, others } = self else {
            return;
        };
        let passed = queue.take_passed();
        // Share 0 is the reader's own.
        for (share, waker) in (1..).zip(others) {
            if passed >> share & 1 == 1 {
                waker.wake();
            }
        }
    }
}

impl RxQueue for FlowRx {
    #[inline]
    fn receive(&mut self, now_ns: u64, budget: usize, each: impl FnMut(u64, &[u8])) -> usize {
        match self {
            FlowRx::Whole(queue) => queue.receive(now_ns, budget, each),
            FlowRx::Reader { queue, .. } => queue.receive(now_ns, budget, each),
            FlowRx::Share { queue, .. } => queue.receive(now_ns, budget, each),
        }
    }
}

/// What a data thread reads of one port, and what it counts there.
#[derive(Debug)]
pub(super) struct FlowRxQueue {
    port: PortIndex,
    /// Which side of flows the port has, if it has one.
    side: Option<Side>,
    queue: FlowRx,
    arrivals: Arrivals,
    /// Which frames are for watchers, not for flows.
    service: ServiceMode,
    /// Which frames are taken at all; others count nowhere, as on a network card.
    mac_filter: MacFilter,
    /// Frames that were.
    redirected: u64,
    /// Frames in all turns.
    arrived_ever: u64,
    /// The same, when the counters were published.
    told_ever: u64,
}

/// What a turn of one rx queue gave.
pub(super) struct RxResult {
    /// Frames that there were.
    pub(super) frames: usize,
    /// More wait.
    pub(super) is_more: bool,
    /// Frames may have been forwarded to the first receive thread.
    pub(super) is_forwarded: bool,
    /// Some were to be measured.
    pub(super) is_measured: bool,
}

impl FlowRxQueue {
    pub(super) fn new(port: PortIndex, side: Option<Side>, queue: FlowRx) -> FlowRxQueue {
        FlowRxQueue {
            port,
            side,
            queue,
            arrivals: Arrivals::default(),
            service: ServiceMode::Off,
            mac_filter: MacFilter::Any,
            redirected: 0,
            arrived_ever: 0,
            told_ever: 0,
        }
    }

    pub(super) fn port(&self) -> PortIndex {
        self.port
    }

    /// How the port shall receive from now on.
    pub(super) fn set(&mut self, reception: Reception) {
        if let Some(queue) = self.queue.real_mut() {
            queue.set_up(reception.link_up);
        }
        self.arrivals.vxlan = reception.vxlan;
        self.service = reception.service;
        self.mac_filter = reception.mac_filter;
    }

    /// Hands what has arrived to the engine; what is no flow's, and all that somebody wants to see,
    /// to the first receive thread.
    #[inline]
    pub(super) fn receive(
        &mut self,
        now: Nanos,
        clock: &Clock,
        engine: &mut StatefulEngine,
        tx_queues: &mut impl TxQueues,
        forward_tx: &mut ForwardTx,
    ) -> RxResult {
        let (port, arrivals) = (self.port, &mut self.arrivals);
        let has = |ports: u64| ports >> port & 1 == 1;
        let is_wanted_whole = has(forward_tx.watched.whole());
        let mut forward = FrameForwarder {
            is_watched: has(forward_tx.watched.any()),
            is_timed: has(forward_tx.watched.timed()),
            copies: &mut forward_tx.copies,
            clock,
            port,
            knows_arrivals: self.queue.knows_arrivals(),
        };
        let (service, redirected) = (self.service, &mut self.redirected);
        let mac_filter = self.mac_filter;
        let (mut is_measured, mut others) = (false, 0usize);
        let arrived = self.queue.receive(now, BUDGET, |at, frame| {
            if !mac_filter.takes(frame) {
                return;
            }
            if service.redirects(frame) {
                (others, *redirected) = (others + 1, *redirected + 1);
                is_measured |= arrivals.handle_frame(at, frame, &mut forward);
                return;
            }
            match engine.handle_frame(now, port, frame, tx_queues) {
                Disposition::Flow => {
                    arrivals.count(frame);
                    if is_wanted_whole {
                        forward.show(at, frame);
                    }
                }
                Disposition::Stray | Disposition::Other => {
                    others += 1;
                    is_measured |= arrivals.handle_frame(at, frame, &mut forward);
                }
            }
        });
        self.arrived_ever += arrived as u64;
        self.queue.wake_others();
        RxResult {
            frames: arrived,
            is_more: arrived == BUDGET,
            is_forwarded: is_measured
                || is_wanted_whole && arrived > 0
                || others > 0 && forward.is_watched,
            is_measured,
        }
    }

    /// Publishes what has changed.
    pub(super) fn publish(&mut self, block: &ArrivalBlock) {
        // The last turn before this may have brought nothing, and those before it much.
        let told = std::mem::replace(&mut self.told_ever, self.arrived_ever);
        let publisher = usize::from(told != self.arrived_ever);
        if self.arrivals.is_news(publisher, self.queue.lost_packets()) {
            self.arrivals.publish(usize::from(self.port), block);
        }
    }

    /// The port whose strays are for watchers, as a bit.
    pub(super) fn lets_strays(&self) -> u64 {
        u64::from(self.service.is_on()) << self.port
    }

    /// Adds what was passed on to the counters of clients or servers.
    pub(super) fn count_passed(&self, tables: &mut [FlowTableCounters; 2]) {
        let table = match self.side {
            Some(Side::Client) => &mut tables[0],
            Some(Side::Server) => &mut tables[1],
            None => return,
        };
        table.redirect_rx_ok += self.redirected;
        match &self.queue {
            FlowRx::Whole(_) => {}
            FlowRx::Reader { queue, .. } => {
                table.rss_redirect_tx += queue.passed_packets();
                table.rss_redirect_drops += queue.lost_packets();
                table.rss_redirect_queue_full += queue.lost_packets();
            }
            FlowRx::Share { .. } => table.rss_redirect_rx += self.arrived_ever,
        }
    }

    /// When the next frame arrives, where that is known beforehand.
    pub(super) fn next_arrival_ns(&mut self) -> Option<Nanos> {
        match &mut self.queue {
            FlowRx::Share { queue, .. } => queue.next_arrival_ns(),
            queue => queue.real_mut().and_then(PortRx::next_arrival_ns),
        }
    }

    /// Whether a sleep would be measured.
    pub(super) fn is_timed_here(&self) -> bool {
        !self.queue.knows_arrivals()
    }

    /// What becomes readable when a frame arrives, where the kernel tells.
    pub(super) fn file(&self) -> Option<BorrowedFd<'_>> {
        self.queue.real().and_then(PortRx::file)
    }
}
