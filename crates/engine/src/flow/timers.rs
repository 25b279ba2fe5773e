//! One timer for each flow: three wheels of lists that run through the flows' own places.
//!
//! | wheel | one tick | ticks | holds what is due |
//! |---|---|---|---|
//! | fine | 20 µs | 1024 | within 2 ms |
//! | coarse | 1 ms | 1024 | within half a second, or a whole one |
//! | slow | 512 ms | 1024 | later; what is further than a turn goes round again |
//!
//! Setting, moving and stopping a timer are a few writes, and there is no memory but one node a
//! flow. What lies in a tick of the coarse wheel is spread over the fine one when its time comes, so
//! a million timers of one millisecond are not due at once. A flow is at most a tick late, and
//! never woken early, but that who waits for longer than six hours is woken every six hours.

use super::slab::FlowIndex;
use crate::time::{MICROSECOND, MILLISECOND, Nanos};

const FINE_TICK: Nanos = 20 * MICROSECOND;
const FINE_PER_COARSE: u64 = MILLISECOND / FINE_TICK;
const TICKS: usize = 1024;
/// Coarse ticks are taken apart this far ahead.
const AHEAD_TICKS: u64 = 1;
/// Half of the coarse wheel: there is always room in it for a whole slow tick ahead.
const COARSE_PER_SLOW: u64 = TICKS as u64 / 2;
/// Lists of all wheels.
const LISTS: usize = 3 * TICKS;
/// Where the lists of the coarse wheel begin, and those of the slow one.
const COARSE: usize = TICKS;
const SLOW: usize = 2 * TICKS;
/// No neighbor.
const NONE: u32 = u32::MAX;

/// A timer that is further away than this is due after this long, and set again: in fine ticks,
/// six hours.
const HORIZON_TICKS: u64 = 1 << 30;
/// In the place of a flow's number: the list itself, whose number is in the lower bits.
const LIST: u32 = 1 << 31;

/// A flow's place in a list.
#[derive(Clone, Copy, Debug)]
struct Node {
    next: u32,
    /// The one before, or for the first the [`LIST`]; `NONE` while it is in none.
    previous: u32,
    /// The lower half of when it is due, in fine ticks rounded up.
    due: u32,
}

const IDLE: Node = Node {
    next: NONE,
    previous: NONE,
    due: 0,
};

impl Node {
    fn is_idle(self) -> bool {
        self.previous == NONE
    }
}

/// The timers of all flows of a core.
#[derive(Debug)]
pub struct Timers {
    nodes: Vec<Node>,
    /// The first of each list: the fine wheel, the coarse one, the slow one.
    heads: Box<[u32; LISTS]>,
    /// Which lists have something, one bit each.
    filled: [u64; LISTS / 64],
    /// Which words of `filled` have something, one bit each: mostly few.
    words: u64,
    /// All before this fine tick were handed out.
    fine_tick: u64,
    /// All before this coarse tick were moved to the fine wheel.
    coarse_tick: u64,
    /// All before this slow tick were moved to the coarse wheel.
    slow_tick: u64,
    len: usize,
}

impl Timers {
    /// Memory for each flow.
    pub const FLOW_BYTES: usize = size_of::<Node>();

    /// No timers, at time `now`.
    pub fn new(now: Nanos) -> Timers {
        let fine_tick = now / FINE_TICK;
        let coarse_tick = fine_tick / FINE_PER_COARSE + AHEAD_TICKS + 1;
        Timers {
            nodes: Vec::new(),
            heads: Box::new([NONE; LISTS]),
            filled: [0; LISTS / 64],
            words: 0,
            fine_tick,
            coarse_tick,
            slow_tick: coarse_tick / COARSE_PER_SLOW + 2,
            len: 0,
        }
    }

    /// Wakes `flow` at `at`, and no more when it was to be woken.
    pub fn set(&mut self, flow: FlowIndex, at: Nanos) {
        let place = flow.0 as usize;
        match self.nodes.get(place) {
            Some(node) if !node.is_idle() => self.unlink(*node),
            Some(_) => self.len += 1,
            None => {
                self.nodes.resize(place + 1, IDLE);
                self.len += 1;
            }
        }
        // Never in what was handed out.
        let due_tick = at.div_ceil(FINE_TICK).max(self.fine_tick);
        let due_tick = due_tick.min(self.fine_tick + HORIZON_TICKS);
        self.link(flow.0, due_tick);
    }

