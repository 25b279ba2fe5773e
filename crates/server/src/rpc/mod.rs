//! From messages to requests, and from replies to messages, whatever way they came.

mod exchange;
mod peers;

pub use exchange::Exchange;
pub use peers::{Peer, Peers};
