//! DHCP for IPv6 (RFC 8415) between clients and servers: type, transaction id, and of the options those
//! that decide what a client does next. Messages of relays are not read.

use std::net::Ipv6Addr;

use crate::error::{HeaderError, check_length};

/// The port of clients.
pub const CLIENT_PORT: u16 = 546;
/// The port of servers and relays.
pub const SERVER_PORT: u16 = 547;
/// All servers and relays of a link (RFC 8415 section 7.1).
pub const ALL_SERVERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 1, 2);
/// Bytes of a message before its options.
pub const HEADER_BYTES: usize = 4;

/// The type of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dhcpv6MessageType(pub u8);

impl Dhcpv6MessageType {
    /// A client looks for servers.
    pub const SOLICIT: Dhcpv6MessageType = Dhcpv6MessageType(1);
    /// A server offers.
    pub const ADVERTISE: Dhcpv6MessageType = Dhcpv6MessageType(2);
    /// A client asks one server for addresses.
    pub const REQUEST: Dhcpv6MessageType = Dhcpv6MessageType(3);
    /// A client asks its server for more time.
    pub const RENEW: Dhcpv6MessageType = Dhcpv6MessageType(5);
    /// A client asks any server for more time.
    pub const REBIND: Dhcpv6MessageType = Dhcpv6MessageType(6);
    /// A server agrees or refuses.
    pub const REPLY: Dhcpv6MessageType = Dhcpv6MessageType(7);
    /// A client gives its addresses back.
    pub const RELEASE: Dhcpv6MessageType = Dhcpv6MessageType(8);
}

/// Codes of options (RFC 8415 section 21).
pub mod code {
    /// The client's DUID.
    pub const CLIENT_ID: u16 = 1;
    /// The server's DUID.
    pub const SERVER_ID: u16 = 2;
    /// Addresses that are not temporary.
    pub const IA_NA: u16 = 3;
    /// One address of them.
    pub const IA_ADDRESS: u16 = 5;
    /// Which options the client asks for.
    pub const OPTION_REQUEST: u16 = 6;
    /// How long the client has been trying.
    pub const ELAPSED_TIME: u16 = 8;
    /// Success, or what went wrong.
    pub const STATUS: u16 = 13;
    /// What kind of device the client is.
    pub const VENDOR_CLASS: u16 = 16;
}

/// A status (RFC 8415 section 21.13).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusCode(pub u16);

impl StatusCode {
    /// All is well.
    pub const SUCCESS: StatusCode = StatusCode(0);
    /// No reason is given.
    pub const UNSPECIFIED: StatusCode = StatusCode(1);
    /// The server has no addresses.
    pub const NO_ADDRESSES: StatusCode = StatusCode(2);
    /// The server does not know the client's addresses.
    pub const NO_BINDING: StatusCode = StatusCode(3);
    /// The addresses do not belong to the client's link.
    pub const NOT_ON_LINK: StatusCode = StatusCode(4);
    /// The client shall send to all servers.
    pub const USE_MULTICAST: StatusCode = StatusCode(5);
    /// The server has no prefixes.
    pub const NO_PREFIXES: StatusCode = StatusCode(6);
}

/// An address that is leased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeasedAddress {
    /// The address.
    pub address: Ipv6Addr,
    /// How long it is preferred.
    pub preferred_s: u32,
    /// How long it is valid; then it must not be used.
    pub valid_s: u32,
}

/// What an option of addresses (IA_NA) says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdentityAssociation {
    /// The client's name for it.
    pub iaid: u32,
    /// When to renew, T1; 0 leaves it to the client.
    pub renew_s: u32,
    /// When to rebind, T2; 0 leaves it to the client.
    pub rebind_s: u32,
    /// The first address that is valid for a while.
    pub address: Option<LeasedAddress>,
    /// What went wrong with it.
    pub status: StatusCode,
}

/// The options that this crate knows; of each code the first one, others are passed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dhcpv6Message<'a> {
    /// The type.
    pub message_type: Dhcpv6MessageType,
    /// Transaction id, 24 bits.
    pub xid: u32,
    /// The client's DUID.
    pub client_id: Option<&'a [u8]>,
    /// The server's DUID.
    pub server_id: Option<&'a [u8]>,
    /// The addresses.
    pub association: Option<IdentityAssociation>,
    /// What went wrong with the whole.
    pub status: StatusCode,
}

impl<'a> Dhcpv6Message<'a> {
    /// Reads a whole message.
    ///
    /// # Errors
    /// When the bytes end before the header does, or an option goes beyond what holds it.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, HeaderError> {
        check_length("dhcpv6", bytes, HEADER_BYTES)?;
        let mut message = Dhcpv6Message {
            message_type: Dhcpv6MessageType(bytes[0]),
            xid: u32::from_be_bytes([0, bytes[1], bytes[2], bytes[3]]),
            client_id: None,
            server_id: None,
            association: None,
            status: StatusCode::SUCCESS,
        };
        let mut rest = &bytes[HEADER_BYTES..];
        while let Some((code, data)) = next_option(&mut rest)? {
            match code {
                code::CLIENT_ID => message.client_id = message.client_id.or(Some(data)),
                code::SERVER_ID => message.server_id = message.server_id.or(Some(data)),
                code::IA_NA if message.association.is_none() => {
                    message.association = IdentityAssociation::parse(data)?;
                }
                code::STATUS => message.status = status(data),
                _ => {}
            }
        }
        Ok(message)
    }
}

