//! Requests and frames that are wrong: errors name the thing, state stays whole, nothing panics.

use allosaur_emulation::{Emulation, Settings};
use allosaur_engine::time::SECOND;
use proptest::prelude::*;
use serde_json::{Value, json};

/// The emulation of a test, with one namespace and clients of it.
struct Hosts(Emulation);

impl Hosts {
    fn new(clients: u8) -> Hosts {
        let mut hosts = Hosts(Emulation::new(Settings::default(), 0));
        let tunnel = json!({"vport": 1, "plugs": {"arp": {}, "icmp": {}}});
        hosts.done("ctx_add", json!({"tunnels": [tunnel]}));
        for number in 1..=clients {
            hosts.done("ctx_client_add", add(client(number)));
        }
        hosts
    }

    fn ask(&mut self, method: &str, params: Value) -> Result<Value, String> {
        let reply = self.0.handle_request(0, method, &params);
        reply.map_err(|error| error.to_string())
    }

    fn done(&mut self, method: &str, params: Value) {
        assert_eq!(self.ask(method, params), Ok(json!(true)));
    }

    fn refused(&mut self, method: &str, params: Value, words: &str) {
        let before = self.state();
        let error = self.ask(method, params).expect_err("it is refused");
        assert!(error.contains(words), "{error}");
        assert_eq!(self.state(), before);
    }

    /// Namespaces and clients, with their plugins.
    fn state(&mut self) -> (Value, Value) {
        let pages = [
            ("ctx_iter", json!({"reset": true, "count": 255})),
            (
                "ctx_client_iter",
                json!({"reset": true, "count": 255, "tun": {"vport": 1}}),
            ),
        ];
        let [namespaces, clients] = pages.map(|(method, params)| self.ask(method, params));
        (namespaces.expect("namespaces"), clients.expect("clients"))
    }

    /// Lets time pass; gives what was sent.
    fn pass(&mut self, until: u64) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        while let Some(due) = self.0.poll_timeout().filter(|&due| due <= until) {
            self.0.handle_timeout(due);
            frames.extend(self.frames());
        }
        frames
    }

    fn frames(&mut self) -> Vec<Vec<u8>> {
        let mut frames = Vec::new();
        while let Some(transmit) = self.0.poll_transmit() {
            frames.push(transmit.frame.to_vec());
        }
        frames
    }
}

fn client(number: u8) -> Value {
    json!({
        "mac": [2, 0, 0, 0, 1, number],
        "ipv4": [10, 0, 0, number],
        "ipv4_dg": [10, 0, 0, 254],
        "plugs": {"arp": {}, "icmp": {}},
    })
}

fn add(client: Value) -> Value {
    json!({"tun": {"vport": 1}, "clients": [client]})
}

#[test]
fn what_is_taken_or_unknown_is_refused_by_name() {
    let mut hosts = Hosts::new(2);
    let again = |field: &str, value: Value| {
        let mut other = client(9);
        other[field] = value;
        add(other)
    };
    let taken = [
        ("mac", json!([2, 0, 0, 0, 1, 1]), "MAC 02:00:00:00:01:01"),
        ("ipv4", json!([10, 0, 0, 2]), "IPv4 [10 0 0 2]"),
        ("mac", json!([0, 0, 0, 0, 0, 0]), "zero MAC"),
        ("mac", json!("02:00:00:00:01:09"), "core.MACKey"),
        ("ipv4_mtu", json!(70_000), "70000"),
        ("plugs", json!([1]), "core.MapJsonPlugs"),
    ];
    for (field, value, words) in taken {
        hosts.refused("ctx_client_add", again(field, value), words);
    }
    let twice = json!({"tunnels": [{"vport": 1}]});
    hosts.refused("ctx_add", twice, "1,{0000:0000}");
    let far = json!({"tunnels": [{"vport": 65_536}]});
    hosts.refused("ctx_add", far, "65536");
    let wide = json!({"tunnels": [{"vport": 1, "tci": [65_536]}]});
    hosts.refused("ctx_add", wide, "65536");
    let nobody = json!({"tun": {"vport": 1}, "macs": [[9, 9, 9, 9, 9, 9]]});
    hosts.refused("ctx_client_get_info", nobody, "09:09:09:09:09:09");
    hosts.refused(
        "arp_ns_cnt",
        json!({"tun": {"vport": 7}}),
        "no valid namespace",
    );
}

