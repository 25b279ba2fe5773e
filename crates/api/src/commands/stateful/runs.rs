//! Commands that start, stop and change stateful traffic, and ask about its flows.

use std::collections::BTreeMap;

use super::profiles::StatefulProfile;
use crate::command::{Access, Command, Example, Types};
use crate::commands::ports::default_profile;
use crate::json_schema::JsonSchema;
use crate::method::{Method, StatefulMethod};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// Parameters of `start`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct StartProfile {
    /// How long flows begin, in seconds, at most 10⁹; negative: until it is stopped.
    #[serde(rename = "duration", deserialize_with = "duration_s")]
    #[schemars(with = "f64")]
    pub duration_s: Option<f64>,
    /// The profile.
    #[serde(rename = "profile_id", default = "default_profile")]
    pub profile: String,
    /// What the connections per second of all templates are multiplied by: above 0, at most 10⁹.
    #[serde(rename = "mult", deserialize_with = "factor")]
    pub factor: f64,
    /// End the flows that there are with the duration, instead of waiting for them.
    #[serde(rename = "nc")]
    pub no_close: bool,
    /// Packets per second of each client port that measure latency; 0 is none.
    pub latency_pps: u32,
    /// Make all addresses IPv6, with the prefixes of the profile.
    pub ipv6: bool,
    /// The ports whose clients begin flows, as bits.
    pub client_mask: u32,
    /// Give up when no flow is established so many seconds after the start; 0 is never.
    #[serde(rename = "e_duration", default, deserialize_with = "limit_s")]
    #[schemars(with = "Option<f64>", extend("x-default" = "0"))]
    pub establish_s_max: Option<f64>,
    /// How long flows may take to end after the duration, in seconds; 0 is as long as it takes,
    /// negative is no time.
    #[serde(rename = "t_duration", default, deserialize_with = "close_limit_s")]
    #[schemars(with = "Option<f64>", extend("x-default" = "0"))]
    pub close_s_max: Option<f64>,
    /// Record the flows every so many seconds for `get_flow_info`; 0 is never.
    #[serde(rename = "dump_interval", default, deserialize_with = "limit_s")]
    #[schemars(with = "Option<f64>", extend("x-default" = "0"))]
    pub record_interval_s: Option<f64>,
}

/// Parameters of `update` in stateful mode.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct UpdateProfile {
    /// The profile.
    #[serde(rename = "profile_id", default = "default_profile")]
    pub profile: String,
    /// What the connections per second of all templates are multiplied by, above 0.
    #[serde(rename = "mult")]
    pub factor: f64,
}

/// Parameters of `get_flow_info`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct FlowInfo {
    /// The profile.
    #[serde(rename = "profile_id", default = "default_profile")]
    pub profile: String,
    /// The number of the first record that is wanted.
    #[serde(default)]
    pub index: u64,
}

/// Longest times: about 31 years, which as nanoseconds is a 64-bit number still.
const SECONDS_MAX: f64 = 1e9;
/// Largest multiplier.
const FACTOR_MAX: f64 = 1e9;

fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let value = f64::deserialize(deserializer)?;
    if value > SECONDS_MAX {
        let problem = format_args!("is {value}; give at most {SECONDS_MAX} seconds");
        return Err(D::Error::custom(problem));
    }
    Ok(value)
}

fn duration_s<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    Ok(Some(seconds(deserializer)?).filter(|value| *value >= 0.0))
}

fn factor<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let factor = f64::deserialize(deserializer)?;
    if factor > 0.0 && factor <= FACTOR_MAX {
        return Ok(factor);
    }
    Err(D::Error::custom(format_args!(
        "is {factor}; give a number above 0, at most {FACTOR_MAX}"
    )))
}

/// A time that 0 or nothing switches off.
fn limit_s<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    Ok(Some(seconds(deserializer)?).filter(|value| *value > 0.0))
}

/// Negative is: at once.
fn close_limit_s<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let value = Some(seconds(deserializer)?).filter(|value| *value != 0.0);
    Ok(value.map(|value| value.max(0.0)))
}

