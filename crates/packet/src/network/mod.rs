//! The network layer: IPv4 and IPv6 with options and extension headers, ICMP, neighbor discovery, and
//! the internet checksum with its pseudo headers.

pub mod checksum;
mod icmp;
pub mod icmpv4;
pub mod icmpv6;
pub mod ip_protocol;
pub mod ipv4;
pub mod ipv6;
pub mod ipv6_extension;
pub mod ipv6_fragment;
pub mod ipv6_options;
pub mod ipv6_routing;
pub mod neighbor;
