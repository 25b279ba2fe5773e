//! Frames that arrive: whose they are, and what becomes of those that are nobody's.

use allosaur_packet::MacAddress;
use allosaur_packet::frame::Layout;
use allosaur_packet::link::ethernet::EthernetView;
use allosaur_packet::network::checksum::Sum;
use allosaur_packet::transport::tcp::TcpFlags;

use super::dispatch::{FlowSpec, PortFrameTx};
use super::flow_entry::{FlowEntry, FlowFlags};
use super::run::{Run, place};
use super::time_wait::TimeWaitEntry;
use super::{Disposition, FlowPortInfo, RunIndex, StatefulEngine};
use crate::app::Transport;
use crate::flow::{AddressSpace, FlowIndex, FlowKey, FlowScope, PrefixIndex, Protocol, host_of};
use crate::session::app_latency::Header;
use crate::session::wire::{
    self, Addresses, Arrival, Content, Damage, Envelope, Received, Refusal,
};
use crate::session::{Encapsulation, FrameTx, LinkAddresses, Session};
use crate::tcp::Segment;
use crate::template::{Blackhole, Server, Side, TemplateIndex};
use crate::time::Nanos;
use crate::transmit::{PortIndex, TxQueues};

/// The port that a frame came to, and the address space of its packet.
type Arrived = (PortIndex, AddressSpace);

/// Who serves a client that comes.
#[derive(Clone, Copy)]
struct Host {
    run: RunIndex,
    template: TemplateIndex,
    is_deferred: bool,
}

impl StatefulEngine {
    /// A frame arrived at a port. Returns whose it was.
    pub fn handle_frame(
        &mut self,
        now: Nanos,
        port: PortIndex,
        bytes: &[u8],
        tx_queues: &mut impl TxQueues,
    ) -> Disposition {
        let Some(Some(info)) = self.ports.get(usize::from(port)) else {
            return Disposition::Other;
        };
        let side = info.side;
        let (layout, tunnel) = info.encapsulation.parse(bytes);
        let space = tunnel.as_ref().map(Encapsulation::space);
        let space = space.unwrap_or_default();
        let received = match wire::read(bytes, &layout) {
            Ok(received) => received,
            Err(refusal) => {
                self.count_damage((port, space), &layout, bytes);
                return self.count_refusal(side, refusal);
            }
        };
        let frame = Frame {
            bytes,
            layout: &layout,
            received: &received,
            tunnel: tunnel.as_ref(),
        };
        let key = self.key_of((port, space), &received);
        let found = self.find(&key);
        match found.or_else(|| self.find_by_connection(side, &frame)) {
            Some(index) if index.is_in_fifo() => {
                self.handle_late(now, index, &key, side, frame, tx_queues);
                Disposition::Flow
            }
            Some(index) => {
                self.handle_known(now, index, &key, side, frame, tx_queues);
                Disposition::Flow
            }
            None => self.handle_unknown(now, &key, side, frame, tx_queues),
        }
    }

    fn count_refusal(&mut self, side: Side, refusal: Refusal) -> Disposition {
        let counters = &mut self.counters[place(side)];
        let counter = match refusal {
            Refusal::Other => &mut counters.err_no_tcp_udp,
            Refusal::Fragment => &mut counters.err_fragments_ipv4_drop,
            Refusal::Length => &mut counters.err_len_err,
            Refusal::NetworkChecksum => &mut counters.err_l3_cs,
            Refusal::TransportChecksum => &mut counters.err_l4_cs,
        };
        *counter += 1;
        match refusal {
            Refusal::Other => Disposition::Other,
            _ => Disposition::Flow,
        }
    }

    /// A damaged segment is counted where its flow counts, if it still says whose it is.
    fn count_damage(&mut self, arrived: Arrived, layout: &Layout, bytes: &[u8]) {
        let Some((damage, addresses, ports)) = wire::read_damaged(bytes, layout) else {
            return;
        };
        let key = self.key_between(arrived, addresses, ports, Protocol::Tcp);
        let owner = self.find(&key).and_then(|index| self.owner_of(index));
        let Some((run, template, side)) = owner else {
            return;
        };
        if let Some(run) = &mut self.runs[usize::from(run.0)] {
            let group = run.profile.template(template).group;
            let group = &mut run.groups[usize::from(group)][place(side)];
            let counters = &mut group.flows.tcp;
            *match damage {
                Damage::Short => &mut counters.rcvshort,
                Damage::Offset => &mut counters.rcvbadoff,
                Damage::Checksum => &mut counters.rcvbadsum,
            } += 1;
        }
    }

