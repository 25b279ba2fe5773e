//! Neighbor discovery for IPv6 (RFC 4861): what its ICMPv6 messages say after their eight bytes,
//! and the options at their end. The messages themselves are kinds of `icmpv6`.

use std::net::Ipv6Addr;

use crate::address::MacAddress;
use crate::error::HeaderError;

const SOURCE_LINK_ADDRESS: u8 = 1;
const TARGET_LINK_ADDRESS: u8 = 2;
const PREFIX_INFORMATION: u8 = 3;
const MTU: u8 = 5;

const LINK_ADDRESS_BYTES: usize = 8;
const PREFIX_BYTES: usize = 32;
const MTU_BYTES: usize = 8;

const ON_LINK: u8 = 0x80;
const AUTONOMOUS: u8 = 0x40;

/// A prefix that a router tells of (RFC 4861 section 4.6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixInformation {
    /// Bits of the prefix, 0 to 128.
    pub length_bits: u8,
    /// Addresses in it are on this link.
    pub on_link: bool,
    /// Addresses may be made from it.
    pub autonomous: bool,
    /// How long it is valid.
    pub valid_s: u32,
    /// How long addresses from it are preferred.
    pub preferred_s: u32,
    /// The prefix; what is beyond its length means nothing.
    pub prefix: Ipv6Addr,
}

/// The options that this crate knows; of each kind the first one, as hosts do. Others are passed
/// over, as RFC 4861 section 4.6 demands, and not kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NeighborOptions {
    /// The Ethernet address of the sender.
    pub source_link: Option<MacAddress>,
    /// The Ethernet address of the target.
    pub target_link: Option<MacAddress>,
    /// A prefix of the link.
    pub prefix: Option<PrefixInformation>,
    /// The largest packet on the link.
    pub mtu_bytes: Option<u32>,
}

impl NeighborOptions {
    /// No options.
    pub const NONE: NeighborOptions = NeighborOptions {
        source_link: None,
        target_link: None,
        prefix: None,
        mtu_bytes: None,
    };

    /// Only the sender's Ethernet address.
    #[must_use]
    pub const fn source(address: MacAddress) -> Self {
        NeighborOptions {
            source_link: Some(address),
            ..Self::NONE
        }
    }

    /// Only the target's Ethernet address.
    #[must_use]
    pub const fn target(address: MacAddress) -> Self {
        NeighborOptions {
            target_link: Some(address),
            ..Self::NONE
        }
    }

    /// Reads options up to the end of `bytes`.
    ///
    /// # Errors
    /// When an option has no length or goes beyond the bytes.
    pub fn parse(mut bytes: &[u8]) -> Result<Self, HeaderError> {
        let mut options = NeighborOptions::NONE;
        while !bytes.is_empty() {
            // The length is in units of 8 bytes and counts kind and length too; a message with
            // a length of 0 must be dropped (RFC 4861 section 4.6).
            let units = bytes.get(1).copied().unwrap_or_default();
            let option = bytes
                .get(..8 * usize::from(units))
                .filter(|option| !option.is_empty());
            let option = option.ok_or(HeaderError::Field {
                header: "neighbor discovery",
                field: "option length",
                value: u64::from(units),
                expected: "at least 1 (of 8 bytes), and within the message",
            })?;
            options.take(option);
            bytes = &bytes[option.len()..];
        }
        Ok(options)
    }

    /// Bytes that [`NeighborOptions::emit`] writes.
    #[must_use]
    pub fn buffer_len(&self) -> usize {
        let link = |address: Option<_>| {
            if address.is_some() {
                LINK_ADDRESS_BYTES
            } else {
                0
            }
        };
        link(self.source_link)
            + link(self.target_link)
            + if self.prefix.is_some() {
                PREFIX_BYTES
            } else {
                0
            }
            + if self.mtu_bytes.is_some() {
                MTU_BYTES
            } else {
                0
            }
    }

    /// Writes the options at the start of `bytes`.
    ///
    /// # Panics
    /// When there are fewer than [`NeighborOptions::buffer_len`] bytes.
    pub fn emit(&self, bytes: &mut [u8]) {
        let mut at = 0;
        let mut put = |option: &[u8]| {
            bytes[at..at + option.len()].copy_from_slice(option);
            at += option.len();
        };
        if let Some(address) = self.source_link {
            put(&link_option(SOURCE_LINK_ADDRESS, address));
        }
        if let Some(address) = self.target_link {
            put(&link_option(TARGET_LINK_ADDRESS, address));
        }
        if let Some(prefix) = &self.prefix {
            put(&prefix.to_option());
        }
        if let Some(mtu_bytes) = self.mtu_bytes {
            let [a, b, c, d] = mtu_bytes.to_be_bytes();
            put(&[MTU, 1, 0, 0, a, b, c, d]);
        }
    }

