//! One flow: its transport, the application on it, and what it still has to send. Segments that arrive
//! and those that leave are here, messages of UDP in `udp_transport`.

use std::net::Ipv4Addr;

use allosaur_packet::MacAddress;
use allosaur_packet::network::checksum::Sum;
use allosaur_packet::prefetch;
use allosaur_packet::shared_payload::SharedPayload;
use allosaur_packet::transport::tcp::TcpFlags;

use super::app_latency::Stamp;
use super::application::FlowApplication;
use super::context::{FlowContext, FlowStatus, FrameTx, HeaderDefaults};
use super::links::{LinkAddresses, LinkIndex, segment_bytes_max};
use super::outbox::{Outbox, OutboxPool};
use super::udp::Udp;
use super::wire::{
    Addresses, Content, ETHERNET, Encapsulation, Envelope, HeaderTemplate, TIMED_BYTES,
};
use crate::app::{Action, Buffers};
use crate::flow::{FlowKey, Prefixes};
use crate::tcp::{self, Coalesced, Connection, Outcome, Progress, Segment, SegmentTx, TcpState};
use crate::time::{MICROSECOND, MILLISECOND, Nanos, Tight};

/// Rounds of application and transport in one go; what is left comes a little later.
const ROUNDS_MAX: u32 = 64;

/// How much later.
const LATER: Nanos = 20 * MICROSECOND;

/// Data of fewer bytes is copied into its frame, which is no more work than to say where it is, and
/// leaves no frame to be padded.
const SHARED_BYTES_MIN: u32 = 128;

/// What carries the data of a flow.
#[derive(Clone, Debug)]
pub(super) enum FlowTransport {
    Tcp(Connection),
    Udp(Udp),
}

/// What may be true of a flow: one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionFlag {
    /// The application wants the end once all is written.
    Closing = 1,
    /// Both ends know of each other.
    Connected = 1 << 1,
    /// It was reset, and waits for room to say so.
    Aborted = 1 << 2,
}