    /// The key of a frame's flow.
    fn key_of(&self, arrived: Arrived, received: &Received) -> FlowKey {
        let protocol = match received.arrival {
            Arrival::Tcp(_) => Protocol::Tcp,
            Arrival::Udp(_) => Protocol::Udp,
        };
        self.key_between(arrived, received.addresses, received.ports, protocol)
    }

    /// The same from its ends: source, destination.
    fn key_between(
        &self,
        (port, space): Arrived,
        addresses: Addresses,
        ports: (u16, u16),
        protocol: Protocol,
    ) -> FlowKey {
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
        FlowKey {
            local,
            remote,
            local_port: ports.1,
            remote_port: ports.0,
            prefixes,
            scope: FlowScope::new(protocol, space),
            port,
        }
    }

    /// The flow of a client to which another address or port answered than it had asked: its
    /// messages say whose they are.
    fn find_by_connection(&self, side: Side, frame: &Frame<'_>) -> Option<FlowIndex> {
        let Arrival::Udp(bytes) = frame.received.arrival else {
            return None;
        };
        if side == Side::Server || self.connections.is_empty() {
            return None;
        }
        let header = Header::parse(frame.message(bytes))?;
        self.connections.get(&header.connection).copied()
    }

    /// A frame for a flow in TIME-WAIT.
    fn handle_late(
        &mut self,
        now: Nanos,
        index: FlowIndex,
        key: &FlowKey,
        side: Side,
        frame: Frame<'_>,
        tx_queues: &mut impl TxQueues,
    ) {
        let rest = self.time_wait.at(index);
        if !rest.is_some_and(TimeWaitEntry::is_lingering) {
            let index = self.leave_time_wait(now, index);
            let index = index.expect("what the table has is held");
            return self.handle_known(now, index, key, side, frame, tx_queues);
        }
        if side == Side::Server && frame.is_new_connection() {
            self.forget(index);
            self.handle_unknown(now, key, side, frame, tx_queues);
        }
    }

    fn handle_known(
        &mut self,
        now: Nanos,
        index: FlowIndex,
        key: &FlowKey,
        side: Side,
        frame: Frame<'_>,
        tx_queues: &mut impl TxQueues,
    ) {
        let entry = self.flows.at(index).expect("what the table has is held");
        if let Arrival::Tcp(segment) = &frame.received.arrival {
            let gives_way = entry.is(FlowFlags::Lingering) && frame.is_new_connection()
                || entry
                    .session
                    .connection()
                    .is_some_and(|c| c.gives_way_to(segment));
            if gives_way && side == Side::Server {
                self.give_way(now, index, tx_queues);
                self.handle_unknown(now, key, side, frame, tx_queues);
                return;
            }
        }
        if entry.is(FlowFlags::Lingering) {
            return;
        }
        let decides =
            entry.is(FlowFlags::Deferred) && !frame.data().is_empty() && begins(entry, &frame);
        if decides && !self.decide(now, index, key, frame.data()) {
            return self.with_flow(now, index, tx_queues, |session, cx, tx| {
                session.abort(cx, tx)
            });
        }
        match &frame.received.arrival {
            Arrival::Tcp(segment) => self.with_flow(now, index, tx_queues, |session, cx, tx| {
                session.handle_segment(cx, tx, segment, || frame.data())
            }),
            Arrival::Udp(bytes) => self.with_flow(now, index, tx_queues, |session, cx, tx| {
                session.handle_datagram(cx, tx, frame.message(*bytes))
            }),
        }
    }

    /// A flow in TIME-WAIT, or less, makes room for a new one with the same ends.
    fn give_way(&mut self, now: Nanos, index: FlowIndex, tx_queues: &mut impl TxQueues) {
        self.with_flow(now, index, tx_queues, |session, cx, _| session.give_way(cx));
        self.forget(index);
    }

    /// The first bytes of a flow are there: they say which template serves it. `false` when none
    /// does.
    fn decide(&mut self, now: Nanos, index: FlowIndex, key: &FlowKey, data: &[u8]) -> bool {
        let transport = transport(key);
        let entry = self.flows.at_mut(index).expect("the caller has it");
        let Some(run) = &self.runs[usize::from(entry.run.0)] else {
            return false;
        };
        let servers = run.profile.servers();
        let found = servers.by_payload(transport, key.local_port, key.local, data);
        let Some(template) = found else {
            self.counters[1].err_defer_no_template += 1;
            return false;
        };
        self.counters[1].defer_template += 1;
        entry.clear_flag(FlowFlags::Deferred);
        let before = entry.template;
        if before != template {
            entry.template = template;
            self.move_group(index, before, template);
            self.run_instead(now, index);
        }
        true
    }

