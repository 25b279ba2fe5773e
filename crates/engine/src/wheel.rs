//! The scheduler of one core: a priority queue in nanoseconds over timer wheels (paper, Fig. 2), the
//! two of the paper and one for what is far away: a million timers of minutes cost nothing until then.
//!
//! | level | one tick | ticks | holds what is due | order |
//! |---|---|---|---|---|
//! | queue | 1 ns | – | in the current 20 µs, or earlier | exact |
//! | fine wheel | 20 µs | 1024 | within the next 20.48 ms | by tick |
//! | coarse wheel | 1 ms | 1024 | within the next 1.024 s | by tick |
//! | far wheel | 128 ms | 1024 | later | by tick, beyond 131 s by round |
//!
//! Every item keeps its own nanosecond, so what a tick held spreads over the ticks of the wheel below
//! when it moves down, and the queue stays short however many items wait.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::time::{MICROSECOND, MILLISECOND, Nanos};

/// One tick of the fine wheel.
pub const FINE_TICK: Nanos = 20 * MICROSECOND;
/// One tick of the coarse wheel.
pub const COARSE_TICK: Nanos = MILLISECOND;
/// One tick of the far wheel.
pub const FAR_TICK: Nanos = 128 * MILLISECOND;
/// Ticks of one turn of each wheel.
pub const WHEEL_TICKS: u64 = 1024;

/// Coarse ticks are moved down this far ahead, so that nothing is late for its fine tick.
const CASCADE_AHEAD_TICKS: u64 = 2;
/// The same for far ticks.
const FAR_AHEAD_TICKS: u64 = 1;

/// Items by the time that they are due; those of one time by their own order. Drive it like this, once a turn:
/// [`advance`](Scheduler::advance), then [`pop_due`](Scheduler::pop_due) until it is empty, and
/// [`insert`](Scheduler::insert) at any time.
#[derive(Debug)]
pub struct Scheduler<T> {
    queue: BinaryHeap<Entry<T>>,
    fine: Wheel<T>,
    coarse: Wheel<T>,
    far: Wheel<T>,
    /// The fine tick that the queue covers: all that is due before its end is in the queue.
    fine_tick: u64,
    /// Coarse ticks up to this one have been moved down.
    coarse_tick: u64,
    /// The same of far ticks.
    far_tick: u64,
}

impl<T: Copy + Ord> Default for Scheduler<T> {
    fn default() -> Self {
        Scheduler::new(0)
    }
}

impl<T: Copy + Ord> Scheduler<T> {
    /// An empty scheduler at time `now`.
    pub fn new(now: Nanos) -> Scheduler<T> {
        let coarse_tick = now / COARSE_TICK + CASCADE_AHEAD_TICKS;
        Scheduler {
            queue: BinaryHeap::new(),
            fine: Wheel::default(),
            coarse: Wheel::default(),
            far: Wheel::default(),
            fine_tick: now / FINE_TICK,
            coarse_tick,
            far_tick: far_target(coarse_tick),
        }
    }

    /// Makes `item` due at `at`; in the past is at once.
    #[inline]
    pub fn insert(&mut self, at: Nanos, item: T) {
        let tick = at / FINE_TICK;
        if tick <= self.fine_tick {
            self.queue.push(Entry { at, item });
        } else if tick < self.fine_tick + WHEEL_TICKS && at / COARSE_TICK <= self.coarse_tick {
            self.fine.insert(tick, at, item);
        } else {
            self.insert_coarse(at, item);
        }
    }

    /// What is further away than a turn of the far wheel waits in its last tick, and goes round again
    /// from there.
    fn insert_coarse(&mut self, at: Nanos, item: T) {
        let tick = (at / COARSE_TICK).max(self.coarse_tick + 1);
        if tick < self.coarse_tick + WHEEL_TICKS {
            self.coarse.insert(tick, at, item);
        } else {
            let last = self.far_tick + WHEEL_TICKS - 1;
            let tick = (at / FAR_TICK).clamp(self.far_tick + 1, last);
            self.far.insert(tick, at, item);
        }
    }

