//! TRex's way to reach control: what ROUTER and PUB sockets of ZeroMQ say, for requests and replies, and
//! for what is published, where anything is.
//!
//! Clients have REQ sockets and know the server's as REP, which answers one message after the other.
//! A ROUTER takes the same messages, and lets one client wait while others are answered.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use allosaur_api::limits::REQUEST_BYTES_MAX;
use nix::ifaddrs::getifaddrs;
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::resource::{Resource, getrlimit};
use thiserror::Error;

use super::zmtp::budget::CONNECTIONS_MAX;
use super::zmtp::{Arrived, Listening, ZmtpServer};
use super::{AccessError, AccessList, Codec, Envelope, Message, Transport};

/// Bytes of requests to control that arrive or are answered, of all peers; those of less than 64 KiB
/// do not count.
pub const REQUESTS_BYTES_MAX: usize = 64 << 20;
/// A request to emulated clients: as much as 100,000 clients need.
pub const EMULATION_BYTES_MAX: usize = 32 << 20;
/// The same of all peers.
pub const EMULATION_REQUESTS_BYTES_MAX: usize = 128 << 20;

/// A request to BIRD: a fragment of a configuration is half a million characters.
pub const BIRD_BYTES_MAX: usize = 4 << 20;
/// The same of all peers.
const BIRD_REQUESTS_BYTES_MAX: usize = 32 << 20;

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
    /// There is nobody who would be asked for a token, or somebody who would not.
    #[error("{0}")]
    Unguarded(String),
    /// The file of names and tokens.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The system has no files or threads for it.
    #[error("the system refused what requests need: {0}")]
    System(String),
}

/// TRex's way to reach control: JSON over two sockets of ZeroMQ; and over one to reach emulated clients.
pub struct ZmqTransport {
    rpc_endpoint: String,
    pub_endpoint: String,
    server: ZmtpServer,
    arrived: Receiver<Arrived>,
    /// Readable when something has arrived.
    notify: Arc<EventFd>,
    codec: Codec,
}

impl ZmqTransport {
    /// Opens both sockets on `listen` (an address, a name, an interface, or `*` for all); port 0 picks a
    /// free one.
    pub fn bind(listen: &str, rpc_port: u16, pub_port: u16) -> Result<ZmqTransport, SocketError> {
        let listen = [listen.to_owned()];
        let published = Some(EVENTS.at(pub_port));
        ZmqTransport::open(&listen, RPC.at(rpc_port), published, MAIN_LIMITS, None)
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
        ZmqTransport::open(
            listen,
            RPC.at(rpc_port),
            published,
            MAIN_LIMITS,
            Some(access),
        )
    }

    /// Opens the socket of requests to emulated clients, on several addresses; nothing is published.
    /// With an access list it is for those who are in it.
    pub fn bind_emulation(
        listen: &[String],
        port: u16,
        access: Option<AccessList>,
    ) -> Result<ZmqTransport, SocketError> {
        let limits = (EMULATION_BYTES_MAX, EMULATION_REQUESTS_BYTES_MAX);
        ZmqTransport::open(listen, EMULATION.at(port), None, limits, access)
    }

    /// Opens the socket of requests to BIRD, in the same way.
    pub fn bind_bird(
        listen: &[String],
        port: u16,
        access: Option<AccessList>,
    ) -> Result<ZmqTransport, SocketError> {
        let limits = (BIRD_BYTES_MAX, BIRD_REQUESTS_BYTES_MAX);
        ZmqTransport::open(listen, BIRD.at(port), None, limits, access)
    }

