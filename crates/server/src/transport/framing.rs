//! Frames: plain JSON text, or zipped (4 bytes of magic, 4 bytes of length, a zlib stream).
//!
//! A [`Codec`] is kept and used again: making one costs several times what a short message does.
//!
//! Limits: [`REQUEST_BYTES_MAX`] unless told otherwise, for the frame and for the text in it.
//! Inflating stops at the limit, whatever the frame says about its length.

use std::borrow::Cow;

use allosaur_api::Error;
use allosaur_api::limits::REQUEST_BYTES_MAX;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

/// Published texts that are longer are zipped.
pub const PUBLISH_PLAIN_BYTES_MAX: usize = 256;

const MAGIC: [u8; 4] = [0xab, 0xe8, 0x5c, 0xea];
const HEADER_BYTES: usize = 8;
/// Buffers grow by no less.
const GROWTH_BYTES_MIN: usize = 256;

/// The text of a frame, and whether it was zipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text<'a> {
    /// The JSON text.
    pub bytes: Cow<'a, [u8]>,
    /// The frame was zipped, so the answer shall be.
    pub zipped: bool,
}

/// Zips and unzips, one message after the other.
#[derive(Debug)]
pub struct Codec {
    deflate: Compress,
    inflate: Decompress,
    bytes_max: usize,
}

impl Default for Codec {
    fn default() -> Codec {
        Codec {
            deflate: Compress::new(Compression::fast(), true),
            inflate: Decompress::new(true),
            bytes_max: REQUEST_BYTES_MAX,
        }
    }
}

impl Codec {
    /// The same, with another limit.
    #[must_use]
    pub fn limited_to(self, bytes_max: usize) -> Codec {
        Codec { bytes_max, ..self }
    }

    /// Most bytes of a frame, and of the text in it.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// Takes the text out of a frame.
    ///
    /// A frame that has the magic and cannot be inflated is taken as it is; it is no JSON then.
    ///
    /// # Errors
    /// The frame or its text is larger than the limit.
    pub fn decode<'a>(&mut self, frame: &'a [u8]) -> Result<Text<'a>, Error> {
        let bytes_max = self.bytes_max;
        if frame.len() > bytes_max {
            return Err(Error::too_large(frame.len(), bytes_max));
        }
        if !is_zipped(frame) {
            return Ok(plain(frame));
        }
        let Some(text) = self.unzip(&frame[HEADER_BYTES..]) else {
            return Ok(plain(frame));
        };
        if text.len() > bytes_max {
            let bytes = declared_bytes(frame).max(bytes_max + 1);
            return Err(Error::too_large(bytes, bytes_max));
        }
        Ok(Text {
            bytes: Cow::Owned(text),
            zipped: true,
        })
    }

    /// The text of a zlib stream, up to one byte more than we take; `None` when it is none.
    fn unzip(&mut self, stream: &[u8]) -> Option<Vec<u8>> {
        let (inflate, bytes_max) = (&mut self.inflate, self.bytes_max);
        inflate.reset(true);
        let mut text = Vec::with_capacity(stream.len().saturating_mul(4).min(bytes_max));
        while text.len() <= bytes_max {
            let room = bytes_max + 1 - text.len();
            text.reserve(room.min(GROWTH_BYTES_MIN));
            let (read, had) = (inflate.total_in(), text.len());
            let rest = &stream[read as usize..];
            let status = inflate.decompress_vec(rest, &mut text, FlushDecompress::None);
            if status.ok()? == Status::StreamEnd {
                break;
            }
            if (inflate.total_in(), text.len()) == (read, had) {
                // It ends too early.
                return None;
            }
        }
        Some(text)
    }

    /// Makes a frame of a reply: zipped if the request was.
    pub fn encode(&mut self, text: Vec<u8>, zipped: bool) -> Vec<u8> {
        if zipped { self.zip(&text) } else { text }
    }

    /// Makes a zipped frame of a text.
    pub fn zip(&mut self, text: &[u8]) -> Vec<u8> {
        self.deflate.reset();
        let mut frame = Vec::with_capacity(HEADER_BYTES + text.len() / 2 + GROWTH_BYTES_MIN);
        frame.extend_from_slice(&MAGIC);
        frame.extend_from_slice(&(text.len() as u32).to_be_bytes());
        loop {
            let rest = &text[self.deflate.total_in() as usize..];
            let status = self
                .deflate
                .compress_vec(rest, &mut frame, FlushCompress::Finish);
            match status.expect("any text can be compressed") {
                Status::StreamEnd => return frame,
                _ => frame.reserve(frame.len().max(GROWTH_BYTES_MIN)),
            }
        }
    }

    /// Makes a frame of a text to publish: zipped if that pays.
    pub fn encode_published(&mut self, text: &[u8]) -> Vec<u8> {
        if text.len() > PUBLISH_PLAIN_BYTES_MAX {
            self.zip(text)
        } else {
            text.to_vec()
        }
    }
}

