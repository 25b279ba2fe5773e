//! How the rx queue of a port comes to a data thread and goes, what is counted of it, and how one is
//! shared out.

use std::os::fd::BorrowedFd;

use allosaur_engine::stateful::FlowTableCounters;
use allosaur_engine::template::Side;
use allosaur_engine::time::Nanos;
use allosaur_port::kind::PortRx;
use allosaur_port::sharing::Sharing;
use allosaur_port::spread::spread_by;

use super::rx_port::{FlowRx, FlowRxPort, PassedFrames, RxQueues};
use crate::counters::ArrivalBlock;
use crate::rx_taps::Reception;
use crate::threads::waker::Waker;

impl FlowRxPort {
    /// Reads a queue from now on.
    pub(super) fn attach(&mut self, queue: FlowRx) {
        self.arrivals.begin_losses(queue.lost_packets());
        self.arrived_before = self.arrived_ever;
        self.queue = Some(queue);
    }

    /// Whether frames can be read.
    pub(super) fn is_attached(&self) -> bool {
        self.queue.is_some()
    }

    /// Whether it has a share of a queue that another thread reads.
    pub(super) fn is_share(&self) -> bool {
        matches!(self.queue, Some(FlowRx::Share { .. }))
    }

    /// Gives the queue away; what it counted stays here.
    pub(super) fn detach(&mut self) -> Option<FlowRx> {
        self.passed = self.passed();
        let queue = self.queue.take()?;
        self.arrivals.end_losses(queue.lost_packets());
        Some(queue)
    }

    /// How the port shall receive from now on.
    pub(super) fn set(&mut self, reception: Reception) {
        if let Some(queue) = &mut self.queue {
            queue.set_up(reception.link_up);
        }
        self.arrivals.set(&reception);
        self.service = reception.service;
        self.mac_filter = reception.mac_filter;
    }

    /// Publishes what has changed.
    pub(super) fn publish(&mut self, block: &ArrivalBlock) {
        // The last turn before this may have brought nothing, and those before it much.
        let told = std::mem::replace(&mut self.told_ever, self.arrived_ever);
        let publisher = usize::from(told != self.arrived_ever);
        let lost_packets = self.queue.as_ref().map_or(0, FlowRx::lost_packets);
        if self.arrivals.is_news(publisher, lost_packets) {
            self.arrivals.publish(usize::from(self.port), block);
        }
    }

    /// The port whose unmatched frames are for watchers, as a bit.
    pub(super) fn passes_unmatched(&self) -> u64 {
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
        let passed = self.passed();
        table.rss_redirect_tx += passed.sent;
        table.rss_redirect_drops += passed.lost;
        table.rss_redirect_queue_full += passed.lost;
        table.rss_redirect_rx += passed.received;
    }

    fn passed(&self) -> PassedFrames {
        let mut passed = self.passed;
        match &self.queue {
            None | Some(FlowRx::Whole(_)) => {}
            Some(FlowRx::Reader { queue, .. }) => {
                passed.sent += queue.passed_packets();
                passed.lost += queue.lost_packets();
            }
            Some(FlowRx::Share { .. }) => {
                passed.received += self.arrived_ever - self.arrived_before
            }
        }
        passed
    }

    /// When the next frame arrives, where that is known beforehand.
    pub(super) fn next_arrival_ns(&mut self) -> Option<Nanos> {
        self.queue.as_mut().and_then(FlowRx::next_arrival_ns)
    }

    /// Whether a sleep would be measured.
    pub(super) fn is_timed_here(&self) -> bool {
        let queue = self.queue.as_ref();
        queue.is_some_and(|queue| !queue.knows_arrivals())
    }

    /// Whether each frame that arrives wakes this thread: the kernel tells, or who sends it or passes
    /// it on in this process.
    pub(super) fn wakes(&self) -> bool {
        let mut queues = self.queue.iter().flat_map(FlowRx::real);
        queues.all(PortRx::wakes)
    }

    /// What becomes readable when a frame arrives, where the kernel tells.
    pub(super) fn files(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.queue.iter().flat_map(FlowRx::files)
    }
}

impl FlowRx {
    /// Shares a queue out over threads, the first of which reads it; the others are woken by
    /// `others`. By `sharing`, all frames of a flow go to one thread: the one that the client's port
    /// belongs to.
    pub fn share_out(queue: RxQueues, others: Vec<Waker>, sharing: Sharing) -> Vec<FlowRx> {
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

    /// The real queues, of who reads them.
    fn real(&self) -> &[PortRx] {
        match self {
            FlowRx::Whole(queues) => &queues.0,
            FlowRx::Reader { queue, .. } => &queue.queue().0,
            FlowRx::Share { .. } => &[],
        }
    }

    fn real_mut(&mut self) -> &mut [PortRx] {
        match self {
            FlowRx::Whole(queues) => &mut queues.0,
            FlowRx::Reader { queue, .. } => &mut queue.queue_mut().0,
            FlowRx::Share { .. } => &mut [],
        }
    }

    /// The real queues, of who reads them; what was passed on to others they can still read.
    pub(crate) fn into_real(self) -> Vec<PortRx> {
        match self {
            FlowRx::Whole(queues) => queues.0,
            FlowRx::Reader { queue, .. } => queue.into_queue().0,
            FlowRx::Share { .. } => Vec::new(),
        }
    }

    /// Brings a link in memory up or down.
    pub(super) fn set_up(&mut self, up: bool) {
        self.real_mut()
            .iter_mut()
            .for_each(|queue| queue.set_up(up));
    }

    /// When the next frame arrives, where that is known beforehand.
    pub(super) fn next_arrival_ns(&mut self) -> Option<Nanos> {
        match self {
            FlowRx::Share { queue, .. } => queue.next_arrival_ns(),
            queue => {
                let queues = queue.real_mut().iter_mut();
                queues.filter_map(PortRx::next_arrival_ns).min()
            }
        }
    }

    /// What becomes readable when a frame arrives, where the kernel tells.
    pub(super) fn files(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.real().iter().filter_map(PortRx::file)
    }
}
