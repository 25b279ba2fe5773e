//! Any frames to a host: no panic, and what it answers is a whole frame from itself to another.
//! The first byte picks its VLANs and whether frames get the start of one that is for it, so that
//! mutations get further than the addresses.

#![no_main]

#[path = "../../crates/engine/tests/host/anything.rs"]
mod host;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| host::check(bytes));
