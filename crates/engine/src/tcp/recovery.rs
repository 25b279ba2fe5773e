//! State of loss recovery and reassembly, in a pool: only connections that miss something pay for it.

use super::cold::ColdPool;
use super::ranges::Ranges;
use super::seq::Seq;

/// What a connection keeps while data is missing, in either direction.
#[derive(Clone, Debug, Default)]
pub(super) struct RecoveryState {
    /// What was received beyond RCV.NXT.
    pub(super) received: Ranges,
    /// Segments that `received` is made of, and the most since it was last empty.
    pub(super) pieces: u16,
    pub(super) pieces_most: u16,
    /// The range of `received` that grew last, which is the first SACK block.
    pub(super) newest: Seq,
    /// What the peer has sacked beyond SND.UNA.
    pub(super) sacked: Ranges,
    /// In fast recovery: all below this that is not sacked was retransmitted (HighRxt of RFC 6675).
    pub(super) high_rxt: Seq,
}

/// The place of a connection's state in the pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RecoveryIndex(u32);

impl RecoveryIndex {
    /// No state.
    pub(super) const NONE: RecoveryIndex = RecoveryIndex(0);

    /// Whether there is a state.
    #[inline]
    pub(super) fn is_some(self) -> bool {
        self != RecoveryIndex::NONE
    }
}

/// The states of all connections of a core. Those that are given back keep their memory.
#[derive(Clone, Debug, Default)]
pub struct RecoveryPool {
    states: Vec<RecoveryState>,
    free: Vec<u32>,
    /// What few connections ever need.
    pub(super) cold: ColdPool,
}

impl RecoveryPool {
    /// The state at `index`, which becomes a new one when there is none.
    pub(super) fn of(&mut self, index: &mut RecoveryIndex) -> &mut RecoveryState {
        if !index.is_some() {
            let place = self.free.pop().unwrap_or_else(|| {
                self.states.push(RecoveryState::default());
                self.states.len() as u32
            });
            *index = RecoveryIndex(place);
        }
        &mut self.states[index.0 as usize - 1]
    }

    /// The state at `index`, if there is one.
    pub(super) fn get(&self, index: RecoveryIndex) -> Option<&RecoveryState> {
        self.states.get((index.0 as usize).checked_sub(1)?)
    }

    /// Gives a state back.
    pub(super) fn release(&mut self, index: &mut RecoveryIndex) {
        if !index.is_some() {
            return;
        }
        let state = &mut self.states[index.0 as usize - 1];
        state.received.clear();
        state.sacked.clear();
        (state.pieces, state.pieces_most) = (0, 0);
        self.free.push(index.0);
        *index = RecoveryIndex::NONE;
    }

    /// States that connections hold, cold ones too.
    pub fn in_use(&self) -> usize {
        self.states.len() - self.free.len() + self.cold.in_use()
    }
}
