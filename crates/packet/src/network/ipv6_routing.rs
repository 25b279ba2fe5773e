//! The routing header of IPv6 (RFC 8200 section 4.4), of any type. What the types keep in their
//! data (addresses, segment lists) is not looked into.

use std::fmt;

use crate::error::{HeaderError, check_length};
use crate::network::ip_protocol::IpProtocol;
use crate::view::view;

mod field {
    pub(super) const NEXT_HEADER: usize = 0;
    pub(super) const LENGTH: usize = 1;
    pub(super) const ROUTING_TYPE: usize = 2;
    pub(super) const SEGMENTS_LEFT: usize = 3;
    pub(super) const DATA: usize = 4;
}

/// Bytes of the header with as little data as there can be.
pub const HEADER_BYTES_MIN: usize = 8;
/// Bytes of data that the length field can say.
pub const DATA_BYTES_MAX: usize = 8 * 256 - field::DATA;

view! {
    /// A view over a routing header and what follows it.
    Ipv6RoutingView of Ipv6RoutingHeader
}

impl<B: AsRef<[u8]>> Ipv6RoutingView<B> {
    /// Makes every accessor safe when it is `Ok`.
    ///
    /// # Errors
    /// When the bytes end before the header and its data do.
    pub fn check_len(&self) -> Result<(), HeaderError> {
        let bytes = self.bytes.as_ref();
        check_length("ipv6 routing", bytes, HEADER_BYTES_MIN)?;
        check_length("ipv6 routing", bytes, self.header_bytes())
    }

    /// What follows.
    pub fn next_header(&self) -> IpProtocol {
        IpProtocol(self.bytes.as_ref()[field::NEXT_HEADER])
    }

    /// Bytes of the header with its data: a multiple of 8.
    pub fn header_bytes(&self) -> usize {
        8 * (usize::from(self.bytes.as_ref()[field::LENGTH]) + 1)
    }

    /// Which kind of routing header it is.
    pub fn routing_type(&self) -> u8 {
        self.bytes.as_ref()[field::ROUTING_TYPE]
    }

    /// Nodes that are still to be visited.
    pub fn segments_left(&self) -> u8 {
        self.bytes.as_ref()[field::SEGMENTS_LEFT]
    }

    /// What the type keeps.
    pub fn data(&self) -> &[u8] {
        &self.bytes.as_ref()[field::DATA..self.header_bytes()]
    }

    /// What follows, as bytes.
    pub fn payload(&self) -> &[u8] {
        &self.bytes.as_ref()[self.header_bytes()..]
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Ipv6RoutingView<B> {
    /// Sets what follows.
    pub fn set_next_header(&mut self, next_header: IpProtocol) {
        self.bytes.as_mut()[field::NEXT_HEADER] = next_header.0;
    }

    /// Sets the length of the header: a multiple of 8, from 8 to 2048, which the bytes must have.
    pub fn set_header_bytes(&mut self, header_bytes: usize) {
        let length = u8::try_from(header_bytes / 8 - 1).expect("a header has 8 to 2048 bytes");
        self.bytes.as_mut()[field::LENGTH] = length;
    }

    /// Sets which kind of routing header it is.
    pub fn set_routing_type(&mut self, routing_type: u8) {
        self.bytes.as_mut()[field::ROUTING_TYPE] = routing_type;
    }

    /// Sets how many nodes are still to be visited.
    pub fn set_segments_left(&mut self, segments_left: u8) {
        self.bytes.as_mut()[field::SEGMENTS_LEFT] = segments_left;
    }

    /// What the type keeps, to write.
    pub fn data_mut(&mut self) -> &mut [u8] {
        let end = self.header_bytes();
        &mut self.bytes.as_mut()[field::DATA..end]
    }
}

/// The meaning of a routing header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6RoutingHeader<'a> {
    /// What follows.
    pub next_header: IpProtocol,
    /// Which kind of routing header it is.
    pub routing_type: u8,
    /// Nodes that are still to be visited.
    pub segments_left: u8,
    /// What the type keeps: 4 bytes and a multiple of 8, at most [`DATA_BYTES_MAX`]. Data of
    /// another length is filled up with zeros.
    pub data: &'a [u8],
}

impl<'a> Ipv6RoutingHeader<'a> {
    /// Reads the header at the start of `bytes`.
    ///
    /// # Errors
    /// When the bytes end before the header and its data do.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, HeaderError> {
        let view = Ipv6RoutingView::new_checked(bytes)?;
        Ok(Ipv6RoutingHeader {
            next_header: view.next_header(),
            routing_type: view.routing_type(),
            segments_left: view.segments_left(),
            data: &bytes[field::DATA..view.header_bytes()],
        })
    }

