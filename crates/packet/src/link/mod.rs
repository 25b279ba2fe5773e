//! The link layer: Ethernet II, its tags, and ARP.

pub mod arp;
pub mod ethernet;
pub mod vlan;
