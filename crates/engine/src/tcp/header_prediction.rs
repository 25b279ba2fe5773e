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
const NOT_PREDICTED: Flag = Flag::RESET
    .or(Flag::ECN)
    .or(Flag::RECOVERY)
    .or(Flag::HELD)
    .or(Flag::SLOWED)
    .or(Flag::TIMED_OUT)
    .or(Flag::PERSIST)
    .or(Flag::PROBE)
    .or(Flag::EARLY_FIN);
/// The longest round trip that an echo is believed, about a quarter of an hour.
const ECHO_MS_MAX: u32 = 1 << 20;

/// A segment that arrives.
impl Connection {
    /// Takes a segment that arrived for this connection. What it meant is written into `outcome`, which
    /// is the default before: a copy of what was just written in parts would wait until all parts are
    /// in the cache.
    pub fn input(&mut self, cx: &mut TcpContext<'_>, segment: &Segment, outcome: &mut Outcome) {
        cx.counters.rcvtotal += 1;
        if self.is_closed() || self.has(Flag::RESET) {
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
            && !self.has(NOT_PREDICTED)
            && !self.side.is_some()
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
        self.heard_ms = cx.now_ms;
        self.note_timestamp(segment);
        let advances = segment.ack != self.una;
        if advances {
            self.advance_predicted(cx, segment.ack, segment, outcome);
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

    #[inline]
    pub(super) fn count_prediction(&mut self, cx: &mut TcpContext<'_>, segment: &Segment) {
        if segment.len > 0 && segment.ack == self.una {
            cx.counters.preddat += 1;
        } else if segment.len == 0 && segment.ack.is_after(self.una) {
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
            self.timestamp = value;
        }
    }

    /// Takes the window if the segment is newer than the one that told it last (RFC 9293,
    /// section 3.10.7.4, fifth): of two that are as new, the larger. `seq` is its number, or that of
    /// the last that is like it.
    #[inline]
    pub(super) fn update_window(
        &mut self,
        cx: &mut TcpContext<'_>,
        segment: &Segment,
        seq: Seq,
        advanced: bool,
    ) {
        if seq.is_before(self.window_seq) || segment.ack.is_before(self.una) {
            return;
        }
        let window = self.scaled_window(segment);
        let is_newer = advanced || self.window_seq != seq;
        if window > self.send_window {
            cx.counters.rcvwinupd += u64::from(segment.len == 0 && !advanced);
            if self.has(Flag::PERSIST) {
                self.clear(Flag::PERSIST.or(Flag::PROBE));
                self.backoff = 0;
                self.timers.stop(Timer::Retransmit);
            }
            self.send_window_max = self.send_window_max.max(window);
        } else if !is_newer {
            return;
        }
        self.send_window = window;
        self.window_seq = seq;
    }

    /// The window in bytes that a segment tells.
    #[inline]
    pub(super) fn scaled_window(&self, segment: &Segment) -> u32 {
        let scale = if segment.has(TcpFlags::SYN) {
            0
        } else {
            self.scales.send()
        };
        u32::from(segment.window) << scale
    }

    /// Every second segment is acknowledged at once (RFC 9293, section 3.8.6.3), or as many bytes
    /// as the user said; the others wait for company. `segments` arrived together.
    #[inline]
    pub(super) fn acknowledge_soon(&mut self, cx: &TcpContext<'_>, segments: u32) {
        let waiting = self.last_ack_sent.until(self.expected);
        let is_enough = match u32::from(cx.tunables.acknowledge_bytes) {
            0 => segments > 1 || self.timers.is_set(Timer::DelayedAck),
            // Half a window at most: who waits for more would stop the other side.
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
    /// Something new was acknowledged, and nothing is being repaired.
    #[inline(always)]
    fn advance_predicted(
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

    /// Moves on to `ack`.
    #[inline(always)]
    pub(super) fn move_on(&mut self, cx: &mut TcpContext<'_>, ack: Seq, outcome: &mut Outcome) {
        let bytes = self.oldest_byte().until(ack.min(self.end));
        cx.counters.rcvackpack += 1;
        cx.counters.rcvackbyte += u64::from(bytes);
        cx.counters.rcvackbyte_of += u64::from(self.una.until(ack));
        outcome.acknowledged_bytes += bytes;
        self.una = ack;
        self.set(Flag::SYN_DONE);
        self.next = self.next.max(ack);
        if self.side.is_some() {
            self.trim_sacked(cx);
        }
    }

    /// Measures the round trip: of the one segment that is timed, or by timestamps (RFC 7323,
    /// section 4). Karn: not of what was sent again. Returns whether it did.
    #[inline(always)]
    pub(super) fn measure(&mut self, cx: &mut TcpContext<'_>, segment: &Segment) -> bool {
        if self.has(Flag::TIMING) {
            if segment.ack.is_before(self.timed) {
                return false;
            }
            self.clear(Flag::TIMING);
            cx.counters.rttupdated += 1;
            self.rtt.measure(cx.now_us.wrapping_sub(self.timed_us));
            return true;
        }
        let (Some((_, echo)), true) = (segment.timestamps, self.has(Flag::TIMESTAMPS)) else {
            return false;
        };
        let passed_ms = cx.now_ms.wrapping_sub(echo);
        // An echo from the future, or of long ago, is nonsense.
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
    /// All was sent, and nothing asks for more: so it is after most of what arrives. Then
    /// [`poll_transmit`](Connection::poll_transmit) does nothing.
    #[inline]
    pub fn has_nothing_to_say(&self) -> bool {
        let end = self.end + u32::from(self.has(Flag::FIN_WANTED));
        !self.has(Flag::ASKS) && self.next == end && self.is_synchronized()
    }

    /// The rest of the data, with the end where it follows, or an acknowledgment only, where nothing
    /// is lost and nothing has to wait: how many bytes, and whether the end follows. `None` where that
    /// is not so, or where there is nothing to send. It goes as
    /// [`last_segment`](Connection::last_segment), and may be asked for again.
    #[inline(always)]
    pub fn rest_to_send(&mut self, cx: &mut TcpContext<'_>) -> Option<(u32, bool)> {
        if !self.is_plain_output() || self.has(Flag::KEEP_PROBE) {
            return None;
        }
        self.rest(cx);
        if self.has(Flag::FIN_SENT) {
            let acks = self.next == self.end + 1 && self.has(Flag::ACK_NOW);
            return acks.then_some((0, false));
        }
        let (len, fin) = (self.next.until(self.end), self.has(Flag::FIN_WANTED));
        if len == 0 && !fin {
            let acks = self.has(Flag::ACK_NOW);
            return acks.then_some((0, false));
        }
        // Nagle, and both windows; an end alone needs no room.
        let is_free = self.una == self.next || cx.tunables.no_delay;
        let window = self.congestion.window_bytes.min(self.send_window);
        let room = window.saturating_sub(self.una.until(self.next));
        let goes = len == 0 || len <= u32::from(self.mss) && is_free && len <= room;
        goes.then_some((len, fin))
    }

    /// The short way: new data on a connection where nothing is lost.
    #[inline]
    pub(super) fn is_plain_output(&self) -> bool {
        self.is_synchronized()
            && self.next == self.high
            && !self.side.is_some()
            && !self.has(Flag::NOT_PLAIN_OUTPUT)
    }

    /// After a rest longer than a timeout, the window begins anew: "if the TCP has not sent data
    /// in an interval exceeding the retransmission timeout" (RFC 5681, section 4.1).
    #[inline(always)]
    pub(super) fn rest(&mut self, cx: &mut TcpContext<'_>) {
        let has_new = self.una == self.high && self.next.is_before(self.end);
        if !has_new || !self.is_synchronized() {
            return;
        }
        let rested_ms = cx.now_ms.wrapping_sub(self.sent_ms);
        if rested_ms > self.rtt.timeout_ms(0) {
            let segments = u32::from(cx.tunables.initial_window_segments);
            let window = segments * u32::from(self.mss);
            let cubic = cx.sides.cold.look_mut(self.cold);
            let cubic = cubic.map(|cold| &mut cold.cubic);
            self.congestion.restart_after_idle(window, cubic);
        }
    }

    /// The segment that takes what [`rest_to_send`](Connection::rest_to_send) says. Say
    /// [`note_last_sent`](Connection::note_last_sent) when it has left.
    #[inline(always)]
    pub fn last_segment(&self, cx: &TcpContext<'_>, (len, fin): (u32, bool)) -> Segment {
        if len == 0 && !fin {
            return self.header(cx, self.quiet_seq());
        }
        self.data_segment(cx, self.next, len, fin)
    }

    /// The number of what has no data: after all that was sent, even when some of it is being
    /// sent again, for the other side may have it; but not beyond its window.
    #[inline]
    pub(super) fn quiet_seq(&self) -> Seq {
        self.high.min(self.una + self.send_window)
    }

    /// The header of any segment after the SYN.
    #[inline(always)]
    pub(super) fn header(&self, cx: &TcpContext<'_>, seq: Seq) -> Segment {
        let mut flags = TcpFlags::ACK;
        if self.has(Flag::ECN_ECHO) {
            flags |= TcpFlags::ECE;
        }
        let window = match cx.unread_bytes {
            0 => cx.tunables.receive_buffer_bytes,
            _ => self.window_left(cx),
        };
        let window = window >> self.scales.receive();
        Segment {
            seq,
            ack: self.expected,
            flags,
            window: window.min(0xffff) as u16,
            timestamps: self
                .has(Flag::TIMESTAMPS)
                .then_some((cx.now_ms, self.timestamp)),
            sack: if self.side.is_some() {
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
        let is_last = seq + len == self.end;
        if len > 0 && (is_last || cx.tunables.always_push) {
            segment.flags |= TcpFlags::PSH;
        }
        let is_new = !seq.is_before(self.high);
        if self.has(Flag::ECN) && len > 0 && is_new && !self.has(Flag::PROBE) {
            // Data again may not be marked, nor probes (RFC 3168, sections 6.1.5 and 6.1.6).
            segment.ecn = true;
            if self.has(Flag::ECN_REDUCED) {
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
            return self.note_acknowledged(cx, segment);
        }
        let end = segment.seq + len + u32::from(fin);
        cx.counters.sndbyte_ok += u64::from(len);
        cx.counters.sndpack += u64::from(len > 0);
        self.sent_ms = cx.now_ms;
        self.time(cx, end);
        if fin {
            cx.counters.sndctrl += u64::from(len == 0);
            self.note_fin_sent();
        }
        (self.next, self.high) = (end, end);
        self.start_retransmission(cx);
        self.note_acknowledged(cx, segment);
    }

    /// An acknowledgment left, alone or with data.
    #[inline(always)]
    pub(super) fn note_acknowledged(&mut self, cx: &mut TcpContext<'_>, segment: &Segment) {
        if !segment.sack.as_slice().is_empty() {
            cx.counters.sack_send_blocks += 1;
        }
        if segment.has(TcpFlags::CWR) {
            self.clear(Flag::ECN_REDUCED);
        }
        cx.counters.ecn_ect0 += u64::from(segment.ecn);
        self.clear(Flag::ACK_NOW);
        self.timers.stop(Timer::DelayedAck);
        self.last_ack_sent = self.expected;
        let edge = self.expected + (u32::from(segment.window) << self.scales.receive());
        self.offered = self.offered.max(edge);
    }

    /// Begins to measure a round trip, if none is being measured.
    #[inline(always)]
    pub(super) fn time(&mut self, cx: &mut TcpContext<'_>, end: Seq) {
        if !self.has(Flag::TIMING) {
            self.set(Flag::TIMING);
            self.timed = end;
            self.timed_us = cx.now_us;
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
