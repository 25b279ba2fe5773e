//! Metrics of emulated clients: how many there are, and the counters of all their plugins, as sums over
//! all namespaces and clients.

use std::sync::LazyLock;

use allosaur_emulation::totals::{TotalRow, is_error, rows};

use super::catalog::Readout;
use super::row::{Row, Sink, Table};
use crate::counters::EmulationTotals;

const EMULATED: &str = "servers that emulate clients";
const USED: &str = "servers that emulate clients, and a namespace has had the plugin";

const CLIENTS: Table<'_, EmulationTotals> = Table {
    prefix: "emulation",
    labels: &[],
    when: "",
    rows: &[
        Row::gauge(
            "namespaces",
            "Namespaces of emulated clients",
            |all: &EmulationTotals| all.namespaces,
        )
        .unit("namespaces")
        .sparse(EMULATED),
        Row::gauge("clients", "Emulated clients", |all: &EmulationTotals| {
            all.clients
        })
        .unit("clients")
        .sparse(EMULATED),
        Row::gauge(
            "ready_clients",
            "Of these, clients that could send through their gateway, by IPv4 or by IPv6: with an \
             address, and nothing that keeps them from it",
            |all: &EmulationTotals| all.ready,
        )
        .unit("clients")
        .sparse(EMULATED),
    ],
};

/// The counters, in the order of the list of plugins.
static COUNTERS: LazyLock<Vec<Row<EmulationTotals>>> =
    LazyLock::new(|| rows().iter().enumerate().map(counter).collect());

fn counter((place, row): (usize, &'static TotalRow)) -> Row<EmulationTotals> {
    let name = row.name.clone().into();
    let mut made = Row::counter_if_any(name, row.meta.help.trim(), EmulationTotals::counter, place);
    made = match row.is_gauge {
        true => made.going_down(),
        false => made,
    };
    made = match row.meta.unit {
        "" | "ops" => made,
        "pkts" => made.unit("packets"),
        unit => made.unit(unit),
    };
    made = match is_error(row) {
        true => made.error(),
        false => made,
    };
    made.sparse(match row.plugin {
        Some(_) => USED,
        None => EMULATED,
    })
}

pub(super) fn show(readout: &Readout<'_>, sink: &mut dyn Sink) {
    let totals = match sink.wants("emulation_") {
        true => readout.groups.emulation(),
        false => None,
    };
    let totals = totals.iter();
    CLIENTS.show(sink, totals.clone().map(|totals| ([], totals)));
    let table = Table {
        rows: &COUNTERS,
        ..CLIENTS
    };
    table.show(sink, totals.map(|totals| ([], totals)));
}
