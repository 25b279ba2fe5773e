//! Receive queues: the last frames that a port received, for clients that ask for them.

pub(super) mod request;

use std::ops::ControlFlow;

use allosaur_engine::capture::{Capture, CaptureSettings, Origin, Overflow};
use allosaur_engine::time::Nanos;
use allosaur_engine::transmit::PortIndex;

use self::request::{RxQueueAnswer, RxQueueRequest};
use super::capture::Wanted;
use super::message::{Answer, Request};
use super::port::PortState;
use super::rx_tap::{RxTap, bits_of};

/// Memory for the packets of one receive queue, which one reply has all of; and of all of them.
const RX_QUEUE_MEMORY_MAX: u64 = 16 << 20;
/// See [`RX_QUEUE_MEMORY_MAX`].
const RX_QUEUES_MEMORY_MAX: u64 = 128 << 20;

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
        let Request::RxQueue(request) = request else {
            return ControlFlow::Continue(request);
        };
        let answer = match request {
            RxQueueRequest::Set { port, packets_max } => {
                let queue = (packets_max > 0).then(|| RxQueue::new(port, packets_max));
                self.ports[usize::from(port)] = queue;
                RxQueueAnswer::Done
            }
            RxQueueRequest::Take(port) => match &mut self.ports[usize::from(port)] {
                Some(queue) => RxQueueAnswer::Packets(queue.capture.fetch(usize::MAX)),
                None => RxQueueAnswer::Unknown,
            },
        };
        ControlFlow::Break(answer.into())
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

/// A receive queue is a capture of what one port receives.
fn queue_settings(port: PortIndex, packets_max: u32) -> CaptureSettings {
    CaptureSettings {
        transmit_ports: 0,
        receive_ports: 1 << port,
        packets_max,
        overflow: Overflow::KeepLast,
        snap_bytes: 0,
        memory_max: RX_QUEUE_MEMORY_MAX,
    }
}
