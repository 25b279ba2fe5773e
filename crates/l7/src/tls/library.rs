//! What the library is configured with, chosen in one place.

use std::sync::Arc;

use rustls::SupportedProtocolVersion;
use rustls::crypto::{CryptoProvider, ring};
use rustls::version::{TLS12, TLS13};

use super::groups::GROUPS;
use super::settings::TlsVersion;

/// The cryptography of all sessions.
pub(super) fn provider() -> Arc<CryptoProvider> {
    let groups = GROUPS.iter().map(|(_, group)| *group).collect();
    Arc::new(CryptoProvider {
        kx_groups: groups,
        ..ring::default_provider()
    })
}

/// One version, or both.
pub(super) fn versions(only: Option<TlsVersion>) -> &'static [&'static SupportedProtocolVersion] {
    static BOTH: [&SupportedProtocolVersion; 2] = [&TLS13, &TLS12];
    match only {
        None => &BOTH,
        Some(TlsVersion::V1_2) => &BOTH[1..],
        Some(TlsVersion::V1_3) => &BOTH[..1],
    }
}
