//! One connection: the engine's TCP, and around it what makes its packets those of the reference.
//!
//! BSD of 1994 answers a segment before its application hears of it, says the end only when all that
//! was said before is acknowledged, and takes more from its application when half of its buffer is
//! empty; a write does not leave while another is under way.

use std::net::SocketAddr;
use std::sync::Arc;

use allosaur_engine::tcp::{
    Connection, Outcome, RecoveryPool, Segment, Seq, TcpContext, TcpCounters, Tunables,
};
use allosaur_engine::time::{MICROSECOND, MILLISECOND, Nanos};
use allosaur_packet::transport::tcp::TcpFlags;

use super::outbox::Outbox;
use super::settings::Settings;
use crate::client::ClientId;
use crate::plugin::PluginId;
use crate::timers::TimerId;

/// Bytes that are acknowledged at once, and bytes that never are, for one segment.
const AT_ONCE: u16 = 1;
const LATER: u16 = u16::MAX;

/// Whom a connection belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owned {
    pub(crate) client: ClientId,
    pub(crate) owner: PluginId,
    /// What it is to the owner.
    pub(crate) tag: u32,
    /// Whether the owner wants to know what arrives, not only how much.
    pub(crate) wants_bytes: bool,
}

/// Its ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
}

/// What all connections of a client share.
#[derive(Debug)]
pub(super) struct Pools<'p> {
    pub(super) now: Nanos,
    pub(super) counters: &'p mut TcpCounters,
    pub(super) recovery: &'p mut RecoveryPool,
}

impl Pools<'_> {
    fn tcp<'t>(&'t mut self, tunables: &'t Tunables) -> TcpContext<'t> {
        TcpContext {
            now_ms: (self.now / MILLISECOND) as u32,
            now_us: (self.now / MICROSECOND) as u32,
            tunables,
            unread_bytes: 0,
            counters: self.counters,
            recovery: self.recovery,
        }
    }
}

/// A connection of a client.
#[derive(Debug)]
pub(super) struct Socket {
    pub(super) owned: Owned,
    pub(super) ends: Ends,
    pub(super) settings: Settings,
    pub(super) timer: TimerId,
    pub(super) due: Nanos,
    connection: Connection,
    outbox: Outbox,
    /// Bytes of the application that were acknowledged, and that were ever sent.
    acknowledged: u64,
    sent: u64,
    /// Bytes that arrived and count for the next acknowledgment.
    unanswered: u32,
    /// Whether we asked for it.
    is_opener: bool,
    /// The application was told that there is no room.
    is_full: bool,
    /// The application has no more to say.
    is_closing: bool,
    /// The owner knows that it is over.
    pub(super) is_over: bool,
}

impl Socket {
    /// A connection that asks for the peer.
    pub(super) fn connect(
        pools: &mut Pools<'_>,
        owned: Owned,
        ends: Ends,
        settings: Settings,
        first: u32,
    ) -> Socket {
        let mut tcp = pools.tcp(&settings.tunables);
        let connection = Connection::connect(&mut tcp, Seq(first));
        Socket::new(owned, ends, settings, connection, true)
    }

    /// A connection that the peer asked for.
    pub(super) fn accept(
        pools: &mut Pools<'_>,
        owned: Owned,
        ends: Ends,
        settings: Settings,
        first: u32,
        syn: &Segment,
    ) -> Socket {
        let mut tunables = settings.tunables;
        // The end of the handshake counts as an acknowledgment there.
        tunables.initial_window_segments = tunables.initial_window_segments.saturating_add(1);
        let mut tcp = pools.tcp(&tunables);
        let connection = Connection::accept(&mut tcp, Seq(first), syn);
        Socket::new(owned, ends, settings, connection, false)
    }

    fn new(
        owned: Owned,
        ends: Ends,
        settings: Settings,
        connection: Connection,
        is_opener: bool,
    ) -> Socket {
        Socket {
            owned,
            ends,
            settings,
            timer: TimerId::NONE,
            due: Nanos::MAX,
            connection,
            outbox: Outbox::default(),
            acknowledged: 0,
            sent: 0,
            unanswered: 0,
            is_opener,
            is_full: false,
            is_closing: false,
            is_over: false,
        }
    }

    /// Takes a segment; its answer is due before the application hears of it.
    pub(super) fn handle_segment(&mut self, pools: &mut Pools<'_>, segment: &Segment) -> Outcome {
        let mut tunables = self.settings.tunables;
        tunables.acknowledge_bytes = match segment.len {
            length if length > 0 && self.connection.is_rcv_nxt(segment.seq) => {
                self.answers(segment)
            }
            _ => LATER,
        };
        let outcome = self
            .connection
            .handle_segment(&mut pools.tcp(&tunables), segment);
        self.note(&outcome);
        outcome
    }

    /// How many bytes are acknowledged at once: all when the peer pushes, or when enough came since
    /// an acknowledgment was late, if any number is enough.
    fn answers(&mut self, segment: &Segment) -> u16 {
        let mut is_enough = false;
        if let Some(limit) = self.settings.acknowledge_bytes {
            let limit = u32::from(limit.get());
            self.unanswered = self.unanswered.saturating_add(segment.len);
            is_enough = self.unanswered >= limit;
            if is_enough {
                self.unanswered -= limit;
                // More than one round at once is one acknowledgment.
                self.unanswered = self.unanswered.min(limit);
            }
        }
        if is_enough || segment.has(TcpFlags::PSH) {
            AT_ONCE
        } else {
            LATER
        }
    }

