//! The two endpoints of the reference's tests of its transport, as a plugin of its own: an opener and
//! a listener, one of which sends.

use std::net::SocketAddr;

use allosaur_engine::time::{MILLISECOND, Nanos};
use serde_json::Value;

use crate::client::{ClientId, ClientMap};
use crate::datagrams;
use crate::plugin::{Context, Event, Plugin, PluginError, SocketEvent, SocketId, Timeout};
use crate::plugins::transport::{Owned, with_connections};
use crate::sockets::Datagram;
use crate::spec::{Keys, Scope, Spec};

/// The description of the plugin.
pub(crate) static SPEC: Spec = Spec {
    name: "endpoint",
    frames: &[],
    commands: &[],
    counters: &[],
    keys: Keys::Own,
    scope: Scope::Namespace,
    create: |_, _| Ok(Box::new(Endpoints::default())),
};

const PORT: u16 = 80;
/// How long an endpoint waits after a write.
const TICK: Nanos = 100 * MILLISECOND;
const REQUEST: &[u8] = b"{\"method\" :\"request\"}";
const RESPONSE: &[u8] = b"{\"method\" :\"response\"}";

#[derive(Clone, Copy, Debug)]
enum Carrier {
    None,
    Stream(SocketId),
    Datagrams(u16, SocketAddr),
}

/// One of the two.
struct Endpoint {
    config: Value,
    is_opener: bool,
    carrier: Carrier,
    sent: usize,
    received: usize,
}

#[derive(Default)]
pub(crate) struct Endpoints {
    clients: ClientMap<Endpoint>,
    /// What was received, by all of them.
    pub(crate) wrong_bytes: usize,
}

impl Plugin for Endpoints {
    fn add_client(
        &mut self,
        context: &mut Context<'_>,
        client: ClientId,
        init: &Value,
    ) -> Result<(), PluginError> {
        let is_opener = init["role"] == "opener";
        let endpoint = Endpoint {
            config: init.clone(),
            is_opener,
            carrier: Carrier::None,
            sent: 0,
            received: 0,
        };
        if !is_opener && init["udp"] == true {
            let owner = context.this().0;
            context.namespace.sockets.of(client).listen(PORT, owner);
        } else if !is_opener {
            let owned = owned(context, client);
            with_connections(context, |connections, context| {
                let settings = connections.settings(client).with(&tunables(init, "ioctls"));
                connections.listen(context, owned, PORT, settings)
            });
        }
        self.clients.insert(client, endpoint);
        Ok(())
    }

    fn remove_client(&mut self, _context: &mut Context<'_>, client: ClientId) {
        self.clients.remove(client);
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>, timeout: Timeout) {
        if let Some((client, endpoint)) = self.of(timeout.client) {
            endpoint.send(context, client);
        }
    }

    fn handle_event(&mut self, context: &mut Context<'_>, client: ClientId, event: &Event) {
        let wrong_bytes = &mut self.wrong_bytes;
        let Some(endpoint) = self.clients.get_mut(client) else {
            return;
        };
        let family = match endpoint.config["ipv6"] == true {
            true => Event::GatewayResolvedIpv6,
            false => Event::GatewayResolvedIpv4,
        };
        match event {
            event if *event == family && endpoint.is_opener => endpoint.open(context, client),
            Event::Socket { socket, what, .. } => match what {
                SocketEvent::Connected => {
                    endpoint.carrier = Carrier::Stream(*socket);
                    endpoint.begin(context, client);
                }
                SocketEvent::Received { bytes, .. } => {
                    *wrong_bytes += endpoint.take(context, client, bytes);
                }
                SocketEvent::Room => endpoint.send(context, client),
                SocketEvent::PeerClosed => endpoint.close(context, false),
                SocketEvent::Asked | SocketEvent::Ended(_) => {}
            },
            Event::Message { data, .. } => {
                let datagram = Datagram::decode(data).expect("a datagram");
                if let Carrier::None = endpoint.carrier {
                    endpoint.carrier = Carrier::Datagrams(datagram.port, datagram.remote);
                    endpoint.begin(context, client);
                }
                *wrong_bytes += endpoint.take(context, client, datagram.payload);
            }
            _ => {}
        }
    }

    fn table_bytes(&self) -> usize {
        self.clients.table_bytes()
    }
}

