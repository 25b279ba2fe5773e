//! Who watches frames: captures, receive queues, capture ports, ports as hosts, echo streams, and
//! emulated clients.
//! The words between control and the receive thread.
//!
//! What can be asked ([`Request`], [`Answer`]), where packets go ([`Endpoints`]), and the [`RxTaps`] that do it, of one shape
//! ([`RxTap`]), a folder each.

mod capture;
mod echo;
pub mod emu_channel;
pub mod emulation;
pub mod filter;
mod host;
mod list;
mod mac_filter;
mod rx_queue;
pub mod rx_tap;
mod service;
mod socket;

use std::fmt;
use std::sync::Arc;

use allosaur_emulation::namespace::NamespaceKey;
use allosaur_emulation::params::RpcError;
use allosaur_emulation::ready::ReadyClients;
use allosaur_emulation::rpc::call::RpcCall;
use allosaur_engine::capture::{CaptureSettings, Captured, Overflow};
use allosaur_engine::echo::{EchoReadout, EchoTerms};
use allosaur_engine::flow_stats::VxlanPorts;
use allosaur_engine::host::HostSettings;
use allosaur_engine::time::Nanos;
use allosaur_engine::transmit::PortIndex;

use serde_json::Value;

use crate::counters::EchoBlock;
use crate::rx_taps::filter::Filter;
pub use list::RxTaps;
pub use mac_filter::MacFilter;
pub use rx_tap::RxTap;
pub use service::{ServiceMask, ServiceMode};

/// Most captures at a time.
pub const CAPTURES_MAX: usize = 10;
/// Memory for the packets of one capture, and of all of them.
pub const CAPTURE_MEMORY_MAX: u64 = 256 << 20;
/// See [`CAPTURE_MEMORY_MAX`].
pub const CAPTURES_MEMORY_MAX: u64 = 512 << 20;
/// Memory for the packets of one receive queue, which one reply has all of; and of all of them.
pub const RX_QUEUE_MEMORY_MAX: u64 = 16 << 20;
/// See [`RX_QUEUE_MEMORY_MAX`].
pub const RX_QUEUES_MEMORY_MAX: u64 = 128 << 20;

/// What control asks of the receive thread.
#[derive(Debug)]
pub enum Request {
    /// Start a capture.
    StartCapture {
        /// What it wants.
        settings: CaptureSettings,
        /// Which frames.
        filter: Filter,
        /// Where its packets go at once; it keeps them when there is nothing.
        endpoint: Option<(Endpoint, Box<dyn PacketSink>)>,
    },
    /// Take no more packets.
    StopCapture(u32),
    /// Take packets out of a capture, the oldest first.
    FetchCapture {
        /// The capture.
        capture: u32,
        /// Packets at most.
        packets_max: usize,
    },
    /// Forget a capture and its packets.
    RemoveCapture(u32),
    /// Tell of all captures.
    ListCaptures,
    /// Keep the last `packets_max` frames that a port receives; 0 is no more.
    SetQueue {
        /// The port.
        port: PortIndex,
        /// Frames to keep.
        packets_max: u32,
    },
    /// Take all frames out of a port's queue.
    TakeQueue(PortIndex),
    /// Tell what watches a port.
    PortState(PortIndex),
    /// Which frames of a port are shown to watchers.
    SetService {
        /// The port.
        port: PortIndex,
        /// Its mode.
        mode: ServiceMode,
    },
    /// What the receive thread must know of a port's link and frames.
    SetReception {
        /// The port.
        port: PortIndex,
        /// All of it.
        reception: Reception,
    },
    /// Who a port is on its network.
    SetHost {
        /// The port.
        port: PortIndex,
        /// Its addresses.
        settings: HostSettings,
    },
    /// Join a port to a socket: what it receives goes there, what comes from there it sends. A port
    /// that is joined already stays so, and its state is told.
    OpenWire {
        /// The port.
        port: PortIndex,
        /// The socket's address.
        endpoint: String,
        /// Which received frames.
        filter: Filter,
        /// The socket.
        wire: Box<dyn Wire>,
    },
    /// Another filter for the frames that go to the socket.
    SetWireFilter {
        /// The port.
        port: PortIndex,
        /// Which received frames.
        filter: Filter,
    },
    /// Part a port from its socket.
    CloseWire(PortIndex),
    /// Start echo streams, in place of those that there were, and of what they measured.
    StartEcho {
        /// Between which ports, and how often.
        terms: EchoTerms,
        /// Where what they measure is published.
        block: Arc<EchoBlock>,
    },
    /// Another rate for them, in requests a second of each port.
    SetEchoRate(f64),
    /// Ask no more.
    StopEcho,
    /// Tell what they measured.
    ReadEcho,
    /// A request to emulated clients, of their own RPC.
    Emulate {
        /// What is asked.
        call: RpcCall,
        /// Whether it goes on with what was asked before, and is not done if that went wrong.
        is_rest: bool,
        /// What the process has used, where the answer tells of it.
        usage: Option<ProcessUsage>,
    },
    /// Tell which emulated clients could send through their gateway now.
    ReadyClients {
        /// Of which namespace.
        namespace: NamespaceKey,
        /// By IPv6, else by IPv4.
        is_ipv6: bool,
    },
}

impl Request {
    /// Whether the answer is about frames of the past: those that had arrived when it was asked
    /// are shown to watchers before.
    pub fn looks_back(&self) -> bool {
        matches!(
            self,
            Request::StopCapture(_) | Request::FetchCapture { .. } | Request::TakeQueue(_)
        )
    }
}

