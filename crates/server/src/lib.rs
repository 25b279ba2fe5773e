//! The server: everything between the RPC and the traffic.
//!
//! The modules stand in an order, and a module imports only from those before it:
//! `clock`, `counters`, `mailbox`, `polling`, `worker`, `receive`, `bench`.

pub mod bench;
pub mod clock;
pub mod counters;
pub mod mailbox;
pub mod polling;
pub mod receive;
pub mod worker;
