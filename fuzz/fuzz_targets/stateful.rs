//! Any life of a core with flows: no panic, all rules hold after each step, and after the stop
//! nothing is left. The reading of bytes as a life is that of the engine's own property test.

#![no_main]

#[path = "../../crates/engine/tests/stateful/anything.rs"]
mod anything;
#[path = "../../crates/engine/tests/stateful/outside.rs"]
#[allow(dead_code)]
mod outside;
#[path = "../../crates/engine/tests/stateful/world.rs"]
#[allow(dead_code)]
mod world;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| anything::live(bytes));
