//! Sums of all counters over all namespaces and clients, for metrics.
//!
//! How they are made is said in `sums`. What a client counted that goes is kept ([`Totals::gone`]), so no
//! sum of counters falls; only the users' own requests set counters to zero.

use std::sync::LazyLock;

use crate::client::ClientId;
use crate::counters::{CounterMeta, Severity};
use crate::frame::ParserCounters;
use crate::plugins::PLUGINS;
use crate::transmit::{RxQueueCounters, TxQueueCounters, VethCounters};

/// A counter that is summed up.
#[derive(Clone, Debug)]
pub struct TotalRow {
    /// Its name: of its plugin or table, and its own, in small letters with underscores.
    pub name: String,
    /// What it means.
    pub meta: &'static CounterMeta,
    /// Whether it goes down, too.
    pub is_gauge: bool,
    /// The plugin that counts it, by its place in the list; none of what is counted for all.
    pub plugin: Option<usize>,
}

/// Counters of an emulation that are of no namespace: frames that came, went, and were lost.
pub(crate) const OWN: [(&str, &[CounterMeta]); 4] = [
    ("frames", VethCounters::META),
    ("parser", ParserCounters::META),
    ("transmit", TxQueueCounters::META),
    ("receive", RxQueueCounters::META),
];

/// The rows, and where those of each table of each plugin begin.
pub(crate) struct Layout {
    pub(crate) rows: Vec<TotalRow>,
    pub(crate) plugins: Vec<Vec<usize>>,
}

pub(crate) static LAYOUT: LazyLock<Layout> = LazyLock::new(|| {
    let mut layout = Layout {
        rows: Vec::new(),
        plugins: Vec::new(),
    };
    for (table, meta) in OWN {
        layout.add(table, meta, None);
    }
    for (place, spec) in PLUGINS.iter().enumerate() {
        let tables = spec.counters.iter().map(|(table, meta)| {
            let name = match *table {
                "" => spec.name.to_owned(),
                table => format!("{}_{table}", spec.name),
            };
            layout.add(&name, meta, Some(place))
        });
        let begins = tables.collect();
        layout.plugins.push(begins);
    }
    layout
});

impl Layout {
    fn add(&mut self, table: &str, meta: &'static [CounterMeta], plugin: Option<usize>) -> usize {
        let begin = self.rows.len();
        self.rows.extend(meta.iter().map(|meta| TotalRow {
            name: format!("{table}_{}", snake_case(meta.name)),
            meta,
            is_gauge: meta.unit == "entries" || meta.name.starts_with("active"),
            plugin,
        }));
        begin
    }
}

/// All counters that are summed up, in the order of [`Totals::values`].
pub fn rows() -> &'static [TotalRow] {
    &LAYOUT.rows
}

/// Whether a counter counts what is wrong.
pub fn is_error(row: &TotalRow) -> bool {
    row.meta.severity == Severity::Error
}

/// `pktRxArpQuery` is `pkt_rx_arp_query`.
fn snake_case(name: &str) -> String {
    let mut made = String::with_capacity(name.len() + 8);
    let mut last = '_';
    for c in name.chars() {
        let is_new = c.is_ascii_uppercase() && (last.is_ascii_lowercase() || last.is_ascii_digit());
        if is_new {
            made.push('_');
        }
        match c.is_ascii_alphanumeric() {
            true => made.push(c.to_ascii_lowercase()),
            false => made.push('_'),
        }
        last = c;
    }
    made
}

/// What all namespaces and clients had counted when they were last summed up.
#[derive(Debug)]
pub struct Totals {
    /// By [`rows`].
    pub values: Vec<u64>,
    /// Namespaces.
    pub namespaces: u64,
    /// Clients.
    pub clients: u64,
    /// Clients that could send through their gateway, by IPv4 or by IPv6.
    pub ready: u64,
    /// The plugins that a namespace has had, a bit each by their places in the list.
    pub plugins: u32,
    /// What those counted that are gone.
    pub(crate) gone: Vec<u64>,
    /// The sums that are being made.
    pub(crate) next: Sums,
    /// What one client has counted.
    pub(crate) scratch: Vec<u64>,
}

/// Sums that are being made: of all in front of a place.
#[derive(Clone, Debug)]
pub(crate) struct Sums {
    pub(crate) values: Vec<u64>,
    pub(crate) clients: u64,
    pub(crate) ready: u64,
    /// The namespace that is next, by its slot, or whose clients are being added up.
    pub(crate) namespace: u32,
    /// Its client that is next, by its slot; none while its own counters are next.
    pub(crate) client: Option<u32>,
}

impl Default for Totals {
    fn default() -> Totals {
        let zeros = vec![0; LAYOUT.rows.len()];
        Totals {
            values: zeros.clone(),
            namespaces: 0,
            clients: 0,
            ready: 0,
            plugins: 0,
            gone: zeros.clone(),
            scratch: zeros.clone(),
            next: Sums {
                values: zeros,
                clients: 0,
                ready: 0,
                namespace: 0,
                client: None,
            },
        }
    }
}

impl Sums {
    /// Whether what is at a place is not in the sums yet.
    pub(crate) fn is_before(&self, namespace: u32, client: Option<ClientId>) -> bool {
        let next = self.client.map_or(0, |client| client + 1);
        let place = client.map_or(0, |ClientId(slot)| slot + 1);
        (self.namespace, next) <= (namespace, place)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_those_of_the_rpc_in_small_letters_each_once() {
        assert_eq!(snake_case("pktRxArpQuery"), "pkt_rx_arp_query");
        assert_eq!(snake_case("opsAddSG"), "ops_add_sg");
        assert_eq!(snake_case("tcps_rcv4"), "tcps_rcv4");
        let names: BTreeSet<_> = rows().iter().map(|row| &row.name).collect();
        assert_eq!(names.len(), rows().len());
        for row in rows() {
            assert!(!row.meta.help.is_empty(), "{}", row.name);
        }
    }
}
