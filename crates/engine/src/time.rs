//! Time, gaps between packets, and rates.
//!
//! Time always comes from the caller.

/// A point in time or a length of time, in nanoseconds.
pub type Nanos = u64;

/// One second in nanoseconds.
pub const SECOND: Nanos = 1_000_000_000;
/// One millisecond in nanoseconds.
pub const MILLISECOND: Nanos = 1_000_000;
/// One microsecond in nanoseconds.
pub const MICROSECOND: Nanos = 1_000;

/// Bytes of the frame check sequence, which a rate at layer 2 counts and our frames do not carry.
pub const FCS_BYTES: u64 = 4;
/// Preamble (8) and inter-packet gap (12): what a frame costs on the wire besides itself.
pub const LAYER1_OVERHEAD_BYTES: u64 = 20;

/// A time, or another large number, that lies at any multiple of four bytes: where millions are
/// kept, the gaps before others cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, packed(4))]
pub(crate) struct Tight(u64);

impl Tight {
    /// The largest; of times, never.
    pub(crate) const MAX: Tight = Tight(u64::MAX);

    /// This one.
    pub(crate) fn new(number: u64) -> Tight {
        Tight(number)
    }

    /// The time, or the number.
    #[inline]
    pub(crate) fn get(self) -> u64 {
        self.0
    }
}

/// The time between two packets, exact to 2⁻³² ns, so that a rate holds over hours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gap {
    /// Whole nanoseconds.
    pub whole: Nanos,
    /// The rest, in units of 2⁻³² ns.
    pub fraction: u32,
}

impl Gap {
    /// The longest gap: about 292 years. Slower rates saturate here.
    pub const MAX: Gap = Gap {
        whole: Nanos::MAX / 2,
        fraction: 0,
    };

    /// The gap of a rate in packets per second. Zero, negative and NaN rates give [`Gap::MAX`].
    pub fn from_pps(rate_pps: f64) -> Gap {
        Gap::from_nanos(SECOND as f64 / rate_pps)
    }

    /// A gap of whole nanoseconds.
    pub fn whole(nanos: Nanos) -> Gap {
        Gap {
            whole: nanos,
            fraction: 0,
        }
    }

    /// A gap from fractional nanoseconds. Negative becomes zero; what is not finite, [`Gap::MAX`].
    pub fn from_nanos(nanos: f64) -> Gap {
        if !nanos.is_finite() || nanos >= Gap::MAX.whole as f64 {
            return Gap::MAX;
        }
        let nanos = nanos.max(0.0);
        let whole = nanos.floor();
        let fraction = (nanos - whole) * 4_294_967_296.0;
        Gap {
            whole: whole as Nanos,
            fraction: fraction as u32,
        }
    }

    /// This gap `n` times over, saturating at [`Gap::MAX`].
    pub fn times(self, n: u64) -> Gap {
        let units = self.units().saturating_mul(u128::from(n));
        Gap::from_units(units)
    }

    /// Fractional nanoseconds.
    pub fn as_nanos_f64(self) -> f64 {
        self.whole as f64 + f64::from(self.fraction) / 4_294_967_296.0
    }

    /// How many whole gaps fit into `span`; `u64::MAX` for a gap of zero.
    pub fn count_in(self, span: Nanos) -> u64 {
        let span = u128::from(span) << 32;
        span.checked_div(self.units())
            .map_or(u64::MAX, |n| n as u64)
    }

    /// The part `share` of this gap.
    pub fn scaled(self, share: f64) -> Gap {
        Gap::from_nanos(self.as_nanos_f64() * share)
    }

    /// How large a part of this gap `part` is; zero for a gap of zero.
    pub fn share(self, part: Gap) -> f64 {
        if self == Gap::default() {
            return 0.0;
        }
        part.as_nanos_f64() / self.as_nanos_f64()
    }

    fn units(self) -> u128 {
        (u128::from(self.whole) << 32) | u128::from(self.fraction)
    }

    fn from_units(units: u128) -> Gap {
        if units >= Gap::MAX.units() {
            return Gap::MAX;
        }
        Gap {
            whole: (units >> 32) as Nanos,
            fraction: units as u32,
        }
    }
}

/// A departure time that advances by gaps without losing their fractions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Due {
    /// Whole nanoseconds: what the scheduler compares.
    pub at: Nanos,
    /// The rest, in units of 2⁻³² ns.
    pub fraction: u32,
}

impl Due {
    /// Due exactly at `at`.
    pub fn at(at: Nanos) -> Due {
        Due { at, fraction: 0 }
    }

    /// The next departure, one gap later. Saturates at the end of time.
    #[inline(always)]
    pub fn after(self, gap: Gap) -> Due {
        let (fraction, carry) = self.fraction.overflowing_add(gap.fraction);
        let at = self
            .at
            .saturating_add(gap.whole)
            .saturating_add(Nanos::from(carry));
        Due { at, fraction }
    }

    /// One gap earlier. Stops at the beginning of time.
    pub fn before(self, gap: Gap) -> Due {
        Due::from_units(self.units().saturating_sub(gap.units()))
    }

    /// The time since `earlier`, none if that is later.
    pub fn since(self, earlier: Due) -> Gap {
        Gap::from_units(self.units().saturating_sub(earlier.units()))
    }

    /// How many whole gaps have passed since `earlier`; `u64::MAX` for a gap of zero.
    pub fn gaps_since(self, earlier: Due, gap: Gap) -> u64 {
        let passed = self.units().saturating_sub(earlier.units());
        let count = passed.checked_div(gap.units());
        count.map_or(u64::MAX, |n| n.min(u128::from(u64::MAX)) as u64)
    }

    fn units(self) -> u128 {
        (u128::from(self.at) << 32) | u128::from(self.fraction)
    }

    fn from_units(units: u128) -> Due {
        Due {
            at: (units >> 32) as Nanos,
            fraction: units as u32,
        }
    }

    /// The same, whole nanoseconds later.
    pub fn later(self, delay: Nanos) -> Due {
        Due {
            at: self.at.saturating_add(delay),
            fraction: self.fraction,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_keeps_a_rate_over_ten_million_packets() {
        let gap = Gap::from_pps(3_000_000.0);
        let mut due = Due::at(0);
        for _ in 0..9_000_000 {
            due = due.after(gap);
        }
        assert!(due.at.abs_diff(3 * SECOND) <= 1, "{due:?}");
    }

    #[test]
    fn times_agrees_with_repeated_addition() {
        let gap = Gap::from_nanos(333.333_333);
        let mut due = Due::at(7);
        for _ in 0..1000 {
            due = due.after(gap);
        }
        assert_eq!(due, Due::at(7).after(gap.times(1000)));
    }

    #[test]
    fn rates_that_make_no_sense_never_come_due() {
        for rate in [0.0, f64::NAN] {
            assert_eq!(Gap::from_pps(rate), Gap::MAX);
        }
        assert_eq!(Gap::MAX.times(3), Gap::MAX);
    }

    #[test]
    fn count_in_is_the_floor() {
        assert_eq!(Gap::from_nanos(2.5).count_in(10), 4);
        assert_eq!(Gap::from_nanos(2.5).count_in(9), 3);
        assert_eq!(Gap::default().count_in(9), u64::MAX);
    }
}
