//! What can be asked of Linux nodes, and the socket that their frames go through.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::BorrowedFd;

use allosaur_engine::transmit::PortIndex;

use crate::rx_taps::filter::Filter;
use crate::rx_taps::tap_request::TapRequest;

/// Has the frames of all nodes of a port, each with the number of its node's interface; it never waits.
pub trait NodeSocket: Send + fmt::Debug {
    /// Gives a node a frame; false when there is no room.
    fn send(&mut self, interface: u32, frame: &[u8]) -> bool;

    /// Hands what a node sent next to `each`: one frame, or several that it sent as one. False when there is
    /// nothing.
    fn receive(&mut self, each: &mut dyn FnMut(u32, &[u8])) -> bool;

    /// Becomes readable when a node has sent something.
    fn file(&self) -> BorrowedFd<'_>;
}

/// A node, as far as its frames are concerned.
#[derive(Debug)]
pub struct NodeEntry {
    /// Its MAC address.
    pub mac: [u8; 6],
    /// It is the port itself, as a host.
    pub is_port: bool,
    /// The number of its interface.
    pub interface: u32,
    /// The VLAN tags of its frames as they stand there: type and number of each, the outer first.
    pub tags: Vec<[u16; 2]>,
    /// Which frames it gets.
    pub filter: NodeFilter,
    /// Whose ARP requests are its own.
    pub ipv4: Option<Ipv4Addr>,
    /// The same, with neighbor discovery.
    pub ipv6: Vec<Ipv6Addr>,
}

/// Which of the frames for a node it gets.
#[derive(Debug)]
pub struct NodeFilter {
    /// It gets TCP and UDP.
    pub tcp_udp: bool,
    /// It gets all else.
    pub others: bool,
    /// Those of them that match.
    pub bpf: Filter,
}

/// A change of a port's nodes.
#[derive(Debug)]
pub enum NodeChange {
    /// A node is there, or has changed.
    Set(Box<NodeEntry>),
    /// A node is gone.
    Remove([u8; 6]),
}

/// What can be asked of Linux nodes.
#[derive(Debug)]
pub enum NodesRequest {
    /// Join a port to its nodes, in the place of those that it had.
    Open {
        /// The port.
        port: PortIndex,
        /// Their frames.
        socket: Box<dyn NodeSocket>,
    },
    /// Take note of nodes.
    Change {
        /// The port.
        port: PortIndex,
        /// In this order.
        changes: Vec<NodeChange>,
    },
    /// Let the port as a host have frames that are not about addresses, such as ping, or not.
    SetPortAnswers {
        /// The port.
        port: PortIndex,
        /// Let it.
        answers: bool,
    },
    /// Part a port from its nodes.
    Close(PortIndex),
    /// Tell what was counted on a port.
    Counters(PortIndex),
    /// Count from zero.
    ClearCounters(PortIndex),
}

/// What Linux nodes answer.
#[derive(Debug, PartialEq)]
pub enum NodesAnswer {
    /// It is done.
    Done,
    /// What was counted.
    Counters(NodeCounters),
}

/// Frames by where they went: to one, to a group, to all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameCounters {
    /// To one station.
    pub unicast: FrameCounter,
    /// To a group.
    pub multicast: FrameCounter,
    /// To all.
    pub broadcast: FrameCounter,
}

/// Frames and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameCounter {
    /// Frames.
    pub frames: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl FrameCounters {
    /// Counts one.
    pub(in crate::rx_taps) fn count(&mut self, frame: &[u8]) {
        let counter = match frame.first_chunk::<6>() {
            Some([0xff, 0xff, 0xff, 0xff, 0xff, 0xff]) => &mut self.broadcast,
            Some([first, ..]) if first & 1 == 1 => &mut self.multicast,
            _ => &mut self.unicast,
        };
        counter.frames += 1;
        counter.bytes += frame.len() as u64;
    }

    /// All of them.
    pub fn total(&self) -> FrameCounter {
        let all = [self.unicast, self.multicast, self.broadcast];
        FrameCounter {
            frames: all.iter().map(|counter| counter.frames).sum(),
            bytes: all.iter().map(|counter| counter.bytes).sum(),
        }
    }
}

/// What was counted of the nodes of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeCounters {
    /// Frames that nodes were given.
    pub received: FrameCounters,
    /// Frames that nodes sent.
    pub sent: FrameCounters,
    /// Frames that the port had no room for.
    pub send_lost: u64,
    /// Frames that a node had no room for.
    pub receive_lost: u64,
    /// Frames for nodes that were in another VLAN.
    pub other_vlan: u64,
    /// Frames that a node's filter left out.
    pub filtered: u64,
    /// Frames to all nodes.
    pub flooded: u64,
    /// Frames to all nodes that found too many waiting.
    pub flood_lost: u64,
}

impl TapRequest for NodesRequest {
    type Answer = NodesAnswer;
}
