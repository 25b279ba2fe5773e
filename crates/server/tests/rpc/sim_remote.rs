//! Captures that are sent, in the simulator: what leaves the ports, and when.

use crate::common::MapFiles;
use allosaur_packet::file;
use allosaur_server::sim::{DESTINATION_MAC, SOURCE_MAC, Scenario, SimError};
use serde_json::{Value, json};

const FILE: &str = "talk.pcap";

/// What leaves all ports: the time in microseconds, the packet's number, destination, source.
type Sent = Vec<(u64, u8, [u8; 6], [u8; 6])>;

fn simulate(params: Value, limit: u64) -> Result<Sent, SimError> {
    let mut files = MapFiles::default();
    files.0.insert(FILE.to_owned(), crate::common::capture(4));
    let mut all = json!({
        "port_id": 0, "pcap_filename": FILE, "ipg_usec": -1, "speedup": 1.0, "count": 1,
        "duration": -1,
    });
    let object = all.as_object_mut().expect("an object");
    object.extend(params.as_object().expect("an object").clone());
    let scenario = Scenario {
        commands: vec![json!({"method": "push_remote", "params": all})],
        limit_packets: Some(limit),
        cores: Some(2),
        ..Scenario::default()
    };
    let outcome = scenario.run(&files)?;
    let sent = file::read(&outcome.capture).expect("we wrote it").records;
    let mac = |bytes: &[u8]| bytes.try_into().expect("six bytes");
    let packets = sent.iter().map(|record| {
        let data = record.data;
        (
            record.time_ns / 1000,
            data[59],
            mac(&data[..6]),
            mac(&data[6..12]),
        )
    });
    Ok(packets.collect())
}

fn times_and_numbers(params: Value) -> Vec<(u64, u8)> {
    let sent = simulate(params, 100).expect("the capture is right");
    sent.into_iter()
        .map(|(at, number, ..)| (at, number))
        .collect()
}

#[test]
fn packets_leave_as_recorded_with_the_port_s_addresses() {
    let sent = simulate(json!({}), 100).expect("the capture is right");
    let macs = |at, number| (at, number, DESTINATION_MAC, SOURCE_MAC);
    assert_eq!(
        sent,
        [macs(0, 0), macs(1_000, 1), macs(2_000, 2), macs(3_000, 3)]
    );
}

#[test]
fn flags_in_count_keep_the_addresses_of_the_capture() {
    let host = |number| [2, 0, 0, 0, 0, number];
    let first = |count: u32| {
        let sent = simulate(json!({"count": count}), 100).expect("the capture is right");
        (sent[0].2, sent[0].3)
    };
    assert_eq!(first(0x8000_0001), (DESTINATION_MAC, host(0)));
    assert_eq!(first(0x4000_0001), (host(1), SOURCE_MAC));
    assert_eq!(first(0xc000_0001), (host(1), host(0)));
}

#[test]
fn gaps_rounds_and_the_end_are_as_asked() {
    let fixed = times_and_numbers(json!({"ipg_usec": 100, "speedup": 2, "count": 2}));
    assert_eq!(fixed.len(), 8);
    assert_eq!(fixed[7], (350, 3));
    let raised = times_and_numbers(json!({"speedup": 4, "min_ipg_usec": 600}));
    assert_eq!(raised.last(), Some(&(1_800, 3)));
    let ended = times_and_numbers(json!({"ipg_usec": 100_000, "count": 0, "duration": 1.0}));
    assert_eq!((ended.len(), ended[9]), (10, (900_000, 1)));
    let limited = simulate(json!({"ipg_usec": 1, "count": 0}), 50);
    assert_eq!(limited.expect("it is right").len(), 50);
}

#[test]
fn two_directions_leave_two_ports_in_one_time() {
    let dual = times_and_numbers(json!({"is_dual": true}));
    assert_eq!(dual, [(0, 0), (1_000, 1), (2_000, 2), (3_000, 3)]);
}

#[test]
fn a_refusal_names_method_and_file() {
    let refused = simulate(json!({"pcap_filename": "other.pcap"}), 100);
    let text = refused.expect_err("there is none").to_string();
    assert!(
        text.starts_with("push_remote: field 'pcap_filename' is 'other.pcap'"),
        "{text}"
    );
}
