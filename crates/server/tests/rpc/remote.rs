//! Captures that the server reads and sends: who may, when, what is said of it, and what is refused.
//! What leaves the ports is tested in `sim_remote`.

use crate::common::{Started, User, World, capture, start, stream};
use allosaur_engine::time::{MILLISECOND, SECOND};
use serde_json::{Value, json};

const FILE: &str = "captures/talk.pcap";

fn world() -> (World, User) {
    let mut world = World::new(2);
    world.files.0.insert(FILE.to_owned(), capture(6));
    let user = User::with_port(&mut world, "ann", 1);
    (world, user)
}

/// Parameters that send the capture once, as recorded.
fn push(user: &User, more: Value) -> Value {
    let mut params = user.params(json!({
        "pcap_filename": FILE, "ipg_usec": -1, "speedup": 1.0, "count": 1, "duration": -1,
        "is_dual": false, "slave_handler": "", "min_ipg_usec": 0,
    }));
    let object = params.as_object_mut().expect("an object");
    object.extend(more.as_object().expect("an object").clone());
    params
}

fn state(world: &mut World, user: &User, port: u8) -> String {
    let params = json!({"api_h": user.api_h, "port_id": port, "profile_id": "*"});
    let status = world.ok("get_port_status", params);
    status["state"].as_str().expect("a string").to_owned()
}

fn refusal(world: &mut World, user: &User, more: Value) -> String {
    let started = world.started.len();
    let (code, text) = world.refused("push_remote", push(user, more));
    assert!(code == -32000 || code == -32602, "{code} {text}");
    assert_eq!(world.started.len(), started, "something started: {text}");
    text
}

#[test]
fn a_capture_has_events_of_the_port_only_and_a_state_of_its_own() {
    let (mut world, user) = world();
    user.events(&mut world);
    assert_eq!(
        world.ok("push_remote", push(&user, json!({"duration": 2.5}))),
        json!({})
    );
    let [run] = world.started[..] else {
        panic!("{:?}", world.started);
    };
    assert_eq!((run.core, run.port), (0, 0));
    assert_eq!(run.start_at, world.now_ns + MILLISECOND);
    assert_eq!(run.duration, Some(5 * SECOND / 2));
    assert_eq!(state(&mut world, &user, 0), "PCAP_TX");
    assert!(world.control.is_transmitting());
    assert_eq!(user.event_types(&mut world), [0]);
    world.done(run);
    assert_eq!(user.event_types(&mut world), [4]);
    assert_eq!(state(&mut world, &user, 0), "IDLE");
    assert!(!world.control.is_transmitting());
}

#[test]
fn a_large_file_does_not_make_its_own_packets_late() {
    let (mut world, user) = world();
    world.thinking_ns = 300 * MILLISECOND;
    world.ok("push_remote", push(&user, json!({})));
    assert_eq!(world.started[0].start_at, world.now_ns + 301 * MILLISECOND);
}

#[test]
fn a_stop_is_answered_when_it_is_done() {
    for profile in ["_", "*"] {
        let (mut world, user) = world();
        world.ok("push_remote", push(&user, json!({"count": 0})));
        user.events(&mut world);
        world.ok("stop_traffic", user.params(json!({"profile_id": profile})));
        assert_eq!(world.stopped.len(), 1);
        assert_eq!(user.event_types(&mut world), [1]);
        assert_eq!(state(&mut world, &user, 0), "IDLE");
        // Again and again, as before.
        world.ok("push_remote", push(&user, json!({"count": 0})));
    }
}

#[test]
fn a_stop_of_another_profile_leaves_it() {
    let (mut world, user) = world();
    let other = user.params(json!({"profile_id": "b", "stream_id": 1, "stream": stream()}));
    world.ok("add_stream", other);
    world.ok("push_remote", push(&user, json!({})));
    world.ok("stop_traffic", user.params(json!({"profile_id": "b"})));
    assert_eq!(state(&mut world, &user, 0), "PCAP_TX");
}

#[test]
fn a_new_owner_resets_the_port() {
    let (mut world, user) = world();
    world.ok("push_remote", push(&user, json!({"count": 0})));
    let mut other = User::connect(&mut world, "ben", 2);
    other.acquire(&mut world, 0, true).expect("by force");
    assert_eq!(state(&mut world, &other, 0), "PCAP_TX");
    let (_, text) = world.refused("stop_traffic", user.params(json!({})));
    assert!(text.contains("not owned by you"), "{text}");
    world.ok("stop_traffic", other.params(json!({"profile_id": "*"})));
    assert_eq!(state(&mut world, &other, 0), "IDLE");
}

