//! From the key of a frame to its flow: a hash table of a fixed size.
//!
//! Open addressing with linear probing; what is taken out is filled from behind, so that there are
//! no tombstones and a search ends at the first empty place. A place keeps half of the hash: from it
//! alone follows where a search for its flow begins, so taking one out looks at no other flow, and
//! nearly every look at a flow that is searched for is at the right one.

use allosaur_packet::prefetch;

use super::slab::FlowIndex;

/// One place: half of the hash, and the flow's number plus one; 0 is empty. It is one
/// number, so that a new table is zeros that the system has not given yet.
#[derive(Clone, Copy)]
struct Place {
    tag: u32,
    flow: u32,
}

/// From so many places on a table is large: 2 MB.
const LARGE: usize = 1 << 18;
/// A place without a flow.
const EMPTY: u64 = 0;

impl Place {
    #[inline]
    fn of(number: u64) -> Place {
        Place {
            tag: (number >> 32) as u32,
            flow: number as u32,
        }
    }

    #[inline]
    fn number(self) -> u64 {
        u64::from(self.tag) << 32 | u64::from(self.flow)
    }
}

/// A table for up to a number of flows.
#[derive(Debug)]
pub struct Table {
    places: Vec<u64>,
    seed: u64,
    len: usize,
}

impl Table {
    /// Memory for each flow that there may be.
    pub const FLOW_BYTES: usize = size_of::<u64>() * 3 / 2;

    /// A table for `len_max` flows, at most two thirds full: then a search that finds nothing looks
    /// at five places, of the eight in a line of the cache. `seed` makes that nobody outside can
    /// choose keys that meet.
    pub fn new(len_max: usize, seed: u64) -> Table {
        Table {
            places: vec![EMPTY; (len_max + len_max / 2).max(16)],
            seed: seed | 1,
            len: 0,
        }
    }

    /// The flow with this key; `is_it` looks at the flow whether it has.
    #[inline(always)]
    pub fn find(&self, key: u128, mut is_it: impl FnMut(FlowIndex) -> bool) -> Option<FlowIndex> {
        let tag = self.tag(key);
        let mut at = self.home(tag);
        loop {
            let place = Place::of(self.places[at]);
            if place.flow == 0 {
                return None;
            }
            let flow = FlowIndex(place.flow - 1);
            if place.tag == tag && is_it(flow) {
                return Some(flow);
            }
            at = self.after(at);
        }
    }

    /// Whether it is larger than the caches that are near a core, so that a new flow's place is in
    /// none of them.
    #[inline]
    pub fn is_large(&self) -> bool {
        self.places.len() >= LARGE
    }

    /// Asks for the place where a search for this key begins, so that it is in the cache soon; what
    /// follows mostly lies in the same line.
    #[inline]
    pub fn fetch(&self, key: u128) {
        prefetch(&self.places[self.home(self.tag(key))]);
    }

    /// Adds a flow that is not there; `false` when the table is full.
    pub fn insert(&mut self, key: u128, flow: FlowIndex) -> bool {
        if (self.len + 1) * 4 > self.places.len() * 3 {
            return false;
        }
        let tag = self.tag(key);
        let mut at = self.home(tag);
        while self.places[at] != EMPTY {
            at = self.after(at);
        }
        let place = Place {
            tag,
            flow: flow.0 + 1,
        };
        self.places[at] = place.number();
        self.len += 1;
        true
    }

    /// A flow that is there is in another place from now on.
    pub fn replace(&mut self, key: u128, before: FlowIndex, after: FlowIndex) {
        let mut at = self.home(self.tag(key));
        while self.places[at] != EMPTY {
            let place = Place::of(self.places[at]);
            if place.flow == before.0 + 1 {
                let flow = after.0 + 1;
                self.places[at] = Place { flow, ..place }.number();
                return;
            }
            at = self.after(at);
        }
        debug_assert!(false, "who moves is there");
    }

