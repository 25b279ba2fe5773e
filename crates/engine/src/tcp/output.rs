//! What a connection sends, and when.
//!
//! What lives here: which segment is next (RFC 9293, sections 3.7.4 and 3.8.6), and its header.
//! What does not: its bytes, which the caller knows by their offset; how large windows are
//! (`congestion`).

use allosaur_packet::tcp::TcpFlags;

use super::connection::{Connection, Context, Flag, State};
use super::outcome::{End, Outcome};
use super::segment::Segment;
use super::seq::Seq;
use super::timers::Timer;
use super::tunables::Ecn;

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
    },
    Acknowledgment,
    KeepProbe,
}

impl Connection {
    /// Gives what may leave now to `send`, one segment at a time, until there is no more or `send`
    /// says that there is no room: such a segment counts as not sent. An end that follows from
    /// sending (of a reset) is told in `outcome`.
    pub fn poll_transmit(
        &mut self,
        cx: &mut Context<'_>,
        outcome: &mut Outcome,
        mut send: impl FnMut(&Segment) -> bool,
    ) -> Progress {
        if !self.is_closed() {
            self.rest(cx);
        }
        while let Some(piece) = self.next_piece(cx) {
            let segment = self.segment_of(cx, piece);
            if !send(&segment) {
                return Progress::Blocked;
            }
            self.note_sent(cx, piece, &segment, outcome);
        }
        self.wait_for_window(cx);
        Progress::Done
    }

    /// After a rest longer than a timeout, the window begins anew (RFC 5681, section 4.1).
    fn rest(&mut self, cx: &Context<'_>) {
        let rested_ms = cx.now_ms.wrapping_sub(self.sent_ms);
        let has_new = self.una == self.high && self.next.is_before(self.end);
        if has_new && self.is_synchronized() && rested_ms > self.rtt.timeout_ms(0) {
            let segments = u32::from(cx.tunables.initial_window_segments);
            let window = segments * u32::from(self.mss);
            self.congestion.restart_after_idle(window);
        }
    }

    fn next_piece(&self, cx: &Context<'_>) -> Option<Piece> {
        if self.is_closed() {
            return None;
        }
        if self.has(Flag::RESET) {
            return Some(Piece::Reset);
        }
        if !self.is_synchronized() {
            return (self.next == self.first).then_some(Piece::Syn);
        }
        let data = self.next_data(cx);
        if data.is_some() {
            return data;
        }
        if self.has(Flag::ACK_NOW) {
            return Some(Piece::Acknowledgment);
        }
        self.has(Flag::KEEP_PROBE).then_some(Piece::KeepProbe)
    }

    fn next_data(&self, cx: &Context<'_>) -> Option<Piece> {
        if self.has(Flag::RECOVERY) {
            let hole = if self.has(Flag::SACK) {
                self.next_hole(cx)
            } else {
                let is_due = self.has(Flag::RESEND);
                is_due.then(|| (self.una, self.una.until(self.high).min(self.mss.into())))
            };
            if let Some((seq, span)) = hole {
                return Some(self.data_piece(seq, span));
            }
            if self.has(Flag::SACK) && !self.pipe_has_room(cx) {
                return None;
            }
        }
        self.next_in_order(cx)
    }

    /// A piece that covers `span` numbers from `seq`, the number of the FIN among them perhaps.
    fn data_piece(&self, seq: Seq, span: u32) -> Piece {
        let len = seq.until(self.end).min(span);
        let fin = self.has(Flag::FIN_WANTED) && seq + len == self.end && span > len;
        Piece::Data { seq, len, fin }
    }

    /// What follows `next`: new data, or old data again after a timeout.
    fn next_in_order(&self, cx: &Context<'_>) -> Option<Piece> {
        let seq = self.next;
        let waiting = seq.until(self.end);
        if self.has(Flag::PROBE) {
            // One byte, or the FIN, that the window has no room for.
            let fin = waiting == 0 && self.may_send_fin(seq);
            let len = waiting.min(1);
            return (len > 0 || fin).then_some(Piece::Data { seq, len, fin });
        }
        let options = self.sack_option_bytes(cx);
        let mss = u32::from(self.mss).saturating_sub(options).max(1);
        let len = waiting.min(self.usable_window(cx)).min(mss);
        let fin = len == waiting && self.may_send_fin(seq + len);
        if fin {
            return Some(Piece::Data { seq, len, fin });
        }
        let is_worth_it = len == mss || len > 0 && self.may_send_short(cx, len, waiting);
        is_worth_it.then_some(Piece::Data { seq, len, fin })
    }

    /// Whether a FIN with this number may leave: all is written, and it was not sent since the
    /// last timeout.
    fn may_send_fin(&self, at: Seq) -> bool {
        self.has(Flag::FIN_WANTED) && at == self.end
    }

