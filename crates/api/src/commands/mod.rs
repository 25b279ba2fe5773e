//! The commands, one file a noun: parameters, replies, and the table's items.

pub mod captures;
pub mod changes;
pub mod events;
pub mod groups;
pub mod layers;
pub mod metrics;
pub mod ports;
pub mod remote;
pub mod server;
pub mod service;
pub mod stateful;
pub mod statistics;
pub mod status;
pub mod streams;
pub mod traffic;