    /// Moves what is due by `now` into the queue. Time never goes back: an earlier `now` than
    /// before changes nothing.
    pub fn advance(&mut self, now: Nanos) {
        let target = now / FINE_TICK;
        if target <= self.fine_tick {
            return;
        }
        let coarse_target = now / COARSE_TICK + CASCADE_AHEAD_TICKS;
        self.cascade(coarse_target, target);
        self.cascade_far(coarse_target, target);
        self.collect_fine(target);
        self.fine_tick = target;
    }

    /// Moves coarse ticks up to `coarse_target` down to the queue or the fine wheel.
    fn cascade(&mut self, coarse_target: u64, fine_target: u64) {
        while let Some(tick) = self.coarse.next_occupied(self.coarse_tick + 1) {
            if tick > coarse_target {
                break;
            }
            self.coarse_tick = tick;
            let mut list = self.coarse.take(tick);
            while let Some((at, item)) = self.coarse.pop(&mut list) {
                self.insert_after_cascade(at, item, coarse_target, fine_target);
            }
        }
        self.coarse_tick = self.coarse_tick.max(coarse_target);
    }

    /// Moves far ticks down, once the coarse wheel is where it shall be: so there is room in it.
    fn cascade_far(&mut self, coarse_target: u64, fine_target: u64) {
        let far_target = far_target(coarse_target);
        if far_target <= self.far_tick {
            return;
        }
        while let Some(tick) = self.far.next_occupied(self.far_tick + 1) {
            if tick > far_target {
                break;
            }
            self.far_tick = tick;
            let mut list = self.far.take(tick);
            while let Some((at, item)) = self.far.pop(&mut list) {
                self.insert_after_cascade(at, item, coarse_target, fine_target);
            }
        }
        self.far_tick = far_target;
    }

    fn insert_after_cascade(&mut self, at: Nanos, item: T, coarse_target: u64, fine_target: u64) {
        let tick = at / FINE_TICK;
        if tick <= fine_target {
            self.queue.push(Entry { at, item });
        } else if at / COARSE_TICK <= coarse_target
            && tick < fine_target.min(self.fine_tick) + WHEEL_TICKS
        {
            self.fine.insert(tick, at, item);
        } else if at / COARSE_TICK <= coarse_target {
            // Due soon after a jump longer than a turn of the fine wheel: its tick may still hold
            // what is due now. The queue is exact at any distance.
            self.queue.push(Entry { at, item });
        } else {
            self.insert_coarse(at, item);
        }
    }

    fn collect_fine(&mut self, target: u64) {
        let last = target.min(self.fine_tick + WHEEL_TICKS - 1);
        while let Some(tick) = self.fine.next_occupied(self.fine_tick + 1) {
            if tick > last {
                break;
            }
            let mut list = self.fine.take(tick);
            while let Some((at, item)) = self.fine.pop(&mut list) {
                self.queue.push(Entry { at, item });
            }
        }
    }

    /// Takes the earliest item that is due by `now`, with the time it was due at. Call
    /// [`advance`](Scheduler::advance) with the same `now` before.
    #[inline]
    pub fn pop_due(&mut self, now: Nanos) -> Option<(Nanos, T)> {
        if self.queue.peek()?.at > now {
            return None;
        }
        self.queue.pop().map(|entry| (entry.at, entry.item))
    }

    /// A time at which to look again: never later than the earliest item is due, and that time
    /// itself when it is within the fine wheel. `None` when nothing waits.
    pub fn next_due(&self) -> Option<Nanos> {
        let queue = self.queue.peek().map(|entry| entry.at);
        let fine = self.fine.next_occupied(self.fine_tick + 1);
        let fine = fine.and_then(|tick| self.fine.earliest(tick));
        let coarse = self.coarse.next_occupied(self.coarse_tick + 1);
        let coarse = coarse.map(|tick| (tick - CASCADE_AHEAD_TICKS) * COARSE_TICK);
        let far = self.far.next_occupied(self.far_tick + 1);
        let far = far.map(|tick| (tick - FAR_AHEAD_TICKS) * FAR_TICK);
        [queue, fine, coarse, far].into_iter().flatten().min()
    }

