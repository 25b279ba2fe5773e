//! Random lives of a connection (`anything`), as a property; and those that the fuzz target begins with.

use allosaur_testkit::data;
use proptest::prelude::*;

use crate::anything::live;

proptest! {
    #![proptest_config(crate::cases(1_000))]

    #[test]
    fn nothing_that_arrives_breaks_a_connection(
        bytes in prop::collection::vec(any::<u8>(), 0..1_500),
    ) {
        live(&bytes);
    }
}

#[test]
fn seeds_are_right() {
    for (name, bytes) in data::seeds("tcp") {
        println!("{name}");
        live(&bytes);
    }
}
