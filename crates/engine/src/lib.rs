//! All that decides what to send and what a received frame means, for one core.
//!
//! Pure: the engine does not know the time, opens no file, starts no thread and draws no
//! unseeded randomness. Time comes in as an argument, in nanoseconds; frames are written into
//! memory that the caller owns.
//!
//! The modules stand in an order, and a module imports only from those before it:
//! `time`, `rng`, `stats`, `wheel`, `vm`, `transmit`, `capture`, `latency`, `echo`, `flow_stats`,
//! `encapsulation`, `host`, `stream`, `tcp`, `app`, `template`, `flow`, `session`, `stateful`, `stateless`.

pub mod app;
pub mod capture;
pub mod echo;
pub mod encapsulation;
pub mod flow;
pub mod flow_stats;
pub mod host;
pub mod latency;
pub mod rng;
pub mod session;
pub mod stateful;
pub mod stateless;
pub mod stats;
pub mod stream;
pub mod tcp;
pub mod template;
pub mod time;
pub mod transmit;
pub mod vm;
pub mod wheel;

pub use stateless::{ProfileEvent, StatelessCommand, StatelessEngine};
