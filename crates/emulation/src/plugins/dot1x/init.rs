//! The init JSON of clients. Names are those of wpa_supplicant where the reference has none.

use allosaur_engine::time::{Nanos, SECOND};
use allosaur_l7::tls::{TlsSettings, TlsVersion};
use serde_json::{Map, Value};

use super::eap::{Methods, method};
use super::supplicant::{Identity, Supplicant};
use super::ttls::Inner;
use super::tunnel::Tunnels;
use crate::params::{Params, mismatch};
use crate::plugin::{Context, PluginError};

/// Bytes of a name at most (RFC 7542 section 2.3), and of a password (RFC 2759 section 2).
const USER_BYTES_MAX: usize = 253;
const PASSWORD_BYTES_MAX: usize = 256;
/// Bytes of a PEM text at most.
const PEM_BYTES_MAX: usize = 65_536;

const IDLE_S: u32 = 10;
const STARTS_MAX: u32 = 3;
/// Bits of `flags`.
const NO_MD5: u32 = 1;
const NO_MSCHAPV2: u32 = 2;

/// All keys, of clients and of namespaces.
pub(super) const KEYS: [&str; 16] = [
    "user",
    "password",
    "nthash",
    "flags",
    "timeo_idle",
    "max_start",
    "method",
    "phase2",
    "anonymous_identity",
    "ca_cert",
    "verify",
    "server_name",
    "client_cert",
    "private_key",
    "tls_version",
    "fragment_size",
];

/// Methods by the names that users give them.
const METHODS: [(&str, u8); 5] = [
    ("md5", method::MD5),
    ("mschapv2", method::MSCHAPV2),
    ("tls", method::TLS),
    ("peap", method::PEAP),
    ("ttls", method::TTLS),
];

/// Bytes of TLS in a packet, if nothing else is said: with all headers they fit an Ethernet frame,
/// and a RADIUS packet of the server's too.
const FRAGMENT_BYTES: u16 = 1398;
const FRAGMENT_BYTES_MIN: u16 = 100;
const FRAGMENT_BYTES_MAX: u16 = 1480;

/// A supplicant from the init JSON of a client, and that of the namespace for what it does not say.
pub(super) fn supplicant(
    context: &mut Context<'_>,
    defaults: &Map<String, Value>,
    init: &Value,
) -> Result<Supplicant, PluginError> {
    let init = Params::object(init, "dot1x.Dot1xCfg")?;
    if defaults.is_empty() {
        return read(context, init);
    }
    let mut all = defaults.clone();
    let fields = init.fields().into_iter().flatten();
    all.extend(fields.map(|(name, value)| (name.clone(), value.clone())));
    read(context, Params::new(&Value::Object(all)))
}

fn read(context: &mut Context<'_>, init: Params<'_>) -> Result<Supplicant, PluginError> {
    let flags: u32 = init.number_or("flags", 0)?;
    // Read so that a wrong type is an error; the reference does nothing with it either.
    init.string_or("nthash", "")?;
    let or = |name: &str, default: u32| match init.number_or(name, 0) {
        Ok(0) => Ok(default),
        given => given,
    };
    let methods = methods(init, flags)?;
    let identity = Identity {
        user: text(init, "user", USER_BYTES_MAX)?.into(),
        password: text(init, "password", PASSWORD_BYTES_MAX)?.into(),
        methods,
        idle: Nanos::from(or("timeo_idle", IDLE_S)?) * SECOND,
        starts_max: or("max_start", STARTS_MAX)?,
    };
    let tunnels = tunnels(context, init, methods)?.map(Box::new);
    Ok(Supplicant::new(context.now, identity, tunnels))
}

/// A text of limited length.
fn text<'v>(init: Params<'v>, name: &str, bytes_max: usize) -> Result<&'v str, PluginError> {
    let text = init.string_or(name, "")?;
    if text.len() > bytes_max {
        let bytes = text.len();
        return Err(PluginError(format!(
            "{name} has {bytes} bytes; it may have {bytes_max}"
        )));
    }
    Ok(text)
}

fn refused<T>(reason: String) -> Result<T, PluginError> {
    Err(PluginError(reason))
}