    /// Wakes `flow` at `at`, or before: a time that is set already and comes first stays. Times
    /// of flows mostly move on with each frame, and nothing is to be done at most of them.
    #[inline]
    pub fn set_by(&mut self, flow: FlowIndex, at: Nanos) {
        let node = self.nodes.get(flow.0 as usize).copied();
        let node = node.filter(|node| !node.is_idle());
        if node.is_none_or(|node| self.due_tick(node) > at / FINE_TICK) {
            self.set(flow, at);
        }
    }

    /// Does not wake `flow`.
    pub fn stop(&mut self, flow: FlowIndex) {
        let place = flow.0 as usize;
        let Some(&node) = self.nodes.get(place).filter(|node| !node.is_idle()) else {
            return;
        };
        self.unlink(node);
        self.nodes[place] = IDLE;
        self.len -= 1;
    }

    /// When `flow` will be woken.
    pub fn due(&self, flow: FlowIndex) -> Option<Nanos> {
        let node = self.nodes.get(flow.0 as usize)?;
        (!node.is_idle()).then(|| self.due_tick(*node) * FINE_TICK)
    }

    /// A flow that is due at `now`; call it until there is none. Its timer is stopped.
    pub fn pop_due(&mut self, now: Nanos) -> Option<FlowIndex> {
        let now_tick = now / FINE_TICK;
        loop {
            self.spread();
            let slot = self.fine_tick as usize % TICKS;
            if self.fine_tick <= now_tick && self.heads[slot] != NONE {
                let flow = FlowIndex(self.heads[slot]);
                self.stop(flow);
                return Some(flow);
            }
            if self.fine_tick >= now_tick {
                return None;
            }
            self.fine_tick = self.next_stop().min(now_tick);
        }
    }

    /// Tells some of the flows that [`pop_due`](Timers::pop_due) gives next: those whose tick is known
    /// already, as many as there is room for in `flows`. Returns how many.
    pub fn peek_due(&self, now: Nanos, flows: &mut [FlowIndex]) -> usize {
        // One turn of the wheel: behind it come the same lists again.
        let last = (now / FINE_TICK).min(self.fine_tick + TICKS as u64 - 1);
        let (mut tick, mut count) = (self.fine_tick, 0);
        while let Some(next) = self.next_filled(0, tick).filter(|next| *next <= last) {
            let mut at = self.heads[next as usize % TICKS];
            while at != NONE {
                let Some(place) = flows.get_mut(count) else {
                    return count;
                };
                *place = FlowIndex(at);
                count += 1;
                at = self.nodes[at as usize].next;
            }
            tick = next + 1;
        }
        count
    }

    /// The next fine tick where there is something to do: what lies between is empty.
    fn next_stop(&self) -> u64 {
        let fine = self.next_fine();
        let coarse = self.next_filled(COARSE, self.coarse_tick);
        let coarse = coarse.map(|tick| (tick - AHEAD_TICKS) * FINE_PER_COARSE);
        let slow = self.next_filled(SLOW, self.slow_tick);
        let slow = slow.map(|tick| (tick - 1) * COARSE_PER_SLOW * FINE_PER_COARSE);
        let stops = [fine, coarse, slow].into_iter().flatten();
        // Empty wheels go to any time in one step.
        stops.min().unwrap_or(u64::MAX)
    }

    /// When the first flow is due, or a little before; `None` when there is no timer.
    pub fn next_due(&self) -> Option<Nanos> {
        if self.len == 0 {
            return None;
        }
        if let Some(tick) = self.next_fine() {
            return Some(tick * FINE_TICK);
        }
        if let Some(tick) = self.next_filled(COARSE, self.coarse_tick) {
            return Some(tick * MILLISECOND - MILLISECOND * AHEAD_TICKS);
        }
        let tick = self.next_filled(SLOW, self.slow_tick)?;
        Some((tick - 1) * COARSE_PER_SLOW * MILLISECOND)
    }

    /// How many timers are set.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether none is set.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Moves what comes near from wheel to wheel. Empty ticks are passed in one step.
    fn spread(&mut self) {
        let target = self.fine_tick / FINE_PER_COARSE + AHEAD_TICKS + 1;
        while let Some(tick) = self.next_filled(COARSE, self.coarse_tick) {
            if tick >= target {
                break;
            }
            self.coarse_tick = tick + 1;
            self.link_again(COARSE + tick as usize % TICKS);
        }
        self.coarse_tick = self.coarse_tick.max(target);
        let target = self.coarse_tick / COARSE_PER_SLOW + 2;
        while let Some(tick) = self.next_filled(SLOW, self.slow_tick) {
            if tick >= target {
                break;
            }
            self.slow_tick = tick + 1;
            self.link_again(SLOW + tick as usize % TICKS);
        }
        self.slow_tick = self.slow_tick.max(target);
    }

