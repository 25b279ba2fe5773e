//! Congestion control: NewReno (RFC 5681) and CUBIC (RFC 9438).

use super::tunables::{CongestionAlgorithm, Tunables};

/// How fast CUBIC grows, in segments per second cubed (RFC 9438, section 5).
const CUBIC_C: f64 = 0.4;
/// What CUBIC leaves of its window after a loss (section 4.6).
const CUBIC_BETA: f64 = 0.7;
/// By how much the window of a Reno flow with CUBIC's beta would grow in a round trip (section
/// 4.3).
const CUBIC_ALPHA: f64 = 3.0 * (1.0 - CUBIC_BETA) / (1.0 + CUBIC_BETA);
/// The largest window.
const WINDOW_BYTES_MAX: u32 = 1 << 30;
/// The threshold before any loss.
const THRESHOLD_BYTES_NONE: u32 = WINDOW_BYTES_MAX;

/// The congestion window of a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Congestion {
    /// Bytes that may be in flight.
    pub(super) window_bytes: u32,
    /// Below this the window grows with each acknowledgment (slow start), above it slowly.
    pub(super) threshold_bytes: u32,
    /// Bytes acknowledged that have not yet made the window grow.
    credit_bytes: u32,
}

/// What CUBIC remembers of a connection. Windows are in segments.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Cubic {
    /// The window before the last loss.
    window_max: f32,
    /// When the curve comes back to that window, in seconds from its beginning.
    plateau_s: f32,
    /// What a Reno flow would have by now.
    reno: f32,
    /// When the curve began; 0 when none has.
    epoch_ms: u32,
}

/// What [`Congestion::handle_acknowledged`] looks at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acknowledged {
    /// Bytes newly acknowledged.
    pub(super) bytes: u32,
    /// Whether what a timeout found lost is still being retransmitted.
    pub(super) after_timeout: bool,
    /// The segment size.
    pub(super) mss_bytes: u32,
    /// The smoothed round trip.
    pub(super) round_trip_us: u32,
    /// The time.
    pub(super) now_ms: u32,
}

impl Cubic {
    /// Before any loss, and after a timeout.
    pub(super) const NONE: Cubic = Cubic {
        window_max: 0.0,
        plateau_s: 0.0,
        reno: 0.0,
        epoch_ms: 0,
    };

    fn begin_curve(&mut self, window: f64, now_ms: u32) {
        self.epoch_ms = now_ms.max(1);
        self.reno = window as f32;
        if f64::from(self.window_max) <= window {
            self.window_max = window as f32;
            self.plateau_s = 0.0;
        } else {
            let missing = f64::from(self.window_max) - window;
            self.plateau_s = (missing / CUBIC_C).cbrt() as f32;
        }
    }

    /// Fast convergence (section 4.7): a loss below the last window leaves room for other flows.
    fn remember_loss(&mut self, window: f64) {
        let is_lower = window < f64::from(self.window_max);
        let share = if is_lower {
            (1.0 + CUBIC_BETA) / 2.0
        } else {
            1.0
        };
        *self = Cubic {
            window_max: (window * share) as f32,
            ..Cubic::NONE
        };
    }
}

impl Congestion {
    /// The window of the beginning.
    pub(super) fn new(tunables: &Tunables, mss_bytes: u32) -> Congestion {
        Congestion {
            window_bytes: u32::from(tunables.initial_window_segments) * mss_bytes,
            threshold_bytes: THRESHOLD_BYTES_NONE,
            credit_bytes: 0,
        }
    }