    /// Takes one option, if it is a known one and the first of its kind.
    fn take(&mut self, option: &[u8]) {
        match *option {
            [SOURCE_LINK_ADDRESS, 1, a, b, c, d, e, f] => {
                self.source_link
                    .get_or_insert(MacAddress([a, b, c, d, e, f]));
            }
            [TARGET_LINK_ADDRESS, 1, a, b, c, d, e, f] => {
                self.target_link
                    .get_or_insert(MacAddress([a, b, c, d, e, f]));
            }
            [PREFIX_INFORMATION, 4, ..] => {
                self.prefix
                    .get_or_insert_with(|| PrefixInformation::from_option(option));
            }
            [MTU, 1, _, _, a, b, c, d] => {
                self.mtu_bytes
                    .get_or_insert(u32::from_be_bytes([a, b, c, d]));
            }
            _ => {}
        }
    }
}

fn link_option(kind: u8, address: MacAddress) -> [u8; LINK_ADDRESS_BYTES] {
    let [a, b, c, d, e, f] = address.octets();
    [kind, 1, a, b, c, d, e, f]
}

impl PrefixInformation {
    /// Out of an option of 32 bytes.
    fn from_option(option: &[u8]) -> Self {
        let number = |at: usize| crate::bytes::u32_at(option, at..at + 4);
        PrefixInformation {
            length_bits: option[2],
            on_link: option[3] & ON_LINK != 0,
            autonomous: option[3] & AUTONOMOUS != 0,
            valid_s: number(4),
            preferred_s: number(8),
            prefix: Ipv6Addr::from(crate::bytes::array::<16>(option, 16..32)),
        }
    }

    fn to_option(self) -> [u8; PREFIX_BYTES] {
        let mut option = [0; PREFIX_BYTES];
        let flag = |on: bool, bit: u8| if on { bit } else { 0 };
        let flags = flag(self.on_link, ON_LINK) | flag(self.autonomous, AUTONOMOUS);
        option[..4].copy_from_slice(&[PREFIX_INFORMATION, 4, self.length_bits, flags]);
        option[4..8].copy_from_slice(&self.valid_s.to_be_bytes());
        option[8..12].copy_from_slice(&self.preferred_s.to_be_bytes());
        option[16..].copy_from_slice(&self.prefix.octets());
        option
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_options_are_read_and_others_passed() {
        let mut bytes = vec![24, 1, 0, 0, 0, 0, 0, 0, 1, 1, 2, 0, 0, 0, 0, 1];
        bytes.extend([5, 1, 0, 0, 0, 0, 5, 220, 1, 1, 9, 9, 9, 9, 9, 9]);
        let options = NeighborOptions::parse(&bytes).unwrap();
        assert_eq!(options.source_link, Some(MacAddress([2, 0, 0, 0, 0, 1])));
        assert_eq!((options.mtu_bytes, options.prefix), (Some(1500), None));
        assert_eq!(options.buffer_len(), 16);
    }

    #[test]
    fn a_prefix_lies_where_it_should() {
        let mut bytes = vec![
            3, 4, 64, 0xc0, 0, 1, 0x51, 0x80, 0, 0, 0x38, 0x40, 0, 0, 0, 0,
        ];
        bytes.extend("2001:db8::".parse::<Ipv6Addr>().unwrap().octets());
        let options = NeighborOptions::parse(&bytes).unwrap();
        let expected = PrefixInformation {
            length_bits: 64,
            on_link: true,
            autonomous: true,
            valid_s: 86_400,
            preferred_s: 14_400,
            prefix: "2001:db8::".parse().unwrap(),
        };
        assert_eq!(options.prefix, Some(expected));
        let mut emitted = [0xff; 32];
        options.emit(&mut emitted);
        assert_eq!(emitted[..], bytes);
    }

    #[test]
    fn options_without_a_length_are_refused() {
        for bytes in [
            &[1u8] as &[u8],
            &[1, 0, 0, 0, 0, 0, 0, 0],
            &[1, 2, 0, 0, 0, 0, 0, 0],
        ] {
            let error = NeighborOptions::parse(bytes).unwrap_err();
            assert!(error.to_string().contains("'option length'"), "{error}");
        }
    }

    prop_compose! {
        fn any_prefix()(
            length_bits in 0u8..=128,
            (on_link, autonomous, valid_s, preferred_s) in any::<(bool, bool, u32, u32)>(),
            prefix: u128,
        ) -> PrefixInformation {
            let prefix = prefix.into();
            PrefixInformation { length_bits, on_link, autonomous, valid_s, preferred_s, prefix }
        }
    }

    prop_compose! {
        pub(crate) fn any_neighbor_options()(
            source_link in any::<Option<[u8; 6]>>(),
            target_link in any::<Option<[u8; 6]>>(),
            prefix in prop::option::of(any_prefix()),
            mtu_bytes in any::<Option<u32>>(),
        ) -> NeighborOptions {
            let source_link = source_link.map(MacAddress);
            let target_link = target_link.map(MacAddress);
            NeighborOptions { source_link, target_link, prefix, mtu_bytes }
        }
    }

    proptest! {
        #[test]
        fn parse_after_emit_gives_the_same(options in any_neighbor_options()) {
            let mut bytes = vec![0xa5; options.buffer_len()];
            options.emit(&mut bytes);
            prop_assert_eq!(NeighborOptions::parse(&bytes), Ok(options));
        }

        #[test]
        fn any_bytes_are_safe(bytes in prop::collection::vec(0u8..6, 0..90)) {
            let _ = NeighborOptions::parse(&bytes);
        }
    }
}
