//! Flows of servers whose clients may be nobody: a SYN or a first message is all that is known of
//! them. When there are too many, they make room for others, the oldest first (RFC 4987, section
//! 3.4), so that a flood from made up addresses keeps nobody out.

use super::dispatch::context;
use super::entry::FlowFlags;
use super::{Side, StatefulEngine};
use crate::flow::FlowIndex;
use crate::time::Nanos;

/// Of all places, they have one in so many at most.
const SHARE_MOST: usize = 2;
/// When there is no place left, they make room if they have more than one in so many: fewer are no
/// flood, but a load that is too much.
const SHARE_FLOOD: usize = 16;
/// Places that are looked at to find one of them.
const LOOKS_MAX: usize = 64;

/// How many there are, and where the search for the next goes on.
///
/// It goes round all places. In a flood each flow that goes is followed by one in the same place,
/// so the next one is the oldest. No list is kept, as otherwise nobody needs one.
#[derive(Debug, Default)]
pub(super) struct HalfOpen {
    flows: usize,
    hand: usize,
}

impl HalfOpen {
    /// There is one more.
    pub(super) fn enter(&mut self) {
        self.flows += 1;
    }

    /// One of them is over, or was proven.
    pub(super) fn leave(&mut self) {
        self.flows -= 1;
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.flows
    }
}

impl StatefulEngine {
    /// Has one of them go if there are too many for another flow.
    pub(super) fn make_room(&mut self, now: Nanos, side: Side) {
        let (half_open, most) = (self.half_open.count(), self.flows.len_max());
        let is_full = self.flows() == most && half_open > most / SHARE_FLOOD;
        let is_flood = side == Side::Server && half_open > most / SHARE_MOST;
        if !is_full && !is_flood {
            return;
        }
        let places = self.flows.places();
        for _ in 0..LOOKS_MAX {
            let index = FlowIndex((self.half_open.hand % places) as u32);
            self.half_open.hand = index.0 as usize + 1;
            let entry = self.flows.at(index);
            if entry.is_some_and(|entry| entry.is(FlowFlags::HalfOpen)) {
                return self.evict(now, index);
            }
        }
    }

    fn evict(&mut self, now: Nanos, index: FlowIndex) {
        let entry = self.flows.at_mut(index).expect("the caller has it");
        let port = usize::from(entry.session.key().port);
        let run = self.runs[usize::from(entry.run.0)].as_mut();
        let run = run.expect("flows belong to what runs");
        let info = self.ports[port].as_ref();
        let info = info.expect("flows have a port");
        let whose = (entry.template, entry.side());
        let mut cx = context(now, run, whose, info, &mut self.pools);
        entry.session.give_way(&mut cx);
        let side = entry.side();
        self.count_overflow(side);
        self.end(now, index);
    }
}
