//! Recorded conversations with the reference server, replayed: equal replies, but for what is random,
//! a time, or the program's own.

mod differences;
mod peers;

use std::net::Ipv4Addr;
use std::path::PathBuf;

use allosaur_emulation::{Emulation, Settings};
use allosaur_engine::time::SECOND;
use allosaur_packet::MacAddress;
use allosaur_packet::builder::{FrameBuilder, LinkHeader};
use allosaur_packet::link::arp::{ArpHeader, ArpOperation};
use allosaur_testkit::data;
use differences::adjust;
use peers::authenticator::Authenticator;
use peers::concentrator::Concentrator;
use peers::echo::Echo;
use peers::leases::{Leases, Loop};
use peers::network::Network;
use peers::{Peer, Silence, router};
use serde_json::{Value, json};

/// The conversations, without the endings of their files. Who adds a plugin adds its own.
const CONVERSATIONS: &[&str] = &[
    "01_handshake",
    "02_envelope",
    "03_ctx_add_remove",
    "04_ctx_iter",
    "05_def_plugins",
    "06_clients",
    "07_client_iter",
    "08_counters",
    "09_shutdown",
    "09_shutdown_now",
    "20_arp",
    "21_icmp",
    "22_igmp",
    "23_ipv6",
    "24_dhcpv4",
    "25_dhcpv6",
    "26_dhcpsrv",
    "27_dns",
    "28_mdns",
    "29_dot1x",
    "30_lldp_cdp",
    "31_transport",
    "35_appsim",
    "32_ipfix_emu_udp",
    "33_ipfix_kernel",
    "34_tdl",
    "36_ppp",
    "40_profile_dhcpsrv_local",
    "40_profile_dns_auto_play",
    "40_profile_plugs_emu",
    "40_profile_plugs_emu_2ns_600c",
    "40_profile_simple_appsim",
    "40_profile_simple_dhcp",
    "40_profile_simple_dns",
    "40_profile_simple_dns_ipv6",
    "40_profile_simple_emu",
    "40_profile_simple_icmp",
    "40_profile_simple_igmp",
    "40_profile_simple_ipfix",
    "40_profile_simple_ipv4",
];

fn leases(renew_s: u32, rebind_s: u32) -> Leases {
    Leases {
        renew_s,
        rebind_s,
        lease_s: 3600,
    }
}

/// Who answers the frames of a conversation.
fn peer_of(name: &str) -> Box<dyn Peer> {
    match name {
        "27_dns" | "28_mdns" => Box::new(Network::default()),
        "24_dhcpv4" => Box::new(leases(2, 4)),
        "25_dhcpv6" => Box::new(leases(8, 12)),
        "26_dhcpsrv" => Box::new(Loop),
        "40_profile_dns_auto_play" => Box::new(Network::behind_a_router()),
        "40_profile_simple_dhcp" | "40_profile_plugs_emu" | "40_profile_plugs_emu_2ns_600c" => {
            Box::new(leases(1800, 3150))
        }
        "29_dot1x" => Box::new(Authenticator::new(&[4], &[("u1", "pass1")])),
        "31_transport" | "35_appsim" => Box::new(Echo::default()),
        "36_ppp" => Box::new(Concentrator::new(&[0xc0, 0x23])),
        _ => Box::new(Silence),
    }
}

struct Replay {
    emulation: Emulation,
    peer: Box<dyn Peer>,
    /// The handle of the recording, once it was given.
    recorded_handle: Option<String>,
    handle: String,
    /// Whether there was a router on the link.
    has_peer: bool,
    /// Frames of neighbors that come before the next request.
    unasked: Vec<Vec<u8>>,
}

impl Replay {
    fn new(name: &str) -> Replay {
        let mut other = Emulation::new(Settings::default(), 0);
        let hello = json!({"name": "EMU", "major": 1, "minor": 1});
        let reply = other
            .handle_request(0, "api_sync_v2", &hello)
            .expect("hello");
        let settings = Settings {
            exports: name == "33_ipfix_kernel",
            ..Settings::default()
        };
        Replay {
            emulation: Emulation::new(settings, 0),
            peer: peer_of(name),
            recorded_handle: None,
            handle: reply["api_h"].as_str().expect("a handle").to_owned(),
            has_peer: false,
            unasked: Vec::new(),
        }
    }

    /// The bytes of a request, with our handle in place of the recorded one.
    fn request(&self, line: &Value) -> Option<Vec<u8>> {
        let text = match (line.get("req"), line["req_raw"].as_str()) {
            (Some(request), _) => request.to_string(),
            // Bytes are written as characters of the same number.
            (None, Some(raw)) => return Some(raw.chars().map(|c| c as u32 as u8).collect()),
            (None, None) => return None,
        };
        Some(match &self.recorded_handle {
            Some(handle) => text.replace(handle.as_str(), &self.handle).into_bytes(),
            None => text.into_bytes(),
        })
    }

    fn exchange(&mut self, line: &Value, request: &[u8]) -> Value {
        let now = (line["t"].as_f64().unwrap_or(0.0) * SECOND as f64) as u64;
        while let Some(due) = self.emulation.poll_timeout().filter(|&due| due <= now) {
            self.emulation.handle_timeout(due);
            self.run_peer(due);
        }
        for frame in std::mem::take(&mut self.unasked) {
            self.emulation.handle_frame(now, 1, &frame);
        }
        let reply = self.emulation.handle_message(now, request);
        self.run_peer(now);
        serde_json::from_slice(&reply).expect("a reply is JSON")
    }

