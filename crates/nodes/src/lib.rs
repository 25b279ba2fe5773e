//! Linux nodes of ports: hosts of the kernel, each in a network namespace, on the network that a port of
//! the server is on.
//!
//! A node is one end of a veth pair in a named namespace, as `ip netns` shows it: anything that Linux
//! runs may run there. The other ends of all nodes of a port are in one more namespace, the outer
//! one, where nothing else is: who opens a packet socket there has the frames of all nodes.
//!
//! | module | what it is |
//! |---|---|
//! | [`namespace`] | named network namespaces |
//! | [`bird`] | the routing daemon BIRD, in a namespace that nodes of all ports may join |
//! | [`owner`] | whose they are, and what a server that is gone left behind |
//! | [`node`] | one node: its addresses and names |
//! | [`port_nodes`] | all nodes of a port |

pub mod bird;
mod error;
pub mod namespace;
pub mod node;
pub mod owner;
pub mod port_nodes;

pub use error::NodesError;
pub use node::LinuxNode;
pub use port_nodes::PortNodes;
