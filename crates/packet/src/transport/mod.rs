//! The transport layer: TCP with its options, UDP, and what is carried in it: VXLAN.

pub mod tcp;
pub mod tcp_options;
pub mod udp;
pub mod vxlan;
