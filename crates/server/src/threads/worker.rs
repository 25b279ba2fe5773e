//! The data thread: where engine and ports meet.

use std::sync::Arc;

use allosaur_engine::StatelessEngine;
use allosaur_engine::time::{MILLISECOND, Nanos};
use allosaur_port::kind::PortTx;
use allosaur_port::tap::{TapIn, TapSwitch};

use super::tx_queues::Queues;
use crate::clock::Clock;
use crate::counters::{CoreBlock, CoreCounters};
use crate::mailbox::{Report, WorkerEnd};
use crate::polling::{Poll, SLEEP_MIN, Waiter, sharpen_sleep};
use crate::worker_command::WorkerCommand;

/// Busy threads publish their counters once in so many turns; idle ones before they wait.
const TURNS_PER_PUBLISH: u32 = 64;

/// The longest wait before what an interface did not take is offered again.
const RETRY_MAX: Nanos = 2 * MILLISECOND;

/// One data thread: an engine, a transmit queue of each port that it serves, and the mail from control.
#[derive(Debug)]
pub struct Worker {
    engine: StatelessEngine,
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
            engine: StatelessEngine::new(queues.len(), now),
            queues: Queues::new(queues, now),
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
        while let Some(order) = self.mail.receive() {
            match order {
                WorkerCommand::Streams(command) => {
                    self.engine.handle_command(now, command, &mut self.queues);
                }
                WorkerCommand::Flows(order) => unreachable!("this server has no flows: {order:?}"),
            }
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
