//! A snapshot of a connection for records of flows (Linux: `tcp_info`).

use super::cold::ColdState;
use super::connection::{Connection, Flag, TcpState};
use super::recovery::RecoveryPool;
use super::seq::Seq;
use super::tunables::Tunables;

/// A snapshot of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// Its state.
    pub state: TcpState,
    /// Whether timestamps were negotiated.
    pub timestamps: bool,
    /// Whether SACK was negotiated.
    pub sack: bool,
    /// Whether ECN was negotiated.
    pub ecn: bool,
    /// The shift count of the peer's windows, and of ours; `None` where windows are not scaled.
    pub window_scales: Option<(u8, u8)>,
    /// The retransmission timeout in ms.
    pub timeout_ms: u32,
    /// The smoothed round trip in µs, 0 when none was measured.
    pub round_trip_us: u32,
    /// Its variation in µs.
    pub round_trip_variation_us: u32,
    /// The slow start threshold in bytes, `None` before any loss.
    pub threshold_bytes: Option<u32>,
    /// The congestion window in bytes.
    pub congestion_window_bytes: u32,
    /// The peer's window in bytes (SND.WND).
    pub snd_wnd_bytes: u32,
    /// The window that was advertised, in bytes (RCV.WND).
    pub rcv_wnd_bytes: u32,
    /// The next sequence number to send (SND.NXT).
    pub snd_nxt: Seq,
    /// The next sequence number that is expected (RCV.NXT).
    pub rcv_nxt: Seq,
    /// Bytes of data in a full segment to send.
    pub send_mss_bytes: u16,
    /// Bytes of data in a segment that we asked for.
    pub receive_mss_bytes: u16,
    /// When a segment arrived last, in ms.
    pub last_received_ms: u32,
    /// Segments with data that were retransmitted, 65,535 at most.
    pub retransmitted_segments: u16,
    /// Segments that arrived out of order, 65,535 at most.
    pub out_of_order_segments: u16,
    /// Times that the peer closed its window, 65,535 at most.
    pub zero_windows: u16,
}

impl Connection {
    /// A snapshot of it.
    pub fn info(&self, tunables: &Tunables, pool: &RecoveryPool) -> Info {
        self.info_with(tunables, pool.cold.get(self.cold))
    }

    /// The same, with its cold state.
    pub(super) fn info_with(&self, tunables: &Tunables, cold: &ColdState) -> Info {
        let scales = (self.scales.send(), self.scales.receive());
        Info {
            state: self.state,
            timestamps: self.has(Flag::TIMESTAMPS),
            sack: self.has(Flag::SACK),
            ecn: self.has(Flag::ECN),
            window_scales: self.has(Flag::WINDOW_SCALING).then_some(scales),
            timeout_ms: self.rtt.timeout_ms(self.backoff),
            round_trip_us: self.rtt.smoothed_us(),
            round_trip_variation_us: self.rtt.variation_us(),
            threshold_bytes: self.congestion.threshold(),
            congestion_window_bytes: self.congestion.window_bytes,
            snd_wnd_bytes: self.snd_wnd,
            rcv_wnd_bytes: self.rcv_nxt.until(self.rcv_adv),
            snd_nxt: self.snd_nxt,
            rcv_nxt: self.rcv_nxt,
            send_mss_bytes: self.mss,
            receive_mss_bytes: tunables.mss_bytes,
            last_received_ms: self.last_received_ms,
            retransmitted_segments: cold.retransmitted_segments,
            out_of_order_segments: cold.out_of_order_segments,
            zero_windows: cold.zero_windows,
        }
    }
}
