//! Header prediction: the segments of a connection where nothing is lost, how one that is next in order arrives, and
//! how the one leaves that says all there is to say. What is here does what `input` and `output` do step
//! by step with any segment, and has those of their steps that both need.

use allosaur_packet::transport::tcp::TcpFlags;
use allosaur_packet::transport::tcp_options::SackBlocks;

use super::connection::{Connection, Flag, TcpContext, TcpState};
use super::outcome::Outcome;
use super::segment::Segment;
use super::seq::Seq;
use super::timers::Timer;
use super::tunables::CongestionAlgorithm;

/// With one of these, a segment goes the slow path, step by step.
const NOT_PREDICTED: Flag = Flag::SEND_RST
    .or(Flag::ECN)
    .or(Flag::FAST_RECOVERY)
    .or(Flag::BELOW_RECOVER)
    .or(Flag::CONGESTION_RECOVERY)
    .or(Flag::RTO_EXPIRED)
    .or(Flag::PERSIST)
    .or(Flag::WINDOW_PROBE)
    .or(Flag::FIN_OUT_OF_ORDER);
/// The longest round trip that a TSecr is believed, about a quarter of an hour.
const ECHO_MS_MAX: u32 = 1 << 20;

/// A segment that arrives.
impl Connection {
    /// Processes a segment that arrived. What it meant is written into `outcome`, which is the default
    /// before: a copy of what was just written in parts would wait until all parts are in the cache.
    pub fn input(&mut self, cx: &mut TcpContext<'_>, segment: &Segment, outcome: &mut Outcome) {
        cx.counters.rcvtotal += 1;
        if self.is_closed() || self.has(Flag::SEND_RST) {
            return;
        }
        if self.state == TcpState::SynSent {
            return self.handle_in_syn_sent(cx, segment, outcome);
        }
        if self.is_predicted(segment) {
            self.input_predicted(cx, segment, outcome);
        } else {
            self.input_by_steps(cx, segment, outcome);
        }
    }

    /// Whether a segment is as its headers were predicted, and may go the fast path.
    #[inline(always)]
    fn is_predicted(&self, segment: &Segment) -> bool {
        let bits = segment.flags.0 & !(TcpFlags::PSH | TcpFlags::FIN).0;
        let is_open = self.state >= TcpState::SynReceived && self.state < TcpState::TimeWait;
        let newer = match segment.timestamps {
            Some((value, _)) => {
                self.has(Flag::TIMESTAMPS) && !Seq(value).is_before(Seq(self.ts_recent))
            }
            None => !self.has(Flag::TIMESTAMPS),
        };
        // Something of what is under way; or where nothing is, nothing.
        let flight = self.snd_una.until(self.snd_max);
        let acks = match flight {
            0 => segment.ack == self.snd_una,
            _ => (1..=flight).contains(&self.snd_una.until(segment.ack)),
        };
        let brings = segment.len > 0 || segment.has(TcpFlags::FIN);
        let takes =
            !brings || !self.is_fin_received() && (segment.len == 0 || !self.has(Flag::FIN_QUEUED));
        is_open
            && bits == TcpFlags::ACK.0
            && segment.seq == self.rcv_nxt
            && !(segment.seq + segment.len).is_after(self.rcv_adv)
            && newer
            && acks
            && takes
            && !self.has(NOT_PREDICTED)
            && !self.recovery.is_some()
            && (self.probes | self.dup_acks | self.backoff) == 0
            && segment.sack.as_slice().is_empty()
    }

