//! One flow: its transport, the application on it, and what it still has to send.

use std::net::Ipv4Addr;

use allosaur_packet::checksum::Sum;
use allosaur_packet::tcp::TcpFlags;

use super::app_latency::{Connections, Header, LatencyCounters, Stamp};
use super::links::{LinkAddresses, LinkIndex, Links};
use super::outbox::{Outbox, OutboxPool};
use super::udp::Udp;
use super::wire::{self, Addresses, Content, Envelope};
use crate::app::{
    Action, Addon, Application, ApplicationCounters, BufferIndex, Buffers, Program, Transport,
    UdpCounters, VariablePool,
};
use crate::flow::{FlowKey, Prefixes, Protocol};
use crate::rng::Lcg;
use crate::tcp::{
    self, Connection, Outcome, Progress, RecoveryPool, Segment, Seq, State, TcpCounters, Tunables,
};
use crate::time::{MICROSECOND, MILLISECOND, Nanos, Tight};

/// Rounds of application and transport in one go; what is left comes a little later.
const ROUNDS_MAX: u32 = 64;
/// How much later.
const LATER: Nanos = 20 * MICROSECOND;
/// How long a reset waits for room on its way out.
const RESET_WAITS: Nanos = 500 * MILLISECOND;

/// What one side of the flows of one template counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SideCounters {
    /// TCP.
    pub tcp: TcpCounters,
    /// UDP.
    pub udp: UdpCounters,
    /// Programs.
    pub application: ApplicationCounters,
    /// The add-on "latency".
    pub latency: LatencyCounters,
}

/// How the frames of one side of a template look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderDefaults {
    /// The type of service, or traffic class.
    pub type_of_service: u8,
    /// Time to live, or hop limit.
    pub time_to_live: u8,
    /// The longest frame that its port takes, without FCS.
    pub frame_bytes_max: usize,
}

/// What the flows of a core share.
#[derive(Debug, Default)]
pub struct Pools {
    /// For TCP while something is lost.
    pub sides: RecoveryPool,
    /// For programs with variables.
    pub variables: VariablePool,
    /// For flows that send several buffers.
    pub outboxes: OutboxPool,
    /// Where the frames of flows go.
    pub links: Links,
    /// The prefixes of IPv6 addresses.
    pub prefixes: Prefixes,
    /// Numbers for connections of the add-on "latency".
    pub connections: Connections,
    /// What TCP's clock said at the engine's time 0, in milliseconds.
    pub tcp_began_ms: u32,
}

impl Pools {
    /// TCP's clock: milliseconds that go round.
    pub fn tcp_ms(&self, now: Nanos) -> u32 {
        ((now / MILLISECOND) as u32).wrapping_add(self.tcp_began_ms)
    }
}

/// What a flow works with: the same things, by value, in each call.
#[derive(Debug)]
pub struct Context<'a> {
    /// The time.
    pub now: Nanos,
    /// What it runs.
    pub program: &'a Program,
    /// What it sends.
    pub buffers: &'a Buffers,
    /// How its TCP behaves.
    pub tunables: &'a Tunables,
    /// How its frames look.
    pub looks: HeaderDefaults,
    /// Where it counts.
    pub counters: &'a mut SideCounters,
    /// What all flows share.
    pub pools: &'a mut Pools,
    /// Where random times come from.
    pub rng: &'a mut Lcg,
}

/// The way out of a flow's frames: one transmit queue.
pub trait FrameTx {
    /// Has a frame of so many bytes written by `write`, and sends it; `false`, and nothing
    /// happens, when there is no room.
    fn send(&mut self, bytes: usize, write: impl FnOnce(&mut [u8])) -> bool;
}

/// How a flow stands after it was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowStatus {
    /// It goes on; call [`Session::handle_timeout`] at this time.
    Open(Option<Nanos>),
    /// The way is full: call [`Session::handle_room`] when it no longer is; and at this time.
    Blocked(Option<Nanos>),
    /// It is over: release it, and forget it.
    Over,
}

/// What carries the data of a flow.
#[derive(Clone, Debug)]
enum FlowTransport {
    Tcp(Connection),
    Udp(Udp),
}

