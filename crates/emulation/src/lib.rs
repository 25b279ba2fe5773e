//! Emulated clients: hosts with addresses and protocols of their own, many thousands behind one port.
//!
//! A port has *namespaces*, told apart by VLAN tags; a namespace has *clients*, told apart by MAC
//! address; *plugins* give them protocols, a folder each in [`plugins`]. Drive an
//! [`Emulation`](emulation::Emulation) like this: `handle_frame`, `handle_timeout` and
//! `handle_request` in; after any of them `poll_transmit` until it is empty, and `poll_timeout` for
//! when to call again. There is no clock, socket or thread here.
//!
//! The modules stand in an order, each imports only from those before it: `read`, `params`, `counters`,
//! `memory`, `iter`, `slab`, `address_hash`, `chap`, `client`, `exports`, `sockets`, `namespace`,
//! `target`, `frame`, `shard_map`, `placements`, `shard_message`, `timers`, `transmit`, `tls`,
//! `plugin`, `spec`, `udp`, `datagrams`, `dns`, `field_engine`, `pace`, `neighbor_cache`,
//! `neighbor_mirror`, `neighbors`, `ping`, `multicast`, `plugins`, `totals`, `usage`, `emulation`,
//! `namespaces`, `restart`, `exchange`, `prefetch`, `timeouts`, `ready`, `sums`, `rpc`, `shards`.

mod address_hash;
pub mod chap;
pub mod client;
pub mod counters;
mod datagrams;
mod dns;
pub mod emulation;
mod exchange;
pub mod exports;
pub mod field_engine;
pub mod frame;
pub mod iter;
mod memory;
mod multicast;
pub mod namespace;
mod namespaces;
pub mod neighbor_cache;
mod neighbor_mirror;
mod neighbors;
mod pace;
pub mod params;
pub mod ping;
pub mod placements;
pub mod plugin;
pub mod plugins;
mod prefetch;
pub mod read;
pub mod ready;
mod restart;
pub mod rpc;
pub mod shard_map;
pub mod shard_message;
pub mod shards;
mod slab;
mod sockets;
pub mod spec;
mod sums;
mod target;
#[cfg(test)]
mod test_net;
pub mod timeouts;
pub mod timers;
mod tls;
pub mod totals;
pub mod transmit;
mod udp;
mod usage;

pub use emulation::{Emulation, Settings};
