//! One session with a peer: RFC 4271 §8 as a state machine without sockets and clock.

pub mod config;
pub mod event;
mod machine;
pub mod negotiate;

pub use machine::BgpSession;
