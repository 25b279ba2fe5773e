//! The way of a request from the wire to control and back: framing, dispatch, sockets.
//!
//! What lives here: bytes to requests, replies to bytes, and the two ZeroMQ sockets. What does
//! not: what a request means (`control`) and the loop that waits for all of it (`service`).

pub mod dispatch;
pub mod framing;
pub mod socket;

pub use dispatch::dispatch;
pub use framing::Codec;
pub use socket::{SocketError, Sockets};
