//! The two ZeroMQ sockets: REP for requests and replies, PUB for what is published.
//!
//! Nothing here blocks: [`Sockets::receive`] gives `None` when there is no request, and neither
//! replies nor published frames wait for a slow or vanished client. The loop of `control_thread` waits
//! for [`Sockets::poll_item`] together with whatever else it waits for.

use thiserror::Error;

use super::framing::Codec;

/// Larger messages are not even received: the sender is disconnected. What is smaller and still
/// too large gets an error as its reply.
const MESSAGE_BYTES_MAX: i64 = 64 << 20;
/// How long a closing socket tries to deliver its last reply.
const LINGER_MS: i32 = 500;
/// Published frames that wait for one slow subscriber; later ones are not sent to it.
const PUBLISHED_MAX: i32 = 1000;

/// Why the sockets could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SocketError {
    /// An address cannot be listened on.
    #[error("cannot listen on {endpoint}: {reason}. {remedy}")]
    Bind {
        /// What was asked for.
        endpoint: String,
        /// What the system says.
        reason: String,
        /// What to do.
        remedy: &'static str,
    },
    /// ZeroMQ refuses something that has always worked.
    #[error("ZeroMQ: {0}")]
    Zmq(String),
}

/// The sockets of a running server.
pub struct Sockets {
    requests: zmq::Socket,
    published: zmq::Socket,
    codec: Codec,
    /// Keeps the sockets' threads alive.
    _context: zmq::Context,
}

impl Sockets {
    /// Opens both sockets on `listen` (an address, or `*` for all); port 0 picks a free one.
    pub fn bind(listen: &str, rpc_port: u16, pub_port: u16) -> Result<Sockets, SocketError> {
        let context = zmq::Context::new();
        let requests = context.socket(zmq::REP)?;
        let published = context.socket(zmq::PUB)?;
        requests.set_maxmsgsize(MESSAGE_BYTES_MAX)?;
        published.set_sndhwm(PUBLISHED_MAX)?;
        for socket in [&requests, &published] {
            socket.set_linger(LINGER_MS)?;
            socket.set_ipv6(listen.contains(':'))?;
        }
        bind(
            &requests,
            listen,
            rpc_port,
            "Choose another --rpc-port or --listen.",
        )?;
        bind(
            &published,
            listen,
            pub_port,
            "Choose another --pub-port or --listen.",
        )?;
        Ok(Sockets {
            requests,
            published,
            codec: Codec::default(),
            _context: context,
        })
    }

    /// Where requests are taken, as `tcp://127.0.0.1:4501`.
    pub fn rpc_endpoint(&self) -> String {
        endpoint(&self.requests)
    }

    /// Where frames are published.
    pub fn pub_endpoint(&self) -> String {
        endpoint(&self.published)
    }

    /// What `zmq::poll` shall wait for: a request. Other files can be waited for beside it, by
    /// `zmq::PollItem::from_fd`.
    pub fn poll_item(&self) -> zmq::PollItem<'_> {
        self.requests.as_poll_item(zmq::POLLIN)
    }

    /// The next request, if there is one. [`Sockets::reply`] must follow each.
    pub fn receive(&self) -> Option<Vec<u8>> {
        let parts = self.requests.recv_multipart(zmq::DONTWAIT).ok()?;
        // A request is one frame. More are nobody's habit; together they are no JSON, or one.
        Some(parts.concat())
    }

    /// Answers the request that was received last.
    pub fn reply(&self, frame: &[u8]) {
        if let Err(error) = self.requests.send(frame, zmq::DONTWAIT) {
            tracing::warn!("a reply could not be sent: {error}");
        }
    }

    /// Publishes a text, zipped if it is long.
    pub fn publish(&mut self, text: Vec<u8>) {
        let frame = self.codec.encode_published(text);
        if let Err(error) = self.published.send(frame, zmq::DONTWAIT) {
            tracing::debug!("a frame could not be published: {error}");
        }
    }
}

impl std::fmt::Debug for Sockets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sockets")
            .field("rpc", &self.rpc_endpoint())
            .field("pub", &self.pub_endpoint())
            .finish()
    }
}

impl From<zmq::Error> for SocketError {
    fn from(error: zmq::Error) -> SocketError {
        SocketError::Zmq(error.to_string())
    }
}

fn bind(
    socket: &zmq::Socket,
    listen: &str,
    port: u16,
    remedy: &'static str,
) -> Result<(), SocketError> {
    let host = if listen.contains(':') && !listen.starts_with('[') {
        format!("[{listen}]")
    } else {
        listen.to_owned()
    };
    let endpoint = match port {
        0 => format!("tcp://{host}:*"),
        port => format!("tcp://{host}:{port}"),
    };
    socket.bind(&endpoint).map_err(|error| SocketError::Bind {
        reason: error.to_string(),
        endpoint,
        remedy,
    })
}

fn endpoint(socket: &zmq::Socket) -> String {
    let text = socket.get_last_endpoint().ok().and_then(Result::ok);
    text.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait_for(item: zmq::PollItem<'_>) {
        let ready = zmq::poll(&mut [item], 10_000).expect("polling works");
        assert_eq!(ready, 1, "nothing came in ten seconds");
    }

    #[test]
    fn a_request_is_answered_and_a_frame_published() {
        let sockets = Sockets::bind("127.0.0.1", 0, 0).expect("free ports");
        let context = zmq::Context::new();
        let client = context.socket(zmq::REQ).expect("a socket");
        client.connect(&sockets.rpc_endpoint()).expect("it listens");
        assert_eq!(sockets.receive(), None);
        client.send("ask", 0).expect("connected");
        wait_for(sockets.poll_item());
        assert_eq!(sockets.receive().as_deref(), Some(&b"ask"[..]));
        sockets.reply(b"answer");
        wait_for(client.as_poll_item(zmq::POLLIN));
        assert_eq!(client.recv_bytes(0).expect("a reply"), b"answer");
    }

    #[test]
    fn a_port_that_is_taken_is_named() {
        let first = Sockets::bind("127.0.0.1", 0, 0).expect("free ports");
        let port = first.rpc_endpoint();
        let port = port.rsplit(':').next().and_then(|p| p.parse().ok());
        let error = Sockets::bind("127.0.0.1", port.expect("a number"), 0).expect_err("taken");
        assert!(error.to_string().contains("--rpc-port"), "{error}");
    }
}
