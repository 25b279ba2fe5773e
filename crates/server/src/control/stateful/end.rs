//! The end of a run, on all its data threads.

use allosaur_api::events::{Event as ApiEvent, StatefulPhase};
use allosaur_engine::stateful::{EndCause, RunIndex, StatefulCommand};
use allosaur_engine::time::Nanos;

use super::run::Run;
use super::state::Stateful;
use crate::control::core::Core;

impl Stateful {
    /// A data thread begins no more flows of a run, and all that it had are over.
    pub(super) fn note_run_ended(
        &mut self,
        control: &mut Core,
        core: usize,
        run: RunIndex,
        at: Nanos,
        cause: EndCause,
        now_ns: Nanos,
    ) {
        let profiles = self.profiles.iter_mut();
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
        control.command_all_flows(|| StatefulCommand::Retire { run: index });
        self.end_latency_with(control, &name);
        self.set_phase(control, &name, StatefulPhase::Cleanup, now_ns);
        self.set_phase(control, &name, StatefulPhase::Loaded, now_ns);
    }

    /// A data thread broke down, with all its flows. Others go on with theirs.
    pub(in crate::control) fn lose_flows(
        &mut self,
        control: &mut Core,
        core: usize,
        ports: &[u8],
        now_ns: Nanos,
    ) {
        let profiles = self.profiles.values();
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
            control.queue_event(ApiEvent::PortError { port, thread }, now_ns);
        }
        for run in lost {
            self.note_run_ended(control, core, run, now_ns, EndCause::Done, now_ns);
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
