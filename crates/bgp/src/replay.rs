//! A stream on its way to one session: how far it is, how fast it may go, and what is patched into it.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use crate::stream::{RouteStream, StreamMessage};
use crate::wire::open::AS_TRANS;
use crate::wire::prefix::AddressFamily;

const SECOND_NS: u128 = 1_000_000_000;

/// What a session puts into the messages that it shares with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnValues {
    /// Its AS number.
    pub local_as: u32,
    /// The next hop of its IPv4 routes.
    pub next_hop_ipv4: Ipv4Addr,
    /// The next hop of its IPv6 routes.
    pub next_hop_ipv6: Ipv6Addr,
}

/// A stream that is being sent on one session.
#[derive(Debug, Clone)]
pub struct RouteReplay {
    stream: Arc<RouteStream>,
    /// The next message.
    next: usize,
    pace: Option<Pace>,
}

/// A rate, and since when it counts.
#[derive(Debug, Clone, Copy)]
struct Pace {
    routes_per_s: u32,
    started_ns: Option<u64>,
    sent: u64,
}

impl Pace {
    /// When the next message is due.
    fn due_ns(&self) -> u64 {
        let Some(started_ns) = self.started_ns else {
            return 0;
        };
        let after = u128::from(self.sent) * SECOND_NS / u128::from(self.routes_per_s.max(1));
        started_ns.saturating_add(u64::try_from(after).unwrap_or(u64::MAX))
    }
}

impl RouteReplay {
    /// All of a stream, as fast as it is taken, or at a rate in routes per second.
    pub fn new(stream: Arc<RouteStream>, routes_per_s: Option<u32>) -> Self {
        let pace = routes_per_s.map(|routes_per_s| Pace {
            routes_per_s,
            started_ns: None,
            sent: 0,
        });
        Self {
            stream,
            next: 0,
            pace,
        }
    }

    /// Whether all was sent.
    pub fn is_done(&self) -> bool {
        self.next == self.stream.message_count()
    }

    /// Whether all was sent, and its time at the rate is over: what follows keeps the rate, too.
    pub fn is_over(&self, now_ns: u64) -> bool {
        self.is_done() && self.due_ns() <= now_ns
    }

    /// The stream.
    pub fn stream(&self) -> &RouteStream {
        &self.stream
    }

    /// When the next message, of this stream or of what follows, may leave; 0 for at once.
    pub fn due_ns(&self) -> u64 {
        self.pace.map_or(0, |pace| pace.due_ns())
    }

    /// Appends the messages that are due while `out` is shorter than `budget`, whole ones only. Gives the
    /// routes in them.
    pub fn transmit(
        &mut self,
        now_ns: u64,
        own: &OwnValues,
        budget: usize,
        out: &mut Vec<u8>,
    ) -> u64 {
        let stream = Arc::clone(&self.stream);
        let messages = stream.messages();
        let begin = self.begin();
        let room = budget.saturating_sub(out.len());
        let mut end = begin;
        let mut routes = 0;
        let first = self.next;
        while let Some(message) = messages.get(self.next) {
            if end - begin >= room || !self.take_due(now_ns, message.routes) {
                break;
            }
            end = message.end;
            routes += u64::from(message.routes);
            self.next += 1;
        }
        let at = out.len();
        out.extend_from_slice(&stream.bytes()[begin..end]);
        let mut message_at = at;
        for message in &messages[first..self.next] {
            patch(&stream, message, own, &mut out[message_at..]);
            message_at = at + message.end - begin;
        }
        routes
    }

    /// Where the next message begins.
    fn begin(&self) -> usize {
        let before = self.next.checked_sub(1);
        before.map_or(0, |index| self.stream.messages()[index].end)
    }

    /// Whether a message may leave now; counts it if so.
    fn take_due(&mut self, now_ns: u64, routes: u16) -> bool {
        let Some(pace) = &mut self.pace else {
            return true;
        };
        pace.started_ns.get_or_insert(now_ns);
        if pace.due_ns() > now_ns {
            return false;
        }
        pace.sent += u64::from(routes);
        true
    }
}

/// Puts a session's own values into a message.
fn patch(stream: &RouteStream, message: &StreamMessage, own: &OwnValues, bytes: &mut [u8]) {
    if message.next_hop != 0 {
        let place = &mut bytes[usize::from(message.next_hop)..];
        match stream.family() {
            AddressFamily::Ipv4 => place[..4].copy_from_slice(&own.next_hop_ipv4.octets()),
            AddressFamily::Ipv6 => place[..16].copy_from_slice(&own.next_hop_ipv6.octets()),
        }
    }
    if message.first_as != 0 {
        let place = &mut bytes[usize::from(message.first_as)..];
        if stream.has_four_octet_as() {
            place[..4].copy_from_slice(&own.local_as.to_be_bytes());
        } else {
            let number = u16::try_from(own.local_as).unwrap_or(AS_TRANS);
            place[..2].copy_from_slice(&number.to_be_bytes());
        }
    }
}
