//! Commands about the server itself: version, handshake, facts, shutdown.

use std::collections::BTreeMap;

use crate::command::{Access, Command, Empty, Example, Types};
use crate::json_schema::JsonSchema;
use crate::method::{Method, ServerMethod};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// Parameters of `api_sync_v2`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct ApiSyncV2 {
    /// The mode that the client is for: `STL` or `ASTF`.
    pub name: String,
    /// The client's version, first number: 5 (`ASTF`: 2).
    pub major: i64,
    /// The client's version, second number: at most 1 (`ASTF`: 3).
    pub minor: i64,
}

/// Reply of `api_sync_v2`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ApiHandle {
    /// What later requests carry.
    pub api_h: String,
}

/// Parameters of the older handshake, `api_sync`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct ApiSync {
    /// Exactly one version.
    pub api_vers: [ClientVersion; 1],
}

/// The version of a client of the older handshake.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct ClientVersion {
    /// What of.
    #[serde(rename = "type")]
    pub kind: ApiKind,
    /// The version's first number.
    pub major: i64,
    /// The version's second number.
    pub minor: i64,
}

/// What the older handshake is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ApiKind {
    /// The RPC.
    Core,
}

/// Reply of `api_sync`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ApiSynced {
    /// Exactly one.
    pub api_vers: [SyncedApi; 1],
}

/// What the older handshake answers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SyncedApi {
    /// As it was asked for.
    #[serde(rename = "type")]
    pub kind: ApiKind,
    /// What later requests carry.
    pub api_h: String,
}

/// Parameters of `set_global_cfg`: what is left out stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct SetGlobalConfig {
    /// Seconds, 0 or more.
    #[serde(default, deserialize_with = "seconds")]
    #[schemars(extend("x-default" = "unchanged"))]
    pub sched_max_stretch: Option<f64>,
    /// Remembered.
    #[schemars(extend("x-default" = "unchanged"))]
    pub process_at_cp: Option<bool>,
    /// Remembered.
    #[schemars(extend("x-default" = "unchanged"))]
    pub do_mbuf_cache: Option<bool>,
}

fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let seconds = f64::deserialize(deserializer)?;
    if seconds.is_finite() && seconds >= 0.0 {
        return Ok(Some(seconds));
    }
    let problem = format_args!("is {seconds}; give 0 or more seconds");
    Err(D::Error::custom(problem))
}

/// Reply of `get_global_cfg`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct GlobalConfig {
    /// As it was set, in seconds.
    pub sched_max_stretch: f64,
    /// As it was set.
    pub process_at_cp: bool,
    /// As it was set.
    pub do_mbuf_cache: bool,
}

impl GlobalConfig {
    /// Remembers what is set.
    pub fn set(&mut self, wanted: &SetGlobalConfig) {
        self.sched_max_stretch = wanted.sched_max_stretch.unwrap_or(self.sched_max_stretch);
        self.process_at_cp = wanted.process_at_cp.unwrap_or(self.process_at_cp);
        self.do_mbuf_cache = wanted.do_mbuf_cache.unwrap_or(self.do_mbuf_cache);
    }
}

/// Parameters of `shutdown`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct Shutdown {
    /// Who asks.
    pub user: String,
    /// Even when ports belong to others.
    pub force: bool,
}

/// Reply of `ping`.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Pong {
    /// The server's monotonic clock, in seconds.
    pub ts: f64,
}

/// Reply of `get_version`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Version {
    /// The server's version.
    pub version: String,
    /// When it was built.
    pub build_date: String,
    /// When on that day.
    pub build_time: String,
    /// Who built it.
    pub built_by: String,
    /// The mode that the request is for: `STL` or `ASTF`. Before the handshake, the one that ports
    /// begin in.
    pub mode: &'static str,
    /// The modes that ports can be in. TRex's servers have one, and do not say it here.
    pub modes: Vec<&'static str>,
}

/// Reply of `get_system_info`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SystemInfo {
    /// The machine's name.
    pub hostname: String,
    /// When the server started, as `Mon DD YYYY @ HH:MM:SS`.
    pub uptime: String,
    /// Data threads in all.
    pub dp_core_count: usize,
    /// Data threads that serve each port.
    pub dp_core_count_per_port: usize,
    /// The processor.
    pub core_type: String,
    /// Ports have several receive queues.
    pub is_multiqueue_mode: bool,
    /// Statistics of single streams can be had in every mode of the port.
    pub advanced_per_stream_stats: bool,
    /// The number of ports.
    pub port_count: usize,
    /// The ports, in order.
    pub ports: Vec<PortInfo>,
}

