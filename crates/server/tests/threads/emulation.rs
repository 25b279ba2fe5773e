//! Emulated clients as a data thread drives them, and the way of frames to them, in virtual time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use allosaur_emulation::Settings;
use allosaur_emulation::rpc::call::RpcCall;
use allosaur_emulation::shards::ShardMap;
use allosaur_engine::time::{Nanos, SECOND};
use allosaur_engine::transmit::PortIndex;
use allosaur_port::tap::{TapOut, tap};
use allosaur_server::emulation::{EmulatedClients, EmulationAnswer, EmulationRequest};
use allosaur_server::rx_taps::{PortRequest, RxTaps, ServiceMask, ServiceMode};
use allosaur_server::threads::client_frames::{
    COPY, ClientFrames, ClientLink, InhabitedPorts, placements,
};
use allosaur_server::threads::waker::Waker;
use serde_json::{Value, json};

const PORTS: usize = 2;

/// On two ports; none are there yet.
fn clients() -> EmulatedClients {
    EmulatedClients::new(Settings::default(), PORTS, 0)
}

/// Does a call of a number, or a part of one.
fn handle(
    clients: &mut EmulatedClients,
    now: Nanos,
    call: RpcCall,
    number: u64,
) -> Result<Value, String> {
    let request = EmulationRequest::Call {
        call,
        number,
        usage: None,
    };
    match clients.handle_request(request, now) {
        EmulationAnswer::Called(reply) => reply.map_err(|error| error.to_string()),
        other => panic!("{other:?}"),
    }
}

fn ask(clients: &mut EmulatedClients, now: Nanos, method: &str, mut params: Value) -> Value {
    let mut ask = |method: &str, params: Value| {
        let reply = handle(clients, now, RpcCall::new(method, params), 0);
        reply.unwrap_or_else(|error| panic!("{error}"))
    };
    let version = json!({"name": "EMU", "major": 1, "minor": 1});
    params["api_h"] = ask("api_sync_v2", version)["api_h"].take();
    ask(method, params)
}

/// Adds clients with ARP to a port, with addresses from 10.0.0.0 on.
fn add(clients: &mut EmulatedClients, now: Nanos, port: u16, count: u16) {
    let tunnels = json!([{"vport": port}]);
    ask(clients, now, "ctx_add", json!({"tunnels": tunnels}));
    let list: Vec<Value> = (0..count).map(client).collect();
    let params = json!({"tun": {"vport": port}, "clients": list});
    ask(clients, now, "ctx_client_add", params);
}

fn client(number: u16) -> Value {
    let [high, low] = number.to_be_bytes();
    json!({
        "mac": [2, 0, 0, 0, high, low], "ipv4": [10, 0, high, low],
        "ipv4_dg": [10, 1, 0, 0], "plugs": {"arp": {}},
    })
}

fn sent(clients: &mut EmulatedClients, now: Nanos) -> Vec<(PortIndex, Vec<u8>)> {
    let mut sent = Vec::new();
    clients.poll_transmit(now, |port, frame| sent.push((port, frame.to_vec())));
    sent
}

