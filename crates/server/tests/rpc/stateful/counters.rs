//! The 140 rows and their values: of a profile, of its groups, of all together.

use allosaur_engine::time::SECOND;
use serde_json::{Value, json};

use super::world::{Owned, profile};
use crate::common::transcripts::read;

#[test]
fn the_rows_are_trex_s_in_its_order_and_say_the_same_in_other_words() {
    let exchanges = read("astf_a01_basic");
    let theirs = exchanges
        .iter()
        .find(|e| e.request["method"] == "get_counter_desc");
    let theirs = theirs.expect("TRex's client asks for it").reply["result"].clone();
    let mut server = Owned::new(1);
    let ours = server.ok("get_counter_desc", json!({"profile_id": "_"}));
    assert_eq!(ours["name"], theirs["name"]);
    let (ours, theirs) = (rows(&ours), rows(&theirs));
    assert_eq!((ours.len(), theirs.len()), (143, 140));
    // Ours come behind.
    let names = ours[140..].iter().map(|row| row["name"].clone());
    let expected = [
        "err_tunnel_network",
        "err_tunnel_header",
        "err_address_spaces",
    ];
    assert_eq!(names.collect::<Vec<_>>(), expected);
    for (own, row) in ours.iter().zip(&theirs) {
        for field in ["id", "name", "units", "info", "abs", "zero", "real"] {
            assert_eq!(own[field], row[field], "{row}");
        }
        if row["real"] == true {
            let help = own["help"].as_str().expect("a text");
            assert!(help.len() > 10, "{own}");
        }
    }
}

fn rows(reply: &Value) -> Vec<Value> {
    reply["data"].as_array().expect("rows").clone()
}

#[test]
fn nothing_but_the_moment_is_shown_before_anything_happened() {
    let mut server = Owned::new(1);
    let ids = ["0", "1", "2", "3", "4", "5", "6", "7", "8"];
    for method in ["get_counter_values", "get_total_counter_values"] {
        let values = server.ok(method, json!({"profile_id": "_"}));
        for side in ["client", "server"] {
            let shown: Vec<&String> = values[side].as_object().expect("values").keys().collect();
            assert_eq!(shown, ids, "{method}");
        }
    }
}

#[test]
fn counters_of_data_threads_add_up_by_group_profile_and_epoch() {
    let mut server = Owned::new(2);
    server.load("a", &profile(&["web", "mail"]));
    server.load("b", &profile(&["more"]));
    server.start("a", json!({}));
    server.start("b", json!({}));
    let runs = server.runs();
    for core in [0, 1] {
        for (run, group) in [(runs[0], 1), (runs[0], 2), (runs[1], 1)] {
            server.publish(core, run, group, |[clients, servers]| {
                clients.active = 1;
                clients.flows.tcp.connattempt = 10 * group as u64;
                servers.flows.tcp.accepts = 9;
            });
        }
    }
    server.world.snapshot.flow_tables[1][1].err_no_syn = 4;
    let of = |server: &mut Owned, name: &str| {
        server.ok("get_counter_values", json!({"profile_id": name}))
    };
    let a = of(&mut server, "a");
    assert_eq!(
        (&a["client"]["0"], &a["client"]["14"]),
        (&json!(4), &json!(60))
    );
    assert_eq!(
        (&a["server"]["15"], &a["server"]["122"]),
        (&json!(36), &json!(4))
    );
    assert_eq!(of(&mut server, "b")["client"]["14"], 20);
    let all = server.ok("get_total_counter_values", json!({}));
    assert_eq!(
        (&all["client"]["0"], &all["client"]["14"]),
        (&json!(6), &json!(80))
    );
    let groups = json!({"profile_id": "a", "epoch": 1, "tg_ids": [2, 1]});
    let groups = server.ok("get_tg_id_stats", groups);
    assert_eq!(groups["2"]["client"]["14"], 40);
    assert_eq!(groups["1"]["name"], "counters per TGID: 1");
    assert_eq!(groups["1"]["server"]["15"], 18);
    // What has ended has no flows; its counts stay, also in the sum when it is gone.
    for run in runs {
        server.end_all(run);
    }
    assert_eq!(of(&mut server, "a")["client"]["0"], 0);
    assert_eq!(of(&mut server, "a")["client"]["14"], 60);
    server.ok("profile_clear", json!({"profile_id": "b"}));
    server.settle();
    let all = server.ok("get_total_counter_values", json!({}));
    assert_eq!(
        (&all["client"]["0"], &all["client"]["14"]),
        (&json!(0), &json!(80))
    );
    // A new epoch counts from 0.
    server.start("a", json!({}));
    let all = server.ok("get_total_counter_values", json!({}));
    assert_eq!(all["epoch"], 2);
    assert!(all["client"].get("14").is_none() && all["server"].get("122").is_none());
    assert!(of(&mut server, "a")["client"].get("14").is_none());
}

