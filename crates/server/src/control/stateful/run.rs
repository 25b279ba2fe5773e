//! A run of a profile: what runs where, until when, and what it has counted.

use std::sync::Arc;

use allosaur_api::events::{Event as ApiEvent, StatefulPhase};
use allosaur_engine::stateful::{EndCause, RunIndex, StatefulCommand};
use allosaur_engine::template::CompiledProfile;
use allosaur_engine::time::Nanos;

use super::figures::{Both, Rate, Readings, TableTotals, group_sum};
use super::records::Records;
use crate::control::{Control, View};
use crate::counters::RunBlock;

/// A profile that runs, or has run.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) index: RunIndex,
    pub(super) profile: Arc<CompiledProfile>,
    /// Of each data thread that took part.
    pub(super) blocks: Vec<Arc<RunBlock>>,
    /// The data threads that have not told of their end.
    pub(super) running: Vec<usize>,
    /// What rates are multiplied by.
    pub(super) factor: f64,
    /// How much of the connections belongs to the client ports that take part, 0 to 1.
    pub(super) share: f64,
    /// Flows are ended at once when no more begin.
    pub(super) no_close: bool,
    /// How long flows may take to end was told; data threads see to it.
    pub(super) has_close_limit: bool,
    /// When flows of a run that was stopped are ended.
    pub(super) abort_at: Option<Nanos>,
    /// The session that started it.
    pub(super) session: u32,
    pub(super) start_at: Nanos,
    /// How long flows begin; `None` until it is stopped.
    pub(super) duration_s: Option<f64>,
    /// When all data threads were through.
    pub(super) ended_at: Option<Nanos>,
    /// Why it ended.
    pub(super) cause: EndCause,
    /// The epoch of the server in which it began.
    pub(super) room_epoch: u64,
    /// What the tables of flows had counted when it began, and soon after it ended.
    pub(super) tables: (TableTotals, Option<TableTotals>),
    pub(super) readings: Readings,
    pub(super) records: Records,
}

impl Run {
    /// What all template groups have counted.
    pub(super) fn totals(&self) -> Both {
        let mut totals = Both::default();
        for block in &self.blocks {
            totals.add(&Both(block.totals()));
        }
        self.settled(totals)
    }

    /// What a template group has counted; 0 is that of templates without a name.
    pub(super) fn group(&self, group: usize) -> Both {
        self.settled(group_sum(&self.blocks, group))
    }

    /// What a thread that broke down had at the end is no more.
    fn settled(&self, counters: Both) -> Both {
        match self.ended_at {
            Some(_) => counters.without_the_moment(),
            None => counters,
        }
    }

    /// The rates of all groups: clients, servers.
    pub(super) fn rates(&self) -> [Rate; 2] {
        self.readings.total()
    }

    /// How long it has lasted, or did.
    pub(super) fn duration_s(&self, now_ns: Nanos) -> f64 {
        let until = self.ended_at.unwrap_or(now_ns);
        until.saturating_sub(self.start_at) as f64 / 1e9
    }

    /// Reads the counters, for rates.
    pub(super) fn read(&mut self, view: &View<'_>) {
        self.readings.read(view.now_ns, &self.blocks);
        if self.ended_at.is_some() && self.tables.1.is_none() {
            self.tables.1 = Some(TableTotals::of(view.snapshot));
        }
    }
}

impl Control {
    /// A data thread begins no more flows of a run, and all that it had are over.
    pub(super) fn note_run_ended(
        &mut self,
        core: usize,
        run: RunIndex,
        at: Nanos,
        cause: EndCause,
        now_ns: Nanos,
    ) {
        let profiles = self.room.profiles.iter_mut();
        let runs = profiles.filter_map(|(name, profile)| Some((name, profile.run.as_mut()?)));
        let mut runs = runs.filter(|(_, of)| of.index == run && of.running.contains(&core));
        let Some((name, run)) = runs.next() else {
            tracing::debug!(core, ?run, "a run ended that nobody knows");
            return;
        };
        run.running.retain(|running| *running != core);
        if run.cause == EndCause::Done {
            run.cause = cause;
        }
        if !run.running.is_empty() {
            return;
        }
        run.ended_at = Some(at.max(run.start_at));
        run.abort_at = None;
        let (name, index) = (name.clone(), run.index);
        tell_of_misses(&name, run);
        self.order_all(|| StatefulCommand::Retire { run: index });
        self.end_latency_with(&name);
        self.set_phase(&name, StatefulPhase::Cleanup, now_ns);
        self.set_phase(&name, StatefulPhase::Loaded, now_ns);
    }

    /// A data thread broke down, with all its flows. Others go on with theirs.
    pub(in crate::control) fn lose_flows(&mut self, core: usize, ports: &[u8], now_ns: Nanos) {
        let profiles = self.room.profiles.values();
        let runs = profiles.filter_map(|profile| profile.run.as_ref());
        let lost: Vec<RunIndex> = runs
            .filter(|run| run.running.contains(&core))
            .map(|run| run.index)
            .collect();
        if lost.is_empty() {
            return;
        }
        for &port in ports {
            let thread = core;
            self.queue_event(ApiEvent::PortError { port, thread }, now_ns);
        }
        for run in lost {
            self.note_run_ended(core, run, now_ns, EndCause::Done, now_ns);
        }
    }
}

/// Says in the log what a run could not do.
fn tell_of_misses(name: &str, run: &Run) {
    let totals = run.totals();
    let missed = totals.0[0].missed;
    if missed > 0 {
        tracing::warn!(
            profile = name,
            missed,
            begun = super::figures::begun(&totals.0[0]),
            "connections were due and could not begin in time: lower the multiplier, or give the \
             server more data threads"
        );
    }
    if run.cause == EndCause::NotEstablished {
        tracing::warn!(
            profile = name,
            "no connection was established within e_duration"
        );
    }
}
