//! A cycle: the positions that a counter walks, again and again.

use super::instruction::{Operation, Range, Width};

/// Positions `0..=last`: packet 0 has `start`, and each packet is `step` further, around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cycle {
    /// The highest position: one less than the length, which may be 2⁶⁴.
    pub(super) last: u64,
    /// The first packet's position.
    pub(super) start: u64,
    /// Positions from one packet to the next.
    pub(super) step: u64,
}

/// The position after `n` hops forwards, and how often they passed the end; that is right as
/// long as hops are no longer than the cycle.
pub(super) fn turn(position: u64, n: u64, hop: u64, last: u64) -> (u64, u64) {
    let length = u128::from(last) + 1;
    let distance = u128::from(position) + u128::from(n) * u128::from(hop);
    (low64(distance % length), low64(distance / length))
}

/// The position from which `n` hops lead to `position`, and how often they passed the end.
pub(super) fn turn_back(position: u64, n: u64, hop: u64, last: u64) -> (u64, u64) {
    let length = u128::from(last) + 1;
    let (position, distance) = (u128::from(position), u128::from(n) * u128::from(hop));
    let turns = distance.saturating_sub(position).div_ceil(length);
    // Modulo 2^128, as the middle of this may be above it.
    let back = position
        .wrapping_add(turns.wrapping_mul(length))
        .wrapping_sub(distance);
    (low64(back), low64(turns))
}

/// The lower 64 bits: positions are below 2^64, as the longest cycle has that length.
#[expect(
    clippy::cast_possible_truncation,
    reason = "positions fit, and turns that do not fit belong to no chain"
)]
fn low64(value: u128) -> u64 {
    value as u64
}

/// What a counter over a range walks: a cycle and the value at its position 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counter {
    /// The positions.
    pub(super) cycle: Cycle,
    /// The value at position 0.
    pub(super) base: u64,
    /// Values fall as positions rise.
    pub(super) downwards: bool,
}

impl Counter {
    /// The counter of a range that was checked, padded so that its length is a multiple of the
    /// step: upwards the maximum is raised, downwards the minimum is lowered. `None` when that
    /// leaves the width. Random ranges are not for counters.
    pub(super) fn of_range(range: &Range, width: Width) -> Option<Counter> {
        let downwards = range.operation == Operation::Decrement;
        let length = u128::from(range.max - range.min) + 1;
        let last = length.next_multiple_of(u128::from(range.step)) - 1;
        let last = u64::try_from(last).ok()?;
        let (base, start) = if downwards {
            range.max.checked_sub(last)?;
            (range.max, range.max - range.init)
        } else {
            range
                .min
                .checked_add(last)
                .filter(|&max| max <= width.max_value())?;
            (range.min, range.init - range.min)
        };
        let step = range.step;
        let cycle = Cycle { last, start, step };
        Some(Counter {
            cycle,
            base,
            downwards,
        })
    }

    /// The smallest and the largest value that any packet has.
    pub(super) fn bounds(&self) -> (u64, u64) {
        let Cycle { last, start, step } = self.cycle;
        let first = start % step;
        let distance = first + (last - (step - 1));
        if self.downwards {
            (self.base - distance, self.base - first)
        } else {
            (self.base + first, self.base + distance)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(operation: Operation, init: u64, min: u64, max: u64, step: u64) -> Range {
        Range {
            operation,
            init,
            min,
            max,
            step,
        }
    }

    #[test]
    fn a_range_is_padded_in_the_direction_of_travel() {
        let up = range(Operation::Increment, 5, 5, 11, 3);
        let up = Counter::of_range(&up, Width::One).unwrap();
        assert_eq!((up.base, up.cycle.last), (5, 8));
        assert_eq!(up.bounds(), (5, 11));
        let down = range(Operation::Decrement, 11, 5, 11, 3);
        let down = Counter::of_range(&down, Width::One).unwrap();
        assert_eq!((down.base, down.cycle.last), (11, 8));
        assert_eq!(down.bounds(), (5, 11));
    }

    #[test]
    fn padding_must_stay_within_the_width() {
        let up = range(Operation::Increment, 250, 250, 255, 4);
        assert_eq!(Counter::of_range(&up, Width::One), None);
        assert!(Counter::of_range(&up, Width::Two).is_some());
        let down = range(Operation::Decrement, 5, 0, 5, 4);
        assert_eq!(Counter::of_range(&down, Width::One), None);
        let full = range(Operation::Increment, 0, 0, u64::MAX, 3);
        assert_eq!(Counter::of_range(&full, Width::Eight), None);
    }

    #[test]
    fn the_widest_cycle_has_no_overflow() {
        let full = range(Operation::Increment, 7, 0, u64::MAX, 1);
        let full = Counter::of_range(&full, Width::Eight).unwrap();
        let Cycle { start, step, last } = full.cycle;
        assert_eq!(turn(start, u64::MAX, step, last).0, 6);
        assert_eq!(turn(0, u64::MAX, step, last).0, u64::MAX);
        assert_eq!(full.bounds(), (0, u64::MAX));
    }

    #[test]
    fn an_initial_value_off_the_grid_keeps_its_own_grid() {
        let up = range(Operation::Increment, 3, 0, 9, 5);
        let up = Counter::of_range(&up, Width::One).unwrap();
        let Cycle { start, step, last } = up.cycle;
        let positions: Vec<u64> = (0..4).map(|g| turn(start, g, step, last).0).collect();
        assert_eq!(positions, [3, 8, 3, 8]);
        assert_eq!(up.bounds(), (3, 8));
    }
}
