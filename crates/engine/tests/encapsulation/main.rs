//! Encapsulations under any bytes: the check of the fuzz target, by random bytes and by its seeds.

mod anything;

use allosaur_testkit::data;
use proptest::prelude::*;

proptest! {
    #[test]
    fn any_frame_to_a_tunnel_is_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        anything::check(&bytes);
    }
}

#[test]
fn seeds_of_the_fuzz_target_are_right() {
    for (_, bytes) in data::seeds("encapsulation") {
        anything::check(&bytes);
    }
}
