//! What a TCP flow still has to send, or to send again: which bytes of which buffers.
//!
//! A flow holds no copy: it finds bytes again by their offset.

use std::collections::VecDeque;

use allosaur_packet::network::checksum::Sum;
use allosaur_packet::shared_payload::SharedPayload;

use crate::app::{BufferIndex, Buffers, SharedRun};

/// Buffers with this bit are owned by a flow: the rest is their place in the pool. Those of profiles
/// are far fewer.
pub(super) const OWNED: u32 = 1 << 31;

/// The lists of flows that wait for more than one buffer, and the buffers that flows own.
#[derive(Debug, Default)]
pub struct OutboxPool {
    lists: Vec<VecDeque<BufferIndex>>,
    free: Vec<u32>,
    pub(super) owned: Vec<Vec<u8>>,
    pub(super) free_owned: Vec<u32>,
    /// Empty buffers that keep their memory.
    pub(super) spare: Vec<Vec<u8>>,
}

impl OutboxPool {
    /// Lists that flows hold.
    pub fn in_use(&self) -> usize {
        self.lists.len() - self.free.len()
    }

    /// Buffers that flows own.
    pub fn owned(&self) -> usize {
        self.owned.len() - self.free_owned.len()
    }

    /// Frees a buffer, if it is owned.
    pub(super) fn free(&mut self, buffer: BufferIndex) {
        if is_owned(buffer) {
            let place = buffer.0 & !OWNED;
            let bytes = std::mem::take(&mut self.owned[place as usize]);
            self.put_spare(bytes);
            self.free_owned.push(place);
        }
    }

    pub(super) fn bytes(&self, buffer: BufferIndex) -> &[u8] {
        &self.owned[(buffer.0 & !OWNED) as usize]
    }

    /// How many bytes a buffer of either kind has.
    #[inline]
    pub(super) fn len(&self, buffer: BufferIndex, buffers: &Buffers) -> u32 {
        if is_owned(buffer) {
            return self.bytes(buffer).len() as u32;
        }
        buffers.len(buffer)
    }

    /// Copies the bytes of a buffer of either kind from `offset` on, as many as `to` has, and
    /// returns their sum.
    #[inline]
    pub(super) fn copy_to(
        &self,
        buffer: BufferIndex,
        offset: u32,
        to: &mut [u8],
        buffers: &Buffers,
    ) -> Sum {
        if is_owned(buffer) {
            to.copy_from_slice(&self.bytes(buffer)[offset as usize..][..to.len()]);
            return Sum::of(to);
        }
        if let (0, Some((bytes, sum))) = (offset, buffers.whole(buffer, to.len())) {
            to.copy_from_slice(bytes);
            return sum;
        }
        buffers.copy_to(buffer, offset, to);
        buffers.sum(buffer, offset, to.len() as u32)
    }
}

/// Whether a buffer is owned by a flow.
#[inline]
fn is_owned(buffer: BufferIndex) -> bool {
    buffer.0 & OWNED != 0
}

/// A buffer, or none, in four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Front(u32);

impl Default for Front {
    fn default() -> Front {
        Front(u32::MAX)
    }
}

impl Front {
    fn of(buffer: Option<BufferIndex>) -> Front {
        buffer.map_or(Front::default(), |buffer| Front(buffer.0))
    }

    fn get(self) -> Option<BufferIndex> {
        (self != Front::default()).then_some(BufferIndex(self.0))
    }
}

/// The buffers of one flow that are not wholly acknowledged.
#[derive(Clone, Debug, Default)]
pub struct Outbox {
    /// The oldest.
    front: Front,
    /// How much of it is acknowledged.
    front_done: u32,
    /// Bytes of the newest that the connection does not know of yet.
    unwritten: u32,
    /// Those behind `front`: their list in the pool, plus one.
    more: u32,
}

