//! What most connections never need, and keep until their end once they did: what a loss, a closed
//! window or a FIN before its time left behind. Set aside, so that others need not pay.

use super::congestion::Cubic;
use super::seq::Seq;

/// The time between two answers to segments that are empty and have no place here.
const ANSWER_MS: u32 = 100;
/// In [`ColdIndex`]: the rest is when it answered last, as there is no block. A keepalive probe is
/// answered so, and each idle connection gets some.
const ANSWERED: u32 = 1 << 31;

/// What a connection keeps once something happened to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ColdState {
    /// What must be acknowledged before the repair is complete (RFC 6582). It means something
    /// only with RECOVERY, HELD or SLOWED.
    pub(super) recover: Seq,
    /// The number of the other side's FIN. It means something only with EARLY_FIN.
    pub(super) early_fin: Seq,
    /// 0, or when it answered last, with [`ANSWERED`].
    answered: u32,
    /// Segments with data sent again; stays at its highest.
    pub(super) resent_segments: u16,
    /// Segments that came out of order; stays at its highest.
    pub(super) disordered_segments: u16,
    /// Times that the other side closed its window; stays at its highest.
    pub(super) closed_windows: u16,
    /// The curve of a connection that uses CUBIC.
    pub(super) cubic: Cubic,
}

impl ColdState {
    /// Of a connection to which nothing happened.
    pub(super) const NOTHING: ColdState = ColdState {
        recover: Seq(0),
        early_fin: Seq(0),
        answered: 0,
        resent_segments: 0,
        disordered_segments: 0,
        closed_windows: 0,
        cubic: Cubic::NONE,
    };
}

/// Where in the pool a connection's block is, plus one. 0 while it has none, or with [`ANSWERED`]
/// what the block would say of that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ColdIndex(u32);

impl ColdIndex {
    /// Whether there is a block.
    pub(super) fn is_some(self) -> bool {
        self.place().is_some()
    }

    fn place(self) -> Option<usize> {
        let has_block = self.0 & ANSWERED == 0;
        (self.0 as usize).checked_sub(1).filter(|_| has_block)
    }
}

/// The blocks of all connections of a core. Those that are given back keep their memory.
#[derive(Clone, Debug, Default)]
pub(super) struct ColdPool {
    blocks: Vec<ColdState>,
    free: Vec<u32>,
}

impl ColdPool {
    /// The block at `index`, which becomes a new one when there is none.
    #[cold]
    pub(super) fn of(&mut self, index: &mut ColdIndex) -> &mut ColdState {
        if !index.is_some() {
            let answered = index.0;
            index.0 = self.free.pop().unwrap_or_else(|| {
                self.blocks.push(ColdState::NOTHING);
                self.blocks.len() as u32
            });
            self.blocks[index.0 as usize - 1] = ColdState {
                answered,
                ..ColdState::NOTHING
            };
        }
        &mut self.blocks[index.0 as usize - 1]
    }

    /// What is known of the connection whose block is at `index`.
    pub(super) fn look(&self, index: ColdIndex) -> &ColdState {
        let block = index.place().and_then(|place| self.blocks.get(place));
        block.unwrap_or(&ColdState::NOTHING)
    }

    /// The block at `index`, if there is one.
    pub(super) fn look_mut(&mut self, index: ColdIndex) -> Option<&mut ColdState> {
        self.blocks.get_mut(index.place()?)
    }

    /// Something that has no place in the connection is answered now. That makes no block.
    pub(super) fn note_answer(&mut self, index: &mut ColdIndex, now_ms: u32) {
        match self.look_mut(*index) {
            Some(block) => block.answered = now_ms | ANSWERED,
            None => index.0 = now_ms | ANSWERED,
        }
    }

    /// Whether it was answered a moment ago.
    pub(super) fn has_answered(&self, index: ColdIndex, now_ms: u32) -> bool {
        let answered = match index.place() {
            Some(place) => self.blocks[place].answered,
            None => index.0,
        };
        let waited_ms = now_ms.wrapping_sub(answered) & !ANSWERED;
        answered != 0 && waited_ms < ANSWER_MS
    }

    /// Gives a block back.
    pub(super) fn release(&mut self, index: &mut ColdIndex) {
        if index.is_some() {
            self.free.push(index.0);
        }
        *index = ColdIndex::default();
    }

    /// Blocks that connections hold.
    pub(super) fn in_use(&self) -> usize {
        self.blocks.len() - self.free.len()
    }
}

/// As many of them are held at once as connections have lost something.
const _: () = assert!(size_of::<ColdState>() == 36);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_answer_is_remembered_for_a_moment_with_a_block_and_without() {
        for now_ms in [0, 99, ANSWERED - 1, ANSWERED, u32::MAX] {
            let later = |ms| now_ms.wrapping_add(ms);
            let mut pool = ColdPool::default();
            let mut index = ColdIndex::default();
            assert!(!pool.has_answered(index, now_ms));
            pool.note_answer(&mut index, now_ms);
            assert_eq!(pool.in_use(), 0, "an answer needs no block");
            assert!(pool.has_answered(index, later(ANSWER_MS - 1)));
            assert!(!pool.has_answered(index, later(ANSWER_MS)));
            pool.of(&mut index).closed_windows = 7;
            assert!(pool.has_answered(index, later(ANSWER_MS - 1)));
            pool.note_answer(&mut index, later(ANSWER_MS));
            assert_eq!((pool.look(index).closed_windows, pool.in_use()), (7, 1));
            assert!(pool.has_answered(index, later(2 * ANSWER_MS - 1)));
            pool.release(&mut index);
            assert!(!pool.has_answered(index, later(ANSWER_MS)));
            assert_eq!(pool.of(&mut index).closed_windows, 0, "a new one is empty");
        }
    }

    proptest! {
        #[test]
        fn each_has_a_block_of_its_own_and_gives_it_back(
            steps in prop::collection::vec((0..4, 0_usize..20), 0..200),
        ) {
            let mut pool = ColdPool::default();
            let mut all = [(ColdIndex::default(), None); 20];
            for (number, (step, which)) in steps.into_iter().enumerate() {
                let (index, known) = &mut all[which];
                let value = number as u16 + 1;
                match step {
                    0 | 1 => {
                        pool.of(index).resent_segments = value;
                        *known = Some(value);
                    }
                    2 => pool.note_answer(index, number as u32),
                    _ => {
                        pool.release(index);
                        *known = None;
                    }
                }
                for (index, known) in &all {
                    let resent = pool.look(*index).resent_segments;
                    prop_assert_eq!(resent, known.unwrap_or(0));
                    prop_assert_eq!(index.is_some(), known.is_some());
                }
                let held = all.iter().filter(|(_, known)| known.is_some());
                prop_assert_eq!(pool.in_use(), held.count());
            }
            all.iter_mut().for_each(|(index, _)| pool.release(index));
            prop_assert_eq!(pool.in_use(), 0);
        }
    }
}
