//! Any frame to the port of a tunnel: no panic, and what is put in front of an answer is read at the other
//! end.

#![no_main]

#[path = "../../crates/engine/tests/encapsulation/anything.rs"]
mod encapsulation;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| encapsulation::check(bytes));
