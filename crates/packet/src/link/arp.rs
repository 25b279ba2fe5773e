//! ARP for IPv4 over Ethernet (RFC 826). Who asks and who answers is the engine's.

use std::fmt;
use std::net::Ipv4Addr;

use crate::address::MacAddress;
use crate::bytes;
use crate::error::HeaderError;
use crate::link::ethernet::EtherType;
use crate::view::view;

mod field {
    use crate::bytes::Field;

    pub(super) const HARDWARE_TYPE: Field = 0..2;
    pub(super) const PROTOCOL_TYPE: Field = 2..4;
    pub(super) const LENGTHS: Field = 4..6;
    pub(super) const OPERATION: Field = 6..8;
    pub(super) const SENDER_MAC: Field = 8..14;
    pub(super) const SENDER_IP: Field = 14..18;
    pub(super) const TARGET_MAC: Field = 18..24;
    pub(super) const TARGET_IP: Field = 24..28;
}

/// Bytes of a packet.
pub const HEADER_BYTES: usize = field::TARGET_IP.end;

const HARDWARE_ETHERNET: u16 = 1;
/// Bytes of a hardware and of a protocol address, as the two bytes of one number.
const LENGTHS_ETHERNET_IPV4: u16 = 0x0604;

/// What an ARP packet asks or says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ArpOperation(pub u16);

impl ArpOperation {
    /// Who has the target IP address?
    pub const REQUEST: ArpOperation = ArpOperation(1);
    /// The sender has its IP address.
    pub const REPLY: ArpOperation = ArpOperation(2);
}

view! {
    /// A view over an ARP packet.
    ArpView of ArpHeader, "arp", HEADER_BYTES
}

impl<B: AsRef<[u8]>> ArpView<B> {
    /// What kind of link it is about; Ethernet is 1.
    pub fn hardware_type(&self) -> u16 {
        bytes::u16_at(self.bytes.as_ref(), field::HARDWARE_TYPE)
    }

    /// What kind of address is asked for.
    pub fn protocol_type(&self) -> EtherType {
        EtherType(bytes::u16_at(self.bytes.as_ref(), field::PROTOCOL_TYPE))
    }

    /// What it asks or says.
    pub fn operation(&self) -> ArpOperation {
        ArpOperation(bytes::u16_at(self.bytes.as_ref(), field::OPERATION))
    }

    /// The Ethernet address of who sent it.
    pub fn sender_mac(&self) -> MacAddress {
        MacAddress(bytes::array(self.bytes.as_ref(), field::SENDER_MAC))
    }

    /// The IP address of who sent it.
    pub fn sender_ip(&self) -> Ipv4Addr {
        Ipv4Addr::from(bytes::array(self.bytes.as_ref(), field::SENDER_IP))
    }

    /// The Ethernet address of whom it is about; zero in a request.
    pub fn target_mac(&self) -> MacAddress {
        MacAddress(bytes::array(self.bytes.as_ref(), field::TARGET_MAC))
    }

    /// The IP address of whom it is about.
    pub fn target_ip(&self) -> Ipv4Addr {
        Ipv4Addr::from(bytes::array(self.bytes.as_ref(), field::TARGET_IP))
    }

    /// Bytes of a hardware address and of a protocol address.
    fn lengths(&self) -> u16 {
        bytes::u16_at(self.bytes.as_ref(), field::LENGTHS)
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> ArpView<B> {
    /// Sets the types and lengths that say: IPv4 over Ethernet.
    pub fn set_ethernet_ipv4(&mut self) {
        let bytes = self.bytes.as_mut();
        bytes::set_u16(bytes, field::HARDWARE_TYPE, HARDWARE_ETHERNET);
        bytes::set_u16(bytes, field::PROTOCOL_TYPE, EtherType::IPV4.0);
        bytes::set_u16(bytes, field::LENGTHS, LENGTHS_ETHERNET_IPV4);
    }

    /// Sets what it asks or says.
    pub fn set_operation(&mut self, operation: ArpOperation) {
        bytes::set_u16(self.bytes.as_mut(), field::OPERATION, operation.0);
    }

    /// Sets the Ethernet address of who sent it.
    pub fn set_sender_mac(&mut self, address: MacAddress) {
        self.bytes.as_mut()[field::SENDER_MAC].copy_from_slice(&address.0);
    }

    /// Sets the IP address of who sent it.
    pub fn set_sender_ip(&mut self, address: Ipv4Addr) {
        self.bytes.as_mut()[field::SENDER_IP].copy_from_slice(&address.octets());
    }

    /// Sets the Ethernet address of whom it is about.
    pub fn set_target_mac(&mut self, address: MacAddress) {
        self.bytes.as_mut()[field::TARGET_MAC].copy_from_slice(&address.0);
    }

    /// Sets the IP address of whom it is about.
    pub fn set_target_ip(&mut self, address: Ipv4Addr) {
        self.bytes.as_mut()[field::TARGET_IP].copy_from_slice(&address.octets());
    }
}

/// The meaning of an ARP packet for IPv4 over Ethernet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArpHeader {
    /// What it asks or says.
    pub operation: ArpOperation,
    /// The Ethernet address of who sent it.
    pub sender_mac: MacAddress,
    /// The IP address of who sent it.
    pub sender_ip: Ipv4Addr,
    /// The Ethernet address of whom it is about; zero in a request.
    pub target_mac: MacAddress,
    /// The IP address of whom it is about.
    pub target_ip: Ipv4Addr,
}

impl ArpHeader {
    /// Reads the packet at the start of `bytes`.
    ///
    /// # Errors
    /// When the bytes end too early, or the packet is about another link or protocol.
    pub fn parse(bytes: &[u8]) -> Result<Self, HeaderError> {
        let view = ArpView::new_checked(bytes)?;
        let refuse = |field, value: u16, expected| {
            Err(HeaderError::Field {
                header: "arp",
                field,
                value: u64::from(value),
                expected,
            })
        };
        if view.hardware_type() != HARDWARE_ETHERNET {
            return refuse("hardware type", view.hardware_type(), "1 (Ethernet)");
        }
        if view.protocol_type() != EtherType::IPV4 {
            return refuse("protocol type", view.protocol_type().0, "2048 (IPv4)");
        }
        if view.lengths() != LENGTHS_ETHERNET_IPV4 {
            return refuse("address lengths", view.lengths(), "1540 (6 and 4 bytes)");
        }
        Ok(ArpHeader {
            operation: view.operation(),
            sender_mac: view.sender_mac(),
            sender_ip: view.sender_ip(),
            target_mac: view.target_mac(),
            target_ip: view.target_ip(),
        })
    }

