//! What the flows of a data thread tell control, and when: counters of runs, what arrived, and
//! samples of flows.

use std::sync::Arc;

use allosaur_engine::stateful::{RunIndex, StatefulEngine};
use allosaur_engine::time::{MILLISECOND, Nanos};

use super::rx_port::FlowRxPort;
use crate::control::worker_command::FlowReport;
use crate::counters::{ArrivalBlock, CoreBlock, RunBlock};

/// How long what was counted waits until it is published, while there are flows or frames.
const PUBLISH_AFTER: Nanos = 5 * MILLISECOND;
/// The same when there is nothing: control wants to see that the thread turns.
const PUBLISH_IDLE: Nanos = 50 * MILLISECOND;
/// Flows are not sampled more often.
const SAMPLE_MIN: Nanos = MILLISECOND;

/// What control is told of flows, and when.
#[derive(Debug)]
pub(super) struct FlowPublisher {
    arrivals: Arc<ArrivalBlock>,
    /// Where the counters of runs go.
    runs: Vec<(RunIndex, Arc<RunBlock>)>,
    samples: Vec<Sample>,
    /// When what was counted is published.
    due: Nanos,
    /// Something was counted that is not published.
    is_news: bool,
}

/// Flows that are looked at again and again.
#[derive(Debug)]
struct Sample {
    run: RunIndex,
    due: Nanos,
    interval: Option<Nanos>,
}

impl FlowPublisher {
    pub(super) fn new(arrivals: Arc<ArrivalBlock>) -> FlowPublisher {
        FlowPublisher {
            arrivals,
            runs: Vec::new(),
            samples: Vec::new(),
            due: 0,
            is_news: false,
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
    pub(super) fn forget(&mut self, run: RunIndex, engine: &mut StatefulEngine) {
        self.publish_runs(engine, |number| number == run);
        self.runs.retain(|(number, _)| *number != run);
        self.samples.retain(|sample| sample.run != run);
    }

    /// Whether something was counted in this turn.
    #[inline]
    pub(super) fn note(&mut self, now: Nanos, is_news: bool) {
        if is_news {
            self.is_news = true;
            self.due = self.due.min(now + PUBLISH_AFTER);
        }
    }

    /// Whether it is time to publish.
    #[inline]
    pub(super) fn is_due(&self, now: Nanos) -> bool {
        self.due <= now
    }

    /// When there is something to tell again. That there is nothing can wait for another reason to
    /// wake.
    pub(super) fn next_due(&self) -> Option<Nanos> {
        let samples = self.samples.iter().map(|sample| sample.due);
        samples.chain(self.is_news.then_some(self.due)).min()
    }

    /// What is to be seen of the flows of a run that are to be looked at now.
    pub(super) fn poll_sample(&mut self, at: Nanos, engine: &StatefulEngine) -> Option<FlowReport> {
        let place = self.samples.iter().position(|sample| sample.due <= at)?;
        let sample = &mut self.samples[place];
        let run = sample.run;
        match sample.interval {
            Some(interval) => sample.due = at + interval,
            None => drop(self.samples.swap_remove(place)),
        }
        let mut records = Vec::new();
        engine.flow_records(at, run, |record| records.push(record));
        Some(FlowReport::Samples { run, at, records })
    }

    /// Publishes what arrived and what flows counted.
    pub(super) fn publish(
        &mut self,
        now: Nanos,
        engine: &mut StatefulEngine,
        rx_ports: &mut [FlowRxPort],
        block: &CoreBlock,
    ) {
        self.is_news = false;
        self.due = now
            + match engine.flows() {
                0 => PUBLISH_IDLE,
                _ => PUBLISH_AFTER,
            };
        let mut tables = engine.counters().clone();
        for port in rx_ports {
            port.publish(&self.arrivals);
            port.count_passed(&mut tables);
        }
        block.publish_flow_tables(&tables);
        self.publish_runs(engine, |_| true);
    }

    fn publish_runs(&self, engine: &mut StatefulEngine, is_meant: impl Fn(RunIndex) -> bool) {
        for (run, block) in self.runs.iter().filter(|(run, _)| is_meant(*run)) {
            if let Some(groups) = engine.groups(*run) {
                block.publish(groups);
            }
            engine.take_times(*run, |place, word| block.publish_time(place, word));
        }
    }
}
