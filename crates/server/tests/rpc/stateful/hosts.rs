//! Emulated clients as the clients of a profile: who is taken at its start, and why it is refused.

use std::sync::Arc;

use allosaur_emulation::Settings;
use allosaur_emulation::rpc::call::RpcCall;
use allosaur_engine::stateful::StatefulCommand;
use allosaur_engine::template::CompiledProfile;
use allosaur_server::control::worker_command::FlowCommand;
use allosaur_server::emulation::{EmulatedClients, EmulationAnswer, EmulationRequest};
use serde_json::{Value, json};

use super::world::{Owned, profile, start_params};
use crate::common::World;

const GATEWAY: [u8; 6] = [2, 0, 0, 0, 9, 9];

/// A server of two data threads with emulated clients, which are none yet.
fn emulating() -> Owned {
    let mut server = Owned::of(World::stateful(2));
    server.world.emulated = Some(EmulatedClients::new(Settings::default(), 2, 0));
    server
}

/// Asks something of the emulation, as its own RPC does.
fn emulate(server: &mut Owned, method: &str, mut params: Value) -> Value {
    let clients = server.world.emulated.as_mut().expect("it emulates some");
    let mut ask = |method: &str, params: Value| {
        let request = EmulationRequest::Call {
            call: RpcCall::new(method, params),
            number: 0,
            usage: None,
        };
        match clients.handle_request(request, 0) {
            EmulationAnswer::Called(Ok(reply)) => reply,
            other => panic!("{other:?}"),
        }
    };
    let version = json!({"name": "EMU", "major": 1, "minor": 1});
    params["api_h"] = ask("api_sync_v2", version)["api_h"].take();
    ask(method, params)
}

fn tunnel(vlan: u16) -> Value {
    json!({"vport": 0, "tci": [vlan, 0]})
}

/// Emulates clients in a VLAN: some with an address and a gateway, and some that have no lease yet.
fn add(server: &mut Owned, vlan: u16, ready: u8, waiting: u8) {
    emulate(server, "ctx_add", json!({"tunnels": [tunnel(vlan)]}));
    let client = |number: u8| {
        let mac = [2, 0, 0, 0, vlan as u8, number];
        if number >= ready {
            return json!({"mac": mac, "plugs": {"dhcp": {}}});
        }
        let last = [0x20, 1, 0xd, 0xb8, 0, 0, 0, number, 0, 0, 0, 0, 0, 0, 0, 1];
        json!({"mac": mac, "plugs": {}, "ipv4": [10, number, 7, 1], "ipv4_dg": [10, 0, 0, 254],
               "ipv4_force_dg": true, "ipv4_force_mac": GATEWAY,
               "ipv6": last, "ipv6_force_dg": true, "ipv6_force_mac": GATEWAY})
    };
    let clients: Vec<Value> = (0..ready + waiting).map(client).collect();
    let params = json!({"tun": tunnel(vlan), "clients": clients});
    emulate(server, "ctx_client_add", params);
}

/// A profile whose clients are emulated.
fn text(emulation: &Value) -> String {
    let mut text: Value = serde_json::from_str(&profile(&[])).expect("JSON");
    text["ip_gen_dist_list"][0] =
        json!({"dir": "c", "distribution": "seq", "emulation": emulation});
    text.to_string()
}

/// What the server says when a profile with these clients is started; nothing when it runs.
fn start(server: &mut Owned, emulation: &Value, others: Value) -> Option<String> {
    server.load("_", &text(emulation));
    server.events();
    server.start("_", others);
    error(server)
}

fn error(server: &mut Owned) -> Option<String> {
    let events = server.events();
    let mut errors = events.iter().filter_map(|(_, data)| data["error"].as_str());
    errors.next_back().map(str::to_owned)
}

/// The profile that data threads were told to start last.
fn started(server: &Owned) -> Arc<CompiledProfile> {
    let mut profiles = server.told.iter().filter_map(|(_, order)| match order {
        FlowCommand::Command(StatefulCommand::Start { profile, .. }) => Some(Arc::clone(profile)),
        _ => None,
    });
    profiles.next_back().expect("one was started")
}

