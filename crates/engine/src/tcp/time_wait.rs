//! What is left of a connection in TIME-WAIT: enough that a late segment is answered as the
//! connection itself would answer it.

use super::cold::ColdState;
use super::connection::{Connection, Flag, TcpState, WindowScales};
use super::counters::TcpCounters;
use super::info::Info;
use super::recovery::RecoveryPool;
use super::seq::Seq;
use super::timers::{Timer, Timers};
use super::tunables::Tunables;

/// Flags of every connection in TIME-WAIT.
const DONE: Flag = Flag::FIN_QUEUED.or(Flag::FIN_SENT).or(Flag::SYN_ACKED);
/// Flags that are kept, in the order of their bits.
const KEPT: [Flag; 4] = [
    Flag::TIMESTAMPS,
    Flag::SACK,
    Flag::ECN,
    Flag::WINDOW_SCALING,
];
/// With one of these a connection has more to do than to wait.
const BUSY: Flag = Flag::ACK_NOW
    .or(Flag::SEND_RST)
    .or(Flag::SEND_ECE)
    .or(Flag::FAST_RECOVERY)
    .or(Flag::RETRANSMIT_NOW)
    .or(Flag::PERSIST)
    .or(Flag::WINDOW_PROBE)
    .or(Flag::KEEPALIVE_PROBE)
    .or(Flag::FIN_OUT_OF_ORDER);
/// These say how the peer's ECE is taken, and mean nothing without ECN.
const REDUCED: Flag = Flag::BELOW_RECOVER.or(Flag::CONGESTION_RECOVERY);

/// A connection in TIME-WAIT. Packed, as most connections of a test are in it.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(1))]
pub struct TimeWait {
    /// Behind our FIN: all that was sent is acknowledged.
    snd_nxt: Seq,
    /// Behind the peer's FIN.
    rcv_nxt: Seq,
    /// The timestamp to echo.
    ts_recent: u32,
    /// When TIME-WAIT ends, by TCP's clock.
    until_ms: u32,
    /// The peer's largest window, and the one that was advertised, by their scales.
    max_snd_wnd: u16,
    rcv_wnd: u16,
    /// The scale of the peer's windows; above it [`KEPT`].
    kept: u8,
}

impl Connection {
    /// What is left of it in TIME-WAIT; `None` in other states, or while it has something else to do.
    /// It may be dropped then, after [`release`](Connection::release).
    #[inline(always)]
    pub fn to_time_wait(&self, now_ms: u32, pool: &RecoveryPool) -> Option<TimeWait> {
        let until_ms = self.timers.only(Timer::TimeWait)?;
        let is_done = self.state == TcpState::TimeWait
            && self.flags.contains(DONE)
            && !self.has(BUSY)
            && !(self.has(Flag::ECN) && self.has(REDUCED))
            && !self.recovery.is_some()
            && self.probes == 0;
        let is_all_acked = self.snd_una == self.write_seq + 1
            && self.snd_una == self.snd_nxt
            && self.snd_una == self.snd_max
            && self.last_ack_sent == self.rcv_nxt
            && !pool.cold.challenged_recently(self.cold, now_ms);
        if !is_done || !is_all_acked {
            return None;
        }
        let mut kept = self.scales.send();
        for (place, flag) in KEPT.into_iter().enumerate() {
            kept |= u8::from(self.has(flag)) << (4 + place);
        }
        let rcv_wnd = self.rcv_nxt.until(self.rcv_adv);
        Some(TimeWait {
            snd_nxt: self.snd_nxt,
            rcv_nxt: self.rcv_nxt,
            ts_recent: self.ts_recent,
            until_ms,
            max_snd_wnd: scaled(self.max_snd_wnd, self.scales.send()),
            rcv_wnd: scaled(rcv_wnd, self.scales.receive()),
            kept,
        })
    }
}

impl TimeWait {
    /// The connection again, as one in TIME-WAIT: round trips and losses are forgotten.
    pub fn connection(self, tunables: &Tunables) -> Connection {
        let mut flags = DONE;
        for (place, flag) in KEPT.into_iter().enumerate() {
            if self.kept >> (4 + place) & 1 == 1 {
                flags = flags.or(flag);
            }
        }
        let receive_scale = match flags.contains(Flag::WINDOW_SCALING) {
            true => tunables.window_scale(),
            false => 0,
        };
        let send_scale = self.kept & 0xf;
        let window = u32::from(self.max_snd_wnd) << send_scale;
        let last_received_ms = self.until_ms.wrapping_sub(tunables.time_wait_ms);
        let mut timers = Timers::default();
        timers.set(Timer::TimeWait, self.until_ms);
        Connection {
            flags,
            scales: WindowScales::new(send_scale, receive_scale),
            timers,
            write_seq: self.snd_nxt - 1,
            rcv_nxt: self.rcv_nxt,
            rcv_adv: self.rcv_nxt + (u32::from(self.rcv_wnd) << receive_scale),
            last_ack_sent: self.rcv_nxt,
            snd_wl1: self.rcv_nxt - 1,
            snd_wnd: window,
            max_snd_wnd: window,
            ts_recent: self.ts_recent,
            ..Connection::new(tunables, last_received_ms, self.snd_nxt, TcpState::TimeWait)
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

    /// When TIME-WAIT ends, by TCP's clock.
    #[inline]
    pub fn until_ms(self) -> u32 {
        self.until_ms
    }

    /// TIME-WAIT ends at another time.
    pub fn set_until_ms(&mut self, until_ms: u32) {
        self.until_ms = until_ms;
    }

    /// TIME-WAIT ends: its time has come, or no segments are under way any more.
    pub fn finish(self, counters: &mut TcpCounters) {
        counters.closed += 1;
    }
}

/// A window as a field of a segment says it, rounded up.
fn scaled(bytes: u32, scale: u8) -> u16 {
    bytes.div_ceil(1 << scale).min(0xffff) as u16
}

/// There are hundreds of thousands of them at once.
const _: () = assert!(std::mem::size_of::<TimeWait>() == 21);
