//! Round trips and the retransmission timeout (RFC 6298).

/// The timeout before any round trip was measured (RFC 6298, rule 2.1).
pub(super) const RTO_INITIAL_MS: u32 = 1_000;
/// The same after a SYN was lost (rule 5.7).
const RTO_DISTRUSTED_MS: u32 = 3_000;
/// The shortest timeout. Rule 2.4 asks for a second; like all systems in use we take less, or
/// each lost segment of a fast network would cost a second.
pub(super) const RTO_MIN_MS: u32 = 200;
/// The longest timeout (rule 2.5: at least 60 s).
pub(super) const RTO_MAX_MS: u32 = 64_000;

/// The smoothed round trip and its variation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rtt {
    /// Eight times the smoothed round trip in µs, 0 before the first measurement.
    smoothed_8_us: u32,
    /// Four times its variation in µs.
    variation_4_us: u32,
}

/// In the place of the smoothed round trip, when none was measured and a SYN was lost.
const DISTRUSTED: u32 = u32::MAX;
/// The longest round trip that is told apart.
const ROUND_TRIP_MAX_US: u32 = 100_000_000;

impl Rtt {
    /// A round trip was measured (rules 2.2 and 2.3).
    pub(super) fn measure(&mut self, round_trip_us: u32) {
        let round_trip_us = round_trip_us.clamp(1, ROUND_TRIP_MAX_US);
        if !self.is_known() {
            self.smoothed_8_us = round_trip_us * 8;
            self.variation_4_us = round_trip_us * 2;
            return;
        }
        let error = self.smoothed_us().abs_diff(round_trip_us);
        self.variation_4_us = self.variation_4_us - self.variation_4_us / 4 + error;
        self.smoothed_8_us = (self.smoothed_8_us - self.smoothed_8_us / 8 + round_trip_us).max(8);
    }

    /// Whether any was measured.
    pub(super) fn is_known(&self) -> bool {
        self.smoothed_8_us.wrapping_add(1) > 1
    }

    /// The SYN was lost: until a round trip is measured, "the RTO MUST be re-initialized to 3
    /// seconds when data transmission begins" (rule 5.7).
    pub(super) fn distrust(&mut self) {
        if !self.is_known() {
            self.smoothed_8_us = DISTRUSTED;
        }
    }

    /// The smoothed round trip in µs, 0 when none was measured.
    pub(super) fn smoothed_us(&self) -> u32 {
        if self.is_known() {
            self.smoothed_8_us / 8
        } else {
            0
        }
    }

    /// How much it varies, in µs.
    pub(super) fn variation_us(&self) -> u32 {
        self.variation_4_us / 4
    }

    /// The retransmission timeout in ms after `backoff` times without answer (rule 5.5).
    #[inline]
    pub(super) fn timeout_ms(&self, backoff: u8) -> u32 {
        let first_ms = if self.is_known() {
            // Rule 2.3, with a clock of a millisecond.
            let timeout_us = self.smoothed_us() + self.variation_4_us.max(1_000);
            timeout_us.div_ceil(1_000).max(RTO_MIN_MS)
        } else if self.smoothed_8_us == DISTRUSTED {
            RTO_DISTRUSTED_MS
        } else {
            RTO_INITIAL_MS
        };
        let shifted = u64::from(first_ms) << backoff.min(16);
        shifted.min(u64::from(RTO_MAX_MS)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_follows_rfc_6298() {
        let mut rtt = Rtt::default();
        assert_eq!((rtt.timeout_ms(0), rtt.timeout_ms(2)), (1_000, 4_000));
        rtt.measure(400_000);
        assert_eq!((rtt.smoothed_us(), rtt.variation_us()), (400_000, 200_000));
        assert_eq!(rtt.timeout_ms(0), 1_200, "SRTT + 4 RTTVAR");
        for _ in 0..200 {
            rtt.measure(400_000);
        }
        assert_eq!(rtt.smoothed_us(), 400_000);
        assert_eq!(rtt.timeout_ms(0), 401, "no variation but the clock's");
        assert_eq!(rtt.timeout_ms(60), RTO_MAX_MS);
    }

    #[test]
    fn a_lost_syn_makes_the_first_timeout_long() {
        let mut rtt = Rtt::default();
        rtt.distrust();
        assert_eq!((rtt.timeout_ms(0), rtt.smoothed_us()), (3_000, 0));
        rtt.measure(400_000);
        assert_eq!(rtt.timeout_ms(0), 1_200);
        rtt.distrust();
        assert_eq!(rtt.timeout_ms(0), 1_200, "what was measured is known");
    }

    #[test]
    fn short_round_trips_are_told_apart_and_the_timeout_has_an_end() {
        let mut rtt = Rtt::default();
        for _ in 0..100 {
            rtt.measure(25);
        }
        assert!((20..=30).contains(&rtt.smoothed_us()));
        assert_eq!(rtt.timeout_ms(0), RTO_MIN_MS);
        rtt.measure(u32::MAX);
        assert!(rtt.timeout_ms(0) <= RTO_MAX_MS);
    }
}
