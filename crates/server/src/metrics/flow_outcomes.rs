//! Metrics of how flows ended and how long they took, by profile.

use allosaur_engine::session::{FlowTimes, OutcomeCounters, TimeHistogram};

use super::catalog::{CatalogRun, Readout};
use super::row::{Distribution, QUANTILES, Row, Sink, Table};

const SIDES: [&str; 2] = ["client", "server"];

const STARTED: &str = "profiles of flows that were started";
const ANSWERED: &str = "profiles whose clients had an answer to a request of HTTP/1";
const MEASURED: &str = "profiles whose clients began flows that came so far";

const OUTCOMES: Table<'_, u64> = Table {
    prefix: "",
    labels: &["profile", "side", "outcome"],
    when: STARTED,
    rows: &[Row::counter(
        "flow_outcomes",
        "Flows that ended so: completed, reset, closed_early, timed_out, refused, cut_off or aborted",
        |flows| *flows,
    )
    .unit("flows")],
};

const UNANSWERED: Table<'_, OutcomeCounters> = Table {
    prefix: "",
    labels: &["profile", "side"],
    when: STARTED,
    rows: &[Row::counter(
        "flow_unanswered",
        "Flows whose program waits for data, and that ended without any",
        |side: &OutcomeCounters| side.unanswered,
    )
    .unit("flows")],
};

const ANSWERS: Table<'_, u64> = Table {
    prefix: "",
    labels: &["profile", "class"],
    when: "",
    rows: &[Row::counter(
        "flow_http_responses",
        "Answers to requests of HTTP/1 by the class of their status; other: no status line",
        |answers| *answers,
    )
    .unit("responses")
    .sparse(ANSWERED)],
};

const TIMES: Table<'_, FlowTimes> = Table {
    prefix: "",
    labels: &["profile"],
    when: "",
    rows: &[
        Row::summary(
            "flow_connect_seconds",
            "How long connections of clients took to be there, from the SYN on",
            |times: &FlowTimes| distribution(&times.connect),
        )
        .sparse(MEASURED),
        Row::summary(
            "flow_first_byte_seconds",
            "How long clients' flows waited for the first data, from their beginning on",
            |times: &FlowTimes| distribution(&times.first_byte),
        )
        .sparse(MEASURED),
        Row::summary(
            "flow_program_seconds",
            "How long the programs of clients took, from the beginning of the flow on, of those that completed",
            |times: &FlowTimes| distribution(&times.program),
        )
        .sparse(MEASURED),
        Row::summary(
            "flow_handshake_seconds",
            "How long handshakes of clients took that secured a connection, such as TLS",
            |times: &FlowTimes| distribution(&times.handshake),
        )
        .sparse(MEASURED),
        Row::summary(
            "flow_response_begin_seconds",
            "How long clients of HTTP waited for the first byte of a response, from its request on",
            |times: &FlowTimes| distribution(&times.response_begin),
        )
        .sparse(MEASURED),
        Row::summary(
            "flow_response_seconds",
            "How long clients of HTTP waited for the last byte of a response, from its request on",
            |times: &FlowTimes| distribution(&times.response),
        )
        .sparse(MEASURED),
    ],
};

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
    fn answers(&self) -> impl Iterator<Item = (&'static str, u64)> + Clone + use<> {
        let rows = OutcomeCounters::NAMES.iter().zip(self.sides[0].values());
        rows.filter_map(|(name, count)| Some((name.strip_prefix(HTTP)?, count)))
    }
}

pub(super) fn show(readout: &Readout<'_>, sink: &mut dyn Sink) {
    let runs = match sink.wants("flow_") {
        true => &readout.catalog.runs[..],
        false => &[],
    };
    let runs: Vec<_> = runs.iter().map(Counted::of).collect();
    let sides = runs.iter().flat_map(|run| {
        let sides = SIDES.into_iter().zip(&run.sides);
        sides.map(|(side, counted)| ([run.profile.into(), side.into()], counted))
    });
    let outcomes = sides.clone().flat_map(|([profile, side], counted)| {
        let rows = OutcomeCounters::NAMES.iter().zip(counted.values());
        let ends = rows.take(OutcomeCounters::ENDS);
        ends.map(move |(outcome, flows)| ([profile, side, (*outcome).into()], flows))
    });
    OUTCOMES.show(sink, outcomes);
    UNANSWERED.show(sink, sides);
    let answered = runs
        .iter()
        .filter(|run| run.answers().any(|(_, count)| count > 0));
    let answers = answered.flat_map(|run| {
        let answers = run.answers();
        answers.map(|(class, count)| ([run.profile.into(), class.into()], count))
    });
    ANSWERS.show(sink, answers);
    TIMES.show(
        sink,
        runs.iter().map(|run| ([run.profile.into()], &run.times)),
    );
}

/// Times that were measured, if there are any.
fn distribution(times: &TimeHistogram) -> Option<Distribution> {
    let quantiles = QUANTILES.map(|(name, share)| (name, times.quantile_s(share)));
    (times.total() > 0).then(|| Distribution {
        count: times.total(),
        sum: times.sum_s(),
        buckets: Vec::new(),
        quantiles: quantiles.into(),
        extremes: Some((times.min_s(), times.max_s())),
    })
}
