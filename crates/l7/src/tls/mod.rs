//! TLS 1.2 and 1.3, by rustls.
//!
//! | what | where |
//! |---|---|
//! | what sessions are made of, and why they end | `settings`, with texts of users in `pem` |
//! | the time of a core | `clock` |
//! | one end of a connection | `session` |
//! | clients of 802.1X | `client` |

mod client;
mod clock;
mod pem;
mod session;
mod settings;

pub use client::TlsClient;
pub use clock::CoreClock;
pub use session::TlsSession;
pub use settings::{TlsError, TlsSettings, TlsSettingsError, TlsVersion};
