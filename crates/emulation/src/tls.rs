//! The TLS clients of an emulation: parsed certificates and a key, which clients with equal settings
//! share.

use std::fmt;
use std::sync::{Arc, Weak};

use allosaur_l7::tls::{CoreClock, TlsClient, TlsSettings, TlsSettingsError};
use rustc_hash::FxHashMap;

/// Settings beyond which those that nobody uses are forgotten.
const FORGOTTEN_FROM: usize = 64;

/// The TLS clients of an emulation, one for equal settings.
#[derive(Default)]
pub(crate) struct TlsClients {
    clock: CoreClock,
    made: FxHashMap<TlsSettings, Weak<TlsClient>>,
    forget_at: usize,
}

impl fmt::Debug for TlsClients {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let made = self.made.len();
        write!(formatter, "TlsClients {{ made: {made} }}")
    }
}

impl TlsClients {
    /// What begins sessions of these settings: the one that another client uses already, if any.
    pub(crate) fn client(
        &mut self,
        settings: TlsSettings,
    ) -> Result<Arc<TlsClient>, TlsSettingsError> {
        if let Some(client) = self.made.get(&settings).and_then(Weak::upgrade) {
            return Ok(client);
        }
        let client = Arc::new(TlsClient::new(&settings, &self.clock)?);
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

    fn named(name: String) -> TlsSettings {
        TlsSettings {
            server_name: Some(name.into()),
            ..TlsSettings::default()
        }
    }

    #[test]
    fn equal_settings_are_shared_and_forgotten_when_nobody_uses_them() {
        let mut clients = TlsClients::default();
        let one = clients.client(named("a".to_owned())).unwrap();
        let same = clients.client(named("a".to_owned())).unwrap();
        assert!(Arc::ptr_eq(&one, &same));
        let other = clients.client(named("b".to_owned())).unwrap();
        assert!(!Arc::ptr_eq(&one, &other));
        for number in 0..1_000 {
            drop(clients.client(named(format!("host-{number}"))).unwrap());
            assert!(clients.made.len() <= FORGOTTEN_FROM);
        }
        let same = clients.client(named("a".to_owned())).unwrap();
        assert!(Arc::ptr_eq(&one, &same));
    }
}
