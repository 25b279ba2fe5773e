//! The extension headers of IPv6 (RFC 8200 section 4): one after the other, and each alone.

use crate::network::ip_protocol::IpProtocol;

/// How many extension headers are read before the rest is given up. Real packets have one to
/// three; the limit keeps a hostile one from costing more than a few of them.
pub const EXTENSIONS_MAX: usize = 16;

/// Where in the original datagram the payload of an IP packet lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fragment {
    /// The whole datagram.
    #[default]
    No,
    /// Its beginning: the upper header is there.
    First,
    /// Another part: there is no upper header.
    Later,
}

impl Fragment {
    /// From the offset (in any unit) and the flag that more follow.
    pub(crate) const fn from_parts(offset: u16, more: bool) -> Fragment {
        match (offset, more) {
            (0, false) => Fragment::No,
            (0, true) => Fragment::First,
            _ => Fragment::Later,
        }
    }
}

/// How the walk over the extension headers ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkEnd {
    /// At the upper layer (or at a later fragment, which has no upper header).
    Upper,
    /// The bytes end inside an extension header, which lies at the offset.
    Short,
    /// There are more than [`EXTENSIONS_MAX`].
    TooMany,
}

/// What a walk over the extension headers found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Walk {
    /// What lies at `offset_bytes`.
    pub protocol: IpProtocol,
    /// Bytes of the extension headers that were passed.
    pub offset_bytes: usize,
    /// Whether this is a fragment.
    pub fragment: Fragment,
    /// How the walk ended.
    pub end: WalkEnd,
}

/// Passes over the extension headers at the start of `bytes`, the first of which is `protocol`.
/// Other protocols, those of the security headers too, end the walk.
#[must_use]
pub fn walk(protocol: IpProtocol, bytes: &[u8]) -> Walk {
    let fragment = Fragment::No;
    let mut walk = Walk {
        protocol,
        offset_bytes: 0,
        fragment,
        end: WalkEnd::Upper,
    };
    for _ in 0..EXTENSIONS_MAX {
        if !walk.protocol.is_extension() || walk.fragment == Fragment::Later {
            return walk;
        }
        let rest = &bytes[walk.offset_bytes..];
        // Every extension header begins with the next one's number and its own length in 8 bytes
        // beyond the first 8; the fragment header has zero there (RFC 8200 section 4.5).
        let Some(&[next, length, at_high, at_low]) = rest.first_chunk::<4>() else {
            walk.end = WalkEnd::Short;
            return walk;
        };
        let is_fragment = walk.protocol == IpProtocol::FRAGMENT;
        let header_bytes = if is_fragment {
            8
        } else {
            8 * (usize::from(length) + 1)
        };
        if rest.len() < header_bytes {
            walk.end = WalkEnd::Short;
            return walk;
        }
        if is_fragment {
            let offset = u16::from_be_bytes([at_high, at_low]);
            walk.fragment = Fragment::from_parts(offset & 0xfff8, offset & 1 != 0);
        }
        walk.protocol = IpProtocol(next);
        walk.offset_bytes += header_bytes;
    }
    if walk.protocol.is_extension() && walk.fragment != Fragment::Later {
        walk.end = WalkEnd::TooMany;
    }
    walk
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Destination options, a first fragment, then TCP.
    const BYTES: [u8; 20] = [
        44, 0, 1, 4, 0, 0, 0, 0, 6, 0xff, 0, 1, 0, 0, 0, 9, 1, 2, 3, 4,
    ];

    #[test]
    fn headers_are_passed_one_after_the_other() {
        let walk = walk(IpProtocol::DESTINATION_OPTIONS, &BYTES);
        assert_eq!((walk.protocol, walk.offset_bytes), (IpProtocol::TCP, 16));
        assert_eq!((walk.fragment, walk.end), (Fragment::First, WalkEnd::Upper));
    }

    #[test]
    fn nothing_is_passed_when_there_is_no_extension() {
        for protocol in [IpProtocol::TCP, IpProtocol::NO_NEXT_HEADER, IpProtocol(51)] {
            let walk = walk(protocol, &BYTES);
            assert_eq!((walk.protocol, walk.offset_bytes), (protocol, 0));
        }
    }

    #[test]
    fn a_cut_header_is_said_with_its_place() {
        for (cut, at) in [(0, 0), (3, 0), (7, 0), (8, 8), (15, 8)] {
            let walk = walk(IpProtocol::DESTINATION_OPTIONS, &BYTES[..cut]);
            assert_eq!(
                (walk.end, walk.offset_bytes),
                (WalkEnd::Short, at),
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn the_limit_is_exact() {
        let chain = |count: usize| {
            let mut bytes = [60, 0, 0, 0, 0, 0, 0, 0].repeat(count);
            bytes[8 * count - 8] = 17;
            walk(IpProtocol::DESTINATION_OPTIONS, &bytes).end
        };
        assert_eq!(chain(EXTENSIONS_MAX), WalkEnd::Upper);
        assert_eq!(chain(EXTENSIONS_MAX + 1), WalkEnd::TooMany);
    }

    proptest! {
        #[test]
        fn never_beyond_the_bytes(
            first in prop::sample::select(vec![0u8, 43, 44, 60]),
            bytes in prop::collection::vec(
                prop_oneof![prop::sample::select(vec![0u8, 1, 43, 44, 60]), any::<u8>()], 0..200),
        ) {
            let walk = walk(IpProtocol(first), &bytes);
            prop_assert!(walk.offset_bytes <= bytes.len());
        }
    }
}
