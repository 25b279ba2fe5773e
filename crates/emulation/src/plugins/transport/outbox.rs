//! What a connection still has to send, or to send again: pieces of constant bytes, never copied.

use std::collections::VecDeque;
use std::sync::Arc;

/// The bytes that are written and not acknowledged.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    pieces: VecDeque<Arc<[u8]>>,
    /// Bytes of the first piece that are acknowledged.
    done: usize,
    bytes: usize,
}

impl Outbox {
    /// Puts bytes behind the others.
    pub(super) fn push(&mut self, bytes: Arc<[u8]>) {
        if !bytes.is_empty() {
            self.bytes += bytes.len();
            self.pieces.push_back(bytes);
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.bytes
    }

    /// Forgets the first so many.
    pub(super) fn acknowledge(&mut self, bytes: usize) {
        let mut left = bytes.min(self.bytes);
        self.bytes -= left;
        while left > 0 {
            let Some(piece) = self.pieces.front() else {
                return;
            };
            let here = piece.len() - self.done;
            if left < here {
                self.done += left;
                return;
            }
            left -= here;
            self.done = 0;
            self.pieces.pop_front();
        }
    }

    /// Copies bytes from an offset on, as many as `to` has.
    pub(super) fn copy_to(&self, offset: usize, to: &mut [u8]) {
        let mut skip = self.done + offset;
        let mut to = to;
        for piece in &self.pieces {
            if skip >= piece.len() {
                skip -= piece.len();
                continue;
            }
            let from = &piece[skip..];
            let count = from.len().min(to.len());
            let (here, rest) = to.split_at_mut(count);
            here.copy_from_slice(&from[..count]);
            (to, skip) = (rest, 0);
            if to.is_empty() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_queue_of_bytes(
            writes in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..20), 0..20),
            steps in proptest::collection::vec(0_usize..30, 0..20),
        ) {
            let mut outbox = Outbox::default();
            let mut all: Vec<u8> = writes.concat();
            writes.iter().for_each(|bytes| outbox.push(bytes.as_slice().into()));
            for step in steps {
                let mut copy = vec![0; all.len().saturating_sub(step)];
                outbox.copy_to(step.min(all.len()), &mut copy);
                prop_assert_eq!(&copy[..], &all[step.min(all.len())..]);
                outbox.acknowledge(step);
                all.drain(..step.min(all.len()));
                prop_assert_eq!(outbox.len(), all.len());
            }
        }
    }
}
