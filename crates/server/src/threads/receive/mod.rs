//! The receive threads: take what arrives at every port, count it, and show it to who watches.
//!
//! This is the first of them, and most often the only one; [`secondary`] are the others. `meters` is
//! latency, [`watch`] the channel to the observer, `arrivals` what all of them count.

pub(crate) mod arrivals;
pub(crate) mod idle;
mod meters;
pub mod secondary;
pub mod watch;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use allosaur_engine::capture::Origin;
use allosaur_engine::flow_stats::receive::{FlowTag, flow_tag_of};
use allosaur_engine::time::Nanos;
use allosaur_engine::transmit::PortIndex;
use allosaur_port::RxQueue;
use allosaur_port::kind::PortRx;

use crate::clock::Clock;
use crate::counters::{CoreCounters, ReceiveBlock};
use crate::mailbox::Notify;
use crate::observe::{Observer, Reception};
use crate::polling::{Poll, SLEEP_MIN};
use arrivals::Arrivals;
use idle::{SLEEP_IDLE, SLEEP_WATCHING, Turn};
use meters::Meters;
use secondary::{ForwardRx, ForwardedFrames, Purpose, Watched};
use watch::Watch;

/// Frames taken from one port before the next has its turn.
const BUDGET: usize = 256;
/// Budgets that are taken at most before control is answered about frames of the past: as much as
/// the ring of a port in memory holds of the shortest frames.
const LOOKS_MAX: usize = 256;

/// The receive side of all ports, or the first share of it.
#[derive(Debug)]
pub struct Receiver {
    ports: Vec<PortSide>,
    meters: Meters,
    watch: Option<Watch>,
    /// What other receive threads pass on, where there are some.
    forwarded: Option<ForwardedFrames>,
    block: Arc<ReceiveBlock>,
    clock: Clock,
    started_at: Nanos,
    busy_ns: Nanos,
}

#[derive(Debug)]
struct PortSide {
    queue: PortRx,
    arrivals: Arrivals,
}

impl PortSide {
    fn new(queue: PortRx) -> PortSide {
        PortSide {
            queue,
            arrivals: Arrivals::default(),
        }
    }

    fn set(&mut self, reception: Reception) {
        self.queue.set_up(reception.link_up);
        self.arrivals.vxlan = reception.vxlan;
    }

    /// Whether there is something to publish when so many frames have arrived.
    fn is_news(&mut self, arrived: usize) -> bool {
        self.arrivals.is_news(arrived, self.queue.lost_packets())
    }

    /// Takes what has arrived, counts it, and shows it to `watch`.
    fn receive(
        &mut self,
        now: Nanos,
        meters: &mut Meters,
        mut watch: Option<(&mut Watch, PortIndex)>,
    ) -> usize {
        let arrivals = &mut self.arrivals;
        let knows_arrivals = self.queue.knows_arrivals();
        let measures = |(watch, port): &(&mut Watch, PortIndex)| {
            watch.observer.measured_ports() >> port & 1 == 1
        };
        let is_timed = !knows_arrivals && watch.as_ref().is_some_and(measures);
        self.queue.receive(now, BUDGET, |at, frame| {
            // First of all what is measured by the clock.
            let group = match flow_tag_of(frame, &arrivals.vxlan) {
                None => None,
                Some(FlowTag::Flow(group)) => Some(group),
                Some(FlowTag::Latency) if knows_arrivals => meters.measure_at(at, frame),
                Some(FlowTag::Latency) => meters.measure(frame),
            };
            if let Some(group) = group {
                arrivals.count_group(group, frame);
            }
            arrivals.count(frame);
            if let Some((watch, port)) = &mut watch {
                let at = if is_timed { meters.now_ns() } else { at };
                watch.observer.handle_received(at, *port, frame);
            }
        })
    }
}

impl Receiver {
    /// A receiver that reads `queues`, one of each port.
    pub fn new(
        queues: impl IntoIterator<Item: Into<PortRx>>,
        block: Arc<ReceiveBlock>,
        clock: Clock,
    ) -> Receiver {
        let started_at = clock.now_ns();
        let ports = queues
            .into_iter()
            .map(Into::into)
            .map(PortSide::new)
            .collect();
        Receiver {
            ports,
            meters: Meters::new(Arc::clone(&block), clock.clone()),
            watch: None,
            forwarded: None,
            block,
            clock,
            started_at,
            busy_ns: 0,
        }
    }

    /// The same, with an observer.
    pub fn watched_by(mut self, watch: Watch) -> Receiver {
        self.watch = Some(watch);
        self
    }

    /// The same, with other receive threads, each at the far end of a way; `watched` tells them which
    /// ports are watched.
    pub fn joined_by(mut self, forward_rx: Vec<ForwardRx>, watched: Watched) -> Receiver {
        let ports = self.ports.len();
        self.forwarded =
            (!forward_rx.is_empty()).then(|| ForwardedFrames::new(forward_rx, watched, ports));
        self
    }

