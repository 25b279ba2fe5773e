//! Commands about the server itself, and about its asynchronous channel.

mod statistics;
mod status;

use std::collections::BTreeMap;

use allosaur_api::commands::events::{Events, EventsParams, PublishNow};
use allosaur_api::commands::metrics::MetricsParams;
use allosaur_api::commands::server::{
    ApiHandle, ApiSync, ApiSyncV2, ApiSynced, CommandNames, CoreUtilization, GlobalConfig, Pong,
    PortInfo, RxInfo, SetGlobalConfig, Shutdown, SyncedApi, SystemInfo, Utilization, Version,
};
use allosaur_api::events::Event;
use allosaur_api::{
    Empty, Error, Fields, Method, Mode, PortMethod, ServerMethod, command, commands,
};
use allosaur_engine::flow_stats::FLOW_GROUPS;
use allosaur_engine::time::{Nanos, SECOND};

use crate::control::action::Action;
use crate::control::awaited::Awaits;
use crate::control::config::{View, mac_text};
use crate::control::core::Core;
use crate::control::core::access::{Api, api_mode, mode_name};
use crate::control::core::port::Port;
use crate::control::domain::{Domain, Others};
use crate::control::reply::{Reply, reply};
use crate::control::worker_command::PortMode;
use crate::metrics::{self, Readout};

/// The frame sizes that `mbuf_stats` tells of, by TRex's names for its pools.
const BUFFER_SIZES: [(&str, usize); 8] = [
    ("64b", 64),
    ("128b", 128),
    ("256b", 256),
    ("512b", 512),
    ("1024b", 1024),
    ("2048b", 2048),
    ("4096b", 4096),
    ("9kb", 9 << 10),
];

/// When no request has come for so long, nobody needs `trex-global` frames.
const PUBLISHED_WITHOUT_REQUESTS_MAX: Nanos = 60 * SECOND;

/// The server itself, its asynchronous channel, and the counters of ports.
#[derive(Debug, Default)]
pub(super) struct Server {
    global_config: GlobalConfig,
}

impl Awaits for Server {}

impl Domain for Server {
    fn call(
        &mut self,
        control: &mut Core,
        others: &mut Others<'_>,
        method: Method,
        fields: &Fields<'_>,
        view: &View<'_>,
    ) -> Option<Reply> {
        Some(match method {
            Method::Server(method) => self.call_server(control, others, method, fields, view),
            Method::Ports(PortMethod::PortStats) => {
                statistics::port_stats(control, others, fields, view)
            }
            Method::Ports(PortMethod::PortXstatsNames) => {
                statistics::port_xstats_names(control, fields, view)
            }
            Method::Ports(PortMethod::PortXstatsValues) => {
                statistics::port_xstats_values(control, fields, view)
            }
            _ => return None,
        })
    }

    fn handle_tick(&mut self, control: &mut Core, others: &mut Others<'_>, view: &View<'_>) {
        control.notify_sessions();
        let is_late =
            |heard_ns| view.now_ns.saturating_sub(heard_ns) > PUBLISHED_WITHOUT_REQUESTS_MAX;
        if control.heard_ns.is_some_and(|heard_ns| !is_late(heard_ns)) {
            statistics::publish_statistics(control, others, view, false);
        }
    }
}

impl Server {
    fn call_server(
        &mut self,
        control: &mut Core,
        others: &Others<'_>,
        method: ServerMethod,
        fields: &Fields<'_>,
        view: &View<'_>,
    ) -> Reply {
        match method {
            ServerMethod::Ping => ping(view),
            ServerMethod::Version => version(control, fields),
            ServerMethod::ApiSync => api_sync(control, fields),
            ServerMethod::ApiSyncV2 => api_sync_v2(control, fields),
            ServerMethod::SupportedCommands => supported_commands(control, fields),
            ServerMethod::SystemInfo => system_info(control),
            ServerMethod::Utilization => utilization(control, others, view),
            ServerMethod::SetGlobalConfig => {
                let wanted: SetGlobalConfig = fields.read()?;
                self.global_config.set(&wanted);
                reply(&())
            }
            ServerMethod::GlobalConfig => reply(&self.global_config),
            ServerMethod::Shutdown => shutdown(control, fields, view),
            ServerMethod::Status => status::status(control, others, fields, view),
            ServerMethod::GlobalStats => reply(&statistics::global_stats(control, others, view)),
            ServerMethod::Metrics => read_metrics(control, others, fields, view),
            ServerMethod::PublishNow => publish_now(control, others, fields, view),
            ServerMethod::AsyncEvents => async_events(control, fields, view),
        }
    }
}

