//! Any bytes as a pcapng file: what can be read is written and read to the same. The start of a
//! file is given, so that mutations get further than its magic.

#![no_main]

#[path = "../../crates/packet/tests/anything/pcapng.rs"]
mod pcapng;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pcapng::check(bytes));
