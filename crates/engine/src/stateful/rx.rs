//! Frames that arrive, in bursts, some with their data apart: which flow each belongs to. Those that are
//! not as most are go by way of `slow_path` and `admit`.

use allosaur_packet::MacAddress;
use allosaur_packet::link::ethernet::{self, EtherType, EthernetView};
use allosaur_packet::shared_payload::SplitFrame;
use allosaur_packet::transport::tcp::TcpFlags;

use super::{Disposition, StatefulEngine};
use crate::encapsulation::{Encapsulation, Stripped};
use crate::flow::{AddressSpace, FlowIndex, FlowKey, FlowScope, Protocol, SpaceIndex, host_of};
use crate::session::wire::{self, Addresses, Arrival, Received};
use crate::tcp::{Connection, Segment};
use crate::template::Side;
use crate::time::Nanos;
use crate::transmit::{PortIndex, TxQueues};

/// The port that a frame came to, and the network of the tunnel that it came in; 0 is none.
pub(super) type Arrived = (PortIndex, u32);

impl StatefulEngine {
    /// Frames arrived at a port, in this order. `note` is called with each and its disposition, in the same order.
    pub fn handle_frames<'f>(
        &mut self,
        now: Nanos,
        port: PortIndex,
        frames: &[SplitFrame<'f>],
        tx_queues: &mut impl TxQueues,
        mut note: impl FnMut(&SplitFrame<'f>, Disposition),
    ) {
        let mut left = frames;
        while let [frame, behind @ ..] = left {
            let (disposition, count) = self.handle_next(now, port, frame, behind, tx_queues);
            let (handled, rest) = left.split_at(count);
            for frame in handled {
                note(frame, disposition);
            }
            left = rest;
        }
    }

    /// A frame arrived at a port. Returns whose it was.
    pub fn handle_frame(
        &mut self,
        now: Nanos,
        port: PortIndex,
        bytes: &[u8],
        tx_queues: &mut impl TxQueues,
    ) -> Disposition {
        let frame = SplitFrame::whole(now, bytes);
        self.handle_next(now, port, &frame, &[], tx_queues).0
    }

    /// A frame that arrived, whole or with its data apart, in front of others. Returns whose it was,
    /// and how many frames were handled: more than one where those behind it went with it.
    #[inline]
    fn handle_next(
        &mut self,
        now: Nanos,
        port: PortIndex,
        frame: &SplitFrame<'_>,
        behind: &[SplitFrame<'_>],
        tx_queues: &mut impl TxQueues,
    ) -> (Disposition, usize) {
        let Some(Some(info)) = self.ports.get(usize::from(port)) else {
            return (Disposition::Other, 1);
        };
        let arrived = (port, info.side);
        if info.encapsulation.is_tunnel() {
            self.handle_tunneled(now, port, frame, behind, tx_queues)
        } else if wire::is_plain(frame) {
            self.handle_plain(now, arrived, frame, behind, tx_queues)
        } else {
            self.handle_behind_tags(now, arrived, frame, behind, tx_queues)
        }
    }

    /// A frame of IPv4 without tags or tunnel.
    #[inline(never)]
    fn handle_plain(
        &mut self,
        now: Nanos,
        (port, side): (PortIndex, Side),
        frame: &SplitFrame<'_>,
        behind: &[SplitFrame<'_>],
        tx_queues: &mut impl TxQueues,
    ) -> (Disposition, usize) {
        let fast = wire::read_plain(frame);
        // What was read is much: it stays where it is.
        let Some((received, start)) = &fast else {
            let stripped = Encapsulation::strip_tags(frame.head);
            return (self.handle_slow(now, port, frame, stripped, tx_queues), 1);
        };
        let frame = Frame {
            bytes: frame.head,
            data: received.data(frame, *start),
            burst: Some(Burst::new(frame, behind, ethernet::HEADER_BYTES)),
            received,
            tunnel: None,
        };
        self.handle_read(now, (port, 0), side, &frame, tx_queues)
    }

    /// A frame without a tunnel that has tags, or is not of IPv4.
    #[inline(never)]
    fn handle_behind_tags(
        &mut self,
        now: Nanos,
        (port, side): (PortIndex, Side),
        frame: &SplitFrame<'_>,
        behind: &[SplitFrame<'_>],
        tx_queues: &mut impl TxQueues,
    ) -> (Disposition, usize) {
        let packet = Encapsulation::packet_behind_tags(frame.head);
        let (at, packet) = packet.unwrap_or_default();
        let fast = wire::read_packet(frame, at, packet);
        let Some((received, start)) = &fast else {
            let stripped = Encapsulation::strip_tags(frame.head);
            return (self.handle_slow(now, port, frame, stripped, tx_queues), 1);
        };
        let is_v4 = packet == EtherType::IPV4;
        let frame = Frame {
            bytes: frame.head,
            data: received.data(frame, *start),
            burst: is_v4.then(|| Burst::new(frame, behind, at)),
            received,
            tunnel: None,
        };
        self.handle_read(now, (port, 0), side, &frame, tx_queues)
    }

    /// A frame that came to a port with a tunnel.
    #[inline(never)]
    fn handle_tunneled(
        &mut self,
        now: Nanos,
        port: PortIndex,
        frame: &SplitFrame<'_>,
        behind: &[SplitFrame<'_>],
        tx_queues: &mut impl TxQueues,
    ) -> (Disposition, usize) {
        let Some(Some(info)) = self.ports.get(usize::from(port)) else {
            return (Disposition::Other, 1);
        };
        let side = info.side;
        let stripped = info.encapsulation.strip(frame);
        let (at, packet) = match stripped {
            Stripped::Packet {
                packet_offset,
                packet,
                ..
            } => (packet_offset, packet),
            _ => Default::default(),
        };
        let fast = wire::read_packet(frame, at, packet);
        let (Some((received, start)), Stripped::Packet { came_in, .. }) = (&fast, &stripped) else {
            return (self.handle_slow(now, port, frame, stripped, tx_queues), 1);
        };
        let is_v4 = packet == EtherType::IPV4;
        let frame = Frame {
            bytes: frame.head,
            data: received.data(frame, *start),
            burst: is_v4.then(|| Burst::new(frame, behind, at)),
            received,
            tunnel: came_in.is_tunnel().then_some(came_in),
        };
        let arrived = (port, came_in.network());
        self.handle_read(now, arrived, side, &frame, tx_queues)
    }

    /// A frame of TCP or UDP that is whole. Returns what [`handle_next`](StatefulEngine::handle_next)
    /// does.
    #[inline]
    pub(super) fn handle_read(
        &mut self,
        now: Nanos,
        arrived: Arrived,
        side: Side,
        frame: &Frame<'_>,
        tx_queues: &mut impl TxQueues,
    ) -> (Disposition, usize) {
        let (key, packed) = self.key_of(arrived, frame.received);
        let found = self.find(packed);
        match found.or_else(|| self.find_by_connection(side, frame)) {
            Some(index) if index.is_in_fifo() => {
                self.handle_late(now, index, &key, side, frame, tx_queues);
                (Disposition::Flow, 1)
            }
            Some(index) => {
                let count = self.handle_known(now, index, &key, side, frame, tx_queues);
                (Disposition::Flow, count)
            }
            None => (self.handle_unknown(now, &key, side, frame, tx_queues), 1),
        }
    }

    /// The key of a frame's flow, and the same in one number.
    #[inline(always)]
    fn key_of(&self, arrived: Arrived, received: &Received) -> (FlowKey, u128) {
        let protocol = match received.arrival {
            Arrival::Tcp(_) => Protocol::Tcp,
            Arrival::Udp(_) => Protocol::Udp,
        };
        self.key_between(arrived, received.addresses, received.ports, protocol)
    }

    /// The same from its ends: source, destination. The number is not read from the key, which was
    /// just written in parts.
    #[inline(always)]
    pub(super) fn key_between(
        &self,
        (port, network): Arrived,
        addresses: Addresses,
        ports: (u16, u16),
        protocol: Protocol,
    ) -> (FlowKey, u128) {
        let (remote, local, is_v6) = match addresses {
            Addresses::V4(from, to) => (from.to_bits(), to.to_bits(), false),
            Addresses::V6(from, to) => (host_of(from), host_of(to), true),
        };
        let space = match (addresses, network) {
            // So most have it: nothing of what follows is asked.
            (Addresses::V4(..), 0) => None,
            _ => space_of(addresses, network).map(|space| {
                let known = self.pools.spaces.find(&space);
                known.unwrap_or(SpaceIndex::UNKNOWN)
            }),
        };
        let key = FlowKey {
            local,
            remote,
            local_port: ports.1,
            remote_port: ports.0,
            space,
            scope: FlowScope::new(protocol, is_v6),
            port,
        };
        (key, key.packed())
    }

    /// The flow whose key is this in one number.
    #[inline(always)]
    pub(super) fn find(&self, key: u128) -> Option<FlowIndex> {
        let is_it = |index: FlowIndex| {
            if index.is_in_fifo() {
                return self.is_time_wait_of(index, key);
            }
            let entry = self.flows.at(index);
            entry.is_some_and(|entry| entry.session.key().packed() == key)
        };
        self.table.find(key, is_it)
    }

    /// Whether a flow in TIME-WAIT has this key. A call, so that most searches load nothing for it.
    #[inline(never)]
    fn is_time_wait_of(&self, index: FlowIndex, key: u128) -> bool {
        let rest = self.time_wait.at(index);
        rest.is_some_and(|rest| rest.key().packed() == key)
    }

    /// A frame for a flow that is there. Returns how many frames were handled.
    #[inline]
    pub(super) fn handle_known(
        &mut self,
        now: Nanos,
        index: FlowIndex,
        key: &FlowKey,
        side: Side,
        frame: &Frame<'_>,
        tx_queues: &mut impl TxQueues,
    ) -> usize {
        let entry = self.flows.at(index).expect("what the table has is held");
        let connection = entry.session.connection();
        let asks = entry.is_lingering_or_deferred()
            || frame.is_new_connection()
            || connection.is_some_and(Connection::is_closed);
        if asks && !self.admit(now, index, key, side, frame, tx_queues) {
            return 1;
        }
        let arrival = &frame.received.arrival;
        let coalesced = match arrival {
            Arrival::Tcp(segment) if segment.len > 0 => self.coalesced(index, segment, frame),
            _ => None,
        };
        self.with_flow(now, index, tx_queues, |session, cx, tx| match arrival {
            Arrival::Tcp(segment) => {
                let segment = coalesced.as_ref().unwrap_or(segment);
                session.handle_segment(cx, tx, segment, frame.data)
            }
            Arrival::Udp(bytes) => {
                session.handle_datagram(cx, tx, frame.message(*bytes), || frame.ecn())
            }
        });
        coalesced.map_or(1, |segment| 1 + segment.coalesced as usize)
    }

    /// Generic receive offload: the segment of `frame` with those behind it that are coalesced into it;
    /// `None` where there are none.
    #[inline]
    fn coalesced(&self, index: FlowIndex, segment: &Segment, frame: &Frame<'_>) -> Option<Segment> {
        let burst = frame.burst.as_ref()?;
        if burst.behind.is_empty() {
            return None;
        }
        let entry = self.flows.at(index)?;
        let bytes_max = entry.session.coalesced_bytes_max(segment);
        if bytes_max == 0 {
            return None;
        }
        let at = burst.packet_offset;
        if at == ethernet::HEADER_BYTES {
            // What they are compared by has all that is in front of their packets.
            let behind = burst.behind.iter().map(|next| Some(*next));
            return wire::coalesce(burst.first, segment, behind, bytes_max);
        }
        let port = entry.session.key().port;
        let link = &self.ports[usize::from(port)].as_ref()?.encapsulation;
        let stripped = link.strip(burst.first);
        let behind = burst.behind.iter().map(|next| {
            let is_same = link.strip(next) == stripped;
            is_same.then(|| behind_prefix(next, at))
        });
        let first = behind_prefix(burst.first, at);
        wire::coalesce(&first, segment, behind, bytes_max)
    }
}

/// The address space of a packet that came in the network of a tunnel; 0 is none.
#[inline(always)]
pub(super) fn space_of(addresses: Addresses, network: u32) -> Option<AddressSpace> {
    match addresses {
        Addresses::V4(..) => AddressSpace::v4(network),
        Addresses::V6(from, to) => Some(AddressSpace::v6(network, to, from)),
    }
}

/// A frame of IPv4, and those that arrived behind it.
#[derive(Clone, Copy)]
pub(super) struct Burst<'a> {
    first: &'a SplitFrame<'a>,
    behind: &'a [SplitFrame<'a>],
    /// Where the packet of the first begins.
    packet_offset: usize,
}

impl<'a> Burst<'a> {
    #[inline(always)]
    fn new(
        first: &'a SplitFrame<'a>,
        behind: &'a [SplitFrame<'a>],
        packet_offset: usize,
    ) -> Burst<'a> {
        Burst {
            first,
            behind,
            packet_offset,
        }
    }
}

/// A frame whose packet begins at `at`, as if there were only the header of Ethernet in front of it.
fn behind_prefix<'f>(frame: &SplitFrame<'f>, at: usize) -> SplitFrame<'f> {
    SplitFrame {
        head: &frame.head[at - ethernet::HEADER_BYTES..],
        ..*frame
    }
}