#[test]
fn keys_that_nobody_knows_are_refused_with_what_was_meant() {
    let mut hosts = Hosts::new(1);
    let mut other = client(9);
    other["ipv4_gw"] = json!([10, 0, 0, 1]);
    hosts.refused(
        "ctx_client_add",
        add(other),
        "\"ipv4_gw\" in clients[0]: is it \"ipv4_dg\"?",
    );
    let mut other = client(9);
    other["color"] = json!(1);
    hosts.refused(
        "ctx_client_add",
        add(other),
        "\"color\" in clients[0]: there are mac, ipv4,",
    );
    let tunnel = json!({"vport": 1, "vlan": 5});
    hosts.refused(
        "ctx_add",
        json!({"tunnels": [tunnel]}),
        "unknown field \"vlan\" in tunnels[0]",
    );
    let tunnel = json!({"vport": 1, "tsi": [5, 0]});
    hosts.refused("ctx_client_iter", json!({"tun": tunnel}), "is it \"tci\"?");
    let of_namespace =
        |name: &str, init: Value| json!({"tunnels": [{"vport": 2, "plugs": {name: init}}]});
    for (name, init, words) in [
        (
            "igmp",
            json!({"mt": 1500}),
            "plugin 'igmp', error: json: unknown field \"mt\": is it \"mtu\"?",
        ),
        ("arp", json!({"timers": 5}), "is it \"timer\"?"),
        ("icmp", json!({"a": 5}), "leave it out, there are none here"),
        ("dhcpv6", json!({"timer": 5}), "is it \"timerd\"?"),
        ("dns", json!({"autoplay": true}), "is it \"auto_play\"?"),
        ("transport", json!({"ms": 5}), "is it \"mss\"?"),
    ] {
        let error = hosts
            .ask("ctx_add", of_namespace(name, init.clone()))
            .expect_err(words);
        assert!(error.contains(words), "{error}");
        hosts.done("ctx_remove", json!({"tunnels": [{"vport": 2}]}));
        let mut other = client(9);
        other["plugs"] = json!({name: init});
        let error = hosts.ask("ctx_client_add", add(other)).expect_err(words);
        assert!(error.contains(words), "{error}");
        let macs = json!([[2, 0, 0, 0, 1, 9]]);
        hosts.done(
            "ctx_client_remove",
            json!({"tun": {"vport": 1}, "macs": macs}),
        );
    }
}

/// An exporter with one generator, whose only engine has a type and parameters.
fn with_engine(engine_type: &str, params: &Value) -> Value {
    let field = json!({"name": "f", "type": 1, "length": 4, "data": [0, 0, 0, 0]});
    let engine = json!({"engine_name": "f", "engine_type": engine_type, "params": params});
    let generator =
        json!({"name": "g", "template_id": 256, "fields": [field], "engines": [engine]});
    json!({"dst": "10.0.0.1:4739", "generators": [generator]})
}

/// A client is refused a plugin, with these words.
fn refused_plugin(hosts: &mut Hosts, number: u8, name: &str, init: &Value, words: &str) {
    let mut other = client(number);
    other["plugs"] = json!({name: init});
    let error = hosts.ask("ctx_client_add", add(other)).expect_err(words);
    assert!(error.contains(&format!("plugin '{name}'")), "{error}");
    assert!(error.contains(words), "{error}");
}

#[test]
fn keys_that_nobody_knows_are_refused_in_objects_of_an_init_json_too() {
    let pool = json!({"min": "10.0.0.2", "max": "10.0.0.9", "prefix": 24, "excluded": []});
    let mut hosts = Hosts::new(0);
    for (number, (name, init, words)) in (1..).zip([
        (
            "dhcp",
            json!({"options": {"diss": [[60, 1]]}}),
            "\"diss\" in options: is it \"dis\"?",
        ),
        (
            "dhcpv6",
            json!({"options": {"rm_oc": true}}),
            "\"rm_oc\" in options: is it \"rm_or\"?",
        ),
        (
            "dhcpsrv",
            json!({"pools": [], "options": {"offers": []}}),
            "\"offers\" in options: is it \"offer\"?",
        ),
        (
            "dhcpsrv",
            json!({"pools": [], "options": {"ack": [{"type": 6, "dat": [8, 8, 8, 8]}]}}),
            "\"dat\" in options.ack[0]: is it \"data\"?",
        ),
        (
            "dhcpsrv",
            json!({"pools": [pool]}),
            "\"excluded\" in pools[0]: is it \"exclude\"?",
        ),
        (
            "lldp",
            json!({"options": {"row": []}}),
            "\"row\" in options: is it \"raw\"?",
        ),
        (
            "cdp",
            json!({"options": {"ttl": 5}}),
            "\"ttl\" in options: there are raw",
        ),
        (
            "appsim",
            json!({"data": {"s-1": {"cpss": 1.0, "t": "c"}}}),
            "\"cpss\" in data.s-1: is it \"cps\"?",
        ),
        (
            "dns",
            json!({"name_server": true, "database": {"a.b": [{"answers": "10.0.0.1"}]}}),
            "\"answers\" in database.a.b[0]: is it \"answer\"?",
        ),
    ]) {
        refused_plugin(&mut hosts, number, name, &init, words);
    }
}