fn ping(view: &View<'_>) -> Reply {
    reply(&Pong {
        ts: view.now_ns as f64 / 1e9,
    })
}

fn version(control: &Core, fields: &Fields<'_>) -> Reply {
    let build = &control.config.build;
    reply(&Version {
        version: build.version.clone(),
        build_date: build.date.clone(),
        build_time: build.time.clone(),
        built_by: build.by.clone(),
        mode: control.api(fields).name,
        modes: control.mode_names(),
    })
}

fn api_sync(control: &Core, fields: &Fields<'_>) -> Reply {
    let ApiSync { api_vers } = fields.read()?;
    let [client] = api_vers;
    let api = control.find_api(mode_name(PortMode::Stateless))?;
    check_version(api, client.major, client.minor)?;
    let synced = SyncedApi {
        kind: client.kind,
        api_h: control.api_handles.of(api.mode).to_owned(),
    };
    reply(&ApiSynced { api_vers: [synced] })
}

fn api_sync_v2(control: &Core, fields: &Fields<'_>) -> Reply {
    let params: ApiSyncV2 = fields.read()?;
    let api = control.find_api(&params.name)?;
    check_version(api, params.major, params.minor)?;
    reply(&ApiHandle {
        api_h: control.api_handles.of(api.mode).to_owned(),
    })
}

fn supported_commands(control: &Core, fields: &Fields<'_>) -> Reply {
    let mode = api_mode(control.api(fields).mode);
    let there = commands().filter(|command| command.method.is_in(mode));
    let mut names: Vec<&'static str> = there.map(|command| command.name).collect();
    if control.config.has_emulation {
        let theirs = allosaur_emulation::rpc::commands::names();
        names.extend(theirs.filter(|name| command(name, Mode::Any).is_none()));
    }
    reply(&CommandNames(names))
}

fn system_info(control: &Core) -> Reply {
    let config = &control.config;
    let cores_per_port = config.ports.iter().map(|port| port.cores.len()).max();
    reply(&SystemInfo {
        hostname: config.hostname.clone(),
        uptime: config.started.clone(),
        dp_core_count: config.data_cores,
        dp_core_count_per_port: cores_per_port.unwrap_or(0),
        core_type: config.core_type.clone(),
        is_multiqueue_mode: false,
        advanced_per_stream_stats: false,
        port_count: control.ports.len(),
        ports: (0..)
            .zip(&control.ports)
            .map(|(index, port)| port_info(index, port, control.config.has_linux_stack))
            .collect(),
    })
}

fn utilization(control: &Core, others: &Others<'_>, view: &View<'_>) -> Reply {
    let core = |core: usize| {
        let load = control.rates.cores().get(core);
        CoreUtilization {
            history: load.map_or(Vec::new(), |load| load.history.iter().copied().collect()),
            ports: busy_ports(control, others, core),
        }
    };
    reply(&Utilization {
        cpu: (0..control.config.data_cores).map(core).collect(),
        mbuf_stats: buffer_stats(control, view),
    })
}

/// The room of all transmit queues, for the frame sizes of TRex's pools; ports by the NUMA node
/// of their device, and those without one with the first.
fn buffer_stats(
    control: &Core,
    view: &View<'_>,
) -> BTreeMap<String, BTreeMap<&'static str, [u64; 2]>> {
    let mut sockets: BTreeMap<String, BTreeMap<&'static str, [u64; 2]>> = BTreeMap::new();
    for (id, port) in (0..).zip(&control.ports) {
        let node = port.config.numa_node.unwrap_or(0);
        let socket = sockets.entry(format!("cpu-socket-{node}")).or_default();
        for (name, frame_bytes) in BUFFER_SIZES {
            let room = view.devices.room(id, frame_bytes);
            let [free, total] = socket.entry(name).or_default();
            *free += room.free;
            *total += room.total;
        }
    }
    sockets
}