/// One port in [`SystemInfo`].
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PortInfo {
    /// Its number.
    pub index: usize,
    /// The kind of port.
    pub driver: String,
    /// What it is, in words.
    pub description: String,
    /// The PCI address, `N/A` when it has none.
    pub pci_addr: String,
    /// The NUMA node, −1 when it has none.
    pub numa: i32,
    /// Its MAC address.
    pub hw_mac: String,
    /// How it answers ARP and the like.
    pub stack: String,
    /// What its receive side can do.
    pub rx: RxInfo,
    /// The data threads that serve it.
    pub cores: Vec<usize>,
    /// Speeds that can be chosen, in Mb/s.
    pub supp_speeds: Vec<u64>,
    /// Flow control can be set.
    pub is_fc_supported: bool,
    /// It has a LED to blink.
    pub is_led_supported: bool,
    /// Its link can be set up and down.
    pub is_link_supported: bool,
    /// Promiscuous mode can be set.
    pub is_prom_supported: bool,
    /// VXLAN ports can be set.
    pub is_vxlan_supported: bool,
    /// Time stamps after IEEE 1588.
    pub is_ieee1588_supported: bool,
    /// It is not a piece of hardware.
    pub is_virtual: bool,
}

/// What the receive side of a port can do.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RxInfo {
    /// Of `flow_stats`, `latency`, `rx_bytes`, `tpg`.
    pub caps: Vec<String>,
    /// Streams whose frames can be counted at once.
    pub counters: u32,
}

/// The names of commands.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct CommandNames(pub Vec<&'static str>);

/// Reply of `get_utilization`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Utilization {
    /// One element a data thread.
    pub cpu: Vec<CoreUtilization>,
    /// For the NUMA nodes of ports' devices (`cpu-socket-0`; ports without one are with the first),
    /// and for each of eight frame sizes (`64b` to `9kb`), free and total: how many frames of that
    /// size, or of the longest that a port sends if that is less, its transmit queues have room for,
    /// now and when nothing waits in them. Memory ports have a ring where short frames take less room,
    /// interfaces places of one size, and DPDK's devices the pools of their transmit queues. In place
    /// of TRex's pools, which have a size each.
    pub mbuf_stats: BTreeMap<String, BTreeMap<&'static str, [u64; 2]>>,
}

/// How busy one data thread was.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CoreUtilization {
    /// Percent, newest first, at most 20, about one a half second.
    pub history: Vec<u32>,
    /// The first two ports that it transmits on now; −1 for none. A single one has its place in the
    /// thread's pair of ports.
    pub ports: [i32; 2],
}