#[test]
fn keys_that_nobody_knows_are_refused_in_engines_of_fields_and_messages() {
    let uint = json!({"size": 4, "min": 0, "max": 9, "op": "inc", "repeats": 2});
    let entry = json!({"v": 1, "probe": 2});
    let tdl = |header: Value, kind: Value| {
        json!({"dst": "10.0.0.1:9", "header": header, "meta_data": [], "init_values": [],
            "object": kind})
    };
    let whole = json!({"name": "o", "type": "uint8"});
    let mut hosts = Hosts::new(0);
    for (number, (name, init, words)) in (1..).zip([
        (
            "ipfix",
            with_engine("uint", &uint),
            "\"repeats\" in params: is it \"repeat\"?",
        ),
        (
            "ipfix",
            with_engine("histogram_uint", &json!({"size": 4, "entries": [entry]})),
            "\"probe\" in entries[0]: is it \"prob\"?",
        ),
        (
            "ipfix",
            with_engine("time_end", &json!({"size": 4, "duration_mix": 1})),
            "\"duration_mix\" in params: is it \"duration_max\"?",
        ),
        (
            "tdl",
            tdl(
                json!({"uuid": 1, "luid": []}),
                json!({"name": "o", "type": "uint8", "kind": 1}),
            ),
            "\"kind\" in object: there are name, type",
        ),
        (
            "tdl",
            tdl(json!({"uuid": 1, "luid": [], "tenant": 7}), whole),
            "\"tenant\" in header: ",
        ),
    ]) {
        refused_plugin(&mut hosts, number, name, &init, words);
    }
}

#[test]
fn a_plugin_that_is_refused_leaves_its_client_without_it() {
    let mut hosts = Hosts::new(0);
    let mut wrong = client(1);
    wrong["plugs"] = json!({"arp": {"timer": "x"}, "icmp": {}});
    let error = hosts
        .ask("ctx_client_add", add(wrong))
        .expect_err("refused");
    assert!(
        error.contains("'arp'") && error.contains("uint32"),
        "{error}"
    );
    let mut wrong = client(2);
    wrong["plugs"] = json!({"nosuch": {}, "icmp": {}});
    let error = hosts
        .ask("ctx_client_add", add(wrong))
        .expect_err("refused");
    assert!(error.contains("nosuch"), "{error}");
    for (number, names) in [(1, json!([])), (2, json!(["icmp"]))] {
        let macs = json!({"tun": {"vport": 1}, "macs": [[2, 0, 0, 0, 1, number]]});
        let info = hosts.ask("ctx_client_get_info", macs).expect("it is there");
        assert_eq!(info[0]["plug_names"], names, "client {number}");
    }
    // What is left of them answers and goes.
    hosts.frames();
    hosts.done(
        "ctx_client_remove",
        json!({"tun": {"vport": 1}, "macs": [[2, 0, 0, 0, 1, 1], [2, 0, 0, 0, 1, 2]]}),
    );
    hosts.0.handle_timeout(100 * SECOND);
    assert_eq!(hosts.frames(), Vec::<Vec<u8>>::new());
}

