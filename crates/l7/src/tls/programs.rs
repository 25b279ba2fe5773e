//! Programs over TLS: what a flow's program sends and waits for is what stands inside of records.
//!
//! A flow goes through a handshake first, in which its program rests: for the program, the connection
//! is there when the handshake is through. All that a program says leaves in records, and all that the
//! peer says is told the program as if it were the bytes of the connection.

use std::sync::Arc;

use allosaur_engine::app::{
    Action, AppCore, AppFlowInfo, AppFlows, AppRow, Application, ApplicationContext,
    ApplicationFactory, BufferIndex, Buffers, CoreInfo, FlowEvent, Output, Program, ProgramContext,
    ProgramEnd, ProgramRun, VariablePool,
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

/// Bytes of a program in a record at most (RFC 8446 section 5.1).
const RECORD_BYTES_MAX: usize = 1 << 14;
/// How long the peer may take to say that it closes, too. A FIN before that would have its answer come
/// after the end (RFC 8446 section 6.1).
const CLOSE_NOTIFY_MAX: Nanos = SECOND;
/// How many values the random numbers have that a share is compared with.
const DRAWS: f64 = (1_u32 << 31) as f64;

/// Makes the flows of one side of a template that run a program over TLS.
#[derive(Debug)]
pub struct TlsPrograms {
    side: CheckedSide,
    program: Arc<Program>,
    buffers: Arc<Buffers>,
}

impl TlsPrograms {
    /// Those of clients.
    ///
    /// # Errors
    /// When something cannot be; the error names the field.
    pub fn client(
        tls: &ClientTls,
        program: Program,
        buffers: Arc<Buffers>,
    ) -> Result<TlsPrograms, TlsSettingsError> {
        let side = CheckedSide::Client(CheckedClient::new(tls)?);
        let program = Arc::new(program);
        Ok(TlsPrograms {
            side,
            program,
            buffers,
        })
    }

    /// Those of servers.
    ///
    /// # Errors
    /// When something cannot be; the error names the field.
    pub fn server(
        tls: &ServerTls,
        program: Program,
        buffers: Arc<Buffers>,
    ) -> Result<TlsPrograms, TlsSettingsError> {
        let side = CheckedSide::Server(CheckedServer::new(tls)?);
        let program = Arc::new(program);
        Ok(TlsPrograms {
            side,
            program,
            buffers,
        })
    }
}

impl ApplicationFactory for TlsPrograms {
    fn rows(&self) -> &'static [AppRow] {
        alerts::rows()
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
        Box::new(AppFlows::<TlsProgram>::new(Shared {
            side,
            clock,
            unix_offset: core.unix_offset,
            program: Arc::clone(&self.program),
            buffers: Arc::clone(&self.buffers),
            plaintext: Vec::new(),
        }))
    }
}

/// What the flows of a core share.
#[derive(Debug)]
struct Shared {
    side: Side,
    clock: CoreClock,
    unix_offset: Nanos,
    program: Arc<Program>,
    buffers: Arc<Buffers>,
    /// What goes in or comes out of records; empty between calls.
    plaintext: Vec<u8>,
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

impl Shared {
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
    /// The program runs.
    Open,
    /// The program is through, which is to be told.
    Ended(ProgramEnd),
    /// It was: the peer shall say that it closes.
    Lingering(Output),
    /// What is left to be said is.
    Closing(Output),
    /// Nothing more is said.
    Over,
}

/// A program over TLS on one flow.
#[derive(Debug)]
struct TlsProgram {
    info: AppFlowInfo,
    /// There is none before the connection is there.
    session: Option<Box<TlsSession>>,
    run: ProgramRun,
    phase: Phase,
    /// When the handshake began.
    began_at: Nanos,
    /// What the program said and is not in records, from this byte of it on.
    sending: Option<(BufferIndex, u32)>,
    wake_at: Option<Nanos>,
    is_peer_closed: bool,
}

impl TlsProgram {
    /// The session failed; what it has to say of that leaves before the flow ends.
    fn fail(&mut self, cx: &mut ApplicationContext<'_>, failure: Failure) {
        match self.phase {
            Phase::Handshake | Phase::Open => {
                failure.count(cx.rows);
                self.phase = Phase::Closing(Output::Fail);
            }
            Phase::Lingering(end) => self.phase = Phase::Closing(end),
            Phase::Ended(_) | Phase::Closing(_) | Phase::Over => {}
        }
    }

