//! Families of addresses, and prefixes as NLRI has them: a length in bits and as few octets as hold it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use super::reader::Reader;

/// SAFI of unicast routes (RFC 4760 §6).
pub const SAFI_UNICAST: u8 = 1;

/// An address family of unicast routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AddressFamily {
    /// IPv4 unicast.
    Ipv4,
    /// IPv6 unicast.
    Ipv6,
}

impl AddressFamily {
    /// Its AFI.
    pub fn afi(self) -> u16 {
        match self {
            Self::Ipv4 => 1,
            Self::Ipv6 => 2,
        }
    }

    /// The family of an AFI and SAFI, `None` for those that are not unicast of IPv4 or IPv6.
    pub fn of(afi: u16, safi: u8) -> Option<Self> {
        match (afi, safi) {
            (1, SAFI_UNICAST) => Some(Self::Ipv4),
            (2, SAFI_UNICAST) => Some(Self::Ipv6),
            _ => None,
        }
    }

    /// The longest prefix in bits.
    pub fn bits(self) -> u8 {
        match self {
            Self::Ipv4 => 32,
            Self::Ipv6 => 128,
        }
    }

    /// The octets of an address.
    pub fn octets(self) -> usize {
        usize::from(self.bits() / 8)
    }
}

/// A range of addresses. The bits behind its length are zero.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

impl Prefix {
    /// The prefix of `length` bits that `address` is in; `None` where an address has fewer bits.
    pub fn new(address: IpAddr, length: u8) -> Option<Self> {
        let address = match address {
            IpAddr::V4(v4) => {
                let unused = 32_u32.checked_sub(length.into())?;
                let mask = u32::MAX.checked_shl(unused).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits() & mask))
            }
            IpAddr::V6(v6) => {
                let unused = 128_u32.checked_sub(length.into())?;
                let mask = u128::MAX.checked_shl(unused).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & mask))
            }
        };
        Some(Self { address, length })
    }

    /// Its first address.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Its length in bits.
    pub fn length(&self) -> u8 {
        self.length
    }

    /// The family of its addresses.
    pub fn family(&self) -> AddressFamily {
        match self.address {
            IpAddr::V4(_) => AddressFamily::Ipv4,
            IpAddr::V6(_) => AddressFamily::Ipv6,
        }
    }

    /// The octets that [`emit`](Self::emit) writes.
    pub fn buffer_len(&self) -> usize {
        1 + usize::from(self.length.div_ceil(8))
    }

    /// Appends length and octets.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.push(self.length);
        let octets = self.buffer_len() - 1;
        match self.address {
            IpAddr::V4(v4) => out.extend_from_slice(&v4.octets()[..octets]),
            IpAddr::V6(v6) => out.extend_from_slice(&v6.octets()[..octets]),
        }
    }

    /// The next prefix of a list. `None` where its length is too large for the family or for what is left.
    /// Bits behind the length are ignored, as RFC 4271 §4.3 has it.
    pub fn parse(reader: &mut Reader<'_>, family: AddressFamily) -> Option<Self> {
        let length = reader.u8().filter(|length| *length <= family.bits())?;
        let given = reader.bytes(length.div_ceil(8).into())?;
        let address = match family {
            AddressFamily::Ipv4 => {
                let mut octets = [0; 4];
                octets[..given.len()].copy_from_slice(given);
                IpAddr::from(octets)
            }
            AddressFamily::Ipv6 => {
                let mut octets = [0; 16];
                octets[..given.len()].copy_from_slice(given);
                IpAddr::from(octets)
            }
        };
        Self::new(address, length)
    }

    /// All prefixes of a list that fills the reader.
    pub fn parse_list(mut reader: Reader<'_>, family: AddressFamily) -> Option<Vec<Self>> {
        let mut prefixes = Vec::new();
        while !reader.is_empty() {
            prefixes.push(Self::parse(&mut reader, family)?);
        }
        Some(prefixes)
    }

    /// The prefix of the same length that is `steps` behind this one; `None` past the last address.
    pub fn offset(&self, steps: u32) -> Option<Self> {
        if self.length == 0 {
            return (steps == 0).then_some(*self);
        }
        let address = match self.address {
            IpAddr::V4(v4) => {
                let distance = u64::from(steps) << (32 - self.length);
                let bits = u64::from(v4.to_bits()) + distance;
                IpAddr::V4(Ipv4Addr::from_bits(u32::try_from(bits).ok()?))
            }
            IpAddr::V6(v6) => {
                let shift = 128 - u32::from(self.length);
                let distance = u128::from(steps).checked_mul(1_u128.checked_shl(shift)?)?;
                IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits().checked_add(distance)?))
            }
        };
        Some(Self {
            address,
            length: self.length,
        })
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl fmt::Debug for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a text is no prefix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no prefix: write an address, a slash and a length in bits, as in 198.51.100.0/24"
)]
pub struct BadPrefix(String);

impl FromStr for Prefix {
    type Err = BadPrefix;

    fn from_str(text: &str) -> Result<Self, BadPrefix> {
        let bad = || BadPrefix(text.to_owned());
        let (address, length) = text.split_once('/').ok_or_else(bad)?;
        let address = address.parse().map_err(|_| bad())?;
        let length = length.parse().map_err(|_| bad())?;
        Self::new(address, length).ok_or_else(bad)
    }
}
