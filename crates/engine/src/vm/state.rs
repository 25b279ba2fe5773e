//! Where a stream's variables stand on one core, and how they move from packet to packet: counters alone,
//! counters that follow one another as the digits of an odometer do, and the digits of one counter that
//! are a tuple.

use crate::rng::{Lcg, Leapfrog};

use super::program::{Cycle, Digit, FieldProgram, Walk};
use super::{BURST, low32};

/// The variables of one stream on one core.
///
/// With N cores, core k makes the packets k, k + N, k + 2·N, ... of the stream: each of its
/// steps is N steps of every variable and every draw. All cores together make exactly the
/// packets that one core would. A variable of each core's own takes one step with each of the
/// core's packets instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// One of each variable; those of random variables stay zero.
    pub(super) counters: Vec<CounterState>,
    /// The generator before each packet's draws, when there are random variables.
    pub(super) random: Option<Box<Leapfrog>>,
}

/// Where a counter stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CounterState {
    /// The next packet's position.
    pub(super) position: u64,
    /// Positions from one packet of this core to its next, at most `last`. For a counter that
    /// follows another: those that each packet moves it at least.
    pub(super) hop: u64,
    /// The highest position, after which the first one follows.
    pub(super) last: u64,
    /// Positions that it moves each time the counter before it passes its end.
    pub(super) step: u64,
    /// How often each packet passes the end beyond what `hop` shows.
    turns: u64,
    /// It moves when the counter before it passes its end.
    follows: bool,
}

impl State {
    /// The variables before packet number `first_packet` of the stream, when this core makes
    /// every `stride`-th packet from there. `seed` is the stream's random seed.
    pub fn new(program: &FieldProgram, seed: u32, first_packet: u64, stride: u64) -> State {
        let (mut steps, mut steps_each) = (first_packet, stride);
        let mut counters = Vec::with_capacity(program.variables.len());
        for variable in &program.variables {
            let Walk::Cycle(cycle) = variable.walk else {
                counters.push(CounterState::default());
                continue;
            };
            if !variable.follows {
                (steps, steps_each) = match variable.each_core {
                    true => (first_packet / stride, 1),
                    false => (first_packet, stride),
                };
            }
            let Cycle { start, step, last } = cycle;
            let (position, turns_before) = turn(start, steps, step, last);
            let (hop, turns) = turn(0, steps_each, step, last);
            counters.push(CounterState {
                position,
                hop,
                last,
                step,
                turns,
                follows: variable.follows,
            });
            (steps, steps_each) = (turns_before, turns);
        }
        let random = (program.draws > 0).then(|| {
            // The generator's period is a power of two below 2^64: products may wrap.
            let mut generator = Lcg::new(seed);
            generator.jump(first_packet.wrapping_mul(program.draws));
            Box::new(Leapfrog::new(generator, stride.wrapping_mul(program.draws)))
        });
        State { counters, random }
    }

    /// Takes back the last `n` packets of this core: they will be made again.
    pub fn rewind(&mut self, n: u64) {
        self.turn_counters(n, turn_back);
        if let Some(random) = &mut self.random {
            // The generator's period divides 2^64, so -n packets on are n packets back.
            random.skip(n.wrapping_neg());
        }
    }

    /// Leaves out `n` packets of this core, in a time that hardly depends on `n`.
    pub fn skip(&mut self, n: u64) {
        self.turn_counters(n, turn);
        if let Some(random) = &mut self.random {
            random.skip(n);
        }
    }

    /// Moves all counters by `n` packets, in the direction of `turn`.
    fn turn_counters(&mut self, n: u64, turn: impl Fn(u64, u64, u64, u64) -> (u64, u64)) {
        let mut turns_before = 0;
        for counter in &mut self.counters {
            let CounterState {
                position,
                hop,
                last,
                step,
                turns,
                follows,
            } = *counter;
            (counter.position, turns_before) = if follows {
                turn(position, turns_before, step, last)
            } else {
                let (position, more) = turn(position, n, hop, last);
                (position, n.wrapping_mul(turns).wrapping_add(more))
            };
        }
    }
}

