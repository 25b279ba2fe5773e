//! Output: which segment is sent next (BSD: `tcp_output`).

use allosaur_packet::transport::tcp::TcpFlags;

use super::connection::{Connection, Flag, TcpContext, TcpState};
use super::outcome::{End, Outcome};
use super::segment::Segment;
use super::seq::Seq;
use super::timers::Timer;

/// Bytes of a SACK option with one block, and of each further one, with padding.
const SACK_BYTES: (u32, u32) = (12, 8);
/// SACK blocks beside timestamps, and without.
const SACK_BLOCKS: (usize, usize) = (3, 4);
/// The longest time between two window probes (RFC 9293, section 3.8.6.1).
const PERSIST_MS_MAX: u32 = 60_000;

/// How [`Connection::poll_transmit`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// All that may be sent now was sent.
    Done,
    /// The tx queue is full: call again when it has room.
    Blocked,
}

/// Sends the segments of a connection.
pub trait SegmentTx {
    /// Sends a segment; `false`, and it counts as not sent, when there is no room.
    fn send(&mut self, segment: &Segment) -> bool;

    /// Sends up to `count` segments (segmentation offload): `first`, and those behind it with as many
    /// bytes each, which differ from it in nothing but the sequence number. Returns for how many there
    /// was room.
    fn send_run(&mut self, first: &Segment, count: u32) -> u32 {
        let mut segment = *first;
        for sent in 0..count {
            if !self.send(&segment) {
                return sent;
            }
            segment.advance(1);
        }
        count
    }
}

impl<F: FnMut(&Segment) -> bool> SegmentTx for F {
    fn send(&mut self, segment: &Segment) -> bool {
        self(segment)
    }
}

/// The segment to send next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    Reset,
    Syn,
    /// Data, and the FIN.
    Data {
        seq: Seq,
        len: u32,
        fin: bool,
        /// It is the rescue retransmission (RFC 6675).
        is_rescue: bool,
    },
    Acknowledgment,
    KeepProbe,
}

impl Piece {
    fn data(seq: Seq, len: u32, fin: bool) -> Piece {
        Piece::Data {
            seq,
            len,
            fin,
            is_rescue: false,
        }
    }
}

impl Connection {
    /// Sends to `tx` what may be sent now, until there is no more or no room. `outcome` says when the
    /// connection ended by that, by sending a RST.
    pub fn poll_transmit(
        &mut self,
        cx: &mut TcpContext<'_>,
        outcome: &mut Outcome,
        tx: &mut impl SegmentTx,
    ) -> Progress {
        if self.has_nothing_to_send() {
            return Progress::Done;
        }
        if self.has(Flag::SEND_RST) && !self.is_reset_useful() {
            let how = self.reset_end();
            self.enter_closed(cx, how, outcome);
        }
        self.restart_idle(cx);
        if self.is_fast_output() && self.send_full(cx, tx) == Progress::Blocked {
            return Progress::Blocked;
        }
        while let Some(piece) = self.next_segment(cx) {
            let segment = self.segment_of(cx, piece);
            if !tx.send(&segment) {
                return Progress::Blocked;
            }
            self.note_sent(cx, piece, &segment, outcome);
        }
        self.enter_persist(cx);
        Progress::Done
    }

    /// Sends as many full segments as there are and both windows allow in one run; but not the one with
    /// the FIN.
    fn send_full(&mut self, cx: &mut TcpContext<'_>, tx: &mut impl SegmentTx) -> Progress {
        let mss = u32::from(self.mss);
        let mut waiting = self.snd_nxt.until(self.write_seq);
        if self.has(Flag::FIN_QUEUED) {
            waiting = waiting.saturating_sub(1);
        }
        let count = waiting.min(self.usable_window(cx, self.snd_nxt)) / mss;
        if count == 0 {
            return Progress::Done;
        }
        let mut segment = self.data_segment(cx, self.snd_nxt, mss, false);
        // The last segment has PSH.
        let alike = if segment.seq + count * mss == self.write_seq {
            count - 1
        } else {
            count
        };
        let mut sent = tx.send_run(&segment, alike);
        segment.advance(sent);
        if sent == alike && sent < count {
            segment.flags |= TcpFlags::PSH;
            if tx.send(&segment) {
                segment.advance(1);
                sent += 1;
            }
        }
        if sent > 0 {
            self.note_full_sent(cx, &segment, sent * mss, u64::from(sent));
        }
        if sent < count {
            Progress::Blocked
        } else {
            Progress::Done
        }
    }

