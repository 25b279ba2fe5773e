//! Where the body of a message ends (RFC 9112, sections 6 and 7): after so many bytes, after the last
//! chunk, or with the connection.

/// Bytes of the line of a chunk's size, and of all trailers, at most.
const LINE_BYTES_MAX: u32 = 8 * 1024;
/// Digits of a chunk's size: what has more is larger than any body.
const SIZE_DIGITS_MAX: u8 = 15;

/// What is left of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// So many bytes.
    Length(u64),
    /// Chunks.
    Chunked(Chunks),
    /// All that comes until the peer closes.
    UntilClose,
}

/// How far chunks were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunks {
    place: Place,
    /// Bytes left of this chunk.
    left: u64,
    /// Digits of its size that came.
    digits: u8,
    /// Bytes of this line, or of all trailers.
    line: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Size,
    Extension,
    Data,
    /// The line end behind the data; its CR came.
    AfterData(bool),
    /// At the beginning of a line of the trailers; its CR came.
    TrailerBegin(bool),
    Trailer,
    End,
}

/// A body that is none: what stands where a chunk should begin or end is something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BadBody;

impl Body {
    /// Chunks of which none has come.
    pub(super) fn chunked() -> Body {
        Body::Chunked(Chunks {
            place: Place::Size,
            left: 0,
            digits: 0,
            line: 0,
        })
    }

    /// Whether all is there.
    pub(super) fn is_whole(&self) -> bool {
        match self {
            Body::Length(left) => *left == 0,
            Body::Chunked(chunks) => chunks.place == Place::End,
            Body::UntilClose => false,
        }
    }

    /// Takes what came; `each` is told the pieces of content. Returns how many bytes belong to the body.
    pub(super) fn read(
        &mut self,
        data: &[u8],
        mut each: impl FnMut(&[u8]),
    ) -> Result<usize, BadBody> {
        match self {
            Body::Length(left) => {
                let taken = data.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= taken as u64;
                each(&data[..taken]);
                Ok(taken)
            }
            Body::UntilClose => {
                each(data);
                Ok(data.len())
            }
            Body::Chunked(chunks) => chunks.read(data, each),
        }
    }
}

impl Chunks {
    fn read(&mut self, data: &[u8], mut each: impl FnMut(&[u8])) -> Result<usize, BadBody> {
        let mut at = 0;
        while self.place != Place::End && at < data.len() {
            if self.place == Place::Data {
                let rest = &data[at..];
                let taken = rest
                    .len()
                    .min(usize::try_from(self.left).unwrap_or(usize::MAX));
                each(&rest[..taken]);
                self.left -= taken as u64;
                at += taken;
                if self.left == 0 {
                    self.place = Place::AfterData(false);
                }
                continue;
            }
            self.read_byte(data[at])?;
            at += 1;
        }
        Ok(at)
    }

    /// A byte outside of data.
    fn read_byte(&mut self, byte: u8) -> Result<(), BadBody> {
        self.line += 1;
        if self.line > LINE_BYTES_MAX {
            return Err(BadBody);
        }
        self.place = match (self.place, byte) {
            (Place::Size, b'\n') | (Place::Extension, b'\n') => self.end_size()?,
            (Place::Size, b'\r' | b';' | b' ' | b'\t') => Place::Extension,
            (Place::Size, _) => {
                let digit = char::from(byte).to_digit(16).ok_or(BadBody)?;
                if self.digits == SIZE_DIGITS_MAX {
                    return Err(BadBody);
                }
                self.digits += 1;
                self.left = self.left << 4 | u64::from(digit);
                Place::Size
            }
            (Place::Extension, _) => Place::Extension,
            (Place::AfterData(false), b'\r') => Place::AfterData(true),
            (Place::AfterData(_), b'\n') => {
                (self.digits, self.line) = (0, 0);
                Place::Size
            }
            (Place::TrailerBegin(_), b'\n') => Place::End,
            (Place::TrailerBegin(false), b'\r') => Place::TrailerBegin(true),
            (Place::Trailer, b'\n') => Place::TrailerBegin(false),
            (Place::TrailerBegin(false) | Place::Trailer, _) => Place::Trailer,
            (Place::AfterData(_) | Place::TrailerBegin(true) | Place::Data | Place::End, _) => {
                return Err(BadBody);
            }
        };
        Ok(())
    }

    fn end_size(&mut self) -> Result<Place, BadBody> {
        if self.digits == 0 {
            return Err(BadBody);
        }
        self.line = 0;
        Ok(match self.left {
            0 => Place::TrailerBegin(false),
            _ => Place::Data,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The content of a chunked body that comes in these pieces, and the bytes behind it.
    fn read(pieces: &[&[u8]]) -> Result<(Vec<u8>, usize), BadBody> {
        let (mut body, mut content, mut behind) = (Body::chunked(), Vec::new(), 0);
        for piece in pieces {
            let taken = body.read(piece, |part| content.extend_from_slice(part))?;
            behind += piece.len() - taken;
        }
        assert!(body.is_whole(), "it is not whole");
        Ok((content, behind))
    }

    #[test]
    fn chunks_are_read_with_extensions_and_trailers() {
        let bytes = b"4\r\nWiki\r\nA;x=\"y\"\r\n0123456789\r\n0\r\nTrailer: 1\r\n\r\nNEXT";
        assert_eq!(read(&[bytes]), Ok((b"Wiki0123456789".to_vec(), 4)));
        for cut in 0..bytes.len() - 4 {
            let (front, rest) = bytes.split_at(cut);
            assert_eq!(read(&[front, rest]), Ok((b"Wiki0123456789".to_vec(), 4)));
        }
    }

    #[test]
    fn what_is_no_chunk_is_refused() {
        for bytes in [
            &b"\r\n"[..],
            b"x\r\n",
            b"-1\r\n",
            b"4\r\nWikix",
            b"4\r\nWiki\rx",
            b"0\r\n\rx",
            b"10000000000000000\r\n",
        ] {
            assert_eq!(Body::chunked().read(bytes, |_| ()), Err(BadBody));
        }
        let endless = vec![b'1'; 2 * LINE_BYTES_MAX as usize];
        let mut line = b"1;".to_vec();
        line.extend(&endless);
        assert_eq!(Body::chunked().read(&line, |_| ()), Err(BadBody));
        let mut trailers = b"0\r\n".to_vec();
        (0..2_000).for_each(|_| trailers.extend(b"a: b\r\n"));
        assert_eq!(Body::chunked().read(&trailers, |_| ()), Err(BadBody));
    }

    proptest! {
        #[test]
        fn what_was_cut_into_chunks_is_read_again(
            parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..50), 0..10),
            cut in 1_usize..20,
        ) {
            let mut bytes = Vec::new();
            for part in &parts {
                bytes.extend(format!("{:x}\r\n", part.len()).bytes());
                bytes.extend(part);
                bytes.extend(b"\r\n");
            }
            bytes.extend(b"0\r\n\r\n");
            let pieces: Vec<&[u8]> = bytes.chunks(cut).collect();
            prop_assert_eq!(read(&pieces), Ok((parts.concat(), 0)));
        }

        #[test]
        fn any_bytes_are_taken_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut body = Body::chunked();
            if let Ok(taken) = body.read(&bytes, |_| ()) {
                prop_assert!(taken == bytes.len() || body.is_whole());
            }
        }
    }
}
