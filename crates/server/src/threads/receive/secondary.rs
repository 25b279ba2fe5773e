//! Receive threads beside the first: each reads one more queue of every port that has so many.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use allosaur_engine::time::Nanos;
use allosaur_engine::transmit::PortIndex;
use allosaur_port::RxQueue;
use allosaur_port::kind::PortRx;
use allosaur_port::tap::{TapIn, TapOut, TapSwitch, tap};
use rtrb::{Consumer, Producer, RingBuffer};

use super::arrivals::{MEASURE, Passing};
use super::idle::{self, AwakePolicy, SLEEP_IDLE, SLEEP_WATCHING, Turn};
use super::{BUDGET, PortSide};
use crate::clock::Clock;
use crate::counters::{ArrivalBlock, CoreCounters, ReceiveBlock};
use crate::mailbox::Notify;
use crate::observe::{Observer, Reception};
use crate::polling::Poll;

/// Copies taken from one thread before the next has its turn.
const GATHER_BUDGET: usize = 256;
/// Changes of how ports receive that may be under way to one thread.
const CHANGES: usize = 256;
/// Which ports are watched, as the first receive thread tells the others.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    /// Those of which anybody watches what they receive.
    any: TapSwitch,
    /// Those of which somebody wants all that they receive, not only what concerns a host.
    whole: TapSwitch,
    /// Those of which somebody measures by the time of arrival.
    timed: TapSwitch,
}

impl Watched {
    /// The ports that somebody watches, as bits.
    #[inline]
    pub(crate) fn any(&self) -> u64 {
        self.any.ports()
    }

    /// Those of which somebody wants all, as bits.
    #[inline]
    pub(crate) fn whole(&self) -> u64 {
        self.whole.ports()
    }

    /// Those of which somebody measures by the time of arrival, as bits: a sleep would be measured
    /// too.
    #[inline]
    pub(crate) fn timed(&self) -> u64 {
        self.timed.ports()
    }
}

/// What a copy from another thread is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Its latency is measured; the time of the copy is when it arrived.
    Measure,
    /// It is shown to who watches the port.
    Show,
}

/// The way from one other receive thread to the first, its end at the first.
#[derive(Debug)]
pub struct ForwardRx {
    copies: TapOut,
    changes: Producer<(PortIndex, Reception)>,
    /// Changes that found no room yet.
    waiting: VecDeque<(PortIndex, Reception)>,
    notify: Notify,
}

/// The same way, its end at the other thread.
#[derive(Debug)]
pub struct ForwardTx {
    pub(crate) copies: TapIn,
    pub(crate) changes: Consumer<(PortIndex, Reception)>,
    /// The ports that are watched.
    pub(crate) watched: Watched,
    /// Wakes the first receive thread.
    first: Notify,
}

impl ForwardTx {
    /// What was passed on becomes visible to the first thread, which wakes.
    pub(crate) fn flush(&mut self) {
        self.copies.flush();
        self.first.notify();
    }
}

/// A way to another thread, which `notify` wakes; `first` wakes the first, and `watched` says which
/// ports are watched.
pub fn forward_channel(notify: Notify, first: Notify, watched: Watched) -> (ForwardRx, ForwardTx) {
    let (copies_in, copies) = tap();
    let (changes, changes_out) = RingBuffer::new(CHANGES);
    let near = ForwardRx {
        copies,
        changes,
        waiting: VecDeque::new(),
        notify,
    };
    let forward_tx = ForwardTx {
        copies: copies_in,
        changes: changes_out,
        watched,
        first,
    };
    (near, forward_tx)
}

/// The first receive thread's end of the ways to all others.
#[derive(Debug)]
pub(super) struct ForwardedFrames {
    forward_rx: Vec<ForwardRx>,
    watched: Watched,
    /// How each port receives, as the others were told.
    told: Vec<Reception>,
    /// Copies to be shown that found no room, up to now.
    lost: u64,
}

impl ForwardedFrames {
    pub(super) fn new(
        forward_rx: Vec<ForwardRx>,
        watched: Watched,
        ports: usize,
    ) -> ForwardedFrames {
        ForwardedFrames {
            forward_rx,
            watched,
            told: vec![Reception::default(); ports],
            lost: 0,
        }
    }

    /// Says which ports are watched.
    pub(super) fn watch(&self, observer: &Observer) {
        self.watched.any.set(observer.watched_ports());
        self.watched.whole.set(observer.capturing_ports());
        self.watched.timed.set(observer.measured_ports());
    }

    /// Tells the other threads how a port shall receive from now on.
    pub(super) fn set(&mut self, port: usize, reception: Reception) {
        if std::mem::replace(&mut self.told[port], reception) == reception {
            return;
        }
        for forward_channel in &mut self.forward_rx {
            forward_channel
                .waiting
                .push_back((port as PortIndex, reception));
        }
    }

    /// Passes on what waits for room.
    pub(super) fn tell(&mut self) {
        self.forward_rx.iter_mut().for_each(ForwardRx::tell);
    }