    /// `count` full segments of new data were sent; the next would be `segment`.
    fn note_full_sent(
        &mut self,
        cx: &mut TcpContext<'_>,
        segment: &Segment,
        bytes: u32,
        count: u64,
    ) {
        cx.counters.sndtotal += count;
        cx.counters.sndpack += count;
        cx.counters.sndbyte_ok += u64::from(bytes);
        self.start_rtt(cx, self.snd_nxt + u32::from(self.mss));
        self.snd_nxt = segment.seq;
        self.snd_max = segment.seq;
        self.last_sent_ms = cx.now_ms;
        self.start_retransmission(cx);
        self.note_ack_sent(cx, segment);
    }

    /// RFC 9293, section 3.10.5: in SYN-SENT, and after both FINs, ABORT sends no RST.
    #[inline(always)]
    fn is_reset_useful(&self) -> bool {
        !matches!(
            self.state,
            TcpState::SynSent | TcpState::Closing | TcpState::LastAck | TcpState::TimeWait
        )
    }

    /// How a connection ends that sends a RST.
    pub(super) fn reset_end(&self) -> End {
        if self.has(Flag::TIMED_OUT) {
            End::TimedOut
        } else if self.state == TcpState::TimeWait {
            End::Closed
        } else if self.has(Flag::CUT_OFF) {
            End::CutOff
        } else {
            End::Reset
        }
    }

    #[inline(always)]
    fn next_segment(&self, cx: &TcpContext<'_>) -> Option<Piece> {
        if self.is_closed() {
            return None;
        }
        if self.has(Flag::SEND_RST) {
            return Some(Piece::Reset);
        }
        if !self.is_synchronized() {
            if self.snd_nxt == self.snd_una {
                return Some(Piece::Syn);
            }
            let acks = self.state == TcpState::SynReceived && self.has(Flag::ACK_NOW);
            return acks.then_some(Piece::Acknowledgment);
        }
        let data = if self.has(Flag::FAST_RECOVERY) {
            self.next_in_recovery(cx)
        } else {
            self.next_in_order(cx)
        };
        if data.is_some() {
            return data;
        }
        if self.has(Flag::ACK_NOW) {
            return Some(Piece::Acknowledgment);
        }
        self.has(Flag::KEEPALIVE_PROBE).then_some(Piece::KeepProbe)
    }

    #[cold]
    fn next_in_recovery(&self, cx: &TcpContext<'_>) -> Option<Piece> {
        let span_max = self.effective_mss(cx);
        let is_fast_retransmit = self.has(Flag::RETRANSMIT_NOW);
        if !self.has(Flag::SACK) {
            if is_fast_retransmit {
                let span = self.snd_una.until(self.snd_max).min(span_max);
                return Some(self.data_between(self.snd_una, span));
            }
            return self.next_in_order(cx);
        }
        if is_fast_retransmit {
            let (seq, span) = self.first_hole(cx, span_max)?;
            return Some(self.data_between(seq, span));
        }
        if !self.pipe_has_room(cx) {
            return None;
        }
        // RFC 6675, section 4, NextSeg: the four rules in their order.
        if let Some((seq, span)) = self.next_hole(cx, span_max, false) {
            return Some(self.data_between(seq, span));
        }
        if let Some(new) = self.next_in_order(cx) {
            return Some(new);
        }
        if let Some((seq, span)) = self.next_hole(cx, span_max, true) {
            return Some(self.data_between(seq, span));
        }
        let (seq, span) = self.rescue(cx, span_max)?;
        Some(match self.data_between(seq, span) {
            Piece::Data { seq, len, fin, .. } => Piece::Data {
                seq,
                len,
                fin,
                is_rescue: true,
            },
            other => other,
        })
    }

