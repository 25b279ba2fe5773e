//! Figures of flows that change with time: rates over the last second, and sums over runs.
//!
//! Readings are taken about every half second, as those of ports are (`control::server::statistics`): a rate is
//! the difference of the newest reading and the one two before it.

use std::collections::VecDeque;

use allosaur_engine::stateful::{FlowTableCounters, GroupCounters};
use allosaur_engine::time::{MILLISECOND, Nanos};
use serde::Serialize;
use serde_json::Value;

use crate::counters::{RunBlock, Snapshot};

/// A row of the table, with its value.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NamedRow {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: Value,
    /// It counts what does not happen when all is well.
    pub is_error: bool,
}

/// Readings that follow each other faster are left out.
const READING_GAP_MIN: Nanos = 250 * MILLISECOND;
/// Readings kept: two intervals.
const READINGS: usize = 3;

/// Counters of clients and of servers.
#[derive(Clone, Debug, Default)]
pub(super) struct Both(pub(super) [GroupCounters; 2]);

impl Both {
    pub(super) fn add(&mut self, other: &Both) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            mine.add(theirs);
        }
    }

    /// Nothing of it is there any more: what counts the moment is 0.
    pub(super) fn without_the_moment(mut self) -> Both {
        for side in &mut self.0 {
            (side.active, side.established) = (0, 0);
        }
        self
    }
}

/// What the tables of flows of all data threads have counted: for clients, for servers.
#[derive(Clone, Debug, Default)]
pub(super) struct TableTotals(pub(super) [FlowTableCounters; 2]);

impl TableTotals {
    pub(super) fn of(snapshot: &Snapshot) -> TableTotals {
        let mut totals = TableTotals::default();
        for core in &snapshot.flow_tables {
            for (total, counters) in totals.0.iter_mut().zip(core) {
                total.add(counters);
            }
        }
        totals
    }

    /// What came since `before`.
    pub(super) fn since(&self, before: &TableTotals) -> TableTotals {
        let side = |n: usize| {
            let (now, then) = (self.0[n].values(), before.0[n].values());
            let differences = std::array::from_fn(|i| now[i].saturating_sub(then[i]));
            FlowTableCounters::from_values(differences)
        };
        TableTotals([side(0), side(1)])
    }
}

/// Counters that rates are made of.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    acked_bytes: u64,
    sent_bytes: u64,
    received_bytes: u64,
    sent_packets: u64,
    received_packets: u64,
    begun: u64,
    established: u64,
}

impl Figures {
    fn of(counters: &GroupCounters) -> Figures {
        let (tcp, udp) = (&counters.flows.tcp, &counters.flows.udp);
        Figures {
            acked_bytes: tcp.rcvackbyte + udp.sndbyte,
            sent_bytes: tcp.sndbyte_ok + udp.sndbyte,
            received_bytes: tcp.rcvbyte + udp.rcvbyte,
            sent_packets: tcp.sndtotal + udp.sndpkt,
            received_packets: tcp.rcvtotal + udp.rcvpkt,
            begun: begun(counters),
            established: established(counters),
        }
    }
}

/// Connections that one side began.
pub(super) fn begun(counters: &GroupCounters) -> u64 {
    counters.flows.tcp.connattempt + counters.flows.udp.connects
}

/// Connections that a side saw established. Those of UDP are by themselves.
pub(super) fn established(counters: &GroupCounters) -> u64 {
    let udp = &counters.flows.udp;
    counters.flows.tcp.connects + udp.connects + udp.accepts
}

/// What one side does a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rate {
    pub(super) acked_bps: f64,
    pub(super) sent_bps: f64,
    pub(super) received_bps: f64,
    pub(super) sent_pps: f64,
    pub(super) received_pps: f64,
    pub(super) begun_cps: f64,
    pub(super) established_cps: f64,
}

impl Rate {
    /// Application data of a packet, in bytes.
    pub(super) fn mean_bytes(&self) -> f64 {
        let packets = self.sent_pps + self.received_pps;
        if packets > 0.0 {
            (self.acked_bps + self.received_bps) / 8.0 / packets
        } else {
            0.0
        }
    }

    /// How much of what is sent is acknowledged.
    pub(super) fn acked_percent(&self) -> f64 {
        if self.sent_bps > 0.0 {
            self.acked_bps / self.sent_bps * 100.0
        } else {
            0.0
        }
    }

    pub(super) fn add(&mut self, other: &Rate) {
        self.acked_bps += other.acked_bps;
        self.sent_bps += other.sent_bps;
        self.received_bps += other.received_bps;
        self.sent_pps += other.sent_pps;
        self.received_pps += other.received_pps;
        self.begun_cps += other.begun_cps;
        self.established_cps += other.established_cps;
    }

