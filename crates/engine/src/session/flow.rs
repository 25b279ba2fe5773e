//! One flow: its transport, the application on it, and what it still has to send. A segment arrives, its
//! program goes on, and the segment leaves that says all there is to say; what else there may be is in
//! `events`, `transmit`, and for messages of UDP in `udp_transport`.

use allosaur_packet::prefetch;
use allosaur_packet::transport::tcp::TcpFlags;

use super::application::FlowApplication;
use super::begin_time::BeginTime;
use super::context::{FlowContext, FlowStatus, FrameTx};
use super::links::{LinkIndex, segment_bytes_max};
use super::measure::{Whose, delivered, look_at, note_connected};
use super::outbox::Outbox;
use super::prefixed::send_behind_prefix;
use super::surroundings::{
    Surroundings, data_of, is_plain, plain_envelope, send_plain, shared_data,
};
use super::udp::Udp;
use super::wire;
use crate::app::{Action, ProgramContext};
use crate::flow::FlowKey;
use crate::tcp::{Connection, Outcome, Progress, Segment, TcpState};
use crate::time::{MICROSECOND, MILLISECOND, Nanos, Tight};

/// Rounds of application and transport in one call; what is left is done [`LATER`].
pub(super) const ROUNDS_MAX: u32 = 64;

/// How much later.
pub(super) const LATER: Nanos = 20 * MICROSECOND;

/// What carries the data of a flow.
#[derive(Clone, Debug)]
pub(super) enum FlowTransport {
    Tcp(Connection),
    Udp(Udp),
}

/// The flags of a session: one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionFlag {
    /// The application closed it: a FIN follows what is left to write.
    Closing = 1,
    /// The connection is established.
    Connected = 1 << 1,
    /// It was aborted, and waits for room to send the RST.
    Aborted = 1 << 2,
    /// The end of the test ended it.
    CutOff = 1 << 3,
    /// Its ports are not served any more, or other flows need its place.
    GivenUp = 1 << 4,
    /// Its outcome was counted, see `outcome`.
    Judged = 1 << 5,
    /// We opened it.
    Client = 1 << 6,
}

/// A set of them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SessionFlags(u8);

impl SessionFlags {
    #[inline]
    pub(super) fn has(self, flag: SessionFlag) -> bool {
        self.0 & flag as u8 != 0
    }

    #[inline]
    pub(super) fn set(&mut self, flag: SessionFlag) {
        self.0 |= flag as u8;
    }
}

/// A flow. Driven by `handle_...`; each call says how it stands.
#[derive(Debug)]
pub struct Session {
    pub(super) key: FlowKey,
    pub(super) transport: FlowTransport,
    pub(super) application: FlowApplication,
    pub(super) outbox: Outbox,
    /// When the application wants to be woken; `Nanos::MAX` is never.
    pub(super) wake_at: Tight,
    /// Where its frames go.
    pub(super) link: LinkIndex,
    pub(super) identification: u16,
    pub(super) flags: SessionFlags,
    pub(super) begin_time: BeginTime,
}

impl Session {
    /// The key by which it is found.
    pub fn key(&self) -> &FlowKey {
        &self.key
    }

    /// Asks for the lines of the cache that it is in, so that they are there soon.
    #[inline]
    pub fn fetch(&self) {
        prefetch(&self.key.local);
        prefetch(&self.link);
        if let FlowTransport::Tcp(connection) = &self.transport {
            connection.fetch();
        }
    }

    /// Whether it is established.
    pub fn is_established(&self) -> bool {
        self.flags.has(SessionFlag::Connected)
    }

    /// Its TCP connection, if it has one.
    pub fn connection(&self) -> Option<&Connection> {
        match &self.transport {
            FlowTransport::Tcp(connection) => Some(connection),
            FlowTransport::Udp(_) => None,
        }
    }

