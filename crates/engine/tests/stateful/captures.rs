//! Frames of captures of real traffic, changed in any way, at both ports of a core whose flows go
//! on: no panic, all rules hold, and after the stop nothing is left.

use std::fs;

use allosaur_engine::stateful::{Holdings, StatefulCommand};
use allosaur_engine::time::{MILLISECOND, SECOND};
use allosaur_packet::file::pcap::PcapReader;
use allosaur_testkit::data;
use proptest::prelude::*;

use crate::outside::{Bytes, change};
use crate::world::{RUN, World, http};

/// The frames of all captures.
fn captured() -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for path in data::files("pcap", ".pcap") {
        let bytes = fs::read(&path).expect("it can be read");
        let reader = PcapReader::new(&bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let records = reader.map_while(Result::ok);
        frames.extend(records.map(|record| record.data.to_vec()));
    }
    frames.retain(|frame| !frame.is_empty());
    frames
}

proptest! {
    #![proptest_config(crate::cases(30))]

    #[test]
    fn captures_break_nothing(bytes in prop::collection::vec(any::<u8>(), 500..2_000)) {
        let frames = captured();
        let mut bytes = Bytes::new(&bytes);
        let mut world = World::new(2_000);
        world.start(&http(2_000, 100.0), 1.0, Some(SECOND));
        while !bytes.is_empty() {
            let first = bytes.word() as usize % frames.len();
            let count = usize::from(bytes.byte() % 16) + 1;
            for frame in frames[first..].iter().take(count) {
                let port = bytes.byte() % 2;
                world.inject(port, change(&mut bytes, frame));
            }
            world.run_for(MILLISECOND);
            if let Err(broken) = world.engine.audit() {
                return Err(TestCaseError::fail(broken));
            }
        }
        world.run_for(2_000 * SECOND);
        world.tell(StatefulCommand::Stop { run: RUN, abort: true });
        world.run_for(SECOND);
        prop_assert_eq!(world.engine.holdings(), Holdings::default());
        prop_assert_eq!(world.sides()[0].flows.tcp.rcvbyte, 100 * 2_000, "good flows are whole");
    }
}
