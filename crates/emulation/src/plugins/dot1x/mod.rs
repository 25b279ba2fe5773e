//! 802.1X: clients are supplicants, which a switch lets in by EAP-MD5, MS-CHAPv2, EAP-TLS, PEAP or
//! EAP-TTLS.

mod eap;
mod fragments;
mod init;
mod mschapv2;
mod peap;
mod phase2;
mod supplicant;
mod ttls;
mod tunnel;

use allosaur_api::json_schema::JsonSchema;
use allosaur_api::{Access, Command, Error, Example};
use allosaur_packet::MacAddress;
use allosaur_packet::link::ethernet::EtherType;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::client::{ClientId, ClientMap};
use crate::counters::Counters;
use crate::frame::{Frame, FrameKind};
use crate::namespace::Namespace;
use crate::params::Params;
use crate::plugin::{Context, Plugin, PluginError, Timeout};
use crate::spec::{Keys, OfNamespace, Scope, Spec, about_namespace, client_counters};
use crate::target::MacParams;
use crate::timers::TimerId;

use eap::Message;
use supplicant::{State, Supplicant};

/// The description of the plugin.
pub static SPEC: Spec = Spec {
    name: "dot1x",
    frames: &[FrameKind::Eapol],
    commands: &[
        client_counters::<Dot1x>("dot1x_client_cnt", Access::Api),
        Command {
            name: "dot1x_client_info",
            doc: "Says where the authentications of clients stand.",
            errors: &["a client is not there, or has not the plugin"],
            example: Example {
                params: r#"{"tun": {"vport": 0}, "macs": [[0, 0, 1, 0, 0, 1]]}"#,
                result: r#"[{"state": 4, "method": 4, "eap_version": 1}]"#,
            },
            ..about_namespace(&OfNamespace(Dot1x::infos))
        },
    ],
    counters: &[("", Dot1xCounters::META), ("", tunnel::TlsCounters::META)],
    keys: Keys::Only(&init::KEYS),
    scope: Scope::Namespace,
    create: |_, init| {
        let init = Params::object(init, "dot1x.Dot1xCfg")?;
        Ok(Box::new(Dot1x {
            defaults: init.fields().cloned().unwrap_or_default(),
            clients: ClientMap::default(),
        }))
    },
};

crate::counters! {
    /// Counters of 802.1X of a client.
    pub(crate) struct Dot1xCounters: u32, "dot1x" {
        method_failed: "pktMethodFailErr", "rx method failed in success packet", "pkts", Error;
        method_no_password: "pktMethodNoPassword", "rx method has no password", "pkts", Error;
        method_wrong_length: "pktMethodWrongLen", "rx method wrong len", "pkts", Error;
        rx_parser_error: "pktRxParserErr", "rx parse error", "pkts", Error;
        rx_invalid_version: "pktRxIvalidVersionErr", "rx invalid version ", "pkts", Error;
        rx_ignored: "pktRxIgnore", "rx ignore", "pkts", Error;
        rx_eap_too_short: "pktRxEAPtooShortErr", "rx packet too short", "pkts", Error;
        rx_invalid_code: "pktRxParserInvalidCode", "rx parser invalid code", "pkts", Error;
        no_user_name: "pktNoUserNameErr", "not user name provided", "pkts", Error;
        tx_identity: "pktTxIdentity", "tx send identity", "pkts", Info;
        tx_nak: "pktTxNack", "tx send nack", "pkts", Error;
        success_wrong_state: "pktSuccessWrongState", "rx success in wrong stats", "pkts", Error;
        failure_wrong_state: "pktFaliureWrongState", "faliure in the wrong state ", "pkts", Error;
        method_wrong_state: "pktMethodWrongstate", "getting method in the wrong state  ", "pkts", Error;
    }
}

/// The group of all who take part in port access (IEEE 802.1X-2020 section 11.1.1).
const PAE_GROUP: MacAddress = MacAddress([0x01, 0x80, 0xc2, 0, 0, 0x03]);
const EAPOL: EtherType = EtherType(0x888e);

/// A client, and the timer by which it is called.
struct Entry {
    supplicant: Supplicant,
    timer: TimerId,
}

/// 802.1X in a namespace.
struct Dot1x {
    /// Fields of the init JSON of clients that do not have them.
    defaults: Map<String, Value>,
    clients: ClientMap<Box<Entry>>,
}

impl Plugin for Dot1x {
    fn add_client(
        &mut self,
        context: &mut Context<'_>,
        client: ClientId,
        init: &Value,
    ) -> Result<(), PluginError> {
        let supplicant = init::supplicant(context, &self.defaults, init)?;
        let timer = TimerId::NONE;
        self.clients
            .insert(client, Box::new(Entry { supplicant, timer }));
        self.run(context, client, |supplicant, context| {
            supplicant.handle_timeout(context.now)
        });
        Ok(())
    }

    fn remove_client(&mut self, _context: &mut Context<'_>, client: ClientId) {
        self.clients.remove(client);
    }

