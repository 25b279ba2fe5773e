//! Ethernet II. Tags live in `vlan`; what the types mean further in lives in their own files.

use std::fmt;

use crate::address::MacAddress;
use crate::bytes;
use crate::error::HeaderError;
use crate::view::view;

mod field {
    use crate::bytes::Field;

    pub(super) const DESTINATION: Field = 0..6;
    pub(super) const SOURCE: Field = 6..12;
    pub(super) const ETHER_TYPE: Field = 12..14;
}

/// Bytes of the header.
pub const HEADER_BYTES: usize = field::ETHER_TYPE.end;
/// Where the type lies, or the type of the first tag.
pub const TYPE_OFFSET: usize = field::ETHER_TYPE.start;
/// Bytes of the shortest frame without FCS; what is shorter is padded with zeros.
pub const FRAME_BYTES_MIN: usize = 60;

/// What follows an Ethernet header or a tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EtherType(pub u16);

impl EtherType {
    /// IPv4.
    pub const IPV4: EtherType = EtherType(0x0800);
    /// ARP.
    pub const ARP: EtherType = EtherType(0x0806);
    /// A customer tag (IEEE 802.1Q).
    pub const VLAN: EtherType = EtherType(0x8100);
    /// IPv6.
    pub const IPV6: EtherType = EtherType(0x86dd);
    /// MPLS unicast.
    pub const MPLS: EtherType = EtherType(0x8847);
    /// A service tag, the outer one of two (IEEE 802.1ad, "QinQ").
    pub const QINQ: EtherType = EtherType(0x88a8);

    /// A VLAN tag of either kind.
    #[must_use]
    pub const fn is_vlan(self) -> bool {
        matches!(self, Self::VLAN | Self::QINQ)
    }

    /// Not a type but the length of an IEEE 802.3 frame.
    #[must_use]
    pub const fn is_length(self) -> bool {
        self.0 <= 1500
    }
}

impl From<u16> for EtherType {
    fn from(number: u16) -> Self {
        EtherType(number)
    }
}

impl fmt::Display for EtherType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Self::IPV4 => "ipv4",
            Self::ARP => "arp",
            Self::VLAN => "vlan",
            Self::IPV6 => "ipv6",
            Self::MPLS => "mpls",
            Self::QINQ => "qinq",
            EtherType(number) => return write!(f, "type {number:#06x}"),
        })
    }
}

view! {
    /// A view over an Ethernet frame (without its FCS).
    EthernetView of EthernetHeader, "ethernet", HEADER_BYTES
}

impl<B: AsRef<[u8]>> EthernetView<B> {
    /// Where the frame goes.
    pub fn destination(&self) -> MacAddress {
        MacAddress(bytes::array(self.bytes.as_ref(), field::DESTINATION))
    }

    /// Where the frame comes from.
    pub fn source(&self) -> MacAddress {
        MacAddress(bytes::array(self.bytes.as_ref(), field::SOURCE))
    }

    /// What follows.
    pub fn ether_type(&self) -> EtherType {
        EtherType(bytes::u16_at(self.bytes.as_ref(), field::ETHER_TYPE))
    }

    /// What follows, as bytes.
    pub fn payload(&self) -> &[u8] {
        &self.bytes.as_ref()[HEADER_BYTES..]
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> EthernetView<B> {
    /// Sets where the frame goes.
    pub fn set_destination(&mut self, address: MacAddress) {
        self.bytes.as_mut()[field::DESTINATION].copy_from_slice(&address.0);
    }

    /// Sets where the frame comes from.
    pub fn set_source(&mut self, address: MacAddress) {
        self.bytes.as_mut()[field::SOURCE].copy_from_slice(&address.0);
    }

    /// Sets what follows.
    pub fn set_ether_type(&mut self, ether_type: EtherType) {
        bytes::set_u16(self.bytes.as_mut(), field::ETHER_TYPE, ether_type.0);
    }

    /// What follows, to write.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        &mut self.bytes.as_mut()[HEADER_BYTES..]
    }
}

/// The meaning of an Ethernet header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EthernetHeader {
    /// Where the frame goes.
    pub destination: MacAddress,
    /// Where the frame comes from.
    pub source: MacAddress,
    /// What follows.
    pub ether_type: EtherType,
}

impl EthernetHeader {
    /// Reads the header at the start of `bytes`.
    ///
    /// # Errors
    /// When the bytes end before the header does.
    pub fn parse(bytes: &[u8]) -> Result<Self, HeaderError> {
        let view = EthernetView::new_checked(bytes)?;
        Ok(EthernetHeader {
            destination: view.destination(),
            source: view.source(),
            ether_type: view.ether_type(),
        })
    }

    /// Bytes that [`EthernetHeader::emit`] writes.
    #[must_use]
    pub const fn buffer_len(&self) -> usize {
        HEADER_BYTES
    }

    /// Writes the header at the start of `bytes`.
    ///
    /// # Panics
    /// When there are fewer than [`EthernetHeader::buffer_len`] bytes.
    pub fn emit(&self, bytes: &mut [u8]) {
        let mut view = EthernetView::new_unchecked(bytes);
        view.set_destination(self.destination);
        view.set_source(self.source);
        view.set_ether_type(self.ether_type);
    }
}

impl fmt::Display for EthernetHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "ethernet {} > {} {}",
            self.source, self.destination, self.ether_type
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BYTES: [u8; 16] = [
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x86, 0xdd, 0xaa, 0xbb,
    ];

    #[test]
    fn every_field_lies_where_it_should() {
        let view = EthernetView::new_checked(BYTES).unwrap();
        assert_eq!(view.destination(), MacAddress([1, 2, 3, 4, 5, 6]));
        assert_eq!(view.source(), MacAddress([7, 8, 9, 10, 11, 12]));
        assert_eq!(view.ether_type(), EtherType::IPV6);
        assert_eq!(view.payload(), [0xaa, 0xbb]);
        assert_eq!(
            view.to_string(),
            "ethernet 07:08:09:0a:0b:0c > 01:02:03:04:05:06 ipv6"
        );
    }

    #[test]
    fn setters_write_what_accessors_read() {
        let mut view = EthernetView::new_checked([0u8; 16]).unwrap();
        view.set_destination(MacAddress([1, 2, 3, 4, 5, 6]));
        view.set_source(MacAddress([7, 8, 9, 10, 11, 12]));
        view.set_ether_type(EtherType::IPV6);
        view.payload_mut().copy_from_slice(&[0xaa, 0xbb]);
        assert_eq!(view.into_inner(), BYTES);
    }

    #[test]
    fn too_few_bytes_are_refused_with_the_numbers() {
        let error = EthernetHeader::parse(&BYTES[..13]).unwrap_err();
        assert_eq!(
            error,
            HeaderError::Short {
                header: "ethernet",
                needed: 14,
                available: 13
            }
        );
        assert!(
            EthernetView::new_unchecked(&BYTES[..13])
                .to_string()
                .contains("13 bytes")
        );
    }

    proptest! {
        #[test]
        fn parse_after_emit_gives_the_same(
            destination: [u8; 6], source: [u8; 6], ether_type: u16,
        ) {
            let header = EthernetHeader {
                destination: destination.into(),
                source: source.into(),
                ether_type: ether_type.into(),
            };
            let mut bytes = vec![0xa5; header.buffer_len()];
            header.emit(&mut bytes);
            prop_assert_eq!(EthernetHeader::parse(&bytes), Ok(header));
        }

        #[test]
        fn any_bytes_are_safe(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = EthernetHeader::parse(&bytes);
            let _ = EthernetView::new_unchecked(&bytes).to_string();
        }
    }
}
