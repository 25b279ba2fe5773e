//! Any life of a TCP connection: no panic, and its rules hold after each step. The reading of
//! bytes as a life is that of the engine's own property test.

#![no_main]

#[path = "../../crates/engine/tests/tcp/anything.rs"]
mod anything;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| anything::live(bytes));
