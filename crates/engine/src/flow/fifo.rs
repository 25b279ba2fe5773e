//! Places in the order in which things come, for things that mostly go in that order too: none needs
//! a timer, and what comes next lies side by side.

use std::collections::VecDeque;

use super::slab::FlowIndex;

/// Things that are allocated at once.
const CHUNK: usize = 1 << 12;
/// In the numbers of all places: those of a slab are lower.
const FIFO: u32 = 1 << 30;
/// The rest of a number. It goes round.
const NUMBER: u32 = FIFO - 1;

impl FlowIndex {
    /// Whether it is a place in a [`Fifo`], and not in a slab.
    #[inline]
    pub fn is_in_fifo(self) -> bool {
        self.0 & FIFO != 0
    }
}

/// A queue whose things may also be looked at, and taken out, by their place. A place is free again
/// when all before it are. Memory is taken in chunks, and kept.
#[derive(Debug)]
pub struct Fifo<T> {
    /// `None` was taken out.
    chunks: VecDeque<Vec<Option<T>>>,
    spare: Vec<Vec<Option<T>>>,
    /// The number of the first place of the first chunk.
    first: u32,
    /// Places at the beginning of the first chunk that are free.
    gone: usize,
    len: usize,
    places_max: usize,
}

impl<T> Fifo<T> {
    /// Room for `places_max` things, those counted that were taken out before older ones.
    pub fn new(places_max: usize) -> Fifo<T> {
        Fifo {
            chunks: VecDeque::new(),
            spare: Vec::new(),
            first: 0,
            gone: 0,
            len: 0,
            places_max: places_max.min(NUMBER as usize / 2),
        }
    }

    /// Puts a thing at the end, if there is room.
    pub fn push(&mut self, thing: T) -> Option<FlowIndex> {
        if self.places() >= self.places_max {
            return None;
        }
        if self.chunks.back().is_none_or(|chunk| chunk.len() == CHUNK) {
            let chunk = self.spare.pop();
            let chunk = chunk.unwrap_or_else(|| Vec::with_capacity(CHUNK));
            self.chunks.push_back(chunk);
        }
        let before = (self.chunks.len() - 1) * CHUNK;
        let chunk = self.chunks.back_mut()?;
        let offset = before + chunk.len();
        chunk.push(Some(thing));
        self.len += 1;
        Some(self.index(offset))
    }

    /// The oldest thing.
    #[inline]
    pub fn front(&self) -> Option<(FlowIndex, &T)> {
        let thing = self.chunks.front()?.get(self.gone)?.as_ref()?;
        Some((self.index(self.gone), thing))
    }

    /// Some of the oldest things, without looking for the others.
    pub fn first_ones(&self) -> impl Iterator<Item = &T> {
        let first = self.chunks.front().map(|chunk| &chunk[self.gone..]);
        first.into_iter().flatten().flatten()
    }

    /// The thing at a place.
    #[inline]
    pub fn at(&self, index: FlowIndex) -> Option<&T> {
        let offset = self.offset(index)?;
        self.chunks
            .get(offset / CHUNK)?
            .get(offset % CHUNK)?
            .as_ref()
    }

    /// The thing at a place, to be changed.
    #[inline]
    pub fn at_mut(&mut self, index: FlowIndex) -> Option<&mut T> {
        let offset = self.offset(index)?;
        let chunk = self.chunks.get_mut(offset / CHUNK)?;
        chunk.get_mut(offset % CHUNK)?.as_mut()
    }

    /// Takes a thing out.
    pub fn remove(&mut self, index: FlowIndex) -> Option<T> {
        let offset = self.offset(index)?;
        let chunk = self.chunks.get_mut(offset / CHUNK)?;
        let thing = chunk.get_mut(offset % CHUNK)?.take()?;
        self.len -= 1;
        self.free_front();
        Some(thing)
    }

    /// Frees the places before the oldest thing.
    fn free_front(&mut self) {
        while let Some(chunk) = self.chunks.front() {
            match chunk.get(self.gone) {
                Some(Some(_)) => return,
                Some(None) => self.gone += 1,
                None if self.gone < CHUNK => return,
                None => {
                    let chunk = self.chunks.pop_front();
                    self.spare.extend(chunk.map(|mut chunk| {
                        chunk.clear();
                        chunk
                    }));
                    self.first = self.first.wrapping_add(CHUNK as u32) & NUMBER;
                    self.gone = 0;
                }
            }
        }
    }

