//! Commands that read counters and rates.

use crate::command::{Access, Command, Empty, Example, Types};
use crate::commands::ports::PortParams;
use crate::json_schema::JsonSchema;
use crate::method::{Method, PortMethod, ServerMethod};
use serde::{Deserialize, Serialize};

/// Parameters of `get_port_stats`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct PortStatsParams {
    /// The port's number.
    #[serde(rename = "port_id")]
    pub port: u8,
    /// Allosaur's own: count frames by size too.
    #[serde(default)]
    pub by_size: bool,
}

/// Reply of `get_port_stats`. Bytes are with the frame check sequence; counters count from the
/// server's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct PortStats {
    /// Frames sent.
    pub opackets: u64,
    /// Bytes sent.
    pub obytes: u64,
    /// Frames received.
    pub ipackets: u64,
    /// Bytes received.
    pub ibytes: u64,
    /// Frames that an interface or a device lost on arrival.
    pub ierrors: u64,
    /// Frames that could not leave the port: the kernel refused them, or they still waited when
    /// traffic had ended. They are not in `opackets`.
    pub oerrors: u64,
    /// Bits per second sent, at layer 2.
    pub m_total_tx_bps: f64,
    /// Frames per second sent.
    pub m_total_tx_pps: f64,
    /// Bits per second received, at layer 2.
    pub m_total_rx_bps: f64,
    /// Frames per second received.
    pub m_total_rx_pps: f64,
    /// How busy the data threads are that transmit on the port, in percent.
    pub m_cpu_util: f64,
    /// Frames that were due and were not sent in time.
    pub missed_packets: u64,
    /// Times that the port's queue was full and a burst had to wait.
    pub queue_full: u64,
    /// Frames lost on arrival: by a link in memory, as it was told to, or else because nobody took
    /// them in time; only then they are `ierrors` too.
    pub rx_lost_packets: u64,
    /// Frames by size, if asked for. Never otherwise: TRex's client adds up whatever it finds
    /// here, and can add numbers only.
    #[serde(flatten)]
    pub sizes: Option<Sizes>,
}

/// Frames by size, in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Sizes {
    /// Sent.
    pub tx_by_size: BySize,
    /// Received.
    pub rx_by_size: BySize,
}

/// Frames by size, in bytes with the frame check sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BySize {
    /// Up to 64 bytes.
    #[serde(rename = "64")]
    pub to_64: u64,
    /// 65 to 127.
    #[serde(rename = "65-127")]
    pub to_127: u64,
    /// 128 to 255.
    #[serde(rename = "128-255")]
    pub to_255: u64,
    /// 256 to 511.
    #[serde(rename = "256-511")]
    pub to_511: u64,
    /// 512 to 1023.
    #[serde(rename = "512-1023")]
    pub to_1023: u64,
    /// 1024 to 1518.
    #[serde(rename = "1024-1518")]
    pub to_1518: u64,
    /// 1519 and more.
    #[serde(rename = "1519-")]
    pub jumbo: u64,
}

impl From<[u64; 7]> for BySize {
    fn from(counts: [u64; 7]) -> BySize {
        let [to_64, to_127, to_255, to_511, to_1023, to_1518, jumbo] = counts;
        BySize {
            to_64,
            to_127,
            to_255,
            to_511,
            to_1023,
            to_1518,
            jumbo,
        }
    }
}

/// Reply of `get_global_stats`: sums over ports and threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct GlobalStats {
    /// How busy the data threads are, in percent, on average.
    pub m_cpu_util: f64,
    /// The same over the last half second only.
    pub m_cpu_util_raw: f64,
    /// Gb/s sent for each data thread that is fully busy.
    pub m_bw_per_core: f64,
    /// How busy the receive thread is, in percent.
    pub m_rx_cpu_util: f64,
    /// Frames per second that the receive thread handles.
    pub m_rx_core_pps: f64,
    /// Always 1.
    pub m_platform_factor: f64,
    /// Bits per second sent, at layer 2.
    pub m_tx_bps: f64,
    /// Bits per second received, at layer 2.
    pub m_rx_bps: f64,
    /// Frames per second sent.
    pub m_tx_pps: f64,
    /// Frames per second received.
    pub m_rx_pps: f64,
    /// Bits per second that links lost, estimated from the mean size of what was sent.
    pub m_rx_drop_bps: f64,
    /// Times that a port's queue was full and a burst had to wait.
    pub m_total_queue_full: u64,
    /// Frames sent.
    pub m_total_tx_pkts: u64,
    /// Frames received.
    pub m_total_rx_pkts: u64,
    /// Bytes sent.
    pub m_total_tx_bytes: u64,
    /// Bytes received.
    pub m_total_rx_bytes: u64,
    /// Frames that were due and were not sent in time.
    pub m_total_missed_packets: u64,
    /// What only stateful mode has.
    #[serde(flatten)]
    pub stateful: StatefulStats,
}

