//! Captures of the reference's simulation of its profiles, where nobody answers, and of its server with a
//! network that does: the same calls make the same packets.

use std::collections::BTreeMap;

use allosaur_emulation::{Emulation, Settings};
use allosaur_engine::time::{Nanos, SECOND};
use allosaur_packet::file::pcap::PcapReader;
use allosaur_packet::frame::{Transport, parse};
use allosaur_testkit::data;
use serde_json::Value;

use crate::flow_records::{Drawn, FlowRecords};
use crate::peers::leases::Leases;
use crate::peers::network::Network;
use crate::peers::{Peer, router};
use crate::{PINNED, TICK, coarse};

/// Where the peers of the recordings send from.
const PEER: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// How long after the calls the clock goes on.
const END: Nanos = 14 * SECOND;

/// How a capture was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Made {
    /// Simulated, with ticks of 100 ms: nobody answers.
    Sink,
    /// By a server in real time, with ticks of 10 ms, and a network that answers.
    Net,
}

/// A frame, and when it was sent after the first.
type Sent = (Nanos, Vec<u8>);

/// What packets wait a second longer for there, of a profile of which no more can be said.
const LATER: &[(&str, &str)] = &[
    ("simple_appsim", "the gateway is looked up once a second"),
    ("simple_ipfix", "the same"),
];

/// The profiles, and what answers their clients.
fn peer(profile: &str) -> Vec<Box<dyn Peer>> {
    match profile {
        "dns_auto_play" | "simple_dns" => vec![Box::new(Network::behind_a_router())],
        "plugs_emu" | "simple_dhcp" => vec![Box::new(Leases {
            renew_s: 8,
            rebind_s: 12,
            lease_s: 3600,
        })],
        _ => Vec::new(),
    }
}

/// Plays the calls of a profile; what its clients sent, and what was wrong with the replies.
fn play(profile: &str, calls: &Value, made: Made) -> (Vec<Sent>, Vec<String>) {
    let is_simulated = made == Made::Sink;
    let settings = Settings {
        pinned: PINNED.to_vec(),
        timer_due: is_simulated.then_some(coarse as _),
        ..Settings::default()
    };
    let mut emulation = Emulation::new(settings, TICK);
    let mut peers = if is_simulated {
        Vec::new()
    } else {
        peer(profile)
    };
    let mut sent = Vec::new();
    let mut wrong = Vec::new();
    for call in calls["rpc_calls_in_order"].as_array().expect("calls") {
        let method = call["method"].as_str().expect("a method");
        let reply = emulation.handle_request(TICK, method, &call["params"]);
        if reply.as_ref().ok() != Some(&call["result"]) {
            wrong.push(format!("{method}: {reply:?} instead of {}", call["result"]));
        }
    }
    let mut now = TICK;
    loop {
        let mut answers = Vec::new();
        while let Some(transmit) = emulation.poll_transmit() {
            sent.push((now - TICK, transmit.frame.to_vec()));
            if !is_simulated {
                answers.extend(router::answer(transmit.frame));
                answers.extend(
                    peers
                        .iter_mut()
                        .flat_map(|peer| peer.answer(transmit.frame)),
                );
            }
        }
        let is_quiet = answers.is_empty();
        for frame in answers {
            emulation.handle_frame(now, 0, &frame);
        }
        if is_quiet {
            match emulation.poll_timeout().filter(|due| *due <= END) {
                Some(due) => now = now.max(due),
                None => return (sent, wrong),
            }
            emulation.handle_timeout(now);
        }
    }
}

/// The frames of a capture that clients sent.
fn recorded(name: &str) -> Vec<Sent> {
    let path = data::folder("emu/sim").join(format!("{name}.pcap"));
    let bytes = std::fs::read(&path).expect("a capture is there");
    let reader = PcapReader::new(&bytes).expect("a capture");
    let records = reader.map(|record| record.expect("a whole record"));
    let mut frames: Vec<Sent> = records
        .map(|record| (record.time_ns, record.data.to_vec()))
        .collect();
    let first = frames[0].0;
    frames.iter_mut().for_each(|(at, _)| *at -= first);
    frames.retain(|(_, frame)| frame[6..12] != PEER);
    frames
}