#[test]
fn tags_and_macs_are_what_the_reference_makes_of_them() {
    let mut hosts = Hosts::new(0);
    // Priority bits are no part of a tag.
    hosts.done(
        "ctx_add",
        json!({"tunnels": [{"vport": 1, "tci": [0x6005, 0]}]}),
    );
    let info = hosts.ask(
        "ctx_get_info",
        json!({"tunnels": [{"vport": 1, "tci": [5]}]}),
    );
    assert_eq!(info.expect("it is there")[0]["tci"], json!([5, 0]));
    let mut multicast = client(1);
    multicast["mac"] = json!([1, 0, 94, 0, 0, 1]);
    hosts.done("ctx_client_add", add(multicast));
}

#[test]
fn a_namespace_with_clients_stays() {
    let mut hosts = Hosts::new(1);
    let tunnels = json!({"tunnels": [{"vport": 1}]});
    hosts.refused("ctx_remove", tunnels.clone(), "still has active clients");
    hosts.done(
        "ctx_client_remove",
        json!({"tun": {"vport": 1}, "macs": [[2, 0, 0, 0, 1, 1]]}),
    );
    hosts.done("ctx_remove", tunnels);
    hosts.0.handle_timeout(100 * SECOND);
    hosts.0.handle_frame(100 * SECOND, 1, &[0xff; 60]);
    // Another in its place does not inherit its timers.
    hosts.done("ctx_add", json!({"tunnels": [{"vport": 2}]}));
    hosts.frames();
    hosts.0.handle_timeout(200 * SECOND);
    assert_eq!(hosts.frames(), Vec::<Vec<u8>>::new());
}

#[test]
fn a_reader_learns_that_the_table_changed() {
    let mut hosts = Hosts::new(5);
    let page = |reset: bool| json!({"tun": {"vport": 1}, "reset": reset, "count": 2});
    let first = hosts.ask("ctx_client_iter", page(true)).expect("a page");
    assert_eq!(
        first["data"],
        json!([[2, 0, 0, 0, 1, 1], [2, 0, 0, 0, 1, 2]])
    );
    hosts.done(
        "ctx_client_remove",
        json!({"tun": {"vport": 1}, "macs": [[2, 0, 0, 0, 1, 3]]}),
    );
    let error = hosts
        .ask("ctx_client_iter", page(false))
        .expect_err("changed");
    assert!(error.contains("reset"), "{error}");
    let again = hosts.ask("ctx_client_iter", page(true)).expect("a page");
    assert_eq!(again["data"], first["data"]);
    let second = hosts.ask("ctx_client_iter", page(false)).expect("a page");
    assert_eq!(
        second["data"],
        json!([[2, 0, 0, 0, 1, 4], [2, 0, 0, 0, 1, 5]])
    );
    let over = hosts.ask("ctx_client_iter", page(false)).expect("a page");
    assert_eq!(over["stopped"], true);
}

#[test]
fn readers_of_namespaces_and_neighbors_learn_of_changes_too() {
    let mut hosts = Hosts::new(3);
    for vport in 2..5 {
        hosts.done("ctx_add", json!({"tunnels": [{"vport": vport}]}));
    }
    let page = |reset: bool| json!({"reset": reset, "count": 2});
    hosts.ask("ctx_iter", page(true)).expect("a page");
    hosts.done("ctx_remove", json!({"tunnels": [{"vport": 4}]}));
    let error = hosts.ask("ctx_iter", page(false)).expect_err("changed");
    assert!(error.contains("reset"), "{error}");

    let page = |reset: bool| json!({"tun": {"vport": 1}, "reset": reset, "count": 1});
    // Neighbors that nobody needs are forgotten after a while.
    for neighbor in 100..104 {
        let sender = [2, 0, 0, 0, 9, neighbor, 10, 0, 0, neighbor];
        let to = [2, 0, 0, 0, 1, 1, 10, 0, 0, 1];
        let link = [
            0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 9, neighbor, 8, 6,
        ];
        let frame = [&link[..], &[0, 1, 8, 0, 6, 4, 0, 1], &sender, &to].concat();
        hosts.0.handle_frame(0, 1, &frame);
    }
    let first = hosts.ask("arp_ns_iter", page(true)).expect("a page");
    assert_eq!(first["data"][0]["ipv4"], json!([10, 0, 0, 254]));
    hosts.pass(100 * SECOND);
    let error = hosts.ask("arp_ns_iter", page(false)).expect_err("changed");
    assert!(error.contains("reset"), "{error}");
}

