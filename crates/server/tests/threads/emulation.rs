//! Emulated clients as a tap on ports, in virtual time.

use allosaur_emulation::Settings;
use allosaur_emulation::rpc::call::RpcCall;
use allosaur_engine::time::{Nanos, SECOND};
use allosaur_engine::transmit::PortIndex;
use allosaur_server::rx_taps::emulation::EmulatedClients;
use allosaur_server::rx_taps::{
    EmulationAnswer, EmulationRequest, PortRequest, RxTaps, ServiceMask, ServiceMode,
};
use serde_json::{Value, json};

const PORTS: usize = 2;

/// Taps on two ports, with emulated clients; none are there yet.
fn taps() -> RxTaps {
    let clients = EmulatedClients::new(Settings::default(), PORTS, 0);
    RxTaps::new(PORTS).with(Box::new(clients))
}

/// Does a call of a number, or a part of one.
fn handle(taps: &mut RxTaps, now: Nanos, call: RpcCall, number: u64) -> Result<Value, String> {
    let request = EmulationRequest::Call {
        call,
        number,
        usage: None,
    };
    match EmulationAnswer::try_from(taps.handle(request, now)) {
        Ok(EmulationAnswer::Called(reply)) => reply.map_err(|error| error.to_string()),
        other => panic!("{other:?}"),
    }
}

fn ask(taps: &mut RxTaps, now: Nanos, method: &str, mut params: Value) -> Value {
    let mut ask = |method: &str, params: Value| {
        let reply = handle(taps, now, RpcCall::new(method, params), 0);
        reply.unwrap_or_else(|error| panic!("{error}"))
    };
    let version = json!({"name": "EMU", "major": 1, "minor": 1});
    params["api_h"] = ask("api_sync_v2", version)["api_h"].take();
    ask(method, params)
}

/// Adds clients with ARP to a port, with addresses from 10.0.0.0 on.
fn add(taps: &mut RxTaps, now: Nanos, port: u16, clients: u16) {
    let tunnels = json!([{"vport": port}]);
    ask(taps, now, "ctx_add", json!({"tunnels": tunnels}));
    let clients: Vec<Value> = (0..clients).map(client).collect();
    let params = json!({"tun": {"vport": port}, "clients": clients});
    ask(taps, now, "ctx_client_add", params);
}

fn client(number: u16) -> Value {
    let [high, low] = number.to_be_bytes();
    json!({
        "mac": [2, 0, 0, 0, high, low], "ipv4": [10, 0, high, low],
        "ipv4_dg": [10, 1, 0, 0], "plugs": {"arp": {}},
    })
}

fn sent(taps: &mut RxTaps, now: Nanos) -> Vec<(PortIndex, Vec<u8>)> {
    let mut sent = Vec::new();
    taps.poll_transmit(now, |port, frame| {
        sent.push((port, frame.to_vec()));
        true
    });
    sent
}

/// All that is sent now, turn by turn.
fn all_sent(taps: &mut RxTaps, now: Nanos) -> Vec<(PortIndex, Vec<u8>)> {
    let mut all = Vec::new();
    while taps.poll_timeout().is_some_and(|at| at <= now) {
        all.extend(sent(taps, now));
    }
    all
}

/// Asks for the MAC address of 10.0.0.`last`.
fn arp_request(last: u8) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 9, 9, 9, 0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1]);
    frame.extend([
        2, 0, 0, 9, 9, 9, 10, 0, 0, 99, 0, 0, 0, 0, 0, 0, 10, 0, 0, last,
    ]);
    frame.resize(60, 0);
    frame
}

#[test]
fn a_port_without_clients_is_not_looked_at() {
    let mut taps = taps();
    assert!(taps.is_idle() && taps.watched_ports() == 0);
    assert_eq!(taps.poll_timeout(), None);
    add(&mut taps, 5, 1, 1);
    assert!(!taps.watches(0) && taps.watches(1));
    // They want what concerns them, not all that flows receive.
    assert_eq!(taps.capturing_ports(), 0);
}

#[test]
fn they_answer_on_their_port_whatever_its_service_mode_shows() {
    let mut taps = taps();
    add(&mut taps, 0, 1, 3);
    all_sent(&mut taps, 0);
    let mode = ServiceMode::Filtered(ServiceMask(ServiceMask::BGP));
    taps.handle(PortRequest::SetService { port: 1, mode }, 0);
    for (port, last, answers) in [(1, 2, 1), (1, 7, 0), (0, 2, 0)] {
        taps.handle_received(10, port, &arp_request(last));
        let answered = all_sent(&mut taps, 10);
        assert_eq!(answered.len(), answers, "10.0.0.{last} at port {port}");
        for (at, frame) in answered {
            assert_eq!(
                (at, &frame[..12]),
                (1, &[2, 0, 0, 9, 9, 9, 2, 0, 0, 0, 0, 2][..])
            );
        }
    }
}

