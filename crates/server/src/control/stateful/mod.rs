//! Stateful traffic, as control sees it.
//!
//! What lives here so far: from the JSON of a profile to what data threads run ([`profile`]).

pub mod profile;

use allosaur_engine::stateful::Event;
use allosaur_engine::time::Nanos;

use super::Control;
use crate::orders::FlowReport;

impl Control {
    /// A data thread tells of its flows.
    pub(super) fn note_flow_report(&mut self, core: usize, report: FlowReport, now_ns: Nanos) {
        let (FlowReport::Event(Event::Ended { run, .. }) | FlowReport::Samples { run, .. }) =
            report;
        // Nothing starts a profile yet.
        tracing::error!(core, ?run, now_ns, "a report of an unknown profile");
    }
}