/// The items of the command table.
pub const COMMANDS: &[Command] = &[
    Command {
        method: Method::Server(ServerMethod::Ping),
        name: "ping",
        access: Access::Open,
        doc: "Asks whether the server is there, and what its clock says. A synchronized start \
              counts from this clock.",
        types: Types::of::<Empty, Pong>(),
        errors: &[],
        example: Example {
            params: "{}",
            result: r#"{"ts": 29.24433506558739}"#,
        },
    },
    Command {
        method: Method::Server(ServerMethod::Version),
        name: "get_version",
        access: Access::Open,
        doc: "The server's version and mode.",
        types: Types::of::<Empty, Version>(),
        errors: &[],
        example: Example {
            params: "{}",
            result: concat!(
                r#"{"version": "v"#,
                env!("CARGO_PKG_VERSION"),
                r#"", "build_date": "unknown", "build_time": "unknown", "built_by": "unknown", "mode": "STL", "modes": ["STL", "ASTF"]}"#
            ),
        },
    },
    Command {
        method: Method::Server(ServerMethod::ApiSyncV2),
        name: "api_sync_v2",
        access: Access::Open,
        doc: "The handshake: client and server agree on a mode and a version. Every later request \
              carries the answer's `api_h`: it says which mode's commands are meant.",
        types: Types::of::<ApiSyncV2, ApiHandle>(),
        errors: &[
            "the server is in the other mode only",
            "the version is older or newer",
        ],
        example: Example {
            params: r#"{"name": "STL", "major": 5, "minor": 1}"#,
            result: r#"{"api_h": "63AWM2wh"}"#,
        },
    },
    Command {
        method: Method::Server(ServerMethod::ApiSync),
        name: "api_sync",
        access: Access::Open,
        doc: "The older form of the handshake, which some graphical clients use.",
        types: Types::of::<ApiSync, ApiSynced>(),
        errors: &["the version is older or newer"],
        example: Example {
            params: r#"{"api_vers": [{"type": "core", "major": 5, "minor": 1}]}"#,
            result: r#"{"api_vers": [{"type": "core", "api_h": "63AWM2wh"}]}"#,
        },
    },
    Command {
        method: Method::Server(ServerMethod::SupportedCommands),
        name: "get_supported_cmds",
        access: Access::Api,
        doc: "The names of all commands that this server knows.",
        types: Types::of::<Empty, CommandNames>(),
        errors: &[],
        example: Example {
            params: "{}",
            result: r#"["ping", "get_version"]"#,
        },
    },
    Command {
        method: Method::Server(ServerMethod::SystemInfo),
        name: "get_system_info",
        access: Access::Api,
        doc: "Facts about the machine, the data threads and the ports. They do not change while \
              the server runs.",
        types: Types::of::<Empty, SystemInfo>(),
        errors: &[],
        example: Example {
            params: "{}",
            result: r#"{"hostname": "lab", "uptime": "Nov 21 2026 @ 00:02:12", "dp_core_count": 1, "dp_core_count_per_port": 1, "core_type": "unknown", "is_multiqueue_mode": false, "advanced_per_stream_stats": false, "port_count": 1, "ports": [{"index": 0, "driver": "memory", "description": "in-memory port, no peer", "pci_addr": "N/A", "numa": -1, "hw_mac": "02:a1:05:00:00:00", "stack": "legacy", "rx": {"caps": [], "counters": 0}, "cores": [0], "supp_speeds": [], "is_fc_supported": false, "is_led_supported": false, "is_link_supported": false, "is_prom_supported": true, "is_vxlan_supported": false, "is_ieee1588_supported": false, "is_virtual": true}]}"#,
        },
    },
    Command {
        method: Method::Server(ServerMethod::Utilization),
        name: "get_utilization",
        access: Access::Api,
        doc: "How busy the data threads were, and how much room transmit queues have.",
        types: Types::of::<Empty, Utilization>(),
        errors: &[],
        example: Example {
            params: "{}",
            result: r#"{"cpu": [{"history": [5, 2, 0], "ports": [0, -1]}], "mbuf_stats": {"cpu-socket-0": {"64b": [131070, 131072], "128b": [43690, 43690], "256b": [26214, 26214], "512b": [14563, 14563], "1024b": [7710, 7710], "2048b": [3971, 3971], "4096b": [2016, 2016], "9kb": [903, 903]}}}"#,
        },
    },
    Command {
        method: Method::Server(ServerMethod::SetGlobalConfig),
        name: "set_global_cfg",
        access: Access::Api,
        doc: "Sets TRex's switches for its scheduler. They are remembered and have no effect: \
              this server never stretches time (what cannot leave in time is counted as missed), \
              and it needs no switch to keep packets ready. Fields that it does not know are \
              ignored.",
        types: Types::of::<SetGlobalConfig, ()>(),
        errors: &[],
        example: Example {
            params: r#"{"sched_max_stretch": 0.5}"#,
            result: "null",
        },
    },
    Command {
        method: Method::Server(ServerMethod::GlobalConfig),
        name: "get_global_cfg",
        access: Access::Api,
        doc: "What `set_global_cfg` set, of which nothing has an effect.",
        types: Types::of::<Empty, GlobalConfig>(),
        errors: &[],
        example: Example {
            params: "{}",
            result: r#"{"sched_max_stretch": 0.0, "process_at_cp": false, "do_mbuf_cache": false}"#,
        },
    },
    Command {
        method: Method::Server(ServerMethod::Shutdown),
        name: "shutdown",
        access: Access::Api,
        doc: "Ends the server, after the reply. Traffic stops.",
        types: Types::of::<Shutdown, Empty>(),
        errors: &["a port belongs to another user and `force` is false"],
        example: Example {
            params: r#"{"user": "ann", "force": false}"#,
            result: "{}",
        },
    },
];
