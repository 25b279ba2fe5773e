//! Golden scenarios of the reference, played under virtual time: packets with their times, replies
//! and counters are compared.

mod captures;
mod flow_records;
mod peers;
mod sharded;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::{Ipv4Addr, Ipv6Addr};

use allosaur_api::Dialect;
use allosaur_api::dialect::Reply;
use allosaur_emulation::Settings;
use allosaur_emulation::rpc::dialect::{CallId, EmulationDialect};
use allosaur_engine::time::{MILLISECOND, Nanos};
use allosaur_packet::MacAddress;
use allosaur_packet::frame::parse;
use allosaur_packet::network::checksum::update_bytes;
use allosaur_testkit::data;
use flow_records::{Drawn, FlowRecords};
use serde_json::{Map, Value, json};
use sharded::Sharded;

/// The scenarios. Who adds a plugin adds its own.
const SCENARIOS: &[&str] = &[
    "appsim__appsim-31",
    "appsim__appsim-33",
    "appsim__appsim-35",
    "arp__arp1",
    "arp__arp3",
    "arp__arp5",
    "cdp__cdp1",
    "dns__dns1",
    "dns__dns11",
    "dns__dns13",
    "dns__dns15",
    "dns__dns17",
    "dns__dns19",
    "dns__dns21",
    "dns__dns3",
    "dns__dns5",
    "dns__dns7",
    "dns__dns9",
    "dot1x__dot1x_1",
    "dot1x__dot1x_7",
    "icmp__icmp1",
    "icmp__icmp3",
    "dhcp__dhcp1",
    "dhcp__dhcp4",
    "dhcp__dhcp6",
    "dhcpsrv__dhcpsrv1",
    "dhcpsrv__dhcpsrv11",
    "dhcpsrv__dhcpsrv13",
    "dhcpsrv__dhcpsrv15",
    "dhcpsrv__dhcpsrv17",
    "dhcpsrv__dhcpsrv19",
    "dhcpsrv__dhcpsrv3",
    "dhcpsrv__dhcpsrv5",
    "dhcpsrv__dhcpsrv7",
    "dhcpsrv__dhcpsrv9",
    "dhcpv6__dhcpv6_1",
    "dhcpv6__dhcpv6_3",
    "dhcpv6__dhcpv6_5",
    "igmp__igmp10",
    "igmp__igmp3",
    "igmp__igmp5",
    "ipfix__ipfix1",
    "ipfix__ipfix11",
    "ipfix__ipfix13",
    "ipfix__ipfix15",
    "ipfix__ipfix17",
    "ipfix__ipfix19",
    "ipfix__ipfix21",
    "ipfix__ipfix23",
    "ipfix__ipfix3",
    "ipfix__ipfix5",
    "ipfix__ipfix7",
    "ipfix__ipfix9",
    "ipfix__ipfix_neg01",
    "ipfix__ipfix_neg05",
    "ipfix__ipfix_neg07",
    "ipfix__ipfix_neg09",
    "ipfix__ipfix_neg11",
    "ipfix__ipfix_neg13",
    "ipv6__icmpv6_1",
    "ipv6__ipv6nd_1",
    "ipv6__ipv6nd_3",
    "ipv6__ipv6nd_rpc",
    "ipv6__mld1_1",
    "ipv6__mld2_2",
    "ipv6__mld2_rpc1",
    "lldp__lldp1",
    "mdns__mdns1",
    "mdns__mdns11",
    "mdns__mdns13",
    "mdns__mdns15",
    "mdns__mdns17",
    "mdns__mdns19",
    "mdns__mdns21",
    "mdns__mdns3",
    "mdns__mdns5",
    "mdns__mdns7",
    "mdns__mdns9",
    "tdl__tdl_layer_key",
    "tdl__typeDef1",
];