    fn handle_unknown(
        &mut self,
        now: Nanos,
        key: &FlowKey,
        side: Side,
        frame: Frame<'_>,
        tx_queues: &mut impl TxQueues,
    ) -> Disposition {
        if self.ignores(side, frame) {
            return Disposition::Unmatched;
        }
        let is_other = self.passes_unmatched >> key.port & 1 == 1;
        if side == Side::Client {
            if is_other {
                return Disposition::Unmatched;
            }
            return self.handle_unmatched(now, key, side, frame, tx_queues);
        }
        if let Arrival::Tcp(segment) = frame.received.arrival {
            let is_syn = segment.has(TcpFlags::SYN) && !segment.has(TcpFlags::ACK);
            if segment.has(TcpFlags::RST) {
                return Disposition::Unmatched;
            }
            if !is_syn {
                if is_other {
                    return Disposition::Unmatched;
                }
                self.counters[1].err_no_syn += 1;
                self.refuse(now, key, side, frame, tx_queues);
                return Disposition::Unmatched;
            }
        }
        let Some(host) = self.host(key, frame.data()) else {
            if is_other {
                return Disposition::Unmatched;
            }
            self.counters[1].err_no_template += 1;
            self.refuse(now, key, side, frame, tx_queues);
            return Disposition::Unmatched;
        };
        let run = self.runs[usize::from(host.run.0)].as_ref();
        if !run.is_some_and(|run| run.is_closed) {
            self.accept(now, key, host, frame, tx_queues);
        }
        Disposition::Flow
    }

    /// Whether who sends a frame is ignored.
    fn ignores(&mut self, side: Side, frame: Frame<'_>) -> bool {
        let counters = &mut self.counters[place(side)];
        if self.ignored.has_mac(frame.source_mac()) {
            counters.ignored_macs += 1;
            return true;
        }
        let Addresses::V4(from, _) = frame.received.addresses else {
            return false;
        };
        let is_ignored = self.ignored.has_ipv4(from);
        counters.ignored_ips += u64::from(is_ignored);
        is_ignored
    }

    /// A frame for a client that has no such flow.
    fn handle_unmatched(
        &mut self,
        now: Nanos,
        key: &FlowKey,
        side: Side,
        frame: Frame<'_>,
        tx_queues: &mut impl TxQueues,
    ) -> Disposition {
        match frame.received.arrival {
            Arrival::Tcp(segment) if segment.has(TcpFlags::RST) => {}
            _ => {
                self.counters[0].err_cwf += 1;
                self.refuse(now, key, side, frame, tx_queues);
            }
        }
        Disposition::Unmatched
    }

    /// Who serves this flow: of all profiles that run, the first that was started and has a template
    /// for it. One that this core is through with serves only when no other does: clients of other
    /// cores may still ask for it.
    fn host(&self, key: &FlowKey, data: &[u8]) -> Option<Host> {
        let mut through = None;
        for &number in &self.active {
            let Some(run) = self.run(number) else {
                continue;
            };
            if run.has_ended && through.is_some() {
                continue;
            }
            let host = host_of_run(number, run, key, data);
            match host {
                Some(_) if run.has_ended => through = host,
                Some(_) => return host,
                None => {}
            }
        }
        through
    }

    fn accept(
        &mut self,
        now: Nanos,
        key: &FlowKey,
        host: Host,
        frame: Frame<'_>,
        tx_queues: &mut impl TxQueues,
    ) {
        let run = self.runs[usize::from(host.run.0)].as_ref();
        let run = run.expect("it has a template for this flow");
        let tunables = &run.profile.template(host.template).server.tunables;
        let info = self.ports[usize::from(key.port)].as_ref();
        let info = info.expect("a frame came to it");
        let link = frame.reply_link(info, tunables.dont_use_inbound_mac);
        let first = self.first_number(now);
        let arrival = frame.received.arrival;
        let new = FlowSpec {
            run: host.run,
            template: host.template,
            side: Side::Server,
            clients: 0,
            is_executed: false,
            key: *key,
            network: match frame.received.addresses {
                Addresses::V4(..) => None,
                Addresses::V6(from, to) => Some((to, from)),
            },
        };
        let made = self.make(now, new, |cx, key| match arrival {
            Arrival::Tcp(segment) => Session::accept(cx, key, link, first, &segment),
            Arrival::Udp(_) => Session::accept_datagram(cx, key, link),
        });
        let Some(index) = made else {
            return;
        };
        if let Some(entry) = self.flows.at_mut(index) {
            entry.set(FlowFlags::Deferred, host.is_deferred);
        }
        self.with_flow(now, index, tx_queues, |session, cx, tx| match arrival {
            Arrival::Tcp(_) => session.begin(cx, tx),
            Arrival::Udp(bytes) => session.handle_datagram(cx, tx, frame.message(bytes)),
        });
    }