/// All that is sent now, turn by turn.
fn all_sent(clients: &mut EmulatedClients, now: Nanos) -> Vec<(PortIndex, Vec<u8>)> {
    let mut all = Vec::new();
    while clients.poll_timeout().is_some_and(|at| at <= now) {
        all.extend(sent(clients, now));
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

/// Taps that hand frames over to so many data threads; the frames for each, which ports have clients, and
/// how often a thread was woken.
fn taps(threads: usize) -> (RxTaps, Vec<TapOut>, InhabitedPorts, Arc<AtomicUsize>) {
    let map = ShardMap::new(vec![(0..threads).collect(); PORTS], threads);
    let (inhabited, woken) = (InhabitedPorts::new(threads), Arc::<AtomicUsize>::default());
    let (mut links, mut ends) = (Vec::new(), Vec::new());
    for _ in 0..threads {
        let ((frames, end), woken) = (tap(), Arc::clone(&woken));
        ends.push(end);
        let receiver = Waker::new().expect("a file descriptor");
        links.push(ClientLink {
            frames,
            placements: placements(receiver).1,
            wake: Box::new(move || _ = woken.fetch_add(1, Ordering::Relaxed)),
        });
    }
    let frames = ClientFrames::new(Arc::new(map), links, inhabited.clone());
    (
        RxTaps::new(PORTS).with(Box::new(frames)),
        ends,
        inhabited,
        woken,
    )
}

/// What was handed over to a data thread: port and bytes.
fn handed_over(end: &mut TapOut) -> Vec<(u8, Vec<u8>)> {
    let mut frames = Vec::new();
    end.receive(usize::MAX, |_, port, frame| {
        frames.push((port, frame.to_vec()))
    });
    frames
}

#[test]
fn a_port_without_clients_is_not_looked_at() {
    let mut clients = clients();
    assert_eq!((clients.inhabited(), clients.poll_timeout()), (0, None));
    let (mut taps, _ends, inhabited, _) = taps(2);
    assert!(taps.is_idle() && taps.watched_ports() == 0);
    add(&mut clients, 5, 1, 1);
    inhabited.of(1).set(clients.inhabited());
    taps.refresh();
    assert!(!taps.watches(0) && taps.watches(1));
    // They want what concerns them, not all that flows receive.
    assert_eq!(taps.capturing_ports(), 0);
    inhabited.of(1).set(0);
    taps.refresh();
    assert_eq!(taps.watched_ports(), 0);
}

#[test]
fn frames_are_handed_over_whatever_the_service_mode_of_the_port_shows() {
    let (mut taps, mut ends, inhabited, woken) = taps(1);
    inhabited.of(0).set(0b10);
    taps.refresh();
    let mode = ServiceMode::Filtered(ServiceMask(ServiceMask::BGP));
    taps.handle(PortRequest::SetService { port: 1, mode }, 0);
    taps.handle_received(10, 1, &arp_request(2));
    taps.handle_received(10, 0, &arp_request(3));
    taps.poll_transmit(10, |_, _| true);
    assert_eq!(handed_over(&mut ends[0]), [(1, arp_request(2))]);
    assert_eq!(woken.load(Ordering::Relaxed), 1);
    taps.poll_transmit(10, |_, _| true);
    assert_eq!(woken.load(Ordering::Relaxed), 1, "nothing new");
}

#[test]
fn a_frame_for_all_is_counted_by_the_home_and_the_others_get_copies() {
    let (mut taps, mut ends, inhabited, _) = taps(2);
    inhabited.of(0).set(0b1);
    inhabited.of(1).set(0b1);
    taps.refresh();
    let tagged = |vlan: u8| {
        let mut frame = arp_request(1);
        frame.splice(12..12, [0x81, 0, 0, vlan]);
        frame
    };
    for vlan in 1..=20 {
        taps.handle_received(10, 0, &tagged(vlan));
    }
    taps.poll_transmit(10, |_, _| true);
    for (thread, end) in ends.iter_mut().enumerate() {
        let number = |vlan: u8| match usize::from(vlan) % 2 == thread {
            true => 0,
            false => COPY,
        };
        let expected: Vec<_> = (1..=20).map(|vlan| (number(vlan), tagged(vlan))).collect();
        assert_eq!(handed_over(end), expected);
    }
}

#[test]
fn a_frame_to_one_client_is_handed_over_to_its_thread_alone() {
    let (mut taps, mut ends, inhabited, _) = taps(2);
    inhabited.of(0).set(0b1);
    taps.refresh();
    for number in 0..100 {
        let mut frame = vec![2, 0, 0, number, 0, 0, 2, 0, 0, 9, 9, 9, 8, 0];
        frame.resize(60, 0);
        taps.handle_received(10, 0, &frame);
    }
    taps.poll_transmit(10, |_, _| true);
    let counts = [0, 1].map(|thread| handed_over(&mut ends[thread]).len());
    assert_eq!(counts[0] + counts[1], 100);
    assert!(counts.iter().all(|count| *count > 25), "{counts:?}");
}

#[test]
fn frames_that_no_thread_takes_are_counted() {
    let (mut taps, mut ends, inhabited, _) = taps(1);
    inhabited.of(0).set(0b1);
    taps.refresh();
    for _ in 0..100_000 {
        taps.handle_received(10, 0, &arp_request(2));
    }
    taps.poll_transmit(10, |_, _| true);
    let taken = handed_over(&mut ends[0]).len() as u64;
    assert!(taken > 1000);
    assert_eq!(ends[0].lost_packets(), 100_000 - taken);
    let mut clients = clients();
    clients.note_lost(ends[0].lost_packets());
    let lost = ask(&mut clients, 0, "ctx_cnt", json!({"mask": ["rxq"]}));
    assert_eq!(lost["rxq"]["drops"], 100_000 - taken);
}

#[test]
fn they_answer_on_their_port() {
    let mut clients = clients();
    add(&mut clients, 0, 1, 3);
    all_sent(&mut clients, 0);
    for (port, last, answers) in [(1, 2, 1), (1, 7, 0), (0, 2, 0)] {
        clients.handle_frame(10, port, &arp_request(last));
        let answered = all_sent(&mut clients, 10);
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
    let mut clients = clients();
    add(&mut clients, 0, 0, 300);
    let first = sent(&mut clients, 0);
    assert_eq!(first.len(), 64);
    // More waits, and other work comes between.
    assert_eq!(clients.poll_timeout(), Some(0));
    let rest = all_sent(&mut clients, 0);
    let announced = |frame: &[u8]| frame[28..32] == frame[38..42];
    let frames = first
        .iter()
        .chain(&rest)
        .filter(|(_, frame)| announced(frame));
    assert_eq!(frames.count(), 300);
    assert!(clients.poll_timeout().is_some_and(|at| at > 0));
}

#[test]
fn timers_are_kept_without_frames_that_arrive() {
    let mut clients = clients();
    add(&mut clients, 0, 0, 1);
    all_sent(&mut clients, 0);
    let at = clients
        .poll_timeout()
        .expect("the gateway is asked for again");
    assert!((1..=2 * SECOND).contains(&at));
    assert!(!all_sent(&mut clients, at).is_empty() || clients.poll_timeout() > Some(at));
    let until = (0..20).find_map(|_| {
        let at = clients.poll_timeout()?;
        (!all_sent(&mut clients, at).is_empty()).then_some(at)
    });
    assert!(until.is_some(), "no query was repeated");
}

#[test]
fn timers_of_many_wake_a_thousand_times_a_second_at_most() {
    let mut clients = clients();
    add(&mut clients, 0, 0, 0);
    for number in 0..100 {
        let params = json!({"tun": {"vport": 0}, "clients": [client(number)]});
        ask(
            &mut clients,
            7_777 * Nanos::from(number),
            "ctx_client_add",
            params,
        );
    }
    all_sent(&mut clients, SECOND);
    let mut wakes = 0;
    let mut frames = 0;
    while let Some(at) = clients.poll_timeout().filter(|at| *at < 61 * SECOND) {
        frames += all_sent(&mut clients, at).len();
        wakes += 1;
    }
    // All ask once more after a minute, 7.777 µs one after the other.
    assert!(
        frames >= 100 && wakes < 30,
        "{frames} frames, {wakes} wakes"
    );
}

#[test]
fn timers_of_many_that_are_due_at_once_are_handled_in_turns() {
    let mut clients = clients();
    add(&mut clients, 0, 0, 300);
    all_sent(&mut clients, 0);
    // Each announces itself again after a minute.
    let now = 61 * SECOND;
    let mut turns = Vec::new();
    while clients.has_due_timers(now) || clients.poll_timeout() == Some(0) {
        turns.push(sent(&mut clients, now).len());
    }
    assert!(turns.iter().sum::<usize>() >= 300, "{turns:?}");
    assert!(turns.iter().all(|frames| *frames <= 64), "{turns:?}");
    assert!(turns[0] < 64 && turns.len() >= 300 / 32, "{turns:?}");
}

#[test]
fn clients_of_a_port_that_is_not_there_send_nothing() {
    let mut clients = clients();
    add(&mut clients, 0, 77, 5);
    assert_eq!(clients.inhabited(), 0);
    assert_eq!(all_sent(&mut clients, 0), []);
    add(&mut clients, 0, 0, 1);
    assert!(!all_sent(&mut clients, 0).is_empty());
}

#[test]
fn an_emulation_that_is_told_to_end_is_as_if_started_again() {
    let mut clients = clients();
    add(&mut clients, 0, 0, 1);
    ask(&mut clients, 0, "shutdown", json!({"time": 2}));
    all_sent(&mut clients, SECOND);
    let info = |clients: &mut EmulatedClients, now| {
        ask(clients, now, "ctx_iter", json!({"reset": true, "count": 9}))
    };
    let namespaces = |found: &Value| found["data"].as_array().map_or(0, Vec::len);
    assert_eq!(namespaces(&info(&mut clients, SECOND)), 1);
    all_sent(&mut clients, 2 * SECOND);
    assert_eq!(namespaces(&info(&mut clients, 2 * SECOND)), 0);
    assert_eq!(clients.inhabited(), 0);
}

#[test]
fn parts_behind_one_that_failed_are_not_done() {
    let mut clients = clients();
    add(&mut clients, 0, 0, 0);
    let version = json!({"name": "EMU", "major": 1, "minor": 1});
    let handle_of_api = ask(&mut clients, 0, "api_sync_v2", version)["api_h"].take();
    // The third is there twice.
    let list: Vec<Value> = [0, 1, 2, 3, 2, 4, 5].map(client).to_vec();
    let params = json!({"api_h": handle_of_api, "tun": {"vport": 0}, "clients": list});
    let mut call = RpcCall::new("ctx_client_add", params);
    let mut outcomes = Vec::new();
    while let Some(part) = call.split_off(2) {
        outcomes.push(handle(&mut clients, 0, part, 1).is_ok());
        // Frames are taken and sent in between, and other calls are done, which may fail, too.
        all_sent(&mut clients, 0);
        let other = RpcCall::new("no_such", Value::Null);
        assert!(handle(&mut clients, 0, other, 2 + outcomes.len() as u64).is_err());
    }
    // What is not done is no error.
    outcomes.push(handle(&mut clients, 0, call, 1).is_ok());
    assert_eq!(outcomes, [true, true, false, true]);
    let info = json!({"tunnels": [{"vport": 0}]});
    let info = ask(&mut clients, 0, "ctx_get_info", info);
    assert_eq!(info[0]["active_clients"], 4);
}
