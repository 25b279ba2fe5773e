//! Packet groups over the RPC: who is in which, what is counted of them, and what is refused.

use crate::common::{User, World, stream};
use allosaur_engine::flow_stats::{Group, GroupTable};
use allosaur_engine::latency::Meter;
use allosaur_engine::time::{MICROSECOND, SECOND};
use allosaur_server::counters::LatencyErrors;
use serde_json::{Value, json};

fn counted(pg_id: u32) -> Value {
    let mut stream = stream();
    stream["flow_stats"] = json!({
        "enabled": true, "stream_id": pg_id, "vxlan": false, "ieee_1588": false,
        "rule_type": "stats",
    });
    stream
}

fn add(user: &User, stream_id: u32, stream: Value) -> Value {
    user.params(json!({"stream_id": stream_id, "stream": stream}))
}

fn stats(world: &mut World, user: &User, pg_ids: &[u32]) -> Value {
    world.ok(
        "get_pgid_stats",
        json!({"api_h": user.api_h, "pgids": pg_ids}),
    )
}

fn active(world: &mut World, user: &User) -> Value {
    world.ok("get_active_pgids", json!({"api_h": user.api_h}))["ids"]["flow_stats"].take()
}

fn world() -> (World, User) {
    let mut world = World::new(2);
    let user = User::with_port(&mut world, "ann", 1);
    (world, user)
}

/// What core 0 sends on port 0 and the receive thread receives on port 1.
fn count(world: &World, tables: &mut [GroupTable; 2], n: u16, packets: u64) {
    let group = Group::flow(n).expect("a group");
    for table in tables.iter_mut() {
        table.count(group, packets, 64 * packets);
    }
    world.counters.cores[0].publish_groups(0, &mut tables[0]);
    world
        .counters
        .receive
        .arrivals
        .publish_groups(1, &mut tables[1]);
}

#[test]
fn counters_and_rates_are_those_of_the_group_by_port() {
    let (mut world, user) = world();
    let mut tables = <[GroupTable; 2]>::default();
    world.ok("add_stream", add(&user, 1, counted(7)));
    for _ in 0..2 {
        world.pass(SECOND / 2);
        count(&world, &mut tables, 0, 500);
    }
    world.pass(SECOND / 2);
    let stats = stats(&mut world, &user, &[7, 8]);
    assert_eq!(
        stats["flow_stats"]["7"],
        json!({
            "tp": {"0": 1000, "1": 0}, "tb": {"0": 64000, "1": 0},
            "rp": {"0": 0, "1": 1000}, "rb": {"0": 0, "1": 64000}, "missed": {"0": 0, "1": 0},
            "tps": {"0": 1000.0, "1": 0.0}, "tbs": {"0": 512_000.0, "1": 0.0},
            "rps": {"0": 0.0, "1": 1000.0}, "rbs": {"0": 0.0, "1": 512_000.0},
        })
    );
    assert_eq!(stats["flow_stats"]["8"], Value::Null);
    assert_eq!(stats["latency"], json!({"g": null}));
}

#[test]
fn a_group_lasts_as_long_as_its_streams_and_begins_anew_at_zero() {
    let (mut world, user) = world();
    let mut tables = <[GroupTable; 2]>::default();
    for stream_id in [1, 2] {
        world.ok("add_stream", add(&user, stream_id, counted(7)));
    }
    count(&world, &mut tables, 0, 10);
    let version = stats(&mut world, &user, &[])["ver_id"]["7"].clone();
    world.ok("remove_stream", user.params(json!({"stream_id": 1})));
    assert_eq!(active(&mut world, &user), json!([7]));
    world.ok(
        "remove_all_streams",
        user.params(json!({"profile_id": "*"})),
    );
    assert_eq!(active(&mut world, &user), json!([]));
    assert_eq!(stats(&mut world, &user, &[])["flow_stats"], Value::Null);
    // All other places first, so that the group gets its old one again.
    for n in 0..1023 {
        world.ok("add_stream", add(&user, 10 + n, counted(1000 + n)));
        if n < 1022 {
            continue;
        }
        let again = stats(&mut world, &user, &[2022]);
        assert_eq!(again["flow_stats"]["2022"]["tp"], json!({"0": 0, "1": 0}));
        assert_ne!(again["ver_id"]["2022"], version);
    }
    count(&world, &mut tables, 0, 3);
    let again = stats(&mut world, &user, &[2022]);
    assert_eq!(again["flow_stats"]["2022"]["rp"], json!({"0": 0, "1": 3}));
}