    /// Does what is due.
    pub(super) fn handle_timeout(&mut self, pools: &mut Pools<'_>) -> Outcome {
        let late = pools.counters.delack;
        let tunables = self.settings.tunables;
        let outcome = self.connection.handle_timeout(&mut pools.tcp(&tunables));
        if pools.counters.delack != late {
            self.unanswered = 0;
        }
        self.note(&outcome);
        outcome
    }

    fn note(&mut self, outcome: &Outcome) {
        self.outbox.acknowledge(outcome.acknowledged_bytes as usize);
        self.acknowledged += u64::from(outcome.acknowledged_bytes);
    }

    /// Whether the handshake is that of a connection that we asked for.
    pub(super) fn is_opened(&self, outcome: &Outcome) -> bool {
        outcome.connected && self.is_opener
    }

    /// When the connection wants to be called.
    pub(super) fn poll_timeout(&self, now: Nanos) -> Option<Nanos> {
        let now_ms = (now / MILLISECOND) as u32;
        let left_ms = self.connection.poll_timeout(now_ms)?;
        Some(now / MILLISECOND * MILLISECOND + Nanos::from(left_ms) * MILLISECOND)
    }

    /// Sends what may leave: each segment with its window, and the bytes that it is about.
    pub(super) fn transmit(
        &mut self,
        pools: &mut Pools<'_>,
        mut send: impl FnMut(&Segment, u16, &Outbox),
    ) -> Outcome {
        let mut tunables = self.settings.tunables;
        // Nagle looks once: what is idle sends all of it, the short end too.
        tunables.no_delay |= self.sent == self.acknowledged;
        let whole = tunables.receive_buffer_bytes >> tunables.window_scale();
        let mut outcome = Outcome::default();
        let (outbox, sent, acknowledged) = (&self.outbox, &mut self.sent, self.acknowledged);
        let _ = self.connection.poll_transmit(
            &mut pools.tcp(&tunables),
            &mut outcome,
            &mut |segment: &Segment| {
                let window = match segment.has(TcpFlags::RST) {
                    true => whole.min(0xffff) as u16,
                    false => segment.window,
                };
                send(segment, window, outbox);
                let end = acknowledged + u64::from(segment.offset) + u64::from(segment.len);
                if segment.len > 0 {
                    *sent = end.max(*sent);
                }
                true
            },
        );
        outcome
    }

    /// Whether the application may write.
    pub(super) fn is_writable(&self) -> bool {
        !self.is_closing && !self.is_full && !self.connection.is_closed()
    }

    /// Whether it was closed.
    pub(super) fn is_closing(&self) -> bool {
        self.is_closing
    }

    /// The application writes. Returns whether it fits; else it is told of room, and may not write
    /// before. The second is whether it may leave now.
    pub(super) fn write(&mut self, pools: &mut Pools<'_>, bytes: Arc<[u8]>) -> (bool, bool) {
        let is_first = self.outbox.len() == 0;
        self.outbox.push(bytes);
        self.fill(pools);
        self.is_full = self.waiting_bytes() > 0;
        let leaves = is_first || self.settings.tunables.no_delay;
        (!self.is_full, leaves)
    }

    /// Bytes that the buffer of the connection has no room for.
    fn waiting_bytes(&self) -> u32 {
        self.outbox.len() as u32 - self.connection.unacknowledged_bytes()
    }

    /// Gives the connection what its buffer has room for.
    fn fill(&mut self, pools: &mut Pools<'_>) {
        let room = self.connection.writable_bytes(&self.settings.tunables);
        let bytes = self.waiting_bytes().min(room);
        if bytes > 0 {
            self.connection.write(bytes, pools.counters);
        }
    }

    /// Something was acknowledged: with half of the buffer empty, what waits moves on. Returns
    /// whether the application may write again.
    pub(super) fn refill(&mut self, pools: &mut Pools<'_>) -> bool {
        let half = self.settings.tunables.transmit_buffer_bytes / 2;
        if self.connection.unacknowledged_bytes() > half {
            return false;
        }
        self.fill(pools);
        let is_told = self.is_full
            && self.waiting_bytes() == 0
            && self.connection.unacknowledged_bytes() <= half;
        self.is_full &= !is_told;
        is_told
    }

    /// The application has no more to say.
    pub(super) fn close(&mut self) {
        self.is_closing = true;
    }

    /// Says the end, when it is due. Returns whether it is.
    pub(super) fn say_end(&mut self) -> bool {
        let is_due = self.is_closing && self.outbox.len() == 0;
        if is_due {
            self.connection.close();
        }
        is_due
    }

    /// Ends it with a reset.
    pub(super) fn abort(&mut self) {
        self.is_closing = true;
        self.connection.abort();
    }

    /// The number of the next byte that is expected; none before the peer's SYN.
    pub(super) fn expected(&self) -> Option<Seq> {
        self.connection.rcv_nxt()
    }

    /// Whether it can be forgotten.
    pub(super) fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }

    /// Whether a new connection may take its place.
    pub(super) fn may_be_replaced_by(&self, syn: &Segment) -> bool {
        self.connection.may_be_replaced_by(syn)
    }

    /// Gives back what it holds. The last thing before it is forgotten.
    pub(super) fn release(&mut self, recovery: &mut RecoveryPool) {
        self.connection.release(recovery);
    }
}
