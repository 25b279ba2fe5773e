//! The way of a request from the wire to control and back: framing, dispatch, sockets.

pub mod dispatch;
pub mod framing;
pub mod socket;

pub use dispatch::dispatch;
pub use framing::Codec;
pub use socket::{SocketError, Sockets};
