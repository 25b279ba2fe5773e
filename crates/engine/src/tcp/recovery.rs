//! What a connection needs only while something is lost: kept aside, so that others need not pay.

use super::cold::ColdPool;
use super::ranges::Ranges;
use super::seq::Seq;

/// What a connection keeps while something is missing, on either way.
#[derive(Clone, Debug, Default)]
pub(super) struct Side {
    /// What arrived beyond what is missing.
    pub(super) arrived: Ranges,
    /// Pieces that `arrived` is made of, and at most was since it was last empty.
    pub(super) pieces: u16,
    pub(super) pieces_most: u16,
    /// The range of `arrived` that grew last: the other side is told of it first.
    pub(super) newest: Seq,
    /// What the other side says that it has beyond what is missing there.
    pub(super) sacked: Ranges,
    /// In recovery: all before this that is not sacked was sent again.
    pub(super) resent: Seq,
}

/// Where in the pool a connection's block is; none while it needs none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RecoveryIndex(u32);

impl RecoveryIndex {
    /// No block.
    pub(super) const NONE: RecoveryIndex = RecoveryIndex(0);

    /// Whether there is a block.
    #[inline]
    pub(super) fn is_some(self) -> bool {
        self != RecoveryIndex::NONE
    }
}

/// The blocks of all connections of a core. Those that are given back keep their memory.
#[derive(Clone, Debug, Default)]
pub struct RecoveryPool {
    sides: Vec<Side>,
    free: Vec<u32>,
    /// What those keep to whom something happened.
    pub(super) cold: ColdPool,
}

impl RecoveryPool {
    /// The block at `index`, which becomes a new one when there is none.
    pub(super) fn of(&mut self, index: &mut RecoveryIndex) -> &mut Side {
        if !index.is_some() {
            let place = self.free.pop().unwrap_or_else(|| {
                self.sides.push(Side::default());
                self.sides.len() as u32
            });
            *index = RecoveryIndex(place);
        }
        &mut self.sides[index.0 as usize - 1]
    }

    /// The block at `index`, if there is one.
    pub(super) fn look(&self, index: RecoveryIndex) -> Option<&Side> {
        self.sides.get((index.0 as usize).checked_sub(1)?)
    }

    /// Gives a block back.
    pub(super) fn release(&mut self, index: &mut RecoveryIndex) {
        if !index.is_some() {
            return;
        }
        let side = &mut self.sides[index.0 as usize - 1];
        side.arrived.clear();
        side.sacked.clear();
        (side.pieces, side.pieces_most) = (0, 0);
        self.free.push(index.0);
        *index = RecoveryIndex::NONE;
    }

    /// Blocks that connections hold, of either kind.
    pub fn in_use(&self) -> usize {
        self.sides.len() - self.free.len() + self.cold.in_use()
    }
}
