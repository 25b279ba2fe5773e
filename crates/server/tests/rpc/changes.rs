//! Traffic that changes while it runs, over the RPC: who may, what the data threads are told, what
//! sessions hear, and what clients are told when it cannot be.

use crate::common::{User, World, start, stream};
use allosaur_engine::stateless::Change;
use allosaur_engine::time::{MILLISECOND, Nanos};
use serde_json::{Value, json};

/// A port with streams 1 (100 pps) and 2 (300 pps) of profile `_`.
fn world_with_streams(cores: usize) -> (World, User) {
    let mut world = World::new(cores);
    let user = User::with_port(&mut world, "ann", 1);
    add(&mut world, &user, "_", 1, stream());
    let mut faster = stream();
    faster["mode"]["rate"]["value"] = json!(300);
    add(&mut world, &user, "_", 2, faster);
    (world, user)
}

fn add(world: &mut World, user: &User, profile: &str, id: u32, stream: Value) {
    let more = json!({"profile_id": profile, "stream_id": id, "stream": stream});
    world.ok("add_stream", user.params(more));
}

fn run(world: &mut World, user: &User, profile: &str) {
    let mut params = user.params(start("raw", 1.0));
    params["profile_id"] = json!(profile);
    world.ok("start_traffic", params);
}

fn running_world() -> (World, User) {
    let (mut world, user) = world_with_streams(2);
    run(&mut world, &user, "_");
    user.events(&mut world);
    (world, user)
}

fn of_profile(user: &User, profile: &str) -> Value {
    user.params(json!({"profile_id": profile}))
}

fn update(user: &User, op: &str, kind: &str, value: f64) -> Value {
    user.params(json!({"mul": {"type": kind, "op": op, "value": value}, "force": false}))
}

fn state(world: &mut World, user: &User) -> (String, Value) {
    let more = json!({"profile_id": "*", "block": false});
    let status = world.ok("get_port_status", user.params(more));
    let state = status["state"].as_str().expect("a string").to_owned();
    (state, status["state_profile"].clone())
}