    /// How much more both windows allow.
    fn usable_window(&self, cx: &Context<'_>) -> u32 {
        let under_way = self.una.until(self.next);
        // "On the first and second duplicate ACKs received at a sender, a TCP SHOULD send a
        // segment of previously unsent data" (RFC 5681, section 3.2, step 1).
        let is_limited_transmit = !self.has(Flag::RECOVERY)
            && self.dup_acks > 0
            && self.dup_acks < cx.tunables.duplicates_max;
        let more = if is_limited_transmit {
            u32::from(self.dup_acks.min(2)) * u32::from(self.mss)
        } else {
            0
        };
        if self.has(Flag::RECOVERY) && self.has(Flag::SACK) {
            // The pipe was asked already.
            return self.send_window.saturating_sub(under_way);
        }
        let window = self.congestion.window_bytes.saturating_add(more);
        window.min(self.send_window).saturating_sub(under_way)
    }

    /// Nagle, and no silly windows (RFC 9293, sections 3.7.4 and 3.8.6.2.1).
    fn may_send_short(&self, cx: &Context<'_>, len: u32, waiting: u32) -> bool {
        if self.next.is_before(self.high) {
            return true;
        }
        let is_idle = self.una == self.next;
        let is_last = len == waiting;
        let ends = self.has(Flag::FIN_WANTED);
        is_last && (is_idle || cx.tunables.no_delay || ends) || len >= self.send_window_max / 2
    }

    fn sack_option_bytes(&self, cx: &Context<'_>) -> u32 {
        if !self.side.is_some() {
            return 0;
        }
        let blocks = self.sack_blocks(cx, self.sack_blocks_max());
        match blocks.as_slice().len() as u32 {
            0 => 0,
            count => SACK_BYTES.0 + (count - 1) * SACK_BYTES.1,
        }
    }

    fn sack_blocks_max(&self) -> usize {
        if self.has(Flag::TIMESTAMPS) {
            SACK_BLOCKS.0
        } else {
            SACK_BLOCKS.1
        }
    }

    fn segment_of(&self, cx: &Context<'_>, piece: Piece) -> Segment {
        match piece {
            Piece::Reset if self.state == State::SynSent => Segment {
                seq: self.next,
                flags: TcpFlags::RST,
                ..Segment::default()
            },
            Piece::Reset => Segment {
                seq: self.next,
                ack: self.expected,
                flags: TcpFlags::RST | TcpFlags::ACK,
                ..Segment::default()
            },
            Piece::Syn => self.syn(cx),
            Piece::Acknowledgment => self.header(cx, self.next),
            // "with a sequence number one less than the next": the other side must answer.
            Piece::KeepProbe => self.header(cx, self.una - 1),
            Piece::Data { seq, len, fin } => self.data_segment(cx, seq, len, fin),
        }
    }

    fn syn(&self, cx: &Context<'_>) -> Segment {
        let is_answer = self.state == State::SynReceived;
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
        let offers_scale = tunables.rfc1323 && knows(Flag::SCALED);
        let echo = if is_answer { self.timestamp } else { 0 };
        Segment {
            seq: self.first,
            ack: self.expected,
            flags,
            window: tunables.receive_buffer_bytes.min(0xffff) as u16,
            mss: Some(tunables.mss_bytes),
            window_scale: offers_scale.then(|| tunables.window_scale()),
            sack_permitted: tunables.sack && knows(Flag::SACK),
            timestamps: offers_timestamps.then_some((cx.now_ms, echo)),
            ..Segment::default()
        }
    }

    /// The header of any segment after the SYN.
    fn header(&self, cx: &Context<'_>, seq: Seq) -> Segment {
        let mut flags = TcpFlags::ACK;
        if self.has(Flag::ECN_ECHO) {
            flags |= TcpFlags::ECE;
        }
        let window = cx.tunables.receive_buffer_bytes >> self.receive_scale;
        Segment {
            seq,
            ack: self.expected,
            flags,
            window: window.min(0xffff) as u16,
            timestamps: self
                .has(Flag::TIMESTAMPS)
                .then_some((cx.now_ms, self.timestamp)),
            sack: self.sack_blocks(cx, self.sack_blocks_max()),
            ..Segment::default()
        }
    }