    /// Takes a flow out. Returns whether it was there.
    pub fn remove(&mut self, key: u128, flow: FlowIndex) -> bool {
        let mut at = self.home(self.tag(key));
        while Place::of(self.places[at]).flow != flow.0 + 1 {
            if self.places[at] == EMPTY {
                return false;
            }
            at = self.after(at);
        }
        self.len -= 1;
        // What follows may have been pushed here from its own place: pull it back.
        let mut hole = at;
        loop {
            at = self.after(at);
            let place = Place::of(self.places[at]);
            if place.flow == 0 {
                break;
            }
            let home = self.home(place.tag);
            if self.distance(home, at) >= self.distance(hole, at) {
                self.places[hole] = place.number();
                hole = at;
            }
        }
        self.places[hole] = EMPTY;
        true
    }

    /// Where a search begins: the tag as a part of all places. Flows with the same home still have
    /// tags apart, by 8 bits at ten million.
    #[inline]
    fn home(&self, tag: u32) -> usize {
        ((u64::from(tag) * self.places.len() as u64) >> 32) as usize
    }

    #[inline]
    fn after(&self, at: usize) -> usize {
        if at + 1 == self.places.len() {
            0
        } else {
            at + 1
        }
    }

    /// How many places after `from` is `to`.
    fn distance(&self, from: usize, to: usize) -> usize {
        if to >= from {
            to - from
        } else {
            to + self.places.len() - from
        }
    }

    /// How many flows there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Half of the hash of a key: two multiplications that fold their upper half down (as wyhash
    /// does).
    #[inline]
    fn tag(&self, key: u128) -> u32 {
        let (high, low) = ((key >> 64) as u64, key as u64);
        let first = fold(high ^ self.seed, low ^ 0x9e37_79b9_7f4a_7c15);
        (fold(first ^ self.seed.rotate_left(32), 0xd6e8_feb8_6659_fd93) >> 32) as u32
    }
}

#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_map(
            seed in any::<u64>(),
            steps in prop::collection::vec((any::<bool>(), 0u8..60), 0..400),
        ) {
            let mut table = Table::new(40, seed);
            let mut naive: HashMap<u128, FlowIndex> = HashMap::new();
            // The key of flow n is n times a large number.
            let key_of = |flow: FlowIndex| u128::from(flow.0) * 0x1234_5678_9abc_def0_1111;
            for (adds, number) in steps {
                let flow = FlowIndex(u32::from(number));
                let key = key_of(flow);
                if !adds {
                    let was_there = naive.remove(&key).is_some();
                    prop_assert_eq!(table.remove(key, flow), was_there);
                } else if !naive.contains_key(&key) && table.insert(key, flow) {
                    naive.insert(key, flow);
                }
                for number in 0..60 {
                    let key = key_of(FlowIndex(number));
                    let found = table.find(key, |flow| key_of(flow) == key);
                    prop_assert_eq!(found, naive.get(&key).copied());
                }
                prop_assert_eq!(table.len(), naive.len());
            }
        }
    }

    #[test]
    fn tags_tell_flows_apart_that_are_not_looked_at() {
        let key_of = |number: u32| u128::from(number) << 64 | 0x50_1234;
        let mut table = Table::new(100_000, 7);
        for number in 0..100_000 {
            assert!(table.insert(key_of(number), FlowIndex(number)));
        }
        let is_wrong =
            |number: &u32| table.find(key_of(*number), |_| true) != Some(FlowIndex(*number));
        let wrong = (0..100_000).filter(is_wrong).count();
        assert!(wrong < 10, "{wrong} of 100000");
        let strangers = 100_000..200_000;
        let found = strangers.filter(|number| table.find(key_of(*number), |_| true).is_some());
        assert!(found.count() < 10);
    }

    #[test]
    fn it_holds_what_was_said_and_no_more() {
        let mut table = Table::new(1000, 1);
        let taken = (0..10_000).take_while(|&n| table.insert(u128::from(n), FlowIndex(n)));
        assert!((1000..2048).contains(&taken.count()));
    }
}
