//! All ways into one port of the RPC, the peers who send messages by them, and the thread that reads and writes
//! long messages.

use std::io;
use std::os::fd::RawFd;

use allosaur_api::{Dialect, Error};
use serde_json::Value;

use crate::control::PendingId;
use crate::rpc::{Conversion, Converted, Peer, Peers};
use crate::threads::background::BackgroundThread;
use crate::threads::waker::Notify;
use crate::transport::{BoxedTransport, Codec};

/// Messages of a transport that are taken before others have their turn.
const MESSAGES_PER_TURN: u32 = 32;

/// Drive it like this: when a [descriptor](MessagePort::descriptors) is readable or it
/// [is ready](MessagePort::is_ready), [`receive`](MessagePort::receive); for each
/// [`next_request`](MessagePort::next_request) [`answer`](MessagePort::answer) or
/// [`wait`](MessagePort::wait), then [`send_replies`](MessagePort::send_replies).
pub(super) struct MessagePort<D: Dialect> {
    transports: Vec<BoxedTransport>,
    peers: Peers<D>,
    conversions: BackgroundThread<(Peer, Conversion<D>), (Peer, Converted<D>)>,
}

impl<D> MessagePort<D>
where
    D: Dialect<Request: Send, Place: Send, Id: Send> + 'static,
{
    /// Starts the thread for long messages, by that name; it notifies `notify`. No message has more bytes
    /// than that.
    ///
    /// # Errors
    /// When the system has no threads.
    pub(super) fn start(
        transports: Vec<BoxedTransport>,
        name: &str,
        bytes_max: usize,
        notify: Notify,
    ) -> io::Result<MessagePort<D>> {
        let codec = || Codec::default().limited_to(bytes_max);
        let mut of_thread = codec();
        let convert =
            move |(peer, long): (Peer, Conversion<D>)| Some((peer, long.run(&mut of_thread)));
        Ok(MessagePort {
            transports,
            peers: Peers::new(codec()),
            conversions: BackgroundThread::start(name, notify, convert)?,
        })
    }

    /// Takes what has arrived.
    pub(super) fn receive(&mut self) {
        self.handle_converted();
        for (number, transport) in self.transports.iter_mut().enumerate() {
            for _ in 0..MESSAGES_PER_TURN {
                let Some(message) = transport.receive() else {
                    break;
                };
                self.peers.receive(number, message);
            }
        }
        self.send_replies();
    }

    /// Takes long messages that were read, and long replies that were written.
    pub(super) fn handle_converted(&mut self) {
        while let Some((peer, converted)) = self.conversions.receive() {
            self.peers.handle_converted(peer, converted);
        }
    }

    /// The files that become readable when something arrives.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.transports.iter().map(|one| one.descriptor())
    }

    /// Whether something has arrived that no descriptor tells of.
    pub(super) fn has_arrived(&self) -> bool {
        self.transports.iter().any(|one| one.is_ready())
    }

    /// Whether a request may be there to do.
    pub(super) fn is_ready(&self) -> bool {
        self.peers.is_ready()
    }

    /// Whether a long message is being read or written.
    pub(super) fn is_converting(&self) -> bool {
        self.peers.is_converting()
    }

    /// See [`Peers::next_request`].
    pub(super) fn next_request(&mut self) -> Option<(Peer, D::Request)> {
        self.peers.next_request()
    }

    /// Answers the request of a peer.
    pub(super) fn answer(&mut self, peer: Peer, reply: Result<Value, Error>) {
        self.peers.answer(peer, reply);
    }

    /// The request of a peer will be answered later.
    pub(super) fn wait(&mut self, peer: Peer, pending: PendingId) {
        self.peers.wait(peer, pending);
    }

    /// Answers a request that waited.
    pub(super) fn complete(&mut self, pending: PendingId, reply: Result<Value, Error>) {
        self.peers.complete(pending, reply);
    }

    /// Sends the replies that are there, and has the long ones written.
    pub(super) fn send_replies(&mut self) {
        while let Some((transport, to, frame)) = self.peers.poll_reply() {
            self.transports[transport].reply(to, frame);
        }
        while let Some(long) = self.peers.poll_conversion() {
            self.conversions.send(long);
        }
    }

    /// Publishes a text by all ways.
    pub(super) fn publish(&mut self, text: &[u8]) {
        for transport in &mut self.transports {
            transport.publish(text);
        }
    }
}
