//! When a flow began, in as few bytes as may be.

use crate::time::Nanos;

/// A unit of it, as a power of two of nanoseconds: 1,024 ns.
pub(crate) const UNIT_SHIFT: u32 = 10;
const BITS: u32 = 40;
/// Of the same time in four bytes: 262,144 ns.
const COARSE_SHIFT: u32 = BITS - u32::BITS;

/// When a flow began, about to the microsecond. It goes round after 13 days: a flow that is older shows
/// as younger by so much.
#[derive(Clone, Copy, Debug)]
pub struct BeginTime([u8; (BITS / 8) as usize]);

impl BeginTime {
    /// This time.
    #[inline]
    pub fn at(now: Nanos) -> BeginTime {
        let [a, b, c, d, e, ..] = (now >> UNIT_SHIFT).to_le_bytes();
        BeginTime([a, b, c, d, e])
    }

    /// How long ago it was, in units of 1,024 ns.
    #[inline]
    pub fn units_since(self, now: Nanos) -> u64 {
        let [a, b, c, d, e] = self.0;
        let began = u64::from_le_bytes([a, b, c, d, e, 0, 0, 0]);
        (now >> UNIT_SHIFT).wrapping_sub(began) & ((1 << BITS) - 1)
    }

    /// How long ago it was.
    pub fn since(self, now: Nanos) -> Nanos {
        self.units_since(now) << UNIT_SHIFT
    }

    /// The same in four bytes, to a quarter of a millisecond.
    pub fn to_coarse(self) -> u32 {
        let [a, b, c, d, e] = self.0;
        (u64::from_le_bytes([a, b, c, d, e, 0, 0, 0]) >> COARSE_SHIFT) as u32
    }

    /// From [`to_coarse`](BeginTime::to_coarse).
    pub fn from_coarse(coarse: u32) -> BeginTime {
        BeginTime::at(Nanos::from(coarse) << (COARSE_SHIFT + UNIT_SHIFT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{MICROSECOND, MILLISECOND, SECOND};

    #[test]
    fn times_are_right_to_the_microsecond_also_where_they_go_round() {
        for begin in [0, SECOND, (1 << (BITS + UNIT_SHIFT)) - MILLISECOND, 1 << 60] {
            let began = BeginTime::at(begin);
            for span in [0, 5 * MICROSECOND, 3 * SECOND, 12 * 24 * 3600 * SECOND] {
                let told = began.since(begin + span);
                let off = told.abs_diff(span);
                assert!(off <= 1 << UNIT_SHIFT, "{begin} {span}: {told}");
                let coarse = BeginTime::from_coarse(began.to_coarse());
                let off = coarse.since(begin + span).abs_diff(span);
                assert!(off <= MILLISECOND, "{begin} {span}: coarse");
            }
        }
    }
}
