//! Golden scenarios of the reference with two endpoints in one process, played over a network with a
//! delay: all that are in the folder.

pub(crate) mod endpoint;

use std::collections::VecDeque;
use std::net::{Ipv4Addr, Ipv6Addr};

use allosaur_engine::time::{MICROSECOND, MILLISECOND, Nanos};
use allosaur_packet::MacAddress;
use allosaur_packet::frame;
use allosaur_packet::transport::tcp::{TcpFlags, TcpView};
use allosaur_testkit::data;
use serde_json::{Value, json};

use crate::{Emulation, Settings};

const TICK: Nanos = 100 * MILLISECOND;
/// How far a time may be off.
const TOLERANCE: Nanos = TICK + MILLISECOND;
/// How long a packet is under way.
const DELAY: Nanos = 500 * MILLISECOND;
/// Scenarios that are compared by what arrives, as the sizes of their writes were drawn at random, or
/// packets were lost: why a segment leaves when it does is a stack's own there.
fn is_loose(config: &Value) -> bool {
    config["random"] == true || config["drop"].as_f64().unwrap_or(0.0) > 0.0
}

/// What the network is asked to do.
struct Network {
    emulation: Emulation,
    now: Nanos,
    under_way: VecDeque<(Nanos, Vec<u8>)>,
    sent: Vec<(Nanos, Vec<u8>)>,
    drops: Vec<u64>,
}

impl Network {
    /// What is sent within a tick leaves at its end, and arrives just after another.
    fn collect(&mut self) {
        while let Some(transmit) = self.emulation.poll_transmit() {
            let frame = transmit.frame.to_vec();
            let leaves = (self.now / TICK + 1) * TICK;
            self.sent.push((leaves, frame.clone()));
            if !self.drops.contains(&(self.sent.len() as u64)) {
                let arrives = leaves + DELAY + MICROSECOND;
                self.under_way.push_back((arrives, frame));
            }
        }
    }

    fn run_until(&mut self, until: Nanos) {
        self.collect();
        loop {
            let timer = self.emulation.poll_timeout().unwrap_or(Nanos::MAX);
            let arrival = self.under_way.front().map_or(Nanos::MAX, |(at, _)| *at);
            let next = timer.min(arrival);
            if next > until {
                break;
            }
            self.now = self.now.max(next);
            if arrival <= timer {
                let (_, frame) = self.under_way.pop_front().expect("it arrives");
                self.emulation.handle_frame(self.now, 1, &frame);
            } else {
                self.emulation.handle_timeout(self.now);
            }
            self.collect();
        }
        self.now = until;
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        let reply = self.emulation.handle_request(self.now, method, params);
        reply.unwrap_or_else(|error| panic!("{method}: {error}"))
    }
}

/// The plugins of the namespace, and those of the opener and of the listener.
fn plugins(plugin: &str, config: &Value) -> (Value, [Value; 2]) {
    if plugin == "transport" {
        let client = |role: &str| {
            let mut init = config.clone();
            init["role"] = json!(role);
            json!({"transport": {}, "endpoint": init})
        };
        return (json!({}), [client("opener"), client("listener")]);
    }
    let mut program = config["program"].clone();
    if let Some(port) = program.pointer_mut("/templates/0/server_template/assoc/0/port") {
        *port = json!(80);
    }
    let ipv6 = config["ipv6"] == true;
    let stream = |role| {
        json!({"transport": {}, "appsim": {"data": {"s": {"cps": 1000, "t": role, "tid": 0,
            "ipv6": ipv6, "stream": config["udp"] == false, "limit": 1,
            "dst": if ipv6 { "[2001:db8::3000:1]:80" } else { "48.0.0.1:80" }}}}})
    };
    (json!({"appsim": program}), [stream("c"), stream("s")])
}

/// A client as the RPC has it.
fn client(given: &Value, plugins: &Value) -> Value {
    let mac = |name: &str| {
        let mac: MacAddress = given[name]
            .as_str()
            .and_then(|mac| mac.parse().ok())
            .expect("a MAC");
        mac.octets()
    };
    let text = |name: &str| given[name].as_str().expect("an address");
    let ipv4 = |name| text(name).parse::<Ipv4Addr>().expect("IPv4").octets();
    json!({"mac": mac("mac"), "ipv4": ipv4("ipv4"), "ipv4_dg": ipv4("ipv4_dg"),
        "ipv6": text("ipv6").parse::<Ipv6Addr>().expect("IPv6").octets(),
        "ipv4_force_mac": mac("ipv4_force_mac"), "ipv6_force_mac": mac("ipv6_force_mac"),
        "ipv4_force_dg": true, "ipv6_force_dg": true, "plugs": plugins})
}

