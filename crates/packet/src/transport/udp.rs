//! UDP (RFC 768) over IPv4 and IPv6.

use std::fmt;

use crate::bytes;
use crate::error::HeaderError;
use crate::network::checksum::{self, Sum};
use crate::view::view;

mod field {
    use crate::bytes::Field;

    pub(super) const SOURCE_PORT: Field = 0..2;
    pub(super) const DESTINATION_PORT: Field = 2..4;
    pub(super) const LENGTH: Field = 4..6;
    pub(super) const CHECKSUM: Field = 6..8;
}

/// Bytes of the header.
pub const HEADER_BYTES: usize = field::CHECKSUM.end;
/// Where the checksum lies in the header.
pub const CHECKSUM_OFFSET: usize = field::CHECKSUM.start;

view! {
    /// A view over a UDP datagram.
    UdpView of UdpHeader, "udp", HEADER_BYTES
}

impl<B: AsRef<[u8]>> UdpView<B> {
    /// The port that sent it.
    pub fn source_port(&self) -> u16 {
        bytes::u16_at(self.bytes.as_ref(), field::SOURCE_PORT)
    }

    /// The port that it goes to.
    pub fn destination_port(&self) -> u16 {
        bytes::u16_at(self.bytes.as_ref(), field::DESTINATION_PORT)
    }

    /// Bytes of the datagram with its header, as it says; there may be fewer or more.
    pub fn length_bytes(&self) -> u16 {
        bytes::u16_at(self.bytes.as_ref(), field::LENGTH)
    }

    /// The checksum; zero says that there is none.
    pub fn checksum(&self) -> u16 {
        bytes::u16_at(self.bytes.as_ref(), field::CHECKSUM)
    }

    /// What follows, up to the end that the header says or the end of the bytes.
    pub fn payload(&self) -> &[u8] {
        &self.bytes.as_ref()[HEADER_BYTES..self.end()]
    }

    /// Whether the datagram is intact, given the sum over its pseudo header. One without a
    /// checksum counts as intact.
    pub fn has_right_checksum(&self, pseudo_header: Sum) -> bool {
        let datagram = &self.bytes.as_ref()[..self.end()];
        self.checksum() == 0 || pseudo_header.and(datagram).checksum() == 0
    }

    fn end(&self) -> usize {
        let end = usize::from(self.length_bytes()).min(self.bytes.as_ref().len());
        end.max(HEADER_BYTES)
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> UdpView<B> {
    /// Sets the port that sent it.
    pub fn set_source_port(&mut self, port: u16) {
        bytes::set_u16(self.bytes.as_mut(), field::SOURCE_PORT, port);
    }

    /// Sets the port that it goes to.
    pub fn set_destination_port(&mut self, port: u16) {
        bytes::set_u16(self.bytes.as_mut(), field::DESTINATION_PORT, port);
    }

    /// Sets the bytes of the datagram with its header.
    pub fn set_length_bytes(&mut self, length_bytes: u16) {
        bytes::set_u16(self.bytes.as_mut(), field::LENGTH, length_bytes);
    }

    /// Sets the checksum; zero says that there is none.
    pub fn set_checksum(&mut self, checksum: u16) {
        bytes::set_u16(self.bytes.as_mut(), field::CHECKSUM, checksum);
    }

    /// Computes and sets the checksum, given the sum over the pseudo header
    /// ([`checksum::pseudo_header_v4`], [`checksum::pseudo_header_v6`]).
    pub fn fill_checksum(&mut self, pseudo_header: Sum) {
        self.set_checksum(0);
        let sum = pseudo_header.and(&self.bytes.as_ref()[..self.end()]);
        self.set_checksum(checksum::for_udp(sum.checksum()));
    }

    /// What follows, to write.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let end = self.end();
        &mut self.bytes.as_mut()[HEADER_BYTES..end]
    }
}

/// The meaning of a UDP header. Its checksum is not part of it, for it covers the payload too:
/// see [`UdpView::fill_checksum`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpHeader {
    /// The port that sent it.
    pub source_port: u16,
    /// The port that it goes to.
    pub destination_port: u16,
    /// Bytes of the datagram with this header.
    pub length_bytes: u16,
}

impl UdpHeader {
    /// Reads the header at the start of `bytes`, which need not hold the payload.
    ///
    /// # Errors
    /// When the bytes end before the header does, or the length is below 8.
    pub fn parse(bytes: &[u8]) -> Result<Self, HeaderError> {
        let view = UdpView::new_checked(bytes)?;
        if usize::from(view.length_bytes()) < HEADER_BYTES {
            return Err(HeaderError::Field {
                header: "udp",
                field: "length",
                value: u64::from(view.length_bytes()),
                expected: "at least 8, the header itself",
            });
        }
        Ok(UdpHeader {
            source_port: view.source_port(),
            destination_port: view.destination_port(),
            length_bytes: view.length_bytes(),
        })
    }

