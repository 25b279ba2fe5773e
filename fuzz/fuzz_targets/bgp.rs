//! Any bytes of a BGP peer, and as a file of MRT: no panic, and what was read is written and read to the same.

#![no_main]

#[path = "../../crates/bgp/tests/anything/check.rs"]
mod check;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| check::check(bytes));
