//! All connections of a namespace: segments that arrive and leave, timers, and what owners are told.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use allosaur_engine::tcp::{End, Outcome, RecoveryPool, Segment};
use allosaur_engine::time::Nanos;
use allosaur_packet::link::vlan;
use allosaur_packet::transport::tcp::TcpFlags;
use serde_json::Value;

use super::outbox::Outbox;
use super::settings::Settings;
use super::socket::{Ends, Owned, Pools, Socket};
use super::tcp_counters::Counted;
use super::wire::{self, Arrival, Route};
use crate::client::{ClientId, ClientMap};
use crate::datagrams;
use crate::plugin::{Context, PluginId, SocketEvent, SocketId};
use crate::sockets::Protocol;
use crate::timers::TimerId;

/// Time to live of IPv4 and hop limit of IPv6.
const TIME_TO_LIVE: u8 = 128;
const HOP_LIMIT: u8 = 64;
/// Bytes of IP and TCP headers without options, and of a VLAN tag.
const IPV4_HEADERS: u16 = 40;
const IPV6_HEADERS: u16 = 60;
const TAG_BYTES: usize = vlan::HEADER_BYTES;

/// Why a connection was not asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConnectError {
    /// The client has no address of that family.
    #[error("the client has no address of that family")]
    NoAddress,
    /// All source ports are in use.
    #[error("all source ports of the client are in use")]
    NoPort,
}

/// A port at which a client takes connections.
#[derive(Clone, Copy, Debug)]
struct Listening {
    port: u16,
    settings: Settings,
    wants_bytes: bool,
}

/// The connections of a namespace.
#[derive(Default)]
pub(crate) struct Connections {
    sockets: Slots,
    recovery: RecoveryPool,
    counted: ClientMap<Box<Counted>>,
    /// How clients behave whose init JSON says so.
    settings: ClientMap<Box<Settings>>,
    listening: ClientMap<Vec<Listening>>,
}

type Slots = crate::slab::Slab<Box<Socket>>;

/// For the plugin itself.
impl Connections {
    /// Bytes of the tables of connections, without what waits to be sent or read.
    pub(super) fn table_bytes(&self) -> usize {
        let by_client = self.counted.boxed_bytes() + self.settings.boxed_bytes();
        self.sockets.boxed_bytes() + by_client + self.listening.table_bytes()
    }

    pub(super) fn add_client(&mut self, client: ClientId, init: &Value) {
        let settings = Settings::of_client(init);
        if settings != Settings::default() {
            self.settings.insert(client, Box::new(settings));
        }
    }

    /// Forgets a client with all of its connections; nobody is told.
    pub(super) fn remove_client(&mut self, context: &mut Context<'_>, client: ClientId) {
        let sockets = context.namespace.sockets.get_mut(client);
        let slots: Vec<u32> = sockets.map_or(Vec::new(), |sockets| sockets.connections().collect());
        for slot in slots {
            self.forget(context, slot);
        }
        self.counted.remove(client);
        self.settings.remove(client);
        self.listening.remove(client);
    }

    /// The counters of a client.
    pub(super) fn counted(&mut self, client: ClientId) -> Option<&mut Counted> {
        self.counted.get_mut(client).map(|counted| &mut **counted)
    }

    /// A segment arrived for a client.
    pub(super) fn handle_segment(
        &mut self,
        context: &mut Context<'_>,
        client: ClientId,
        addresses: (IpAddr, IpAddr),
        bytes: &[u8],
    ) {
        let Some(arrival) = wire::read(bytes) else {
            return;
        };
        let (source, destination) = addresses;
        let ends = Ends {
            local: SocketAddr::new(destination, arrival.destination_port),
            remote: SocketAddr::new(source, arrival.source_port),
        };
        let Some(sockets) = context.namespace.sockets.get_mut(client) else {
            return;
        };
        let slot = sockets.connection(ends.local.port(), ends.remote);
        let socket = slot.and_then(|slot| Some((slot, self.sockets.get_mut(slot)?)));
        match socket {
            Some((slot, socket)) if socket.may_be_replaced_by(&arrival.segment) => {
                self.forget(context, slot);
                self.accept(context, client, ends, &arrival.segment);
            }
            Some((slot, _)) => self.take(context, slot, &arrival),
            None => self.accept(context, client, ends, &arrival.segment),
        }
    }

