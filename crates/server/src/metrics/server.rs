//! Metrics of the server as a whole: what it is, its threads.

use super::catalog::Readout;
use super::row::{Label, Row, Sink, Table};
use super::seconds;
use crate::counters::CoreCounters;

const BUILD: Table<'_, ()> = Table {
    prefix: "",
    labels: &["version", "built"],
    when: "",
    rows: &[Row::info("build", "Version and build of the server")],
};

const UPTIME: Table<'_, f64> = Table {
    prefix: "",
    labels: &[],
    when: "",
    rows: &[Row::gauge_of_parts(
        "uptime_seconds",
        "How long the server runs",
        |uptime_s| *uptime_s,
    )],
};

const THREADS: Table<'_, CoreCounters> = Table {
    prefix: "",
    labels: &["thread"],
    when: "",
    rows: &[
        Row::counter_of_parts(
            "thread_seconds",
            "How long a thread that sends (data) or receives (receive) has run",
            |thread| seconds(thread.total_ns),
        ),
        Row::counter_of_parts(
            "thread_busy_seconds",
            "Of this time, what it spent in turns that did something",
            |thread| seconds(thread.busy_ns),
        ),
    ],
};

const FOREIGN: Table<'_, u64> = Table {
    prefix: "",
    labels: &["reason"],
    when: "",
    rows: &[Row::counter(
        "latency_foreign_packets",
        "Packets with the mark of latency that are of no stream here: of a run that is over \
         (old_flow), or without a valid trailer (bad_header)",
        |packets| *packets,
    )],
};

const KEY_LOGS: Table<'_, u64> = Table {
    prefix: "",
    labels: &[],
    when: "",
    rows: &[Row::counter(
        "tls_key_log_lines_dropped",
        "Lines that the key logs of TLS lack: the disk was slower than handshakes, or refused them",
        |lines| *lines,
    )
    .unit("lines")
    .error()],
};

pub(super) fn show(readout: &Readout<'_>, sink: &mut dyn Sink) {
    let catalog = readout.catalog;
    let about = [
        catalog.version.as_str().into(),
        catalog.built.as_str().into(),
    ];
    BUILD.show(sink, std::iter::once((about, ())));
    UPTIME.show(sink, std::iter::once(([], catalog.uptime_s)));
    let named = |kind: &'static str, threads: &'_ [CoreCounters]| {
        let threads = threads.iter().copied().enumerate();
        let threads = threads.map(move |(number, counted)| (format!("{kind}-{number}"), counted));
        threads.collect::<Vec<_>>()
    };
    let threads = [
        named("data", &readout.snapshot.cores),
        named("receive", &readout.snapshot.receive),
    ]
    .concat();
    let threads = threads.iter();
    THREADS.show(
        sink,
        threads.map(|(name, counted)| ([Label::Text(name)], counted)),
    );
    let errors = readout.groups.latency_errors();
    let reasons = [
        ("old_flow", errors.old_flow),
        ("bad_header", errors.bad_header),
    ];
    let reasons = reasons.into_iter();
    FOREIGN.show(
        sink,
        reasons.map(|(reason, packets)| ([reason.into()], packets)),
    );
    let dropped = readout.snapshot.key_log_lines_dropped;
    KEY_LOGS.show(sink, std::iter::once(([], dropped)));
}
