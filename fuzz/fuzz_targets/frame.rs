//! Any frame: offsets stay in it and in order, and a header that the layout names can be viewed.

#![no_main]

#[path = "../../crates/packet/tests/anything/frame.rs"]
mod frame;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| frame::check(bytes));
