//! Flows over TLS: what their protocol says stands inside of records.
//!
//! A flow goes through a handshake first, in which its application rests: for the application, the
//! connection is there when the handshake is through. All that it says leaves in records, and all that
//! the peer says is told the application as if it were the bytes of the connection.

use std::sync::Arc;

use allosaur_engine::app::{
    AppCore, AppFlowInfo, AppFlows, AppRow, Application, ApplicationContext, ApplicationFactory,
    BufferIndex, Buffers, CoreInfo, FlowEvent, Output, ProgramEnd, VariablePool,
};
use allosaur_engine::tcp::End;
use allosaur_engine::time::{Nanos, SECOND};
use rustls::client::ClientConnection;
use rustls::pki_types::ServerName;
use rustls::server::ServerConnection;
use rustls::{ClientConfig, ServerConfig};

use super::alerts::{self, Failure};
use super::clock::CoreClock;
use super::flow_config::{CheckedClient, CheckedServer, CheckedSide, ClientTls, ServerTls};
use super::resumption::ClientSessions;
use super::session::TlsSession;
use super::settings::TlsSettingsError;
use crate::protocol::AppProtocol;

/// Bytes of an application in a record at most (RFC 8446 section 5.1).
const RECORD_BYTES_MAX: usize = 1 << 14;
/// How long the peer may take to say that it closes, too. A FIN before that would have its answer come
/// after the end (RFC 8446 section 6.1).
const CLOSE_NOTIFY_MAX: Nanos = SECOND;
/// How many values the random numbers have that a share is compared with.
const DRAWS: f64 = (1_u32 << 31) as f64;
/// Our list of rows, before those of the protocol.
const ROWS: usize = 0;

/// Makes the flows of one side of a template that speak a protocol over TLS.
#[derive(Debug)]
pub struct TlsFlows<P> {
    side: CheckedSide,
    protocol: P,
}

impl<P: AppProtocol> TlsFlows<P> {
    /// Those of clients.
    ///
    /// # Errors
    /// When something cannot be; the error names the field.
    pub fn client(tls: &ClientTls, protocol: P) -> Result<TlsFlows<P>, TlsSettingsError> {
        let side = CheckedSide::Client(CheckedClient::new(tls)?);
        Ok(TlsFlows { side, protocol })
    }

    /// Those of servers.
    ///
    /// # Errors
    /// When something cannot be; the error names the field.
    pub fn server(tls: &ServerTls, protocol: P) -> Result<TlsFlows<P>, TlsSettingsError> {
        let side = CheckedSide::Server(CheckedServer::new(tls)?);
        Ok(TlsFlows { side, protocol })
    }
}

impl<P: AppProtocol> ApplicationFactory for TlsFlows<P> {
    fn rows(&self) -> Vec<&'static [AppRow]> {
        let mut lists = vec![alerts::rows()];
        lists.extend(self.protocol.rows());
        lists
    }

    fn core(&self, core: &CoreInfo) -> Box<dyn AppCore> {
        let clock = CoreClock::default();
        let built = "it was built before";
        let side = match &self.side {
            CheckedSide::Client(client) => {
                let (config, sessions) = client.build(&clock).expect(built);
                Side::Client(ClientSide {
                    config,
                    sessions,
                    name: client.server_name.clone(),
                    resume: client.resume,
                })
            }
            CheckedSide::Server(server) => Side::Server(server.build(&clock).expect(built)),
        };
        Box::new(AppFlows::<TlsFlow<P::Flow>>::new(Shared {
            tls: TlsShared {
                side,
                clock,
                unix_offset: core.unix_offset,
            },
            buffers: Arc::clone(self.protocol.buffers()),
            plaintext: Vec::new(),
            inner: self.protocol.shared(core),
        }))
    }
}

/// What the flows of a core share; `inner` is what their applications do.
#[derive(Debug)]
struct Shared<S> {
    tls: TlsShared,
    buffers: Arc<Buffers>,
    /// What goes in or comes out of records; empty between calls.
    plaintext: Vec<u8>,
    inner: S,
}

/// What makes the sessions of a core.
#[derive(Debug)]
struct TlsShared {
    side: Side,
    clock: CoreClock,
    unix_offset: Nanos,
}

#[derive(Debug)]
enum Side {
    Client(ClientSide),
    Server(Arc<ServerConfig>),
}

