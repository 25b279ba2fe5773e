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

/// All timers of an emulation.
#[derive(Debug)]
pub(crate) struct Timers {
    due: Scheduler<u64>,
    slots: Vec<Slot>,
    free: u32,
    active: usize,
}

impl Timers {
    pub(crate) fn new(now: Nanos) -> Timers {
        Timers {
            due: Scheduler::new(now),
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

    /// Takes the earliest timer that is due by `now`.
    pub(crate) fn pop_due(&mut self, now: Nanos) -> Option<(TimerId, Owner)> {
        self.due.advance(now);
        while let Some((_, entry)) = self.due.pop_due(now) {
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