/// Reply of `get_flow_rates`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct FlowRates {
    /// Connections per second that the profile asks for now, with its multiplier and on the client
    /// ports that take part.
    pub offered_cps: f64,
    /// Connections per second that began over the last second.
    pub begun_cps: f64,
    /// Connections per second that were established over the last second.
    pub achieved_cps: f64,
    /// Connections that began since the start.
    pub begun: u64,
    /// Connections that were established since the start.
    pub established: u64,
    /// Connections that could not begin in time since the start.
    pub missed: u64,
    /// Seconds since the start, or from the start to the end.
    pub duration_s: f64,
    /// Why it ended; `null` while it runs.
    pub ended_by: Option<RunEnd>,
    /// How many emulated clients were ready when it began, of all its pools of such.
    pub hosts: usize,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub enum RunEnd {
    /// It was over.
    #[serde(rename = "done")]
    Done,
    /// It was stopped.
    #[serde(rename = "stopped")]
    Stopped,
    /// No flow was established within `e_duration`.
    #[serde(rename = "not established")]
    NotEstablished,
}

/// Reply of `get_flow_outcomes`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FlowOutcomes {
    /// How many of the clients' flows ended in which way.
    pub client: OutcomeCounts,
    /// The same of servers. One is `completed`, too, when its peer closes between two requests.
    pub server: OutcomeCounts,
    /// The same by the name of the template group.
    pub groups: BTreeMap<String, GroupOutcomes>,
    /// How long flows took that clients began.
    pub times: FlowDurations,
    /// What the applications count that programs run over, such as TLS; nothing where they run over none.
    pub applications: Vec<ApplicationCount>,
}

/// A counter that an application declares, such as handshakes of TLS by their kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ApplicationCount {
    /// Its name.
    pub name: &'static str,
    /// What of its kind it counts: of an alert, its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<&'static str>,
    /// Whether it is 0 unless something goes wrong.
    pub is_error: bool,
    /// What clients counted.
    pub client: u64,
    /// What servers counted.
    pub server: u64,
}

/// How the flows of a template group ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GroupOutcomes {
    /// Those of clients.
    pub client: OutcomeCounts,
    /// Those of servers.
    pub server: OutcomeCounts,
}

/// How many flows ended in which way, and what their programs met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OutcomeCounts {
    /// The program came to its end, and all that it sent was acknowledged.
    pub completed: u64,
    /// The peer reset it before.
    pub reset: u64,
    /// The peer closed in order while the program waited for data, or had some to deliver.
    pub closed_early: u64,
    /// The peer was silent.
    pub timed_out: u64,
    /// A reset answered the SYN.
    pub refused: u64,
    /// The end of the test ended it.
    pub cut_off: u64,
    /// We gave it up for want of room, or could not handle what came.
    pub aborted: u64,
    /// Flows whose program waits for data, and that ended without any.
    pub unanswered: u64,
    /// Answers to requests of HTTP/1 with a status of 100 to 199.
    pub http_1xx: u64,
    /// With 200 to 299.
    pub http_2xx: u64,
    /// With 300 to 399.
    pub http_3xx: u64,
    /// With 400 to 499.
    pub http_4xx: u64,
    /// With 500 to 599.
    pub http_5xx: u64,
    /// Answers to requests of HTTP/1 that begin with no status line.
    pub http_other: u64,
}

/// How long flows took that clients began.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FlowDurations {
    /// TCP: from the SYN to the connection.
    pub connect: DurationStats,
    /// From the beginning to the first data.
    pub first_byte: DurationStats,
    /// From the beginning to the end of the program, of flows that completed.
    pub program: DurationStats,
    /// The handshake that secures a connection, such as TLS.
    pub handshake: DurationStats,
    /// From a request of HTTP to the first byte of its response.
    pub response_begin: DurationStats,
    /// From a request of HTTP to the last byte of its response.
    pub response: DurationStats,
}

