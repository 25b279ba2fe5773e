//! What a segment that arrives does to a connection: the steps of RFC 9293, section 3.10.7.4, in
//! their order. Before the connection is there it is `handshake` that knows; those that come most
//! `header_prediction` takes.

use allosaur_packet::transport::tcp::TcpFlags;

use super::connection::{Connection, Flag, TcpContext, TcpState};
use super::outcome::{End, Outcome};
use super::segment::{Coalesced, Segment};
use super::seq::Seq;
use super::timers::Timer;

/// A timestamp older than this says nothing any more (RFC 7323, section 5.5: 24 days).
const TIMESTAMP_MS_MAX: u32 = 24 * 24 * 3600 * 1000;

/// What is left of a segment when all that lies outside of the window is cut off.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) seq: Seq,
    pub(super) len: u32,
    pub(super) fin: bool,
}

impl Connection {
    /// Takes a segment that arrived for this connection, and returns what it meant.
    pub fn handle_segment(&mut self, cx: &mut TcpContext<'_>, segment: &Segment) -> Outcome {
        let mut outcome = Outcome::default();
        self.input(cx, segment, &mut outcome);
        outcome
    }

    /// Takes a segment of the slow path, step by step.
    pub(super) fn input_by_steps(
        &mut self,
        cx: &mut TcpContext<'_>,
        segment: &Segment,
        outcome: &mut Outcome,
    ) {
        let mut part = Part {
            seq: segment.seq,
            len: segment.len,
            fin: segment.has(TcpFlags::FIN),
        };
        if self.is_expected(segment) {
            if self.is_plain_data(segment) {
                return self.take_plain_data(cx, segment, Coalesced::one(segment.len), outcome);
            }
            self.count_prediction(cx, segment);
        } else if !self.check(cx, segment, &mut part, outcome) {
            return;
        }
        self.note_received(cx);
        self.note_timestamp(segment);
        if self.has(Flag::ECN) {
            self.process_ecn(cx, segment);
        }
        let una = self.snd_una;
        if !self.process_ack(cx, segment, outcome) {
            return;
        }
        // In TIME-WAIT nothing is sent that a window would be for (RFC 9293, section 3.10.7.4, fifth).
        if self.state != TcpState::TimeWait {
            self.update_window(cx, segment, segment.seq, self.snd_una != una);
        }
        self.process_text(cx, part, outcome);
    }

    /// How many bytes may come with `segment`, its own among them, in segments that differ from it in
    /// nothing but their numbers and can be handled as one ([`handle_coalesced`]); 0 when it cannot.
    ///
    /// [`handle_coalesced`]: Connection::handle_coalesced
    #[inline]
    pub fn coalesced_bytes_max(&self, segment: &Segment) -> u32 {
        if self.is_expected(segment) && self.is_plain_data(segment) {
            self.rcv_nxt.until(self.rcv_adv)
        } else {
            0
        }
    }

    /// Takes `segment` and those behind it that differ from it in nothing but their numbers, no more
    /// bytes than [`coalesced_bytes_max`](Connection::coalesced_bytes_max) says. It counts each of
    /// them and leaves the connection as they would one by one, but that all are acknowledged
    /// together: at once if they are two or more.
    pub fn handle_coalesced(
        &mut self,
        cx: &mut TcpContext<'_>,
        segment: &Segment,
        coalesced: Coalesced,
    ) -> Outcome {
        debug_assert!(coalesced.bytes <= self.coalesced_bytes_max(segment));
        let mut outcome = Outcome::default();
        cx.counters.rcvtotal += u64::from(coalesced.segments);
        cx.counters.rcvoffloads += u64::from(coalesced.segments - 1);
        self.take_plain_data(cx, segment, coalesced, &mut outcome);
        outcome
    }

    /// The short way: the next segment of a connection that does nothing but move data. All
    /// checks would let it through.
    #[inline]
    fn is_expected(&self, segment: &Segment) -> bool {
        let bits = segment.flags.0 & !TcpFlags::PSH.0;
        let newer = match segment.timestamps {
            Some((value, _)) => !Seq(value).is_before(Seq(self.ts_recent)),
            None => !self.has(Flag::TIMESTAMPS),
        };
        self.state == TcpState::Established
            && bits == TcpFlags::ACK.0
            && segment.seq == self.rcv_nxt
            && !(segment.seq + segment.len).is_after(self.rcv_adv)
            && newer
    }

    /// Of those the ones that only bring data, which nobody has to look at any further.
    #[inline]
    fn is_plain_data(&self, segment: &Segment) -> bool {
        segment.len > 0
            && segment.ack == self.snd_una
            && !self.has(Flag::NOT_PLAIN_INPUT)
            && !self.recovery.is_some()
            && self.probes == 0
            && segment.sack.as_slice().is_empty()
    }

