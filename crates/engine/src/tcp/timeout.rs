//! The timers of a connection expire.

use super::connection::{Connection, Flag, TcpContext, TcpState};
use super::outcome::{End, Outcome};
use super::timers::{TIMERS, Timer};

/// Unanswered retransmissions after which a connection is given up (BSD's TCP_MAXRXTSHIFT).
const RETRANSMISSIONS_MAX: u8 = 12;

impl Connection {
    /// In how many milliseconds [`handle_timeout`](Connection::handle_timeout) is due.
    #[inline]
    pub fn poll_timeout(&self, now_ms: u32) -> Option<u32> {
        self.timers.first_ms(now_ms)
    }

    /// Handles the timers that are due. It may be called too early.
    pub fn handle_timeout(&mut self, cx: &mut TcpContext<'_>) -> Outcome {
        let mut outcome = Outcome::default();
        for timer in TIMERS {
            if !self.timers.is_due(timer, cx.now_ms) {
                continue;
            }
            self.timers.stop(timer);
            match timer {
                Timer::Retransmit if self.has(Flag::PERSIST) => {
                    self.persist_timeout(cx, &mut outcome)
                }
                Timer::Retransmit => self.retransmission_timeout(cx, &mut outcome),
                Timer::DelayedAck => {
                    cx.counters.delack += 1;
                    self.set(Flag::ACK_NOW);
                }
                Timer::Keep => self.keepalive_timeout(cx, &mut outcome),
                Timer::TimeWait if self.state == TcpState::FinWait2 => {
                    self.fin_wait_2_timeout(cx, &mut outcome);
                }
                Timer::TimeWait => self.enter_closed(cx, End::Closed, &mut outcome),
            }
        }
        outcome
    }

    /// The retransmission timer expired (RFC 6298, rules 5.4 to 5.7).
    fn retransmission_timeout(&mut self, cx: &mut TcpContext<'_>, outcome: &mut Outcome) {
        self.backoff += 1;
        let is_synchronized = self.is_synchronized();
        if self.backoff > RETRANSMISSIONS_MAX {
            cx.counters.timeoutdrop += 1;
            return self.give_up(cx, outcome);
        }
        if !is_synchronized {
            cx.counters.rexmttimeo_syn += 1;
        } else if self.snd_wnd == 0 && self.snd_una.is_before(self.write_seq) {
            // "If the window shrinks to zero, the TCP implementation MUST probe it in the
            // standard way" (RFC 9293, section 3.8.6.2.1).
            self.backoff -= 1;
            self.persist_timeout(cx, outcome);
        } else {
            cx.counters.rexmttimeo += 1;
            // In fast recovery much of it was received: the window says how much is in flight.
            let flight = self
                .snd_una
                .until(self.snd_max)
                .min(self.congestion.window_bytes);
            let (algorithm, mss) = (cx.tunables.congestion, u32::from(self.mss));
            let is_first = !self.has(Flag::RTO_EXPIRED);
            let cubic = &mut cx.recovery.cold.of(&mut self.cold).cubic;
            self.congestion
                .handle_timeout(algorithm, flight, mss, is_first, cubic);
        }
        self.exit_recovery(cx);
        self.forget_sacked(cx);
        if is_synchronized {
            // RFC 6582, section 4: duplicate ACKs of what is sent again mean nothing.
            cx.recovery.cold.of(&mut self.cold).recover = self.snd_max;
            self.set(Flag::BELOW_RECOVER.or(Flag::RTO_EXPIRED));
        }
        self.dup_acks = 0;
        self.clear(Flag::RTT_TIMING.or(Flag::CONGESTION_RECOVERY));
        self.snd_nxt = self.snd_una;
    }

    /// The persist timer expired: the window is zero and is probed (RFC 9293, section 3.8.6.1), or it is
    /// small and stays so, and what there is of it is used (section 3.8.6.2.1).
    fn persist_timeout(&mut self, cx: &mut TcpContext<'_>, outcome: &mut Outcome) {
        cx.counters.persisttimeo += 1;
        self.probes = self.probes.saturating_add(1);
        if self.probes > RETRANSMISSIONS_MAX {
            cx.counters.persistdrop += 1;
            return self.give_up(cx, outcome);
        }
        self.backoff = (self.backoff + 1).min(RETRANSMISSIONS_MAX);
        self.set(Flag::WINDOW_PROBE);
    }

    /// The keepalive timer expired (RFC 9293, section 3.8.4), or the connect timeout.
    fn keepalive_timeout(&mut self, cx: &mut TcpContext<'_>, outcome: &mut Outcome) {
        if !self.is_synchronized() {
            cx.counters.keeptimeo += 1;
            cx.counters.keepdrops += 1;
            return self.give_up(cx, outcome);
        }
        // "Keep-alive packets MUST only be sent when no sent data is outstanding"; what is has a
        // timer of its own.
        let is_waiting = self.snd_una != self.snd_max || self.has(Flag::PERSIST);
        let idle_for_ms = cx.now_ms.wrapping_sub(self.last_received_ms);
        let idle_ms = cx.tunables.keepalive_idle_ms;
        if is_waiting || self.probes == 0 && idle_for_ms < idle_ms {
            let from_ms = if is_waiting {
                cx.now_ms
            } else {
                self.last_received_ms
            };
            return self.timers.set(Timer::Keep, from_ms.wrapping_add(idle_ms));
        }
        cx.counters.keeptimeo += 1;
        if self.probes >= cx.tunables.keepalive_probes_max {
            cx.counters.keepdrops += 1;
            return self.give_up(cx, outcome);
        }
        cx.counters.keepprobe += 1;
        self.probes = self.probes.saturating_add(1);
        self.set(Flag::KEEPALIVE_PROBE);
        let at_ms = cx.now_ms.wrapping_add(cx.tunables.keepalive_interval_ms);
        self.timers.set(Timer::Keep, at_ms);
    }

    /// Starts the FIN-WAIT-2 timer. RFC 9293 would wait for the peer's FIN for ever; all systems give up
    /// once the application has closed, and BSD after as long as it would probe a silent peer. Data
    /// restarts the timer.
    pub(super) fn start_fin_wait_2(&mut self, cx: &TcpContext<'_>) {
        let wait_ms = cx.tunables.fin_wait_ms();
        self.timers
            .set(Timer::TimeWait, cx.now_ms.wrapping_add(wait_ms));
    }

    /// The FIN-WAIT-2 timer expired. While keepalive probes are not answered, they decide when the
    /// connection is dropped.
    fn fin_wait_2_timeout(&mut self, cx: &mut TcpContext<'_>, outcome: &mut Outcome) {
        if self.probes == 0 {
            return self.give_up(cx, outcome);
        }
        let again_ms = cx.now_ms.wrapping_add(cx.tunables.keepalive_interval_ms);
        self.timers.set(Timer::TimeWait, again_ms);
    }

    /// Drops the connection, as the peer does not answer; with a RST where it may know the connection.
    fn give_up(&mut self, cx: &mut TcpContext<'_>, outcome: &mut Outcome) {
        if self.state == TcpState::SynSent {
            return self.enter_closed(cx, End::TimedOut, outcome);
        }
        self.abort();
        self.set(Flag::TIMED_OUT);
        outcome.ended = Some(End::TimedOut);
    }
}