#[derive(Debug)]
struct ClientSide {
    config: Arc<ClientConfig>,
    sessions: Option<Arc<ClientSessions>>,
    name: Option<ServerName<'static>>,
    resume: f64,
}

impl TlsShared {
    /// A session with this peer, and whether it could begin.
    fn session(
        &self,
        cx: &mut ApplicationContext<'_>,
        info: &AppFlowInfo,
    ) -> Result<TlsSession, rustls::Error> {
        self.clock.set(cx.now.wrapping_add(self.unix_offset));
        let connection = match &self.side {
            Side::Client(client) => {
                if let Some(sessions) = &client.sessions {
                    sessions.allow(f64::from(cx.rng.next31()) < client.resume * DRAWS);
                }
                let address = || ServerName::IpAddress(info.remote.ip().into());
                let name = client.name.clone().unwrap_or_else(address);
                ClientConnection::new(Arc::clone(&client.config), name)?.into()
            }
            Side::Server(config) => ServerConnection::new(Arc::clone(config))?.into(),
        };
        Ok(TlsSession::new(connection, self.clock.clone()))
    }
}

/// How far a flow is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The handshake is not through.
    Handshake,
    /// The application runs.
    Open,
    /// It is through: the peer shall say that it closes.
    Lingering(Output),
    /// What is left to be said is.
    Closing(Output),
    /// Nothing more is said.
    Over,
}

/// An application over TLS on one flow.
#[derive(Debug)]
struct TlsFlow<A> {
    info: AppFlowInfo,
    /// There is none before the connection is there.
    session: Option<Box<TlsSession>>,
    inner: A,
    phase: Phase,
    /// When the handshake began; while it lingers, until when.
    time: Nanos,
    /// What the application said and is not in records, from this byte of it on.
    sending: Option<(BufferIndex, u32)>,
    /// What came out of records and the application did not consume.
    unread: Vec<u8>,
    is_peer_closed: bool,
    /// The application was told so.
    has_told_closed: bool,
}

impl<A: Application> TlsFlow<A> {
    /// The session failed; what it has to say of that leaves before the flow ends.
    fn fail(&mut self, cx: &mut ApplicationContext<'_>, failure: Failure) {
        match self.phase {
            Phase::Handshake | Phase::Open => {
                cx.rows.add(ROWS, failure.row(), 1);
                self.phase = Phase::Closing(Output::Fail);
            }
            Phase::Lingering(end) => self.phase = Phase::Closing(end),
            Phase::Closing(_) | Phase::Over => {}
        }
    }

    fn note_established(
        &mut self,
        shared: &mut Shared<A::Shared>,
        cx: &mut ApplicationContext<'_>,
        is_resumed: bool,
    ) {
        self.phase = Phase::Open;
        cx.rows.add(ROWS, alerts::handshake_row(is_resumed), 1);
        cx.measures.count_handshake(cx.now - self.time);
        self.tell(shared, cx, FlowEvent::Connected);
    }

    fn tell(
        &mut self,
        shared: &mut Shared<A::Shared>,
        cx: &mut ApplicationContext<'_>,
        event: FlowEvent,
    ) {
        let inner = &mut cx.inner(ROWS + 1);
        self.inner.handle_event(&mut shared.inner, inner, event);
    }

    /// Offers what came out of records, and what waits before it; what is not consumed waits.
    fn offer(
        &mut self,
        shared: &mut Shared<A::Shared>,
        cx: &mut ApplicationContext<'_>,
        plaintext: &[u8],
    ) {
        if self.phase != Phase::Open {
            return;
        }
        let mut call = |inner: &mut A, data: &[u8]| {
            let cx = &mut cx.inner(ROWS + 1);
            let consumed = inner.handle_data(&mut shared.inner, cx, data);
            consumed.min(data.len())
        };
        if self.unread.is_empty() {
            let consumed = match plaintext.is_empty() {
                true => 0,
                false => call(&mut self.inner, plaintext),
            };
            self.unread.extend_from_slice(&plaintext[consumed..]);
        } else {
            self.unread.extend_from_slice(plaintext);
            let consumed = call(&mut self.inner, &self.unread);
            self.unread.drain(..consumed);
        }
        let is_all = self.unread.is_empty();
        if is_all && self.is_peer_closed && !std::mem::replace(&mut self.has_told_closed, true) {
            self.tell(shared, cx, FlowEvent::PeerClosed);
        }
    }