    /// Puts all flows of a list where they belong now.
    fn link_again(&mut self, slot: usize) {
        let mut at = std::mem::replace(&mut self.heads[slot], NONE);
        self.note_empty(slot);
        while at != NONE {
            let node = self.nodes[at as usize];
            self.link(at, self.due_tick(node));
            at = node.next;
        }
    }

    /// The list that a flow due at `tick` belongs to now.
    fn slot_of(&self, place: u32, tick: u64) -> usize {
        let coarse = tick / FINE_PER_COARSE;
        if coarse < self.coarse_tick {
            return tick as usize % TICKS;
        }
        let slow = coarse / COARSE_PER_SLOW;
        if slow < self.slow_tick {
            return COARSE + coarse as usize % TICKS;
        }
        // Those that go round again do not all come at once.
        let last = self.slow_tick + TICKS as u64 - 1 - u64::from(place) % (TICKS as u64 / 2);
        SLOW + slow.min(last) as usize % TICKS
    }

    fn link(&mut self, place: u32, due_tick: u64) {
        let slot = self.slot_of(place, due_tick);
        let head = self.heads[slot];
        self.nodes[place as usize] = Node {
            next: head,
            previous: LIST | slot as u32,
            due: due_tick as u32,
        };
        if head != NONE {
            self.nodes[head as usize].previous = place;
        }
        self.heads[slot] = place;
        self.filled[slot / 64] |= 1 << (slot % 64);
        self.words |= 1 << (slot / 64);
    }

    fn unlink(&mut self, node: Node) {
        if node.next != NONE {
            self.nodes[node.next as usize].previous = node.previous;
        }
        if node.previous & LIST == 0 {
            self.nodes[node.previous as usize].next = node.next;
            return;
        }
        let slot = (node.previous & !LIST) as usize;
        self.heads[slot] = node.next;
        if node.next == NONE {
            self.note_empty(slot);
        }
    }

    /// When a node is due: it is less than half of the lower half away.
    fn due_tick(&self, node: Node) -> u64 {
        self.fine_tick + u64::from(node.due.wrapping_sub(self.fine_tick as u32))
    }

    /// The first fine tick from now on that has something.
    fn next_fine(&self) -> Option<u64> {
        self.next_filled(0, self.fine_tick)
    }

    /// A list has nothing any more.
    fn note_empty(&mut self, slot: usize) {
        let word = &mut self.filled[slot / 64];
        *word &= !(1 << (slot % 64));
        self.words &= !(u64::from(*word == 0) << (slot / 64));
    }

    /// The first tick from `tick` on whose list has something, within a turn.
    #[inline]
    fn next_filled(&self, wheel: usize, tick: u64) -> Option<u64> {
        let start = tick as usize % TICKS;
        let first = start / 64;
        let here = self.filled[wheel / 64 + first] & u64::MAX << (start % 64);
        let slot = if here != 0 {
            first * 64 + here.trailing_zeros() as usize
        } else {
            // The words of this wheel, the next one first; the last is the first again, of which
            // what lies before `start` is left.
            let words = (self.words >> (wheel / 64)) as u16;
            let next = words.rotate_right(first as u32 + 1);
            if next == 0 {
                return None;
            }
            let place = (first + 1 + next.trailing_zeros() as usize) % (TICKS / 64);
            let word = self.filled[wheel / 64 + place];
            place * 64 + word.trailing_zeros() as usize
        };
        let ahead = (slot + TICKS - start) % TICKS;
        Some(tick + ahead as u64)
    }
}

