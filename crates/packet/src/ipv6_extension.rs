//! The extension headers of IPv6 (RFC 8200 section 4): one after the other, and each alone.

use crate::ip_protocol::IpProtocol;

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
