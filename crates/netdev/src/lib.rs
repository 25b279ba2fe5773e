//! The operating system's side of the network: interfaces and cards, what uses them, and devices
//! that a program makes itself. No frame passes here but for TAP devices; queues are `port`'s.
//!
//! | module | what it is |
//! |---|---|
//! | [`interface`] | one interface: its facts, its link, what it receives |
//! | [`child`] | programs that end with the thread that started them |
//! | [`claim`] | which server may use an interface or a card |
//! | [`inventory`] | what a machine has for ports, and who uses it |
//! | [`netlink`] | what only rtnetlink tells |
//! | [`netlink_batch`] | changes by rtnetlink, many in one call |
//! | [`tuntap`] | TAP devices |
//! | [`socket`] | opening sockets, reading and setting their options |
//! | [`tcp`] | what TCP sockets can do beyond the usual |
//! | [`names`] | what a misspelt name may have meant |

pub mod child;
pub mod claim;
mod error;
pub mod interface;
pub mod inventory;
pub mod names;
pub mod netlink;
pub mod netlink_batch;
pub mod socket;
pub mod tcp;
pub mod tuntap;

pub use error::InterfaceError;