    /// Data of `span` sequence numbers from `seq` on, that of the FIN perhaps among them.
    fn data_between(&self, seq: Seq, span: u32) -> Piece {
        let len = seq.until(self.write_seq).min(span);
        let fin = self.has(Flag::FIN_QUEUED) && seq + len == self.write_seq && span > len;
        Piece::data(seq, len, fin)
    }

    /// Bytes of data in a full segment beside the options that it needs now (Eff.snd.MSS of RFC 9293).
    #[inline]
    fn effective_mss(&self, cx: &TcpContext<'_>) -> u32 {
        let mss = u32::from(self.mss);
        if !self.recovery.is_some() {
            return mss;
        }
        mss.saturating_sub(self.sack_option_bytes(cx)).max(1)
    }

    /// The segment at SND.NXT: new data, or old data again after a timeout.
    #[inline(always)]
    fn next_in_order(&self, cx: &TcpContext<'_>) -> Option<Piece> {
        let (seq, gap) = if self.recovery.is_some() && self.snd_nxt.is_before(self.snd_max) {
            self.skip_sacked(cx)
        } else {
            (self.snd_nxt, None)
        };
        let waiting = seq.until(self.write_seq);
        let ends = self.has(Flag::FIN_QUEUED);
        if waiting == 0 && !(ends && seq == self.write_seq) {
            return None;
        }
        let room = self.usable_window(cx, seq);
        let mss = self.effective_mss(cx);
        let mut len = waiting.min(room).min(mss);
        if let Some(left) = gap {
            len = len.min(seq.until(left));
        }
        if len == 0 && self.has(Flag::WINDOW_PROBE) && self.snd_nxt.is_before(self.write_seq) {
            // A window probe: one byte beyond the window.
            return Some(Piece::data(self.snd_nxt, 1, false));
        }
        // A FIN needs no room: it is sent to a peer with a zero window, too.
        let fin = ends && len == waiting;
        let is_worth_it = fin || len == mss || len > 0 && self.nagle_allows(cx, len, waiting);
        is_worth_it.then_some(Piece::data(seq, len, fin))
    }

    /// How much more the congestion window and the peer's allow from `seq` on.
    #[inline(always)]
    fn usable_window(&self, cx: &TcpContext<'_>, seq: Seq) -> u32 {
        let in_flight = self.snd_una.until(seq);
        if self.has(Flag::FAST_RECOVERY) && self.has(Flag::SACK) {
            // `pipe_has_room` was asked before.
            return self.snd_wnd.saturating_sub(in_flight);
        }
        let mut window = self.congestion.window_bytes;
        // "On the first and second duplicate ACKs received at a sender, a TCP SHOULD send a
        // segment of previously unsent data" (RFC 5681, section 3.2, step 1; RFC 3042).
        let is_limited_transmit = self.dup_acks > 0
            && self.dup_acks < cx.tunables.duplicates_max
            && self.snd_nxt == self.snd_max
            && !self.has(Flag::FAST_RECOVERY);
        if is_limited_transmit {
            window += u32::from(self.dup_acks.min(2)) * u32::from(self.mss);
        }
        window.min(self.snd_wnd).saturating_sub(in_flight)
    }

    /// Whether less than a full segment may be sent: Nagle, and the sender's silly window avoidance
    /// (RFC 9293, sections 3.7.4 and 3.8.6.2.1).
    #[inline(always)]
    fn nagle_allows(&self, cx: &TcpContext<'_>, len: u32, waiting: u32) -> bool {
        if self.snd_nxt.is_before(self.snd_max) {
            return true;
        }
        let is_idle = self.snd_una == self.snd_nxt;
        let is_last = len == waiting;
        // The last condition: the override timeout of a window that stays small.
        is_last && (is_idle || cx.tunables.no_delay)
            || len >= self.max_snd_wnd / 2
            || self.has(Flag::WINDOW_PROBE)
    }

    fn sack_option_bytes(&self, cx: &TcpContext<'_>) -> u32 {
        let blocks = self.sack_blocks(cx, self.sack_blocks_max());
        match blocks.as_slice().len() as u32 {
            0 => 0,
            count => SACK_BYTES.0 + (count - 1) * SACK_BYTES.1,
        }
    }

