//! The data thread: the one place where engine and ports meet.
//!
//! What lives here: the loop, one screen long, and the adapters that let an engine send through
//! each kind of port, by type. What does not: what to send (engine), how (port).

use std::sync::Arc;

use allosaur_engine::Engine;
use allosaur_engine::time::{Due, Gap, MILLISECOND, Nanos};
use allosaur_engine::transmit::{FrameHandle, Job, Outlets, PortIndex, Transmit};
use allosaur_packet::offload::LeftChecksums;
use allosaur_port::kind::PortTx;
use allosaur_port::memory::MemoryTx;
use allosaur_port::tap::{TapIn, TapSwitch, Tapped};
use allosaur_port::{FrameId, TxQueue};

use crate::clock::Clock;
use crate::counters::{CoreBlock, CoreCounters};
use crate::mailbox::{Report, WorkerEnd};
use crate::polling::{Poll, SLEEP_MIN, Waiter, sharpen_sleep};

/// Busy threads publish their counters once in so many turns; idle ones before they wait.
const TURNS_PER_PUBLISH: u32 = 64;

/// Why a queue is there.
const SERVED: &str = "control tells a thread only of ports that it serves";

/// The longest wait before what an interface did not take is offered again.
const RETRY_MAX: Nanos = 2 * MILLISECOND;

/// One data thread: an engine, a transmit queue of each port that it serves, and the mail from control.
#[derive(Debug)]
pub struct Worker {
    engine: Engine,
    queues: Queues,
    switch: TapSwitch,
    mail: WorkerEnd,
    block: Arc<CoreBlock>,
    clock: Clock,
    started_at: Nanos,
    last_turn_at: Nanos,
    was_busy: bool,
    busy_ns: Nanos,
    turns: u32,
    /// How long to wait before what an interface did not take is offered again.
    retry: Nanos,
}

impl Worker {
    /// A worker that sends through `queues`, one of each port.
    pub fn new(
        queues: impl IntoIterator<Item: Into<PortTx>>,
        mail: WorkerEnd,
        block: Arc<CoreBlock>,
        clock: Clock,
    ) -> Worker {
        let queues = queues.into_iter().map(|queue| Some(queue.into()));
        Worker::serving(queues.collect(), mail, block, clock)
    }

    /// A worker that serves the ports that it has a queue of.
    pub fn serving(
        queues: Vec<Option<PortTx>>,
        mail: WorkerEnd,
        block: Arc<CoreBlock>,
        clock: Clock,
    ) -> Worker {
        let now = clock.now_ns();
        Worker {
            engine: Engine::new(queues.len(), now),
            queues: Queues {
                now,
                queues,
                tap: None,
                tapped: 0,
            },
            switch: TapSwitch::default(),
            mail,
            block,
            clock,
            started_at: now,
            last_turn_at: now,
            was_busy: false,
            busy_ns: 0,
            turns: 0,
            retry: SLEEP_MIN,
        }
    }

    /// The same, with copies into `tap` of what those ports send that `switch` says.
    pub fn tapped_by(mut self, tap: TapIn, switch: TapSwitch) -> Worker {
        self.queues.tap = Some(tap);
        self.switch = switch;
        self
    }

    /// Works until control is gone.
    pub fn run(mut self, poll: Poll) {
        sharpen_sleep();
        let mut waiter = Waiter::new(poll, self.clock.clone());
        while !self.mail.is_closed() {
            if self.turn() == 0 {
                self.publish();
                waiter.wait_until(self.next_due());
            }
        }
        self.publish();
    }

    /// When there is something to do again.
    fn next_due(&mut self) -> Option<Nanos> {
        let due = self.engine.poll_timeout();
        if !self.queues.has_unsent() {
            self.retry = SLEEP_MIN;
            return due;
        }
        // An interface may be down for long.
        let again = self.queues.now + self.retry;
        self.retry = (self.retry * 2).min(RETRY_MAX);
        Some(due.map_or(again, |due| due.min(again)))
    }

    /// One turn of the loop. Returns how many packets were sent.
    #[inline]
    pub fn turn(&mut self) -> u64 {
        let now = self.clock.now_ns();
        if self.was_busy {
            self.busy_ns += now - self.last_turn_at;
        }
        self.last_turn_at = now;
        self.queues.now = now;
        self.queues.tapped = self.switch.ports();
        while let Some(command) = self.mail.receive() {
            self.engine.handle_command(now, command, &mut self.queues);
        }
        let sent = self.engine.poll_transmit(now, &mut self.queues);
        self.queues.flush();
        self.report();
        self.was_busy = sent > 0;
        self.turns = self.turns.wrapping_add(1);
        if self.turns % TURNS_PER_PUBLISH == 0 {
            self.publish();
        }
        sent
    }

