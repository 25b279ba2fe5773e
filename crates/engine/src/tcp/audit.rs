//! What always holds of a connection, whatever arrives: for tests that throw anything at it.
//!
//! Nothing here is called while traffic runs.

use super::connection::{Connection, Flag, TcpState};
use super::output::Progress;
use super::ranges::Ranges;
use super::recovery::RecoveryPool;
use super::seq::Seq;
use super::timers::Timer;

impl Connection {
    /// Says which rule does not hold. `progress` is how the last
    /// [`poll_transmit`](Connection::poll_transmit) ended, after which nothing else was called.
    ///
    /// # Errors
    /// The rule, in words.
    pub fn audit(&self, pool: &RecoveryPool, progress: Progress) -> Result<(), &'static str> {
        if self.is_closed() {
            return self.audit_closed();
        }
        self.audit_numbers(pool)?;
        self.audit_windows()?;
        self.audit_recovery(pool)?;
        if progress == Progress::Done {
            self.audit_timers()?;
        }
        Ok(())
    }

    fn audit_closed(&self) -> Result<(), &'static str> {
        let holds_none = !self.recovery.is_some() && !self.cold.is_some();
        rule(holds_none, "a closed connection holds no state")?;
        rule(
            self.timers.first_ms(0).is_none(),
            "a closed connection has no timer",
        )
    }

    fn audit_numbers(&self, pool: &RecoveryPool) -> Result<(), &'static str> {
        let fin = u32::from(self.has(Flag::FIN_SENT));
        rule(!self.snd_nxt.is_before(self.snd_una), "snd_una <= snd_nxt")?;
        rule(!self.snd_max.is_before(self.snd_nxt), "snd_nxt <= snd_max")?;
        rule(
            !self.snd_max.is_after(self.write_seq + fin),
            "snd_max <= write_seq, and the FIN",
        )?;
        rule(!self.rcv_nxt.is_after(self.rcv_adv), "rcv_nxt <= rcv_adv")?;
        rule(
            !self.last_ack_sent.is_after(self.rcv_nxt),
            "last_ack_sent <= rcv_nxt",
        )?;
        if self.has(Flag::FAST_RECOVERY) {
            let recover = pool.cold.get(self.cold).recover;
            rule(
                self.snd_una.is_before(recover),
                "snd_una < recover in fast recovery",
            )?;
            rule(
                !recover.is_after(self.snd_max),
                "recover <= snd_max in fast recovery",
            )?;
        }
        let needs_cold = Flag::FAST_RECOVERY
            .or(Flag::BELOW_RECOVER)
            .or(Flag::CONGESTION_RECOVERY)
            .or(Flag::FIN_OUT_OF_ORDER);
        rule(
            !self.has(needs_cold) || self.cold.is_some(),
            "what recovery and an early FIN need is kept",
        )?;
        rule(
            !self.has(Flag::RETRANSMIT_NOW) || self.has(Flag::FAST_RECOVERY),
            "a fast retransmit only in fast recovery",
        )?;
        let is_syn_acked = self.has(Flag::SYN_ACKED);
        rule(
            is_syn_acked == self.is_synchronized(),
            "synchronized when the SYN is acknowledged",
        )
    }

    fn audit_windows(&self) -> Result<(), &'static str> {
        let mss = u32::from(self.mss);
        rule(self.mss > 0, "segments have bytes")?;
        rule(
            self.congestion.window_bytes >= mss,
            "the window has room for a segment",
        )?;
        rule(
            self.congestion.window_bytes <= 1 << 31,
            "the window is not absurd",
        )?;
        let threshold = self.congestion.threshold();
        rule(
            threshold.is_none_or(|bytes| bytes >= 2 * mss),
            "the threshold is two segments",
        )?;
        rule(
            self.snd_wnd <= self.max_snd_wnd,
            "the largest window is the largest",
        )
    }

    fn audit_recovery(&self, pool: &RecoveryPool) -> Result<(), &'static str> {
        let Some(state) = pool.get(self.recovery) else {
            let needs_none = !self.has(Flag::FAST_RECOVERY) || !self.has(Flag::SACK);
            return rule(needs_none, "fast recovery with SACK has its state");
        };
        let is_used = !state.received.is_empty() || !state.sacked.is_empty();
        rule(
            is_used || self.has(Flag::FAST_RECOVERY),
            "a state without use is given back",
        )?;
        rule(
            state.received.is_empty() || state.pieces > 0,
            "what was received is made of pieces",
        )?;
        between(
            &state.received,
            self.rcv_nxt,
            self.rcv_adv,
            "received: in the window",
        )?;
        between(
            &state.sacked,
            self.snd_una,
            self.snd_max,
            "sacked: in flight",
        )
    }

    /// No timer is lost: what waits for the peer has one.
    fn audit_timers(&self) -> Result<(), &'static str> {
        let is_set = |timer| self.timers.is_set(timer);
        rule(!self.has(Flag::SEND_RST), "a reset leaves at once")?;
        rule(
            !is_set(Timer::TimeWait) || !is_set(Timer::Retransmit),
            "what shares its time is not set twice",
        )?;
        if self.state == TcpState::TimeWait {
            return rule(is_set(Timer::TimeWait), "TIME-WAIT ends");
        }
        rule(is_set(Timer::Keep), "silence is noticed")?;
        let waits = self.snd_una != self.snd_max || self.snd_nxt.is_before(self.write_seq);
        let is_pending = waits || !self.is_synchronized();
        rule(
            !is_pending || is_set(Timer::Retransmit),
            "what is in flight times out",
        )?;
        let has_fin_left = self.has(Flag::FIN_QUEUED) && !self.has(Flag::FIN_SENT);
        rule(
            !has_fin_left || waits || !self.is_synchronized(),
            "the end leaves after the data",
        )?;
        let owes = self.last_ack_sent != self.rcv_nxt;
        rule(
            !owes || is_set(Timer::DelayedAck),
            "what arrived is acknowledged",
        )?;
        rule(!self.has(Flag::ACK_NOW), "at once means at once")
    }
}

fn rule(holds: bool, name: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(name) }
}

/// All of the ranges lie beyond `from` and end by `to`, in order and apart.
fn between(ranges: &Ranges, from: Seq, to: Seq, name: &'static str) -> Result<(), &'static str> {
    let mut last = from;
    for (left, right) in ranges.as_slice() {
        let is_beyond = left.is_after(last) || *left == last && last == from;
        rule(
            is_beyond && right.is_after(*left) && !right.is_after(to),
            name,
        )?;
        last = *right;
    }
    Ok(())
}