impl Endpoints {
    fn of(&mut self, client: Option<ClientId>) -> Option<(ClientId, &mut Endpoint)> {
        let client = client?;
        Some((client, self.clients.get_mut(client)?))
    }
}

fn owned(context: &Context<'_>, client: ClientId) -> Owned {
    Owned {
        client,
        owner: context.this(),
        tag: 0,
        wants_bytes: true,
    }
}

fn tunables(init: &Value, name: &str) -> serde_json::Map<String, Value> {
    init[name].as_object().cloned().unwrap_or_default()
}

impl Endpoint {
    fn number(&self, name: &str) -> usize {
        self.config[name].as_u64().expect("a number") as usize
    }

    /// Whether this one sends (or answers).
    fn is_sender(&self) -> bool {
        match self.config["name"].as_str() {
            Some("s_c") => !self.is_opener,
            _ => self.is_opener,
        }
    }

    fn is_dialog(&self) -> bool {
        self.config["name"] == "r_r"
    }

    fn open(&mut self, context: &mut Context<'_>, client: ClientId) {
        let remote = match self.config["ipv6"] == true {
            true => "[2001:db8::3000:1]:80",
            false => "48.0.0.1:80",
        };
        let remote: SocketAddr = remote.parse().expect("an address");
        if self.config["udp"] == true {
            let owner = context.this().0;
            let port = context.namespace.sockets.of(client).open(remote, owner);
            self.carrier = Carrier::Datagrams(port.expect("a port"), remote);
            return self.begin(context, client);
        }
        let owned = owned(context, client);
        let tunables = tunables(&self.config, "ioctlc");
        with_connections(context, |connections, context| {
            let settings = connections.settings(client).with(&tunables);
            connections.connect(context, owned, remote, settings)
        })
        .expect("a transport")
        .expect("a connection");
    }

    fn begin(&mut self, context: &mut Context<'_>, client: ClientId) {
        if self.is_dialog() && self.is_opener {
            self.write(context, client, REQUEST);
        } else if self.is_sender() && !self.is_dialog() {
            self.send(context, client);
        }
    }

    /// Writes the next chunk.
    fn send(&mut self, context: &mut Context<'_>, client: ClientId) {
        let left = self.number("total") - self.sent;
        if left == 0 {
            return;
        }
        let mut chunk = self.number("chunk").min(left);
        if self.config["random"] == true {
            chunk = (context.draw("chunk") as usize % chunk).max(1);
        }
        let bytes: Vec<u8> = (self.sent..self.sent + chunk).map(|at| at as u8).collect();
        self.sent += chunk;
        let fits = self.write(context, client, &bytes);
        if self.sent == self.number("total") {
            if self.config["closeByClient"] == true {
                self.close(context, self.config["closeByRst"] == true);
            }
        } else if fits {
            context.set_timer(TICK, Some(client), 0);
        }
    }

    fn write(&mut self, context: &mut Context<'_>, client: ClientId, bytes: &[u8]) -> bool {
        match self.carrier {
            Carrier::None => panic!("it is not connected"),
            Carrier::Stream(socket) => with_connections(context, |connections, context| {
                connections.write(context, socket, bytes.into())
            })
            .expect("a transport"),
            Carrier::Datagrams(port, remote) => {
                datagrams::send(context, client, port, remote, bytes).expect("it is sent");
                true
            }
        }
    }

    /// Takes what arrived; returns how many bytes are wrong.
    fn take(&mut self, context: &mut Context<'_>, client: ClientId, bytes: &[u8]) -> usize {
        let at = self.received;
        self.received += bytes.len();
        if self.is_dialog() {
            if !self.is_opener {
                self.write(context, client, RESPONSE);
                self.close(context, false);
            }
            let expected = if self.is_opener { RESPONSE } else { REQUEST };
            return usize::from(expected != bytes);
        }
        if self.received == self.number("total") && self.config["closeByClient"] == false {
            self.close(context, self.config["closeByRst"] == true);
        }
        let is_wrong = |(place, byte): &(usize, &u8)| **byte != (at + place) as u8;
        bytes.iter().enumerate().filter(is_wrong).count()
    }

    fn close(&mut self, context: &mut Context<'_>, by_reset: bool) {
        if let Carrier::Stream(socket) = self.carrier {
            with_connections(context, |connections, context| match by_reset {
                true => connections.abort(context, socket),
                false => connections.close(context, socket),
            });
        }
    }
}
