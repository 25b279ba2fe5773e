//! What data threads are told of runs: starting, changing, stopping, forgetting, and lost threads.

use allosaur_engine::encapsulation::Encapsulation;
use allosaur_engine::stateful::{RunLimits, StatefulCommand};
use allosaur_engine::time::{MILLISECOND, SECOND};
use allosaur_server::control::worker_command::FlowCommand;
use serde_json::{Value, json};

use super::world::{Owned, profile};
use crate::common::World;

/// The limits of the runs that were started.
fn limits(server: &Owned) -> Vec<RunLimits> {
    let told = server.told.iter().filter_map(|(_, order)| match order {
        FlowCommand::Command(StatefulCommand::Start { limits, .. }) => Some(*limits),
        _ => None,
    });
    told.collect()
}

#[test]
fn all_data_threads_hear_of_links_then_counters_then_the_start() {
    let mut server = Owned::new(2);
    server.load("_", &profile(&[]));
    let others = json!({"client_mask": 1, "dump_interval": 0.25});
    server.start("_", others);
    let run = server.runs()[0];
    assert!(server.blocks.contains_key(&(0, run)) && server.blocks.contains_key(&(1, run)));
    let links = ["0 link 0", "1 link 0", "0 link 1", "1 link 1"];
    let starts = [
        "0 start 1",
        "0 sample Some(250000000)",
        "1 start 1",
        "1 sample Some(250000000)",
    ];
    assert_eq!(server.words(), [links, starts].concat());
    server.ok("update", json!({"profile_id": "_", "mult": 2.5}));
    assert_eq!(server.words(), ["0 update 2.5", "1 update 2.5"]);
    server.ok("stop", json!({}));
    assert_eq!(server.words(), ["0 stop false", "1 stop false"]);
    // Who does not want to wait for the flows stops it once more.
    server.ok("stop", json!({}));
    assert_eq!(server.words(), ["0 stop true", "1 stop true"]);
    server.end(0, run);
    assert_eq!(server.words(), [] as [&str; 0]);
    server.end(1, run);
    assert_eq!(server.words(), ["0 retire", "1 retire"]);
    server.start("_", json!({}));
    let words = server.words();
    assert_eq!(&words[..2], ["0 remove", "1 remove"]);
    assert_eq!(words[6..], ["0 start 1", "1 start 1"]);
}

#[test]
fn servers_without_clients_run_until_they_are_stopped() {
    for (drivers, told) in [
        (["dummy", "memory"], "0 start 0"),
        (["memory", "dummy"], "0 start 1"),
    ] {
        let mut server = Owned::of(World::stateful_on(1, drivers));
        server.load("_", &profile(&[]));
        server.start("_", json!({}));
        assert_eq!(server.words().last().map(String::as_str), Some(told));
    }
    let mut server = Owned::new(1);
    server.load("_", &profile(&[]));
    server.start("_", json!({"client_mask": 2}));
    assert_eq!(server.words().last().map(String::as_str), Some("0 start 0"));
}

#[test]
fn flows_that_do_not_end_after_a_stop_are_ended() {
    let mut server = Owned::new(1);
    server.load("_", &profile(&[]));
    server.start("_", json!({}));
    let run = server.newest_run();
    server.words();
    server.ok("stop", json!({}));
    assert_eq!(server.words(), ["0 stop false"]);
    let stopped_at = server.world.now_ns;
    assert!(server.next_timeout());
    assert_eq!(server.world.now_ns - stopped_at, 5 * SECOND);
    assert_eq!(server.words(), ["0 stop true"]);
    assert!(!server.next_timeout());
    // Where the time is told, data threads see to it.
    server.end(0, run);
    server.start("_", json!({"t_duration": 60}));
    server.ok("stop", json!({}));
    assert!(!server.next_timeout());
    // What ended in time is left alone.
    let run = server.newest_run();
    server.end(0, run);
    server.start("_", json!({}));
    server.ok("stop", json!({}));
    let run = server.newest_run();
    server.end(0, run);
    assert!(!server.next_timeout());
}

