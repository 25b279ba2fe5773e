//! Two connections and the link between them, under virtual time and with a seed.
//!
//! What it is used for is in `transfers`.

use std::collections::BTreeMap;

use allosaur_engine::tcp::{
    Connection, End, Outcome, Progress, RecoveryPool, Segment, Seq, TcpContext, TcpCounters,
    Tunables,
};
use allosaur_packet::transport::tcp::TcpFlags;

/// Microseconds.
type Micros = u64;

/// What a link does, in both directions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) delay_us: Micros,
    /// Of a million segments.
    pub(crate) lost_ppm: u32,
    pub(crate) doubled_ppm: u32,
    /// Held back for a random time of up to `jitter_us`, and so overtaken.
    pub(crate) late_ppm: u32,
    pub(crate) jitter_us: Micros,
    /// Bytes per second; 0 is as fast as can be.
    pub(crate) rate: u64,
    /// Bytes that wait at most where the link is slow.
    pub(crate) queue_bytes: u64,
    /// Marked instead of lost when half the queue is full.
    pub(crate) marks: bool,
}

impl Link {
    pub(crate) const fn good(delay_us: Micros) -> Link {
        Link {
            delay_us,
            lost_ppm: 0,
            doubled_ppm: 0,
            late_ppm: 0,
            jitter_us: 0,
            rate: 0,
            queue_bytes: 64 << 10,
            marks: false,
        }
    }
}

/// One side: a connection and the application on it.
pub(crate) struct Side {
    pub(crate) connection: Option<Connection>,
    pub(crate) tunables: Tunables,
    pub(crate) counters: TcpCounters,
    pub(crate) recovery: RecoveryPool,
    /// Bytes that the application still has to write.
    pub(crate) to_write: u64,
    /// Closes only when the peer has.
    pub(crate) closes_last: bool,
    pub(crate) closing: bool,
    pub(crate) received: u64,
    pub(crate) acknowledged: u64,
    pub(crate) peer_closed: bool,
    pub(crate) ended: Option<End>,
    first: Seq,
    /// When the link on the way out is free.
    free_at: Micros,
}

impl Side {
    fn new(tunables: Tunables, to_write: u64, first: Seq) -> Side {
        Side {
            connection: None,
            tunables,
            counters: TcpCounters::default(),
            recovery: RecoveryPool::default(),
            to_write,
            closes_last: false,
            closing: false,
            received: 0,
            acknowledged: 0,
            peer_closed: false,
            ended: None,
            first,
            free_at: 0,
        }
    }

    /// Calls `act` on the connection, if there is one.
    fn with<R>(
        &mut self,
        now: Micros,
        act: impl FnOnce(&mut Connection, &mut TcpContext<'_>) -> R,
    ) -> Option<R> {
        let mut cx = context(now, &self.tunables, &mut self.counters, &mut self.recovery);
        Some(act(self.connection.as_mut()?, &mut cx))
    }

    fn take(&mut self, outcome: Outcome) {
        self.received += u64::from(outcome.delivered_bytes);
        self.acknowledged += u64::from(outcome.acknowledged_bytes);
        self.peer_closed |= outcome.peer_closed;
        self.ended = self.ended.or(outcome.ended);
    }

    /// The application writes what there is room for, and closes when it is done.
    fn run_application(&mut self) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        if self.closing || connection.is_closed() {
            return;
        }
        let room = u64::from(connection.writable_bytes(&self.tunables));
        let bytes = self.to_write.min(room);
        connection.write(bytes as u32, &mut self.counters);
        self.to_write -= bytes;
        if self.to_write == 0 && (!self.closes_last || self.peer_closed) {
            connection.close();
            self.closing = true;
        }
    }
}

pub(crate) fn context<'a>(
    now: Micros,
    tunables: &'a Tunables,
    counters: &'a mut TcpCounters,
    recovery: &'a mut RecoveryPool,
) -> TcpContext<'a> {
    TcpContext {
        unread_bytes: 0,
        // Both go round during each test.
        now_ms: ((now / 1_000) as u32).wrapping_add(u32::MAX - 50),
        now_us: (now as u32).wrapping_add(u32::MAX - 300),
        tunables,
        counters,
        recovery,
    }
}

/// A client, a server, and what is under way.
pub(crate) struct Pair {
    pub(crate) now: Micros,
    pub(crate) link: Link,
    pub(crate) client: Side,
    pub(crate) server: Side,
    under_way: BTreeMap<(Micros, u64), (bool, Segment)>,
    sent: u64,
    random: u64,
    /// Called with (to the server?, segment); what it says is lost is lost.
    pub(crate) filter: Option<fn(u64, bool, &Segment) -> bool>,
}

impl Pair {
    /// A client that writes `up` bytes to a server that writes `down` bytes.
    pub(crate) fn new(link: Link, tunables: [Tunables; 2], bytes: [u64; 2], seed: u64) -> Pair {
        // Sequence numbers go round early.
        let first = Seq((seed as u32).wrapping_mul(0x9e37_79b9) | 0xffff_f000);
        let [up, down] = bytes;
        let mut pair = Pair {
            now: 0,
            link,
            client: Side::new(tunables[0], up, first),
            server: Side::new(tunables[1], down, Seq(first.0 ^ 0x5555)),
            under_way: BTreeMap::new(),
            sent: 0,
            random: seed.wrapping_mul(2).wrapping_add(1),
            filter: None,
        };
        pair.server.closes_last = true;
        pair
    }

