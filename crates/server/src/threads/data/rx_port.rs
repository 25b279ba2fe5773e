//! What the flows of a data thread read of one port, from a queue of its own or a share of one that
//! one thread reads for several.

use allosaur_engine::stateful::{Disposition, StatefulEngine};
use allosaur_engine::stats::FrameRun;
use allosaur_engine::template::Side;
use allosaur_engine::time::Nanos;
use allosaur_engine::transmit::{PortIndex, TxQueues};
use allosaur_packet::shared_payload::SplitFrame;
use allosaur_port::RxQueue;
use allosaur_port::kind::PortRx;
use allosaur_port::spread::{SpreadEnd, SpreadReader};

use crate::rx_taps::{MacFilter, ServiceMode};
use crate::threads::arrivals::{Arrivals, FrameForwarder};
use crate::threads::clock::Clock;
use crate::threads::forward::ForwardTx;
use crate::threads::waker::Waker;

/// Frames taken from one port before the next has its turn.
const BUDGET: usize = 64;

/// What a data thread reads of one port, and what it counts there.
#[derive(Debug)]
pub(super) struct FlowRxPort {
    pub(super) port: PortIndex,
    /// Which side of flows the port has, if it has one.
    pub(super) side: Option<Side>,
    /// While the port is in stateful mode.
    pub(super) queue: Option<FlowRx>,
    pub(super) arrivals: Arrivals,
    /// Which frames are for watchers, not for flows.
    pub(super) service: ServiceMode,
    /// Which frames are taken at all; others count nowhere, as on a network card.
    pub(super) mac_filter: MacFilter,
    /// Frames that were.
    pub(super) redirected: u64,
    /// Frames in all turns.
    pub(super) arrived_ever: u64,
    /// The same, when the counters were published.
    pub(super) told_ever: u64,
    /// Frames before the queue came here.
    pub(super) arrived_before: u64,
    /// What was passed between threads by queues that are gone.
    pub(super) passed: PassedFrames,
    /// A split frame in one piece.
    scratch: Vec<u8>,
}

/// Frames that went from the thread that reads a queue to the others that share it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PassedFrames {
    pub(super) sent: u64,
    pub(super) lost: u64,
    pub(super) received: u64,
}

/// What a turn of a port gave, or of several.
#[derive(Default)]
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

impl RxResult {
    /// The next port gave this.
    #[inline]
    pub(super) fn add(&mut self, port: RxResult) {
        self.frames += port.frames;
        self.is_more |= port.is_more;
        self.is_forwarded |= port.is_forwarded;
        self.is_measured |= port.is_measured;
    }
}

impl FlowRxPort {
    pub(super) fn new(port: PortIndex, side: Option<Side>, queue: Option<FlowRx>) -> FlowRxPort {
        FlowRxPort {
            port,
            side,
            queue,
            arrivals: Arrivals::default(),
            service: ServiceMode::Off,
            mac_filter: MacFilter::Any,
            redirected: 0,
            arrived_ever: 0,
            told_ever: 0,
            arrived_before: 0,
            passed: PassedFrames::default(),
            scratch: Vec::new(),
        }
    }

    pub(super) fn port(&self) -> PortIndex {
        self.port
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
        let Some(queue) = &mut self.queue else {
            return RxResult::default();
        };
        let (port, arrivals) = (self.port, &mut self.arrivals);
        let has = |ports: u64| ports >> port & 1 == 1;
        let is_wanted_whole = has(forward_tx.watched.whole());
        let mut forward = FrameForwarder {
            is_watched: has(forward_tx.watched.any()),
            is_timed: has(forward_tx.watched.timed()),
            copies: &mut forward_tx.copies,
            clock,
            port,
            knows_arrivals: queue.knows_arrivals(),
        };
        let (service, redirected) = (self.service, &mut self.redirected);
        let mac_filter = self.mac_filter;
        let passes_all = matches!(mac_filter, MacFilter::Any) && !service.is_filtered();
        let (mut is_measured, mut others) = (false, 0usize);
        let scratch = &mut self.scratch;
        let arrived = queue.receive_split(now, BUDGET, |frames| {
            engine.fetch_asked(port, frames.iter().map(|frame| frame.head));
            let mut run = FrameRun::default();
            let mut told = |frame: &SplitFrame<'_>, disposition| match disposition {
                Disposition::Flow => {
                    run.add(frame.frame_bytes(), &mut arrivals.received);
                    if is_wanted_whole {
                        forward.show(frame.at_ns, frame.bytes(scratch));
                    }
                }
                Disposition::Unmatched | Disposition::Other => {
                    others += 1;
                    let bytes = frame.bytes(scratch);
                    is_measured |= arrivals.handle_frame(frame.at_ns, bytes, &mut forward);
                }
            };
            let is_for_flows = |frame: &SplitFrame<'_>| {
                passes_all || mac_filter.takes(frame.head) && !service.redirects(frame.head)
            };
            // Those for flows together, up to each that is not.
            let mut left = frames;
            while !left.is_empty() {
                let count = left.iter().take_while(|frame| is_for_flows(frame)).count();
                let (ours, others) = left.split_at(count);
                if !ours.is_empty() {
                    engine.handle_frames(now, port, ours, tx_queues, &mut told);
                }
                let Some((other, behind)) = others.split_first() else {
                    break;
                };
                if mac_filter.shows_others() || mac_filter.takes(other.head) {
                    *redirected += 1;
                    told(other, Disposition::Other);
                }
                left = behind;
            }
            run.end(&mut arrivals.received);
        });
        self.arrived_ever += arrived as u64;
        queue.wake_others();
        RxResult {
            frames: arrived,
            is_more: arrived == BUDGET,
            is_forwarded: is_measured
                || is_wanted_whole && arrived > 0
                || others > 0 && forward.is_watched,
            is_measured,
        }
    }
}

/// All rx queues of a port that one thread reads; most often there is one.
#[derive(Debug)]
pub struct RxQueues(pub Vec<PortRx>);

impl RxQueues {
    pub(super) fn knows_arrivals(&self) -> bool {
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

    #[inline]
    fn receive_split(
        &mut self,
        now_ns: u64,
        budget: usize,
        mut each: impl FnMut(&[SplitFrame<'_>]),
    ) -> usize {
        if let [queue] = &mut self.0[..] {
            return queue.receive_split(now_ns, budget, each);
        }
        self.receive(now_ns, budget, |at_ns, bytes| {
            each(&[SplitFrame::whole(at_ns, bytes)]);
        })
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

    #[inline]
    fn receive_split(
        &mut self,
        now_ns: u64,
        budget: usize,
        each: impl FnMut(&[SplitFrame<'_>]),
    ) -> usize {
        match self {
            FlowRx::Whole(queue) => queue.receive_split(now_ns, budget, each),
            FlowRx::Reader { queue, .. } => queue.receive_split(now_ns, budget, each),
            FlowRx::Share { queue, .. } => queue.receive_split(now_ns, budget, each),
        }
    }
}
