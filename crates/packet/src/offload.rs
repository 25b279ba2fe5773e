//! Checksums that are left to a network card: what it must be told of a frame.

/// Where the headers are whose checksums a card fills in. The frame has zero in the IPv4 header's,
/// and in that of TCP or UDP the sum of the pseudo header (RFC 9293 §3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxChecksumOffload {
    /// Bytes before the IP header.
    pub l2_bytes: u8,
    /// Bytes of the IP header, with its options.
    pub l3_bytes: u16,
    /// Bytes of the TCP or UDP header, with its options.
    pub l4_bytes: u8,
    /// IPv4, whose header has a checksum too; else IPv6.
    pub is_ipv4: bool,
    /// TCP; else UDP.
    pub is_tcp: bool,
}
