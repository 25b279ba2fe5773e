//! Which certificates of servers are good.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

/// Whose certificates are good.
#[derive(Debug)]
pub(super) enum Trust {
    /// Any: neither certificate nor signature is looked at.
    Any,
    /// Those that lead to one of these authorities.
    Roots(RootCertStore),
    /// One of these certificates, whatever it says.
    Pinned(Vec<CertificateDer<'static>>),
}

/// The name that must be in a certificate that leads to an authority.
#[derive(Debug)]
pub(super) enum NameCheck {
    /// Any.
    None,
    /// This one.
    Is(ServerName<'static>),
    /// That which the connection asks for.
    Asked,
}

/// Judges servers.
#[derive(Debug)]
pub(super) struct Verifier {
    trust: Trust,
    name: NameCheck,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    pub(super) fn new(provider: &CryptoProvider, trust: Trust, name: NameCheck) -> Verifier {
        Verifier {
            trust,
            name,
            algorithms: provider.signature_verification_algorithms,
        }
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match &self.trust {
            Trust::Any => {}
            Trust::Pinned(pins) if pins.iter().any(|pin| pin == end_entity) => {}
            Trust::Pinned(_) => {
                let refused = CertificateError::ApplicationVerificationFailure;
                return Err(Error::InvalidCertificate(refused));
            }
            Trust::Roots(roots) => {
                let certificate = ParsedCertificate::try_from(end_entity)?;
                let algorithms = self.algorithms.all;
                verify_server_cert_signed_by_trust_anchor(
                    &certificate,
                    roots,
                    intermediates,
                    now,
                    algorithms,
                )?;
                match &self.name {
                    NameCheck::None => {}
                    NameCheck::Is(name) => verify_server_name(&certificate, name)?,
                    NameCheck::Asked => verify_server_name(&certificate, server_name)?,
                }
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
        match &self.trust {
            Trust::Any => Ok(HandshakeSignatureValid::assertion()),
            _ => verify_tls12_signature(message, certificate, signature, &self.algorithms),
        }
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        match &self.trust {
            Trust::Any => Ok(HandshakeSignatureValid::assertion()),
            _ => verify_tls13_signature(message, certificate, signature, &self.algorithms),
        }
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