    /// What all the steps together do with such a segment, and with those behind it that are like it.
    #[inline]
    fn take_plain_data(
        &mut self,
        cx: &mut TcpContext<'_>,
        segment: &Segment,
        coalesced: Coalesced,
        outcome: &mut Outcome,
    ) {
        cx.counters.preddat += u64::from(coalesced.segments);
        cx.counters.rcvpack += u64::from(coalesced.segments);
        cx.counters.rcvbyte += u64::from(coalesced.bytes);
        self.last_received_ms = cx.now_ms;
        self.note_timestamp(segment);
        self.rcv_nxt += coalesced.bytes;
        let last = self.rcv_nxt - coalesced.last_bytes;
        self.update_window(cx, segment, last, false);
        outcome.delivered_bytes = coalesced.bytes;
        self.schedule_ack(cx, coalesced.segments);
    }

    /// Whether it has a place here: the first to the fifth step, with RFC 5961 and RFC 7323. Each says
    /// whether the next one follows.
    fn check(
        &mut self,
        cx: &mut TcpContext<'_>,
        segment: &Segment,
        part: &mut Part,
        outcome: &mut Outcome,
    ) -> bool {
        self.check_timestamp(cx, segment)
            && self.check_reset(cx, segment, outcome)
            && self.check_sequence(cx, segment, part)
            && self.check_syn(cx, segment, part)
            && self.check_acknowledgment(cx, segment, outcome)
    }

    /// PAWS (RFC 7323, section 5): what has an old timestamp is an old segment.
    #[inline]
    fn check_timestamp(&mut self, cx: &mut TcpContext<'_>, segment: &Segment) -> bool {
        if !self.has(Flag::TIMESTAMPS) || segment.has(TcpFlags::RST) {
            return true;
        }
        let Some((value, _)) = segment.timestamps else {
            // "If a non-<RST> segment is received without a TSopt, a TCP SHOULD silently drop the
            // segment" (section 3.2). A SYN again is answered below.
            return segment.has(TcpFlags::SYN);
        };
        let silence_ms = cx.now_ms.wrapping_sub(self.last_received_ms);
        if !Seq(value).is_before(Seq(self.ts_recent)) || silence_ms > TIMESTAMP_MS_MAX {
            return true;
        }
        cx.counters.pawsdrop += 1;
        if segment.len > 0 {
            cx.counters.rcvduppack += 1;
            cx.counters.rcvdupbyte += u64::from(segment.len);
        }
        self.challenge_ack(cx, segment);
        false
    }

    /// The RST bit (second step): it counts when its sequence number is exactly RCV.NXT; in the window a
    /// challenge ACK answers it (RFC 5961, section 3.2).
    #[inline]
    fn check_reset(
        &mut self,
        cx: &mut TcpContext<'_>,
        segment: &Segment,
        outcome: &mut Outcome,
    ) -> bool {
        if !segment.has(TcpFlags::RST) {
            return true;
        }
        if segment.seq == self.rcv_nxt {
            // The peer has all that we sent, and sent all: nothing is lost.
            let is_over = matches!(
                self.state,
                TcpState::TimeWait | TcpState::Closing | TcpState::LastAck
            ) && !self.snd_una.is_before(self.write_seq);
            let how = if is_over { End::Closed } else { End::Reset };
            let acks_all = segment.has(TcpFlags::ACK)
                && !segment.ack.is_before(self.write_seq)
                && !segment.ack.is_after(self.snd_max);
            self.enter_closed(cx, how, outcome);
            if acks_all {
                self.set(Flag::ALL_ACKED);
            }
        } else if segment.seq.is_after(self.rcv_nxt) && segment.seq.is_before(self.rcv_adv) {
            self.challenge_ack(cx, segment);
        }
        false
    }

    /// The sequence number (first step): what lies outside of the window is cut off.
    #[inline]
    fn check_sequence(
        &mut self,
        cx: &mut TcpContext<'_>,
        segment: &Segment,
        part: &mut Part,
    ) -> bool {
        if segment.has(TcpFlags::SYN) {
            // Whatever its number is: `check_syn` judges it.
            return true;
        }
        if part.seq.is_before(self.rcv_nxt) {
            self.trim_front(cx, segment, part);
        }
        let end = part.seq + part.len;
        if !end.is_after(self.rcv_adv) {
            return true;
        }
        if part.len == 0 {
            self.challenge_ack(cx, segment);
            return false;
        }
        let beyond = self.rcv_adv.until(end).min(part.len);
        if part.seq == self.rcv_adv && part.seq == self.rcv_nxt {
            cx.counters.rcvwinprobe += 1;
        } else {
            cx.counters.rcvpackafterwin += 1;
            cx.counters.rcvbyteafterwin += u64::from(beyond);
        }
        self.set(Flag::ACK_NOW);
        part.len -= beyond;
        part.fin = false;
        // "If the RCV.WND is zero, no segments will be acceptable, but special allowance should
        // be made to accept valid ACKs": at the edge of the window the acknowledgment counts.
        !part.seq.is_after(self.rcv_adv)
    }

