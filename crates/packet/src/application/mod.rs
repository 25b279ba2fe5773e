//! Messages of applications, as they lie in the payload of a datagram.

pub mod dhcpv4;
pub mod dhcpv6;
