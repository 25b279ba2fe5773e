//! What a UDP flow remembers between messages, and when it is over.

use super::app_latency::Stamp;
use crate::app::{BufferIndex, UdpCounters};
use crate::time::{MILLISECOND, Nanos, Tight};

/// How long a flow may be silent when its program does not say: as long as TRex's.
const KEEPALIVE_MS: u32 = 1_000;
/// How much later a silent flow ends at most. TRex looks at its flows every 100 ms, so a program that
/// pauses for exactly its keepalive goes on first; here such a flow ends this much later.
const KEEPALIVE_GRAIN: Nanos = 100 * MILLISECOND;

/// The state of a UDP flow.
#[derive(Clone, Debug)]
pub(super) struct Udp {
    /// The message that leaves next.
    message: Option<BufferIndex>,
    keepalive_ms: u32,
    received_only: bool,
    is_over: bool,
    is_refused: bool,
    /// Messages that arrived: none, one, or more.
    heard: u8,
    /// When something was last said, or heard.
    active_at: Tight,
    /// What stands in front of each message, where its program wants that.
    pub(super) stamp: Option<Stamp>,
}

impl Udp {
    pub(super) fn new(now: Nanos, stamp: Option<Stamp>) -> Udp {
        Udp {
            message: None,
            keepalive_ms: KEEPALIVE_MS,
            received_only: false,
            is_over: false,
            is_refused: false,
            heard: 0,
            active_at: Tight::new(now),
            stamp,
        }
    }

    /// Something arrived.
    fn note_received(&mut self, now: Nanos) {
        self.active_at = Tight::new(now);
        self.heard = self.heard.saturating_add(1);
    }

    /// A message of so many bytes arrived.
    #[inline]
    pub(super) fn note_message(&mut self, now: Nanos, bytes: usize, counters: &mut UdpCounters) {
        self.note_received(now);
        counters.rcvpkt += 1;
        counters.rcvbyte += bytes as u64;
    }

    /// Whether more than one message arrived.
    pub(super) fn has_heard_again(&self) -> bool {
        self.heard > 1
    }

    /// A message leaves as soon as there is room.
    pub(super) fn send(&mut self, buffer: BufferIndex) {
        debug_assert!(self.message.is_none(), "one message at a time");
        self.message = Some(buffer);
    }

    pub(super) fn message(&self) -> Option<BufferIndex> {
        self.message
    }

    pub(super) fn waits_to_send(&self) -> bool {
        self.message.is_some()
    }

    pub(super) fn note_sent(&mut self, now: Nanos) {
        self.message = None;
        if let Some(stamp) = &mut self.stamp {
            stamp.note_sent();
        }
        if !self.received_only {
            self.active_at = Tight::new(now);
        }
    }

    pub(super) fn set_keepalive(&mut self, now: Nanos, timeout_ms: u32, received_only: bool) {
        self.keepalive_ms = timeout_ms;
        self.received_only = received_only;
        self.active_at = Tight::new(now);
    }

    /// Ends the flow if it was silent for too long.
    pub(super) fn handle_timeout(&mut self, now: Nanos, counters: &mut UdpCounters) {
        if self.due().is_some_and(|due| due <= now) {
            counters.keepdrops += 1;
            self.end(counters);
        }
    }

    pub(super) fn end(&mut self, counters: &mut UdpCounters) {
        counters.closed += u64::from(!self.is_over);
        self.is_over = true;
    }

    /// Nobody takes its messages: it is over.
    pub(super) fn refuse(&mut self, counters: &mut UdpCounters) {
        self.is_refused |= !self.is_over;
        self.end(counters);
    }

    pub(super) fn is_refused(&self) -> bool {
        self.is_refused
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// When the silence is too long.
    pub(super) fn due(&self) -> Option<Nanos> {
        let silence = Nanos::from(self.keepalive_ms) * MILLISECOND + KEEPALIVE_GRAIN;
        (!self.is_over).then(|| self.active_at.get() + silence)
    }
}
