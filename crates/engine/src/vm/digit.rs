//! Digits of a counter: the address and the port of a tuple.

use super::program::Digit;
use super::state::CounterState;

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
