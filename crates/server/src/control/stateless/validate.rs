//! Says what a profile would send, without sending it.

use allosaur_api::Fields;
use allosaur_api::commands::traffic::{
    GRAPH_EVENTS_MAX, ProfileParams, Validated, ValidatedEvent, ValidatedGraph, ValidatedRates,
};
use allosaur_engine::stream::{Profile, RateEvent};

use super::start::{compile, l1_bps};
use super::state::Stateless;
use crate::control::core::Core;
use crate::control::reply::{Reply, reply};

impl Stateless {
    pub(super) fn validate(&self, control: &Core, fields: &Fields<'_>) -> Reply {
        let params = fields.read::<ProfileParams>()?;
        let port = control.port(params.port)?;
        let streams = self.port(control, params.port)?;
        let compiled = compile(
            (port, streams),
            &params.profile,
            &control.config,
            "validate",
        )?;
        reply(&validated(&compiled, port.config.line_rate_bps))
    }
}

fn validated(compiled: &Profile, line_rate_bps: f64) -> Validated {
    let (rates, fixed, graph) = (compiled.rates(), compiled.fixed_rates(), compiled.graph());
    let max_bps_l1 = l1_bps(compiled, 1.0);
    let percent = |bps: f64| bps / line_rate_bps * 100.0;
    let event = |event: &RateEvent| ValidatedEvent {
        time_usec: event.at as f64 / 1e3,
        diff_bps_l2: event.change.bps_l2_max,
        diff_bps_l1: event.change.bps_l1_max,
        diff_pps: event.change.pps_max,
        stream_id: event.stream,
    };
    Validated {
        rate: ValidatedRates {
            max_bps_l2: fixed.bps_l2_max + rates.bps_l2_max,
            max_bps_l1,
            max_pps: fixed.pps_max + rates.pps_max,
            max_line_util: percent(max_bps_l1),
            min_bps_l2: fixed.bps_l2_max,
            min_bps_l1: fixed.bps_l1_max,
            min_pps: fixed.pps_max,
            min_line_util: percent(fixed.bps_l1_max),
        },
        graph: ValidatedGraph {
            expected_duration: graph.duration.map_or(-1.0, |ns| ns as f64 / 1e3),
            events_count: graph.events.len(),
            events: graph
                .events
                .iter()
                .take(GRAPH_EVENTS_MAX)
                .map(event)
                .collect(),
        },
    }
}
