//! Metrics of flows: the rows of the table that the RPC has, by profile, template and side.
//!
//! A series of each row, template and side would be millions where there are thousands of
//! templates, so there is a limit, and rows that count errors are left out until one has happened.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use allosaur_engine::session::LatencyCounters;
use allosaur_engine::stateful::{FlowTableCounters, GroupCounters};

use super::catalog::{CatalogRun, Readout};
use super::flow_rows::{Class, FLOW_ROWS, FlowPlace, FlowRow, FlowValues};
use super::row::{Distribution, Label, Row, Sink, Table};
use crate::counters::Snapshot;

/// The templates of a profile that have series of their own. All others are added up as one.
const TEMPLATES_MAX: usize = 256;
/// What the label of those is.
const OTHERS: &str = "(others)";

const TEMPLATE_SIDE: &[&str] = &["profile", "template", "side"];
const SIDES: [&str; 2] = ["client", "server"];

const STARTED: &str = "profiles of flows that were started";
const FAILED: &str = "a profile of flows was started, and it is not 0";
const MEASURED: &str = "templates with the add-on \"latency\" that measured";

const OFFERED: Table<'_, CatalogRun> = Table {
    prefix: "",
    labels: &["profile"],
    when: STARTED,
    rows: &[Row::gauge_of_parts(
        "flows_offered_per_second",
        "Connections per second that a profile asks for",
        |run| run.offered_cps,
    )],
};

const MISSED: Table<'_, GroupCounters> = Table {
    prefix: "",
    labels: &["profile", "template"],
    when: STARTED,
    rows: &[Row::counter(
        "flows_missed",
        "Connections that were due and could not begin in time: missed load",
        |clients: &GroupCounters| clients.missed,
    )
    .unit("flows")
    .error()],
};

const NOW: Table<'_, GroupCounters> = Table {
    prefix: "",
    labels: TEMPLATE_SIDE,
    when: STARTED,
    rows: &[
        Row::gauge(
            "active_flows",
            "Flows that are open",
            |side: &GroupCounters| side.active,
        )
        .unit("flows"),
        Row::gauge(
            "established_flows",
            "Of these, flows that are established",
            |side: &GroupCounters| side.established,
        )
        .unit("flows"),
    ],
};

/// What flows count, and what belongs to no flow.
static COUNTERS: LazyLock<[Vec<Row<FlowValues>>; 2]> = LazyLock::new(|| {
    let rows = (0..).zip(&FLOW_ROWS);
    let rows = rows.filter_map(|(number, row)| Some((number, row, row.place()?)));
    let is_of_table = |place| matches!(place, FlowPlace::Table(_));
    let (table, flows): (Vec<_>, Vec<_>) = rows.partition(|(_, _, place)| is_of_table(*place));
    let of_flows = flows
        .into_iter()
        .map(|(number, row, _)| of_flows(number, row));
    let of_table = table
        .into_iter()
        .map(|(number, row, _)| of_table(number, row));
    [of_flows.collect(), of_table.collect()]
});

const ADDON: Table<'_, LatencyCounters> = Table {
    prefix: "",
    labels: TEMPLATE_SIDE,
    when: "",
    rows: &[
        Row::summary(
            "app_latency_seconds",
            "Times there and back that the add-on \"latency\" of programs measured",
            |counted: &LatencyCounters| Some(times(counted)),
        )
        .sparse(MEASURED),
        Row::counter(
            "app_latency_messages",
            "Messages of that add-on that arrived with a header",
            |counted: &LatencyCounters| counted.total_pkts,
        )
        .unit("messages")
        .sparse(MEASURED),
        Row::gauge_of_parts(
            "app_latency_min_seconds",
            "The shortest of these times",
            |counted: &LatencyCounters| usec(counted.min_time),
        )
        .sparse(MEASURED),
        Row::gauge_of_parts(
            "app_latency_max_seconds",
            "The longest of these times",
            |counted: &LatencyCounters| usec(counted.max_time),
        )
        .sparse(MEASURED),
    ],
};

/// What a template of a run has counted: clients, servers.
struct Template<'c> {
    profile: &'c str,
    name: &'c str,
    counters: [GroupCounters; 2],
}

/// A row of flows. Those that count errors have series once there is an error.
fn of_flows(number: usize, row: &FlowRow) -> Row<FlowValues> {
    let (name, help) = described(row);
    match row.0 {
        Class::Error => Row::counter_if_any(name, help, value_unless_zero, number)
            .error()
            .sparse(FAILED),
        _ => Row::counter_at(name, help, value, number).sparse(STARTED),
    }
}

/// A row of what belongs to no flow.
fn of_table(number: usize, row: &FlowRow) -> Row<FlowValues> {
    let (name, help) = described(row);
    let made = Row::counter_at(name, help, value, number);
    match row.0 {
        Class::Error => made.error(),
        _ => made,
    }
}

