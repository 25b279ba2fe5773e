//! The Ethernet address. IP addresses are those of the standard library.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use thiserror::Error;

/// A 48-bit Ethernet (MAC) address, in the order of the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// All ones: for everybody on the link.
    pub const BROADCAST: MacAddress = MacAddress([0xff; 6]);
    /// All zeros: no address.
    pub const ZERO: MacAddress = MacAddress([0; 6]);

    /// The six bytes, in the order of the wire.
    #[must_use]
    pub const fn octets(self) -> [u8; 6] {
        self.0
    }

    /// For everybody on the link.
    #[must_use]
    pub fn is_broadcast(self) -> bool {
        self == Self::BROADCAST
    }

    /// For a group; broadcast is one.
    #[must_use]
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// For one station: neither a group nor all zeros.
    #[must_use]
    pub fn is_unicast(self) -> bool {
        !self.is_multicast() && self != Self::ZERO
    }

    /// The address to which packets of an IPv6 group go (RFC 2464 section 7).
    #[must_use]
    pub const fn of_group(group: Ipv6Addr) -> MacAddress {
        let [.., a, b, c, d] = group.octets();
        MacAddress([0x33, 0x33, a, b, c, d])
    }
}

impl From<[u8; 6]> for MacAddress {
    fn from(octets: [u8; 6]) -> Self {
        MacAddress(octets)
    }
}

impl From<MacAddress> for [u8; 6] {
    fn from(address: MacAddress) -> Self {
        address.0
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// A text that is not an Ethernet address.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "'{given}' is not a MAC address. Write six bytes in hexadecimal, such as 02:00:00:00:00:01"
)]
pub struct MacAddressError {
    given: String,
}

impl FromStr for MacAddress {
    type Err = MacAddressError;

    /// Takes bytes of one or two hexadecimal digits, between `:` or `-` (one kind of them).
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let separator = if text.contains('-') { '-' } else { ':' };
        let mut octets = [0u8; 6];
        let mut parts = text.split(separator);
        for octet in &mut octets {
            *octet = parts
                .next()
                .filter(|part| matches!(part.len(), 1 | 2))
                .filter(|part| part.bytes().all(|b| b.is_ascii_hexdigit()))
                .and_then(|part| u8::from_str_radix(part, 16).ok())
                .ok_or_else(|| MacAddressError {
                    given: text.to_owned(),
                })?;
        }
        match parts.next() {
            None => Ok(MacAddress(octets)),
            Some(_) => Err(MacAddressError {
                given: text.to_owned(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_separators_and_short_bytes_are_understood() {
        let address = MacAddress([0, 1, 2, 0xa, 0xbc, 0xff]);
        assert_eq!("00:01:02:0a:bc:ff".parse(), Ok(address));
        assert_eq!("0:1:2:A:BC:FF".parse(), Ok(address));
        assert_eq!("00-01-02-0a-bc-ff".parse(), Ok(address));
    }

    #[test]
    fn what_is_no_address_is_said_back() {
        for text in [
            "",
            "00:01:02:03:04",
            "0:1:2:3:4:5:6",
            "0:1:2:3:4:+5",
            "0:1:2:3:4:100",
            "x",
        ] {
            let error = text.parse::<MacAddress>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("'{text}' is not")), "{error}");
        }
    }

    #[test]
    fn kinds_of_addresses() {
        assert!(MacAddress::BROADCAST.is_broadcast() && MacAddress::BROADCAST.is_multicast());
        assert!(MacAddress([1, 0, 0x5e, 0, 0, 1]).is_multicast());
        assert!(MacAddress([2, 0, 0, 0, 0, 1]).is_unicast());
        assert!(!MacAddress::ZERO.is_unicast());
    }

    proptest! {
        #[test]
        fn text_goes_both_ways(octets: [u8; 6]) {
            let address = MacAddress(octets);
            prop_assert_eq!(address.to_string().parse(), Ok(address));
        }

        #[test]
        fn any_text_is_safe(text in ".{0,24}") {
            let _ = text.parse::<MacAddress>();
        }
    }
}