#[test]
fn rates_are_those_of_the_last_second() {
    let mut server = Owned::new(1);
    server.load("_", &profile(&[]));
    server.start("_", json!({}));
    let run = server.runs()[0];
    for half in 1..=3 {
        server.publish(0, run, 0, |[clients, servers]| {
            clients.flows.tcp.sndtotal = 100 * half;
            clients.flows.tcp.rcvtotal = 300 * half;
            clients.flows.tcp.sndbyte_ok = 1000 * half;
            clients.flows.tcp.rcvackbyte = 500 * half;
            servers.flows.udp.sndbyte = 2000 * half;
            servers.flows.udp.sndpkt = 10 * half;
        });
        server.world.pass(SECOND / 2);
    }
    let values = server.ok("get_counter_values", json!({}));
    let (client, server_side) = (&values["client"], &values["server"]);
    let near = |value: &Value, expected: f64| {
        let value = value.as_f64().expect("a number");
        assert!(
            (value - expected).abs() <= expected * 0.01,
            "{value}, not {expected}"
        );
    };
    near(&client["2"], 8000.0);
    near(&client["3"], 16_000.0);
    near(&client["5"], 200.0);
    near(&client["6"], 600.0);
    near(&client["7"], 1000.0 / 800.0);
    near(&client["8"], 50.0);
    near(&client["10"], 1.5);
    near(&server_side["2"], 32_000.0);
    near(&server_side["8"], 100.0);
    near(&server_side["5"], 20.0);
}

#[test]
fn groups_are_named_by_epoch() {
    let mut server = Owned::new(1);
    server.load("_", &profile(&["web", "mail"]));
    server.start("_", json!({}));
    let unknown = server.ok("get_tg_names", json!({"initialized": false}));
    assert_eq!(unknown["epoch"], 1);
    assert_eq!(unknown["tg_names"], json!(["web", "mail"]));
    let addon: Vec<&String> = unknown["tg_addon_desc"]
        .as_object()
        .expect("groups")
        .keys()
        .collect();
    assert_eq!(addon, ["0", "1", "2"]);
    let known = json!({"initialized": true, "epoch": 1});
    assert_eq!(server.ok("get_tg_names", known), json!({"epoch": 1}));
    let stale = json!({"epoch": 0, "tg_ids": [1]});
    assert_eq!(server.ok("get_tg_id_stats", stale), json!({"epoch": 1}));
    for (groups, named) in [
        (json!([3]), "template group 3"),
        (json!([0]), "template group 0"),
    ] {
        let (_, told) = server.refused("get_tg_id_stats", json!({"epoch": 1, "tg_ids": groups}));
        assert!(told.contains(named) && told.contains("it has 2"), "{told}");
    }
    let many: Vec<u32> = (0..11).collect();
    let (code, told) = server.refused("get_tg_id_stats", json!({"epoch": 1, "tg_ids": many}));
    assert_eq!(
        (code, told.contains("at most 10")),
        (-32602, true),
        "{told}"
    );
}

#[test]
fn dynamic_counters_belong_to_profiles_that_are_there() {
    let mut server = Owned::new(1);
    let (_, told) = server.refused("get_dynamic_counter_desc", json!({"profile_id": "*"}));
    assert!(told.starts_with("Invalid profile : *"), "{told}");
    let sum = server.ok("get_dynamic_counter_desc", json!({"is_sum": true}));
    let asked = json!({"profile_id": "_", "epoch": sum["epoch"]});
    let values = server.ok("get_total_dynamic_counter_values", asked);
    assert_eq!(
        (&values["client"], &values["server"]),
        (&json!({}), &json!({}))
    );
}