    /// Gives what was sent to the peer, if there is one, and its answers back.
    fn run_peer(&mut self, now: u64) {
        loop {
            let mut answers = Vec::new();
            while let Some(transmit) = self.emulation.poll_transmit() {
                let answer = router::answer(transmit.frame).filter(|_| self.has_peer);
                let answer = answer.into_iter().chain(self.peer.answer(transmit.frame));
                answers.extend(answer.map(|answer| (transmit.port, answer)));
            }
            if answers.is_empty() {
                return;
            }
            for (port, answer) in answers {
                self.emulation.handle_frame(now, port, &answer);
            }
        }
    }
}

/// ARP requests of neighbors for the first client, by their numbers.
fn queries(first: u16, count: u16) -> Vec<Vec<u8>> {
    let query = |number: u16| {
        let [high, low] = number.to_be_bytes();
        let mac = MacAddress([2, 0, 0, 1, high, low]);
        let link = LinkHeader {
            destination: MacAddress::BROADCAST,
            source: mac,
            tags: &[],
        };
        let mut frame = Vec::new();
        FrameBuilder::new(&mut frame, &link).arp(&ArpHeader {
            operation: ArpOperation::REQUEST,
            sender_mac: mac,
            sender_ip: Ipv4Addr::new(10, 0, 1 + high, low),
            target_mac: MacAddress::ZERO,
            target_ip: Ipv4Addr::new(10, 0, 0, 1),
        });
        frame
    };
    (first..first + count).map(query).collect()
}

/// Replaces what cannot be equal: handles, times, versions, timers and the reference's buffers.
fn mask(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(mask),
        Value::Object(fields) => {
            for name in [
                "api_h",
                "ts",
                "version",
                "build_date",
                "build_time",
                "built_by",
                "avgLatency",
                "minLatency",
                "maxLatency",
            ] {
                if let Some(field) = fields.get_mut(name) {
                    *field = Value::Null;
                }
            }
            if fields.contains_key("Resource monitor") {
                // The reference has no such table.
                fields.remove("memory");
            }
            if fields.get("meta").is_none() {
                for name in [
                    "timerw",
                    "RxBatch",
                    "TxBatch",
                    "mbuf-pool",
                    "cpuPercent",
                    "elapsedTimeMs",
                    "rss",
                    // Of TCP: never counted there.
                    "rcvtotal",
                    "sndbyte",
                ] {
                    fields.remove(name);
                }
                fields.retain(|name, field| {
                    !name.starts_with("mbuf-") || field.get("meta").is_some()
                });
            }
            if let Some(names) = fields.get_mut("plug_names").and_then(Value::as_array_mut) {
                names.sort_by_key(Value::to_string);
            }
            // The reference gives the sources of a group in any order.
            if let Some(sources) = fields.get_mut("sv").and_then(Value::as_array_mut) {
                sources.sort_by_key(Value::to_string);
            }
            fields.values_mut().for_each(mask);
        }
        _ => {}
    }
}

fn find(name: &str) -> PathBuf {
    let folder = data::folder("emu/rpc");
    folder.join(format!("{name}.jsonl.gz"))
}

fn replay(name: &str, failures: &mut Vec<String>) {
    let text = data::text(&find(name));
    let mut replay = Replay::new(name);
    let mut has_link = true;
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).expect("a line is JSON");
        // Some recordings are of a server without a link: it did not even count frames.
        has_link &= line["server_mode"] != "dummy";
        // Where names were asked for, another router passed datagrams on.
        let has_names = ["27_dns", "28_mdns"].contains(&name);
        replay.has_peer |= line["server_mode"] == "stub" && !has_names;
        if line["note"] == "300 neighbour advertisements from the peer are learned" {
            replay.unasked.extend(router::advertisements(300));
        }
        if line["note"] == "replies seen: 300" {
            replay.unasked.extend(queries(0, 300));
        }
        if name == "20_arp" && line["n"] == 80 {
            replay.unasked.extend(queries(300, 1));
        }
        if line.get("server_crashed").is_some() {
            replay = Replay {
                has_peer: replay.has_peer,
                ..Replay::new(name)
            };
        }
        let Some(request) = replay.request(&line) else {
            continue;
        };
        let mut reply = replay.exchange(&line, &request);
        if let Some(handle) = line["rep"]["result"]["api_h"].as_str() {
            replay.recorded_handle = Some(handle.to_owned());
        }
        let number = line["n"].as_u64().unwrap_or(0);
        if line.get("no_reply").is_some() {
            continue;
        }
        let mut recorded = line["rep"].clone();
        mask(&mut reply);
        mask(&mut recorded);
        if let Some(tables) = reply.pointer_mut("/result").filter(|_| !has_link) {
            tables.as_object_mut().map(|tables| tables.remove("veth"));
        }
        let method = &line["req"]["method"];
        if let Some(wrong) = adjust((name, number), method, &mut reply, &mut recorded) {
            failures.push(format!("{name} {number}: {wrong}"));
        } else if reply != recorded {
            let request = String::from_utf8_lossy(&request)
                .chars()
                .take(400)
                .collect::<String>();
            failures.push(format!(
                "{name} {number}: {request}\n  ours {reply}\n  theirs {recorded}"
            ));
        }
    }
}

#[test]
fn all_conversations_are_played() {
    let mut names: Vec<_> = CONVERSATIONS.iter().map(|name| find(name)).collect();
    names.sort();
    assert_eq!(names, data::files("emu/rpc", ".jsonl.gz"));
}

#[test]
fn recorded_conversations_have_equal_replies() {
    let mut failures = Vec::new();
    for name in CONVERSATIONS {
        replay(name, &mut failures);
    }
    let shown: Vec<String> = failures
        .iter()
        .take(60)
        .map(|f| f.chars().take(1500).collect())
        .collect();
    assert!(
        failures.is_empty(),
        "{} differ:\n{}",
        failures.len(),
        shown.join("\n")
    );
}
