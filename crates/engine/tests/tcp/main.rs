//! TCP under virtual time: packet scripts, whole transfers over bad links, and anything at all.

use proptest::prelude::ProptestConfig;

mod anything;
mod conformance;
mod fuzz;
mod late;
mod pair;
mod script;
mod snapshot;
mod transfers;

/// How many cases a property is tried with: `PROPTEST_CASES`, else what takes about a second.
fn cases(usual: u32) -> ProptestConfig {
    let asked = std::env::var("PROPTEST_CASES").ok();
    ProptestConfig::with_cases(asked.and_then(|text| text.parse().ok()).unwrap_or(usual))
}
