//! One VLAN tag: IEEE 802.1Q, and 802.1ad ("QinQ"), whose outer tag looks the same.
//!
//! A tag is what follows the type 0x8100 or 0x88a8: control information and the next type. Two
//! tags are two of these headers, one after the other.

use std::fmt;

use crate::bytes;
use crate::error::HeaderError;
use crate::link::ethernet::EtherType;
use crate::view::view;

mod field {
    use crate::bytes::Field;

    pub(super) const CONTROL: Field = 0..2;
    pub(super) const ETHER_TYPE: Field = 2..4;
}

/// Bytes of a tag.
pub const HEADER_BYTES: usize = field::ETHER_TYPE.end;

const PRIORITY_SHIFT: u16 = 13;
const DROP_ELIGIBLE: u16 = 0x1000;
const IDENTIFIER: u16 = 0x0fff;

view! {
    /// A view over a VLAN tag and what follows it.
    VlanView of VlanHeader, "vlan", HEADER_BYTES
}

impl<B: AsRef<[u8]>> VlanView<B> {
    /// All of the tag control information.
    pub fn control(&self) -> u16 {
        bytes::u16_at(self.bytes.as_ref(), field::CONTROL)
    }

    /// The priority code point, 0 to 7.
    pub fn priority(&self) -> u8 {
        self.bytes.as_ref()[field::CONTROL.start] >> 5
    }

    /// May be dropped first when there is congestion.
    pub fn drop_eligible(&self) -> bool {
        self.control() & DROP_ELIGIBLE != 0
    }

    /// The number of the VLAN, 0 to 4095.
    pub fn identifier(&self) -> u16 {
        self.control() & IDENTIFIER
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

impl<B: AsRef<[u8]> + AsMut<[u8]>> VlanView<B> {
    /// Sets all of the tag control information.
    pub fn set_control(&mut self, control: u16) {
        bytes::set_u16(self.bytes.as_mut(), field::CONTROL, control);
    }

    /// Sets the priority code point; what is above 7 is cut to three bits.
    pub fn set_priority(&mut self, priority: u8) {
        let rest = self.control() & (DROP_ELIGIBLE | IDENTIFIER);
        self.set_control(rest | (u16::from(priority) << PRIORITY_SHIFT));
    }

    /// Sets whether the frame may be dropped first.
    pub fn set_drop_eligible(&mut self, drop_eligible: bool) {
        let rest = self.control() & !DROP_ELIGIBLE;
        self.set_control(rest | if drop_eligible { DROP_ELIGIBLE } else { 0 });
    }

    /// Sets the number of the VLAN; what is above 4095 is cut to twelve bits.
    pub fn set_identifier(&mut self, identifier: u16) {
        let rest = self.control() & !IDENTIFIER;
        self.set_control(rest | (identifier & IDENTIFIER));
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

/// The meaning of a VLAN tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanHeader {
    /// The priority code point, 0 to 7.
    pub priority: u8,
    /// May be dropped first when there is congestion.
    pub drop_eligible: bool,
    /// The number of the VLAN, 0 to 4095.
    pub identifier: u16,
    /// What follows.
    pub ether_type: EtherType,
}

impl VlanHeader {
    /// Reads the tag at the start of `bytes`.
    ///
    /// # Errors
    /// When the bytes end before the header does.
    pub fn parse(bytes: &[u8]) -> Result<Self, HeaderError> {
        let view = VlanView::new_checked(bytes)?;
        Ok(VlanHeader {
            priority: view.priority(),
            drop_eligible: view.drop_eligible(),
            identifier: view.identifier(),
            ether_type: view.ether_type(),
        })
    }

    /// Bytes that [`VlanHeader::emit`] writes.
    #[must_use]
    pub const fn buffer_len(&self) -> usize {
        HEADER_BYTES
    }

    /// Writes the tag at the start of `bytes`.
    ///
    /// # Panics
    /// When there are fewer than [`VlanHeader::buffer_len`] bytes.
    pub fn emit(&self, bytes: &mut [u8]) {
        let mut view = VlanView::new_unchecked(bytes);
        view.set_priority(self.priority);
        view.set_drop_eligible(self.drop_eligible);
        view.set_identifier(self.identifier);
        view.set_ether_type(self.ether_type);
    }
}

/// Tags as they are on the wire, with their types in front, for the numbers of VLANs from the outside
/// in: all but the last are service tags (IEEE 802.1ad).
#[must_use]
pub fn tags_of(vlans: &[u16]) -> Vec<u8> {
    let mut tags = Vec::with_capacity(vlans.len() * HEADER_BYTES);
    for (n, identifier) in vlans.iter().enumerate() {
        let is_inner = n + 1 == vlans.len();
        let kind = if is_inner {
            EtherType::VLAN
        } else {
            EtherType::QINQ
        };
        tags.extend(kind.0.to_be_bytes());
        tags.extend(identifier.to_be_bytes());
    }
    tags
}

impl fmt::Display for VlanHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "vlan {} priority {}", self.identifier, self.priority)?;
        if self.drop_eligible {
            f.write_str(" drop-eligible")?;
        }
        write!(f, " {}", self.ether_type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tags_are_those_that_switches_expect() {
        assert_eq!(tags_of(&[]), []);
        assert_eq!(tags_of(&[5]), [0x81, 0, 0, 5]);
        let two = [0x88, 0xa8, 0, 100, 0x81, 0, 2, 0x34];
        assert_eq!(tags_of(&[100, 0x234]), two);
    }

    const BYTES: [u8; 6] = [0xb1, 0x23, 0x08, 0x00, 0xaa, 0xbb];

    #[test]
    fn every_field_lies_where_it_should() {
        let view = VlanView::new_checked(BYTES).unwrap();
        assert_eq!((view.priority(), view.drop_eligible()), (5, true));
        assert_eq!(
            (view.identifier(), view.ether_type()),
            (0x123, EtherType::IPV4)
        );
        assert_eq!((view.control(), view.payload()), (0xb123, &BYTES[4..]));
        assert_eq!(view.to_string(), "vlan 291 priority 5 drop-eligible ipv4");
    }

    #[test]
    fn setters_change_only_their_bits() {
        let mut view = VlanView::new_checked([0xff; 6]).unwrap();
        view.set_identifier(0xf123);
        view.set_drop_eligible(false);
        view.set_priority(0);
        assert_eq!(view.control(), 0x0123);
        view.set_drop_eligible(true);
        view.set_priority(5);
        view.set_ether_type(EtherType::IPV4);
        view.payload_mut().copy_from_slice(&[0xaa, 0xbb]);
        assert_eq!(view.into_inner(), BYTES);
    }

    #[test]
    fn too_few_bytes_are_refused_with_the_numbers() {
        let error = VlanHeader::parse(&BYTES[..3]).unwrap_err();
        assert_eq!(
            error,
            HeaderError::Short {
                header: "vlan",
                needed: 4,
                available: 3
            }
        );
    }

    proptest! {
        #[test]
        fn parse_after_emit_gives_the_same(
            priority in 0u8..8, drop_eligible: bool, identifier in 0u16..4096, ether_type: u16,
        ) {
            let ether_type = EtherType(ether_type);
            let header = VlanHeader { priority, drop_eligible, identifier, ether_type };
            let mut bytes = vec![0xa5; header.buffer_len()];
            header.emit(&mut bytes);
            prop_assert_eq!(VlanHeader::parse(&bytes), Ok(header));
        }

        #[test]
        fn any_bytes_are_safe(bytes in prop::collection::vec(any::<u8>(), 0..12)) {
            let _ = VlanView::new_unchecked(&bytes).to_string();
        }
    }
}