/// A flow. Driven by `handle_...`; each call says how it stands.
#[derive(Clone, Debug)]
pub struct Session {
    key: FlowKey,
    carrier: FlowTransport,
    application: Application,
    outbox: Outbox,
    /// When the application wants to be woken; `Nanos::MAX` is never.
    wake_at: Tight,
    /// Where its frames go.
    link: LinkIndex,
    identification: u16,
    /// The application wants the end once all is written.
    is_closing: bool,
    has_connected: bool,
    is_aborted: bool,
}

impl Session {
    /// A flow that asks for its other end. `first` is the number of its SYN.
    pub fn connect(cx: &mut Context<'_>, key: FlowKey, link: LinkAddresses, first: Seq) -> Session {
        let carrier = match key.protocol {
            Protocol::Tcp => FlowTransport::Tcp(with_tcp(cx, |cx| Connection::connect(cx, first))),
            Protocol::Udp => {
                cx.counters.udp.connects += 1;
                let stamp = cx
                    .program
                    .addon()
                    .map(|Addon::Latency| Stamp::client(cx.pools.connections.draw()));
                FlowTransport::Udp(Udp::new(cx.now, stamp))
            }
        };
        Session::new(cx, key, link, carrier)
    }

    /// A flow that another end asked for with `syn`.
    pub fn accept(
        cx: &mut Context<'_>,
        key: FlowKey,
        link: LinkAddresses,
        first: Seq,
        syn: &Segment,
    ) -> Session {
        let syn = clamped(
            syn,
            segment_bytes_max(&key, link.vlan, cx.looks.frame_bytes_max),
        );
        let connection = with_tcp(cx, |cx| Connection::accept(cx, first, &syn));
        Session::new(cx, key, link, FlowTransport::Tcp(connection))
    }

    /// A flow that another end began with a datagram.
    pub fn accept_datagram(cx: &mut Context<'_>, key: FlowKey, link: LinkAddresses) -> Session {
        cx.counters.udp.accepts += 1;
        let stamp = cx.program.addon();
        let stamp = stamp.map(|Addon::Latency| Stamp::Server(Header::default()));
        let carrier = FlowTransport::Udp(Udp::new(cx.now, stamp));
        Session::new(cx, key, link, carrier)
    }

    fn new(
        cx: &mut Context<'_>,
        key: FlowKey,
        link: LinkAddresses,
        carrier: FlowTransport,
    ) -> Session {
        let is_datagram = matches!(carrier, FlowTransport::Udp(_));
        debug_assert_eq!(is_datagram, cx.program.transport() == Transport::Datagram);
        let mut application = Application::start(cx.program);
        if is_datagram {
            application.handle_connected();
        }
        Session {
            key,
            carrier,
            application,
            outbox: Outbox::default(),
            wake_at: Tight::MAX,
            link: cx.pools.links.hold(link),
            identification: cx.rng.next15() as u16,
            is_closing: false,
            has_connected: is_datagram,
            is_aborted: false,
        }
    }

    /// The key by which it is found.
    pub fn key(&self) -> &FlowKey {
        &self.key
    }

    /// Whether both ends know of each other.
    pub fn is_established(&self) -> bool {
        self.has_connected
    }

    /// Whether the other side is there: it answered what we sent, or at least said more than its
    /// first.
    pub fn is_proven(&self) -> bool {
        match &self.carrier {
            FlowTransport::Tcp(_) => self.has_connected,
            FlowTransport::Udp(udp) => udp.has_heard_again(),
        }
    }

    /// Whether it ended because we reset it.
    pub fn was_reset_by_us(&self) -> bool {
        self.is_aborted
    }

    /// Runs another program from its beginning, before the first was told of any data.
    pub fn run_instead(&mut self, program: &Program, pools: &mut Pools) {
        self.application.release(&mut pools.variables);
        self.application = Application::start(program);
        self.wake_at = Tight::MAX;
        if self.has_connected {
            self.application.handle_connected();
        }
    }

    /// Its TCP connection, if it has one.
    pub fn connection(&self) -> Option<&Connection> {
        match &self.carrier {
            FlowTransport::Tcp(connection) => Some(connection),
            FlowTransport::Udp(_) => None,
        }
    }

    /// The number by which its messages say whose they are: a client's, with the add-on "latency".
    pub fn connection_number(&self) -> Option<u32> {
        match &self.carrier {
            FlowTransport::Tcp(_) => None,
            FlowTransport::Udp(udp) => udp.stamp.as_ref().and_then(Stamp::connection),
        }
    }

