//! Receive threads beside the first: each reads one more queue of every port that has so many, and
//! counts what arrives. Only the first measures and shows.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use allosaur_engine::time::Nanos;
use allosaur_engine::transmit::PortIndex;
use allosaur_port::kind::PortRx;

use super::port::{self, RxCommand, RxPort, RxReport};
use crate::config::polling::Poll;
use crate::counters::{ArrivalBlock, ReceiveBlock};
use crate::threads::arrivals::FrameForwarder;
use crate::threads::awake::AwakePolicy;
use crate::threads::clock::Clock;
use crate::threads::forward::ForwardTx;
use crate::threads::idle::{self, BusyTime, FrameWakes, SLEEP_EXPECTING, SLEEP_IDLE, Turn};
use crate::threads::mailbox::WorkerEnd;
use crate::threads::waker::Waker;

/// A receive thread beside the first.
#[derive(Debug)]
pub struct SecondaryReceiver {
    ports: Vec<RxPort>,
    mail: Option<WorkerEnd<RxCommand, RxReport>>,
    forward: ForwardTx,
    awake: AwakePolicy,
    block: Arc<ArrivalBlock>,
    clock: Clock,
    time: BusyTime,
}

impl SecondaryReceiver {
    /// One that reads `queues`, one of each port that has so many; `first` is the block of the first
    /// receive thread.
    pub fn new(
        queues: impl IntoIterator<Item = Option<PortRx>>,
        forward: ForwardTx,
        block: Arc<ArrivalBlock>,
        first: Arc<ReceiveBlock>,
        clock: Clock,
    ) -> SecondaryReceiver {
        SecondaryReceiver {
            ports: queues.into_iter().map(RxPort::new).collect(),
            mail: None,
            forward,
            awake: AwakePolicy::new(first),
            block,
            time: BusyTime::new(clock.now_ns()),
            clock,
        }
    }

    /// The same, for queues that control takes and gives.
    #[must_use]
    pub fn told_by(mut self, mail: WorkerEnd<RxCommand, RxReport>) -> SecondaryReceiver {
        self.mail = Some(mail);
        self
    }

    /// Works until `stop` is set. While it waits, `waker` wakes it, and so does a frame that arrives
    /// at a port of the kernel's.
    pub fn run(mut self, poll: Poll, stop: &AtomicBool, waker: &Waker) {
        let clock = self.clock.clone();
        idle::run(&mut self, poll, clock, waker, |_| {
            stop.load(Ordering::Relaxed)
        });
    }

    /// One turn of the loop. Returns how many frames arrived.
    pub fn turn(&mut self) -> usize {
        self.time.begin_turn(self.clock.now_ns());
        port::take_commands(&mut self.mail, &mut self.ports);
        while let Ok((port, reception)) = self.forward.changes.pop() {
            self.ports[usize::from(port)].set(reception);
        }
        let (watched, timed) = (self.forward.watched.any(), self.forward.watched.timed());
        let (mut arrived, mut is_measured) = (0, false);
        for (number, port) in self.ports.iter_mut().enumerate() {
            let mut forward = FrameForwarder {
                copies: &mut self.forward.copies,
                clock: &self.clock,
                port: number as PortIndex,
                is_watched: watched >> number & 1 == 1,
                is_timed: timed >> number & 1 == 1,
                knows_arrivals: port.knows_arrivals(),
            };
            let n = port.receive(self.clock.now_ns(), |arrivals, at, frame| {
                is_measured |= arrivals.handle_frame(at, frame, &mut forward);
            });
            if port.is_news(n) {
                port.arrivals.publish(number, &self.block);
                arrived += n;
            }
        }
        if arrived > 0 && (is_measured || watched != 0) {
            self.forward.flush();
        }
        if is_measured {
            self.awake.note(self.clock.now_ns());
        }
        self.time.end_turn(arrived as u64);
        self.block.publish_time(self.time.counters());
        arrived
    }
}

impl Turn for SecondaryReceiver {
    fn turn(&mut self) -> u64 {
        SecondaryReceiver::turn(self) as u64
    }

    fn next_due(&mut self) -> Option<Nanos> {
        None
    }

    fn is_blocked(&self) -> bool {
        false
    }

    fn frame_wakes(&self) -> FrameWakes {
        FrameWakes::No
    }

    fn sleep_max(&mut self, now: Nanos, _is_woken: bool) -> Option<Nanos> {
        let max = match self.forward.watched.any() {
            0 => SLEEP_IDLE,
            _ => SLEEP_EXPECTING,
        };
        Some(port::sleep_max(self.ports.iter_mut(), now, max))
    }

    fn must_stay_awake(&mut self, now: Nanos) -> bool {
        let measures = self.awake.expect_more(now) || self.forward.watched.timed() != 0;
        measures && self.ports.iter().any(RxPort::is_timed_here)
    }

    fn files(&self, is_quiet: bool) -> impl Iterator<Item = BorrowedFd<'_>> {
        port::files(self.ports.iter(), is_quiet)
    }
}