    /// What all the steps together do with such a segment.
    #[inline(always)]
    fn input_predicted(
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
        self.last_received_ms = cx.now_ms;
        self.note_timestamp(segment);
        let advances = segment.ack != self.snd_una;
        if advances {
            self.process_predicted_ack(cx, segment.ack, segment, outcome);
            if self.has(Flag::FIN_SENT) && !self.process_fin_ack(cx, outcome) {
                return;
            }
        }
        if self.state != TcpState::TimeWait {
            self.update_window(cx, segment, segment.seq, advances);
        }
        if segment.len > 0 {
            self.rcv_nxt += segment.len;
            cx.counters.rcvpack += 1;
            cx.counters.rcvbyte += u64::from(segment.len);
            outcome.delivered_bytes = segment.len;
            self.schedule_ack(cx, 1);
        }
        if fin {
            self.process_fin(cx, outcome);
        }
    }

    #[inline]
    pub(super) fn count_prediction(&mut self, cx: &mut TcpContext<'_>, segment: &Segment) {
        if segment.len > 0 && segment.ack == self.snd_una {
            cx.counters.preddat += 1;
        } else if segment.len == 0 && segment.ack.is_after(self.snd_una) {
            cx.counters.predack += 1;
        }
    }

    /// Which timestamp is echoed (RFC 7323, section 4.3).
    #[inline]
    pub(super) fn note_timestamp(&mut self, segment: &Segment) {
        let Some((value, _)) = segment.timestamps else {
            return;
        };
        // "If: SEG.TSval >= TS.Recent and SEG.SEQ <= Last.ACK.sent then SEG.TSval is copied to
        // TS.Recent"; an older value comes this far only after weeks of silence.
        if !segment.seq.is_after(self.last_ack_sent) {
            self.ts_recent = value;
        }
    }

    /// Updates SND.WND if the segment is newer than the one that did so last (RFC 9293, section
    /// 3.10.7.4, fifth): of two that are as new, the larger. `seq` is its sequence number, or that of
    /// the last of coalesced ones.
    #[inline]
    pub(super) fn update_window(
        &mut self,
        cx: &mut TcpContext<'_>,
        segment: &Segment,
        seq: Seq,
        advanced: bool,
    ) {
        if seq.is_before(self.snd_wl1) || segment.ack.is_before(self.snd_una) {
            return;
        }
        let window = self.scaled_window(segment);
        let is_newer = advanced || self.snd_wl1 != seq;
        if window > self.snd_wnd {
            cx.counters.rcvwinupd += u64::from(segment.len == 0 && !advanced);
            if self.has(Flag::PERSIST) {
                self.clear(Flag::PERSIST.or(Flag::WINDOW_PROBE));
                self.backoff = 0;
                self.timers.stop(Timer::Retransmit);
            }
            self.max_snd_wnd = self.max_snd_wnd.max(window);
        } else if !is_newer {
            return;
        }
        self.snd_wnd = window;
        self.snd_wl1 = seq;
    }

    /// The window of a segment in bytes.
    #[inline]
    pub(super) fn scaled_window(&self, segment: &Segment) -> u32 {
        let scale = if segment.has(TcpFlags::SYN) {
            0
        } else {
            self.scales.send()
        };
        u32::from(segment.window) << scale
    }

    /// Delayed ACK: every second segment is acknowledged at once (RFC 9293, section 3.8.6.3), or as many
    /// bytes as the user says. `segments` arrived together.
    #[inline]
    pub(super) fn schedule_ack(&mut self, cx: &TcpContext<'_>, segments: u32) {
        let waiting = self.last_ack_sent.until(self.rcv_nxt);
        let is_enough = match u32::from(cx.tunables.acknowledge_bytes) {
            0 => segments > 1 || self.timers.is_set(Timer::DelayedAck),
            // Half a window at most: more would stop the peer.
            bytes => waiting >= bytes.min(cx.tunables.receive_buffer_bytes / 2),
        };
        if is_enough {
            self.set(Flag::ACK_NOW);
        } else if !self.timers.is_set(Timer::DelayedAck) {
            let at_ms = cx.now_ms.wrapping_add(cx.tunables.delayed_ack_ms);
            self.timers.set(Timer::DelayedAck, at_ms);
        }
    }
}

