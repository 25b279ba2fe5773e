//! The head of a message, until its last byte is there: heads come in any number of pieces.

/// Bytes of a head at most. A longer one ends its connection, so that what is held for one is bounded.
pub(super) const HEAD_BYTES_MAX: usize = 16 * 1024;

/// The part of a head that has arrived. Holds nothing where heads arrive whole.
#[derive(Debug, Default)]
pub(super) struct HeadReader {
    held: Vec<u8>,
}

/// What is known of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeadProgress {
    /// More must come; all that came is held.
    More,
    /// It is whole: so many of the bytes that came belong to it.
    Whole(usize),
    /// It has more bytes than a head may have.
    TooLong,
}

impl HeadReader {
    /// Whether a head has begun and is not whole.
    pub(super) fn is_within(&self) -> bool {
        !self.held.is_empty()
    }

    /// Takes what came. Empty lines in front of a head are no part of it (RFC 9112, section 2.2).
    pub(super) fn read(&mut self, data: &[u8]) -> HeadProgress {
        let begin = match self.held.is_empty() {
            true => data.iter().take_while(|byte| is_line_end(**byte)).count(),
            false => 0,
        };
        let rest = &data[begin..];
        let (whole, taken) = if self.held.is_empty() {
            let end = end_of_head(rest, 0);
            (end.is_some(), end.unwrap_or(rest.len()))
        } else {
            let before = self.held.len();
            let room = HEAD_BYTES_MAX + 1 - before;
            self.held.extend_from_slice(&rest[..rest.len().min(room)]);
            let end = end_of_head(&self.held, before.saturating_sub(3));
            if let Some(end) = end {
                self.held.truncate(end);
            }
            (end.is_some(), self.held.len() - before)
        };
        let is_held = !self.held.is_empty();
        if (if is_held { self.held.len() } else { taken }) > HEAD_BYTES_MAX {
            self.held = Vec::new();
            return HeadProgress::TooLong;
        }
        if whole {
            return HeadProgress::Whole(begin + taken);
        }
        if !is_held {
            self.held.extend_from_slice(rest);
        }
        HeadProgress::More
    }

    /// The bytes of a head that is whole; `data` are those of which the last belong to it.
    pub(super) fn head<'a>(&'a self, data: &'a [u8]) -> &'a [u8] {
        if self.held.is_empty() {
            let begin = data.iter().take_while(|byte| is_line_end(**byte)).count();
            return &data[begin..];
        }
        &self.held
    }

    /// The head was read.
    pub(super) fn clear(&mut self) {
        self.held.clear();
    }
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

/// Where the empty line behind a head ends; what is before `from` has none.
fn end_of_head(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(next) = line_feed(&bytes[at..]) {
        at += next + 1;
        match bytes[at..] {
            [b'\n', ..] => return Some(at + 1),
            [b'\r', b'\n', ..] => return Some(at + 2),
            _ => {}
        }
    }
    None
}

/// The place of the first line feed: eight bytes at a time, for heads are mostly other bytes.
fn line_feed(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGHS: u64 = ONES << 7;
    const FEEDS: u64 = ONES * b'\n' as u64;
    let words = bytes.chunks_exact(8);
    let rest = words.remainder();
    for (i, word) in words.enumerate() {
        // The lowest of the high bits that are set stands at a byte that is zero here.
        let word = u64::from_le_bytes(word.try_into().expect("it has eight bytes"));
        let other = word ^ FEEDS;
        let found = other.wrapping_sub(ONES) & !other & HIGHS;
        if found != 0 {
            return Some(8 * i + found.trailing_zeros() as usize / 8);
        }
    }
    let in_rest = rest.iter().position(|byte| *byte == b'\n');
    in_rest.map(|place| bytes.len() - rest.len() + place)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEAD: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

    fn whole(pieces: &[&[u8]]) -> Option<(Vec<u8>, usize)> {
        let mut reader = HeadReader::default();
        for piece in pieces {
            match reader.read(piece) {
                HeadProgress::More => {}
                HeadProgress::Whole(taken) => {
                    return Some((reader.head(&piece[..taken]).to_vec(), taken));
                }
                HeadProgress::TooLong => return None,
            }
        }
        None
    }

    #[test]
    fn a_head_is_the_same_however_it_is_cut() {
        let mut bytes = HEAD.to_vec();
        bytes.extend(b"body");
        for first in 0..HEAD.len() {
            for second in first..HEAD.len() {
                let pieces = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                let (head, taken) = whole(&pieces).expect("it is whole");
                assert_eq!((&head[..], taken), (HEAD, HEAD.len() - second));
            }
        }
    }

    #[test]
    fn lines_may_end_without_cr_and_empty_ones_stand_in_front() {
        let (head, taken) = whole(&[b"\r\n\nGET / HTTP/1.1\n\nx"]).expect("it is whole");
        assert_eq!((&head[..], taken), (&b"GET / HTTP/1.1\n\n"[..], 19));
    }

    proptest! {
        #[test]
        fn the_first_line_feed_is_found(
            bytes in prop::collection::vec(prop_oneof![Just(b'\n'), 9..14_u8, any::<u8>()], 0..40),
        ) {
            let first = bytes.iter().position(|byte| *byte == b'\n');
            prop_assert_eq!(line_feed(&bytes), first);
        }

        #[test]
        fn what_is_held_is_bounded(
            pieces in prop::collection::vec(prop::collection::vec(b'a'..=b'b', 0..6_000), 0..8),
        ) {
            let mut reader = HeadReader::default();
            let mut bytes = 0;
            for piece in &pieces {
                bytes += piece.len();
                let told = reader.read(piece);
                prop_assert!(reader.held.len() <= HEAD_BYTES_MAX);
                if bytes > HEAD_BYTES_MAX {
                    prop_assert_eq!(told, HeadProgress::TooLong);
                    break;
                }
                prop_assert_eq!(told, HeadProgress::More);
            }
        }
    }
}
