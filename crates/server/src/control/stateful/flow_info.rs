//! The command that tells of flows, one by one.

use allosaur_api::Fields;
use allosaur_api::commands::stateful::runs::{FlowInfo, FlowRecords};
use allosaur_engine::stateful::{FlowRecord, RunIndex};
use allosaur_engine::time::Nanos;

use super::state::Stateful;
use crate::control::reply::{Reply, reply};

impl Stateful {
    pub(super) fn flow_info(&self, fields: &Fields<'_>) -> Reply {
        let params: FlowInfo = fields.read()?;
        let profile = self.profile(&params.profile)?;
        let records = profile.run.as_ref().map(|run| &run.records);
        let shown = records.map_or(Vec::new(), |records| records.shown(params.index));
        reply(&FlowRecords(shown))
    }

    /// A data thread has looked at the flows of a run.
    pub(super) fn note_samples(&mut self, run: RunIndex, at: Nanos, records: Vec<FlowRecord>) {
        let profiles = self.profiles.values_mut();
        let mut runs = profiles.filter_map(|profile| profile.run.as_mut());
        if let Some(run) = runs.find(|of| of.index == run) {
            run.records.add(at, records);
        }
    }
}