    /// The group of the flow that its program waits for, see [`Action::Execute`].
    #[inline]
    pub fn executes(&self) -> Option<u16> {
        match &self.application {
            FlowApplication::Program(program) => program.executes(),
            FlowApplication::Bytes(_) => None,
        }
    }

    /// Whose it is, for what is measured.
    pub(super) fn whose(&self) -> Whose {
        Whose {
            is_client: self.is_client(),
            begin_time: self.begin_time,
        }
    }

    /// When it began.
    #[inline]
    pub fn begin_time(&self) -> BeginTime {
        self.begin_time
    }

    /// Whether it is in TIME-WAIT.
    #[inline]
    pub fn is_in_time_wait(&self) -> bool {
        matches!(&self.transport, FlowTransport::Tcp(connection) if connection.state() == TcpState::TimeWait)
    }

    /// A segment arrived, with this data.
    pub fn handle_segment(
        &mut self,
        cx: &mut FlowContext<'_>,
        tx: &mut impl FrameTx,
        segment: &Segment,
        data: &[u8],
    ) -> FlowStatus {
        if let FlowApplication::Bytes(index) = self.application {
            let outcome = self.read_segment(cx, index, segment, data);
            if outcome.refused {
                self.refuse(cx, tx, segment);
            }
        } else if let FlowTransport::Tcp(connection) = &mut self.transport {
            let mut outcome = Outcome::default();
            if segment.has(TcpFlags::SYN) {
                let link = cx.pools.links.at(self.link);
                let frame_bytes_max = cx.headers.frame_bytes_max;
                let most = segment_bytes_max(&self.key, link, frame_bytes_max);
                connection.input(&mut cx.tcp(), &segment.received_within(most), &mut outcome);
            } else {
                connection.input(&mut cx.tcp(), segment, &mut outcome);
            }
            self.note_outcome(cx, &outcome, Some((segment, data)));
            if outcome.refused {
                self.refuse(cx, tx, segment);
            }
        }
        self.drive(cx, tx)
    }

    /// What happened to the connection, told to the program; with the segment that brought it.
    #[inline(always)]
    pub(super) fn note_outcome(
        &mut self,
        cx: &mut FlowContext<'_>,
        outcome: &Outcome,
        arrived: Option<(&Segment, &[u8])>,
    ) {
        let program = match &mut self.application {
            FlowApplication::Program(program) => program,
            FlowApplication::Bytes(index) => {
                let index = *index;
                return self.note_outcome_of_bytes(cx, index, *outcome, &[]);
            }
        };
        let whose = Whose {
            is_client: self.flags.has(SessionFlag::Client),
            begin_time: self.begin_time,
        };
        if outcome.connected {
            self.flags.set(SessionFlag::Connected);
            program.handle_connected();
            note_connected(whose, cx);
        }
        if outcome.acknowledged_bytes > 0 {
            let bytes = outcome.acknowledged_bytes;
            self.outbox
                .acknowledge(bytes, cx.buffers, &mut cx.pools.outboxes);
            if self.outbox.is_empty() {
                program.handle_acknowledged();
            }
        }
        if outcome.delivered_bytes > 0 {
            let bytes = outcome.delivered_bytes;
            if !program.take_part(cx.program, bytes) {
                program.handle_delivered(bytes);
                if program.looks() {
                    let FlowTransport::Tcp(connection) = &self.transport else {
                        return;
                    };
                    let data = delivered(connection, outcome, arrived);
                    look_at(program, data, whose, cx);
                }
            }
        }
        if outcome.peer_closed {
            program.handle_peer_closed();
        }
    }

    /// Runs application and transport until both wait.
    pub(super) fn drive(&mut self, cx: &mut FlowContext<'_>, tx: &mut impl FrameTx) -> FlowStatus {
        match &self.transport {
            FlowTransport::Tcp(_) => self.drive_stream(cx, tx),
            FlowTransport::Udp(_) => self.drive_datagrams(cx, tx),
        }
    }

