//! The strings that prove a handshake or an ownership: eight letters and digits.

use crate::control::split_mix::SplitMix64;

/// Draws strings from a seed.
#[derive(Clone, Debug)]
pub(in crate::control) struct Secrets {
    random: SplitMix64,
}

const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const LENGTH: usize = 8;

impl Secrets {
    pub(in crate::control) fn new(seed: u64) -> Secrets {
        Secrets {
            random: SplitMix64::new(seed),
        }
    }

    /// The next string.
    pub(in crate::control) fn draw(&mut self) -> String {
        (0..LENGTH).map(|_| self.letter()).collect()
    }

    fn letter(&mut self) -> char {
        let place = self.random.bits() % ALPHABET.len() as u64;
        char::from(ALPHABET[place as usize])
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
