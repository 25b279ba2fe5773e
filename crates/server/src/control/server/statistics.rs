//! Counters and rates under the names of the RPC, in replies and in published frames.

use std::collections::HashMap;

use allosaur_api::Fields;
use allosaur_api::commands::ports::PortParams;
use allosaur_api::commands::statistics::{
    GlobalStats, PortStats, PortStatsParams, Sizes, XstatsNames, XstatsValues,
};
use allosaur_engine::time::FCS_BYTES;
use serde_json::{Map, Value, json};

use crate::control::action::Action;
use crate::control::config::{LinkOwner, View};
use crate::control::core::Core;
use crate::control::core::port::Port;
use crate::control::core::rates::CoreLoad;
use crate::control::domain::Others;
use crate::control::reply::{Reply, reply};
use crate::counters::PortCounters;

/// The extended counters of a port: TRex's names first, then the errors that we can tell apart.
const XSTATS: [&str; 11] = [
    "rx_good_packets",
    "tx_good_packets",
    "rx_good_bytes",
    "tx_good_bytes",
    "rx_missed_errors",
    "rx_errors",
    "tx_errors",
    "tx_missed_packets",
    "tx_queue_full",
    "rx_tunnel_network_errors",
    "rx_tunnel_header_errors",
];

/// All names, each once: ours, then those of devices.
fn xstats_names<'a>(view: &View<'a>) -> impl Iterator<Item = &'a str> + use<'a> {
    let others = view.devices.names().iter().map(String::as_str);
    let new = others.filter(|name| !XSTATS.contains(name));
    XSTATS.into_iter().chain(new)
}

pub(super) fn global_stats(control: &Core, others: &Others<'_>, view: &View<'_>) -> GlobalStats {
    let mut stats = GlobalStats {
        m_cpu_util: mean(control.rates.cores().iter().map(|core| core.percent)),
        m_cpu_util_raw: mean(control.rates.cores().iter().map(newest_percent)),
        m_rx_cpu_util: control.rates.receive_percent(),
        m_platform_factor: 1.0,
        ..GlobalStats::default()
    };
    for domain in others.iter() {
        domain.add_stats(control, view.now_ns, &mut stats);
    }
    for (index, port) in view.snapshot.ports.iter().enumerate() {
        add_port(control, &mut stats, index, port);
    }
    stats.m_rx_core_pps = stats.m_rx_pps;
    let busy_cores = control.config.data_cores as f64 * stats.m_cpu_util / 100.0;
    if busy_cores > 0.0 {
        stats.m_bw_per_core = stats.m_tx_bps / 1e9 / busy_cores;
    }
    stats
}

fn add_port(control: &Core, stats: &mut GlobalStats, index: usize, port: &PortCounters) {
    let rates = control.rates.port(index);
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

pub(super) fn port_stats(
    control: &Core,
    others: &Others<'_>,
    fields: &Fields<'_>,
    view: &View<'_>,
) -> Reply {
    let params = fields.read::<PortStatsParams>()?;
    let port = control.port(params.port)?;
    let index = usize::from(params.port);
    let mut stats = stats_of(control, others, index, port, view);
    if params.by_size {
        let counters = counters_of(index, view);
        stats.sizes = Some(Sizes {
            tx_by_size: counters.transmit.sent.by_size.into(),
            rx_by_size: counters.receive.by_size.into(),
        });
    }
    reply(&stats)
}

fn stats_of(
    control: &Core,
    others: &Others<'_>,
    index: usize,
    port: &Port,
    view: &View<'_>,
) -> PortStats {
    let counters = counters_of(index, view);
    let rates = control.rates.port(index);
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
        m_cpu_util: load_of(control, others, index, port),
        missed_packets: counters.transmit.missed_packets,
        queue_full: counters.transmit.queue_full,
        rx_lost_packets: counters.receive_lost_packets,
        sizes: None,
    }
}

/// How busy the data threads of a transmitting port are.
fn load_of(control: &Core, others: &Others<'_>, index: usize, port: &Port) -> f64 {
    if !others.port_use(control, index as u8).is_sending {
        return 0.0;
    }
    let loads = control.rates.cores();
    let cores = port.config.cores.iter();
    mean(cores.filter_map(|core| loads.get(*core).map(|load| load.percent)))
}

/// The same for all ports, as TRex's client asks for those of the first one only.
pub(super) fn port_xstats_names(control: &Core, fields: &Fields<'_>, view: &View<'_>) -> Reply {
    let PortParams { port } = fields.read()?;
    control.port(port)?;
    reply(&XstatsNames {
        xstats_names: xstats_names(view).map(str::to_owned).collect(),
    })
}

pub(super) fn port_xstats_values(control: &Core, fields: &Fields<'_>, view: &View<'_>) -> Reply {
    let PortParams { port: id } = fields.read()?;
    control.port(id)?;
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
        counters.tunnel_errors.other_network,
        counters.tunnel_errors.bad_header,
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
pub(super) fn publish_statistics(
    control: &mut Core,
    others: &Others<'_>,
    view: &View<'_>,
    baseline: bool,
) {
    let mut data = Map::new();
    data.insert(
        "ts".to_owned(),
        json!({"value": view.now_ns, "freq": 1_000_000_000_u64}),
    );
    data.extend(object(json!(global_stats(control, others, view))));
    for (index, port) in control.ports.iter().enumerate() {
        let stats = object(json!(stats_of(control, others, index, port, view)));
        let named = stats.into_iter();
        data.extend(named.map(|(name, value)| (format!("{name}-{index}"), value)));
    }
    data.insert("unknown".to_owned(), json!(0));
    let mut frame = json!({"name": "trex-global", "type": 0, "data": data});
    if baseline {
        frame["baseline"] = json!(true);
    }
    let frame = frame.to_string().into_bytes();
    control.push(Action::Publish(frame));
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
