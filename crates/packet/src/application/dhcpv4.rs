//! DHCP for IPv4 (RFC 2131): the message of BOOTP, and of its options (RFC 2132) those that decide what
//! a client or a server does next.

use std::net::Ipv4Addr;

use crate::address::MacAddress;
use crate::bytes;
use crate::error::{HeaderError, check_length};

mod field {
    use crate::bytes::Field;

    pub(super) const OPERATION: usize = 0;
    pub(super) const HARDWARE_TYPE: usize = 1;
    pub(super) const HARDWARE_BYTES: usize = 2;
    pub(super) const HOPS: usize = 3;
    pub(super) const XID: Field = 4..8;
    pub(super) const SECONDS: Field = 8..10;
    pub(super) const FLAGS: Field = 10..12;
    pub(super) const CIADDR: Field = 12..16;
    pub(super) const YIADDR: Field = 16..20;
    pub(super) const SIADDR: Field = 20..24;
    pub(super) const GIADDR: Field = 24..28;
    pub(super) const CHADDR: Field = 28..34;
    pub(super) const SERVER_NAME: Field = 44..108;
    pub(super) const FILE: Field = 108..236;
    pub(super) const COOKIE: Field = 236..240;
}

/// Bytes of a message before its options.
pub const HEADER_BYTES: usize = field::COOKIE.end;
/// The port of servers and relays.
pub const SERVER_PORT: u16 = 67;
/// The port of clients.
pub const CLIENT_PORT: u16 = 68;
/// In the flags: answer by broadcast (RFC 2131 section 4.1).
pub const BROADCAST_FLAG: u16 = 0x8000;

/// Operation of a message of a client.
pub const REQUEST: u8 = 1;
/// Operation of a message of a server.
pub const REPLY: u8 = 2;

/// The hardware type of Ethernet.
const ETHERNET: u8 = 1;
/// What tells options of DHCP from what vendors put there before (RFC 2131 section 3).
const COOKIE: [u8; 4] = [99, 130, 83, 99];

/// Codes of options (RFC 2132).
pub mod code {
    /// A byte of padding.
    pub const PAD: u8 = 0;
    /// The mask of the client's subnet.
    pub const SUBNET_MASK: u8 = 1;
    /// Routers on the client's subnet.
    pub const ROUTER: u8 = 3;
    /// The name of the client.
    pub const HOST_NAME: u8 = 12;
    /// What a client wants for its address.
    pub const REQUESTED_ADDRESS: u8 = 50;
    /// Seconds of the lease.
    pub const LEASE_TIME: u8 = 51;
    /// Fields of the header hold options too.
    pub const OVERLOAD: u8 = 52;
    /// The type of the message.
    pub const MESSAGE_TYPE: u8 = 53;
    /// Which server is meant, or answers.
    pub const SERVER_ID: u8 = 54;
    /// Which options the client asks for.
    pub const PARAMETER_LIST: u8 = 55;
    /// Seconds until the client renews.
    pub const RENEWAL_TIME: u8 = 58;
    /// Seconds until the client rebinds.
    pub const REBINDING_TIME: u8 = 59;
    /// The vendor class of the client.
    pub const CLASS_ID: u8 = 60;
    /// The client's name for itself.
    pub const CLIENT_ID: u8 = 61;
    /// What a relay tells the server (RFC 3046).
    pub const RELAY_INFORMATION: u8 = 82;
    /// The end of the options.
    pub const END: u8 = 255;
}

/// The type of a message, option 53.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageType(pub u8);

impl MessageType {
    /// A client looks for servers.
    pub const DISCOVER: MessageType = MessageType(1);
    /// A server offers an address.
    pub const OFFER: MessageType = MessageType(2);
    /// A client asks for an address, or for more time.
    pub const REQUEST: MessageType = MessageType(3);
    /// A client found that the address is in use.
    pub const DECLINE: MessageType = MessageType(4);
    /// A server agrees.
    pub const ACK: MessageType = MessageType(5);
    /// A server refuses.
    pub const NAK: MessageType = MessageType(6);
    /// A client gives its address back.
    pub const RELEASE: MessageType = MessageType(7);
    /// A client that has an address asks for options.
    pub const INFORM: MessageType = MessageType(8);
}

