//! Frames in two parts: headers that are written for each, and a payload that many frames share, with
//! its sum. Who passes such a frame on in memory need not copy or read the payload.

use std::sync::Arc;

use crate::network::checksum::Sum;

/// The payload of a frame to be sent: a slice of bytes that never change.
#[derive(Clone, Copy, Debug)]
pub struct SharedPayload<'a> {
    /// What it is a slice of.
    pub bytes: &'a Arc<[u8]>,
    /// Where it begins there.
    pub offset: usize,
    /// How many bytes it has.
    pub len: usize,
    /// The sum of its bytes, as if the first stood at an even place of what a checksum covers.
    pub sum: u16,
}

impl<'a> SharedPayload<'a> {
    /// The bytes themselves.
    ///
    /// # Panics
    ///
    /// When it reaches beyond what it is a slice of.
    #[inline]
    #[must_use]
    pub fn slice(&self) -> &'a [u8] {
        &self.bytes[self.offset..][..self.len]
    }
}

/// A frame that arrived, whole or in two parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SplitFrame<'f> {
    /// When it arrived, in nanoseconds.
    pub at_ns: u64,
    /// All of it, without FCS; or its headers, to the last byte before the payload.
    pub head: &'f [u8],
    /// The payload, where that is apart; else empty.
    pub payload: &'f [u8],
    /// The sum of the payload, where that is apart, see [`SharedPayload::sum`].
    pub payload_sum: u16,
}

impl<'f> SplitFrame<'f> {
    /// A frame in one part.
    #[must_use]
    pub fn whole(at_ns: u64, bytes: &'f [u8]) -> SplitFrame<'f> {
        SplitFrame {
            at_ns,
            head: bytes,
            payload: &[],
            payload_sum: 0,
        }
    }

    /// Whether the payload is apart.
    #[inline]
    #[must_use]
    pub fn is_split(&self) -> bool {
        !self.payload.is_empty()
    }

    /// Bytes of all of it, without FCS.
    #[inline]
    #[must_use]
    pub fn frame_bytes(&self) -> usize {
        self.head.len() + self.payload.len()
    }

    /// The sum of the payload, where that is apart.
    #[inline]
    #[must_use]
    pub fn sum(&self) -> Sum {
        Sum::default().and_u16(self.payload_sum)
    }

    /// All bytes in one piece: where they are, or in `scratch`, in the place of what was there.
    #[must_use]
    pub fn bytes<'s>(&self, scratch: &'s mut Vec<u8>) -> &'s [u8]
    where
        'f: 's,
    {
        if !self.is_split() {
            return self.head;
        }
        scratch.clear();
        scratch.extend_from_slice(self.head);
        scratch.extend_from_slice(self.payload);
        scratch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_in_two_parts_is_the_whole() {
        let bytes: Arc<[u8]> = (0..=255).collect();
        let payload = SharedPayload {
            bytes: &bytes,
            offset: 3,
            len: 4,
            sum: Sum::of(&[3, 4, 5, 6]).folded(),
        };
        let split = SplitFrame {
            at_ns: 7,
            head: &[1, 2],
            payload: payload.slice(),
            payload_sum: payload.sum,
        };
        let mut scratch = vec![9; 9];
        assert!(split.is_split());
        assert_eq!(split.bytes(&mut scratch), [1, 2, 3, 4, 5, 6]);
        assert_eq!((split.frame_bytes(), split.sum().folded()), (6, 0x080a));
        let whole = SplitFrame::whole(7, &[1, 2]);
        assert_eq!(
            (whole.bytes(&mut scratch), whole.frame_bytes()),
            (&[1, 2][..], 2)
        );
    }

    #[test]
    #[should_panic(expected = "out of range")]
    fn nothing_is_behind_the_end() {
        let bytes: Arc<[u8]> = Arc::new([0; 9]);
        let (offset, len, sum) = (7, 3, 0);
        let _ = SharedPayload {
            bytes: &bytes,
            offset,
            len,
            sum,
        }
        .slice();
    }
}