    /// Runs until both sides are over, or nothing is due, or `until` has come. Returns how many
    /// events there were.
    pub(crate) fn run(&mut self, until: Micros) -> u64 {
        let Side {
            tunables,
            counters,
            recovery,
            first,
            ..
        } = &mut self.client;
        let mut cx = context(self.now, tunables, counters, recovery);
        self.client.connection = Some(Connection::connect(&mut cx, *first));
        self.attend(false);
        let mut events = 0;
        while let Some(next) = self.next_event() {
            if next > until {
                break;
            }
            self.now = next;
            self.deliver();
            for is_server in [false, true] {
                let side = self.side(is_server);
                let outcome = side.with_due(next);
                side.take(outcome);
                self.attend(is_server);
            }
            events += 1;
            assert!(events < 3_000_000, "it goes on for ever");
        }
        events
    }

    fn side(&mut self, is_server: bool) -> &mut Side {
        if is_server {
            &mut self.server
        } else {
            &mut self.client
        }
    }

    fn next_event(&self) -> Option<Micros> {
        let arrival = self.under_way.keys().next().map(|key| key.0);
        let sides = [&self.client, &self.server];
        let timers = sides.iter().filter_map(|side| {
            let cx_ms = ((self.now / 1_000) as u32).wrapping_add(u32::MAX - 50);
            let left_ms = side.connection.as_ref()?.poll_timeout(cx_ms)?;
            Some((self.now / 1_000 + u64::from(left_ms)) * 1_000)
        });
        timers.map(|at| at.max(self.now)).chain(arrival).min()
    }

    /// Hands over what arrives now.
    fn deliver(&mut self) {
        while let Some(entry) = self.under_way.first_entry() {
            if entry.key().0 > self.now {
                return;
            }
            let (to_server, segment) = entry.remove();
            let now = self.now;
            let side = self.side(to_server);
            let is_new = side
                .connection
                .as_ref()
                .is_none_or(|connection| connection.may_be_replaced_by(&segment));
            if to_server && is_new && segment.has(TcpFlags::SYN) {
                let Side {
                    tunables,
                    counters,
                    recovery,
                    first,
                    ..
                } = side;
                let mut cx = context(now, tunables, counters, recovery);
                side.connection = Some(Connection::accept(&mut cx, *first, &segment));
            } else if let Some(outcome) = side.with(now, |c, cx| c.handle_segment(cx, &segment)) {
                side.take(outcome);
            }
            self.attend(to_server);
        }
    }

    /// Lets the application and the connection of a side do what they can.
    fn attend(&mut self, is_server: bool) {
        let now = self.now;
        let side = self.side(is_server);
        side.run_application();
        let (acknowledged, first) = (side.acknowledged, side.first);
        let mut leaving = Vec::new();
        let mut outcome = Outcome::default();
        let progress = side.with(now, |connection, cx| {
            connection.poll_transmit(cx, &mut outcome, &mut |segment: &Segment| {
                if segment.len > 0 {
                    let at = (acknowledged as u32).wrapping_add(segment.offset);
                    assert_eq!(first + 1 + at, segment.seq, "the bytes are others");
                }
                leaving.push(*segment);
                true
            })
        });
        assert_ne!(progress, Some(Progress::Blocked));
        side.take(outcome);
        for segment in leaving {
            self.send(!is_server, segment);
        }
    }

    fn send(&mut self, to_server: bool, mut segment: Segment) {
        let number = self.sent;
        self.sent += 1;
        let link = self.link;
        if self.filter.is_some_and(|f| f(number, to_server, &segment)) {
            return;
        }
        if self.draw(link.lost_ppm) {
            return;
        }
        let now = self.now;
        let mut arrives = now + link.delay_us;
        if link.rate > 0 {
            let side = self.side(!to_server);
            let begins = side.free_at.max(now);
            let waiting = (begins - now) * link.rate / 1_000_000;
            if waiting > link.queue_bytes {
                return;
            }
            if link.marks && segment.ecn {
                segment.ecn = waiting > link.queue_bytes / 2;
            }
            let bytes = u64::from(segment.len) + 66;
            side.free_at = begins + bytes * 1_000_000 / link.rate;
            arrives = side.free_at + link.delay_us;
        }
        if !link.marks {
            segment.ecn = false;
        }
        let copies = 1 + u32::from(self.draw(link.doubled_ppm));
        for _ in 0..copies {
            let late = if self.draw(link.late_ppm) {
                self.next_random() % link.jitter_us.max(1)
            } else {
                0
            };
            self.sent += 1;
            self.under_way
                .insert((arrives + late, self.sent), (to_server, segment));
        }
    }

    fn draw(&mut self, ppm: u32) -> bool {
        ppm > 0 && self.next_random() % 1_000_000 < u64::from(ppm)
    }

    /// SplitMix64.
    fn next_random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

impl Side {
    fn with_due(&mut self, now: Micros) -> Outcome {
        self.with(now, |connection, cx| connection.handle_timeout(cx))
            .unwrap_or_default()
    }
}