/// Those that are true.
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

    /// Whether both ends know of each other.
    pub fn is_established(&self) -> bool {
        self.flags.has(SessionFlag::Connected)
    }

    /// Whether the other side is there: it answered what we sent, or at least said more than its
    /// first.
    pub fn is_proven(&self) -> bool {
        match &self.transport {
            FlowTransport::Tcp(_) => self.flags.has(SessionFlag::Connected),
            FlowTransport::Udp(udp) => udp.has_heard_again(),
        }
    }

    /// Whether it ended because we reset it.
    pub fn was_reset_by_us(&self) -> bool {
        self.flags.has(SessionFlag::Aborted)
    }

    /// Its TCP connection, if it has one.
    pub fn connection(&self) -> Option<&Connection> {
        match &self.transport {
            FlowTransport::Tcp(connection) => Some(connection),
            FlowTransport::Udp(_) => None,
        }
    }

    /// The number by which its messages say whose they are: a client's, with the add-on "latency".
    pub fn connection_number(&self) -> Option<u32> {
        match &self.transport {
            FlowTransport::Tcp(_) => None,
            FlowTransport::Udp(udp) => udp.stamp.as_ref().and_then(Stamp::connection),
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

    /// The group that its program chose last; 0 for none.
    pub fn next_group(&self) -> u16 {
        match &self.application {
            FlowApplication::Program(program) => program.next_group(),
            FlowApplication::Bytes(_) => 0,
        }
    }

    /// Whether it is in TIME-WAIT.
    #[inline]
    pub fn is_in_time_wait(&self) -> bool {
        matches!(&self.transport, FlowTransport::Tcp(connection) if connection.state() == TcpState::TimeWait)
    }

    /// It was just made: it says its first.
    pub fn begin(&mut self, cx: &mut FlowContext<'_>, tx: &mut impl FrameTx) -> FlowStatus {
        self.attend(cx, tx)
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
                connection.input(&mut cx.tcp(), &segment.clamped(most), &mut outcome);
            } else {
                connection.input(&mut cx.tcp(), segment, &mut outcome);
            }
            self.note_outcome(cx, &outcome);
            if outcome.refused {
                self.refuse(cx, tx, segment);
            }
        }
        self.attend(cx, tx)
    }

    /// How many bytes may come with `segment` in segments like it that are handled together
    /// ([`handle_coalesced`](Session::handle_coalesced)); 0 when it is handled alone.
    #[inline]
    pub fn coalesced_bytes_max(&self, segment: &Segment) -> u32 {
        match (&self.application, &self.transport) {
            (FlowApplication::Program(_), FlowTransport::Tcp(connection)) => {
                connection.coalesced_bytes_max(segment)
            }
            _ => 0,
        }
    }

    /// Segments arrived that are handled as one: `segment` is the first of them.
    pub fn handle_coalesced(
        &mut self,
        cx: &mut FlowContext<'_>,
        tx: &mut impl FrameTx,
        segment: &Segment,
        coalesced: Coalesced,
    ) -> FlowStatus {
        if let FlowTransport::Tcp(connection) = &mut self.transport {
            let outcome = connection.handle_coalesced(&mut cx.tcp(), segment, coalesced);
            self.note_outcome(cx, &outcome);
        }
        self.attend(cx, tx)
    }

    /// What happened to the connection, told to the program.
    #[inline(always)]
    pub(super) fn note_outcome(&mut self, cx: &mut FlowContext<'_>, outcome: &Outcome) {
        let program = match &mut self.application {
            FlowApplication::Program(program) => program,
            FlowApplication::Bytes(index) => {
                let index = *index;
                return self.note_outcome_of_bytes(cx, index, *outcome, &[]);
            }
        };
        if outcome.connected {
            self.flags.set(SessionFlag::Connected);
            program.handle_connected();
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
            }
        }
        if outcome.peer_closed {
            program.handle_peer_closed();
        }
    }

    /// The reset that a segment gets which belongs to another connection.
    fn refuse(&mut self, cx: &mut FlowContext<'_>, tx: &mut impl FrameTx, segment: &Segment) {
        let link = cx.pools.links.at(self.link);
        let (prefixes, identification) = (&cx.pools.prefixes, self.identification);
        let envelope = envelope(&self.key, link, prefixes, cx.headers, identification);
        if let Some(reset) = segment.reset_in_reply() {
            let content = Content::Tcp(&reset);
            let sent = tx.send(envelope.frame_bytes(&content), |frame| {
                envelope.write(&content, frame, |_| Sum::default());
            });
            // Without room, the other end asks again.
            cx.counters.tcp.nombuf += u64::from(!sent);
        }
    }

    /// The time that was told has come.
    pub fn handle_timeout(
        &mut self,
        cx: &mut FlowContext<'_>,
        tx: &mut impl FrameTx,
    ) -> FlowStatus {
        if self.flags.has(SessionFlag::Aborted) && self.wake_at.get() <= cx.now {
            self.end_untold(cx);
            return FlowStatus::Over;
        }
        if self.wake_at.get() <= cx.now {
            self.wake_at = Tight::MAX;
            match &mut self.application {
                FlowApplication::Program(program) => program.handle_timeout(),
                FlowApplication::Bytes(index) => {
                    let index = *index;
                    cx.with_bytes(index, |cx, it| {
                        it.application.handle_timeout(&mut cx.application());
                    });
                }
            }
        }
        match &mut self.transport {
            FlowTransport::Tcp(connection) => {
                let outcome = connection.handle_timeout(&mut cx.tcp());
                self.note_outcome(cx, &outcome);
            }
            FlowTransport::Udp(udp) => udp.handle_timeout(cx.now, &mut cx.counters.udp),
        }
        self.attend(cx, tx)
    }

    /// The flow that its program waits for is over, or could not be; that one's program chose
    /// `next_group` last.
    pub fn handle_executed(
        &mut self,
        cx: &mut FlowContext<'_>,
        tx: &mut impl FrameTx,
        next_group: u16,
    ) -> FlowStatus {
        if let FlowApplication::Program(program) = &mut self.application {
            program.handle_executed(next_group);
        }
        self.attend(cx, tx)
    }

    /// The tx queue has room again.
    pub fn handle_writable(
        &mut self,
        cx: &mut FlowContext<'_>,
        tx: &mut impl FrameTx,
    ) -> FlowStatus {
        self.attend(cx, tx)
    }

    /// Lets application and transport work until both wait.
    pub(super) fn attend(&mut self, cx: &mut FlowContext<'_>, tx: &mut impl FrameTx) -> FlowStatus {
        match (&self.transport, &self.application) {
            (FlowTransport::Tcp(_), FlowApplication::Program(_)) => self.attend_program(cx, tx),
            _ => self.attend_any(cx, tx),
        }
    }

    /// The same for a program over TCP, as most flows are.
    #[inline(always)]
    fn attend_program(&mut self, cx: &mut FlowContext<'_>, tx: &mut impl FrameTx) -> FlowStatus {
        for _ in 0..ROUNDS_MAX {
            let acted = !self.rests() && self.run_program(cx);
            let is_done = self.hand_over(cx);
            if matches!(&self.transport, FlowTransport::Tcp(connection) if connection.is_closed()) {
                return FlowStatus::Over;
            }
            let progress = if is_done {
                Progress::Done
            } else {
                self.transmit_last(cx, tx)
                    .unwrap_or_else(|| self.transmit_segments(cx, tx))
            };
            if self.is_over() {
                return FlowStatus::Over;
            }
            if progress == Progress::Blocked {
                return FlowStatus::Blocked(self.due(cx));
            }
            if !acted || self.rests() {
                return FlowStatus::Open(self.due(cx));
            }
        }
        FlowStatus::Open(Some(cx.now + LATER))
    }

    /// The same for all others.
    #[inline(never)]
    fn attend_any(&mut self, cx: &mut FlowContext<'_>, tx: &mut impl FrameTx) -> FlowStatus {
        for _ in 0..ROUNDS_MAX {
            // A message that waited, and leaves now, lets the program go on.
            let acted = self.run_application(cx) || self.is_message_waiting();
            let progress = self.transmit(cx, tx);
            if self.is_over() {
                if let FlowApplication::Bytes(index) = self.application {
                    self.note_over(cx, index);
                }
                return FlowStatus::Over;
            }
            if progress == Progress::Blocked {
                return FlowStatus::Blocked(self.due(cx));
            }
            if !acted || self.rests() {
                return FlowStatus::Open(self.due(cx));
            }
        }
        FlowStatus::Open(Some(cx.now + LATER))
    }

    /// Whether its program waits for something that only comes from outside. It was sent what could
    /// be sent, so another round would do nothing.
    #[inline]
    fn rests(&self) -> bool {
        match &self.application {
            FlowApplication::Program(program) => program.is_waiting(),
            FlowApplication::Bytes(_) => false,
        }
    }

    /// Runs the program until it waits. Returns whether it did anything.
    #[inline]
    fn run_application(&mut self, cx: &mut FlowContext<'_>) -> bool {
        match &self.application {
            FlowApplication::Program(program) => !program.is_waiting() && self.run_program(cx),
            FlowApplication::Bytes(index) => {
                let index = *index;
                self.run_bytes(cx, index)
            }
        }
    }

    /// The same for a program that does not wait.
    fn run_program(&mut self, cx: &mut FlowContext<'_>) -> bool {
        let mut acted = false;
        while !self.is_message_waiting() {
            let mut inner = crate::app::ProgramContext {
                program: cx.program,
                now: cx.now,
                rng: cx.rng,
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
            if self.rests() {
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
            (Action::Close, _) => self.flags.set(SessionFlag::Closing),
            (Action::Reset, FlowTransport::Tcp(connection)) => {
                connection.abort();
                self.note_abort(cx.now);
            }
            (Action::Reset, FlowTransport::Udp(_)) => self.flags.set(SessionFlag::Closing),
            // Who called sees it by `executes`, or has seen to it.
            (Action::Execute { .. } | Action::Acknowledge, _) => {}
            // Programs are checked for their transport.
            (Action::Send { .. } | Action::SendMessage { .. } | Action::Keepalive { .. }, _) => {}
        }
    }

    /// Sends what may be sent.
    fn transmit(&mut self, cx: &mut FlowContext<'_>, tx: &mut impl FrameTx) -> Progress {
        if matches!(self.transport, FlowTransport::Udp(_)) {
            return self.transmit_message(cx, tx);
        }
        if self.hand_over(cx) {
            Progress::Done
        } else {
            self.transmit_segments(cx, tx)
        }
    }

    /// Hands what the application wrote to TCP, as far as there is room. Returns whether there is
    /// nothing to say.
    #[inline(always)]
    fn hand_over(&mut self, cx: &mut FlowContext<'_>) -> bool {
        let FlowTransport::Tcp(connection) = &mut self.transport else {
            return true;
        };
        let bytes = self.outbox.write(connection.room_bytes(cx.tunables));
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
        connection.has_nothing_to_say()
    }

    /// Sends what TCP may send, of what was handed over.
    fn transmit_segments(&mut self, cx: &mut FlowContext<'_>, tx: &mut impl FrameTx) -> Progress {
        let FlowTransport::Tcp(connection) = &mut self.transport else {
            return Progress::Done;
        };
        let link = cx.pools.links.at(self.link);
        let is_plain = matches!(link.encapsulation, Encapsulation::Ethernet);
        let mut leaving = LeavingSegments {
            key: &self.key,
            link,
            prefixes: &cx.pools.prefixes,
            headers: cx.headers,
            outbox: &self.outbox,
            buffers: cx.buffers,
            outboxes: &cx.pools.outboxes,
            is_plain: is_plain && self.key.prefixes.is_none(),
            identification: self.identification,
            tx,
        };
        let mut inner = tcp::TcpContext {
            now_ms: cx.pools.clock.tcp_ms,
            now_us: cx.pools.clock.us,
            tunables: cx.tunables,
            unread_bytes: match self.application {
                FlowApplication::Program(_) => 0,
                FlowApplication::Bytes(index) => cx.pools.applications.unread_bytes(index),
            },
            counters: &mut cx.counters.tcp,
            sides: &mut cx.pools.sides,
        };
        let mut outcome = Outcome::default();
        let progress = connection.poll_transmit(&mut inner, &mut outcome, &mut leaving);
        self.identification = leaving.identification;
        if outcome.ended.is_some() {
            self.note_outcome(cx, &outcome);
        }
        progress
    }

    pub(super) fn is_over(&self) -> bool {
        match &self.transport {
            FlowTransport::Tcp(connection) => connection.is_closed(),
            FlowTransport::Udp(udp) => udp.is_over(),
        }
    }

    /// When it wants to be called again.
    #[inline]
    fn due(&self, cx: &FlowContext<'_>) -> Option<Nanos> {
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

/// The data of a segment, where it is constant and worth sharing.
#[inline]
pub(super) fn shared_data<'b>(
    outbox: &Outbox,
    segment: &Segment,
    buffers: &'b Buffers,
) -> Option<SharedPayload<'b>> {
    if segment.len < SHARED_BYTES_MIN {
        return None;
    }
    outbox.shared(segment.offset, segment.len, buffers)
}

/// The segments of a flow on their way into frames.
struct LeavingSegments<'a, T> {
    key: &'a FlowKey,
    link: &'a LinkAddresses,
    prefixes: &'a Prefixes,
    headers: HeaderDefaults,
    outbox: &'a Outbox,
    buffers: &'a Buffers,
    outboxes: &'a OutboxPool,
    /// They go over IPv4, without tags or tunnel.
    is_plain: bool,
    /// Of the last one.
    identification: u16,
    tx: &'a mut T,
}