    fn between(old: &Figures, new: &Figures, seconds: f64) -> Rate {
        let per_second = |old: u64, new: u64| new.saturating_sub(old) as f64 / seconds;
        Rate {
            acked_bps: per_second(old.acked_bytes, new.acked_bytes) * 8.0,
            sent_bps: per_second(old.sent_bytes, new.sent_bytes) * 8.0,
            received_bps: per_second(old.received_bytes, new.received_bytes) * 8.0,
            sent_pps: per_second(old.sent_packets, new.sent_packets),
            received_pps: per_second(old.received_packets, new.received_packets),
            begun_cps: per_second(old.begun, new.begun),
            established_cps: per_second(old.established, new.established),
        }
    }
}

/// What one template group has counted at a time.
type Reading = Vec<[Figures; 2]>;

/// Readings of the blocks of a run.
#[derive(Debug)]
pub(super) struct Readings {
    taken: VecDeque<(Nanos, Reading)>,
}

impl Readings {
    /// Of a run that begins: all was 0 then.
    pub(super) fn begin(groups: usize, start_at: Nanos) -> Readings {
        let zero = vec![<[Figures; 2]>::default(); groups];
        Readings {
            taken: VecDeque::from([(start_at, zero)]),
        }
    }

    /// Takes a reading, if the last one is old enough.
    pub(super) fn read(&mut self, now_ns: Nanos, blocks: &[std::sync::Arc<RunBlock>]) {
        let last = self.taken.back().map_or(0, |(at, _)| *at);
        if now_ns < last.saturating_add(READING_GAP_MIN) {
            return;
        }
        let groups = self.taken.back().map_or(0, |(_, reading)| reading.len());
        let reading = (0..groups).map(|group| {
            let Both([client, server]) = group_sum(blocks, group);
            [Figures::of(&client), Figures::of(&server)]
        });
        let reading = reading.collect();
        if self.taken.len() == READINGS {
            self.taken.pop_front();
        }
        self.taken.push_back((now_ns, reading));
    }

    /// The rates of a group: clients, servers.
    pub(super) fn of_group(&self, group: usize) -> [Rate; 2] {
        let (Some((then, old)), Some((now, new))) = (self.taken.front(), self.taken.back()) else {
            return Default::default();
        };
        let (Some(old), Some(new)) = (old.get(group), new.get(group)) else {
            return Default::default();
        };
        let seconds = now.saturating_sub(*then) as f64 / 1e9;
        if seconds <= 0.0 {
            return Default::default();
        }
        [0, 1].map(|side| Rate::between(&old[side], &new[side], seconds))
    }

    /// The rates of all groups together.
    pub(super) fn total(&self) -> [Rate; 2] {
        let groups = self.taken.back().map_or(0, |(_, reading)| reading.len());
        let mut total = <[Rate; 2]>::default();
        for group in 0..groups {
            for (sum, rate) in total.iter_mut().zip(self.of_group(group)) {
                sum.add(&rate);
            }
        }
        total
    }
}

/// What all data threads have counted of one template group.
pub(super) fn group_sum(blocks: &[std::sync::Arc<RunBlock>], group: usize) -> Both {
    let mut sum = Both::default();
    for block in blocks {
        sum.add(&Both(block.group(group)));
    }
    sum
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use allosaur_engine::time::SECOND;

    use super::*;

    fn publish(block: &RunBlock, connections: u64) {
        let mut groups = vec![<[GroupCounters; 2]>::default(); 2];
        let client = &mut groups[1][0];
        client.flows.tcp.connattempt = connections;
        client.flows.tcp.rcvackbyte = 100 * connections;
        client.flows.tcp.sndbyte_ok = 200 * connections;
        client.flows.tcp.sndtotal = 5 * connections;
        block.publish(&groups);
    }

    #[test]
    fn a_steady_rate_is_exact_and_gone_a_second_after_the_end() {
        let block = Arc::new(RunBlock::new(2, 0));
        let blocks = [Arc::clone(&block), Arc::new(RunBlock::new(2, 0))];
        let mut readings = Readings::begin(2, 0);
        for half in 1..=4 {
            publish(&block, 50 * half);
            readings.read(half * SECOND / 2, &blocks);
            // In a hurry: it does not count.
            readings.read(half * SECOND / 2 + MILLISECOND, &blocks);
        }
        let [client, server] = readings.of_group(1);
        assert_eq!((client.begun_cps, client.sent_pps), (100.0, 500.0));
        assert_eq!((client.acked_bps, client.acked_percent()), (80_000.0, 50.0));
        assert_eq!(client.mean_bytes(), 20.0);
        assert_eq!(server, Rate::default());
        assert_eq!(readings.total()[0], client);
        for half in 5..=6 {
            readings.read(half * SECOND / 2, &blocks);
        }
        assert_eq!(readings.total(), <[Rate; 2]>::default());
    }
}