    /// Takes what the library made of bytes that arrived.
    fn take_plaintext(&mut self, cx: &mut ApplicationContext<'_>, program: &Program, data: &[u8]) {
        if data.is_empty() || self.phase != Phase::Open {
            return;
        }
        let bytes = data.len() as u32;
        if self.run.take_part(program, bytes) {
            return;
        }
        self.run.handle_delivered(bytes);
        if self.run.looks() {
            cx.measured.status = self.run.look(data).status;
        }
    }

    fn note_peer_closed(&mut self, cx: &mut ApplicationContext<'_>) {
        if std::mem::replace(&mut self.is_peer_closed, true) {
            return;
        }
        match self.phase {
            Phase::Handshake => self.fail(cx, Failure::Closed),
            Phase::Lingering(end) => {
                self.wake_at = None;
                self.phase = Phase::Closing(end);
            }
            _ => self.run.handle_peer_closed(),
        }
    }

    fn note_established(&mut self, cx: &mut ApplicationContext<'_>, is_resumed: bool) {
        self.phase = Phase::Open;
        alerts::count_handshake(cx.rows, is_resumed);
        cx.measured.handshake = Some(cx.now - self.began_at);
        self.run.handle_connected();
    }

    /// Puts the next record of what the program said behind `out`, of `room` bytes at most.
    fn write_record(
        &mut self,
        shared: &mut Shared,
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
        let session = self.session.as_mut()?;
        let sent = session.send(&shared.plaintext);
        shared.plaintext.clear();
        if sent.is_err() {
            self.phase = Phase::Closing(Output::Fail);
            return None;
        }
        session.poll_transmit(out);
        self.sending = None;
        if bytes == left {
            self.run.handle_room();
        } else {
            self.sending = Some((buffer, offset + bytes as u32));
        }
        Some(Output::Data)
    }

    /// The program is through: the peer is told that nothing follows.
    fn close(&mut self, now: Nanos, end: ProgramEnd) {
        if let Some(session) = &mut self.session {
            session.close();
        }
        let end = Output::EndProgram(end);
        self.phase = if self.is_peer_closed {
            Phase::Closing(end)
        } else {
            self.wake_at = Some(now + CLOSE_NOTIFY_MAX);
            Phase::Lingering(end)
        };
    }

    /// Lets the program go on until it waits, or has something to say.
    fn run_program(&mut self, shared: &Shared, cx: &mut ApplicationContext<'_>) {
        while self.phase == Phase::Open && self.sending.is_none() {
            let mut inner = ProgramContext {
                program: &shared.program,
                now: cx.now,
                rng: cx.rng,
                variables: cx.variables,
                counters: cx.counters,
            };
            let Some(action) = self.run.poll_action(&mut inner) else {
                return;
            };
            match action {
                Action::Send { buffer } if shared.buffers.len(buffer) == 0 => {
                    self.run.handle_acknowledged();
                }
                Action::Send { buffer } => self.sending = Some((buffer, 0)),
                Action::WakeAt(at) => self.wake_at = Some(at),
                Action::Close => self.phase = Phase::Ended(self.run.end_reached()),
                Action::Reset => self.phase = Phase::Closing(Output::Reset),
                // Nothing waits for an acknowledgment here.
                Action::Acknowledge => {}
                // Programs of other flows are refused where profiles are read.
                Action::Execute { .. } => self.run.handle_executed(0),
                Action::SendMessage { .. } | Action::Keepalive { .. } => {}
            }
        }
    }
}

impl Application for TlsProgram {
    type Shared = Shared;

    /// Programs wait for it after what they send.
    const WANTS_ACKNOWLEDGED: bool = true;

