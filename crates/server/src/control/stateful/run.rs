//! A run of a profile: what runs where, until when, and what it has counted.

use std::sync::Arc;

use allosaur_engine::stateful::{EndCause, RunIndex};
use allosaur_engine::template::CompiledProfile;
use allosaur_engine::time::Nanos;

use super::figures::{Both, Rate, Readings, TableTotals, group_sum};
use super::records::Records;
use crate::control::config::View;
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
    pub(super) server_epoch: u64,
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