impl<T: FrameTx> SegmentTx for LeavingSegments<'_, T> {
    #[inline]
    fn send(&mut self, segment: &Segment) -> bool {
        self.identification = self.identification.wrapping_add(1);
        let Some(places) = Envelope::usual_places(self.is_plain, segment) else {
            return self.send_unusual(segment);
        };
        let envelope = self.plain_envelope();
        if let Some(payload) = shared_data(self.outbox, segment, self.buffers) {
            return send_shared(&envelope, segment, payload, self.tx);
        }
        let (outbox, buffers, outboxes) = (self.outbox, self.buffers, self.outboxes);
        self.tx.send(places.frame_bytes(), |frame| {
            envelope.write_at(places, &Content::Tcp(segment), frame, |data| {
                outbox.copy_to(segment.offset, data, buffers, outboxes)
            });
        })
    }

    fn send_run(&mut self, first: &Segment, count: u32) -> u32 {
        let is_usual = Envelope::usual_places(self.is_plain, first).is_some();
        let is_shared = is_usual && first.len >= SHARED_BYTES_MIN;
        let mut segment = *first;
        let mut sent = 0;
        while sent < count {
            if is_shared && count - sent > 1 {
                let shared = self.send_shared_run(&segment, count - sent);
                segment.advance(shared);
                sent += shared;
            }
            // One whose data is not in one piece, or that found no room.
            if sent < count {
                if !self.send(&segment) {
                    break;
                }
                segment.advance(1);
                sent += 1;
            }
        }
        sent
    }
}

