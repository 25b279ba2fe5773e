//! TLS of the flows of one side of a template: what is asked for, and what the library makes of it on
//! each core.

use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{ClientConfig, KeyLog, ServerConfig};

use super::clock::CoreClock;
use super::groups::GROUPS;
use super::identity::Identity;
use super::library::{provider, versions};
use super::pem::{certificates, own_reason, private_key, roots, wrong};
use super::resumption::{ClientSessions, Tickets};
use super::settings::{TlsSettingsError, TlsVersion};
use super::verify::{NameCheck, Trust, Verifier};

/// What clients want of the certificates of servers; texts are PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// Nothing: neither certificate nor signature is looked at.
    #[default]
    Off,
    /// That they lead to one of these authorities, and have the name that was asked for.
    Authorities(String),
    /// That they are one of these.
    Pinned(String),
}

/// What both sides choose.
#[derive(Clone, Debug, Default)]
pub struct FlowTls {
    /// The only version; both if there is none.
    pub version: Option<TlsVersion>,
    /// Cipher suites, by the names of IANA; all that there are if there is none.
    pub suites: Vec<String>,
    /// Groups that keys are exchanged over, by the names of IANA, the best first; all that there are if
    /// there is none.
    pub groups: Vec<String>,
    /// Protocols of the application, the best first (ALPN).
    pub alpn: Vec<String>,
    /// Where the secrets of sessions are told, for who reads captures.
    pub key_log: Option<Arc<dyn KeyLines>>,
}

/// TLS of clients.
#[derive(Clone, Debug, Default)]
pub struct ClientTls {
    /// What both sides choose.
    pub common: FlowTls,
    /// The name of the server: it is said (SNI), and verified where that is on. The server's address
    /// if there is none, which is not said.
    pub server_name: Option<String>,
    /// What certificates of servers must be.
    pub verify: Verify,
    /// The client's own certificate, for servers that ask for one.
    pub identity: Option<Identity>,
    /// The share of connections that resume a session where one is known, 0 to 1.
    pub resume: f64,
}

/// TLS of servers.
#[derive(Clone, Debug)]
pub struct ServerTls {
    /// What both sides choose.
    pub common: FlowTls,
    /// The server's certificate.
    pub identity: Identity,
    /// Authorities of the certificates that clients must show, as PEM; none are asked for if there is none.
    pub authorities: Option<String>,
    /// Whether clients may resume sessions.
    pub resume: bool,
}

/// Takes lines of a key log, in the format of NSS. It is called by data threads and must not wait.
pub trait KeyLines: std::fmt::Debug + Send + Sync {
    /// One more line, without its end.
    fn write(&self, line: String);
}

/// The key log as the library wants it.
#[derive(Debug)]
struct Lines(Arc<dyn KeyLines>);

