//! From messages to requests, and from replies to messages, whatever way they came.

mod conversion;
mod exchange;
mod peers;

pub use conversion::{Conversion, Converted, TEXT_BYTES_SHORT};
pub use exchange::Exchange;
pub use peers::{Peer, Peers};