    fn take(&mut self, context: &mut Context<'_>, slot: u32, arrival: &Arrival<'_>) {
        let segment = &arrival.segment;
        let expected = self.sockets.get(slot).and_then(|socket| socket.expected());
        let handled = self.with_socket(context.now, slot, |socket, pools| {
            socket.handle_segment(pools, segment)
        });
        let Some(outcome) = handled else {
            return;
        };
        if outcome.refused {
            self.refuse(context, slot, segment);
        }
        let socket = self.sockets.get(slot);
        let expected = expected.filter(|_| socket.is_some_and(|socket| socket.owned.wants_bytes));
        // What comes out of order is dropped, so all that is delivered is in this segment.
        let bytes = expected.and_then(|expected| {
            let skip = segment.seq.until(expected) as usize;
            arrival
                .payload
                .get(skip..)?
                .get(..outcome.delivered_bytes as usize)
        });
        self.go_on(context, slot, outcome, bytes.unwrap_or_default());
    }

    /// A timer of a connection is due.
    pub(super) fn handle_timeout(&mut self, context: &mut Context<'_>, slot: u32, timer: TimerId) {
        let Some(socket) = self.sockets.get_mut(slot) else {
            return;
        };
        if socket.timer != timer {
            return;
        }
        (socket.timer, socket.due) = (TimerId::NONE, Nanos::MAX);
        let handled = self.with_socket(context.now, slot, |socket, pools| {
            socket.handle_timeout(pools)
        });
        if let Some(outcome) = handled {
            self.go_on(context, slot, outcome, &[]);
        }
    }

    /// Begins a connection that a peer asks for, if somebody listens.
    fn accept(&mut self, context: &mut Context<'_>, client: ClientId, ends: Ends, syn: &Segment) {
        let sockets = context.namespace.sockets.of(client);
        let port = ends.local.port();
        let control =
            syn.flags.0 & (TcpFlags::SYN | TcpFlags::ACK | TcpFlags::RST | TcpFlags::FIN).0;
        if control != TcpFlags::SYN.0 {
            sockets.flows.new_tcp_no_syn += 1;
            return;
        }
        let Some(listener) = sockets.listener(Protocol::Tcp, port) else {
            sockets.flows.new_no_cb += 1;
            return;
        };
        let all = self.listening.get(client);
        let listening = all.and_then(|all| all.iter().find(|listening| listening.port == port));
        let Some(&Listening {
            settings,
            wants_bytes,
            ..
        }) = listening
        else {
            return;
        };
        let settings = settings.on_link(segment_bytes_max(context, client, ends.remote.is_ipv6()));
        let first = context.draw("tcp isn");
        let owned = Owned {
            client,
            owner: PluginId(listener.owner),
            tag: listener.tag,
            wants_bytes,
        };
        let mut pools = self.pools(context.now, client);
        let socket = Socket::accept(&mut pools, owned, ends, settings, first, syn);
        let slot = self.sockets.insert(Box::new(socket));
        let sockets = context.namespace.sockets.of(client);
        if !sockets.begin_connection(port, ends.remote, slot) {
            self.drop_slot(slot);
            return;
        }
        self.tell(context, slot, SocketEvent::Asked);
        self.go_on(context, slot, Outcome::default(), &[]);
    }
}

/// For owners.
impl Connections {
    /// Asks for a connection of a client. It is `Connected` later, or `Ended`.
    pub(crate) fn connect(
        &mut self,
        context: &mut Context<'_>,
        owned: Owned,
        remote: SocketAddr,
        settings: Settings,
    ) -> Result<SocketId, ConnectError> {
        let client = owned.client;
        let local = datagrams::source(context, client, remote.ip());
        let Some(local) = local else {
            context.namespace.sockets.of(client).flows.dial_wrong_addr += 1;
            return Err(ConnectError::NoAddress);
        };
        let settings = settings.on_link(segment_bytes_max(context, client, remote.is_ipv6()));
        let first = context.draw("tcp isn");
        let ends = Ends {
            local: SocketAddr::new(local, 0),
            remote,
        };
        let mut pools = self.pools(context.now, client);
        let socket = Socket::connect(&mut pools, owned, ends, settings, first);
        let slot = self.sockets.insert(Box::new(socket));
        let port = context.namespace.sockets.of(client).connect(remote, slot);
        let Some(port) = port else {
            self.drop_slot(slot);
            return Err(ConnectError::NoPort);
        };
        if let Some(socket) = self.sockets.get_mut(slot) {
            socket.ends.local.set_port(port);
        }
        self.go_on(context, slot, Outcome::default(), &[]);
        Ok(self.id(slot))
    }

