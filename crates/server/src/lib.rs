//! The server: everything between the RPC and the traffic.
//!
//! The modules stand in an order, and a module imports only from those before it:
//! `counters`.

pub mod counters;