#[test]
fn a_gateway_that_never_answers_costs_a_question_now_and_then() {
    let mut hosts = Hosts::new(5);
    hosts.frames();
    let sent = hosts.pass(3600 * SECOND);
    // The cache asks every 17 s, each client every minute.
    assert!((200..600).contains(&sent.len()), "{} frames", sent.len());
    assert!(sent.iter().all(|frame| frame[38..42] == [10, 0, 0, 254]));
    let one = json!({"tun": {"vport": 1}, "macs": [[2, 0, 0, 0, 1, 1]]});
    let info = hosts.ask("ctx_client_get_info", one);
    let expected = json!({"resolve": false, "rmac": [0, 0, 0, 0, 0, 0]});
    assert_eq!(info.expect("it is there")[0]["dgw"], expected);
    for number in 1..=5 {
        let macs = json!({"tun": {"vport": 1}, "macs": [[2, 0, 0, 0, 1, number]]});
        hosts.done("ctx_client_remove", macs);
    }
    hosts.frames();
    assert_eq!(hosts.pass(7200 * SECOND), Vec::<Vec<u8>>::new());
}

#[test]
fn all_plugins_of_a_new_client_hear_of_a_gateway_that_is_known() {
    let mut hosts = Hosts(Emulation::new(Settings::default(), 0));
    // The namespace has none but ARP and appsim: the others are made with the client.
    let program = json!({
        "buf_list": ["YWJj"],
        "program_list": [{"commands": [{"name": "tx", "buf_index": 0}]}],
        "templates": [{
            "client_template": {"program_index": 0},
            "server_template": {"assoc": [{"port": 80}], "program_index": 0},
        }],
    });
    let tunnel = json!({"vport": 1, "plugs": {"arp": {}, "appsim": program}});
    hosts.done("ctx_add", json!({"tunnels": [tunnel]}));
    let mut reply = vec![2, 0, 0, 0, 1, 1, 2, 0, 0, 0, 9, 1, 8, 6];
    reply.extend([0, 1, 8, 0, 6, 4, 0, 2, 2, 0, 0, 0, 9, 1, 10, 0, 0, 254]);
    reply.extend([2, 0, 0, 0, 1, 1, 10, 0, 0, 1]);
    hosts.0.handle_frame(0, 1, &reply);
    let mut asks = client(2);
    let stream = json!({"cps": 1.0, "t": "c", "tid": 0, "stream": true, "dst": "10.0.0.9:80"});
    asks["plugs"] = json!({"arp": {}, "transport": {}, "appsim": {"data": {"web": stream}}});
    hosts.done("ctx_client_add", add(asks));
    let sent = [hosts.frames(), hosts.pass(SECOND)].concat();
    let is_tcp = |frame: &Vec<u8>| frame[12..14] == [8, 0] && frame[23] == 6;
    assert!(sent.iter().any(is_tcp), "{sent:02x?}");
}

/// 3,000 clients of one gateway, for IPv4 and for IPv6.
fn crowd() -> Hosts {
    let mut hosts = Hosts::new(0);
    let ipv6 = |high: u8, low: u8| {
        let mut octets = [0; 16];
        (octets[0], octets[1], octets[14], octets[15]) = (32, 1, high, low);
        octets
    };
    let client = |number: u16| {
        let [high, low] = number.to_be_bytes();
        json!({
            "mac": [2, 0, 0, 1, high, low], "ipv4": [10, 1, high, low],
            "ipv4_dg": [10, 0, 0, 254], "ipv6": ipv6(high, low), "dg_ipv6": ipv6(99, 0),
            "plugs": {"arp": {"timer_disable": true}, "ipv6": {"nd_timer_disable": true}},
        })
    };
    let clients: Vec<Value> = (0..3000).map(client).collect();
    let params = json!({"tun": {"vport": 1}, "clients": clients});
    hosts.done("ctx_client_add", params);
    hosts.frames();
    hosts
}

/// How many of them heard of the gateway's MAC address.
fn resolved(hosts: &mut Hosts, family: &str, last: u8) -> usize {
    let heard = (0..3000_u16).filter(|number| {
        let [high, low] = number.to_be_bytes();
        let one = json!({"tun": {"vport": 1}, "macs": [[2, 0, 0, 1, high, low]]});
        let info = hosts.ask("ctx_client_get_info", one).expect("it is there");
        info[0][family]["rmac"] == json!([2, 0, 0, 0, 9, last])
    });
    heard.count()
}

