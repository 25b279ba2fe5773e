//! Input (BSD: `tcp_input`): one entry for each segment that arrives, the steps of RFC 9293, section
//! 3.10.7.4, in their order, and what they do while nothing is lost. The first step is header prediction,
//! which skips the checks of `acceptability`. SYN-SENT is in `handshake`, loss in `fast_recovery` and
//! `reassembly`.

use allosaur_packet::transport::tcp::TcpFlags;

use super::congestion::Acknowledged;
use super::connection::{Connection, Flag, TcpContext, TcpState};
use super::outcome::{End, Outcome};
use super::segment::Segment;
use super::seq::Seq;
use super::timers::Timer;
use super::tunables::CongestionAlgorithm;

/// With one of these, segments are not coalesced: each is answered or counted for itself.
const NOT_COALESCED: Flag = Flag::ECN.or(Flag::FIN_QUEUED).or(Flag::FIN_OUT_OF_ORDER);
/// With one of these, an ACK is processed by `fast_recovery`.
const RECOVERING: Flag = Flag::FAST_RECOVERY
    .or(Flag::BELOW_RECOVER)
    .or(Flag::CONGESTION_RECOVERY)
    .or(Flag::RTO_EXPIRED)
    .or(Flag::PERSIST);
/// The longest round trip that a TSecr is believed, about a quarter of an hour.
const ECHO_MS_MAX: u32 = 1 << 20;

/// What is left of a segment when all that lies outside of the window is cut off.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub(super) seq: Seq,
    pub(super) len: u32,
    pub(super) fin: bool,
    /// Segments that it came in.
    pub(super) segments: u32,
}

impl Part {
    /// All of a segment.
    #[inline(always)]
    pub(super) fn of(segment: &Segment) -> Part {
        Part {
            seq: segment.seq,
            len: segment.len,
            fin: segment.has(TcpFlags::FIN),
            segments: 1 + segment.coalesced,
        }
    }
}

/// What an ACK that advances SND.UNA does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Advance {
    /// Sequence numbers that it acknowledges.
    pub(super) bytes: u32,
    /// What was in flight before.
    pub(super) flight_bytes: u32,
    /// Our SYN was acknowledged before.
    pub(super) is_data: bool,
    /// It measured the round trip.
    pub(super) is_measured: bool,
    /// What it acknowledges was sent before the retransmission timer expired.
    pub(super) after_timeout: bool,
}

/// The steps.
impl Connection {
    /// Processes a segment that arrived, and returns what it meant.
    pub fn handle_segment(&mut self, cx: &mut TcpContext<'_>, segment: &Segment) -> Outcome {
        let mut outcome = Outcome::default();
        self.input(cx, segment, &mut outcome);
        outcome
    }

    /// The same. What it meant is written into `outcome`, which is the default before: a copy of what
    /// was just written in parts would wait until all parts are in the cache.
    pub fn input(&mut self, cx: &mut TcpContext<'_>, segment: &Segment, outcome: &mut Outcome) {
        cx.counters.rcvtotal += u64::from(1 + segment.coalesced);
        cx.counters.rcvoffloads += u64::from(segment.coalesced);
        if self.is_closed() || self.has(Flag::SEND_RST) {
            return;
        }
        if self.state == TcpState::SynSent {
            return self.input_in_syn_sent(cx, segment, outcome);
        }
        let part = if self.is_predicted(segment) {
            self.count_prediction(cx, segment);
            Part::of(segment)
        } else {
            match self.acceptable_part(cx, segment, outcome) {
                Some(part) => part,
                None => return,
            }
        };
        if self.state == TcpState::SynReceived && !self.establish(cx, segment, outcome) {
            return;
        }
        self.note_received(cx);
        self.note_timestamp(segment);
        if self.has(Flag::ECN) {
            self.process_ecn(cx, segment);
        }
        let snd_una = self.snd_una;
        if !self.process_ack(cx, segment, outcome) {
            return;
        }
        // In TIME-WAIT nothing is sent that a window would be for.
        if self.state != TcpState::TimeWait {
            self.update_window(cx, segment, self.snd_una != snd_una);
        }
        self.process_text(cx, part, outcome);
    }