impl<T: FrameTx> LeavingSegments<'_, T> {
    /// What surrounds a segment over IPv4 without tags.
    #[inline(always)]
    fn plain_envelope(&self) -> Envelope<'static> {
        plain_envelope(self.key, self.link, self.headers, self.identification)
    }

    /// Sends segments like `first` whose headers are as most are, as long as their data is constant
    /// and in one piece. Returns how many.
    fn send_shared_run(&mut self, first: &Segment, count: u32) -> u32 {
        let (outbox, buffers) = (self.outbox, self.buffers);
        let Some(payloads) = outbox.shared_run(first.offset, first.len, count, buffers) else {
            return 0;
        };
        let template = HeaderTemplate::new(&self.plain_envelope(), first);
        let (mut seq, mut identification) = (first.seq, self.identification);
        let sent = self.tx.send_run(TIMED_BYTES, payloads, |payload, head| {
            identification = identification.wrapping_add(1);
            template.write(identification, seq, payload.sum, head);
            seq += first.len;
        });
        self.identification = identification;
        sent
    }

    /// Sends a segment in any frame. A SYN tells how much the port takes.
    #[inline(never)]
    fn send_unusual(&mut self, segment: &Segment) -> bool {
        let (key, link) = (self.key, self.link);
        let envelope = envelope(key, link, self.prefixes, self.headers, self.identification);
        let asking;
        let segment = if segment.mss.is_some() {
            let most = segment_bytes_max(key, link, self.headers.frame_bytes_max);
            asking = segment.clamped(most);
            &asking
        } else {
            segment
        };
        if let Some(payload) = shared_data(self.outbox, segment, self.buffers) {
            return send_shared(&envelope, segment, payload, self.tx);
        }
        let content = Content::Tcp(segment);
        let (outbox, buffers, outboxes) = (self.outbox, self.buffers, self.outboxes);
        let places = envelope.places(&content);
        self.tx.send(places.frame_bytes(), |frame| {
            envelope.write_at(places, &content, frame, |data| {
                outbox.copy_to(segment.offset, data, buffers, outboxes)
            });
        })
    }
}

