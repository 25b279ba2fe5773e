//! What tables and lists have in memory: the emulation's own account, which costs nothing but a look.
//!
//! Lists count as far as they were written: the system gives memory when it is. Hash tables are written
//! all over. What the allocator puts beside a small block is part of it.

use std::collections::{BTreeSet, HashMap};
use std::mem::size_of;

/// Bytes of so many items of a list.
pub(crate) fn list<T>(items: usize) -> usize {
    items * size_of::<T>()
}

/// Bytes of a table: places for items and a byte for each, an eighth of them free at least.
pub(crate) fn table<K, V, S>(table: &HashMap<K, V, S>) -> usize {
    match table.capacity() {
        0 => 0,
        items @ ..8 => (items + 1) * (size_of::<(K, V)>() + 1),
        items => items / 7 * 8 * (size_of::<(K, V)>() + 1),
    }
}

/// Bytes of an ordered set: nodes of eleven items. Those that were filled in ascending order have six.
pub(crate) fn set<T>(set: &BTreeSet<T>) -> usize {
    const ITEMS: usize = 11;
    const FILLED: usize = 6;
    /// A way up, a place in it, and how many items there are.
    const HEAD_BYTES: usize = 12;
    let leaves = set.len().div_ceil(FILLED);
    let inner = leaves / FILLED;
    let leaf_bytes = HEAD_BYTES + list::<T>(ITEMS);
    leaves * block(leaf_bytes) + inner * block(leaf_bytes + list::<usize>(ITEMS + 1))
}

/// Bytes of a block on the heap, with those that the allocator needs.
pub(crate) const fn block(bytes: usize) -> usize {
    const HEAD_BYTES: usize = 8;
    const GRAIN_BYTES: usize = 16;
    let all = (bytes + HEAD_BYTES).next_multiple_of(GRAIN_BYTES);
    if all < 2 * GRAIN_BYTES {
        2 * GRAIN_BYTES
    } else {
        all
    }
}

crate::counters! {
    /// What the tables of all namespaces have. The reference has no such counters.
    pub(crate) struct MemoryCounters: u64, "memory" {
        clients: "clients", "clients", "clients", Info, zero;
        client_bytes: "clientBytes", "clients and the tables of their addresses", "bytes", Info;
        plugin_bytes: "pluginBytes", "tables of plugins, without what their items point to", "bytes", Info;
        timer_bytes: "timerBytes", "timers", "bytes", Info;
        queue_bytes: "queueBytes", "frames that wait, or waited, to be sent", "bytes", Info;
        table_bytes: "tableBytes", "all of these", "bytes", Info, zero;
        bytes_per_client: "bytesPerClient", "all of these for each client", "bytes", Info, zero;
    }
}

impl MemoryCounters {
    /// Adds up.
    pub(crate) fn sum_up(&mut self) {
        let tables = [
            self.client_bytes,
            self.plugin_bytes,
            self.timer_bytes,
            self.queue_bytes,
        ];
        self.table_bytes = tables.iter().sum();
        self.bytes_per_client = self.table_bytes / self.clients.max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_a_power_of_two_of_places() {
        let mut items: HashMap<u64, u64> = HashMap::new();
        assert_eq!(table(&items), 0);
        for (count, places) in [(1, 4), (4, 8), (8, 16), (15, 32), (1000, 2048)] {
            items = (0..count).map(|n| (n, n)).collect();
            items.shrink_to_fit();
            assert_eq!(table(&items), places * 17, "{count} items");
        }
    }

    #[test]
    fn small_blocks_have_a_least_size() {
        assert_eq!([1, 24, 25, 100].map(block), [32, 32, 48, 112]);
        assert_eq!(set(&BTreeSet::<u32>::new()), 0);
        assert_eq!(set(&BTreeSet::from([7_u32])), block(56));
    }
}
