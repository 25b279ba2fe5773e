//! The two extension headers of IPv6 that hold options: hop-by-hop and destination options
//! (RFC 8200 sections 4.2, 4.3, 4.6). Both look the same.

use std::fmt;

use crate::error::{HeaderError, check_length};
use crate::network::ip_protocol::IpProtocol;
use crate::view::view;

mod field {
    pub(super) const NEXT_HEADER: usize = 0;
    pub(super) const LENGTH: usize = 1;
    pub(super) const OPTIONS: usize = 2;
}

/// Bytes of the header with as few options as there can be.
pub const HEADER_BYTES_MIN: usize = 8;
/// Bytes of options that the length field can say.
pub const OPTION_BYTES_MAX: usize = 8 * 256 - field::OPTIONS;

const PAD_1: u8 = 0;
const PAD_N: u8 = 1;

view! {
    /// A view over a header with options and what follows it.
    Ipv6OptionsView of Ipv6OptionsHeader
}

impl<B: AsRef<[u8]>> Ipv6OptionsView<B> {
    /// Makes every accessor safe when it is `Ok`.
    ///
    /// # Errors
    /// When the bytes end before the header and its options do.
    pub fn check_len(&self) -> Result<(), HeaderError> {
        let bytes = self.bytes.as_ref();
        check_length("ipv6 options", bytes, HEADER_BYTES_MIN)?;
        check_length("ipv6 options", bytes, self.header_bytes())
    }

    /// What follows.
    pub fn next_header(&self) -> IpProtocol {
        IpProtocol(self.bytes.as_ref()[field::NEXT_HEADER])
    }

    /// Bytes of the header with its options: a multiple of 8.
    pub fn header_bytes(&self) -> usize {
        8 * (usize::from(self.bytes.as_ref()[field::LENGTH]) + 1)
    }

    /// The options without the padding between them; ends at what is not well formed.
    pub fn options(&self) -> impl Iterator<Item = Ipv6Option<'_>> {
        iterate(&self.bytes.as_ref()[field::OPTIONS..self.header_bytes()])
    }

    /// What follows, as bytes.
    pub fn payload(&self) -> &[u8] {
        &self.bytes.as_ref()[self.header_bytes()..]
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Ipv6OptionsView<B> {
    /// Sets what follows.
    pub fn set_next_header(&mut self, next_header: IpProtocol) {
        self.bytes.as_mut()[field::NEXT_HEADER] = next_header.0;
    }

    /// Sets the length of the header: a multiple of 8, from 8 to 2048, which the bytes must have.
    pub fn set_header_bytes(&mut self, header_bytes: usize) {
        let length = u8::try_from(header_bytes / 8 - 1).expect("a header has 8 to 2048 bytes");
        self.bytes.as_mut()[field::LENGTH] = length;
    }

    /// The options with their padding, to write.
    pub fn options_mut(&mut self) -> &mut [u8] {
        let end = self.header_bytes();
        &mut self.bytes.as_mut()[field::OPTIONS..end]
    }
}

/// One option; padding is not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Option<'a> {
    /// The type; its upper bits say what to do when it is unknown.
    pub kind: u8,
    /// What follows type and length.
    pub data: &'a [u8],
}

/// Goes over options, padding left out; ends at what is not well formed.
pub fn iterate(mut bytes: &[u8]) -> impl Iterator<Item = Ipv6Option<'_>> {
    std::iter::from_fn(move || {
        loop {
            let (option, rest) = split_first(bytes)?;
            bytes = rest;
            if option.kind != PAD_1 && option.kind != PAD_N {
                return Some(option);
            }
        }
    })
}

/// The first option, padding too, and what follows it.
fn split_first(bytes: &[u8]) -> Option<(Ipv6Option<'_>, &[u8])> {
    let (&kind, rest) = bytes.split_first()?;
    if kind == PAD_1 {
        return Some((Ipv6Option { kind, data: &[] }, rest));
    }
    let (&length, rest) = rest.split_first()?;
    let (data, rest) = rest.split_at_checked(usize::from(length))?;
    Some((Ipv6Option { kind, data }, rest))
}

/// The meaning of a header with options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6OptionsHeader<'a> {
    /// What follows.
    pub next_header: IpProtocol,
    /// The options as they are written, without the padding after the last one; at most
    /// [`OPTION_BYTES_MAX`] bytes. See [`iterate`].
    pub options: &'a [u8],
}

