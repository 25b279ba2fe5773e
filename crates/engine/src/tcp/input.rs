//! What a segment that arrives does to a connection: the steps of RFC 9293, section 3.10.7, in
//! their order.
//!
//! What lives here: the order, and the short steps. What does not: acknowledgments
//! (`acknowledge`) and data (`reassembly`).

use allosaur_packet::tcp::TcpFlags;

use super::connection::{Connection, Context, Flag, State};
use super::outcome::{End, Outcome};
use super::segment::Segment;
use super::seq::Seq;
use super::timers::Timer;
use super::tunables::Ecn;

/// A timestamp older than this says nothing any more (RFC 7323, section 5.5: 24 days).
const TIMESTAMP_MS_MAX: u32 = 24 * 24 * 3600 * 1000;

/// Whether the rest of a segment is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The next step follows.
    Continue,
    /// The segment is done with.
    Drop,
}

impl Connection {
    /// Takes a segment that arrived for this connection.
    pub fn handle_segment(&mut self, cx: &mut Context<'_>, segment: &Segment) -> Outcome {
        let mut outcome = Outcome::default();
        cx.counters.rcvtotal += 1;
        if self.is_closed() || self.has(Flag::RESET) {
            return outcome;
        }
        if self.state == State::SynSent {
            self.handle_in_syn_sent(cx, segment, &mut outcome);
            return outcome;
        }
        let mut segment = *segment;
        if self.is_expected(cx, &segment) {
            self.count_prediction(cx, &segment);
        } else if self.check(cx, &mut segment, &mut outcome) == Verdict::Drop {
            return outcome;
        }
        self.hear(cx, &segment);
        self.note_timestamp(cx, &segment);
        self.note_congestion(cx, &segment);
        if self.acknowledge(cx, &segment, &mut outcome) == Verdict::Drop {
            return outcome;
        }
        self.update_window(cx, &segment);
        if segment.len > 0 {
            self.take_data(cx, &segment, &mut outcome);
        }
        if segment.has(TcpFlags::FIN) {
            self.note_fin(segment.seq + segment.len);
        }
        self.take_fin(cx, &mut outcome);
        outcome
    }

    /// The short way: the next segment of a connection that does nothing but move data. All
    /// checks would let it through.
    #[inline]
    fn is_expected(&self, cx: &Context<'_>, segment: &Segment) -> bool {
        let bits = segment.flags.0 & !TcpFlags::PSH.0;
        let newer = match segment.timestamps {
            Some((value, _)) => !Seq(value).is_before(Seq(self.timestamp)),
            None => !self.has(Flag::TIMESTAMPS),
        };
        self.state == State::Established
            && bits == TcpFlags::ACK.0
            && segment.seq == self.expected
            && segment.len <= cx.tunables.receive_buffer_bytes
            && newer
    }

    fn count_prediction(&mut self, cx: &mut Context<'_>, segment: &Segment) {
        if segment.len > 0 && segment.ack == self.una {
            cx.counters.preddat += 1;
        } else if segment.len == 0 && segment.ack.is_after(self.una) {
            cx.counters.predack += 1;
        }
    }

    /// The steps before the acknowledgment.
    fn check(
        &mut self,
        cx: &mut Context<'_>,
        segment: &mut Segment,
        outcome: &mut Outcome,
    ) -> Verdict {
        let steps = [
            Connection::check_timestamp,
            Connection::check_reset,
            Connection::check_sequence,
            Connection::check_syn,
            Connection::check_acknowledgment,
        ];
        for step in steps {
            if step(self, cx, segment, outcome) == Verdict::Drop {
                return Verdict::Drop;
            }
        }
        Verdict::Continue
    }

