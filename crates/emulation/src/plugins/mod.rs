//! The protocols of emulated clients: a folder each, and one list.

mod announcement;
pub mod appsim;
pub mod arp;
pub mod cdp;
pub mod dhcp;
pub mod dhcpsrv;
pub mod dhcpv6;
pub mod dns;
pub mod dot1x;
pub mod icmp;
pub mod igmp;
pub mod ipfix;
pub mod ipv6;
mod lease;
pub mod lldp;
pub mod mdns;
pub mod ppp;
pub mod tdl;
pub mod transe;
pub mod transport;

use crate::plugin::Spec;

/// All plugins. A plugin's place is its number ([`PluginId`](crate::plugin::PluginId)); there is room
/// for 32.
pub static PLUGINS: &[&Spec] = &[
    &arp::SPEC,
    &icmp::SPEC,
    &igmp::SPEC,
    &ipv6::SPEC,
    &lldp::SPEC,
    &cdp::SPEC,
    &dot1x::SPEC,
    &ppp::SPEC,
    &dhcp::SPEC,
    &dhcpsrv::SPEC,
    &dhcpv6::SPEC,
    &transport::SPEC,
    &mdns::SPEC,
    &dns::SPEC,
    &ipfix::SPEC,
    &tdl::SPEC,
    &appsim::SPEC,
    &transe::SPEC,
    #[cfg(test)]
    &transport::tests::endpoint::SPEC,
];