    /// The ACK advances SND.UNA outside of recovery. `cubic` is where CUBIC keeps
    /// its curve, asked for when it is needed.
    pub(super) fn handle_acknowledged<'a>(
        &mut self,
        algorithm: CongestionAlgorithm,
        ack: Acknowledged,
        cubic: impl FnOnce() -> &'a mut Cubic,
    ) {
        let grown = if self.window_bytes < self.threshold_bytes {
            // RFC 5681, section 3.1, with RFC 3465's limit of two segments an acknowledgment,
            // and of one after a timeout (section 2.3).
            let segments = if ack.after_timeout { 1 } else { 2 };
            match algorithm {
                CongestionAlgorithm::Reno => ack.mss_bytes,
                _ => ack.bytes.min(segments * ack.mss_bytes),
            }
        } else {
            match algorithm {
                CongestionAlgorithm::NewReno | CongestionAlgorithm::Reno => self.reno_growth(ack),
                CongestionAlgorithm::Cubic => self.cubic_growth(ack, cubic()),
            }
        };
        self.window_bytes = (self.window_bytes + grown).min(WINDOW_BYTES_MAX);
    }

    /// Congestion avoidance: a segment for each window that was acknowledged (RFC 3465).
    fn reno_growth(&mut self, ack: Acknowledged) -> u32 {
        self.credit_bytes += ack.bytes;
        if self.credit_bytes < self.window_bytes {
            return 0;
        }
        self.credit_bytes -= self.window_bytes;
        ack.mss_bytes
    }

    /// RFC 9438, sections 4.2 to 4.5.
    fn cubic_growth(&mut self, ack: Acknowledged, cubic: &mut Cubic) -> u32 {
        let mss = f64::from(ack.mss_bytes);
        let window = f64::from(self.window_bytes) / mss;
        let acked = f64::from(ack.bytes) / mss;
        if cubic.epoch_ms == 0 {
            cubic.begin_curve(window, ack.now_ms);
        }
        let passed_ms = ack.now_ms.wrapping_sub(cubic.epoch_ms);
        let passed_s = f64::from(passed_ms) / 1e3;
        let (window_max, plateau_s) = (f64::from(cubic.window_max), f64::from(cubic.plateau_s));
        let curve = |at_s: f64| CUBIC_C * (at_s - plateau_s).powi(3) + window_max;
        // As fast as Reno where that is faster (section 4.3): "Once W_est has grown to reach the
        // cwnd at the time of most recently setting ssthresh ... the sender SHOULD set" alpha "to
        // 1".
        let is_back = f64::from(cubic.reno) >= window_max;
        let alpha = if is_back { 1.0 } else { CUBIC_ALPHA };
        cubic.reno += (alpha * acked / window) as f32;
        let reno = f64::from(cubic.reno);
        let grown = if curve(passed_s) < reno {
            (reno - window).max(0.0)
        } else {
            // Section 4.2: where the curve will be after a round trip.
            let round_trip_s = f64::from(ack.round_trip_us) / 1e6;
            let target = curve(passed_s + round_trip_s).clamp(window, 1.5 * window);
            (target - window) / window * acked
        };
        // Parts of a byte add up over acknowledgments; they are kept as credit in 1/256.
        let grown = grown * mss * 256.0 + f64::from(self.credit_bytes);
        let grown = grown.min(f64::from(u32::MAX)) as u32;
        self.credit_bytes = grown % 256;
        grown / 256
    }

    /// A segment has left the network in fast recovery without SACK (RFC 6582).
    pub(super) fn inflate(&mut self, bytes: u32) {
        self.window_bytes = (self.window_bytes + bytes).min(WINDOW_BYTES_MAX);
    }

    /// A loss was detected, or the peer's ECE received, with `flight_bytes` in flight: the threshold is
    /// reduced. The caller sets the window, as that depends on the kind of recovery.
    pub(super) fn handle_congestion(
        &mut self,
        algorithm: CongestionAlgorithm,
        flight_bytes: u32,
        mss_bytes: u32,
        cubic: &mut Cubic,
    ) {
        self.credit_bytes = 0;
        let left = match algorithm {
            CongestionAlgorithm::NewReno | CongestionAlgorithm::Reno => flight_bytes / 2,
            CongestionAlgorithm::Cubic => {
                let window = f64::from(self.window_bytes) / f64::from(mss_bytes);
                cubic.remember_loss(window);
                (f64::from(flight_bytes) * CUBIC_BETA) as u32
            }
        };
        self.threshold_bytes = left.max(2 * mss_bytes);
    }

    /// The retransmission timer expired (RFC 5681, section 3.1, equation 4; once for a segment).
    pub(super) fn handle_timeout(
        &mut self,
        algorithm: CongestionAlgorithm,
        flight_bytes: u32,
        mss_bytes: u32,
        is_first: bool,
        cubic: &mut Cubic,
    ) {
        if is_first {
            self.handle_congestion(algorithm, flight_bytes, mss_bytes, cubic);
        }
        // "During the first congestion avoidance stage after a timeout ... K is set to 0, and
        // W_max is set to the congestion window size at the beginning of the current congestion
        // avoidance stage" (RFC 9438, section 4.8).
        *cubic = Cubic::NONE;
        self.credit_bytes = 0;
        self.window_bytes = mss_bytes;
    }

    /// Nothing was sent for longer than a timeout (RFC 5681, section 4.1).
    pub(super) fn restart_after_idle(
        &mut self,
        initial_window_bytes: u32,
        cubic: Option<&mut Cubic>,
    ) {
        self.window_bytes = self.window_bytes.min(initial_window_bytes);
        if let Some(cubic) = cubic {
            cubic.epoch_ms = 0;
        }
    }

    /// The threshold, `None` before any loss.
    pub(super) fn threshold(&self) -> Option<u32> {
        Some(self.threshold_bytes).filter(|bytes| *bytes != THRESHOLD_BYTES_NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1_000;

    fn acknowledged(bytes: u32, now_ms: u32) -> Acknowledged {
        Acknowledged {
            bytes,
            after_timeout: false,
            mss_bytes: MSS,
            round_trip_us: 100_000,
            now_ms,
        }
    }

    fn unused() -> &'static mut Cubic {
        unreachable!("NewReno has no curve")
    }

    fn after_loss(algorithm: CongestionAlgorithm, curve: &mut Cubic) -> Congestion {
        let mut congestion = Congestion::new(&Tunables::default(), MSS);
        congestion.window_bytes = 100 * MSS;
        congestion.handle_congestion(algorithm, 100 * MSS, MSS, curve);
        congestion.window_bytes = congestion.threshold_bytes;
        congestion
    }

    #[test]
    fn slow_start_doubles_and_avoidance_adds_a_segment_a_round_trip() {
        let reno = CongestionAlgorithm::NewReno;
        let mut congestion = Congestion::new(&Tunables::default(), MSS);
        for _ in 0..10 {
            congestion.handle_acknowledged(reno, acknowledged(MSS, 1), unused);
        }
        assert_eq!(congestion.window_bytes, 20 * MSS);
        assert_eq!(congestion.threshold(), None);
        let mut congestion = after_loss(reno, &mut Cubic::default());
        assert_eq!(congestion.window_bytes, 50 * MSS);
        for _ in 0..50 {
            congestion.handle_acknowledged(reno, acknowledged(MSS, 1), unused);
        }
        assert_eq!(congestion.window_bytes, 51 * MSS);
        congestion.handle_timeout(reno, 51 * MSS, MSS, true, &mut Cubic::default());
        let now = (congestion.window_bytes, congestion.threshold_bytes);
        assert_eq!(now, (MSS, 51 * MSS / 2));
        congestion.handle_timeout(reno, MSS, MSS, false, &mut Cubic::default());
        assert_eq!(congestion.threshold(), Some(51 * MSS / 2), "once a loss");
    }

    #[test]
    fn cubic_comes_back_to_its_window_when_the_curve_says_and_goes_beyond() {
        let cubic = CongestionAlgorithm::Cubic;
        let mut curve = Cubic::NONE;
        let mut congestion = after_loss(cubic, &mut curve);
        assert_eq!(congestion.window_bytes, 70 * MSS);
        // K = cbrt(100 * 0.3 / 0.4) = 4.2 s.
        let mut at_plateau = 0;
        for round in 0..100 {
            let window = congestion.window_bytes;
            for _ in 0..window / MSS {
                let ack = acknowledged(MSS, 1 + round * 100);
                congestion.handle_acknowledged(cubic, ack, || &mut curve);
            }
            if round == 42 {
                at_plateau = congestion.window_bytes;
            }
        }
        assert!((95 * MSS..=103 * MSS).contains(&at_plateau), "{at_plateau}");
        assert!(congestion.window_bytes > 130 * MSS, "convex after it");
    }

    #[test]
    fn a_small_cubic_flow_is_not_slower_than_reno() {
        let grow = |algorithm| {
            let mut congestion = Congestion::new(&Tunables::default(), MSS);
            let mut curve = Cubic::NONE;
            congestion.handle_congestion(algorithm, 10 * MSS, MSS, &mut curve);
            congestion.window_bytes = 5 * MSS;
            congestion.threshold_bytes = 5 * MSS;
            for round in 0..100 {
                for _ in 0..congestion.window_bytes / MSS {
                    let ack = acknowledged(MSS, 1 + round);
                    congestion.handle_acknowledged(algorithm, ack, || &mut curve);
                }
            }
            congestion.window_bytes
        };
        let (reno, cubic) = (
            grow(CongestionAlgorithm::NewReno),
            grow(CongestionAlgorithm::Cubic),
        );
        assert!(cubic * 10 > reno * 5, "{cubic} {reno}");
    }

    #[test]
    fn a_rest_takes_the_window_back_to_its_beginning() {
        let mut congestion = after_loss(CongestionAlgorithm::NewReno, &mut Cubic::default());
        congestion.restart_after_idle(10 * MSS, None);
        assert_eq!(congestion.window_bytes, 10 * MSS);
    }
}