    /// The same over TCP, as most flows are; `events` has that over UDP.
    #[inline(always)]
    fn drive_stream(&mut self, cx: &mut FlowContext<'_>, tx: &mut impl FrameTx) -> FlowStatus {
        for _ in 0..ROUNDS_MAX {
            let acted = !self.is_idle() && self.run_application(cx);
            let is_done = self.write_outbox(cx);
            if matches!(&self.transport, FlowTransport::Tcp(connection) if connection.is_closed()) {
                return self.over(cx);
            }
            let progress = if is_done {
                Progress::Done
            } else {
                self.transmit_last(cx, tx)
                    .unwrap_or_else(|| self.transmit_segments(cx, tx))
            };
            if self.is_over() {
                return self.over(cx);
            }
            if progress == Progress::Blocked {
                return FlowStatus::Blocked(self.due(cx));
            }
            if !acted || self.is_idle() {
                return FlowStatus::Open(self.due(cx));
            }
        }
        FlowStatus::Open(Some(cx.now + LATER))
    }

    /// Runs the program, which does not wait, or the application in its place, until it does.
    /// Returns whether it did anything.
    #[inline(always)]
    fn run_application(&mut self, cx: &mut FlowContext<'_>) -> bool {
        match &self.application {
            FlowApplication::Program(_) => self.run_program(cx),
            FlowApplication::Bytes(index) => {
                let index = *index;
                self.run_bytes(cx, index)
            }
        }
    }

