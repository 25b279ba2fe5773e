//! What a plugin of a namespace on one shard tells the same plugin on another.
//!
//! Messages are made of the state when they are polled, and a plugin has one of a kind for each neighbor at most:
//! while another shard stands still, none pile up.

use std::net::Ipv4Addr;

use allosaur_packet::MacAddress;

use crate::namespace::NamespaceKey;

/// A message to the same plugin of a namespace on another shard. Messages from one shard to another keep their
/// order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardMessage {
    /// The shard that tells.
    pub from: u32,
    /// The shard that is told.
    pub to: u32,
    /// The namespace.
    pub key: NamespaceKey,
    /// The plugin, by its place in the list of plugins.
    pub(crate) plugin: u8,
    /// What is told.
    pub body: MessageBody,
}

/// What is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageBody {
    /// To the home: a client has the plugin, so the namespace has it.
    Begun,
    /// Of a neighbor of ARP.
    Neighbor(NeighborMessage<Ipv4Addr>),
}

/// What is told of a neighbor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NeighborMessage<A> {
    /// To the home: clients of the shard need it, or none does any more.
    Needed {
        /// The neighbor.
        address: A,
        /// Whether they do.
        is_needed: bool,
    },
    /// To the home: it said what its MAC address is.
    Heard {
        /// The neighbor.
        address: A,
        /// What it said.
        mac: MacAddress,
    },
    /// Of the home: what is known of it.
    Known {
        /// The neighbor.
        address: A,
        /// Its MAC address, while it is known.
        mac: Option<MacAddress>,
    },
    /// Of the home: it is to be asked for, in the name of a client of the shard.
    Ask {
        /// The neighbor.
        address: A,
    },
}
