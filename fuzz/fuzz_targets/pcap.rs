//! Any bytes as a pcap file: what can be read is written and read to the same.

#![no_main]

#[path = "../../crates/packet/tests/anything/pcap.rs"]
mod pcap;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| pcap::check(bytes));
