//! Commands that capture packets: captures, and ports that are joined to a socket.

use crate::command::{Access, Command, Example, Kind, PORT_ID, Param};
use crate::commands::ports::port_id;
use crate::fields::{FieldError, Fields};
use crate::limits::CAPTURE_PACKETS_MAX;
use crate::method::{CaptureMethod, Method};
use serde::Serialize;

/// The shortest address of a socket.
const ENDPOINT_BYTES_MIN: usize = 5;

/// Parameters of `capture`.
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
        let commands = ["start", "stop", "fetch", "status", "remove"];
        let number = || fields.uint32("capture_id");
        Ok(match fields.one_of("command", &commands)? {
            "start" => Capture::Start(StartCapture::parse(fields)?),
            "stop" => Capture::Stop { capture: number()? },
            "fetch" => Capture::Fetch {
                capture: number()?,
                packets_max: fields.uint32("pkt_limit")?,
                snap_bytes: snap_bytes(fields)?,
            },
            "remove" => Capture::Remove { capture: number()? },
            _ => Capture::Status,
        })
    }
}

impl StartCapture {
    fn parse(fields: &Fields<'_>) -> Result<StartCapture, FieldError> {
        let limit = fields.uint32("limit")?;
        if limit > CAPTURE_PACKETS_MAX {
            let problem = format!("is {limit}; the most is {CAPTURE_PACKETS_MAX} packets");
            return Err(fields.bad("limit", problem));
        }
        let text = |name| {
            fields
                .optional(name, Fields::string)
                .map(Option::unwrap_or_default)
        };
        Ok(StartCapture {
            limit,
            cyclic: fields.one_of("mode", &["fixed", "cyclic"])? == "cyclic",
            transmit_ports: ports(fields, "tx")?,
            receive_ports: ports(fields, "rx")?,
            filter: text("filter")?.to_owned(),
            endpoint: text("endpoint")?.to_owned(),
            snap_bytes: snap_bytes(fields)?,
        })
    }
}

fn ports(fields: &Fields<'_>, name: &str) -> Result<Vec<u8>, FieldError> {
    let ports = fields.uint_array(name, u8::MAX.into(), "byte")?;
    Ok(ports.into_iter().map(|port| port as u8).collect())
}

fn snap_bytes(fields: &Fields<'_>) -> Result<usize, FieldError> {
    let bytes = fields.optional("snaplen", Fields::uint32)?.unwrap_or(0);
    match u16::try_from(bytes) {
        Ok(bytes) => Ok(bytes.into()),
        Err(_) => Err(fields.bad("snaplen", format!("is {bytes}; the most is 65535 bytes"))),
    }
}

/// One packet of a capture or a receive queue.
#[derive(Clone, Debug, Serialize)]
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

/// Parameters of `start_capture_port`, and of `set_capture_port_bpf` without endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturePort {
    /// The port.
    pub port: u8,
    /// The address of the client's socket; empty when it is not given.
    pub endpoint: String,
    /// Which frames.
    pub filter: String,
}

impl CapturePort {
    /// Reads the parameters of `start_capture_port`.
    pub fn parse_start(fields: &Fields<'_>) -> Result<CapturePort, FieldError> {
        let endpoint = fields.string("endpoint")?;
        if endpoint.len() < ENDPOINT_BYTES_MIN {
            let problem = "is too short; give the address of a ZeroMQ PAIR socket, such as \
                           ipc:///tmp/packets";
            return Err(fields.bad("endpoint", problem));
        }
        Ok(CapturePort {
            endpoint: endpoint.to_owned(),
            ..CapturePort::parse_filter(fields)?
        })
    }

    /// Reads the parameters of `set_capture_port_bpf`.
    pub fn parse_filter(fields: &Fields<'_>) -> Result<CapturePort, FieldError> {
        let filter = fields.optional("bpf_filter", Fields::string)?;
        Ok(CapturePort {
            port: port_id(fields)?,
            endpoint: String::new(),
            filter: filter.unwrap_or_default().to_owned(),
        })
    }
}

