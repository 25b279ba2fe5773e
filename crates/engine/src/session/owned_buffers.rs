//! Buffers that applications over bytes write, and flows own until they are acknowledged. Their memory
//! is used again.

use allosaur_packet::network::checksum::Sum;

use super::outbox::{OWNED, OutboxPool};
use crate::app::BufferIndex;

/// Empty buffers that keep their memory, and how much: others give it back.
const SPARE_MAX: usize = 1024;
const SPARE_BYTES_MAX: usize = 32 << 10;

impl OutboxPool {
    /// An empty buffer for an application to write into.
    pub fn take_spare(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// A buffer that nobody needs any more.
    pub fn put_spare(&mut self, mut bytes: Vec<u8>) {
        if self.spare.len() < SPARE_MAX && bytes.capacity() <= SPARE_BYTES_MAX {
            bytes.clear();
            self.spare.push(bytes);
        }
    }

    /// Takes bytes of an application. They are freed by [`free`](OutboxPool::free).
    pub(super) fn keep(&mut self, bytes: Vec<u8>) -> BufferIndex {
        let place = self.free_owned.pop().unwrap_or_else(|| {
            self.owned.push(Vec::new());
            self.owned.len() as u32 - 1
        });
        self.owned[place as usize] = bytes;
        BufferIndex(OWNED | place)
    }

    /// So many bytes of a buffer that a flow owns, with their sum; `None` where it has fewer. A call, so
    /// that flows of programs, which own none, pay a comparison.
    #[inline(never)]
    pub(super) fn piece(
        &self,
        buffer: BufferIndex,
        offset: u32,
        bytes: u32,
    ) -> Option<(&[u8], Sum)> {
        let from = offset as usize;
        let piece = self.bytes(buffer).get(from..from + bytes as usize)?;
        Some((piece, Sum::of(piece)))
    }
}
