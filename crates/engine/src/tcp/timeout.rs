//! What happens when a timer of a connection is due.

use super::connection::{Connection, Flag, TcpContext, TcpState};
use super::outcome::{End, Outcome};
use super::timers::{TIMERS, Timer};

/// Unanswered retransmissions after which a connection is given up (BSD's TCP_MAXRXTSHIFT).
const RETRANSMISSIONS_MAX: u8 = 12;

impl Connection {
    /// In how many milliseconds [`handle_timeout`](Connection::handle_timeout) is due.
    pub fn poll_timeout(&self, now_ms: u32) -> Option<u32> {
        self.timers.first_ms(now_ms)
    }

    /// Does what is due. Too early is no error.
    pub fn handle_timeout(&mut self, cx: &mut TcpContext<'_>) -> Outcome {
        let mut outcome = Outcome::default();
        for timer in TIMERS {
            if !self.timers.is_due(timer, cx.now_ms) {
                continue;
            }
            self.timers.stop(timer);
            match timer {
                Timer::Retransmit if self.has(Flag::PERSIST) => self.persist(cx, &mut outcome),
                Timer::Retransmit => self.time_out(cx, &mut outcome),
                Timer::DelayedAck => {
                    cx.counters.delack += 1;
                    self.set(Flag::ACK_NOW);
                }
                Timer::Keep => self.ask_for_life(cx, &mut outcome),
                Timer::TimeWait if self.state == TcpState::FinWait2 => {
                    self.tire_of_waiting(cx, &mut outcome);
                }
                Timer::TimeWait => self.end(cx, End::Closed, &mut outcome),
            }
        }
        outcome
    }

    /// Nothing was acknowledged for a whole timeout (RFC 6298, rules 5.4 to 5.7).
    fn time_out(&mut self, cx: &mut TcpContext<'_>, outcome: &mut Outcome) {
        self.backoff += 1;
        let is_synchronized = self.is_synchronized();
        if self.backoff > RETRANSMISSIONS_MAX {
            cx.counters.timeoutdrop += 1;
            return self.give_up(cx, outcome);
        }
        if !is_synchronized {
            cx.counters.rexmttimeo_syn += 1;
        } else if self.send_window == 0 && self.una.is_before(self.end) {
            // "If the window shrinks to zero, the TCP implementation MUST probe it in the
            // standard way" (RFC 9293, section 3.8.6.2.1).
            self.backoff -= 1;
            self.persist(cx, outcome);
        } else {
            cx.counters.rexmttimeo += 1;
            // In a repair much of it has arrived: the window says how much is under way.
            let flight = self.una.until(self.high).min(self.congestion.window_bytes);
            let (algorithm, mss) = (cx.tunables.congestion, u32::from(self.mss));
            let is_first = !self.has(Flag::TIMED_OUT);
            let cubic = &mut cx.sides.cold.of(&mut self.cold).cubic;
            self.congestion
                .handle_timeout(algorithm, flight, mss, is_first, cubic);
        }
        self.leave_recovery(cx);
        self.forget_sacked(cx);
        if is_synchronized {
            // RFC 6582, section 4: duplicates of what is sent again mean nothing.
            cx.sides.cold.of(&mut self.cold).recover = self.high;
            self.set(Flag::HELD.or(Flag::TIMED_OUT));
        }
        self.dup_acks = 0;
        self.clear(Flag::TIMING.or(Flag::SLOWED));
        self.next = self.una;
    }

    /// The window is closed: ask for it (RFC 9293, section 3.8.6.1). Or it is small, and stays
    /// so: use what there is (section 3.8.6.2.1).
    fn persist(&mut self, cx: &mut TcpContext<'_>, outcome: &mut Outcome) {
        cx.counters.persisttimeo += 1;
        self.probes = self.probes.saturating_add(1);
        if self.probes > RETRANSMISSIONS_MAX {
            cx.counters.persistdrop += 1;
            return self.give_up(cx, outcome);
        }
        self.backoff = (self.backoff + 1).min(RETRANSMISSIONS_MAX);
        self.set(Flag::PROBE);
    }

    /// Nothing was heard (RFC 9293, section 3.8.4), or the connection does not come to be.
    fn ask_for_life(&mut self, cx: &mut TcpContext<'_>, outcome: &mut Outcome) {
        if !self.is_synchronized() {
            cx.counters.keeptimeo += 1;
            cx.counters.keepdrops += 1;
            return self.give_up(cx, outcome);
        }
        // "Keep-alive packets MUST only be sent when no sent data is outstanding"; what is has a
        // timer of its own.
        let is_waiting = self.una != self.high || self.has(Flag::PERSIST);
        let silent_ms = cx.now_ms.wrapping_sub(self.heard_ms);
        let idle_ms = cx.tunables.keepalive_idle_ms;
        if is_waiting || self.probes == 0 && silent_ms < idle_ms {
            let from_ms = if is_waiting { cx.now_ms } else { self.heard_ms };
            return self.timers.set(Timer::Keep, from_ms.wrapping_add(idle_ms));
        }
        cx.counters.keeptimeo += 1;
        if self.probes >= cx.tunables.keepalive_probes_max {
            cx.counters.keepdrops += 1;
            return self.give_up(cx, outcome);
        }
        cx.counters.keepprobe += 1;
        self.probes = self.probes.saturating_add(1);
        self.set(Flag::KEEP_PROBE);
        let at_ms = cx.now_ms.wrapping_add(cx.tunables.keepalive_interval_ms);
        self.timers.set(Timer::Keep, at_ms);
    }

    /// The other side has our FIN and is to send its own. RFC 9293 would wait for ever; all systems
    /// give up at some time when nobody reads here any more, and BSD after as long as it would ask a
    /// silent side for life. Data starts the time anew.
    pub(super) fn wait_for_fin(&mut self, cx: &TcpContext<'_>) {
        let wait_ms = cx.tunables.fin_wait_ms();
        self.timers
            .set(Timer::TimeWait, cx.now_ms.wrapping_add(wait_ms));
    }

    /// The other side did not close in time. While it does not answer either, the questions for life
    /// say when it is over.
    fn tire_of_waiting(&mut self, cx: &mut TcpContext<'_>, outcome: &mut Outcome) {
        if self.probes == 0 {
            return self.give_up(cx, outcome);
        }
        let again_ms = cx.now_ms.wrapping_add(cx.tunables.keepalive_interval_ms);
        self.timers.set(Timer::TimeWait, again_ms);
    }

    /// Ends the connection without hope; the other side is told once if it may know of us.
    fn give_up(&mut self, cx: &mut TcpContext<'_>, outcome: &mut Outcome) {
        if self.state == TcpState::SynSent {
            return self.end(cx, End::TimedOut, outcome);
        }
        self.abort();
        self.set(Flag::GIVEN_UP);
        outcome.ended = Some(End::TimedOut);
    }
}