/// How long something took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct DurationStats {
    /// How many were measured. The other fields are there when it is not 0.
    pub count: u64,
    /// The shortest, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_us: Option<f64>,
    /// The mean, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_us: Option<f64>,
    /// The longest, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_us: Option<f64>,
    /// So many microseconds or less did half of them take. Percentiles are right within a few percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50_us: Option<f64>,
    /// The same of 90 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p90_us: Option<f64>,
    /// The same of 99 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_us: Option<f64>,
    /// The same of 99.9 %.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p99_9_us: Option<f64>,
}

/// Records of flows, the oldest first. Each has, besides its number, the flows by
/// `address:port-address:port`, our end first.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct FlowRecords(pub Vec<FlowLook>);

/// What one data thread saw of flows at a time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FlowLook {
    /// The record's number.
    pub index: u64,
    /// Each flow, by `address:port-address:port`: our end first.
    #[serde(flatten)]
    pub flows: BTreeMap<String, TcpFlow>,
}

/// What TCP knows of a flow.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TcpFlow {
    /// Which end of it is ours.
    pub origin: FlowSide,
    /// How long it has been there, in milliseconds.
    pub duration: u64,
    /// The state of TCP, as BSD numbers it.
    pub state: u8,
    /// What both ends use: `/timestamps`, `/sack`, `/wscale`, `/ecn`, one after the other.
    pub options: String,
    /// The shift of the windows that the other end tells, if windows are scaled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snd_wscale: Option<u8>,
    /// The shift of ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rcv_wscale: Option<u8>,
    /// The retransmission timeout, in milliseconds.
    pub rto: u32,
    /// How long ago something was heard last, in milliseconds.
    pub last_data_recv: u32,
    /// The smoothed round trip, in milliseconds; 0 when none was measured.
    pub rtt: f64,
    /// How much it varies, in milliseconds.
    pub rttvar: f64,
    /// The slow start threshold, in bytes; 2³⁰ before any loss.
    pub snd_ssthresh: u32,
    /// The congestion window, in bytes.
    pub snd_cwnd: u32,
    /// The window that is offered, in bytes.
    pub rcv_space: u32,
    /// The window of the other end, in bytes.
    pub snd_wnd: u32,
    /// The sequence number that is expected next.
    pub rcv_nxt: u32,
    /// The sequence number to send next.
    pub snd_nxt: u32,
    /// Bytes of data in a full segment to send.
    pub snd_mss: u16,
    /// Bytes of data in a segment that we asked for.
    pub rcv_mss: u16,
    /// Segments with data sent again, at most 65535.
    pub snd_rexmitpack: u16,
    /// Segments that came out of order, at most 65535.
    pub rcv_ooopack: u16,
    /// Times that the other end closed its window, at most 65535.
    pub snd_zerowin: u16,
}

/// An end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FlowSide {
    /// The one that begins it.
    Client,
    /// The one that answers.
    Server,
}

const OUTCOMES_EXAMPLE: &str = r#"{"client": {"completed": 98, "reset": 0, "closed_early": 0, "timed_out": 2, "refused": 0, "cut_off": 0, "aborted": 0, "unanswered": 2, "http_1xx": 0, "http_2xx": 98, "http_3xx": 0, "http_4xx": 0, "http_5xx": 0, "http_other": 0}, "server": {"completed": 98, "reset": 0, "closed_early": 0, "timed_out": 0, "refused": 0, "cut_off": 0, "aborted": 0, "unanswered": 0, "http_1xx": 0, "http_2xx": 0, "http_3xx": 0, "http_4xx": 0, "http_5xx": 0, "http_other": 0}, "groups": {}, "times": {"connect": {"count": 98, "min_us": 80.9, "average_us": 95.2, "max_us": 310.3, "p50_us": 92.2, "p90_us": 101.4, "p99_us": 188.4, "p99_9_us": 310.3}, "first_byte": {"count": 98, "min_us": 160.8, "average_us": 188.4, "max_us": 420.9, "p50_us": 184.3, "p90_us": 204.8, "p99_us": 376.8, "p99_9_us": 420.9}, "program": {"count": 0}, "handshake": {"count": 98, "min_us": 420.1, "average_us": 512.6, "max_us": 901.7, "p50_us": 503.8, "p90_us": 561.2, "p99_us": 802.8, "p99_9_us": 901.7}}, "applications": [{"name": "tls_handshakes", "label": "full", "is_error": false, "client": 98, "server": 98}]}"#;