#[test]
fn those_that_are_ready_are_its_clients_with_all_that_they_have() {
    let mut server = emulating();
    add(&mut server, 0, 5, 0);
    add(&mut server, 100, 2, 3);
    let place = json!({"vport": 0, "tci": [100]});
    assert_eq!(start(&mut server, &place, json!({})), None);
    let profile = started(&server);
    let hosts = profile.templates()[0].client.hosts.as_ref();
    let hosts = hosts.expect("its clients are hosts");
    assert_eq!(
        (hosts.port(), hosts.tags(), hosts.is_ipv6()),
        (0, &[100][..], false)
    );
    let found: Vec<_> = hosts
        .hosts()
        .iter()
        .map(|host| (host.address, host.mac.octets(), host.gateway.octets()))
        .collect();
    assert_eq!(
        found,
        [
            (0x0a00_0701, [2, 0, 0, 0, 100, 0], GATEWAY),
            (0x0a01_0701, [2, 0, 0, 0, 100, 1], GATEWAY),
        ]
    );
    // They are all at one port: its rate is not shared out.
    let rates = server.ok("get_flow_rates", json!({"profile_id": "_"}));
    assert_eq!(
        (&rates["offered_cps"], &rates["hosts"]),
        (&json!(10.0), &json!(2))
    );
    // Who rests is told by address, as of any client.
    let ask = json!({"attr": [{"client_ip": 0x0a00_0701}, {"client_ip": 0x0a02_0701}],
        "is_range": false});
    server.ok("get_clients_info_start", ask);
    let infos = server.ok("get_clients_info_pull", json!({}));
    assert_eq!(infos["167773953"]["Found"], 1, "{infos}");
    assert_eq!(infos["167905025"]["Found"], 0, "{infos}");
}

#[test]
fn each_start_asks_again_and_ipv6_has_whole_addresses() {
    let mut server = emulating();
    add(&mut server, 0, 3, 0);
    let place = json!({"vport": 0});
    assert_eq!(start(&mut server, &place, json!({"ipv6": true})), None);
    let first = started(&server);
    let hosts = first.templates()[0].client.hosts.clone().expect("hosts");
    let prefixes: Vec<u8> = hosts.hosts().iter().map(|host| host.prefix[7]).collect();
    assert_eq!((hosts.is_ipv6(), prefixes), (true, vec![0, 1, 2]));
    server.ok("stop", json!({"profile_id": "_"}));
    server.end_all(server.newest_run());
    emulate(
        &mut server,
        "ctx_client_remove",
        json!({"tun": tunnel(0), "macs": [[2, 0, 0, 0, 0, 1]]}),
    );
    server.start("_", json!({"ipv6": true}));
    assert_eq!(error(&mut server), None);
    let second = started(&server).templates()[0].client.hosts.clone();
    assert_eq!(second.map(|hosts| hosts.hosts().len()), Some(2));
}

#[test]
fn a_server_without_emulated_clients_says_how_to_have_some() {
    let mut without = Owned::new(1);
    let said = start(&mut without, &json!({"vport": 0}), json!({})).expect("an error");
    assert!(said.contains("ip_gen_dist_list[0].emulation"), "{said}");
    assert!(said.contains("start it with --emu"), "{said}");
}

#[test]
fn who_cannot_start_hears_why_and_what_to_do() {
    let mut server = emulating();
    add(&mut server, 7, 0, 0);
    add(&mut server, 8, 0, 4);
    add(&mut server, 9, 3, 2);
    let cases = [
        (
            json!({"vport": 0}),
            "no clients are emulated at port 0 without VLAN: load them first",
        ),
        (
            json!({"vport": 0, "tci": [300]}),
            "no clients are emulated at port 0, VLAN 300",
        ),
        (
            json!({"vport": 0, "tci": [7]}),
            "port 0, VLAN 7 has no emulated clients: add some",
        ),
        (
            json!({"vport": 0, "tci": [8]}),
            "0 of 4 emulated clients of port 0, VLAN 8 are ready for IPv4, and ready_min asks for 1 (4 of \
          them without a DHCP lease): wait until they are",
        ),
        (
            json!({"vport": 0, "tci": [9], "ready_min": 5}),
            "3 of 5 emulated clients of port 0, VLAN 9 are ready for IPv4, and ready_min asks for 5",
        ),
        (
            json!({"vport": 1}),
            "vport is 1, which has no clients of flows: those that have are [0]",
        ),
        (
            json!({"vport": 256}),
            "vport is 256, which has no clients of flows",
        ),
        (
            json!({"vport": 0, "tci": [9], "tpid": [0x88a8]}),
            "frames of flows have one tag of type 0x8100",
        ),
        (
            json!({"vport": 0, "tci": [9, 10]}),
            "two of types 0x88a8 and 0x8100",
        ),
    ];
    for (place, problem) in cases {
        let said = start(&mut server, &place, json!({})).unwrap_or_default();
        assert!(
            said.starts_with("ip_gen_dist_list[0].emulation: "),
            "{place}: {said}"
        );
        assert!(said.contains(problem), "{place}: {said}");
        assert!(server.runs().is_empty());
    }
}

#[test]
fn ports_that_are_left_out_and_latency_beside_hosts_are_refused() {
    let mut server = emulating();
    add(&mut server, 9, 3, 2);
    let nine = json!({"vport": 0, "tci": [9]});
    for (others, problem) in [
        (json!({"client_mask": 2}), "client_mask 0x2 leaves out"),
        (
            json!({"latency_pps": 5}),
            "start_latency with such addresses",
        ),
    ] {
        let said = start(&mut server, &nine, others).unwrap_or_default();
        assert!(said.contains(problem), "{said}");
    }
    assert_eq!(start(&mut server, &nine, json!({})), None);
}