impl KeyLog for Lines {
    /// All but the secret of early data: nobody sends any, and the library tells it of servers.
    fn will_log(&self, label: &str) -> bool {
        label != "CLIENT_EARLY_TRAFFIC_SECRET"
    }

    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let (random, secret) = (hex(client_random), hex(secret));
        self.0.write(format!("{label} {random} {secret}"));
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What both sides choose, checked.
#[derive(Clone, Debug)]
struct Checked {
    provider: Arc<CryptoProvider>,
    version: Option<TlsVersion>,
    alpn: Vec<Vec<u8>>,
    key_log: Option<Arc<dyn KeyLines>>,
}

impl FlowTls {
    fn check(&self) -> Result<Checked, TlsSettingsError> {
        let mut provider = CryptoProvider::clone(&provider());
        let known: Vec<_> = provider
            .cipher_suites
            .iter()
            .map(|suite| suite.suite())
            .collect();
        let name = |suite: &rustls::CipherSuite| suite.as_str().unwrap_or_default().to_owned();
        for wanted in &self.suites {
            if !known.iter().any(|suite| name(suite) == *wanted) {
                let all: Vec<_> = known.iter().map(name).collect();
                let reason = format!("\"{wanted}\" is not known; there are {}", all.join(", "));
                return Err(wrong("suites", &reason));
            }
        }
        if !self.suites.is_empty() {
            let is_wanted = |suite| self.suites.contains(&name(&suite));
            provider
                .cipher_suites
                .retain(|suite| is_wanted(suite.suite()));
        }
        if !self.groups.is_empty() {
            provider.kx_groups = self.groups.iter().map(group).collect::<Result<_, _>>()?;
        }
        let only = versions(self.version);
        let serves = |suite: &rustls::SupportedCipherSuite| only.contains(&suite.version());
        if !provider.cipher_suites.iter().any(serves) {
            let reason = "has none for that version; leave out version or suites";
            return Err(wrong("suites", reason));
        }
        let exchanges = |group: &&dyn SupportedKxGroup| {
            let versions = only.iter().map(|version| version.version);
            versions
                .into_iter()
                .any(|version| group.usable_for_version(version))
        };
        if !provider.kx_groups.iter().any(exchanges) {
            let reason = "has none for that version; leave out version or groups";
            return Err(wrong("groups", reason));
        }
        for protocol in &self.alpn {
            if protocol.is_empty() || protocol.len() > 255 {
                let reason = format!("\"{protocol}\" must have 1 to 255 bytes, such as http/1.1");
                return Err(wrong("alpn", &reason));
            }
        }
        Ok(Checked {
            provider: Arc::new(provider),
            version: self.version,
            alpn: self
                .alpn
                .iter()
                .map(|name| name.clone().into_bytes())
                .collect(),
            key_log: self.key_log.clone(),
        })
    }
}

/// The group of that name.
fn group(wanted: &String) -> Result<&'static dyn SupportedKxGroup, TlsSettingsError> {
    let found = GROUPS.iter().find(|(name, _)| name == wanted);
    found.map(|(_, group)| *group).ok_or_else(|| {
        let all = GROUPS.map(|(name, _)| name).join(", ");
        let reason = format!("\"{wanted}\" is not known; there are {all}");
        wrong("groups", &reason)
    })
}

impl Checked {
    fn key_log(&self) -> Arc<dyn KeyLog> {
        match &self.key_log {
            Some(lines) => Arc::new(Lines(Arc::clone(lines))),
            None => Arc::new(rustls::NoKeyLog),
        }
    }
}

/// A certificate and its key, read.
#[derive(Debug)]
struct Own(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

impl Own {
    fn read(identity: &Identity) -> Result<Own, TlsSettingsError> {
        let chain = certificates("certificate", &identity.certificate)?;
        Ok(Own(chain, private_key("key", &identity.key)?))
    }

    fn parts(&self) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        (self.0.clone(), self.1.clone_key())
    }
}

/// The TLS of a side, checked: configurations of cores are made of it.
#[derive(Debug)]
pub(super) enum CheckedSide {
    Client(CheckedClient),
    Server(CheckedServer),
}

/// That of clients.
#[derive(Debug)]
pub(super) struct CheckedClient {
    common: Checked,
    pub(super) server_name: Option<ServerName<'static>>,
    verify: Verify,
    own: Option<Own>,
    pub(super) resume: f64,
}

/// That of servers.
#[derive(Debug)]
pub(super) struct CheckedServer {
    common: Checked,
    own: Own,
    authorities: Option<String>,
    tickets: Option<Arc<Tickets>>,
}

impl CheckedClient {
    pub(super) fn new(tls: &ClientTls) -> Result<CheckedClient, TlsSettingsError> {
        let name = tls.server_name.as_ref().map(|name| {
            ServerName::try_from(name.clone()).map_err(|_| {
                let reason =
                    format!("\"{name}\" is no name of a host; give one such as example.org");
                wrong("server_name", &reason)
            })
        });
        if !(0.0..=1.0).contains(&tls.resume) {
            let reason = format!("must be a share from 0 to 1, not {}", tls.resume);
            return Err(wrong("resume", &reason));
        }
        let checked = CheckedClient {
            common: tls.common.check()?,
            server_name: name.transpose()?,
            verify: tls.verify.clone(),
            own: tls.identity.as_ref().map(Own::read).transpose()?,
            resume: tls.resume,
        };
        checked.build(&CoreClock::default())?;
        Ok(checked)
    }