    /// Whether its program waits for an event. What could be sent was sent, so another round would do
    /// nothing.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        match &self.application {
            FlowApplication::Program(program) => program.is_waiting(),
            FlowApplication::Bytes(_) => false,
        }
    }

    /// Runs the program, which does not wait, until it does. Returns whether it did anything.
    pub(super) fn run_program(&mut self, cx: &mut FlowContext<'_>) -> bool {
        let mut acted = false;
        while !self.is_message_waiting() {
            let mut inner = ProgramContext {
                program: cx.program,
                now: cx.now,
                rng: &mut cx.pools.rng,
                variables: &mut cx.pools.variables,
                counters: &mut cx.counters.application,
            };
            let FlowApplication::Program(program) = &mut self.application else {
                break;
            };
            let Some(action) = program.poll_action(&mut inner) else {
                break;
            };
            acted = true;
            if action == Action::Acknowledge {
                // The caller sends now; then the program goes on.
                break;
            }
            self.act(cx, action);
            if self.is_idle() {
                break;
            }
        }
        acted
    }

    pub(super) fn is_message_waiting(&self) -> bool {
        matches!(&self.transport, FlowTransport::Udp(udp) if udp.waits_to_send())
    }

    /// Does what its program or application asks for.
    #[inline]
    pub(super) fn act(&mut self, cx: &mut FlowContext<'_>, action: Action) {
        match (action, &mut self.transport) {
            (Action::Send { buffer }, FlowTransport::Tcp(_)) => {
                self.outbox.push(buffer, cx.buffers, &mut cx.pools.outboxes);
                if let (true, FlowApplication::Program(program)) =
                    (self.outbox.is_empty(), &mut self.application)
                {
                    program.handle_acknowledged();
                }
            }
            (Action::SendMessage { buffer }, FlowTransport::Udp(udp)) => udp.send(buffer),
            (Action::WakeAt(at), _) => self.wake_at = Tight::new(at),
            (
                Action::Keepalive {
                    timeout_ms,
                    received_only,
                },
                FlowTransport::Udp(udp),
            ) => udp.set_keepalive(cx.now, timeout_ms, received_only),
            (Action::Close, _) => {
                self.flags.set(SessionFlag::Closing);
                self.note_program_end(cx);
            }
            (Action::Reset, _) => {
                self.reset(cx.now);
                self.note_program_end(cx);
            }
            // Who called sees it by `executes`, or has seen to it.
            (Action::Execute { .. } | Action::Acknowledge, _) => {}
            // Programs are checked for their transport.
            (Action::Send { .. } | Action::SendMessage { .. } | Action::Keepalive { .. }, _) => {}
        }
    }

    /// Writes the outbox to TCP, as far as there is room. Returns whether there is nothing to send.
    #[inline(always)]
    pub(super) fn write_outbox(&mut self, cx: &mut FlowContext<'_>) -> bool {
        let FlowTransport::Tcp(connection) = &mut self.transport else {
            return true;
        };
        let bytes = self.outbox.write(connection.writable_bytes(cx.tunables));
        if bytes > 0 {
            connection.write(bytes, &mut cx.counters.tcp);
        }
        if self.outbox.is_written() {
            if let FlowApplication::Program(program) = &mut self.application {
                program.handle_room();
            }
            if self.flags.has(SessionFlag::Closing) {
                connection.close();
            }
        }
        connection.has_nothing_to_send()
    }

    /// Sends the segment that says all there is to say, in the frame that most have: it is written from
    /// what is at hand, and nothing is asked twice. `None` where there is no such segment; others leave
    /// in `transmit`.
    #[inline(always)]
    fn transmit_last(
        &mut self,
        cx: &mut FlowContext<'_>,
        tx: &mut impl FrameTx,
    ) -> Option<Progress> {
        let FlowTransport::Tcp(connection) = &mut self.transport else {
            return None;
        };
        let pools = &mut *cx.pools;
        let mut tcp = pools
            .clock
            .tcp(cx.tunables, cx.counters, &mut pools.recovery);
        if let FlowApplication::Bytes(index) = self.application {
            tcp.unread_bytes = pools.applications.unread_bytes(index);
        }
        if !connection.is_synchronized() {
            return self.transmit_syn(cx, tx);
        }
        let rest = connection.rest_to_send(&mut tcp)?;
        let segment = connection.last_segment(&tcp, rest);
        // With timestamps and nothing else: so it is written below.
        if !wire::is_timed(&segment) {
            return None;
        }
        let (outbox, outboxes) = (&self.outbox, &pools.outboxes);
        let shared = shared_data(outbox, &segment, cx.buffers);
        let data = data_of(outbox, &segment, &shared, cx.buffers, outboxes)?;
        self.identification = self.identification.wrapping_add(1);
        let (link, identification) = (pools.links.at(self.link), self.identification);
        let is_sent = if is_plain(&self.key, link) {
            let envelope = plain_envelope(&self.key, link, cx.headers, identification);
            send_plain(&envelope, &segment, data, shared, tx)
        } else {
            let surroundings = Surroundings::new(&self.key, link, &pools.spaces, cx.headers);
            send_behind_prefix(surroundings, identification, segment, data, shared, tx)
        };
        if !is_sent {
            return Some(Progress::Blocked);
        }
        connection.note_last_sent(&mut tcp, &segment);
        Some(Progress::Done)
    }

    pub(super) fn is_over(&self) -> bool {
        match &self.transport {
            FlowTransport::Tcp(connection) => connection.is_closed(),
            FlowTransport::Udp(udp) => udp.is_over(),
        }
    }

    /// When it wants to be called again.
    #[inline]
    pub(super) fn due(&self, cx: &FlowContext<'_>) -> Option<Nanos> {
        let transport = match &self.transport {
            FlowTransport::Tcp(connection) => {
                let left_ms = connection.poll_timeout(cx.pools.clock.tcp_ms);
                left_ms.map(|left_ms| (cx.pools.clock.ms + u64::from(left_ms)) * MILLISECOND)
            }
            FlowTransport::Udp(udp) => udp.due(),
        };
        let due = transport.unwrap_or(Nanos::MAX).min(self.wake_at.get());
        (due != Nanos::MAX).then_some(due)
    }
}
