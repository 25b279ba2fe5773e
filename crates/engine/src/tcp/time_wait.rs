//! What is left of a connection in TIME-WAIT: enough that whatever comes late is answered as the
//! connection itself would answer it.

use super::cold::ColdState;
use super::connection::{Connection, Flag, TcpState, WindowScales};
use super::counters::TcpCounters;
use super::info::Info;
use super::recovery::RecoveryPool;
use super::seq::Seq;
use super::timers::{Timer, Timers};
use super::tunables::Tunables;

/// True of every connection in TIME-WAIT.
const DONE: Flag = Flag::FIN_WANTED
    .or(Flag::FIN_SENT)
    .or(Flag::SYN_DONE)
    .or(Flag::PEER_CLOSED);
/// What is remembered, in the order of their bits.
const KEPT: [Flag; 4] = [Flag::TIMESTAMPS, Flag::SACK, Flag::ECN, Flag::SCALED];
/// With one of these there is more to it than waiting.
const UNREST: Flag = Flag::ACK_NOW
    .or(Flag::RESET)
    .or(Flag::ECN_ECHO)
    .or(Flag::RECOVERY)
    .or(Flag::RESEND)
    .or(Flag::PERSIST)
    .or(Flag::PROBE)
    .or(Flag::KEEP_PROBE)
    .or(Flag::EARLY_FIN);
/// These say how marks of routers are taken (ECN), and mean nothing without it.
const SLOW: Flag = Flag::HELD.or(Flag::SLOWED);

/// A connection in TIME-WAIT. Packed, as most connections of a test are in it.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(1))]
pub struct TimeWait {
    /// After our FIN: all that was sent is acknowledged.
    next: Seq,
    /// After the other side's FIN.
    expected: Seq,
    /// The timestamp to echo.
    timestamp: u32,
    /// When it is over, by TCP's clock.
    until_ms: u32,
    /// The largest window of the other side, and the one that was offered, by their scales.
    send_window_max: u16,
    receive_window: u16,
    /// The scale of the other side's windows; above it [`KEPT`].
    kept: u8,
}

impl Connection {
    /// What is left of it in TIME-WAIT; `None` while it is elsewhere, or has something else to do.
    /// It may be forgotten then, after [`release`](Connection::release).
    #[inline(always)]
    pub fn to_time_wait(&self, now_ms: u32, sides: &RecoveryPool) -> Option<TimeWait> {
        let until_ms = self.timers.only(Timer::TimeWait)?;
        let is_done = self.state == TcpState::TimeWait
            && self.flags.contains(DONE)
            && !self.has(UNREST)
            && !(self.has(Flag::ECN) && self.has(SLOW))
            && !self.side.is_some()
            && self.probes == 0;
        let is_quiet = self.una == self.end + 1
            && self.una == self.next
            && self.una == self.high
            && self.last_ack_sent == self.expected
            && !sides.cold.has_answered(self.cold, now_ms);
        if !is_done || !is_quiet {
            return None;
        }
        let mut kept = self.scales.send();
        for (place, flag) in KEPT.into_iter().enumerate() {
            kept |= u8::from(self.has(flag)) << (4 + place);
        }
        let offered = self.expected.until(self.offered);
        Some(TimeWait {
            next: self.next,
            expected: self.expected,
            timestamp: self.timestamp,
            until_ms,
            send_window_max: scaled(self.send_window_max, self.scales.send()),
            receive_window: scaled(offered, self.scales.receive()),
            kept,
        })
    }
}

impl TimeWait {
    /// The connection again, as one in TIME-WAIT: of round trips and losses nothing is known any
    /// more.
    pub fn connection(self, tunables: &Tunables) -> Connection {
        let mut flags = DONE;
        for (place, flag) in KEPT.into_iter().enumerate() {
            if self.kept >> (4 + place) & 1 == 1 {
                flags = flags.or(flag);
            }
        }
        let receive_scale = match flags.contains(Flag::SCALED) {
            true => tunables.window_scale(),
            false => 0,
        };
        let send_scale = self.kept & 0xf;
        let window = u32::from(self.send_window_max) << send_scale;
        let heard_ms = self.until_ms.wrapping_sub(tunables.time_wait_ms);
        let mut timers = Timers::default();
        timers.set(Timer::TimeWait, self.until_ms);
        Connection {
            flags,
            scales: WindowScales::new(send_scale, receive_scale),
            timers,
            end: self.next - 1,
            expected: self.expected,
            offered: self.expected + (u32::from(self.receive_window) << receive_scale),
            last_ack_sent: self.expected,
            window_seq: self.expected - 1,
            send_window: window,
            send_window_max: window,
            timestamp: self.timestamp,
            ..Connection::new(tunables, heard_ms, self.next, TcpState::TimeWait)
        }
    }

    /// A look at it. Round trips, windows and losses are forgotten: they are 0.
    pub fn info(self, tunables: &Tunables) -> Info {
        Info {
            timeout_ms: 0,
            congestion_window_bytes: 0,
            ..self
                .connection(tunables)
                .info_with(tunables, &ColdState::NOTHING)
        }
    }

    /// When it is over, by TCP's clock.
    #[inline]
    pub fn until_ms(self) -> u32 {
        self.until_ms
    }

    /// It is over at another time.
    pub fn set_until_ms(&mut self, until_ms: u32) {
        self.until_ms = until_ms;
    }

    /// Its time has come, or nobody will send anything any more.
    pub fn finish(self, counters: &mut TcpCounters) {
        counters.closed += 1;
    }
}

/// A window as a field of a segment says it, rounded up.
fn scaled(bytes: u32, scale: u8) -> u16 {
    bytes.div_ceil(1 << scale).min(0xffff) as u16
}

/// Hundreds of thousands of them are held at once.
const _: () = assert!(std::mem::size_of::<TimeWait>() == 21);