    /// Tells control what happened. The counters come first, so that who hears of an end finds
    /// them whole.
    fn report(&mut self) {
        while self.mail.has_room() {
            if let Some(event) = self.engine.poll_event() {
                self.publish();
                self.mail.send(Report::Event(event));
            } else if let Some(program) = self.engine.poll_retired() {
                self.mail.send(Report::Retired(program));
            } else {
                return;
            }
        }
    }

    /// Publishes the counters.
    pub fn publish(&mut self) {
        let total_ns = self.last_turn_at - self.started_at;
        let time = CoreCounters {
            busy_ns: self.busy_ns,
            total_ns,
        };
        self.block.publish(self.engine.counters(), time);
        for (port, table) in self.engine.groups_mut().enumerate() {
            self.block.publish_groups(port, table);
        }
    }
}

/// The transmit queues of one thread, one of each port that it serves, and the time of the turn.
#[derive(Debug)]
struct Queues {
    now: Nanos,
    queues: Vec<Option<PortTx>>,
    tap: Option<TapIn>,
    /// The ports whose frames are copied, as bits.
    tapped: u64,
}

impl Queues {
    #[inline]
    fn flush(&mut self) {
        for queue in self.queues.iter_mut().flatten() {
            queue.flush();
        }
        if let Some(tap) = &mut self.tap {
            tap.flush();
        }
    }

    fn has_unsent(&self) -> bool {
        self.queues.iter().flatten().any(PortTx::has_unsent)
    }

    /// As `with_queue`, for a port that is watched.
    #[cold]
    fn with_tapped_queue<J: Job>(&mut self, port: PortIndex, job: J) -> J::Output {
        let now = self.now;
        let queue = self.queues[usize::from(port)].as_mut().expect(SERVED);
        let Some(tap) = &mut self.tap else {
            return job.run(&mut Adapter { queue, now });
        };
        let queue = &mut Tapped::new(queue, tap, port);
        job.run(&mut Adapter { queue, now })
    }
}

impl Outlets for Queues {
    #[inline]
    fn with_queue<J: Job>(&mut self, port: PortIndex, job: J) -> J::Output {
        let now = self.now;
        if self.tapped >> port & 1 == 1 {
            return self.with_tapped_queue(port, job);
        }
        match self.queues[usize::from(port)].as_mut().expect(SERVED) {
            PortTx::Memory(MemoryTx::Ring(queue)) => job.run(&mut Adapter { queue, now }),
            PortTx::Memory(MemoryTx::Sink(queue)) => job.run(&mut Adapter { queue, now }),
            PortTx::AfPacket(queue) => job.run(&mut Adapter { queue, now }),
            PortTx::AfXdp(queue) => job.run(&mut Adapter { queue, now }),
            PortTx::Dpdk(queue) => job.run(&mut Adapter { queue, now }),
        }
    }
}

/// A port's queue as the engine sees it. Packets leave at the time of the turn: their exact time
/// is the engine's account, which the simulator keeps and a port cannot.
struct Adapter<'a, Q> {
    queue: &'a mut Q,
    now: Nanos,
}

impl<Q: TxQueue> Transmit for Adapter<'_, Q> {
    const REUSES: bool = Q::REUSES;

    #[inline(always)]
    fn slot(&mut self, _at: Nanos, len: usize) -> Option<&mut [u8]> {
        self.queue.slot(self.now, len)
    }

    #[inline(always)]
    fn repeat(&mut self, frame: FrameHandle, _first: Due, _gap: Gap, count: u32) -> u32 {
        self.queue.repeat(self.now, FrameId(frame.0), count)
    }

    #[inline(always)]
    fn reuse(&mut self, _at: Nanos, frame: FrameHandle, len: usize) -> Option<&mut [u8]> {
        self.queue.reuse(self.now, FrameId(frame.0), len)
    }

    fn register(&mut self, frame: &[u8]) -> Option<FrameHandle> {
        self.queue.register(frame).map(|id| FrameHandle(id.0))
    }

    fn register_left(&mut self, frame: &[u8], left: &LeftChecksums) -> Option<FrameHandle> {
        let id = self.queue.register_left(frame, left)?;
        Some(FrameHandle(id.0))
    }

    fn unregister(&mut self, frame: FrameHandle) {
        self.queue.unregister(FrameId(frame.0));
    }
}