/// What a message says before its options; the fields have the names of RFC 2131.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DhcpHeader {
    /// [`REQUEST`] or [`REPLY`].
    pub operation: u8,
    /// The client's Ethernet address; `None` when the hardware is something else.
    pub chaddr: Option<MacAddress>,
    /// Relays that it passed.
    pub hops: u8,
    /// Transaction id.
    pub xid: u32,
    /// Seconds since the client began.
    pub seconds: u16,
    /// [`BROADCAST_FLAG`], or nothing.
    pub flags: u16,
    /// The client's address, when it has one.
    pub ciaddr: Ipv4Addr,
    /// The address that the client gets.
    pub yiaddr: Ipv4Addr,
    /// The next server to ask.
    pub siaddr: Ipv4Addr,
    /// The relay.
    pub giaddr: Ipv4Addr,
}

impl DhcpHeader {
    /// A message of a client about nothing.
    #[must_use]
    pub const fn new(operation: u8, chaddr: MacAddress, xid: u32) -> Self {
        DhcpHeader {
            operation,
            chaddr: Some(chaddr),
            hops: 0,
            xid,
            seconds: 0,
            flags: 0,
            ciaddr: Ipv4Addr::UNSPECIFIED,
            yiaddr: Ipv4Addr::UNSPECIFIED,
            siaddr: Ipv4Addr::UNSPECIFIED,
            giaddr: Ipv4Addr::UNSPECIFIED,
        }
    }

    /// Reads the header at the start of `bytes`.
    ///
    /// # Errors
    /// When the bytes end before the header does, or are not DHCP's.
    pub fn parse(bytes: &[u8]) -> Result<Self, HeaderError> {
        check_length("dhcp", bytes, HEADER_BYTES)?;
        if bytes[field::COOKIE] != COOKIE {
            return Err(HeaderError::Field {
                header: "dhcp",
                field: "magic cookie",
                value: u64::from(bytes::u32_at(bytes, field::COOKIE)),
                expected: "99.130.83.99",
            });
        }
        let address = |at| Ipv4Addr::from(bytes::array::<4>(bytes, at));
        let ethernet = (bytes[field::HARDWARE_TYPE], bytes[field::HARDWARE_BYTES]) == (ETHERNET, 6);
        Ok(DhcpHeader {
            operation: bytes[field::OPERATION],
            chaddr: ethernet.then(|| MacAddress(bytes::array(bytes, field::CHADDR))),
            hops: bytes[field::HOPS],
            xid: bytes::u32_at(bytes, field::XID),
            seconds: bytes::u16_at(bytes, field::SECONDS),
            flags: bytes::u16_at(bytes, field::FLAGS),
            ciaddr: address(field::CIADDR),
            yiaddr: address(field::YIADDR),
            siaddr: address(field::SIADDR),
            giaddr: address(field::GIADDR),
        })
    }

    /// Bytes that [`DhcpHeader::emit`] writes.
    #[must_use]
    pub const fn buffer_len(&self) -> usize {
        HEADER_BYTES
    }

    /// Writes the header at the start of `bytes`. No `chaddr` is written as hardware of no type.
    ///
    /// # Panics
    /// When there are fewer than [`DhcpHeader::buffer_len`] bytes.
    pub fn emit(&self, bytes: &mut [u8]) {
        bytes[..HEADER_BYTES].fill(0);
        bytes[field::OPERATION] = self.operation;
        if let Some(address) = self.chaddr {
            bytes[field::HARDWARE_TYPE] = ETHERNET;
            bytes[field::HARDWARE_BYTES] = 6;
            bytes[field::CHADDR].copy_from_slice(&address.octets());
        }
        bytes[field::HOPS] = self.hops;
        bytes::set_u32(bytes, field::XID, self.xid);
        bytes::set_u16(bytes, field::SECONDS, self.seconds);
        bytes::set_u16(bytes, field::FLAGS, self.flags);
        for (at, address) in [
            (field::CIADDR, self.ciaddr),
            (field::YIADDR, self.yiaddr),
            (field::SIADDR, self.siaddr),
            (field::GIADDR, self.giaddr),
        ] {
            bytes[at].copy_from_slice(&address.octets());
        }
        bytes[field::COOKIE].copy_from_slice(&COOKIE);
    }
}

