//! What a receive thread reads of one port, and what it counts there.

use std::os::fd::BorrowedFd;

use allosaur_engine::time::Nanos;
use allosaur_engine::transmit::PortIndex;
use allosaur_port::kind::PortRx;
use allosaur_port::{RxFrame, RxQueue};

use crate::rx_taps::Reception;
use crate::threads::arrivals::Arrivals;
use crate::threads::mailbox::WorkerEnd;

/// What a receive thread shall do with the queue of a port.
#[derive(Debug)]
pub enum RxCommand {
    /// Read it no more; answered by [`RxReport`].
    Detach(PortIndex),
    /// Read this one from now on.
    Attach(PortIndex, Box<PortRx>),
}

/// A receive thread does not read a port; this is what it read until now.
#[derive(Debug)]
pub struct RxReport(pub PortIndex, pub Option<Box<PortRx>>);

/// Does what control says about queues.
#[inline]
pub(super) fn take_commands(
    mail: &mut Option<WorkerEnd<RxCommand, RxReport>>,
    ports: &mut [RxPort],
) {
    let Some(mail) = mail else {
        return;
    };
    while mail.has_room() {
        match mail.receive() {
            None => break,
            Some(RxCommand::Attach(port, queue)) => ports[usize::from(port)].attach(*queue),
            Some(RxCommand::Detach(port)) => {
                let queue = ports[usize::from(port)].detach();
                mail.send(RxReport(port, queue.map(Box::new)));
            }
        }
    }
}

/// Frames taken from one port before the next has its turn.
const BUDGET: usize = 256;

/// One port of a receive thread; without a queue where other threads read all that arrives.
#[derive(Debug)]
pub(super) struct RxPort {
    queue: Option<PortRx>,
    pub(super) arrivals: Arrivals,
}

impl RxPort {
    pub(super) fn new(queue: Option<PortRx>) -> RxPort {
        RxPort {
            queue,
            arrivals: Arrivals::default(),
        }
    }

    /// Reads a queue from now on.
    pub(super) fn attach(&mut self, queue: PortRx) {
        self.arrivals.begin_losses(queue.lost_packets());
        self.queue = Some(queue);
    }

    /// Gives the queue away; what it counted stays here.
    pub(super) fn detach(&mut self) -> Option<PortRx> {
        let queue = self.queue.take()?;
        self.arrivals.end_losses(queue.lost_packets());
        Some(queue)
    }

    pub(super) fn set(&mut self, reception: Reception) {
        if let Some(queue) = &mut self.queue {
            queue.set_up(reception.link_up);
        }
        self.arrivals.set(&reception);
    }

    /// Whether the port has a queue here; else data threads have it.
    pub(super) fn is_read_here(&self) -> bool {
        self.queue.is_some()
    }

    /// Hands what has arrived to `each`. Returns how many frames.
    #[inline]
    pub(super) fn receive(
        &mut self,
        now: Nanos,
        mut each: impl FnMut(&mut Arrivals, Nanos, &[u8]),
    ) -> usize {
        let arrivals = &mut self.arrivals;
        let Some(queue) = &mut self.queue else {
            return 0;
        };
        queue.receive(now, BUDGET, |at, frame| each(arrivals, at, frame))
    }

    /// The same in bursts of frames.
    #[inline]
    pub(super) fn receive_bursts(
        &mut self,
        now: Nanos,
        mut each: impl FnMut(&mut Arrivals, &[RxFrame<'_>]),
    ) -> usize {
        let arrivals = &mut self.arrivals;
        let Some(queue) = &mut self.queue else {
            return 0;
        };
        queue.receive_bursts(now, BUDGET, |frames| each(arrivals, frames))
    }

    /// Whether there is something to publish when so many frames have arrived.
    pub(super) fn is_news(&mut self, arrived: usize) -> bool {
        let lost_packets = self.queue.as_ref().map_or(0, PortRx::lost_packets);
        self.arrivals.is_news(arrived, lost_packets)
    }

    /// Whether the queue tells of each frame when it arrived.
    pub(super) fn knows_arrivals(&self) -> bool {
        self.queue.as_ref().is_some_and(PortRx::knows_arrivals)
    }

    /// Whether a sleep of this thread would be measured. What others forward is answered late by
    /// who sleeps.
    pub(super) fn is_timed_here(&self) -> bool {
        !self.knows_arrivals()
    }

    /// Whether a frame that arrives can wake this thread: the kernel tells, or who sends it in this
    /// process.
    pub(super) fn wakes(&self) -> bool {
        self.queue.as_ref().is_none_or(PortRx::wakes)
    }

    pub(super) fn next_arrival_ns(&mut self) -> Option<Nanos> {
        self.queue.as_mut().and_then(PortRx::next_arrival_ns)
    }

    pub(super) fn file(&self) -> Option<BorrowedFd<'_>> {
        self.queue.as_ref().and_then(PortRx::file)
    }
}

/// The longest sleep of a thread that reads `ports`, which need none longer than `max`.
pub(super) fn sleep_max<'a>(
    ports: impl Iterator<Item = &'a mut RxPort>,
    now: Nanos,
    max: Nanos,
) -> Nanos {
    let arrivals = ports.filter_map(RxPort::next_arrival_ns);
    arrivals.fold(max, |max, at| max.min(at.saturating_sub(now)))
}

/// What becomes readable when a frame arrives at one of `ports`. While frames come, a short sleep
/// gathers some; to be woken for each would cost more.
pub(super) fn files<'a>(
    ports: impl Iterator<Item = &'a RxPort>,
    is_quiet: bool,
) -> impl Iterator<Item = BorrowedFd<'a>> {
    ports.filter(move |_| is_quiet).filter_map(RxPort::file)
}