/// A frame, and what was read from it.
#[derive(Clone, Copy)]
pub(super) struct Frame<'a> {
    /// All of it, or its headers.
    pub(super) bytes: &'a [u8],
    /// What its packet has behind the headers, wherever that is.
    pub(super) data: &'a [u8],
    /// It, if it was read on the fast path, and those that arrived behind it.
    pub(super) burst: Option<Burst<'a>>,
    pub(super) received: &'a Received,
    /// The tunnel that it came in. Where there is none, it came in its tags.
    pub(super) tunnel: Option<&'a Encapsulation>,
}

impl<'a> Frame<'a> {
    /// What it came in, and is answered in. Only who makes a flow or refuses one asks: tags are read again.
    pub(super) fn encapsulation(&self) -> Encapsulation {
        let tags = || Encapsulation::tags_of(self.bytes);
        self.tunnel.map_or_else(tags, |tunnel| *tunnel)
    }

    /// The network of its tunnel; 0 is none.
    pub(super) fn network(&self) -> u32 {
        self.tunnel.map_or(0, Encapsulation::network)
    }

    /// The data of a datagram, without what a frame is padded with.
    pub(super) fn message(&self, bytes: u16) -> &'a [u8] {
        &self.data[..usize::from(bytes)]
    }

    /// Whether it asks for a new connection.
    pub(super) fn is_new_connection(&self) -> bool {
        match &self.received.arrival {
            Arrival::Tcp(segment) => segment.opens_connection(),
            Arrival::Udp(_) => false,
        }
    }

    /// Whether it asks for a connection and ends it at once: nobody but a scanner does.
    pub(super) fn opens_and_closes(&self) -> bool {
        match &self.received.arrival {
            Arrival::Tcp(segment) => segment.has(TcpFlags::SYN | TcpFlags::FIN),
            Arrival::Udp(_) => false,
        }
    }

    pub(super) fn source_mac(&self) -> MacAddress {
        EthernetView::new_unchecked(self.bytes).source()
    }
}
