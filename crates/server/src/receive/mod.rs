//! The receive thread: takes what arrives at every port, counts it, and shows it to who watches.
//!
//! What lives here: the loop over the receive queues; in `meters` latency, in [`watch`] the way
//! to the observer. What does not: what watchers do (`observe`).

mod meters;
pub mod watch;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use allosaur_engine::flow_stats::receive::{Sign, sign_of};
use allosaur_engine::flow_stats::{GroupTable, VxlanPorts};
use allosaur_engine::stats::DirectionCounters;
use allosaur_engine::time::{FCS_BYTES, MILLISECOND, Nanos};
use allosaur_engine::transmit::PortIndex;
use allosaur_port::RxQueue;
use allosaur_port::description::PORTS_MAX;
use allosaur_port::kind::PortRx;

use crate::clock::Clock;
use crate::counters::{CoreCounters, ReceiveBlock};
use crate::mailbox::Doorbell;
use crate::observe::Reception;
use crate::polling::{FILES_MAX, Poll, SLEEP_MIN, sharpen_sleep, stay_awake};
use meters::Meters;
use watch::Watch;

/// Frames taken from one port before the next has its turn.
const BUDGET: usize = 256;
/// The thread waits for one file of each port.
const _: () = assert!(PORTS_MAX <= FILES_MAX);
/// The longest sleep when nothing arrives. Control wakes the thread when it starts traffic.
const SLEEP_IDLE: Nanos = 20 * MILLISECOND;
/// The longest sleep while somebody watches: sent frames are shown without waking the thread.
const SLEEP_WATCHING: Nanos = MILLISECOND;

/// The receive side of all ports.
#[derive(Debug)]
pub struct Receiver {
    ports: Vec<PortSide>,
    meters: Meters,
    watch: Option<Watch>,
    block: Arc<ReceiveBlock>,
    clock: Clock,
    started_at: Nanos,
    busy_ns: Nanos,
}

#[derive(Debug)]
struct PortSide {
    queue: PortRx,
    received: DirectionCounters,
    groups: GroupTable,
    vxlan: VxlanPorts,
    /// Frames that the link lost, as it was last published.
    published_lost: u64,
}

impl PortSide {
    fn set(&mut self, reception: Reception) {
        self.queue.set_up(reception.link_up);
        self.vxlan = reception.vxlan;
    }

    /// Takes what has arrived, counts it, and shows it to `watch`.
    fn receive(
        &mut self,
        now: Nanos,
        meters: &mut Meters,
        mut watch: Option<(&mut Watch, PortIndex)>,
    ) -> usize {
        let (received, groups, vxlan) = (&mut self.received, &mut self.groups, &self.vxlan);
        self.queue.receive(now, BUDGET, |at, frame| {
            // First of all what is measured by the clock.
            let group = match sign_of(frame, vxlan) {
                None => None,
                Some(Sign::Flow(group)) => Some(group),
                Some(Sign::Latency) => meters.measure(frame),
            };
            if let Some(group) = group {
                groups.count(group, 1, frame.len() as u64 + FCS_BYTES);
            }
            received.count(1, frame.len());
            if let Some((watch, port)) = &mut watch {
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
        let side = |queue| PortSide {
            queue,
            received: DirectionCounters::default(),
            groups: GroupTable::default(),
            vxlan: VxlanPorts::STANDARD,
            published_lost: 0,
        };
        let started_at = clock.now_ns();
        let ports = queues.into_iter().map(Into::into).map(side).collect();
        Receiver {
            ports,
            meters: Meters::new(Arc::clone(&block), clock.clone()),
            watch: None,
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

    /// Works until `stop` is set. While it waits, `bell` wakes it, and so does a frame that arrives
    /// at a port of the kernel's.
    pub fn run(mut self, poll: Poll, stop: &AtomicBool, bell: &Doorbell) {
        sharpen_sleep();
        let mut sleep = SLEEP_MIN;
        while !stop.load(Ordering::Relaxed) {
            if self.turn() > 0 {
                sleep = SLEEP_MIN;
                continue;
            }
            let now = self.clock.now_ns();
            if self.meters.expect_more(now) {
                stay_awake();
                continue;
            }
            let quiet_until = now + sleep;
            let due = self
                .next_arrival()
                .map_or(quiet_until, |arrival| arrival.min(quiet_until));
            // While frames come, a short sleep gathers some; to be woken for each would cost more.
            let is_quiet = sleep > SLEEP_MIN;
            let files = self.ports.iter().filter(|_| is_quiet);
            let files = files.filter_map(|port| port.queue.file());
            poll.wait_for(bell, files, now, Some(due));
            // Who is woken early shall expect something.
            let woken = self.clock.now_ns() < due;
            sleep = if woken {
                SLEEP_MIN
            } else {
                (sleep * 2).min(self.sleep_max())
            };
        }
    }

    /// The longest sleep as things are.
    fn sleep_max(&self) -> Nanos {
        match &self.watch {
            Some(watch) if watch.has_unsent() => SLEEP_MIN,
            Some(watch) if !watch.observer.is_idle() => SLEEP_WATCHING,
            _ => SLEEP_IDLE,
        }
    }

    /// One turn of the loop. Returns how many frames arrived, or were sent or seen for watchers.
    pub fn turn(&mut self) -> usize {
        let now = self.clock.now_ns();
        let ports = &mut self.ports;
        let set = |port: usize, reception| ports[port].set(reception);
        let mut arrived = self.watch.as_mut().map_or(0, |w| w.attend(now, set));
        for (number, port) in self.ports.iter_mut().enumerate() {
            let watch = self.watch.as_mut().filter(|w| w.observer.watches(number));
            let watch = watch.map(|watch| (watch, number as PortIndex));
            let n = port.receive(now, &mut self.meters, watch);
            let lost = port.queue.lost_packets();
            if n > 0 || lost > port.published_lost {
                port.published_lost = lost;
                self.block.publish_port(number, &port.received, lost);
                self.block.publish_groups(number, &mut port.groups);
                arrived += n;
            }
        }
        if let Some(watch) = &mut self.watch {
            arrived += watch.send(now, &self.block);
        }
        let end = self.clock.now_ns();
        if arrived > 0 {
            self.meters.publish();
            self.busy_ns += end - now;
        }
        let total_ns = end - self.started_at;
        self.block.publish_time(CoreCounters {
            busy_ns: self.busy_ns,
            total_ns,
        });
        arrived
    }

    fn next_arrival(&mut self) -> Option<Nanos> {
        self.ports
            .iter_mut()
            .filter_map(|port| port.queue.next_arrival_ns())
            .min()
    }
}