    fn open(
        listen: &[String],
        requests_at: TcpPort,
        published_at: Option<TcpPort>,
        (frame_bytes_max, bytes_max): (usize, usize),
        access: Option<AccessList>,
    ) -> Result<ZmqTransport, SocketError> {
        let (rpc_endpoint, requests) = bind_all(listen, requests_at)?;
        let (pub_endpoint, published) = match published_at {
            Some(at) => bind_all(listen, at)?,
            None => (String::new(), Vec::new()),
        };
        let listening = Listening {
            requests,
            published,
            access,
            connections_max: connections_max(),
            frame_bytes_max,
            bytes_max,
        };
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        let notify = Arc::new(EventFd::from_flags(flags).map_err(io::Error::from)?);
        let (sender, arrived) = channel();
        let tell = Arc::clone(&notify);
        let tell = move || {
            // It can only fail when it was written 2⁶⁴ - 2 times, and then it is readable already.
            let _ = tell.write(1);
        };
        Ok(ZmqTransport {
            rpc_endpoint,
            pub_endpoint,
            server: ZmtpServer::start(listening, sender, tell)?,
            arrived,
            notify,
            codec: Codec::default(),
        })
    }

    /// Where requests are taken, as `tcp://127.0.0.1:4501`.
    pub fn rpc_endpoint(&self) -> String {
        self.rpc_endpoint.clone()
    }

    /// Where frames are published; empty where none are.
    pub fn pub_endpoint(&self) -> String {
        self.pub_endpoint.clone()
    }
}

impl Transport for ZmqTransport {
    fn receive(&mut self) -> Option<Message> {
        let arrived = self.arrived.try_recv().or_else(|_| {
            // Fails when it was not readable, which is as well.
            let _ = self.notify.read();
            self.arrived.try_recv()
        });
        let arrived = arrived.ok()?;
        let from = Envelope {
            peer: arrived.peer.to_be_bytes().to_vec(),
            route: arrived.route,
        };
        Some(Message {
            from,
            frame: arrived.frame,
            left_out: arrived.left_out,
        })
    }

    fn reply(&mut self, to: Envelope, frame: Vec<u8>) {
        let peer = to.peer.try_into().map(u64::from_be_bytes);
        let peer = peer.expect("the envelope is one of ours");
        self.server.reply(peer, to.route, frame);
    }

    fn publish(&mut self, text: &[u8]) {
        if !self.pub_endpoint.is_empty() {
            self.server.publish(self.codec.encode_published(text));
        }
    }

    fn descriptor(&self) -> RawFd {
        self.notify.as_raw_fd()
    }

    fn is_ready(&self) -> bool {
        false
    }
}

impl std::fmt::Debug for ZmqTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ZmqTransport")
            .field("rpc", &self.rpc_endpoint)
            .field("pub", &self.pub_endpoint)
            .finish_non_exhaustive()
    }
}

impl From<io::Error> for SocketError {
    fn from(error: io::Error) -> SocketError {
        SocketError::System(error.to_string())
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
const BIRD: TcpPort = TcpPort::any("Choose another --bird-port or --listen.");
/// The bytes of a request to control, and of all that wait.
const MAIN_LIMITS: (usize, usize) = (REQUEST_BYTES_MAX, REQUESTS_BYTES_MAX);

impl TcpPort {
    const fn any(remedy: &'static str) -> TcpPort {
        TcpPort { number: 0, remedy }
    }

    fn at(self, number: u16) -> TcpPort {
        TcpPort { number, ..self }
    }
}

/// As many as there may be of each kind, with files left for all else.
fn connections_max() -> usize {
    let limit = getrlimit(Resource::RLIMIT_NOFILE);
    let files = limit.map_or(CONNECTIONS_MAX as u64, |(soft, _)| soft);
    usize::try_from(files / 8).map_or(CONNECTIONS_MAX, |files| files.min(CONNECTIONS_MAX))
}

/// Listens on all of them, on the port that was free on the first when any may be. The endpoint is the
/// last's.
fn bind_all(listen: &[String], port: TcpPort) -> Result<(String, Vec<TcpListener>), SocketError> {
    let (mut endpoint, mut listeners) = (String::new(), Vec::new());
    let mut port = port;
    for host in listen {
        let refused = |error: io::Error| SocketError::Bind {
            endpoint: format!("tcp://{host}:{}", port.number),
            reason: error.to_string(),
            remedy: port.remedy,
        };
        let address = address(host, port.number).map_err(refused)?;
        let bound = TcpListener::bind(address).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, listener))
        });
        let (at, listener) = bound.map_err(refused)?;
        port = port.at(at.port());
        endpoint = format!("tcp://{at}");
        listeners.push(listener);
    }
    Ok((endpoint, listeners))
}

