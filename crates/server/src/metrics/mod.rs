//! The registry of metrics: each is one row, which says what it is and where it is read.
//!
//! Control says what there is ([`Catalog`]), and the counters are read from the threads' blocks by
//! whoever shows them: no data thread and no other client notices. From the rows follow the text for
//! Prometheus ([`text`]), the reply of `get_metrics` ([`reading`]) and the table of the guide
//! ([`families`]). A domain contributes its rows in a file of its own, and a line in [`show`].

mod bgp;
mod catalog;
mod echo;
mod emulation;
mod family;
mod flow_applications;
mod flow_outcomes;
pub mod flow_rows;
mod flows;
mod latency;
mod ports;
mod reading;
mod row;
mod server;
mod streams;
mod text;

pub use catalog::{
    Catalog, CatalogBgpSession, CatalogEcho, CatalogGroup, CatalogPort, CatalogProfile, CatalogRun,
    Readout,
};
pub use family::{Family, Kind};
pub use text::TextFormat;

use allosaur_api::commands::metrics::{Metrics, MetricsParams};
use allosaur_engine::time::Nanos;

use crate::counters::{Counters, Snapshot};
use reading::Reading;
use row::{Label, Sink, Value};
use text::Encoder;

/// Shows all metrics, in the order in which they are written.
fn show(readout: &Readout<'_>, sink: &mut dyn Sink) {
    server::show(readout, sink);
    ports::show(readout, sink);
    streams::show(readout, sink);
    echo::show(readout, sink);
    flows::show(readout, sink);
    flow_outcomes::show(readout, sink);
    flow_applications::show(readout, sink);
    emulation::show(readout, sink);
    bgp::show(readout, sink);
}

/// All metrics that there may be, in that order.
pub fn families() -> Vec<Family> {
    let mut families = Families::default();
    let readout = Readout {
        catalog: &Catalog::default(),
        snapshot: &Snapshot::default(),
        groups: &Counters::new(0, 0),
    };
    show(&readout, &mut families);
    families.0
}

/// All that is counted, as text.
pub fn text(catalog: &Catalog, counters: &Counters, form: TextFormat) -> String {
    let mut snapshot = Snapshot::default();
    counters.read(&mut snapshot);
    let readout = Readout {
        catalog,
        snapshot: &snapshot,
        groups: counters,
    };
    let mut encoder = Encoder::new(form);
    show(&readout, &mut encoder);
    encoder.finish()
}

/// What is counted of what a request asks for, as the RPC has it.
pub fn reading(readout: &Readout<'_>, params: &MetricsParams, now_ns: Nanos) -> Metrics {
    let mut reading = Reading::new(params);
    show(readout, &mut reading);
    reading.finish(now_ns)
}

/// Takes descriptions only.
#[derive(Debug, Default)]
struct Families(Vec<Family>);

impl Sink for Families {
    fn family(&mut self, family: Family) -> bool {
        self.0.push(family);
        false
    }

    fn series(&mut self, _labels: &[Label<'_>], _value: Value) {}
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}