    fn note_peer_closed(
        &mut self,
        shared: &mut Shared<A::Shared>,
        cx: &mut ApplicationContext<'_>,
    ) {
        if std::mem::replace(&mut self.is_peer_closed, true) {
            return;
        }
        match self.phase {
            Phase::Handshake => self.fail(cx, Failure::Closed),
            Phase::Lingering(end) => self.phase = Phase::Closing(end),
            Phase::Open | Phase::Closing(_) | Phase::Over => self.offer(shared, cx, &[]),
        }
    }

    /// Puts the next record of what the application said behind `out`, of `room` bytes at most.
    fn write_record(
        &mut self,
        shared: &mut Shared<A::Shared>,
        (buffer, offset): (BufferIndex, u32),
        room: usize,
        out: &mut Vec<u8>,
    ) -> Option<Output> {
        let left = shared.buffers.len(buffer).saturating_sub(offset) as usize;
        let bytes = left.min(room).min(RECORD_BYTES_MAX);
        shared.plaintext.resize(bytes, 0);
        shared
            .buffers
            .copy_to(buffer, offset, &mut shared.plaintext);
        self.sending = (bytes < left).then_some((buffer, offset + bytes as u32));
        self.write_plaintext(shared, out)
    }

    /// Puts the plaintext in records behind `out`.
    fn write_plaintext(
        &mut self,
        shared: &mut Shared<A::Shared>,
        out: &mut Vec<u8>,
    ) -> Option<Output> {
        let session = self.session.as_mut()?;
        let sent = session.send(&shared.plaintext);
        shared.plaintext.clear();
        if sent.is_err() {
            self.sending = None;
            self.phase = Phase::Closing(Output::Fail);
            return None;
        }
        session.poll_transmit(out);
        Some(Output::Data)
    }

    /// The application is through: the peer is told that nothing follows.
    fn close(&mut self, now: Nanos, end: Output) -> Output {
        if let Some(session) = &mut self.session {
            session.close();
        }
        self.phase = if self.is_peer_closed {
            Phase::Closing(end)
        } else {
            self.time = now + CLOSE_NOTIFY_MAX;
            Phase::Lingering(end)
        };
        Output::Ended(match end {
            Output::EndProgram(end) => end,
            Output::Fail => ProgramEnd::Failed,
            _ => ProgramEnd::Done,
        })
    }

    /// What the application has to say next.
    fn poll_inner(
        &mut self,
        shared: &mut Shared<A::Shared>,
        cx: &mut ApplicationContext<'_>,
        room: usize,
        out: &mut Vec<u8>,
    ) -> Option<Output> {
        while self.phase == Phase::Open {
            if let Some(sending) = self.sending {
                return self.write_record(shared, sending, room, out);
            }
            let inner = &mut cx.inner(ROWS + 1);
            let (said, plaintext) = (&mut shared.inner, &mut shared.plaintext);
            let output = self.inner.poll_output(said, inner, room, plaintext)?;
            match output {
                Output::Data | Output::Datagrams(_) => return self.write_plaintext(shared, out),
                Output::Buffer(buffer) if shared.buffers.len(buffer) > 0 => {
                    self.sending = Some((buffer, 0));
                }
                Output::Buffer(_) | Output::Keepalive(_) => {}
                Output::Ended(_) => return Some(output),
                Output::Reset => self.phase = Phase::Closing(Output::Reset),
                Output::Close | Output::Fail | Output::EndProgram(_) => {
                    return Some(self.close(cx.now, output));
                }
            }
        }
        None
    }

    fn poll_records(&mut self, out: &mut Vec<u8>) -> Option<Output> {
        self.session.as_mut()?.poll_transmit(out);
        (!out.is_empty()).then_some(Output::Data)
    }
}

impl<A: Application> Application for TlsFlow<A> {
    type Shared = Shared<A::Shared>;

    const WANTS_ACKNOWLEDGED: bool = A::WANTS_ACKNOWLEDGED;

    fn start(
        shared: &mut Self::Shared,
        cx: &mut ApplicationContext<'_>,
        flow: &AppFlowInfo,
    ) -> TlsFlow<A> {
        TlsFlow {
            info: *flow,
            session: None,
            inner: A::start(&mut shared.inner, &mut cx.inner(ROWS + 1), flow),
            phase: Phase::Handshake,
            time: 0,
            sending: None,
            unread: Vec::new(),
            is_peer_closed: false,
            has_told_closed: false,
        }
    }

