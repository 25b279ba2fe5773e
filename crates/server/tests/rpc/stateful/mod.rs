//! The RPC of stateful mode: control under virtual time, with data threads that are played by hand.

mod addresses;
mod bad_input;
mod both_modes;
mod compiling;
mod counters;
mod fuzz;
mod hosts;
mod latency;
mod leases;
mod life;
mod loading;
mod modes;
mod receiving;
mod records;
mod runs;
mod transcripts;
mod world;
