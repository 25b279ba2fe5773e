//! The handshake: SYNs that arrive and are sent (RFC 9293, sections 3.5 and 3.10.7.3).

use allosaur_packet::transport::tcp::TcpFlags;

use super::connection::{Connection, Flag, TcpContext, TcpState};
use super::input::Part;
use super::outcome::{End, Outcome};
use super::segment::Segment;
use super::timers::Timer;
use super::tunables::Ecn;

impl Connection {
    /// A segment in SYN-SENT (RFC 9293, section 3.10.7.3).
    pub(super) fn input_in_syn_sent(
        &mut self,
        cx: &mut TcpContext<'_>,
        segment: &Segment,
        outcome: &mut Outcome,
    ) {
        let acks = segment.has(TcpFlags::ACK);
        if acks && (!segment.ack.is_after(self.snd_una) || segment.ack.is_after(self.snd_max)) {
            outcome.refused = true;
            return;
        }
        if segment.has(TcpFlags::RST) {
            if acks {
                self.enter_closed(cx, End::Reset, outcome);
            }
            return;
        }
        if !segment.has(TcpFlags::SYN) {
            return;
        }
        self.process_syn(cx, segment);
        if !acks {
            // Simultaneous open: our SYN is sent again, with an ACK.
            self.state = TcpState::SynReceived;
            self.retransmit_syn();
            return;
        }
        let echo = segment.flags.0 & (TcpFlags::ECE | TcpFlags::CWR).0;
        if cx.tunables.ecn == Ecn::Active && echo == TcpFlags::ECE.0 {
            self.set(Flag::ECN);
        }
        self.become_established(cx, outcome);
        self.note_received(cx);
        self.process_ack(cx, segment, outcome);
        self.set(Flag::ACK_NOW);
        let part = Part {
            seq: self.rcv_nxt,
            segments: 1,
            len: segment.len.min(self.rcv_nxt.until(self.rcv_adv)),
            fin: segment.has(TcpFlags::FIN) && segment.len <= self.rcv_nxt.until(self.rcv_adv),
        };
        self.process_text(cx, part, outcome);
    }

    /// The SYN bit (fourth step): a challenge ACK answers it (RFC 5961, section 4.2). In SYN-RECEIVED it
    /// is the first SYN again.
    pub(super) fn check_syn(
        &mut self,
        cx: &mut TcpContext<'_>,
        segment: &Segment,
        part: &mut Part,
    ) -> bool {
        if !segment.has(TcpFlags::SYN) {
            return true;
        }
        let is_first_again = segment.seq + 1 == self.rcv_nxt;
        if self.state == TcpState::SynReceived && is_first_again {
            if segment.has(TcpFlags::ACK) {
                // Simultaneous open, and this is the answer to our SYN.
                part.seq = self.rcv_nxt;
                part.len = part.len.min(self.rcv_nxt.until(self.rcv_adv));
                part.fin &= part.len == segment.len;
                return true;
            }
            self.note_timestamp(segment);
            self.retransmit_syn();
            return false;
        }
        cx.counters.badsyn += u64::from(!is_first_again);
        self.challenge_ack(cx, segment);
        false
    }

    /// A segment in SYN-RECEIVED that passed the checks (fifth step): its ACK establishes the connection.
    /// Returns whether it did.
    #[inline(never)]
    pub(super) fn establish(
        &mut self,
        cx: &mut TcpContext<'_>,
        segment: &Segment,
        outcome: &mut Outcome,
    ) -> bool {
        if !segment.ack.is_after(self.snd_una) || segment.ack.is_after(self.snd_max) {
            // Not of this connection (RFC 9293): a RST answers it, and we go on waiting.
            outcome.refused = true;
            return false;
        }
        self.become_established(cx, outcome);
        true
    }

    pub(super) fn become_established(&mut self, cx: &mut TcpContext<'_>, outcome: &mut Outcome) {
        cx.counters.connects += 1;
        if self.has(Flag::ECN) {
            cx.counters.ecn_shs += 1;
        }
        self.state = TcpState::Established;
        if self.backoff > 0 {
            // "If the SYN or SYN/ACK is lost, the initial window used by a sender after a
            // correctly transmitted SYN MUST be one segment" (RFC 5681, section 3.1).
            self.congestion.window_bytes = self.mss.into();
            self.rtt.distrust();
        }
        self.backoff = 0;
        outcome.connected = true;
        let until_ms = cx.now_ms.wrapping_add(cx.tunables.keepalive_idle_ms);
        self.timers.set(Timer::Keep, until_ms);
    }

    /// Our SYN is sent again at once; its round trip is not measured (RFC 6298, section 3).
    pub(super) fn retransmit_syn(&mut self) {
        self.snd_nxt = self.snd_una;
        self.clear(Flag::RTT_TIMING);
    }

    /// The SYN, or the SYN-ACK.
    pub fn syn(&self, cx: &TcpContext<'_>) -> Segment {
        let is_answer = self.state == TcpState::SynReceived;
        let knows = |flag| !is_answer || self.has(flag);
        let tunables = cx.tunables;
        let mut flags = TcpFlags::SYN;
        if is_answer {
            flags |= TcpFlags::ACK;
            if self.has(Flag::ECN) {
                flags |= TcpFlags::ECE;
            }
        } else if tunables.ecn == Ecn::Active && self.backoff == 0 {
            // A SYN that was lost may have been refused for its ECN bits (RFC 3168, 6.1.1.1).
            flags |= TcpFlags::ECE | TcpFlags::CWR;
        }
        let offers_timestamps = tunables.rfc1323 && knows(Flag::TIMESTAMPS);
        let offers_scale = tunables.rfc1323 && knows(Flag::WINDOW_SCALING);
        let echo = if is_answer { self.ts_recent } else { 0 };
        Segment {
            seq: self.snd_una,
            ack: self.rcv_nxt,
            flags,
            window: tunables.receive_buffer_bytes.min(0xffff) as u16,
            mss: Some(tunables.mss_bytes),
            window_scale: offers_scale.then(|| tunables.window_scale()),
            sack_permitted: tunables.sack && knows(Flag::SACK),
            timestamps: offers_timestamps.then_some((cx.now_ms, echo)),
            ..Segment::default()
        }
    }
}
