//! The server: everything between the RPC and the traffic.
//!
//! The modules stand in an order, and a module imports only from those before it:
//! `counters`, `metrics`, `emulation`, `rx_taps`, `routes`, `control`, `transport`, `http`, `rpc`, `sim`, `config`, `devices`, `threads`,
//! `bench`, `cli`.

pub mod bench;
pub mod cli;
pub mod config;
pub mod control;
pub mod counters;
pub mod devices;
pub mod emulation;
pub mod http;
pub mod metrics;
mod routes;
pub mod rpc;
pub mod rx_taps;
pub mod sim;
pub mod threads;
pub mod transport;
