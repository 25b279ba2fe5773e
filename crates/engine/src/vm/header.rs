//! Where fields are in the headers whose checksums a program may ask for.

/// Offset of the checksum in an IPv4 header (RFC 791 §3.1).
pub(super) const IPV4_CHECKSUM_OFFSET: usize = 10;
/// Offset of the protocol in an IPv4 header (RFC 791 §3.1).
pub(super) const IPV4_PROTOCOL_OFFSET: usize = 9;
/// Offset of the next header's type in an IPv6 header (RFC 8200 §3).
pub(super) const IPV6_NEXT_HEADER_OFFSET: usize = 6;
/// Bytes of an IPv4 header without options (RFC 791 §3.1).
const IPV4_HEADER_MIN: usize = 20;
/// Bytes of an IPv6 header (RFC 8200 §3).
pub(super) const IPV6_HEADER_BYTES: usize = 40;
/// Offset of the checksum in a UDP header (RFC 768).
pub(super) const UDP_CHECKSUM_OFFSET: usize = 6;
/// Offset of the checksum in a TCP header (RFC 9293 §3.1).
pub(super) const TCP_CHECKSUM_OFFSET: usize = 16;
/// Offset of the checksum in an ICMPv6 header (RFC 4443 §2.1).
pub(super) const ICMPV6_CHECKSUM_OFFSET: usize = 2;

/// Bytes of the IPv4 header at `offset`, when one is there.
pub(super) fn ipv4_header_bytes(template: &[u8], offset: usize) -> Option<usize> {
    let first = *template.get(offset)?;
    let bytes = usize::from(first & 0x0f) * 4;
    let fits = offset.checked_add(bytes)? <= template.len();
    (first >> 4 == 4 && bytes >= IPV4_HEADER_MIN && fits).then_some(bytes)
}
