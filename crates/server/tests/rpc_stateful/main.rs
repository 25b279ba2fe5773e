//! The RPC of stateful mode: control under virtual time, with data threads that are played by hand.

#[path = "../rpc_common/mod.rs"]
mod rpc_common;

mod latency;
mod life;
mod runs;
mod transcripts;
mod world;
