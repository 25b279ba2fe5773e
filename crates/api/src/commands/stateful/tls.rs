//! `tls` of a template's side: its program runs over TLS. Allosaur's own.
//!
//! A field that nobody knows is an error here: who misspells `pinned` would verify nothing.

use super::values::{flag, refuse_unknown, strings, text};
use crate::fields::{FieldError, Fields};

/// The name in a certificate that is made for a server without one of its own.
const MADE_NAME: &str = "localhost";

/// What both sides choose.
#[derive(Clone, Debug, PartialEq)]
pub struct TlsCommonFields {
    /// `version`: the only one, `1.2` or `1.3`; both if it is missing.
    pub version: Option<&'static str>,
    /// `suites`: cipher suites by the names of IANA; all that there are if it is missing.
    pub suites: Vec<String>,
    /// `groups`: those that keys are exchanged over, by the names of IANA, the best first; all that there
    /// are if it is missing.
    pub groups: Vec<String>,
    /// `alpn`: protocols of the application, the best first.
    pub alpn: Vec<String>,
    /// `key_log`: the file of the server's machine that the secrets of sessions are appended to.
    pub key_log: Option<String>,
}

/// A certificate with its key, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct TlsIdentity {
    /// `certificate`: it, and those that lead to an authority.
    pub certificate: String,
    /// `key`.
    pub key: String,
}

/// Without the key.
impl std::fmt::Debug for TlsIdentity {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let identity = &mut formatter.debug_struct("TlsIdentity");
        identity.finish_non_exhaustive()
    }
}

/// What clients want of the certificates of servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsTrust {
    /// Nothing.
    Any,
    /// `authorities`, as PEM: certificates lead to one of them, and have the server's name.
    Authorities(String),
    /// `pinned`, as PEM: certificates are one of these.
    Pinned(String),
}

/// TLS of a template's clients.
#[derive(Clone, Debug, PartialEq)]
pub struct TlsClientFields {
    /// What both sides choose.
    pub common: TlsCommonFields,
    /// `server_name`: said to the server (SNI), and verified.
    pub server_name: Option<String>,
    /// `authorities`, or `pinned`.
    pub trust: TlsTrust,
    /// `certificate` and `key`: the client's own.
    pub identity: Option<TlsIdentity>,
    /// `resume`: the share of connections that resume a session, 0 to 1.
    pub resume: f64,
}

/// TLS of a template's servers.
#[derive(Clone, Debug, PartialEq)]
pub struct TlsServerFields {
    /// What both sides choose.
    pub common: TlsCommonFields,
    /// `certificate` and `key`, or what is made in their place.
    pub identity: TlsServerIdentity,
    /// `authorities`, as PEM: certificates of clients, which must show one, lead to one of them.
    pub authorities: Option<String>,
    /// `tickets`: whether clients may resume sessions.
    pub tickets: bool,
}

/// What a server shows of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsServerIdentity {
    /// A certificate of the user's.
    Given(TlsIdentity),
    /// One that is made when the profile is read, signed by itself.
    Made {
        /// `certificate_kind`: the kind of its key.
        kind: &'static str,
        /// `server_name`: the name in it.
        name: String,
    },
}

const COMMON: [&str; 7] = [
    "version",
    "suites",
    "groups",
    "alpn",
    "certificate",
    "key",
    "key_log",
];
const CLIENT: [&str; 4] = ["server_name", "authorities", "pinned", "resume"];
const SERVER: [&str; 4] = ["server_name", "certificate_kind", "authorities", "tickets"];
/// Of which kinds the keys of made certificates may be.
const KINDS: [&str; 3] = ["p256", "p384", "ed25519"];
/// Makes a certificate with a key of RSA.
const MAKE_RSA: &str = "openssl req -x509 -newkey rsa:2048 -nodes -keyout server.key -out server.pem \
                        -subj /CN=site.example -addext subjectAltName=DNS:site.example";

impl TlsClientFields {
    /// Reads the TLS of clients.
    pub(super) fn parse(fields: &Fields<'_>, name: &str) -> Result<TlsClientFields, FieldError> {
        let fields = fields.object(name)?;
        refuse_others(&fields, &CLIENT, &SERVER, "the server's side")?;
        let authorities = fields.optional("authorities", text)?;
        let pinned = fields.optional("pinned", text)?;
        Ok(TlsClientFields {
            common: TlsCommonFields::parse(&fields)?,
            server_name: fields.optional("server_name", text)?,
            trust: match (authorities, pinned) {
                (None, None) => TlsTrust::Any,
                (Some(authorities), None) => TlsTrust::Authorities(authorities),
                (None, Some(pinned)) => TlsTrust::Pinned(pinned),
                (Some(_), Some(_)) => {
                    let problem = "stands beside authorities: leave one of the two out";
                    return Err(fields.bad("pinned", problem));
                }
            },
            identity: identity(&fields)?,
            resume: fields.optional("resume", share)?.unwrap_or(0.0),
        })
    }
}

