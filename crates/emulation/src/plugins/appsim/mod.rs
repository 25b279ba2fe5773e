//! Programs of stateful profiles on emulated clients: clients and servers, over TCP and UDP, to and
//! from anywhere.

mod flow;
mod program;
mod schema;
mod streams;

use std::net::SocketAddr;

use allosaur_api::Access;
use allosaur_engine::app::VariablePool;
use allosaur_engine::tcp::End;
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;

use self::flow::{Carrier, Flow, Status, World};
use self::program::{Programs, Side};
use self::streams::{Role, Stream};
use crate::client::{ClientId, ClientMap};
use crate::counters::Counters;
use crate::memory;
use crate::namespace::Namespace;
use crate::plugin::{Context, Event, Plugin, PluginError, SocketEvent, SocketId, Timeout};
use crate::plugins::transport::{ConnectError, Owned, with_connections};
use crate::slab::Slab;
use crate::sockets::{Datagram, Protocol};
use crate::spec::{Keys, Scope, Spec, client_counters};

/// The description of the plugin.
pub static SPEC: Spec = Spec {
    name: "appsim",
    frames: &[],
    commands: &[
        client_counters::<AppSim>("appsim_client_cnt", Access::Api),
        // The reference takes it for the one before.
        client_counters::<AppSim>("appsim_ns_cnt", Access::Api),
    ],
    counters: &[("", AppsimCounters::META)],
    keys: Keys::Only(&[
        "buf_list",
        "program_list",
        "tunable_list",
        "templates",
        "data",
    ]),
    scope: Scope::Namespace,
    create: |_, init| Ok(Box::new(AppSim::new(init)?)),
};

/// What a timer is for, above the number of a flow or a stream.
const WAKE: u32 = 0;
const SILENCE: u32 = 1 << 30;
const STREAM: u32 = 2 << 30;
const KINDS: u32 = 3 << 30;

crate::counters! {
    /// Counters of the programs of a client.
    pub(crate) struct AppsimCounters: u64, "appsim" {
        invalid_template: "eventInvalidtid", "invalid tid in client json ", "event", Error;
        invalid_program: "eventInvalidApp", "invalid app json ", "event", Error;
        tx_events: "eventTx", "write event ", "event", Info;
        rx_events: "event Rx", "event rx", "event", Info;
        tx_bytes: "bytesTx", "tx bytes ", "bytes", Info;
        rx_bytes: "bytesRx", "rx bytes ", "bytes", Info;
        drops: "DropConnection", "drop connection ", "event", Error;
        silences: "UdpKeepaliveConnection", "udp keepalive error", "event", Error;
        new_flows: "eventNewFlow", "new flow ", "event", Info;
        ended_flows: "delFlow", "del flow ", "event", Info;
    }
}

/// One client.
#[derive(Debug, Default)]
struct AppClient {
    counters: AppsimCounters,
    streams: Vec<Stream>,
    flows: FxHashSet<u32>,
}

/// The programs of a namespace, and the flows that run them.
struct AppSim {
    programs: Programs,
    clients: ClientMap<Box<AppClient>>,
    flows: Slab<Box<Flow>>,
    /// Flows over UDP by their client, port and peer.
    by_peer: FxHashMap<(ClientId, u16, SocketAddr), u32>,
    variables: VariablePool,
}

impl Plugin for AppSim {
    fn add_client(
        &mut self,
        _context: &mut Context<'_>,
        client: ClientId,
        init: &Value,
    ) -> Result<(), PluginError> {
        let mut state = AppClient {
            streams: streams::parse(init)?,
            ..AppClient::default()
        };
        let templates = self.programs.templates.len();
        let given = state.streams.len();
        state.streams.retain(|stream| stream.template < templates);
        state.counters.invalid_template += (given - state.streams.len()) as u64;
        self.clients.insert(client, Box::new(state));
        Ok(())
    }

