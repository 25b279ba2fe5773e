//! TLS 1.2 and 1.3, by rustls.
//!
//! | what | where |
//! |---|---|
//! | what the library is configured with | `library`, with the time of a core in `clock` |
//! | groups that keys are exchanged over | `groups` |
//! | what sessions are made of, and why they end | `settings`, with texts of users in `pem` |
//! | certificates of our own, given or made | `identity` |
//! | which certificates are good | `verify` |
//! | one end of a connection: the seam around the library | `session` |
//! | clients of 802.1X | `client` |
//! | flows: what is asked for | `flow_config`, with `resumption` |
//! | flows: a protocol inside of records, and what is counted | `flows`, `alerts` |

mod alerts;
mod client;
mod clock;
mod flow_config;
mod flows;
mod groups;
mod identity;
mod library;
mod pem;
mod resumption;
mod session;
mod settings;
mod verify;

pub use alerts::rows;
pub use client::TlsClient;
pub use clock::CoreClock;
pub use flow_config::{ClientTls, FlowTls, KeyLines, ServerTls, Verify};
pub use flows::TlsFlows;
pub use identity::{Identity, KeyKind};
pub use session::TlsSession;
pub use settings::{TlsError, TlsSettings, TlsSettingsError, TlsVersion};
