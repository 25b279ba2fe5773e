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
    pub fn audit(&self, sides: &RecoveryPool, progress: Progress) -> Result<(), &'static str> {
        if self.is_closed() {
            return self.audit_closed();
        }
        self.audit_numbers(sides)?;
        self.audit_windows()?;
        self.audit_side(sides)?;
        if progress == Progress::Done {
            self.audit_timers()?;
        }
        Ok(())
    }

    fn audit_closed(&self) -> Result<(), &'static str> {
        let holds_none = !self.side.is_some() && !self.cold.is_some();
        rule(holds_none, "a closed connection holds no block")?;
        rule(
            self.timers.first_ms(0).is_none(),
            "a closed connection has no timer",
        )
    }

    fn audit_numbers(&self, sides: &RecoveryPool) -> Result<(), &'static str> {
        let fin = u32::from(self.has(Flag::FIN_SENT));
        rule(!self.next.is_before(self.una), "una <= next")?;
        rule(!self.high.is_before(self.next), "next <= high")?;
        rule(
            !self.high.is_after(self.end + fin),
            "high <= end, and the FIN",
        )?;
        rule(!self.expected.is_after(self.offered), "expected <= offered")?;
        rule(
            !self.last_ack_sent.is_after(self.expected),
            "acknowledged <= expected",
        )?;
        if self.has(Flag::RECOVERY) {
            let recover = sides.cold.look(self.cold).recover;
            rule(self.una.is_before(recover), "una < recover in a repair")?;
            rule(!recover.is_after(self.high), "recover <= high in a repair")?;
        }
        let needs_cold = Flag::RECOVERY
            .or(Flag::HELD)
            .or(Flag::SLOWED)
            .or(Flag::EARLY_FIN);
        rule(
            !self.has(needs_cold) || self.cold.is_some(),
            "what a repair and an early FIN need is kept",
        )?;
        rule(
            !self.has(Flag::RESEND) || self.has(Flag::RECOVERY),
            "resend only in a repair",
        )?;
        let is_begun = self.has(Flag::SYN_DONE);
        rule(
            is_begun == self.is_synchronized(),
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
            self.send_window <= self.send_window_max,
            "the largest window is the largest",
        )
    }

    fn audit_side(&self, sides: &RecoveryPool) -> Result<(), &'static str> {
        let Some(side) = sides.look(self.side) else {
            let needs_none = !self.has(Flag::RECOVERY) || !self.has(Flag::SACK);
            return rule(needs_none, "a repair with SACK has a block");
        };
        let is_used = !side.arrived.is_empty() || !side.sacked.is_empty();
        rule(
            is_used || self.has(Flag::RECOVERY),
            "a block without use is given back",
        )?;
        rule(
            side.arrived.is_empty() || side.pieces > 0,
            "what arrived is made of pieces",
        )?;
        between(
            &side.arrived,
            self.expected,
            self.offered,
            "arrived: in the window",
        )?;
        between(&side.sacked, self.una, self.high, "sacked: under way")
    }

    /// No timer is lost: what waits for the other side has one.
    fn audit_timers(&self) -> Result<(), &'static str> {
        let is_set = |timer| self.timers.is_set(timer);
        rule(!self.has(Flag::RESET), "a reset leaves at once")?;
        rule(
            !is_set(Timer::TimeWait) || !is_set(Timer::Retransmit),
            "what shares its time is not set twice",
        )?;
        if self.state == TcpState::TimeWait {
            return rule(is_set(Timer::TimeWait), "TIME-WAIT ends");
        }
        rule(is_set(Timer::Keep), "silence is noticed")?;
        let waits = self.una != self.high || self.next.is_before(self.end);
        let asks = waits || !self.is_synchronized();
        rule(
            !asks || is_set(Timer::Retransmit),
            "what is under way times out",
        )?;
        let has_fin_left = self.has(Flag::FIN_WANTED) && !self.has(Flag::FIN_SENT);
        rule(
            !has_fin_left || waits || !self.is_synchronized(),
            "the end leaves after the data",
        )?;
        let owes = self.last_ack_sent != self.expected;
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
