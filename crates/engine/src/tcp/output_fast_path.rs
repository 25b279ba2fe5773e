//! The fast path of output: the one segment that leaves nothing to send, where nothing is lost and nothing
//! waits; and the parts of a segment that every path needs. All else is in `output`.

use allosaur_packet::transport::tcp::TcpFlags;
use allosaur_packet::transport::tcp_options::SackBlocks;

use super::connection::{Connection, Flag, TcpContext};
use super::segment::Segment;
use super::seq::Seq;
use super::timers::Timer;

/// With one of these, output takes the slow path.
const SLOW_OUTPUT: Flag = Flag::SEND_RST
    .or(Flag::FAST_RECOVERY)
    .or(Flag::PERSIST)
    .or(Flag::WINDOW_PROBE)
    .or(Flag::KEEPALIVE_PROBE)
    .or(Flag::ECN);
/// With one of these, a segment is due though all data was sent.
const SEGMENT_DUE: Flag = Flag::SEND_RST
    .or(Flag::ACK_NOW)
    .or(Flag::FAST_RECOVERY)
    .or(Flag::WINDOW_PROBE)
    .or(Flag::KEEPALIVE_PROBE);

/// The last segment to send.
impl Connection {
    /// All was sent, and no ACK, RST or probe is due: then
    /// [`poll_transmit`](Connection::poll_transmit) does nothing. So it is after most segments.
    #[inline]
    pub fn has_nothing_to_send(&self) -> bool {
        let end = self.write_seq + u32::from(self.has(Flag::FIN_QUEUED));
        !self.has(SEGMENT_DUE) && self.snd_nxt == end && self.is_synchronized()
    }

    /// The rest of the data, with the FIN where it follows, or only an ACK: how many bytes, and whether
    /// with FIN. `None` where output takes the slow path, a window or Nagle keeps data back, or nothing
    /// is to be sent. It is sent as [`last_segment`](Connection::last_segment).
    #[inline(always)]
    pub fn rest_to_send(&mut self, cx: &mut TcpContext<'_>) -> Option<(u32, bool)> {
        if !self.is_fast_output() {
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
        // Nagle, and both windows; a FIN alone needs no room.
        let nagle_allows = self.snd_una == self.snd_nxt || cx.tunables.no_delay;
        let window = self.congestion.window_bytes.min(self.snd_wnd);
        let room = window.saturating_sub(self.snd_una.until(self.snd_nxt));
        let is_sent = len == 0 || len <= u32::from(self.mss) && nagle_allows && len <= room;
        is_sent.then_some((len, fin))
    }

    /// Whether only new data is to be sent, and an ACK: nothing is lost or probed.
    #[inline]
    pub(super) fn is_fast_output(&self) -> bool {
        self.is_synchronized()
            && self.snd_nxt == self.snd_max
            && !self.recovery.is_some()
            && !self.has(SLOW_OUTPUT)
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

    /// The segment for what [`rest_to_send`](Connection::rest_to_send) says. Call
    /// [`note_last_sent`](Connection::note_last_sent) when it was sent.
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

    /// That segment was sent.
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
