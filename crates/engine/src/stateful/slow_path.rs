//! Frames that are read step by step: in a tunnel or tags, with options, damaged, answered from
//! another address, or what a router says of a packet. And datagrams of no flow that the table knows, for
//! applications that tell their flows apart themselves: of a connection that has moved, or that begins.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use allosaur_packet::frame::{self, Layout};
use allosaur_packet::link::ethernet::EtherType;
use allosaur_packet::network::ipv4::Ipv4View;
use allosaur_packet::network::ipv6::Ipv6View;
use allosaur_packet::shared_payload::SplitFrame;

use super::dispatch::{PortFrameTx, context};
use super::entry::FlowFlags;
use super::run::place;
use super::rx::{Arrived, Frame};
use super::{Disposition, RunIndex, StatefulEngine};
use crate::app::{ApplicationFactory, Datagram, DatagramRoute, EcnCodepoint, FlowId};
use crate::encapsulation::{Encapsulation, Stripped};
use crate::flow::{FlowIndex, FlowKey};
use crate::session::app_latency::Header;
use crate::session::wire::{self, Addresses, Arrival, Content, Refusal};
use crate::template::{CompiledProfile, Side, TemplateIndex};
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
        let Some((_, received)) = read else {
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
            tunnel: None,
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
        let (layout, tunnel) = match &stripped {
            Stripped::Packet {
                packet_offset,
                packet,
                came_in,
            } if came_in.is_tunnel() => {
                let layout = frame::parse_packet(bytes, *packet_offset, *packet);
                (layout, Some(came_in))
            }
            _ => (frame::parse(bytes), None),
        };
        let network = tunnel.map_or(0, Encapsulation::network);
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
            tunnel,
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
        if let Some(index) = self.open_flow(packed) {
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

/// What an application had to say to a datagram of no flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Routed {
    /// It was dealt with.
    Done,
    /// It begins a flow of the application's core with this place.
    Start(usize),
    /// The application does not know it.
    Unknown,
    /// There is no application that tells its flows apart itself.
    NotAsked,
}

impl StatefulEngine {
    /// Asks the application of one side of a template whose a datagram is.
    #[inline(never)]
    pub(super) fn route_datagram(
        &mut self,
        now: Nanos,
        (run, template, side): (RunIndex, TemplateIndex, Side),
        key: &FlowKey,
        frame: &Frame<'_>,
        tx_queues: &mut impl TxQueues,
    ) -> Routed {
        let Arrival::Udp(bytes) = frame.received.arrival else {
            return Routed::NotAsked;
        };
        let info = self.ports[usize::from(key.port)].as_ref();
        let run = self.runs[usize::from(run.0)].as_mut();
        let (Some(info), Some(run)) = (info, run) else {
            return Routed::NotAsked;
        };
        let factory = factory_of(&run.profile, template, side);
        let Some(core) = factory.and_then(|it| self.pools.applications.demultiplexer_of(it)) else {
            return Routed::NotAsked;
        };
        let (local, remote) = frame.endpoints();
        let datagram = Datagram {
            local,
            remote,
            ecn: frame.ecn(),
            data: frame.message(bytes),
        };
        let mut out = self.pools.outboxes.take_spare();
        let mut cx = context(now, run, (template, side), info, &mut self.pools);
        let route = cx.route_datagram(core, side == Side::Client, &datagram, &mut out);
        if let (DatagramRoute::Reply, Ok(bytes @ 1..)) = (route, u16::try_from(out.len())) {
            let mut tx = PortFrameTx {
                tx_queues,
                port: key.port,
                now,
                sent: &mut self.sent,
            };
            frame.answer(&Content::Udp(bytes), &out, info, &mut tx);
        }
        self.pools.outboxes.put_spare(out);
        match route {
            DatagramRoute::Unknown => Routed::Unknown,
            DatagramRoute::Start => {
                self.pools.applications.begin(core);
                Routed::Start(core)
            }
            DatagramRoute::Reply => Routed::Done,
            DatagramRoute::Flow(flow) => {
                if let Some(index) = self.flow_of(flow) {
                    self.with_flow(now, index, tx_queues, |session, cx, tx| {
                        session.handle_routed(cx, tx, usize::from(bytes))
                    });
                }
                Routed::Done
            }
        }
    }

    /// Asks the applications of clients whose a datagram is. Returns whether one of them knew.
    #[cold]
    pub(super) fn route_to_clients(
        &mut self,
        now: Nanos,
        key: &FlowKey,
        frame: &Frame<'_>,
        tx_queues: &mut impl TxQueues,
    ) -> bool {
        for active in 0..self.active.len() {
            let index = self.active[active];
            for number in 0.. {
                let run = self.run(index);
                let template =
                    run.and_then(|run| run.demultiplexed[place(Side::Client)].get(number));
                let Some(&template) = template else {
                    break;
                };
                let whose = (index, template, Side::Client);
                match self.route_datagram(now, whose, key, frame, tx_queues) {
                    Routed::Done => return true,
                    // Nobody begins a flow of ours but we.
                    Routed::Start(core) => {
                        self.pools.applications.discard_begun(core);
                        return true;
                    }
                    Routed::Unknown | Routed::NotAsked => {}
                }
            }
        }
        false
    }

    /// Whether any application of clients tells its flows apart itself.
    pub(super) fn demultiplexes(&self) -> bool {
        let mut runs = self.active.iter().filter_map(|run| self.run(*run));
        runs.any(|run| run.demultiplexes(Side::Client))
    }

    /// The templates of a profile of which this side runs an application that tells its flows apart itself,
    /// one of each such application.
    pub(super) fn demultiplexed(
        &mut self,
        profile: &CompiledProfile,
        side: Side,
    ) -> Vec<TemplateIndex> {
        let mut known: Vec<&Arc<dyn ApplicationFactory>> = Vec::new();
        let mut found = Vec::new();
        for number in 0..profile.templates().len() {
            let template = TemplateIndex(number as u16);
            let Some(factory) = factory_of(profile, template, side) else {
                continue;
            };
            let is_known = known.iter().any(|other| Arc::ptr_eq(other, factory));
            if !is_known && self.pools.applications.demultiplexer_of(factory).is_some() {
                known.push(factory);
                found.push(template);
            }
        }
        found
    }

    /// The flow that an application calls so, while it is open.
    pub(super) fn flow_of(&self, flow: FlowId) -> Option<FlowIndex> {
        self.open_flow(self.pools.applications.key_of(flow)?.packed())
    }

    /// The flow with this key, packed, while it is open.
    pub(super) fn open_flow(&self, packed: u128) -> Option<FlowIndex> {
        let index = self.find(packed)?;
        let entry = (!index.is_in_fifo()).then(|| self.flows.at(index))?;
        entry
            .is_some_and(|entry| !entry.is(FlowFlags::Lingering))
            .then_some(index)
    }
}

/// What makes the applications of one side of a template, where it runs some.
fn factory_of(
    profile: &CompiledProfile,
    template: TemplateIndex,
    side: Side,
) -> Option<&Arc<dyn ApplicationFactory>> {
    let template = profile.template(template);
    let program = match side {
        Side::Client => template.client.program,
        Side::Server => template.server.program,
    };
    profile.program(program).application()
}

impl Frame<'_> {
    /// The addresses and ports that it came by: ours, and those of the sender.
    fn endpoints(&self) -> (SocketAddr, SocketAddr) {
        let (from, to): (IpAddr, IpAddr) = match self.received.addresses {
            Addresses::V4(from, to) => (from.into(), to.into()),
            Addresses::V6(from, to) => (from.into(), to.into()),
        };
        let ports = self.received.ports;
        (SocketAddr::new(to, ports.1), SocketAddr::new(from, ports.0))
    }

    /// The bits of ECN of its packet. They are read again, as hardly anybody wants them. A frame that came
    /// in a tunnel is in one part, see [`StatefulEngine::handle_slow`].
    #[inline(never)]
    pub(super) fn ecn(&self) -> Option<EcnCodepoint> {
        let Stripped::Packet {
            packet_offset,
            packet,
            ..
        } = self
            .encapsulation()
            .strip(&SplitFrame::whole(0, self.bytes))
        else {
            return None;
        };
        let header = &self.bytes[packet_offset..];
        EcnCodepoint::of(match packet {
            EtherType::IPV4 => Ipv4View::new_unchecked(header).type_of_service(),
            EtherType::IPV6 => Ipv6View::new_unchecked(header).traffic_class(),
            _ => 0,
        })
    }
}