    fn index(&self, offset: usize) -> FlowIndex {
        FlowIndex(FIFO | self.first.wrapping_add(offset as u32) & NUMBER)
    }

    fn offset(&self, index: FlowIndex) -> Option<usize> {
        let offset = index.0.wrapping_sub(self.first) & NUMBER;
        index.is_in_fifo().then_some(offset as usize)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Places from the oldest thing to the newest.
    fn places(&self) -> usize {
        let last = self.chunks.back().map_or(0, Vec::len);
        (self.chunks.len() * CHUNK + last).saturating_sub(CHUNK + self.gone)
    }

    /// All places where something is, the oldest first.
    pub fn indices(&self) -> impl Iterator<Item = FlowIndex> + '_ {
        let places = self.chunks.iter().flatten().enumerate();
        places.filter_map(|(offset, thing)| thing.as_ref().map(|_| self.index(offset)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Push(u16),
        Remove(prop::sample::Index),
        Pop(u16),
    }

    fn some_step() -> impl Strategy<Value = Step> {
        let count = prop_oneof![1..20u16, 1..5_000u16];
        prop_oneof![
            count.clone().prop_map(Step::Push),
            any::<prop::sample::Index>().prop_map(Step::Remove),
            count.prop_map(Step::Pop),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn what_comes_first_is_in_front_and_all_are_found(
            first in prop_oneof![Just(0), Just(NUMBER & !(CHUNK as u32 - 1))],
            steps in prop::collection::vec(some_step(), 0..30),
        ) {
            let mut fifo = Fifo::new(100_000);
            fifo.first = first;
            let mut naive: Vec<(FlowIndex, u32)> = Vec::new();
            let mut number = 0;
            for step in steps {
                match step {
                    Step::Push(count) => for _ in 0..count {
                        number += 1;
                        let index = fifo.push(number).expect("there is room");
                        prop_assert!(index.is_in_fifo());
                        naive.push((index, number));
                    }
                    Step::Remove(which) => if !naive.is_empty() {
                        let (index, number) = naive.remove(which.index(naive.len()));
                        prop_assert_eq!(fifo.remove(index), Some(number));
                        prop_assert_eq!(fifo.remove(index), None);
                    }
                    Step::Pop(count) => for _ in 0..count {
                        let front = fifo.front().map(|(index, number)| (index, *number));
                        prop_assert_eq!(front, naive.first().copied());
                        if let Some((index, number)) = front {
                            prop_assert_eq!(fifo.remove(index), Some(number));
                            naive.remove(0);
                        }
                    }
                }
                prop_assert_eq!((fifo.len(), fifo.is_empty()), (naive.len(), naive.is_empty()));
                let indices: Vec<_> = fifo.indices().collect();
                let expected: Vec<_> = naive.iter().map(|(index, _)| *index).collect();
                prop_assert_eq!(indices, expected);
                let wrong = naive.iter().find(|(index, number)| fifo.at(*index) != Some(number));
                prop_assert_eq!(wrong, None);
                let first: Vec<_> = fifo.first_ones().collect();
                prop_assert!(first.iter().zip(&naive).all(|(one, (_, number))| *one == number));
                prop_assert_eq!(first.is_empty(), naive.is_empty());
            }
        }
    }

    #[test]
    fn memory_is_used_again_and_there_is_a_limit() {
        let mut fifo = Fifo::new(3 * CHUNK);
        for number in 0..20 * CHUNK {
            let index = fifo.push(number).expect("there is room");
            assert_eq!(fifo.at_mut(index), Some(&mut { number }));
            if number >= 2 * CHUNK {
                let (index, _) = fifo.front().expect("there is one");
                assert_eq!(fifo.remove(index), Some(number - 2 * CHUNK));
            }
        }
        assert!(fifo.chunks.len() + fifo.spare.len() <= 4);
        while fifo.push(0).is_some() {}
        assert_eq!(fifo.len(), 3 * CHUNK);
        assert_eq!(fifo.at(FlowIndex(0)), None, "that is a slab's");
    }
}
