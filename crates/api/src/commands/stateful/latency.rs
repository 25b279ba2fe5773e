//! Commands of the echo streams that measure latency beside flows.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use crate::command::{Access, Command, Empty, Example, Types};
use crate::fields::{FieldError, Fields};
use crate::json_schema::JsonSchema;
use crate::method::{Method, StatefulMethod};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// Most echo requests a second of a port.
pub const ECHO_PPS_MAX: f64 = 1e6;
/// Fewest: one in about eleven days.
const ECHO_PPS_MIN: f64 = 1e-6;

/// Parameters of `start_latency`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct StartLatencyParams {
    /// The address of the first client port.
    #[serde(rename = "src_addr", deserialize_with = "address")]
    #[schemars(with = "String")]
    pub source: IpAddr,
    /// The address of the first server port; of the same version.
    #[serde(rename = "dst_addr", deserialize_with = "address")]
    #[schemars(with = "String")]
    pub destination: IpAddr,
    /// What is added to both for each further pair of ports, written as an IPv4 address.
    #[serde(rename = "dual_port_addr", deserialize_with = "offset")]
    #[schemars(with = "String")]
    pub pair_offset: u32,
    /// The same for server ports, where it differs.
    #[serde(rename = "port_s_offset", default, deserialize_with = "some_offset")]
    #[schemars(with = "Option<String>", extend("x-default" = "as `dual_port_addr`"))]
    pub server_offset: Option<u32>,
    /// Echo requests per second of each client port, above 0.
    #[serde(rename = "mult", deserialize_with = "rate_pps")]
    pub rate_pps: f64,
    /// The ports that take part, as bits.
    #[serde(rename = "mask")]
    pub ports: u32,
}

/// What `start_latency` is to start.
#[derive(Clone, Debug, PartialEq)]
pub struct StartLatency {
    /// Echo requests a second of each client port.
    pub rate_pps: f64,
    /// The address of the first client port.
    pub source: IpAddr,
    /// The address of the first server port; of the same version.
    pub destination: IpAddr,
    /// What is added to the address of a client for each further pair of ports.
    pub pair_offset: u32,
    /// The same for servers.
    pub server_offset: u32,
    /// The ports that take part, as bits.
    pub ports: u32,
}

impl StartLatency {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'_>) -> Result<StartLatency, FieldError> {
        let params: StartLatencyParams = fields.read()?;
        let (source, destination) = (params.source, params.destination);
        if source.is_ipv4() != destination.is_ipv4() {
            let problem = format!(
                "is {destination}, but 'src_addr' is {source}; both must be IPv4, or both IPv6"
            );
            return Err(fields.bad("dst_addr", problem));
        }
        Ok(StartLatency {
            rate_pps: params.rate_pps,
            source,
            destination,
            pair_offset: params.pair_offset,
            server_offset: params.server_offset.unwrap_or(params.pair_offset),
            ports: params.ports,
        })
    }
}

/// Parameters of `update_latency`.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct UpdateLatency {
    /// Echo requests per second of each client port, above 0.
    #[serde(rename = "mult", deserialize_with = "rate_pps")]
    pub rate_pps: f64,
}

fn rate_pps<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let rate = f64::deserialize(deserializer)?;
    if (ECHO_PPS_MIN..=ECHO_PPS_MAX).contains(&rate) {
        return Ok(rate);
    }
    Err(D::Error::custom(format_args!(
        "is {rate}; it is packets per second of each port: give {ECHO_PPS_MIN} to {ECHO_PPS_MAX}"
    )))
}

fn address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<IpAddr, D::Error> {
    let text = <&str>::deserialize(deserializer)?;
    let address: Result<IpAddr, _> = text.parse();
    let problem = match address {
        Ok(address) if address.is_unspecified() || address.is_multicast() => {
            "no host has that address; give one that a host may have"
        }
        Ok(address) => return Ok(address),
        Err(_) => "give an IPv4 address such as 16.0.0.1, or an IPv6 address",
    };
    Err(D::Error::custom(format_args!("is '{text:.64}': {problem}")))
}

/// An offset, written as an IPv4 address.
fn offset<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let text = <&str>::deserialize(deserializer)?;
    let offset: Result<Ipv4Addr, _> = text.parse();
    offset.map(u32::from).map_err(|_| {
        D::Error::custom(format_args!(
            "is '{text:.64}'; give an offset written as an IPv4 address, such as 1.0.0.0"
        ))
    })
}

fn some_offset<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    offset(deserializer).map(Some)
}

/// Reply of `stop_latency`.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct LatencyStopped {
    /// Always true.
    pub stopped: bool,
}

/// Reply of `get_latency_stats`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EchoLatencies {
    /// `trex-latecny-v2`, as TRex's servers write it.
    pub name: &'static str,
    /// 0.
    #[serde(rename = "type")]
    pub kind: u32,
    /// What was measured.
    pub data: EchoLatencyData,
}

/// What echo streams measured.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EchoLatencyData {
    /// How busy the receive thread is, in percent.
    pub cpu_util: f64,
    /// Changes with each start.
    pub epoch: u32,
    /// 0.
    pub unknown: u32,
    /// `port-N` for each port that takes part.
    #[serde(flatten)]
    pub ports: BTreeMap<String, EchoLatency>,
}

