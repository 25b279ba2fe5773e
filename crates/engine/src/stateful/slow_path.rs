//! Frames that are read step by step: in a tunnel or tags, with options, damaged, answered from
//! another address, or what a router says of a packet.

use allosaur_packet::frame::{self, Layout};
use allosaur_packet::shared_payload::SplitFrame;

use super::entry::FlowFlags;
use super::run::place;
use super::rx::{Arrived, Frame};
use super::{Disposition, StatefulEngine};
use crate::encapsulation::{Encapsulation, Stripped};
use crate::flow::FlowIndex;
use crate::session::app_latency::Header;
use crate::session::wire::{self, Addresses, Arrival, Refusal};
use crate::template::Side;
use crate::time::Nanos;
use crate::transmit::{PortIndex, TxQueues};

impl StatefulEngine {
    /// A frame that is read step by step: in a tunnel or tags, with options, or damaged.
    #[inline(never)]
    pub(super) fn handle_slow(
        &mut self,
        now: Nanos,
        port: PortIndex,
        frame: &SplitFrame<'_>,
        stripped: Stripped,
        tx_queues: &mut impl TxQueues,
    ) -> Disposition {
        let Some(Some(info)) = self.ports.get(usize::from(port)) else {
            return Disposition::Other;
        };
        let side = info.side;
        let counters = &mut self.counters[place(side)];
        match stripped {
            Stripped::OtherNetwork => {
                counters.err_tunnel_network += 1;
                return Disposition::Flow;
            }
            Stripped::Malformed => {
                counters.err_tunnel_header += 1;
                return Disposition::Flow;
            }
            Stripped::Packet { .. } | Stripped::Other => {}
        }
        if !frame.is_split() {
            return self.handle_whole(now, port, frame.head, stripped, tx_queues);
        }
        let read = if info.encapsulation.is_tunnel() {
            None
        } else {
            wire::read_split(frame)
        };
        let Some((layout, received)) = read else {
            let mut scratch = std::mem::take(&mut self.scratch);
            let bytes = frame.bytes(&mut scratch);
            let disposition = self.handle_whole(now, port, bytes, stripped, tx_queues);
            self.scratch = scratch;
            return disposition;
        };
        let frame = Frame {
            bytes: frame.head,
            data: frame.payload,
            burst: None,
            received: &received,
            encapsulation: &Encapsulation::of(&layout),
        };
        self.handle_read(now, (port, 0), side, &frame, tx_queues).0
    }

    /// The same for one in one part.
    fn handle_whole(
        &mut self,
        now: Nanos,
        port: PortIndex,
        bytes: &[u8],
        stripped: Stripped,
        tx_queues: &mut impl TxQueues,
    ) -> Disposition {
        let Some(Some(info)) = self.ports.get(usize::from(port)) else {
            return Disposition::Other;
        };
        let side = info.side;
        let (layout, came_in) = match stripped {
            Stripped::Packet {
                packet_offset,
                packet,
                came_in,
            } if came_in.is_tunnel() => {
                let layout = frame::parse_packet(bytes, packet_offset, packet);
                (layout, came_in)
            }
            _ => {
                let layout = frame::parse(bytes);
                (layout, Encapsulation::of(&layout))
            }
        };
        let network = came_in.network();
        let received = match wire::read(bytes, &layout) {
            Ok(received) => received,
            Err(refusal) => {
                self.count_damage((port, network), &layout, bytes);
                if refusal == Refusal::Other {
                    self.handle_icmp_error(now, (port, network), (bytes, &layout), tx_queues);
                }
                return self.count_refusal(side, refusal);
            }
        };
        let frame = Frame {
            bytes,
            data: layout.payload(bytes),
            burst: None,
            received: &received,
            encapsulation: &came_in,
        };
        self.handle_read(now, (port, network), side, &frame, tx_queues)
            .0
    }

    /// A frame that is neither TCP nor UDP, but may be what a router or host says of a packet of ours.
    fn handle_icmp_error(
        &mut self,
        now: Nanos,
        arrived: Arrived,
        (bytes, layout): (&[u8], &Layout),
        tx_queues: &mut impl TxQueues,
    ) {
        let Some(error) = wire::read_icmp_error(bytes, layout) else {
            return;
        };
        // The packet went the other way.
        let addresses = match error.addresses {
            Addresses::V4(own, peer) => Addresses::V4(peer, own),
            Addresses::V6(own, peer) => Addresses::V6(peer, own),
        };
        let ports = (error.ports.1, error.ports.0);
        let (_, packed) = self.key_between(arrived, addresses, ports, error.protocol);
        let entry = self.find(packed).filter(|index| !index.is_in_fifo());
        let is_open = |index: &FlowIndex| {
            let entry = self.flows.at(*index);
            entry.is_some_and(|entry| !entry.is(FlowFlags::Lingering))
        };
        if let Some(index) = entry.filter(is_open) {
            self.with_flow(now, index, tx_queues, |session, cx, tx| {
                session.handle_icmp_error(cx, tx, &error)
            });
        }
    }

    /// The flow of a client to which another address or port answered than it had asked: its
    /// messages say whose they are.
    pub(super) fn find_by_connection(&self, side: Side, frame: &Frame<'_>) -> Option<FlowIndex> {
        let Arrival::Udp(bytes) = frame.received.arrival else {
            return None;
        };
        if side == Side::Server || self.connections.is_empty() {
            return None;
        }
        let header = Header::parse(frame.message(bytes))?;
        self.connections.get(&header.connection).copied()
    }
}
