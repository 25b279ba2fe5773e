//! Commands that capture packets: captures, and ports that are joined to a socket.

use crate::command::{Access, Command, Empty, Example, Types};
use crate::commands::ports::PortParams;
use crate::fields::{FieldError, Fields};
use crate::json_schema::JsonSchema;
use crate::limits::CAPTURE_PACKETS_MAX;
use crate::method::{CaptureMethod, Method};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// The shortest address of a socket.
const ENDPOINT_BYTES_MIN: usize = 5;

/// Parameters of `capture`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct CaptureParams {
    /// What to do.
    pub command: CaptureCommand,
    /// The capture.
    #[schemars(extend("x-only" = "`stop`, `fetch`, `remove`"))]
    pub capture_id: Option<u32>,
    /// Packets to keep; 0 only counts.
    #[schemars(extend("x-only" = "`start`"))]
    pub limit: Option<u32>,
    /// What happens then: `fixed` keeps the first packets, `cyclic` the last.
    #[schemars(extend("x-only" = "`start`"))]
    pub mode: Option<CaptureMode>,
    /// Ports whose sent packets are taken.
    #[schemars(extend("x-only" = "`start`"))]
    pub tx: Option<Vec<u8>>,
    /// Ports whose received packets are taken.
    #[schemars(extend("x-only" = "`start`"))]
    pub rx: Option<Vec<u8>>,
    /// Which packets, in the language of tcpdump; all when it is left out.
    #[serde(default)]
    #[schemars(extend("x-only" = "`start`"))]
    pub filter: String,
    /// Where the packets go; they are kept when it is left out.
    #[serde(default)]
    #[schemars(extend("x-only" = "`start`"))]
    pub endpoint: String,
    /// Bytes to keep of each packet (`start`), or to fetch (`fetch`), at most 65535; 0, or left out,
    /// is all.
    #[serde(default, deserialize_with = "snap_bytes")]
    #[schemars(extend("x-only" = "`start`, `fetch`"))]
    pub snaplen: u32,
    /// Packets to fetch at most.
    #[schemars(extend("x-only" = "`fetch`"))]
    pub pkt_limit: Option<u32>,
}

/// What to do with a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CaptureCommand {
    /// Start one.
    Start,
    /// Take no more packets.
    Stop,
    /// Take packets out of it.
    Fetch,
    /// The captures that there are.
    Status,
    /// Forget one.
    Remove,
}

/// What a capture keeps when it is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CaptureMode {
    /// The first packets.
    Fixed,
    /// The last packets.
    Cyclic,
}

/// What `capture` is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Capture {
    /// Start one.
    Start(StartCapture),
    /// Take no more packets.
    Stop {
        /// Its number.
        capture: u32,
    },
    /// Take packets out of it.
    Fetch {
        /// Its number.
        capture: u32,
        /// Packets at most.
        packets_max: u32,
        /// Bytes of each at most; 0 is all.
        snap_bytes: usize,
    },
    /// The captures that there are.
    Status,
    /// Forget one.
    Remove {
        /// Its number.
        capture: u32,
    },
}

/// What a new capture wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartCapture {
    /// Packets to keep; 0 only counts.
    pub limit: u32,
    /// Whether the last packets are kept, and not the first.
    pub cyclic: bool,
    /// Ports whose sent frames it takes.
    pub transmit_ports: Vec<u8>,
    /// Ports whose received frames it takes.
    pub receive_ports: Vec<u8>,
    /// Which frames.
    pub filter: String,
    /// Where its packets go; empty when they are kept.
    pub endpoint: String,
    /// Bytes to keep of each; 0 is all.
    pub snap_bytes: usize,
}

impl Capture {
    /// Reads the parameters.
    pub fn parse(fields: &Fields<'_>) -> Result<Capture, FieldError> {
        let params: CaptureParams = fields.read()?;
        let number = || fields.required("capture_id", params.capture_id);
        Ok(match params.command {
            CaptureCommand::Start => Capture::Start(StartCapture::new(fields, params)?),
            CaptureCommand::Stop => Capture::Stop { capture: number()? },
            CaptureCommand::Fetch => Capture::Fetch {
                capture: number()?,
                packets_max: fields.required("pkt_limit", params.pkt_limit)?,
                snap_bytes: params.snaplen as usize,
            },
            CaptureCommand::Remove => Capture::Remove { capture: number()? },
            CaptureCommand::Status => Capture::Status,
        })
    }
}