    /// Takes connections of a client at a port; they begin with `Asked`, whose tag is that of
    /// `owned`. Returns false when another plugin has the port.
    pub(crate) fn listen(
        &mut self,
        context: &mut Context<'_>,
        owned: Owned,
        port: u16,
        settings: Settings,
    ) -> bool {
        let sockets = context.namespace.sockets.of(owned.client);
        let listens = sockets.listen_for(Protocol::Tcp, port, owned.owner.0, owned.tag);
        if listens {
            let listening = Listening {
                port,
                settings,
                wants_bytes: owned.wants_bytes,
            };
            match self.listening.get_mut(owned.client) {
                Some(all) => all.push(listening),
                None => drop(self.listening.insert(owned.client, vec![listening])),
            }
        }
        listens
    }

    /// How connections of a client behave.
    pub(crate) fn settings(&self, client: ClientId) -> Settings {
        let settings = self.settings.get(client);
        settings.map_or_else(Settings::default, |settings| **settings)
    }

    /// Says what a connection is to its owner.
    pub(crate) fn set_tag(&mut self, id: SocketId, tag: u32) {
        if let Some(socket) = self.find(id) {
            socket.owned.tag = tag;
        }
    }

    /// Writes to a connection. Returns false when it does not fit at once: all of it will be sent,
    /// but more may be written only after `Room`.
    pub(crate) fn write(
        &mut self,
        context: &mut Context<'_>,
        id: SocketId,
        bytes: Arc<[u8]>,
    ) -> bool {
        let Some(socket) = self.find(id) else {
            return true;
        };
        let client = socket.owned.client;
        if !socket.is_writable() {
            let is_closing = socket.is_closing();
            if let Some(counted) = self.counted(client) {
                match is_closing {
                    true => counted.already_closed += 1,
                    false => counted.write_while_drain += 1,
                }
            }
            return true;
        }
        let written = self.with_socket(context.now, id.slot, |socket, pools| {
            socket.write(pools, bytes)
        });
        let (fits, leaves) = written.unwrap_or((true, false));
        if leaves {
            self.go_on(context, id.slot, Outcome::default(), &[]);
        }
        fits
    }

    /// Ends what a connection says, once all before is acknowledged. What the peer says still comes.
    pub(crate) fn close(&mut self, context: &mut Context<'_>, id: SocketId) {
        let Some(socket) = self.find(id) else {
            return;
        };
        if socket.is_closing() {
            let client = socket.owned.client;
            if let Some(counted) = self.counted(client) {
                counted.already_closed += 1;
            }
            return;
        }
        socket.close();
        self.go_on(context, id.slot, Outcome::default(), &[]);
    }

    /// Ends a connection with a reset.
    pub(crate) fn abort(&mut self, context: &mut Context<'_>, id: SocketId) {
        if let Some(socket) = self.find(id) {
            socket.abort();
            self.go_on(context, id.slot, Outcome::default(), &[]);
        }
    }

    fn find(&mut self, id: SocketId) -> Option<&mut Socket> {
        if self.sockets.generation(id.slot) != id.generation {
            return None;
        }
        self.sockets.get_mut(id.slot).map(|socket| &mut **socket)
    }
}

/// What both need.
impl Connections {
    fn id(&self, slot: u32) -> SocketId {
        SocketId {
            slot,
            generation: self.sockets.generation(slot),
        }
    }

