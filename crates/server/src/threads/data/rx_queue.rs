//! What the flows of a data thread read of one port: a queue of its own, or a share of one that
//! one thread reads for several.

use std::os::fd::BorrowedFd;

use allosaur_engine::template::Side;
use allosaur_engine::time::Nanos;
use allosaur_port::RxQueue;
use allosaur_port::kind::PortRx;
use allosaur_port::spread::{Sharing, SpreadEnd, SpreadReader, spread_by};

use crate::threads::waker::Waker;

/// All rx queues of a port that one thread reads; most often there is one.
#[derive(Debug)]
pub struct RxQueues(pub Vec<PortRx>);

impl RxQueues {
    fn knows_arrivals(&self) -> bool {
        self.0.iter().all(PortRx::knows_arrivals)
    }

    /// Frames that were lost on the way here.
    pub(super) fn lost_packets(&self) -> u64 {
        self.0.iter().map(PortRx::lost_packets).sum()
    }
}

impl<Q: Into<PortRx>> From<Q> for RxQueues {
    fn from(queue: Q) -> RxQueues {
        RxQueues(vec![queue.into()])
    }
}

impl RxQueue for RxQueues {
    #[inline]
    fn receive(&mut self, now_ns: u64, budget: usize, mut each: impl FnMut(u64, &[u8])) -> usize {
        if let [queue] = &mut self.0[..] {
            return queue.receive(now_ns, budget, each);
        }
        let mut taken = 0;
        for queue in &mut self.0 {
            taken += queue.receive(now_ns, budget - taken, &mut each);
            if taken == budget {
                break;
            }
        }
        // Who was not asked this time is the first the next time.
        self.0.rotate_left(usize::from(taken == budget));
        taken
    }
}

/// A receive queue as a data thread has it.
#[derive(Debug)]
pub enum FlowRx {
    /// All of a port's queue.
    Whole(RxQueues),
    /// The queue of a port, of which other threads get their shares from here.
    Reader {
        /// The queue.
        queue: SpreadReader<RxQueues>,
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
    pub fn share_out(queue: RxQueues, others: Vec<Waker>, side: Side) -> Vec<FlowRx> {
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

    pub(super) fn knows_arrivals(&self) -> bool {
        match self {
            FlowRx::Whole(queues) => queues.knows_arrivals(),
            FlowRx::Reader { queue, .. } => queue.queue().knows_arrivals(),
            FlowRx::Share { knows_arrivals, .. } => *knows_arrivals,
        }
    }

    pub(super) fn lost_packets(&self) -> u64 {
        match self {
            FlowRx::Whole(queues) => queues.lost_packets(),
            FlowRx::Reader { queue, .. } => queue.queue().lost_packets() + queue.lost_packets(),
            FlowRx::Share { .. } => 0,
        }
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

    /// Wakes those whose frames were passed on.
    pub(super) fn wake_others(&mut self) {
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
