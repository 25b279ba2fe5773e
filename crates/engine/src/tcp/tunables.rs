//! How a side of a connection behaves, as the user set it.

/// Bytes that a segment may have when the peer does not say (RFC 9293, section 3.7.1).
pub const MSS_BYTES_DEFAULT: u16 = 536;

/// What a peer asks for in vain to have less of: BSD's floor, and TRex's. Without one a SYN would have
/// us send a packet for each byte. A smaller segment of our own choice (`tcp.mss`) holds.
pub const MSS_BYTES_MIN: u16 = 64;

/// Which congestion control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CongestionAlgorithm {
    /// RFC 5681 and RFC 6582.
    #[default]
    NewReno,
    /// RFC 9438.
    Cubic,
    /// As BSD of 1994: in slow start by a segment with each acknowledgment, however much it covers
    /// and whether the window was used or not (RFC 2581).
    Reno,
}

/// Explicit congestion notification (RFC 3168).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// Not used.
    #[default]
    Off,
    /// Asked for when connecting, and granted.
    Active,
    /// Granted to who asks.
    Passive,
}

/// Deadlines go round after 2³² ms: this is far from it.
const FIN_WAIT_MS_MAX: u32 = 1 << 30;

/// How a side behaves. Sizes are in bytes, times in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tunables {
    /// The largest segment to send and to ask for, 1 to 9216.
    pub mss_bytes: u16,
    /// The congestion window of the beginning in segments, 1 to 20.
    pub initial_window_segments: u8,
    /// The window that is offered, 1 KiB to 1 GiB.
    pub receive_buffer_bytes: u32,
    /// How much may wait for its acknowledgment, 1 KiB to 1 GiB.
    pub transmit_buffer_bytes: u32,
    /// Whether short segments leave at once (no Nagle, RFC 9293 section 3.7.4).
    pub no_delay: bool,
    /// Whether each segment with data says PSH.
    pub always_push: bool,
    /// Received bytes that are acknowledged at once; 0 for every second full segment.
    pub acknowledge_bytes: u16,
    /// Duplicate acknowledgments that mean loss, 1 to 10.
    pub duplicates_max: u8,
    /// Window scaling and timestamps (RFC 7323).
    pub rfc1323: bool,
    /// Selective acknowledgments (RFC 2018).
    pub sack: bool,
    /// Congestion control.
    pub congestion: CongestionAlgorithm,
    /// Explicit congestion notification.
    pub ecn: Ecn,
    /// Pieces that are kept out of order, 0 to 1000.
    pub reassembly_pieces_max: u16,
    /// Whether the timeout before any round trip was measured is 3 s (RFC 2988), not 1 s: for slow
    /// paths.
    pub patient: bool,
    /// How long a connection may take to be there.
    pub connect_timeout_ms: u32,
    /// Silence after which the peer is asked whether it is still there.
    pub keepalive_idle_ms: u32,
    /// Time between such questions.
    pub keepalive_interval_ms: u32,
    /// Questions without answer after which the connection is given up.
    pub keepalive_probes_max: u8,
    /// How long an acknowledgment may wait for company.
    pub delayed_ack_ms: u32,
    /// How long the side that closed first remembers the connection (2 MSL, RFC 9293 section
    /// 3.6.1).
    pub time_wait_ms: u32,
}

impl Default for Tunables {
    fn default() -> Tunables {
        Tunables {
            mss_bytes: 1460,
            initial_window_segments: 10,
            receive_buffer_bytes: 32 * 1024,
            transmit_buffer_bytes: 32 * 1024,
            no_delay: false,
            always_push: false,
            acknowledge_bytes: 0,
            duplicates_max: 3,
            rfc1323: true,
            sack: true,
            congestion: CongestionAlgorithm::NewReno,
            ecn: Ecn::Off,
            reassembly_pieces_max: 100,
            patient: false,
            connect_timeout_ms: 5_000,
            keepalive_idle_ms: 5_000,
            keepalive_interval_ms: 7_000,
            keepalive_probes_max: 8,
            delayed_ack_ms: 100,
            // Millions of connections a minute would fill the memory with what is over; a second
            // is enough for the peer to send its FIN three times.
            time_wait_ms: 1_000,
        }
    }
}

impl Tunables {
    /// How long a side that has closed waits for the other to do so, after its last data.
    pub fn fin_wait_ms(&self) -> u32 {
        let probes = u32::from(self.keepalive_probes_max);
        let wait_ms = self.keepalive_interval_ms.saturating_mul(probes);
        wait_ms.min(FIN_WAIT_MS_MAX)
    }

    /// The shift that lets a 16-bit field say the receive buffer (RFC 7323 section 2.3: at most
    /// 14).
    pub fn window_scale(&self) -> u8 {
        let shift = (0..14).find(|shift| self.receive_buffer_bytes >> shift <= 0xffff);
        shift.unwrap_or(14)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_scale_is_the_smallest_that_is_enough() {
        let scale = |receive_buffer_bytes| {
            let tunables = Tunables {
                receive_buffer_bytes,
                ..Tunables::default()
            };
            tunables.window_scale()
        };
        assert_eq!([scale(0xffff), scale(0x1_0000), scale(1 << 20)], [0, 1, 5]);
        assert_eq!(scale(1 << 30), 14);
    }
}