#[test]
fn what_many_send_at_once_leaves_in_turns_and_whole() {
    let mut taps = taps();
    add(&mut taps, 0, 0, 300);
    let first = sent(&mut taps, 0);
    assert_eq!(first.len(), 256);
    // More waits, and other work comes between.
    assert_eq!(taps.poll_timeout(), Some(0));
    let rest = all_sent(&mut taps, 0);
    let announced = |frame: &[u8]| frame[28..32] == frame[38..42];
    let frames = first
        .iter()
        .chain(&rest)
        .filter(|(_, frame)| announced(frame));
    assert_eq!(frames.count(), 300);
    assert!(taps.poll_timeout().is_some_and(|at| at > 0));
}

#[test]
fn timers_are_kept_without_frames_that_arrive() {
    let mut taps = taps();
    add(&mut taps, 0, 0, 1);
    all_sent(&mut taps, 0);
    let at = taps.poll_timeout().expect("the gateway is asked for again");
    assert!((1..=2 * SECOND).contains(&at));
    assert!(!all_sent(&mut taps, at).is_empty() || taps.poll_timeout() > Some(at));
    let until = (0..20).find_map(|_| {
        let at = taps.poll_timeout()?;
        (!all_sent(&mut taps, at).is_empty()).then_some(at)
    });
    assert!(until.is_some(), "no query was repeated");
    // Nobody stays awake for it.
    assert!(taps.poll_timeout().is_some());
    assert_eq!(taps.poll_urgent_timeout(), None);
}

#[test]
fn timers_of_many_wake_a_thousand_times_a_second_at_most() {
    let mut taps = taps();
    add(&mut taps, 0, 0, 0);
    for number in 0..100 {
        let params = json!({"tun": {"vport": 0}, "clients": [client(number)]});
        ask(
            &mut taps,
            7_777 * Nanos::from(number),
            "ctx_client_add",
            params,
        );
    }
    all_sent(&mut taps, SECOND);
    let mut wakes = 0;
    let mut frames = 0;
    while let Some(at) = taps.poll_timeout().filter(|at| *at < 61 * SECOND) {
        frames += all_sent(&mut taps, at).len();
        wakes += 1;
    }
    // All ask once more after a minute, 7.777 µs one after the other.
    assert!(
        frames >= 100 && wakes < 30,
        "{frames} frames, {wakes} wakes"
    );
}

#[test]
fn clients_of_a_port_that_is_not_there_send_nothing() {
    let mut taps = taps();
    add(&mut taps, 0, 77, 5);
    assert_eq!(taps.watched_ports(), 0);
    assert_eq!(all_sent(&mut taps, 0), []);
    add(&mut taps, 0, 0, 1);
    assert!(!all_sent(&mut taps, 0).is_empty());
}

#[test]
fn an_emulation_that_is_told_to_end_is_as_if_started_again() {
    let mut taps = taps();
    add(&mut taps, 0, 0, 1);
    ask(&mut taps, 0, "shutdown", json!({"time": 2}));
    all_sent(&mut taps, SECOND);
    let info =
        |taps: &mut RxTaps, now| ask(taps, now, "ctx_iter", json!({"reset": true, "count": 9}));
    let namespaces = |found: &Value| found["data"].as_array().map_or(0, Vec::len);
    assert_eq!(namespaces(&info(&mut taps, SECOND)), 1);
    all_sent(&mut taps, 2 * SECOND);
    assert_eq!(namespaces(&info(&mut taps, 2 * SECOND)), 0);
    assert!(!taps.watches(0));
}

#[test]
fn parts_behind_one_that_failed_are_not_done() {
    let mut taps = taps();
    add(&mut taps, 0, 0, 0);
    let version = json!({"name": "EMU", "major": 1, "minor": 1});
    let handle_of_api = ask(&mut taps, 0, "api_sync_v2", version)["api_h"].take();
    // The third is there twice.
    let clients: Vec<Value> = [0, 1, 2, 3, 2, 4, 5].map(client).to_vec();
    let params = json!({"api_h": handle_of_api, "tun": {"vport": 0}, "clients": clients});
    let mut call = RpcCall::new("ctx_client_add", params);
    let mut outcomes = Vec::new();
    while let Some(part) = call.split_off(2) {
        outcomes.push(handle(&mut taps, 0, part, 1).is_ok());
        // Frames are taken and sent in between, and other calls are done, which may fail, too.
        all_sent(&mut taps, 0);
        let other = RpcCall::new("no_such", Value::Null);
        assert!(handle(&mut taps, 0, other, 2 + outcomes.len() as u64).is_err());
    }
    // What is not done is no error.
    outcomes.push(handle(&mut taps, 0, call, 1).is_ok());
    assert_eq!(outcomes, [true, true, false, true]);
    let info = json!({"tunnels": [{"vport": 0}]});
    let info = ask(&mut taps, 0, "ctx_get_info", info);
    assert_eq!(info[0]["active_clients"], 4);
}

#[test]
fn a_port_that_takes_nothing_holds_up_nobody() {
    let mut taps = taps();
    add(&mut taps, 0, 0, 300);
    for _ in 0..10 {
        taps.poll_transmit(0, |_, _| false);
    }
    assert!(taps.poll_timeout().is_some_and(|at| at > 0));
}
