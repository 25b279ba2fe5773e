//! TLS of supplicants: clients of 802.1X that log in by EAP-TLS, PEAP and EAP-TTLS.
//!
//! Sessions are never resumed: a client that resumed the session of another would be let in as that.

use std::fmt;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::client::{ClientConnection, Resumption};
use rustls::pki_types::{IpAddr, Ipv4Addr, ServerName};

use super::clock::CoreClock;
use super::library::{provider, versions};
use super::pem::{certificates, own_reason, private_key, roots, wrong};
use super::session::{TlsSession, library_error};
use super::settings::{TlsError, TlsSettings, TlsSettingsError};
use super::verify::{NameCheck, Trust, Verifier};

/// Begins the sessions of clients with equal settings on one core.
pub struct TlsClient {
    config: Arc<ClientConfig>,
    clock: CoreClock,
}

impl fmt::Debug for TlsClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TlsClient").finish_non_exhaustive()
    }
}

impl TlsClient {
    /// What begins sessions with these settings, on the core of this clock.
    ///
    /// # Errors
    /// When a certificate or key cannot be read, or they do not go together; the error names the
    /// field.
    pub fn new(settings: &TlsSettings, clock: &CoreClock) -> Result<TlsClient, TlsSettingsError> {
        let config = Arc::new(config(settings, clock)?);
        let clock = clock.clone();
        Ok(TlsClient { config, clock })
    }

    /// A session, whose first message waits in its `poll_transmit`.
    ///
    /// # Errors
    /// When it cannot begin.
    pub fn session(&self) -> Result<Box<TlsSession>, TlsError> {
        // Who verifies takes no notice of it, and an address is not said to the server.
        let no_name = ServerName::IpAddress(IpAddr::V4(Ipv4Addr::from([0; 4])));
        let connection = ClientConnection::new(Arc::clone(&self.config), no_name);
        let connection = connection.map_err(|error| library_error(&error))?;
        Ok(Box::new(TlsSession::new(
            connection.into(),
            self.clock.clone(),
        )))
    }
}

fn config(settings: &TlsSettings, clock: &CoreClock) -> Result<ClientConfig, TlsSettingsError> {
    let provider = provider();
    let trust = match settings.ca_cert.as_deref() {
        Some(text) => Trust::Roots(roots("ca_cert", text)?),
        None => Trust::Any,
    };
    let checked = settings.server_name.as_deref().map(name).transpose()?;
    let verifier = Verifier::new(
        &provider,
        trust,
        checked.map_or(NameCheck::None, NameCheck::Is),
    );
    let builder = ClientConfig::builder_with_details(provider, Arc::new(clock.clone()))
        .with_protocol_versions(versions(settings.version))
        .expect("the provider has cipher suites of both versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let own = (&settings.client_cert, &settings.private_key);
    let mut config = match own {
        (Some(cert), Some(key)) => {
            let chain = certificates("client_cert", cert)?;
            let key = private_key("private_key", key)?;
            let config = builder.with_client_auth_cert(chain, key);
            config.map_err(|error| wrong("private_key", &own_reason("client_cert", &error)))?
        }
        (None, None) => builder.with_no_client_auth(),
        (Some(_), None) => {
            return Err(wrong(
                "private_key",
                "missing; it goes with client_cert, give both",
            ));
        }
        (None, Some(_)) => {
            return Err(wrong(
                "client_cert",
                "missing; it goes with private_key, give both",
            ));
        }
    };
    config.resumption = Resumption::disabled();
    config.enable_sni = false;
    Ok(config)
}

fn name(name: &str) -> Result<ServerName<'static>, TlsSettingsError> {
    ServerName::try_from(name.to_owned()).map_err(|_| {
        let reason =
            format!("\"{name}\" is no name of a host; give one such as radius.example.org");
        wrong("server_name", &reason)
    })
}
