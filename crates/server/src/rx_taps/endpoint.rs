//! Where packets of captures go, and sockets that ports are joined to: files and sockets that others
//! open, so that taps have no I/O.

use std::fmt;

use allosaur_engine::capture::Captured;
use allosaur_nodes::namespace::NetworkNamespace;

use super::nodes::request::NodeSocket;
use crate::emulation::ProcessUsage;

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

    /// What this process has used; nothing where that is not known.
    fn process_usage(&self) -> ProcessUsage {
        ProcessUsage::default()
    }

    /// Opens an endpoint, which begins with a header of `snap_bytes`. An error says what is wrong.
    fn open_endpoint(
        &self,
        endpoint: &Endpoint,
        snap_bytes: usize,
    ) -> Result<Box<dyn PacketSink>, String>;

    /// Connects a socket for a port. An error says what is wrong.
    fn open_wire(&self, endpoint: &str) -> Result<Box<dyn Wire>, String>;

    /// Opens the socket with the frames of all nodes whose outer ends are in a namespace. An error says what
    /// is wrong.
    fn open_nodes(&self, outer: &NetworkNamespace) -> Result<Box<dyn NodeSocket>, String>;
}
