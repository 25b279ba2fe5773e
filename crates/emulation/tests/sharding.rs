//! Emulated clients on two and three shards are as those of one emulation: the same replies, and the same
//! frames at the same times.

mod sharded;

use allosaur_emulation::Settings;
use allosaur_engine::time::{Nanos, SECOND};
use serde_json::{Value, json};
use sharded::Sharded;

/// Ports and VLANs of namespaces.
const NAMESPACES: [(u16, [u16; 2]); 7] = [
    (0, [0, 0]),
    (1, [0, 0]),
    (0, [7, 0]),
    (0, [8, 0]),
    (1, [8, 3]),
    (0, [8, 4]),
    (9, [1, 0]),
];
const CLIENTS: u8 = 5;

/// Shards, the time, and all that they sent.
struct World {
    clients: Sharded,
    now: Nanos,
    sent: Vec<(Nanos, u16, Vec<u8>)>,
    replies: Vec<(String, Result<Value, String>)>,
}

impl World {
    fn new(shards: usize) -> World {
        // What is random differs between shards.
        let pinned = [
            "dhcp xid",
            "dhcpv6 xid",
            "ipv6 delay",
            "multicast response delay",
        ];
        let settings = Settings {
            pinned: pinned.map(|name| (name, 7)).to_vec(),
            ..Settings::default()
        };
        World {
            clients: Sharded::new(&settings, 0, shards),
            now: 0,
            sent: Vec::new(),
            replies: Vec::new(),
        }
    }

    fn ask(&mut self, method: &str, params: Value) -> Result<Value, String> {
        let reply = self.clients.handle_request(self.now, method, &params);
        let reply = reply.map_err(|error| format!("{} {error}", error.code));
        self.replies
            .push((format!("{method} {params}"), reply.clone()));
        self.collect();
        reply
    }

    fn collect(&mut self) {
        while let Some(transmit) = self.clients.poll_transmit() {
            let sent = (self.now, transmit.port, transmit.frame.to_vec());
            self.sent.push(sent);
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

    fn receive(&mut self, port: u16, frame: &[u8]) {
        self.clients.handle_frame(self.now, port, frame);
        self.collect();
    }
}

fn tunnel((port, vlans): (u16, [u16; 2])) -> Value {
    json!({"vport": port, "tci": vlans, "tpid": [0x8100, 0x8100]})
}

fn client(number: u8) -> Value {
    json!({"mac": [2, 0, 0, 0, 0, number], "ipv4": [10, 0, 0, number], "ipv4_dg": [10, 0, 0, 254],
           "plugs": {"arp": {}, "icmp": {}, "ipv6": {}, "lldp": {}}})
}

/// An ARP request of the gateway for a client.
fn arp_request((_, vlans): (u16, [u16; 2]), number: u8) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 9, 9, 9]);
    for vlan in vlans.into_iter().filter(|vlan| *vlan != 0) {
        frame.extend([0x81, 0]);
        frame.extend(vlan.to_be_bytes());
    }
    frame.extend([
        8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 9, 9, 9, 10, 0, 0, 254,
    ]);
    frame.extend([0, 0, 0, 0, 0, 0, 10, 0, 0, number]);
    frame.resize(64, 0);
    frame
}

/// The macs of all clients of a namespace, page by page.
fn pages(world: &mut World, method: &str, mut params: Value, count: u8) -> Vec<Value> {
    let mut items = Vec::new();
    params["count"] = json!(count);
    for reset in [true].into_iter().chain(std::iter::repeat_n(false, 20)) {
        params["reset"] = json!(reset);
        let page = world
            .clients
            .handle_request(world.now, method, &params)
            .expect("a page");
        match &page["data"] {
            Value::Array(data) => {
                assert!(data.len() <= usize::from(count));
                items.extend(data.iter().cloned());
            }
            _ => return items,
        }
    }
    panic!("it has no end")
}

fn tunnels(which: &[(u16, [u16; 2])]) -> Value {
    let tunnels: Vec<_> = which.iter().map(|namespace| tunnel(*namespace)).collect();
    json!({ "tunnels": tunnels })
}

/// What happens in each world.
fn play(world: &mut World) {
    add_all(world);
    world.run(3 * SECOND);
    use_all(world);
    count_all(world);
    world.run(70 * SECOND);
    remove_all(world);
    world.run(80 * SECOND);
}

/// Asks, whatever the reply is: it is kept.
fn ask(world: &mut World, method: &str, params: Value) {
    _ = world.ask(method, params);
}