/// The items of the command table.
pub const COMMANDS: &[Command] = &[
    Command {
        method: Method::Stateful(StatefulMethod::Start),
        name: "start",
        access: Access::Context,
        doc: "Starts a profile: events 60 with states 2 (unless it was read before), 3 and 4. When \
              its JSON is wrong or a gateway is not known: then 1 with `error`. When the duration is over and all flows \
              have ended: 5 and 1.",
        types: Types::of::<StartProfile, ()>(),
        errors: &[
            "no such profile",
            "it is not loaded, or runs",
            "no data thread is left",
        ],
        example: Example {
            params: r#"{"profile_id": "_", "duration": 10, "mult": 5, "nc": false, "latency_pps": 0, "ipv6": false, "client_mask": 4294967295, "e_duration": 0, "t_duration": 0, "dump_interval": 0}"#,
            result: "null",
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::Stop),
        name: "stop",
        access: Access::Context,
        doc: "Stops a profile: no more flows begin, and those that there are end: at once if it was \
              started with `nc`, and after 5 s at the latest unless `t_duration` was given. Events 60 with states 5 and 1. A profile that is stopping ends its \
              flows at once; one that ended less than 2 s ago tells so again; any other is left alone.",
        types: Types::of::<StatefulProfile, ()>(),
        errors: &["no such profile"],
        example: Example {
            params: r#"{"profile_id": "_"}"#,
            result: "null",
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::Update),
        name: "update",
        access: Access::Context,
        doc: "Gives a profile that runs or starts another multiplier, in place of the one that it has.",
        types: Types::of::<UpdateProfile, ()>(),
        errors: &[
            "no such profile",
            "it does not run",
            "`mult` is not above 0",
        ],
        example: Example {
            params: r#"{"profile_id": "_", "mult": 20}"#,
            result: "null",
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::FlowRates),
        name: "get_flow_rates",
        access: Access::Api,
        doc: "What a profile was asked for against what it does. A server of TRex does not know this \
              command. Connections that could not begin in time are missed: they are not made up \
              for later.",
        types: Types::of::<StatefulProfile, FlowRates>(),
        errors: &["no such profile"],
        example: Example {
            params: r#"{"profile_id": "_"}"#,
            result: r#"{"offered_cps": 100.0, "begun_cps": 99.0, "achieved_cps": 98.0, "begun": 500, "established": 490, "missed": 0, "duration_s": 5.0, "ended_by": null, "hosts": 0}"#,
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::FlowOutcomes),
        name: "get_flow_outcomes",
        access: Access::Api,
        doc: "How the flows of a profile ended, since its last start: each end that is ours in one way. A \
              server of TRex does not know this command. A flow is counted when its program has come to \
              its end and all that it sent is acknowledged, or at the latest when it is over: flows that \
              are not there yet are still going on.",
        types: Types::of::<StatefulProfile, FlowOutcomes>(),
        errors: &["no such profile"],
        example: Example {
            params: r#"{"profile_id": "_"}"#,
            result: OUTCOMES_EXAMPLE,
        },
    },
    Command {
        method: Method::Stateful(StatefulMethod::FlowInfo),
        name: "get_flow_info",
        access: Access::Api,
        doc: "What TCP knows of the flows of a profile that was started with `dump_interval`. Records \
              of the last ten seconds are kept, also after the end.",
        types: Types::of::<FlowInfo, FlowRecords>(),
        errors: &["no such profile"],
        example: Example {
            params: r#"{"profile_id": "_", "index": 0}"#,
            result: r#"[{"index": 0, "16.0.0.1:1024-48.0.0.1:80": {"origin": "client", "duration": 120, "state": 4}}]"#,
        },
    },
];