    fn data_segment(&self, cx: &Context<'_>, seq: Seq, len: u32, fin: bool) -> Segment {
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

    /// The segment left.
    fn note_sent(
        &mut self,
        cx: &mut Context<'_>,
        piece: Piece,
        segment: &Segment,
        outcome: &mut Outcome,
    ) {
        cx.counters.sndtotal += 1;
        self.sent_ms = cx.now_ms;
        match piece {
            Piece::Reset => {
                cx.counters.sndctrl += 1;
                let how = outcome.ended.unwrap_or(End::Reset);
                return self.end(cx, how, outcome);
            }
            Piece::Syn => {
                cx.counters.sndctrl += 1;
                if self.high == self.first {
                    self.time(cx, self.first + 1);
                }
                self.next = self.first + 1;
                self.high = self.high.max(self.next);
                self.start_retransmission(cx);
                return;
            }
            Piece::Acknowledgment => cx.counters.sndacks += 1,
            Piece::KeepProbe => self.clear(Flag::KEEP_PROBE),
            Piece::Data { seq, len, fin } => self.note_data_sent(cx, seq, len, fin),
        }
        self.note_acknowledged(cx, segment);
    }

    /// An acknowledgment left, alone or with data.
    fn note_acknowledged(&mut self, cx: &mut Context<'_>, segment: &Segment) {
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
        let edge = self.expected + (u32::from(segment.window) << self.receive_scale);
        self.offered = self.offered.max(edge);
    }

    fn note_data_sent(&mut self, cx: &mut Context<'_>, seq: Seq, len: u32, fin: bool) {
        let end = seq + len + u32::from(fin);
        let is_probe = self.has(Flag::PROBE);
        self.clear(Flag::PROBE);
        self.clear(Flag::RESEND);
        if seq.is_before(self.high) && !is_probe {
            self.note_sent_again(cx, len);
        } else if !is_probe {
            cx.counters.sndpack += u64::from(len > 0);
            cx.counters.sndbyte_ok += u64::from(len);
            self.time(cx, end);
        }
        if fin {
            cx.counters.sndctrl += u64::from(len == 0);
            self.note_fin_sent();
        }
        if is_probe {
            cx.counters.sndprobe += 1;
            // The byte may be refused: it counts as sent, but not as under way.
            self.high = self.high.max(end);
            return;
        }
        if seq == self.next {
            self.next = end;
        } else {
            self.note_resent(cx, end);
        }
        self.high = self.high.max(end).max(self.next);
        self.start_retransmission(cx);
    }

    fn note_sent_again(&mut self, cx: &mut Context<'_>, len: u32) {
        cx.counters.sndrexmitpack += 1;
        cx.counters.sndrexmitbyte += u64::from(len);
        self.resent_segments = self.resent_segments.saturating_add(1);
        self.clear(Flag::TIMING);
        if self.has(Flag::RECOVERY) && self.has(Flag::SACK) {
            cx.counters.sack_rexmits += 1;
            cx.counters.sack_rexmit_bytes += u64::from(len);
        }
    }

    fn note_fin_sent(&mut self) {
        self.set(Flag::FIN_SENT);
        match self.state {
            State::Established => self.state = State::FinWait1,
            State::CloseWait => self.state = State::LastAck,
            // It leaves again.
            State::SynSent
            | State::SynReceived
            | State::FinWait1
            | State::FinWait2
            | State::Closing
            | State::LastAck
            | State::TimeWait
            | State::Closed => {}
        }
    }

    /// Begins to measure a round trip, if none is being measured.
    fn time(&mut self, cx: &mut Context<'_>, end: Seq) {
        if !self.has(Flag::TIMING) {
            self.set(Flag::TIMING);
            self.timed = end;
            self.timed_us = cx.now_us;
            cx.counters.segstimed += 1;
        }
    }

    /// RFC 6298, rule 5.1.
    fn start_retransmission(&mut self, cx: &Context<'_>) {
        self.clear(Flag::PERSIST);
        if !self.timers.is_set(Timer::Retransmit) {
            let timeout_ms = self.rtt.timeout_ms(self.backoff);
            let at_ms = cx.now_ms.wrapping_add(timeout_ms);
            self.timers.set(Timer::Retransmit, at_ms);
        }
    }

    /// Data waits, nothing is under way that could be acknowledged, and the window has no room:
    /// it will be asked for.
    fn wait_for_window(&mut self, cx: &Context<'_>) {
        let waits = self.next.is_before(self.end) && self.is_synchronized();
        let is_quiet = self.una == self.next && !self.timers.is_set(Timer::Retransmit);
        if !waits || !is_quiet || self.is_closed() {
            return;
        }
        if self.send_window == 0 && !self.has(Flag::PERSIST) {
            self.closed_windows = self.closed_windows.saturating_add(1);
        }
        self.set(Flag::PERSIST);
        let timeout_ms = self.rtt.timeout_ms(self.backoff).min(PERSIST_MS_MAX);
        let at_ms = cx.now_ms.wrapping_add(timeout_ms);
        self.timers.set(Timer::Retransmit, at_ms);
    }
}
