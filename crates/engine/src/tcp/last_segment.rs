//! The short way out: one segment that says all that there is to say, as most segments of short
//! connections do. What it does, [`Connection::poll_transmit`] would do step by step.

use allosaur_packet::transport::tcp::TcpFlags;

use super::connection::{Connection, Flag, TcpContext, TcpState};
use super::segment::Segment;

impl Connection {
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

    /// The segment that takes what [`rest_to_send`](Connection::rest_to_send) says. Say
    /// [`note_last_sent`](Connection::note_last_sent) when it has left.
    #[inline(always)]
    pub fn last_segment(&self, cx: &TcpContext<'_>, (len, fin): (u32, bool)) -> Segment {
        if len == 0 && !fin {
            return self.header(cx, self.quiet_seq());
        }
        self.data_segment(cx, self.next, len, fin)
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
}
