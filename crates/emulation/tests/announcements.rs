//! What LLDP and CDP say for each form of their init JSON, in the bytes that the reference sent, and
//! what is refused.

mod peers;

use allosaur_engine::time::SECOND;
use peers::{Silence, ask, emulation, pass, sent};
use serde_json::{Value, json};

const RAW: &str = "CANhYmMKBHN5bjE=";

fn first_frame(plugin: &str, init: Value) -> String {
    let mut emulation = emulation(plugin, &[(1, init)]);
    let frames = sent(&mut emulation);
    let [(1, frame)] = &frames[..] else {
        panic!("one frame at port 1, not {frames:?}");
    };
    frame.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn frames_are_those_of_the_reference() {
    let lldp = "0180c200000e02000000000188cc";
    let default = "020704020000000001040405312f3106020078";
    let cdp = "01000ccccccc020000000001";
    for (plugin, init, frame) in [
        ("lldp", json!(null), format!("{lldp}{default}0000")),
        (
            "lldp",
            json!({"options": {"raw": RAW}}),
            format!("{lldp}{default}08036162630a0473796e310000"),
        ),
        (
            "lldp",
            json!({"options": {"raw": [8, 1, 9], "remove_default": true}}),
            format!("{lldp}0801090000"),
        ),
        (
            "lldp",
            json!({"options": {"remove_default": true}}),
            format!("{lldp}0000"),
        ),
        (
            "cdp",
            json!({}),
            format!("{cdp}000caaaa0300000c200002b4fd4b"),
        ),
        (
            "cdp",
            json!({"ver": 1, "options": {"raw": RAW}}),
            format!("{cdp}0017aaaa0300000c200001b4b3c908036162630a0473796e31"),
        ),
        (
            "cdp",
            json!({"cs": 4660}),
            format!("{cdp}000caaaa0300000c200002b41234"),
        ),
    ] {
        assert_eq!(first_frame(plugin, init), frame);
    }
}

#[test]
fn a_client_announces_itself_until_it_goes() {
    let mut emulation = emulation("lldp", &[(1, json!({"timer": 2})), (2, json!({}))]);
    sent(&mut emulation);
    let frames = pass(&mut emulation, 31 * SECOND, &mut Silence);
    let of_first = frames.iter().filter(|(_, frame)| frame[11] == 1);
    let times: Vec<_> = of_first.map(|(now, _)| now / SECOND).collect();
    assert_eq!(times, (1..=15).map(|n| 2 * n).collect::<Vec<_>>());
    assert_eq!(frames.len(), 16);
    let counters = ask(&mut emulation, 31 * SECOND, "lldp_client_cnt", 1);
    assert_eq!(counters, json!({"lldp": {"pktTx": 16}}));
    let params = json!({"tun": {"vport": 1}, "macs": [[2, 0, 0, 0, 0, 1]]});
    emulation
        .handle_request(31 * SECOND, "ctx_client_remove", &params)
        .unwrap();
    let later = pass(&mut emulation, 60 * SECOND, &mut Silence);
    assert_eq!(later.len(), 1);
}

#[test]
fn what_does_not_fit_in_a_frame_is_refused() {
    let mut emulation = emulation("lldp", &[]);
    let cases = [
        ("lldp", json!({}), 1479),
        ("lldp", json!({"remove_default": true}), 1498),
        ("cdp", json!({}), 1488),
    ];
    for (last, (plugin, mut options, room)) in cases.into_iter().enumerate() {
        for (host, bytes) in [(0, room), (1, room + 1)] {
            options["raw"] = json!(vec![0; bytes]);
            let mac = [2, 0, 0, 0, last, host];
            let clients = json!([{"mac": mac, "plugs": {plugin: {"options": options}}}]);
            let params = json!({"tun": {"vport": 1}, "clients": clients});
            let reply = emulation.handle_request(0, "ctx_client_add", &params);
            let frames = sent(&mut emulation);
            if bytes == room {
                assert!(reply.is_ok());
                assert_eq!(frames[0].1.len(), 1514);
            } else {
                let expected = format!("raw has {bytes} bytes; a frame has room for {room}");
                assert!(reply.unwrap_err().to_string().ends_with(&expected));
                assert!(frames.is_empty());
            }
        }
    }
}
