//! TLS of supplicants: clients of 802.1X that log in by EAP-TLS, PEAP and EAP-TTLS.
//!
//! Sessions are never resumed: a client that resumed the session of another would be let in as that.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{
    ClientConnection, Resumption, verify_server_cert_signed_by_trust_anchor, verify_server_name,
};
use rustls::crypto::{
    WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, IpAddr, Ipv4Addr, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::clock::CoreClock;
use super::pem::{certificates, private_key, roots, wrong};
use super::session::{TlsSession, library_error};
use super::settings::{TlsError, TlsSettings, TlsSettingsError, TlsVersion};

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
    let provider = Arc::new(ring::default_provider());
    let verifier = Verifier {
        roots: settings.ca_cert.as_deref().map(roots).transpose()?,
        name: settings.server_name.as_deref().map(name).transpose()?,
        algorithms: provider.signature_verification_algorithms,
    };
    let versions = match settings.version {
        None => &[&TLS13, &TLS12][..],
        Some(TlsVersion::V1_2) => &[&TLS12],
        Some(TlsVersion::V1_3) => &[&TLS13],
    };
    let builder = ClientConfig::builder_with_details(provider, Arc::new(clock.clone()))
        .with_protocol_versions(versions)
        .expect("the provider has cipher suites of both versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let own = (&settings.client_cert, &settings.private_key);
    let mut config = match own {
        (Some(cert), Some(key)) => {
            let chain = certificates("client_cert", cert)?;
            let key = private_key(key)?;
            let config = builder.with_client_auth_cert(chain, key);
            config.map_err(|error| wrong("private_key", &own_reason(&error)))?
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

/// Why a certificate and its key are refused together.
fn own_reason(error: &Error) -> String {
    match error {
        Error::InconsistentKeys(_) => "is not the key of client_cert; give the one that the \
                                       certificate was made for"
            .to_owned(),
        other => format!("cannot be used ({other}); RSA, P-256, P-384 and Ed25519 can"),
    }
}

fn name(name: &str) -> Result<ServerName<'static>, TlsSettingsError> {
    ServerName::try_from(name.to_owned()).map_err(|_| {
        let reason =
            format!("\"{name}\" is no name of a host; give one such as radius.example.org");
        wrong("server_name", &reason)
    })
}

/// Judges servers: by whom their certificates are signed, and by their name where one is wanted.
#[derive(Debug)]
struct Verifier {
    /// Authorities it trusts; any certificate will do without them.
    roots: Option<RootCertStore>,
    name: Option<ServerName<'static>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(roots) = &self.roots {
            let certificate = ParsedCertificate::try_from(end_entity)?;
            let algorithms = self.algorithms.all;
            verify_server_cert_signed_by_trust_anchor(
                &certificate,
                roots,
                intermediates,
                now,
                algorithms,
            )?;
            if let Some(name) = &self.name {
                verify_server_name(&certificate, name)?;
            }
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match &self.roots {
            Some(_) => verify_tls12_signature(message, certificate, signature, &self.algorithms),
            None => Ok(HandshakeSignatureValid::assertion()),
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match &self.roots {
            Some(_) => verify_tls13_signature(message, certificate, signature, &self.algorithms),
            None => Ok(HandshakeSignatureValid::assertion()),
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