    fn handle_frame(&mut self, context: &mut Context<'_>, frame: &Frame<'_>) {
        let destination = frame.destination();
        if destination == PAE_GROUP {
            // Everybody hears what is said to the group.
            let listeners: Vec<_> = self.clients.iter().map(|(client, _)| client).collect();
            for client in listeners {
                self.receive(context, client, frame);
            }
        } else if let Some(client) = context.namespace.clients.by_mac(destination) {
            self.receive(context, client, frame);
        }
    }

    fn handle_timeout(&mut self, context: &mut Context<'_>, timeout: Timeout) {
        if let Some(client) = timeout.client {
            if let Some(entry) = self.clients.get_mut(client) {
                entry.timer = TimerId::NONE;
            }
            self.run(context, client, |supplicant, context| {
                supplicant.handle_timeout(context.now)
            });
        }
    }

    fn missing(&self, client: ClientId, _is_ipv6: bool) -> Option<&'static str> {
        let supplicant = &self.clients.get(client)?.supplicant;
        (supplicant.state() != State::Authenticated).then_some("a login by 802.1X")
    }

    fn counters(
        &mut self,
        _namespace: &mut Namespace,
        client: Option<ClientId>,
        show: &mut dyn FnMut(usize, &mut dyn Counters),
    ) {
        if let Some(client) = client.and_then(|id| self.clients.get_mut(id)) {
            show(0, &mut client.supplicant.counters);
            if let Some(tunnels) = &mut client.supplicant.tunnels {
                show(1, &mut tunnels.counters);
            }
        }
    }

    fn table_bytes(&self) -> usize {
        self.clients.boxed_bytes()
    }
}

impl Dot1x {
    fn receive(&mut self, context: &mut Context<'_>, client: ClientId, frame: &Frame<'_>) {
        self.run(context, client, |supplicant, context| {
            let times = (context.now, context.unix_time());
            supplicant.handle_frame(times, frame.packet(), || peer_challenge(context))
        });
    }

    /// Calls a supplicant, sends what it says, and sets its timer.
    fn run(
        &mut self,
        context: &mut Context<'_>,
        client: ClientId,
        run: impl FnOnce(&mut Supplicant, &mut Context<'_>) -> Option<Message>,
    ) {
        let (Some(entry), Some(mac)) = (
            self.clients.get_mut(client),
            context.client(client).map(|client| client.mac),
        ) else {
            return;
        };
        let Entry { supplicant, timer } = &mut **entry;
        let before = supplicant.timeout();
        let message = run(supplicant, context);
        if let Some(message) = message {
            let name = supplicant.name(&message);
            let bytes = context.send(mac, PAE_GROUP, EAPOL, message.buffer_len(name));
            message.emit(supplicant.version(), name, bytes);
        }
        let is_armed = *timer != TimerId::NONE && supplicant.timeout() == before;
        if !is_armed {
            context.cancel_timer(*timer);
            *timer = supplicant.timeout().map_or(TimerId::NONE, |timeout| {
                let delay = timeout.saturating_sub(context.now);
                context.set_timer(delay, Some(client), 0)
            });
        }
    }

    /// Where the authentications of clients stand.
    fn infos(
        &mut self,
        context: &mut Context<'_>,
        params: MacParams,
    ) -> Result<Vec<Dot1xInfo>, Error> {
        let infos = params.macs()?.into_iter().map(|mac| {
            let client = context.namespace.clients.by_mac(mac).ok_or_else(|| {
                Error::execution(format!(
                    "Error there is no valid client {mac} for this MAC "
                ))
            })?;
            let supplicant = &self.clients.get(client).ok_or_else(no_plugin)?.supplicant;
            let tunnels = supplicant.tunnels.as_ref();
            Ok(Dot1xInfo {
                state: supplicant.state() as u8,
                method: supplicant.method(),
                eap_version: supplicant.version(),
                tls_version: tunnels.map(|tunnels| tunnels.version.map(|v| v.to_string())),
                reason: tunnels.map(|tunnels| tunnels.reason.as_deref().map(str::to_owned)),
            })
        });
        infos.collect()
    }
}

/// Where the authentication of a client stands.
#[derive(Debug, Serialize, JsonSchema)]
struct Dot1xInfo {
    /// Its state: 1 nobody asked for a name yet, 2 the method is agreed on or carried out, 3 the method is
    /// through, 4 the client is in, 5 it is out.
    state: u8,
    /// The type of the EAP method that was last carried out; 0 for none.
    method: u8,
    /// The version of EAPOL.
    eap_version: u8,
    /// Of methods with TLS: its version, once that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    tls_version: Option<Option<String>>,
    /// Of methods with TLS: why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Option<String>>,
}

fn no_plugin() -> Error {
    Error::execution("Error there is no valid plugin dot1x for this client ")
}

/// Random bytes for a challenge of MS-CHAPv2.
fn peer_challenge(context: &mut Context<'_>) -> [u8; 16] {
    let names = ["dot1x peer challenge high", "dot1x peer challenge low"];
    let mut challenge = [0; 16];
    for (word, name) in challenge.chunks_exact_mut(4).zip(names.into_iter().cycle()) {
        word.copy_from_slice(&context.draw(name).to_be_bytes());
    }
    challenge
}