#[test]
fn many_clients_hear_of_their_gateway_in_steps_and_of_the_last_one() {
    let mut hosts = crowd();
    let reply = |last: u8| {
        let mut frame = vec![2, 0, 0, 1, 0, 0, 2, 0, 0, 0, 9, last, 8, 6];
        frame.extend([0, 1, 8, 0, 6, 4, 0, 2, 2, 0, 0, 0, 9, last, 10, 0, 0, 254]);
        frame.extend([2, 0, 0, 1, 0, 0, 10, 1, 0, 0]);
        frame
    };
    hosts.0.handle_frame(0, 1, &reply(1));
    let some = resolved(&mut hosts, "dgw", 1);
    assert!((1..3000).contains(&some), "{some} of 3000 at once");
    hosts.0.handle_frame(0, 1, &reply(2));
    hosts.pass(SECOND / 100);
    assert_eq!(resolved(&mut hosts, "dgw", 2), 3000);
}

#[test]
fn many_clients_hear_of_their_ipv6_gateway_in_steps_too() {
    let mut hosts = crowd();
    // A neighbor advertisement to all nodes.
    let advertisement = |last: u8| {
        let (mut source, mut destination) = ([0; 16], [0; 16]);
        (source[0], source[1], source[14]) = (32, 1, 99);
        (destination[0], destination[1], destination[15]) = (0xff, 2, 1);
        let mut message = vec![136, 0, 0, 0, 0x20, 0, 0, 0];
        message.extend(source);
        message.extend([2, 1, 2, 0, 0, 0, 9, last]);
        let pseudo = [&source[..], &destination, &[0, 0, 0, 32, 0, 0, 0, 58]].concat();
        let words = [&pseudo[..], &message].concat();
        let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(pair[1]);
        let sum: u32 = words.chunks(2).map(word).sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        let checksum = !((folded & 0xffff) + (folded >> 16)) as u16;
        message[2..4].copy_from_slice(&checksum.to_be_bytes());
        let link = [0x33, 0x33, 0, 0, 0, 1, 2, 0, 0, 0, 9, last, 0x86, 0xdd];
        let header = [0x60, 0, 0, 0, 0, 32, 58, 255];
        [&link[..], &header, &source, &destination, &message].concat()
    };
    hosts.0.handle_frame(0, 1, &advertisement(1));
    let some = resolved(&mut hosts, "ipv6_dgw", 1);
    assert!((1..3000).contains(&some), "{some} of 3000 at once");
    hosts.0.handle_frame(0, 1, &advertisement(2));
    hosts.pass(SECOND);
    assert_eq!(resolved(&mut hosts, "ipv6_dgw", 2), 3000);
}

#[test]
fn counters_outlive_clients_where_they_are_not_theirs() {
    let mut hosts = Hosts::new(0);
    let mut one = client(1);
    one["plugs"] = json!({"arp": {}, "icmp": {}, "dhcp": {}});
    hosts.done("ctx_client_add", add(one));
    let of_client = json!({"tun": {"vport": 1}, "mac": [2, 0, 0, 0, 1, 1]});
    let counters = hosts.ask("dhcp_client_cnt", of_client.clone());
    assert_eq!(counters, Ok(json!({"dhcp": {"pktTxDiscover": 1}})));
    let of_namespace = json!({"tun": {"vport": 1}});
    let before = hosts
        .ask("arp_ns_cnt", of_namespace.clone())
        .expect("counters");
    let macs = json!({"tun": {"vport": 1}, "macs": [[2, 0, 0, 0, 1, 1]]});
    hosts.done("ctx_client_remove", macs);
    for method in [
        "dhcp_client_cnt",
        "icmp_c_get_ping_stats",
        "icmp_c_stop_ping",
    ] {
        hosts.refused(method, of_client.clone(), "02:00:00:00:01:01");
    }
    let after = hosts
        .ask("arp_ns_cnt", of_namespace.clone())
        .expect("counters");
    assert_eq!(after["arp"]["pktTxGArp"], before["arp"]["pktTxGArp"]);
    assert_eq!(after["arp"]["disasociateWithClient"], 1);
    // One that comes in its place begins at nothing.
    let mut again = client(1);
    again["plugs"] = json!({"dhcp": {}});
    hosts.done("ctx_client_add", add(again));
    let counters = hosts.ask("dhcp_client_cnt", of_client);
    assert_eq!(counters, Ok(json!({"dhcp": {"pktTxDiscover": 1}})));
    hosts.done("arp_ns_cnt", json!({"tun": {"vport": 1}, "clear": true}));
    assert_eq!(hosts.ask("arp_ns_cnt", of_namespace), Ok(json!({})));
}