    fn handle_event(
        &mut self,
        shared: &mut Self::Shared,
        cx: &mut ApplicationContext<'_>,
        event: FlowEvent,
    ) {
        match event {
            FlowEvent::Connected => {
                self.time = cx.now;
                match shared.tls.session(cx, &self.info) {
                    Ok(session) => self.session = Some(Box::new(session)),
                    Err(error) => self.fail(cx, Failure::of(&error)),
                }
            }
            FlowEvent::Acknowledged if self.sending.is_some() => {}
            FlowEvent::PeerClosed => self.note_peer_closed(shared, cx),
            FlowEvent::Ended(end) if self.phase == Phase::Handshake => {
                // How the flow ended is its connection's to say; the session only names it.
                if self.session.is_some() {
                    let failure = match end {
                        End::Reset => Failure::Reset,
                        End::Closed => Failure::Closed,
                        End::TimedOut | End::CutOff => Failure::Unfinished,
                    };
                    cx.rows.add(ROWS, failure.row(), 1);
                    self.phase = Phase::Over;
                }
            }
            FlowEvent::Acknowledged | FlowEvent::Woken | FlowEvent::Ended(_) => {
                if self.phase == Phase::Open {
                    self.tell(shared, cx, event);
                }
            }
        }
    }

    fn handle_data(
        &mut self,
        shared: &mut Self::Shared,
        cx: &mut ApplicationContext<'_>,
        data: &[u8],
    ) -> usize {
        self.offer(shared, cx, &[]);
        let Some(session) = &mut self.session else {
            return data.len();
        };
        if session.has_peer_closed() || matches!(self.phase, Phase::Closing(_) | Phase::Over) {
            return data.len();
        }
        if self.phase == Phase::Open && !self.unread.is_empty() {
            // Who does not consume stops the peer.
            return 0;
        }
        let mut plaintext = std::mem::take(&mut shared.plaintext);
        let unix_time = cx.now.wrapping_add(shared.tls.unix_offset);
        let taken = session.handle_records(unix_time, data, &mut plaintext);
        let (is_established, is_resumed) = (session.is_established(), session.is_resumed());
        let has_peer_closed = session.has_peer_closed();
        if self.phase == Phase::Handshake && is_established {
            self.note_established(shared, cx, is_resumed);
        }
        self.offer(shared, cx, &plaintext);
        plaintext.clear();
        shared.plaintext = plaintext;
        match taken {
            // What follows the end is of no account (RFC 8446 section 6.1).
            _ if has_peer_closed => self.note_peer_closed(shared, cx),
            Ok(()) => {}
            Err(error) => self.fail(cx, Failure::of(&error)),
        }
        data.len()
    }

    fn handle_timeout(&mut self, shared: &mut Self::Shared, cx: &mut ApplicationContext<'_>) {
        match self.phase {
            Phase::Lingering(end) => self.phase = Phase::Closing(end),
            Phase::Open => {
                let inner = &mut cx.inner(ROWS + 1);
                self.inner.handle_timeout(&mut shared.inner, inner);
            }
            Phase::Handshake | Phase::Closing(_) | Phase::Over => {}
        }
    }

    fn poll_output(
        &mut self,
        shared: &mut Self::Shared,
        cx: &mut ApplicationContext<'_>,
        room: usize,
        out: &mut Vec<u8>,
    ) -> Option<Output> {
        if let Some(output) = self.poll_records(out) {
            return Some(output);
        }
        if !self.unread.is_empty() {
            self.offer(shared, cx, &[]);
        }
        if let Some(output) = self.poll_inner(shared, cx, room, out) {
            return Some(output);
        }
        if let Some(output) = self.poll_records(out) {
            return Some(output);
        }
        let Phase::Closing(end) = self.phase else {
            return None;
        };
        self.phase = Phase::Over;
        Some(end)
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        match self.phase {
            Phase::Lingering(_) => Some(self.time),
            Phase::Open => self.inner.poll_timeout(),
            Phase::Handshake | Phase::Closing(_) | Phase::Over => None,
        }
    }

    fn release(self, shared: &mut Self::Shared, variables: &mut VariablePool) {
        self.inner.release(&mut shared.inner, variables);
    }
}