/// What the reference's simulation drew at random, by the names of our draws.
const PINNED: &[(&str, u64)] = &[
    ("multicast response delay", 0),
    ("ping identifier", 0x1234),
    ("ping sequence", 0xabcd),
    ("dns_id", 0),
    ("dot1x peer challenge high", 0x0102_0304),
    ("dot1x peer challenge low", 0x0506_0708),
    ("dhcp xid", 0x1234_5678),
    ("dhcpv6 xid", 0x34_5678),
    ("dhcpv6 iaid", 0x1234_5678),
    ("ipfix sequence", 0x1234_5678),
    ("ipfix domain", 0x8765_4321),
];

/// How the counters of a plugin are asked for: those of its namespaces, or of its clients.
const COUNTERS: &[(&str, &str)] = &[
    ("arp", "arp_ns_cnt"),
    ("icmp", "icmp_ns_cnt"),
    ("dhcp", "dhcp_client_cnt"),
    ("dhcpsrv", "dhcpsrv_c_cnt"),
    ("dhcpv6", "dhcpv6_client_cnt"),
    ("igmp", "igmp_ns_cnt"),
    ("ipfix", "ipfix_c_cnt"),
    ("ipv6", "ipv6_ns_cnt"),
    ("cdp", "cdp_client_cnt"),
    ("dot1x", "dot1x_client_cnt"),
    ("lldp", "lldp_client_cnt"),
    ("tdl", "tdl_c_cnt"),
];

/// Plugins of whose tables of counters the scenarios have one.
const TABLES: &[(&str, &str)] = &[("ipv6", "pingv6")];

/// Packets of the reference that show a fault of it: the scenario, when, how many bytes are too many,
/// and what they are. Ours is from and to the same, for the same.
const FAULTS: &[(&str, f64, u64, &str)] = &[(
    "dhcpv6__dhcpv6_3",
    110.3,
    14,
    "the second server's DUID stands behind the first one's",
)];

/// Scenarios whose packets may leave so much earlier, in seconds, than in the recording, and why.
const EARLIER: &[(&str, f64, &str)] = &[(
    "igmp__igmp3",
    0.6,
    "an answer of six packets takes six fifths of the time that the router gives there",
)];

/// Counters that the reference did not have yet when it was recorded.
const LATER: &[&str] = &[
    "apiWrites",
    "recordsDataSent",
    "recordsTempSent",
    "txBytes",
    "txDataRecords",
    "txTempRecords",
];
/// Counters that the reference reported after it had removed the clients.
const AFTER_THE_END: &[&str] = &["activeClients"];
/// Plugins whose counters are those of each client, and then those of the namespace.
const COUNTERS_OF_CLIENTS: &[(&str, [&str; 2])] = &[
    ("dns", ["dns_c_cnt", "dns_ns_cnt"]),
    ("mdns", ["mdns_c_cnt", "mdns_ns_cnt"]),
];

/// One tick of the reference's simulation.
const TICK: Nanos = 100 * MILLISECOND;
/// How far a time may be off.
const TOLERANCE: Nanos = TICK + MILLISECOND;

/// When a timer is due on the reference's wheels: of 128 slots, each of the next with slots of
/// eight times the length.
fn coarse(now: Nanos, delay: Nanos) -> Nanos {
    let (now, ticks) = (now / TICK - 1, (delay / TICK).max(1));
    let unit = match ticks {
        0..128 => 1,
        128..1024 => 8,
        _ => 64,
    };
    let due = match unit {
        1 => now + ticks,
        _ => ((now + ticks - 1) / unit * unit).max(now + 1),
    };
    (due + 1) * TICK
}

/// A time of a scenario.
fn at(time: &Value) -> Nanos {
    let ticks = time.as_f64().expect("a time is a number") * 10.0;
    ticks.round() as u64 * TICK
}

fn hex(value: &Value) -> Vec<u8> {
    let text = value.as_str().expect("bytes are in hexadecimal");
    let pairs = text.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    pairs.map(byte).collect()
}

/// With this the data of a ping begins; the time of sending follows.
const PING: [u8; 8] = [0xc1, 0x5c, 0x0c, 0x15, 0xc0, 0xbe, 0x5b, 0xe5];
/// How long each ping of the reference's simulation takes.
const PING_LATENCY: Nanos = MILLISECOND;