impl StartCapture {
    fn new(fields: &Fields<'_>, params: CaptureParams) -> Result<StartCapture, FieldError> {
        let limit = fields.required("limit", params.limit)?;
        if limit > CAPTURE_PACKETS_MAX {
            let problem = format!("is {limit}; the most is {CAPTURE_PACKETS_MAX} packets");
            return Err(fields.bad("limit", problem));
        }
        Ok(StartCapture {
            limit,
            cyclic: fields.required("mode", params.mode)? == CaptureMode::Cyclic,
            transmit_ports: fields.required("tx", params.tx)?,
            receive_ports: fields.required("rx", params.rx)?,
            filter: params.filter,
            endpoint: params.endpoint,
            snap_bytes: params.snaplen as usize,
        })
    }
}

fn snap_bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    let bytes = u32::deserialize(deserializer)?;
    if bytes > u32::from(u16::MAX) {
        let problem = format_args!("is {bytes}; the most is 65535 bytes");
        return Err(D::Error::custom(problem));
    }
    Ok(bytes)
}

/// Reply of `capture`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum CaptureReply {
    /// Of `start`.
    Started(CaptureStarted),
    /// Of `stop`.
    Stopped(CaptureStopped),
    /// Of `fetch`.
    Fetched(FetchedPackets),
    /// Of `status`.
    Status(Vec<CaptureStatus>),
    /// Of `remove`.
    Removed(Empty),
}

/// Reply of `capture` to `start`.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct CaptureStarted {
    /// `start`: the number of the new capture.
    pub capture_id: u32,
    /// `start` and `fetch`: when it started, in seconds of the server's clock.
    pub start_ts: f64,
}

/// Reply of `capture` to `stop`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CaptureStopped {
    /// `stop`: packets to be fetched, or on the way to the endpoint.
    pub pkt_count: u64,
    /// `stop`: where its packets went; empty when it has no endpoint.
    pub endpoint: String,
}

/// Reply of `capture` to `fetch`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FetchedPackets {
    /// `fetch`: packets that are left.
    pub pending: u64,
    /// `fetch`: when the capture started, in seconds of the server's clock.
    pub start_ts: f64,
    /// `fetch`: the packets, the oldest first.
    pub pkts: Vec<FetchedPacket>,
}

/// A capture in the reply of `capture` to `status`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CaptureStatus {
    /// `status`: its number.
    pub id: u32,
    /// `ACTIVE` or `STOPPED`.
    pub state: &'static str,
    /// Packets that its filter let in.
    pub matched: u64,
    /// Packets that were fetched.
    pub fetched: u64,
    /// What it takes.
    pub filter: CaptureFilter,
    /// Packets that it has.
    pub count: u64,
    /// Bytes that it has.
    pub bytes: u64,
    /// What found no room on the way to it or to its endpoint.
    pub lost: u64,
    /// Packets that it keeps at most.
    pub limit: u32,
    /// Bytes that it keeps of each; 0 is all.
    pub snaplen: usize,
    /// What it keeps when it is full.
    pub mode: CaptureMode,
    /// Where its packets go, if it keeps none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// `pcap` or `pcapng`: what it writes there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<&'static str>,
}

/// What a capture takes.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CaptureFilter {
    /// Ports whose sent packets it takes, as bits.
    pub tx: u64,
    /// Ports whose received packets it takes, as bits.
    pub rx: u64,
    /// Which packets, in the language of tcpdump.
    pub bpf: String,
}

/// One packet of a capture or a receive queue.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FetchedPacket {
    /// When it was sent or received, in seconds of the server's clock.
    pub ts: f64,
    /// Its bytes without FCS, as base64.
    pub binary: String,
    /// The port.
    pub port: u8,
    /// Its number in the capture, from 1.
    pub index: u64,
    /// Bytes without FCS that it had before it was cut.
    pub wirelen: u32,
    /// `TX` or `RX`.
    pub origin: &'static str,
}