    /// Tells the sender of a segment that there is no such connection, if the user wants that.
    fn refuse(
        &mut self,
        now: Nanos,
        key: &FlowKey,
        side: Side,
        frame: Frame<'_>,
        tx_queues: &mut impl TxQueues,
    ) {
        let Arrival::Tcp(segment) = frame.received.arrival else {
            return;
        };
        let mut active = self.active.iter();
        let run = active.find_map(|run| self.run(*run));
        let run = run.or_else(|| self.runs.iter().flatten().next());
        let blackhole = run.map_or(Blackhole::Never, |run| run.profile.tunables(side).blackhole);
        let is_told = match blackhole {
            Blackhole::Never => true,
            Blackhole::SynOnly => segment.has(TcpFlags::SYN),
            Blackhole::Always => false,
        };
        let Some(reset) = segment.reset_in_reply().filter(|_| is_told) else {
            return;
        };
        let mut tx = PortFrameTx {
            tx_queues,
            port: key.port,
            now,
            sent: &mut self.sent,
        };
        let info = self.ports[usize::from(key.port)].as_ref();
        frame.answer(&reset, info.expect("a frame came to it"), &mut tx);
    }
}

/// Who serves a flow among the templates of one profile.
fn host_of_run(number: RunIndex, run: &Run, key: &FlowKey, data: &[u8]) -> Option<Host> {
    let transport = transport(key);
    let servers = run.profile.servers();
    let (template, is_deferred) = match servers.find(transport, key.local_port, key.local)? {
        Server::Template(template) => (template, false),
        Server::Payload(template) if transport == Transport::Stream => (template, true),
        Server::Payload(_) => {
            let found = servers.by_payload(transport, key.local_port, key.local, data);
            (found?, false)
        }
    };
    Some(Host {
        run: number,
        template,
        is_deferred,
    })
}

/// Whether a frame has the first bytes of its flow, and not others that came before them.
fn begins(entry: &FlowEntry, frame: &Frame<'_>) -> bool {
    match (frame.received.arrival, entry.session.connection()) {
        (Arrival::Tcp(segment), Some(connection)) => {
            connection.expects(segment.seq) && !segment.has(TcpFlags::RST)
        }
        _ => true,
    }
}

fn transport(key: &FlowKey) -> Transport {
    match key.scope.protocol() {
        Protocol::Tcp => Transport::Stream,
        Protocol::Udp => Transport::Datagram,
    }
}

/// A frame, and what was read from it.
#[derive(Clone, Copy)]
struct Frame<'a> {
    bytes: &'a [u8],
    layout: &'a Layout,
    received: &'a Received,
    /// What it came in, and is answered in, if that is a tunnel.
    tunnel: Option<&'a Encapsulation>,
}

impl<'a> Frame<'a> {
    fn data(&self) -> &'a [u8] {
        self.layout.payload(self.bytes)
    }

    /// The data of a datagram, without what a frame is padded with.
    fn message(&self, bytes: u16) -> &[u8] {
        &self.data()[..usize::from(bytes)]
    }

    /// Whether it asks for a new connection.
    fn is_new_connection(&self) -> bool {
        match &self.received.arrival {
            Arrival::Tcp(segment) => segment.has(TcpFlags::SYN) && !segment.has(TcpFlags::ACK),
            Arrival::Udp(_) => false,
        }
    }

    fn source_mac(&self) -> MacAddress {
        EthernetView::new_unchecked(self.bytes).source()
    }

    /// Where answers go: back to where it came from, in what it came in.
    fn reply_link(&self, info: &FlowPortInfo, to_gateway: bool) -> LinkAddresses {
        LinkAddresses {
            own: info.own_mac,
            peer: match to_gateway {
                true => info.peer_mac,
                false => self.source_mac(),
            },
            encapsulation: match self.tunnel {
                Some(tunnel) => tunnel.clone(),
                None => Encapsulation::of(self.layout),
            },
        }
    }

    /// Sends a segment back; without room it is lost.
    fn answer(&self, segment: &Segment, info: &FlowPortInfo, tx: &mut impl FrameTx) {
        let link = self.reply_link(info, false);
        let addresses = match self.received.addresses {
            Addresses::V4(from, to) => Addresses::V4(to, from),
            Addresses::V6(from, to) => Addresses::V6(to, from),
        };
        let envelope = Envelope {
            macs: (link.peer, link.own),
            encapsulation: &link.encapsulation,
            addresses,
            ports: (self.received.ports.1, self.received.ports.0),
            type_of_service: 0,
            time_to_live: 64,
            identification: 0,
        };
        let content = Content::Tcp(segment);
        tx.send(envelope.frame_bytes(&content), |frame| {
            envelope.write(&content, frame, |_| Sum::default());
        });
    }
}