/// The name in metrics, and the meaning.
fn described(row: &FlowRow) -> (Cow<'static, str>, &'static str) {
    let FlowRow(_, name, _, help) = *row;
    (name.strip_suffix("_total").unwrap_or(name).into(), help)
}

/// The value of the row of that number.
fn value(values: &FlowValues, number: usize) -> u64 {
    FLOW_ROWS[number]
        .place()
        .map_or(0, |place| values.of(place))
}

/// The same, if it is not 0.
fn value_unless_zero(values: &FlowValues, number: usize) -> Option<u64> {
    Some(value(values, number)).filter(|count| *count > 0)
}

fn usec(usec: u64) -> f64 {
    usec as f64 / 1e6
}

fn times(counted: &LatencyCounters) -> Distribution {
    Distribution {
        count: counted.measure_cnt,
        sum: usec(counted.total_time),
        extremes: (counted.measure_cnt > 0)
            .then(|| (usec(counted.min_time), usec(counted.max_time))),
        ..Distribution::default()
    }
}

pub(super) fn show(readout: &Readout<'_>, sink: &mut dyn Sink) {
    let runs = readout.catalog.runs.iter();
    OFFERED.show(
        sink,
        runs.clone().map(|run| ([run.profile.as_str().into()], run)),
    );
    let templates: Vec<_> = runs.flat_map(templates).collect();
    let clients = templates.iter();
    MISSED.show(
        sink,
        clients.map(|template| (template.labels(), &template.counters[0])),
    );
    let sides = templates.iter().flat_map(Template::sides);
    NOW.show(sink, sides.clone());
    let values = sides.clone();
    let values = values.map(|(labels, counters)| (labels, FlowValues::new(counters, None)));
    let values: Vec<_> = values.collect();
    let table = Table {
        prefix: "",
        labels: TEMPLATE_SIDE,
        when: "",
        rows: &COUNTERS[0],
    };
    table.show(sink, values.iter().map(|(labels, values)| (labels, values)));
    let no_flows = GroupCounters::default();
    let tables = tables(readout.snapshot).map(|table| FlowValues::new(&no_flows, Some(&table)));
    let table = Table {
        prefix: "",
        labels: &["side"],
        when: "",
        rows: &COUNTERS[1],
    };
    let tables = SIDES.into_iter().zip(&tables);
    table.show(sink, tables.map(|(side, values)| ([side.into()], values)));
    let measured = sides.map(|(labels, counters)| (labels, &counters.flows.latency));
    let measured = measured.filter(|(_, counted)| **counted != LatencyCounters::default());
    ADDON.show(sink, measured);
}

/// What the tables of flows have counted, of all threads: clients, servers.
fn tables(snapshot: &Snapshot) -> [FlowTableCounters; 2] {
    let mut totals = <[FlowTableCounters; 2]>::default();
    for thread in &snapshot.flow_tables {
        for (total, counted) in totals.iter_mut().zip(thread) {
            total.add(counted);
        }
    }
    totals
}

/// What the templates of a run have counted, those without a name first and together.
fn templates(run: &CatalogRun) -> Vec<Template<'_>> {
    let names = run.compiled.groups().iter().map(String::as_str);
    let mut templates = run.compiled.templates().iter();
    let has_nameless = templates.any(|template| template.group == 0);
    let numbered = std::iter::once("").chain(names).enumerate();
    let numbered = numbered.skip(usize::from(!has_nameless));
    let mut by_name: BTreeMap<usize, Template<'_>> = BTreeMap::new();
    for (place, (number, name)) in numbered.enumerate() {
        let is_other = place >= TEMPLATES_MAX;
        let template = by_name
            .entry(place.min(TEMPLATES_MAX))
            .or_insert_with(|| Template {
                profile: &run.profile,
                name: if is_other { OTHERS } else { name },
                counters: Default::default(),
            });
        for block in &run.blocks {
            let counted = block.group(number);
            for (total, counted) in template.counters.iter_mut().zip(&counted) {
                total.add(counted);
            }
        }
    }
    let mut templates: Vec<_> = by_name.into_values().collect();
    if run.is_over {
        // What a thread that broke down had at the end is no more.
        for side in templates.iter_mut().flat_map(|one| &mut one.counters) {
            (side.active, side.established) = (0, 0);
        }
    }
    templates
}

impl Template<'_> {
    fn labels(&self) -> [Label<'_>; 2] {
        [self.profile.into(), self.name.into()]
    }

    fn sides(&self) -> impl Iterator<Item = ([Label<'_>; 3], &GroupCounters)> + Clone {
        let [profile, name] = self.labels();
        let sides = SIDES.into_iter().zip(&self.counters);
        sides.map(move |(side, counters)| ([profile, name, side.into()], counters))
    }
}
