//! Metrics of flows: the rows of the table that the RPC has, by profile, template and side.
//!
//! A series of each row, template and side would be millions where there are thousands of
//! templates, so there is a limit, and rows that count errors are left out until one has happened.

use std::collections::BTreeMap;

use allosaur_engine::session::LatencyCounters;
use allosaur_engine::stateful::{FlowTableCounters, GroupCounters};

use super::encoder::{Encoder, Label};
use super::family::{Family, Kind, Read, Row};
use crate::control::catalog::{Catalog, CatalogRun};
use crate::control::stateful::rows::{CounterRow, CounterRowValues};
use crate::counters::Snapshot;

/// The templates of a profile that have series of their own. All others are added up as one.
const TEMPLATES_MAX: usize = 256;
/// What the label of those is.
const OTHERS: &str = "(others)";

const SIDE: &[&str] = &["side"];
const PROFILE: &[&str] = &["profile"];
const TEMPLATE: &[&str] = &["profile", "template"];
const TEMPLATE_SIDE: &[&str] = &["profile", "template", "side"];
const SIDES: [&str; 2] = ["client", "server"];

const STARTED: &str = "profiles of flows that were started";
const FAILED: &str = "a profile of flows was started, and it is not 0";
const MEASURED: &str = "templates with the add-on \"latency\" that measured";

/// What a template of a run has counted: clients, servers.
struct Template<'c> {
    profile: &'c str,
    name: &'c str,
    counters: [GroupCounters; 2],
}

pub(super) fn families() -> Vec<Family> {
    let rows = CounterRow::all().map(|row| of_row(&row));
    let mut all = vec![offered(), missed()];
    all.extend(now().map(|(family, _)| family));
    all.extend(rows);
    all.extend([app_latency(), app_messages()]);
    all.extend(app_extremes().map(|(family, _)| family));
    all
}

fn offered() -> Family {
    let help = "Connections per second that a profile asks for";
    Family::new(Kind::Gauge, "flows_offered_per_second", PROFILE, help).when(STARTED)
}

fn missed() -> Family {
    let help = "Connections that were due and could not begin in time: missed load";
    Family::new(Kind::Counter, "flows_missed", TEMPLATE, help).when(STARTED)
}

fn now() -> impl Iterator<Item = (Family, Read<GroupCounters, u64>)> {
    let rows: [Row<GroupCounters, u64>; 2] = [
        ("active_flows", "Flows that are open", |counters| {
            counters.active
        }),
        (
            "established_flows",
            "Of these, flows that are established",
            |counters| counters.established,
        ),
    ];
    rows.into_iter().map(|(name, help, of)| {
        let family = Family::new(Kind::Gauge, name, TEMPLATE_SIDE, help);
        (family.when(STARTED), of)
    })
}

fn of_row(row: &CounterRow) -> Family {
    let labels = match row.is_of_table() {
        true => SIDE,
        false => TEMPLATE_SIDE,
    };
    let name = row.name.strip_suffix("_total").unwrap_or(row.name);
    let family = Family::new(Kind::Counter, name, labels, row.help);
    match (row.is_of_table(), row.is_error) {
        (true, _) => family,
        (false, true) => family.when(FAILED),
        (false, false) => family.when(STARTED),
    }
}

fn app_latency() -> Family {
    let help = "Times there and back that the add-on \"latency\" of programs measured";
    Family::new(Kind::Summary, "app_latency_seconds", TEMPLATE_SIDE, help).when(MEASURED)
}

fn app_messages() -> Family {
    let help = "Messages of that add-on that arrived with a header";
    Family::new(Kind::Counter, "app_latency_messages", TEMPLATE_SIDE, help).when(MEASURED)
}

fn app_extremes() -> impl Iterator<Item = (Family, Read<LatencyCounters, u64>)> {
    let rows: [Row<LatencyCounters, u64>; 2] = [
        (
            "app_latency_min_seconds",
            "The shortest of these times",
            |counted| counted.min_time,
        ),
        (
            "app_latency_max_seconds",
            "The longest of these times",
            |counted| counted.max_time,
        ),
    ];
    rows.into_iter().map(|(name, help, of)| {
        let family = Family::new(Kind::Gauge, name, TEMPLATE_SIDE, help);
        (family.when(MEASURED), of)
    })
}

pub(super) fn write(catalog: &Catalog, snapshot: &Snapshot, encoder: &mut Encoder) {
    let offered = offered();
    let mut series = encoder.family(&offered);
    for run in &catalog.runs {
        series.value(&[run.profile.as_str().into()], run.offered_cps);
    }
    let templates: Vec<_> = catalog.runs.iter().flat_map(templates).collect();
    let missed = missed();
    let mut series = encoder.family(&missed);
    for template in &templates {
        let clients = &template.counters[0];
        series.value(&template.labels(), clients.missed);
    }
    for (family, of) in now() {
        let mut series = encoder.family(&family);
        for template in &templates {
            for (labels, counters) in template.sides() {
                series.value(&labels, of(counters));
            }
        }
    }
    write_rows(&templates, snapshot, encoder);
    write_app_latency(&templates, encoder);
}

fn write_rows(templates: &[Template<'_>], snapshot: &Snapshot, encoder: &mut Encoder) {
    let values: Vec<_> = templates
        .iter()
        .flat_map(Template::sides)
        .map(|(labels, counters)| (labels, CounterRowValues::of_flows(counters)))
        .collect();
    let tables = tables(snapshot).map(|table| CounterRowValues::of_table(&table));
    for row in CounterRow::all() {
        let family = of_row(&row);
        if row.is_of_table() {
            let mut series = encoder.family(&family);
            for (side, values) in SIDES.into_iter().zip(&tables) {
                series.value(&[side.into()], row.of(values));
            }
            continue;
        }
        let counted = values
            .iter()
            .map(|(labels, values)| (labels, row.of(values)));
        let mut counted = counted
            .filter(|(_, count)| !row.is_error || *count > 0)
            .peekable();
        if counted.peek().is_none() {
            continue;
        }
        let mut series = encoder.family(&family);
        for (labels, count) in counted {
            series.value(labels, count);
        }
    }
}

fn write_app_latency(templates: &[Template<'_>], encoder: &mut Encoder) {
    let sides = templates.iter().flat_map(Template::sides);
    let counted = sides.map(|(labels, counters)| (labels, &counters.flows.latency));
    let counted = counted.filter(|(_, counted)| **counted != LatencyCounters::default());
    let counted: Vec<_> = counted.collect();
    if counted.is_empty() {
        return;
    }
    let seconds = |usec: u64| usec as f64 / 1e6;
    let (latency, messages) = (app_latency(), app_messages());
    let mut series = encoder.family(&latency);
    for (labels, counted) in &counted {
        series.summary(labels, counted.measure_cnt, seconds(counted.total_time));
    }
    let mut series = encoder.family(&messages);
    for (labels, counted) in &counted {
        series.value(labels, counted.total_pkts);
    }
    for (family, of) in app_extremes() {
        let mut series = encoder.family(&family);
        for (labels, counted) in &counted {
            series.value(labels, seconds(of(counted)));
        }
    }
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

    fn sides(&self) -> impl Iterator<Item = ([Label<'_>; 3], &GroupCounters)> {
        let [profile, name] = self.labels();
        let sides = SIDES.into_iter().zip(&self.counters);
        sides.map(move |(side, counters)| ([profile, name, side.into()], counters))
    }
}