/// Sends a segment whose data is constant.
#[inline]
fn send_shared(
    envelope: &Envelope<'_>,
    segment: &Segment,
    payload: SharedPayload<'_>,
    tx: &mut impl FrameTx,
) -> bool {
    let content = Content::Tcp(segment);
    let places = envelope.places(&content);
    tx.send_sharing(places.head_bytes(), payload, |head| {
        let sum = Sum::default().and_u16(payload.sum);
        envelope.write_head_at(places, &content, head, sum);
    })
}

/// What surrounds the segments and messages of a flow.
#[inline]
pub(super) fn envelope<'a>(
    key: &FlowKey,
    link: &'a LinkAddresses,
    prefixes: &Prefixes,
    headers: HeaderDefaults,
    identification: u16,
) -> Envelope<'a> {
    let pair = key.prefixes;
    let long = pair.and_then(|n| prefixes.addresses(n, key.local, key.remote));
    let addresses = match long {
        Some((from, to)) => Addresses::V6(from, to),
        None => Addresses::V4(Ipv4Addr::from(key.local), Ipv4Addr::from(key.remote)),
    };
    let macs = (link.peer, link.own);
    Envelope {
        addresses,
        ..envelope_of(key, macs, &link.encapsulation, headers, identification)
    }
}

/// The same between addresses of IPv4, without tags.
#[inline(always)]
pub(super) fn plain_envelope(
    key: &FlowKey,
    link: &LinkAddresses,
    headers: HeaderDefaults,
    identification: u16,
) -> Envelope<'static> {
    let macs = (link.peer, link.own);
    envelope_of(key, macs, &ETHERNET, headers, identification)
}

/// The same between addresses of IPv4.
#[inline(always)]
fn envelope_of<'a>(
    key: &FlowKey,
    macs: (MacAddress, MacAddress),
    encapsulation: &'a Encapsulation,
    headers: HeaderDefaults,
    identification: u16,
) -> Envelope<'a> {
    Envelope {
        macs,
        encapsulation,
        addresses: Addresses::V4(Ipv4Addr::from(key.local), Ipv4Addr::from(key.remote)),
        ports: (key.local_port, key.remote_port),
        type_of_service: headers.type_of_service,
        time_to_live: headers.time_to_live,
        identification,
    }
}
