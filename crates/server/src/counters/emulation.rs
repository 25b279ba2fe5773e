//! What emulated clients have counted, summed up, as those who read metrics see it.

use std::sync::atomic::{AtomicU64, Ordering};

use allosaur_emulation::totals::{Totals, rows};

/// The numbers that are no counters of plugins: namespaces, clients, ready ones, and the plugins that
/// are used.
const HEAD: usize = 4;

/// The sums of all emulated clients of a data thread, with one writer and any readers.
#[derive(Debug)]
pub struct EmulationBlock {
    cells: Box<[AtomicU64]>,
}

/// What emulated clients had counted when they were last summed up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EmulationTotals {
    /// Namespaces.
    pub namespaces: u64,
    /// Clients.
    pub clients: u64,
    /// Clients that could send through their gateway.
    pub ready: u64,
    /// The plugins that a namespace has had, a bit each; with one bit more, which says that clients can
    /// be emulated at all.
    plugins: u64,
    /// The counters, in the order of [`rows`].
    values: Vec<u64>,
}

/// Clients can be emulated.
const IS_THERE: u64 = 1 << 63;

impl Default for EmulationBlock {
    fn default() -> EmulationBlock {
        let zero = || const { AtomicU64::new(0) };
        EmulationBlock {
            cells: std::iter::repeat_with(zero)
                .take(HEAD + rows().len())
                .collect(),
        }
    }
}

impl EmulationBlock {
    /// Publishes sums. Only that data thread may.
    pub fn publish(&self, totals: &Totals) {
        let plugins = u64::from(totals.plugins) | IS_THERE;
        let head = [totals.namespaces, totals.clients, totals.ready, plugins];
        let values = head.into_iter().chain(totals.values.iter().copied());
        for (cell, value) in self.cells.iter().zip(values) {
            cell.store(value, Ordering::Relaxed);
        }
    }

    /// What was published last; nothing where no clients are emulated.
    pub fn read(&self) -> Option<EmulationTotals> {
        let mut cells = self.cells.iter().map(|cell| cell.load(Ordering::Relaxed));
        let mut next = || cells.next().unwrap_or(0);
        let [namespaces, clients, ready, plugins] = [next(), next(), next(), next()];
        (plugins & IS_THERE != 0).then(|| EmulationTotals {
            namespaces,
            clients,
            ready,
            plugins,
            values: cells.collect(),
        })
    }
}

impl EmulationTotals {
    /// The sums of both.
    pub(super) fn added_to(mut self, other: EmulationTotals) -> EmulationTotals {
        self.namespaces += other.namespaces;
        self.clients += other.clients;
        self.ready += other.ready;
        self.plugins |= other.plugins;
        for (value, other) in self.values.iter_mut().zip(other.values) {
            *value += other;
        }
        self
    }

    /// The counter of a row; none of a plugin that no namespace has had.
    pub fn counter(&self, row: usize) -> Option<u64> {
        let is_used = rows()[row]
            .plugin
            .is_none_or(|plugin| self.plugins >> plugin & 1 == 1);
        is_used.then(|| self.values[row])
    }
}