/// Namespaces and clients come, and some that cannot.
fn add_all(world: &mut World) {
    ask(
        world,
        "ctx_set_def_plugins",
        json!({"def_plugs": {"igmp": {}}}),
    );
    ask(world, "ctx_iter", json!({"reset": false, "count": 3}));
    ask(world, "ctx_iter", json!({"reset": true, "count": 3}));
    ask(world, "ctx_add", tunnels(&NAMESPACES));
    // The second is there: the third is not added.
    ask(
        world,
        "ctx_add",
        tunnels(&[(1, [50, 0]), (0, [7, 0]), (1, [51, 0])]),
    );
    ask(
        world,
        "ctx_add",
        json!({"tunnels": [tunnel((0, [60, 0])), 5]}),
    );
    for empty in [json!({}), json!({"tunnels": []}), json!({"tunnels": 3})] {
        ask(world, "ctx_add", empty.clone());
        ask(world, "ctx_get_info", empty);
    }
    ask(world, "ctx_get_def_plugins", json!({}));
    for (of, namespace) in NAMESPACES.into_iter().enumerate() {
        let clients: Vec<Value> = (1..=CLIENTS).map(client).collect();
        let params = json!({"tun": tunnel(namespace), "clients": clients});
        ask(world, "ctx_client_add", params);
        if of == 3 {
            // One of them is there already.
            let again =
                json!({"tun": tunnel(namespace), "clients": [client(9), client(1), client(8)]});
            ask(world, "ctx_client_add", again);
        }
    }
    ask(world, "ctx_remove", tunnels(&[(1, [50, 0]), (0, [8, 0])]));
}

/// Frames and requests for each namespace.
fn use_all(world: &mut World) {
    for namespace in NAMESPACES {
        for number in [1, 3, 77] {
            world.receive(namespace.0, &arp_request(namespace, number));
        }
        let about =
            json!({"tun": tunnel(namespace), "macs": [[2, 0, 0, 0, 0, 3], [2, 0, 0, 0, 0, 1]]});
        ask(world, "ctx_client_get_info", about.clone());
        ask(world, "arp_ns_cnt", about.clone());
        ask(
            world,
            "arp_ns_iter",
            json!({"tun": tunnel(namespace), "reset": true, "count": 4}),
        );
        ask(
            world,
            "arp_c_cmd_query",
            json!({"tun": tunnel(namespace), "mac": [2, 0, 0, 0, 0, 2], "garp": true}),
        );
    }
}

/// Requests about all namespaces, and about none.
fn count_all(world: &mut World) {
    for (method, params) in [
        ("ctx_cnt", json!({})),
        ("ctx_cnt", json!({"zero": true})),
        ("ctx_cnt", json!({"meta": true})),
        ("ctx_cnt", json!({"mask": ["veth"]})),
        (
            "ctx_client_get_info",
            json!({"tun": tunnel((5, [5, 5])), "macs": []}),
        ),
        ("ctx_client_iter", json!({"tun": 7})),
        ("no_such", json!({})),
        ("ping", json!({})),
        ("get_version", json!({})),
    ] {
        ask(world, method, params);
    }
    ask(world, "ctx_get_info", tunnels(&NAMESPACES));
    ask(
        world,
        "ctx_get_info",
        tunnels(&[NAMESPACES[2], (3, [3, 3])]),
    );
}

/// All go.
fn remove_all(world: &mut World) {
    ask(world, "ctx_cnt", json!({"clear": true}));
    ask(
        world,
        "ctx_cnt",
        json!({"mask": ["veth", "ctx"], "zero": true}),
    );
    for namespace in NAMESPACES {
        let macs: Vec<_> = (1..=9).map(|number| [2, 0, 0, 0, 0, number]).collect();
        ask(
            world,
            "ctx_client_remove",
            json!({"tun": tunnel(namespace), "macs": macs}),
        );
    }
    ask(world, "ctx_remove", tunnels(&NAMESPACES));
    ask(world, "ctx_cnt", json!({"mask": ["ctx"]}));
}

#[test]
fn two_and_three_shards_are_as_one() {
    let mut one = World::new(1);
    play(&mut one);
    one.sent.sort();
    assert!(one.sent.len() > 200, "{} frames", one.sent.len());
    for shards in [2, 3] {
        let mut several = World::new(shards);
        play(&mut several);
        for (reply, expected) in several.replies.iter().zip(&one.replies) {
            assert_eq!(reply, expected, "{shards} shards");
        }
        several.sent.sort();
        assert_eq!(several.sent, one.sent, "{shards} shards");
        assert!(
            several.clients.parts.iter().all(|parts| *parts > 20),
            "{:?}",
            several.clients.parts
        );
    }
}

#[test]
fn lists_of_all_shards_are_read_page_by_page_each_once() {
    for shards in 1..=4 {
        let mut world = World::new(shards);
        let tunnels: Vec<_> = NAMESPACES.map(tunnel).to_vec();
        world
            .ask("ctx_add", json!({"tunnels": tunnels}))
            .expect("they are new");
        for count in [1, 2, 3, 6, 7, 100] {
            let mut items = pages(&mut world, "ctx_iter", json!({}), count);
            let again = pages(&mut world, "ctx_iter", json!({}), count);
            assert_eq!(items, again, "the order stays");
            let key = |item: &Value| (item["vport"].as_u64(), item["tci"].to_string());
            items.sort_by_key(key);
            items.dedup_by_key(|item| key(item));
            assert_eq!(
                items.len(),
                NAMESPACES.len(),
                "{shards} shards, {count} a page"
            );
        }
        let end = world
            .ask("ctx_iter", json!({"reset": false, "count": 5}))
            .expect("a page");
        assert_eq!(end, json!({"empty": false, "stopped": true, "data": null}));
        let wrong = world.ask("ctx_iter", json!({"reset": true, "count": 0}));
        assert!(wrong.is_err(), "{wrong:?}");
    }
}
