//! What a data thread of stateful mode tells control: counters, and what happened.

use std::sync::Arc;

use allosaur_engine::stateful::{RunIndex, StatefulEngine};
use allosaur_engine::stats::TransmitCounters;
use allosaur_engine::time::{MILLISECOND, Nanos};

use super::Flows;
use crate::counters::{ArrivalBlock, CoreBlock, CoreCounters, RunBlock};
use crate::mailbox::Report;
use crate::worker_command::FlowReport;

/// How long what was counted waits until it is published, while there are flows or frames.
const PUBLISH_AFTER: Nanos = 5 * MILLISECOND;
/// The same when there is nothing: control wants to see that the thread turns.
const PUBLISH_IDLE: Nanos = 50 * MILLISECOND;
/// Flows are not sampled more often.
const SAMPLE_MIN: Nanos = MILLISECOND;

/// What control is told, and when.
#[derive(Debug)]
pub(super) struct StatsPublisher {
    core: Arc<CoreBlock>,
    arrivals: Arc<ArrivalBlock>,
    /// Where the counters of runs go.
    runs: Vec<(RunIndex, Arc<RunBlock>)>,
    samples: Vec<Sample>,
    /// When what was counted is published.
    due: Nanos,
    /// Of each port, what flows and streams sent.
    sums: Vec<TransmitCounters>,
}

/// Flows that are looked at again and again.
#[derive(Debug)]
struct Sample {
    run: RunIndex,
    due: Nanos,
    interval: Option<Nanos>,
}

impl StatsPublisher {
    pub(super) fn new(
        ports: usize,
        core: Arc<CoreBlock>,
        arrivals: Arc<ArrivalBlock>,
    ) -> StatsPublisher {
        StatsPublisher {
            core,
            arrivals,
            runs: Vec::new(),
            samples: Vec::new(),
            due: 0,
            sums: vec![TransmitCounters::default(); ports],
        }
    }

    /// The counters of a run go there from now on.
    pub(super) fn publish_to(&mut self, run: RunIndex, block: Arc<RunBlock>) {
        self.runs.retain(|(number, _)| *number != run);
        self.runs.push((run, block));
    }

    /// Tells of a run's flows, now and every `interval`.
    pub(super) fn sample(&mut self, now: Nanos, run: RunIndex, interval: Option<Nanos>) {
        self.samples.retain(|sample| sample.run != run);
        self.samples.push(Sample {
            run,
            due: now,
            interval: interval.map(|interval| interval.max(SAMPLE_MIN)),
        });
    }

    /// A run is over for good: publishes its counters for the last time.
    pub(super) fn forget(&mut self, run: RunIndex, engine: &StatefulEngine) {
        self.publish_runs(engine, |number| number == run);
        self.runs.retain(|(number, _)| *number != run);
        self.samples.retain(|sample| sample.run != run);
    }

    /// Whether something was counted in this turn.
    #[inline]
    pub(super) fn note(&mut self, now: Nanos, is_news: bool) {
        if is_news {
            self.due = self.due.min(now + PUBLISH_AFTER);
        }
    }

    /// Whether it is time to publish.
    #[inline]
    pub(super) fn is_due(&self, now: Nanos) -> bool {
        self.due <= now
    }

    /// When there is something to tell again.
    pub(super) fn next_due(&self) -> Nanos {
        let samples = self.samples.iter().map(|sample| sample.due);
        samples.fold(self.due, Nanos::min)
    }

    /// The run whose flows are to be looked at now.
    fn pop_sample(&mut self, now: Nanos) -> Option<RunIndex> {
        let place = self.samples.iter().position(|sample| sample.due <= now)?;
        let sample = &mut self.samples[place];
        let run = sample.run;
        match sample.interval {
            Some(interval) => sample.due = now + interval,
            None => drop(self.samples.swap_remove(place)),
        }
        Some(run)
    }

    fn publish_runs(&self, engine: &StatefulEngine, is_meant: impl Fn(RunIndex) -> bool) {
        for (run, block) in self.runs.iter().filter(|(run, _)| is_meant(*run)) {
            if let Some(groups) = engine.groups(*run) {
                block.publish(groups);
            }
        }
    }
}

impl Flows {
    /// Publishes all counters.
    pub fn publish(&mut self) {
        let publisher = &mut self.publisher;
        publisher.due = self.last_turn_at
            + match self.engine.flows() {
                0 => PUBLISH_IDLE,
                _ => PUBLISH_AFTER,
            };
        let sent = self
            .engine
            .transmitted()
            .iter()
            .zip(self.streams.counters());
        for (sum, (flows, streams)) in publisher.sums.iter_mut().zip(sent) {
            *sum = *flows;
            sum.add(streams);
        }
        let total_ns = self.last_turn_at - self.started_at;
        let time = CoreCounters {
            busy_ns: self.busy_ns,
            total_ns,
        };
        publisher.core.publish(&publisher.sums, time);
        for (port, table) in self.streams.groups_mut().enumerate() {
            publisher.core.publish_groups(port, table);
        }
        let mut tables = self.engine.counters().clone();
        for rx_queue in &mut self.rx_queues {
            rx_queue.publish(&publisher.arrivals);
            rx_queue.count_passed(&mut tables);
        }
        publisher.core.publish_flow_tables(&tables);
        publisher.publish_runs(&self.engine, |_| true);
    }

    /// Tells control what happened. The counters come first, so that who hears of an end finds them
    /// whole.
    pub(super) fn report(&mut self, now: Nanos) {
        while self.mail.has_room() {
            let report = if let Some(event) = self.engine.poll_event() {
                Report::Flows(FlowReport::Event(event))
            } else if let Some(event) = self.streams.poll_event() {
                Report::Event(event)
            } else if let Some(program) = self.streams.poll_retired() {
                self.mail.send(Report::Retired(program));
                continue;
            } else if let Some(run) = self.publisher.pop_sample(now) {
                let mut records = Vec::new();
                self.engine
                    .flow_records(now, run, |record| records.push(record));
                let at = now;
                Report::Flows(FlowReport::Samples { run, at, records })
            } else {
                return;
            };
            self.publish();
            self.mail.send(report);
        }
    }
}
