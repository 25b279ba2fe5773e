//! What a connection sends, and when.

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
/// The longest wait for a window, and the shortest (RFC 9293, section 3.8.6.1).
const PERSIST_MS_MAX: u32 = 60_000;

/// How [`Connection::poll_transmit`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// All that may leave now has left.
    Done,
    /// The port took no more: call again when it does.
    Blocked,
}

/// Where the segments of a connection leave.
pub trait SegmentTx {
    /// Sends a segment; `false`, and it counts as not sent, when there is no room.
    fn send(&mut self, segment: &Segment) -> bool;

    /// Sends up to `count` segments: `first`, and others that differ from it in nothing but their
    /// numbers, each with as many bytes, behind those of the one before. Returns for how many there
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

/// What leaves next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    Reset,
    Syn,
    /// Data and the end of data, from a number on.
    Data {
        seq: Seq,
        len: u32,
        fin: bool,
        /// It is the end of what is under way, out of its turn.
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
    /// Gives what may leave now to `tx`, until there is no more or no room. An end that follows from
    /// sending (of a reset) is told in `outcome`.
    pub fn poll_transmit(
        &mut self,
        cx: &mut TcpContext<'_>,
        outcome: &mut Outcome,
        tx: &mut impl SegmentTx,
    ) -> Progress {
        if self.has_nothing_to_say() {
            return Progress::Done;
        }
        if self.has(Flag::RESET) && !self.is_reset_of_use() {
            let how = self.reset_means();
            self.end(cx, how, outcome);
        }
        self.rest(cx);
        if self.is_plain_output() && self.send_full(cx, tx) == Progress::Blocked {
            return Progress::Blocked;
        }
        while let Some(piece) = self.next_piece(cx) {
            let segment = self.segment_of(cx, piece);
            if !tx.send(&segment) {
                return Progress::Blocked;
            }
            self.note_sent(cx, piece, &segment, outcome);
        }
        self.wait_for_window(cx);
        Progress::Done
    }

    /// Sends as many full segments as there are and both windows allow, one like the other; but
    /// not the one that the end follows.
    fn send_full(&mut self, cx: &mut TcpContext<'_>, tx: &mut impl SegmentTx) -> Progress {
        let mss = u32::from(self.mss);
        let mut waiting = self.next.until(self.end);
        if self.has(Flag::FIN_WANTED) {
            waiting = waiting.saturating_sub(1);
        }
        let count = waiting.min(self.usable_window(cx, self.next)) / mss;
        if count == 0 {
            return Progress::Done;
        }
        let mut segment = self.data_segment(cx, self.next, mss, false);
        // The last of all bytes are pushed.
        let alike = if segment.seq + count * mss == self.end {
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

    /// So many full segments of new data left; the next would be `segment`.
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
        self.time(cx, self.next + u32::from(self.mss));
        self.next = segment.seq;
        self.high = segment.seq;
        self.sent_ms = cx.now_ms;
        self.start_retransmission(cx);
        self.note_acknowledged(cx, segment);
    }

    /// RFC 9293, section 3.10.5: before the other side answered, and after it said that it is
    /// done and so did we, nobody waits for a reset.
    #[inline(always)]
    fn is_reset_of_use(&self) -> bool {
        !matches!(
            self.state,
            TcpState::SynSent | TcpState::Closing | TcpState::LastAck | TcpState::TimeWait
        )
    }

    /// How a connection ends that resets the other side.
    pub(super) fn reset_means(&self) -> End {
        if self.has(Flag::GIVEN_UP) {
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
    fn next_piece(&self, cx: &TcpContext<'_>) -> Option<Piece> {
        if self.is_closed() {
            return None;
        }
        if self.has(Flag::RESET) {
            return Some(Piece::Reset);
        }
        if !self.is_synchronized() {
            if self.next == self.una {
                return Some(Piece::Syn);
            }
            let asks = self.state == TcpState::SynReceived && self.has(Flag::ACK_NOW);
            return asks.then_some(Piece::Acknowledgment);
        }
        let data = if self.has(Flag::RECOVERY) {
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
        self.has(Flag::KEEP_PROBE).then_some(Piece::KeepProbe)
    }

    #[cold]
    fn next_in_recovery(&self, cx: &TcpContext<'_>) -> Option<Piece> {
        let span_max = self.segment_bytes(cx);
        let must = self.has(Flag::RESEND);
        if !self.has(Flag::SACK) {
            if must {
                let span = self.una.until(self.high).min(span_max);
                return Some(self.data_piece(self.una, span));
            }
            return self.next_in_order(cx);
        }
        if must {
            let (seq, span) = self.first_hole(cx, span_max)?;
            return Some(self.data_piece(seq, span));
        }
        if !self.pipe_has_room(cx) {
            return None;
        }
        // RFC 6675, section 4, NextSeg: the four rules in their order.
        if let Some((seq, span)) = self.next_hole(cx, span_max, false) {
            return Some(self.data_piece(seq, span));
        }
        if let Some(new) = self.next_in_order(cx) {
            return Some(new);
        }
        if let Some((seq, span)) = self.next_hole(cx, span_max, true) {
            return Some(self.data_piece(seq, span));
        }
        let (seq, span) = self.rescue(cx, span_max)?;
        Some(match self.data_piece(seq, span) {
            Piece::Data { seq, len, fin, .. } => Piece::Data {
                seq,
                len,
                fin,
                is_rescue: true,
            },
            other => other,
        })
    }

    /// A piece that covers `span` numbers from `seq`, the number of the FIN among them perhaps.
    fn data_piece(&self, seq: Seq, span: u32) -> Piece {
        let len = seq.until(self.end).min(span);
        let fin = self.has(Flag::FIN_WANTED) && seq + len == self.end && span > len;
        Piece::data(seq, len, fin)
    }

    /// Bytes of data in a full segment now.
    #[inline]
    fn segment_bytes(&self, cx: &TcpContext<'_>) -> u32 {
        let mss = u32::from(self.mss);
        if !self.side.is_some() {
            return mss;
        }
        mss.saturating_sub(self.sack_option_bytes(cx)).max(1)
    }

    /// What follows `next`: new data, or old data again after a timeout.
    #[inline(always)]
    fn next_in_order(&self, cx: &TcpContext<'_>) -> Option<Piece> {
        let (seq, gap) = if self.side.is_some() && self.next.is_before(self.high) {
            self.skip_sacked(cx)
        } else {
            (self.next, None)
        };
        let waiting = seq.until(self.end);
        let ends = self.has(Flag::FIN_WANTED);
        if waiting == 0 && !(ends && seq == self.end) {
            return None;
        }
        let room = self.usable_window(cx, seq);
        let mss = self.segment_bytes(cx);
        let mut len = waiting.min(room).min(mss);
        if let Some(left) = gap {
            len = len.min(seq.until(left));
        }
        if len == 0 && self.has(Flag::PROBE) && self.next.is_before(self.end) {
            // One byte that the window has no room for.
            return Some(Piece::data(self.next, 1, false));
        }
        // A FIN needs no room: who has no window still learns that this is the end.
        let fin = ends && len == waiting;
        let is_worth_it = fin || len == mss || len > 0 && self.may_send_short(cx, len, waiting);
        is_worth_it.then_some(Piece::data(seq, len, fin))
    }

    /// How much more both windows allow from `seq` on.
    #[inline(always)]
    fn usable_window(&self, cx: &TcpContext<'_>, seq: Seq) -> u32 {
        let under_way = self.una.until(seq);
        if self.has(Flag::RECOVERY) && self.has(Flag::SACK) {
            // The pipe was asked already.
            return self.send_window.saturating_sub(under_way);
        }
        let mut window = self.congestion.window_bytes;
        // "On the first and second duplicate ACKs received at a sender, a TCP SHOULD send a
        // segment of previously unsent data" (RFC 5681, section 3.2, step 1; RFC 3042).
        let is_limited_transmit = self.dup_acks > 0
            && self.dup_acks < cx.tunables.duplicates_max
            && self.next == self.high
            && !self.has(Flag::RECOVERY);
        if is_limited_transmit {
            window += u32::from(self.dup_acks.min(2)) * u32::from(self.mss);
        }
        window.min(self.send_window).saturating_sub(under_way)
    }

    /// Nagle, and no silly windows (RFC 9293, sections 3.7.4 and 3.8.6.2.1).
    #[inline(always)]
    fn may_send_short(&self, cx: &TcpContext<'_>, len: u32, waiting: u32) -> bool {
        if self.next.is_before(self.high) {
            return true;
        }
        let is_idle = self.una == self.next;
        let is_last = len == waiting;
        // The last condition: the override timeout of a window that stays small.
        is_last && (is_idle || cx.tunables.no_delay)
            || len >= self.send_window_max / 2
            || self.has(Flag::PROBE)
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
                seq: self.quiet_seq(),
                ack: self.expected,
                flags: TcpFlags::RST | TcpFlags::ACK,
                ..Segment::default()
            },
            Piece::Syn => self.syn(cx),
            Piece::Acknowledgment => self.header(cx, self.quiet_seq()),
            // "with a sequence number one less than the next": the other side must answer.
            Piece::KeepProbe => self.header(cx, self.una - 1),
            Piece::Data { seq, len, fin, .. } => self.data_segment(cx, seq, len, fin),
        }
    }

    /// The window of an application that has not consumed all that arrived. Its right edge does not
    /// move left, and moves right only by enough that the peer sends no tiny segments (RFC 9293,
    /// section 3.8.6.2.2).
    #[cold]
    pub(super) fn window_left(&self, cx: &TcpContext<'_>) -> u32 {
        let offered = self.expected.until(self.offered);
        let room = cx.tunables.receive_buffer_bytes;
        let left = room.saturating_sub(cx.unread_bytes);
        let step = (room / 2).min(self.mss.into());
        if left >= offered.saturating_add(step) {
            left
        } else {
            offered
        }
    }

    /// The application has consumed bytes that had waited: the peer is told when that opens the
    /// window by two segments, or by half of it.
    pub fn note_read(&mut self, cx: &TcpContext<'_>) {
        let offered = self.expected.until(self.offered);
        let room = cx.tunables.receive_buffer_bytes;
        let left = room.saturating_sub(cx.unread_bytes);
        let step = (room / 2).min(2 * u32::from(self.mss));
        let hears = self.is_synchronized() && !self.has(Flag::PEER_CLOSED);
        if hears && left >= offered.saturating_add(step) {
            self.set(Flag::ACK_NOW);
        }
    }

    /// Whether a [`syn`](Connection::syn) is to be sent and nothing else. Say
    /// [`note_syn_sent`](Connection::note_syn_sent) when it has left.
    #[inline(always)]
    pub fn is_syn_due(&self) -> bool {
        let is_asking = matches!(self.state, TcpState::SynSent | TcpState::SynReceived);
        is_asking && self.next == self.una && !self.has(Flag::RESET.or(Flag::ACK_NOW))
    }

    /// Such a segment left.
    #[inline(always)]
    pub fn note_syn_sent(&mut self, cx: &mut TcpContext<'_>) {
        cx.counters.sndtotal += 1;
        cx.counters.sndctrl += 1;
        if self.high == self.una {
            self.time(cx, self.una + 1);
        }
        self.next = self.una + 1;
        self.high = self.high.max(self.next);
        self.start_retransmission(cx);
    }

    /// The segment left.
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
                let how = self.reset_means();
                return self.end(cx, how, outcome);
            }
            Piece::Acknowledgment => cx.counters.sndacks += 1,
            Piece::KeepProbe => self.clear(Flag::KEEP_PROBE),
            Piece::Data {
                seq,
                len,
                fin,
                is_rescue,
            } => {
                self.note_data_sent(cx, seq, len, fin, is_rescue);
            }
        }
        self.note_acknowledged(cx, segment);
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
        let window_edge = self.una + self.send_window;
        let is_probe = self.has(Flag::PROBE) && (seq + len).is_after(window_edge);
        self.clear(Flag::PROBE.or(Flag::RESEND));
        self.sent_ms = cx.now_ms;
        let again = seq.until(self.high).min(len);
        cx.counters.sndbyte_ok += u64::from(len - again);
        if is_probe {
            cx.counters.sndprobe += 1;
            // The byte may be refused: it counts as sent, but not as under way.
            self.high = self.high.max(end);
            return;
        }
        if seq.is_before(self.high) {
            self.clear(Flag::TIMING);
            self.note_sent_again(cx, again);
        } else {
            cx.counters.sndpack += u64::from(len > 0);
            self.time(cx, end);
        }
        if fin {
            cx.counters.sndctrl += u64::from(len == 0);
            self.note_fin_sent();
        }
        if is_rescue {
            self.set(Flag::ONCE);
        } else if !seq.is_before(self.next) {
            self.next = end;
        } else if self.has(Flag::RECOVERY) && self.has(Flag::SACK) {
            self.note_resent(cx, end);
        }
        self.high = self.high.max(end);
        self.start_retransmission(cx);
    }