/// Writes the time into a ping, and its checksum: the reference's simulation has no clock there.
fn set_ping_time(frame: &mut [u8], time: Nanos) {
    let Some(data) = frame.windows(8).position(|bytes| bytes == PING) else {
        return;
    };
    let (checksum, at) = (data - 6..data - 4, data + 8..data + 16);
    let old = u16::from_be_bytes([frame[checksum.start], frame[checksum.start + 1]]);
    let new = update_bytes(old, &frame[at.clone()], &time.to_be_bytes());
    frame[at].copy_from_slice(&time.to_be_bytes());
    frame[checksum].copy_from_slice(&new.to_be_bytes());
}

/// Something that comes from outside at its time, after so many frames were sent.
struct Stimulus {
    at: Nanos,
    after_sent: usize,
    what: Value,
}

struct Player {
    emulation: Sharded,
    now: Nanos,
    sent: RefCell<Vec<(Nanos, Vec<u8>)>>,
    failures: Vec<String>,
}

impl Player {
    /// Of clients on so many shards.
    fn new(shards: usize) -> Player {
        let settings = Settings {
            pinned: PINNED.to_vec(),
            timer_due: Some(coarse),
            ..Settings::default()
        };
        Player {
            emulation: Sharded::new(&settings, TICK, shards),
            now: TICK,
            sent: RefCell::default(),
            failures: Vec::new(),
        }
    }

    fn collect(&mut self) {
        while let Some(transmit) = self.emulation.poll_transmit() {
            let mut sent = self.sent.borrow_mut();
            sent.push((self.now, transmit.frame.to_vec()));
        }
    }

    fn request(&mut self, method: &str, params: &Value) -> Value {
        let reply = self.emulation.handle_request(self.now, method, params);
        self.collect();
        let reply = Reply {
            id: CallId::default(),
            outcome: reply,
        };
        let mut text = Vec::new();
        EmulationDialect::write(&reply, &mut text);
        serde_json::from_slice(&text).expect("a reply is JSON")
    }

    /// Runs timers until a time.
    fn run_until(&mut self, until: Nanos) {
        while let Some(due) = self.emulation.poll_timeout().filter(|&due| due <= until) {
            self.now = self.now.max(due);
            self.emulation.handle_timeout(self.now);
            self.collect();
        }
        self.now = self.now.max(until);
    }

    fn set_up(&mut self, scenario: &Value) {
        for namespace in scenario["setup"]["namespaces"]
            .as_array()
            .expect("namespaces")
        {
            let mut tunnel = namespace["tun"].clone();
            tunnel["plugs"] = plugins(&namespace["ns_plugins"]);
            self.expect("ctx_add", json!({"tunnels": [tunnel]}));
            for client in namespace["clients"].as_array().expect("clients") {
                let params = json!({"tun": namespace["tun"], "clients": [given(client)]});
                match scenario["expected_errors"].as_array().map(Vec::as_slice) {
                    Some([error]) => self.expect_error(params, error),
                    _ => self.expect("ctx_client_add", params),
                }
            }
            for call in namespace["pre_start_calls"]
                .as_array()
                .into_iter()
                .flatten()
            {
                let mut params = call["params"].clone();
                params["tun"] = namespace["tun"].clone();
                self.expect(call["method"].as_str().expect("a method"), params);
            }
        }
    }

    fn expect(&mut self, method: &str, params: Value) {
        let reply = self.request(method, &params);
        if reply["result"] != true {
            self.failures.push(format!("{method} {params}: {reply}"));
        }
    }

    /// Adds a client with a plugin that refuses.
    fn expect_error(&mut self, params: Value, error: &Value) {
        let reply = self.request("ctx_client_add", &params);
        let [plugin, error] = ["plugin", "error"].map(|name| error[name].as_str().expect("a text"));
        let expected = format!("could not create plugin '{plugin}', error: {error}");
        if reply["error"]["message"] != *expected {
            self.failures.push(format!("{reply} instead of {expected}"));
        }
    }

