//! What emulated clients cost on this machine, as JSON: clients added a second by requests, memory of
//! each, ARP and echo answers a second. `measure CLIENTS [PLUGIN...]`; run it with `--release`.

use std::time::Instant;

use allosaur_emulation::{Emulation, Settings};
use allosaur_packet::network::checksum::checksum;
use serde_json::{Map, Value, json};

/// Bytes of memory that the process has.
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("Linux says what a process has");
    let pages = text
        .split_whitespace()
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok());
    4096 * pages.expect("the second number is the resident set")
}

/// Clients of a request, as TRex's client sends them.
const CHUNK: u32 = 255;
/// Frames that are answered for a measurement.
const FRAMES: u32 = 5_000_000;

fn address(number: u32) -> [u8; 4] {
    (0x1000_0001 + number).to_be_bytes()
}

fn mac(number: u32) -> [u8; 6] {
    let [_, b, c, d] = number.to_be_bytes();
    [2, 0, 0, b, c, d]
}

/// The texts of the requests that add clients.
fn requests(clients: u32, plugins: &Map<String, Value>) -> Vec<String> {
    let client = |number: u32| {
        let mut ipv6 = [0; 16];
        ipv6[..2].copy_from_slice(&[0x20, 0x01]);
        ipv6[12..].copy_from_slice(&number.to_be_bytes());
        json!({
            "mac": mac(number), "ipv4": address(number), "ipv4_dg": [16, 255, 0, 1],
            "ipv6": ipv6, "plugs": plugins,
        })
    };
    let starts = (0..clients).step_by(CHUNK as usize);
    let request = |first: u32| {
        let list: Vec<Value> = (first..(first + CHUNK).min(clients)).map(client).collect();
        let params = json!({"tun": {"vport": 0}, "clients": list});
        json!({"jsonrpc": "2.0", "id": 1, "method": "ctx_client_add", "params": params}).to_string()
    };
    starts.map(request).collect()
}

fn arp_request(number: u32) -> Vec<u8> {
    let mut frame = [[0xff; 6], [2, 0, 0xff, 0, 0, 1]].concat();
    frame.extend([
        8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0xff, 0, 0, 1, 16, 255, 0, 1,
    ]);
    frame.extend([0; 6]);
    frame.extend(address(number));
    frame.resize(60, 0);
    frame
}

fn echo_request(number: u32) -> Vec<u8> {
    let mut packet = [0x45, 0, 0, 44, 0, 1, 0, 0, 64, 1, 0, 0, 16, 255, 0, 1].to_vec();
    packet.extend(address(number));
    let sum = checksum(&packet);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    let mut message = [8, 0, 0, 0, 0, 7, 0, 9].to_vec();
    message.extend([0x5a; 16]);
    let sum = checksum(&message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut frame = [mac(number), [2, 0, 0xff, 0, 0, 1]].concat();
    frame.extend([8, 0]);
    frame.extend(packet);
    frame.extend(message);
    frame.resize(60, 0);
    frame
}

/// Answers a second to frames for many clients, one after the other.
fn answers_per_second(emulation: &mut Emulation, frames: &[Vec<u8>]) -> f64 {
    let mut answers = 0_u32;
    let begun = Instant::now();
    for frame in frames.iter().cycle().take(FRAMES as usize) {
        emulation.handle_frame(2_000_000, 0, frame);
        while emulation.poll_transmit().is_some() {
            answers += 1;
        }
    }
    let elapsed = begun.elapsed().as_secs_f64();
    assert_eq!(answers, FRAMES, "every frame is answered");
    f64::from(answers) / elapsed
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let clients: u32 = arguments.next().map_or(100_000, |text| {
        text.parse()
            .expect("the first argument is how many clients")
    });
    let given: Vec<String> = arguments.collect();
    let names = match &given[..] {
        [] => vec!["arp".to_owned(), "icmp".to_owned()],
        _ => given,
    };
    let plugins: Map<String, Value> = names.iter().map(|n| (n.clone(), json!({}))).collect();
    let mut emulation = Emulation::new(Settings::default(), 0);
    let tunnel = json!({"vport": 0, "plugs": plugins});
    emulation
        .handle_request(0, "ctx_add", &json!({"tunnels": [tunnel]}))
        .expect("a namespace");

    let requests = requests(clients, &plugins);
    let before = resident_bytes();
    let begun = Instant::now();
    let mut frames_sent = 0_u32;
    for request in &requests {
        let reply = emulation.handle_message(1_000_000, request.as_bytes());
        assert!(
            reply.windows(13).any(|text| text == b"\"result\":true"),
            "{reply:?}"
        );
        while emulation.poll_transmit().is_some() {
            frames_sent += 1;
        }
    }
    let elapsed = begun.elapsed().as_secs_f64();
    let memory = resident_bytes() - before;

    let numbers: Vec<u32> = (0..clients.min(4096))
        .map(|at| at * (clients / 4096).max(1))
        .collect();
    let arp: Vec<_> = numbers.iter().map(|&number| arp_request(number)).collect();
    let echo: Vec<_> = numbers.iter().map(|&number| echo_request(number)).collect();
    let mut report = json!({
        "clients": clients,
        "plugins": names,
        "clients_per_second": (f64::from(clients) / elapsed).round(),
        "bytes_per_client": memory as f64 / f64::from(clients),
        "frames_while_adding": frames_sent,
    });
    if names.iter().any(|name| name == "arp") {
        report["arp_answers_per_second"] = json!(answers_per_second(&mut emulation, &arp).round());
    }
    if names.iter().any(|name| name == "icmp") {
        report["echo_answers_per_second"] =
            json!(answers_per_second(&mut emulation, &echo).round());
    }
    println!("{report}");
}
