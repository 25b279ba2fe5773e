//! Where a stream's variables stand on one core.

use crate::rng::{Lcg, Leapfrog};

use super::cycle::{Cycle, turn, turn_back};
use super::program::{FieldProgram, Walk};

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