    fn play(&mut self, stimulus: &Stimulus) {
        let what = &stimulus.what;
        if what["what"] == "rpc" {
            let request = &what["request"];
            let method = request["method"].as_str().expect("a method");
            let reply = self.request(method, &request["params"]);
            let expected = &what["reply"];
            for part in ["result", "error"] {
                if reply.get(part) != expected.get(part) {
                    let text = format!("{method} at {}: {reply}, not {expected}", self.now);
                    self.failures.push(text);
                }
            }
        } else {
            let mut frame = hex(&what["hex"]);
            set_ping_time(&mut frame, self.now - PING_LATENCY);
            self.emulation.handle_frame(self.now, 1, &frame);
            self.collect();
        }
    }

    fn run(&mut self, scenario: &Value) {
        self.set_up(scenario);
        let mut stimuli = stimuli(scenario);
        while let Some(next) = stimuli.pop_front() {
            self.run_until(next.at.saturating_sub(1));
            // A peer answers what was sent: it may be a little later here.
            let patience = next.at + TOLERANCE;
            while self.sent.borrow().len() < next.after_sent && self.now < patience {
                self.run_until(self.now + MILLISECOND);
            }
            self.run_until(next.at);
            self.play(&next);
        }
        let last = scenario["expected"].as_array().expect("packets").last();
        let end = last.map_or(TICK, |packet| at(&packet["time"]));
        let duration = scenario["duration_s"]
            .as_f64()
            .map_or(end, |s| (s * 1e9) as u64);
        // The clock began with the first tick.
        self.run_until(end.max(duration + TICK));
    }

    /// Compares the frames that were sent, each with one of the same bytes at about the same time.
    fn compare_frames(&mut self, scenario: &Value) {
        let expected = &scenario["expected"];
        let name = full_name(scenario);
        let faults = || {
            let faults = FAULTS.iter().filter(|(of, ..)| *of == name);
            faults.map(|(_, seconds, ..)| Some(*seconds))
        };
        let earlier = EARLIER.iter().find(|(of, ..)| *of == name);
        let earlier = earlier.map_or(0, |(_, seconds, _)| (seconds * 1e9) as u64);
        let records = FlowRecords::of(scenario);
        let mut ours = self.sent.borrow().clone();
        let (mut drawn, mut theirs) = (Drawn::default(), Drawn::default());
        for (_, frame) in &mut ours {
            set_ping_time(frame, 0);
            *frame = records.masked(frame, &mut drawn);
        }
        for packet in expected.as_array().expect("packets") {
            if packet["dir"] != "tx" {
                continue;
            }
            let (time, mut frame) = (at(&packet["time"]), hex(&packet["hex"]));
            set_ping_time(&mut frame, 0);
            let frame = records.masked(&frame, &mut theirs);
            let is_faulty = faults().any(|fault| fault == packet["time"].as_f64());
            let is_it = |(sent, bytes): &(Nanos, Vec<u8>)| {
                let first = time.saturating_sub(TOLERANCE + earlier);
                let is_same = match is_faulty {
                    true => kind(bytes) == kind(&frame),
                    false => is_same(bytes, &frame),
                };
                (first..=time + TOLERANCE).contains(sent) && is_same
            };
            match ours.iter().position(is_it) {
                Some(place) => drop(ours.remove(place)),
                None => self.failures.push(format!("not sent: {packet}")),
            }
        }
        let packets = expected.as_array().and_then(|packets| packets.last());
        let last = packets.map_or(0, |packet| at(&packet["time"]));
        // What was sent in the last tick was counted, but not all of it was recorded.
        let duration = scenario["duration_s"].as_f64().unwrap_or(f64::MAX);
        ours.retain(|(time, _)| *time <= last || (*time as f64) <= duration * 1e9);
        self.failures.extend(records.compare(&drawn, &theirs));
        for (time, frame) in ours {
            let bytes: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
            let seconds = time as f64 / 1e9;
            self.failures
                .push(format!("not expected: {seconds} {bytes}"));
        }
    }

