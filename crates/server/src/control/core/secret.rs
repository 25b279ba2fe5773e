//! The strings that prove a handshake or an ownership: eight letters and digits.

/// Draws strings from a seed (SplitMix64, Steele et al. 2014).
#[derive(Clone, Debug)]
pub(in crate::control) struct Secrets {
    state: u64,
}

const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const LENGTH: usize = 8;

impl Secrets {
    pub(in crate::control) fn new(seed: u64) -> Secrets {
        Secrets { state: seed }
    }

    /// The next string.
    pub(in crate::control) fn draw(&mut self) -> String {
        (0..LENGTH).map(|_| self.letter()).collect()
    }

    fn letter(&mut self) -> char {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        char::from(ALPHABET[(z % ALPHABET.len() as u64) as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_differ_and_a_seed_repeats_them() {
        let (mut a, mut b) = (Secrets::new(7), Secrets::new(7));
        let first = a.draw();
        assert_eq!(first, b.draw());
        assert_ne!(first, a.draw());
        assert_eq!(first.len(), LENGTH);
    }
}
