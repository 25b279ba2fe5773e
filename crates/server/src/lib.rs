//! The server: everything between the RPC and the traffic.
//!
//! The modules stand in an order, and a module imports only from those before it:
//! `affinity`, `clock`, `counters`, `worker_command`, `filter`, `observe`, `control`, `files`, `transport`, `rpc`, `waker`, `mailbox`,
//! `polling`, `request_channel`, `job_thread`, `endpoint`, `table`, `sim`, `settings`, `layout`, `threads`, `bench`, `devices`,
//! `config`, `startup_info`, `netdevs`, `control_thread`.

pub mod affinity;
pub mod bench;
pub mod clock;
pub mod config;
pub mod control;
pub mod control_thread;
pub mod counters;
pub mod devices;
pub mod endpoint;
pub mod files;
pub mod filter;
pub mod job_thread;
pub mod layout;
pub mod mailbox;
pub mod netdevs;
pub mod observe;
pub mod polling;
pub mod request_channel;
pub mod rpc;
pub mod settings;
pub mod sim;
pub mod startup_info;
pub mod table;
pub mod threads;
pub mod transport;
pub mod waker;
pub mod worker_command;