/// What this process has used.
#[derive(Clone, Copy, Debug)]
pub struct ProcessUsage {
    /// Time of CPUs, of all threads together, since it started.
    pub cpu_time: Nanos,
    /// Memory that is resident.
    pub rss_bytes: u64,
}

/// What the receive thread must know of a port's link and frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reception {
    /// The link is up.
    pub link_up: bool,
    /// The UDP ports that carry VXLAN.
    pub vxlan: VxlanPorts,
    /// Which frames are for watchers, not for flows.
    pub service: ServiceMode,
    /// With flows: which frames the port takes at all.
    pub mac_filter: MacFilter,
}

impl Default for Reception {
    fn default() -> Self {
        Reception {
            link_up: true,
            vxlan: VxlanPorts::STANDARD,
            service: ServiceMode::Off,
            mac_filter: MacFilter::Any,
        }
    }
}

/// What the receive thread answers.
#[derive(Debug, PartialEq)]
pub enum Answer {
    /// It is done.
    Done,
    /// What was asked about is not there.
    Unknown,
    /// There are as many captures as may be.
    Full,
    /// A capture was started.
    Started {
        /// Its number.
        capture: u32,
    },
    /// A capture was stopped.
    Stopped {
        /// Packets to be fetched, or still on the way to the endpoint.
        pending: u64,
        /// Where they go; empty for a capture that keeps them.
        endpoint: String,
    },
    /// Packets out of a capture or a queue.
    Packets {
        /// The packets.
        packets: Vec<Captured>,
        /// How many are left.
        pending: u64,
        /// When the capture was started.
        started_at: Nanos,
    },
    /// All captures.
    Captures(Vec<CaptureState>),
    /// What watches a port.
    Port(PortState),
    /// What echo streams measured, port by port.
    Echo(Vec<EchoReadout>),
    /// What comes of a request to emulated clients.
    Emulated(Result<Value, RpcError>),
    /// The emulated clients of a namespace; nothing when there is no such namespace.
    ReadyClients(Option<ReadyClients>),
}

/// Where the packets of a capture go, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// As it was given.
    pub text: String,
    /// In which form.
    pub format: Format,
}

/// The form of a file of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The classic one, with times in nanoseconds.
    Pcap,
    /// The next generation.
    PcapNg,
}

impl Format {
    /// As the RPC calls it.
    pub fn name(self) -> &'static str {
        match self {
            Format::Pcap => "pcap",
            Format::PcapNg => "pcapng",
        }
    }
}

/// What is to be told of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureState {
    /// Its number.
    pub number: u32,
    /// What it wants.
    pub settings: CaptureSettings,
    /// The text of its filter.
    pub filter: String,
    /// Whether it takes packets.
    pub is_active: bool,
    /// Frames that it wanted.
    pub matched: u64,
    /// Packets that were fetched, or handed on.
    pub fetched: u64,
    /// Packets that it keeps, or that are on the way to the endpoint.
    pub count: u64,
    /// Their bytes; of all that were handed on for a capture with an endpoint.
    pub bytes: u64,
    /// Frames and packets that found no room on the way to it or to its endpoint.
    pub lost: u64,
    /// Where its packets go.
    pub endpoint: Option<Endpoint>,
}

/// What watches a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortState {
    /// Frames that its receive queue keeps at most, and that it has; none without a queue.
    pub queue: Option<(u32, u64)>,
    /// Address and filter of the socket that it is joined to.
    pub wire: Option<(String, String)>,
    /// The MAC address of the gateway that it was told to find.
    pub gateway_mac: Option<[u8; 6]>,
}

/// Takes the packets of a capture at once, and never waits.
pub trait PacketSink: Send + fmt::Debug {
    /// Takes a packet; false when there is no room.
    fn push(&mut self, packet: Captured) -> bool;
    /// Packets that have not reached the endpoint.
    fn pending(&self) -> u64;
}

/// A socket that a port is joined to; it never waits.
pub trait Wire: Send + fmt::Debug {
    /// Takes a frame that the port received; false when there is no room.
    fn push(&mut self, frame: &[u8]) -> bool;
    /// The next frame that the port shall send.
    fn receive(&mut self) -> Option<Vec<u8>>;
}

/// Opens what the receive thread hands packets to.
pub trait Endpoints: fmt::Debug {
    /// How the receive thread spent its time since something began to wait for it, in words; where it
    /// is known.
    fn receive_time(&self) -> Option<String> {
        None
    }

    /// Opens an endpoint, which begins with a header of `snap_bytes`. An error says what is wrong.
    fn open_endpoint(
        &self,
        endpoint: &Endpoint,
        snap_bytes: usize,
    ) -> Result<Box<dyn PacketSink>, String>;

    /// Connects a socket for a port. An error says what is wrong.
    fn open_wire(&self, endpoint: &str) -> Result<Box<dyn Wire>, String>;
}

/// A receive queue is a capture of what one port receives.
fn queue_settings(port: PortIndex, packets_max: u32) -> CaptureSettings {
    CaptureSettings {
        transmit_ports: 0,
        receive_ports: 1 << port,
        packets_max,
        overflow: Overflow::KeepLast,
        snap_bytes: 0,
        memory_max: RX_QUEUE_MEMORY_MAX,
    }
}
