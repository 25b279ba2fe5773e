//! The command that tells of flows, one by one.

use allosaur_api::Fields;
use allosaur_api::commands::stateful::runs::FlowInfo;
use allosaur_engine::stateful::{FlowRecord, RunIndex};
use allosaur_engine::time::Nanos;
use serde_json::json;

use super::state::Stateful;
use crate::control::reply::Reply;
impl Stateful {
    pub(super) fn flow_info(&self, fields: &Fields<'_>) -> Reply {
        let params = FlowInfo::parse(fields)?;
        let profile = self.profile(&params.profile)?;
        let records = profile.run.as_ref().map(|run| &run.records);
        Ok(json!(
            records.map_or(Vec::new(), |records| records.shown(params.index))
        ))
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