    fn remove_client(&mut self, context: &mut Context<'_>, client: ClientId) {
        let Some(state) = self.clients.remove(client) else {
            return;
        };
        for stream in &state.streams {
            context.cancel_timer(stream.timer);
        }
        for slot in state.flows {
            self.forget(context, slot);
        }
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>, timeout: Timeout) {
        let Some(client) = timeout.client else {
            return;
        };
        let slot = timeout.tag & !KINDS;
        match timeout.tag & KINDS {
            STREAM => self.handle_stream(context, client, slot as usize),
            SILENCE => self.run(context, slot, Flow::handle_silence),
            _ => self.run(context, slot, Flow::handle_wake),
        }
    }

    fn handle_event(&mut self, context: &mut Context<'_>, client: ClientId, event: &Event) {
        match event {
            Event::GatewayResolvedIpv4 => self.start(context, client, false),
            Event::GatewayResolvedIpv6 => self.start(context, client, true),
            Event::Socket { socket, tag, what } => {
                self.handle_socket(context, client, *socket, *tag, what);
            }
            Event::Message { data, .. } => {
                if let Some(datagram) = Datagram::decode(data) {
                    self.receive(context, client, &datagram);
                }
            }
            _ => {}
        }
    }

    fn counters(
        &mut self,
        _namespace: &mut Namespace,
        client: Option<ClientId>,
        show: &mut dyn FnMut(usize, &mut dyn Counters),
    ) {
        if let Some(client) = client.and_then(|id| self.clients.get_mut(id)) {
            show(0, &mut client.counters);
        }
    }

    fn table_bytes(&self) -> usize {
        self.clients.boxed_bytes() + self.flows.boxed_bytes() + memory::table(&self.by_peer)
    }
}

/// Streams.
impl AppSim {
    fn new(init: &Value) -> Result<AppSim, PluginError> {
        Ok(AppSim {
            programs: Programs::parse(init)?,
            clients: ClientMap::default(),
            flows: Slab::default(),
            by_peer: FxHashMap::default(),
            variables: VariablePool::default(),
        })
    }

    /// The gateway of a family is there: the streams of that family begin.
    fn start(&mut self, context: &mut Context<'_>, client: ClientId, ipv6: bool) {
        let Some(state) = self.clients.get_mut(client) else {
            return;
        };
        for (place, stream) in state.streams.iter_mut().enumerate() {
            if stream.is_ipv6 != ipv6 || std::mem::replace(&mut stream.is_started, true) {
                continue;
            }
            let template = &self.programs.templates[stream.template];
            match stream.role {
                Role::Client => {
                    stream.next = context.now;
                    schedule(context, client, place, stream);
                }
                Role::Server => {
                    let (port, side) = (template.port, template.server.as_ref());
                    if !listen(context, client, place as u32, stream, port, side) {
                        state.counters.invalid_program += 1;
                    }
                }
            }
        }
    }

    /// The next flow of a stream is due.
    fn handle_stream(&mut self, context: &mut Context<'_>, client: ClientId, place: usize) {
        let Some(state) = self.clients.get_mut(client) else {
            return;
        };
        let Some(stream) = state.streams.get_mut(place) else {
            return;
        };
        stream.left = stream.left.map(|left| left.saturating_sub(1));
        schedule(context, client, place, stream);
        let stream = stream.clone();
        if let Err(error) = self.open(context, client, &stream) {
            let state = self.clients.get_mut(client).expect("it is there");
            match error {
                OpenError::NoProgram => state.counters.invalid_program += 1,
                OpenError::Unreachable => state.counters.drops += 1,
            }
        }
    }