    /// Bytes that [`Ipv6RoutingHeader::emit`] writes.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        (field::DATA + self.data.len()).next_multiple_of(8)
    }

    /// Writes the header at the start of `bytes`.
    ///
    /// # Panics
    /// When there are fewer than [`Ipv6RoutingHeader::buffer_len`] bytes, or the data is more
    /// than [`DATA_BYTES_MAX`].
    pub fn emit(&self, bytes: &mut [u8]) {
        let mut view = Ipv6RoutingView::new_unchecked(bytes);
        view.set_next_header(self.next_header);
        view.set_header_bytes(self.buffer_len());
        view.set_routing_type(self.routing_type);
        view.set_segments_left(self.segments_left);
        let (data, rest) = view.data_mut().split_at_mut(self.data.len());
        data.copy_from_slice(self.data);
        rest.fill(0);
    }
}

impl fmt::Display for Ipv6RoutingHeader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ipv6RoutingHeader {
            next_header,
            routing_type,
            segments_left,
            ..
        } = self;
        write!(
            f,
            "routing type {routing_type} left {segments_left} {next_header}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BYTES: [u8; 18] = [6, 1, 4, 1, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0xaa, 0xbb];

    #[test]
    fn every_field_lies_where_it_should() {
        let header = Ipv6RoutingHeader::parse(&BYTES).unwrap();
        assert_eq!(
            (header.next_header, header.routing_type),
            (IpProtocol::TCP, 4)
        );
        assert_eq!((header.segments_left, header.data), (1, &BYTES[4..16]));
        let mut bytes = [0xff; 16];
        header.emit(&mut bytes);
        assert_eq!(bytes, BYTES[..16]);
        let view = Ipv6RoutingView::new_checked(BYTES).unwrap();
        assert_eq!((view.data(), view.payload()), (&BYTES[4..16], &BYTES[16..]));
        assert_eq!(view.to_string(), "routing type 4 left 1 tcp");
    }

    #[test]
    fn short_data_is_filled_up() {
        let header = Ipv6RoutingHeader {
            data: &[9; 5],
            ..Ipv6RoutingHeader::parse(&BYTES).unwrap()
        };
        let mut bytes = vec![0xff; header.buffer_len()];
        header.emit(&mut bytes);
        assert_eq!(bytes, [6, 1, 4, 1, 9, 9, 9, 9, 9, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn too_few_bytes_are_refused_with_the_numbers() {
        for (available, needed) in [(7, 8), (15, 16)] {
            let short = HeaderError::Short {
                header: "ipv6 routing",
                needed,
                available,
            };
            assert_eq!(Ipv6RoutingHeader::parse(&BYTES[..available]), Err(short));
        }
    }

    proptest! {
        #[test]
        fn parse_after_emit_gives_the_same(
            (next_header, routing_type, segments_left) in any::<(u8, u8, u8)>(),
            units in 0usize..256,
            fill: u8,
        ) {
            let data = vec![fill; 4 + 8 * units];
            let next_header = IpProtocol(next_header);
            let header = Ipv6RoutingHeader { next_header, routing_type, segments_left, data: &data };
            let mut bytes = vec![0xa5; header.buffer_len()];
            header.emit(&mut bytes);
            prop_assert_eq!(Ipv6RoutingHeader::parse(&bytes), Ok(header));
        }

        #[test]
        fn any_bytes_are_safe(bytes in prop::collection::vec(0u8..9, 0..60)) {
            let _ = Ipv6RoutingView::new_unchecked(&bytes).to_string();
        }
    }
}
