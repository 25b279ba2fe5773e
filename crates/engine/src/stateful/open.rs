//! Flows that begin: the place of each, and those of clients, by their rate and because a program
//! of theirs says so.

use std::net::Ipv6Addr;

use super::client_pool::Drawn;
use super::clients::Tuple;
use super::dispatch::context;
use super::entry::{FlowEntry, FlowFlags};
use super::run::{Run, place};
use super::{RunIndex, StatefulEngine};
use crate::app::Transport;
use crate::encapsulation::Encapsulation;
use crate::flow::{AddressSpace, FlowIndex, FlowKey, FlowScope, Protocol, SpaceIndex};
use crate::session::{FlowContext, LinkAddresses, Session};
use crate::template::{Ipv6Prefixes, Side, TemplateIndex};
use crate::time::Nanos;
use crate::transmit::TxQueues;

/// Tries to find a free port for a flow that begins.
const PORT_TRIES: u32 = 64;

/// Whose flow it is that begins.
#[derive(Clone, Copy)]
pub(super) struct FlowOpener {
    pub(super) run: RunIndex,
    /// The clients that it belongs to, in its run: they give the port.
    pub(super) clients: u32,
    pub(super) template: TemplateIndex,
    /// A program asked for it.
    pub(super) is_executed: bool,
}

/// A flow that is to be made.
pub(super) struct FlowSpec {
    pub(super) run: RunIndex,
    pub(super) template: TemplateIndex,
    pub(super) side: Side,
    /// The clients that it belongs to, in its run.
    pub(super) clients: u32,
    /// A program asked for it.
    pub(super) is_executed: bool,
    /// Its key; the number of its space may be [`SpaceIndex::UNKNOWN`].
    pub(super) key: FlowKey,
    /// What its addresses belong to; `None` for IPv4 without a tunnel.
    pub(super) space: Option<AddressSpace>,
}

impl Run {
    /// The key of a client's flow between two ends.
    #[inline]
    pub(super) fn key_between(
        &self,
        who: FlowOpener,
        tuple: Tuple,
        space: Option<SpaceIndex>,
        is_v6: bool,
    ) -> FlowKey {
        let template = self.profile.template(who.template);
        let protocol = match template.transport {
            Transport::Stream => Protocol::Tcp,
            Transport::Datagram => Protocol::Udp,
        };
        FlowKey {
            local: tuple.client.address,
            remote: tuple.server,
            local_port: tuple.client_port,
            remote_port: template.client.port,
            space,
            scope: FlowScope::new(protocol, is_v6),
            port: self.port_of(who.clients),
        }
    }
}

impl StatefulEngine {
    /// Clients begin flows that are due, `count_max` at most. Returns how many there were.
    pub(super) fn begin_some(
        &mut self,
        now: Nanos,
        run_index: RunIndex,
        count_max: usize,
        tx_queues: &mut impl TxQueues,
    ) -> usize {
        let run = self.runs[usize::from(run_index.0)].as_mut();
        let run = run.expect("it was there");
        let mut beginners = std::mem::take(&mut self.beginners);
        for _ in 0..count_max {
            let Some(place) = run.pop_due(now) else {
                break;
            };
            run.note_begun(now);
            // When all rest, none begins.
            beginners.push((place, run.clients(place).1.draw(&self.disabled)));
        }
        if beginners.len() > 1 {
            self.fetch_beginners(run_index, &beginners);
        }
        let count = beginners.len();
        for (place, tuple) in beginners.drain(..) {
            self.begin(now, run_index, place, tuple, tx_queues);
        }
        self.beginners = beginners;
        count
    }

    /// A client begins a flow between these ends.
    fn begin(
        &mut self,
        now: Nanos,
        run_index: RunIndex,
        place: u32,
        tuple: Option<Tuple>,
        tx_queues: &mut impl TxQueues,
    ) {
        let Some(run) = self.run(run_index) else {
            return;
        };
        let who = FlowOpener {
            run: run_index,
            clients: place,
            template: run.template_of(place),
            is_executed: false,
        };
        match tuple.and_then(|tuple| self.make_client(now, who, tuple)) {
            Some(index) => self.send_first(now, index, tx_queues),
            None => self.give_back(now, who),
        }
    }

    /// What could not begin leaves its place to another.
    fn give_back(&mut self, now: Nanos, who: FlowOpener) {
        if let Some(run) = self.run_mut(who.run) {
            run.handle_end(who.clients, now);
        }
    }

    /// Lets a new flow speak.
    pub(super) fn send_first(
        &mut self,
        now: Nanos,
        index: FlowIndex,
        tx_queues: &mut impl TxQueues,
    ) {
        self.with_flow(now, index, tx_queues, |session, cx, tx| {
            session.begin(cx, tx)
        });
    }

    /// Makes a flow between two ends, from this port of the client or another that is free.
    pub(super) fn make_client(
        &mut self,
        now: Nanos,
        who: FlowOpener,
        tuple: Tuple,
    ) -> Option<FlowIndex> {
        let link = self.link_of(who, tuple.client)?;
        let ipv6 = self.ipv6_of(who, tuple.client);
        let network = link.encapsulation.network();
        let space = match ipv6 {
            Some((ours, others)) => Some(AddressSpace::v6(network, ours, others)),
            None => AddressSpace::v4(network),
        };
        let key = self.free_key(who, tuple, space, ipv6.is_some())?;
        let first = self.first_number(now);
        let new = FlowSpec {
            run: who.run,
            template: who.template,
            side: Side::Client,
            clients: who.clients,
            is_executed: who.is_executed,
            key,
            space,
        };
        let index = self.make(now, new, |cx, key| Session::connect(cx, key, link, first))?;
        let entry = self.flows.at(index).expect("it was just made");
        let number = entry.session.connection_number();
        self.connections
            .extend(number.map(|number| (number, index)));
        Some(index)
    }

