//! How the flows of a profile ended, and how long they took, as the RPC and the simulator tell it.

use allosaur_api::Fields;
use allosaur_api::commands::stateful::profiles::StatefulProfile;
use allosaur_api::commands::stateful::runs::{
    ApplicationCount, DurationStats, FlowDurations, FlowOutcomes, GroupOutcomes, OutcomeCounts,
};
use allosaur_engine::app::AppRow;
use allosaur_engine::session::{FlowTimes, OutcomeCounters, TimeHistogram};

use super::figures::{Both, group_sum};
use super::run::Run;
use super::state::Stateful;
use crate::control::reply::{Reply, reply};

/// How flows ended, those of all groups and of each, and how long those of clients took.
pub fn told<'n>(
    all: [&OutcomeCounters; 2],
    groups: impl Iterator<Item = (&'n str, [OutcomeCounters; 2])>,
    times: &FlowTimes,
    applications: Vec<ApplicationCount>,
) -> FlowOutcomes {
    let groups = groups.map(|(name, sides)| {
        let [client, server] = sides.each_ref().map(counts);
        (name.to_owned(), GroupOutcomes { client, server })
    });
    let [client, server] = all.map(counts);
    FlowOutcomes {
        client,
        server,
        groups: groups.collect(),
        times: FlowDurations {
            connect: distribution(&times.connect),
            first_byte: distribution(&times.first_byte),
            program: distribution(&times.program),
            handshake: distribution(&times.handshake),
            response_begin: distribution(&times.response_begin),
            response: distribution(&times.response),
        },
        applications,
    }
}

/// What applications over bytes counted in the rows of a profile: clients, servers.
pub fn applications(rows: &[AppRow], sums: &[Vec<u64>; 2]) -> Vec<ApplicationCount> {
    let [clients, servers] = sums;
    let counted = rows.iter().zip(clients).zip(servers);
    let is_told = |row: &AppRow, count| count > 0 || !(row.is_error || row.is_sparse);
    let told = counted.filter(|((row, client), server)| is_told(row, **client + **server));
    told.map(|((row, &client), &server)| ApplicationCount {
        name: row.name,
        label: row.label.map(|(_, value)| value),
        is_error: row.is_error,
        client,
        server,
    })
    .collect()
}

fn counts(counters: &OutcomeCounters) -> OutcomeCounts {
    // Without `..`: a counter that is new must be told.
    let &OutcomeCounters {
        completed,
        reset,
        closed_early,
        timed_out,
        refused,
        cut_off,
        aborted,
        unanswered,
        http_1xx,
        http_2xx,
        http_3xx,
        http_4xx,
        http_5xx,
        http_other,
    } = counters;
    OutcomeCounts {
        completed,
        reset,
        closed_early,
        timed_out,
        refused,
        cut_off,
        aborted,
        unanswered,
        http_1xx,
        http_2xx,
        http_3xx,
        http_4xx,
        http_5xx,
        http_other,
    }
}

fn distribution(times: &TimeHistogram) -> DurationStats {
    let count = times.total();
    if count == 0 {
        return DurationStats::default();
    }
    // A tenth of a microsecond is more than is known.
    let micros = |seconds: f64| Some((seconds * 1e7).round() / 10.0);
    let share = |share: f64| micros(times.quantile_s(share));
    DurationStats {
        count,
        min_us: micros(times.min_s()),
        average_us: micros(times.sum_s() / count as f64),
        max_us: micros(times.max_s()),
        p50_us: share(0.5),
        p90_us: share(0.9),
        p99_us: share(0.99),
        p99_9_us: share(0.999),
    }
}

impl Run {
    /// How long the flows of its clients took.
    fn times(&self) -> FlowTimes {
        let mut times = FlowTimes::default();
        for block in &self.blocks {
            times.add(&block.times());
        }
        times
    }
}

impl Stateful {
    pub(super) fn flow_outcomes(&self, fields: &Fields<'_>) -> Reply {
        let params: StatefulProfile = fields.read()?;
        let profile = self.profile(&params.profile)?;
        let Some(run) = &profile.run else {
            let none = OutcomeCounters::default();
            let times = FlowTimes::default();
            return reply(&told(
                [&none, &none],
                std::iter::empty(),
                &times,
                Vec::new(),
            ));
        };
        let Both([clients, servers]) = run.totals();
        let groups = run.profile.groups().iter().zip(1..);
        let groups = groups.map(|(name, number)| {
            let Both(sides) = group_sum(&run.blocks, number);
            (name.as_str(), sides.map(|side| side.flows.outcomes))
        });
        let all = [&clients.flows.outcomes, &servers.flows.outcomes];
        let rows = run.profile.application_rows();
        let mut sums = [vec![0; rows.len()], vec![0; rows.len()]];
        for block in &run.blocks {
            block.add_rows(&mut sums);
        }
        let applications = applications(&rows, &sums);
        reply(&told(all, groups, &run.times(), applications))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_not_counted_is_told_as_zero_and_times_without_figures() {
        let mut client = OutcomeCounters::default();
        (client.completed, client.http_other) = (3, 1);
        let server = OutcomeCounters::default();
        let groups = [("web", [client.clone(), server.clone()])];
        let told = told(
            [&client, &server],
            groups.into_iter(),
            &FlowTimes::default(),
            Vec::new(),
        );
        let reply = reply(&told).expect("it is no error");
        assert_eq!(reply["client"]["completed"], 3);
        assert_eq!(reply["client"]["reset"], 0);
        assert_eq!(reply["server"]["unanswered"], 0);
        assert_eq!(reply["groups"]["web"]["client"], reply["client"]);
        let none = json!({"count": 0});
        let times = json!({"connect": none, "first_byte": none, "program": none, "handshake": none,
                   "response_begin": none, "response": none});
        assert_eq!(reply["times"], times);
    }
}
