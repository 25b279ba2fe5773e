//! TLS of clients: bytes in, bytes out. Who drives the emulation gives it; there is none here.
//!
//! A [`TlsClient`] is what sessions are begun with: parsed certificates and a key, which clients with
//! equal [`TlsSettings`] share. After [`TlsSession::handle_bytes`], failed or not, and after
//! [`TlsSession::send`], `poll_transmit` has what is for the peer.

use std::fmt;
use std::sync::{Arc, Weak};

use allosaur_engine::time::Nanos;
use rustc_hash::FxHashMap;

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

/// Begins sessions.
pub trait TlsClient: Send + Sync {
    /// A session, whose first message waits in its `poll_transmit`.
    ///
    /// # Errors
    /// When it cannot begin.
    fn session(&self) -> Result<Box<dyn TlsSession>, TlsError>;
}

/// One side of a session, that of the client.
pub trait TlsSession: Send {
    /// Takes bytes of the peer, any number; what it says inside the tunnel goes behind `plaintext`.
    /// `unix_time` is the time since 1970, by which certificates are judged.
    ///
    /// # Errors
    /// When the session is over. An alert may wait to be sent.
    fn handle_bytes(
        &mut self,
        unix_time: Nanos,
        bytes: &[u8],
        plaintext: &mut Vec<u8>,
    ) -> Result<(), TlsError>;

    /// Puts what is for the peer behind `records`.
    fn poll_transmit(&mut self, records: &mut Vec<u8>);

    /// Says something inside the tunnel, which must be established.
    ///
    /// # Errors
    /// When the session is over.
    fn send(&mut self, plaintext: &[u8]) -> Result<(), TlsError>;

    /// Whether the handshake is through, as far as it is this side's.
    fn is_established(&self) -> bool;

    /// The version that both agreed on.
    fn version(&self) -> Option<TlsVersion>;

    /// Key material that only both ends know (RFC 5705, RFC 8446 section 7.5).
    ///
    /// # Errors
    /// Before the handshake is through.
    fn export_keying_material(&self, label: &[u8], output: &mut [u8]) -> Result<(), TlsError>;
}

/// Makes a [`TlsClient`].
pub type MakeTlsClient = fn(&TlsSettings) -> Result<Arc<dyn TlsClient>, TlsSettingsError>;

/// Settings beyond which those that nobody uses are forgotten.
const FORGOTTEN_FROM: usize = 64;

/// The TLS clients of an emulation, one for equal settings.
#[derive(Default)]
pub(crate) struct TlsClients {
    make: Option<MakeTlsClient>,
    made: FxHashMap<TlsSettings, Weak<dyn TlsClient>>,
    forget_at: usize,
}

impl fmt::Debug for TlsClients {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let made = self.made.len();
        write!(formatter, "TlsClients {{ made: {made} }}")
    }
}

impl TlsClients {
    pub(crate) fn new(make: Option<MakeTlsClient>) -> TlsClients {
        TlsClients {
            make,
            ..TlsClients::default()
        }
    }

    /// What begins sessions of these settings: the one that another client uses already, if any.
    pub(crate) fn client(
        &mut self,
        settings: TlsSettings,
    ) -> Result<Arc<dyn TlsClient>, TlsSettingsError> {
        if let Some(client) = self.made.get(&settings).and_then(Weak::upgrade) {
            return Ok(client);
        }
        let make = self.make.ok_or_else(|| TlsSettingsError {
            field: "method",
            reason: "there is no TLS here; use md5 or mschapv2".to_owned(),
        })?;
        let client = make(&settings)?;
        if self.made.len() >= self.forget_at {
            self.made.retain(|_, client| client.strong_count() > 0);
            self.forget_at = (2 * self.made.len()).max(FORGOTTEN_FROM);
        }
        self.made.insert(settings, Arc::downgrade(&client));
        Ok(client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nothing;

    impl TlsClient for Nothing {
        fn session(&self) -> Result<Box<dyn TlsSession>, TlsError> {
            Err(TlsError::Protocol("no session".to_owned()))
        }
    }

    fn named(name: String) -> TlsSettings {
        TlsSettings {
            server_name: Some(name.into()),
            ..TlsSettings::default()
        }
    }

    #[test]
    fn equal_settings_are_shared_and_forgotten_when_nobody_uses_them() {
        let mut clients = TlsClients::new(Some(|_| Ok(Arc::new(Nothing))));
        let one = clients.client(named("a".to_owned())).unwrap();
        let same = clients.client(named("a".to_owned())).unwrap();
        assert!(Arc::ptr_eq(&one, &same));
        let other = clients.client(named("b".to_owned())).unwrap();
        assert!(!Arc::ptr_eq(&one, &other));
        for number in 0..10_000 {
            drop(clients.client(named(number.to_string())).unwrap());
            assert!(clients.made.len() <= FORGOTTEN_FROM);
        }
        let same = clients.client(named("a".to_owned())).unwrap();
        assert!(Arc::ptr_eq(&one, &same));
    }

    #[test]
    fn without_tls_the_method_is_refused_and_keys_are_not_printed() {
        let error = TlsClients::default().client(TlsSettings::default());
        assert_eq!(error.err().unwrap().field, "method");
        let settings = TlsSettings {
            private_key: Some("secret".into()),
            ..TlsSettings::default()
        };
        assert!(!format!("{settings:?}").contains("secret"));
    }
}
