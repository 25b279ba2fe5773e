//! The two ZeroMQ sockets: ROUTER for requests and replies, PUB for what is published, where anything
//! is.
//!
//! Clients have REQ sockets and know the server's as REP, which answers one message after the other.
//! A ROUTER takes the same messages, and lets one client wait while others are answered.

use std::os::fd::RawFd;

use thiserror::Error;

use super::zap::ZapThread;
use super::{AccessError, AccessList, Codec, Envelope, Message, Transport};

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
    /// There is nobody who would be asked for a token.
    #[error("{0}")]
    Unguarded(String),
    /// The file of names and tokens.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// ZeroMQ refuses something that has always worked.
    #[error("ZeroMQ: {0}")]
    Zmq(String),
}

/// TRex's way to reach control: JSON over two ZeroMQ sockets; and over one to reach emulated clients.
pub struct ZmqTransport {
    requests: ::zmq::Socket,
    published: Option<::zmq::Socket>,
    descriptor: RawFd,
    codec: Codec,
    /// Ends before the context does.
    _access: Option<ZapThread>,
    /// Keeps the sockets' threads alive.
    _context: ::zmq::Context,
}

impl ZmqTransport {
    /// Opens both sockets on `listen` (an address, or `*` for all); port 0 picks a free one.
    pub fn bind(listen: &str, rpc_port: u16, pub_port: u16) -> Result<ZmqTransport, SocketError> {
        let listen = [listen.to_owned()];
        ZmqTransport::open(&listen, RPC.at(rpc_port), Some(EVENTS.at(pub_port)), None)
    }

    /// Opens them on several addresses, for those whom a list of names and tokens has (ZeroMQ's PLAIN
    /// mechanism, RFC 24/ZMTP-PLAIN: the token travels as it is).
    pub fn bind_guarded(
        listen: &[String],
        rpc_port: u16,
        pub_port: u16,
        access: AccessList,
    ) -> Result<ZmqTransport, SocketError> {
        let published = Some(EVENTS.at(pub_port));
        ZmqTransport::open(listen, RPC.at(rpc_port), published, Some(access))
    }

    /// Opens the socket of requests to emulated clients, on several addresses; nothing is published.
    /// With an access list it is for those who are in it.
    pub fn bind_emulation(
        listen: &[String],
        port: u16,
        access: Option<AccessList>,
    ) -> Result<ZmqTransport, SocketError> {
        ZmqTransport::open(listen, EMULATION.at(port), None, access)
    }

    fn open(
        listen: &[String],
        requests_at: TcpPort,
        published_at: Option<TcpPort>,
        access: Option<AccessList>,
    ) -> Result<ZmqTransport, SocketError> {
        let context = ::zmq::Context::new();
        let requests = context.socket(::zmq::ROUTER)?;
        requests.set_maxmsgsize(MESSAGE_BYTES_MAX)?;
        let published = published_at
            .map(|_| context.socket(::zmq::PUB))
            .transpose()?;
        if let Some(published) = &published {
            published.set_sndhwm(PUBLISHED_MAX)?;
        }
        for socket in std::iter::once(&requests).chain(&published) {
            socket.set_linger(LINGER_MS)?;
            socket.set_ipv6(listen.iter().any(|host| host.contains(':')))?;
            socket.set_plain_server(access.is_some())?;
        }
        let access = access.map(|access| ZapThread::start(&context, access));
        for host in listen {
            bind(&requests, host, requests_at)?;
            if let Some((published, at)) = published.as_ref().zip(published_at) {
                bind(published, host, at)?;
            }
        }
        Ok(ZmqTransport {
            descriptor: requests.get_fd()?,
            requests,
            published,
            codec: Codec::default(),
            _access: access.transpose()?,
            _context: context,
        })
    }

    /// Where requests are taken, as `tcp://127.0.0.1:4501`.
    pub fn rpc_endpoint(&self) -> String {
        endpoint(&self.requests)
    }

    /// Where frames are published; empty where none are.
    pub fn pub_endpoint(&self) -> String {
        self.published.as_ref().map_or_else(String::new, endpoint)
    }
}

impl Transport for ZmqTransport {
    fn receive(&mut self) -> Option<Message> {
        loop {
            let parts = self.requests.recv_multipart(::zmq::DONTWAIT).ok()?;
            let message = open(parts);
            if message.is_some() {
                return message;
            }
            tracing::debug!("a message without an envelope was dropped");
        }
    }

    fn reply(&mut self, to: Envelope, frame: Vec<u8>) {
        let mut parts = vec![to.peer];
        parts.extend(to.route);
        parts.extend([Vec::new(), frame]);
        if let Err(error) = self.requests.send_multipart(parts, ::zmq::DONTWAIT) {
            tracing::warn!("a reply could not be sent: {error}");
        }
    }

    fn publish(&mut self, text: &[u8]) {
        let Some(published) = &self.published else {
            return;
        };
        let frame = self.codec.encode_published(text);
        if let Err(error) = published.send(frame, ::zmq::DONTWAIT) {
            tracing::debug!("a frame could not be published: {error}");
        }
    }

    fn descriptor(&self) -> RawFd {
        self.descriptor
    }

    /// The descriptor tells of changes only, and sending may swallow one.
    fn is_ready(&self) -> bool {
        let events = self.requests.get_events();
        events.is_ok_and(|events| events.contains(::zmq::POLLIN))
    }
}