    fn compare_counters(&mut self, scenario: &Value) {
        let expected = &scenario["counters"];
        let veth = self.request("ctx_cnt", &json!({"mask": ["veth"]}));
        let veth = &veth["result"]["veth"];
        let name = full_name(scenario);
        let faults = FAULTS.iter().filter(|(of, ..)| *of == name);
        let too_many: u64 = faults.map(|(_, _, bytes, _)| bytes).sum();
        let has_random_lengths = FlowRecords::of(scenario).has_random_lengths();
        for (name, value) in expected["veth"].as_object().into_iter().flatten() {
            let is_bytes = name == "TxBytes";
            let is_random = has_random_lengths && is_bytes;
            let too_many = if is_bytes { too_many } else { 0 };
            let value = value.as_u64().map(|value| value - too_many);
            if veth[name].as_u64() != value && !is_random {
                let text = format!("veth {name}: {} instead of {value:?}", veth[name]);
                self.failures.push(text);
            }
        }
        let plugin = scenario["plugin"].as_str().expect("a plugin");
        let method = COUNTERS.iter().find(|(name, _)| *name == plugin);
        let tables = expected["plugin_objects_in_order"].as_array();
        if let (Some((_, method)), Some([table])) = (method, tables.map(|tables| &tables[..])) {
            self.compare_table(scenario, method, 0, table);
        }
        let methods = COUNTERS_OF_CLIENTS.iter().find(|(name, _)| *name == plugin);
        if let (Some((_, methods)), Some(tables)) = (methods, tables) {
            let clients = scenario["setup"]["namespaces"][0]["clients"].as_array();
            let clients = clients.map_or(0, Vec::len);
            // Those of other plugins may follow.
            for (place, table) in tables.iter().enumerate().take(clients + 1) {
                let method = methods[usize::from(place == clients)];
                self.compare_table(scenario, method, place, table);
            }
        }
    }

    fn compare_table(&mut self, scenario: &Value, method: &str, place: usize, expected: &Value) {
        let namespace = &scenario["setup"]["namespaces"][0];
        let mac = &namespace["clients"][place]["mac"];
        let table = TABLES
            .iter()
            .find(|(plugin, _)| scenario["plugin"] == *plugin);
        let mask: Vec<_> = table.iter().map(|(_, table)| table).collect();
        let params = json!({"tun": namespace["tun"], "mac": bytes_of_mac(mac), "mask": mask});
        let reply = self.request(method, &params);
        let ours = reply["result"].as_object().into_iter().flatten();
        let mut ours: Map<String, Value> = ours
            .flat_map(|(_, table)| table.as_object().cloned().unwrap_or_default())
            .collect();
        let mut expected = expected.as_object().cloned().unwrap_or_default();
        expected.retain(|_, value| *value != 0);
        ours.retain(|name, value| *value != 0 && !AFTER_THE_END.contains(&name.as_str()));
        if scenario["plugin"] == "ipfix" {
            ours.retain(|name, _| !LATER.contains(&name.as_str()));
        }
        if ours != expected {
            let text = format!("counters {ours:?}\n    instead of {expected:?}");
            self.failures.push(text);
        }
    }
}

/// The name of a scenario's file.
fn full_name(scenario: &Value) -> String {
    let text = |name: &str| scenario[name].as_str().unwrap_or_default();
    format!("{}__{}", text("plugin"), text("name"))
}

/// What comes from outside, by time.
fn stimuli(scenario: &Value) -> VecDeque<Stimulus> {
    let list = |name: &str| scenario[name].as_array().cloned().unwrap_or_default();
    let given = list("stimuli").into_iter().chain(list("peer_packets"));
    let mut stimuli: Vec<Stimulus> = given
        .map(|what| Stimulus {
            at: at(&what["time"]),
            after_sent: what["answers_tx_number"].as_u64().unwrap_or(0) as usize,
            what,
        })
        .collect();
    stimuli.sort_by_key(|stimulus| stimulus.at);
    stimuli.into()
}

/// Plugins with their init JSON.
fn plugins(list: &Value) -> Value {
    let list = list.as_array().into_iter().flatten();
    let plugins = list.map(|plugin| {
        let name = plugin["plugin"].as_str().expect("a name");
        (name.to_owned(), plugin["init"].clone())
    });
    Value::Object(plugins.collect())
}

