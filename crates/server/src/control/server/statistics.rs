//! Counters and rates under the names of the RPC, in replies and in published frames.
//!
//! Readings are taken about every half second. A rate is the difference of the newest reading
//! and the one two before it, so it covers one second, is exact for steady traffic after one
//! second, and is zero one second after traffic ends. There is no other smoothing.

use std::collections::{HashMap, VecDeque};

use allosaur_api::Fields;
use allosaur_api::commands::ports::PortParams;
use allosaur_api::commands::statistics::{
    GlobalStats, PortStats, PortStatsParams, Sizes, XstatsNames, XstatsValues,
};
use allosaur_engine::stats::DirectionCounters;
use allosaur_engine::time::{FCS_BYTES, MILLISECOND, Nanos};
use serde_json::{Map, Value, json};

use crate::control::ports::port::Port;
use crate::control::{Action, Control, LinkOwner, Reply, View, reply};
use crate::counters::{CoreCounters, PortCounters, Snapshot};

/// The extended counters of a port: TRex's names first, then the errors that we can tell apart.
const XSTATS: [&str; 9] = [
    "rx_good_packets",
    "tx_good_packets",
    "rx_good_bytes",
    "tx_good_bytes",
    "rx_missed_errors",
    "rx_errors",
    "tx_errors",
    "tx_missed_packets",
    "tx_queue_full",
];

/// Readings that follow each other faster are left out.
const READING_GAP_MIN: Nanos = 250 * MILLISECOND;
/// Readings kept: two intervals.
const READINGS: usize = 3;
/// How many percentages are remembered of each data thread.
const HISTORY: usize = 20;

/// All names, each once: ours, then those of devices.
fn xstats_names<'a>(view: &View<'a>) -> impl Iterator<Item = &'a str> + use<'a> {
    let others = view.devices.names().iter().map(String::as_str);
    let new = others.filter(|name| !XSTATS.contains(name));
    XSTATS.into_iter().chain(new)
}

impl Control {
    pub(in crate::control) fn global_stats(&self, view: &View<'_>) -> GlobalStats {
        let mut stats = GlobalStats {
            m_cpu_util: mean(self.rates.cores().iter().map(|core| core.percent)),
            m_cpu_util_raw: mean(self.rates.cores().iter().map(newest_percent)),
            m_rx_cpu_util: self.rates.receive_percent(),
            m_platform_factor: 1.0,
            stateful: self.stateful_stats(view.now_ns),
            ..GlobalStats::default()
        };
        for (index, port) in view.snapshot.ports.iter().enumerate() {
            self.add_port(&mut stats, index, port);
        }
        stats.m_rx_core_pps = stats.m_rx_pps;
        let busy_cores = self.config.data_cores as f64 * stats.m_cpu_util / 100.0;
        if busy_cores > 0.0 {
            stats.m_bw_per_core = stats.m_tx_bps / 1e9 / busy_cores;
        }
        stats
    }

    fn add_port(&self, stats: &mut GlobalStats, index: usize, port: &PortCounters) {
        let rates = self.rates.port(index);
        stats.m_tx_bps += rates.tx_bps;
        stats.m_tx_pps += rates.tx_pps;
        stats.m_rx_bps += rates.rx_bps;
        stats.m_rx_pps += rates.rx_pps;
        if rates.rx_pps > 0.0 {
            stats.m_rx_drop_bps += rates.lost_pps * rates.rx_bps / rates.rx_pps;
        }
        stats.m_total_queue_full += port.transmit.queue_full;
        stats.m_total_tx_pkts += port.transmit.sent.packets;
        stats.m_total_tx_bytes += port.transmit.sent.bytes;
        stats.m_total_rx_pkts += port.receive.packets;
        stats.m_total_rx_bytes += port.receive.bytes;
        stats.m_total_missed_packets += port.transmit.missed_packets;
    }

    pub(in crate::control) fn port_stats(&self, fields: &Fields<'_>, view: &View<'_>) -> Reply {
        let params = fields.read::<PortStatsParams>()?;
        let port = self.port(params.port)?;
        let index = usize::from(params.port);
        let mut stats = self.stats_of(index, port, view);
        if params.by_size {
            let counters = counters_of(index, view);
            stats.sizes = Some(Sizes {
                tx_by_size: counters.transmit.sent.by_size.into(),
                rx_by_size: counters.receive.by_size.into(),
            });
        }
        reply(&stats)
    }