/// The words of a wheel have a bit each.
const _: () = assert!(TICKS / 64 == u16::BITS as usize && LISTS / 64 <= u64::BITS as usize);

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::time::SECOND;

    #[derive(Clone, Debug)]
    enum Step {
        Set(u32, Nanos),
        Stop(u32),
        Advance(Nanos),
    }

    fn some_step() -> impl Strategy<Value = Step> {
        let span = prop_oneof![
            0..100 * MICROSECOND,
            0..30 * MILLISECOND,
            0..5 * SECOND,
            Just(20 * SECOND),
            0..2_000 * SECOND,
        ];
        prop_oneof![
            3 => (0..50u32, span.clone()).prop_map(|(flow, after)| Step::Set(flow, after)),
            1 => (0..50u32).prop_map(Step::Stop),
            2 => span.prop_map(Step::Advance),
        ]
    }

    proptest! {
        #[test]
        fn flows_are_woken_in_time(
            start in 0..100 * SECOND,
            steps in prop::collection::vec(some_step(), 0..120),
        ) {
            let mut now = start;
            let mut timers = Timers::new(now);
            let mut naive: BTreeMap<u32, Nanos> = BTreeMap::new();
            for step in steps {
                match step {
                    Step::Set(flow, after) => {
                        timers.set(FlowIndex(flow), now + after);
                        naive.insert(flow, now + after);
                    }
                    Step::Stop(flow) => {
                        timers.stop(FlowIndex(flow));
                        naive.remove(&flow);
                    }
                    Step::Advance(span) => {
                        now += span;
                        let mut ahead = [FlowIndex(0); 3];
                        let count = timers.peek_due(now, &mut ahead);
                        prop_assert!(count <= naive.values().filter(|due| **due <= now).count());
                        let is_due = |flow: &FlowIndex| naive.get(&flow.0).is_some_and(|due| *due <= now);
                        prop_assert!(ahead[..count].iter().all(is_due));
                        while let Some(flow) = timers.pop_due(now) {
                            let due = naive.remove(&flow.0);
                            prop_assert!(due.is_some_and(|due| due <= now), "{flow:?} {due:?} {now}");
                        }
                        let late = naive.values().find(|due| **due + FINE_TICK <= now);
                        prop_assert_eq!(late, None, "now {}", now);
                    }
                }
                prop_assert_eq!(timers.len(), naive.len());
                let first = naive.values().min().copied();
                let told = timers.next_due();
                prop_assert_eq!(told.is_some(), first.is_some());
                if let (Some(told), Some(first)) = (told, first) {
                    prop_assert!(told <= first.max(now) + FINE_TICK, "{told} {first}");
                }
            }
        }
    }

    #[test]
    fn who_waits_for_days_is_woken_now_and_then() {
        let mut timers = Timers::new(0);
        let day = 24 * 3600 * SECOND;
        timers.set(FlowIndex(1), day);
        assert_eq!(timers.pop_due(5 * 3600 * SECOND), None);
        let now = 6 * 3600 * SECOND;
        assert_eq!(timers.pop_due(now), Some(FlowIndex(1)));
        timers.set(FlowIndex(1), day);
        timers.set(FlowIndex(2), now + SECOND);
        assert_eq!(timers.pop_due(now + 2 * SECOND), Some(FlowIndex(2)));
        assert_eq!(timers.pop_due(day), Some(FlowIndex(1)));
        assert!(timers.is_empty());
    }

    #[test]
    fn a_timer_is_moved_and_stopped_wherever_it_is() {
        let mut timers = Timers::new(0);
        for flow in 0..10 {
            timers.set(FlowIndex(flow), 10 * SECOND);
        }
        assert_eq!(timers.due(FlowIndex(3)), Some(10 * SECOND));
        assert_eq!(timers.pop_due(5 * SECOND), None);
        for flow in (0..10).rev() {
            timers.stop(FlowIndex(flow));
        }
        assert!(timers.is_empty());
        assert_eq!(timers.pop_due(20 * SECOND), None);
        timers.set(FlowIndex(1), 0);
        assert_eq!(
            timers.pop_due(20 * SECOND),
            Some(FlowIndex(1)),
            "the past is now"
        );
    }

    #[test]
    fn flows_that_are_due_are_told_before_they_are_given() {
        let mut timers = Timers::new(0);
        for flow in 0..5 {
            timers.set(FlowIndex(flow), MILLISECOND / 2);
        }
        timers.set(FlowIndex(5), MILLISECOND);
        let mut ahead = [FlowIndex(9); 8];
        assert_eq!(timers.peek_due(MILLISECOND / 4, &mut ahead), 0);
        assert_eq!(timers.peek_due(MILLISECOND / 2, &mut ahead[..3]), 3);
        let count = timers.peek_due(MILLISECOND, &mut ahead);
        let given: Vec<_> = std::iter::from_fn(|| timers.pop_due(MILLISECOND)).collect();
        assert_eq!(ahead[..count], given);
        assert_eq!(given.len(), 6);
    }

    #[test]
    fn a_time_that_comes_first_stays() {
        let mut timers = Timers::new(0);
        let flow = FlowIndex(3);
        timers.set_by(flow, 10 * MILLISECOND);
        assert_eq!(timers.due(flow), Some(10 * MILLISECOND));
        timers.set_by(flow, 200 * MILLISECOND);
        assert_eq!(timers.due(flow), Some(10 * MILLISECOND));
        timers.set_by(flow, MILLISECOND);
        assert_eq!(timers.due(flow), Some(MILLISECOND));
        assert_eq!(timers.pop_due(MILLISECOND), Some(flow));
        timers.set_by(flow, 200 * MILLISECOND);
        assert_eq!(timers.due(flow), Some(200 * MILLISECOND));
        assert_eq!(timers.len(), 1);
    }
}