/// The address of `*`, of a literal, of an interface, or of a name such as `localhost`.
///
/// # Errors
///
/// When it has none.
pub fn listen_address(host: &str) -> io::Result<IpAddr> {
    Ok(address(host, 0)?.ip())
}

/// One of IPv4 goes before.
fn address(host: &str, port: u16) -> io::Result<SocketAddr> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let bare = if bare == "*" { "0.0.0.0" } else { bare };
    if let Some(address) = interface_address(bare) {
        return Ok(SocketAddr::new(address, port));
    }
    let found: Vec<SocketAddr> = (bare, port).to_socket_addrs()?.collect();
    let of_ipv4 = found.iter().find(|address| address.is_ipv4());
    let unknown = || io::Error::new(io::ErrorKind::NotFound, "this name has no address");
    of_ipv4.or(found.first()).copied().ok_or_else(unknown)
}

/// The first address of an interface of that name.
fn interface_address(name: &str) -> Option<IpAddr> {
    let own = getifaddrs().ok()?.filter(|one| one.interface_name == name);
    let addresses: Vec<IpAddr> = own.filter_map(|one| ip_of(&one)).collect();
    let of_ipv4 = addresses.iter().find(|address| address.is_ipv4());
    of_ipv4.or(addresses.first()).copied()
}

fn ip_of(one: &nix::ifaddrs::InterfaceAddress) -> Option<IpAddr> {
    let address = one.address.as_ref()?;
    let of_ipv4 = address.as_sockaddr_in().map(|v4| IpAddr::V4(v4.ip()));
    of_ipv4.or_else(|| address.as_sockaddr_in6().map(|v6| IpAddr::V6(v6.ip())))
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

    #[test]
    fn who_is_told_to_give_a_token_does_or_is_refused() {
        let token = "0123456789abcdef";
        let file = std::env::temp_dir().join(format!("allosaur-zmq-{}", std::process::id()));
        std::fs::write(&file, format!("ann:{token}\n")).expect("written");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&file, mode).expect("ours");
        let access = AccessList::read(&file).expect("it is right");
        std::fs::remove_file(&file).expect("ours");
        let listen = ["127.0.0.1".to_owned()];
        let mut transport = ZmqTransport::bind_guarded(&listen, 0, 0, access).expect("free ports");
        let ask = |given: Option<&str>| {
            let context = ::zmq::Context::new();
            let client = context.socket(::zmq::REQ).expect("a socket");
            client.set_linger(0).expect("an option");
            if let Some(given) = given {
                client.set_plain_username(Some("ann")).expect("an option");
                client.set_plain_password(Some(given)).expect("an option");
            }
            let monitor = "inproc://monitor";
            let handshakes = 0x1000 | 0x0800 | 0x2000 | 0x4000;
            client.monitor(monitor, handshakes).expect("an option");
            let events = context.socket(::zmq::PAIR).expect("a socket");
            events.set_rcvtimeo(10_000).expect("an option");
            events.connect(monitor).expect("it is there");
            client
                .connect(&transport.rpc_endpoint())
                .expect("it listens");
            let event = events.recv_multipart(0).expect("an event");
            let number = u16::from_ne_bytes([event[0][0], event[0][1]]);
            (number, client)
        };
        // ZMQ_EVENT_HANDSHAKE_FAILED_AUTH of zmq_socket_monitor(3).
        assert_eq!(ask(Some("fedcba9876543210")).0, 0x4000);
        assert!([0x0800, 0x2000].contains(&ask(None).0));
        let (event, client) = ask(Some(token));
        assert_eq!(event, 0x1000);
        client.send("ask", 0).expect("connected");
        assert_eq!(next(&mut transport).frame, b"ask");
    }
}
