//! Names of IP protocol numbers, which IPv4 and IPv6 share (IPv6 calls them next header).

use std::fmt;

/// What follows an IP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IpProtocol(pub u8);

impl IpProtocol {
    /// IPv6 hop-by-hop options (RFC 8200 section 4.3).
    pub const HOP_BY_HOP: IpProtocol = IpProtocol(0);
    /// ICMP for IPv4 (RFC 792).
    pub const ICMPV4: IpProtocol = IpProtocol(1);
    /// TCP (RFC 9293).
    pub const TCP: IpProtocol = IpProtocol(6);
    /// UDP (RFC 768).
    pub const UDP: IpProtocol = IpProtocol(17);
    /// IPv6 routing header (RFC 8200 section 4.4).
    pub const ROUTING: IpProtocol = IpProtocol(43);
    /// IPv6 fragment header (RFC 8200 section 4.5).
    pub const FRAGMENT: IpProtocol = IpProtocol(44);
    /// ICMP for IPv6 (RFC 4443).
    pub const ICMPV6: IpProtocol = IpProtocol(58);
    /// Nothing follows (RFC 8200 section 4.7).
    pub const NO_NEXT_HEADER: IpProtocol = IpProtocol(59);
    /// IPv6 destination options (RFC 8200 section 4.6).
    pub const DESTINATION_OPTIONS: IpProtocol = IpProtocol(60);

    /// One of the IPv6 extension headers that this crate reads.
    #[must_use]
    pub const fn is_extension(self) -> bool {
        matches!(
            self,
            Self::HOP_BY_HOP | Self::ROUTING | Self::FRAGMENT | Self::DESTINATION_OPTIONS
        )
    }
}

impl From<u8> for IpProtocol {
    fn from(number: u8) -> Self {
        IpProtocol(number)
    }
}

impl fmt::Display for IpProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Self::HOP_BY_HOP => "hop-by-hop",
            Self::ICMPV4 => "icmp",
            Self::TCP => "tcp",
            Self::UDP => "udp",
            Self::ROUTING => "routing",
            Self::FRAGMENT => "fragment",
            Self::ICMPV6 => "icmpv6",
            Self::NO_NEXT_HEADER => "none",
            Self::DESTINATION_OPTIONS => "destination-options",
            IpProtocol(number) => return write!(f, "protocol {number}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers() {
        assert_eq!(IpProtocol::from(6).to_string(), "tcp");
        assert_eq!(IpProtocol(132).to_string(), "protocol 132");
        assert!(IpProtocol::ROUTING.is_extension() && !IpProtocol::TCP.is_extension());
    }
}
