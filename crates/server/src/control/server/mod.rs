//! Commands about the server itself, and about its asynchronous channel.

pub(super) mod session;
pub(super) mod statistics;
pub(super) mod status;

use std::collections::BTreeMap;

use allosaur_api::commands::events::{Events, EventsParams, PublishNow};
use allosaur_api::commands::groups::{TpgData, TpgState, TpgStatus};
use allosaur_api::commands::server::{
    ApiHandle, ApiSync, ApiSyncV2, ApiSynced, CommandNames, CoreUtilization, Pong, PortInfo,
    RxInfo, SetGlobalConfig, Shutdown, SyncedApi, SystemInfo, Utilization, Version,
};
use allosaur_api::{Empty, Error, Fields, ServerMethod, commands};
use allosaur_engine::flow_stats::FLOW_GROUPS;

use crate::control::config::mac_text;
use crate::control::ports::port::{Port, State};
use crate::control::worker_command::PortMode;
use crate::control::{Action, Control, Reply, View, api_mode, reply};

/// The modes, as clients name them in the handshake, with the versions of their RPC.
const APIS: [Api; 2] = [
    Api {
        mode: PortMode::Stateless,
        name: "STL",
        version: (5, 1),
    },
    Api {
        mode: PortMode::Stateful,
        name: "ASTF",
        version: (2, 3),
    },
];

/// The name of a mode, and the version of its RPC.
#[derive(Clone, Copy)]
pub(super) struct Api {
    mode: PortMode,
    pub(super) name: &'static str,
    version: (i64, i64),
}

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

impl Control {
    /// One arm for each command of the domain.
    pub(super) fn call_server(
        &mut self,
        method: ServerMethod,
        fields: &Fields<'_>,
        view: &View<'_>,
    ) -> Reply {
        match method {
            ServerMethod::Ping => self.ping(view),
            ServerMethod::Version => self.version(fields),
            ServerMethod::ApiSync => self.api_sync(fields),
            ServerMethod::ApiSyncV2 => self.api_sync_v2(fields),
            ServerMethod::SupportedCommands => self.supported_commands(fields),
            ServerMethod::SystemInfo => self.system_info(),
            ServerMethod::Utilization => self.utilization(view),
            ServerMethod::SetGlobalConfig => self.set_global_config(fields),
            ServerMethod::GlobalConfig => self.global_config(),
            ServerMethod::Shutdown => self.shutdown(fields, view),
            ServerMethod::Status => self.status(fields, view),
            ServerMethod::GlobalStats => reply(&self.global_stats(view)),
            ServerMethod::Metrics => self.metrics(fields, view),
            ServerMethod::PublishNow => self.publish_now(fields, view),
            ServerMethod::AsyncEvents => self.async_events(fields, view),
        }
    }

    /// What a request is for; without a handshake before, the mode that ports begin in.
    pub(super) fn api(&self, fields: &Fields<'_>) -> Api {
        api_of(self.request_mode(fields))
    }

