//! Random values that repeat: the value at any position of the sequence.

use crate::rng::{Jump, draw15};

use super::program::Sequence;

/// Reads a sequence at the positions of a counter. Positions count modulo 2³², the period of
/// the generator.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader {
    sequence: Sequence,
    /// From one packet's position to the next one's, unless the counter passes its end.
    hop: u32,
    jump: Jump,
    /// The position that is probably next, and the generator's state there.
    expected: u32,
    state: u32,
}

impl Reader {
    /// Reads from `position` on, `hop` further each time.
    pub(super) fn new(sequence: Sequence, position: u32, hop: u32) -> Reader {
        let mut reader = Reader {
            sequence,
            hop,
            jump: Jump::NONE,
            expected: position,
            state: 0,
        };
        reader.jump = reader.steps(hop);
        reader.state = reader.steps(position).apply(sequence.seed);
        reader
    }

    /// The value at `position`, as the distance from the smallest value.
    #[inline(always)]
    pub(super) fn read(&mut self, position: u32) -> u32 {
        let Sequence { seed, draw, .. } = self.sequence;
        if position != self.expected {
            self.state = self.steps(position).apply(seed);
        }
        let state = self.state;
        self.expected = position.wrapping_add(self.hop);
        self.state = self.jump.apply(state);
        let first = Jump::ONE.apply(state);
        if draw.draws == 1 {
            draw.reduce(draw15(first))
        } else {
            let second = Jump::ONE.apply(first);
            draw.reduce((draw15(first) << 16) | draw15(second))
        }
    }

    fn steps(&self, positions: u32) -> Jump {
        Jump::steps(u64::from(positions) * u64::from(self.sequence.draw.draws))
    }
}