    /// PAWS (RFC 7323, section 5): what has an old timestamp is an old segment.
    fn check_timestamp(
        &mut self,
        cx: &mut Context<'_>,
        segment: &mut Segment,
        _: &mut Outcome,
    ) -> Verdict {
        if !self.has(Flag::TIMESTAMPS) || segment.has(TcpFlags::RST) {
            return Verdict::Continue;
        }
        let Some((value, _)) = segment.timestamps else {
            // "If a non-<RST> segment is received without a TSopt, a TCP SHOULD silently drop the
            // segment" (section 3.2). A SYN again is answered below.
            let is_syn = segment.has(TcpFlags::SYN);
            return if is_syn {
                Verdict::Continue
            } else {
                Verdict::Drop
            };
        };
        let age_ms = cx.now_ms.wrapping_sub(self.timestamp_ms);
        if !Seq(value).is_before(Seq(self.timestamp)) || age_ms > TIMESTAMP_MS_MAX {
            return Verdict::Continue;
        }
        cx.counters.pawsdrop += 1;
        self.set(Flag::ACK_NOW);
        Verdict::Drop
    }

    /// A reset counts when it has exactly the number that is expected; near it, the other side
    /// is asked again (RFC 5961, section 3.2).
    fn check_reset(
        &mut self,
        cx: &mut Context<'_>,
        segment: &mut Segment,
        outcome: &mut Outcome,
    ) -> Verdict {
        if !segment.has(TcpFlags::RST) {
            return Verdict::Continue;
        }
        if segment.seq == self.expected {
            cx.counters.drops += 1;
            // Who was refused while TIME-WAIT lasts loses nothing.
            let was_over = self.state == State::TimeWait;
            let how = if was_over { End::Closed } else { End::Reset };
            self.end(cx, how, outcome);
        } else if self.is_in_window(segment.seq) {
            self.set(Flag::ACK_NOW);
        }
        Verdict::Drop
    }

    fn is_in_window(&self, seq: Seq) -> bool {
        !seq.is_before(self.expected) && seq.is_before(self.offered)
    }

    /// Cuts what lies outside of the window (RFC 9293, section 3.10.7.4, first).
    fn check_sequence(
        &mut self,
        cx: &mut Context<'_>,
        segment: &mut Segment,
        _: &mut Outcome,
    ) -> Verdict {
        if segment.seq.is_before(self.expected) {
            self.cut_front(cx, segment);
        }
        let end = segment.seq + segment.len;
        if segment.span() > 0 && end.is_after(self.offered) {
            let beyond = self.offered.until(end).min(segment.len);
            cx.counters.rcvpackafterwin += 1;
            cx.counters.rcvbyteafterwin += u64::from(beyond);
            self.set(Flag::ACK_NOW);
            segment.len -= beyond;
            segment.flags.0 &= !(TcpFlags::FIN.0 | TcpFlags::PSH.0);
            if segment.len == 0 && segment.seq.is_after(self.offered) {
                return Verdict::Drop;
            }
        } else if segment.seq.is_after(self.offered) {
            self.set(Flag::ACK_NOW);
            return Verdict::Drop;
        }
        Verdict::Continue
    }

    /// What has arrived before. When nothing is left the acknowledgment still counts: it may be
    /// that both sides lost their last.
    fn cut_front(&mut self, cx: &mut Context<'_>, segment: &mut Segment) {
        let mut old = segment.seq.until(self.expected);
        if segment.has(TcpFlags::SYN) {
            // A SYN again; `check_syn` judges it.
            return;
        }
        let is_all_old = old >= segment.span();
        if is_all_old {
            // Our acknowledgment of it was lost, or this asks whether we are there.
            self.set(Flag::ACK_NOW);
            if segment.len > 0 {
                cx.counters.rcvduppack += 1;
                cx.counters.rcvdupbyte += u64::from(segment.len);
            }
            segment.flags.0 &= !TcpFlags::FIN.0;
            old = segment.len;
            if self.state == State::TimeWait {
                self.wait_for_stragglers(cx);
            }
        } else {
            cx.counters.rcvpartduppack += 1;
            cx.counters.rcvpartdupbyte += u64::from(old);
        }
        segment.seq = self.expected;
        segment.len -= old.min(segment.len);
    }