    /// The modes that the server has, as clients name them.
    pub(super) fn mode_names(&self) -> Vec<&'static str> {
        let there = APIS.iter().filter(|api| self.config.modes.has(api.mode));
        there.map(|api| api.name).collect()
    }

    /// The mode of that name, if the server has it.
    fn find_api(&self, wanted: &str) -> Result<Api, Error> {
        let mut there = APIS.iter().filter(|api| self.config.modes.has(api.mode));
        let found = there.find(|api| api.name == wanted).copied();
        found.ok_or_else(|| {
            let names = self.mode_names().join("' and '");
            Error::execution(format!(
                "RPC configuration mismatch - server RPC configuration: '{names}', client RPC \
                 configuration: '{wanted:.64}'"
            ))
        })
    }

    pub(super) fn ping(&self, view: &View<'_>) -> Reply {
        reply(&Pong {
            ts: view.now_ns as f64 / 1e9,
        })
    }

    pub(super) fn version(&self, fields: &Fields<'_>) -> Reply {
        let build = &self.config.build;
        reply(&Version {
            version: build.version.clone(),
            build_date: build.date.clone(),
            build_time: build.time.clone(),
            built_by: build.by.clone(),
            mode: self.api(fields).name,
            modes: self.mode_names(),
        })
    }

    pub(super) fn api_sync(&self, fields: &Fields<'_>) -> Reply {
        let ApiSync { api_vers } = fields.read()?;
        let [client] = api_vers;
        let api = self.find_api(mode_name(PortMode::Stateless))?;
        check_version(api, client.major, client.minor)?;
        let synced = SyncedApi {
            kind: client.kind,
            api_h: self.api_handles.of(api.mode).to_owned(),
        };
        reply(&ApiSynced { api_vers: [synced] })
    }

    pub(super) fn api_sync_v2(&self, fields: &Fields<'_>) -> Reply {
        let params: ApiSyncV2 = fields.read()?;
        let api = self.find_api(&params.name)?;
        check_version(api, params.major, params.minor)?;
        reply(&ApiHandle {
            api_h: self.api_handles.of(api.mode).to_owned(),
        })
    }

    pub(super) fn supported_commands(&self, fields: &Fields<'_>) -> Reply {
        let mode = api_mode(self.api(fields).mode);
        let there = commands().filter(|command| command.method.is_in(mode));
        reply(&CommandNames(there.map(|command| command.name).collect()))
    }

    pub(super) fn system_info(&self) -> Reply {
        let config = &self.config;
        let cores_per_port = config.ports.iter().map(|port| port.cores.len()).max();
        reply(&SystemInfo {
            hostname: config.hostname.clone(),
            uptime: config.started.clone(),
            dp_core_count: config.data_cores,
            dp_core_count_per_port: cores_per_port.unwrap_or(0),
            core_type: config.core_type.clone(),
            is_multiqueue_mode: false,
            advanced_per_stream_stats: false,
            port_count: self.ports.len(),
            ports: self.ports.iter().enumerate().map(port_info).collect(),
        })
    }

    pub(super) fn utilization(&self, view: &View<'_>) -> Reply {
        let core = |core: usize| {
            let load = self.rates.cores().get(core);
            CoreUtilization {
                history: load.map_or(Vec::new(), |load| load.history.iter().copied().collect()),
                ports: self.busy_ports(core),
            }
        };
        reply(&Utilization {
            cpu: (0..self.config.data_cores).map(core).collect(),
            mbuf_stats: self.buffer_stats(view),
        })
    }

    /// The room of all transmit queues, for the frame sizes of TRex's pools; ports by the NUMA node
    /// of their device, and those without one with the first.
    fn buffer_stats(&self, view: &View<'_>) -> BTreeMap<String, BTreeMap<&'static str, [u64; 2]>> {
        let mut sockets: BTreeMap<String, BTreeMap<&'static str, [u64; 2]>> = BTreeMap::new();
        for (id, port) in (0..).zip(&self.ports) {
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

    /// Whether a port sends streams, or has flows.
    pub(super) fn is_busy(&self, port: &Port) -> bool {
        port.state() >= State::Transmit || self.flow_state_of(port).is_some()
    }

    /// The first two ports that a data thread transmits on. As in TRex the places have a meaning: of
    /// a single one, which of the thread's pair of ports it is.
    fn busy_ports(&self, core: usize) -> [i32; 2] {
        let served = self.ports.iter().enumerate();
        let served = served.filter(|(_, port)| port.config.cores.contains(&core));
        let busy = served.enumerate().filter(|(_, (_, port))| {
            port.is_sent_on_by(core) || self.flow_state_of(port).is_some()
        });
        let mut busy = busy.map(|(place, (index, _))| (place, index as i32));
        match (busy.next(), busy.next()) {
            (None, _) => [-1, -1],
            (Some((place, port)), None) if place % 2 == 1 => [-1, port],
            (Some((_, port)), None) => [port, -1],
            (Some((_, first)), Some((_, second))) => [first, second],
        }
    }

    pub(super) fn set_global_config(&mut self, fields: &Fields<'_>) -> Reply {
        let wanted: SetGlobalConfig = fields.read()?;
        self.global_config.set(&wanted);
        reply(&())
    }

    pub(super) fn global_config(&self) -> Reply {
        reply(&self.global_config)
    }

    pub(super) fn shutdown(&mut self, fields: &Fields<'_>, view: &View<'_>) -> Reply {
        let params: Shutdown = fields.read()?;
        let foreign = |(_, port): &(usize, &Port)| {
            let owner = port.owner.as_ref();
            owner.is_some_and(|owner| owner.user != params.user)
        };
        let foreign = self.ports.iter().enumerate().find(foreign);
        if let (false, Some((port, _))) = (params.force, foreign) {
            return Err(Error::execution(format!(
                "port {port} belongs to another user: ask for its release, or use 'force'"
            )));
        }
        let cause = format!("shutdown by '{}'", params.user);
        self.handle_end(&cause, view.now_ns);
        self.actions.push_back(Action::Shutdown);
        reply(&Empty {})
    }

    pub(super) fn publish_now(&mut self, fields: &Fields<'_>, view: &View<'_>) -> Reply {
        let params: PublishNow = fields.read()?;
        self.publish_statistics(view, params.baseline);
        // The client waits for a notification, whether there are events or not.
        self.events_queued = true;
        reply(&Empty {})
    }

    pub(super) fn async_events(&mut self, fields: &Fields<'_>, view: &View<'_>) -> Reply {
        let EventsParams { session, .. } = fields.read()?;
        self.touch_session(session, fields, view)?;
        reply(&Events {
            data: self.sessions.take(session),
        })
    }

    pub(super) fn tpg_status(&self, fields: &Fields<'_>) -> Reply {
        if let TpgStatus::Port(port) = TpgStatus::parse(fields)? {
            self.port(port)?;
        }
        reply(&TpgState {
            enabled: false,
            data: TpgData {
                acquired_ports: Vec::new(),
                rx_ports: Vec::new(),
                username: "-",
                num_tpgids: 0,
                num_tags: 0,
            },
        })
    }
}

fn api_of(mode: PortMode) -> Api {
    let mut apis = APIS.into_iter();
    apis.find(|api| api.mode == mode).expect("each has one")
}

/// What clients call a mode.
pub(super) fn mode_name(mode: PortMode) -> &'static str {
    api_of(mode).name
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

fn port_info((index, port): (usize, &Port)) -> PortInfo {
    let config = &port.config;
    PortInfo {
        index,
        driver: config.driver.clone(),
        description: config.description.clone(),
        pci_addr: "N/A".to_owned(),
        numa: config.numa_node.map_or(-1, |node| node as i32),
        hw_mac: mac_text(config.hw_mac),
        stack: "legacy".to_owned(),
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