/// Whether a frame claims to be zipped.
pub fn is_zipped(frame: &[u8]) -> bool {
    frame.len() >= HEADER_BYTES && frame[..4] == MAGIC
}

fn plain(frame: &[u8]) -> Text<'_> {
    Text {
        bytes: Cow::Borrowed(frame),
        zipped: false,
    }
}

/// What a zipped frame says of its text's length.
fn declared_bytes(frame: &[u8]) -> usize {
    let length = [frame[4], frame[5], frame[6], frame[7]];
    u32::from_be_bytes(length) as usize
}

/// How long the text of a frame is, by what the frame says; never shorter than the frame.
pub fn text_bytes(frame: &[u8]) -> usize {
    let declared = is_zipped(frame).then(|| declared_bytes(frame));
    declared.map_or(frame.len(), |bytes| bytes.max(frame.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zip(text: &[u8]) -> Vec<u8> {
        Codec::default().zip(text)
    }

    fn decode(frame: &[u8]) -> Result<Text<'_>, Error> {
        Codec::default().decode(frame)
    }

    #[test]
    fn a_zipped_text_comes_back() {
        for text in [&b""[..], b"{}", &[7; 100_000]] {
            let frame = zip(text);
            let decoded = decode(&frame).expect("small enough");
            assert_eq!((decoded.bytes.as_ref(), decoded.zipped), (text, true));
        }
    }

    #[test]
    fn one_message_leaves_nothing_for_the_next() {
        let mut codec = Codec::default();
        let good = codec.zip(b"{\"id\": 1}");
        let cut = good[..good.len() - 5].to_vec();
        let bomb = codec.zip(&vec![b' '; 5_000_000]);
        let noise = [&MAGIC[..], &[0, 0, 0, 9], &[0x78, 0x01, 0xff, 0xff, 0, 0]].concat();
        for other in [cut, bomb, noise, b"{}".to_vec(), good.clone()] {
            let _ = codec.decode(&other);
            let text = codec.decode(&good).expect("small enough");
            assert_eq!((&text.bytes[..], text.zipped), (&b"{\"id\": 1}"[..], true));
            assert_eq!(codec.zip(b"{\"id\": 1}"), good);
        }
    }

    #[test]
    fn limits_hold_for_the_frame_and_for_its_text() {
        assert!(decode(&vec![b' '; REQUEST_BYTES_MAX]).is_ok());
        assert!(decode(&vec![b' '; REQUEST_BYTES_MAX + 1]).is_err());
        assert!(decode(&zip(&vec![b' '; REQUEST_BYTES_MAX])).is_ok());
        let bomb = zip(&vec![b' '; 100_000_000]);
        assert!(bomb.len() < REQUEST_BYTES_MAX);
        let error = decode(&bomb).expect_err("too large").to_string();
        assert!(error.contains("100000000 bytes"), "{error}");
    }

    #[test]
    fn a_false_length_is_not_believed() {
        let mut frame = zip(b"{}");
        frame[4..8].copy_from_slice(&u32::MAX.to_be_bytes());
        assert_eq!(decode(&frame).expect("small").bytes.as_ref(), b"{}");
    }

    #[test]
    fn what_cannot_be_inflated_is_taken_as_it_is() {
        let frame = [&MAGIC[..], &[0, 0, 0, 9], b"not zlib"].concat();
        let decoded = decode(&frame).expect("small enough");
        assert_eq!(
            (decoded.bytes.as_ref(), decoded.zipped),
            (&frame[..], false)
        );
    }
}
