//! The server: everything between the RPC and the traffic.
//!
//! The modules stand in an order, and a module imports only from those before it:
//! `clock`, `counters`, `filter`, `observe`, `control`, `files`, `rpc`, `mailbox`,
//! `polling`, `desk`, `endpoint`, `worker`, `receive`, `bench`, `sim`, `config`, `service`.

pub mod bench;
pub mod clock;
pub mod config;
pub mod control;
pub mod counters;
pub mod desk;
pub mod endpoint;
pub mod files;
pub mod filter;
pub mod mailbox;
pub mod observe;
pub mod polling;
pub mod receive;
pub mod rpc;
pub mod service;
pub mod sim;
pub mod worker;