    /// The configuration of a core, and what its clients remember.
    pub(super) fn build(
        &self,
        clock: &CoreClock,
    ) -> Result<(Arc<ClientConfig>, Option<Arc<ClientSessions>>), TlsSettingsError> {
        let trust = match &self.verify {
            Verify::Off => Trust::Any,
            Verify::Authorities(text) => Trust::Roots(roots("authorities", text)?),
            Verify::Pinned(text) => Trust::Pinned(certificates("pinned", text)?),
        };
        let common = &self.common;
        let provider = Arc::clone(&common.provider);
        let verifier = Verifier::new(&provider, trust, NameCheck::Asked);
        let builder = ClientConfig::builder_with_details(provider, Arc::new(clock.clone()))
            .with_protocol_versions(versions(common.version))
            .expect("there is a suite of these versions")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match &self.own {
            None => builder.with_no_client_auth(),
            Some(own) => {
                let (chain, key) = own.parts();
                let config = builder.with_client_auth_cert(chain, key);
                config.map_err(|error| wrong("key", &own_reason("certificate", &error)))?
            }
        };
        let sessions = (self.resume > 0.0).then(|| Arc::new(ClientSessions::new()));
        config.resumption = match &sessions {
            Some(sessions) => Resumption::store(Arc::clone(sessions) as _),
            None => Resumption::disabled(),
        };
        config.alpn_protocols.clone_from(&common.alpn);
        config.key_log = common.key_log();
        Ok((Arc::new(config), sessions))
    }
}

impl CheckedServer {
    pub(super) fn new(tls: &ServerTls) -> Result<CheckedServer, TlsSettingsError> {
        let no_random = || wrong("tickets", "cannot be: the system gives no random numbers");
        let tickets = tls
            .resume
            .then(|| Tickets::new().map(Arc::new).ok_or_else(no_random));
        let checked = CheckedServer {
            common: tls.common.check()?,
            own: Own::read(&tls.identity)?,
            authorities: tls.authorities.clone(),
            tickets: tickets.transpose()?,
        };
        checked.build(&CoreClock::default())?;
        Ok(checked)
    }

    /// Who judges the certificates of clients, if they must show any.
    fn client_verifier(&self) -> Result<Option<Arc<dyn ClientCertVerifier>>, TlsSettingsError> {
        let Some(text) = &self.authorities else {
            return Ok(None);
        };
        let roots = Arc::new(roots("authorities", text)?);
        let provider = Arc::clone(&self.common.provider);
        let built = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
        let built = built.map_err(|error| wrong("authorities", &error.to_string()));
        built.map(Some)
    }

    /// The configuration of a core.
    pub(super) fn build(&self, clock: &CoreClock) -> Result<Arc<ServerConfig>, TlsSettingsError> {
        let common = &self.common;
        let provider = Arc::clone(&common.provider);
        let (chain, key) = self.own.parts();
        let clients = self.client_verifier()?;
        let builder = ServerConfig::builder_with_details(provider, Arc::new(clock.clone()))
            .with_protocol_versions(versions(common.version))
            .expect("there is a suite of these versions");
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(clients) => builder.with_client_cert_verifier(clients),
        };
        let config = builder.with_single_cert(chain, key);
        let mut config =
            config.map_err(|error| wrong("key", &own_reason("certificate", &error)))?;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        match &self.tickets {
            Some(tickets) => config.ticketer = Arc::clone(tickets) as _,
            None => config.send_tls13_tickets = 0,
        }
        config.alpn_protocols.clone_from(&common.alpn);
        config.key_log = common.key_log();
        Ok(Arc::new(config))
    }
}