/// The options that this crate knows; of each code the last one. Others are passed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DhcpOptions<'a> {
    /// The type of the message; every message must have one.
    pub message_type: Option<MessageType>,
    /// The first router.
    pub router: Option<Ipv4Addr>,
    /// What the client wants for its address.
    pub requested_address: Option<Ipv4Addr>,
    /// Seconds of the lease.
    pub lease_s: Option<u32>,
    /// Which server is meant, or answers.
    pub server_id: Option<Ipv4Addr>,
    /// Seconds until the client renews, T1.
    pub renewal_s: Option<u32>,
    /// Seconds until the client rebinds, T2.
    pub rebinding_s: Option<u32>,
    /// What a relay tells the server, to be given back to it.
    pub relay_information: Option<&'a [u8]>,
    overload: u8,
}

impl<'a> DhcpOptions<'a> {
    /// Reads the options of a whole message, and those in the fields of its header when it says that
    /// there are some (RFC 2131 section 4.1).
    ///
    /// # Errors
    /// When the bytes end before the header does, or an option goes beyond its field.
    pub fn parse(message: &'a [u8]) -> Result<Self, HeaderError> {
        check_length("dhcp", message, HEADER_BYTES)?;
        let mut options = DhcpOptions::default();
        options.take_all(&message[HEADER_BYTES..])?;
        if options.overload & 1 != 0 {
            options.take_all(&message[field::FILE])?;
        }
        if options.overload & 2 != 0 {
            options.take_all(&message[field::SERVER_NAME])?;
        }
        Ok(options)
    }

    fn take_all(&mut self, mut bytes: &'a [u8]) -> Result<(), HeaderError> {
        loop {
            match *bytes {
                [] | [code::END, ..] => return Ok(()),
                [code::PAD, ref rest @ ..] => bytes = rest,
                [code, length, ref rest @ ..] if rest.len() >= usize::from(length) => {
                    let (data, rest) = rest.split_at(usize::from(length));
                    self.take(code, data);
                    bytes = rest;
                }
                [_, ref rest @ ..] => {
                    return Err(HeaderError::Field {
                        header: "dhcp",
                        field: "option length",
                        value: u64::from(rest.first().copied().unwrap_or_default()),
                        expected: "within the message",
                    });
                }
            }
        }
    }

