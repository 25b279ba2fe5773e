//! The life of a profile, as clients hear of it: states, events and epochs, in TRex's order.

use allosaur_engine::stateful::RunIndex;
use allosaur_engine::time::{MILLISECOND, SECOND};
use serde_json::{Value, json};

use super::world::{Owned, SESSION, profile, start_params};

fn one_run(server: &Owned) -> RunIndex {
    let runs = server.runs();
    assert_eq!(runs.len(), 1, "{runs:?}");
    runs[0]
}

#[test]
fn a_profile_is_loaded_started_ended_and_started_again() {
    let mut server = Owned::new(2);
    server.load("_", &profile(&[]));
    assert_eq!(server.told_of(), ["60 _ 1", "50 1"]);
    server.start("_", json!({"duration": 1}));
    let started = ["60 _ 2", "50 2", "60 _ 3", "50 3", "60 _ 4", "50 4"];
    assert_eq!(server.told_of(), started);
    let run = one_run(&server);
    server.end(0, run);
    assert_eq!(server.told_of(), [] as [&str; 0]);
    server.end(1, run);
    assert_eq!(server.told_of(), ["60 _ 5", "50 5", "60 _ 1", "50 1"]);
    // It was read before.
    server.start("_", json!({}));
    assert_eq!(server.told_of(), &started[2..]);
    server.ok("stop", json!({"profile_id": "_"}));
    assert_eq!(server.told_of(), ["60 _ 5", "50 5"]);
    let run = one_run(&server);
    server.end_all(run);
    assert_eq!(server.told_of(), ["60 _ 1", "50 1"]);
}

#[test]
fn the_epoch_counts_when_traffic_begins_and_none_ran() {
    let mut server = Owned::new(1);
    let epoch = |server: &mut Owned| {
        let state = server.ok("sync", json!({"profile_id": "sync"}));
        (
            state["epoch"].as_u64().expect("a number"),
            state["state_profile"].clone(),
        )
    };
    for (name, groups) in [("a", &["x"]), ("b", &["y"])] {
        server.load(name, &profile(groups));
    }
    let loaded = json!({"_": 0, "a": 1, "b": 1});
    assert_eq!(epoch(&mut server), (0, loaded));
    server.start("a", json!({}));
    server.start("b", json!({}));
    let running = json!({"_": 0, "a": 4, "b": 4});
    assert_eq!(epoch(&mut server), (1, running));
    for run in server.runs() {
        server.end_all(run);
    }
    server.start("b", json!({}));
    assert_eq!(epoch(&mut server).0, 2);
    let own = server.ok("get_counter_values", json!({"profile_id": "b"}));
    assert_eq!(own["epoch"], 2);
    assert_eq!(server.ok("inc_epoch", json!({})), json!({"epoch": 3}));
    assert_eq!(
        server.ok("sync", json!({})),
        json!({"epoch": 3, "state": 4})
    );
}

#[test]
fn several_profiles_are_told_of_together_by_the_busiest() {
    let mut server = Owned::new(1);
    server.load("p1", &profile(&["x"]));
    assert_eq!(server.told_of(), ["60 p1 0", "60 p1 1", "50 1"]);
    server.load("p2", &profile(&["y"]));
    assert_eq!(server.told_of(), ["60 p2 0", "60 p2 1"]);
    server.start("p1", json!({}));
    server.told_of();
    let first = one_run(&server);
    server.start("p2", json!({}));
    assert_eq!(server.told_of(), ["60 p2 2", "60 p2 3", "60 p2 4"]);
    server.ok("stop", json!({"profile_id": "p1"}));
    server.end_all(first);
    assert_eq!(server.told_of(), ["60 p1 5", "60 p1 1"]);
    server.ok("profile_clear", json!({"profile_id": "_"}));
    assert_eq!(server.told_of(), ["61 _", "60 _ 0"]);
    server.ok("profile_clear", json!({"profile_id": "p1"}));
    assert_eq!(server.told_of(), ["60 p1 6"]);
    server.settle();
    assert_eq!(server.told_of(), ["61 p1"]);
    let second = one_run(&server);
    server.ok("stop", json!({"profile_id": "p2"}));
    server.end_all(second);
    assert_eq!(server.told_of(), ["60 p2 5", "50 5", "60 p2 1", "50 1"]);
    server.ok("profile_clear", json!({"profile_id": "p2"}));
    server.told_of();
    server.settle();
    assert_eq!(server.told_of(), ["61 p2", "50 0"]);
    assert_eq!(server.ok("get_profile_list", json!({})), json!(["_"]));
}

