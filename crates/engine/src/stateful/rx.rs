//! Frames that arrive, in bursts, some with their data apart: which flow each belongs to. Those that are
//! not as most are go by way of `slow_path` and `admit`.

use allosaur_packet::MacAddress;
use allosaur_packet::link::ethernet::EthernetView;
use allosaur_packet::shared_payload::SplitFrame;
use allosaur_packet::transport::tcp::TcpFlags;

use super::{Disposition, StatefulEngine};
use crate::flow::{AddressSpace, FlowIndex, FlowKey, FlowScope, PrefixIndex, Protocol, host_of};
use crate::session::Encapsulation;
use crate::session::wire::{self, Addresses, Arrival, ETHERNET, Received};
use crate::tcp::{Connection, Segment};
use crate::template::Side;
use crate::time::Nanos;
use crate::transmit::{PortIndex, TxQueues};

/// The port that a frame came to, and the address space of its packet.
pub(super) type Arrived = (PortIndex, AddressSpace);

impl StatefulEngine {
    /// Frames arrived at a port, in this order. `told` hears of each whose it was, in order too.
    pub fn handle_frames<'f>(
        &mut self,
        now: Nanos,
        port: PortIndex,
        frames: &[SplitFrame<'f>],
        tx_queues: &mut impl TxQueues,
        mut told: impl FnMut(&SplitFrame<'f>, Disposition),
    ) {
        let mut left = frames;
        while let [frame, behind @ ..] = left {
            let (disposition, count) = self.handle_next(now, port, frame, behind, tx_queues);
            let (handled, rest) = left.split_at(count);
            for frame in handled {
                told(frame, disposition);
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
        let side = info.side;
        let is_tunnel = matches!(info.encapsulation, Encapsulation::Tunnel(_));
        let fast = if is_tunnel {
            None
        } else {
            wire::read_fast(frame)
        };
        // What was read is much: it stays where it is.
        let Some((received, start)) = &fast else {
            return (self.handle_slow(now, port, frame, tx_queues), 1);
        };
        let frame = Frame {
            bytes: frame.head,
            data: received.data(frame, *start),
            burst: Some((frame, behind)),
            received,
            encapsulation: &ETHERNET,
        };
        self.handle_read(now, (port, AddressSpace::default()), side, frame, tx_queues)
    }

    /// A frame of TCP or UDP that is whole. Returns what [`handle_next`](StatefulEngine::handle_next)
    /// does.
    #[inline]
    pub(super) fn handle_read(
        &mut self,
        now: Nanos,
        arrived: Arrived,
        side: Side,
        frame: Frame<'_>,
        tx_queues: &mut impl TxQueues,
    ) -> (Disposition, usize) {
        let (key, packed) = self.key_of(arrived, frame.received);
        let found = self.find(packed);
        match found.or_else(|| self.find_by_connection(side, &frame)) {
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
        (port, space): Arrived,
        addresses: Addresses,
        ports: (u16, u16),
        protocol: Protocol,
    ) -> (FlowKey, u128) {
        let (remote, local, prefixes) = match addresses {
            Addresses::V4(from, to) => (from.to_bits(), to.to_bits(), None),
            Addresses::V6(from, to) => {
                let known = self.pools.prefixes.find(to, from);
                (
                    host_of(from),
                    host_of(to),
                    Some(known.unwrap_or(PrefixIndex::UNKNOWN)),
                )
            }
        };
        let key = FlowKey {
            local,
            remote,
            local_port: ports.1,
            remote_port: ports.0,
            prefixes,
            scope: FlowScope::new(protocol, space),
            port,
        };
        (key, key.packed())
    }

    /// The flow whose key is this in one number.
    #[inline(always)]
    pub(super) fn find(&self, key: u128) -> Option<FlowIndex> {
        let is_it = |index: FlowIndex| {
            if index.is_in_fifo() {
                let rest = self.time_wait.at(index);
                return rest.is_some_and(|rest| rest.key().packed() == key);
            }
            let entry = self.flows.at(index);
            entry.is_some_and(|entry| entry.session.key().packed() == key)
        };
        self.table.find(key, is_it)
    }

    /// A frame for a flow that is there. Returns how many frames were handled.
    #[inline]
    pub(super) fn handle_known(
        &mut self,
        now: Nanos,
        index: FlowIndex,
        key: &FlowKey,
        side: Side,
        frame: Frame<'_>,
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
            Arrival::Tcp(segment) if segment.len > 0 => self.coalesced(index, segment, &frame),
            _ => None,
        };
        self.with_flow(now, index, tx_queues, |session, cx, tx| match arrival {
            Arrival::Tcp(segment) => {
                let segment = coalesced.as_ref().unwrap_or(segment);
                session.handle_segment(cx, tx, segment, frame.data)
            }
            Arrival::Udp(bytes) => session.handle_datagram(cx, tx, frame.message(*bytes)),
        });
        coalesced.map_or(1, |segment| 1 + segment.coalesced as usize)
    }

    /// Generic receive offload: the segment of `frame` with those behind it that are coalesced into it;
    /// `None` where there are none.
    #[inline]
    fn coalesced(&self, index: FlowIndex, segment: &Segment, frame: &Frame<'_>) -> Option<Segment> {
        let (first, behind) = frame.burst?;
        if behind.is_empty() {
            return None;
        }
        let bytes_max = self.flows.at(index)?.session.coalesced_bytes_max(segment);
        if bytes_max == 0 {
            return None;
        }
        wire::coalesce(first, segment, behind, bytes_max)
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
    pub(super) burst: Option<(&'a SplitFrame<'a>, &'a [SplitFrame<'a>])>,
    pub(super) received: &'a Received,
    /// What it came in, and is answered in.
    pub(super) encapsulation: &'a Encapsulation,
}

impl<'a> Frame<'a> {
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
