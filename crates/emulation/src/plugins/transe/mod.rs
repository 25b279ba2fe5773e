//! TRex's example of its transport: a client that asks a server for an echo, over and over, and compares
//! what comes back.

use std::net::SocketAddr;
use std::sync::Arc;

use allosaur_api::Access;
use serde_json::Value;

use crate::client::{ClientId, ClientMap};
use crate::counters::Counters;
use crate::namespace::Namespace;
use crate::params::Params;
use crate::plugin::{Context, Event, Plugin, PluginError, SocketEvent, SocketId};
use crate::plugins::transport::{Owned, with_connections};
use crate::spec::{Keys, Scope, Spec, namespace_counters};

/// The description of the plugin.
pub static SPEC: Spec = Spec {
    name: "transe",
    frames: &[],
    commands: &[namespace_counters::<Transe>("transe_ns_cnt", Access::Api)],
    counters: &[("", TranseCounters::META)],
    keys: Keys::Only(&["addr", "size", "loops"]),
    scope: Scope::Namespace,
    create: |_, _| Ok(Box::new(Transe::default())),
};

/// Most bytes of an echo.
const SIZE_MAX: u32 = 64 << 20;

crate::counters! {
    /// Counters of the example in a namespace.
    pub(crate) struct TranseCounters: u64, "transe" {
        clients: "pktClient", "pktClient", "ops", Info;
        rx_bytes: "rxByteTotal", "rxByteTotal", "bytes", Info;
        tx_bytes: "txByteTotal", "txByteTotal", "bytes", Info;
        rx_events: "pktRxEvent", "pktRxEvent", "ops", Info;
        tx_events: "pktTxEvent", "pktTxEvent", "ops", Info;
        rx_different: "pktRxErrNotTheSame", "pktRxErrNotTheSame", "opts", Error;
        rx_too_many: "pktRxErrBigger", "pktRxErrBigger", "opts", Error;
        tx_errors: "pktTxErrSend", "pktTxErrSend", "opts", Error;
    }
}

/// A client that asks.
#[derive(Debug)]
struct Asker {
    server: SocketAddr,
    bytes: Arc<[u8]>,
    /// Echoes still to ask for, with the one that is under way.
    left: u32,
    received: usize,
    is_started: bool,
}

/// The example in a namespace.
#[derive(Default)]
struct Transe {
    counters: TranseCounters,
    clients: ClientMap<Box<Asker>>,
}

impl Plugin for Transe {
    fn add_client(
        &mut self,
        _context: &mut Context<'_>,
        client: ClientId,
        init: &Value,
    ) -> Result<(), PluginError> {
        let params = Params::object(init, "transe.TransEClientParams")?;
        let server = params.string_or("addr", "")?;
        if server.is_empty() {
            return Ok(());
        }
        let server = server
            .parse()
            .map_err(|_| PluginError(format!("addr {server:?} is not an address with a port")))?;
        let size = params.number_or::<u32>("size", 0)?.min(SIZE_MAX);
        // What is asked for is the same for all, and easy to read.
        let bytes = (0..size).map(|at| b'a' + (at % 23) as u8);
        let asker = Asker {
            server,
            bytes: bytes.collect(),
            left: params.number_or::<u32>("loops", 0)?.max(1),
            received: 0,
            is_started: false,
        };
        self.clients.insert(client, Box::new(asker));
        Ok(())
    }

    fn remove_client(&mut self, _context: &mut Context<'_>, client: ClientId) {
        self.clients.remove(client);
    }

    fn handle_event(&mut self, context: &mut Context<'_>, client: ClientId, event: &Event) {
        match event {
            Event::GatewayResolvedIpv4 => self.start(context, client, true),
            Event::GatewayResolvedIpv6 => self.start(context, client, false),
            Event::Socket { socket, what, .. } => match what {
                SocketEvent::Connected => self.ask(context, client, *socket),
                SocketEvent::Received { bytes, .. } => {
                    self.take(context, client, *socket, bytes);
                }
                SocketEvent::Ended(_) => drop(self.clients.remove(client)),
                _ => {}
            },
            _ => {}
        }
    }

    fn counters(
        &mut self,
        _namespace: &mut Namespace,
        client: Option<ClientId>,
        show: &mut dyn FnMut(usize, &mut dyn Counters),
    ) {
        if client.is_none() {
            show(0, &mut self.counters);
        }
    }

    fn table_bytes(&self) -> usize {
        self.clients.boxed_bytes()
    }
}

impl Transe {
    /// The gateway of a family is there.
    fn start(&mut self, context: &mut Context<'_>, client: ClientId, ipv4: bool) {
        let Some(asker) = self.clients.get_mut(client) else {
            return;
        };
        if asker.server.is_ipv4() != ipv4 || std::mem::replace(&mut asker.is_started, true) {
            return;
        }
        let server = asker.server;
        let owned = Owned {
            client,
            owner: context.this(),
            tag: 0,
            wants_bytes: true,
        };
        let connected = with_connections(context, |connections, context| {
            let settings = connections.settings(client);
            connections.connect(context, owned, server, settings)
        });
        if !matches!(connected, Some(Ok(_))) {
            self.counters.tx_errors += 1;
        }
    }

    /// Asks for the next echo.
    fn ask(&mut self, context: &mut Context<'_>, client: ClientId, socket: SocketId) {
        let Some(asker) = self.clients.get_mut(client) else {
            return;
        };
        asker.received = 0;
        self.counters.tx_events += 1;
        self.counters.tx_bytes += asker.bytes.len() as u64;
        let bytes = asker.bytes.clone();
        with_connections(context, |connections, context| {
            connections.write(context, socket, bytes);
        });
    }

    /// Compares a part of an echo.
    fn take(
        &mut self,
        context: &mut Context<'_>,
        client: ClientId,
        socket: SocketId,
        bytes: &[u8],
    ) {
        let Some(asker) = self.clients.get_mut(client) else {
            return;
        };
        self.counters.rx_events += 1;
        self.counters.rx_bytes += bytes.len() as u64;
        let from = asker.received;
        asker.received += bytes.len();
        match asker.bytes.get(from..asker.received) {
            None => self.counters.rx_too_many += 1,
            Some(expected) => self.counters.rx_different += u64::from(expected != bytes),
        }
        if asker.received < asker.bytes.len() {
            return;
        }
        asker.left = asker.left.saturating_sub(1);
        if asker.left > 0 {
            self.ask(context, client, socket);
        } else {
            self.counters.clients += 1;
            with_connections(context, |connections, context| {
                connections.close(context, socket);
            });
        }
    }
}
