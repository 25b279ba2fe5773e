//! The words of stateful traffic.
//!
//! The commands, one file a noun, and the JSON of a profile ([`profile`], its programs in [`command`],
//! its tunables in [`tunables`], its HTTP and TLS in [`http`] and
//! [`tls`]) and of a topology ([`topology`]). Limits of values
//! are the server's.

pub mod clients;
pub mod command;
pub mod context;
pub mod counters;
pub mod http;
pub mod latency;
pub mod profile;
pub mod profiles;
pub mod runs;
pub mod tls;
pub mod topology;
pub mod tunables;
pub mod tunnels;
mod values;