#[test]
fn times_become_limits_and_no_close_ends_flows_at_once() {
    let mut server = Owned::new(1);
    server.load("_", &profile(&[]));
    let mut expected = Vec::new();
    let cases = [
        (json!({}), None, None),
        (json!({"nc": true}), None, Some(0)),
        (json!({"e_duration": 1.5}), Some(1500 * MILLISECOND), None),
        (json!({"nc": true, "t_duration": 2}), None, Some(2 * SECOND)),
        (json!({"t_duration": -1}), None, Some(0)),
    ];
    for (others, establish_max, close_max) in cases {
        server.start("_", others);
        expected.push(RunLimits {
            establish_max,
            close_max,
        });
        let run = server.runs()[0];
        server.end_all(run);
    }
    assert_eq!(limits(&server), expected);
    server.start("_", json!({"nc": true}));
    server.words();
    server.ok("stop", json!({}));
    assert_eq!(server.words(), ["0 stop true"]);
}

#[test]
fn all_addresses_can_be_made_ipv6() {
    let mut server = Owned::new(1);
    server.load("_", &profile(&[]));
    let mut is_ipv6 = Vec::new();
    for ipv6 in [false, true, false] {
        server.start("_", json!({"ipv6": ipv6}));
        let run = server.runs()[0];
        server.end_all(run);
    }
    for (_, order) in &server.told {
        if let FlowCommand::Command(StatefulCommand::Start { profile, .. }) = order {
            let template = &profile.templates()[0];
            let sides = [&template.client.tunables, &template.server.tunables];
            is_ipv6.push(sides.map(|side| side.ipv6));
        }
    }
    assert_eq!(is_ipv6, [[false; 2], [true; 2], [false; 2]]);
}

#[test]
fn a_lost_data_thread_does_not_hold_up_the_end() {
    let mut server = Owned::new(2);
    server.load("_", &profile(&[]));
    server.start("_", json!({}));
    server.told_of();
    let now_ns = server.world.now_ns;
    server.world.control.handle_lost_core(1, now_ns);
    server.world.drain();
    let errors = [
        r#"7 {"port_id":0,"thread_id":1}"#,
        r#"7 {"port_id":1,"thread_id":1}"#,
    ];
    assert_eq!(server.told_of(), errors);
    let run = server.runs()[0];
    server.end(0, run);
    assert_eq!(server.told_of(), ["60 _ 5", "50 5", "60 _ 1", "50 1"]);
    // What is started now runs on the one that is left.
    server.words();
    server.start("_", json!({}));
    let starts: Vec<String> = server.words();
    let starts: Vec<&String> = starts
        .iter()
        .filter(|word| word.contains("start"))
        .collect();
    assert_eq!(starts, ["0 start 1"]);
    let now_ns = server.world.now_ns;
    server.world.control.handle_lost_core(0, now_ns);
    server.world.drain();
    let told = server.told_of();
    assert_eq!(told[told.len() - 4..], ["60 _ 5", "50 5", "60 _ 1", "50 1"]);
}

#[test]
fn late_reports_of_runs_that_are_over_mean_nothing() {
    let mut server = Owned::new(1);
    server.load("_", &profile(&[]));
    server.start("_", json!({}));
    let old = server.runs()[0];
    server.end(0, old);
    server.start("_", json!({}));
    server.told_of();
    server.end(0, old);
    assert_eq!(server.told_of(), [] as [&str; 0]);
    assert_eq!(server.ok("sync", json!({}))["state"], 4);
}

#[test]
fn ports_tell_data_threads_when_their_addresses_change() {
    let mut server = Owned::new(1);
    let port = |number: u8| json!({"port_id": number});
    let mut params = port(0);
    params["dst_mac"] = json!("02:00:00:00:00:99");
    params["handler"] = server.ports["0"].clone();
    server.ok("set_l2", params);
    let Some((0, FlowCommand::Command(StatefulCommand::SetLink { port, peer_mac, .. }))) =
        server.told.pop()
    else {
        panic!("no link");
    };
    assert_eq!((port, peer_mac.0), (0, [2, 0, 0, 0, 0, 0x99]));
    let vlan = json!({"port_id": 0, "vlan": [7], "handler": server.ports["0"]});
    server.ok("set_vlan", vlan);
    let Some((0, FlowCommand::Command(StatefulCommand::SetLink { encapsulation, .. }))) =
        server.told.pop()
    else {
        panic!("no link");
    };
    assert_eq!(encapsulation, Encapsulation::Vlan(7));
}