#[test]
fn nothing_else_runs_on_the_port_and_nothing_changes_it() {
    let (mut world, user) = world();
    world.ok(
        "add_stream",
        user.params(json!({"stream_id": 1, "stream": stream()})),
    );
    world.ok("push_remote", push(&user, json!({})));
    let mul = json!({"type": "raw", "op": "abs", "value": 1});
    for (method, params) in [
        ("start_traffic", start("raw", 1.0)),
        ("pause_traffic", json!({})),
        ("resume_traffic", json!({})),
        ("update_traffic", json!({"mul": mul, "force": false})),
        ("pause_streams", json!({"stream_ids": [1]})),
        ("resume_streams", json!({"stream_ids": [1]})),
        (
            "update_streams",
            json!({"stream_ids": [1], "mul": mul, "force": false}),
        ),
    ] {
        let (code, text) = world.refused(method, user.params(params));
        assert_eq!(code, -32000);
        let expected = "state: 'PCAP_TX on profile_id(_). The port sends a capture";
        assert!(text.contains(expected), "{method}: {text}");
    }
    let text = refusal(&mut world, &user, json!({}));
    assert!(
        text.contains("'PCAP_TX on port 0. Stop its traffic first."),
        "{text}"
    );
    let run = world.started[0];
    world.done(run);
    assert_eq!(state(&mut world, &user, 0), "STREAMS");
    // And the other way round.
    world.ok("start_traffic", user.params(start("raw", 1.0)));
    let text = refusal(&mut world, &user, json!({}));
    assert!(
        text.contains("'TX on port 0. Stop its traffic first."),
        "{text}"
    );
}

fn dual(user: &User, more: Value) -> Value {
    let mut params = push(
        user,
        json!({"is_dual": true, "slave_handler": user.handlers[1]}),
    );
    let object = params.as_object_mut().expect("an object");
    object.extend(more.as_object().expect("an object").clone());
    params
}

fn runs_of_both(world: &World) -> [Started; 2] {
    let [first, second] = world.started[..] else {
        panic!("{:?}", world.started);
    };
    assert_eq!((first.port, second.port), (0, 1));
    [first, second]
}

#[test]
fn two_directions_run_on_two_ports_and_two_data_threads() {
    let (mut world, mut user) = world();
    user.acquire(&mut world, 1, false)
        .expect("the port is free");
    user.events(&mut world);
    world.ok("push_remote", dual(&user, json!({})));
    let [first, second] = runs_of_both(&world);
    assert_eq!((first.core, second.core), (0, 1));
    assert_eq!(first.start_at, second.start_at);
    assert_eq!(state(&mut world, &user, 1), "PCAP_TX");
    world.done(second);
    world.done(first);
    let events = user.events(&mut world);
    let events: Vec<_> = events
        .iter()
        .map(|(id, data, _)| (*id, data["port_id"].clone()))
        .collect();
    assert_eq!(
        events,
        [(0, json!(0)), (0, json!(1)), (4, json!(1)), (4, json!(0))]
    );
}

#[test]
fn who_stops_one_port_stops_its_peer_and_who_stops_the_peer_stops_that() {
    let (mut world, mut user) = world();
    user.acquire(&mut world, 1, false)
        .expect("the port is free");
    world.ok("push_remote", dual(&user, json!({})));
    let peer = json!({"api_h": user.api_h, "port_id": 1, "handler": user.handlers[1]});
    world.ok("stop_traffic", peer);
    let states = [0, 1].map(|port| state(&mut world, &user, port));
    assert_eq!(states, ["PCAP_TX", "IDLE"]);
    world.ok("stop_traffic", user.params(json!({})));
    world.ok("push_remote", dual(&user, json!({})));
    world.ok("stop_traffic", user.params(json!({})));
    let states = [0, 1].map(|port| state(&mut world, &user, port));
    assert_eq!(states, ["IDLE", "IDLE"]);
}