    /// It was just made: it says its first.
    pub fn begin(&mut self, cx: &mut Context<'_>, way: &mut impl FrameTx) -> FlowStatus {
        self.attend(cx, way)
    }

    /// A segment arrived.
    pub fn handle_segment(
        &mut self,
        cx: &mut Context<'_>,
        way: &mut impl FrameTx,
        segment: &Segment,
    ) -> FlowStatus {
        let most = self.segment_bytes_max(cx);
        if let FlowTransport::Tcp(connection) = &mut self.carrier {
            let outcome = if segment.has(TcpFlags::SYN) {
                let segment = clamped(segment, most);
                with_tcp(cx, |cx| connection.handle_segment(cx, &segment))
            } else {
                with_tcp(cx, |cx| connection.handle_segment(cx, segment))
            };
            self.take(cx, outcome);
            if outcome.refused {
                self.refuse(cx, way, segment);
            }
        }
        self.attend(cx, way)
    }

    /// A datagram arrived.
    pub fn handle_datagram(
        &mut self,
        cx: &mut Context<'_>,
        way: &mut impl FrameTx,
        message: &[u8],
    ) -> FlowStatus {
        if let FlowTransport::Udp(udp) = &mut self.carrier {
            udp.hear(cx.now);
            cx.counters.udp.rcvpkt += 1;
            cx.counters.udp.rcvbyte += message.len() as u64;
            if let Some(stamp) = &mut udp.stamp {
                let now_us = (cx.now / MICROSECOND) as u32;
                stamp.hear(now_us, message, &mut cx.counters.latency);
            }
            self.application.handle_message();
        }
        self.attend(cx, way)
    }

    /// The time that was told has come.
    pub fn handle_timeout(&mut self, cx: &mut Context<'_>, way: &mut impl FrameTx) -> FlowStatus {
        if self.is_aborted && self.wake_at.get() <= cx.now {
            self.end_untold(cx);
            return FlowStatus::Over;
        }
        if self.wake_at.get() <= cx.now {
            self.wake_at = Tight::MAX;
            self.application.handle_timeout();
        }
        match &mut self.carrier {
            FlowTransport::Tcp(connection) => {
                let outcome = with_tcp(cx, |cx| connection.handle_timeout(cx));
                self.take(cx, outcome);
            }
            FlowTransport::Udp(udp) => udp.handle_timeout(cx.now, &mut cx.counters.udp),
        }
        self.attend(cx, way)
    }

    /// The group of the flow that its program waits for, see [`Action::Execute`].
    #[inline]
    pub fn executes(&self) -> Option<u16> {
        self.application.executes()
    }

    /// The group that its program chose last; 0 for none.
    pub fn next_group(&self) -> u16 {
        self.application.next_group()
    }

    /// The flow that its program waits for is over, or could not be; that one's program chose
    /// `next_group` last.
    pub fn handle_executed(
        &mut self,
        cx: &mut Context<'_>,
        way: &mut impl FrameTx,
        next_group: u16,
    ) -> FlowStatus {
        self.application.handle_executed(next_group);
        self.attend(cx, way)
    }

    /// The way has room again.
    pub fn handle_room(&mut self, cx: &mut Context<'_>, way: &mut impl FrameTx) -> FlowStatus {
        self.attend(cx, way)
    }

    /// Whether it is in TIME-WAIT.
    #[inline]
    pub fn is_resting(&self) -> bool {
        matches!(&self.carrier, FlowTransport::Tcp(connection) if connection.state() == State::TimeWait)
    }

    /// It is over at once, as at the end of TIME-WAIT.
    pub fn finish(&mut self, cx: &mut Context<'_>) -> FlowStatus {
        if let FlowTransport::Tcp(connection) = &mut self.carrier {
            with_tcp(cx, |cx| connection.finish(cx));
        }
        FlowStatus::Over
    }

    /// The test is over: it ends as soon as its reset has left.
    pub fn cut_off(&mut self, cx: &mut Context<'_>, way: &mut impl FrameTx) -> FlowStatus {
        self.end_at_once(cx, way, Connection::cut_off)
    }

    /// Nobody wants it: the same, as a fault of the flow.
    pub fn abort(&mut self, cx: &mut Context<'_>, way: &mut impl FrameTx) -> FlowStatus {
        self.end_at_once(cx, way, Connection::abort)
    }

