//! The protocols of emulated clients: a folder each, and one list.

pub mod arp;
pub mod icmp;
pub mod igmp;
pub mod ipv6;

use crate::plugin::Spec;

/// All plugins. A plugin's place is its number ([`PluginId`](crate::plugin::PluginId)); there is room
/// for 32.
pub static PLUGINS: &[&Spec] = &[&arp::SPEC, &icmp::SPEC, &igmp::SPEC, &ipv6::SPEC];
