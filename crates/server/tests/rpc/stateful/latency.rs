//! Latency beside flows: echo streams, and what the add-on of programs counts.

use allosaur_engine::time::{MICROSECOND, MILLISECOND, Nanos, SECOND};
use allosaur_packet::frame::{self, Transport};
use allosaur_packet::link::ethernet::EthernetView;
use serde_json::{Value, json};

use super::world::{Owned, profile, start_params};
use crate::common::transcripts::lines;

/// A frame on its way: from which port, and its bytes.
type Frame = (u8, Vec<u8>);

/// Lets time pass in steps of 1 ms, in which the receive thread sends; frames arrive at the other
/// port of their pair 40 µs later. Gives the echo messages.
fn carry(server: &mut Owned, span: Nanos) -> Vec<Frame> {
    let (from, mut all) = (server.world.now_ns, Vec::new());
    let mut observer = server.world.watchers.0.borrow_mut();
    for now in (from..from + span).step_by(MILLISECOND as usize) {
        // Those that ask, and then those that answer.
        for turn in 0..2 {
            let now = now + turn * 40 * MICROSECOND;
            let mut sent = Vec::new();
            observer.poll_transmit(now, |port, frame| {
                sent.push((port, frame.to_vec()));
                true
            });
            for (port, frame) in &sent {
                observer.handle_received(now + 40 * MICROSECOND, port ^ 1, frame);
            }
            all.extend(sent.into_iter().filter(is_echo));
        }
    }
    server.world.now_ns = from + span;
    all
}

fn is_echo((_, frame): &Frame) -> bool {
    let transport = frame::parse(frame).transport;
    matches!(transport, Transport::Icmpv4 | Transport::Icmpv6)
}

fn terms(others: Value) -> Value {
    let mut params = json!({"mult": 100, "src_addr": "16.0.0.1", "dst_addr": "48.0.0.1",
        "dual_port_addr": "1.0.0.0", "port_s_offset": "1.0.0.0", "mask": 0x7fff_ffff_u32});
    for (name, value) in others.as_object().expect("an object") {
        params[name] = value.clone();
    }
    params
}

fn stats(server: &mut Owned) -> Value {
    server.ok("get_latency_stats", json!({}))["data"].take()
}

/// The addresses of a frame.
fn addresses(frame: &[u8]) -> (String, String) {
    let layout = frame::parse(frame);
    let network = &frame[usize::from(layout.network_offset)..];
    if layout.network == frame::Network::Ipv6 {
        let ip = allosaur_packet::network::ipv6::Ipv6View::new_checked(network).expect("IPv6");
        return (ip.source().to_string(), ip.destination().to_string());
    }
    let ip = allosaur_packet::network::ipv4::Ipv4View::new_checked(network).expect("IPv4");
    (ip.source().to_string(), ip.destination().to_string())
}

#[test]
fn latency_is_measured_from_its_start_to_its_end() {
    let mut server = Owned::new(2);
    let none = json!({"cpu_util": 0.0, "epoch": 0, "unknown": 0});
    assert_eq!(stats(&mut server), none);
    assert_eq!(server.ok("start_latency", terms(json!({}))), Value::Null);
    let frames = carry(&mut server, SECOND);
    assert_eq!(frames.len(), 200);
    let ends = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(addresses(&frames[0].1), ends("16.0.0.1", "48.0.0.1"));
    assert_eq!(addresses(&frames[1].1), ends("48.0.0.1", "16.0.0.1"));
    let data = stats(&mut server);
    assert_eq!(data["epoch"], 1);
    for port in ["port-0", "port-1"] {
        let (hist, stats) = (&data[port]["hist"], &data[port]["stats"]);
        assert_eq!(
            (&stats["m_tx_pkt_ok"], &stats["m_pkt_ok"]),
            (&json!(100), &json!(100))
        );
        assert_eq!(
            (&hist["min_usec"], &hist["max_usec"]),
            (&json!(40), &json!(40))
        );
        assert_eq!(
            (&hist["cnt"], &hist["high_cnt"]),
            (&json!(100), &json!(100))
        );
        assert_eq!(hist["histogram"], json!([{"key": 40, "val": 100}]));
        assert_eq!((&hist["s_avg"], &hist["p99"]), (&json!(40.0), &json!(40.0)));
        assert_eq!(
            (&stats["m_seq_error"], &stats["dropped"]),
            (&json!(0), &json!(0))
        );
    }
    server.ok("update_latency", json!({"mult": 10}));
    assert!((18..=22).contains(&carry(&mut server, SECOND).len()));
    assert_eq!(
        server.ok("stop_latency", json!({})),
        json!({"stopped": true})
    );
    assert_eq!(carry(&mut server, SECOND).len(), 0);
    assert!(stats(&mut server)["port-0"].is_object(), "it is still told");
    // Again, and nothing of the last time is left.
    server.ok("start_latency", terms(json!({"mask": 2})));
    assert_eq!(carry(&mut server, SECOND).len(), 0);
    let data = stats(&mut server);
    assert_eq!((&data["epoch"], &data["port-0"]), (&json!(2), &Value::Null));
    assert_eq!(data["port-1"]["stats"]["m_pkt_ok"], 0);
}