/// Takes the envelope off a message: who sent it, the parts of proxies, and an empty part. REQ
/// sockets make it; what comes without one, from a DEALER, has no reply that anybody could read.
fn open(parts: Vec<Vec<u8>>) -> Option<Message> {
    let mut parts = parts.into_iter();
    let peer = parts.next()?;
    let mut route = Vec::new();
    loop {
        let part = parts.next()?;
        if part.is_empty() {
            break;
        }
        route.push(part);
    }
    let first = parts.next()?;
    // A request is one part. More are nobody's habit; together they are no JSON, or one.
    let frame = parts.fold(first, |frame, part| [frame, part].concat());
    let from = Envelope { peer, route };
    Some(Message { from, frame })
}

impl std::fmt::Debug for ZmqTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ZmqTransport")
            .field("rpc", &self.rpc_endpoint())
            .field("pub", &self.pub_endpoint())
            .finish()
    }
}

impl From<::zmq::Error> for SocketError {
    fn from(error: ::zmq::Error) -> SocketError {
        SocketError::Zmq(error.to_string())
    }
}

/// A TCP port, and what to do when it is taken.
#[derive(Clone, Copy)]
struct TcpPort {
    number: u16,
    remedy: &'static str,
}

const RPC: TcpPort = TcpPort::any("Choose another --rpc-port or --listen.");
const EVENTS: TcpPort = TcpPort::any("Choose another --pub-port or --listen.");
const EMULATION: TcpPort = TcpPort::any("Choose another --emu-port or --listen.");

impl TcpPort {
    const fn any(remedy: &'static str) -> TcpPort {
        TcpPort { number: 0, remedy }
    }

    fn at(self, number: u16) -> TcpPort {
        TcpPort { number, ..self }
    }
}

fn bind(socket: &::zmq::Socket, listen: &str, port: TcpPort) -> Result<(), SocketError> {
    let host = if listen.contains(':') && !listen.starts_with('[') {
        format!("[{listen}]")
    } else {
        listen.to_owned()
    };
    let endpoint = match port.number {
        0 => format!("tcp://{host}:*"),
        number => format!("tcp://{host}:{number}"),
    };
    socket.bind(&endpoint).map_err(|error| SocketError::Bind {
        reason: error.to_string(),
        endpoint,
        remedy: port.remedy,
    })
}

fn endpoint(socket: &::zmq::Socket) -> String {
    let text = socket.get_last_endpoint().ok().and_then(Result::ok);
    text.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(transport: &mut ZmqTransport) -> Message {
        for _ in 0..1000 {
            if let Some(message) = transport.receive() {
                return message;
            }
            let item = ::zmq::PollItem::from_fd(transport.descriptor(), ::zmq::POLLIN);
            let timeout_ms = if transport.is_ready() { 0 } else { 10_000 };
            ::zmq::poll(&mut [item], timeout_ms).expect("polling works");
        }
        panic!("nothing came");
    }

    fn client(transport: &ZmqTransport, kind: ::zmq::SocketType) -> ::zmq::Socket {
        let client = ::zmq::Context::new().socket(kind).expect("a socket");
        client.set_rcvtimeo(10_000).expect("an option");
        client
            .connect(&transport.rpc_endpoint())
            .expect("it listens");
        client
    }

    fn transport() -> ZmqTransport {
        ZmqTransport::bind("127.0.0.1", 0, 0).expect("free ports")
    }

    #[test]
    fn one_client_waits_while_another_is_answered() {
        let mut transport = transport();
        assert_eq!(transport.receive(), None);
        let [slow, quick] = [0; 2].map(|_| client(&transport, ::zmq::REQ));
        slow.send("slow", 0).expect("connected");
        let first = next(&mut transport);
        quick.send("quick", 0).expect("connected");
        let second = next(&mut transport);
        assert_ne!(first.from.peer, second.from.peer);
        assert_eq!(second.frame, b"quick");
        transport.reply(second.from, b"now".to_vec());
        assert_eq!(quick.recv_bytes(0).expect("a reply"), b"now");
        transport.reply(first.from, b"later".to_vec());
        assert_eq!(slow.recv_bytes(0).expect("a reply"), b"later");
    }

    #[test]
    fn what_has_no_envelope_is_dropped_and_proxies_get_theirs_back() {
        let mut transport = transport();
        let dealer = client(&transport, ::zmq::DEALER);
        for parts in [&[&b"bare"[..]][..], &[b"a", b"b"], &[b""], &[b"a", b""]] {
            dealer.send_multipart(parts, 0).expect("connected");
        }
        dealer
            .send_multipart([&b"proxy"[..], b"", b"4", b"2"], 0)
            .expect("connected");
        let message = next(&mut transport);
        assert_eq!(message.frame, b"42");
        transport.reply(message.from, b"43".to_vec());
        let reply = dealer.recv_multipart(0).expect("a reply");
        assert_eq!(reply, [&b"proxy"[..], b"", b"43"]);
        assert_eq!(transport.receive(), None);
    }

    #[test]
    fn who_has_gone_is_answered_without_harm() {
        let mut transport = transport();
        let gone = client(&transport, ::zmq::REQ);
        gone.send("ask", 0).expect("connected");
        let message = next(&mut transport);
        drop(gone);
        transport.reply(message.from, b"answer".to_vec());
        let other = client(&transport, ::zmq::REQ);
        other.send("ask", 0).expect("connected");
        assert_eq!(next(&mut transport).frame, b"ask");
    }

    #[test]
    fn a_port_that_is_taken_is_named() {
        let first = transport();
        let port = first.rpc_endpoint();
        let port = port.rsplit(':').next().and_then(|p| p.parse().ok());
        let error = ZmqTransport::bind("127.0.0.1", port.expect("a number"), 0).expect_err("taken");
        assert!(error.to_string().contains("--rpc-port"), "{error}");
    }
}
