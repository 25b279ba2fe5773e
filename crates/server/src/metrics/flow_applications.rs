//! Metrics that applications over bytes declare for themselves ([`AppRow`]), by profile and side: rows
//! of one name are a metric, whose last label is theirs.

use std::sync::LazyLock;

use allosaur_engine::app::AppRow;
use allosaur_l7::{http, tls};

use super::catalog::{CatalogRun, Readout};
use super::row::{Label, Row, Sink, Table};

const SIDES: [&str; 2] = ["client", "server"];
const USED: &str = "profiles whose programs run over it";
const COUNTED: &str = "it is not 0";
const FAILED: &str = "a profile whose programs run over it was started, and it is not 0";

/// What all applications declare.
fn declared() -> impl Iterator<Item = &'static AppRow> {
    tls::rows().iter().chain(http::rows())
}

/// A metric of applications.
struct Metric {
    name: &'static str,
    labels: [&'static str; 3],
    rows: [Row<u64>; 1],
}

static METRICS: LazyLock<Vec<Metric>> = LazyLock::new(|| {
    let mut metrics: Vec<Metric> = Vec::new();
    for row in declared() {
        if metrics.iter().all(|metric| metric.name != row.name) {
            metrics.push(Metric::of(row));
        }
    }
    metrics
});

impl Metric {
    fn of(row: &'static AppRow) -> Metric {
        let made = Row::counter(row.name, row.help, |count: &u64| *count).unit(row.unit);
        Metric {
            name: row.name,
            labels: ["profile", "side", row.label.map_or("", |(label, _)| label)],
            rows: [match (row.is_error, row.is_sparse) {
                (true, _) => made.error().sparse(FAILED),
                (false, true) => made.sparse(COUNTED),
                (false, false) => made.sparse(USED),
            }],
        }
    }
}

/// What a side of a run counted in a row.
type Counted<'c> = ([Label<'c>; 3], &'static str, u64);

pub(super) fn show(readout: &Readout<'_>, sink: &mut dyn Sink) {
    let is_wanted = METRICS.iter().any(|metric| sink.wants(metric.name));
    let runs = match is_wanted {
        true => &readout.catalog.runs[..],
        false => &[],
    };
    let counted: Vec<Counted<'_>> = runs.iter().flat_map(counted).collect();
    for metric in METRICS.iter() {
        let table = Table {
            prefix: "",
            labels: &metric.labels,
            when: "",
            rows: &metric.rows,
        };
        let mine = counted.iter().filter(|(_, name, _)| *name == metric.name);
        table.show(sink, mine.map(|(labels, _, count)| (labels, *count)));
    }
}

/// What a run counted; errors only where there are some.
fn counted(run: &CatalogRun) -> impl Iterator<Item = Counted<'_>> {
    let rows = run.compiled.application_rows();
    let mut sums = [vec![0; rows.len()], vec![0; rows.len()]];
    for block in &run.blocks {
        block.add_rows(&mut sums);
    }
    let sides = SIDES.into_iter().zip(sums);
    sides.flat_map(move |(side, sums)| {
        let counted = rows.clone().into_iter().zip(sums);
        let counted = counted.filter(|(row, count)| !(row.is_error || row.is_sparse) || *count > 0);
        counted.map(move |(row, count)| {
            let value = row.label.map_or("", |(_, value)| value);
            let labels = [run.profile.as_str().into(), side.into(), value.into()];
            (labels, row.name, count)
        })
    })
}
