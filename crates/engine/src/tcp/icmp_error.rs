//! ICMP errors about a segment: packet too big (RFC 1191, RFC 8201), destination unreachable (RFC 1122,
//! section 4.2.3.9).

use super::connection::{Connection, Flag, TIMESTAMPS_BYTES, TcpContext, TcpState};
use super::outcome::{End, Outcome};
use super::seq::Seq;
use super::tunables::MSS_BYTES_MIN;

impl Connection {
    /// A router dropped the segment that began at `seq`; one with `segment_bytes_max` bytes behind its
    /// fixed header would have passed. Segments are no longer from now on, and what is in flight is
    /// sent again. Returns whether that is new.
    ///
    /// The sequence number must be in flight; other messages may be forged and change nothing (RFC 5927,
    /// section 7.2). The congestion window stays as it is: nothing was lost to congestion (RFC 1191,
    /// section 6.5).
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
        let is_in_flight = !seq.is_before(self.snd_una) && seq.is_before(self.snd_max);
        if !self.is_synchronized() || !is_in_flight || mss >= self.mss {
            return false;
        }
        self.mss = mss;
        self.exit_recovery(cx);
        self.forget_sacked(cx);
        // RFC 6582, section 4: duplicate ACKs of what is sent again mean nothing.
        cx.recovery.cold.of(&mut self.cold).recover = self.snd_max;
        self.set(Flag::BELOW_RECOVER);
        self.dup_acks = 0;
        self.clear(Flag::RTT_TIMING.or(Flag::CONGESTION_RECOVERY));
        self.snd_nxt = self.snd_una;
        true
    }

    /// The SYN at `seq` was not delivered: the connection is refused. An established one is kept, as the
    /// error may be transient (RFC 5927, section 5.2).
    pub fn handle_unreachable(&mut self, cx: &mut TcpContext<'_>, seq: Seq) {
        if self.state() == TcpState::SynSent && seq == self.snd_una {
            self.enter_closed(cx, End::Reset, &mut Outcome::default());
        }
    }
}