/// What it acknowledges.
impl Connection {
    /// The ACK advances SND.UNA outside of recovery.
    #[inline(always)]
    fn process_predicted_ack(
        &mut self,
        cx: &mut TcpContext<'_>,
        ack: Seq,
        segment: &Segment,
        outcome: &mut Outcome,
    ) {
        let (flight, bytes) = (self.snd_una.until(self.snd_max), self.snd_una.until(ack));
        let is_data = self.has(Flag::SYN_ACKED);
        self.advance_una(cx, ack, outcome);
        self.measure(cx, segment);
        let always = cx.tunables.congestion == CongestionAlgorithm::Reno && is_data;
        if always || flight.saturating_mul(2) >= self.congestion.window_bytes {
            self.grow_window(cx, bytes, false);
        }
        if self.snd_una == self.snd_max {
            self.timers.stop(Timer::Retransmit);
        } else {
            let at_ms = cx.now_ms.wrapping_add(self.rtt.timeout_ms(0));
            self.timers.set(Timer::Retransmit, at_ms);
        }
    }

    /// Moves SND.UNA to `ack`.
    #[inline(always)]
    pub(super) fn advance_una(&mut self, cx: &mut TcpContext<'_>, ack: Seq, outcome: &mut Outcome) {
        let bytes = self.oldest_byte().until(ack.min(self.write_seq));
        cx.counters.rcvackpack += 1;
        cx.counters.rcvackbyte += u64::from(bytes);
        cx.counters.rcvackbyte_of += u64::from(self.snd_una.until(ack));
        outcome.acknowledged_bytes += bytes;
        self.snd_una = ack;
        self.set(Flag::SYN_ACKED);
        self.snd_nxt = self.snd_nxt.max(ack);
        if self.recovery.is_some() {
            self.trim_sacked(cx);
        }
    }

    /// Measures the round trip: of the one segment that is timed, or by timestamps (RFC 7323, section
    /// 4). Karn: not of retransmitted data. Returns whether it did.
    #[inline(always)]
    pub(super) fn measure(&mut self, cx: &mut TcpContext<'_>, segment: &Segment) -> bool {
        if self.has(Flag::RTT_TIMING) {
            if segment.ack.is_before(self.rtt_seq) {
                return false;
            }
            self.clear(Flag::RTT_TIMING);
            cx.counters.rttupdated += 1;
            self.rtt.measure(cx.now_us.wrapping_sub(self.rtt_start_us));
            return true;
        }
        let (Some((_, echo)), true) = (segment.timestamps, self.has(Flag::TIMESTAMPS)) else {
            return false;
        };
        let passed_ms = cx.now_ms.wrapping_sub(echo);
        // A TSecr of the future, or of long ago, is ignored.
        let makes_sense = echo != 0 && passed_ms < ECHO_MS_MAX;
        if makes_sense {
            cx.counters.rttupdated += 1;
            // The clock of timestamps ticks once a millisecond.
            self.rtt.measure(passed_ms.max(1) * 1_000);
        }
        makes_sense
    }
}

/// The last segment that leaves.
impl Connection {
    /// All was sent, and no ACK, RST or probe is due: then
    /// [`poll_transmit`](Connection::poll_transmit) does nothing. So it is after most segments.
    #[inline]
    pub fn has_nothing_to_send(&self) -> bool {
        let end = self.write_seq + u32::from(self.has(Flag::FIN_QUEUED));
        !self.has(Flag::ASKS) && self.snd_nxt == end && self.is_synchronized()
    }

