//! Places for things that come and go: a number for each, and no moving.

/// Things that are allocated at once: enough that the rest of the last page is nothing. Pages are
/// taken when they are written.
const CHUNK: usize = 1 << 14;

/// The place of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowIndex(pub u32);

/// A place: taken, or the next free one; `FlowIndex(u32::MAX)` is none.
#[derive(Debug)]
enum Place<T> {
    Occupied(T),
    Free(FlowIndex),
}

const NONE: FlowIndex = FlowIndex(u32::MAX);

/// Up to a number of things, each in a place that it keeps. Memory is taken in chunks, and kept.
#[derive(Debug)]
pub struct Slab<T> {
    chunks: Vec<Vec<Place<T>>>,
    /// The place that was left last.
    free: FlowIndex,
    len: usize,
    /// Places that were ever used.
    places: usize,
    len_max: usize,
}

impl<T> Slab<T> {
    /// Room for `len_max` things; memory is taken when they come.
    pub fn new(len_max: usize) -> Slab<T> {
        Slab {
            chunks: Vec::new(),
            free: NONE,
            len: 0,
            places: 0,
            len_max,
        }
    }

    /// Puts a thing somewhere; gives it back when there is no room.
    pub fn insert(&mut self, thing: T) -> Result<FlowIndex, T> {
        if self.len == self.len_max {
            return Err(thing);
        }
        self.len += 1;
        let index = self.free;
        if let Some(place @ &mut Place::Free(next)) = self.place(index) {
            *place = Place::Occupied(thing);
            self.free = next;
            return Ok(index);
        }
        // All places so far are taken.
        let number = self.places;
        self.places += 1;
        if number / CHUNK == self.chunks.len() {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        self.chunks[number / CHUNK].push(Place::Occupied(thing));
        Ok(FlowIndex(number as u32))
    }

    /// Drops a thing where it is; its place may be given to another. Returns whether there was one.
    pub fn remove(&mut self, index: FlowIndex) -> bool {
        let free = self.free;
        match self.place(index) {
            Some(place @ Place::Occupied(_)) => *place = Place::Free(free),
            _ => return false,
        }
        self.free = index;
        self.len -= 1;
        true
    }

    /// The thing at a place.
    #[inline]
    pub fn at(&self, index: FlowIndex) -> Option<&T> {
        let chunk = self.chunks.get(index.0 as usize / CHUNK)?;
        match chunk.get(index.0 as usize % CHUNK)? {
            Place::Occupied(thing) => Some(thing),
            Place::Free(_) => None,
        }
    }

    /// The thing at a place, to be changed.
    #[inline]
    pub fn at_mut(&mut self, index: FlowIndex) -> Option<&mut T> {
        match self.place(index)? {
            Place::Occupied(thing) => Some(thing),
            Place::Free(_) => None,
        }
    }

    #[inline]
    fn place(&mut self, index: FlowIndex) -> Option<&mut Place<T>> {
        let chunk = self.chunks.get_mut(index.0 as usize / CHUNK)?;
        chunk.get_mut(index.0 as usize % CHUNK)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many there may be.
    pub fn len_max(&self) -> usize {
        self.len_max
    }

    /// How many places there ever were: all that there are have a lower number.
    pub fn places(&self) -> usize {
        self.places
    }

    /// All places where something is, in order.
    pub fn indices(&self) -> impl Iterator<Item = FlowIndex> + '_ {
        let places = self.chunks.iter().flatten().zip(0..);
        places.filter_map(|(place, index)| {
            matches!(place, Place::Occupied(_)).then_some(FlowIndex(index))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_kept_and_given_again() {
        let mut slab = Slab::new(3);
        let places: Vec<_> = ["a", "b", "c"].map(|thing| slab.insert(thing)).to_vec();
        assert_eq!(places, [0, 1, 2].map(|place| Ok(FlowIndex(place))));
        assert_eq!(slab.insert("d"), Err("d"), "full");
        assert!(slab.remove(FlowIndex(1)));
        assert!(!slab.remove(FlowIndex(1)));
        assert_eq!(slab.at(FlowIndex(1)), None);
        assert_eq!(
            slab.indices().collect::<Vec<_>>(),
            [FlowIndex(0), FlowIndex(2)]
        );
        assert_eq!(slab.insert("e"), Ok(FlowIndex(1)));
        assert_eq!(slab.at_mut(FlowIndex(1)), Some(&mut "e"));
        assert_eq!((slab.len(), slab.at(FlowIndex(9))), (3, None));
    }

    #[test]
    fn there_are_as_many_as_was_said() {
        let most = 3 * CHUNK as u32 / 2;
        let mut slab = Slab::new(most as usize);
        for number in 0..most {
            assert_eq!(slab.insert(number), Ok(FlowIndex(number)));
        }
        assert!(slab.insert(0).is_err());
        for number in (0..most).step_by(3) {
            assert!(slab.remove(FlowIndex(number)));
        }
        assert_eq!(slab.indices().count(), slab.len());
        assert_eq!(slab.at(FlowIndex(most - 2)), Some(&(most - 2)));
    }
}
