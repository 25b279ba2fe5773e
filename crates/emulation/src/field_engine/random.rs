//! Random numbers of engines: 64 bits a draw, the same for the same seed.

use super::Random;

/// The generator SplitMix64, whose state is a counter.
#[derive(Clone, Debug)]
pub struct SplitMix(u64);

impl SplitMix {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> SplitMix {
        SplitMix(seed)
    }
}

impl Random for SplitMix {
    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}