    /// The rest of the data, with the end where it follows, or an acknowledgment only, where nothing
    /// is lost and nothing has to wait: how many bytes, and whether the end follows. `None` where that
    /// is not so, or where there is nothing to send. It goes as
    /// [`last_segment`](Connection::last_segment), and may be asked for again.
    #[inline(always)]
    pub fn rest_to_send(&mut self, cx: &mut TcpContext<'_>) -> Option<(u32, bool)> {
        if !self.is_plain_output() || self.has(Flag::KEEPALIVE_PROBE) {
            return None;
        }
        self.restart_idle(cx);
        if self.has(Flag::FIN_SENT) {
            let acks = self.snd_nxt == self.write_seq + 1 && self.has(Flag::ACK_NOW);
            return acks.then_some((0, false));
        }
        let (len, fin) = (
            self.snd_nxt.until(self.write_seq),
            self.has(Flag::FIN_QUEUED),
        );
        if len == 0 && !fin {
            let acks = self.has(Flag::ACK_NOW);
            return acks.then_some((0, false));
        }
        // Nagle, and both windows; an end alone needs no room.
        let is_free = self.snd_una == self.snd_nxt || cx.tunables.no_delay;
        let window = self.congestion.window_bytes.min(self.snd_wnd);
        let room = window.saturating_sub(self.snd_una.until(self.snd_nxt));
        let goes = len == 0 || len <= u32::from(self.mss) && is_free && len <= room;
        goes.then_some((len, fin))
    }

    /// The short way: new data on a connection where nothing is lost.
    #[inline]
    pub(super) fn is_plain_output(&self) -> bool {
        self.is_synchronized()
            && self.snd_nxt == self.snd_max
            && !self.recovery.is_some()
            && !self.has(Flag::NOT_PLAIN_OUTPUT)
    }

    /// Restarts the congestion window after idle: "if the TCP has not sent data in an interval exceeding
    /// the retransmission timeout" (RFC 5681, section 4.1).
    #[inline(always)]
    pub(super) fn restart_idle(&mut self, cx: &mut TcpContext<'_>) {
        let has_new = self.snd_una == self.snd_max && self.snd_nxt.is_before(self.write_seq);
        if !has_new || !self.is_synchronized() {
            return;
        }
        let idle_ms = cx.now_ms.wrapping_sub(self.last_sent_ms);
        if idle_ms > self.rtt.timeout_ms(0) {
            let segments = u32::from(cx.tunables.initial_window_segments);
            let window = segments * u32::from(self.mss);
            let cubic = cx.recovery.cold.look_mut(self.cold);
            let cubic = cubic.map(|cold| &mut cold.cubic);
            self.congestion.restart_after_idle(window, cubic);
        }
    }

    /// The segment that takes what [`rest_to_send`](Connection::rest_to_send) says. Say
    /// [`note_last_sent`](Connection::note_last_sent) when it has left.
    #[inline(always)]
    pub fn last_segment(&self, cx: &TcpContext<'_>, (len, fin): (u32, bool)) -> Segment {
        if len == 0 && !fin {
            return self.header(cx, self.acceptable_seq());
        }
        self.data_segment(cx, self.snd_nxt, len, fin)
    }

    /// The sequence number of a segment without data (Linux: `tcp_acceptable_seq`): behind all that was
    /// sent, even while some of it is sent again, but not beyond the peer's window.
    #[inline]
    pub(super) fn acceptable_seq(&self) -> Seq {
        self.snd_max.min(self.snd_una + self.snd_wnd)
    }

    /// The header of any segment after the SYN.
    #[inline(always)]
    pub(super) fn header(&self, cx: &TcpContext<'_>, seq: Seq) -> Segment {
        let mut flags = TcpFlags::ACK;
        if self.has(Flag::SEND_ECE) {
            flags |= TcpFlags::ECE;
        }
        let window = match cx.unread_bytes {
            0 => cx.tunables.receive_buffer_bytes,
            _ => self.receive_window(cx),
        };
        let window = window >> self.scales.receive();
        Segment {
            seq,
            ack: self.rcv_nxt,
            flags,
            window: window.min(0xffff) as u16,
            timestamps: self
                .has(Flag::TIMESTAMPS)
                .then_some((cx.now_ms, self.ts_recent)),
            sack: if self.recovery.is_some() {
                self.sack_blocks(cx, self.sack_blocks_max())
            } else {
                SackBlocks::default()
            },
            ..Segment::default()
        }
    }