/// The first two ports that a data thread transmits on. As in TRex the places have a meaning: of
/// a single one, which of the thread's pair of ports it is.
fn busy_ports(control: &Core, others: &Others<'_>, core: usize) -> [i32; 2] {
    let served = control.ports.iter().enumerate();
    let served = served.filter(|(_, port)| port.config.cores.contains(&core));
    let busy = served.enumerate().filter(|(_, (index, _))| {
        others
            .iter()
            .any(|domain| domain.sends_from(control, *index as u8, core))
    });
    let mut busy = busy.map(|(place, (index, _))| (place, index as i32));
    match (busy.next(), busy.next()) {
        (None, _) => [-1, -1],
        (Some((place, port)), None) if place % 2 == 1 => [-1, port],
        (Some((_, port)), None) => [port, -1],
        (Some((_, first)), Some((_, second))) => [first, second],
    }
}

fn shutdown(control: &mut Core, fields: &Fields<'_>, view: &View<'_>) -> Reply {
    let params: Shutdown = fields.read()?;
    let foreign = |(_, port): &(usize, &Port)| {
        let owner = port.owner.as_ref();
        owner.is_some_and(|owner| owner.user != params.user)
    };
    let foreign = control.ports.iter().enumerate().find(foreign);
    if let (false, Some((port, _))) = (params.force, foreign) {
        return Err(Error::execution(format!(
            "port {port} belongs to another user: ask for its release, or use 'force'"
        )));
    }
    let cause = format!("shutdown by '{}'", params.user);
    control.queue_event(Event::ServerStopped { cause }, view.now_ns);
    control.notify_sessions();
    control.push(Action::Shutdown);
    reply(&Empty {})
}

/// Answers `get_metrics`.
fn read_metrics(
    control: &Core,
    others: &Others<'_>,
    fields: &Fields<'_>,
    view: &View<'_>,
) -> Reply {
    let params = fields.read::<MetricsParams>()?;
    let mut catalog = control.catalog(view.now_ns);
    for domain in others.iter() {
        domain.describe(control, view, &mut catalog);
    }
    let readout = Readout {
        catalog: &catalog,
        snapshot: view.snapshot,
        groups: view.groups,
    };
    reply(&metrics::reading(&readout, &params, view.now_ns))
}

fn publish_now(
    control: &mut Core,
    others: &Others<'_>,
    fields: &Fields<'_>,
    view: &View<'_>,
) -> Reply {
    let params = fields.read::<PublishNow>()?;
    statistics::publish_statistics(control, others, view, params.baseline);
    // The client waits for a notification, whether there are events or not.
    control.must_notify = true;
    reply(&Empty {})
}

fn async_events(control: &mut Core, fields: &Fields<'_>, view: &View<'_>) -> Reply {
    let EventsParams { session, .. } = fields.read()?;
    control.touch_session(session, fields, view)?;
    reply(&Events {
        data: control.sessions.take(session),
    })
}

fn check_version(api: Api, major: i64, minor: i64) -> Result<(), Error> {
    let Api { name, version, .. } = api;
    let (server_major, server_minor) = version;
    let problem = if major < server_major {
        "RPC version mismatch: a newer client version is required"
    } else if major > server_major || minor > server_minor {
        "Version mismatch: your client version is too new to be supported by the server"
    } else {
        return Ok(());
    };
    Err(Error::execution(format!(
        "{problem}\n(API type '{name}':  - server: '{server_major}.{server_minor}', \
         client: '{major}.{minor}')"
    )))
}

fn port_info(index: usize, port: &Port, has_linux_stack: bool) -> PortInfo {
    let config = &port.config;
    PortInfo {
        index,
        driver: config.driver.clone(),
        description: config.description.clone(),
        pci_addr: "N/A".to_owned(),
        numa: config.numa_node.map_or(-1, |node| node as i32),
        hw_mac: mac_text(config.hw_mac),
        stack: match has_linux_stack {
            true => "linux_based".to_owned(),
            false => "legacy".to_owned(),
        },
        rx: RxInfo {
            caps: ["flow_stats", "latency", "rx_bytes"]
                .map(str::to_owned)
                .to_vec(),
            counters: u32::from(FLOW_GROUPS),
        },
        cores: config.cores.clone(),
        supp_speeds: Vec::new(),
        is_fc_supported: false,
        is_led_supported: false,
        is_link_supported: true,
        is_prom_supported: true,
        is_vxlan_supported: true,
        is_ieee1588_supported: false,
        is_virtual: true,
    }
}
