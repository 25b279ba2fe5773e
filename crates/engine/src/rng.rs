//! Seeded random numbers: the linear congruential generator of the field engine.
//!
//! The caller brings the seed, so that the same profile gives the same packets.
//!
//! The sequence is part of what users see: it is the one that TRex draws, so that the same seed
//! gives the same addresses. Its state is 32 bits; a draw is bits 16 to 30 of the new state.

/// Multiplier of one step.
const MULTIPLIER: u32 = 214_013;
/// Increment of one step.
const INCREMENT: u32 = 2_531_011;
/// What a seed is multiplied by to give the first state.
const SEED_MULTIPLIER: u32 = 514_229;
/// Lanes of the leapfrog form: that many states depend on one only.
const LANES: usize = 16;

/// A jump of a fixed number of steps, as one multiplication and one addition modulo 2³².
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jump {
    /// The state is multiplied by this.
    pub multiplier: u32,
    /// This is added then.
    pub increment: u32,
}

impl Jump {
    /// The jump that stays where it is.
    pub const NONE: Jump = Jump {
        multiplier: 1,
        increment: 0,
    };
    /// The jump of a single step.
    pub const ONE: Jump = Jump {
        multiplier: MULTIPLIER,
        increment: INCREMENT,
    };

    /// The jump of `n` steps, in O(log n). The sequence repeats after 2³² steps, so that `n`
    /// may have been computed modulo any power of two from there up.
    pub fn steps(n: u64) -> Jump {
        Jump::ONE.times(n)
    }

    /// This jump, `n` times over.
    pub fn times(self, n: u64) -> Jump {
        let (mut result, mut power, mut rest) = (Jump::NONE, self, n);
        while rest != 0 {
            if rest & 1 == 1 {
                result = result.then(power);
            }
            power = power.then(power);
            rest >>= 1;
        }
        result
    }

    /// This jump and `next` after it, as one.
    pub fn then(self, next: Jump) -> Jump {
        Jump {
            multiplier: self.multiplier.wrapping_mul(next.multiplier),
            increment: next.apply(self.increment),
        }
    }

    /// The state after this jump.
    #[inline(always)]
    pub fn apply(self, state: u32) -> u32 {
        state
            .wrapping_mul(self.multiplier)
            .wrapping_add(self.increment)
    }
}

/// The 15 bits that are drawn from a state.
#[inline(always)]
pub fn draw15(state: u32) -> u32 {
    (state >> 16) & 0x7fff
}

/// The generator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lcg {
    state: u32,
}

impl Lcg {
    /// The generator of a seed. Seed 0 is the same as seed 1.
    pub fn new(seed: u32) -> Lcg {
        Lcg {
            state: seed.max(1).wrapping_mul(SEED_MULTIPLIER),
        }
    }

    /// The next draw: 15 bits.
    pub fn next15(&mut self) -> u32 {
        self.state = Jump::ONE.apply(self.state);
        draw15(self.state)
    }

    /// Two draws as one number of 31 bits: the first from bit 16 up, the second below. Bit 15 is
    /// always zero, as in TRex.
    pub fn next31(&mut self) -> u32 {
        let high = self.next15();
        (high << 16) | self.next15()
    }

    /// Leaves out `n` draws, in O(log n).
    pub fn jump(&mut self, n: u64) {
        self.state = Jump::steps(n).apply(self.state);
    }

    /// The state, from which the next draw is made.
    pub fn state(&self) -> u32 {
        self.state
    }
}

/// A generator that is read with a stride: the states before draw 0, `stride`, 2·`stride`, ...
///
/// The states of a block of lanes all follow from one, by jumps computed once, so that they do
/// not wait for one another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leapfrog {
    state: u32,
    stride: Jump,
    block: Jump,
    multipliers: [u32; LANES],
    increments: [u32; LANES],
}

impl Leapfrog {
    /// Reads `generator` from where it stands, `stride` draws further each time.
    pub fn new(generator: Lcg, stride: u64) -> Leapfrog {
        let stride = Jump::steps(stride);
        let (mut multipliers, mut increments) = ([0; LANES], [0; LANES]);
        let mut lane = Jump::NONE;
        for (multiplier, increment) in multipliers.iter_mut().zip(&mut increments) {
            (*multiplier, *increment) = (lane.multiplier, lane.increment);
            lane = lane.then(stride);
        }
        Leapfrog {
            state: generator.state(),
            stride,
            block: lane,
            multipliers,
            increments,
        }
    }

    /// Fills `states` with the next states, and moves on by as many.
    #[inline]
    pub fn fill(&mut self, states: &mut [u32]) {
        let mut blocks = states.chunks_exact_mut(LANES);
        for block in &mut blocks {
            for ((state, multiplier), increment) in block
                .iter_mut()
                .zip(&self.multipliers)
                .zip(&self.increments)
            {
                *state = self
                    .state
                    .wrapping_mul(*multiplier)
                    .wrapping_add(*increment);
            }
            self.state = self.block.apply(self.state);
        }
        for state in blocks.into_remainder() {
            *state = self.state;
            self.state = self.stride.apply(self.state);
        }
    }

    /// Leaves out `n` states.
    pub fn skip(&mut self, n: u64) {
        self.state = self.stride.times(n).apply(self.state);
    }
}

/// A number that looks like any other, the same for the same (the finalizer of SplitMix64).
#[inline]
pub fn mixed(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_is_as_many_draws() {
        for n in [0, 1, 2, 3, 63, 1000] {
            let mut walked = Lcg::new(7);
            for _ in 0..n {
                walked.next15();
            }
            let mut jumped = Lcg::new(7);
            jumped.jump(n);
            assert_eq!(walked, jumped, "{n} draws");
        }
    }

    #[test]
    fn the_sequence_repeats_after_2_to_the_32() {
        assert_eq!(Jump::steps(1 << 32), Jump::NONE);
        assert_ne!(Jump::steps(1 << 31), Jump::NONE);
    }

    #[test]
    fn seed_zero_is_seed_one() {
        assert_eq!(Lcg::new(0), Lcg::new(1));
        assert_ne!(Lcg::new(1), Lcg::new(2));
    }

    #[test]
    fn the_sequence_of_a_seed_is_the_documented_one() {
        let mut generator = Lcg::new(4660);
        let state = 4660u32.wrapping_mul(514_229);
        let state = state.wrapping_mul(214_013).wrapping_add(2_531_011);
        assert_eq!(generator.next15(), (state >> 16) & 0x7fff);
    }

    #[test]
    fn a_leapfrog_gives_every_nth_state() {
        for stride in [1, 2, 3, 8, 1000] {
            let mut leapfrog = Leapfrog::new(Lcg::new(99), stride);
            let mut plain = Lcg::new(99);
            for n in [1, 15, 16, 17, 64, 0, 5] {
                let mut states = vec![0; n];
                leapfrog.fill(&mut states);
                for (i, state) in states.into_iter().enumerate() {
                    assert_eq!(state, plain.state(), "state {i} of {n}, stride {stride}");
                    plain.jump(stride);
                }
            }
            leapfrog.skip(1_000_003);
            plain.jump(1_000_003 * stride);
            let mut state = [0];
            leapfrog.fill(&mut state);
            assert_eq!(state[0], plain.state());
        }
    }
}