#[test]
fn a_namespace_that_was_removed_before_the_start_is_missed() {
    let mut server = emulating();
    add(&mut server, 5, 1, 0);
    server.load("_", &text(&json!({"vport": 0, "tci": [5]})));
    let macs = json!({"tun": tunnel(5), "macs": [[2, 0, 0, 0, 5, 0]]});
    emulate(&mut server, "ctx_client_remove", macs);
    emulate(&mut server, "ctx_remove", json!({"tunnels": [tunnel(5)]}));
    server.start("_", json!({}));
    let said = error(&mut server).expect("an error");
    assert!(
        said.contains("no clients are emulated at port 0, VLAN 5"),
        "{said}"
    );
}

#[test]
fn fields_of_the_wrong_form_are_named() {
    let mut server = emulating();
    let cases = [
        (
            json!(7),
            "'ip_gen_dist_list[0].emulation' is 'int', expecting 'object'",
        ),
        (
            json!({}),
            "field 'ip_gen_dist_list[0].emulation.vport' is missing",
        ),
        (json!({"vport": -1}), "ip_gen_dist_list[0].emulation.vport"),
        (
            json!({"vport": 0, "tci": 5}),
            "ip_gen_dist_list[0].emulation.tci",
        ),
        (
            json!({"vport": 0, "tci": [4096]}),
            "ip_gen_dist_list[0].emulation.tci[0]",
        ),
        (
            json!({"vport": 0, "tci": [1, 2, 3]}),
            "a frame has two tags at most",
        ),
        (
            json!({"vport": 0, "tci": [0, 2]}),
            "an inner tag without an outer one",
        ),
        (json!({"vport": 0, "ready_min": 0}), "give 1 or more"),
        (
            json!({"vport": 0, "ready_min": "x"}),
            "ip_gen_dist_list[0].emulation.ready_min",
        ),
    ];
    for (place, problem) in cases {
        let said = start(&mut server, &place, json!({})).unwrap_or_default();
        assert!(
            said.starts_with("Profile parsing error: "),
            "{place}: {said}"
        );
        assert!(said.contains(problem), "{place}: {said}");
    }
    let mut both: Value = serde_json::from_str(&text(&json!({"vport": 0}))).expect("JSON");
    both["ip_gen_dist_list"][0]["ip_start"] = json!("10.0.0.1");
    let mut servers: Value = serde_json::from_str(&profile(&[])).expect("JSON");
    servers["ip_gen_dist_list"][1] =
        json!({"dir": "s", "distribution": "seq", "emulation": {"vport": 0}});
    for (profile, problem) in [
        (both, "ip_start' stands beside emulation"),
        (servers, "emulated clients begin flows, they do not serve"),
    ] {
        server.load("_", &profile.to_string());
        server.start("_", json!({}));
        let said = error(&mut server).unwrap_or_default();
        assert!(said.contains(problem), "{said}");
    }
}

/// A server whose receive thread is asked for hosts, and has not answered.
fn asking() -> Owned {
    let mut server = emulating();
    add(&mut server, 0, 1, 0);
    server.load("_", &text(&json!({"vport": 0})));
    server.told_of();
    server.world.has_answers = false;
    server.start("_", json!({}));
    assert_eq!(server.told_of(), ["60 _ 2", "50 2", "60 _ 3", "50 3"]);
    server
}

fn answer(server: &mut Owned) {
    server.world.has_answers = true;
    for (question, request) in std::mem::take(&mut server.world.questions) {
        let answer = server.world.watchers.0.borrow_mut().handle(request, 0);
        server.world.hear(question, answer);
    }
    server.world.drain();
    server.ok("ping", json!({}));
}

#[test]
fn a_stop_while_they_are_asked_for_ends_the_start() {
    let mut server = asking();
    let (_, said) = server.refused("start", start_params("_", json!({})));
    assert!(said.contains("stop it first"), "{said}");
    server.ok("stop", json!({"profile_id": "_"}));
    assert_eq!(server.told_of(), ["60 _ 5", "50 5", "60 _ 1", "50 1"]);
    answer(&mut server);
    assert!(server.runs().is_empty());
    server.start("_", json!({}));
    assert_eq!(server.runs().len(), 1);
}

#[test]
fn an_answer_that_never_comes_ends_the_start_after_a_while() {
    let mut server = asking();
    assert!(server.next_timeout());
    let said = error(&mut server).expect("an error");
    assert!(said.contains("no data thread tells"), "{said}");
    answer(&mut server);
    assert!(server.runs().is_empty());
    server.start("_", json!({}));
    assert_eq!(server.runs().len(), 1);
}
