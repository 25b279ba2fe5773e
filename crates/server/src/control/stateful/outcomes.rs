//! How the flows of a profile ended, and how long they took, as the RPC and the simulator tell it.

use allosaur_api::Fields;
use allosaur_api::commands::ports::profile_id;
use allosaur_engine::session::{FlowTimes, OutcomeCounters, TimeHistogram};
use serde_json::{Map, Value, json};

use super::figures::{Both, group_sum};
use super::run::Run;
use super::state::Stateful;
use crate::control::reply::Reply;

/// The percentiles that are told, by the ends of their names.
const PERCENTILES: [(&str, f64); 4] = [
    ("p50_us", 0.5),
    ("p90_us", 0.9),
    ("p99_us", 0.99),
    ("p99_9_us", 0.999),
];

/// How flows ended, those of all groups and of each, and how long those of clients took.
pub fn told<'n>(
    all: [&OutcomeCounters; 2],
    groups: impl Iterator<Item = (&'n str, [OutcomeCounters; 2])>,
    times: &FlowTimes,
) -> Value {
    let groups = groups.map(|(name, sides)| {
        let [client, server] = sides.each_ref().map(counts);
        (name.to_owned(), json!({"client": client, "server": server}))
    });
    let groups: Map<String, Value> = groups.collect();
    let times = FlowTimes::NAMES.iter().zip(times.all());
    let times: Map<String, Value> = times
        .map(|(name, times)| ((*name).to_owned(), distribution(times)))
        .collect();
    let [client, server] = all.map(counts);
    json!({"client": client, "server": server, "groups": groups, "times": times})
}

fn counts(counters: &OutcomeCounters) -> Value {
    let rows = OutcomeCounters::NAMES.iter().zip(counters.values());
    let rows = rows.map(|(name, value)| ((*name).to_owned(), json!(value)));
    Value::Object(rows.collect())
}

fn distribution(times: &TimeHistogram) -> Value {
    let count = times.total();
    if count == 0 {
        return json!({"count": 0});
    }
    // A tenth of a microsecond is more than is known.
    let micros = |seconds: f64| json!((seconds * 1e7).round() / 10.0);
    let mut told = json!({
        "count": count,
        "min_us": micros(times.min_s()),
        "average_us": micros(times.sum_s() / count as f64),
        "max_us": micros(times.max_s()),
    });
    for (name, share) in PERCENTILES {
        told[name] = micros(times.quantile_s(share));
    }
    told
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
        let profile = self.profile(&profile_id(fields)?)?;
        let Some(run) = &profile.run else {
            let none = OutcomeCounters::default();
            let times = FlowTimes::default();
            return Ok(told([&none, &none], std::iter::empty(), &times));
        };
        let Both([clients, servers]) = run.totals();
        let groups = run.profile.groups().iter().zip(1..);
        let groups = groups.map(|(name, number)| {
            let Both(sides) = group_sum(&run.blocks, number);
            (name.as_str(), sides.map(|side| side.flows.outcomes))
        });
        let all = [&clients.flows.outcomes, &servers.flows.outcomes];
        Ok(told(all, groups, &run.times()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_counted_is_told_as_zero_and_times_without_figures() {
        let mut client = OutcomeCounters::default();
        (client.completed, client.http_other) = (3, 1);
        let server = OutcomeCounters::default();
        let groups = [("web", [client.clone(), server.clone()])];
        let reply = told(
            [&client, &server],
            groups.into_iter(),
            &FlowTimes::default(),
        );
        assert_eq!(reply["client"]["completed"], 3);
        assert_eq!(reply["client"]["reset"], 0);
        assert_eq!(reply["server"]["unanswered"], 0);
        assert_eq!(reply["groups"]["web"]["client"], reply["client"]);
        let none = json!({"count": 0});
        let times = json!({"connect": none, "first_byte": none, "program": none});
        assert_eq!(reply["times"], times);
    }
}
