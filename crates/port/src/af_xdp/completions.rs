//! Which frames the kernel is done with: the completion ring of a hardware queue.
//!
//! Sockets on one hardware queue share its completion ring, and so do the threads that own them.
//! Whoever looks first reads the ring for all, and counts each chunk's completions up; the others do
//! not wait, and look at the counts of their own chunks. So nobody ever waits for anybody.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::ring::Consumer;

/// The completions of a hardware queue.
#[derive(Debug)]
pub(super) struct Completions {
    /// Somebody reads the ring.
    is_read: AtomicBool,
    ring: UnsafeCell<Consumer<u64>>,
    /// How often each chunk of the queue's memory was given back. It wraps.
    counts: Box<[AtomicU32]>,
    chunk_bytes: u64,
}

// SAFETY: the ring is touched only by who has turned `is_read` from false to true, until it is false
// again; the rest are atomics and a constant.
unsafe impl Sync for Completions {}

impl Completions {
    /// Over the ring of a queue whose memory has so many chunks.
    pub(super) fn new(ring: Consumer<u64>, chunks: usize, chunk_bytes: usize) -> Completions {
        Completions {
            is_read: AtomicBool::new(false),
            ring: UnsafeCell::new(ring),
            counts: (0..chunks).map(|_| AtomicU32::new(0)).collect(),
            chunk_bytes: chunk_bytes as u64,
        }
    }

    /// Reads what is in the ring, unless somebody else does.
    #[inline]
    pub(super) fn look(&self) {
        if self.is_read.swap(true, Ordering::Acquire) {
            return;
        }
        // SAFETY: nobody else touches the ring until `is_read` is false again (see `Sync`), and the
        // borrow ends before.
        let ring = unsafe { &mut *self.ring.get() };
        let waiting = ring.waiting();
        for _ in 0..waiting {
            let chunk = ring.pop() / self.chunk_bytes;
            // The kernel gives back only what it was given.
            if let Some(count) = self.counts.get(chunk as usize) {
                // Only who reads the ring writes here.
                let before = count.load(Ordering::Relaxed);
                count.store(before.wrapping_add(1), Ordering::Release);
            }
        }
        if waiting > 0 {
            ring.release();
        }
        self.is_read.store(false, Ordering::Release);
    }

    /// How often a chunk was given back.
    #[inline]
    pub(super) fn count(&self, chunk: usize) -> u32 {
        self.counts[chunk].load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::ring::tests::pair;
    use super::*;

    #[test]
    fn completions_are_counted_by_chunk() {
        let (mut kernel, ring) = pair::<u64>(16);
        let completions = Completions::new(ring, 4, 2048);
        for address in [0, 2048, 2048, 3 * 2048 + 17, 99 * 2048] {
            kernel.push(address);
        }
        kernel.publish();
        assert_eq!(completions.count(1), 0);
        completions.look();
        let counts: Vec<u32> = (0..4).map(|chunk| completions.count(chunk)).collect();
        assert_eq!(counts, [1, 2, 0, 1]);
        assert_eq!(kernel.untaken(), 0);
    }

    #[test]
    fn many_threads_look_and_none_is_counted_twice() {
        let (mut kernel, ring) = pair::<u64>(64);
        let completions = Arc::new(Completions::new(ring, 3, 2048));
        let total = 90_000;
        let lookers: Vec<_> = (0..3)
            .map(|chunk| {
                let completions = Arc::clone(&completions);
                std::thread::spawn(move || {
                    while completions.count(chunk) < total / 3 {
                        completions.look();
                        std::thread::yield_now();
                    }
                })
            })
            .collect();
        for number in 0..total {
            while !kernel.has_room(1) {
                std::thread::yield_now();
            }
            kernel.push(u64::from(number % 3) * 2048);
            kernel.publish();
        }
        for looker in lookers {
            looker.join().expect("all completions arrive");
        }
        let counts: Vec<u32> = (0..3).map(|chunk| completions.count(chunk)).collect();
        assert_eq!(counts, [total / 3; 3]);
    }
}