#[test]
fn who_stops_what_does_not_run_has_it_stopped() {
    let mut server = Owned::new(1);
    assert_eq!(
        server.ok("stop_latency", json!({})),
        json!({"stopped": true})
    );
    let (code, text) = server.refused("update_latency", json!({"mult": 5}));
    assert_eq!(code, -32000);
    assert!(text.contains("start_latency first"), "{text}");
}

#[test]
fn what_is_wrong_is_named_and_nothing_starts() {
    let mut server = Owned::new(1);
    let cases = [
        (
            json!({"mult": 0}),
            ["field 'mult' is 0", "packets per second"],
        ),
        (
            json!({"mult": -1}),
            ["field 'mult' is -1", "packets per second"],
        ),
        (
            json!({"mult": 2e6}),
            ["field 'mult' is 2000000", "to 1000000"],
        ),
        (json!({"mult": "x"}), ["mult", "double"]),
        (
            json!({"src_addr": "16.0.0"}),
            ["field 'src_addr' is '16.0.0'", "give an IPv4"],
        ),
        (
            json!({"dst_addr": "0.0.0.0"}),
            ["'dst_addr' is '0.0.0.0'", "no host"],
        ),
        (json!({"dst_addr": "224.0.0.1"}), ["'dst_addr'", "no host"]),
        (
            json!({"dst_addr": "::1"}),
            ["'dst_addr' is ::1", "both IPv6"],
        ),
        (
            json!({"dual_port_addr": "one"}),
            ["'dual_port_addr' is 'one'", "1.0.0.0"],
        ),
        (json!({"port_s_offset": 7}), ["port_s_offset", "string"]),
        (json!({"mask": 0}), ["field 'mask' is 0x0", "ports [0, 1]"]),
        (json!({"mask": -1}), ["mask", "uint32"]),
    ];
    for (others, words) in cases {
        let (code, text) = server.refused("start_latency", terms(others.clone()));
        assert!(code == -32000 || code == -32602, "{others}: {code}");
        for word in words {
            assert!(text.contains(word), "{others}: {text}");
        }
    }
    assert_eq!(stats(&mut server)["epoch"], 0);
    assert_eq!(carry(&mut server, SECOND).len(), 0);
    server.ok("start_latency", terms(json!({})));
    let (_, text) = server.refused("start_latency", terms(json!({})));
    assert!(text.contains("stop_latency first"), "{text}");
}

#[test]
fn only_the_owner_measures() {
    let mut server = Owned::new(1);
    server.handler = "another".to_owned();
    for method in ["start_latency", "update_latency", "stop_latency"] {
        let (_, text) = server.refused(method, terms(json!({})));
        assert!(text.contains("acquire"), "{method}: {text}");
    }
    assert_eq!(stats(&mut server)["epoch"], 0, "anybody may read");
}

#[test]
fn requests_go_where_flows_go() {
    let mut server = Owned::new(1);
    let handler = server.ports["0"].clone();
    let gateway = json!({"port_id": 0, "handler": handler, "src_addr": "1.1.1.1",
        "dst_addr": "1.1.1.9", "block": false});
    server.ok("set_l3", gateway.clone());
    let (_, text) = server.refused("start_latency", terms(json!({})));
    assert!(
        text.contains("port 0: the MAC address of 1.1.1.9"),
        "{text}"
    );
    let mut known = gateway;
    known["resolved_mac"] = json!("02:00:00:00:99:99");
    server.ok("set_l3", known);
    let vlan = json!({"port_id": 0, "handler": server.ports["0"], "vlan": [100]});
    server.ok("set_vlan", vlan);
    server.ok("start_latency", terms(json!({})));
    let frames = carry(&mut server, 10 * MILLISECOND);
    let (port, request) = &frames[0];
    let ethernet = EthernetView::new_checked(request).expect("a frame");
    assert_eq!(
        (*port, ethernet.destination().0),
        (0, [2, 0, 0, 0, 0x99, 0x99])
    );
    assert_eq!(frame::parse(request).vlans(), [100]);
    // Back to where it came from.
    let answer = EthernetView::new_checked(&frames[1].1).expect("a frame");
    assert_eq!(answer.destination(), ethernet.source());
    assert_eq!(frame::parse(&frames[1].1).vlans(), [100]);
}

