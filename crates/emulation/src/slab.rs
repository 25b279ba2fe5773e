//! Items by a small number, in the order in which they were inserted.

use allosaur_packet::prefetch;

use crate::memory;

/// The end of a list of slots.
const NONE: u32 = u32::MAX;

/// Items by slot; a slot of a removed item is used again. Iterates in the order of insertion.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<Slot<T>>,
    free: u32,
    first: u32,
    last: u32,
    len: u32,
}

#[derive(Debug)]
struct Slot<T> {
    item: Option<T>,
    previous: u32,
    next: u32,
    generation: u32,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Slab {
            slots: Vec::new(),
            free: NONE,
            first: NONE,
            last: NONE,
            len: 0,
        }
    }
}

impl<T> Slab<T> {
    /// Inserts an item behind all others.
    pub(crate) fn insert(&mut self, item: T) -> u32 {
        let index = self.take_slot();
        let previous = self.last;
        let slot = &mut self.slots[index as usize];
        slot.item = Some(item);
        slot.previous = previous;
        slot.next = NONE;
        match previous {
            NONE => self.first = index,
            previous => self.slots[previous as usize].next = index,
        }
        self.last = index;
        self.len += 1;
        index
    }

    fn take_slot(&mut self) -> u32 {
        if self.free != NONE {
            let index = self.free;
            self.free = self.slots[index as usize].next;
            return index;
        }
        let index = u32::try_from(self.slots.len()).expect("fewer than 2^32 items fit in memory");
        self.slots.push(Slot {
            item: None,
            previous: NONE,
            next: NONE,
            generation: 0,
        });
        index
    }

    /// Removes an item.
    pub(crate) fn remove(&mut self, index: u32) -> Option<T> {
        let slot = self.slots.get_mut(index as usize)?;
        let item = slot.item.take()?;
        let (previous, next) = (slot.previous, slot.next);
        slot.next = self.free;
        slot.generation = slot.generation.wrapping_add(1);
        self.free = index;
        match previous {
            NONE => self.first = next,
            previous => self.slots[previous as usize].next = next,
        }
        match next {
            NONE => self.last = previous,
            next => self.slots[next as usize].previous = previous,
        }
        self.len -= 1;
        Some(item)
    }

    /// The item of a slot.
    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&T> {
        self.slots.get(index as usize)?.item.as_ref()
    }

    /// Asks the cache for where the item of a slot begins, and for the slot's generation.
    #[inline]
    pub(crate) fn prefetch(&self, index: u32) {
        if let Some(slot) = self.slots.get(index as usize) {
            prefetch(&slot.item);
            prefetch(&slot.generation);
        }
    }

    /// The item of a slot, to write.
    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> Option<&mut T> {
        self.slots.get_mut(index as usize)?.item.as_mut()
    }

    /// How often the slot was given up: tells its items apart.
    pub(crate) fn generation(&self, index: u32) -> u32 {
        let slot = self.slots.get(index as usize);
        slot.map_or(0, |slot| slot.generation)
    }

    /// The slot of the first item.
    pub(crate) fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    /// The slot behind the one of an item.
    pub(crate) fn next(&self, index: u32) -> Option<u32> {
        let slot = self.slots.get(index as usize)?;
        (slot.item.is_some() && slot.next != NONE).then_some(slot.next)
    }

    /// The slots in use, in the order of insertion.
    pub(crate) fn indices(&self) -> impl Iterator<Item = u32> {
        std::iter::successors(self.first(), |&index| self.next(index))
    }

    /// The slot of the next item that is inserted.
    pub(crate) fn next_slot(&self) -> u32 {
        match self.free {
            NONE => self.slots.len() as u32,
            free => free,
        }
    }

    /// How many slots there are, in use or not.
    pub(crate) fn slots(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Bytes of all slots.
    pub(crate) fn table_bytes(&self) -> usize {
        memory::list::<Slot<T>>(self.slots.len())
    }

    /// How many items there are.
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }
}

impl<T> Slab<Box<T>> {
    /// Bytes of all slots, and of what they hold.
    pub(crate) fn boxed_bytes(&self) -> usize {
        self.table_bytes() + self.len() * memory::block(size_of::<T>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_stay_in_the_order_of_insertion() {
        let mut slab = Slab::default();
        let [a, b, c] = ["a", "b", "c"].map(|item| slab.insert(item));
        assert_eq!(slab.remove(b), Some("b"));
        assert_eq!(slab.remove(b), None);
        let d = slab.insert("d");
        assert_eq!((d, slab.generation(d), slab.len()), (b, 1, 3));
        assert_eq!(slab.indices().collect::<Vec<_>>(), [a, c, d]);
        assert_eq!(slab.remove(a), Some("a"));
        assert_eq!(slab.remove(d), Some("d"));
        assert_eq!(slab.indices().collect::<Vec<_>>(), [c]);
        assert_eq!((slab.get(a), slab.get(c)), (None, Some(&"c")));
    }
}