    #[inline(always)]
    pub(super) fn data_segment(
        &self,
        cx: &TcpContext<'_>,
        seq: Seq,
        len: u32,
        fin: bool,
    ) -> Segment {
        let mut segment = Segment {
            len,
            offset: self.oldest_byte().until(seq),
            ..self.header(cx, seq)
        };
        if fin {
            segment.flags |= TcpFlags::FIN;
        }
        let is_last = seq + len == self.write_seq;
        if len > 0 && (is_last || cx.tunables.always_push) {
            segment.flags |= TcpFlags::PSH;
        }
        let is_new = !seq.is_before(self.snd_max);
        if self.has(Flag::ECN) && len > 0 && is_new && !self.has(Flag::WINDOW_PROBE) {
            // Data again may not be marked, nor probes (RFC 3168, sections 6.1.5 and 6.1.6).
            segment.ecn = true;
            if self.has(Flag::SEND_CWR) {
                segment.flags |= TcpFlags::CWR;
            }
        }
        segment
    }

    /// Such a segment left.
    #[inline(always)]
    pub fn note_last_sent(&mut self, cx: &mut TcpContext<'_>, segment: &Segment) {
        let (len, fin) = (segment.len, segment.has(TcpFlags::FIN));
        cx.counters.sndtotal += 1;
        if len == 0 && !fin {
            cx.counters.sndacks += 1;
            return self.note_ack_sent(cx, segment);
        }
        let end = segment.seq + len + u32::from(fin);
        cx.counters.sndbyte_ok += u64::from(len);
        cx.counters.sndpack += u64::from(len > 0);
        self.last_sent_ms = cx.now_ms;
        self.start_rtt(cx, end);
        if fin {
            cx.counters.sndctrl += u64::from(len == 0);
            self.note_fin_sent();
        }
        (self.snd_nxt, self.snd_max) = (end, end);
        self.start_retransmission(cx);
        self.note_ack_sent(cx, segment);
    }

    /// A segment with an ACK was sent.
    #[inline(always)]
    pub(super) fn note_ack_sent(&mut self, cx: &mut TcpContext<'_>, segment: &Segment) {
        if !segment.sack.as_slice().is_empty() {
            cx.counters.sack_send_blocks += 1;
        }
        if segment.has(TcpFlags::CWR) {
            self.clear(Flag::SEND_CWR);
        }
        cx.counters.ecn_ect0 += u64::from(segment.ecn);
        self.clear(Flag::ACK_NOW);
        self.timers.stop(Timer::DelayedAck);
        self.last_ack_sent = self.rcv_nxt;
        let edge = self.rcv_nxt + (u32::from(segment.window) << self.scales.receive());
        self.rcv_adv = self.rcv_adv.max(edge);
    }

    /// Begins to measure a round trip, if none is being measured.
    #[inline(always)]
    pub(super) fn start_rtt(&mut self, cx: &mut TcpContext<'_>, end: Seq) {
        if !self.has(Flag::RTT_TIMING) {
            self.set(Flag::RTT_TIMING);
            self.rtt_seq = end;
            self.rtt_start_us = cx.now_us;
            cx.counters.segstimed += 1;
        }
    }

    /// RFC 6298, rule 5.1.
    #[inline(always)]
    pub(super) fn start_retransmission(&mut self, cx: &TcpContext<'_>) {
        if self.has(Flag::PERSIST) {
            self.clear(Flag::PERSIST);
            self.backoff = 0;
            self.timers.stop(Timer::Retransmit);
        }
        if !self.timers.is_set(Timer::Retransmit) {
            let timeout_ms = self.rtt.timeout_ms(self.backoff);
            let at_ms = cx.now_ms.wrapping_add(timeout_ms);
            self.timers.set(Timer::Retransmit, at_ms);
        }
    }
}
