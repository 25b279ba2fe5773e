//! Memory that flows will need whose timers are due, read before the first of them is handled.
//!
//! A flow whose timer comes was not looked at for long, and is in no cache. Who wakes one after the
//! other waits for each, and then for its place in the table. Loads that do not depend on each other
//! wait together: first all flows, then all places. Of flows in TIME-WAIT these are the places only,
//! as their entries lie side by side. What is read here decides nothing.

use std::hint::black_box;

use super::StatefulEngine;
use crate::flow::{FlowIndex, FlowKey};
use crate::time::Nanos;

/// Fewer flows than this are in the cache of a core: it holds 2 MB or more, a flow takes a quarter
/// of a KB.
const FLOWS_MIN: usize = 1 << 14;
/// Timers whose flows are read at once.
pub(super) const WOKEN_AHEAD: u32 = 32;

impl StatefulEngine {
    /// Whether there are so many flows that it pays to look ahead.
    #[inline]
    pub(super) fn looks_ahead(&self) -> bool {
        self.flows() >= FLOWS_MIN
    }

    /// Reads the flows that are woken next, and their places in the table.
    pub(super) fn fetch_due(&self, now: Nanos) {
        let mut due = [FlowIndex(0); WOKEN_AHEAD as usize];
        let count = self.timers.peek_due(now, &mut due);
        let flows = || {
            due[..count]
                .iter()
                .filter_map(|index| self.flows.at(*index))
        };
        for entry in flows() {
            black_box(entry.began_ms);
            entry.session.fetch();
        }
        self.fetch_places(flows().map(|entry| *entry.session.key()));
    }

    /// Reads the places of flows in the table.
    pub(super) fn fetch_places(&self, keys: impl Iterator<Item = FlowKey>) {
        for key in keys {
            black_box(self.table.find_likely(key.packed()));
        }
    }
}
