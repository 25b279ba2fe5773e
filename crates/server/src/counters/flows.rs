//! What flows count, as control sees it.

use std::sync::atomic::{AtomicU64, Ordering};

use allosaur_engine::session::FlowTimes;
use allosaur_engine::stateful::GroupCounters;

/// The counters of one side of one template group.
type GroupCells = [AtomicU64; GroupCounters::WORDS];

/// What one data thread publishes of one profile that runs: the counters of each of its template
/// groups, clients' and servers', and how long the flows of clients took.
#[derive(Debug)]
pub struct RunBlock {
    groups: Box<[[GroupCells; 2]]>,
    /// What applications over bytes count, of all groups together: clients', servers'.
    rows: [Box<[AtomicU64]>; 2],
    times: Box<[AtomicU64]>,
}

impl RunBlock {
    /// A block for so many template groups, all zero, and so many rows of applications. The first group
    /// has the templates without a name, so a profile has one more than it has names.
    pub fn new(groups: usize, rows: usize) -> RunBlock {
        let zeros = |count| std::iter::repeat_with(|| AtomicU64::new(0)).take(count);
        let cells = || [const { AtomicU64::new(0) }; GroupCounters::WORDS];
        let group = || [cells(), cells()];
        RunBlock {
            times: zeros(FlowTimes::WORDS).collect(),
            rows: [zeros(rows).collect(), zeros(rows).collect()],
            groups: std::iter::repeat_with(group).take(groups).collect(),
        }
    }

    /// How many template groups there are.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Publishes the counters of all groups, clients' and servers'. Only the data thread may.
    pub fn publish(&self, groups: &[[GroupCounters; 2]]) {
        for (cells, counters) in self.groups.iter().zip(groups) {
            for (cells, counters) in cells.iter().zip(counters) {
                for (cell, word) in cells.iter().zip(counters.words()) {
                    cell.store(word, Ordering::Relaxed);
                }
            }
        }
        for (side, cells) in self.rows.iter().enumerate() {
            for (row, cell) in cells.iter().enumerate() {
                let counted = groups
                    .iter()
                    .filter_map(|group| group[side].flows.rows.get(row));
                cell.store(counted.sum(), Ordering::Relaxed);
            }
        }
    }

    /// Adds what the applications over bytes of clients and servers counted, row by row.
    pub fn add_rows(&self, sums: &mut [Vec<u64>; 2]) {
        for (cells, sums) in self.rows.iter().zip(sums) {
            for (cell, sum) in cells.iter().zip(sums) {
                *sum += cell.load(Ordering::Relaxed);
            }
        }
    }

    /// Publishes one of the numbers of the times of flows, see [`FlowTimes::take_changes`]. Only the data
    /// thread may.
    pub fn publish_time(&self, place: usize, word: u64) {
        if let Some(cell) = self.times.get(place) {
            cell.store(word, Ordering::Relaxed);
        }
    }

    /// How long the flows of clients took.
    pub fn times(&self) -> FlowTimes {
        FlowTimes::from_words(|place| self.times[place].load(Ordering::Relaxed))
    }

    /// What clients and servers of a group counted; all zero of a group that there is not.
    pub fn group(&self, group: usize) -> [GroupCounters; 2] {
        self.groups.get(group).map(load).unwrap_or_default()
    }

    /// What clients and servers of all groups counted.
    pub fn totals(&self) -> [GroupCounters; 2] {
        let mut totals = <[GroupCounters; 2]>::default();
        for group in &self.groups {
            for (total, counters) in totals.iter_mut().zip(load(group)) {
                total.add(&counters);
            }
        }
        totals
    }
}

fn load(group: &[GroupCells; 2]) -> [GroupCounters; 2] {
    let side = |cells: &GroupCells| {
        let words = std::array::from_fn(|word| cells[word].load(Ordering::Relaxed));
        GroupCounters::from_words(words)
    };
    [side(&group[0]), side(&group[1])]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_reads_what_the_thread_published() {
        let mut counters = vec![<[GroupCounters; 2]>::default(); 3];
        counters[1][0].flows.tcp.connattempt = 5;
        counters[2][0].flows.tcp.connattempt = 6;
        counters[2][1].active = 7;
        counters[2][1].flows.udp.pkt_toobig = 8;
        counters[1][1].flows.rows = [1, 2].into();
        counters[2][1].flows.rows = [10, 20].into();
        let block = RunBlock::new(3, 2);
        block.publish(&counters);
        let mut sums = [vec![0; 2], vec![1; 2]];
        block.add_rows(&mut sums);
        assert_eq!(sums, [vec![0, 0], vec![12, 23]]);
        counters[2][1].flows.rows = Box::default();
        assert_eq!(block.group(2), counters[2]);
        assert_eq!(block.group(3), <[GroupCounters; 2]>::default());
        let [clients, servers] = block.totals();
        assert_eq!(clients.flows.tcp.connattempt, 11);
        assert_eq!((servers.active, servers.flows.udp.pkt_toobig), (7, 8));
    }
}
