//! The golden captures: what the simulator writes for their requests is equal, byte for byte.
//!
//! A golden whose profile needs what the server does not support yet must be refused with words
//! that say so: when it becomes supported, it is compared without a change here.

use std::path::Path;

use allosaur_server::sim::{Scenario, SimError};
use allosaur_testkit::data;
use allosaur_testkit::golden::{self, Record};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// What goldens promise about times (see their README).
const TOLERANCE_NS: u64 = 5_000;
/// Fewer equal goldens than this is a step back.
const EQUAL_MIN: usize = 31;

#[test]
fn goldens_are_equal_or_refused_with_a_reason() {
    let Some(folder) = data::golden_dir() else {
        eprintln!("skipped: there are no golden captures beside this checkout");
        return;
    };
    let (mut equal, mut refused) = (0, Vec::new());
    for (name, requests, capture) in data::golden_pairs(&folder) {
        match simulate(&requests) {
            Ok(got) => {
                let expected = with_zero_padding(golden::load(&capture), &requests);
                let compared = golden::compare(&expected, &got, TOLERANCE_NS);
                compared.unwrap_or_else(|mismatch| panic!("{name}: {mismatch}"));
                equal += 1;
            }
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("not supported yet"), "{name}: {text}");
                refused.push(name);
            }
        }
    }
    eprintln!(
        "{equal} goldens are equal; {} need what is not supported yet",
        refused.len()
    );
    assert!(
        equal >= EQUAL_MIN,
        "only {equal} goldens are equal; refused: {refused:?}"
    );
}

fn simulate(path: &Path) -> Result<Vec<Record>, SimError> {
    let text = std::fs::read(path).expect("the golden can be read");
    let outcome = Scenario::parse(&text)?.run()?;
    Ok(golden::parse(&outcome.capture)?)
}

/// What follows a packet shorter than the shortest frame is not the profile's: one golden has
/// there what was in memory before. We send zeros, as RFC 894 and RFC 1042 want.
fn with_zero_padding(mut expected: Vec<Record>, requests: &Path) -> Vec<Record> {
    let text = std::fs::read(requests).expect("the golden can be read");
    let file: Value = serde_json::from_slice(&text).expect("the golden is JSON");
    let commands = file["commands"].as_array().expect("a list of requests");
    let packets = commands
        .iter()
        .filter_map(|c| c["params"]["stream"]["packet"]["binary"].as_str());
    let decode = |text| STANDARD.decode(text).expect("packets are base64");
    if let [packet] = &packets.map(decode).collect::<Vec<_>>()[..] {
        for record in expected
            .iter_mut()
            .filter(|record| record.bytes.len() > packet.len())
        {
            record.bytes[packet.len()..].fill(0);
        }
    }
    expected
}