    /// Keeps only the items that `keep` wants, in time proportional to all of them.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.queue.retain(|entry| keep(&entry.item));
        self.fine.retain(&mut keep);
        self.coarse.retain(&mut keep);
        self.far.retain(&mut keep);
    }

    /// How many items wait.
    pub fn len(&self) -> usize {
        self.queue.len() + self.fine.len + self.coarse.len + self.far.len
    }

    /// Bytes of memory for items: of most of them that waited at one time.
    pub fn memory_bytes(&self) -> usize {
        let wheels = [&self.fine, &self.coarse, &self.far];
        let nodes: usize = wheels.map(|wheel| wheel.nodes.len()).iter().sum();
        nodes * size_of::<Node<T>>() + self.queue.capacity() * size_of::<Entry<T>>()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Far ticks up to this one are moved down when coarse ticks up to `coarse_tick` were.
fn far_target(coarse_tick: u64) -> u64 {
    coarse_tick * COARSE_TICK / FAR_TICK + FAR_AHEAD_TICKS
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry<T> {
    at: Nanos,
    item: T,
}

/// Earliest first, the reverse of what a binary heap gives; then by item.
impl<T: Ord> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at.cmp(&self.at)).then_with(|| other.item.cmp(&self.item))
    }
}

impl<T: Ord> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Ends a list of nodes.
const NONE: u32 = u32::MAX;

/// One wheel: a list of nodes a tick, in one block of memory that is used again.
#[derive(Debug)]
struct Wheel<T> {
    heads: Vec<u32>,
    occupied: [u64; WHEEL_TICKS as usize / 64],
    nodes: Vec<Node<T>>,
    free: u32,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Node<T> {
    at: Nanos,
    item: T,
    next: u32,
}

impl<T> Default for Wheel<T> {
    fn default() -> Self {
        Wheel {
            heads: vec![NONE; WHEEL_TICKS as usize],
            occupied: [0; WHEEL_TICKS as usize / 64],
            nodes: Vec::new(),
            free: NONE,
            len: 0,
        }
    }
}

impl<T: Copy> Wheel<T> {
    #[inline]
    fn insert(&mut self, tick: u64, at: Nanos, item: T) {
        let slot = (tick % WHEEL_TICKS) as usize;
        let next = self.heads[slot];
        let node = Node { at, item, next };
        let index = self.free;
        if index == NONE {
            self.heads[slot] = self.nodes.len() as u32;
            self.nodes.push(node);
        } else {
            self.free = self.nodes[index as usize].next;
            self.nodes[index as usize] = node;
            self.heads[slot] = index;
        }
        self.occupied[slot / 64] |= 1 << (slot % 64);
        self.len += 1;
    }

    /// Empties a tick; its items come out by [`Wheel::pop`].
    fn take(&mut self, tick: u64) -> u32 {
        let slot = (tick % WHEEL_TICKS) as usize;
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        std::mem::replace(&mut self.heads[slot], NONE)
    }

    fn pop(&mut self, list: &mut u32) -> Option<(Nanos, T)> {
        let index = *list;
        let node = *self.nodes.get(index as usize)?;
        *list = node.next;
        self.nodes[index as usize].next = self.free;
        self.free = index;
        self.len -= 1;
        Some((node.at, node.item))
    }

    /// The first tick from `from` on, within one turn, that holds anything.
    #[inline]
    fn next_occupied(&self, from: u64) -> Option<u64> {
        if self.len == 0 {
            return None;
        }
        let start = (from % WHEEL_TICKS) as usize;
        let words = self.occupied.len();
        for i in 0..=words {
            let word = (start / 64 + i) % words;
            let mut bits = self.occupied[word];
            if i == 0 {
                bits &= u64::MAX << (start % 64);
            }
            if bits != 0 {
                let slot = word * 64 + bits.trailing_zeros() as usize;
                return Some(from + (slot as u64).wrapping_sub(start as u64) % WHEEL_TICKS);
            }
        }
        None
    }

    fn earliest(&self, tick: u64) -> Option<Nanos> {
        let mut index = self.heads[(tick % WHEEL_TICKS) as usize];
        let mut earliest = None;
        while let Some(node) = self.nodes.get(index as usize) {
            earliest = Some(earliest.map_or(node.at, |at: Nanos| at.min(node.at)));
            index = node.next;
        }
        earliest
    }

    fn retain(&mut self, keep: &mut impl FnMut(&T) -> bool) {
        for slot in 0..WHEEL_TICKS {
            let mut list = self.take(slot);
            while let Some((at, item)) = self.pop(&mut list) {
                if keep(&item) {
                    self.insert(slot, at, item);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
