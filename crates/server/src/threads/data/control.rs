//! What control says to a data thread, and what it hears from one: reports, and counters in blocks.

use allosaur_engine::time::Nanos;

use super::{DataThread, Report, WorkerCommand};

/// Busy threads publish what they sent once in so many turns; idle ones before they wait.
const TURNS_PER_PUBLISH: u32 = 64;

impl DataThread {
    pub(super) fn handle_command(&mut self, now: Nanos, command: WorkerCommand) {
        let flows = self.flows.as_deref_mut();
        match (command, flows) {
            (WorkerCommand::Streams(command), flows) => {
                if let Some(flows) = flows {
                    flows.expect_unmatched(command.port());
                }
                let tx_queues = &mut self.tx_queues;
                self.streams.handle_command(now, command, tx_queues);
            }
            (WorkerCommand::Flows(command), Some(flows)) => {
                flows.handle_command(now, command, &mut self.tx_queues);
            }
            (WorkerCommand::StartFlows(flows), _) => self.flows = Some(flows),
            (WorkerCommand::AttachRx { port, queue }, Some(flows)) => flows.attach(port, *queue),
            (WorkerCommand::DetachRx { port }, flows) => {
                let tx_queues = &mut self.tx_queues;
                let queue = flows.and_then(|f| f.detach(&self.clock, port, tx_queues));
                self.detached.push_back((port, queue.map(Box::new)));
            }
            (command @ (WorkerCommand::Flows(_) | WorkerCommand::AttachRx { .. }), None) => {
                tracing::debug!(?command, "there are no flows on this thread");
            }
        }
    }

    #[inline]
    pub(super) fn publish_in_time(&mut self, now: Nanos, frames: u64) {
        self.turns = self.turns.wrapping_add(1);
        if self.turns % TURNS_PER_PUBLISH == 0 {
            self.publish_sent();
        }
        if let Some(flows) = &mut self.flows {
            if flows.is_to_publish(now, frames > 0) {
                self.publish();
            }
        }
    }

    /// Tells control what happened. The counters come first, so that who hears of an end finds
    /// them whole; and what waits in a queue has left by then, or is lost.
    #[inline]
    pub(super) fn report(&mut self, now: Nanos) {
        while self.mail.has_room() {
            let report = if let Some(event) = self.streams.poll_event() {
                Report::Event(event)
            } else if let Some(program) = self.streams.poll_retired() {
                self.mail.send(Report::Retired(program));
                continue;
            } else if let Some(report) = self.flows.as_mut().and_then(|f| f.poll_report(now)) {
                Report::Flows(report)
            } else if let Some((port, queue)) = self.detached.pop_front() {
                Report::Detached { port, queue }
            } else {
                return;
            };
            self.publish();
            self.mail.send(report);
        }
    }

    /// Publishes all counters.
    pub fn publish(&mut self) {
        self.publish_sent();
        if let Some(flows) = &mut self.flows {
            flows.publish(self.time.turn_at(), &self.block);
        }
    }

    /// Publishes what was sent, and the thread's time.
    pub(super) fn publish_sent(&mut self) {
        let streams = self.streams.counters();
        let sent = match &mut self.flows {
            Some(flows) => flows.add_sent(streams),
            None => streams,
        };
        let sent = match &mut self.clients {
            Some(clients) => clients.add_sent(sent),
            None => sent,
        };
        let left = self.tx_queues.left(sent);
        self.block.publish(left, self.time.counters());
        for (port, table) in self.streams.groups_mut().enumerate() {
            self.block.publish_groups(port, table);
        }
    }
}