#[test]
fn what_the_peer_sends_by_then_is_not_stopped() {
    let (mut world, mut user) = world();
    user.acquire(&mut world, 1, false)
        .expect("the port is free");
    world.ok("push_remote", dual(&user, json!({})));
    let [_, second] = runs_of_both(&world);
    world.done(second);
    let alone = json!({"port_id": 1, "handler": user.handlers[1]});
    world.ok("push_remote", push(&user, alone));
    world.ok("stop_traffic", user.params(json!({})));
    let states = [0, 1].map(|port| state(&mut world, &user, port));
    assert_eq!(states, ["IDLE", "PCAP_TX"]);
}

#[test]
fn a_peer_must_be_there_ours_and_quiet() {
    let (mut world, mut user) = world();
    let text = refusal(&mut world, &user, json!({"is_dual": true}));
    assert!(
        text.contains("field 'slave_handler' does not prove that port 1 is yours"),
        "{text}"
    );
    user.acquire(&mut world, 1, false)
        .expect("the port is free");
    let wrong = json!({"is_dual": true, "slave_handler": user.handlers[0]});
    let text = refusal(&mut world, &user, wrong);
    assert!(
        text.contains("field 'slave_handler' does not prove"),
        "{text}"
    );
    let alone = json!({"port_id": 1, "handler": user.handlers[1]});
    world.ok("push_remote", push(&user, alone));
    let (_, text) = world.refused("push_remote", dual(&user, json!({})));
    assert!(
        text.contains("'PCAP_TX on port 1. Stop its traffic first."),
        "{text}"
    );
    world.files.0.insert("one_way".to_owned(), capture(1));
    let run = world.started[0];
    world.done(run);
    let (_, text) = world.refused(
        "push_remote",
        dual(&user, json!({"pcap_filename": "one_way"})),
    );
    assert!(text.contains("all packets go in one direction"), "{text}");
    assert_eq!(state(&mut world, &user, 0), "IDLE");
}

#[test]
fn files_that_cannot_be_sent_are_named() {
    let (mut world, user) = world();
    let whole = capture(6);
    let (cut, mut raw) = (whole[..whole.len() - 1].to_vec(), whole.clone());
    raw[20] = 101;
    for (name, bytes) in [
        ("empty", Vec::new()),
        ("cut", cut),
        ("raw", raw),
        ("none", capture(0)),
    ] {
        world.files.0.insert(name.to_owned(), bytes);
    }
    for (name, text) in [
        ("missing.pcap", "there is no such file"),
        (
            "empty",
            "this is an empty file, not a capture. Give a pcap, pcapng or ERF file",
        ),
        (
            "cut",
            "record 5, byte 404: the file ends inside the data of a record",
        ),
        (
            "raw",
            "packet 0 has link type raw ip: only ethernet can be sent",
        ),
        ("none", "the capture holds no packets"),
    ] {
        let said = refusal(&mut world, &user, json!({"pcap_filename": name}));
        let start = format!("field 'pcap_filename' is '{name}': ");
        assert!(said.starts_with(&start) && said.contains(text), "{said}");
    }
    let forever = json!({"count": 0, "ipg_usec": 0});
    let said = refusal(&mut world, &user, forever);
    assert!(
        said.contains("again and again forever: give 'ipg_usec'"),
        "{said}"
    );
    assert_eq!(state(&mut world, &user, 0), "IDLE");
}

#[test]
fn a_gateway_that_is_not_known_yet_must_not_be_needed() {
    let (mut world, user) = world();
    let layer_3 = json!({"src_addr": "192.0.2.1", "dst_addr": "192.0.2.2"});
    world.ok("set_l3", user.params(layer_3));
    let text = refusal(&mut world, &user, json!({}));
    assert!(
        text.contains("the MAC address of 192.0.2.2, the gateway of port 0"),
        "{text}"
    );
    world.ok("push_remote", push(&user, json!({"count": 0x4000_0001})));
}

#[test]
fn a_port_must_be_owned_and_there() {
    let (mut world, user) = world();
    let not_mine = json!({"port_id": 1, "handler": "zzzzzzzz"});
    let text = refusal(&mut world, &user, not_mine);
    assert!(text.contains("please acquire the port"), "{text}");
    let text = refusal(&mut world, &user, json!({"port_id": 9}));
    assert!(text.contains("invalid port id 9"), "{text}");
}