    /// Hands copies to `each`, as (what for, time, port, bytes). Returns
    /// how many.
    pub(super) fn attend(
        &mut self,
        mut each: impl FnMut(Purpose, Nanos, PortIndex, &[u8]),
    ) -> usize {
        let mut copies = 0;
        for forward_channel in &mut self.forward_rx {
            copies += forward_channel
                .copies
                .receive(GATHER_BUDGET, |at, number, frame| {
                    let purpose = match number & MEASURE {
                        0 => Purpose::Show,
                        _ => Purpose::Measure,
                    };
                    each(purpose, at, number & !MEASURE, frame);
                });
        }
        copies
    }

    /// Copies to be shown that were lost since the last call.
    pub(super) fn take_lost(&mut self) -> u64 {
        let lost = self
            .forward_rx
            .iter()
            .map(|forward_channel| forward_channel.copies.lost_packets())
            .sum();
        lost - std::mem::replace(&mut self.lost, lost)
    }
}

impl ForwardRx {
    fn tell(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        while let Some(change) = self.waiting.front() {
            if self.changes.push(*change).is_err() {
                break;
            }
            self.waiting.pop_front();
        }
        self.notify.notify();
    }
}

/// A receive thread beside the first.
#[derive(Debug)]
pub struct SecondaryReceiver {
    /// Of the ports that have so many queues.
    ports: Vec<Option<PortSide>>,
    end: ForwardTx,
    attention: AwakePolicy,
    block: Arc<ArrivalBlock>,
    clock: Clock,
    started_at: Nanos,
    busy_ns: Nanos,
}

impl SecondaryReceiver {
    /// One that reads `queues`, one of each port that has so many; `first` is the block of the first
    /// receive thread.
    pub fn new(
        queues: impl IntoIterator<Item = Option<PortRx>>,
        end: ForwardTx,
        block: Arc<ArrivalBlock>,
        first: Arc<ReceiveBlock>,
        clock: Clock,
    ) -> SecondaryReceiver {
        let ports = queues.into_iter().map(|queue| queue.map(PortSide::new));
        SecondaryReceiver {
            ports: ports.collect(),
            end,
            attention: AwakePolicy::new(first),
            block,
            started_at: clock.now_ns(),
            clock,
            busy_ns: 0,
        }
    }

    /// Works until `stop` is set. While it waits, `notify` wakes it, and so does a frame that arrives
    /// at a port of the kernel's.
    pub fn run(self, poll: Poll, stop: &AtomicBool, notify: &Notify) {
        let clock = self.clock.clone();
        idle::run(self, &clock, poll, stop, notify);
    }

    /// One turn of the loop. Returns how many frames arrived.
    pub fn turn(&mut self) -> usize {
        let now = self.clock.now_ns();
        while let Ok((port, reception)) = self.end.changes.pop() {
            if let Some(side) = &mut self.ports[usize::from(port)] {
                side.set(reception);
            }
        }
        let watched = self.end.watched.any();
        let (mut arrived, mut measured) = (0, false);
        for (number, side) in self.ports.iter_mut().enumerate() {
            let Some(side) = side else {
                continue;
            };
            let forward_channel = Passing {
                copies: &mut self.end.copies,
                clock: &self.clock,
                port: number as PortIndex,
                is_watched: watched >> number & 1 == 1,
                is_timed: self.end.watched.timed() >> number & 1 == 1,
                knows_arrivals: side.queue.knows_arrivals(),
            };
            let (n, to_measure) = side.gather(self.clock.now_ns(), forward_channel);
            measured |= to_measure;
            if side.is_news(n) {
                side.arrivals.publish(number, &self.block);
                arrived += n;
            }
        }
        if arrived > 0 && (measured || watched != 0) {
            self.end.flush();
        }
        self.publish_time(now, arrived, measured);
        arrived
    }

    fn publish_time(&mut self, now: Nanos, arrived: usize, measured: bool) {
        let end = self.clock.now_ns();
        if measured {
            self.attention.note(end);
        }
        if arrived > 0 {
            self.busy_ns += end - now;
        }
        self.block.publish_time(CoreCounters {
            busy_ns: self.busy_ns,
            total_ns: end - self.started_at,
        });
    }
}

impl Turn for SecondaryReceiver {
    fn turn(&mut self) -> usize {
        SecondaryReceiver::turn(self)
    }

    fn must_stay_awake(&mut self, now: Nanos) -> bool {
        let mut ports = self.ports.iter().flatten();
        let measures = self.attention.expect_more(now) || self.end.watched.timed() != 0;
        measures && ports.any(|port| !port.queue.knows_arrivals())
    }

    fn sleep_max(&self) -> Nanos {
        match self.end.watched.any() {
            0 => SLEEP_IDLE,
            _ => SLEEP_WATCHING,
        }
    }

    fn queues(&mut self) -> impl Iterator<Item = &mut PortRx> {
        self.ports.iter_mut().flatten().map(|side| &mut side.queue)
    }
}

impl PortSide {
    /// Takes what has arrived, counts it, and passes on what is to be measured or shown. Returns how
    /// many frames there were, and whether any was to be measured.
    fn gather(&mut self, now: Nanos, mut forward_channel: Passing<'_>) -> (usize, bool) {
        let (arrivals, mut measured) = (&mut self.arrivals, false);
        let arrived = self.queue.receive(now, BUDGET, |at, frame| {
            measured |= arrivals.take(at, frame, &mut forward_channel);
        });
        (arrived, measured)
    }
}
