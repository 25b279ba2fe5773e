//! The receive thread: takes what arrives at every port, and counts it.
//!
//! What lives here: the loop over the receive queues. What does not yet: capture and
//! answers to ARP, which will look at the same frames.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use allosaur_engine::flow_stats::receive::{Sign, sign_of};
use allosaur_engine::flow_stats::{Group, GroupTable, LATENCY_GROUPS};
use allosaur_engine::latency::{Meter, Trailer};
use allosaur_engine::stats::DirectionCounters;
use allosaur_engine::time::{FCS_BYTES, MILLISECOND, Nanos, SECOND};
use allosaur_port::RxQueue;
use allosaur_port::memory::MemoryRx;

use crate::clock::Clock;
use crate::counters::{CoreCounters, LatencyErrors, LatencyTerms, ReceiveBlock};
use crate::polling::{Poll, SLEEP_MIN, sharpen_sleep};

/// Frames taken from one port before the next has its turn.
const BUDGET: usize = 256;
/// The longest sleep when nothing arrives. Control wakes the thread when it starts traffic.
const SLEEP_IDLE: Nanos = 20 * MILLISECOND;
/// For so long after a frame whose latency was measured, or after control has said that there will
/// be some, the thread stays awake: a sleep would be measured with the next frame.
const MEASURING: Nanos = 2 * SECOND;

/// The receive side of all ports.
#[derive(Debug)]
pub struct Receiver {
    ports: Vec<PortSide>,
    meters: Meters,
    block: Arc<ReceiveBlock>,
    clock: Clock,
    started_at: Nanos,
    busy_ns: Nanos,
}

#[derive(Debug)]
struct PortSide {
    queue: MemoryRx,
    received: DirectionCounters,
    groups: GroupTable,
}

impl PortSide {
    /// Takes what has arrived, and counts it.
    fn receive(&mut self, now: Nanos, meters: &mut Meters) -> usize {
        let (received, groups) = (&mut self.received, &mut self.groups);
        self.queue.receive(now, BUDGET, |_, frame| {
            received.count(1, frame.len());
            let group = match sign_of(frame) {
                None => return,
                Some(Sign::Flow(group)) => Some(group),
                Some(Sign::Latency) => meters.measure(frame),
            };
            if let Some(group) = group {
                groups.count(group, 1, frame.len() as u64 + FCS_BYTES);
            }
        })
    }
}

/// The meters of all groups whose latency is measured, over all ports.
#[derive(Debug)]
struct Meters {
    meters: Vec<(LatencyTerms, Meter)>,
    /// A bit for each meter that has measured since it was last published.
    changed: u128,
    errors: LatencyErrors,
    /// When the last frame was measured, or announced.
    measured_at: Option<Nanos>,
    /// What control has announced up to now.
    expectations: u64,
    block: Arc<ReceiveBlock>,
    clock: Clock,
}

const _: () = assert!(LATENCY_GROUPS as u32 <= u128::BITS);

impl Meters {
    fn new(block: Arc<ReceiveBlock>, clock: Clock) -> Meters {
        let meters = usize::from(LATENCY_GROUPS);
        Meters {
            meters: vec![(LatencyTerms::default(), Meter::default()); meters],
            changed: 0,
            errors: LatencyErrors::default(),
            measured_at: None,
            expectations: 0,
            block,
            clock,
        }
    }

    /// Measures a frame with the sign of latency; its group, if it belongs to one.
    fn measure(&mut self, frame: &[u8]) -> Option<Group> {
        // The time of the turn would be too early: frames arrive while it lasts.
        let now = self.clock.now_ns();
        let Some((trailer, group)) = read(frame) else {
            self.errors.bad_header += 1;
            return None;
        };
        let terms = self.block.latency_terms(trailer.group);
        if terms.version == 0 || terms.run != trailer.run {
            self.errors.old_flow += 1;
            return None;
        }
        let (known, meter) = &mut self.meters[usize::from(trailer.group)];
        if known.version != terms.version {
            self.block.forget_latency(trailer.group, meter.stats());
            *meter = Meter::default();
        } else if known.run != terms.run {
            meter.restart();
        }
        *known = terms;
        self.measured_at = Some(now);
        let latency_ns = now.saturating_sub(trailer.sent_ns);
        meter.record(now, trailer.sequence, latency_ns);
        self.block.count_latency(trailer.group, latency_ns);
        self.changed |= 1 << trailer.group;
        Some(group)
    }

    /// Whether frames to measure are likely soon.
    fn expect_more(&mut self, now: Nanos) -> bool {
        let expectations = self.block.expectations();
        if self.expectations != expectations {
            self.expectations = expectations;
            self.measured_at = Some(now);
        }
        let last = self.measured_at;
        last.is_some_and(|at| now.saturating_sub(at) < MEASURING)
    }

    fn publish(&mut self) {
        while self.changed != 0 {
            let n = self.changed.trailing_zeros() as u16;
            self.changed &= self.changed - 1;
            let (terms, meter) = &self.meters[usize::from(n)];
            self.block.publish_latency(n, terms.version, meter.stats());
        }
        self.block.publish_latency_errors(self.errors);
    }
}

fn read(frame: &[u8]) -> Option<(Trailer, Group)> {
    let trailer = Trailer::parse(frame)?;
    Some((trailer, Group::latency(trailer.group)?))
}

impl Receiver {
    /// A receiver that reads `queues`, one of each port.
    pub fn new(queues: Vec<MemoryRx>, block: Arc<ReceiveBlock>, clock: Clock) -> Receiver {
        let side = |queue| PortSide {
            queue,
            received: DirectionCounters::default(),
            groups: GroupTable::default(),
        };
        let started_at = clock.now_ns();
        let ports = queues.into_iter().map(side).collect();
        Receiver {
            ports,
            meters: Meters::new(Arc::clone(&block), clock.clone()),
            block,
            clock,
            started_at,
            busy_ns: 0,
        }
    }

    /// Works until `stop` is set.
    pub fn run(mut self, poll: Poll, stop: &AtomicBool) {
        sharpen_sleep();
        let mut sleep = SLEEP_MIN;
        while !stop.load(Ordering::Relaxed) {
            if self.turn() > 0 {
                sleep = SLEEP_MIN;
                continue;
            }
            let now = self.clock.now_ns();
            if self.meters.expect_more(now) {
                poll.stay_awake();
                continue;
            }
            let quiet_until = now + sleep;
            let due = self
                .next_arrival()
                .map_or(quiet_until, |arrival| arrival.min(quiet_until));
            poll.wait_until(now, Some(due));
            // Who is woken early shall expect something.
            let woken = self.clock.now_ns() < due;
            sleep = match woken {
                true => SLEEP_MIN,
                false => (sleep * 2).min(SLEEP_IDLE),
            };
        }
    }

    /// One turn of the loop. Returns how many frames arrived.
    pub fn turn(&mut self) -> usize {
        let now = self.clock.now_ns();
        let mut arrived = 0;
        for (number, port) in self.ports.iter_mut().enumerate() {
            let lost_before = port.queue.lost_packets();
            let n = port.receive(now, &mut self.meters);
            let lost = port.queue.lost_packets();
            if n > 0 || lost > lost_before {
                self.block.publish_port(number, &port.received, lost);
                self.block.publish_groups(number, &mut port.groups);
                arrived += n;
            }
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