    /// Begins a flow of a client's.
    fn open(
        &mut self,
        context: &mut Context<'_>,
        client: ClientId,
        stream: &Stream,
    ) -> Result<(), OpenError> {
        let template = &self.programs.templates[stream.template];
        let side = template.client.as_ref().ok_or(OpenError::NoProgram)?;
        let (program, wanted) = (side.program, side.wanted);
        let flow = self.flows.next_slot();
        let remote = stream.destination;
        let remote = remote.filter(|remote| remote.is_ipv6() == stream.is_ipv6);
        let Some(remote) = remote else {
            context.namespace.sockets.of(client).flows.dial_wrong_addr += 1;
            return Err(OpenError::Unreachable);
        };
        let owner = context.this();
        let carrier = if stream.is_stream {
            let owned = Owned {
                client,
                owner,
                tag: flow,
                wants_bytes: false,
            };
            let connected = with_connections(context, |connections, context| {
                let settings = connections.settings(client).with(&side.tunables);
                connections.connect(context, owned, remote, settings)
            });
            Carrier::Stream(connected.ok_or(OpenError::NoProgram)??)
        } else {
            let port = context.namespace.sockets.of(client).open(remote, owner.0);
            let port = port.ok_or(OpenError::Unreachable)?;
            Carrier::Datagrams {
                port,
                remote,
                wanted,
            }
        };
        let slot = self.insert(Flow::new(client, carrier, true, program, &self.programs));
        debug_assert_eq!(slot, flow, "the next slot was asked for");
        if !stream.is_stream {
            self.run(context, slot, Flow::handle_connected);
        }
        Ok(())
    }
}

/// Why a flow did not begin.
enum OpenError {
    /// The template has no program for this side, or the namespace no transport.
    NoProgram,
    /// The client cannot send there.
    Unreachable,
}

impl From<ConnectError> for OpenError {
    fn from(_: ConnectError) -> Self {
        OpenError::Unreachable
    }
}

/// Sets the timer of the next flow of a stream, if there is one.
fn schedule(context: &mut Context<'_>, client: ClientId, place: usize, stream: &mut Stream) {
    let Some(period) = stream.period.filter(|_| stream.left != Some(0)) else {
        return;
    };
    stream.next = stream.next.saturating_add(period);
    let delay = stream.next.saturating_sub(context.now);
    stream.timer = context.set_timer(delay, Some(client), STREAM | place as u32);
}

/// Takes flows at the port of a template. Returns false when that cannot be.
fn listen(
    context: &mut Context<'_>,
    client: ClientId,
    place: u32,
    stream: &Stream,
    port: u16,
    side: Option<&Side>,
) -> bool {
    let Some(side) = side else {
        return false;
    };
    let owner = context.this();
    let protocol = match stream.is_stream {
        true => Protocol::Tcp,
        false => Protocol::Udp,
    };
    let sockets = context.namespace.sockets.of(client);
    if let Some(other) = sockets.listener(protocol, port) {
        // Who listens takes both families: a second stream finds it done.
        return other.owner == owner.0;
    }
    if !stream.is_stream {
        let listens = sockets.listen_for(protocol, port, owner.0, place);
        let group = stream.destination.filter(|to| to.ip().is_multicast());
        if let Some(group) = group {
            sockets.listen_for(protocol, group.port(), owner.0, place);
            context.namespace.sockets.join(client, group);
        }
        return listens;
    }
    let owned = Owned {
        client,
        owner,
        tag: place,
        wants_bytes: false,
    };
    let listens = with_connections(context, |connections, context| {
        let settings = connections.settings(client).with(&side.tunables);
        connections.listen(context, owned, port, settings)
    });
    listens == Some(true)
}

/// Flows.
impl AppSim {
    fn handle_socket(
        &mut self,
        context: &mut Context<'_>,
        client: ClientId,
        socket: SocketId,
        tag: u32,
        what: &SocketEvent,
    ) {
        match what {
            SocketEvent::Asked => self.accept(context, client, socket, tag),
            SocketEvent::Connected => self.run(context, tag, Flow::handle_connected),
            SocketEvent::Received { count, .. } => {
                self.run(context, tag, |flow, context, world, slot| {
                    flow.handle_received(context, world, slot, *count)
                });
            }
            SocketEvent::Room => self.run(context, tag, Flow::handle_room),
            SocketEvent::PeerClosed => self.run(context, tag, Flow::handle_peer_closed),
            SocketEvent::Ended(end) => {
                if let Some(state) = self.clients.get_mut(client) {
                    state.counters.drops += u64::from(*end != End::Closed);
                    state.counters.ended_flows += 1;
                }
                self.forget(context, tag);
            }
        }
    }