    /// A SYN has no place here: the other side is asked (RFC 5961, section 4.2). Before the
    /// connection is there, it is the first one again.
    fn check_syn(
        &mut self,
        cx: &mut Context<'_>,
        segment: &mut Segment,
        _: &mut Outcome,
    ) -> Verdict {
        if !segment.has(TcpFlags::SYN) {
            return Verdict::Continue;
        }
        let is_first_again = segment.seq + 1 == self.expected;
        if self.state == State::SynReceived && is_first_again {
            if segment.has(TcpFlags::ACK) {
                // Both sides connected at the same time, and this is the answer to our SYN.
                segment.seq = self.expected;
                segment.flags.0 &= !TcpFlags::SYN.0;
                return Verdict::Continue;
            }
            self.next = self.una;
            return Verdict::Drop;
        }
        cx.counters.badsyn += u64::from(!is_first_again);
        self.set(Flag::ACK_NOW);
        Verdict::Drop
    }

    /// All but the first segment acknowledge (fifth step); in SYN-RECEIVED that makes the
    /// connection.
    fn check_acknowledgment(
        &mut self,
        cx: &mut Context<'_>,
        segment: &mut Segment,
        outcome: &mut Outcome,
    ) -> Verdict {
        if !segment.has(TcpFlags::ACK) {
            return Verdict::Drop;
        }
        if self.state != State::SynReceived {
            return Verdict::Continue;
        }
        if !segment.ack.is_after(self.una) || segment.ack.is_after(self.high) {
            // Not of this connection (RFC 9293): it gets a reset, we go on waiting.
            outcome.refused = true;
            return Verdict::Drop;
        }
        self.become_established(cx, outcome);
        self.send_window = self.scaled_window(segment);
        self.send_window_max = self.send_window_max.max(self.send_window);
        (self.window_seq, self.window_ack) = (segment.seq, segment.ack);
        Verdict::Continue
    }

    fn become_established(&mut self, cx: &mut Context<'_>, outcome: &mut Outcome) {
        cx.counters.connects += 1;
        if self.has(Flag::ECN) {
            cx.counters.ecn_shs += 1;
        }
        self.state = State::Established;
        self.backoff = 0;
        outcome.connected = true;
        let until_ms = cx.now_ms.wrapping_add(cx.tunables.keepalive_idle_ms);
        self.timers.set(Timer::Keep, until_ms);
    }

    /// RFC 9293, section 3.10.7.3.
    fn handle_in_syn_sent(
        &mut self,
        cx: &mut Context<'_>,
        segment: &Segment,
        outcome: &mut Outcome,
    ) {
        let acks = segment.has(TcpFlags::ACK);
        if acks && (!segment.ack.is_after(self.una) || segment.ack.is_after(self.high)) {
            outcome.refused = true;
            return;
        }
        if segment.has(TcpFlags::RST) {
            if acks {
                cx.counters.drops += 1;
                cx.counters.conndrops += 1;
                self.end(cx, End::Reset, outcome);
            }
            return;
        }
        if !segment.has(TcpFlags::SYN) {
            return;
        }
        self.take_syn(cx, segment);
        if !acks {
            // Both sides connect at the same time: our SYN leaves again, with an acknowledgment.
            self.state = State::SynReceived;
            self.next = self.una;
            return;
        }
        let echo = segment.flags.0 & (TcpFlags::ECE | TcpFlags::CWR).0;
        if cx.tunables.ecn == Ecn::Active && echo == TcpFlags::ECE.0 {
            self.set(Flag::ECN);
        }
        self.become_established(cx, outcome);
        self.hear(cx, segment);
        self.acknowledge(cx, segment, outcome);
        self.set(Flag::ACK_NOW);
        if segment.len > 0 {
            let data = Segment {
                seq: self.expected,
                flags: TcpFlags::ACK,
                ..*segment
            };
            self.take_data(cx, &data, outcome);
        }
    }

