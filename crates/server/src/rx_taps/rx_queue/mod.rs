//! Receive queues: the last frames that a port received, for clients that ask for them.

use std::ops::ControlFlow;

use allosaur_engine::capture::{Capture, Origin};
use allosaur_engine::time::Nanos;
use allosaur_engine::transmit::PortIndex;

use super::capture::Wanted;
use super::rx_tap::{RxTap, bits_of};
use super::{Answer, PortState, RX_QUEUES_MEMORY_MAX, Request, queue_settings};

/// The receive queues of all ports.
#[derive(Debug)]
pub(super) struct RxQueues {
    ports: Vec<Option<RxQueue>>,
}

/// A receive queue.
struct RxQueue {
    packets_max: u32,
    capture: Capture<Wanted>,
}

impl RxQueues {
    /// Of so many ports; none has a queue yet.
    pub(super) fn new(ports: usize) -> RxQueues {
        RxQueues {
            ports: std::iter::repeat_with(|| None).take(ports).collect(),
        }
    }
}

impl RxTap for RxQueues {
    fn handle_request(&mut self, request: Request, _now: Nanos) -> ControlFlow<Answer, Request> {
        match request {
            Request::SetQueue { port, packets_max } => {
                let queue = (packets_max > 0).then(|| RxQueue::new(port, packets_max));
                self.ports[usize::from(port)] = queue;
                ControlFlow::Break(Answer::Done)
            }
            Request::TakeQueue(port) => {
                let queue = self.ports[usize::from(port)].as_mut();
                ControlFlow::Break(queue.map_or(Answer::Unknown, |queue| Answer::Packets {
                    packets: queue.capture.fetch(usize::MAX),
                    pending: 0,
                    started_at: 0,
                }))
            }
            others => ControlFlow::Continue(others),
        }
    }

    fn wants(&self, origin: Origin) -> u64 {
        match origin {
            Origin::Received => bits_of(&self.ports),
            Origin::Transmitted => 0,
        }
    }

    fn handle_frame(&mut self, at: Nanos, port: PortIndex, origin: Origin, frame: &[u8]) -> bool {
        let queues = self.ports.iter().flatten();
        let memory: u64 = queues.map(|queue| queue.capture.memory()).sum();
        let left = RX_QUEUES_MEMORY_MAX.saturating_sub(memory);
        if let Some(queue) = &mut self.ports[usize::from(port)] {
            queue.capture.offer(at, port, origin, frame, left);
        }
        false
    }

    fn describe_port(&self, port: PortIndex, state: &mut PortState) {
        state.queue = self.ports[usize::from(port)].as_ref().map(RxQueue::fill);
    }
}

impl RxQueue {
    fn new(port: PortIndex, packets_max: u32) -> RxQueue {
        let all: Wanted = Box::new(|_| true);
        RxQueue {
            packets_max,
            capture: Capture::new(queue_settings(port, packets_max), all),
        }
    }

    fn fill(&self) -> (u32, u64) {
        (self.packets_max, self.capture.counters().kept)
    }
}

impl std::fmt::Debug for RxQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("RxQueue").field(&self.fill()).finish()
    }
}
