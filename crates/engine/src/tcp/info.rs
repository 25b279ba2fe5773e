//! What can be seen of a connection from outside (`tcp_info` in other systems).

use super::cold::ColdState;
use super::connection::{Connection, Flag, TcpState};
use super::recovery::RecoveryPool;
use super::seq::Seq;
use super::tunables::Tunables;

/// A look at a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// Where it stands.
    pub state: TcpState,
    /// Whether both sides use timestamps.
    pub timestamps: bool,
    /// Whether both use SACK.
    pub sack: bool,
    /// Whether both use ECN.
    pub ecn: bool,
    /// The shift of windows that the other side tells, and of ours; `None` where they are not
    /// scaled.
    pub window_scales: Option<(u8, u8)>,
    /// The retransmission timeout in ms.
    pub timeout_ms: u32,
    /// The smoothed round trip in µs, 0 when none was measured.
    pub round_trip_us: u32,
    /// How much it varies.
    pub round_trip_variation_us: u32,
    /// The slow start threshold in bytes, `None` before any loss.
    pub threshold_bytes: Option<u32>,
    /// The congestion window in bytes.
    pub congestion_window_bytes: u32,
    /// The window of the other side in bytes.
    pub send_window_bytes: u32,
    /// The window that is offered, in bytes.
    pub receive_window_bytes: u32,
    /// The next number to send.
    pub next: Seq,
    /// The next number that is expected.
    pub expected: Seq,
    /// Bytes of data in a full segment to send.
    pub send_mss_bytes: u16,
    /// Bytes of data in a segment that we asked for.
    pub receive_mss_bytes: u16,
    /// When something was heard last, in ms.
    pub heard_ms: u32,
    /// Segments with data sent again, 65,535 at most.
    pub resent_segments: u16,
    /// Segments that came out of order, 65,535 at most.
    pub disordered_segments: u16,
    /// Times that the other side closed its window, 65,535 at most.
    pub closed_windows: u16,
}

impl Connection {
    /// A look at it.
    pub fn info(&self, tunables: &Tunables, sides: &RecoveryPool) -> Info {
        self.info_with(tunables, sides.cold.look(self.cold))
    }

    /// The same, with what its block in the pool says.
    pub(super) fn info_with(&self, tunables: &Tunables, cold: &ColdState) -> Info {
        let scales = (self.scales.send(), self.scales.receive());
        Info {
            state: self.state,
            timestamps: self.has(Flag::TIMESTAMPS),
            sack: self.has(Flag::SACK),
            ecn: self.has(Flag::ECN),
            window_scales: self.has(Flag::SCALED).then_some(scales),
            timeout_ms: self.rtt.timeout_ms(self.backoff),
            round_trip_us: self.rtt.smoothed_us(),
            round_trip_variation_us: self.rtt.variation_us(),
            threshold_bytes: self.congestion.threshold(),
            congestion_window_bytes: self.congestion.window_bytes,
            send_window_bytes: self.send_window,
            receive_window_bytes: self.expected.until(self.offered),
            next: self.next,
            expected: self.expected,
            send_mss_bytes: self.mss,
            receive_mss_bytes: tunables.mss_bytes,
            heard_ms: self.heard_ms,
            resent_segments: cold.resent_segments,
            disordered_segments: cold.disordered_segments,
            closed_windows: cold.closed_windows,
        }
    }
}