    /// Cuts off what was received before. When nothing is left the ACK still counts: both sides may have
    /// lost their last.
    fn trim_front(&mut self, cx: &mut TcpContext<'_>, segment: &Segment, part: &mut Part) {
        let old = part.seq.until(self.rcv_nxt);
        let len = part.len;
        part.seq = self.rcv_nxt;
        if old < segment.span() {
            part.len -= old;
            cx.counters.rcvpartduppack += 1;
            cx.counters.rcvpartdupbyte += u64::from(old);
            return;
        }
        // Our ACK of it was lost, or this is a keepalive probe.
        part.len = 0;
        part.fin = false;
        if len > 0 {
            cx.counters.rcvduppack += 1;
            cx.counters.rcvdupbyte += u64::from(len);
        }
        self.challenge_ack(cx, segment);
        if segment.has(TcpFlags::FIN) && self.state == TcpState::TimeWait {
            // "Acknowledge it, and restart the 2 MSL timeout" (eighth step).
            self.enter_time_wait(cx);
        }
    }

    /// The ACK bit (fifth step): without it the segment is dropped; in SYN-RECEIVED it establishes the
    /// connection.
    #[inline]
    fn check_acknowledgment(
        &mut self,
        cx: &mut TcpContext<'_>,
        segment: &Segment,
        outcome: &mut Outcome,
    ) -> bool {
        if !segment.has(TcpFlags::ACK) {
            return false;
        }
        if self.state != TcpState::SynReceived {
            return true;
        }
        if !segment.ack.is_after(self.snd_una) || segment.ack.is_after(self.snd_max) {
            // Not of this connection (RFC 9293): a RST answers it, and we go on waiting.
            outcome.refused = true;
            return false;
        }
        self.become_established(cx, outcome);
        true
    }

    /// A challenge ACK answers a segment that is not acceptable; segments without data get only a few a
    /// second, or two ends that disagree would answer each other for ever (RFC 5961, section 7).
    pub(super) fn challenge_ack(&mut self, cx: &mut TcpContext<'_>, segment: &Segment) {
        let pool = &mut cx.recovery.cold;
        if segment.span() > 0 || !pool.challenged_recently(self.cold, cx.now_ms) {
            pool.note_challenge_ack(&mut self.cold, cx.now_ms);
            self.set(Flag::ACK_NOW);
        }
    }

    /// The segment text and the FIN bit: the seventh and the eighth step.
    #[inline(always)]
    pub(super) fn process_text(
        &mut self,
        cx: &mut TcpContext<'_>,
        part: Part,
        outcome: &mut Outcome,
    ) {
        if part.len > 0 {
            self.process_data(cx, part, outcome);
        }
        if part.fin {
            self.receive_fin(cx, part.seq + part.len, outcome);
        }
        if self.has(Flag::FIN_OUT_OF_ORDER) {
            let at = cx.recovery.cold.get(self.cold).fin_seq;
            if !at.is_after(self.rcv_nxt) {
                self.process_fin(cx, outcome);
            }
        }
    }

    /// A segment arrived: probes are answered, and the keepalive timer restarts.
    #[inline]
    pub(super) fn note_received(&mut self, cx: &TcpContext<'_>) {
        self.last_received_ms = cx.now_ms;
        if self.probes > 0 {
            self.probes = 0;
            if self.timers.is_set(Timer::Keep) && self.is_synchronized() {
                let until_ms = cx.now_ms.wrapping_add(cx.tunables.keepalive_idle_ms);
                self.timers.set(Timer::Keep, until_ms);
            }
        }
    }

    /// CE of the packet, and the peer's ECE and CWR (RFC 3168, section 6.1).
    fn process_ecn(&mut self, cx: &mut TcpContext<'_>, segment: &Segment) {
        if segment.has(TcpFlags::CWR) {
            self.clear(Flag::SEND_ECE);
        }
        if segment.ecn {
            cx.counters.ecn_ce += 1;
            self.set(Flag::SEND_ECE);
        }
        if segment.has(TcpFlags::ECE) && !segment.has(TcpFlags::SYN) {
            self.enter_congestion_recovery(cx);
        }
    }

    /// A FIN arrived; it is processed when all data before it was received.
    fn receive_fin(&mut self, cx: &mut TcpContext<'_>, at: Seq, outcome: &mut Outcome) {
        if self.is_fin_received() {
            return;
        }
        if at.is_after(self.rcv_nxt) {
            self.set(Flag::FIN_OUT_OF_ORDER.or(Flag::ACK_NOW));
            cx.recovery.cold.of(&mut self.cold).fin_seq = at;
        } else {
            // Data behind the FIN is ignored.
            self.process_fin(cx, outcome);
        }
    }

    #[inline]
    pub(super) fn process_fin(&mut self, cx: &mut TcpContext<'_>, outcome: &mut Outcome) {
        self.clear(Flag::FIN_OUT_OF_ORDER);
        self.set(Flag::ACK_NOW);
        self.rcv_nxt += 1;
        outcome.peer_closed = true;
        match self.state {
            TcpState::SynReceived | TcpState::Established => self.state = TcpState::CloseWait,
            TcpState::FinWait1 => self.state = TcpState::Closing,
            TcpState::FinWait2 => {
                self.enter_time_wait(cx);
                outcome.ended = Some(End::Closed);
            }
            TcpState::SynSent
            | TcpState::CloseWait
            | TcpState::Closing
            | TcpState::LastAck
            | TcpState::TimeWait
            | TcpState::Closed => {}
        }
    }
}