impl IdentityAssociation {
    /// Reads the data of the option; `None` when it is too short to be one.
    fn parse(data: &[u8]) -> Result<Option<Self>, HeaderError> {
        let Some((fixed, mut rest)) = data.split_first_chunk::<12>() else {
            return Ok(None);
        };
        let mut association = IdentityAssociation {
            iaid: number(&fixed[..4]),
            renew_s: number(&fixed[4..8]),
            rebind_s: number(&fixed[8..]),
            address: None,
            status: StatusCode::SUCCESS,
        };
        while let Some((code, data)) = next_option(&mut rest)? {
            match code {
                code::IA_ADDRESS if association.address.is_none() => {
                    association.address = LeasedAddress::parse(data);
                }
                code::STATUS => association.status = status(data),
                _ => {}
            }
        }
        Ok(Some(association))
    }
}

impl LeasedAddress {
    /// Bytes of the data of its option.
    pub const BYTES: usize = 24;

    /// Reads the data of the option; none when the address is not, or no longer, valid.
    fn parse(data: &[u8]) -> Option<Self> {
        let fixed = data.first_chunk::<{ Self::BYTES }>()?;
        let octets: [u8; 16] = *fixed.first_chunk()?;
        let leased = LeasedAddress {
            address: Ipv6Addr::from(octets),
            preferred_s: number(&fixed[16..20]),
            valid_s: number(&fixed[20..]),
        };
        (leased.valid_s != 0).then_some(leased)
    }
}

/// A number of four bytes.
fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes.try_into().expect("callers give four bytes"))
}

/// A status without a code says nothing, which is what success is.
fn status(data: &[u8]) -> StatusCode {
    data.first_chunk().map_or(StatusCode::SUCCESS, |code| {
        StatusCode(u16::from_be_bytes(*code))
    })
}

/// Takes the next option off.
fn next_option<'a>(bytes: &mut &'a [u8]) -> Result<Option<(u16, &'a [u8])>, HeaderError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let option = bytes.split_first_chunk::<4>().and_then(|(head, rest)| {
        let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
        let (data, rest) = rest.split_at_checked(length)?;
        Some((u16::from_be_bytes([head[0], head[1]]), data, rest))
    });
    let Some((code, data, rest)) = option else {
        return Err(HeaderError::Field {
            header: "dhcpv6",
            field: "option length",
            value: bytes.len() as u64,
            expected: "within the bytes that are left",
        });
    };
    *bytes = rest;
    Ok(Some((code, data)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn option(code: u16, data: &[u8]) -> Vec<u8> {
        let length = u16::try_from(data.len()).unwrap();
        [&code.to_be_bytes()[..], &length.to_be_bytes(), data].concat()
    }

    fn reply(options: &[Vec<u8>]) -> Vec<u8> {
        [&[7u8, 0x34, 0x56, 0x78][..], &options.concat()].concat()
    }

    fn association(valid_s: u8, status: u8) -> Vec<u8> {
        let address = [
            &[0x20, 1, 0x0d, 0xba, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x30][..],
            &[0, 0, 1, 0x77, 0, 0, 2, valid_s],
        ]
        .concat();
        let fixed = [0x12, 0x34, 0x56, 0x78, 0, 0, 0, 6, 0, 0, 0, 8];
        let data = [&fixed[..], &option(5, &address), &option(13, &[0, status])].concat();
        option(3, &data)
    }

    #[test]
    fn a_reply_is_read_with_its_addresses() {
        let bytes = reply(&[
            option(1, b"client"),
            association(0x58, 0),
            option(2, b"server"),
        ]);
        let message = Dhcpv6Message::parse(&bytes).unwrap();
        assert_eq!(
            (message.message_type, message.xid),
            (Dhcpv6MessageType::REPLY, 0x34_5678)
        );
        assert_eq!(message.client_id, Some(&b"client"[..]));
        assert_eq!(message.server_id, Some(&b"server"[..]));
        let association = message.association.unwrap();
        assert_eq!(
            (association.iaid, association.renew_s, association.rebind_s),
            (0x1234_5678, 6, 8)
        );
        let leased = association.address.unwrap();
        assert_eq!(leased.address.to_string(), "2001:dba:100::30");
        assert_eq!((leased.preferred_s, leased.valid_s), (0x177, 0x258));
    }

    #[test]
    fn statuses_are_read_inside_and_outside() {
        let bytes = reply(&[association(1, 2), option(13, &[0, 5, b'n', b'o'])]);
        let message = Dhcpv6Message::parse(&bytes).unwrap();
        assert_eq!(message.status, StatusCode::USE_MULTICAST);
        assert_eq!(
            message.association.unwrap().status,
            StatusCode::NO_ADDRESSES
        );
    }

    #[test]
    fn bad_lengths_are_errors_and_short_options_are_none() {
        for end in [
            &[0u8, 1][..],
            &[0, 1, 0, 2, 9],
            &[0, 3, 0, 14, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5],
        ] {
            let bytes = [&reply(&[]), end].concat();
            let error = Dhcpv6Message::parse(&bytes).unwrap_err().to_string();
            assert!(error.contains("option length"), "{error}");
        }
        let bytes = reply(&[option(3, b"short"), option(13, b"x")]);
        let message = Dhcpv6Message::parse(&bytes).unwrap();
        assert_eq!(
            (message.association, message.status),
            (None, StatusCode::SUCCESS)
        );
        assert!(Dhcpv6Message::parse(&[7, 0, 0]).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_safe(
            bytes in prop::collection::vec(any::<u8>(), 0..80),
            small in prop::collection::vec(0u8..20, 0..80),
        ) {
            let _ = (Dhcpv6Message::parse(&bytes), Dhcpv6Message::parse(&reply(&[small])));
        }
    }
}
