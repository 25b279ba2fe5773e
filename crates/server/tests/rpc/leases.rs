//! Leases of ports: who is silent too long loses what it acquired, and what it started stops.
//! Under virtual time.

use crate::common::{User, World, start, stream};
use allosaur_engine::time::SECOND;
use serde_json::{Value, json};

const LEASE_S: u64 = 10;

fn acquire(world: &mut World, user: &mut User, more: Value) {
    let mut params = json!({
        "api_h": user.api_h, "port_id": 0, "user": user.name, "session_id": user.session,
        "force": false,
    });
    for (name, value) in more.as_object().expect("an object") {
        params[name] = value.clone();
    }
    let handler = world.ok("acquire", params);
    user.handlers[0] = handler.as_str().expect("a string").to_owned();
}

/// A user with a lease on port 0, and one without.
fn leased(world: &mut World) -> (User, User) {
    let mut ann = User::connect(world, "ann", 1);
    acquire(world, &mut ann, json!({"lease_s": LEASE_S}));
    let bob = User::connect(world, "bob", 2);
    (ann, bob)
}

fn send(world: &mut World, user: &User, profile: &str) {
    let params = json!({"profile_id": profile, "stream_id": 1, "stream": stream()});
    world.ok("add_stream", user.params(params));
    let mut params = start("pps", 1000.0);
    params["profile_id"] = json!(profile);
    world.ok("start_traffic", user.params(params));
}

fn owner_of_port(world: &mut World, user: &User) -> Value {
    let status = world.ok("get_status", json!({"api_h": user.api_h}));
    status["ports"][0]["owner"].clone()
}

#[test]
fn the_traffic_of_a_silent_owner_stops_and_its_port_is_released() {
    let mut world = World::new(1);
    let (ann, bob) = leased(&mut world);
    send(&mut world, &ann, "_");
    bob.event_types(&mut world);
    world.pass((LEASE_S - 1) * SECOND);
    assert!(world.stopped.is_empty());
    world.pass(SECOND);
    assert_eq!(world.stopped.len(), 1, "the data thread was told to stop");
    assert!(
        !owner_of_port(&mut world, &bob).is_null(),
        "released with the end of traffic"
    );
    let released = json!({"port_id": 0, "who": "ann", "session_id": 1});
    let events = bob.events(&mut world);
    let types: Vec<u64> = events.iter().map(|(id, _, _)| *id).collect();
    assert_eq!(types, [11, 1, 6], "profile and port stopped, port released");
    assert_eq!(events[2].1, released);
    assert_eq!(owner_of_port(&mut world, &bob), Value::Null);
    let (_, text) = world.refused("stop_traffic", ann.params(json!({})));
    assert!(text.contains("acquire"), "{text}");
}

#[test]
fn fetching_events_or_any_command_with_the_handler_keeps_a_lease() {
    let mut world = World::new(1);
    let (ann, bob) = leased(&mut world);
    send(&mut world, &ann, "_");
    for turn in 0..6 {
        world.pass((LEASE_S - 1) * SECOND);
        if turn % 2 == 0 {
            ann.event_types(&mut world);
        } else {
            let streams = json!({"profile_id": "_", "stream_id": 1});
            world.ok("get_stream", ann.params(streams));
            let silent = ann.params(json!({"profile_id": "none"}));
            world.refused("stop_traffic", silent);
        }
        // What others do keeps nothing.
        bob.event_types(&mut world);
    }
    assert!(world.stopped.is_empty());
    assert_eq!(owner_of_port(&mut world, &bob)["lease_s"], 10.0);
    world.pass(LEASE_S * SECOND);
    assert_eq!(world.stopped.len(), 1);
}

#[test]
fn without_a_lease_an_owner_may_be_silent_for_ever() {
    let mut world = World::new(1);
    let mut ann = User::connect(&mut world, "ann", 1);
    acquire(&mut world, &mut ann, json!({}));
    send(&mut world, &ann, "_");
    world.pass(3_600 * SECOND);
    assert!(world.stopped.is_empty());
    assert_eq!(owner_of_port(&mut world, &ann)["lease_s"], Value::Null);
    // Who acquires anew says what holds from then on.
    acquire(&mut world, &mut ann, json!({"lease_s": 1}));
    world.pass(2 * SECOND);
    assert_eq!(world.stopped.len(), 1);
}