#[test]
fn one_group_more_than_there_are_places_is_refused() {
    let (mut world, user) = world();
    for n in 0..1023 {
        world.ok("add_stream", add(&user, n, counted(n)));
    }
    let (code, text) = world.refused("add_stream", add(&user, 5000, counted(5000)));
    assert_eq!(code, -32000);
    assert!(
        text.starts_with("stream 5000: field 'flow_stats.stream_id' is 5000"),
        "{text}"
    );
    world.ok("add_stream", add(&user, 5000, counted(3)));
    let all = stats(&mut world, &user, &[]);
    assert_eq!(
        all["flow_stats"].as_object().map(serde_json::Map::len),
        Some(1023)
    );
}

/// As TRex takes it: pcap4j's packets of trex-java-sdk have such headers.
#[test]
fn packets_with_an_ihl_of_0_are_counted() {
    let (mut world, user) = world();
    let mut stream = counted(7);
    let packet = stream["packet"]["binary"].as_str().expect("base64");
    stream["packet"]["binary"] = json!(packet.replacen("CABF", "CABA", 1));
    world.ok("add_stream", add(&user, 1, stream));
    assert_eq!(active(&mut world, &user), json!([7]));
}

#[test]
fn a_stream_that_is_refused_leaves_no_group_behind() {
    let (mut world, user) = world();
    world.ok("add_stream", add(&user, 1, counted(7)));
    world.refused("add_stream", add(&user, 1, counted(8)));
    let mut no_ip = counted(9);
    no_ip["packet"]["binary"] = json!("AAAAAQAAAAAAAgAACAYAAQgABgQAAQ==");
    let (_, text) = world.refused("add_stream", add(&user, 2, no_ip));
    assert!(
        text.contains("stream 2: flow_stats needs a whole IPv4 or IPv6 header"),
        "{text}"
    );
    let mut dummy = counted(10);
    dummy["flags"] = json!(8);
    let (_, text) = world.refused("add_stream", add(&user, 3, dummy));
    assert!(text.contains("dummy"), "{text}");
    assert_eq!(active(&mut world, &user), json!([7]));
}

#[test]
fn what_is_not_supported_yet_is_said_by_name() {
    let (mut world, user) = world();
    for (field, value) in [("rule_type", json!("tpg")), ("ieee_1588", json!(true))] {
        let mut stream = counted(7);
        stream["flow_stats"][field] = value;
        let (_, text) = world.refused("add_stream", add(&user, 1, stream));
        assert!(
            text.contains(field) && text.contains("not supported yet"),
            "{text}"
        );
    }
    assert_eq!(active(&mut world, &user), json!([]));
}

#[test]
fn filters_are_removed_only_when_nothing_is_sent() {
    let (mut world, user) = world();
    world.ok("add_stream", add(&user, 1, counted(7)));
    world.ok("remove_rx_filters", user.params(json!({})));
    world.ok(
        "start_traffic",
        user.params(crate::common::start("raw", 1.0)),
    );
    let (_, text) = world.refused("remove_rx_filters", user.params(json!({})));
    assert!(text.contains("remove_rx_filters"), "{text}");
}

fn measured(pg_id: u32) -> Value {
    let mut stream = counted(pg_id);
    stream["flow_stats"]["rule_type"] = json!("latency");
    stream
}

#[test]
fn a_number_for_latency_belongs_to_one_stream() {
    let (mut world, user) = world();
    world.ok("add_stream", add(&user, 1, measured(7)));
    world.ok("add_stream", add(&user, 2, counted(8)));
    for (stream, first) in [(measured(7), 1), (counted(7), 1), (measured(8), 2)] {
        let (_, text) = world.refused("add_stream", add(&user, 3, stream));
        assert!(
            text.contains("stream 3: field 'flow_stats.stream_id'"),
            "{text}"
        );
        assert!(
            text.contains(&format!(
                "which stream {first} of profile_id(_) on port 0 has"
            )),
            "{text}"
        );
    }
    let ids = world.ok("get_active_pgids", json!({"api_h": user.api_h}));
    assert_eq!(ids, json!({"ids": {"flow_stats": [8], "latency": [7]}}));
    elsewhere(&mut world, user);
}