#[test]
fn a_profile_brings_its_latency_with_it() {
    for (ipv6, client, host) in [
        (false, "16.0.0.0", "48.0.0.0"),
        (true, "::1000:0", "::3000:0"),
    ] {
        let mut server = Owned::new(2);
        server.load("_", &profile(&[]));
        server.start("_", json!({"latency_pps": 100, "ipv6": ipv6}));
        let frames = carry(&mut server, 100 * MILLISECOND);
        assert_eq!(frames.len(), 20);
        let (from, to) = addresses(&frames[0].1);
        assert!(from.ends_with(client) && to.ends_with(host), "{from} {to}");
        // Another profile may run, but not with latency of its own.
        server.load("other", &profile(&["x"]));
        server.told_of();
        server.start("other", json!({"latency_pps": 5}));
        let events = server.events();
        let (_, last) = events.last().expect("it went back");
        assert_eq!(last["state"], 1);
        let error = events.iter().find_map(|(_, data)| data.get("error"));
        let error = error.and_then(Value::as_str).expect("an error is told");
        assert!(error.contains("with profile '_'"), "{error}");
        server.ok("stop", json!({"profile_id": "_"}));
        assert_eq!(carry(&mut server, 100 * MILLISECOND).len(), 0);
        assert_eq!(stats(&mut server)["port-0"]["stats"]["m_pkt_ok"], 10);
    }
}

#[test]
fn latency_ends_with_its_profile() {
    let mut server = Owned::new(1);
    server.load("_", &profile(&[]));
    server.start("_", json!({"latency_pps": 100, "duration": 0.5}));
    assert_eq!(
        carry(&mut server, SECOND).len(),
        100,
        "it ends with the duration"
    );
    server.end_all(server.runs()[0]);
    // Before the duration, when the run ends for another reason.
    server.start("_", json!({"latency_pps": 100, "duration": 100}));
    assert_ne!(carry(&mut server, 100 * MILLISECOND).len(), 0);
    server.end_all(*server.runs().last().expect("it runs"));
    server.world.pass(SECOND / 2);
    assert_eq!(carry(&mut server, 100 * MILLISECOND).len(), 0);
    // What was started by itself does not end with a profile.
    server.ok("start_latency", terms(json!({})));
    server.start("_", json!({}));
    server.ok("stop", json!({"profile_id": "_"}));
    assert_ne!(carry(&mut server, 100 * MILLISECOND).len(), 0);
}

#[test]
fn too_high_a_rate_starts_nothing() {
    let mut server = Owned::new(1);
    server.load("_", &profile(&[]));
    server.told_of();
    server.ok(
        "start",
        start_params("_", json!({"latency_pps": 1_000_001})),
    );
    let events = server.events();
    let error = events.iter().find_map(|(_, data)| data.get("error"));
    let error = error.and_then(Value::as_str).expect("an error is told");
    assert!(error.contains("'latency_pps' is 1000001"), "{error}");
    assert!(server.runs().is_empty());
}

/// Two groups, of which the second measures in its messages.
fn measured() -> String {
    let mut profile: Value = serde_json::from_str(&profile(&["web", "probe"])).expect("JSON");
    let programs = profile["program_list"].as_array_mut().expect("a list");
    let message =
        |commands: Value| json!({"commands": commands, "stream": false, "addon": "latency"});
    let (send, wait) = (
        json!({"name": "tx_msg", "buf_index": 0}),
        json!({"name": "rx_msg", "min_pkts": 1}),
    );
    programs.push(message(json!([send, wait])));
    programs.push(message(json!([wait, send])));
    profile["templates"][1]["client_template"]["program_index"] = json!(2);
    profile["templates"][1]["server_template"]["program_index"] = json!(3);
    profile.to_string()
}

