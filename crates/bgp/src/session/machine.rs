//! The state machine: bytes and time in, bytes and events out.

use std::collections::VecDeque;

use crate::random::SeededRandom;
use crate::replay::{OwnValues, RouteReplay};
use crate::session::config::{BgpConfigError, BgpSessionConfig};
use crate::session::event::{BgpEvent, BgpSessionCounters, BgpState, DownReason};
use crate::session::negotiate::Negotiated;
use crate::wire::framing::{
    BgpMessageType, EXTENDED_MESSAGE_LEN_MAX, MESSAGE_LEN_MAX, emit_keepalive,
};
use crate::wire::header::MessageHeader;
use crate::wire::notification::{Notification, code};
use crate::wire::open::Open;
use crate::wire::prefix::AddressFamily;
use crate::wire::refresh::RouteRefresh;
use crate::wire::update::Update;

const SECOND_NS: u64 = 1_000_000_000;
/// How long to wait for the peer's OPEN: "a large value, 4 minutes" (RFC 4271 §8.2.2).
const OPEN_HOLD_NS: u64 = 240 * SECOND_NS;
const ADMINISTRATIVE_SHUTDOWN: u8 = 2;

/// What waits to be sent behind the messages of the state machine.
#[derive(Debug, Clone)]
enum Outgoing {
    Announce(RouteReplay),
    Withdraw(RouteReplay),
    EndOfRib(AddressFamily),
}

/// Instants at which something is due.
#[derive(Debug, Clone, Copy, Default)]
struct Timers {
    connect_retry_ns: Option<u64>,
    hold_ns: Option<u64>,
    keepalive_ns: Option<u64>,
}

/// A session with one peer, over one connection at a time, which only one end opens: connections never
/// collide (RFC 4271 §6.8).
///
/// After any `handle_`, [`start`](Self::start) or [`stop`](Self::stop), drain
/// [`poll_event`](Self::poll_event), then [`poll_transmit`](Self::poll_transmit), and ask
/// [`poll_timeout`](Self::poll_timeout) when to come again.
#[derive(Debug)]
pub struct BgpSession {
    config: BgpSessionConfig,
    random: SeededRandom,
    state: BgpState,
    is_started: bool,
    timers: Timers,
    negotiated: Option<Negotiated>,
    /// Octets of a message that has not come to its end.
    received: Vec<u8>,
    /// Messages of the state machine.
    control: Vec<u8>,
    outgoing: VecDeque<Outgoing>,
    events: VecDeque<BgpEvent>,
    counters: BgpSessionCounters,
}

impl BgpSession {
    /// A session that waits to be started. `seed` spreads its timers (RFC 4271 §10).
    ///
    /// # Errors
    /// Where the configuration says what no session can be.
    pub fn new(config: BgpSessionConfig, seed: u64) -> Result<Self, BgpConfigError> {
        config.check()?;
        Ok(Self {
            config,
            random: SeededRandom::new(seed),
            state: BgpState::Idle,
            is_started: false,
            timers: Timers::default(),
            negotiated: None,
            received: Vec::new(),
            control: Vec::new(),
            outgoing: VecDeque::new(),
            events: VecDeque::new(),
            counters: BgpSessionCounters::default(),
        })
    }

    /// Begins to connect, or to wait for the peer.
    pub fn start(&mut self, now_ns: u64) {
        if !self.is_started {
            self.is_started = true;
            self.begin(now_ns);
        }
    }

    /// Ends the session, and stays down.
    pub fn stop(&mut self, now_ns: u64) {
        self.is_started = false;
        match self.state {
            BgpState::OpenSent | BgpState::OpenConfirm | BgpState::Established => {
                let shutdown = Notification::new(code::CEASE, ADMINISTRATIVE_SHUTDOWN);
                self.fail(now_ns, shutdown);
            }
            BgpState::Connect => self.go_down(now_ns, DownReason::Disconnected),
            BgpState::Idle | BgpState::Active => {
                self.state = BgpState::Idle;
                self.timers = Timers::default();
            }
        }
    }

