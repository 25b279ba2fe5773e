//! The RPC, in both modes: control under virtual time, with data threads that are played by hand, and
//! whole servers in this process. One program, since each has to be linked with all of the server.

mod bad_input;
mod captures;
mod changes;
mod common;
mod compile;
mod cores;
mod events;
mod fuzz;
mod groups;
mod layers;
mod leases;
mod pending;
mod ports;
mod remote;
mod service;
mod sim_remote;
mod stateful;
mod stateful_profiles;
mod transcripts;
