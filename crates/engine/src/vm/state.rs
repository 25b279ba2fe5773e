//! Where a stream's variables stand on one core.
//!
//! What lives here: the positions of the counters and of the random generator, in steps of one
//! core's packets. What does not: values and packets (`run`).

use crate::rng::{Lcg, Leapfrog};

use super::cycle::advance;
use super::program::{Program, Walk};

/// The variables of one stream on one core.
///
/// With N cores, core k makes the packets k, k + N, k + 2·N, ... of the stream: each of its
/// steps is N steps of every variable and every draw. All cores together make exactly the
/// packets that one core would.
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
    /// Positions from one packet of this core to its next, at most `last`.
    pub(super) hop: u64,
    /// The highest position, after which the first one follows.
    pub(super) last: u64,
}

impl State {
    /// The variables before packet number `first_packet` of the stream, when this core makes
    /// every `stride`-th packet from there. `seed` is the stream's random seed.
    pub fn new(program: &Program, seed: u32, first_packet: u64, stride: u64) -> State {
        let counters = program
            .variables
            .iter()
            .map(|variable| match variable.walk {
                Walk::Cycle(cycle) => CounterState {
                    position: cycle.position(first_packet),
                    hop: cycle.hop(stride),
                    last: cycle.last,
                },
                Walk::Draw(_) => CounterState::default(),
            });
        let random = (program.draws > 0).then(|| {
            // The generator's period is a power of two below 2^64: products may wrap.
            let mut generator = Lcg::new(seed);
            generator.jump(first_packet.wrapping_mul(program.draws));
            Box::new(Leapfrog::new(generator, stride.wrapping_mul(program.draws)))
        });
        State {
            counters: counters.collect(),
            random,
        }
    }

    /// Takes back the last `n` packets of this core: they will be made again.
    pub fn rewind(&mut self, n: u64) {
        if n == 0 {
            return;
        }
        for counter in &mut self.counters {
            let CounterState {
                position,
                hop,
                last,
            } = *counter;
            // One hop back is as many hops forward as the cycle is long, less one.
            let back = if hop == 0 { 0 } else { last - hop + 1 };
            counter.position = advance(position, n, back, last);
        }
        if let Some(random) = &mut self.random {
            // The generator's period divides 2^64, so -n packets on are n packets back.
            random.skip(n.wrapping_neg());
        }
    }

    /// Leaves out `n` packets of this core, in a time that hardly depends on `n`.
    pub fn skip(&mut self, n: u64) {
        for counter in &mut self.counters {
            let CounterState {
                position,
                hop,
                last,
            } = *counter;
            counter.position = advance(position, n, hop, last);
        }
        if let Some(random) = &mut self.random {
            random.skip(n);
        }
    }
}