fn play(scenario: &Value, config: &Value) -> (Network, Value) {
    let drops = scenario["peer_drops_tx_numbers"].as_array();
    let mut network = Network {
        emulation: Emulation::new(Settings::default(), 0),
        now: 0,
        under_way: VecDeque::new(),
        sent: Vec::new(),
        drops: drops
            .into_iter()
            .flatten()
            .filter_map(Value::as_u64)
            .collect(),
    };
    let namespace = &scenario["setup"]["namespaces"][0];
    let mut tunnel = namespace["tun"].clone();
    let plugin = scenario["plugin"].as_str().expect("a plugin");
    let (of_namespace, of_clients) = plugins(plugin, config);
    tunnel["plugs"] = of_namespace;
    network.request("ctx_add", &json!({"tunnels": [tunnel]}));
    // The listener is there first.
    for place in [1, 0] {
        let client = client(&namespace["clients"][place], &of_clients[place]);
        let params = json!({"tun": namespace["tun"], "clients": [client]});
        network.request("ctx_client_add", &params);
    }
    let seconds = scenario["duration_s"].as_f64().expect("a duration");
    network.run_until((seconds * 1e9) as Nanos);
    let counters = network.request("ctx_cnt", &json!({}));
    (network, counters)
}

/// A frame with what may differ taken out: the first sequence numbers, the values of timestamps, and
/// the checksum.
#[derive(Default)]
struct Masks {
    /// By sender.
    firsts: Vec<(MacAddress, u32)>,
}

impl Masks {
    fn first(&mut self, mac: MacAddress, seq: u32, is_syn: bool) -> u32 {
        match self.firsts.iter().find(|(other, _)| *other == mac) {
            Some((_, first)) => *first,
            None if is_syn => {
                self.firsts.push((mac, seq));
                seq
            }
            None => 0,
        }
    }

    fn mask(&mut self, bytes: &[u8]) -> Vec<u8> {
        let layout = frame::parse(bytes);
        if layout.transport != frame::Transport::Tcp {
            return bytes.to_vec();
        }
        let at = bytes.len() - layout.segment(bytes).len();
        let view = TcpView::new_checked(&bytes[at..]).expect("a segment");
        let mac = |from: usize| MacAddress(bytes[from..from + 6].try_into().expect("six bytes"));
        let is_syn = view.flags().contains(TcpFlags::SYN);
        let first = self.first(mac(6), view.sequence(), is_syn);
        let sequence = view.sequence().wrapping_sub(first);
        let acknowledgment = match view.flags().contains(TcpFlags::ACK) {
            true => view
                .acknowledgment()
                .wrapping_sub(self.first(mac(0), 0, false)),
            false => 0,
        };
        let header = view.header_bytes();
        let mut masked = bytes.to_vec();
        masked[at + 4..at + 8].copy_from_slice(&sequence.to_be_bytes());
        masked[at + 8..at + 12].copy_from_slice(&acknowledgment.to_be_bytes());
        masked[at + 16..at + 18].fill(0);
        let options = &mut masked[at + 20..at + header];
        if let Some(times) = options.windows(2).position(|bytes| bytes == [8, 10]) {
            options[times + 2..times + 10].fill(0);
        }
        masked
    }
}

/// What a frame says, short.
fn describe((time, bytes): &(Nanos, Vec<u8>)) -> String {
    let layout = frame::parse(bytes);
    let segment = layout.segment(bytes);
    let text = match TcpView::new_checked(segment) {
        Ok(view) if layout.transport == frame::Transport::Tcp => format!(
            "{} seq {} ack {} win {} len {} options {:02x?}",
            view.flags(),
            view.sequence(),
            view.acknowledgment(),
            view.window(),
            segment.len() - view.header_bytes(),
            view.option_bytes()
        ),
        _ => format!("{bytes:02x?}"),
    };
    format!("{:.1} from {:02x} {text}", *time as f64 / 1e9, bytes[11])
}