    /// Where the frames of a client go.
    fn link_of(&mut self, who: FlowOpener, client: Drawn) -> Option<LinkAddresses> {
        let run = self.runs[usize::from(who.run.0)].as_mut()?;
        let (port, clients) = run.clients(who.clients);
        if let Some((hosts, host)) = clients.host(client) {
            return Some(LinkAddresses {
                own: host.mac,
                peer: host.gateway,
                encapsulation: Encapsulation::of_tags(hosts.tags()),
            });
        }
        let info = self.ports[usize::from(port)].as_ref()?;
        let link = LinkAddresses {
            own: info.own_mac,
            peer: info.peer_mac,
            encapsulation: info.encapsulation,
        };
        Some(self.topology.link(port, client.address, link))
    }

    /// A key that no flow has.
    fn free_key(
        &mut self,
        who: FlowOpener,
        mut tuple: Tuple,
        space: Option<AddressSpace>,
        is_v6: bool,
    ) -> Option<FlowKey> {
        let space = space.map(|space| {
            let known = self.pools.spaces.find(&space);
            known.unwrap_or(SpaceIndex::UNKNOWN)
        });
        let run = self.runs[usize::from(who.run.0)].as_mut()?;
        let mut key = run.key_between(who, tuple, space, is_v6);
        for _ in 0..PORT_TRIES {
            if self.find(key.packed()).is_none() {
                return Some(key);
            }
            let run = self.runs[usize::from(who.run.0)].as_mut()?;
            tuple = run.draw_port(who.clients, who.template, tuple);
            key.local_port = tuple.client_port;
        }
        self.counters[0].err_c_tuple_err += 1;
        None
    }

    /// The addresses whose prefixes the flows of a client have: its own, and the server's. Those of
    /// the template, where the client is no host with an IPv6 address.
    fn ipv6_of(&self, who: FlowOpener, client: Drawn) -> Option<(Ipv6Addr, Ipv6Addr)> {
        let run = self.runs[usize::from(who.run.0)].as_ref()?;
        let tunables = &run.profile.template(who.template).client.tunables;
        let host = run.clients_at(who.clients).host(client);
        let host = host.filter(|(hosts, _)| hosts.is_ipv6());
        let prefixes = Ipv6Prefixes {
            client: host.map_or(tunables.prefixes.client, |(_, host)| host.prefix),
            ..tunables.prefixes
        };
        tunables.ipv6.then(|| ends(&prefixes))
    }

    /// Makes a flow by `make`, and a place for it; `None` when there are too many.
    pub(super) fn make(
        &mut self,
        now: Nanos,
        new: FlowSpec,
        make: impl FnOnce(&mut FlowContext<'_>, FlowKey) -> Session,
    ) -> Option<FlowIndex> {
        let (template, side) = (new.template, new.side);
        let Some(key) = self.room_for(now, &new) else {
            self.count_overflow(side);
            return None;
        };
        let info = self.ports[usize::from(key.port)].as_ref();
        let info = info.expect("who makes flows has a port");
        let run = self.runs[usize::from(new.run.0)].as_mut();
        let run = run.expect("who makes flows runs");
        let whose = (template, side);
        let mut cx = context(now, run, whose, info, &mut self.pools);
        let session = make(&mut cx, key);
        let mut entry = FlowEntry::new(session, new.run, whose, new.clients);
        entry.set(FlowFlags::Executed, new.is_executed);
        entry.set(FlowFlags::HalfOpen, side == Side::Server);
        let index = self.flows.insert(entry).ok()?;
        let has_place = self.table.insert(key.packed(), index);
        debug_assert!(has_place, "the table has room for all flows");
        if side == Side::Server {
            self.half_open.enter();
        }
        let group = run.profile.template(template).group;
        run.groups[usize::from(group)][place(side)].active += 1;
        run.flows += 1;
        Some(index)
    }

    /// The key of a flow that is to be made, with its space held; `None` when there are too
    /// many of either.
    #[inline(always)]
    fn room_for(&mut self, now: Nanos, new: &FlowSpec) -> Option<FlowKey> {
        self.make_room(now, new.side);
        if self.flows() == self.flows.len_max() {
            return None;
        }
        let mut key = new.key;
        if let Some(space) = &new.space {
            let held = self.pools.spaces.hold(space);
            self.counters[place(new.side)].err_address_spaces += u64::from(held.is_none());
            key.space = Some(held?);
        }
        Some(key)
    }

    pub(super) fn count_overflow(&mut self, side: Side) {
        let counters = &mut self.counters[place(side)];
        counters.err_flow_overflow += 1;
        match side {
            Side::Client => counters.err_c_nf_throttled += 1,
            Side::Server => counters.err_s_nf_throttled += 1,
        }
    }
}

/// Addresses with a template's prefixes: the client's, and the server's.
fn ends(prefixes: &Ipv6Prefixes) -> (Ipv6Addr, Ipv6Addr) {
    let address = |prefix: [u8; 12]| {
        let mut bytes = [0; 16];
        bytes[..12].copy_from_slice(&prefix);
        Ipv6Addr::from(bytes)
    };
    (address(prefixes.client), address(prefixes.server))
}
