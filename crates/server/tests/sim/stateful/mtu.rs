//! How long frames may be: what the profile asks for, within the MTU of the ports.

use allosaur_engine::template::Side;
use allosaur_engine::time::Nanos;
use allosaur_server::sim::stateful::{
    LinkWatch, MTU_MAX, Outcome, Passing, Plan, SimSettings, compile, simulate,
};
use serde_json::{Value, json};

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;

/// The longest frame that clients and servers sent.
#[derive(Default)]
struct Longest([usize; 2]);

impl LinkWatch for Longest {
    fn see(&mut self, _: Nanos, side: Side, passing: Passing, frame: &[u8]) {
        if passing == Passing::Leaves {
            let longest = &mut self.0[usize::from(side == Side::Server)];
            *longest = frame.len().max(*longest);
        }
    }
}

/// A profile whose server sends `bytes`, as a stream or in one message.
fn profile(is_stream: bool, bytes: u32, tunables: &Value) -> String {
    let (send, receive, count) = match is_stream {
        true => ("tx", "rx", "min_bytes"),
        false => ("tx_msg", "rx_msg", "min_pkts"),
    };
    let count_of = |bytes: u32| if is_stream { bytes } else { 1 };
    let pool = |start: &str, end: &str, dir: &str| json!({"ip_start": start, "ip_end": end, "distribution": "seq", "dir": dir, "ip_offset": "1.0.0.0"});
    let program = |commands: Value| json!({"commands": commands, "stream": is_stream});
    json!({
        "buf_list": ["YXNr", {"base": "eA==", "size": bytes, "fill": "eA=="}],
        "ip_gen_dist_list": [
            pool("16.0.0.1", "16.0.0.9", "c"), pool("48.0.0.1", "48.0.0.9", "s"),
        ],
        "program_list": [
            program(json!([{"name": send, "buf_index": 0}, {"name": receive, count: count_of(bytes)}])),
            program(json!([{"name": receive, count: count_of(3)}, {"name": send, "buf_index": 1}])),
        ],
        "templates": [{
            "client_template": {
                "program_index": 0, "port": 80, "cps": 1.0, "cluster": {},
                "ip_gen": {"dist_client": {"index": 0}, "dist_server": {"index": 1}},
            },
            "server_template": {"program_index": 1, "assoc": [{"port": 80}]},
        }],
        "c_glob_info": tunables,
        "s_glob_info": tunables,
    })
    .to_string()
}

fn run(mtu: u16, text: &str) -> (Outcome, Longest) {
    let settings = SimSettings {
        mtu,
        ..SimSettings::perfect(1, 1_000)
    };
    let plan = Plan::basic(settings);
    let prepared = compile(text, &plan).expect("the profile is right");
    let mut longest = Longest::default();
    let outcome = simulate(&prepared, &plan, &mut longest);
    (outcome, longest)
}

#[test]
fn segments_are_as_long_as_the_profile_says() {
    let jumbo = profile(true, 100_000, &json!({"tcp": {"mss": 8000}}));
    let (outcome, longest) = run(MTU_MAX, &jumbo);
    assert!(outcome.verdict.ok, "{:?}", outcome.verdict.problems);
    // The timestamps are part of the 8000.
    assert_eq!(longest.0[1], ETHERNET + 20 + 20 + 8000);
    let usual = profile(true, 100_000, &json!({}));
    let (_, longest) = run(MTU_MAX, &usual);
    assert_eq!(longest.0[1], 1514, "what TRex sends when nothing is set");
}

#[test]
fn a_smaller_mtu_cuts_segments() {
    let jumbo = profile(true, 100_000, &json!({"tcp": {"mss": 8000}}));
    for mtu in [1500, 576] {
        let (outcome, longest) = run(mtu, &jumbo);
        assert!(outcome.verdict.ok, "{:?}", outcome.verdict.problems);
        assert_eq!(longest.0[1], ETHERNET + usize::from(mtu));
    }
}

#[test]
fn messages_go_that_fit_and_others_are_counted() {
    let most = u32::from(MTU_MAX) - 20 - 8;
    let (outcome, longest) = run(MTU_MAX, &profile(false, most, &json!({})));
    assert!(outcome.verdict.ok, "{:?}", outcome.verdict.problems);
    assert_eq!(longest.0[1], ETHERNET + usize::from(MTU_MAX));
    for (mtu, bytes) in [(MTU_MAX, most + 1), (1500, 9000)] {
        let (outcome, _) = run(mtu, &profile(false, bytes, &json!({})));
        assert!(!outcome.verdict.ok);
    }
}