/// A frame without what is drawn at random where a server runs in real time.
fn masked(mut frame: Vec<u8>) -> Vec<u8> {
    let layout = parse(&frame);
    if layout.transport != Transport::Udp {
        return frame;
    }
    let udp = usize::from(layout.transport_offset);
    let payload = udp + 8;
    let ports = [0, 2].map(|at| u16::from_be_bytes([frame[udp + at], frame[udp + at + 1]]));
    let random = match ports {
        // The number of the exchange; that of DHCPv6 is in one word with the kind of message.
        [68, 67] => payload + 4..payload + 8,
        [546, 547] => payload + 1..payload + 4,
        [_, 53] | [53, _] => payload..payload + 2,
        // The sequence of records.
        [_, 4739] => payload + 8..payload + 12,
        _ => payload..payload,
    };
    frame[random].fill(0);
    if ports == [546, 547] {
        // The number of the association, and how long the client has been trying.
        for (option, bytes) in [([0, 3, 0, 12], 4), ([0, 8, 0, 2], 2)] {
            let at = frame.windows(4).position(|window| window == option);
            at.into_iter()
                .for_each(|at| frame[at + 4..at + 4 + bytes].fill(0));
        }
    }
    frame[udp + 6..udp + 8].fill(0);
    frame
}

/// How far the time of a frame may be off: in real time each timer there is a tick late, some 4 % of
/// what waits for many of them.
fn tolerance(profile: &str, made: Made, at: Nanos) -> Nanos {
    let is_later = LATER.iter().any(|(of, _)| *of == profile);
    let later = if is_later { SECOND } else { 0 };
    match made {
        Made::Sink => later + 2 * TICK,
        Made::Net => later + TICK + at / 25,
    }
}

fn hex(frame: &[u8]) -> String {
    frame.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Compares what was sent, each frame with one of the same bytes at about the same time.
fn compare(profile: &str, made: Made, calls: &Value) -> Vec<String> {
    let name = match made {
        Made::Sink => format!("{profile}.sink"),
        Made::Net => format!("{profile}.net"),
    };
    let (ours, mut wrong) = play(profile, calls, made);
    let theirs = recorded(&name);
    let records = FlowRecords::of_plugins(plugins(calls));
    let (mut drawn, mut their_drawn) = (Drawn::default(), Drawn::default());
    let mut left: Vec<Sent> = ours
        .into_iter()
        .map(|(at, frame)| (at, masked(records.masked(&frame, &mut drawn))))
        .collect();
    let last = theirs.last().map_or(0, |(at, _)| *at);
    for (at, frame) in theirs {
        let frame = masked(records.masked(&frame, &mut their_drawn));
        let tolerance = tolerance(profile, made, at);
        let is_it = |(sent, bytes): &Sent| sent.abs_diff(at) <= tolerance && *bytes == frame;
        match left.iter().position(is_it) {
            Some(place) => drop(left.remove(place)),
            None => wrong.push(format!("not sent: {:.3} {}", at as f64 / 1e9, hex(&frame))),
        }
    }
    left.retain(|(at, _)| at + tolerance(profile, made, last) < last);
    for (at, frame) in left {
        wrong.push(format!(
            "not expected: {:.3} {}",
            at as f64 / 1e9,
            hex(&frame)
        ));
    }
    wrong.extend(records.compare(&drawn, &their_drawn));
    wrong
        .into_iter()
        .map(|text| format!("{name}: {text}"))
        .collect()
}

/// The plugins of all clients of the calls.
fn plugins(calls: &Value) -> impl Iterator<Item = (String, Value)> {
    let calls = calls["rpc_calls_in_order"]
        .as_array()
        .expect("calls")
        .clone();
    let clients = calls.into_iter().flat_map(|call| {
        call["params"]["clients"]
            .as_array()
            .cloned()
            .unwrap_or_default()
    });
    clients.flat_map(|client| {
        let plugins = client["plugs"].as_object().cloned().unwrap_or_default();
        plugins.into_iter().collect::<BTreeMap<String, Value>>()
    })
}

#[test]
fn captures_of_profiles_have_the_same_packets() {
    let calls = data::files("emu/sim", ".rpc.json.gz");
    assert!(calls.len() >= 11, "only {} profiles", calls.len());
    let mut wrong = Vec::new();
    for path in calls {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a name");
        let profile = name.trim_end_matches(".rpc.json.gz");
        let calls: Value = serde_json::from_str(&data::text(&path)).expect("calls are JSON");
        for made in [Made::Sink, Made::Net] {
            wrong.extend(compare(profile, made, &calls));
        }
    }
    let shown: Vec<_> = wrong.iter().take(60).map(String::as_str).collect();
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        shown.join("\n")
    );
}
