//! From messages to requests, and from replies to messages, whatever way they came.

mod conversion;
mod peers;

pub use conversion::{Conversion, Converted, frame_of, read_frame};
pub use peers::{Peer, Peers};
