//! The connection of a session: what its socket has not taken yet, and when what was queued left.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use allosaur_api::commands::routes::{BgpCounters, BgpSessionInfo, RouteFamily};
use allosaur_bgp::session::BgpSession;
use allosaur_bgp::session::event::{BgpState, DownReason};
use allosaur_bgp::wire::prefix::AddressFamily;

use super::request::SessionSpec;
use super::sockets::{BgpSockets, SocketKey};
use crate::counters::BgpSessionBlock;

/// What is made of a session's messages at once, and one message more: what a peer that does not read takes
/// of our memory.
const CHUNK_BYTES: usize = 32 * 1024;
/// Chunks that are written before other sessions have their turn.
const CHUNKS_PER_TURN: usize = 32;
/// How often it is looked whether the peer has acknowledged all.
const ACKNOWLEDGED_POLL_NS: u64 = 2_000_000;

/// What came of writing.
#[derive(Debug)]
pub(super) enum Written {
    /// Nothing waits that is due.
    All,
    /// The socket has no room, or others shall have their turn.
    Waits,
}

/// The socket of a session, and how far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// There is none.
    Closed,
    /// It is being opened.
    Connecting(SocketKey),
    /// It is there.
    Open(SocketKey),
}

impl Link {
    /// The socket.
    pub(super) fn key(self) -> Option<SocketKey> {
        match self {
            Link::Closed => None,
            Link::Connecting(key) | Link::Open(key) => Some(key),
        }
    }
}

/// When the last routes were queued, and what became of them.
#[derive(Clone, Copy, Debug, Default)]
struct RouteTimes {
    queued_ns: Option<u64>,
    sent_ns: Option<u64>,
    acknowledged_ns: Option<u64>,
}

/// The connection of a session.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) peer: SocketAddr,
    pub(super) md5: Option<String>,
    pub(super) link: Link,
    /// When it is looked after next; the driver has it in its list.
    pub(super) due_ns: Option<u64>,
    block: Arc<BgpSessionBlock>,
    out: Vec<u8>,
    written: usize,
    established_ns: Option<u64>,
    last_error: Option<String>,
    /// What the system said of the try that is ending.
    io_error: Option<String>,
    times: RouteTimes,
    bytes_sent: u64,
    bytes_received: u64,
    connections_failed: u64,
}

impl Connection {
    /// Of a session that is new.
    pub(super) fn new(spec: SessionSpec) -> Connection {
        Connection {
            peer: spec.peer,
            md5: spec.md5,
            link: Link::Closed,
            due_ns: None,
            block: spec.block,
            out: Vec::new(),
            written: 0,
            established_ns: None,
            last_error: None,
            io_error: None,
            times: RouteTimes::default(),
            bytes_sent: 0,
            bytes_received: 0,
            connections_failed: 0,
        }
    }

