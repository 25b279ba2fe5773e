//! PPPoE: clients dial in at an access concentrator and get an IPv4 address of it. The address is
//! the session's; the client's own stays, and no IP packets travel over the session.

mod control;
mod pppoe;
mod session;

use allosaur_api::{Command, Empty, Error, Example};
use allosaur_engine::time::{Nanos, SECOND};
use allosaur_packet::MacAddress;
use allosaur_packet::link::ethernet::{EtherType, FRAME_BYTES_MIN, HEADER_BYTES};
use serde_json::Value;

use crate::client::{ClientId, ClientMap};
use crate::frame::{Frame, FrameKind};
use crate::params::Params;
use crate::plugin::{Context, Plugin, PluginError, Timeout};
use crate::spec::{Keys, OfClient, Scope, Spec, about_client};
use crate::timers::TimerId;

use session::{Credentials, SECRET_BYTES_MAX, Session, Sink};

/// The description of the plugin.
pub static SPEC: Spec = Spec {
    name: "ppp",
    frames: &[FrameKind::Pppoe],
    commands: &[
        Command {
            name: "ppp_c_client_session",
            doc: "Gives the number of a client's PPPoE session.",
            example: Example {
                params: r#"{"tun": {"vport": 0}, "mac": [0, 0, 1, 0, 0, 1]}"#,
                result: r#"17"#,
            },
            ..about_client(&OfClient(Ppp::session_number))
        },
        Command {
            name: "ppp_c_client_ip",
            doc: "Gives the IPv4 address that a client got for its session.",
            example: Example {
                params: r#"{"tun": {"vport": 0}, "mac": [0, 0, 1, 0, 0, 1]}"#,
                result: r#""10.0.0.5""#,
            },
            ..about_client(&OfClient(Ppp::address))
        },
        Command {
            name: "ppp_c_server_mac",
            doc: "Gives the MAC address of the concentrator of a client's session.",
            example: Example {
                params: r#"{"tun": {"vport": 0}, "mac": [0, 0, 1, 0, 0, 1]}"#,
                result: r#""00:00:02:00:00:01""#,
            },
            ..about_client(&OfClient(Ppp::concentrator))
        },
    ],
    counters: &[],
    keys: Keys::Only(&["user", "password", "timeout"]),
    scope: Scope::Client,
    create: |_, _| Ok(Box::<Ppp>::default()),
};

const INTERVAL_S: u32 = 5;

/// A client, and the timer by which it is called.
struct Entry {
    session: Session,
    timer: TimerId,
}

/// PPPoE in a namespace.
#[derive(Default)]
struct Ppp {
    clients: ClientMap<Box<Entry>>,
}

impl Plugin for Ppp {
    fn add_client(
        &mut self,
        context: &mut Context<'_>,
        client: ClientId,
        init: &Value,
    ) -> Result<(), PluginError> {
        let session = Session::new(context.now, credentials(init)?);
        let timer = TimerId::NONE;
        self.clients
            .insert(client, Box::new(Entry { session, timer }));
        self.run(context, client, |session, now, port| {
            session.handle_timeout(now, port);
        });
        Ok(())
    }

    fn remove_client(&mut self, context: &mut Context<'_>, client: ClientId) {
        self.run(context, client, |session, _, port| {
            session.terminate("session closed", port);
        });
        self.clients.remove(client);
    }

    fn handle_frame(&mut self, context: &mut Context<'_>, frame: &Frame<'_>) {
        let Some(client) = context.namespace.clients.by_mac(frame.destination()) else {
            return;
        };
        let (from, packet) = (frame.source(), frame.packet());
        let is_discovery = frame.layout.ether_type == pppoe::DISCOVERY;
        self.run(context, client, |session, now, port| {
            if is_discovery {
                session.handle_discovery(now, from, packet, port);
            } else {
                session.handle_session(now, from, packet, port);
            }
        });
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>, timeout: Timeout) {
        if let Some(client) = timeout.client {
            if let Some(entry) = self.clients.get_mut(client) {
                entry.timer = TimerId::NONE;
            }
            self.run(context, client, |session, now, port| {
                session.handle_timeout(now, port);
            });
        }
    }

    fn missing(&self, client: ClientId, _is_ipv6: bool) -> Option<&'static str> {
        // No packets of others travel over its session.
        self.clients.get(client).map(|_| "a way that is not PPPoE")
    }

    fn table_bytes(&self) -> usize {
        self.clients.boxed_bytes()
    }
}

/// Its commands.
impl Ppp {
    fn session(&self, client: ClientId) -> Result<&Session, Error> {
        let client = self.clients.get(client);
        let error = || Error::execution("Error there is no valid plugin ppp for this client ");
        Ok(&client.ok_or_else(error)?.session)
    }

    fn session_number(
        &mut self,
        _: &mut Context<'_>,
        client: ClientId,
        _: Empty,
    ) -> Result<u16, Error> {
        Ok(self.session(client)?.number())
    }

    fn address(
        &mut self,
        _: &mut Context<'_>,
        client: ClientId,
        _: Empty,
    ) -> Result<String, Error> {
        Ok(self.session(client)?.address().to_string())
    }

    fn concentrator(
        &mut self,
        _: &mut Context<'_>,
        client: ClientId,
        _: Empty,
    ) -> Result<String, Error> {
        Ok(self.session(client)?.peer().to_string())
    }
}

impl Ppp {
    /// Calls a session, and sets its timer.
    fn run(
        &mut self,
        context: &mut Context<'_>,
        client: ClientId,
        run: impl FnOnce(&mut Session, Nanos, &mut Port<'_, '_>),
    ) {
        let (Some(entry), Some(mac)) = (
            self.clients.get_mut(client),
            context.client(client).map(|client| client.mac),
        ) else {
            return;
        };
        let Entry { session, timer } = &mut **entry;
        let before = session.timeout();
        let now = context.now;
        run(session, now, &mut Port { context, mac });
        let is_armed = *timer != TimerId::NONE && session.timeout() == before;
        if !is_armed {
            context.cancel_timer(*timer);
            *timer = session.timeout().map_or(TimerId::NONE, |timeout| {
                context.set_timer(timeout.saturating_sub(now), Some(client), 0)
            });
        }
    }
}

/// Where a client's frames go.
struct Port<'p, 'c> {
    context: &'p mut Context<'c>,
    mac: MacAddress,
}

impl Sink for Port<'_, '_> {
    /// Padded, as the reference's are.
    fn frame(&mut self, to: MacAddress, ether_type: EtherType, bytes: usize) -> &mut [u8] {
        let header = HEADER_BYTES + self.context.namespace.tags().len();
        let padded = bytes.max(FRAME_BYTES_MIN - header);
        self.context.send(self.mac, to, ether_type, padded)
    }

    fn random(&mut self) -> u32 {
        self.context.draw("ppp")
    }
}

/// Reads the init JSON of a client.
fn credentials(init: &Value) -> Result<Credentials, PluginError> {
    let init = Params::object(init, "point2point.PPPInit")?;
    let text = |name: &str| {
        let text = init.string_or(name, "")?;
        if text.len() > SECRET_BYTES_MAX {
            let bytes = text.len();
            return Err(PluginError(format!(
                "{name} has {bytes} bytes; it may have {SECRET_BYTES_MAX}"
            )));
        }
        Ok(text.into())
    };
    let interval = init.nonzero_or("timeout", INTERVAL_S)?;
    Ok(Credentials {
        user: text("user")?,
        password: text("password")?,
        interval: Nanos::from(interval) * SECOND,
    })
}
