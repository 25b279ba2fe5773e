//! An end that is ours: one connection of the engine, and an application on it that runs a script.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use allosaur_engine::encapsulation::Encapsulation;
use allosaur_engine::session::LinkAddresses;
use allosaur_engine::session::wire::{self, Addresses, Arrival, Content, Envelope};
use allosaur_engine::tcp::{
    Connection, End, Outcome, RecoveryPool, Segment, Seq, TcpContext, TcpCounters, TcpState,
    Tunables,
};
use allosaur_packet::frame;
use allosaur_packet::network::checksum::Sum;
use allosaur_packet::transport::tcp::TcpFlags;

use crate::host::Place;
use crate::script::{self, Ended, Report, Step};

/// What the application does now.
#[derive(Clone, Copy, Debug)]
enum Doing {
    /// The next step.
    Next,
    /// Writes so many bytes more.
    Writing(u64),
    /// Waits until so many bytes arrived in all.
    Waiting(u64),
    DisabledClients(Instant),
    Done,
}

/// A connection of ours, with its application.
pub(crate) struct Ours {
    tunables: Tunables,
    pub(crate) counters: TcpCounters,
    recovery: RecoveryPool,
    connection: Option<Connection>,
    first: Seq,
    envelope: Envelope<'static>,
    epoch: Instant,
    script: Vec<Step>,
    doing: Doing,
    /// Bytes that the application took.
    taken: u64,
    acknowledged: u64,
    has_closed: bool,
    refuses: bool,
    report: Report,
    /// Frames to send.
    pub(crate) leaving: Vec<Vec<u8>>,
}

impl Ours {
    pub(crate) fn new(place: Place, ipv6: bool, tunables: Tunables, script: &[Step]) -> Ours {
        let (own, other) = (place.address(ipv6), place.other().address(ipv6));
        Ours {
            tunables,
            counters: TcpCounters::default(),
            recovery: RecoveryPool::default(),
            connection: None,
            // Goes round early.
            first: Seq(0xffff_f000 | u32::from(place.number())),
            envelope: envelope(place, own, other),
            epoch: Instant::now(),
            script: script.to_vec(),
            doing: Doing::Next,
            taken: 0,
            acknowledged: 0,
            has_closed: false,
            refuses: false,
            report: Report::default(),
            leaving: Vec::new(),
        }
    }

    pub(crate) fn connect(&mut self) {
        let first = self.first;
        self.connection = Some(self.with(|cx| Connection::connect(cx, first)));
    }

    /// There is no application.
    pub(crate) fn refuse(&mut self) {
        self.refuses = true;
        self.doing = Doing::Done;
    }

    pub(crate) fn report(&self) -> Report {
        self.report
    }