/// Parameters of `start_capture_port`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct StartCapturePort {
    /// The address where the client's socket listens, for example `ipc:///tmp/packets`.
    #[serde(deserialize_with = "socket_address")]
    pub endpoint: String,
    /// The port's number.
    #[serde(rename = "port_id")]
    pub port: u8,
    /// Which of the received frames, in the language of tcpdump.
    #[serde(rename = "bpf_filter", default)]
    #[schemars(extend("x-default" = "all frames"))]
    pub filter: String,
}

fn socket_address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let address = String::deserialize(deserializer)?;
    if address.len() < ENDPOINT_BYTES_MIN {
        return Err(D::Error::custom(
            "is too short; give the address of a ZeroMQ PAIR socket, such as ipc:///tmp/packets",
        ));
    }
    Ok(address)
}

/// Parameters of `set_capture_port_bpf`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct CapturePortFilter {
    /// The port's number.
    #[serde(rename = "port_id")]
    pub port: u8,
    /// Which of the received frames, in the language of tcpdump.
    #[serde(rename = "bpf_filter", default)]
    #[schemars(extend("x-default" = "all frames"))]
    pub filter: String,
}

/// The items of the command table.
pub const COMMANDS: &[Command] = &[
    Command {
        method: Method::Capture(CaptureMethod::Capture),
        name: "capture",
        access: Access::Api,
        doc: "Captures packets that ports send and receive. `command` says what to do: `start`, \
              `stop`, `fetch` packets (the oldest first), `status` or `remove`. A capture with an \
              endpoint keeps nothing: its packets go to a file on the server \
              (`file:///path/name.pcapng`, or `.pcap`) or to the client's ZeroMQ PAIR socket \
              (`tcp://host:port?pcap` or `?pcapng`), and `limit` 0 is then no limit.",
        types: Types::of::<CaptureParams, CaptureReply>(),
        errors: &[
            "no such capture",
            "no such port, or no port at all",
            "there are as many captures as may be",
            "a filter that does not compile",
            "an endpoint that cannot be opened",
        ],
        example: Example {
            params: r#"{"command": "start", "limit": 100, "mode": "fixed", "tx": [0], "rx": [1], "filter": "udp and dst port 12"}"#,
            result: r#"{"capture_id": 1, "start_ts": 47.89}"#,
        },
    },
    Command {
        method: Method::Capture(CaptureMethod::StartCapturePort),
        name: "start_capture_port",
        access: Access::Api,
        doc: "Joins a port to a ZeroMQ PAIR socket of the client: each frame that the port \
              receives is a message there, and each message from there is a frame that the port \
              sends. Frames that find no room on the way are lost, as on a port.",
        types: Types::of::<StartCapturePort, Empty>(),
        errors: &[
            "no such port",
            "it is joined to a socket already",
            "a filter that does not compile",
            "an address that cannot be connected",
        ],
        example: Example {
            params: r#"{"port_id": 0, "endpoint": "ipc:///tmp/packets", "bpf_filter": "udp"}"#,
            result: "{}",
        },
    },
    Command {
        method: Method::Capture(CaptureMethod::StopCapturePort),
        name: "stop_capture_port",
        access: Access::Api,
        doc: "Parts a port from its socket, if it is joined to one.",
        types: Types::of::<PortParams, Empty>(),
        errors: &["no such port"],
        example: Example {
            params: r#"{"port_id": 0}"#,
            result: "{}",
        },
    },
    Command {
        method: Method::Capture(CaptureMethod::SetCapturePortFilter),
        name: "set_capture_port_bpf",
        access: Access::Api,
        doc: "Changes which received frames go to the socket that a port is joined to.",
        types: Types::of::<CapturePortFilter, Empty>(),
        errors: &[
            "no such port",
            "it is joined to no socket",
            "a filter that does not compile",
        ],
        example: Example {
            params: r#"{"port_id": 0, "bpf_filter": "tcp"}"#,
            result: "{}",
        },
    },
];