    /// Bytes that [`UdpHeader::emit`] writes.
    #[must_use]
    pub const fn buffer_len(&self) -> usize {
        HEADER_BYTES
    }

    /// Writes the header, without a checksum, at the start of `bytes`.
    ///
    /// # Panics
    /// When there are fewer than [`UdpHeader::buffer_len`] bytes.
    pub fn emit(&self, bytes: &mut [u8]) {
        let mut view = UdpView::new_unchecked(bytes);
        view.set_source_port(self.source_port);
        view.set_destination_port(self.destination_port);
        view.set_length_bytes(self.length_bytes);
        view.set_checksum(0);
    }
}

impl fmt::Display for UdpHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UdpHeader {
            source_port,
            destination_port,
            length_bytes,
        } = self;
        write!(
            f,
            "udp {source_port} > {destination_port} length {length_bytes}"
        )
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::network::checksum::pseudo_header_v4;
    use crate::network::ip_protocol::IpProtocol;
    use proptest::prelude::*;

    const BYTES: [u8; 11] = [0x04, 0x01, 0x00, 0x35, 0, 10, 0, 0, b'h', b'i', 0xee];
    const HEADER: UdpHeader = UdpHeader {
        source_port: 1025,
        destination_port: 53,
        length_bytes: 10,
    };

    fn pseudo_header() -> Sum {
        let (a, b) = (Ipv4Addr::new(16, 0, 0, 1), Ipv4Addr::new(48, 0, 0, 1));
        pseudo_header_v4(a, b, IpProtocol::UDP, HEADER.length_bytes)
    }

    #[test]
    fn every_field_lies_where_it_should() {
        assert_eq!(UdpHeader::parse(&BYTES), Ok(HEADER));
        let mut bytes = [0xff; 11];
        HEADER.emit(&mut bytes);
        assert_eq!(bytes[..8], BYTES[..8]);
        let view = UdpView::new_checked(BYTES).unwrap();
        assert_eq!(view.payload(), b"hi");
        assert_eq!(view.to_string(), "udp 1025 > 53 length 10");
    }

    #[test]
    fn the_checksum_covers_the_payload_and_no_padding() {
        let mut view = UdpView::new_checked(BYTES).unwrap();
        assert!(view.has_right_checksum(pseudo_header()), "none is right");
        view.fill_checksum(pseudo_header());
        // 1000+0001+3000+0001+0011+000a + 0401+0035+000a + "hi" (6869) = acc6, complemented.
        assert_eq!(view.checksum(), !0xacc6);
        assert!(view.has_right_checksum(pseudo_header()));
        view.payload_mut()[0] ^= 1;
        assert!(!view.has_right_checksum(pseudo_header()));
    }

    #[test]
    fn a_checksum_of_zero_is_sent_as_all_ones() {
        let mut view = UdpView::new_checked([0, 0, 0, 0, 0, 10, 0, 0, 0, 0]).unwrap();
        let sum = Sum::of(&view.into_inner()).and(&pseudo_header().folded().to_be_bytes());
        view = UdpView::new_unchecked(view.into_inner());
        view.payload_mut()
            .copy_from_slice(&sum.checksum().to_be_bytes());
        view.fill_checksum(pseudo_header());
        assert_eq!(view.checksum(), 0xffff);
        assert!(view.has_right_checksum(pseudo_header()));
    }

    #[test]
    fn wrong_lengths_are_refused() {
        let mut bytes = BYTES;
        bytes[5] = 7;
        let error = UdpHeader::parse(&bytes).unwrap_err().to_string();
        assert_eq!(
            error,
            "udp: field 'length' is 7; it must be at least 8, the header itself"
        );
        assert_eq!(UdpView::new_checked(bytes).unwrap().payload(), b"");
        assert!(UdpHeader::parse(&BYTES[..7]).is_err());
    }

    proptest! {
        #[test]
        fn parse_after_emit_gives_the_same(
            source_port: u16, destination_port: u16, length_bytes in 8u16..,
        ) {
            let header = UdpHeader { source_port, destination_port, length_bytes };
            let mut bytes = vec![0xa5; header.buffer_len()];
            header.emit(&mut bytes);
            prop_assert_eq!(UdpHeader::parse(&bytes), Ok(header));
        }

        #[test]
        fn any_bytes_are_safe(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(view) = UdpView::new_checked(&bytes) {
                let _ = (view.payload(), view.has_right_checksum(Sum::default()));
            }
            let _ = UdpView::new_unchecked(&bytes).to_string();
        }
    }
}
