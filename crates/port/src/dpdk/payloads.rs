//! Payloads that frames in a ring refer to: bytes that never change, kept alive as long as a frame may have
//! them.
//!
//! Who sends counts its frames, and who receives counts those that it is done with. They come in order,
//! so payloads that were let go after so many frames are nobody's when as many came back.

use std::collections::HashMap;
use std::sync::Arc;

/// Payloads that are kept at once at most; frames of others have their bytes in them.
const PAYLOADS_MAX: usize = 4096;

/// By their places in memory, which no other can have while they are kept here.
pub(super) type KeptPayloads = HashMap<usize, Arc<[u8]>>;

/// Those of one transmit queue.
#[derive(Debug, Default)]
pub(super) struct SentPayloads {
    kept: KeptPayloads,
    /// The place of the last one that was asked for.
    last: usize,
    /// Those that were let go, and how many frames had been sent by then.
    let_go: Vec<(u64, KeptPayloads)>,
}

impl SentPayloads {
    /// Keeps one, if it is not kept yet. Returns whether there was room.
    #[inline]
    pub(super) fn keep(&mut self, bytes: &Arc<[u8]>) -> bool {
        let place = bytes.as_ptr().addr();
        self.last == place || self.keep_other(place, bytes)
    }

    #[inline(never)]
    fn keep_other(&mut self, place: usize, bytes: &Arc<[u8]>) -> bool {
        if !self.kept.contains_key(&place) {
            if self.kept.len() >= PAYLOADS_MAX {
                return false;
            }
            self.kept.insert(place, Arc::clone(bytes));
        }
        self.last = place;
        true
    }

    /// No frame after the first `sent` will refer to those that are kept.
    pub(super) fn let_go(&mut self, sent: u64) {
        if !self.kept.is_empty() {
            self.let_go.push((sent, std::mem::take(&mut self.kept)));
            self.last = 0;
        }
    }

    /// Whether some were let go that may still be referred to.
    #[inline]
    pub(super) fn has_let_go(&self) -> bool {
        !self.let_go.is_empty()
    }

    /// So many frames are done with.
    pub(super) fn note_received(&mut self, received: u64) {
        self.let_go.retain(|(sent, _)| *sent > received);
    }

    /// All that a frame may refer to.
    pub(super) fn into_kept(mut self) -> Vec<KeptPayloads> {
        self.let_go(u64::MAX);
        self.let_go.into_iter().map(|(_, kept)| kept).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_live_until_their_frames_came_back() {
        let [first, second]: [Arc<[u8]>; 2] = [vec![1; 9].into(), vec![2; 9].into()];
        let mut payloads = SentPayloads::default();
        for bytes in [&first, &first, &second, &first] {
            assert!(payloads.keep(bytes));
        }
        assert_eq!(
            (Arc::strong_count(&first), Arc::strong_count(&second)),
            (2, 2)
        );
        payloads.let_go(4);
        assert!(payloads.keep(&second));
        payloads.note_received(3);
        assert!(payloads.has_let_go());
        assert_eq!(
            (Arc::strong_count(&first), Arc::strong_count(&second)),
            (2, 3)
        );
        payloads.note_received(4);
        assert!(!payloads.has_let_go());
        assert_eq!(
            (Arc::strong_count(&first), Arc::strong_count(&second)),
            (1, 2)
        );
        drop(payloads.into_kept());
        assert_eq!(Arc::strong_count(&second), 1);
    }

    #[test]
    fn there_is_room_for_so_many() {
        let many: Vec<Arc<[u8]>> = (0..=PAYLOADS_MAX).map(|_| vec![0; 9].into()).collect();
        let mut payloads = SentPayloads::default();
        let kept = many.iter().filter(|bytes| payloads.keep(bytes)).count();
        assert_eq!(kept, PAYLOADS_MAX);
        assert!(payloads.keep(&many[0]) && !payloads.keep(&many[PAYLOADS_MAX]));
    }
}
