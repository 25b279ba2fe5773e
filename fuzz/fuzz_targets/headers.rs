//! Any bytes as each header in turn: what can be parsed is emitted and parsed to the same.

#![no_main]

#[path = "../../crates/packet/tests/anything/headers.rs"]
mod headers;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| headers::check(bytes));
