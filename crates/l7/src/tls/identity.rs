//! A certificate of our own with its key: a user's, or one that is made and signed by itself.

use std::fmt;

use rcgen::{
    CertificateParams, DnType, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384,
    PKCS_ED25519, SignatureAlgorithm,
};
use rustls::pki_types::ServerName;

use super::pem::wrong;
use super::settings::TlsSettingsError;

/// A certificate with its key; texts are PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// The certificate, and those that lead to an authority.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

/// Without the key.
impl fmt::Debug for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Identity").finish_non_exhaustive()
    }
}

/// The kind of a key that is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// ECDSA over NIST's curve of 256 bits.
    P256,
    /// ECDSA over NIST's curve of 384 bits.
    P384,
    /// EdDSA (RFC 8032).
    Ed25519,
}

impl Identity {
    /// A certificate for the host or the address of that name, signed by itself. It is valid at any
    /// time, as that of a run may be virtual.
    ///
    /// # Errors
    /// When the name is none, or the system gives no random numbers.
    pub fn made(kind: KeyKind, name: &str) -> Result<Identity, TlsSettingsError> {
        let refused = |why: &str| {
            let reason = format!(
                "\"{name}\" cannot be the name in a certificate ({why}); give a host such as \
                 www.example.org, or an address"
            );
            wrong("server_name", &reason)
        };
        ServerName::try_from(name).map_err(|error| refused(&error.to_string()))?;
        let make = || {
            let key = KeyPair::generate_for(algorithm(kind))?;
            let mut params = CertificateParams::new([name.to_owned()])?;
            params.distinguished_name.push(DnType::CommonName, name);
            params.not_before = rcgen::date_time_ymd(1970, 1, 1);
            Ok((params.self_signed(&key)?.pem(), key.serialize_pem()))
        };
        let made: Result<_, rcgen::Error> = make();
        let (certificate, key) = made.map_err(|error| refused(&error.to_string()))?;
        Ok(Identity { certificate, key })
    }
}

fn algorithm(kind: KeyKind) -> &'static SignatureAlgorithm {
    match kind {
        KeyKind::P256 => &PKCS_ECDSA_P256_SHA256,
        KeyKind::P384 => &PKCS_ECDSA_P384_SHA384,
        KeyKind::Ed25519 => &PKCS_ED25519,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_name_is_told_by_the_field() {
        for name in ["grün", "no name", ""] {
            let error = Identity::made(KeyKind::P256, name).unwrap_err();
            assert_eq!(error.field, "server_name");
            let named = format!("\"{name}\"");
            assert!(error.reason.contains(&named), "{}", error.reason);
        }
    }
}