    fn note_sent_again(&mut self, cx: &mut TcpContext<'_>, bytes: u32) {
        if bytes == 0 {
            return;
        }
        cx.counters.sndrexmitpack += 1;
        cx.counters.sndrexmitbyte += u64::from(bytes);
        let cold = cx.sides.cold.of(&mut self.cold);
        cold.resent_segments = cold.resent_segments.saturating_add(1);
        if self.has(Flag::RECOVERY) && self.has(Flag::SACK) {
            cx.counters.sack_rexmits += 1;
            cx.counters.sack_rexmit_bytes += u64::from(bytes);
        }
    }

    pub(super) fn note_fin_sent(&mut self) {
        self.set(Flag::FIN_SENT);
        match self.state {
            TcpState::Established => self.state = TcpState::FinWait1,
            TcpState::CloseWait => self.state = TcpState::LastAck,
            // It leaves again.
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

    /// Data waits, nothing is under way that could be acknowledged, and the window has no room:
    /// it will be asked for.
    #[inline(always)]
    fn wait_for_window(&mut self, cx: &mut TcpContext<'_>) {
        let waits = self.next.is_before(self.end) && self.is_synchronized();
        let is_quiet = self.una == self.next && !self.timers.is_set(Timer::Retransmit);
        if !waits || !is_quiet || self.is_closed() {
            return;
        }
        if self.send_window == 0 && !self.has(Flag::PERSIST) {
            let cold = cx.sides.cold.of(&mut self.cold);
            cold.closed_windows = cold.closed_windows.saturating_add(1);
        }
        self.set(Flag::PERSIST);
        let timeout_ms = self.rtt.timeout_ms(self.backoff).min(PERSIST_MS_MAX);
        let at_ms = cx.now_ms.wrapping_add(timeout_ms);
        self.timers.set(Timer::Retransmit, at_ms);
    }
}