/// Stream 1 of port 0 is measured as 7, stream 2 counted as 8. The other user of a number is named
/// wherever it is, also when the first stream of the group has left it.
fn elsewhere(world: &mut World, mut user: User) {
    let named = |mut params: Value, profile: &str| {
        params["profile_id"] = json!(profile);
        params
    };
    let first = "which stream 1 of profile_id(_) on port 0 has: a number for latency";
    let (_, text) = world.refused("add_stream", named(add(&user, 1, measured(7)), "b"));
    assert!(text.contains(first), "{text}");
    user.acquire(world, 1, false).expect("the port is free");
    let on_port_1 = |mut params: Value| {
        params["port_id"] = json!(1);
        params["handler"] = json!(user.handlers[1]);
        params
    };
    let (_, text) = world.refused("add_stream", on_port_1(add(&user, 5, measured(7))));
    assert!(
        text.starts_with("stream 5: ") && text.contains(first),
        "{text}"
    );
    let params = named(on_port_1(add(&user, 6, counted(8))), "b");
    world.ok("add_stream", params);
    world.ok("remove_stream", user.params(json!({"stream_id": 2})));
    let (_, text) = world.refused("add_stream", add(&user, 3, measured(8)));
    let other = "which stream 6 of profile_id(b) on port 1 has with another rule_type: choose";
    assert!(text.contains(other), "{text}");
    // A number that nobody has any more is free for another use.
    world.ok("remove_stream", user.params(json!({"stream_id": 1})));
    world.ok("add_stream", add(&user, 1, counted(7)));
}

#[test]
fn all_numbers_for_latency_are_there_besides_all_others() {
    let (mut world, user) = world();
    for n in 0..1023 {
        world.ok("add_stream", add(&user, n, counted(n)));
    }
    for n in 2000..2128 {
        world.ok("add_stream", add(&user, n, measured(n)));
    }
    let (_, text) = world.refused("add_stream", add(&user, 3000, measured(3000)));
    assert!(text.contains("128"), "{text}");
    let all = stats(&mut world, &user, &[]);
    let groups = all["flow_stats"].as_object().map(serde_json::Map::len);
    assert_eq!(groups, Some(1151));
}

#[test]
fn latency_is_that_of_the_group_as_it_is_now() {
    let (mut world, user) = world();
    world.ok("add_stream", add(&user, 1, measured(7)));
    assert_eq!(stats(&mut world, &user, &[])["latency"], json!({"g": null}));
    let start = crate::common::start("raw", 1.0);
    world.ok("start_traffic", user.params(start));
    let terms = world.counters.receive.latency_terms(0);
    let mut meter = Meter::default();
    for (sequence, usec) in [(0, 8), (1, 12), (3, 1_034)] {
        meter.record(usec * MICROSECOND, sequence, 0);
        world.counters.receive.count_latency(0, usec * MICROSECOND);
    }
    let block = &world.counters.receive;
    block.publish_latency(0, terms.version, meter.stats());
    block.publish_latency_errors(LatencyErrors {
        old_flow: 2,
        bad_header: 0,
    });
    let mut latency = stats(&mut world, &user, &[])["latency"].take();
    let hdrh = latency["7"]["lat"]["hdrh"].take();
    assert!(
        hdrh.as_str()
            .is_some_and(|text| text.starts_with("HISTFAAA")),
        "{hdrh}"
    );
    assert_eq!(
        latency,
        json!({
            "g": {"old_flow": 2},
            "7": {
                "lat": {"average": 351.33, "packets": 3, "sum_ns": 1_054_000, "total_min": 8, "total_max": 1034, "last_max": 1034,
                        "min": 8.0, "max": 1034.0,
                        "jit": 64, "histogram": {"0": 1, "10": 1, "1000": 1},
                        "p50": 12.01, "p90": 1033.73, "p99": 1033.73, "p99_9": 1033.73,
                        "hdrh": null},
                "er": {"drp": 1, "sth": 1},
            },
        })
    );
    world.ok("stop_traffic", user.params(json!({})));
    world.ok("remove_all_streams", user.params(json!({})));
    world.ok("add_stream", add(&user, 1, measured(7)));
    assert_eq!(stats(&mut world, &user, &[])["latency"]["7"], Value::Null);
}

#[test]
fn each_run_is_told_apart_and_a_refused_start_is_none() {
    let (mut world, user) = world();
    world.ok("add_stream", add(&user, 1, measured(7)));
    let start = || user.params(crate::common::start("raw", 1.0));
    world.ok("start_traffic", start());
    let first = world.counters.receive.latency_terms(0);
    world.refused("start_traffic", start());
    assert_eq!(world.counters.receive.latency_terms(0), first);
    world.ok("stop_traffic", user.params(json!({})));
    world.ok("start_traffic", start());
    let second = world.counters.receive.latency_terms(0);
    assert_eq!(second.version, first.version);
    assert_ne!(second.run, first.run);
}

#[test]
fn a_multiplier_below_the_fixed_rate_is_refused() {
    let (mut world, user) = world();
    world.ok("add_stream", add(&user, 1, measured(7)));
    world.ok("add_stream", add(&user, 2, counted(8)));
    let (_, text) = world.refused(
        "start_traffic",
        user.params(crate::common::start("pps", 90.0)),
    );
    assert!(text.contains("fixed"), "{text}");
    let started = world.ok(
        "start_traffic",
        user.params(crate::common::start("pps", 400.0)),
    );
    assert_eq!(started["multiplier"], 3.0);
}