    /// The other side is there.
    fn hear(&mut self, cx: &Context<'_>, segment: &Segment) {
        self.heard_ms = cx.now_ms;
        if self.probes > 0 {
            self.probes = 0;
            if self.timers.is_set(Timer::Keep) {
                let until_ms = cx.now_ms.wrapping_add(cx.tunables.keepalive_idle_ms);
                self.timers.set(Timer::Keep, until_ms);
            }
        }
        // A closed window that is told again says that the other side lives.
        if self.has(Flag::PERSIST) && segment.has(TcpFlags::ACK) {
            self.clear(Flag::PROBE);
        }
    }

    /// Which timestamp is echoed (RFC 7323, section 4.3).
    fn note_timestamp(&mut self, cx: &Context<'_>, segment: &Segment) {
        let Some((value, _)) = segment.timestamps else {
            return;
        };
        let covers = !segment.seq.is_after(self.last_ack_sent);
        if covers && !Seq(value).is_before(Seq(self.timestamp)) {
            self.timestamp = value;
            self.timestamp_ms = cx.now_ms;
        }
    }

    /// Marks of routers, and what the other side says of them (RFC 3168, section 6.1).
    fn note_congestion(&mut self, cx: &mut Context<'_>, segment: &Segment) {
        if !self.has(Flag::ECN) {
            return;
        }
        if segment.has(TcpFlags::CWR) {
            self.clear(Flag::ECN_ECHO);
        }
        if segment.ecn {
            cx.counters.ecn_ce += 1;
            self.set(Flag::ECN_ECHO);
        }
        if segment.has(TcpFlags::ECE) {
            self.slow_down(cx);
        }
    }

    /// The window in bytes that a segment tells.
    pub(super) fn scaled_window(&self, segment: &Segment) -> u32 {
        let scale = if segment.has(TcpFlags::SYN) {
            0
        } else {
            self.send_scale
        };
        u32::from(segment.window) << scale
    }

    /// Takes the window if the segment is newer than the one that told it last (RFC 9293,
    /// section 3.10.7.4, fifth).
    fn update_window(&mut self, cx: &mut Context<'_>, segment: &Segment) {
        let window = self.scaled_window(segment);
        let is_newer = self.window_seq.is_before(segment.seq)
            || self.window_seq == segment.seq
                && (self.window_ack.is_before(segment.ack)
                    || self.window_ack == segment.ack && window > self.send_window);
        if !is_newer {
            return;
        }
        if segment.len == 0 && self.window_ack == segment.ack && window > self.send_window {
            cx.counters.rcvwinupd += 1;
        }
        if self.send_window == 0 && window > 0 && self.has(Flag::PERSIST) {
            self.clear(Flag::PERSIST);
            self.clear(Flag::PROBE);
            self.backoff = 0;
            self.timers.stop(Timer::Retransmit);
        }
        self.send_window = window;
        self.send_window_max = self.send_window_max.max(window);
        (self.window_seq, self.window_ack) = (segment.seq, segment.ack);
    }

    /// A FIN arrived; it counts when all before it has (eighth step).
    fn note_fin(&mut self, at: Seq) {
        if self.has(Flag::PEER_CLOSED) {
            return;
        }
        self.set(Flag::EARLY_FIN);
        self.early_fin = at;
    }

    fn take_fin(&mut self, cx: &mut Context<'_>, outcome: &mut Outcome) {
        let is_there = self.has(Flag::EARLY_FIN) && self.early_fin == self.expected;
        if !is_there || self.is_closed() {
            return;
        }
        self.clear(Flag::EARLY_FIN);
        self.set(Flag::PEER_CLOSED);
        self.set(Flag::ACK_NOW);
        self.expected += 1;
        outcome.peer_closed = true;
        match self.state {
            State::SynReceived | State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => {
                self.wait_for_stragglers(cx);
                outcome.ended = Some(End::Closed);
            }
            State::SynSent
            | State::CloseWait
            | State::Closing
            | State::LastAck
            | State::TimeWait
            | State::Closed => {}
        }
    }
}
