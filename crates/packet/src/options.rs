//! The list of options at the end of an IPv4 or TCP header: both are written the same way.
//!
//! Kind 0 ends the list, kind 1 is one byte of padding, all others are kind, length (with these
//! two bytes), data. What the kinds mean lives in `ipv4` and `tcp`.

use crate::error::HeaderError;

/// Bytes that options may take: a header is 60 bytes at most, 20 of them fixed.
pub(crate) const OPTION_BYTES_MAX: usize = 40;

const END: u8 = 0;
const NO_OPERATION: u8 = 1;

/// A list of options that is well formed and fits in a header. Without the end mark, which is
/// written when the list is padded.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct OptionList {
    /// All zeros from `length` on, so that equal lists are equal arrays.
    bytes: [u8; OPTION_BYTES_MAX],
    length: u8,
}

impl OptionList {
    pub(crate) const EMPTY: OptionList = OptionList {
        bytes: [0; OPTION_BYTES_MAX],
        length: 0,
    };

    /// Takes the options area of a header; what follows an end mark is left out.
    pub(crate) fn parse(header: &'static str, bytes: &[u8]) -> Result<Self, HeaderError> {
        let mut end = 0;
        let mut raw = RawOptions { bytes };
        while !raw.bytes.is_empty() && raw.bytes[0] != END {
            let length = raw.bytes.get(1).copied().unwrap_or_default();
            raw.next().ok_or(HeaderError::Field {
                header,
                field: "option length",
                value: u64::from(length),
                expected: "at least 2, and within the header",
            })?;
            end = bytes.len() - raw.bytes.len();
        }
        let mut list = OptionList::EMPTY;
        list.extend(header, &bytes[..end])?;
        Ok(list)
    }

    /// Appends one byte of padding.
    pub(crate) fn push_no_operation(&mut self, header: &'static str) -> Result<(), HeaderError> {
        self.extend(header, &[NO_OPERATION])
    }

    /// Appends an option of kind, length and data.
    pub(crate) fn push(
        &mut self,
        header: &'static str,
        kind: u8,
        data: &[u8],
    ) -> Result<(), HeaderError> {
        if kind == END || kind == NO_OPERATION {
            return Err(HeaderError::Field {
                header,
                field: "option kind",
                value: u64::from(kind),
                expected: "2 or more, for an option that has data",
            });
        }
        let mut option = [0; OPTION_BYTES_MAX];
        let length = data.len() + 2;
        let free = OPTION_BYTES_MAX - usize::from(self.length);
        let Some(length_byte) = u8::try_from(length).ok().filter(|_| length <= free) else {
            return Err(no_room(header, usize::from(self.length) + length));
        };
        option[0] = kind;
        option[1] = length_byte;
        option[2..length].copy_from_slice(data);
        self.extend(header, &option[..length])
    }

    /// The options as bytes, not padded.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// Bytes that the options take in a header: a multiple of 4.
    pub(crate) fn padded_bytes(&self) -> usize {
        usize::from(self.length).next_multiple_of(4)
    }

    /// Fills the options area of a header.
    pub(crate) fn emit(&self, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.bytes[..self.padded_bytes()]);
    }

    /// The options, one after the other.
    pub(crate) fn iter(&self) -> RawOptions<'_> {
        RawOptions {
            bytes: self.as_bytes(),
        }
    }

    fn extend(&mut self, header: &'static str, more: &[u8]) -> Result<(), HeaderError> {
        let start = usize::from(self.length);
        let end = start + more.len();
        let target = self
            .bytes
            .get_mut(start..end)
            .ok_or_else(|| no_room(header, end))?;
        target.copy_from_slice(more);
        self.length = u8::try_from(end).expect("the list has at most 40 bytes");
        Ok(())
    }
}

fn no_room(header: &'static str, bytes: usize) -> HeaderError {
    HeaderError::Field {
        header,
        field: "options",
        value: bytes as u64,
        expected: "at most 40 bytes in all",
    }
}

/// One option as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawOption<'a> {
    pub(crate) kind: u8,
    /// Without kind and length.
    pub(crate) data: &'a [u8],
}

impl RawOption<'_> {
    pub(crate) const fn is_no_operation(self) -> bool {
        self.kind == NO_OPERATION
    }
}

/// Goes over options; ends at the end mark and at what is not well formed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawOptions<'a> {
    bytes: &'a [u8],
}

impl<'a> RawOptions<'a> {
    /// Over the options area of a header, which may be anything.
    pub(crate) const fn over(bytes: &'a [u8]) -> Self {
        RawOptions { bytes }
    }
}

impl<'a> Iterator for RawOptions<'a> {
    type Item = RawOption<'a>;

    fn next(&mut self) -> Option<RawOption<'a>> {
        let (kind, length) = match *self.bytes {
            [] | [END, ..] => return None,
            [NO_OPERATION, ..] => (NO_OPERATION, 1),
            [kind, length, ..] => (kind, usize::from(length)),
            [_] => return None,
        };
        if kind != NO_OPERATION && length < 2 {
            return None;
        }
        let option = self.bytes.get(..length)?;
        self.bytes = &self.bytes[length..];
        Some(RawOption {
            kind,
            data: option.get(2..).unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_end_mark_ends_the_list() {
        let list = OptionList::parse("t", &[1, 3, 3, 7, 0, 9, 9, 9]).unwrap();
        assert_eq!(list.as_bytes(), [1, 3, 3, 7]);
        assert_eq!(
            list.iter().map(|o| (o.kind, o.data)).collect::<Vec<_>>(),
            [(1, &[] as &[u8]), (3, &[7]),]
        );
        assert_eq!(OptionList::parse("t", &[0; 40]).unwrap(), OptionList::EMPTY);
    }

    #[test]
    fn bad_lengths_are_refused() {
        for bytes in [
            &[2u8, 0] as &[u8],
            &[2, 1],
            &[2, 3],
            &[1, 1, 5],
            &[2, 255, 0, 0],
        ] {
            let error = OptionList::parse("t", bytes).unwrap_err();
            assert!(error.to_string().contains("option length"), "{error}");
        }
    }

    #[test]
    fn the_limit_is_forty_bytes() {
        let mut list = OptionList::EMPTY;
        list.push("t", 9, &[7; 36]).unwrap();
        assert!(list.push("t", 9, &[7; 1]).is_err() && list.push("t", 9, &[7; 300]).is_err());
        list.push_no_operation("t").unwrap();
        list.push_no_operation("t").unwrap();
        assert!(list.push_no_operation("t").is_err());
        assert_eq!((list.as_bytes().len(), list.padded_bytes()), (40, 40));
        let mut list = OptionList::EMPTY;
        assert!(list.push("t", 1, &[]).is_err());
    }

    proptest! {
        #[test]
        fn what_was_emitted_is_read_back(bytes in prop::collection::vec(0u8..9, 0..40)) {
            if let Ok(list) = OptionList::parse("t", &bytes) {
                let mut padded = vec![0xa5; list.padded_bytes()];
                list.emit(&mut padded);
                prop_assert_eq!(OptionList::parse("t", &padded), Ok(list));
                prop_assert!(padded.len() % 4 == 0 && padded.len() <= OPTION_BYTES_MAX);
            }
        }
    }

    impl std::fmt::Debug for OptionList {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            self.as_bytes().fmt(f)
        }
    }
}
