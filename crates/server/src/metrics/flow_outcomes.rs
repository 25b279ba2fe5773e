//! Metrics of how flows ended and how long they took, by profile.

use allosaur_engine::session::{FlowTimes, OutcomeCounters};

use super::encoder::Encoder;
use super::family::{Family, Kind};
use crate::control::catalog::{Catalog, CatalogRun};

const OUTCOME: &[&str] = &["profile", "side", "outcome"];
const SIDE: &[&str] = &["profile", "side"];
const CLASS: &[&str] = &["profile", "class"];
const PROFILE: &[&str] = &["profile"];
const SIDES: [&str; 2] = ["client", "server"];

const STARTED: &str = "profiles of flows that were started";
const ANSWERED: &str = "profiles whose clients had an answer to a request of HTTP/1";
const MEASURED: &str = "profiles whose clients began flows that came so far";

/// What the names of the counters of answers begin with.
const HTTP: &str = "http_";

/// What a run has counted: clients, servers, and the times of clients' flows.
struct Counted<'c> {
    profile: &'c str,
    sides: [OutcomeCounters; 2],
    times: FlowTimes,
}

impl Counted<'_> {
    fn of(run: &CatalogRun) -> Counted<'_> {
        let mut counted = Counted {
            profile: &run.profile,
            sides: Default::default(),
            times: FlowTimes::default(),
        };
        for block in &run.blocks {
            for (sum, side) in counted.sides.iter_mut().zip(block.totals()) {
                sum.add(&side.flows.outcomes);
            }
            counted.times.add(&block.times());
        }
        counted
    }

    /// Answers to requests of HTTP/1, by their class.
    fn answers(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let rows = OutcomeCounters::NAMES.iter().zip(self.sides[0].values());
        rows.filter_map(|(name, count)| Some((name.strip_prefix(HTTP)?, count)))
    }
}

pub(super) fn families() -> Vec<Family> {
    let mut all = vec![outcomes(), unanswered(), answers()];
    all.extend(times());
    all
}

fn outcomes() -> Family {
    let help = "Flows that ended so: completed, reset, closed_early, timed_out, refused, cut_off or aborted";
    Family::new(Kind::Counter, "flow_outcomes", OUTCOME, help).when(STARTED)
}

fn unanswered() -> Family {
    let help = "Flows whose program waits for data, and that ended without any";
    Family::new(Kind::Counter, "flow_unanswered", SIDE, help).when(STARTED)
}

fn answers() -> Family {
    let help = "Answers to requests of HTTP/1 by the class of their status; other: no status line";
    Family::new(Kind::Counter, "flow_http_responses", CLASS, help).when(ANSWERED)
}

/// In the order of [`FlowTimes::all`].
fn times() -> [Family; FlowTimes::NAMES.len()] {
    let helps = [
        "How long connections of clients took to be there, from the SYN on",
        "How long clients' flows waited for the first data, from their beginning on",
        "How long the programs of clients took, from the beginning of the flow on, of those that completed",
    ];
    std::array::from_fn(|n| {
        let name = format!("flow_{}_seconds", FlowTimes::NAMES[n]);
        Family::new(Kind::Summary, &name, PROFILE, helps[n]).when(MEASURED)
    })
}

pub(super) fn write(catalog: &Catalog, encoder: &mut Encoder) {
    let runs: Vec<_> = catalog.runs.iter().map(Counted::of).collect();
    let family = outcomes();
    let mut series = encoder.family(&family);
    for run in &runs {
        for (side, counters) in SIDES.into_iter().zip(&run.sides) {
            let rows = OutcomeCounters::NAMES.iter().zip(counters.values());
            for (outcome, count) in rows.take(OutcomeCounters::ENDS) {
                series.value(&[run.profile.into(), side.into(), (*outcome).into()], count);
            }
        }
    }
    let family = unanswered();
    let mut series = encoder.family(&family);
    for run in &runs {
        for (side, counters) in SIDES.into_iter().zip(&run.sides) {
            series.value(&[run.profile.into(), side.into()], counters.unanswered);
        }
    }
    write_answers(&runs, encoder);
    write_times(&runs, encoder);
}

fn write_answers(runs: &[Counted<'_>], encoder: &mut Encoder) {
    let has_any = |run: &&Counted<'_>| run.answers().any(|(_, count)| count > 0);
    let runs: Vec<_> = runs.iter().filter(has_any).collect();
    if runs.is_empty() {
        return;
    }
    let family = answers();
    let mut series = encoder.family(&family);
    for run in runs {
        for (class, count) in run.answers() {
            series.value(&[run.profile.into(), class.into()], count);
        }
    }
}

fn write_times(runs: &[Counted<'_>], encoder: &mut Encoder) {
    for (number, family) in times().iter().enumerate() {
        let counted = runs
            .iter()
            .map(|run| (run.profile, run.times.all()[number]));
        let mut counted = counted.filter(|(_, times)| times.total() > 0).peekable();
        if counted.peek().is_none() {
            continue;
        }
        let mut series = encoder.family(family);
        for (profile, times) in counted {
            series.summary(&[profile.into()], times.total(), times.sum_s());
        }
    }
}
