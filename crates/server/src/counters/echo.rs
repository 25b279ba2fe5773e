//! What echo streams measure, by port, as those who read metrics see it.
//!
//! A start has a block of its own, so nobody takes what was measured before for what was measured
//! since.

use allosaur_engine::echo::EchoCounters;
use allosaur_engine::latency::{Histogram, LatencyStats};
use allosaur_engine::time::Nanos;
use allosaur_engine::transmit::PortIndex;

use super::CounterCells;
use super::latency::{LatencyCell, LatencyTerms};

const WORDS: usize = EchoCounters::NAMES.len();
/// The one version of each cell.
const VERSION: u32 = 1;

/// What the receive thread publishes of the echo streams of one start, with one writer.
#[derive(Debug)]
pub struct EchoBlock {
    ports: Box<[EchoCell]>,
}

#[derive(Debug)]
struct EchoCell {
    port: PortIndex,
    counters: CounterCells<WORDS>,
    latency: LatencyCell,
}

/// What was counted and measured of a port.
#[derive(Clone, Debug)]
pub struct EchoTraffic {
    /// The port.
    pub port: PortIndex,
    /// What it counted.
    pub counters: EchoCounters,
    /// Times, jitter and order of what arrived.
    pub latency: LatencyStats,
    /// Its times, finely sorted. They may be newer than the sums.
    pub times: Histogram,
}

impl EchoBlock {
    /// A block for these ports, all zero, with room for their times.
    pub fn new(ports: impl IntoIterator<Item = PortIndex>) -> EchoBlock {
        let cell = |port| {
            let cell = EchoCell {
                port,
                counters: CounterCells::default(),
                latency: LatencyCell::default(),
            };
            let terms = LatencyTerms {
                version: VERSION,
                run: 0,
            };
            cell.latency.expect(terms);
            cell.latency.store(VERSION, &LatencyStats::default());
            cell
        };
        EchoBlock {
            ports: ports.into_iter().map(cell).collect(),
        }
    }

    /// Counts a time that a port measured. Only the receive thread may.
    pub fn count_latency(&self, port: PortIndex, latency_ns: Nanos) {
        if let Some(cell) = self.cell(port) {
            cell.latency.count(latency_ns);
        }
    }

    /// Publishes what a port counted and measured. Only the receive thread may.
    pub fn publish(&self, port: PortIndex, counters: &EchoCounters, latency: &LatencyStats) {
        let Some(cell) = self.cell(port) else {
            return;
        };
        for (index, value) in counters.values().into_iter().enumerate() {
            cell.counters.store(index, value);
        }
        cell.latency.store(VERSION, latency);
    }

    /// What all ports counted and measured.
    pub fn ports(&self) -> impl Iterator<Item = EchoTraffic> {
        self.ports.iter().map(|cell| {
            let latency = cell.latency.load(VERSION).unwrap_or_default();
            EchoTraffic {
                port: cell.port,
                counters: EchoCounters::from_values(std::array::from_fn(|n| cell.counters.load(n))),
                times: cell.latency.times(VERSION, &latency).unwrap_or_default(),
                latency,
            }
        })
    }

    fn cell(&self, port: PortIndex) -> Option<&EchoCell> {
        self.ports.iter().find(|cell| cell.port == port)
    }
}

#[cfg(test)]
mod tests {
    use allosaur_engine::latency::Meter;

    use super::*;

    #[test]
    fn what_a_port_measured_is_read_as_it_was_published() {
        let block = EchoBlock::new([2, 5]);
        let nothing = block.ports().map(|port| (port.port, port.times.packets()));
        assert_eq!(nothing.collect::<Vec<_>>(), [(2, 0), (5, 0)]);
        let mut meter = Meter::default();
        for (n, time) in [3_000, 700_000].into_iter().enumerate() {
            meter.record(time, n as u32, 0);
            block.count_latency(5, time);
        }
        let counters = EchoCounters {
            sent: 4,
            received: 2,
            ..EchoCounters::default()
        };
        block.publish(5, &counters, meter.stats());
        // A port that takes no part.
        block.count_latency(3, 1);
        block.publish(3, &counters, meter.stats());
        let ports: Vec<_> = block.ports().collect();
        assert_eq!(ports[0].counters, EchoCounters::default());
        assert_eq!(ports[1].counters, counters);
        assert_eq!(&ports[1].latency, meter.stats());
        assert_eq!(ports[1].times.packets(), 2);
    }
}