    fn end_at_once(
        &mut self,
        cx: &mut Context<'_>,
        way: &mut impl FrameTx,
        end: impl FnOnce(&mut Connection),
    ) -> FlowStatus {
        self.application.stop();
        match &mut self.carrier {
            FlowTransport::Tcp(connection) => {
                end(connection);
                self.note_abort(cx.now);
            }
            FlowTransport::Udp(udp) => udp.end(&mut cx.counters.udp),
        }
        self.attend(cx, way)
    }

    /// It was reset: from now on it only waits for room to say so, and not for long.
    fn note_abort(&mut self, now: Nanos) {
        self.is_aborted = true;
        self.wake_at = Tight::new(now + RESET_WAITS);
    }

    /// Others need its place: it is over, without a word.
    pub fn give_way(&mut self, cx: &mut Context<'_>) -> FlowStatus {
        if !self.is_over() {
            self.end_untold(cx);
        }
        FlowStatus::Over
    }

    fn end_untold(&mut self, cx: &mut Context<'_>) {
        match &mut self.carrier {
            FlowTransport::Tcp(connection) => with_tcp(cx, |cx| connection.end_untold(cx)),
            FlowTransport::Udp(udp) => udp.end(&mut cx.counters.udp),
        }
    }

    /// Gives back what it holds in pools. The last thing before it is forgotten.
    pub fn release(&mut self, pools: &mut Pools) {
        self.application.release(&mut pools.variables);
        self.outbox.release(&mut pools.outboxes);
        pools.links.release(self.link);
        if let FlowTransport::Tcp(connection) = &mut self.carrier {
            connection.release(&mut pools.sides);
        }
    }

    /// What happened to the connection, told to the application.
    fn take(&mut self, cx: &mut Context<'_>, outcome: Outcome) {
        if outcome.connected {
            self.has_connected = true;
            self.application.handle_connected();
        }
        if outcome.acknowledged_bytes > 0 {
            let bytes = outcome.acknowledged_bytes;
            self.outbox
                .acknowledge(bytes, cx.buffers, &mut cx.pools.outboxes);
            if self.outbox.is_empty() {
                self.application.handle_acknowledged();
            }
        }
        if outcome.delivered_bytes > 0 {
            let bytes = outcome.delivered_bytes;
            if !self.application.take_part(cx.program, bytes) {
                self.application.handle_delivered(bytes);
            }
        }
        if outcome.peer_closed {
            self.application.handle_peer_closed();
        }
    }

    /// Lets application and transport work until both wait.
    fn attend(&mut self, cx: &mut Context<'_>, way: &mut impl FrameTx) -> FlowStatus {
        for _ in 0..ROUNDS_MAX {
            // A message that waited, and leaves now, lets the program go on.
            let acted = self.run_application(cx) || self.is_message_waiting();
            let progress = self.transmit(cx, way);
            if self.is_over() {
                return FlowStatus::Over;
            }
            if progress == Progress::Blocked {
                return FlowStatus::Blocked(self.due(cx));
            }
            if !acted {
                return FlowStatus::Open(self.due(cx));
            }
        }
        FlowStatus::Open(Some(cx.now + LATER))
    }

    /// Runs the program until it waits. Returns whether it did anything.
    fn run_application(&mut self, cx: &mut Context<'_>) -> bool {
        let mut acted = false;
        if self.application.is_waiting() {
            return acted;
        }
        while !self.is_message_waiting() {
            let mut inner = crate::app::Context {
                program: cx.program,
                now: cx.now,
                rng: cx.rng,
                variables: &mut cx.pools.variables,
                counters: &mut cx.counters.application,
            };
            let Some(action) = self.application.poll_action(&mut inner) else {
                break;
            };
            acted = true;
            if action == Action::Acknowledge {
                // The caller sends now; then the program goes on.
                break;
            }
            self.act(cx, action);
        }
        acted
    }

    fn is_message_waiting(&self) -> bool {
        matches!(&self.carrier, FlowTransport::Udp(udp) if udp.waits_to_send())
    }

