//! The golden captures: what the simulator writes for their requests is equal, byte for byte.
//!
//! A golden whose profile needs what the server does not support yet must be refused with words
//! that say so: when it becomes supported, it is compared without a change here.

use std::path::Path;

use allosaur_engine::vm::Checksums;
use allosaur_packet::network::checksum::checksum;
use allosaur_server::sim::{Scenario, SimError};
use allosaur_server::threads::job::DiskFiles;
use allosaur_testkit::data;
use allosaur_testkit::golden::{self, Record};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// What goldens promise about times (see their README).
const TOLERANCE_NS: u64 = 5_000;
/// Goldens whose capture is of another packet than their request has: TRex changed the size of the
/// packet in these profiles and left the captures. They show how packets of groups are marked, so
/// they are compared with the capture's own packet in the request, its sign taken out.
const OTHER_PACKET: [&str; 2] = ["flow_stats", "flow_stats_latency"];
/// Fewer equal goldens than this is a step back.
const EQUAL_MIN: usize = 42;

#[test]
fn goldens_are_equal_or_refused_with_a_reason() {
    let (mut equal, mut refused) = (0, Vec::new());
    for (name, requests, capture) in data::golden_pairs() {
        let expected = golden::load(&capture);
        let mut file = load(&requests);
        if OTHER_PACKET.contains(&name.as_str()) {
            put_packet(&mut file, &expected[0].bytes);
        }
        match simulate(&file) {
            Ok(got) => {
                let expected = with_zero_padding(expected, &file);
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

fn load(path: &Path) -> Value {
    let text = std::fs::read(path).expect("the golden can be read");
    serde_json::from_slice(&text).expect("the golden is JSON")
}

fn simulate(file: &Value) -> Result<Vec<Record>, SimError> {
    let mut scenario = Scenario::parse(file.to_string().as_bytes())?;
    scenario.checksums = Checksums::LeftToPort;
    let outcome = scenario.run(&DiskFiles::all())?;
    Ok(golden::parse(&outcome.capture)?)
}

/// Makes the request's packet that of the capture, as it was before it was marked.
fn put_packet(file: &mut Value, frame: &[u8]) {
    let request = &mut file["commands"][0]["params"]["stream"]["packet"]["binary"];
    let old = STANDARD.decode(request.as_str().expect("a string"));
    assert_ne!(
        old.expect("base64").len(),
        frame.len(),
        "the golden is as it should be"
    );
    let mut packet = frame.to_vec();
    packet[18..20].copy_from_slice(&[0, 1]);
    packet[24..26].fill(0);
    let sum = checksum(&packet[14..34]);
    packet[24..26].copy_from_slice(&sum.to_be_bytes());
    *request = STANDARD.encode(packet).into();
}

/// What follows a packet shorter than the shortest frame is not the profile's: one golden has
/// there what was in memory before. We send zeros, as RFC 894 and RFC 1042 want.
fn with_zero_padding(mut expected: Vec<Record>, file: &Value) -> Vec<Record> {
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
