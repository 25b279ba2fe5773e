//! The protocols of emulated clients: a folder each, and one list.

pub mod arp;

use crate::plugin::Spec;

/// All plugins. A plugin's place is its number ([`PluginId`](crate::plugin::PluginId)); there is room
/// for 32.
pub static PLUGINS: &[&Spec] = &[&arp::SPEC];
