//! 802.1X: clients are supplicants, which a switch lets in by EAP-MD5 or MS-CHAPv2.

mod eap;
mod supplicant;

use std::any::Any;

use allosaur_engine::time::{Nanos, SECOND};
use allosaur_packet::MacAddress;
use allosaur_packet::link::ethernet::EtherType;
use serde_json::{Value, json};

use crate::client::{ClientId, ClientMap};
use crate::counters;
use crate::frame::{Frame, FrameKind};
use crate::params::{Params, RpcError, bytes, failed_check};
use crate::plugin::{Call, Context, Keys, Method, Plugin, PluginError, Spec, Target, Timeout};
use crate::timers::TimerId;

use eap::Message;
use supplicant::{Identity, State, Supplicant};

/// The description of the plugin.
pub static SPEC: Spec = Spec {
    name: "dot1x",
    frames: &[FrameKind::Eapol],
    methods: &[
        Method {
            name: "dot1x_client_cnt",
            target: Target::Client,
            needs_api: true,
        },
        Method {
            name: "dot1x_client_info",
            target: Target::Namespace,
            needs_api: true,
        },
    ],
    keys: Keys::Own,
    create: |_, _| Ok(Box::<Dot1x>::default()),
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

/// Bytes of a name at most (RFC 7542 section 2.3), and of a password (RFC 2759 section 2).
const USER_BYTES_MAX: usize = 253;
const PASSWORD_BYTES_MAX: usize = 256;

const IDLE_S: u32 = 10;
const STARTS_MAX: u32 = 3;
/// Bits of `flags` in the init JSON.
const NO_MD5: u32 = 1;
const NO_MSCHAPV2: u32 = 2;

/// A client, and the timer by which it is called.
struct Entry {
    supplicant: Supplicant,
    timer: TimerId,
}

/// 802.1X in a namespace.
#[derive(Default)]
struct Dot1x {
    clients: ClientMap<Box<Entry>>,
}

impl Plugin for Dot1x {
    fn add_client(
        &mut self,
        context: &mut Context<'_>,
        client: ClientId,
        init: &Value,
    ) -> Result<(), PluginError> {
        let supplicant = Supplicant::new(context.now, identity(init)?);
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
                self.hear(context, client, frame);
            }
        } else if let Some(client) = context.namespace.clients.by_mac(destination) {
            self.hear(context, client, frame);
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

    fn call(&mut self, context: &mut Context<'_>, call: &Call<'_>) -> Result<Value, RpcError> {
        if call.method == "dot1x_client_info" {
            return self.infos(context, call.params);
        }
        let client = call.client.and_then(|client| self.clients.get_mut(client));
        let client = client.ok_or_else(no_plugin)?;
        counters::report(call.params, &mut [&mut client.supplicant.counters])
    }

    fn missing(&self, client: ClientId, _is_ipv6: bool) -> Option<&'static str> {
        let supplicant = &self.clients.get(client)?.supplicant;
        (supplicant.state() != State::Authenticated).then_some("a login by 802.1X")
    }

    fn table_bytes(&self) -> usize {
        self.clients.boxed_bytes()
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

impl Dot1x {
    fn hear(&mut self, context: &mut Context<'_>, client: ClientId, frame: &Frame<'_>) {
        self.run(context, client, |supplicant, context| {
            supplicant.handle_frame(context.now, frame.packet(), || peer_challenge(context))
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
            let user = &supplicant.identity.user;
            let bytes = context.send(mac, PAE_GROUP, EAPOL, message.buffer_len(user));
            message.emit(supplicant.version(), user, bytes);
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
    fn infos(&self, context: &Context<'_>, params: &Value) -> Result<Value, RpcError> {
        let macs = Params::new(params).list("macs", "[]core.MACKey")?;
        let macs = macs.ok_or_else(|| failed_check("RpcCmdMacs", "MACKeys", "required"))?;
        let infos = macs.iter().map(|mac| {
            let mac = MacAddress(bytes(mac, "core.MACKey")?);
            let client = context.namespace.clients.by_mac(mac).ok_or_else(|| {
                RpcError::new(format!(
                    "Error there is no valid client {mac} for this MAC "
                ))
            })?;
            let supplicant = &self.clients.get(client).ok_or_else(no_plugin)?.supplicant;
            Ok(json!({
                "state": supplicant.state() as u8,
                "method": supplicant.method(),
                "eap_version": supplicant.version(),
            }))
        });
        infos.collect()
    }
}

fn no_plugin() -> RpcError {
    RpcError::new("Error there is no valid plugin dot1x for this client ")
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

/// Reads the init JSON of a client.
fn identity(init: &Value) -> Result<Identity, PluginError> {
    let init = Params::object(init, "dot1x.Dot1xCfg")?;
    let text = |name: &str, bytes_max: usize| {
        let text = init.string_or(name, "")?;
        if text.len() > bytes_max {
            let bytes = text.len();
            return Err(PluginError(format!(
                "{name} has {bytes} bytes; it may have {bytes_max}"
            )));
        }
        Ok(text.into())
    };
    let flags: u32 = init.number_or("flags", 0)?;
    // Read so that a wrong type is an error; the reference does nothing with it either.
    init.string_or("nthash", "")?;
    let or = |name: &str, default: u32| match init.number_or(name, 0) {
        Ok(0) => Ok(default),
        given => given,
    };
    Ok(Identity {
        user: text("user", USER_BYTES_MAX)?,
        password: text("password", PASSWORD_BYTES_MAX)?,
        md5: flags & NO_MD5 == 0,
        mschapv2: flags & NO_MSCHAPV2 == 0,
        idle: Nanos::from(or("timeo_idle", IDLE_S)?) * SECOND,
        starts_max: or("max_start", STARTS_MAX)?,
    })
}