    /// Bytes that [`ArpHeader::emit`] writes.
    #[must_use]
    pub const fn buffer_len(&self) -> usize {
        HEADER_BYTES
    }

    /// Writes the packet at the start of `bytes`.
    ///
    /// # Panics
    /// When there are fewer than [`ArpHeader::buffer_len`] bytes.
    pub fn emit(&self, bytes: &mut [u8]) {
        let mut view = ArpView::new_unchecked(bytes);
        view.set_ethernet_ipv4();
        view.set_operation(self.operation);
        view.set_sender_mac(self.sender_mac);
        view.set_sender_ip(self.sender_ip);
        view.set_target_mac(self.target_mac);
        view.set_target_ip(self.target_ip);
    }
}

impl fmt::Display for ArpHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.operation {
            ArpOperation::REQUEST => {
                write!(f, "arp who has {}? tell {}", self.target_ip, self.sender_ip)
            }
            ArpOperation::REPLY => write!(f, "arp {} is at {}", self.sender_ip, self.sender_mac),
            ArpOperation(number) => {
                write!(
                    f,
                    "arp operation {number} {} > {}",
                    self.sender_ip, self.target_ip
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BYTES: [u8; 28] = [
        0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 9, 10, 0, 0, 1, 3, 4, 5, 6, 7, 8, 10, 0, 0, 2,
    ];
    const HEADER: ArpHeader = ArpHeader {
        operation: ArpOperation::REQUEST,
        sender_mac: MacAddress([2, 0, 0, 0, 0, 9]),
        sender_ip: Ipv4Addr::new(10, 0, 0, 1),
        target_mac: MacAddress([3, 4, 5, 6, 7, 8]),
        target_ip: Ipv4Addr::new(10, 0, 0, 2),
    };

    #[test]
    fn every_field_lies_where_it_should() {
        assert_eq!(ArpHeader::parse(&BYTES), Ok(HEADER));
        let mut bytes = [0xff; 28];
        HEADER.emit(&mut bytes);
        assert_eq!(bytes, BYTES);
    }

    #[test]
    fn printed_as_question_and_answer() {
        assert_eq!(HEADER.to_string(), "arp who has 10.0.0.2? tell 10.0.0.1");
        let reply = ArpHeader {
            operation: ArpOperation::REPLY,
            ..HEADER
        };
        assert_eq!(reply.to_string(), "arp 10.0.0.1 is at 02:00:00:00:00:09");
    }

    #[test]
    fn other_links_and_protocols_are_refused_by_name() {
        for (at, field) in [
            (1, "hardware type"),
            (2, "protocol type"),
            (5, "address lengths"),
        ] {
            let mut bytes = BYTES;
            bytes[at] += 1;
            let error = ArpHeader::parse(&bytes).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("arp: field '{field}'")),
                "{error}"
            );
        }
        let short = HeaderError::Short {
            header: "arp",
            needed: 28,
            available: 27,
        };
        assert_eq!(ArpHeader::parse(&BYTES[..27]), Err(short));
    }

    proptest! {
        #[test]
        fn parse_after_emit_gives_the_same(
            operation: u16, sender_mac: [u8; 6], sender_ip: u32, target_mac: [u8; 6], target_ip: u32,
        ) {
            let header = ArpHeader {
                operation: ArpOperation(operation),
                sender_mac: sender_mac.into(),
                sender_ip: sender_ip.into(),
                target_mac: target_mac.into(),
                target_ip: target_ip.into(),
            };
            let mut bytes = vec![0xa5; header.buffer_len()];
            header.emit(&mut bytes);
            prop_assert_eq!(ArpHeader::parse(&bytes), Ok(header));
        }

        #[test]
        fn any_bytes_are_safe(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            let _ = ArpView::new_unchecked(&bytes).to_string();
        }
    }
}
