//! Sessions that are resumed: what clients remember, and tickets of servers.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use rustls::NamedGroup;
use rustls::client::{
    ClientSessionMemoryCache, ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue,
};
use rustls::pki_types::ServerName;
use rustls::server::ProducesTickets;

/// Sessions of a core that clients remember; the library keeps eight of each name.
const SESSIONS_MAX: usize = 8 * 1024;
/// How long tickets are good: there is no key after the run.
const LIFETIME_S: u32 = 24 * 3600;

/// What the clients of one core remember of servers. Only this core has it: the library wants it to
/// be shareable, so it has a lock, which nobody else takes.
#[derive(Debug)]
pub(super) struct ClientSessions {
    known: ClientSessionMemoryCache,
    /// Whether the connection that begins now may resume one.
    may_resume: AtomicBool,
}

impl ClientSessions {
    pub(super) fn new() -> ClientSessions {
        ClientSessions {
            known: ClientSessionMemoryCache::new(SESSIONS_MAX),
            may_resume: AtomicBool::new(false),
        }
    }

    /// Whether the connection that begins next may resume a session.
    pub(super) fn allow(&self, may_resume: bool) {
        self.may_resume.store(may_resume, Ordering::Relaxed);
    }

    fn may_resume(&self) -> bool {
        self.may_resume.load(Ordering::Relaxed)
    }
}

impl ClientSessionStore for ClientSessions {
    fn set_kx_hint(&self, server_name: ServerName<'static>, group: NamedGroup) {
        self.known.set_kx_hint(server_name, group);
    }

    fn kx_hint(&self, server_name: &ServerName<'_>) -> Option<NamedGroup> {
        self.known.kx_hint(server_name)
    }

    fn set_tls12_session(&self, server_name: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.known.set_tls12_session(server_name, value);
    }

    fn tls12_session(&self, server_name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        let known = self.may_resume().then_some(&self.known)?;
        known.tls12_session(server_name)
    }

    fn remove_tls12_session(&self, server_name: &ServerName<'static>) {
        self.known.remove_tls12_session(server_name);
    }

    fn insert_tls13_ticket(
        &self,
        server_name: ServerName<'static>,
        value: Tls13ClientSessionValue,
    ) {
        self.known.insert_tls13_ticket(server_name, value);
    }

    fn take_tls13_ticket(
        &self,
        server_name: &ServerName<'static>,
    ) -> Option<Tls13ClientSessionValue> {
        let known = self.may_resume().then_some(&self.known)?;
        known.take_tls13_ticket(server_name)
    }
}

/// Tickets of a run's servers: its cores share the key, so each resumes what another began.
///
/// The ticketer of the library reads the system's clock to change its key; a run needs no other.
pub(super) struct Tickets {
    key: LessSafeKey,
    rng: SystemRandom,
}

impl fmt::Debug for Tickets {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Tickets").finish_non_exhaustive()
    }
}

impl Tickets {
    /// A new key; `None` where the system gives no random numbers.
    pub(super) fn new() -> Option<Tickets> {
        let rng = SystemRandom::new();
        let mut key = [0; 32];
        rng.fill(&mut key).ok()?;
        let key = UnboundKey::new(&AES_256_GCM, &key).ok()?;
        Some(Tickets {
            key: LessSafeKey::new(key),
            rng,
        })
    }
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        LIFETIME_S
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let mut nonce = [0; NONCE_LEN];
        self.rng.fill(&mut nonce).ok()?;
        let mut sealed = plain.to_vec();
        let unique = Nonce::assume_unique_for_key(nonce);
        let sealing = self
            .key
            .seal_in_place_append_tag(unique, Aad::empty(), &mut sealed);
        sealing.ok()?;
        Some([&nonce[..], &sealed].concat())
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = cipher.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut sealed = sealed.to_vec();
        let plain = self.key.open_in_place(nonce, Aad::empty(), &mut sealed);
        let bytes = plain.ok()?.len();
        sealed.truncate(bytes);
        Some(sealed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tickets_open_with_their_key_only() {
        let tickets = Tickets::new().unwrap();
        let sealed = tickets.encrypt(b"session").unwrap();
        assert_eq!(tickets.decrypt(&sealed).unwrap(), b"session");
        assert_eq!(Tickets::new().unwrap().decrypt(&sealed), None);
        let mut changed = sealed.clone();
        changed[20] ^= 1;
        assert_eq!(tickets.decrypt(&changed), None);
        assert_eq!(tickets.decrypt(&sealed[..5]), None);
        assert_ne!(tickets.encrypt(b"session").unwrap(), sealed);
    }
}
