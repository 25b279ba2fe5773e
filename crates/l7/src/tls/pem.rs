//! Certificates and keys of a user's PEM texts.

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

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
pub(super) fn private_key(pem: &str) -> Result<PrivateKeyDer<'static>, TlsSettingsError> {
    PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| {
        let reason = if pem.contains("ENCRYPTED") {
            "is encrypted; give it decrypted (openssl pkey -in FILE)"
        } else {
            "has no private key; give the text of a PEM file, with its BEGIN PRIVATE KEY line"
        };
        wrong("private_key", reason)
    })
}

/// The authorities of a text.
pub(super) fn roots(pem: &str) -> Result<RootCertStore, TlsSettingsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("ca_cert", pem)? {
        roots.add(certificate).map_err(|error| {
            let reason = format!("has a certificate that cannot be read ({error})");
            wrong("ca_cert", &reason)
        })?;
    }
    Ok(roots)
}