    /// The server's side of a stream of a client.
    fn served(&self, client: ClientId, place: u32) -> Option<&Side> {
        let stream = self.clients.get(client)?.streams.get(place as usize)?;
        let template = self.programs.templates.get(stream.template)?;
        template.server.as_ref()
    }

    fn accept(&mut self, context: &mut Context<'_>, client: ClientId, socket: SocketId, tag: u32) {
        let Some(program) = self.served(client, tag).map(|side| side.program) else {
            return;
        };
        let carrier = Carrier::Stream(socket);
        let slot = self.insert(Flow::new(client, carrier, false, program, &self.programs));
        with_connections(context, |connections, _| connections.set_tag(socket, slot));
    }

    /// A datagram arrived.
    fn receive(&mut self, context: &mut Context<'_>, client: ClientId, datagram: &Datagram<'_>) {
        let (port, remote) = (datagram.port, datagram.remote);
        let sockets = context.namespace.sockets.get_mut(client);
        let group = sockets.and_then(|sockets| sockets.group_of(port));
        let mut peers = [Some(remote), group].into_iter().flatten();
        let known = peers.find_map(|peer| self.by_peer.get(&(client, port, peer)).copied());
        let slot = known.or_else(|| self.serve(context, client, port, remote));
        let bytes = datagram.payload.len() as u32;
        if let Some(slot) = slot {
            self.run(context, slot, |flow, context, world, slot| {
                flow.handle_received(context, world, slot, bytes)
            });
        }
    }

    /// Begins a flow over UDP that a peer asks for.
    fn serve(
        &mut self,
        context: &mut Context<'_>,
        client: ClientId,
        port: u16,
        remote: SocketAddr,
    ) -> Option<u32> {
        let sockets = context.namespace.sockets.get_mut(client)?;
        let place = sockets.listener(Protocol::Udp, port)?.tag;
        let side = self.served(client, place)?;
        let (program, wanted) = (side.program, side.wanted);
        let carrier = Carrier::Datagrams {
            port,
            remote,
            wanted,
        };
        let slot = self.insert(Flow::new(client, carrier, false, program, &self.programs));
        self.run(context, slot, Flow::handle_connected);
        Some(slot)
    }

    fn insert(&mut self, flow: Flow) -> u32 {
        let (client, carrier) = (flow.client, flow.carrier);
        let slot = self.flows.insert(Box::new(flow));
        if let Carrier::Datagrams { port, remote, .. } = carrier {
            self.by_peer.insert((client, port, remote), slot);
        }
        if let Some(state) = self.clients.get_mut(client) {
            state.counters.new_flows += 1;
            state.flows.insert(slot);
        }
        slot
    }

    /// Does something with a flow; forgets it when it is over.
    fn run(
        &mut self,
        context: &mut Context<'_>,
        slot: u32,
        run: impl FnOnce(&mut Flow, &mut Context<'_>, &mut World<'_>, u32) -> Status,
    ) {
        let Some(flow) = self.flows.get_mut(slot) else {
            return;
        };
        let Some(state) = self.clients.get_mut(flow.client) else {
            return;
        };
        let mut world = World {
            programs: &self.programs,
            variables: &mut self.variables,
            counters: &mut state.counters,
        };
        if run(flow, context, &mut world, slot) == Status::Over {
            self.forget(context, slot);
        }
    }

    fn forget(&mut self, context: &mut Context<'_>, slot: u32) {
        let Some(mut flow) = self.flows.remove(slot) else {
            return;
        };
        flow.release(context, &mut self.variables);
        if let Carrier::Datagrams { port, remote, .. } = flow.carrier {
            self.by_peer.remove(&(flow.client, port, remote));
        }
        if let Some(state) = self.clients.get_mut(flow.client) {
            state.flows.remove(&slot);
        }
    }
}