    fn take(&mut self, code: u8, data: &'a [u8]) {
        let number = || <[u8; 4]>::try_from(data).ok().map(u32::from_be_bytes);
        let first_address = || {
            data.first_chunk::<4>()
                .map(|octets| Ipv4Addr::from(*octets))
        };
        match code {
            code::ROUTER => self.router = first_address(),
            code::REQUESTED_ADDRESS => self.requested_address = number().map(Ipv4Addr::from),
            code::LEASE_TIME => self.lease_s = number(),
            code::OVERLOAD => self.overload = data.first().copied().unwrap_or_default(),
            code::MESSAGE_TYPE => self.message_type = data.first().copied().map(MessageType),
            code::SERVER_ID => self.server_id = number().map(Ipv4Addr::from),
            code::RENEWAL_TIME => self.renewal_s = number(),
            code::REBINDING_TIME => self.rebinding_s = number(),
            code::RELAY_INFORMATION => self.relay_information = Some(data),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header() -> DhcpHeader {
        DhcpHeader {
            seconds: 3,
            flags: BROADCAST_FLAG,
            yiaddr: Ipv4Addr::new(16, 0, 0, 2),
            siaddr: Ipv4Addr::new(16, 0, 1, 1),
            ..DhcpHeader::new(REPLY, MacAddress([0, 0, 1, 0, 0, 1]), 0x1234_5678)
        }
    }

    fn message(options: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0xa5; HEADER_BYTES];
        header().emit(&mut bytes);
        bytes.extend(options);
        bytes
    }

    #[test]
    fn every_field_lies_where_it_should() {
        let bytes = message(&[]);
        assert_eq!(
            bytes[..12],
            [2, 1, 6, 0, 0x12, 0x34, 0x56, 0x78, 0, 3, 0x80, 0]
        );
        assert_eq!(bytes[16..20], [16, 0, 0, 2]);
        assert_eq!(bytes[28..36], [0, 0, 1, 0, 0, 1, 0, 0]);
        assert_eq!(DhcpHeader::parse(&bytes), Ok(header()));
    }

    #[test]
    fn what_is_not_dhcp_over_ethernet_is_told_apart() {
        let mut bytes = message(&[]);
        bytes[2] = 16;
        assert_eq!(DhcpHeader::parse(&bytes).unwrap().chaddr, None);
        bytes[239] = 0;
        let error = DhcpHeader::parse(&bytes).unwrap_err().to_string();
        assert!(error.contains("magic cookie"), "{error}");
        assert!(DhcpHeader::parse(&bytes[..239]).is_err());
    }

    #[test]
    fn options_are_read_with_padding_and_from_the_fields_of_the_header() {
        let mut bytes = message(&[
            0, 53, 1, 5, 0, 3, 8, 1, 1, 1, 1, 2, 2, 2, 2, 52, 1, 3, 255, 9,
        ]);
        bytes[field::FILE.start..][..7].copy_from_slice(&[51, 4, 0, 0, 14, 16, 255]);
        bytes[field::SERVER_NAME.start..][..6].copy_from_slice(&[54, 4, 14, 0, 14, 16]);
        let options = DhcpOptions::parse(&bytes).unwrap();
        assert_eq!(options.message_type, Some(MessageType::ACK));
        assert_eq!(options.router, Some(Ipv4Addr::new(1, 1, 1, 1)));
        assert_eq!(options.lease_s, Some(3600));
        assert_eq!(options.server_id, Some(Ipv4Addr::new(14, 0, 14, 16)));
        assert_eq!(options.renewal_s, None);
    }

    #[test]
    fn an_option_beyond_the_message_is_an_error_and_one_of_a_wrong_length_is_none() {
        for options in [&[53u8] as &[u8], &[53, 1], &[53, 1, 5, 51, 4, 0]] {
            let bytes = message(options);
            let error = DhcpOptions::parse(&bytes).unwrap_err().to_string();
            assert!(error.contains("option length"), "{error}");
        }
        let bytes = message(&[51, 3, 0, 0, 1, 53, 0, 255]);
        assert_eq!(DhcpOptions::parse(&bytes), Ok(DhcpOptions::default()));
    }

    proptest! {
        #[test]
        fn parse_after_emit_gives_the_same(
            operation: u8, mac: Option<[u8; 6]>, hops: u8, xid: u32, seconds: u16, flags: u16,
            addresses: [u32; 4],
        ) {
            let [ciaddr, yiaddr, siaddr, giaddr] = addresses.map(Ipv4Addr::from);
            let chaddr = mac.map(MacAddress);
            let header = DhcpHeader {
                operation, chaddr, hops, xid, seconds, flags, ciaddr, yiaddr, siaddr, giaddr,
            };
            let mut bytes = vec![0xa5; header.buffer_len()];
            header.emit(&mut bytes);
            prop_assert_eq!(DhcpHeader::parse(&bytes), Ok(header));
        }

        #[test]
        fn any_bytes_are_safe(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            options in prop::collection::vec(0u8..90, 0..60),
        ) {
            let _ = (DhcpHeader::parse(&bytes), DhcpOptions::parse(&bytes));
            let _ = DhcpOptions::parse(&message(&options));
        }
    }
}