const FILTER: Param = Param::optional(
    "bpf_filter",
    Kind::String,
    "all frames",
    "Which of the received frames, in the language of tcpdump.",
);

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
        params: &[
            Param::required(
                "command",
                Kind::String,
                "`start`, `stop`, `fetch`, `status` or `remove`.",
            ),
            Param::sometimes(
                "capture_id",
                Kind::Uint32,
                "`stop`, `fetch`, `remove`",
                "The capture.",
            ),
            Param::sometimes(
                "limit",
                Kind::Uint32,
                "`start`",
                "Packets to keep; 0 only counts.",
            ),
            Param::sometimes(
                "mode",
                Kind::String,
                "`start`",
                "What happens then: `fixed` keeps the first packets, `cyclic` the last.",
            ),
            Param::sometimes(
                "tx",
                Kind::Array,
                "`start`",
                "Ports whose sent packets are taken.",
            ),
            Param::sometimes(
                "rx",
                Kind::Array,
                "`start`",
                "Ports whose received packets are taken.",
            ),
            Param::sometimes(
                "filter",
                Kind::String,
                "`start`",
                "Which packets, in the language of tcpdump; all when it is left out.",
            ),
            Param::sometimes(
                "endpoint",
                Kind::String,
                "`start`",
                "Where the packets go; they are kept when it is left out.",
            ),
            Param::sometimes(
                "snaplen",
                Kind::Uint32,
                "`start`, `fetch`",
                "Bytes to keep of each packet (`start`), or to fetch (`fetch`); 0, or left out, is all.",
            ),
            Param::sometimes(
                "pkt_limit",
                Kind::Uint32,
                "`fetch`",
                "Packets to fetch at most.",
            ),
        ],
        reply: "`start`: `capture_id` and `start_ts`, seconds of the server's clock. `stop`: \
                `pkt_count`, packets to be fetched or on the way to the `endpoint`. `fetch`: \
                `pending`, `start_ts` and `pkts`, each with `ts` (seconds), `binary` (base64), \
                `port`, `index` (from 1), `wirelen` (bytes) and `origin` (`TX` or `RX`). \
                `status`: a list of captures; `lost` counts what found no \
                room on the way to one or to its endpoint. `remove`: `{}`.",
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
        check: |f| Capture::parse(f).map(drop),
    },
    Command {
        method: Method::Capture(CaptureMethod::StartCapturePort),
        name: "start_capture_port",
        access: Access::Api,
        doc: "Joins a port to a ZeroMQ PAIR socket of the client: each frame that the port \
              receives is a message there, and each message from there is a frame that the port \
              sends. Frames that find no room on the way are lost, as on a port.",
        params: &[
            PORT_ID,
            Param::required(
                "endpoint",
                Kind::String,
                "The address where the client's socket listens, for example \
                 `ipc:///tmp/packets`.",
            ),
            FILTER,
        ],
        reply: "`{}`.",
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
        check: |f| CapturePort::parse_start(f).map(drop),
    },
    Command {
        method: Method::Capture(CaptureMethod::StopCapturePort),
        name: "stop_capture_port",
        access: Access::Api,
        doc: "Parts a port from its socket, if it is joined to one.",
        params: &[PORT_ID],
        reply: "`{}`.",
        errors: &["no such port"],
        example: Example {
            params: r#"{"port_id": 0}"#,
            result: "{}",
        },
        check: |f| port_id(f).map(drop),
    },
    Command {
        method: Method::Capture(CaptureMethod::SetCapturePortFilter),
        name: "set_capture_port_bpf",
        access: Access::Api,
        doc: "Changes which received frames go to the socket that a port is joined to.",
        params: &[PORT_ID, FILTER],
        reply: "`{}`.",
        errors: &[
            "no such port",
            "it is joined to no socket",
            "a filter that does not compile",
        ],
        example: Example {
            params: r#"{"port_id": 0, "bpf_filter": "tcp"}"#,
            result: "{}",
        },
        check: |f| CapturePort::parse_filter(f).map(drop),
    },
];