    pub(super) fn sack_blocks_max(&self) -> usize {
        if self.has(Flag::TIMESTAMPS) {
            SACK_BLOCKS.0
        } else {
            SACK_BLOCKS.1
        }
    }

    #[inline(always)]
    fn segment_of(&self, cx: &TcpContext<'_>, piece: Piece) -> Segment {
        match piece {
            Piece::Reset => Segment {
                seq: self.acceptable_seq(),
                ack: self.rcv_nxt,
                flags: TcpFlags::RST | TcpFlags::ACK,
                ..Segment::default()
            },
            Piece::Syn => self.syn(cx),
            Piece::Acknowledgment => self.header(cx, self.acceptable_seq()),
            // "with a sequence number one less than the next": the peer must answer.
            Piece::KeepProbe => self.header(cx, self.snd_una - 1),
            Piece::Data { seq, len, fin, .. } => self.data_segment(cx, seq, len, fin),
        }
    }

    /// RCV.WND of an application that has not consumed all that arrived. Its right edge does not move
    /// left, and moves right only by enough that the peer sends no tiny segments (the receiver's silly
    /// window avoidance, RFC 9293, section 3.8.6.2.2).
    #[cold]
    pub(super) fn receive_window(&self, cx: &TcpContext<'_>) -> u32 {
        let rcv_wnd = self.rcv_nxt.until(self.rcv_adv);
        let room = cx.tunables.receive_buffer_bytes;
        let left = room.saturating_sub(cx.unread_bytes);
        let step = (room / 2).min(self.mss.into());
        if left >= rcv_wnd.saturating_add(step) {
            left
        } else {
            rcv_wnd
        }
    }

    /// The application has consumed bytes that had waited: a window update is sent when that opens the
    /// window by two segments, or by half of it.
    pub fn note_read(&mut self, cx: &TcpContext<'_>) {
        let rcv_wnd = self.rcv_nxt.until(self.rcv_adv);
        let room = cx.tunables.receive_buffer_bytes;
        let left = room.saturating_sub(cx.unread_bytes);
        let step = (room / 2).min(2 * u32::from(self.mss));
        let receives = self.is_synchronized() && !self.is_fin_received();
        if receives && left >= rcv_wnd.saturating_add(step) {
            self.set(Flag::ACK_NOW);
        }
    }

    /// Whether [`syn`](Connection::syn) is to be sent and nothing else. Call
    /// [`note_syn_sent`](Connection::note_syn_sent) when it was.
    #[inline(always)]
    pub fn is_syn_due(&self) -> bool {
        let is_handshake = matches!(self.state, TcpState::SynSent | TcpState::SynReceived);
        is_handshake && self.snd_nxt == self.snd_una && !self.has(Flag::SEND_RST.or(Flag::ACK_NOW))
    }

    /// The SYN was sent.
    #[inline(always)]
    pub fn note_syn_sent(&mut self, cx: &mut TcpContext<'_>) {
        cx.counters.sndtotal += 1;
        cx.counters.sndctrl += 1;
        if self.snd_max == self.snd_una {
            self.start_rtt(cx, self.snd_una + 1);
        }
        self.snd_nxt = self.snd_una + 1;
        self.snd_max = self.snd_max.max(self.snd_nxt);
        self.start_retransmission(cx);
    }

    /// The segment was sent.
    #[inline(always)]
    fn note_sent(
        &mut self,
        cx: &mut TcpContext<'_>,
        piece: Piece,
        segment: &Segment,
        outcome: &mut Outcome,
    ) {
        if piece == Piece::Syn {
            return self.note_syn_sent(cx);
        }
        cx.counters.sndtotal += 1;
        match piece {
            Piece::Syn => {}
            Piece::Reset => {
                cx.counters.sndctrl += 1;
                let how = self.reset_end();
                return self.enter_closed(cx, how, outcome);
            }
            Piece::Acknowledgment => cx.counters.sndacks += 1,
            Piece::KeepProbe => self.clear(Flag::KEEPALIVE_PROBE),
            Piece::Data {
                seq,
                len,
                fin,
                is_rescue,
            } => {
                self.note_data_sent(cx, seq, len, fin, is_rescue);
            }
        }
        self.note_ack_sent(cx, segment);
    }

