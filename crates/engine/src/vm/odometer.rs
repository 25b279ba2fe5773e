//! Counters that follow one another, as the digits of an odometer do.

use super::BURST;
use super::state::CounterState;

/// How often the counter before passed its end with each packet of a burst, beyond what the
/// followers' hops account for.
pub(super) type Turns = [u32; BURST];

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
