//! When the reports of an answer to a general query leave: all of them within the time that the
//! router gives (RFC 3376 section 5.2, RFC 3810 section 6.2).
//!
//! An answer goes through the table of groups once. A query that comes meanwhile asks for all groups
//! again: the answer then goes on where it is, and behind the end of the table from its beginning to
//! that place. What the earlier query waits for leaves as planned or sooner, and no number of
//! queries makes an answer longer than once through the table after the last of them.

use allosaur_engine::time::{MILLISECOND, Nanos};

use super::groups::Cursor;

/// Answers that take many packets are spread in steps of this, the unit of IGMP's response time.
const STEP: Nanos = 100 * MILLISECOND;
/// No answer has more packets than one in this time.
const GAP_MIN: Nanos = MILLISECOND;

/// An answer to a general query, in the making.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    /// The place in the table where the next packet begins.
    pub(super) cursor: Cursor,
    /// Groups from the cursor on are told up to the first with this number: those that came later
    /// are not part of the answer.
    pub(super) below: u64,
    /// Behind them, those from the beginning of the table up to the first with this number.
    pub(super) again: u64,
    /// When the next packet leaves.
    pub(super) at: Nanos,
    pub(super) pace: Pace,
}

/// How the packets of an answer are spread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    gap: Nanos,
    /// When all must have left.
    deadline: Nanos,
}

impl Pace {
    /// The pace of so many packets at most, when the first of them leaves, and whether they are too
    /// many for the time. `draw` gives a random number up to a limit, which delays a single packet.
    pub(super) fn new(
        now: Nanos,
        max_response: Nanos,
        packets: usize,
        draw: impl FnOnce(Nanos) -> Nanos,
    ) -> (Pace, Nanos, bool) {
        // A report needs some time to its router.
        let time = max_response - (max_response / 10).min(STEP);
        let even = time / packets.max(1) as Nanos;
        let gap = match even {
            STEP.. => even / STEP * STEP,
            _ => even.max(GAP_MIN),
        };
        let is_single = packets <= 1;
        let delay = if is_single { draw(time) } else { gap };
        let pace = Pace {
            gap,
            deadline: now + time,
        };
        (pace, now + delay, !is_single && even < GAP_MIN)
    }

    /// When the packet behind one that left then follows. Sources that came meanwhile may need more
    /// packets than were planned: they follow closely, once the time is over.
    pub(super) fn next(&self, at: Nanos) -> Nanos {
        (at + self.gap).min(self.deadline).max(at + GAP_MIN)
    }
}

impl Answer {
    /// This, which answers a later query, for an earlier one as well, which `other` answers: as fast
    /// as the faster of both.
    pub(super) fn merged(self, other: Option<Answer>) -> Answer {
        let Some(other) = other else {
            return self;
        };
        Answer {
            at: self.at.min(other.at),
            pace: Pace {
                gap: self.pace.gap.min(other.pace.gap),
                ..self.pace
            },
            ..self
        }
    }
}