/// The part of [`GlobalStats`] that is always 0 in stateless mode.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct StatefulStats {
    /// Connections begun a second.
    pub m_tx_cps: f64,
    /// Connections a second that were to begin.
    pub m_tx_expected_cps: f64,
    /// Packets a second that were to be sent.
    pub m_tx_expected_pps: f64,
    /// Bits a second that were to be sent.
    pub m_tx_expected_bps: f64,
    /// TRex's; 0.
    pub m_total_alloc_error: u64,
    /// TRex's; 0.
    pub m_total_queue_drop: u64,
    /// Flows that are open.
    pub m_active_flows: f64,
    /// Flows that were opened.
    pub m_open_flows: f64,
    /// TRex's; 0.
    pub m_total_clients: u64,
    /// TRex's; 0.
    pub m_total_servers: u64,
    /// TRex's; 0.
    pub m_active_sockets: u64,
    /// TRex's; 0.
    pub m_socket_util: f64,
    /// TRex's, of its address translation; 0.
    pub m_total_nat_time_out: u64,
    /// TRex's, of its address translation; 0.
    pub m_total_nat_time_out_wait_ack: u64,
    /// TRex's, of its address translation; 0.
    pub m_total_nat_no_fid: u64,
    /// TRex's, of its address translation; 0.
    pub m_total_nat_active: u64,
    /// TRex's, of its address translation; 0.
    pub m_total_nat_syn_wait: u64,
    /// TRex's, of its address translation; 0.
    pub m_total_nat_open: u64,
    /// TRex's, of its address translation; 0.
    pub m_total_nat_learn_error: u64,
}

/// Reply of `get_port_xstats_names`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct XstatsNames {
    /// The names; the same for all ports.
    pub xstats_names: Vec<String>,
}

/// Reply of `get_port_xstats_values`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct XstatsValues {
    /// The values, in the order of the names; 0 for those that this port does not have. Bytes are
    /// without the frame check sequence here. Where a driver of DPDK's has a counter of the same name
    /// as ours, it is the driver's.
    pub xstats_values: Vec<u64>,
}

/// The items of the command table.
pub const COMMANDS: &[Command] = &[
    Command {
        method: Method::Server(ServerMethod::GlobalStats),
        name: "get_global_stats",
        access: Access::Api,
        doc: "Rates and counters of the whole server. Rates are over the last second: the \
              difference between the newest half-second reading and the one two before it. \
              Counters count from the server's start; a client that clears them keeps the \
              difference itself.",
        types: Types::of::<Empty, GlobalStats>(),
        errors: &[],
        example: Example {
            params: "{}",
            result: r#"{"m_cpu_util": 0.56, "m_tx_bps": 1194796.1, "m_tx_pps": 2333.6, "m_total_tx_pkts": 245248, "m_total_missed_packets": 0}"#,
        },
    },
    Command {
        method: Method::Ports(PortMethod::PortStats),
        name: "get_port_stats",
        access: Access::Api,
        doc: "Counters and rates of a port. Rates as in `get_global_stats`.",
        types: Types::of::<PortStatsParams, PortStats>(),
        errors: &["no such port"],
        example: Example {
            params: r#"{"port_id": 0, "by_size": true}"#,
            result: r#"{"opackets": 1000, "obytes": 64000, "ipackets": 0, "ibytes": 0, "ierrors": 0, "oerrors": 0, "m_total_tx_bps": 512000.0, "m_total_tx_pps": 1000.0, "m_total_rx_bps": 0.0, "m_total_rx_pps": 0.0, "m_cpu_util": 1.2, "missed_packets": 0, "queue_full": 0, "rx_lost_packets": 0, "tx_by_size": {"64": 1000, "65-127": 0, "128-255": 0, "256-511": 0, "512-1023": 0, "1024-1518": 0, "1519-": 0}, "rx_by_size": {"64": 0, "65-127": 0, "128-255": 0, "256-511": 0, "512-1023": 0, "1024-1518": 0, "1519-": 0}}"#,
        },
    },
    Command {
        method: Method::Ports(PortMethod::PortXstatsNames),
        name: "get_port_xstats_names",
        access: Access::Api,
        doc: "The names of the extended counters: ours, then those that interfaces (`kernel_*`) and \
              DPDK's drivers have themselves.",
        types: Types::of::<PortParams, XstatsNames>(),
        errors: &["no such port"],
        example: Example {
            params: r#"{"port_id": 0}"#,
            result: r#"{"xstats_names": ["rx_good_packets", "tx_good_packets"]}"#,
        },
    },
    Command {
        method: Method::Ports(PortMethod::PortXstatsValues),
        name: "get_port_xstats_values",
        access: Access::Api,
        doc: "The values of a port's extended counters.",
        types: Types::of::<PortParams, XstatsValues>(),
        errors: &["no such port"],
        example: Example {
            params: r#"{"port_id": 0}"#,
            result: r#"{"xstats_values": [0, 1000]}"#,
        },
    },
];
