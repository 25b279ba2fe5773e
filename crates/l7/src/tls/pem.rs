//! Certificates and keys of a user's PEM texts.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{Error, RootCertStore};

use super::settings::TlsSettingsError;

/// A field that is wrong.
pub(super) fn wrong(field: &'static str, reason: &str) -> TlsSettingsError {
    TlsSettingsError {
        field,
        reason: reason.to_owned(),
    }
}

/// The certificates of a text.
pub(super) fn certificates(
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

/// The key of a text.
pub(super) fn private_key(
    field: &'static str,
    pem: &str,
) -> Result<PrivateKeyDer<'static>, TlsSettingsError> {
    PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| {
        let reason = if pem.contains("ENCRYPTED") {
            "is encrypted; give it decrypted (openssl pkey -in FILE)"
        } else {
            "has no private key; give the text of a PEM file, with its BEGIN PRIVATE KEY line"
        };
        wrong(field, reason)
    })
}

/// The authorities of a text.
pub(super) fn roots(field: &'static str, pem: &str) -> Result<RootCertStore, TlsSettingsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(field, pem)? {
        roots.add(certificate).map_err(|error| {
            let reason = format!("has a certificate that cannot be read ({error})");
            wrong(field, &reason)
        })?;
    }
    Ok(roots)
}

/// Why a certificate and its key are refused together.
pub(super) fn own_reason(certificate: &str, error: &Error) -> String {
    match error {
        Error::InconsistentKeys(_) => format!(
            "is not the key of {certificate}; give the one that the certificate was made for"
        ),
        other => format!("cannot be used ({other}); RSA, P-256, P-384 and Ed25519 can"),
    }
}
