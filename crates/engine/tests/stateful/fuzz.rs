//! Random lives of a core (`anything`), as a property.

use proptest::prelude::*;

use crate::anything::live;

proptest! {
    #![proptest_config(crate::cases(150))]

    #[test]
    fn nothing_that_arrives_breaks_a_core(
        bytes in prop::collection::vec(any::<u8>(), 0..1_200),
    ) {
        live(&bytes);
    }
}
