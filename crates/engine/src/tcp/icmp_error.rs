//! What routers and hosts say of a segment: there was no room for it (RFC 1191, RFC 8201), or nobody takes it
//! (RFC 1122, section 4.2.3.9).

use super::connection::{Connection, Flag, TIMESTAMPS_BYTES, TcpContext, TcpState};
use super::outcome::{End, Outcome};
use super::seq::Seq;
use super::tunables::MSS_BYTES_MIN;

impl Connection {
    /// A router dropped the segment that began at `seq`; one with `segment_bytes_max` bytes behind its
    /// fixed header would have passed. Segments are no longer from now on, and what is under way is
    /// sent again. Returns whether that is new.
    ///
    /// Nobody but who saw the segment knows a number that is under way; other messages may be forged
    /// and change nothing (RFC 5927, section 7.2). The congestion window stays as it is: nothing was
    /// lost to congestion (RFC 1191, section 6.5).
    pub fn handle_too_big(
        &mut self,
        cx: &mut TcpContext<'_>,
        seq: Seq,
        segment_bytes_max: u16,
    ) -> bool {
        let options = if self.has(Flag::TIMESTAMPS) {
            TIMESTAMPS_BYTES
        } else {
            0
        };
        let mss = segment_bytes_max.saturating_sub(options).max(MSS_BYTES_MIN);
        let is_under_way = !seq.is_before(self.una) && seq.is_before(self.high);
        if !self.is_synchronized() || !is_under_way || mss >= self.mss {
            return false;
        }
        self.mss = mss;
        self.leave_recovery(cx);
        self.forget_sacked(cx);
        // RFC 6582, section 4: duplicates of what is sent again mean nothing.
        cx.sides.cold.of(&mut self.cold).recover = self.high;
        self.set(Flag::HELD);
        self.dup_acks = 0;
        self.clear(Flag::TIMING.or(Flag::SLOWED));
        self.next = self.una;
        true
    }

    /// Nobody takes the SYN that began at `seq`: the connection is refused. One that is there lives on:
    /// what it lacks for a moment may come back (RFC 5927, section 5.2).
    pub fn handle_unreachable(&mut self, cx: &mut TcpContext<'_>, seq: Seq) {
        if self.state() == TcpState::SynSent && seq == self.una {
            self.end(cx, End::Reset, &mut Outcome::default());
        }
    }
}