impl Outbox {
    /// Adds a buffer at the end.
    pub fn push(&mut self, buffer: BufferIndex, buffers: &Buffers, pool: &mut OutboxPool) {
        let bytes = pool.len(buffer, buffers);
        if bytes == 0 {
            return pool.free(buffer);
        }
        self.unwritten += bytes;
        if self.front.get().is_none() {
            self.front = Front::of(Some(buffer));
            return;
        }
        if self.more == 0 {
            let place = pool.free.pop().unwrap_or_else(|| {
                pool.lists.push(VecDeque::new());
                pool.lists.len() as u32 - 1
            });
            self.more = place + 1;
        }
        pool.lists[self.more as usize - 1].push_back(buffer);
    }

    /// Hands up to `room` bytes to the connection. Returns how many.
    #[inline]
    pub fn write(&mut self, room: u32) -> u32 {
        let bytes = self.unwritten.min(room);
        self.unwritten -= bytes;
        bytes
    }

    /// Bytes that the connection does not know of yet.
    pub fn unwritten_bytes(&self) -> u32 {
        self.unwritten
    }

    /// Whether the connection knows of all bytes.
    pub fn is_written(&self) -> bool {
        self.unwritten == 0
    }

    /// Whether nothing waits, nor is under way.
    pub fn is_empty(&self) -> bool {
        self.front.get().is_none()
    }

    /// The oldest `bytes` bytes need not be sent again.
    pub fn acknowledge(&mut self, bytes: u32, buffers: &Buffers, pool: &mut OutboxPool) {
        let mut done = u64::from(self.front_done) + u64::from(bytes);
        while let Some(front) = self.front.get() {
            let len = u64::from(pool.len(front, buffers));
            if done < len {
                break;
            }
            done -= len;
            pool.free(front);
            self.front = Front::of(self.next(pool));
        }
        self.front_done = done as u32;
    }

    fn next(&mut self, pool: &mut OutboxPool) -> Option<BufferIndex> {
        let list = &mut pool.lists[(self.more as usize).checked_sub(1)?];
        let next = list.pop_front();
        if list.is_empty() {
            pool.free.push(self.more - 1);
            self.more = 0;
        }
        next
    }

