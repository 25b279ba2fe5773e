//! What Prometheus and its like read: all counters as text, by the words of OpenMetrics.
//!
//! Control says what there is ([`Catalog`]), and the counters are read from the threads' blocks by
//! whoever writes the text: no data thread and no other client notices. A table of what there is
//! ([`families`]) is the source of the text and of the guide.

mod echo;
mod encoder;
mod family;
mod flow_outcomes;
mod flows;
mod latency;
mod ports;
mod server;
mod streams;

pub use encoder::TextFormat;
pub use family::{Family, Kind};

use crate::control::catalog::Catalog;
use crate::counters::{Counters, Snapshot};
use encoder::Encoder;

/// All metrics, in the order in which they are written.
pub fn families() -> Vec<Family> {
    let all = [
        server::families(),
        ports::families(),
        streams::families(),
        echo::families(),
        flows::families(),
        flow_outcomes::families(),
    ];
    all.concat()
}

/// All that is counted, as text.
pub fn text(catalog: &Catalog, counters: &Counters, form: TextFormat) -> String {
    let mut snapshot = Snapshot::default();
    counters.read(&mut snapshot);
    let mut encoder = Encoder::new(form);
    server::write(catalog, counters, &snapshot, &mut encoder);
    ports::write(catalog, &snapshot, &mut encoder);
    streams::write(catalog, counters, &mut encoder);
    echo::write(catalog, &mut encoder);
    flows::write(catalog, &snapshot, &mut encoder);
    flow_outcomes::write(catalog, &mut encoder);
    encoder.finish()
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}
