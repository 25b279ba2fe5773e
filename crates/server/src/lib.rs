//! The server: everything between the RPC and the traffic.
//!
//! The modules stand in an order, and a module imports only from those before it:
//! `affinity`, `clock`, `counters`, `orders`, `filter`, `observe`, `control`, `files`, `rpc`, `mailbox`,
//! `polling`, `desk`, `endpoint`, `table`, `tx_queues`, `worker`, `receive`, `flows`, `bench`, `sim`, `settings`, `devices`,
//! `config`, `layout`, `threads`, `facts`, `attached`, `service`.

pub mod affinity;
pub mod attached;
pub mod bench;
pub mod clock;
pub mod config;
pub mod control;
pub mod counters;
pub mod desk;
pub mod devices;
pub mod endpoint;
pub mod facts;
pub mod files;
pub mod filter;
pub mod flows;
pub mod layout;
pub mod mailbox;
pub mod observe;
pub mod orders;
pub mod polling;
pub mod receive;
pub mod rpc;
pub mod service;
pub mod settings;
pub mod sim;
pub mod table;
pub mod threads;
mod tx_queues;
pub mod worker;