impl TlsServerFields {
    /// Reads the TLS of servers.
    pub(super) fn parse(fields: &Fields<'_>, name: &str) -> Result<TlsServerFields, FieldError> {
        let fields = fields.object(name)?;
        refuse_others(&fields, &SERVER, &CLIENT, "the client's side")?;
        let kind = fields.optional("certificate_kind", key_kind)?;
        let name = fields.optional("server_name", text)?;
        let identity = match identity(&fields)? {
            None => TlsServerIdentity::Made {
                kind: kind.unwrap_or(KINDS[0]),
                name: name.unwrap_or_else(|| MADE_NAME.to_owned()),
            },
            Some(given) => {
                for (field, is_given) in [
                    ("certificate_kind", kind.is_some()),
                    ("server_name", name.is_some()),
                ] {
                    let problem =
                        "is for a certificate that is made, and one is given: leave it out";
                    if is_given {
                        return Err(fields.bad(field, problem));
                    }
                }
                TlsServerIdentity::Given(given)
            }
        };
        Ok(TlsServerFields {
            common: TlsCommonFields::parse(&fields)?,
            identity,
            authorities: fields.optional("authorities", text)?,
            tickets: fields.optional("tickets", flag)?.unwrap_or(true),
        })
    }
}

impl TlsCommonFields {
    fn parse(fields: &Fields<'_>) -> Result<TlsCommonFields, FieldError> {
        let version = |fields: &Fields<'_>, name: &str| fields.one_of(name, &["1.2", "1.3"]);
        let list = |name: &str| -> Result<Vec<String>, FieldError> {
            let given = strings(fields, name)?;
            Ok(given.into_iter().map(str::to_owned).collect())
        };
        Ok(TlsCommonFields {
            version: fields.optional("version", version)?,
            suites: list("suites")?,
            groups: list("groups")?,
            alpn: list("alpn")?,
            key_log: fields.optional("key_log", file_name)?,
        })
    }
}

fn refuse_others(
    fields: &Fields<'_>,
    own: &[&str],
    others: &[&str],
    other_side: &str,
) -> Result<(), FieldError> {
    let known = [&COMMON[..], own].concat();
    let unknown = fields.names().find(|name| !known.contains(name));
    if let Some(name) = unknown.filter(|name| others.contains(name)) {
        let problem = format!("is a field of {other_side}: give it there, or leave it out");
        return Err(fields.bad(name, problem));
    }
    refuse_unknown(fields, &known)
}

/// The kind of a key that is made. Keys of RSA are none: it says how to have one nevertheless.
fn key_kind(fields: &Fields<'_>, name: &str) -> Result<&'static str, FieldError> {
    let given = fields.string(name)?;
    if !given.to_ascii_lowercase().starts_with("rsa") {
        return fields.one_of(name, &KINDS);
    }
    let problem = format!(
        "is {given}; keys of RSA are not made here: make one by `{MAKE_RSA}`, and give the two files as \
         certificate and key, or one of {}",
        KINDS.join(", ")
    );
    Err(fields.bad(name, problem))
}

fn file_name(fields: &Fields<'_>, name: &str) -> Result<String, FieldError> {
    match fields.string(name)? {
        "" => Err(fields.bad(name, "is empty: give the name of a file, or leave it out")),
        path => Ok(path.to_owned()),
    }
}

fn share(fields: &Fields<'_>, name: &str) -> Result<f64, FieldError> {
    let share = fields.double(name)?;
    if (0.0..=1.0).contains(&share) {
        return Ok(share);
    }
    Err(fields.bad(name, format!("is {share}; it must be a share from 0 to 1")))
}

fn identity(fields: &Fields<'_>) -> Result<Option<TlsIdentity>, FieldError> {
    let certificate = fields.optional("certificate", text)?;
    let key = fields.optional("key", text)?;
    match (certificate, key) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => Ok(Some(TlsIdentity { certificate, key })),
        (Some(_), None) => {
            Err(fields.bad("key", "is missing; it goes with certificate: give both"))
        }
        (None, Some(_)) => {
            Err(fields.bad("certificate", "is missing; it goes with key: give both"))
        }
    }
}