fn expected(scenario: &Value) -> Vec<(Nanos, Vec<u8>)> {
    let packets = scenario["expected"].as_array().expect("packets");
    let mut masks = Masks::default();
    let read = |packet: &Value| {
        let ticks = packet["time"].as_f64().expect("a time") * 10.0;
        let hex = packet["hex"].as_str().expect("bytes");
        let bytes: Vec<u8> = (0..hex.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal"))
            .collect();
        (ticks.round() as u64 * TICK, masks.mask(&bytes))
    };
    packets.iter().map(read).collect()
}

/// Compares packet by packet.
fn compare(scenario: &Value, network: &Network, counters: &Value, failures: &mut Vec<String>) {
    let mut masks = Masks::default();
    let ours = network.sent.iter();
    let mut ours: Vec<_> = ours
        .map(|(time, bytes)| (*time, masks.mask(bytes)))
        .collect();
    for packet in expected(scenario) {
        let is_it = |(time, bytes): &(Nanos, Vec<u8>)| {
            *bytes == packet.1 && time.abs_diff(packet.0) <= TOLERANCE
        };
        match ours.iter().position(is_it) {
            Some(place) => drop(ours.remove(place)),
            None => failures.push(format!("not sent: {}", describe(&packet))),
        }
    }
    failures.extend(
        ours.iter()
            .map(|packet| format!("not expected: {}", describe(packet))),
    );
    for (name, value) in scenario["counters"]["veth"]
        .as_object()
        .into_iter()
        .flatten()
    {
        if counters["veth"][name] != *value {
            failures.push(format!(
                "{name} {} instead of {value}",
                counters["veth"][name]
            ));
        }
    }
}

/// What a sender said altogether: its SYN, how many bytes, how it ended, its longest segment.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    syn: Vec<u8>,
    bytes: u32,
    fins: bool,
    resets: bool,
    longest: usize,
}

fn said(packets: &[(Nanos, Vec<u8>)], sender: u8) -> Said {
    let mut masks = Masks::default();
    let mut said = Said {
        syn: Vec::new(),
        bytes: 0,
        fins: false,
        resets: false,
        longest: 0,
    };
    for (_, bytes) in packets {
        let bytes = masks.mask(bytes);
        if bytes[11] != sender {
            continue;
        }
        let layout = frame::parse(&bytes);
        let segment = layout.segment(&bytes);
        let view = TcpView::new_checked(segment).expect("a segment");
        let length = segment.len() - view.header_bytes();
        if view.flags().contains(TcpFlags::SYN) {
            said.syn = bytes.clone();
        }
        if length > 0 {
            said.bytes = said.bytes.max(view.sequence() - 1 + length as u32);
        }
        said.fins |= view.flags().contains(TcpFlags::FIN);
        said.resets |= view.flags().contains(TcpFlags::RST);
        said.longest = said.longest.max(length);
    }
    said
}

#[test]
fn golden_scenarios_of_endpoints_are_equal() {
    let mut text = String::new();
    let mut played = 0;
    let folder = std::fs::read_dir(data::folder("emu/scenarios")).expect("a folder");
    let mut paths: Vec<_> = folder.map(|entry| entry.expect("a file").path()).collect();
    paths.sort();
    for path in paths {
        let name = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let has_endpoints = name.starts_with("transport__") || name.starts_with("appsim__");
        if !has_endpoints {
            continue;
        }
        let scenario: Value = serde_json::from_str(&data::text(&path)).expect("JSON");
        let Some(config) = scenario.pointer("/setup/endpoints") else {
            continue;
        };
        played += 1;
        let (mut network, counters) = play(&scenario, config);
        let mut failures = Vec::new();
        if is_loose(config) {
            for sender in [1, 2] {
                let theirs = said(&expected(&scenario), sender);
                let ours = said(&network.sent, sender);
                if ours != theirs {
                    failures.push(format!("{sender}: {ours:02x?}\n  instead of {theirs:02x?}"));
                }
            }
        } else {
            compare(&scenario, &network, &counters, &mut failures);
        }
        let wrong = counters["parser"]["errTCP"].as_u64().unwrap_or(0);
        if wrong + network.wrong_bytes() as u64 > 0 {
            failures.push("wrong bytes arrived".to_owned());
        }
        if !failures.is_empty() {
            text += &format!("{name}: {} differences\n", failures.len());
            failures
                .iter()
                .take(16)
                .for_each(|failure| text += &format!("  {failure}\n"));
        }
    }
    assert!(played > 10, "only {played} scenarios are there");
    assert!(text.is_empty(), "{text}");
}

impl Network {
    /// Bytes that an endpoint got and that its peer did not send.
    fn wrong_bytes(&mut self) -> usize {
        let index = *self.emulation.by_key.values().next().expect("a namespace");
        let Ok(id) = crate::emulation::plugin_id("endpoint") else {
            return 0;
        };
        let now = self.now;
        let found = self.emulation.run(now, index, id, |plugin, _| {
            let endpoints = plugin.as_any_mut().downcast_mut::<endpoint::Endpoints>();
            endpoints.map_or(0, |endpoints| endpoints.wrong_bytes)
        });
        found.unwrap_or(0)
    }
}
