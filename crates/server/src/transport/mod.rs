//! The ways to reach control: each carries messages to it, and replies and notifications from it.
//!
//! | way | where |
//! |---|---|
//! | TRex's: ZeroMQ, REQ sockets for requests and SUB sockets for what is published | [`zmq`](ZmqTransport) |
//! | how its frames are compressed | [`framing`] |
//! | the protocol of ZeroMQ, and what its peers may take | [`zmtp`] |
//! | who may use it from other machines | [`access`] |

pub mod access;
pub mod framing;
mod zmq;
pub mod zmtp;

use std::fmt;
use std::os::fd::RawFd;

pub use access::{AccessError, AccessList};
pub use framing::Codec;
pub use zmq::{
    BIRD_BYTES_MAX, EMULATION_BYTES_MAX, EMULATION_REQUESTS_BYTES_MAX, REQUESTS_BYTES_MAX,
    SocketError, ZmqTransport, listen_address,
};

/// A way to reach control. No method waits, whatever its peers do.
///
/// Drive it like this: [`receive`](Transport::receive) until there is nothing; wait for its
/// [`descriptor`](Transport::descriptor), unless it [`is_ready`](Transport::is_ready) already.
pub trait Transport: fmt::Debug {
    /// The next message that has arrived.
    fn receive(&mut self) -> Option<Message>;

    /// Answers a message. Nothing happens when its sender is gone.
    fn reply(&mut self, to: Envelope, frame: Vec<u8>);

    /// Tells a text to all who listen.
    fn publish(&mut self, text: &[u8]);

    /// The file that becomes readable when something arrives.
    fn descriptor(&self) -> RawFd;

    /// Whether something has arrived that the descriptor may not tell of again.
    fn is_ready(&self) -> bool;
}

/// A way in that a thread may have.
pub type BoxedTransport = Box<dyn Transport + Send>;

/// What has arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Who gets the reply.
    pub from: Envelope,
    /// JSON, hopefully, perhaps compressed as [`framing`] says; its reply will be as it is.
    pub frame: Vec<u8>,
    /// Bytes behind these that the transport did not keep, because it is too large anyway.
    pub left_out: usize,
}

/// Who sent a message, and how the reply gets there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Envelope {
    /// The sender, as its transport tells it from others. The messages of one are answered in order.
    pub peer: Vec<u8>,
    /// What lies between the sender's name and the message: parts, for proxies.
    pub route: Vec<Vec<u8>>,
}