#[test]
fn echo_requests_that_are_not_for_a_client_are_counted() {
    let mut hosts = Hosts::new(1);
    let echo = |destination: [u8; 6], to: u8, kind: u8, checksum: [u8; 2]| {
        let mut frame = [&destination[..], &[2, 0, 0, 0, 9, 9], &[8, 0]].concat();
        frame.extend([
            0x45, 0, 0, 28, 0, 1, 0, 0, 64, 1, 0x66, 0xdf, 10, 0, 0, 9, 10, 0, 0, to,
        ]);
        let header = [
            10_u16 << 8 | 9,
            10 << 8 | u16::from(to),
            0x4500,
            28,
            1,
            64 << 8 | 1,
            10 << 8,
            10 << 8,
        ];
        let sum: u32 = header.iter().map(|&word| u32::from(word)).sum::<u32>() - 0x0a00 * 2;
        let folded = !((sum & 0xffff) + (sum >> 16)) as u16;
        frame[24..26].copy_from_slice(&folded.to_be_bytes());
        frame.extend([kind, 0]);
        frame.extend(checksum);
        frame.extend([0, 7, 0, 9]);
        frame
    };
    let mac = [2, 0, 0, 0, 1, 1];
    hosts.frames();
    hosts.0.handle_frame(0, 1, &echo(mac, 1, 8, [0xf7, 0xef]));
    let answers = hosts.frames();
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0][..12], [2, 0, 0, 0, 9, 9, 2, 0, 0, 0, 1, 1]);
    assert_eq!(answers[0][34..38], [0, 0, 0xff, 0xef]);
    hosts
        .0
        .handle_frame(0, 1, &echo([0xff; 6], 1, 8, [0xf7, 0xef]));
    hosts.0.handle_frame(0, 1, &echo(mac, 2, 8, [0xf7, 0xef]));
    hosts.0.handle_frame(0, 1, &echo(mac, 1, 8, [0xf7, 0xee]));
    hosts.0.handle_frame(0, 1, &echo(mac, 1, 13, [0xf2, 0xef]));
    hosts.0.handle_frame(0, 1, &echo(mac, 1, 17, [0xee, 0xef]));
    assert_eq!(hosts.frames(), Vec::<Vec<u8>>::new());
    let counters = hosts.ask("icmp_ns_cnt", json!({"tun": {"vport": 1}}));
    let expected = json!({"icmp": {
        "pktRxIcmpQuery": 1, "pktTxIcmpResponse": 1, "pktRxErrMulticastB": 1,
        "pktRxNoClientUnhandled": 1, "pktRxErrTooShort": 1, "pktRxErrUnhandled": 1,
    }});
    assert_eq!(counters, Ok(expected));
    let parser = hosts
        .ask("ctx_cnt", json!({"mask": ["parser"]}))
        .expect("counters");
    assert_eq!(parser["parser"]["errIcmpv4Cse"], 1);
}

#[test]
fn a_ping_that_no_packet_holds_is_refused() {
    let mut hosts = Hosts::new(1);
    let ping =
        |bytes: u32| json!({"tun": {"vport": 1}, "mac": [2, 0, 0, 0, 1, 1], "payloadSize": bytes});
    hosts.refused("icmp_c_start_ping", ping(1473), "payloadSize 1473");
    hosts.refused("icmp_c_start_ping", ping(65_535), "1500");
    hosts.done("icmp_c_start_ping", ping(1472));
    let longest = hosts.frames().iter().map(Vec::len).max();
    assert_eq!(longest, Some(1514));
}

/// Any JSON, with names that requests have.
/// What the emulation says that its tables have, by the names of counters.
fn memory(hosts: &mut Hosts) -> impl Fn(&str) -> u64 + use<> {
    let reply = hosts.ask("ctx_resource_monitor_get", json!({"zero": true}));
    let table = reply.expect("counters")["memory"].take();
    move |name| table[name].as_u64().unwrap_or_else(|| panic!("{name}"))
}

