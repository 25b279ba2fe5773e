//! The fragment header of IPv6 (RFC 8200 section 4.5). Fragments are put together nowhere.

use std::fmt;

use crate::bytes;
use crate::error::HeaderError;
use crate::network::ip_protocol::IpProtocol;
use crate::view::view;

mod field {
    use crate::bytes::Field;

    pub(super) const NEXT_HEADER: usize = 0;
    pub(super) const RESERVED: usize = 1;
    pub(super) const OFFSET: Field = 2..4;
    pub(super) const IDENTIFICATION: Field = 4..8;
}

/// Bytes of the header.
pub const HEADER_BYTES: usize = field::IDENTIFICATION.end;

const OFFSET: u16 = 0xfff8;
const MORE_FRAGMENTS: u16 = 0x0001;

view! {
    /// A view over a fragment header and what follows it.
    Ipv6FragmentView of Ipv6FragmentHeader, "ipv6 fragment", HEADER_BYTES
}

impl<B: AsRef<[u8]>> Ipv6FragmentView<B> {
    /// What the whole datagram begins with.
    pub fn next_header(&self) -> IpProtocol {
        IpProtocol(self.bytes.as_ref()[field::NEXT_HEADER])
    }

    /// Where in the whole datagram this payload lies, in bytes; a multiple of 8.
    pub fn offset_bytes(&self) -> u16 {
        bytes::u16_at(self.bytes.as_ref(), field::OFFSET) & OFFSET
    }

    /// There are fragments after this one.
    pub fn more_fragments(&self) -> bool {
        bytes::u16_at(self.bytes.as_ref(), field::OFFSET) & MORE_FRAGMENTS != 0
    }

    /// What fragments of the same datagram have in common.
    pub fn identification(&self) -> u32 {
        bytes::u32_at(self.bytes.as_ref(), field::IDENTIFICATION)
    }

    /// What follows, as bytes.
    pub fn payload(&self) -> &[u8] {
        &self.bytes.as_ref()[HEADER_BYTES..]
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Ipv6FragmentView<B> {
    /// Sets what the whole datagram begins with, and the reserved byte after it to zero.
    pub fn set_next_header(&mut self, next_header: IpProtocol) {
        self.bytes.as_mut()[field::NEXT_HEADER] = next_header.0;
        self.bytes.as_mut()[field::RESERVED] = 0;
    }

    /// Sets where this payload lies (in bytes, rounded down to a multiple of 8), and whether
    /// more follow.
    pub fn set_offset(&mut self, offset_bytes: u16, more_fragments: bool) {
        let more = if more_fragments { MORE_FRAGMENTS } else { 0 };
        bytes::set_u16(
            self.bytes.as_mut(),
            field::OFFSET,
            (offset_bytes & OFFSET) | more,
        );
    }

    /// Sets what fragments of the same datagram have in common.
    pub fn set_identification(&mut self, identification: u32) {
        bytes::set_u32(self.bytes.as_mut(), field::IDENTIFICATION, identification);
    }

    /// What follows, to write.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        &mut self.bytes.as_mut()[HEADER_BYTES..]
    }
}

/// The meaning of a fragment header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6FragmentHeader {
    /// What the whole datagram begins with.
    pub next_header: IpProtocol,
    /// Where in the whole datagram this payload lies; a multiple of 8.
    pub offset_bytes: u16,
    /// There are fragments after this one.
    pub more_fragments: bool,
    /// What fragments of the same datagram have in common.
    pub identification: u32,
}

impl Ipv6FragmentHeader {
    /// Reads the header at the start of `bytes`.
    ///
    /// # Errors
    /// When the bytes end before the header does.
    pub fn parse(bytes: &[u8]) -> Result<Self, HeaderError> {
        let view = Ipv6FragmentView::new_checked(bytes)?;
        Ok(Ipv6FragmentHeader {
            next_header: view.next_header(),
            offset_bytes: view.offset_bytes(),
            more_fragments: view.more_fragments(),
            identification: view.identification(),
        })
    }

    /// Bytes that [`Ipv6FragmentHeader::emit`] writes.
    #[must_use]
    pub const fn buffer_len(&self) -> usize {
        HEADER_BYTES
    }

    /// Writes the header at the start of `bytes`.
    ///
    /// # Panics
    /// When there are fewer than [`Ipv6FragmentHeader::buffer_len`] bytes.
    pub fn emit(&self, bytes: &mut [u8]) {
        let mut view = Ipv6FragmentView::new_unchecked(bytes);
        view.set_next_header(self.next_header);
        view.set_offset(self.offset_bytes, self.more_fragments);
        view.set_identification(self.identification);
    }
}

impl fmt::Display for Ipv6FragmentHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (id, at) = (self.identification, self.offset_bytes);
        let more = if self.more_fragments { "+" } else { "" };
        write!(f, "fragment {id:#010x}@{at}{more} {}", self.next_header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BYTES: [u8; 10] = [17, 0, 0x05, 0xa9, 1, 2, 3, 4, 0xaa, 0xbb];
    const HEADER: Ipv6FragmentHeader = Ipv6FragmentHeader {
        next_header: IpProtocol::UDP,
        offset_bytes: 1448,
        more_fragments: true,
        identification: 0x0102_0304,
    };

    #[test]
    fn every_field_lies_where_it_should() {
        assert_eq!(Ipv6FragmentHeader::parse(&BYTES), Ok(HEADER));
        let mut bytes = [0xff; 10];
        HEADER.emit(&mut bytes);
        let mut view = Ipv6FragmentView::new_checked(bytes).unwrap();
        view.payload_mut().copy_from_slice(&[0xaa, 0xbb]);
        assert_eq!((view.payload(), view.into_inner()), (&BYTES[8..], BYTES));
        assert_eq!(view.to_string(), "fragment 0x01020304@1448+ udp");
    }

    #[test]
    fn too_few_bytes_are_refused_with_the_numbers() {
        let short = HeaderError::Short {
            header: "ipv6 fragment",
            needed: 8,
            available: 7,
        };
        assert_eq!(Ipv6FragmentHeader::parse(&BYTES[..7]), Err(short));
    }

    proptest! {
        #[test]
        fn parse_after_emit_gives_the_same(
            next_header: u8, units in 0u16..8192, more_fragments: bool, identification: u32,
        ) {
            let next_header = IpProtocol(next_header);
            let offset_bytes = units * 8;
            let header =
                Ipv6FragmentHeader { next_header, offset_bytes, more_fragments, identification };
            let mut bytes = vec![0xa5; header.buffer_len()];
            header.emit(&mut bytes);
            prop_assert_eq!(Ipv6FragmentHeader::parse(&bytes), Ok(header));
        }

        #[test]
        fn any_bytes_are_safe(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
            let _ = Ipv6FragmentView::new_unchecked(&bytes).to_string();
        }
    }
}