    /// Header prediction: whether this is the next segment in order, with an ACK and nothing but data and
    /// FIN. The checks of `acceptability` would pass all of it.
    #[inline(always)]
    fn is_predicted(&self, segment: &Segment) -> bool {
        let flags = segment.flags.0 & !(TcpFlags::PSH | TcpFlags::FIN).0;
        let is_newer = match segment.timestamps {
            Some((value, _)) => !Seq(value).is_before(Seq(self.ts_recent)),
            None => !self.has(Flag::TIMESTAMPS),
        };
        flags == TcpFlags::ACK.0
            && segment.seq == self.rcv_nxt
            && !(segment.seq + segment.len).is_after(self.rcv_adv)
            && is_newer
    }

    /// Counts what BSD's header prediction takes: data only, or an ACK only.
    #[inline(always)]
    fn count_prediction(&mut self, cx: &mut TcpContext<'_>, segment: &Segment) {
        if self.state != TcpState::Established || segment.has(TcpFlags::FIN) {
            return;
        }
        if segment.len > 0 && segment.ack == self.snd_una {
            cx.counters.preddat += u64::from(1 + segment.coalesced);
        } else if segment.len == 0 && segment.ack.is_after(self.snd_una) {
            cx.counters.predack += 1;
        }
    }

    /// How many bytes may come with `segment`, its own among them, in segments that differ from it in
    /// nothing but their numbers and are coalesced with it ([`Segment::coalesced`]): they leave the
    /// connection as they would one by one, but that all are acknowledged together. 0 when it is
    /// processed alone.
    #[inline]
    pub fn coalesced_bytes_max(&self, segment: &Segment) -> u32 {
        let may_be_coalesced = self.is_predicted(segment)
            && self.state == TcpState::Established
            && !segment.has(TcpFlags::FIN)
            && segment.len > 0
            && segment.ack == self.snd_una
            && segment.sack.as_slice().is_empty()
            && !self.has(NOT_COALESCED)
            && !self.recovery.is_some()
            && self.probes == 0;
        if may_be_coalesced {
            self.rcv_nxt.until(self.rcv_adv)
        } else {
            0
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
}

/// The ACK field, and the window: the fifth step.
impl Connection {
    /// Processes the ACK field. Returns whether the rest of the segment is processed.
    #[inline(always)]
    pub(super) fn process_ack(
        &mut self,
        cx: &mut TcpContext<'_>,
        segment: &Segment,
        outcome: &mut Outcome,
    ) -> bool {
        if segment.ack.is_after(self.snd_max) {
            // Of what was never sent (RFC 9293: "send an ACK, drop the segment, and return").
            cx.counters.rcvacktoomuch += 1;
            self.challenge_ack(cx, segment);
            return false;
        }
        if segment.ack.is_before(self.snd_una) {
            // "The ACK value is considered acceptable only if it is in the range of
            // ((SND.UNA - MAX.SND.WND) =< SEG.ACK =< SND.NXT)" (RFC 5961, section 5.2).
            let is_ancient = segment.ack.until(self.snd_una) > self.max_snd_wnd;
            if is_ancient {
                self.challenge_ack(cx, segment);
            }
            return !is_ancient;
        }
        let sacked_more = !segment.sack.as_slice().is_empty() && self.note_sacked(cx, segment);
        if segment.ack == self.snd_una {
            if self.snd_una != self.snd_max {
                self.process_duplicate_ack(cx, segment, sacked_more);
            }
            return true;
        }
        self.advance(cx, segment, outcome);
        self.process_fin_ack(cx, outcome)
    }

    /// The ACK advances SND.UNA.
    #[inline(always)]
    fn advance(&mut self, cx: &mut TcpContext<'_>, segment: &Segment, outcome: &mut Outcome) {
        let is_recovering = self.has(RECOVERING) || (self.dup_acks | self.backoff) != 0;
        let mut advance = Advance {
            bytes: self.snd_una.until(segment.ack),
            flight_bytes: self.snd_una.until(self.snd_max),
            is_data: self.has(Flag::SYN_ACKED),
            is_measured: false,
            after_timeout: is_recovering && self.is_below_recover(cx),
        };
        self.advance_una(cx, segment.ack, outcome);
        advance.is_measured = self.measure_rtt(cx, segment);
        let restarts_timer = if is_recovering {
            self.advance_in_recovery(cx, segment, advance)
        } else {
            self.grow_window(cx, segment, advance);
            true
        };
        // RFC 6298, rules 5.2 and 5.3.
        if self.snd_una == self.snd_max {
            self.timers.stop(Timer::Retransmit);
        } else if restarts_timer {
            let at_ms = cx.now_ms.wrapping_add(self.rtt.timeout_ms(self.backoff));
            self.timers.set(Timer::Retransmit, at_ms);
        }
    }

    /// Lets the congestion window grow where it is used (RFC 7661 in its simplest form).
    #[inline(always)]
    pub(super) fn grow_window(
        &mut self,
        cx: &mut TcpContext<'_>,
        segment: &Segment,
        advance: Advance,
    ) {
        // "TCP also follows the normal procedures for increasing the congestion window when it
        // receives ACK packets without the ECN-Echo bit set" (RFC 3168, section 6.1.2).
        if segment.has(TcpFlags::ECE) && self.has(Flag::ECN) {
            return;
        }
        let always = cx.tunables.congestion == CongestionAlgorithm::Reno && advance.is_data;
        if always || advance.flight_bytes.saturating_mul(2) >= self.congestion.window_bytes {
            let ack = Acknowledged {
                bytes: advance.bytes,
                after_timeout: advance.after_timeout,
                mss_bytes: u32::from(self.mss),
                round_trip_us: self.rtt.smoothed_us(),
                now_ms: cx.now_ms,
            };
            self.congestion
                .handle_acknowledged(cx.tunables.congestion, ack, || {
                    &mut cx.recovery.cold.of(&mut self.cold).cubic
                });
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
    pub(super) fn measure_rtt(&mut self, cx: &mut TcpContext<'_>, segment: &Segment) -> bool {
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

    /// Follows the state diagram where our FIN is acknowledged. Returns whether the connection is still
    /// open.
    #[inline]
    pub(super) fn process_fin_ack(
        &mut self,
        cx: &mut TcpContext<'_>,
        outcome: &mut Outcome,
    ) -> bool {
        if !self.has(Flag::FIN_SENT) || !self.snd_una.is_after(self.write_seq) {
            return true;
        }
        match self.state {
            TcpState::FinWait1 => {
                self.state = TcpState::FinWait2;
                self.start_fin_wait_2(cx);
            }
            TcpState::Closing => {
                self.enter_time_wait(cx);
                outcome.ended = Some(End::Closed);
            }
            TcpState::LastAck => {
                self.enter_closed(cx, End::Closed, outcome);
                return false;
            }
            TcpState::SynSent
            | TcpState::SynReceived
            | TcpState::Established
            | TcpState::CloseWait
            | TcpState::FinWait2
            | TcpState::TimeWait
            | TcpState::Closed => {}
        }
        true
    }

    /// Updates SND.WND if the segment is newer than the one that did so last (RFC 9293, section
    /// 3.10.7.4, fifth): of two that are as new, the larger.
    #[inline]
    pub(super) fn update_window(
        &mut self,
        cx: &mut TcpContext<'_>,
        segment: &Segment,
        advanced: bool,
    ) {
        let seq = segment.seq + segment.last_offset;
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
}

/// The segment text and the FIN bit: the seventh and the eighth step.
impl Connection {
    /// Processes the data of a segment, and its FIN.
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

    #[inline(always)]
    fn process_data(&mut self, cx: &mut TcpContext<'_>, part: Part, outcome: &mut Outcome) {
        if self.is_fin_received() {
            return;
        }
        if self.has(Flag::FIN_QUEUED) {
            cx.counters.rcvafterclose += 1;
            if self.state == TcpState::FinWait2 {
                self.start_fin_wait_2(cx);
            }
        }
        if part.seq != self.rcv_nxt || self.recovery.is_some() {
            return self.reassemble(cx, part, outcome);
        }
        self.rcv_nxt += part.len;
        cx.counters.rcvpack += u64::from(part.segments);
        cx.counters.rcvbyte += u64::from(part.len);
        outcome.delivered_bytes += part.len;
        self.schedule_ack(cx, part.segments);
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
