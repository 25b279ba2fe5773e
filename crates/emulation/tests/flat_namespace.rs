//! The clients of one namespace on several shards are as those of one emulation.

mod sharded;

use std::collections::BTreeSet;

use allosaur_emulation::Settings;
use allosaur_engine::time::{Nanos, SECOND};
use serde_json::{Value, json};
use sharded::Sharded;

const PORT: u16 = 1;
const CLIENTS: u8 = 40;
const GATEWAY_MAC: [u8; 6] = [2, 0, 0, 9, 9, 9];

struct World {
    clients: Sharded,
    now: Nanos,
    sent: Vec<(Nanos, Vec<u8>)>,
}

impl World {
    fn new(shards: usize) -> World {
        let pinned = ["ipv6 delay", "multicast response delay", "dhcp xid"];
        let settings = Settings {
            pinned: pinned.map(|name| (name, 7)).to_vec(),
            ..Settings::default()
        };
        let mut world = World {
            clients: Sharded::new(&settings, 0, shards),
            now: 0,
            sent: Vec::new(),
        };
        world
            .ask("ctx_add", json!({"tunnels": [{"vport": PORT}]}))
            .expect("it is new");
        world
    }

    fn ask(&mut self, method: &str, mut params: Value) -> Result<Value, String> {
        if params.get("tunnels").is_none() {
            params["tun"] = json!({"vport": PORT});
        }
        let reply = self.clients.handle_request(self.now, method, &params);
        self.collect();
        reply.map_err(|error| error.to_string())
    }

    fn collect(&mut self) {
        while let Some(transmit) = self.clients.poll_transmit() {
            self.sent.push((self.now, transmit.frame.to_vec()));
        }
    }

    fn run(&mut self, until: Nanos) {
        while let Some(due) = self.clients.poll_timeout().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            self.clients.handle_timeout(self.now);
            self.collect();
        }
        self.now = until;
    }

    fn receive(&mut self, frame: &[u8]) {
        self.clients.handle_frame(self.now, PORT, frame);
        self.collect();
    }

    fn sent(&mut self) -> Vec<(Nanos, Vec<u8>)> {
        let mut sent = std::mem::take(&mut self.sent);
        sent.sort();
        sent
    }

    /// The MAC addresses that a method lists, page by page.
    fn pages(&mut self, method: &str, count: u8) -> Vec<Value> {
        let mut items = Vec::new();
        for reset in [true].into_iter().chain(std::iter::repeat_n(false, 60)) {
            let page = self.ask(method, json!({"reset": reset, "count": count}));
            let page = page.expect("a page");
            let Value::Array(data) = &page["data"] else {
                return items;
            };
            assert!(data.len() <= usize::from(count));
            items.extend(data.iter().cloned());
        }
        panic!("it has no end")
    }
}

/// MAC addresses that lie apart, so that they are on all shards.
fn mac(number: u8) -> [u8; 6] {
    [2, 0, 0, number, 0, 0]
}

fn client(number: u8) -> Value {
    let plugins = match number % 4 {
        // It stands at the namespace's home.
        0 => json!({"arp": {}, "icmp": {}, "igmp": {}}),
        1 => json!({"arp": {}, "icmp": {}, "lldp": {}}),
        _ => json!({"arp": {}, "icmp": {}}),
    };
    json!({"mac": mac(number), "ipv4": [10, 0, 0, number], "ipv4_dg": [10, 0, 0, 254], "plugs": plugins})
}

fn arp(operation: u8, destination: [u8; 6], target_mac: [u8; 6], target: u8) -> Vec<u8> {
    let mut frame = [destination, GATEWAY_MAC].concat();
    frame.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, operation]);
    frame.extend(GATEWAY_MAC);
    frame.extend([10, 0, 0, 254]);
    frame.extend(target_mac);
    frame.extend([10, 0, 0, target]);
    frame.resize(64, 0);
    frame
}

fn arp_request(target: u8) -> Vec<u8> {
    arp(1, [0xff; 6], [0; 6], target)
}