#[test]
fn a_lease_ends_with_its_owner() {
    let mut world = World::new(1);
    let (ann, mut bob) = leased(&mut world);
    acquire(&mut world, &mut bob, json!({"force": true}));
    send(&mut world, &bob, "_");
    world.pass(60 * SECOND);
    assert!(world.stopped.is_empty(), "bob has no lease");
    world.ok("release", bob.params(json!({})));
    world.pass(60 * SECOND);
    assert_eq!(owner_of_port(&mut world, &ann), Value::Null);
    assert!(world.stopped.is_empty());
}

#[test]
fn what_others_started_on_the_port_goes_on() {
    let mut world = World::new(1);
    let mut carl = User::with_port(&mut world, "carl", 3);
    send(&mut world, &carl, "background");
    world.ok("release", carl.params(json!({})));
    carl.handlers[0].clear();
    let (ann, bob) = leased(&mut world);
    send(&mut world, &ann, "_");
    let own = world.started[1].profile;
    world.pass(LEASE_S * SECOND);
    let stopped: Vec<_> = world.stopped.iter().map(|(_, _, key)| *key).collect();
    assert_eq!(stopped, [own]);
    // The data thread answers now.
    owner_of_port(&mut world, &bob);
    assert_eq!(owner_of_port(&mut world, &bob), Value::Null);
    let status = world.ok("get_status", json!({"api_h": bob.api_h}));
    let profiles = &status["ports"][0]["profiles"];
    assert_eq!(profiles[1]["profile_id"], "background");
    assert_eq!(profiles[1]["run"]["multiplier"], 10.0);
    assert_eq!(profiles[0]["run"], Value::Null);
}

#[test]
fn the_service_mode_of_a_silent_owner_ends_and_that_of_others_stays() {
    let mut world = World::new(1);
    let (ann, bob) = leased(&mut world);
    let service = |world: &mut World| {
        let params = json!({"api_h": bob.api_h, "port_id": 0});
        world.ok("get_port_status", params)["service"].clone()
    };
    let on = || json!({"enabled": true, "filtered": false, "mask": 0});
    world.ok("service", ann.params(on()));
    world.pass((LEASE_S - 1) * SECOND);
    assert_eq!(service(&mut world), true);
    world.pass(SECOND);
    assert_eq!(service(&mut world), false);

    let mut cat = User::connect(&mut world, "cat", 3);
    acquire(&mut world, &mut cat, json!({}));
    world.ok("service", cat.params(on()));
    world.ok("release", cat.params(json!({})));
    let mut ann = ann;
    acquire(&mut world, &mut ann, json!({"lease_s": LEASE_S}));
    world.pass(LEASE_S * SECOND);
    assert_eq!(owner_of_port(&mut world, &bob), Value::Null);
    assert_eq!(service(&mut world), true, "it is of somebody else");
}

#[test]
fn time_in_which_the_server_stood_still_does_not_count() {
    let mut world = World::new(1);
    let (ann, _) = leased(&mut world);
    send(&mut world, &ann, "_");
    // No tick for two minutes: the requests of that time are still unread.
    world.now_ns += 120 * SECOND;
    world.pass(SECOND);
    assert!(world.stopped.is_empty());
    ann.event_types(&mut world);
    world.pass((LEASE_S - 1) * SECOND);
    assert!(world.stopped.is_empty());
}

#[test]
fn a_data_thread_that_does_not_stop_delays_the_release_and_does_not_prevent_it() {
    let mut world = World::new(1);
    world.obedient = false;
    let (ann, bob) = leased(&mut world);
    send(&mut world, &ann, "_");
    world.pass((LEASE_S + 9) * SECOND);
    assert!(!owner_of_port(&mut world, &bob).is_null());
    world.pass(2 * SECOND);
    assert_eq!(owner_of_port(&mut world, &bob), Value::Null);
}

#[test]
fn a_lease_has_limits() {
    let mut world = World::new(1);
    let ann = User::connect(&mut world, "ann", 1);
    for (lease_s, words) in [
        (json!(0.5), "'lease_s' is 0.5; give 1 to 3600 seconds"),
        (json!(3601), "'lease_s' is 3601; give 1 to 3600 seconds"),
        (json!(-1), "'lease_s'"),
        (json!("10"), "'lease_s'"),
    ] {
        let params = json!({"api_h": ann.api_h, "port_id": 0, "user": "ann", "session_id": 1,
            "force": false, "lease_s": lease_s});
        let (_, text) = world.refused("acquire", params);
        assert!(text.contains(words), "{text}");
    }
}
