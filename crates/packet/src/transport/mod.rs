//! The transport layer: TCP with its options, and UDP.

pub mod tcp;
pub mod tcp_options;
pub mod udp;