    /// Whether the application ran its script to the end, or saw the connection fail.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.doing, Doing::Done)
    }

    /// Whether nothing is left but memories.
    pub(crate) fn is_over(&self) -> bool {
        let over = |c: &Connection| c.is_closed() || c.state() == TcpState::TimeWait;
        self.connection.as_ref().is_none_or(over)
    }

    fn with<R>(&mut self, act: impl FnOnce(&mut TcpContext<'_>) -> R) -> R {
        let now = self.epoch.elapsed();
        act(&mut TcpContext {
            now_ms: now.as_millis() as u32,
            now_us: now.as_micros() as u32,
            tunables: &self.tunables,
            counters: &mut self.counters,
            unread_bytes: 0,
            recovery: &mut self.recovery,
        })
    }

    /// Calls `act` on the connection, and lets the application see what came of it.
    fn with_connection(
        &mut self,
        act: impl FnOnce(&mut Connection, &mut TcpContext<'_>) -> Outcome,
    ) {
        if let Some(mut connection) = self.connection.take() {
            let outcome = self.with(|cx| act(&mut connection, cx));
            self.connection = Some(connection);
            self.note(outcome);
        }
    }

    fn note(&mut self, outcome: Outcome) {
        self.report.connected |= outcome.connected;
        self.report.received += u64::from(outcome.delivered_bytes);
        self.acknowledged += u64::from(outcome.acknowledged_bytes);
        if outcome.peer_closed {
            self.report.ended = Ended::Finished;
        }
        let ended = match outcome.ended {
            Some(End::Reset) => Ended::Reset,
            Some(End::TimedOut) => Ended::TimedOut,
            Some(End::Closed | End::CutOff) | None => return,
        };
        // Who reset it, or has nothing more to do, sees no more of it.
        if !self.is_done() {
            self.report.ended = ended;
            self.doing = Doing::Done;
        }
    }

    /// A frame arrived.
    pub(crate) fn handle_frame(&mut self, bytes: &[u8]) {
        let layout = frame::parse(bytes);
        let Ok(received) = wire::read(bytes, &layout) else {
            return;
        };
        let Arrival::Tcp(segment) = received.arrival else {
            return;
        };
        let is_syn = segment.has(TcpFlags::SYN) && !segment.has(TcpFlags::ACK);
        if is_syn && self.connection.is_none() && !self.refuses {
            let first = self.first;
            self.connection = Some(self.with(|cx| Connection::accept(cx, first, &segment)));
        } else {
            let mut is_refused = self.connection.is_none();
            self.with_connection(|connection, cx| {
                let outcome = connection.handle_segment(cx, &segment);
                is_refused = outcome.refused;
                outcome
            });
            if let Some(reset) = segment.reset_in_reply().filter(|_| is_refused) {
                self.send(&reset);
            }
        }
        self.work(Instant::now());
    }

    /// Lets time, application and connection do what they can.
    pub(crate) fn work(&mut self, now: Instant) {
        let left_ms = self.due_ms();
        if left_ms == Some(0) {
            self.with_connection(Connection::handle_timeout);
        }
        loop {
            let acted = self.run_application(now);
            self.transmit();
            if !acted {
                break;
            }
        }
    }

    fn due_ms(&self) -> Option<u32> {
        let now_ms = self.epoch.elapsed().as_millis() as u32;
        self.connection.as_ref()?.poll_timeout(now_ms)
    }

    /// When there is something to do without a frame.
    pub(crate) fn next_due(&self, now: Instant) -> Option<Instant> {
        let resting = match self.doing {
            Doing::DisabledClients(until) => Some(until),
            _ => None,
        };
        let timer = self
            .due_ms()
            .map(|left| now + Duration::from_millis(u64::from(left)));
        resting.into_iter().chain(timer).min()
    }

    /// Goes on with the script as far as it can. Returns whether it did anything.
    fn run_application(&mut self, now: Instant) -> bool {
        if !self.report.connected && !self.is_connected() {
            return false;
        }
        let mut acted = false;
        loop {
            let before = self.doing;
            self.doing = match before {
                Doing::Next => self.begin_step(now),
                Doing::Writing(left) => self.write(left),
                Doing::Waiting(until) if self.has(until) => {
                    self.taken = until.min(self.report.received);
                    Doing::Next
                }
                Doing::DisabledClients(until) if until <= now => Doing::Next,
                Doing::Waiting(_) | Doing::DisabledClients(_) | Doing::Done => return acted,
            };
            match (before, self.doing) {
                (Doing::Writing(before), Doing::Writing(after)) if before == after => return acted,
                // What is written leaves before the next step, as with sockets.
                (Doing::Writing(_), _) => return true,
                _ => acted = true,
            }
        }
    }

    fn is_connected(&self) -> bool {
        self.connection
            .as_ref()
            .is_some_and(Connection::is_synchronized)
    }

    fn has(&self, bytes: u64) -> bool {
        self.report.received >= bytes || self.report.ended == Ended::Finished
    }

    fn begin_step(&mut self, now: Instant) -> Doing {
        if self.script.is_empty() {
            self.close();
            return Doing::Done;
        }
        match self.script.remove(0) {
            Step::Send(bytes) => Doing::Writing(bytes),
            Step::Trade(bytes) => {
                self.script.insert(0, Step::Receive(bytes));
                Doing::Writing(bytes)
            }
            Step::Receive(bytes) => Doing::Waiting(self.taken + bytes),
            Step::ReceiveEnd => Doing::Waiting(u64::MAX),
            Step::Rest(milliseconds) => {
                Doing::DisabledClients(now + Duration::from_millis(milliseconds))
            }
            Step::Finish => {
                self.close();
                Doing::Next
            }
            Step::Reset => {
                self.has_closed = true;
                if let Some(connection) = &mut self.connection {
                    connection.abort();
                }
                Doing::Done
            }
        }
    }

    fn close(&mut self) {
        let has_closed = std::mem::replace(&mut self.has_closed, true);
        if let Some(connection) = self.connection.as_mut().filter(|_| !has_closed) {
            connection.close();
        }
    }

    fn write(&mut self, left: u64) -> Doing {
        let Some(connection) = &mut self.connection else {
            return Doing::Done;
        };
        let room = u64::from(connection.writable_bytes(&self.tunables));
        let bytes = left.min(room);
        connection.write(bytes as u32, &mut self.counters);
        match left - bytes {
            0 => Doing::Next,
            left => Doing::Writing(left),
        }
    }

    fn transmit(&mut self) {
        let mut segments = Vec::new();
        self.with_connection(|connection, cx| {
            let mut outcome = Outcome::default();
            connection.poll_transmit(cx, &mut outcome, &mut |segment: &Segment| {
                segments.push(*segment);
                true
            });
            outcome
        });
        for segment in segments {
            self.send(&segment);
        }
    }

    fn send(&mut self, segment: &Segment) {
        let content = Content::Tcp(segment);
        let mut frame = vec![0; self.envelope.frame_bytes(&content)];
        let place = self.acknowledged + u64::from(segment.offset);
        self.envelope.write(&content, &mut frame, |data| {
            script::fill(place, data);
            Sum::of(data)
        });
        self.leaving.push(frame);
    }
}

fn envelope(place: Place, own: SocketAddr, other: SocketAddr) -> Envelope<'static> {
    let addresses = match (own.ip(), other.ip()) {
        (IpAddr::V4(own), IpAddr::V4(other)) => Addresses::V4(own, other),
        (IpAddr::V6(own), IpAddr::V6(other)) => Addresses::V6(own, other),
        _ => unreachable!("both ends have addresses of one kind"),
    };
    let link = LinkAddresses {
        own: place.mac(),
        peer: place.other().mac(),
        encapsulation: Encapsulation::Ethernet,
    };
    Envelope {
        // As long as the test.
        link: Box::leak(Box::new(link.prefix(own.is_ipv6()))),
        addresses,
        ports: (own.port(), other.port()),
        type_of_service: 0,
        time_to_live: 64,
        identification: 0,
    }
}