    /// Writes what the session has to send, as far as there is room.
    pub(super) fn write(
        &mut self,
        session: &mut BgpSession,
        sockets: &mut impl BgpSockets,
        now_ns: u64,
    ) -> io::Result<Written> {
        let Link::Open(key) = self.link else {
            return Ok(Written::All);
        };
        for _ in 0..CHUNKS_PER_TURN {
            if self.written == self.out.len() {
                self.out.clear();
                self.written = 0;
                session.poll_transmit(now_ns, CHUNK_BYTES, &mut self.out);
            }
            if self.out.is_empty() {
                sockets.watch_writable(key, false);
                self.note_sent(session, now_ns);
                return Ok(Written::All);
            }
            match sockets.write(key, &self.out[self.written..]) {
                Ok(bytes) => {
                    self.written += bytes;
                    self.bytes_sent += bytes as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        sockets.watch_writable(key, true);
        Ok(Written::Waits)
    }

    /// Closes the socket, after what the session has to say at its end.
    pub(super) fn close(
        &mut self,
        session: &mut BgpSession,
        sockets: &mut impl BgpSockets,
        now_ns: u64,
    ) {
        if let Link::Open(key) = self.link {
            session.poll_transmit(now_ns, usize::MAX, &mut self.out);
            // A peer that does not read is not told.
            if let Ok(bytes) = sockets.write(key, &self.out[self.written..]) {
                self.bytes_sent += bytes as u64;
            }
        }
        if let Link::Connecting(_) = self.link {
            self.connections_failed += 1;
            let seconds = session.config().connect_retry_ns / 1_000_000_000;
            let key = match self.md5 {
                Some(_) => ", or it has another MD5 key for us",
                None => ", or it wants an MD5 key",
            };
            let text = format!(
                "{} does not answer within {seconds} s: it is not there, drops TCP port {}{key}",
                self.peer.ip(),
                self.peer.port()
            );
            self.io_error.get_or_insert(text);
        }
        if let Some(key) = self.link.key() {
            sockets.close(key);
        }
        self.link = Link::Closed;
        self.out = Vec::new();
        self.written = 0;
    }

    /// What the system said, before the session is told that its connection is gone.
    pub(super) fn note_io_error(&mut self, what: &str, error: &io::Error) {
        if self.link == Link::Closed || matches!(self.link, Link::Connecting(_)) {
            self.connections_failed += 1;
        }
        self.io_error = Some(format!("{what} {}: {error}", self.peer));
    }

    /// The peer has closed its end.
    pub(super) fn note_closed(&mut self) {
        let text = format!(
            "{} closed the connection without a reason: its log may have one",
            self.peer
        );
        self.io_error = Some(text);
    }

    /// Bytes were read.
    pub(super) fn note_received(&mut self, bytes: usize) {
        self.bytes_received += bytes as u64;
    }

    /// The session is established.
    pub(super) fn note_established(&mut self, now_ns: u64) {
        self.established_ns = Some(now_ns);
    }

    /// The session ended, or could not be made.
    pub(super) fn note_down(&mut self, reason: &DownReason) {
        let io_error = self.io_error.take();
        self.last_error = Some(match (reason, io_error) {
            (DownReason::Disconnected, Some(error)) => error,
            (reason, _) => reason.to_string(),
        });
        self.established_ns = None;
        self.times = RouteTimes::default();
    }

    /// Routes were queued for the session, if it is established.
    pub(super) fn note_queued(&mut self, session: &BgpSession, now_ns: u64) {
        if session.state() == BgpState::Established {
            self.times = RouteTimes {
                queued_ns: Some(now_ns),
                ..RouteTimes::default()
            };
        }
    }

    fn note_sent(&mut self, session: &BgpSession, now_ns: u64) {
        let times = &mut self.times;
        if times.queued_ns.is_some() && session.queued() == 0 {
            times.sent_ns.get_or_insert(now_ns);
        }
        if session.queued() == 0 {
            self.out = Vec::new();
        }
    }

    /// Looks whether the peer has acknowledged all that was sent.
    pub(super) fn poll_acknowledged(&mut self, sockets: &impl BgpSockets, now_ns: u64) {
        let Link::Open(key) = self.link else { return };
        let times = &mut self.times;
        let is_awaited = times.sent_ns.is_some() && times.acknowledged_ns.is_none();
        if is_awaited && sockets.unacknowledged_bytes(key) == 0 {
            times.acknowledged_ns = Some(now_ns);
        }
    }

    /// When it must be looked after, besides when its socket is ready.
    pub(super) fn poll_timeout(&self, session: &BgpSession, now_ns: u64) -> Option<u64> {
        let is_free = matches!(self.link, Link::Open(_)) && self.written == self.out.len();
        let transmit = session.poll_transmit_due().filter(|_| is_free);
        let is_awaited = self.times.sent_ns.is_some() && self.times.acknowledged_ns.is_none();
        let acknowledged = is_awaited.then_some(now_ns + ACKNOWLEDGED_POLL_NS);
        let all = [session.poll_timeout(), transmit, acknowledged];
        all.into_iter().flatten().min()
    }

    /// Publishes what is counted. The kernel is not asked what the peer has not acknowledged: no metric
    /// has that, and this follows each message.
    pub(super) fn publish(&self, session: &BgpSession) {
        let is_established = session.state() == BgpState::Established;
        let counters = self.counters(session, 0);
        self.block
            .publish(is_established, session.queued() as u64, counters);
    }

    fn unacknowledged_bytes(&self, sockets: &impl BgpSockets) -> u64 {
        match self.link {
            Link::Open(key) => sockets.unacknowledged_bytes(key),
            _ => 0,
        }
    }

    fn counters(&self, session: &BgpSession, bytes_unacknowledged: u64) -> BgpCounters {
        let counted = session.counters();
        BgpCounters {
            established: counted.established,
            announced: counted.announced,
            withdrawn: counted.withdrawn,
            bytes_sent: self.bytes_sent,
            bytes_unacknowledged,
            bytes_received: self.bytes_received,
            updates_received: counted.updates_received,
            announcements_received: counted.announcements_received,
            looped_received: counted.looped_received,
            withdrawals_received: counted.withdrawals_received,
            treated_as_withdrawn: counted.treated_as_withdrawn,
            discarded_attributes: counted.discarded_attributes,
            notifications_sent: counted.notifications_sent,
            notifications_received: counted.notifications_received,
            connections_failed: self.connections_failed,
        }
    }

    /// How it is.
    pub(super) fn info(
        &self,
        session: &BgpSession,
        sockets: &impl BgpSockets,
        now_ns: u64,
    ) -> BgpSessionInfo {
        let seconds = |from: u64, to: u64| to.saturating_sub(from) as f64 / 1e9;
        let negotiated = session.negotiated();
        let families = negotiated.map_or(&[][..], |agreed| &agreed.families);
        let times = self.times;
        let since_queued = |at: Option<u64>| Some(seconds(times.queued_ns?, at?));
        BgpSessionInfo {
            peer: self.peer.ip(),
            peer_asn: negotiated
                .map(|agreed| agreed.peer_as)
                .or(session.config().peer_as),
            state: session.state().name(),
            established_s: self.established_ns.map(|since| seconds(since, now_ns)),
            hold_time_s: negotiated.map(|agreed| agreed.hold_time_s),
            families: families.iter().copied().map(family_of).collect(),
            last_error: self.last_error.clone(),
            queued: session.queued(),
            queued_s: since_queued(Some(now_ns)),
            sent_s: since_queued(times.sent_ns),
            acknowledged_s: since_queued(times.acknowledged_ns),
            counters: self.counters(session, self.unacknowledged_bytes(sockets)),
        }
    }
}

/// A family, as the RPC has it.
pub(super) fn family_of(family: AddressFamily) -> RouteFamily {
    match family {
        AddressFamily::Ipv4 => RouteFamily::Ipv4,
        AddressFamily::Ipv6 => RouteFamily::Ipv6,
    }
}