/// What happens in each world, and the replies that are the same in all.
fn play(world: &mut World) -> Vec<Result<Value, String>> {
    let mut replies = Vec::new();
    let clients: Vec<_> = (1..=CLIENTS).map(client).collect();
    replies.push(world.ask("ctx_client_add", json!({ "clients": clients })));
    // One reply, to the first that asked: all know the gateway.
    world.receive(&arp(2, mac(1), mac(1), 1));
    world.run(2 * SECOND);
    let macs: Vec<_> = (1..=CLIENTS).rev().map(mac).collect();
    replies.push(world.ask("ctx_client_get_info", json!({ "macs": macs })));
    let info = json!({"tunnels": [{"vport": PORT}]});
    replies.push(world.ask("ctx_get_info", info.clone()));
    for target in [1, 2, 3, 4, 17, 40, 77, 254] {
        world.receive(&arp_request(target));
    }
    for number in [4, 5, 6] {
        let params = json!({"mac": mac(number), "garp": true});
        replies.push(world.ask("arp_c_cmd_query", params));
    }
    let gone: Vec<_> = [3, 4, 5].map(mac).to_vec();
    replies.push(world.ask("ctx_client_remove", json!({ "macs": gone })));
    for target in [3, 4, 5, 6] {
        world.receive(&arp_request(target));
    }
    replies.push(world.ask("ctx_get_info", info.clone()));
    replies.push(world.ask("ctx_remove", info.clone()));
    world.run(130 * SECOND);
    replies.push(world.ask("arp_ns_cnt", json!({})));
    replies.push(world.ask("ctx_cnt", json!({"mask": ["parser", "veth", "ctx"]})));
    replies.push(world.ask("arp_ns_iter", json!({"reset": true, "count": 9})));
    replies.push(world.ask("arp_ns_iter", json!({"reset": false, "count": 9})));
    let rest: Vec<_> = (1..=CLIENTS).filter(|n| !(3..=5).contains(n)).collect();
    let rest: Vec<_> = rest.into_iter().map(mac).collect();
    replies.push(world.ask("ctx_client_remove", json!({ "macs": rest })));
    replies.push(world.ask("ctx_remove", info));
    replies
}

#[test]
fn a_namespace_on_several_shards_is_as_one_on_one() {
    let mut one = World::new(1);
    let expected = play(&mut one);
    let frames = one.sent();
    assert!(frames.len() > 150, "{}", frames.len());
    for shards in [2, 3] {
        let mut several = World::new(shards);
        for (place, (reply, expected)) in play(&mut several).iter().zip(&expected).enumerate() {
            assert_eq!(reply, expected, "{shards} shards, reply {place}");
        }
        assert_eq!(several.sent(), frames, "{shards} shards");
        let parts = &several.clients.parts;
        assert!(parts.iter().all(|parts| *parts > 10), "{parts:?}");
    }
}

#[test]
fn clients_are_listed_each_once_on_any_number_of_shards() {
    let mut expected = BTreeSet::new();
    for shards in 1..=4 {
        let mut world = World::new(shards);
        let clients: Vec<_> = (1..=CLIENTS).map(client).collect();
        let added = world.ask("ctx_client_add", json!({ "clients": clients }));
        added.expect("they are new");
        for count in [1, 3, 39, 40, 41, 255] {
            let listed = world.pages("ctx_client_iter", count);
            assert_eq!(listed.len(), usize::from(CLIENTS), "{shards} shards");
            let listed: BTreeSet<_> = listed.iter().map(Value::to_string).collect();
            if expected.is_empty() {
                expected = listed.clone();
            }
            assert_eq!(listed, expected);
        }
        assert_eq!(world.pages("arp_ns_iter", 1).len(), 1, "one gateway");
    }
}

#[test]
fn an_address_is_of_one_client_wherever_it_stands() {
    for shards in 1..=3 {
        let mut world = World::new(shards);
        let mut add = |clients: Value| world.ask("ctx_client_add", json!({ "clients": clients }));
        let all: Vec<_> = (1..=9).map(client).collect();
        add(json!(all)).expect("they are new");
        let of = |number: u8, address: u8| {
            let mut client = client(number);
            client["ipv4"] = json!([10, 0, 0, address]);
            client
        };
        let taken = " client with the same IPv4 [10 0 0 2] already exist";
        for number in 20..30 {
            let refused = add(json!([of(number, 2)])).expect_err("it is taken");
            assert!(refused.ends_with(taken), "{shards} shards: {refused}");
        }
        // Those in front of the one that is refused stay, those behind it do not come.
        let list = [of(30, 30), of(31, 31), of(32, 30), of(33, 33)];
        let refused = add(json!(list)).expect_err("two have one address");
        assert!(refused.contains("IPv4 [10 0 0 30]"), "{refused}");
        let info = world.ask("ctx_get_info", json!({"tunnels": [{"vport": PORT}]}));
        let info = info.expect("it is there");
        assert_eq!(info[0]["active_clients"], 11, "{shards} shards");
        assert_eq!(
            info[0]["plug_names"],
            json!(["arp", "icmp", "igmp", "lldp"])
        );
    }
}