/// A server on which that runs, with something counted.
fn with_measured() -> Owned {
    let mut server = Owned::new(2);
    server.load("_", &measured());
    server.start("_", json!({}));
    let run = server.runs()[0];
    for core in 0..2 {
        server.publish(core, run, 2, |group| {
            let latency = &mut group[0].flows.latency;
            latency.min_time = 70 + u64::try_from(core).expect("small");
            latency.max_time = 90 + u64::try_from(core).expect("small");
            (latency.measure_cnt, latency.total_time, latency.total_pkts) = (5, 400, 6);
            group[1].flows.latency.total_pkts = 7;
        });
    }
    server
}

#[test]
fn groups_with_the_add_on_have_its_counters() {
    let mut server = with_measured();
    let asked = json!({"profile_id": "_", "initialized": false});
    let names = server.ok("get_tg_names", asked);
    let described = &names["tg_addon_desc"];
    assert_eq!((&described["0"], &described["1"]), (&json!([]), &json!([])));
    let described = described["2"].as_array().expect("a list");
    let rows: Vec<_> = described.iter().map(|row| row["name"].clone()).collect();
    let expected = [
        "min_time",
        "max_time",
        "measure_cnt",
        "total_time",
        "total_pkts",
    ];
    assert_eq!(rows, expected);
    let table = server.ok("get_counter_desc", json!({"profile_id": "_"}));
    let first = table["data"].as_array().expect("a list").len();
    assert_eq!(described[0]["id"], first);

    let asked = json!({"profile_id": "_", "epoch": names["epoch"], "tg_ids": [1, 2]});
    let values = server.ok("get_tg_id_stats", asked);
    let value = |side: &str, n: usize| values["2"][side][(first + n).to_string()].clone();
    let client: Vec<Value> = (0..5).map(|n| value("client", n)).collect();
    assert_eq!(client, [70, 91, 10, 800, 12].map(Value::from));
    assert_eq!(
        (value("server", 4), value("server", 0)),
        (json!(14), Value::Null)
    );
    assert_eq!(values["1"]["client"].get(first.to_string()), None);
}

#[test]
fn profiles_with_the_add_on_have_dynamic_counters() {
    let none = Owned::new(1).ok("get_dynamic_counter_desc", json!({"is_sum": true}));
    assert_eq!((&none["epoch"], &none["data"]), (&json!(0), &json!([])));
    let mut server = with_measured();
    let totals = [
        (json!({"profile_id": "_"}), "get_dynamic_counter_values"),
        (json!({"is_sum": true}), "get_total_dynamic_counter_values"),
    ];
    for (asked, read) in totals {
        let stale = json!({"profile_id": "_", "epoch": 0});
        assert!(server.ok(read, stale)["epoch_err"].is_string());
        let described = server.ok("get_dynamic_counter_desc", asked);
        assert_eq!(described["data"].as_array().map(Vec::len), Some(5));
        let asked = json!({"profile_id": "_", "epoch": described["epoch"]});
        let values = server.ok(read, asked);
        let expected = json!({"0": 70, "1": 91, "2": 10, "3": 800, "4": 12});
        assert_eq!(
            (&values["client"], &values["server"]),
            (&expected, &json!({"4": 14}))
        );
    }
}

/// The kinds of all values in an object, by path.
fn kinds(value: &Value, path: &str, found: &mut Vec<(String, &'static str)>) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    };
    found.push((path.to_owned(), kind));
    for (name, value) in value.as_object().into_iter().flatten() {
        kinds(value, &format!("{path}.{name}"), found);
    }
}

#[test]
fn the_answer_has_the_shape_of_that_of_trex() {
    let lines = lines("astf_a04_latency");
    let with = lines
        .iter()
        .filter(|line| line["msg"]["result"]["data"]["port-0"].is_object());
    let mut server = Owned::new(1);
    server.ok("start_latency", terms(json!({})));
    carry(&mut server, SECOND);
    let (mut own, mut compared) = (Vec::new(), 0);
    kinds(&server.ok("get_latency_stats", json!({})), "", &mut own);
    for line in with {
        let mut theirs = Vec::new();
        kinds(&line["msg"]["result"], "", &mut theirs);
        for one in &theirs {
            assert!(own.contains(one), "{one:?}");
        }
        compared += 1;
    }
    assert!(compared > 0);
}
