//! The data thread of stateful mode: flows on one side, ports on the other.
//!
//! What lives here: a turn of its loop. What does not: what flows do (engine), how frames travel
//! (port), and the queues of ports (`outlets`).

use allosaur_engine::stateful::{Command, Event, Stateful};
use allosaur_engine::stats::DirectionCounters;
use allosaur_engine::time::Nanos;
use allosaur_engine::transmit::PortIndex;
use allosaur_port::RxQueue;
use allosaur_port::kind::{PortRx, PortTx};

use crate::clock::Clock;
use crate::outlets::Queues;

/// Frames taken from one port before the next has its turn.
const BUDGET: usize = 64;

/// One data thread: the flows of a core, and its queues of the ports that it serves.
#[derive(Debug)]
pub struct Flows {
    engine: Stateful,
    queues: Queues,
    receivers: Vec<(PortIndex, PortRx)>,
    /// Of each port, what arrived.
    received: Vec<DirectionCounters>,
    clock: Clock,
    last_turn_at: Nanos,
}

impl Flows {
    /// A thread with this engine, which sends through `queues` and reads `receivers`, one of each
    /// port.
    pub fn new(
        engine: Stateful,
        queues: Vec<Option<PortTx>>,
        receivers: Vec<Option<PortRx>>,
        clock: Clock,
    ) -> Flows {
        let now = clock.now_ns();
        let received = receivers.iter().map(|_| DirectionCounters::default());
        let received = received.collect();
        let receivers = (0..).zip(receivers);
        Flows {
            engine,
            queues: Queues::new(queues, now),
            receivers: receivers
                .filter_map(|(port, rx)| Some((port, rx?)))
                .collect(),
            received,
            clock,
            last_turn_at: now,
        }
    }

    /// Tells the engine something.
    pub fn handle_command(&mut self, command: Command) {
        self.queues.now = self.clock.now_ns();
        self.engine
            .handle_command(self.queues.now, command, &mut self.queues);
    }

    /// One turn of the loop: what arrived, what is due, and the doorbells. Returns how many frames
    /// came and went.
    #[inline]
    pub fn turn(&mut self) -> u64 {
        let now = self.clock.now_ns();
        self.last_turn_at = now;
        self.queues.now = now;
        let (mut frames, mut is_busy) = (0, false);
        for (port, queue) in &mut self.receivers {
            let (engine, queues) = (&mut self.engine, &mut self.queues);
            let received = &mut self.received[usize::from(*port)];
            let arrived = queue.receive(now, BUDGET, |_, frame| {
                received.count(1, frame.len());
                engine.handle_frame(now, *port, frame, queues);
            });
            is_busy |= arrived == BUDGET;
            frames += arrived as u64;
        }
        frames += self.engine.poll_transmit(now, is_busy, &mut self.queues);
        self.queues.flush();
        frames
    }

    /// What happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.engine.poll_event()
    }

    /// The flows.
    pub fn engine(&self) -> &Stateful {
        &self.engine
    }

    /// Of each port, what arrived.
    pub fn received(&self) -> &[DirectionCounters] {
        &self.received
    }
}