impl<'a> Ipv6OptionsHeader<'a> {
    /// Reads the header at the start of `bytes`.
    ///
    /// # Errors
    /// When the bytes end too early, or an option goes beyond the header.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, HeaderError> {
        let view = Ipv6OptionsView::new_checked(bytes)?;
        let options = &bytes[field::OPTIONS..view.header_bytes()];
        let mut rest = options;
        let mut end = 0;
        while !rest.is_empty() {
            let (option, after) = split_first(rest).ok_or(HeaderError::Field {
                header: "ipv6 options",
                field: "option length",
                value: rest.get(1).copied().map_or(0, u64::from),
                expected: "within the header",
            })?;
            rest = after;
            if option.kind != PAD_1 && option.kind != PAD_N {
                end = options.len() - rest.len();
            }
        }
        Ok(Ipv6OptionsHeader {
            next_header: view.next_header(),
            options: &options[..end],
        })
    }

    /// Bytes that [`Ipv6OptionsHeader::emit`] writes.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        (field::OPTIONS + self.options.len()).next_multiple_of(8)
    }

    /// Writes the header and the padding after its options at the start of `bytes`.
    ///
    /// # Panics
    /// When there are fewer than [`Ipv6OptionsHeader::buffer_len`] bytes, or the options are more
    /// than [`OPTION_BYTES_MAX`].
    pub fn emit(&self, bytes: &mut [u8]) {
        let mut view = Ipv6OptionsView::new_unchecked(bytes);
        view.set_next_header(self.next_header);
        view.set_header_bytes(self.buffer_len());
        let (options, padding) = view.options_mut().split_at_mut(self.options.len());
        options.copy_from_slice(self.options);
        padding.fill(0);
        if let [kind, length, data @ ..] = padding {
            *kind = PAD_N;
            *length = u8::try_from(data.len()).expect("padding is less than 8 bytes");
        }
    }
}

impl fmt::Display for Ipv6OptionsHeader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("options [")?;
        for (index, option) in iterate(self.options).enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{} ({} bytes)", option.kind, option.data.len())?;
        }
        write!(f, "] {}", self.next_header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A router alert between two kinds of padding.
    const BYTES: [u8; 18] = [58, 1, 0, 5, 2, 0, 7, 1, 3, 0, 0, 0, 0, 0, 0, 0, 0xaa, 0xbb];

    #[test]
    fn padding_is_passed() {
        let header = Ipv6OptionsHeader::parse(&BYTES).unwrap();
        assert_eq!(header.options, [0, 5, 2, 0, 7]);
        let view = Ipv6OptionsView::new_checked(BYTES).unwrap();
        let alert = Ipv6Option {
            kind: 5,
            data: &[0, 7],
        };
        assert_eq!(view.options().collect::<Vec<_>>(), [alert]);
        assert_eq!((view.header_bytes(), view.payload()), (16, &BYTES[16..]));
        assert_eq!(view.to_string(), "options [5 (2 bytes)] icmpv6");
    }

    #[test]
    fn padding_is_written_in_one_piece() {
        let emitted = |options: &[u8]| {
            let header = Ipv6OptionsHeader {
                next_header: IpProtocol::TCP,
                options,
            };
            let mut bytes = vec![0xff; header.buffer_len()];
            header.emit(&mut bytes);
            bytes
        };
        assert_eq!(emitted(&[]), [6, 0, 1, 4, 0, 0, 0, 0]);
        assert_eq!(emitted(&[5, 2, 0, 7]), [6, 0, 5, 2, 0, 7, 1, 0]);
        assert_eq!(emitted(&[5, 3, 0, 7, 8]), [6, 0, 5, 3, 0, 7, 8, 0]);
        assert_eq!(emitted(&[5, 4, 0, 7, 8, 9]), [6, 0, 5, 4, 0, 7, 8, 9]);
    }

    #[test]
    fn wrong_lengths_are_refused() {
        let error = Ipv6OptionsHeader::parse(&[6, 0, 5, 5, 0, 0, 0, 0]).unwrap_err();
        let text = "ipv6 options: field 'option length' is 5; it must be within the header";
        assert_eq!(error.to_string(), text);
        for (available, needed) in [(7, 8), (15, 16)] {
            let short = HeaderError::Short {
                header: "ipv6 options",
                needed,
                available,
            };
            assert_eq!(Ipv6OptionsHeader::parse(&BYTES[..available]), Err(short));
        }
    }

    proptest! {
        #[test]
        fn parse_after_emit_gives_the_same(
            next_header: u8,
            options in prop::collection::vec((2u8.., prop::collection::vec(any::<u8>(), 0..90)), 0..20),
        ) {
            let mut bytes = Vec::new();
            for (kind, data) in options {
                bytes.extend([kind, u8::try_from(data.len()).unwrap()]);
                bytes.extend(data);
            }
            let header = Ipv6OptionsHeader { next_header: IpProtocol(next_header), options: &bytes };
            let mut emitted = vec![0xa5; header.buffer_len()];
            header.emit(&mut emitted);
            prop_assert_eq!(Ipv6OptionsHeader::parse(&emitted), Ok(header));
        }

        #[test]
        fn any_bytes_are_safe(bytes in prop::collection::vec(0u8..9, 0..60)) {
            let view = Ipv6OptionsView::new_unchecked(&bytes);
            if view.check_len().is_ok() {
                let _ = (view.options().count(), view.payload());
            }
            let _ = view.to_string();
        }
    }
}
