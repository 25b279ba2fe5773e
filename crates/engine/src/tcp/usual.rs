//! The short way in: segments as they mostly arrive, next in order on a connection where nothing is
//! lost. What it does, all steps of `input` together do with such a segment.

use allosaur_packet::transport::tcp::TcpFlags;

use super::connection::{Connection, Flag, TcpContext, TcpState};
use super::outcome::Outcome;
use super::segment::Segment;
use super::seq::Seq;
use super::timers::Timer;
use super::tunables::CongestionAlgorithm;

/// With one of these, a segment is looked at step by step.
const UNUSUAL: Flag = Flag::RESET
    .or(Flag::ECN)
    .or(Flag::RECOVERY)
    .or(Flag::HELD)
    .or(Flag::SLOWED)
    .or(Flag::TIMED_OUT)
    .or(Flag::PERSIST)
    .or(Flag::PROBE)
    .or(Flag::EARLY_FIN);

impl Connection {
    /// Whether a segment may go the short way.
    #[inline(always)]
    pub(super) fn is_usual(&self, segment: &Segment) -> bool {
        let bits = segment.flags.0 & !(TcpFlags::PSH | TcpFlags::FIN).0;
        let is_open = self.state >= TcpState::SynReceived && self.state < TcpState::TimeWait;
        let newer = match segment.timestamps {
            Some((value, _)) => {
                self.has(Flag::TIMESTAMPS) && !Seq(value).is_before(Seq(self.timestamp))
            }
            None => !self.has(Flag::TIMESTAMPS),
        };
        // Something of what is under way; or where nothing is, nothing.
        let flight = self.una.until(self.high);
        let acks = match flight {
            0 => segment.ack == self.una,
            _ => (1..=flight).contains(&self.una.until(segment.ack)),
        };
        let brings = segment.len > 0 || segment.has(TcpFlags::FIN);
        let takes = !brings
            || !self.has(Flag::PEER_CLOSED) && (segment.len == 0 || !self.has(Flag::FIN_WANTED));
        is_open
            && bits == TcpFlags::ACK.0
            && segment.seq == self.expected
            && !(segment.seq + segment.len).is_after(self.offered)
            && newer
            && acks
            && takes
            && !self.has(UNUSUAL)
            && !self.side.is_some()
            && (self.probes | self.dup_acks | self.backoff) == 0
            && segment.sack.as_slice().is_empty()
    }

    /// What all the steps together do with such a segment.
    #[inline(always)]
    pub(super) fn take_usual(
        &mut self,
        cx: &mut TcpContext<'_>,
        segment: &Segment,
        outcome: &mut Outcome,
    ) {
        let fin = segment.has(TcpFlags::FIN);
        match self.state {
            TcpState::SynReceived => self.become_established(cx, outcome),
            TcpState::Established if !fin => self.count_prediction(cx, segment),
            _ => {}
        }
        self.heard_ms = cx.now_ms;
        self.note_timestamp(segment);
        let advances = segment.ack != self.una;
        if advances {
            self.advance_usual(cx, segment.ack, segment, outcome);
            if self.has(Flag::FIN_SENT) && !self.note_own_fin(cx, outcome) {
                return;
            }
        }
        if self.state != TcpState::TimeWait {
            self.update_window(cx, segment, segment.seq, advances);
        }
        if segment.len > 0 {
            self.expected += segment.len;
            cx.counters.rcvpack += 1;
            cx.counters.rcvbyte += u64::from(segment.len);
            outcome.delivered_bytes = segment.len;
            self.acknowledge_soon(cx, 1);
        }
        if fin {
            self.take_fin(cx, outcome);
        }
    }

    /// Something new was acknowledged, and nothing is being repaired.
    #[inline(always)]
    fn advance_usual(
        &mut self,
        cx: &mut TcpContext<'_>,
        ack: Seq,
        segment: &Segment,
        outcome: &mut Outcome,
    ) {
        let (flight, bytes) = (self.una.until(self.high), self.una.until(ack));
        let is_data = self.has(Flag::SYN_DONE);
        self.move_on(cx, ack, outcome);
        self.measure(cx, segment);
        let always = cx.tunables.congestion == CongestionAlgorithm::Reno && is_data;
        if always || flight.saturating_mul(2) >= self.congestion.window_bytes {
            self.grow(cx, bytes, false);
        }
        if self.una == self.high {
            self.timers.stop(Timer::Retransmit);
        } else {
            let at_ms = cx.now_ms.wrapping_add(self.rtt.timeout_ms(0));
            self.timers.set(Timer::Retransmit, at_ms);
        }
    }
}
