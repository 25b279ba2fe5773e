//! Commands of the echo streams that measure latency beside flows.

use std::net::{IpAddr, Ipv4Addr};

use crate::command::{Access, Command, Example, Kind, Param, Types};
use crate::fields::{FieldError, Fields};
use crate::method::{Method, StatefulMethod};

/// Most echo requests a second of a port.
pub const ECHO_PPS_MAX: f64 = 1e6;
/// Fewest: one in about eleven days.
const ECHO_PPS_MIN: f64 = 1e-6;

/// Parameters of `start_latency`.
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
        let source = address(fields, "src_addr")?;
        let destination = address(fields, "dst_addr")?;
        if source.is_ipv4() != destination.is_ipv4() {
            let problem = format!(
                "is {destination}, but 'src_addr' is {source}; both must be IPv4, or both IPv6"
            );
            return Err(fields.bad("dst_addr", problem));
        }
        let pair_offset = offset(fields, "dual_port_addr")?;
        let server_offset = fields.optional("port_s_offset", offset)?;
        Ok(StartLatency {
            rate_pps: rate_pps(fields)?,
            source,
            destination,
            pair_offset,
            server_offset: server_offset.unwrap_or(pair_offset),
            ports: fields.uint32("mask")?,
        })
    }
}

/// Parameters of `update_latency`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UpdateLatency {
    /// Echo requests a second of each client port.
    pub rate_pps: f64,
}

impl UpdateLatency {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'_>) -> Result<UpdateLatency, FieldError> {
        Ok(UpdateLatency {
            rate_pps: rate_pps(fields)?,
        })
    }
}

fn rate_pps(fields: &Fields<'_>) -> Result<f64, FieldError> {
    let rate = fields.double("mult")?;
    if (ECHO_PPS_MIN..=ECHO_PPS_MAX).contains(&rate) {
        return Ok(rate);
    }
    let problem = format!(
        "is {rate}; it is packets per second of each port: give {ECHO_PPS_MIN} to {ECHO_PPS_MAX}"
    );
    Err(fields.bad("mult", problem))
}

fn address(fields: &Fields<'_>, name: &str) -> Result<IpAddr, FieldError> {
    let text = fields.string(name)?;
    let address: Result<IpAddr, _> = text.parse();
    let problem = match address {
        Ok(address) if address.is_unspecified() || address.is_multicast() => {
            "no host has that address; give one that a host may have"
        }
        Ok(address) => return Ok(address),
        Err(_) => "give an IPv4 address such as 16.0.0.1, or an IPv6 address",
    };
    Err(fields.bad(name, format!("is '{text:.64}': {problem}")))
}

/// An offset, written as an IPv4 address.
fn offset(fields: &Fields<'_>, name: &str) -> Result<u32, FieldError> {
    let text = fields.string(name)?;
    let offset: Result<Ipv4Addr, _> = text.parse();
    offset.map(u32::from).map_err(|_| {
        let problem =
            format!("is '{text:.64}'; give an offset written as an IPv4 address, such as 1.0.0.0");
        fields.bad(name, problem)
    })
}

const MULT: Param = Param::required(
    "mult",
    Kind::Double,
    "Echo requests per second of each client port, above 0.",
);

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
        types: Types::prose(
            &[
                MULT,
                Param::required(
                    "src_addr",
                    Kind::String,
                    "The address of the first client port.",
                ),
                Param::required(
                    "dst_addr",
                    Kind::String,
                    "The address of the first server port.",
                ),
                Param::required(
                    "dual_port_addr",
                    Kind::String,
                    "What is added to both for each further pair of ports, written as an IPv4 address.",
                ),
                Param::optional(
                    "port_s_offset",
                    Kind::String,
                    "as `dual_port_addr`",
                    "The same for server ports, where it differs.",
                ),
                Param::required("mask", Kind::Uint32, "The ports that take part, as bits."),
            ],
            "`null`.",
            |f| StartLatency::parse(f).map(drop),
        ),
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
        types: Types::prose(&[], "`stopped`: always true.", |_| Ok(())),
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
        types: Types::prose(&[MULT], "`null`.", |f| UpdateLatency::parse(f).map(drop)),
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
        types: Types::prose(
            &[],
            "`data` has `epoch`, which changes with each start, `cpu_util` of the receive thread, \
                and `port-N` for each port that takes part. There `hist` has times in microseconds: \
                `min_usec`, `max_usec`, `s_avg`, `s_max` (of the last half to whole second), `cnt`, \
                `high_cnt` (10 and more), `histogram` by lower bound, and `p50`, `p90`, `p99` and \
                `p99_9`, which a server of TRex does not send. `stats` has `m_tx_pkt_ok`, \
                `m_tx_pkt_err` (not sent in time), `m_pkt_ok`, `m_jitter` (microseconds, RFC 3550), \
                `m_seq_error`, of which `dropped`, `out_of_order` and `duplicates` are told too, \
                `m_no_magic` (no message of ours), `m_no_id` (of another run), `m_length_error`, \
                `m_l3_cs_err`, `m_l4_cs_err`; the others are zero. `impossible_times` are messages that \
                arrived before they were sent, by the clocks: their times are in no other number.",
            |_| Ok(()),
        ),
        errors: &[],
        example: Example {
            params: "{}",
            result: r#"{"name": "trex-latecny-v2", "type": 0, "data": {"cpu_util": 0.0, "epoch": 1, "port-0": {"hist": {"min_usec": 30, "max_usec": 91, "s_avg": 47.5, "s_max": 91.2, "cnt": 2, "high_cnt": 2, "histogram": [{"key": 30, "val": 1}, {"key": 90, "val": 1}], "p50": 30.2, "p90": 91.2, "p99": 91.2, "p99_9": 91.2}, "stats": {"m_tx_pkt_ok": 2, "m_pkt_ok": 2, "m_jitter": 3}}, "unknown": 0}}"#,
        },
    },
];
