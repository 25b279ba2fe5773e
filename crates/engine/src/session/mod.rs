//! Sessions: flows that run programs.
//!
//! What lives here so far: the frames of flows (`wire`). What does not: ports, and when a session
//! begins.

pub mod wire;