    fn pools(&mut self, now: Nanos, client: ClientId) -> Pools<'_> {
        if self.counted.get(client).is_none() {
            self.counted.insert(client, Box::default());
        }
        let counted = self.counted.get_mut(client).expect("it was just inserted");
        Pools {
            now,
            counters: &mut counted.tcp,
            recovery: &mut self.recovery,
        }
    }

    fn with_socket<R>(
        &mut self,
        now: Nanos,
        slot: u32,
        run: impl FnOnce(&mut Socket, &mut Pools<'_>) -> R,
    ) -> Option<R> {
        let socket = self.sockets.get_mut(slot)?;
        let counted = self.counted.get_mut(socket.owned.client)?;
        let mut pools = Pools {
            now,
            counters: &mut counted.tcp,
            recovery: &mut self.recovery,
        };
        Some(run(socket, &mut pools))
    }

    /// What follows from what happened: segments leave, the owner is told, timers are set.
    fn go_on(&mut self, context: &mut Context<'_>, slot: u32, outcome: Outcome, bytes: &[u8]) {
        let Some(socket) = self.sockets.get_mut(slot) else {
            return;
        };
        let client = socket.owned.client;
        if socket.is_opened(&outcome) {
            if let Some(counted) = self.counted(client) {
                counted.opened += 1;
            }
        }
        let filled = self.with_socket(context.now, slot, Socket::refill);
        let has_room = filled == Some(true);
        let sent = self.transmit(context, slot);
        if outcome.connected {
            self.tell(context, slot, SocketEvent::Connected);
        }
        if outcome.delivered_bytes > 0 {
            let event = SocketEvent::Received {
                count: outcome.delivered_bytes,
                bytes: bytes.to_vec(),
            };
            self.tell(context, slot, event);
        }
        if has_room {
            self.tell(context, slot, SocketEvent::Room);
        }
        if outcome.peer_closed {
            self.tell(context, slot, SocketEvent::PeerClosed);
        }
        let mut end = outcome.ended.or(sent);
        let socket = self.sockets.get_mut(slot);
        if socket.is_some_and(|socket| socket.say_end()) {
            end = end.or(self.transmit(context, slot));
        }
        if let Some(end) = end {
            self.tell_end(context, slot, end);
        }
        self.settle(context, slot);
    }

    fn transmit(&mut self, context: &mut Context<'_>, slot: u32) -> Option<End> {
        let route = self
            .sockets
            .get(slot)
            .map(|socket| route(context, socket))?;
        let now = context.now;
        let outcome = self.with_socket(now, slot, |socket, pools| {
            socket.transmit(pools, |segment: &Segment, window, outbox: &Outbox| {
                // Without the gateway's MAC address it is lost, as anywhere on its way.
                if let Some(route) = &route {
                    wire::write(context, route, segment, window, outbox);
                }
            })
        });
        outcome.and_then(|outcome| outcome.ended)
    }

    /// The reset that a segment gets which belongs to another connection.
    fn refuse(&mut self, context: &mut Context<'_>, slot: u32, segment: &Segment) {
        let route = self
            .sockets
            .get(slot)
            .and_then(|socket| route(context, socket));
        if let (Some(route), Some(reset)) = (route, segment.reset_in_reply()) {
            wire::write(context, &route, &reset, 0, &Outbox::default());
        }
    }

    fn tell(&mut self, context: &mut Context<'_>, slot: u32, what: SocketEvent) {
        let id = self.id(slot);
        if let Some(socket) = self.sockets.get(slot).filter(|socket| !socket.is_over) {
            let Owned {
                client, owner, tag, ..
            } = socket.owned;
            context.tell(owner, client, id, tag, what);
        }
    }

    fn tell_end(&mut self, context: &mut Context<'_>, slot: u32, end: End) {
        self.tell(context, slot, SocketEvent::Ended(end));
        if let Some(socket) = self.sockets.get_mut(slot) {
            socket.is_over = true;
        }
    }

    /// Forgets a connection that is closed; sets the timer of another.
    fn settle(&mut self, context: &mut Context<'_>, slot: u32) {
        let Some(socket) = self.sockets.get_mut(slot) else {
            return;
        };
        if socket.is_closed() {
            self.tell_end(context, slot, End::Closed);
            self.forget(context, slot);
            return;
        }
        // A timer that is too early is set again then.
        let due = socket.poll_timeout(context.now);
        let Some(due) = due.filter(|due| *due < socket.due) else {
            return;
        };
        context.cancel_timer(socket.timer);
        let delay = due.saturating_sub(context.now);
        socket.timer = context.set_timer(delay, Some(socket.owned.client), slot);
        socket.due = due;
    }

    fn forget(&mut self, context: &mut Context<'_>, slot: u32) {
        let Some(socket) = self.drop_slot(slot) else {
            return;
        };
        context.cancel_timer(socket.timer);
        let sockets = context.namespace.sockets.of(socket.owned.client);
        sockets.disconnect(socket.ends.local.port(), socket.ends.remote);
    }

    fn drop_slot(&mut self, slot: u32) -> Option<Box<Socket>> {
        let mut socket = self.sockets.remove(slot)?;
        socket.release(&mut self.recovery);
        Some(socket)
    }
}

/// Bytes of data in the longest segment of a client, without options.
fn segment_bytes_max(context: &Context<'_>, client: ClientId, ipv6: bool) -> u16 {
    let tags = (context.namespace.tags().len() / TAG_BYTES * TAG_BYTES) as u16;
    let packet = datagrams::packet_bytes_max(context, client, ipv6);
    let headers = if ipv6 { IPV6_HEADERS } else { IPV4_HEADERS };
    packet.saturating_sub(headers + tags)
}

/// The way of a connection's packets; none while the gateway is not known.
fn route(context: &Context<'_>, socket: &Socket) -> Option<Route> {
    let Socket {
        ends,
        settings,
        owned,
        ..
    } = socket;
    let macs = datagrams::way(context, owned.client, ends.remote.ip())?;
    let hops = if ends.remote.is_ipv6() {
        HOP_LIMIT
    } else {
        TIME_TO_LIVE
    };
    Some(Route {
        macs,
        local: ends.local,
        remote: ends.remote,
        type_of_service: settings.type_of_service,
        hops: settings.hops.unwrap_or(hops),
    })
}