    /// The connection is there.
    pub fn handle_connected(&mut self, now_ns: u64) {
        if !matches!(self.state, BgpState::Connect | BgpState::Active) {
            return;
        }
        let restarted = self.counters.established > 0;
        self.config.open(restarted).emit(&mut self.control);
        self.state = BgpState::OpenSent;
        self.timers = Timers {
            hold_ns: Some(now_ns + OPEN_HOLD_NS),
            ..Timers::default()
        };
    }

    /// The connection was closed, reset, or could not be opened.
    pub fn handle_disconnected(&mut self, now_ns: u64) {
        if !matches!(self.state, BgpState::Idle | BgpState::Active) {
            self.go_down(now_ns, DownReason::Disconnected);
        }
    }

    /// Bytes came on the connection. What comes after the end of the session is ignored.
    pub fn handle_bytes(&mut self, now_ns: u64, bytes: &[u8]) {
        if self.state < BgpState::OpenSent {
            return;
        }
        let mut received = std::mem::take(&mut self.received);
        received.extend_from_slice(bytes);
        let mut read = 0;
        while self.state >= BgpState::OpenSent {
            let length_max = if self.config.extended_messages {
                EXTENDED_MESSAGE_LEN_MAX
            } else {
                MESSAGE_LEN_MAX
            };
            match MessageHeader::parse(&received[read..], length_max) {
                Ok(Some(header)) if received.len() - read >= header.length => {
                    let message = &received[read..read + header.length];
                    read += header.length;
                    if let Err(error) = self.handle_message(now_ns, header, message) {
                        self.fail(now_ns, error);
                    }
                }
                Ok(_) => break,
                Err(error) => self.fail(now_ns, error),
            }
        }
        if self.state >= BgpState::OpenSent {
            received.drain(..read);
            self.received = received;
        }
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now_ns: u64) {
        let is_due = |at: Option<u64>| at.is_some_and(|at| at <= now_ns);
        if is_due(self.timers.hold_ns) {
            self.fail(now_ns, Notification::new(code::HOLD_TIMER_EXPIRED, 0));
            return;
        }
        if is_due(self.timers.keepalive_ns) {
            // One that waits says all that a second one would.
            if self.control.is_empty() {
                emit_keepalive(&mut self.control);
            }
            self.set_keepalive(now_ns);
        }
        if is_due(self.timers.connect_retry_ns) {
            match self.state {
                BgpState::Connect => self.go_down(now_ns, DownReason::Disconnected),
                _ => self.begin(now_ns),
            }
        }
    }