fn bytes_of_mac(text: &Value) -> Value {
    let mac: Option<MacAddress> = text.as_str().and_then(|text| text.parse().ok());
    json!(mac.map(MacAddress::octets))
}

/// A client as the RPC has it.
fn given(client: &Value) -> Value {
    let mut params = Map::new();
    for (name, value) in client.as_object().expect("a client") {
        let text = value.as_str().unwrap_or_default();
        let value = match name.as_str() {
            "plugins" => {
                params.insert("plugs".to_owned(), plugins(value));
                continue;
            }
            "mac" | "ipv4_force_mac" | "ipv6_force_mac" => bytes_of_mac(value),
            "ipv4" | "ipv4_dg" => json!(text.parse::<Ipv4Addr>().ok().map(|a| a.octets())),
            "ipv6" | "dg_ipv6" => json!(text.parse::<Ipv6Addr>().ok().map(|a| a.octets())),
            _ => value.clone(),
        };
        params.insert(name.clone(), value);
    }
    Value::Object(params)
}

/// Whether two frames are equal, but for times that they tell: those of DHCPv6 may be a tick off, each
/// where it began and where it ended, with the checksum.
fn is_same(ours: &[u8], theirs: &[u8]) -> bool {
    ours == theirs
        || match (elapsed(ours), elapsed(theirs)) {
            (Some((ours, our_time)), Some((theirs, their_time))) => {
                ours == theirs && our_time.abs_diff(their_time) <= 20
            }
            _ => false,
        }
}

/// From and to whom a datagram is, and what its first byte says that it is for.
fn kind(frame: &[u8]) -> (&[u8], Option<u8>) {
    let payload = parse(frame).payload(frame);
    (&frame[..12], payload.first().copied())
}

/// A frame of DHCPv6 to a server, without the time that the client has been trying and the checksum;
/// and that time in hundredths of a second.
fn elapsed(frame: &[u8]) -> Option<(Vec<u8>, u16)> {
    const PORTS: [u8; 4] = [2, 34, 2, 35];
    const OPTION: [u8; 4] = [0, 8, 0, 2];
    let udp = frame.windows(4).position(|bytes| bytes == PORTS)?;
    let at = udp + frame[udp..].windows(4).position(|bytes| bytes == OPTION)? + 4;
    let mut frame = frame.to_vec();
    let time = u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]);
    frame[at..at + 2].fill(0);
    frame[udp + 6..udp + 8].fill(0);
    Some((frame, time))
}

fn play(name: &str, shards: usize) -> Vec<String> {
    let file = data::folder("emu/scenarios").join(format!("{name}.json.gz"));
    let scenario: Value = serde_json::from_str(&data::text(&file)).expect("a scenario is JSON");
    let mut player = Player::new(shards);
    player.run(&scenario);
    player.compare_frames(&scenario);
    player.compare_counters(&scenario);
    player.failures
}

#[test]
fn all_scenarios_are_played() {
    for path in data::files("emu/scenarios", ".json.gz") {
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.expect("a name").trim_end_matches(".json.gz");
        // Those of engines and of two endpoints are played by unit tests, all that are there.
        let is_elsewhere =
            name.starts_with("field_engine__") || data::text(&path).contains("\"endpoints\"");
        assert!(SCENARIOS.contains(&name) != is_elsewhere, "{name}");
    }
}

/// Plays all of them, with clients on so many shards.
fn play_all(shards: usize) {
    let mut text = String::new();
    for name in SCENARIOS {
        let failures = play(name, shards);
        if !failures.is_empty() {
            text += &format!("{name}: {} differences\n", failures.len());
            for failure in failures.iter().take(12) {
                text += &format!("  {failure}\n");
            }
        }
    }
    assert!(text.is_empty(), "{text}");
}

#[test]
fn golden_scenarios_are_equal_packet_by_packet() {
    play_all(1);
}

#[test]
fn golden_scenarios_are_the_same_on_several_shards() {
    (2..=3).for_each(play_all);
}
