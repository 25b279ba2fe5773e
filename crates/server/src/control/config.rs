//! What control must know from the start: facts about the machine and the ports.

use std::net::Ipv4Addr;
use std::sync::Arc;

use allosaur_api::commands::layers::VxlanTunnel;
use allosaur_engine::flow_stats::Tagging;
use allosaur_engine::time::Nanos;
use allosaur_engine::transmit::PortIndex;
use allosaur_engine::vm::Checksums;
use allosaur_nodes::owner::Owner;
use allosaur_packet::link::{ethernet, vlan};

use crate::control::worker_command::Modes;
use crate::counters::{GroupReadout, Snapshot};
use crate::rx_taps::Endpoints;

/// Facts that do not change while the server runs.
#[derive(Clone, Debug)]
pub struct ControlConfig {
    /// The ports, in order of their numbers.
    pub ports: Vec<PortConfig>,
    /// The number of data threads.
    pub data_cores: usize,
    /// The modes that ports can be in.
    pub modes: Modes,
    /// The machine's name.
    pub hostname: String,
    /// The processor.
    pub core_type: String,
    /// When the server started, as `Mon DD YYYY @ HH:MM:SS`.
    pub started: String,
    /// Version and build.
    pub build: BuildInfo,
    /// The signs of packets that are counted by themselves.
    pub marking: Tagging,
    /// Whether emulated clients take and send frames by MAC addresses of their own.
    pub has_emulation: bool,
    /// Whether each port has its addresses in a network namespace, where the kernel answers for it.
    pub has_linux_stack: bool,
    /// The right to namespaces, where BIRD or a port has one already.
    pub nodes_owner: Option<Arc<Owner>>,
    /// What the strings are drawn from that prove ownership; unguessable in a real server.
    pub seed: u64,
}

/// Version and build of the server.
#[derive(Clone, Debug)]
pub struct BuildInfo {
    /// With a leading `v`.
    pub version: String,
    /// The day.
    pub date: String,
    /// The time of that day.
    pub time: String,
    /// Who built it.
    pub by: String,
}

/// Facts about one port.
#[derive(Clone, Debug)]
pub struct PortConfig {
    /// The name of its kind, one of the port crate's `KINDS`.
    pub driver: String,
    /// What it is, in words.
    pub description: String,
    /// The interface that it is on, if it is on one.
    pub interface: Option<String>,
    /// The NUMA node of its device, where it has one.
    pub numa_node: Option<usize>,
    /// Bits per second at layer 1.
    pub line_rate_bps: f64,
    /// The longest frame that it sends, in bytes without FCS and VLAN tag.
    pub frame_bytes_max: usize,
    /// Who brings its link up and down.
    pub link: LinkOwner,
    /// Its own MAC address.
    pub hw_mac: [u8; 6],
    /// Where its frames go unless a stream says otherwise: the peer's MAC address.
    pub destination_mac: [u8; 6],
    /// Who computes the checksums of `fix_checksum_hw`.
    pub checksums: Checksums,
    /// Whether a frame in VXLAN reaches the data thread of the flow within it.
    pub shares_inner_flows: bool,
    /// The data threads that transmit on it; a core mask counts along this list.
    pub cores: Vec<usize>,
}

/// Who brings the link of a port up and down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkOwner {
    /// The server.
    Server {
        /// The port at the other end, if there is one.
        peer: Option<u8>,
    },
    /// The system, whose interface it is.
    System,
}

/// What stands in place of the type of a frame that carries a VLAN tag.
const VLAN_TYPE: [u8; 2] = [0x81, 0x00];
/// Bytes of an Ethernet header.
const ETHERNET_BYTES: usize = ethernet::HEADER_BYTES;
/// Bytes of a VLAN tag.
const VLAN_TAG_BYTES: usize = vlan::HEADER_BYTES;

impl PortConfig {
    /// Why the port cannot send a frame, if it is so.
    pub(super) fn check_frame(&self, frame: &[u8]) -> Result<(), String> {
        let is_tagged = frame.get(12..14) == Some(&VLAN_TYPE);
        self.check_frame_bytes(frame.len(), is_tagged)
    }

    /// The same for a frame of so many bytes, with a VLAN tag or without.
    pub(super) fn check_frame_bytes(&self, bytes: usize, is_tagged: bool) -> Result<(), String> {
        let bytes_max = self.frame_bytes_max + if is_tagged { VLAN_TAG_BYTES } else { 0 };
        if bytes <= bytes_max {
            return Ok(());
        }
        let excess = bytes - bytes_max;
        let (who, how) = match &self.interface {
            Some(name) => {
                let mtu = self.frame_bytes_max - ETHERNET_BYTES;
                let raised = mtu + excess;
                (
                    format!("interface {name} with its MTU of {mtu}"),
                    format!("raise the MTU (ip link set dev {name} mtu {raised})"),
                )
            }
            None => (
                "the port".to_owned(),
                "raise the MTU of the device".to_owned(),
            ),
        };
        Err(format!(
            "packet is {bytes} bytes, and {who} sends at most {bytes_max} (without the 4 bytes of FCS): \
             make it shorter, or {how} and start the server again"
        ))
    }
}

/// The addresses that a port has from the start, instead of its own and its peer's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StartAddresses {
    /// Its address for IPv4, and its gateway's.
    pub ipv4: Option<(Ipv4Addr, Ipv4Addr)>,
    /// The VLANs that its host is in, outer first.
    pub vlan: Vec<u16>,
    /// The tunnel that its flows are in.
    pub vxlan: Option<VxlanTunnel>,
    /// Where its frames go; with an address for IPv4 it is the gateway's.
    pub destination_mac: Option<[u8; 6]>,
    /// Its own MAC address.
    pub source_mac: Option<[u8; 6]>,
}

/// What control sees of the world while it handles something.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The time.
    pub now_ns: Nanos,
    /// The counters.
    pub snapshot: &'a Snapshot,
    /// The counters of packet groups.
    pub groups: &'a dyn GroupReadout,
    /// Opens files and sockets for packets.
    pub endpoints: &'a dyn Endpoints,
    /// What interfaces and devices count themselves.
    pub devices: &'a dyn DeviceCounters,
}

/// What is counted by those who know it best: the kernel of its interfaces, drivers of their devices.
pub trait DeviceCounters: std::fmt::Debug {
    /// The names of the counters of all ports, each once; they stay as they are.
    fn names(&self) -> &[String];

    /// The counters of one port: names and values.
    fn read(&self, port: PortIndex) -> Vec<(String, u64)>;

    /// How many frames of so many bytes its transmit queues have room for.
    fn room(&self, port: PortIndex, frame_bytes: usize) -> FrameSpace;
}

/// Frames that transmit queues have room for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameSpace {
    /// Now.
    pub free: u64,
    /// When nothing waits in them.
    pub total: u64,
}

/// Nothing is attached to any port.
impl DeviceCounters for () {
    fn names(&self) -> &[String] {
        &[]
    }

    fn read(&self, _port: PortIndex) -> Vec<(String, u64)> {
        Vec::new()
    }

    /// One frame leaves at once, and then there is room for the next.
    fn room(&self, _port: PortIndex, _frame_bytes: usize) -> FrameSpace {
        FrameSpace { free: 1, total: 1 }
    }
}

/// A MAC address as text.
pub(super) fn mac_text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}
