//! Timers of plugins: exact to the nanosecond, set and cancelled in constant time.

use allosaur_engine::time::Nanos;
use allosaur_engine::wheel::Scheduler;

use crate::memory;

/// A timer that was set, to cancel it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerId {
    slot: u32,
    generation: u32,
}

impl TimerId {
    /// No timer; cancelling it does nothing.
    pub const NONE: TimerId = TimerId {
        slot: u32::MAX,
        generation: 0,
    };
}

impl Default for TimerId {
    fn default() -> Self {
        TimerId::NONE
    }
}

/// Whose timer it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) namespace: u32,
    pub(crate) client: u32,
    /// Of the client's slot, so that its successor does not get its timers.
    pub(crate) client_generation: u16,
    pub(crate) plugin: u8,
    pub(crate) tag: u32,
}

#[derive(Debug)]
struct Slot {
    /// What the slot's next free one is while it is free, in `owner.tag`.
    owner: Owner,
    generation: u32,
    is_set: bool,
}

/// Ends the list of free slots.
const NONE: u32 = u32::MAX;

/// Timers that are due, taken together: what the clients need stays in the cache of the first level.
pub const TIMERS_AT_ONCE: usize = 32;

/// All timers of an emulation.
#[derive(Debug)]
pub(crate) struct Timers {
    due: Scheduler<u64>,
    /// Entries that were due, the earliest last; some may have been cancelled since.
    gathered: Vec<u64>,
    slots: Vec<Slot>,
    free: u32,
    active: usize,
}

impl Timers {
    pub(crate) fn new(now: Nanos) -> Timers {
        Timers {
            due: Scheduler::new(now),
            gathered: Vec::with_capacity(TIMERS_AT_ONCE),
            slots: Vec::new(),
            free: NONE,
            active: 0,
        }
    }

    /// Sets a timer.
    pub(crate) fn set(&mut self, at: Nanos, owner: Owner) -> TimerId {
        let slot = self.take_slot(owner);
        let generation = self.slots[slot as usize].generation;
        self.active += 1;
        self.due.insert(at, entry(slot, generation));
        TimerId { slot, generation }
    }

    fn take_slot(&mut self, owner: Owner) -> u32 {
        if self.free == NONE {
            let slot = u32::try_from(self.slots.len()).expect("fewer than 2^32 timers fit");
            self.slots.push(Slot {
                owner,
                generation: 0,
                is_set: true,
            });
            return slot;
        }
        let index = self.free;
        let slot = &mut self.slots[index as usize];
        self.free = slot.owner.tag;
        slot.owner = owner;
        slot.is_set = true;
        index
    }

    /// Cancels a timer. One that is over, or was cancelled, stays so. Returns whether it was set.
    pub(crate) fn cancel(&mut self, timer: TimerId) -> bool {
        let is_set = self.release(timer).is_some();
        // Entries of cancelled timers wait in the wheels until they are due; many are swept out.
        if is_set && self.due.len() > 2 * self.active + 1024 {
            let slots = &self.slots;
            self.due.retain(|&entry| is_live(slots, entry));
        }
        is_set
    }

    fn release(&mut self, timer: TimerId) -> Option<Owner> {
        let slot = self.slots.get_mut(timer.slot as usize)?;
        if !slot.is_set || slot.generation != timer.generation {
            return None;
        }
        let owner = slot.owner;
        slot.is_set = false;
        slot.generation = slot.generation.wrapping_add(1);
        slot.owner.tag = self.free;
        self.free = timer.slot;
        self.active -= 1;
        Some(owner)
    }

    /// Takes the earliest timers that are due by `now`, some of them: [`pop`](Timers::pop) gives them
    /// out. False when there is none.
    pub(crate) fn gather(&mut self, now: Nanos) -> bool {
        self.due.advance(now);
        let due = std::iter::from_fn(|| self.due.pop_due(now));
        self.gathered
            .extend(due.take(TIMERS_AT_ONCE).map(|(_, entry)| entry));
        self.gathered.reverse();
        !self.gathered.is_empty()
    }

    /// Whose the gathered timers are. One that was cancelled may have another's, or nobody's.
    pub(crate) fn gathered(&self) -> impl Iterator<Item = Owner> {
        let entries = self.gathered.iter();
        entries.filter_map(|entry| Some(self.slots.get(*entry as u32 as usize)?.owner))
    }

    /// Takes the earliest timer of those that were gathered.
    pub(crate) fn pop(&mut self) -> Option<(TimerId, Owner)> {
        while let Some(entry) = self.gathered.pop() {
            let timer = TimerId {
                slot: entry as u32,
                generation: (entry >> 32) as u32,
            };
            if let Some(owner) = self.release(timer) {
                return Some((timer, owner));
            }
        }
        None
    }

    /// When to look again.
    pub(crate) fn next_due(&self) -> Option<Nanos> {
        self.due.next_due()
    }

    /// Bytes of timers that are set, or were at one time.
    pub(crate) fn table_bytes(&self) -> usize {
        memory::list::<Slot>(self.slots.len()) + self.due.memory_bytes()
    }

    /// How many are set.
    pub(crate) fn len(&self) -> usize {
        self.active
    }
}

fn entry(slot: u32, generation: u32) -> u64 {
    u64::from(generation) << 32 | u64::from(slot)
}

fn is_live(slots: &[Slot], entry: u64) -> bool {
    let slot = slots.get(entry as u32 as usize);
    slot.is_some_and(|slot| slot.is_set && slot.generation == (entry >> 32) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(tag: u32) -> Owner {
        Owner {
            namespace: 0,
            client: tag,
            client_generation: 0,
            plugin: 0,
            tag,
        }
    }

    #[test]
    fn timers_come_in_order_some_at_a_time() {
        let mut timers = Timers::new(0);
        for tag in 0..100 {
            timers.set(1_000 - u64::from(tag), owner(tag));
        }
        let mut tags = Vec::new();
        while timers.gather(990) {
            let gathered: Vec<u32> = timers.gathered().map(|owner| owner.tag).collect();
            assert!(gathered.len() <= TIMERS_AT_ONCE);
            let popped = std::iter::from_fn(|| timers.pop());
            let popped: Vec<u32> = popped.map(|(_, owner)| owner.tag).collect();
            assert!(popped.iter().rev().eq(&gathered));
            tags.extend(popped);
        }
        assert!(tags.iter().copied().eq((10..100).rev()));
        assert_eq!(timers.len(), 10);
    }

    #[test]
    fn one_that_is_cancelled_after_it_was_gathered_does_not_come() {
        let mut timers = Timers::new(0);
        let set: Vec<TimerId> = (0..3).map(|tag| timers.set(5, owner(tag))).collect();
        assert!(timers.gather(10));
        let (first, _) = timers.pop().expect("three are due");
        assert_eq!(first, set[0]);
        assert!(timers.cancel(set[1]) && !timers.cancel(first));
        // It takes the slot of the one that was cancelled.
        let later = timers.set(10, owner(7));
        assert_eq!(timers.pop().map(|(timer, _)| timer), Some(set[2]));
        assert_eq!(timers.pop(), None);
        assert!(timers.gather(10));
        assert_eq!(timers.pop(), Some((later, owner(7))));
        assert!(!timers.gather(10) && timers.len() == 0);
    }
}