/// What a port measured.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EchoLatency {
    /// Times, in microseconds.
    pub hist: EchoTimes,
    /// Messages.
    pub stats: EchoCounts,
}

/// Times of echo messages, in microseconds.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct EchoTimes {
    /// The least.
    pub min_usec: u64,
    /// The most.
    pub max_usec: u64,
    /// Messages that were measured.
    pub cnt: u64,
    /// Those that took 10 and more.
    pub high_cnt: u64,
    /// The mean, with decimals.
    pub s_avg: f64,
    /// The most of the last half to whole second, with decimals.
    pub s_max: f64,
    /// Messages by the lower bound of their times.
    pub histogram: Vec<HistogramBucket>,
    /// So long or less did half of the messages take. A server of TRex does not send it.
    pub p50: f64,
    /// The same of 90 %.
    pub p90: f64,
    /// The same of 99 %.
    pub p99: f64,
    /// The same of 99.9 %.
    pub p99_9: f64,
}

/// Part of a histogram.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct HistogramBucket {
    /// The lower bound.
    pub key: u64,
    /// How many.
    pub val: u64,
}

/// Echo messages of a port.
#[derive(Clone, Copy, Debug, Default, Serialize, JsonSchema)]
pub struct EchoCounts {
    /// Requests sent.
    pub m_tx_pkt_ok: u64,
    /// Requests not sent in time.
    pub m_tx_pkt_err: u64,
    /// Messages received.
    pub m_pkt_ok: u64,
    /// Jitter in microseconds, after RFC 3550.
    pub m_jitter: u64,
    /// Numbers above and below what was expected.
    pub m_seq_error: u64,
    /// Messages that are none of ours.
    pub m_no_magic: u64,
    /// Messages of another run.
    pub m_no_id: u64,
    /// Messages of a wrong length.
    pub m_length_error: u64,
    /// Wrong checksums of layer 3.
    pub m_l3_cs_err: u64,
    /// Wrong checksums of layer 4.
    pub m_l4_cs_err: u64,
    /// Messages missing.
    pub dropped: u64,
    /// Messages out of order.
    pub out_of_order: u64,
    /// Messages seen twice.
    pub duplicates: u64,
    /// Messages that arrived before they were sent, by the clocks: their times are in no other
    /// number.
    pub impossible_times: u64,
    /// 0.
    pub tx_arp: u64,
    /// 0.
    pub ipv6_n_solic: u64,
    /// 0.
    pub ignore_bytes: u64,
    /// 0.
    pub m_unsup_prot: u64,
    /// 0.
    pub m_no_ipv4_option: u64,
    /// 0.
    pub m_rx_check: u64,
}

/// The items of the command table.
pub const COMMANDS: &[Command] = &[
    Command {
        method: Method::Stateful(StatefulMethod::StartLatency),
        name: "start_latency",
        access: Access::Context,
        doc: "Has each client port send ICMP echo requests, which its server port answers. Each \
              measures what arrives: the server port the way there, the client port the way back; \
              where a real host answers, the client port measures there and back. Frames go where \
              flows go: to the gateway or the other port, in the VLANs of the port. What was \
              measured before is forgotten. With IPv6 addresses, which a server of TRex does not \
              take, it is ICMPv6.",
        types: Types::of::<StartLatencyParams, ()>(),
        errors: &[
            "they run already",
            "no port is selected",
            "addresses of further pairs go beyond the last",
            "the MAC address of a gateway is not known",
        ],
        example: Example {
            params: r#"{"mult": 100, "src_addr": "16.0.0.1", "dst_addr": "48.0.0.1", "dual_port_addr": "1.0.0.0", "port_s_offset": "1.0.0.0", "mask": 2147483647}"#,
            result: "null",
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::StopLatency),
        name: "stop_latency",
        access: Access::Context,
        doc: "Sends no more echo requests. What is under way is still measured, for a second.",
        types: Types::of::<Empty, LatencyStopped>(),
        errors: &[],
        example: Example {
            params: "{}",
            result: r#"{"stopped": true}"#,
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::UpdateLatency),
        name: "update_latency",
        access: Access::Context,
        doc: "Changes how many echo requests are sent a second.",
        types: Types::of::<UpdateLatency, ()>(),
        errors: &["they do not run"],
        example: Example {
            params: r#"{"mult": 200}"#,
            result: "null",
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::LatencyStats),
        name: "get_latency_stats",
        access: Access::Api,
        doc: "What echo streams measured since they were last started, also when they are over.",
        types: Types::of::<Empty, EchoLatencies>(),
        errors: &[],
        example: Example {
            params: "{}",
            result: r#"{"name": "trex-latecny-v2", "type": 0, "data": {"cpu_util": 0.0, "epoch": 1, "port-0": {"hist": {"min_usec": 30, "max_usec": 91, "s_avg": 47.5, "s_max": 91.2, "cnt": 2, "high_cnt": 2, "histogram": [{"key": 30, "val": 1}, {"key": 90, "val": 1}], "p50": 30.2, "p90": 91.2, "p99": 91.2, "p99_9": 91.2}, "stats": {"m_tx_pkt_ok": 2, "m_pkt_ok": 2, "m_jitter": 3}}, "unknown": 0}}"#,
        },
    },
];