#[test]
fn a_profile_goes_only_after_its_owner_has_heard_that_it_will() {
    let mut server = Owned::new(1);
    server.load("_", &profile(&[]));
    server.told_of();
    let asked_at = server.world.now_ns;
    server.ok("profile_clear", json!({"profile_id": "_"}));
    // Nobody fetches the event: nothing happens for a while.
    for _ in 0..20 {
        assert!(server.next_timeout());
    }
    let state = server.ok("sync", json!({"profile_id": "sync"}));
    assert_eq!(state["state_profile"], json!({"_": 6}));
    assert_eq!(server.told_of(), ["60 _ 6"]);
    // It is fetched. Some time must pass yet, for the client to look at what it has.
    let heard_at = server.world.now_ns;
    assert!(server.next_timeout());
    assert_eq!(server.told_of(), [] as [&str; 0]);
    server.settle();
    assert!(server.world.now_ns - heard_at >= 100 * MILLISECOND);
    assert_eq!(server.told_of(), ["61 _", "60 _ 0", "50 0"]);
    // Who never fetches anything holds it up for a second.
    server.load("_", &profile(&[]));
    server.ok("profile_clear", json!({"profile_id": "_"}));
    let asked_again_at = server.world.now_ns;
    server.settle();
    let passed = server.world.now_ns - asked_again_at;
    assert!(
        (SECOND..SECOND + 20 * MILLISECOND).contains(&passed),
        "{passed} {asked_at}"
    );
    assert!(server.told_of().contains(&"61 _".to_owned()));
}

#[test]
fn who_stops_what_has_just_ended_is_told_that_it_has() {
    let mut server = Owned::new(1);
    server.load("_", &profile(&[]));
    server.start("_", json!({}));
    let run = one_run(&server);
    server.end_all(run);
    server.told_of();
    server.ok("stop", json!({}));
    assert_eq!(server.told_of(), ["60 _ 5", "50 5", "60 _ 1", "50 1"]);
    server.world.now_ns += 3 * SECOND;
    server.ok("stop", json!({}));
    assert_eq!(server.told_of(), [] as [&str; 0]);
}

#[test]
fn a_wrong_profile_is_told_of_with_the_reason_and_rests() {
    let mut server = Owned::new(1);
    server.load("_", "{\"a\":1");
    server.told_of();
    server.start("_", json!({}));
    let events = server.events();
    let states: Vec<_> = events
        .iter()
        .map(|(kind, data)| (*kind, data["state"].clone()))
        .collect();
    assert_eq!(
        states,
        [
            (60, json!(2)),
            (50, json!(2)),
            (60, json!(1)),
            (50, json!(1))
        ]
    );
    let text = events[2].1["error"].as_str().expect("a reason");
    assert!(
        text.starts_with("Profile parsing error: the profile is not JSON"),
        "{text}"
    );
    assert!(events[3].1.get("error").is_none());
    assert!(server.told.is_empty(), "no data thread heard of it");
    let sync = server.ok("sync", json!({}));
    assert_eq!(sync, json!({"epoch": 0, "state": 1}));
}

#[test]
fn a_new_owner_finds_no_profile_that_was_never_understood() {
    let mut server = Owned::new(1);
    server.load("good", &profile(&[]));
    server.start("good", json!({}));
    let run = one_run(&server);
    server.end_all(run);
    server.load("bad", "{}");
    server.start("bad", json!({}));
    server.told_of();
    server.acquire();
    assert_eq!(server.told_of(), ["60 bad 0"]);
    let (_, text) = server.refused("start", start_params("bad", json!({})));
    assert!(text.contains("nothing is loaded"), "{text}");
}

#[test]
fn there_is_one_owner_and_force_changes_it() {
    let mut server = Owned::new(1);
    let old = server.handler.clone();
    let acquire = json!({"user": "bob", "session_id": 5, "force": false});
    let (code, text) = server.refused("acquire", acquire);
    assert_eq!(code, -32000);
    assert!(
        text.contains("already taken") && text.contains("'ann'"),
        "{text}"
    );
    server.acquire();
    assert_ne!(server.handler, old);
    let new = std::mem::replace(&mut server.handler, old);
    let (_, text) = server.refused("get_profile_list", json!({}));
    assert!(
        text.starts_with("must acquire the context for this operation"),
        "{text}"
    );
    server.handler = new;
    // Ports have the same owner, with handlers of their own.
    let params = json!({"port_id": 1, "handler": server.ports["1"], "profile_id": "*"});
    let attributes = json!({"attr": {"promiscuous": {"enabled": true}}});
    server.ok("stop_traffic", params);
    server.ok(
        "set_port_attr",
        json!({"port_id": 0, "attr": attributes["attr"]}),
    );
    let owner = server.ok("get_owner", json!({"port_id": 0}));
    assert_eq!(owner, json!({"owner": "ann"}));
    assert_eq!(server.ok("release", json!({})), Value::Null);
    let owner = server.ok("get_owner", json!({"port_id": 0}));
    assert_eq!(owner, json!({"owner": "<FREE>"}));
    let session = json!({"user": "bob", "session_id": SESSION + 1, "force": false});
    assert!(server.ok("acquire", session)["handler"].is_string());
}
