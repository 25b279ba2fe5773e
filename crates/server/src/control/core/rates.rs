//! Rates of ports and loads of data threads.
//!
//! Readings are taken about every half second. A rate is the difference of the newest reading
//! and the one two before it, so it covers one second, is exact for steady traffic after one
//! second, and is zero one second after traffic ends. There is no other smoothing.

use std::collections::VecDeque;

use allosaur_engine::stats::DirectionCounters;
use allosaur_engine::time::{MILLISECOND, Nanos};

use crate::counters::{CoreCounters, Snapshot};

/// Readings that follow each other faster are left out.
const READING_GAP_MIN: Nanos = 250 * MILLISECOND;
/// Readings kept: two intervals.
const READINGS: usize = 3;
/// How many percentages are remembered of each data thread.
const HISTORY: usize = 20;

/// Rates of everything, as of the last reading.
#[derive(Debug, Default)]
pub(in crate::control) struct Rates {
    readings: VecDeque<(Nanos, Snapshot)>,
    ports: Vec<PortRates>,
    cores: Vec<CoreLoad>,
    receive_percent: f64,
}

/// Rates of one port, a second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::control) struct PortRates {
    pub(in crate::control) tx_pps: f64,
    pub(in crate::control) tx_bps: f64,
    pub(in crate::control) rx_pps: f64,
    pub(in crate::control) rx_bps: f64,
    pub(in crate::control) lost_pps: f64,
}

/// How busy one data thread is, in percent.
#[derive(Clone, Debug, Default)]
pub(in crate::control) struct CoreLoad {
    /// Over the last second.
    pub(in crate::control) percent: f64,
    /// Over single intervals, newest first.
    pub(in crate::control) history: VecDeque<u32>,
}

impl Rates {
    /// Takes a reading, if the last one is old enough.
    pub(in crate::control) fn read(&mut self, now_ns: Nanos, snapshot: &Snapshot) {
        let last = self.readings.back();
        if last.is_some_and(|(at, _)| now_ns.saturating_sub(*at) < READING_GAP_MIN) {
            return;
        }
        if self.readings.len() == READINGS {
            self.readings.pop_front();
        }
        self.readings.push_back((now_ns, snapshot.clone()));
        self.derive();
    }

    /// The rates of a port.
    pub(in crate::control) fn port(&self, port: usize) -> PortRates {
        self.ports.get(port).copied().unwrap_or_default()
    }

    /// The load of each data thread.
    pub(in crate::control) fn cores(&self) -> &[CoreLoad] {
        &self.cores
    }

    /// How busy the busiest receive thread was over the last second, in percent.
    pub(in crate::control) fn receive_percent(&self) -> f64 {
        self.receive_percent
    }

    fn derive(&mut self) {
        let (Some(first), Some(last)) = (self.readings.front(), self.readings.back()) else {
            return;
        };
        let (old, new) = (&first.1, &last.1);
        let seconds = (last.0 - first.0) as f64 / 1e9;
        if seconds <= 0.0 {
            return;
        }
        self.ports = (0..new.ports.len())
            .map(|port| port_rates(old, new, port, seconds))
            .collect();
        let first = CoreCounters::default();
        let before = old.receive.iter().chain(std::iter::repeat(&first));
        let loads = before.zip(&new.receive);
        let loads = loads.map(|(old, new)| busy_percent(old, new));
        self.receive_percent = loads.fold(0.0, f64::max);
        let before = &self.readings[self.readings.len() - 2].1;
        self.cores.resize_with(new.cores.len(), CoreLoad::default);
        for (i, load) in self.cores.iter_mut().enumerate() {
            load.percent = busy_percent(&core(old, i), &core(new, i));
            load.history.truncate(HISTORY - 1);
            let interval = busy_percent(&core(before, i), &core(new, i));
            load.history.push_front(interval.round() as u32);
        }
    }
}

fn core(snapshot: &Snapshot, i: usize) -> CoreCounters {
    snapshot.cores.get(i).copied().unwrap_or_default()
}

fn busy_percent(old: &CoreCounters, new: &CoreCounters) -> f64 {
    let total_ns = new.total_ns.saturating_sub(old.total_ns);
    let busy_ns = new.busy_ns.saturating_sub(old.busy_ns);
    if total_ns == 0 {
        return 0.0;
    }
    (busy_ns as f64 / total_ns as f64 * 100.0).min(100.0)
}

fn port_rates(old: &Snapshot, new: &Snapshot, port: usize, seconds: f64) -> PortRates {
    let new = &new.ports[port];
    let old = old.ports.get(port).copied().unwrap_or_default();
    let per_second = |old: u64, new: u64| new.saturating_sub(old) as f64 / seconds;
    let direction = |old: &DirectionCounters, new: &DirectionCounters| {
        let bytes = per_second(old.bytes, new.bytes);
        (per_second(old.packets, new.packets), bytes * 8.0)
    };
    let (tx_pps, tx_bps) = direction(&old.transmit.sent, &new.transmit.sent);
    let (rx_pps, rx_bps) = direction(&old.receive, &new.receive);
    PortRates {
        tx_pps,
        tx_bps,
        rx_pps,
        rx_bps,
        lost_pps: per_second(old.receive_lost_packets, new.receive_lost_packets),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::PortCounters;
    use allosaur_engine::time::SECOND;

    fn sent(packets: u64) -> Snapshot {
        let mut port = PortCounters::default();
        port.transmit.sent.count(packets, 60);
        Snapshot {
            ports: vec![port],
            cores: vec![CoreCounters {
                busy_ns: packets,
                total_ns: 2 * packets,
            }],
            ..Snapshot::default()
        }
    }

    #[test]
    fn a_steady_rate_is_exact_after_a_second_and_gone_after_another() {
        let mut rates = Rates::default();
        for i in 0..=2 {
            rates.read(i * SECOND / 2, &sent(500 * i));
        }
        assert_eq!(rates.port(0).tx_pps, 1000.0);
        assert_eq!(rates.port(0).tx_bps, 512_000.0);
        assert_eq!(rates.cores()[0].percent, 50.0);
        for i in 3..=4 {
            rates.read(i * SECOND / 2, &sent(1000));
        }
        assert_eq!(rates.port(0), PortRates::default());
        assert_eq!(rates.cores()[0].history, [0, 0, 50, 50]);
    }

    #[test]
    fn readings_in_a_hurry_are_left_out() {
        let mut rates = Rates::default();
        rates.read(0, &sent(0));
        rates.read(MILLISECOND, &sent(1_000_000));
        rates.read(SECOND, &sent(1000));
        assert_eq!(rates.port(0).tx_pps, 1000.0);
    }
}
