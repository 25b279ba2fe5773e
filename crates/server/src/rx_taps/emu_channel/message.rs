//! Messages between a server and an emulation server of another process: frames in batches, with the
//! port of each, in TRex's form.
//!
//! | bytes | what |
//! |---|---|
//! | 2, 2 | 0xbeef, how many frames |
//! | 1, 1, 2 | of each frame: 0xaa, its port, its length; the frame follows |
//!
//! All numbers are big-endian.

use allosaur_engine::transmit::PortIndex;

/// Frames and bytes of a message at most.
const FRAMES_MAX: u16 = 64;
const BYTES_MAX: usize = 32 << 10;
const MAGIC: [u8; 2] = [0xbe, 0xef];
const FRAME_MAGIC: u8 = 0xaa;
const HEADER_BYTES: usize = 4;

/// A message in the making.
#[derive(Debug, Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    frames: u16,
}

impl Batch {
    /// Adds a frame; false when the message is full, or no message holds it.
    pub(super) fn push(&mut self, port: PortIndex, frame: &[u8]) -> bool {
        let Ok(length) = u16::try_from(frame.len()) else {
            return false;
        };
        let bytes = self.bytes.len().max(HEADER_BYTES) + HEADER_BYTES + frame.len();
        if self.frames == FRAMES_MAX || bytes > BYTES_MAX {
            return false;
        }
        if self.frames == 0 {
            self.bytes.extend([MAGIC[0], MAGIC[1], 0, 0]);
        }
        self.frames += 1;
        self.bytes.extend([FRAME_MAGIC, port]);
        self.bytes.extend(length.to_be_bytes());
        self.bytes.extend(frame);
        true
    }

    /// Gives the message to `send`, if there is something in it, and begins another.
    pub(super) fn take(&mut self, send: impl FnOnce(&[u8])) {
        if self.frames != 0 {
            self.bytes[2..HEADER_BYTES].copy_from_slice(&self.frames.to_be_bytes());
            send(&self.bytes);
        }
        self.frames = 0;
        self.bytes.clear();
    }
}

/// The frames of a message, up to the first byte that is not as it must be.
#[derive(Debug)]
pub(super) struct Frames<'m> {
    rest: &'m [u8],
    left: u16,
    /// Whether something was wrong.
    pub(super) is_wrong: bool,
}

impl<'m> Frames<'m> {
    pub(super) fn of(message: &'m [u8]) -> Frames<'m> {
        match message {
            [a, b, high, low, rest @ ..] if [*a, *b] == MAGIC => Frames {
                rest,
                left: u16::from_be_bytes([*high, *low]),
                is_wrong: false,
            },
            _ => Frames {
                rest: &[],
                left: 0,
                is_wrong: true,
            },
        }
    }
}

impl<'m> Iterator for Frames<'m> {
    type Item = (PortIndex, &'m [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 || self.is_wrong {
            self.is_wrong |= !self.rest.is_empty();
            return None;
        }
        self.left -= 1;
        if let [FRAME_MAGIC, port, high, low, rest @ ..] = self.rest {
            let length = usize::from(u16::from_be_bytes([*high, *low]));
            if let Some((frame, rest)) = rest.split_at_checked(length) {
                self.rest = rest;
                return Some((*port, frame));
            }
        }
        self.is_wrong = true;
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(frames: &[(PortIndex, Vec<u8>)]) -> Vec<u8> {
        let mut batch = Batch::default();
        for (port, frame) in frames {
            assert!(batch.push(*port, frame));
        }
        let mut message = Vec::new();
        batch.take(|bytes| message = bytes.to_vec());
        message
    }

    #[test]
    fn a_message_has_the_form_of_trex() {
        let message = message(&[(1, vec![5; 3]), (0, vec![6])]);
        assert_eq!(
            message,
            [0xbe, 0xef, 0, 2, 0xaa, 1, 0, 3, 5, 5, 5, 0xaa, 0, 0, 1, 6]
        );
    }

    #[test]
    fn a_message_is_full_at_64_frames_or_32_kib() {
        for (bytes, frames) in [(60, 64), (9000, 3)] {
            let mut batch = Batch::default();
            let fit = (0..100).take_while(|_| batch.push(0, &vec![0; bytes]));
            assert_eq!(fit.count(), frames);
            batch.take(|message| assert!(message.len() <= BYTES_MAX));
            assert!(batch.push(0, &[1]));
        }
        assert!(!Batch::default().push(0, &vec![0; 70_000]));
    }

    proptest! {
        #[test]
        fn frames_come_out_as_they_went_in(
            frames in prop::collection::vec(
                (any::<u8>(), prop::collection::vec(any::<u8>(), 0..400)), 1..60,
            ),
        ) {
            let message = message(&frames);
            let mut out = Frames::of(&message);
            let read: Vec<_> = out.by_ref().map(|(port, frame)| (port, frame.to_vec())).collect();
            prop_assert_eq!(read, frames);
            prop_assert!(!out.is_wrong);
        }

        #[test]
        fn any_bytes_are_read(
            mut bytes in prop::collection::vec(any::<u8>(), 0..80), has_magic: bool,
        ) {
            if has_magic && bytes.len() > 5 {
                bytes[..2].copy_from_slice(&MAGIC);
                (bytes[2], bytes[4]) = (0, FRAME_MAGIC);
            }
            let most = bytes.len();
            let total: usize = Frames::of(&bytes).map(|(_, frame)| frame.len()).sum();
            prop_assert!(total <= most);
        }
    }
}