    /// Works until `stop` is set. While it waits, `notify` wakes it, and so does a frame that arrives
    /// at a port of the kernel's.
    pub fn run(self, poll: Poll, stop: &AtomicBool, notify: &Notify) {
        let clock = self.clock.clone();
        idle::run(self, &clock, poll, stop, notify);
    }

    /// One turn of the loop. Returns how many frames arrived, or were sent or seen for watchers.
    pub fn turn(&mut self) -> usize {
        let now = self.clock.now_ns();
        let mut arrived = self.look_back();
        let ports = &mut self.ports;
        let forwarded = &mut self.forwarded;
        // All threads are told before control gets its answer.
        let set = |observer: &Observer| {
            for (port, reception) in observer.receptions().enumerate() {
                ports[port].set(reception);
                if let Some(forwarded) = forwarded {
                    forwarded.set(port, reception);
                }
            }
            if let Some(forwarded) = forwarded {
                forwarded.watch(observer);
                forwarded.tell();
            }
        };
        arrived += self.watch.as_mut().map_or(0, |w| w.attend(now, set));
        arrived += self.take_frames();
        if let Some(watch) = &mut self.watch {
            // Read again: what is measured carries the time.
            arrived += watch.send(self.clock.now_ns(), &self.block);
        }
        let end = self.clock.now_ns();
        if arrived > 0 {
            self.meters.publish();
            self.busy_ns += end - now;
        }
        let total_ns = end - self.started_at;
        self.block.arrivals.publish_time(CoreCounters {
            busy_ns: self.busy_ns,
            total_ns,
        });
        arrived
    }

    /// When control asks about frames of the past: takes what is there now. Returns how many frames.
    fn look_back(&mut self) -> usize {
        let mut frames = 0;
        let must_look = |watch: &Watch| watch.must_look_first();
        if self.watch.as_ref().is_some_and(must_look) {
            for _ in 0..LOOKS_MAX {
                let shown = self.watch.as_mut().map_or(0, Watch::show_sent);
                let taken = shown + self.take_frames();
                frames += taken;
                if taken == 0 {
                    break;
                }
            }
        }
        frames
    }

    /// Takes what has arrived, here and at other receive threads. Returns how many frames.
    fn take_frames(&mut self) -> usize {
        let (mut arrived, counted) = self.take_forwarded();
        for (number, port) in self.ports.iter_mut().enumerate() {
            let watch = self.watch.as_mut().filter(|w| w.observer.watches(number));
            let watch = watch.map(|watch| (watch, number as PortIndex));
            // Read again: what was done since would be taken for the age of frames.
            let n = port.receive(self.clock.now_ns(), &mut self.meters, watch);
            if port.is_news(n) || (counted >> number) & 1 == 1 {
                port.arrivals.publish(number, &self.block.arrivals);
                arrived += n;
            }
        }
        arrived
    }

    /// Takes what other receive threads pass on. Returns how many frames, and the ports of which
    /// groups were counted, as bits.
    fn take_forwarded(&mut self) -> (usize, u64) {
        let Some(forwarded) = &mut self.forwarded else {
            return (0, 0);
        };
        let mut counted = 0;
        let (ports, meters) = (&mut self.ports, &mut self.meters);
        let mut observer = self.watch.as_mut().map(|watch| &mut watch.observer);
        if let Some(observer) = &observer {
            forwarded.watch(observer);
        }
        forwarded.tell();
        let copies = forwarded.attend(|purpose, at, port, frame| match purpose {
            Purpose::Measure => {
                if let Some(group) = meters.measure_at(at, frame) {
                    ports[usize::from(port)].arrivals.count_group(group, frame);
                    counted |= 1 << port;
                }
            }
            Purpose::Show => {
                if let Some(observer) = &mut observer {
                    observer.handle_received(at, port, frame);
                }
            }
        });
        if let (Some(observer), lost @ 1..) = (observer, forwarded.take_lost()) {
            observer.note_lost(Origin::Received, lost);
        }
        (copies, counted)
    }
}

impl Turn for Receiver {
    fn turn(&mut self) -> usize {
        Receiver::turn(self)
    }

    fn must_stay_awake(&mut self, now: Nanos) -> bool {
        let sleeps_are_measured = |port: &PortSide| !port.queue.knows_arrivals();
        let echoes = self
            .watch
            .as_ref()
            .is_some_and(|watch| watch.observer.measured_ports() != 0);
        let measures = self.meters.expect_more(now) || echoes;
        measures && self.ports.iter().any(sleeps_are_measured)
    }

    fn send_due(&self) -> Option<Nanos> {
        self.watch
            .as_ref()
            .and_then(|watch| watch.observer.poll_timeout())
    }

    fn sleep_max(&self) -> Nanos {
        match &self.watch {
            Some(watch) if watch.has_unsent() => SLEEP_MIN,
            Some(watch) if !watch.observer.is_idle() => SLEEP_WATCHING,
            _ => SLEEP_IDLE,
        }
    }

    fn queues(&mut self) -> impl Iterator<Item = &mut PortRx> {
        self.ports.iter_mut().map(|port| &mut port.queue)
    }
}