/// Who asked for the gateway, and when.
fn questions(world: &mut World) -> Vec<(Nanos, u8)> {
    let sent = world.sent();
    let asks = |frame: &[u8]| frame[12..14] == [8, 6] && frame[38..42] == [10, 0, 0, 254];
    let asked = sent.iter().filter(|(_, frame)| asks(frame));
    asked.map(|(at, frame)| (*at / SECOND, frame[9])).collect()
}

/// Clients with ARP that repeat no question of their own.
fn quiet(number: u8) -> Value {
    let mut client = client(number);
    client["plugs"] = json!({"arp": {"timer_disable": true}});
    client
}

#[test]
fn a_silent_gateway_is_asked_for_by_one_client_wherever_they_stand() {
    let play = |shards| {
        let mut world = World::new(shards);
        let clients: Vec<_> = (1..=CLIENTS).map(quiet).collect();
        let added = world.ask("ctx_client_add", json!({ "clients": clients }));
        added.expect("they are new");
        questions(&mut world);
        let mut asked = Vec::new();
        // The first that is left asks.
        for gone in 1..CLIENTS {
            world.run(world.now + 20 * SECOND);
            asked.extend(questions(&mut world));
            let removed = world.ask("ctx_client_remove", json!({"macs": [mac(gone)]}));
            removed.expect("it is there");
        }
        // One leaves and comes back: it is the last.
        let removed = world.ask("ctx_client_remove", json!({"macs": [mac(CLIENTS)]}));
        removed.expect("it is there");
        world.run(world.now + 100 * SECOND);
        assert_eq!(questions(&mut world), [], "nobody needs it");
        assert_eq!(world.pages("arp_ns_iter", 9), [] as [Value; 0]);
        let counters = world.ask("arp_ns_cnt", json!({})).expect("counters");
        assert_eq!(counters["arp"]["tblRemove"], 1);
        (asked, counters)
    };
    let (asked, counters) = play(1);
    assert!(asked.len() > usize::from(CLIENTS), "{asked:?}");
    for shards in 2..=4 {
        let (each, counted) = play(shards);
        assert_eq!(counted, counters, "{shards} shards");
        let times = |asked: &[(Nanos, u8)]| -> Vec<_> { asked.iter().map(|(at, _)| *at).collect() };
        assert_eq!(times(&each), times(&asked), "{shards} shards");
        // Where the first has gone, one of its shard asks before older ones of others.
        let macs: BTreeSet<_> = each.iter().map(|(_, mac)| *mac).collect();
        assert!(macs.len() > 3 && macs.contains(&1), "{macs:?}");
    }
}

#[test]
fn all_shards_know_what_the_gateway_says_and_forget_it_together() {
    for shards in 1..=3 {
        let mut world = World::new(shards);
        let clients: Vec<_> = (1..=CLIENTS).map(quiet).collect();
        let added = world.ask("ctx_client_add", json!({ "clients": clients }));
        added.expect("they are new");
        let macs: Vec<_> = (1..=CLIENTS).map(mac).collect();
        let known = |world: &mut World| -> BTreeSet<String> {
            let infos = world.ask("ctx_client_get_info", json!({ "macs": macs }));
            let infos = infos.expect("they are there");
            let infos = infos.as_array().expect("a list").iter();
            infos.map(|info| info["dgw"]["rmac"].to_string()).collect()
        };
        // To a client of any shard.
        for number in 1..=CLIENTS {
            let mut reply = arp(2, mac(number), mac(number), number);
            let gateway = [2, 0, 0, 9, 9, number];
            reply[6..12].copy_from_slice(&gateway);
            reply[22..28].copy_from_slice(&gateway);
            world.receive(&reply);
            let expected = json!(gateway).to_string();
            assert_eq!(known(&mut world), [expected].into(), "{shards} shards");
        }
        assert_eq!(world.pages("arp_ns_iter", 9)[0]["refc"], CLIENTS);
        // It was heard of in the first ten minutes. After ten more it is asked for thrice, and then it is not
        // known any more.
        questions(&mut world);
        world.run(1210 * SECOND);
        let asked = questions(&mut world);
        assert!(asked.len() > 3, "{asked:?}");
        assert!(known(&mut world).is_disjoint(&[json!(GATEWAY_MAC).to_string()].into()));
        let row = &world.pages("arp_ns_iter", 9)[0];
        assert_eq!([&row["state"], &row["refc"]], [&json!(17), &json!(CLIENTS)]);
        // A client that comes now learns with the others.
        let one = json!({"clients": [quiet(99)]});
        world.ask("ctx_client_add", one).expect("it is new");
        world.receive(&arp(2, mac(99), mac(99), 99));
        assert_eq!(known(&mut world), [json!(GATEWAY_MAC).to_string()].into());
    }
}
