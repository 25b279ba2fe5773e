//! The receive thread: takes what arrives at every port, and counts it.
//!
//! What lives here: the loop over the receive queues. What does not yet: latency, capture
//! and answers to ARP, which will look at the same frames.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use allosaur_engine::flow_stats::{GroupTable, receive::group_of};
use allosaur_engine::stats::DirectionCounters;
use allosaur_engine::time::{FCS_BYTES, MILLISECOND, Nanos};
use allosaur_port::RxQueue;
use allosaur_port::memory::MemoryRx;

use crate::clock::Clock;
use crate::counters::{CoreCounters, ReceiveBlock};
use crate::polling::{Poll, SLEEP_MIN, sharpen_sleep};

/// Frames taken from one port before the next has its turn.
const BUDGET: usize = 256;
/// The longest sleep when nothing arrives. Control wakes the thread when it starts traffic.
const SLEEP_IDLE: Nanos = 20 * MILLISECOND;

/// The receive side of all ports.
#[derive(Debug)]
pub struct Receiver {
    ports: Vec<PortSide>,
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
    fn receive(&mut self, now: Nanos) -> usize {
        let (received, groups) = (&mut self.received, &mut self.groups);
        self.queue.receive(now, BUDGET, |_, frame| {
            received.count(1, frame.len());
            if let Some(group) = group_of(frame) {
                groups.count(group, 1, frame.len() as u64 + FCS_BYTES);
            }
        })
    }
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
            let quiet_until = now + sleep;
            let due = self
                .next_arrival()
                .map_or(quiet_until, |arrival| arrival.min(quiet_until));
            poll.wait_until(now, Some(due));
            sleep = (sleep * 2).min(SLEEP_IDLE);
        }
    }

    /// One turn of the loop. Returns how many frames arrived.
    pub fn turn(&mut self) -> usize {
        let now = self.clock.now_ns();
        let mut arrived = 0;
        for (number, port) in self.ports.iter_mut().enumerate() {
            let lost_before = port.queue.lost_packets();
            let n = port.receive(now);
            let lost = port.queue.lost_packets();
            if n > 0 || lost > lost_before {
                self.block.publish_port(number, &port.received, lost);
                self.block.publish_groups(number, &mut port.groups);
                arrived += n;
            }
        }
        let end = self.clock.now_ns();
        if arrived > 0 {
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