    fn start(
        shared: &mut Shared,
        _: &mut ApplicationContext<'_>,
        flow: &AppFlowInfo,
    ) -> TlsProgram {
        TlsProgram {
            info: *flow,
            session: None,
            run: ProgramRun::start(&shared.program),
            phase: Phase::Handshake,
            began_at: 0,
            sending: None,
            wake_at: None,
            is_peer_closed: false,
        }
    }

    fn handle_event(
        &mut self,
        shared: &mut Shared,
        cx: &mut ApplicationContext<'_>,
        event: FlowEvent,
    ) {
        match event {
            FlowEvent::Connected => {
                self.began_at = cx.now;
                match shared.session(cx, &self.info) {
                    Ok(session) => self.session = Some(Box::new(session)),
                    Err(error) => self.fail(cx, Failure::of(&error)),
                }
            }
            FlowEvent::Acknowledged if self.phase == Phase::Open && self.sending.is_none() => {
                self.run.handle_acknowledged();
            }
            FlowEvent::PeerClosed => self.note_peer_closed(cx),
            FlowEvent::Ended(end) => {
                let failure = match end {
                    End::Reset => Failure::Reset,
                    End::Closed => Failure::Closed,
                    End::TimedOut | End::CutOff => Failure::Unfinished,
                };
                // How the flow ended is its connection's to say; the session only names it.
                if self.phase == Phase::Handshake && self.session.is_some() {
                    failure.count(cx.rows);
                    self.phase = Phase::Over;
                }
            }
            FlowEvent::Acknowledged | FlowEvent::Woken => {}
        }
    }

    fn handle_data(
        &mut self,
        shared: &mut Shared,
        cx: &mut ApplicationContext<'_>,
        data: &[u8],
    ) -> usize {
        let Some(session) = &mut self.session else {
            return data.len();
        };
        if session.has_peer_closed() || matches!(self.phase, Phase::Closing(_) | Phase::Over) {
            return data.len();
        }
        let mut plaintext = std::mem::take(&mut shared.plaintext);
        let unix_time = cx.now.wrapping_add(shared.unix_offset);
        let taken = session.handle_records(unix_time, data, &mut plaintext);
        let (is_established, is_resumed) = (session.is_established(), session.is_resumed());
        let has_peer_closed = session.has_peer_closed();
        if self.phase == Phase::Handshake && is_established {
            self.note_established(cx, is_resumed);
        }
        self.take_plaintext(cx, &shared.program, &plaintext);
        plaintext.clear();
        shared.plaintext = plaintext;
        match taken {
            // What follows the end is of no account (RFC 8446 section 6.1).
            _ if has_peer_closed => self.note_peer_closed(cx),
            Ok(()) => {}
            Err(error) => self.fail(cx, Failure::of(&error)),
        }
        data.len()
    }

    fn handle_timeout(&mut self, _: &mut Shared, _: &mut ApplicationContext<'_>) {
        self.wake_at = None;
        match self.phase {
            Phase::Lingering(end) => self.phase = Phase::Closing(end),
            _ => self.run.handle_timeout(),
        }
    }

    fn poll_output(
        &mut self,
        shared: &mut Shared,
        cx: &mut ApplicationContext<'_>,
        room: usize,
        out: &mut Vec<u8>,
    ) -> Option<Output> {
        if let Some(session) = &mut self.session {
            session.poll_transmit(out);
            if !out.is_empty() {
                return Some(Output::Data);
            }
        }
        self.run_program(shared, cx);
        if let Some(sending) = self.sending {
            return self.write_record(shared, sending, room, out);
        }
        if let Phase::Ended(end) = self.phase {
            self.close(cx.now, end);
            return Some(Output::Ended(end));
        }
        if let Some(session) = &mut self.session {
            session.poll_transmit(out);
            if !out.is_empty() {
                return Some(Output::Data);
            }
        }
        let Phase::Closing(end) = self.phase else {
            return None;
        };
        self.phase = Phase::Over;
        Some(end)
    }

    fn poll_timeout(&self) -> Option<Nanos> {
        self.wake_at
    }

    fn release(mut self, _: &mut Shared, variables: &mut VariablePool) {
        self.run.release(variables);
    }
}