/// The changes since the last call, without the profile; each of the two cores hears the same.
fn changes(world: &mut World) -> Vec<(Nanos, Change)> {
    let told = std::mem::take(&mut world.changed);
    let of = |core| {
        let own = told.iter().filter(move |(to, ..)| *to == core);
        own.map(|(_, _, at, change)| (*at, change.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(of(0), of(1));
    of(0)
}

#[test]
fn pause_and_resume_are_told_to_all_cores_for_the_same_time() {
    let (mut world, user) = running_world();
    let at = world.now_ns + MILLISECOND;
    assert_eq!(world.ok("pause_traffic", of_profile(&user, "_")), json!({}));
    assert_eq!(changes(&mut world), [(at, Change::Pause)]);
    assert_eq!(user.event_types(&mut world), [12, 2]);
    assert_eq!(
        state(&mut world, &user),
        ("PAUSE".into(), json!({"_": "PAUSE"}))
    );
    assert_eq!(
        world.ok("resume_traffic", of_profile(&user, "_")),
        json!({})
    );
    assert_eq!(changes(&mut world), [(at, Change::Resume)]);
    assert_eq!(user.event_types(&mut world), [13, 3]);
    assert_eq!(state(&mut world, &user).0, "TX");
}

#[test]
fn a_paused_profile_can_be_stopped() {
    let (mut world, user) = running_world();
    world.ok("pause_traffic", of_profile(&user, "_"));
    world.ok("stop_traffic", of_profile(&user, "*"));
    assert_eq!(user.event_types(&mut world), [12, 2, 11, 1]);
    assert_eq!(state(&mut world, &user).0, "STREAMS");
}

#[test]
fn a_port_is_as_busy_as_its_busiest_profile() {
    let (mut world, user) = running_world();
    add(&mut world, &user, "p1", 1, stream());
    run(&mut world, &user, "p1");
    assert_eq!(user.event_types(&mut world), [10]);
    world.ok("pause_traffic", of_profile(&user, "_"));
    assert_eq!(user.event_types(&mut world), [12]);
    assert_eq!(
        state(&mut world, &user),
        ("TX".into(), json!({"_": "PAUSE", "p1": "TX"}))
    );
    world.ok("pause_traffic", of_profile(&user, "p1"));
    assert_eq!(user.event_types(&mut world), [12, 2]);
    world.ok("resume_traffic", of_profile(&user, "p1"));
    assert_eq!(user.event_types(&mut world), [13, 3]);
    // What is left is paused; then nothing is left.
    world.ok("stop_traffic", of_profile(&user, "p1"));
    assert_eq!(user.event_types(&mut world), [11, 2]);
    world.ok("stop_traffic", of_profile(&user, "_"));
    assert_eq!(user.event_types(&mut world), [11, 1]);
}

#[test]
fn updates_set_add_and_subtract_rates_of_the_whole_profile() {
    let (mut world, user) = running_world();
    let mut updated = |op, kind, value| {
        let reply = world.ok("update_traffic", update(&user, op, kind, value));
        reply["multiplier"].as_f64().expect("a number")
    };
    assert_eq!(updated("abs", "pps", 4000.0), 10.0);
    assert_eq!(updated("add", "pps", 400.0), 11.0);
    assert_eq!(updated("sub", "raw", 6.0), 5.0);
    let factors: Vec<Change> = changes(&mut world).into_iter().map(|(_, c)| c).collect();
    let expected = [10.0, 11.0, 5.0].map(Change::Update);
    assert_eq!(factors, expected);
    let (code, text) = world.refused("update_traffic", update(&user, "sub", "raw", 5.0));
    assert_eq!(code, -32000);
    assert!(text.contains("leaves no rate: take less"), "{text}");
    assert!(user.event_types(&mut world).is_empty());
}

#[test]
fn single_streams_are_changed_alone() {
    let (mut world, user) = running_world();
    let of = |ids: Value| user.params(json!({"stream_ids": ids}));
    world.ok("pause_streams", of(json!([2, 1, 2])));
    world.ok("resume_streams", of(json!([2])));
    let mut params = update(&user, "abs", "pps", 600.0);
    params["stream_ids"] = json!([2]);
    assert_eq!(world.ok("update_streams", params)["multiplier"], 2.0);
    let told: Vec<Change> = changes(&mut world).into_iter().map(|(_, c)| c).collect();
    let expected = [
        Change::PauseStreams([1, 2].into()),
        Change::ResumeStreams([2].into()),
        Change::UpdateStreams([(2, 2.0)].into()),
    ];
    assert_eq!(told, expected);
    assert!(user.event_types(&mut world).is_empty());
    assert_eq!(state(&mut world, &user).0, "TX");
}

#[test]
fn what_does_not_run_cannot_be_changed() {
    let (mut world, user) = world_with_streams(1);
    for (command, more) in [
        ("pause_traffic", json!({})),
        ("resume_traffic", json!({})),
        ("update_traffic", update(&user, "abs", "raw", 2.0)),
        ("pause_streams", json!({"stream_ids": [1]})),
        ("resume_streams", json!({"stream_ids": [1]})),
    ] {
        let (code, text) = world.refused(command, user.params(more));
        assert_eq!(code, -32000, "{command}: {text}");
        let wrong = "cannot be executed on current state: 'STREAMS on profile_id(_)";
        assert!(text.contains(wrong), "{command}: {text}");
        assert!(text.contains("Start it first"), "{command}: {text}");
    }
    for command in ["pause_traffic", "resume_traffic", "update_traffic"] {
        let mut params = update(&user, "abs", "raw", 2.0);
        params["profile_id"] = json!("*");
        let (_, text) = world.refused(command, params);
        assert!(text.starts_with("profile_id * does not exists"), "{text}");
    }
    assert!(world.changed.is_empty());
}

#[test]
fn states_say_what_to_do() {
    let (mut world, user) = running_world();
    let (_, text) = world.refused("resume_traffic", of_profile(&user, "_"));
    assert!(
        text.contains("'TX on profile_id(_). Pause it first"),
        "{text}"
    );
    world.ok("pause_traffic", of_profile(&user, "_"));
    let (_, text) = world.refused("pause_traffic", of_profile(&user, "_"));
    assert!(
        text.contains("'PAUSE on profile_id(_). It is paused already"),
        "{text}"
    );
    let (_, text) = world.refused("start_traffic", user.params(start("raw", 1.0)));
    assert!(
        text.contains("'PAUSE on profile_id(_). Stop its traffic first"),
        "{text}"
    );
}

#[test]
fn bursts_and_durations_cannot_be_paused() {
    let (mut world, user) = world_with_streams(1);
    let mut burst = stream();
    burst["mode"]["type"] = json!("single_burst");
    burst["mode"]["total_pkts"] = json!(1000);
    add(&mut world, &user, "_", 7, burst);
    run(&mut world, &user, "_");
    let (_, text) = world.refused("pause_traffic", of_profile(&user, "_"));
    assert!(
        text.starts_with("stream 7 of profile_id(_) is not continuous"),
        "{text}"
    );
    let ids = json!({"stream_ids": [1, 7]});
    let (_, text) = world.refused("pause_streams", user.params(ids));
    assert!(
        text.starts_with("stream 7 of profile_id(_) is not continuous"),
        "{text}"
    );
    // As in TRex, a burst beside it is enough.
    let (_, text) = world.refused("pause_streams", user.params(json!({"stream_ids": [1]})));
    assert!(
        text.starts_with("stream 7 of profile_id(_) is not continuous"),
        "{text}"
    );
    let (_, text) = world.refused("pause_streams", user.params(json!({"stream_ids": [9]})));
    assert!(
        text.starts_with("stream 9 is not sent by profile_id(_)"),
        "{text}"
    );
    let (code, text) = world.refused("pause_streams", user.params(json!({"stream_ids": []})));
    assert!(code == -32602 && text.contains("stream_ids"), "{text}");

    let (mut world, user) = world_with_streams(1);
    let mut params = user.params(start("raw", 1.0));
    params["duration"] = json!(10);
    world.ok("start_traffic", params);
    let (_, text) = world.refused("pause_traffic", of_profile(&user, "_"));
    assert!(text.contains("start it with duration -1"), "{text}");
    let (_, text) = world.refused("pause_streams", user.params(json!({"stream_ids": [1]})));
    assert!(text.contains("start it with duration -1"), "{text}");
}

#[test]
fn an_update_of_streams_leaves_the_rate_of_measured_ones() {
    let (mut world, user) = world_with_streams(2);
    let mut measured = stream();
    measured["flow_stats"] = json!({
        "enabled": true, "stream_id": 7, "rule_type": "latency", "vxlan": false,
    });
    add(&mut world, &user, "_", 3, measured);
    run(&mut world, &user, "_");
    let mut update = |ids: Value| {
        let mut params = update(&user, "abs", "pps", 600.0);
        params["stream_ids"] = ids;
        world.ok("update_streams", params)["multiplier"].take()
    };
    assert_eq!(update(json!([2, 3])), 2.0);
    // Nothing changes, and the factor is that of the profile.
    assert_eq!(update(json!([3])), 1.0);
    let told: Vec<Change> = changes(&mut world).into_iter().map(|(_, c)| c).collect();
    let expected = [
        Change::UpdateStreams([(2, 2.0)].into()),
        Change::UpdateStreams([].into()),
    ];
    assert_eq!(told, expected);
}

#[test]
fn more_than_the_line_carries_needs_force() {
    let (mut world, user) = running_world();
    let (_, text) = world.refused("update_traffic", update(&user, "abs", "percentage", 101.0));
    assert!(text.contains("exceeds port line rate"), "{text}");
    let mut forced = update(&user, "abs", "percentage", 101.0);
    forced["force"] = json!(true);
    world.ok("update_traffic", forced);
    world.ok("update_traffic", update(&user, "abs", "percentage", 60.0));
    // Stream 1 has 15 % of the line now; with 50 % it is 95 % in all, with 60 % too much.
    let mut params = update(&user, "abs", "percentage", 60.0);
    params["stream_ids"] = json!([1]);
    assert!(
        world
            .refused("update_streams", params.clone())
            .1
            .contains("exceeds")
    );
    params["mul"]["value"] = json!(50.0);
    world.ok("update_streams", params);
    // The other profile shares the line.
    add(&mut world, &user, "p1", 1, stream());
    let mut params = user.params(start("percentage", 10.0));
    params["profile_id"] = json!("p1");
    assert!(world.refused("start_traffic", params).1.contains("exceeds"));
}

#[test]
fn a_pause_that_nobody_answers_holds_all_the_same() {
    let (mut world, user) = running_world();
    world.obedient = false;
    world.ok("update_traffic", update(&user, "abs", "raw", 2.0));
    world.now_ns += MILLISECOND / 2;
    world.ok("pause_traffic", of_profile(&user, "_"));
    // Nobody answered in time; the profile is paused all the same.
    assert_eq!(state(&mut world, &user).0, "PAUSE");
    assert_eq!(world.control.pending(), 0);
}

#[test]
fn validate_tells_rates_and_when_they_change() {
    let (mut world, user) = world_with_streams(1);
    let reply = world.ok("validate", of_profile(&user, "_"));
    assert_eq!(reply["rate"]["max_pps"], 400.0);
    assert_eq!(reply["rate"]["max_bps_l2"], 400.0 * 64.0 * 8.0);
    assert_eq!(reply["rate"]["max_bps_l1"], 400.0 * 84.0 * 8.0);
    assert_eq!(reply["rate"]["max_line_util"], 400.0 * 84.0 * 8.0 / 1e8);
    assert_eq!(reply["graph"]["expected_duration"], -1.0);
    assert_eq!(reply["graph"]["events_count"], 2);

    let mut burst = stream();
    burst["mode"] = json!({
        "type": "single_burst", "total_pkts": 2000, "rate": {"type": "pps", "value": 1000},
    });
    burst["isg"] = json!(500.0);
    add(&mut world, &user, "bursts", 5, burst.clone());
    let reply = world.ok("validate", of_profile(&user, "bursts"));
    assert_eq!(reply["graph"]["expected_duration"], 2_000_500.0);
    let event = |time: f64, sign: f64| {
        json!({
            "time_usec": time, "diff_pps": sign * 1000.0, "diff_bps_l2": sign * 512_000.0,
            "diff_bps_l1": sign * 672_000.0, "stream_id": 5,
        })
    };
    let events = json!([event(500.0, 1.0), event(2_000_500.0, -1.0)]);
    assert_eq!(reply["graph"]["events"], events);

    for id in 6..106 {
        add(&mut world, &user, "bursts", id, burst.clone());
    }
    let reply = world.ok("validate", of_profile(&user, "bursts"));
    assert_eq!(reply["graph"]["events_count"], 202);
    assert_eq!(reply["graph"]["events"].as_array().map(Vec::len), Some(100));
    assert!(world.started.is_empty());
    // Also while it runs.
    run(&mut world, &user, "_");
    let reply = world.ok("validate", of_profile(&user, "_"));
    assert_eq!(reply["rate"]["max_pps"], 400.0);

    let (_, text) = world.refused("validate", of_profile(&user, "nobody"));
    assert!(text.contains("does not exists"), "{text}");
}

#[test]
fn a_stream_that_waits_is_started_by_resume_streams() {
    let mut world = World::new(2);
    let user = User::with_port(&mut world, "ann", 1);
    let mut waiting = stream();
    waiting["start_paused"] = json!(true);
    add(&mut world, &user, "_", 1, waiting);
    run(&mut world, &user, "_");
    world.ok("resume_streams", user.params(json!({"stream_ids": [1]})));
    let told: Vec<Change> = changes(&mut world).into_iter().map(|(_, c)| c).collect();
    assert_eq!(told, [Change::ResumeStreams([1].into())]);
}
