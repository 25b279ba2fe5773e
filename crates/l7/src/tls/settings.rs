//! What TLS sessions are made of, and why they end.

use std::fmt;

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TlsVersion {
    /// RFC 5246.
    V1_2,
    /// RFC 8446.
    V1_3,
}

impl fmt::Display for TlsVersion {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            TlsVersion::V1_2 => "1.2",
            TlsVersion::V1_3 => "1.3",
        })
    }
}

/// What the sessions of a client are made of. Texts are PEM.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct TlsSettings {
    /// Certificates of those whom it trusts; it trusts everybody when there are none.
    pub ca_cert: Option<Box<str>>,
    /// The name that must be in the server's certificate; any if there is none.
    pub server_name: Option<Box<str>>,
    /// Its own certificate, and those that lead to an authority.
    pub client_cert: Option<Box<str>>,
    /// The key of its certificate.
    pub private_key: Option<Box<str>>,
    /// The only version it speaks; both if there is none.
    pub version: Option<TlsVersion>,
}

/// Without its texts, among which is a key.
impl fmt::Debug for TlsSettings {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = &mut formatter.debug_struct("TlsSettings");
        settings.field("version", &self.version);
        settings.finish_non_exhaustive()
    }
}

/// What is wrong with settings: a field of them, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct TlsSettingsError {
    /// The field of [`TlsSettings`].
    pub field: &'static str,
    /// What is wrong with it, and what to do.
    pub reason: String,
}

/// Why a session ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// The peer's certificate is refused.
    #[error("{0}")]
    Certificate(String),
    /// The peer refuses.
    #[error("{0}")]
    Alert(String),
    /// The peer does not follow the protocol, or nothing that it offers is possible.
    #[error("{0}")]
    Protocol(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_not_printed() {
        let settings = TlsSettings {
            private_key: Some("secret".into()),
            ..TlsSettings::default()
        };
        assert!(!format!("{settings:?}").contains("secret"));
    }
}