/// The methods in their order: by name, or the reference's two without those that flags leave out.
fn methods(init: Params<'_>, flags: u32) -> Result<Methods, PluginError> {
    let Some(value) = init.get("method") else {
        let both = [(method::MD5, NO_MD5), (method::MSCHAPV2, NO_MSCHAPV2)];
        let on = both.into_iter().filter(|(_, off)| flags & off == 0);
        return Ok(on.map(|(method, _)| method).collect());
    };
    if flags != 0 {
        let reason = "flags and method both say which methods there are; leave out flags";
        return refused(reason.to_owned());
    }
    let names = match value {
        Value::Array(names) => names,
        one => std::slice::from_ref(one),
    };
    let mut methods = Methods::default();
    for name in names {
        let name = name.as_str().ok_or_else(|| mismatch(name, "string"))?;
        let known = METHODS.iter().find(|(known, _)| *known == name);
        let Some(&(_, method)) = known else {
            let known = METHODS.map(|(known, _)| known).join(", ");
            return refused(format!(
                "method: \"{name}\" is not known; there are {known}"
            ));
        };
        if !methods.add(method) {
            return refused(format!("method: \"{name}\" is there twice; name it once"));
        }
    }
    if methods.as_slice().is_empty() {
        return refused("method: an empty list; name one, or leave it out".to_owned());
    }
    Ok(methods)
}

/// What methods over TLS need, if there are any. Fields of TLS are passed over where there are none,
/// so that a namespace may have them for some of its clients.
fn tunnels(
    context: &mut Context<'_>,
    init: Params<'_>,
    methods: Methods,
) -> Result<Option<Tunnels>, PluginError> {
    let has = |method| methods.as_slice().contains(&method);
    if ![method::TLS, method::PEAP, method::TTLS]
        .into_iter()
        .any(has)
    {
        return Ok(None);
    }
    let inner = match init.string_or("phase2", "mschapv2")? {
        "mschapv2" => Inner::MsChapV2,
        "pap" if has(method::TTLS) => Inner::Pap,
        "pap" => return refused("phase2: pap is inside ttls only; say mschapv2".to_owned()),
        other => {
            return refused(format!(
                "phase2: \"{other}\" is not known; there are pap, mschapv2"
            ));
        }
    };
    let bytes: u16 = init.number_or("fragment_size", FRAGMENT_BYTES)?;
    if !(FRAGMENT_BYTES_MIN..=FRAGMENT_BYTES_MAX).contains(&bytes) {
        return refused(format!(
            "fragment_size: {bytes}; it is {FRAGMENT_BYTES_MIN} to {FRAGMENT_BYTES_MAX} bytes"
        ));
    }
    let settings = settings(init)?;
    if has(method::TLS) && settings.client_cert.is_none() {
        let reason = "client_cert: missing; tls needs it and private_key, as PEM";
        return refused(reason.to_owned());
    }
    let client = context.tls_client(settings);
    let client = client.map_err(|error| PluginError(error.to_string()))?;
    let anonymous = text(init, "anonymous_identity", USER_BYTES_MAX)?.into();
    Ok(Some(Tunnels::new(client, anonymous, inner, bytes.into())))
}

fn settings(init: Params<'_>) -> Result<TlsSettings, PluginError> {
    let pem = |name| {
        let text = text(init, name, PEM_BYTES_MAX)?;
        Ok::<_, PluginError>((!text.is_empty()).then(|| text.into()))
    };
    let ca_cert = pem("ca_cert")?;
    let server_name = pem("server_name")?;
    let verify = init.bool_or("verify", true)?;
    if verify && ca_cert.is_none() {
        let reason = "ca_cert: missing; give the authority of the server as PEM, or \
                      \"verify\": false to trust any server";
        return refused(reason.to_owned());
    }
    if !verify && server_name.is_some() {
        let reason = "server_name: nothing of the server is verified; leave out \"verify\": false";
        return refused(reason.to_owned());
    }
    let version = match init.get("tls_version").map(Value::as_str) {
        None => None,
        Some(Some("1.2")) => Some(TlsVersion::V1_2),
        Some(Some("1.3")) => Some(TlsVersion::V1_3),
        Some(_) => {
            let reason = "tls_version: it is \"1.2\" or \"1.3\"; leave it out for both";
            return refused(reason.to_owned());
        }
    };
    Ok(TlsSettings {
        ca_cert: ca_cert.filter(|_| verify),
        server_name,
        client_cert: pem("client_cert")?,
        private_key: pem("private_key")?,
        version,
    })
}