    fn act(&mut self, cx: &mut Context<'_>, action: Action) {
        match (action, &mut self.carrier) {
            (Action::Send { buffer }, FlowTransport::Tcp(_)) => {
                self.outbox.push(buffer, cx.buffers, &mut cx.pools.outboxes);
                if self.outbox.is_empty() {
                    self.application.handle_acknowledged();
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
            (Action::Close, _) => self.is_closing = true,
            (Action::Reset, FlowTransport::Tcp(connection)) => {
                connection.abort();
                self.note_abort(cx.now);
            }
            (Action::Reset, FlowTransport::Udp(_)) => self.is_closing = true,
            // Who called sees it by `executes`, or has seen to it.
            (Action::Execute { .. } | Action::Acknowledge, _) => {}
            // Programs are checked for their transport.
            (Action::Send { .. } | Action::SendMessage { .. } | Action::Keepalive { .. }, _) => {}
        }
    }

    /// Sends what may be sent.
    fn transmit(&mut self, cx: &mut Context<'_>, way: &mut impl FrameTx) -> Progress {
        match &mut self.carrier {
            FlowTransport::Tcp(_) => self.transmit_segments(cx, way),
            FlowTransport::Udp(_) => self.transmit_message(cx, way),
        }
    }

    fn transmit_segments(&mut self, cx: &mut Context<'_>, way: &mut impl FrameTx) -> Progress {
        let FlowTransport::Tcp(connection) = &mut self.carrier else {
            return Progress::Done;
        };
        let bytes = self.outbox.write(connection.room_bytes(cx.tunables));
        if bytes > 0 {
            connection.write(bytes);
        }
        if self.outbox.is_written() {
            self.application.handle_room();
            if self.is_closing {
                connection.close();
            }
        }
        if connection.has_nothing_to_say() {
            return Progress::Done;
        }
        let mut envelope = self.envelope(cx);
        let most = self.segment_bytes_max(cx);
        let FlowTransport::Tcp(connection) = &mut self.carrier else {
            return Progress::Done;
        };
        let (outbox, buffers) = (&self.outbox, cx.buffers);
        let outboxes = &cx.pools.outboxes;
        let mut inner = tcp::Context {
            now_ms: cx.pools.tcp_ms(cx.now),
            now_us: (cx.now / MICROSECOND) as u32,
            tunables: cx.tunables,
            counters: &mut cx.counters.tcp,
            sides: &mut cx.pools.sides,
        };
        let mut outcome = Outcome::default();
        let progress = connection.poll_transmit(&mut inner, &mut outcome, |segment| {
            envelope.identification = envelope.identification.wrapping_add(1);
            let asking;
            let segment = if segment.mss.is_some() {
                asking = clamped(segment, most);
                &asking
            } else {
                segment
            };
            let content = Content::Tcp(segment);
            let places = envelope.places(&content);
            way.send(places.frame_bytes(), |frame| {
                envelope.write_at(places, &content, frame, |data| {
                    outbox.copy_to(segment.offset, data, buffers, outboxes)
                });
            })
        });
        self.identification = envelope.identification;
        progress
    }

    fn transmit_message(&mut self, cx: &mut Context<'_>, way: &mut impl FrameTx) -> Progress {
        let envelope = self.envelope(cx);
        let FlowTransport::Udp(udp) = &mut self.carrier else {
            return Progress::Done;
        };
        if let Some(buffer) = udp.message() {
            let header = udp.stamp.map(|stamp| {
                let now_us = (cx.now / MICROSECOND) as u32;
                stamp.header(now_us).to_bytes()
            });
            let header = header.as_ref().map_or(&[][..], |header| header);
            let bytes = cx.buffers.len(buffer) + header.len() as u32;
            let content = Content::Udp(bytes.min(0xffff) as u16);
            if bytes > 0xffff || envelope.frame_bytes(&content) > cx.looks.frame_bytes_max {
                cx.counters.udp.pkt_toobig += 1;
                udp.note_sent(cx.now);
                return Progress::Done;
            }
            let sent = way.send(envelope.frame_bytes(&content), |frame| {
                envelope.write(&content, frame, |data| {
                    copy_message(cx.buffers, header, buffer, data)
                });
            });
            if !sent {
                return Progress::Blocked;
            }
            udp.note_sent(cx.now);
            cx.counters.udp.sndpkt += 1;
            cx.counters.udp.sndbyte += u64::from(bytes);
            self.identification = self.identification.wrapping_add(1);
        }
        if self.is_closing {
            udp.end(&mut cx.counters.udp);
        }
        Progress::Done
    }

    /// The reset that a segment gets which belongs to another connection.
    fn refuse(&mut self, cx: &mut Context<'_>, way: &mut impl FrameTx, segment: &Segment) {
        let envelope = self.envelope(cx);
        if let Some(reset) = segment.reset_in_reply() {
            let content = Content::Tcp(&reset);
            let sent = way.send(envelope.frame_bytes(&content), |frame| {
                envelope.write(&content, frame, |_| Sum::default());
            });
            // Without room, the other end asks again.
            cx.counters.tcp.nombuf += u64::from(!sent);
        }
    }

    fn envelope(&self, cx: &Context<'_>) -> Envelope {
        let (local, remote) = (self.key.local, self.key.remote);
        let prefixes = self.key.prefixes;
        let long = prefixes.and_then(|n| cx.pools.prefixes.addresses(n, local, remote));
        let addresses = match long {
            Some((from, to)) => Addresses::V6(from, to),
            None => Addresses::V4(Ipv4Addr::from(local), Ipv4Addr::from(remote)),
        };
        let link = cx.pools.links.at(self.link);
        Envelope {
            macs: (link.peer, link.own),
            vlan: link.vlan,
            addresses,
            ports: (self.key.local_port, self.key.remote_port),
            type_of_service: cx.looks.type_of_service,
            time_to_live: cx.looks.time_to_live,
            identification: self.identification,
        }
    }

    fn segment_bytes_max(&self, cx: &Context<'_>) -> u16 {
        let vlan = cx.pools.links.at(self.link).vlan;
        segment_bytes_max(&self.key, vlan, cx.looks.frame_bytes_max)
    }

    fn is_over(&self) -> bool {
        match &self.carrier {
            FlowTransport::Tcp(connection) => connection.is_closed(),
            FlowTransport::Udp(udp) => udp.is_over(),
        }
    }

    /// When it wants to be called again.
    fn due(&self, cx: &Context<'_>) -> Option<Nanos> {
        let carrier = match &self.carrier {
            FlowTransport::Tcp(connection) => {
                let left_ms = connection.poll_timeout(cx.pools.tcp_ms(cx.now));
                let now_ms = cx.now / MILLISECOND;
                left_ms.map(|left_ms| (now_ms + u64::from(left_ms)) * MILLISECOND)
            }
            FlowTransport::Udp(udp) => udp.due(),
        };
        let wake_at = Some(self.wake_at.get()).filter(|at| *at != Nanos::MAX);
        [carrier, wake_at].into_iter().flatten().min()
    }
}

fn with_tcp<R>(cx: &mut Context<'_>, act: impl FnOnce(&mut tcp::Context<'_>) -> R) -> R {
    act(&mut tcp::Context {
        now_ms: cx.pools.tcp_ms(cx.now),
        now_us: (cx.now / MICROSECOND) as u32,
        tunables: cx.tunables,
        counters: &mut cx.counters.tcp,
        sides: &mut cx.pools.sides,
    })
}

/// Bytes of a segment for which a port has room: what its headers leave of the longest frame.
fn segment_bytes_max(key: &FlowKey, vlan: Option<u16>, frame_bytes_max: usize) -> u16 {
    let headers = wire::header_bytes(key.prefixes.is_some(), vlan.is_some());
    frame_bytes_max.saturating_sub(headers).clamp(1, 0xffff) as u16
}

/// The same SYN, with segments that are no longer than the port takes: what we ask for, and what
/// the other side asks us for (RFC 6691: without any options).
fn clamped(syn: &Segment, most: u16) -> Segment {
    Segment {
        mss: Some(syn.mss.unwrap_or(tcp::MSS_BYTES_DEFAULT).min(most)),
        ..*syn
    }
}

/// Writes a message, and returns its sum. Headers have whole words, so sums add up.
fn copy_message(buffers: &Buffers, header: &[u8], buffer: BufferIndex, data: &mut [u8]) -> Sum {
    let (front, data) = data.split_at_mut(header.len());
    front.copy_from_slice(header);
    buffers.copy_to(buffer, 0, data);
    let sum = buffers.sum(buffer, 0, data.len() as u32);
    Sum::of(header).and_sum(sum)
}
