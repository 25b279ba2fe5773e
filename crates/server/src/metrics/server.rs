//! Metrics of the server as a whole: what it is, its threads.

use super::encoder::Encoder;
use super::family::{Family, Kind, Read};
use crate::control::catalog::Catalog;
use crate::counters::{CoreCounters, Counters, GroupReadout, Snapshot};

const THREAD: &[&str] = &["thread"];

pub(super) fn families() -> Vec<Family> {
    let build = &["version", "built"];
    vec![
        Family::new(
            Kind::Info,
            "build",
            build,
            "Version and build of the server",
        ),
        Family::new(
            Kind::Gauge,
            "uptime_seconds",
            &[],
            "How long the server runs",
        ),
        Family::new(
            Kind::Counter,
            "thread_seconds",
            THREAD,
            "How long a thread that sends (data) or receives (receive) has run",
        ),
        Family::new(
            Kind::Counter,
            "thread_busy_seconds",
            THREAD,
            "Of this time, what it spent in turns that did something",
        ),
        Family::new(
            Kind::Counter,
            "latency_foreign_packets",
            &["reason"],
            "Packets with the mark of latency that are of no stream here: of a run that is over \
             (old_flow), or without a valid trailer (bad_header)",
        ),
    ]
}

pub(super) fn write(
    catalog: &Catalog,
    counters: &Counters,
    snapshot: &Snapshot,
    encoder: &mut Encoder,
) {
    let families = families();
    let [build, uptime, time, busy, foreign] = &families[..] else {
        unreachable!("there are five");
    };
    let facts = &catalog.build;
    let built = format!("{} {}", facts.date, facts.time);
    let about = [facts.version.as_str().into(), built.as_str().into()];
    encoder.family(build).value(&about, 1);
    encoder.family(uptime).value(&[], catalog.uptime_s);
    let threads = threads(snapshot);
    let of_threads: [(&Family, Read<CoreCounters, u64>); 2] = [
        (time, |thread| thread.total_ns),
        (busy, |thread| thread.busy_ns),
    ];
    for (family, of) in of_threads {
        let mut series = encoder.family(family);
        for (name, counted) in &threads {
            series.value(&[name.as_str().into()], super::seconds(of(counted)));
        }
    }
    let errors = counters.latency_errors();
    let mut series = encoder.family(foreign);
    series.value(&["old_flow".into()], errors.old_flow);
    series.value(&["bad_header".into()], errors.bad_header);
}

/// The threads that count, by name.
fn threads(snapshot: &Snapshot) -> Vec<(String, CoreCounters)> {
    let named = |kind: &'static str, threads: &[CoreCounters]| {
        let threads = threads.iter().copied().enumerate();
        let threads = threads.map(move |(number, counted)| (format!("{kind}-{number}"), counted));
        threads.collect::<Vec<_>>()
    };
    [
        named("data", &snapshot.cores),
        named("receive", &snapshot.receive),
    ]
    .concat()
}