    /// The bytes that [`copy_to`](Outbox::copy_to) copies, with their sum, where they are all of a
    /// constant buffer, or in one piece of the flow's own.
    #[inline(always)]
    pub fn whole<'b>(
        &self,
        offset: u32,
        bytes: u32,
        buffers: &'b Buffers,
        pool: &'b OutboxPool,
    ) -> Option<(&'b [u8], Sum)> {
        let front = self.front.get()?;
        if is_owned(front) {
            return pool.piece(front, self.front_done + offset, bytes);
        }
        let is_first = self.front_done + offset == 0;
        buffers.whole(front, bytes as usize).filter(|_| is_first)
    }

    /// The bytes that [`copy_to`](Outbox::copy_to) copies, where they are constant and in one piece.
    #[inline]
    pub fn shared<'b>(
        &self,
        offset: u32,
        bytes: u32,
        buffers: &'b Buffers,
    ) -> Option<SharedPayload<'b>> {
        let front = self.front.get().filter(|front| !is_owned(*front))?;
        let offset = self.front_done + offset;
        if self.more != 0 && u64::from(offset) + u64::from(bytes) > u64::from(buffers.len(front)) {
            return None;
        }
        buffers.shared(front, offset, bytes)
    }

    /// The same for up to `count` segments of `bytes` each, one behind the other.
    #[inline]
    pub fn shared_run<'b>(
        &self,
        offset: u32,
        bytes: u32,
        count: u32,
        buffers: &'b Buffers,
    ) -> Option<SharedRun<'b>> {
        let front = self.front.get().filter(|front| !is_owned(*front))?;
        let offset = self.front_done + offset;
        let count = match self.more {
            0 => count,
            _ => count.min(buffers.len(front).checked_sub(offset)? / bytes),
        };
        buffers.shared_run(front, offset, bytes, count)
    }

    /// Copies the bytes from `offset` behind the oldest on, as many as `data` has, and returns
    /// their sum.
    pub fn copy_to(
        &self,
        offset: u32,
        data: &mut [u8],
        buffers: &Buffers,
        pool: &OutboxPool,
    ) -> Sum {
        if let (Some(buffer), 0) = (self.front.get(), self.more) {
            // Mostly there is one.
            return pool.copy_to(buffer, self.front_done + offset, data, buffers);
        }
        let mut sum = Sum::default();
        let mut offset = u64::from(self.front_done) + u64::from(offset);
        let mut at = 0;
        let more = (self.more as usize).checked_sub(1);
        let more = more.map(|place| &pool.lists[place]);
        let front = self.front.get();
        for &buffer in front.iter().chain(more.into_iter().flatten()) {
            let len = u64::from(pool.len(buffer, buffers));
            if offset >= len {
                offset -= len;
                continue;
            }
            let bytes = (data.len() - at).min((len - offset) as usize);
            if bytes == 0 {
                break;
            }
            let place = &mut data[at..at + bytes];
            let part = pool.copy_to(buffer, offset as u32, place, buffers);
            let part = part.folded();
            // A part that starts at an odd byte has its bytes the other way round.
            let part = if at % 2 == 1 { part.swap_bytes() } else { part };
            sum = sum.and_u16(part);
            at += bytes;
            offset = 0;
        }
        debug_assert_eq!(at, data.len(), "a segment has bytes that were written");
        sum
    }

    /// Forgets all.
    pub fn release(&mut self, pool: &mut OutboxPool) {
        let mut left = self.front.get();
        while let Some(buffer) = left {
            pool.free(buffer);
            left = self.next(pool);
        }
        *self = Outbox::default();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::app::BufferSpec;

    proptest! {
        #[test]
        fn bytes_are_found_again_wherever_they_are(
            sizes in prop::collection::vec(0usize..50, 1..6),
            pushed in prop::collection::vec(any::<prop::sample::Index>(), 1..12),
            steps in prop::collection::vec((0u32..80, any::<prop::sample::Index>(), 0usize..60), 0..20),
        ) {
            let specs = sizes.iter().enumerate().map(|(number, size)| BufferSpec {
                base: (0..*size).map(|n| (n * 7 + number * 31) as u8).collect(),
                bytes: None,
                fill: Vec::new(),
            });
            let specs: Vec<_> = specs.collect();
            let buffers = Buffers::new(&specs).expect("small buffers");
            let mut pool = OutboxPool::default();
            let mut outbox = Outbox::default();
            let mut naive: Vec<u8> = Vec::new();
            for index in pushed {
                let number = index.index(specs.len());
                outbox.push(BufferIndex(number as u32), &buffers, &mut pool);
                naive.extend(&specs[number].base);
            }
            prop_assert_eq!(outbox.write(u32::MAX), naive.len() as u32);
            for (done, start, len) in steps {
                let start = start.index(naive.len() + 1);
                let len = len.min(naive.len() - start);
                let mut copy = vec![0; len];
                let sum = outbox.copy_to(start as u32, &mut copy, &buffers, &pool);
                prop_assert_eq!(&copy[..], &naive[start..start + len]);
                // Nothing and all ones are the same in a sum that has anything else in it.
                let (sum, whole) = (sum.and_u16(1), Sum::of(&copy).and_u16(1));
                prop_assert_eq!(sum.checksum(), whole.checksum());
                let done = done.min(naive.len() as u32);
                outbox.acknowledge(done, &buffers, &mut pool);
                naive.drain(..done as usize);
            }
            outbox.acknowledge(naive.len() as u32, &buffers, &mut pool);
            prop_assert!(outbox.is_empty());
            prop_assert_eq!(pool.in_use(), 0);
        }
    }
}
