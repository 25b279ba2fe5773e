//! The cold state of a connection, in a pool: what a loss, a zero window or an early FIN leaves behind.
//! Most connections never need one; those that do keep it until their end.

use super::congestion::Cubic;
use super::seq::Seq;

/// The least time between two challenge ACKs to segments without data (RFC 5961, section 7).
const CHALLENGE_ACK_MS: u32 = 100;
/// In [`ColdIndex`]: the rest is the time of the last challenge ACK, as there is no cold state. A
/// keepalive probe is answered by one, and each idle connection gets some.
const CHALLENGED: u32 = 1 << 31;

/// What a connection keeps once it had a loss, a zero window or an early FIN.
#[derive(Clone, Copy, Debug)]
pub(super) struct ColdState {
    /// What must be acknowledged before recovery is complete (`recover` of RFC 6582). Valid with
    /// FAST_RECOVERY, BELOW_RECOVER or CONGESTION_RECOVERY.
    pub(super) recover: Seq,
    /// The sequence number of the peer's FIN. Valid with FIN_OUT_OF_ORDER.
    pub(super) fin_seq: Seq,
    /// 0, or the time of the last challenge ACK, with [`CHALLENGED`].
    challenge_ack_ms: u32,
    /// Segments with data that were retransmitted; saturates.
    pub(super) retransmitted_segments: u16,
    /// Segments that arrived out of order; saturates.
    pub(super) out_of_order_segments: u16,
    /// Times that the peer closed its window; saturates.
    pub(super) zero_windows: u16,
    /// The curve of a connection that uses CUBIC.
    pub(super) cubic: Cubic,
}

impl ColdState {
    /// That of a connection that has none.
    pub(super) const NOTHING: ColdState = ColdState {
        recover: Seq(0),
        fin_seq: Seq(0),
        challenge_ack_ms: 0,
        retransmitted_segments: 0,
        out_of_order_segments: 0,
        zero_windows: 0,
        cubic: Cubic::NONE,
    };
}

/// The place of a connection's cold state in the pool, plus one. While it has none: 0, or the time of
/// the last challenge ACK with [`CHALLENGED`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ColdIndex(u32);

impl ColdIndex {
    /// Whether there is a cold state.
    pub(super) fn is_some(self) -> bool {
        self.place().is_some()
    }

    fn place(self) -> Option<usize> {
        let has_state = self.0 & CHALLENGED == 0;
        (self.0 as usize).checked_sub(1).filter(|_| has_state)
    }
}

/// The cold states of all connections of a core. Those that are given back keep their memory.
#[derive(Clone, Debug, Default)]
pub(super) struct ColdPool {
    states: Vec<ColdState>,
    free: Vec<u32>,
}

impl ColdPool {
    /// The state at `index`, which becomes a new one when there is none.
    #[cold]
    pub(super) fn of(&mut self, index: &mut ColdIndex) -> &mut ColdState {
        if !index.is_some() {
            let challenge_ack_ms = index.0;
            index.0 = self.free.pop().unwrap_or_else(|| {
                self.states.push(ColdState::NOTHING);
                self.states.len() as u32
            });
            self.states[index.0 as usize - 1] = ColdState {
                challenge_ack_ms,
                ..ColdState::NOTHING
            };
        }
        &mut self.states[index.0 as usize - 1]
    }

    /// The state at `index`, or that of a connection without one.
    pub(super) fn get(&self, index: ColdIndex) -> &ColdState {
        let state = index.place().and_then(|place| self.states.get(place));
        state.unwrap_or(&ColdState::NOTHING)
    }

    /// The state at `index`, if there is one.
    pub(super) fn look_mut(&mut self, index: ColdIndex) -> Option<&mut ColdState> {
        self.states.get_mut(index.place()?)
    }

    /// A challenge ACK is sent now. That makes no state.
    pub(super) fn note_challenge_ack(&mut self, index: &mut ColdIndex, now_ms: u32) {
        match self.look_mut(*index) {
            Some(state) => state.challenge_ack_ms = now_ms | CHALLENGED,
            None => index.0 = now_ms | CHALLENGED,
        }
    }

    /// Whether a challenge ACK was sent less than [`CHALLENGE_ACK_MS`] ago.
    pub(super) fn challenged_recently(&self, index: ColdIndex, now_ms: u32) -> bool {
        let challenge_ack_ms = match index.place() {
            Some(place) => self.states[place].challenge_ack_ms,
            None => index.0,
        };
        let waited_ms = now_ms.wrapping_sub(challenge_ack_ms) & !CHALLENGED;
        challenge_ack_ms != 0 && waited_ms < CHALLENGE_ACK_MS
    }

    /// Gives a state back.
    pub(super) fn release(&mut self, index: &mut ColdIndex) {
        if index.is_some() {
            self.free.push(index.0);
        }
        *index = ColdIndex::default();
    }

    /// States that connections hold.
    pub(super) fn in_use(&self) -> usize {
        self.states.len() - self.free.len()
    }
}

/// There is one for each connection that had a loss.
const _: () = assert!(size_of::<ColdState>() == 36);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_challenge_ack_is_remembered_for_a_moment_with_a_state_and_without() {
        for now_ms in [0, 99, CHALLENGED - 1, CHALLENGED, u32::MAX] {
            let later = |ms| now_ms.wrapping_add(ms);
            let mut pool = ColdPool::default();
            let mut index = ColdIndex::default();
            assert!(!pool.challenged_recently(index, now_ms));
            pool.note_challenge_ack(&mut index, now_ms);
            assert_eq!(pool.in_use(), 0, "a challenge ACK needs no state");
            assert!(pool.challenged_recently(index, later(CHALLENGE_ACK_MS - 1)));
            assert!(!pool.challenged_recently(index, later(CHALLENGE_ACK_MS)));
            pool.of(&mut index).zero_windows = 7;
            assert!(pool.challenged_recently(index, later(CHALLENGE_ACK_MS - 1)));
            pool.note_challenge_ack(&mut index, later(CHALLENGE_ACK_MS));
            assert_eq!((pool.get(index).zero_windows, pool.in_use()), (7, 1));
            assert!(pool.challenged_recently(index, later(2 * CHALLENGE_ACK_MS - 1)));
            pool.release(&mut index);
            assert!(!pool.challenged_recently(index, later(CHALLENGE_ACK_MS)));
            assert_eq!(pool.of(&mut index).zero_windows, 0, "a new one is empty");
        }
    }

    proptest! {
        #[test]
        fn each_has_a_state_of_its_own_and_gives_it_back(
            steps in prop::collection::vec((0..4, 0_usize..20), 0..200),
        ) {
            let mut pool = ColdPool::default();
            let mut all = [(ColdIndex::default(), None); 20];
            for (number, (step, which)) in steps.into_iter().enumerate() {
                let (index, known) = &mut all[which];
                let value = number as u16 + 1;
                match step {
                    0 | 1 => {
                        pool.of(index).retransmitted_segments = value;
                        *known = Some(value);
                    }
                    2 => pool.note_challenge_ack(index, number as u32),
                    _ => {
                        pool.release(index);
                        *known = None;
                    }
                }
                for (index, known) in &all {
                    let resent = pool.get(*index).retransmitted_segments;
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
