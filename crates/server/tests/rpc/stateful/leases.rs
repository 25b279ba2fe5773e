//! The lease of a server in stateful mode: an owner that is silent too long loses it.

use allosaur_engine::stateful::StatefulCommand;
use allosaur_engine::time::SECOND;
use allosaur_server::control::worker_command::FlowCommand;
use serde_json::{Value, json};

use super::world::{Owned, SESSION, profile};

fn lease(owned: &mut Owned, session: u32, lease_s: Value) {
    let params = json!({"user": "ann", "session_id": session, "force": true, "lease_s": lease_s});
    let answer = owned.ok("acquire", params);
    owned.handler = answer["handler"].as_str().expect("a string").to_owned();
}

fn stops(owned: &Owned) -> usize {
    let stop = |order: &&(usize, FlowCommand)| {
        matches!(order.1, FlowCommand::Command(StatefulCommand::Stop { .. }))
    };
    let unread = owned.world.orders.iter().filter(stop).count();
    owned.told.iter().filter(stop).count() + unread
}

fn owner(owned: &mut Owned) -> Value {
    let status = owned.world.ok("get_status", json!({"api_h": owned.api_h}));
    status["ports"][0]["owner"].clone()
}

/// The types of the events that another session has to fetch.
fn events(owned: &mut Owned, session: u32) -> Vec<u64> {
    let params = json!({"api_h": owned.api_h, "session_id": session});
    let reply = owned.world.ok("get_async_events", params);
    let events = reply["data"].as_array().expect("a list").iter();
    events
        .map(|event| event["type"].as_u64().expect("a number"))
        .collect()
}

#[test]
fn a_silent_owner_s_flows_are_stopped_and_the_server_is_released() {
    let mut owned = Owned::new(1);
    lease(&mut owned, SESSION, json!(10));
    owned.load("_", &profile(&[]));
    owned.start("_", json!({}));
    let run = owned.runs()[0];
    events(&mut owned, 5);
    owned.world.pass(9 * SECOND);
    assert_eq!(stops(&owned), 0);
    owned.world.pass(SECOND);
    assert_eq!(stops(&owned), 1);
    assert!(!owner(&mut owned).is_null(), "its flows are still closed");
    owned.end(0, run);
    owned.world.pass(SECOND);
    assert_eq!(owner(&mut owned), Value::Null);
    let types = events(&mut owned, 5);
    assert!(types.contains(&60) && types.ends_with(&[6, 6]), "{types:?}");
    let (_, text) = owned.refused("stop", json!({"profile_id": "_"}));
    assert!(text.contains("must acquire"), "{text}");
}

#[test]
fn the_echo_streams_of_a_silent_owner_end() {
    let mut owned = Owned::new(1);
    lease(&mut owned, SESSION, json!(10));
    let terms = json!({
        "mult": 100, "src_addr": "16.0.0.1", "dst_addr": "48.0.0.1", "mask": 0x7fff_ffff_u32,
        "dual_port_addr": "1.0.0.0", "port_s_offset": "1.0.0.0",
    });
    owned.ok("start_latency", terms);
    owned.world.pass(9 * SECOND);
    owned.world.ok("get_status", json!({"api_h": owned.api_h}));
    assert!(!owner(&mut owned).is_null());
    owned.world.pass(SECOND);
    assert_eq!(owner(&mut owned), Value::Null);
    lease(&mut owned, SESSION, Value::Null);
    let (_, text) = owned.refused("update_latency", json!({"mult": 10}));
    assert!(text.contains("start_latency first"), "{text}");
}

#[test]
fn commands_and_fetched_events_keep_the_lease() {
    let mut owned = Owned::new(1);
    lease(&mut owned, SESSION, json!(10));
    owned.load("_", &profile(&[]));
    owned.start("_", json!({}));
    for turn in 0..4 {
        owned.world.pass(9 * SECOND);
        if turn % 2 == 0 {
            events(&mut owned, SESSION);
        } else {
            owned.ok("update", json!({"profile_id": "_", "mult": 2.0}));
        }
    }
    assert_eq!(stops(&owned), 0);
    owned.world.pass(10 * SECOND);
    assert_eq!(stops(&owned), 1);
}

#[test]
fn flows_that_another_session_started_go_on() {
    let mut owned = Owned::new(1);
    owned.load("web", &profile(&[]));
    owned.start("web", json!({"mult": 3.0}));
    lease(&mut owned, 5, json!(1));
    owned.world.pass(3 * SECOND);
    assert_eq!(stops(&owned), 0);
    assert_eq!(owner(&mut owned), Value::Null);
    let status = owned.world.ok("get_status", json!({"api_h": owned.api_h}));
    assert_eq!(status["mode"], "ASTF");
    let profiles = status["profiles"].as_array().expect("a list");
    let web = profiles.iter().find(|one| one["profile_id"] == "web");
    let run = &web.expect("it is there")["run"];
    assert_eq!(
        (&run["multiplier"], &run["duration_s"]),
        (&json!(3.0), &Value::Null)
    );
    assert!(run["running_s"].as_f64() >= Some(2.9));
}

#[test]
fn who_loses_the_server_hears_to_whom() {
    let mut owned = Owned::new(1);
    events(&mut owned, SESSION);
    owned.acquire();
    assert_eq!(events(&mut owned, SESSION), [] as [u64; 0], "it was ours");
    lease(&mut owned, 5, json!(10));
    let params = json!({"api_h": owned.api_h, "session_id": SESSION});
    let reply = owned.world.ok("get_async_events", params);
    let taken = json!({"port_id": 0, "who": "ann", "session_id": 5, "force": true});
    assert_eq!(reply["data"][0]["type"], 5);
    assert_eq!(reply["data"][0]["data"], taken);
}