#[test]
fn tables_say_what_they_have() {
    let mut hosts = Hosts::new(0);
    let empty = memory(&mut hosts);
    assert_eq!((empty("clients"), empty("clientBytes")), (0, 0));
    for number in 1..=200 {
        hosts.done("ctx_client_add", add(client(number)));
    }
    hosts.frames();
    let full = memory(&mut hosts);
    assert_eq!(full("clients"), 200);
    let parts = ["clientBytes", "pluginBytes", "timerBytes", "queueBytes"];
    assert_eq!(full("tableBytes"), parts.map(&full).iter().sum::<u64>());
    assert_eq!(full("bytesPerClient"), full("tableBytes") / 200);
    // A record, and its places by MAC and IPv4 address.
    assert!(
        full("clientBytes") >= 200 * (96 + 13 + 9),
        "{}",
        full("clientBytes")
    );
    assert!(full("pluginBytes") > empty("pluginBytes"));
    assert!(full("timerBytes") > 0);
    let mask = json!({"mask": ["Resource monitor"]});
    let masked = hosts.ask("ctx_resource_monitor_get", mask);
    assert_eq!(masked.expect("counters").get("memory"), None);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (0_u8..20).prop_map(Value::from),
        "[a-z]{0,6}".prop_map(Value::from),
    ];
    let names = prop_oneof![
        Just("tun"),
        Just("tunnels"),
        Just("vport"),
        Just("tci"),
        Just("tpid"),
        Just("plugs"),
        Just("clients"),
        Just("mac"),
        Just("macs"),
        Just("ipv4"),
        Just("ipv4_dg"),
        Just("ipv6"),
        Just("arp"),
        Just("icmp"),
        Just("timer"),
        Just("reset"),
        Just("count"),
        Just("amount"),
        Just("pace"),
        Just("dst"),
        Just("payloadSize"),
        Just("def_plugs"),
        Just("time"),
    ];
    leaf.prop_recursive(5, 64, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::vec((names.clone(), inner), 0..8).prop_map(|fields| {
                let fields = fields.into_iter();
                Value::Object(
                    fields
                        .map(|(name, value)| (name.to_owned(), value))
                        .collect(),
                )
            }),
        ]
    })
}

const METHODS: [&str; 22] = [
    "api_sync_v2",
    "ping",
    "shutdown",
    "ctx_add",
    "ctx_remove",
    "ctx_iter",
    "ctx_get_info",
    "ctx_set_def_plugins",
    "ctx_cnt",
    "ctx_resource_monitor_get",
    "ctx_client_add",
    "ctx_client_remove",
    "ctx_client_get_info",
    "ctx_client_iter",
    "ctx_client_set_def_plugins",
    "arp_ns_set_cfg",
    "arp_ns_iter",
    "arp_ns_cnt",
    "arp_c_cmd_query",
    "icmp_c_start_ping",
    "icmp_c_get_ping_stats",
    "no_such_method",
];

proptest! {
    #[test]
    fn any_requests_are_safe(requests in prop::collection::vec((0..METHODS.len(), any_json()), 1..12)) {
        let mut hosts = Hosts::new(2);
        for (at, (method, params)) in (0..).zip(&requests) {
            let _ = hosts.0.handle_request(at * SECOND, METHODS[*method], params);
            hosts.0.handle_timeout(at * SECOND);
        }
        hosts.0.handle_timeout(1000 * SECOND);
        hosts.state();
    }

    #[test]
    fn any_frames_are_safe(frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 1..20)) {
        let mut hosts = Hosts::new(2);
        for frame in &frames {
            hosts.0.handle_frame(SECOND, 1, frame);
        }
    }

    #[test]
    fn frames_that_are_nearly_right_are_safe(
        ether_type in prop_oneof![Just(0x0806_u16), Just(0x0800), Just(0x86dd), Just(0x8100), Just(0x888e)],
        body in prop::collection::vec(any::<u8>(), 0..90),
    ) {
        let mut frame = vec![2, 0, 0, 0, 1, 1, 2, 0, 0, 0, 9, 9];
        frame.extend(ether_type.to_be_bytes());
        frame.extend(match ether_type {
            0x0806 => &[0, 1, 8, 0, 6, 4, 0][..],
            0x0800 => &[0x45, 0, 0, 60][..],
            _ => &[][..],
        });
        frame.extend(body);
        Hosts::new(2).0.handle_frame(SECOND, 1, &frame);
    }
}