#[test]
fn clients_do_not_begin_towards_a_gateway_that_nobody_knows() {
    let mut server = Owned::new(1);
    let layers = json!({"port_id": 0, "src_addr": "1.1.1.1", "dst_addr": "1.1.1.2",
        "handler": server.ports["0"]});
    server.ok("set_l3", layers);
    server.load("_", &profile(&[]));
    server.told_of();
    server.words();
    server.start("_", json!({}));
    let events = server.events();
    let error = events.iter().find_map(|(_, data)| data["error"].as_str());
    let error = error.expect("a reason");
    assert!(
        error.contains("1.1.1.2") && error.contains("resolve"),
        "{error}"
    );
    assert_eq!(server.ok("sync", json!({}))["state"], 1);
    assert_eq!(server.words(), [] as [&str; 0]);
    server.start("_", json!({"client_mask": 2}));
    assert_eq!(server.ok("sync", json!({}))["state"], 4);
}

#[test]
fn what_was_asked_for_and_what_came_of_it_are_both_told() {
    let mut server = Owned::new(2);
    let rates = |server: &mut Owned| server.ok("get_flow_rates", json!({}));
    assert_eq!(rates(&mut server)["offered_cps"], 0.0);
    server.load("_", &profile(&["a", "b"]));
    server.start("_", json!({"mult": 3}));
    let run = server.runs()[0];
    for core in [0, 1] {
        server.publish(core, run, 1 + core, |[clients, _]| {
            clients.flows.tcp.connattempt = 30;
            clients.flows.tcp.connects = 29;
            clients.missed = 5;
        });
    }
    server.world.pass(SECOND);
    let told = rates(&mut server);
    assert_eq!(
        (&told["offered_cps"], &told["missed"]),
        (&json!(60.0), &json!(10))
    );
    assert_eq!(
        (&told["begun"], &told["established"]),
        (&json!(60), &json!(58))
    );
    let achieved = told["achieved_cps"].as_f64().expect("a number");
    assert!((55.0..60.0).contains(&achieved), "{told}");
    assert_eq!(told["ended_by"], Value::Null);
    let global = server.ok("get_global_stats", json!({}));
    assert_eq!(global["m_tx_expected_cps"], 60.0);
    assert_eq!(global["m_open_flows"], 60.0);
    server.end_all(run);
    let told = rates(&mut server);
    assert_eq!(
        (&told["offered_cps"], &told["ended_by"]),
        (&json!(0.0), &json!("done"))
    );
    let duration = told["duration_s"].as_f64().expect("a number");
    assert!((0.99..1.01).contains(&duration), "{told}");
}

#[test]
fn ends_of_flows_are_told_of_both_sides_and_each_group_and_times_of_all_threads() {
    let mut server = Owned::new(2);
    let outcomes = |server: &mut Owned| server.ok("get_flow_outcomes", json!({"profile_id": "_"}));
    let none = outcomes(&mut server);
    assert_eq!(none["client"]["completed"], 0);
    assert_eq!(none["groups"], json!({}));
    assert_eq!(none["times"]["connect"], json!({"count": 0}));
    server.load("_", &profile(&["a", "b"]));
    server.start("_", json!({}));
    let run = server.runs()[0];
    for core in [0, 1] {
        server.publish(core, run, 1, |[clients, servers]| {
            clients.flows.outcomes.completed = 3;
            clients.flows.outcomes.http_5xx = 1;
            servers.flows.outcomes.closed_early = 2;
        });
        let block = &server.blocks[&(core, run)];
        // Of the first times: how many, their sum, the shortest and the longest.
        for (place, word) in [2, 3000, 1000, 2000].into_iter().enumerate() {
            block.publish_time(place, word);
        }
    }
    server.publish(0, run, 2, |[clients, _]| clients.flows.outcomes.reset = 7);
    let told = outcomes(&mut server);
    assert_eq!(told["client"]["completed"], 6);
    assert_eq!(told["client"]["reset"], 7);
    assert_eq!(told["client"]["http_5xx"], 2);
    assert_eq!(told["server"]["closed_early"], 4);
    assert_eq!(told["groups"]["a"]["client"]["completed"], 6);
    assert_eq!(told["groups"]["b"]["client"]["completed"], 0);
    assert_eq!(told["groups"]["b"]["client"]["reset"], 7);
    let connect = &told["times"]["connect"];
    assert_eq!(connect["count"], 4);
    assert_eq!(
        (
            &connect["min_us"],
            &connect["average_us"],
            &connect["max_us"]
        ),
        (&json!(1024.0), &json!(1536.0), &json!(2048.0))
    );
    assert_eq!(told["times"]["program"], json!({"count": 0}));
}