    #[inline(always)]
    fn note_data_sent(
        &mut self,
        cx: &mut TcpContext<'_>,
        seq: Seq,
        len: u32,
        fin: bool,
        is_rescue: bool,
    ) {
        let end = seq + len + u32::from(fin);
        let window_edge = self.snd_una + self.snd_wnd;
        let is_probe = self.has(Flag::WINDOW_PROBE) && (seq + len).is_after(window_edge);
        self.clear(Flag::WINDOW_PROBE.or(Flag::RETRANSMIT_NOW));
        self.last_sent_ms = cx.now_ms;
        let again = seq.until(self.snd_max).min(len);
        cx.counters.sndbyte_ok += u64::from(len - again);
        if is_probe {
            cx.counters.sndprobe += 1;
            // The peer may drop the byte: it counts as sent, but not as in flight.
            self.snd_max = self.snd_max.max(end);
            return;
        }
        if seq.is_before(self.snd_max) {
            self.clear(Flag::RTT_TIMING);
            self.note_retransmitted(cx, again);
        } else {
            cx.counters.sndpack += u64::from(len > 0);
            self.start_rtt(cx, end);
        }
        if fin {
            cx.counters.sndctrl += u64::from(len == 0);
            self.note_fin_sent();
        }
        if is_rescue {
            self.set(Flag::RESCUE_SENT);
        } else if !seq.is_before(self.snd_nxt) {
            self.snd_nxt = end;
        } else if self.has(Flag::FAST_RECOVERY) && self.has(Flag::SACK) {
            self.note_high_rxt(cx, end);
        }
        self.snd_max = self.snd_max.max(end);
        self.start_retransmission(cx);
    }

    fn note_retransmitted(&mut self, cx: &mut TcpContext<'_>, bytes: u32) {
        if bytes == 0 {
            return;
        }
        cx.counters.sndrexmitpack += 1;
        cx.counters.sndrexmitbyte += u64::from(bytes);
        let cold = cx.recovery.cold.of(&mut self.cold);
        cold.retransmitted_segments = cold.retransmitted_segments.saturating_add(1);
        if self.has(Flag::FAST_RECOVERY) && self.has(Flag::SACK) {
            cx.counters.sack_rexmits += 1;
            cx.counters.sack_rexmit_bytes += u64::from(bytes);
        }
    }

    pub(super) fn note_fin_sent(&mut self) {
        self.set(Flag::FIN_SENT);
        match self.state {
            TcpState::Established => self.state = TcpState::FinWait1,
            TcpState::CloseWait => self.state = TcpState::LastAck,
            // It is sent again.
            TcpState::SynSent
            | TcpState::SynReceived
            | TcpState::FinWait1
            | TcpState::FinWait2
            | TcpState::Closing
            | TcpState::LastAck
            | TcpState::TimeWait
            | TcpState::Closed => {}
        }
    }

    /// Starts the persist timer where data waits for the peer's window and nothing is in flight.
    #[inline(always)]
    fn enter_persist(&mut self, cx: &mut TcpContext<'_>) {
        let waits = self.snd_nxt.is_before(self.write_seq) && self.is_synchronized();
        let is_quiet = self.snd_una == self.snd_nxt && !self.timers.is_set(Timer::Retransmit);
        if !waits || !is_quiet || self.is_closed() {
            return;
        }
        if self.snd_wnd == 0 && !self.has(Flag::PERSIST) {
            let cold = cx.recovery.cold.of(&mut self.cold);
            cold.zero_windows = cold.zero_windows.saturating_add(1);
        }
        self.set(Flag::PERSIST);
        let timeout_ms = self.rtt.timeout_ms(self.backoff).min(PERSIST_MS_MAX);
        let at_ms = cx.now_ms.wrapping_add(timeout_ms);
        self.timers.set(Timer::Retransmit, at_ms);
    }
}
