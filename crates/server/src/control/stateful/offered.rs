//! What stateful traffic was asked for, against what it does.

use allosaur_api::Fields;
use allosaur_api::commands::stateful::profiles::StatefulProfile;
use allosaur_api::commands::stateful::runs::{FlowRates, RunEnd};
use allosaur_api::commands::statistics::StatefulStats;
use allosaur_engine::stateful::EndCause;
use allosaur_engine::time::{Nanos, SECOND};

use super::figures::{begun, established};
use super::run::Run;
use super::state::Stateful;
use crate::control::config::View;
use crate::control::reply::{Reply, reply};
use crate::metrics::CatalogRun;

impl Run {
    /// Connections per second that are asked for at a time.
    pub(super) fn offered_cps(&self, now_ns: Nanos) -> f64 {
        if self.ended_at.is_some() {
            return 0.0;
        }
        let passed_s = now_ns.saturating_sub(self.start_at) as f64 / SECOND as f64;
        let ramp = match self.profile.rampup_s() {
            Some(span_s) => (passed_s / f64::from(span_s)).min(1.0),
            None => 1.0,
        };
        self.profile.rate_cps_of(self.share) * self.factor * ramp
    }
}

impl Stateful {
    pub(super) fn flow_rates(&self, fields: &Fields<'_>, view: &View<'_>) -> Reply {
        let params: StatefulProfile = fields.read()?;
        let profile = self.profile(&params.profile)?;
        let Some(run) = &profile.run else {
            return reply(&FlowRates::default());
        };
        let [clients, _] = run.totals().0;
        let [rate, _] = run.rates();
        let ended_by = run.ended_at.map(|_| match run.cause {
            EndCause::Done => RunEnd::Done,
            EndCause::Stopped => RunEnd::Stopped,
            EndCause::NotEstablished => RunEnd::NotEstablished,
        });
        reply(&FlowRates {
            offered_cps: run.offered_cps(view.now_ns),
            begun_cps: rate.begun_cps,
            achieved_cps: rate.established_cps,
            begun: begun(&clients),
            established: established(&clients),
            missed: clients.missed,
            duration_s: run.duration_s(view.now_ns),
            ended_by,
            hosts: run.profile.host_count(),
        })
    }

    /// The profiles that run or have run, for those who read their counters.
    pub(in crate::control) fn catalog_runs(&self, now_ns: Nanos) -> Vec<CatalogRun> {
        let profiles = self.profiles.iter();
        let runs = profiles.filter_map(|(name, profile)| Some((name, profile.run.as_ref()?)));
        let entry = |(name, run): (&String, &Run)| CatalogRun {
            profile: name.clone(),
            compiled: run.profile.clone(),
            blocks: run.blocks.clone(),
            is_over: run.ended_at.is_some(),
            offered_cps: run.offered_cps(now_ns),
        };
        runs.map(entry).collect()
    }

    /// The part of the statistics of the whole server that is about flows.
    pub(in crate::control) fn stateful_stats(&self, now_ns: Nanos) -> StatefulStats {
        let mut stats = StatefulStats::default();
        let runs = self.profiles.values();
        let runs = runs.filter_map(|profile| profile.run.as_ref());
        let mut totals = self.retired.clone();
        for run in runs {
            let offered_cps = run.offered_cps(now_ns);
            let [clients, servers] = run.rates();
            // With clients elsewhere, servers know how many connections there are.
            stats.m_tx_cps += clients.begun_cps.max(servers.established_cps);
            stats.m_tx_expected_cps += offered_cps;
            if run.profile.rate_cps() > 0.0 {
                let bits = run.profile.rate_bps() / run.profile.rate_cps();
                stats.m_tx_expected_bps += offered_cps * bits;
            }
            if run.server_epoch == self.epoch {
                totals.add(&run.totals());
            }
        }
        let [clients, servers] = &totals.0;
        stats.m_active_flows = clients.active.max(servers.active) as f64;
        let accepted = servers.flows.tcp.accepts + servers.flows.udp.accepts;
        stats.m_open_flows = begun(clients).max(accepted) as f64;
        stats
    }
}
