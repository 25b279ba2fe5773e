//! Frames that no flow has: clients that come, who serves them, and who is refused.

use allosaur_packet::frame::Layout;
use allosaur_packet::network::checksum::Sum;
use allosaur_packet::transport::tcp::TcpFlags;

use super::dispatch::{PortFrameTx, context};
use super::entry::FlowFlags;
use super::open::FlowSpec;
use super::run::{Run, place};
use super::rx::{Arrived, Frame, space_of};
use super::slow_path::Routed;
use super::{Disposition, FlowPortInfo, RunIndex, StatefulEngine};
use crate::app::Transport;
use crate::flow::{FlowIndex, FlowKey, Protocol};
use crate::session::wire::{self, Addresses, Arrival, Content, Damage, Envelope, Refusal};
use crate::session::{FrameTx, LinkAddresses, Session};
use crate::template::{Blackhole, Server, Side, TemplateIndex};
use crate::time::Nanos;
use crate::transmit::TxQueues;

/// Who serves a client that comes.
#[derive(Clone, Copy)]
struct Host {
    run: RunIndex,
    template: TemplateIndex,
    is_deferred: bool,
}

impl StatefulEngine {
    pub(super) fn handle_unknown(
        &mut self,
        now: Nanos,
        key: &FlowKey,
        side: Side,
        frame: &Frame<'_>,
        tx_queues: &mut impl TxQueues,
    ) -> Disposition {
        if self.ignores(side, frame) {
            return Disposition::Unmatched;
        }
        let is_other = self.passes_unmatched >> key.port & 1 == 1;
        if side == Side::Client {
            if self.demultiplexes() && self.route_to_clients(now, key, frame, tx_queues) {
                return Disposition::Flow;
            }
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
        let Some(host) = self.host(key, frame.data) else {
            if is_other {
                return Disposition::Unmatched;
            }
            self.counters[1].err_no_template += 1;
            self.refuse(now, key, side, frame, tx_queues);
            return Disposition::Unmatched;
        };
        let Some(run) = &mut self.runs[usize::from(host.run.0)] else {
            return Disposition::Flow;
        };
        if frame.opens_and_closes() {
            run.counters_of(host.template, Side::Server)
                .flows
                .tcp
                .badsyn += 1;
            return Disposition::Unmatched;
        }
        if run.demultiplexes(Side::Server) {
            self.accept_datagram(now, key, host, frame, tx_queues);
        } else if !run.is_closed {
            self.accept(now, key, host, frame, tx_queues);
        }
        Disposition::Flow
    }

    /// Whether who sends a frame is ignored.
    fn ignores(&mut self, side: Side, frame: &Frame<'_>) -> bool {
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
        frame: &Frame<'_>,
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
        frame: &Frame<'_>,
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
            space: space_of(frame.received.addresses, frame.network()),
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
            Arrival::Udp(bytes) => {
                session.handle_datagram(cx, tx, frame.message(bytes), || frame.ecn())
            }
        });
    }

    /// The same in a run where applications of servers tell their flows apart themselves: they are asked
    /// first.
    #[cold]
    #[inline(never)]
    fn accept_datagram(
        &mut self,
        now: Nanos,
        key: &FlowKey,
        host: Host,
        frame: &Frame<'_>,
        tx_queues: &mut impl TxQueues,
    ) {
        let whose = (host.run, host.template, Side::Server);
        let routed = self.route_datagram(now, whose, key, frame, tx_queues);
        if matches!(routed, Routed::Done | Routed::Unknown) {
            return;
        }
        // Connections that a run has may move while it ends, but none begins.
        if self.run(host.run).is_some_and(|run| !run.is_closed) {
            self.accept(now, key, host, frame, tx_queues);
        }
        if let Routed::Start(core) = routed {
            self.pools.applications.discard_begun(core);
        }
    }

    /// The first bytes of a flow are there: they say which template serves it. `false` when none
    /// does.
    pub(super) fn decide(
        &mut self,
        now: Nanos,
        index: FlowIndex,
        key: &FlowKey,
        data: &[u8],
    ) -> bool {
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

    /// A flow runs the program of its template from the beginning.
    fn run_instead(&mut self, now: Nanos, index: FlowIndex) {
        let Some(entry) = self.flows.at_mut(index) else {
            return;
        };
        let run = self.runs[usize::from(entry.run.0)].as_mut();
        let info = self.ports[usize::from(entry.session.key().port)].as_ref();
        if let (Some(run), Some(info)) = (run, info) {
            let whose = (entry.template, entry.side());
            let mut cx = context(now, run, whose, info, &mut self.pools);
            entry.session.run_instead(&mut cx);
        }
    }

    /// A flow belongs to another template than was thought.
    fn move_group(&mut self, index: FlowIndex, before: TemplateIndex, after: TemplateIndex) {
        let Some(entry) = self.flows.at(index) else {
            return;
        };
        let Some(run) = &mut self.runs[usize::from(entry.run.0)] else {
            return;
        };
        let group = |template| usize::from(run.profile.template(template).group);
        let (from, to) = (group(before), group(after));
        let side = place(entry.side());
        run.groups[from][side].active -= 1;
        run.groups[to][side].active += 1;
        if entry.is(FlowFlags::Counted) {
            run.groups[from][side].established -= 1;
            run.groups[to][side].established += 1;
        }
    }

    /// Tells the sender of a segment that there is no such connection, if the user wants that.
    fn refuse(
        &mut self,
        now: Nanos,
        key: &FlowKey,
        side: Side,
        frame: &Frame<'_>,
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
        frame.answer(
            &Content::Tcp(&reset),
            &[],
            info.expect("a frame came to it"),
            &mut tx,
        );
    }

    pub(super) fn count_refusal(&mut self, side: Side, refusal: Refusal) -> Disposition {
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
    pub(super) fn count_damage(&mut self, arrived: Arrived, layout: &Layout, bytes: &[u8]) {
        let Some((damage, addresses, ports)) = wire::read_damaged(bytes, layout) else {
            return;
        };
        let (_, packed) = self.key_between(arrived, addresses, ports, Protocol::Tcp);
        let owner = self.find(packed).and_then(|index| self.owner_of(index));
        let Some((run, template, side)) = owner else {
            return;
        };
        if let Some(run) = &mut self.runs[usize::from(run.0)] {
            let counters = &mut run.counters_of(template, side).flows.tcp;
            *match damage {
                Damage::Short => &mut counters.rcvshort,
                Damage::Offset => &mut counters.rcvbadoff,
                Damage::Checksum => &mut counters.rcvbadsum,
            } += 1;
        }
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

fn transport(key: &FlowKey) -> Transport {
    match key.scope.protocol() {
        Protocol::Tcp => Transport::Stream,
        Protocol::Udp => Transport::Datagram,
    }
}

impl Frame<'_> {
    /// Where answers go: back to where it came from, in what it came in.
    #[inline]
    fn reply_link(&self, info: &FlowPortInfo, to_gateway: bool) -> LinkAddresses {
        LinkAddresses {
            own: info.own_mac,
            peer: match to_gateway {
                true => info.peer_mac,
                false => self.source_mac(),
            },
            encapsulation: self.encapsulation(),
        }
    }

    /// Sends a segment or datagram back, with this data; without room it is lost.
    pub(super) fn answer(
        &self,
        content: &Content<'_>,
        data: &[u8],
        info: &FlowPortInfo,
        tx: &mut impl FrameTx,
    ) {
        let link = self.reply_link(info, false);
        let addresses = match self.received.addresses {
            Addresses::V4(from, to) => Addresses::V4(to, from),
            Addresses::V6(from, to) => Addresses::V6(to, from),
        };
        let envelope = Envelope {
            link: &link.prefix(matches!(addresses, Addresses::V6(..))),
            addresses,
            ports: (self.received.ports.1, self.received.ports.0),
            type_of_service: 0,
            time_to_live: 64,
            identification: 0,
        };
        let bytes = envelope.frame_bytes(content);
        if bytes > info.frame_bytes_max {
            return;
        }
        tx.send(bytes, |frame| {
            envelope.write(content, frame, |place| {
                place.copy_from_slice(data);
                Sum::of(data)
            });
        });
    }
}