    fn stats_of(&self, index: usize, port: &Port, view: &View<'_>) -> PortStats {
        let counters = counters_of(index, view);
        let rates = self.rates.port(index);
        let (sent, received) = (&counters.transmit.sent, &counters.receive);
        PortStats {
            opackets: sent.packets,
            obytes: sent.bytes,
            ipackets: received.packets,
            ibytes: received.bytes,
            // What a link in memory loses it was told to.
            ierrors: match port.config.link {
                LinkOwner::System => counters.receive_lost_packets,
                LinkOwner::Server { .. } => 0,
            },
            oerrors: counters.transmit.lost_packets,
            m_total_tx_bps: rates.tx_bps,
            m_total_tx_pps: rates.tx_pps,
            m_total_rx_bps: rates.rx_bps,
            m_total_rx_pps: rates.rx_pps,
            m_cpu_util: self.load_of(port),
            missed_packets: counters.transmit.missed_packets,
            queue_full: counters.transmit.queue_full,
            rx_lost_packets: counters.receive_lost_packets,
            sizes: None,
        }
    }

    /// How busy the data threads of a transmitting port are.
    fn load_of(&self, port: &Port) -> f64 {
        if !self.is_busy(port) {
            return 0.0;
        }
        let loads = self.rates.cores();
        let cores = port.config.cores.iter();
        mean(cores.filter_map(|core| loads.get(*core).map(|load| load.percent)))
    }

    /// The same for all ports, as TRex's client asks for those of the first one only.
    pub(in crate::control) fn port_xstats_names(
        &self,
        fields: &Fields<'_>,
        view: &View<'_>,
    ) -> Reply {
        let PortParams { port } = fields.read()?;
        self.port(port)?;
        reply(&XstatsNames {
            xstats_names: xstats_names(view).map(str::to_owned).collect(),
        })
    }

    pub(in crate::control) fn port_xstats_values(
        &self,
        fields: &Fields<'_>,
        view: &View<'_>,
    ) -> Reply {
        let PortParams { port: id } = fields.read()?;
        self.port(id)?;
        let counters = counters_of(usize::from(id), view);
        let (sent, received) = (&counters.transmit.sent, &counters.receive);
        let ours: [u64; XSTATS.len()] = [
            received.packets,
            sent.packets,
            received.bytes - FCS_BYTES * received.packets,
            sent.bytes - FCS_BYTES * sent.packets,
            counters.receive_lost_packets,
            0,
            counters.transmit.lost_packets,
            counters.transmit.missed_packets,
            counters.transmit.queue_full,
        ];
        let own = XSTATS.iter().map(|name| (*name).to_owned()).zip(ours);
        // What the device says goes before what we say of it.
        let values: HashMap<String, u64> = own.chain(view.devices.read(id)).collect();
        let names = xstats_names(view);
        reply(&XstatsValues {
            xstats_values: names
                .map(|name| values.get(name).copied().unwrap_or(0))
                .collect(),
        })
    }

    /// Publishes a `trex-global` frame: all counters and rates.
    pub(in crate::control) fn publish_statistics(&mut self, view: &View<'_>, baseline: bool) {
        let mut data = Map::new();
        data.insert(
            "ts".to_owned(),
            json!({"value": view.now_ns, "freq": 1_000_000_000_u64}),
        );
        data.extend(object(json!(self.global_stats(view))));
        for (index, port) in self.ports.iter().enumerate() {
            let stats = object(json!(self.stats_of(index, port, view)));
            let named = stats.into_iter();
            data.extend(named.map(|(name, value)| (format!("{name}-{index}"), value)));
        }
        data.insert("unknown".to_owned(), json!(0));
        let mut frame = json!({"name": "trex-global", "type": 0, "data": data});
        if baseline {
            frame["baseline"] = json!(true);
        }
        let frame = frame.to_string().into_bytes();
        self.actions.push_back(Action::Publish(frame));
    }
}

fn counters_of(index: usize, view: &View<'_>) -> PortCounters {
    let counters = view.snapshot.ports.get(index);
    counters.copied().unwrap_or_default()
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn newest_percent(core: &CoreLoad) -> f64 {
    core.history.front().copied().map_or(0.0, f64::from)
}

/// The mean of any numbers; 0 of none.
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, n), value| (sum + value, n + 1));
    if count == 0 {
        0.0
    } else {
        sum / f64::from(count)
    }
}

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
struct PortRates {
    tx_pps: f64,
    tx_bps: f64,
    rx_pps: f64,
    rx_bps: f64,
    lost_pps: f64,
}

/// How busy one data thread is, in percent.
#[derive(Clone, Debug, Default)]
pub(in crate::control) struct CoreLoad {
    /// Over the last second.
    pub(in crate::control) percent: f64,
    /// Over single intervals, newest first.
    pub(super) history: VecDeque<u32>,
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
    fn port(&self, port: usize) -> PortRates {
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
