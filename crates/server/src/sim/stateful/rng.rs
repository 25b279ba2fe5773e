//! Random numbers of the simulated link.

/// A sequence of random numbers.
#[derive(Clone, Debug)]
pub struct SimRng(u64);

/// 2⁶⁴ divided by the golden ratio (Steele, Lea and Flood, "Fast splittable pseudorandom number
/// generators", 2014).
const GOLDEN_RATIO: u64 = 0x9e37_79b9_7f4a_7c15;

impl SimRng {
    /// The sequence of a seed. Others with the same seed and another `purpose` do not resemble it.
    pub fn new(seed: u64, purpose: u64) -> SimRng {
        SimRng(mix(
            seed.wrapping_add(mix(purpose.wrapping_add(GOLDEN_RATIO)))
        ))
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN_RATIO);
        mix(self.0)
    }

    /// A number below `end`, which is not 0; all of them alike, within 2⁻³².
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(end)) >> 64) as u64
    }

    /// Whether something happens that happens in this share of all cases.
    pub fn happens(&mut self, share: f64) -> bool {
        share > 0.0 && (self.bits() >> 11) as f64 * 2f64.powi(-53) < share
    }
}

fn mix(state: u64) -> u64 {
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_purposes_differ() {
        let numbers = |seed, purpose| {
            let mut chance = SimRng::new(seed, purpose);
            (0..8).map(|_| chance.bits()).collect::<Vec<_>>()
        };
        assert_eq!(numbers(7, 1), numbers(7, 1));
        assert_ne!(numbers(7, 1), numbers(7, 2));
        assert_ne!(numbers(7, 1), numbers(8, 1));
    }

    #[test]
    fn shares_are_kept() {
        let mut chance = SimRng::new(1, 0);
        let hits = (0..100_000).filter(|_| chance.happens(0.2)).count();
        assert!((19_500..20_500).contains(&hits), "{hits}");
        assert!((0..1000).all(|_| !chance.happens(0.0) && chance.happens(1.0)));
        assert!((0..1000).all(|_| chance.below(3) < 3));
    }
}
