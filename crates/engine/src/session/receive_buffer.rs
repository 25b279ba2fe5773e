//! The bytes of a flow that arrived and were not consumed, and those that arrived out of order.
//!
//! Only flows whose application reads bytes have one. It holds a receive window at most: TCP accepts
//! nothing beyond what it offered, and offers only what is left of `receive_buffer_bytes`.

use std::collections::VecDeque;

/// Bytes in order, and behind them, with holes, those that came early.
#[derive(Debug, Default)]
pub(super) struct ReceiveBuffer {
    bytes: VecDeque<u8>,
    /// How many of them are in order, and wait for the application.
    unread: usize,
}

impl ReceiveBuffer {
    /// Bytes that wait for the application.
    pub(super) fn unread(&self) -> usize {
        self.unread
    }

    /// Whether it has no bytes at all.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Puts bytes at `offset` behind those that are in order.
    pub(super) fn write(&mut self, offset: usize, data: &[u8]) {
        let at = self.unread + offset;
        let end = at + data.len();
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
        }
        let (front, back) = self.bytes.as_mut_slices();
        let in_front = front.len().saturating_sub(at).min(data.len());
        let (first, second) = data.split_at(in_front);
        if !first.is_empty() {
            front[at..at + in_front].copy_from_slice(first);
        }
        if !second.is_empty() {
            let at = at + in_front - front.len();
            back[at..at + second.len()].copy_from_slice(second);
        }
    }

    /// So many bytes more are in order.
    pub(super) fn advance(&mut self, bytes: usize) {
        self.unread += bytes;
        debug_assert!(
            self.unread <= self.bytes.len(),
            "what is in order was written"
        );
    }

    /// The first bytes that wait for the application, as many as lie together.
    pub(super) fn front(&self) -> &[u8] {
        let front = self.bytes.as_slices().0;
        &front[..front.len().min(self.unread)]
    }

    /// The application has consumed so many.
    pub(super) fn consume(&mut self, bytes: usize) {
        self.bytes.drain(..bytes);
        self.unread -= bytes;
        if self.bytes.is_empty() {
            // Most flows have nothing here most of the time.
            self.bytes = VecDeque::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bytes_come_out_in_order(
            pieces in prop::collection::vec((0usize..40, 1usize..30, 0usize..50), 1..40),
        ) {
            let byte = |place: usize| (place * 7) as u8;
            let mut buffer = ReceiveBuffer::default();
            let (mut begin, mut read) = (0, 0);
            let mut known = vec![false; 4_000];
            for (offset, len, consumed) in pieces {
                // A piece somewhere beyond what is in order; then what joins is in order.
                let from = begin + offset;
                let piece: Vec<u8> = (from..from + len).map(byte).collect();
                buffer.write(offset, &piece);
                known[from..from + len].fill(true);
                let joined = known[begin..].iter().take_while(|known| **known).count();
                buffer.advance(joined);
                begin += joined;
                prop_assert_eq!(buffer.unread(), begin - read);
                let mut left = consumed.min(buffer.unread());
                while left > 0 {
                    let front = buffer.front();
                    let count = front.len().min(left);
                    let expected: Vec<u8> = (read..read + count).map(byte).collect();
                    prop_assert_eq!(&front[..count], &expected[..]);
                    buffer.consume(count);
                    (left, read) = (left - count, read + count);
                }
            }
        }
    }
}