/// The position after `n` hops forwards, and how often they passed the end; that is right as
/// long as hops are no longer than the cycle.
fn turn(position: u64, n: u64, hop: u64, last: u64) -> (u64, u64) {
    let length = u128::from(last) + 1;
    let distance = u128::from(position) + u128::from(n) * u128::from(hop);
    (low64(distance % length), low64(distance / length))
}

/// The position from which `n` hops lead to `position`, and how often they passed the end.
fn turn_back(position: u64, n: u64, hop: u64, last: u64) -> (u64, u64) {
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

/// How often the counter before passed its end with each packet of a burst, beyond what the
/// followers' hops account for.
pub(super) type Turns = [u32; BURST];

impl CounterState {
    /// Whether a whole burst passes the end of the cycle once at most, and 32 bits suffice.
    #[inline(always)]
    pub(super) fn wraps_once_at_most(&self) -> bool {
        self.last <= u64::from(u32::MAX) && self.hop <= self.last / BURST as u64
    }
}

/// Positions of a counter, when [`CounterState::wraps_once_at_most`].
#[inline(always)]
pub(super) fn count_straight(
    counter: &mut CounterState,
    values: &mut [u32],
    mut value: impl FnMut(u32) -> u32,
) {
    let (start, hop, last) = (
        low32(counter.position),
        low32(counter.hop),
        low32(counter.last),
    );
    let length = last.wrapping_add(1);
    let mut offset = 0u32;
    for slot in values.iter_mut() {
        let around = if start > last - offset { length } else { 0 };
        *slot = value(start.wrapping_add(offset).wrapping_sub(around));
        offset = offset.wrapping_add(hop);
    }
    let next = u64::from(start) + u64::from(offset);
    counter.position = if next > counter.last {
        next - counter.last - 1
    } else {
        next
    };
}

/// Positions of any counter.
#[inline(always)]
pub(super) fn count<T>(
    counter: &mut CounterState,
    values: &mut [T],
    mut value: impl FnMut(u64) -> T,
) {
    let CounterState { hop, last, .. } = *counter;
    let mut position = counter.position;
    for slot in values {
        *slot = value(position);
        let room = last - position;
        position = if hop > room {
            hop - room - 1
        } else {
            position + hop
        };
    }
    counter.position = position;
}

/// Positions of a counter in a chain. Takes the turns of the counter before from `turns`, and
/// leaves its own there.
#[inline(always)]
pub(super) fn count_chained<T>(
    counter: &mut CounterState,
    turns: &mut [u32],
    values: &mut [T],
    mut value: impl FnMut(u64) -> T,
) {
    let CounterState {
        hop, last, step, ..
    } = *counter;
    let mut position = counter.position;
    for (slot, turns) in values.iter_mut().zip(turns) {
        *slot = value(position);
        let mut passed = 0;
        let mut go = |distance: u64| {
            let room = last - position;
            if distance > room {
                position = distance - room - 1;
                passed += 1;
            } else {
                position += distance;
            }
        };
        go(hop);
        for _ in 0..*turns {
            go(step);
        }
        *turns = passed;
    }
    counter.position = position;
}

/// The digits of the counter's positions, as distances from the smallest value.
#[inline(always)]
pub(super) fn count_digits<T>(
    counter: &mut CounterState,
    digit: Digit,
    values: &mut [T],
    value: impl Fn(u64) -> T,
) {
    let CounterState { hop, last, .. } = *counter;
    let Digit {
        divisor, modulus, ..
    } = digit;
    let mut position = counter.position;
    let (mut below, mut at) = split(position, digit);
    let (hop_below, hop_at) = split(hop, digit);
    for slot in values {
        *slot = value(at);
        let room = last - position;
        if hop > room {
            position = hop - room - 1;
            (below, at) = split(position, digit);
            continue;
        }
        position += hop;
        below += hop_below;
        at += hop_at;
        if below >= divisor {
            below -= divisor;
            at += 1;
        }
        if at >= modulus {
            at -= modulus;
        }
    }
    counter.position = position;
}

/// A position as what is below the digit, and the digit.
fn split(position: u64, digit: Digit) -> (u64, u64) {
    let Digit {
        divisor, modulus, ..
    } = digit;
    (position % divisor, position / divisor % modulus)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vm::instruction::tests::range;
    use crate::vm::instruction::{Counter, Operation, Width};

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
