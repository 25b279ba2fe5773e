//! TLS 1.2 and 1.3 of emulated clients, by rustls.
//!
//! Sessions are never resumed: a client that resumed the session of another would be let in as that.

use std::fmt;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use allosaur_emulation::tls::{
    TlsClient, TlsError, TlsSession, TlsSettings, TlsSettingsError, TlsVersion,
};
use allosaur_engine::time::Nanos;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{
    ClientConnection, Resumption, verify_server_cert_signed_by_trust_anchor, verify_server_name,
};
use rustls::crypto::{
    WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, IpAddr, Ipv4Addr, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::time_provider::TimeProvider;
use rustls::version::{TLS12, TLS13};
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, ProtocolVersion, RootCertStore, SignatureScheme,
};

/// Bytes that are taken out of the tunnel at once.
const CHUNK: usize = 1024;

/// What begins sessions with these settings.
///
/// # Errors
/// When a certificate or key cannot be read, or they do not go together; the error names the field.
pub fn client(settings: &TlsSettings) -> Result<Arc<dyn TlsClient>, TlsSettingsError> {
    let clock = Arc::new(GivenTime::default());
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
    let builder = ClientConfig::builder_with_details(provider, Arc::clone(&clock) as _)
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
    let config = Arc::new(config);
    Ok(Arc::new(Client { config, clock }))
}

fn wrong(field: &'static str, reason: &str) -> TlsSettingsError {
    TlsSettingsError {
        field,
        reason: reason.to_owned(),
    }
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

fn certificates(
    field: &'static str,
    pem: &str,
) -> Result<Vec<CertificateDer<'static>>, TlsSettingsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    let found = found.map_err(|error| wrong(field, &format!("is not PEM: {error}")))?;
    if found.is_empty() {
        return Err(wrong(
            field,
            "has no certificate; give the text of a PEM file, with its BEGIN CERTIFICATE line",
        ));
    }
    Ok(found)
}

fn private_key(pem: &str) -> Result<PrivateKeyDer<'static>, TlsSettingsError> {
    PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| {
        let reason = if pem.contains("ENCRYPTED") {
            "is encrypted; give it decrypted (openssl pkey -in FILE)"
        } else {
            "has no private key; give the text of a PEM file, with its BEGIN PRIVATE KEY line"
        };
        wrong("private_key", reason)
    })
}

fn roots(pem: &str) -> Result<RootCertStore, TlsSettingsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("ca_cert", pem)? {
        roots.add(certificate).map_err(|error| {
            let reason = format!("has a certificate that cannot be read ({error})");
            wrong("ca_cert", &reason)
        })?;
    }
    Ok(roots)
}

fn name(name: &str) -> Result<ServerName<'static>, TlsSettingsError> {
    ServerName::try_from(name.to_owned()).map_err(|_| {
        let reason =
            format!("\"{name}\" is no name of a host; give one such as radius.example.org");
        wrong("server_name", &reason)
    })
}

/// The time of the session that is being called.
#[derive(Debug, Default)]
struct GivenTime(AtomicU64);

impl TimeProvider for GivenTime {
    fn current_time(&self) -> Option<UnixTime> {
        let now = Duration::from_nanos(self.0.load(Ordering::Relaxed));
        Some(UnixTime::since_unix_epoch(now))
    }
}

/// Judges servers: by whom their certificates are signed, and by their name where one is wanted.
#[derive(Debug)]
struct Verifier {
    /// Whom it trusts; everybody if there are none.
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

struct Client {
    config: Arc<ClientConfig>,
    clock: Arc<GivenTime>,
}

impl TlsClient for Client {
    fn session(&self) -> Result<Box<dyn TlsSession>, TlsError> {
        // Who verifies takes no notice of it, and an address is not said to the server.
        let nobody = ServerName::IpAddress(IpAddr::V4(Ipv4Addr::from([0; 4])));
        let connection = ClientConnection::new(Arc::clone(&self.config), nobody);
        let connection = connection.map_err(|error| over(&error))?;
        let clock = Arc::clone(&self.clock);
        Ok(Box::new(Session { connection, clock }))
    }
}

struct Session {
    connection: ClientConnection,
    clock: Arc<GivenTime>,
}

impl fmt::Debug for Session {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Session").finish_non_exhaustive()
    }
}

fn over(error: &Error) -> TlsError {
    let text = error.to_string();
    match error {
        Error::InvalidCertificate(_) => TlsError::Certificate(text),
        Error::AlertReceived(_) => TlsError::Alert(text),
        _ => TlsError::Protocol(text),
    }
}

impl TlsSession for Session {
    fn handle_bytes(
        &mut self,
        unix_time: Nanos,
        mut bytes: &[u8],
        plaintext: &mut Vec<u8>,
    ) -> Result<(), TlsError> {
        self.clock.0.store(unix_time, Ordering::Relaxed);
        while !bytes.is_empty() {
            let read = self.connection.read_tls(&mut bytes);
            let read = read.map_err(|error| TlsError::Protocol(error.to_string()))?;
            let state = self.connection.process_new_packets();
            let state = state.map_err(|error| over(&error))?;
            let waiting = state.plaintext_bytes_to_read();
            for _ in 0..waiting.div_ceil(CHUNK) {
                let mut chunk = [0; CHUNK];
                // All that waits is there; an end of the peer's is no error of this message.
                let count = self.connection.reader().read(&mut chunk).unwrap_or(0);
                plaintext.extend_from_slice(&chunk[..count]);
            }
            if read == 0 {
                let reason = "bytes behind the end of the session";
                return Err(TlsError::Protocol(reason.to_owned()));
            }
        }
        Ok(())
    }

    fn poll_transmit(&mut self, records: &mut Vec<u8>) {
        while self.connection.wants_write() {
            let written = self.connection.write_tls(records);
            written.expect("memory takes all that is written to it");
        }
    }

    fn send(&mut self, plaintext: &[u8]) -> Result<(), TlsError> {
        use std::io::Write;
        let written = self.connection.writer().write_all(plaintext);
        written.map_err(|error| TlsError::Protocol(error.to_string()))
    }

    fn is_established(&self) -> bool {
        !self.connection.is_handshaking()
    }

    fn version(&self) -> Option<TlsVersion> {
        match self.connection.protocol_version()? {
            ProtocolVersion::TLSv1_2 => Some(TlsVersion::V1_2),
            ProtocolVersion::TLSv1_3 => Some(TlsVersion::V1_3),
            _ => None,
        }
    }

    fn export_keying_material(&self, label: &[u8], output: &mut [u8]) -> Result<(), TlsError> {
        let exported = self
            .connection
            .export_keying_material(output, label, None)
            .map(|_| ());
        exported.map_err(|error| over(&error))
    }
}
