//! One flow: its transport, the application on it, and what it still has to send.

use std::hint::black_box;
use std::net::Ipv4Addr;

use super::app_latency::{Header, Stamp};
use super::application::FlowApplication;
use super::context::{FlowContext, FlowStatus, FrameTx, HeaderDefaults, Pools};
use super::links::{LinkAddresses, LinkIndex, segment_bytes_max};
use super::outbox::Outbox;
use super::udp::Udp;
use super::wire::{Addresses, Envelope};
use crate::app::{Action, Addon, FlowEvent, Transport};
use crate::flow::{FlowKey, Prefixes, Protocol};
use crate::tcp::{Connection, Progress, Segment, Seq, TcpState};
use crate::time::{MICROSECOND, MILLISECOND, Nanos, Tight};

/// Rounds of application and transport in one go; what is left comes a little later.
const ROUNDS_MAX: u32 = 64;
/// How much later.
const LATER: Nanos = 20 * MICROSECOND;
/// How long a reset waits for room on its way out.
const RESET_WAITS: Nanos = 500 * MILLISECOND;

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
    /// A flow that asks for its other end. `first` is the number of its SYN.
    pub fn connect(
        cx: &mut FlowContext<'_>,
        key: FlowKey,
        link: LinkAddresses,
        first: Seq,
    ) -> Session {
        let transport = match key.scope.protocol() {
            Protocol::Tcp => FlowTransport::Tcp(Connection::connect(&mut cx.tcp(), first)),
            Protocol::Udp => {
                cx.counters.udp.connects += 1;
                let stamp = cx
                    .program
                    .addon()
                    .map(|Addon::Latency| Stamp::client(cx.pools.connections.draw()));
                FlowTransport::Udp(Udp::new(cx.now, stamp))
            }
        };
        Session::new(cx, key, link, transport)
    }

    /// A flow that another end asked for with `syn`.
    pub fn accept(
        cx: &mut FlowContext<'_>,
        key: FlowKey,
        link: LinkAddresses,
        first: Seq,
        syn: &Segment,
    ) -> Session {
        let most = segment_bytes_max(&key, &link, cx.headers.frame_bytes_max);
        let syn = syn.clamped(most);
        let connection = Connection::accept(&mut cx.tcp(), first, &syn);
        Session::new(cx, key, link, FlowTransport::Tcp(connection))
    }

    /// A flow that another end began with a datagram.
    pub fn accept_datagram(cx: &mut FlowContext<'_>, key: FlowKey, link: LinkAddresses) -> Session {
        cx.counters.udp.accepts += 1;
        let stamp = cx.program.addon();
        let stamp = stamp.map(|Addon::Latency| Stamp::Server(Header::default()));
        let transport = FlowTransport::Udp(Udp::new(cx.now, stamp));
        Session::new(cx, key, link, transport)
    }

    fn new(
        cx: &mut FlowContext<'_>,
        key: FlowKey,
        link: LinkAddresses,
        transport: FlowTransport,
    ) -> Session {
        let is_datagram = matches!(transport, FlowTransport::Udp(_));
        debug_assert_eq!(is_datagram, cx.program.transport() == Transport::Datagram);
        let application = FlowApplication::start(cx.program, &mut cx.pools.applications);
        let mut session = Session {
            key,
            transport,
            application,
            outbox: Outbox::default(),
            wake_at: Tight::MAX,
            link: cx.pools.links.hold(link),
            identification: cx.rng.next15() as u16,
            flags: SessionFlags::default(),
        };
        if is_datagram {
            session.flags.set(SessionFlag::Connected);
            session.tell_connected(cx);
        }
        session
    }

    fn tell_connected(&mut self, cx: &mut FlowContext<'_>) {
        match &mut self.application {
            FlowApplication::Program(program) => program.handle_connected(),
            FlowApplication::Bytes(index) => {
                let index = *index;
                cx.with_bytes(index, |cx, it| {
                    it.tell(&mut cx.application(), FlowEvent::Connected)
                });
            }
        }
    }

    /// The key by which it is found.
    pub fn key(&self) -> &FlowKey {
        &self.key
    }

    /// Reads something of each line of the cache that it is in, so that it is there soon.
    #[inline]
    pub fn fetch(&self) {
        black_box(self.key.local);
        black_box(self.link);
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

    /// Runs another program from its beginning, before the first was told of any data.
    pub fn run_instead(&mut self, cx: &mut FlowContext<'_>) {
        self.release_application(cx.pools);
        self.application = FlowApplication::start(cx.program, &mut cx.pools.applications);
        self.wake_at = Tight::MAX;
        if self.flags.has(SessionFlag::Connected) {
            self.tell_connected(cx);
        }
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

    /// It was just made: it says its first.
    pub fn begin(&mut self, cx: &mut FlowContext<'_>, tx: &mut impl FrameTx) -> FlowStatus {
        self.attend(cx, tx)
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
                self.note_outcome(cx, outcome);
            }
            FlowTransport::Udp(udp) => udp.handle_timeout(cx.now, &mut cx.counters.udp),
        }
        self.attend(cx, tx)
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

    /// Whether it is in TIME-WAIT.
    #[inline]
    pub fn is_in_time_wait(&self) -> bool {
        matches!(&self.transport, FlowTransport::Tcp(connection) if connection.state() == TcpState::TimeWait)
    }

    /// It is over at once, as at the end of TIME-WAIT.
    pub fn finish(&mut self, cx: &mut FlowContext<'_>) -> FlowStatus {
        if let FlowTransport::Tcp(connection) = &mut self.transport {
            connection.finish(&mut cx.tcp());
        }
        FlowStatus::Over
    }

    /// The test is over: it ends as soon as its reset has left.
    pub fn cut_off(&mut self, cx: &mut FlowContext<'_>, tx: &mut impl FrameTx) -> FlowStatus {
        self.end_at_once(cx, tx, Connection::cut_off)
    }

    /// Nobody wants it: the same, as a fault of the flow.
    pub fn abort(&mut self, cx: &mut FlowContext<'_>, tx: &mut impl FrameTx) -> FlowStatus {
        self.end_at_once(cx, tx, Connection::abort)
    }

    fn end_at_once(
        &mut self,
        cx: &mut FlowContext<'_>,
        tx: &mut impl FrameTx,
        end: impl FnOnce(&mut Connection),
    ) -> FlowStatus {
        match &mut self.application {
            FlowApplication::Program(program) => program.stop(),
            FlowApplication::Bytes(index) => {
                let index = *index;
                cx.with_bytes(index, |_, it| it.is_stopped = true);
            }
        }
        match &mut self.transport {
            FlowTransport::Tcp(connection) => {
                end(connection);
                self.note_abort(cx.now);
            }
            FlowTransport::Udp(udp) => udp.end(&mut cx.counters.udp),
        }
        self.attend(cx, tx)
    }

    /// It was reset: from now on it only waits for room to say so, and not for long.
    pub(super) fn note_abort(&mut self, now: Nanos) {
        self.flags.set(SessionFlag::Aborted);
        self.wake_at = Tight::new(now + RESET_WAITS);
    }

    /// Others need its place: it is over, without a word.
    pub fn give_way(&mut self, cx: &mut FlowContext<'_>) -> FlowStatus {
        if !self.is_over() {
            self.end_untold(cx);
        }
        FlowStatus::Over
    }

    fn end_untold(&mut self, cx: &mut FlowContext<'_>) {
        match &mut self.transport {
            FlowTransport::Tcp(connection) => connection.end_untold(&mut cx.tcp()),
            FlowTransport::Udp(udp) => udp.end(&mut cx.counters.udp),
        }
    }

    /// Gives back what it holds in pools. The last thing before it is forgotten.
    pub fn release(&mut self, pools: &mut Pools) {
        self.release_all_but_link(pools);
        pools.links.release(self.link);
    }

    /// The same, but what is left of it in TIME-WAIT holds where its frames go.
    pub fn release_all_but_link(&mut self, pools: &mut Pools) {
        self.release_application(pools);
        self.outbox.release(&mut pools.outboxes);
        if let FlowTransport::Tcp(connection) = &mut self.transport {
            connection.release(&mut pools.sides);
        }
        if let FlowTransport::Udp(udp) = &self.transport {
            if let Some(message) = udp.message() {
                pools.outboxes.free(message);
            }
        }
    }

    fn release_application(&mut self, pools: &mut Pools) {
        match &mut self.application {
            FlowApplication::Program(program) => program.release(&mut pools.variables),
            FlowApplication::Bytes(index) => pools.applications.release(*index),
        }
    }

    /// Lets application and transport work until both wait.
    pub(super) fn attend(&mut self, cx: &mut FlowContext<'_>, tx: &mut impl FrameTx) -> FlowStatus {
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
            if !acted {
                return FlowStatus::Open(self.due(cx));
            }
        }
        FlowStatus::Open(Some(cx.now + LATER))
    }

    /// Runs the program until it waits. Returns whether it did anything.
    fn run_application(&mut self, cx: &mut FlowContext<'_>) -> bool {
        let mut acted = false;
        let program = match &mut self.application {
            FlowApplication::Program(program) => program,
            FlowApplication::Bytes(index) => {
                let index = *index;
                return self.run_bytes(cx, index);
            }
        };
        if program.is_waiting() {
            return acted;
        }
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
        }
        acted
    }

    pub(super) fn is_message_waiting(&self) -> bool {
        matches!(&self.transport, FlowTransport::Udp(udp) if udp.waits_to_send())
    }

    /// Does what its program or application asks for.
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
        match &mut self.transport {
            FlowTransport::Tcp(_) => self.transmit_segments(cx, tx),
            FlowTransport::Udp(_) => self.transmit_message(cx, tx),
        }
    }

    fn is_over(&self) -> bool {
        match &self.transport {
            FlowTransport::Tcp(connection) => connection.is_closed(),
            FlowTransport::Udp(udp) => udp.is_over(),
        }
    }

    /// When it wants to be called again.
    fn due(&self, cx: &FlowContext<'_>) -> Option<Nanos> {
        let transport = match &self.transport {
            FlowTransport::Tcp(connection) => {
                let left_ms = connection.poll_timeout(cx.pools.tcp_ms(cx.now));
                let now_ms = cx.now / MILLISECOND;
                left_ms.map(|left_ms| (now_ms + u64::from(left_ms)) * MILLISECOND)
            }
            FlowTransport::Udp(udp) => udp.due(),
        };
        let wake_at = Some(self.wake_at.get()).filter(|at| *at != Nanos::MAX);
        [transport, wake_at].into_iter().flatten().min()
    }
}

/// What surrounds the segments and messages of a flow.
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
    Envelope {
        macs: (link.peer, link.own),
        encapsulation: &link.encapsulation,
        addresses,
        ports: (key.local_port, key.remote_port),
        type_of_service: headers.type_of_service,
        time_to_live: headers.time_to_live,
        identification,
    }
}
