//! Frames: plain JSON text, or zipped (4 bytes of magic, 4 bytes of length, a zlib stream).
//!
//! Limits: [`REQUEST_BYTES_MAX`], for the frame and for the text in it. Inflating stops at the
//! limit, whatever the frame says about its length.

use std::borrow::Cow;
use std::io::{Read, Write};

use allosaur_api::Error;
use allosaur_api::limits::REQUEST_BYTES_MAX;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

/// Published texts that are longer are zipped.
pub const PUBLISH_PLAIN_BYTES_MAX: usize = 256;

const MAGIC: [u8; 4] = [0xab, 0xe8, 0x5c, 0xea];
const HEADER_BYTES: usize = 8;

/// The text of a frame, and whether it was zipped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text<'a> {
    /// The JSON text.
    pub bytes: Cow<'a, [u8]>,
    /// The frame was zipped, so the answer shall be.
    pub zipped: bool,
}

/// Takes the text out of a frame.
///
/// A frame that has the magic and cannot be inflated is taken as it is; it is no JSON then.
///
/// # Errors
/// The frame or its text is larger than [`REQUEST_BYTES_MAX`].
pub fn decode(frame: &[u8]) -> Result<Text<'_>, Error> {
    if frame.len() > REQUEST_BYTES_MAX {
        return Err(Error::too_large(frame.len(), REQUEST_BYTES_MAX));
    }
    if frame.len() < HEADER_BYTES || frame[..4] != MAGIC {
        return Ok(plain(frame));
    }
    let mut text = Vec::new();
    let limit = REQUEST_BYTES_MAX as u64 + 1;
    let mut inflate = ZlibDecoder::new(&frame[HEADER_BYTES..]).take(limit);
    if inflate.read_to_end(&mut text).is_err() {
        return Ok(plain(frame));
    }
    if text.len() > REQUEST_BYTES_MAX {
        return Err(Error::too_large(declared_bytes(frame), REQUEST_BYTES_MAX));
    }
    Ok(Text {
        bytes: Cow::Owned(text),
        zipped: true,
    })
}

/// Whether a frame claims to be zipped.
pub fn is_zipped(frame: &[u8]) -> bool {
    frame.len() >= HEADER_BYTES && frame[..4] == MAGIC
}

/// Makes a zipped frame of a text.
pub fn zip(text: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(HEADER_BYTES + text.len() / 2);
    frame.extend_from_slice(&MAGIC);
    frame.extend_from_slice(&(text.len() as u32).to_be_bytes());
    let mut deflate = ZlibEncoder::new(frame, Compression::fast());
    let written = deflate.write_all(text).and_then(|()| deflate.finish());
    written.expect("writing to memory cannot fail")
}

/// Makes a frame of a text to publish: zipped if that pays.
pub fn encode_published(text: Vec<u8>) -> Vec<u8> {
    if text.len() > PUBLISH_PLAIN_BYTES_MAX {
        zip(&text)
    } else {
        text
    }
}

fn plain(frame: &[u8]) -> Text<'_> {
    Text {
        bytes: Cow::Borrowed(frame),
        zipped: false,
    }
}

/// What the frame says of its text's length; at least one more than we take.
fn declared_bytes(frame: &[u8]) -> usize {
    let length = [frame[4], frame[5], frame[6], frame[7]];
    (u32::from_be_bytes(length) as usize).max(REQUEST_BYTES_MAX + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zipped_text_comes_back() {
        for text in [&b""[..], b"{}", &[7; 100_000]] {
            let frame = zip(text);
            let decoded = decode(&frame).expect("small enough");
            assert_eq!((decoded.bytes.as_ref(), decoded.zipped), (text, true));
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