    /// Appends what is to be sent, whole messages while `out` is shorter than `budget`: those of the state
    /// machine, then routes, as far as they are due.
    pub fn poll_transmit(&mut self, now_ns: u64, budget: usize, out: &mut Vec<u8>) {
        out.append(&mut self.control);
        let own = OwnValues {
            local_as: self.config.local_as,
            next_hop_ipv4: self.config.next_hop_ipv4,
            next_hop_ipv6: self.config.next_hop_ipv6,
        };
        while out.len() < budget {
            let (replay, count) = match self.outgoing.front_mut() {
                Some(Outgoing::Announce(replay)) => (replay, &mut self.counters.announced),
                Some(Outgoing::Withdraw(replay)) => (replay, &mut self.counters.withdrawn),
                Some(Outgoing::EndOfRib(family)) => {
                    Update::end_of_rib(*family).emit(true, out);
                    self.outgoing.pop_front();
                    continue;
                }
                None => break,
            };
            *count += replay.transmit(now_ns, &own, budget, out);
            if !replay.is_over(now_ns) {
                break;
            }
            self.outgoing.pop_front();
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due.
    pub fn poll_timeout(&self) -> Option<u64> {
        let timers = [
            self.timers.connect_retry_ns,
            self.timers.hold_ns,
            self.timers.keepalive_ns,
        ];
        timers.into_iter().flatten().min()
    }

    /// When [`poll_transmit`](Self::poll_transmit) has something: 0 for now, `None` while nothing waits.
    pub fn poll_transmit_due(&self) -> Option<u64> {
        if !self.control.is_empty() {
            return Some(0);
        }
        self.outgoing.front().map(|outgoing| match outgoing {
            Outgoing::Announce(replay) | Outgoing::Withdraw(replay) => replay.due_ns(),
            Outgoing::EndOfRib(_) => 0,
        })
    }

    /// What happened next.
    pub fn poll_event(&mut self) -> Option<BgpEvent> {
        self.events.pop_front()
    }

    /// Queues announcements, encoded as was agreed upon. Whether the session is established; else nothing is
    /// queued.
    pub fn announce(&mut self, replay: RouteReplay) -> bool {
        self.queue(Outgoing::Announce(replay))
    }

    /// Queues withdrawals, as [`announce`](Self::announce) does.
    pub fn withdraw(&mut self, replay: RouteReplay) -> bool {
        self.queue(Outgoing::Withdraw(replay))
    }

    /// Queues the marker behind the routes of a family (RFC 4724 §2).
    pub fn end_of_rib(&mut self, family: AddressFamily) -> bool {
        self.queue(Outgoing::EndOfRib(family))
    }

    /// Tables and markers that wait to be sent.
    pub fn queued(&self) -> usize {
        self.outgoing.len()
    }

    /// Asks the peer for its routes of a family. Whether the session is established.
    pub fn request_refresh(&mut self, family: AddressFamily) -> bool {
        let is_established = self.state == BgpState::Established;
        if is_established {
            RouteRefresh::request(family).emit(&mut self.control);
        }
        is_established
    }

    /// Its state.
    pub fn state(&self) -> BgpState {
        self.state
    }

    /// What was agreed upon, from OpenConfirm on.
    pub fn negotiated(&self) -> Option<&Negotiated> {
        self.negotiated.as_ref()
    }

    /// What it is to be.
    pub fn config(&self) -> &BgpSessionConfig {
        &self.config
    }

    /// What it counted.
    pub fn counters(&self) -> BgpSessionCounters {
        self.counters
    }

    /// Octets that it holds besides what it shares with others.
    pub fn memory(&self) -> usize {
        size_of::<Self>()
            + self.received.capacity()
            + self.control.capacity()
            + self.outgoing.capacity() * size_of::<Outgoing>()
            + self.events.capacity() * size_of::<BgpEvent>()
    }

    fn queue(&mut self, outgoing: Outgoing) -> bool {
        let is_established = self.state == BgpState::Established;
        if is_established {
            self.outgoing.push_back(outgoing);
        }
        is_established
    }

    fn begin(&mut self, now_ns: u64) {
        self.timers = Timers::default();
        if self.config.passive {
            self.state = BgpState::Active;
            return;
        }
        self.state = BgpState::Connect;
        self.events.push_back(BgpEvent::Connect);
        self.set_connect_retry(now_ns);
    }

    fn handle_message(
        &mut self,
        now_ns: u64,
        header: MessageHeader,
        message: &[u8],
    ) -> Result<(), Notification> {
        let body = &message[crate::wire::framing::HEADER_LEN..];
        match (self.state, header.message_type) {
            // It ends the session in any state.
            (_, BgpMessageType::Notification) => {
                // The header was found to leave two octets.
                if let Some(notification) = Notification::parse(body) {
                    self.counters.notifications_received += 1;
                    self.go_down(now_ns, DownReason::Received(notification));
                }
            }
            (BgpState::OpenSent, BgpMessageType::Open) => self.handle_open(now_ns, body)?,
            (BgpState::OpenConfirm, BgpMessageType::Keepalive) => {
                self.state = BgpState::Established;
                self.counters.established += 1;
                self.set_hold(now_ns);
                let negotiated = self.negotiated.clone().expect("OPEN came before");
                self.events.push_back(BgpEvent::Established(negotiated));
            }
            (BgpState::Established, BgpMessageType::Keepalive) => self.set_hold(now_ns),
            (BgpState::Established, BgpMessageType::Update) => {
                self.set_hold(now_ns);
                self.handle_update(body)?;
            }
            (BgpState::Established, BgpMessageType::RouteRefresh) => {
                self.set_hold(now_ns);
                let asked = RouteRefresh::parse(body)?.asked();
                self.events.extend(asked.map(BgpEvent::RefreshRequested));
            }
            (state, _) => {
                let subcode = match state {
                    BgpState::OpenSent => 1,
                    BgpState::OpenConfirm => 2,
                    _ => 3,
                };
                return Err(Notification::new(code::STATE_MACHINE, subcode));
            }
        }
        Ok(())
    }

    fn handle_open(&mut self, now_ns: u64, body: &[u8]) -> Result<(), Notification> {
        let peer = Open::parse(body)?;
        let negotiated = Negotiated::new(&self.config, &peer)?;
        self.negotiated = Some(negotiated);
        emit_keepalive(&mut self.control);
        self.state = BgpState::OpenConfirm;
        self.set_hold(now_ns);
        self.set_keepalive(now_ns);
        Ok(())
    }

    fn handle_update(&mut self, body: &[u8]) -> Result<(), Notification> {
        let four_octet_as = self
            .negotiated
            .as_ref()
            .is_some_and(|n| n.encoding.attributes.four_octet_as);
        let (update, faults) = Update::parse(body, four_octet_as)?;
        let counters = &mut self.counters;
        counters.updates_received += 1;
        let announced = (update.announced_ipv4.len() + update.announced_ipv6.len()) as u64;
        // "the route should be excluded" (RFC 4271 §9.1.2).
        match update.attributes.has_as(self.config.local_as) {
            true => counters.looped_received += announced,
            false => counters.announcements_received += announced,
        }
        counters.withdrawals_received +=
            (update.withdrawn_ipv4.len() + update.withdrawn_ipv6.len()) as u64;
        counters.treated_as_withdrawn += u64::from(faults.treated_as_withdrawn.is_some());
        counters.discarded_attributes += u64::from(faults.discarded_attributes);
        self.events
            .extend(update.end_of_rib.map(BgpEvent::EndOfRib));
        Ok(())
    }

    /// Tells the peer of an error, and ends the session.
    fn fail(&mut self, now_ns: u64, notification: Notification) {
        notification.emit(&mut self.control);
        self.counters.notifications_sent += 1;
        let control = std::mem::take(&mut self.control);
        self.go_down(now_ns, DownReason::Sent(notification));
        self.control = control;
    }

    /// The session is over: all that belonged to it goes, and a new try waits for its time.
    fn go_down(&mut self, now_ns: u64, reason: DownReason) {
        self.received = Vec::new();
        self.control.clear();
        self.outgoing.clear();
        self.negotiated = None;
        self.timers = Timers::default();
        // A try whose time is over may still be under way.
        let is_open = reason != DownReason::Disconnected || self.state == BgpState::Connect;
        if is_open || !self.is_started {
            self.events.push_back(BgpEvent::Disconnect);
        }
        self.events.push_back(BgpEvent::Down(reason));
        self.state = BgpState::Idle;
        if self.is_started {
            if self.config.passive {
                self.begin(now_ns);
            } else {
                self.set_connect_retry(now_ns);
            }
        }
    }

    /// A span of time, shortened by up to a quarter (RFC 4271 §10).
    fn jittered(&mut self, span_ns: u64) -> u64 {
        span_ns - span_ns / 1024 * u64::from(self.random.below(256))
    }

    fn set_connect_retry(&mut self, now_ns: u64) {
        let after = self.jittered(self.config.connect_retry_ns);
        self.timers.connect_retry_ns = Some(now_ns + after);
    }

    fn hold_time_ns(&self) -> Option<u64> {
        let seconds = self.negotiated.as_ref().map_or(0, |n| n.hold_time_s);
        (seconds != 0).then(|| u64::from(seconds) * SECOND_NS)
    }

    fn set_hold(&mut self, now_ns: u64) {
        self.timers.hold_ns = self.hold_time_ns().map(|hold_ns| now_ns + hold_ns);
    }

    /// A third of the hold time (RFC 4271 §4.4).
    fn set_keepalive(&mut self, now_ns: u64) {
        let after = self
            .hold_time_ns()
            .map(|hold_ns| self.jittered(hold_ns / 3));
        self.timers.keepalive_ns = after.map(|after| now_ns + after);
    }
}
