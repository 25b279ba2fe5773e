//! What control must know from the start: facts about the machine and the ports.

use allosaur_engine::flow_stats::Marking;
use allosaur_engine::time::Nanos;
use allosaur_engine::vm::Checksums;

use super::files::CaptureFiles;
use crate::clock::Clock;
use crate::counters::{GroupReadout, Snapshot};
use crate::observe::Observe;

/// Facts that do not change while the server runs.
#[derive(Clone, Debug)]
pub struct ControlConfig {
    /// The ports, in order of their numbers.
    pub ports: Vec<PortConfig>,
    /// The number of data threads.
    pub data_cores: usize,
    /// The machine's name.
    pub hostname: String,
    /// The processor.
    pub core_type: String,
    /// When the server started, as `Mon DD YYYY @ HH:MM:SS`.
    pub started: String,
    /// Version and build.
    pub build: BuildFacts,
    /// The signs of packets that are counted by themselves.
    pub marking: Marking,
    /// What the strings are drawn from that prove ownership; unguessable in a real server.
    pub seed: u64,
}

/// Version and build of the server.
#[derive(Clone, Debug)]
pub struct BuildFacts {
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
    /// The kind of port: `memory`.
    pub driver: String,
    /// What it is, in words.
    pub description: String,
    /// Bits per second at layer 1.
    pub line_rate_bps: f64,
    /// Its own MAC address.
    pub hw_mac: [u8; 6],
    /// Where its frames go unless a stream says otherwise: the peer's MAC address.
    pub destination_mac: [u8; 6],
    /// Who computes the checksums of `fix_checksum_hw`.
    pub checksums: Checksums,
    /// The data threads that transmit on it; a core mask counts along this list.
    pub cores: Vec<usize>,
}

/// A clock that goes on while control works.
pub trait TimeSource: std::fmt::Debug {
    /// The time now.
    fn now_ns(&self) -> Nanos;
}

impl TimeSource for Clock {
    fn now_ns(&self) -> Nanos {
        Clock::now_ns(self)
    }
}

/// Virtual time stands still.
impl TimeSource for Nanos {
    fn now_ns(&self) -> Nanos {
        *self
    }
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
    /// The time again, for what takes long.
    pub time: &'a dyn TimeSource,
    /// Where capture files are read.
    pub files: &'a dyn CaptureFiles,
    /// Who watches frames.
    pub observer: &'a dyn Observe,
}

/// A MAC address as text.
pub(super) fn mac_text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}
