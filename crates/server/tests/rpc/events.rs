//! Ownership, events and traffic of one and of two users, under virtual time.

use crate::common::{PACKET, User, World, start, stream};
use allosaur_engine::time::{MILLISECOND, SECOND};
use serde_json::{Value, json};

fn add(world: &mut World, user: &User, profile: &str) {
    let params = json!({"profile_id": profile, "stream_id": 1, "stream": stream()});
    world.ok("add_stream", user.params(params));
}

fn start_profile(world: &mut World, user: &User, profile: &str) -> Value {
    let mut params = start("pps", 1000.0);
    params["profile_id"] = json!(profile);
    world.ok("start_traffic", user.params(params))
}

#[test]
fn start_end_and_stop_give_trex_s_events() {
    let mut world = World::new(2);
    let user = User::with_port(&mut world, "ann", 1);
    assert_eq!(user.event_types(&mut world), [5]);
    add(&mut world, &user, "_");
    world.doorbells();
    let reply = start_profile(&mut world, &user, "_");
    assert_eq!(reply["multiplier"], 10.0);
    assert_eq!(world.doorbells(), 1, "control is notified before the reply");
    let profile = json!({"port_id": 0, "profile_id": "_"});
    assert_eq!(
        user.events(&mut world),
        [(10, profile.clone(), 1), (0, json!({"port_id": 0}), 2)]
    );
    let shares = std::mem::take(&mut world.started);
    world.done(shares[0]);
    assert_eq!(
        user.event_types(&mut world),
        [] as [u64; 0],
        "one core goes on"
    );
    world.done(shares[1]);
    assert_eq!(
        user.events(&mut world),
        [(14, profile.clone(), 3), (4, json!({"port_id": 0}), 4)]
    );
    start_profile(&mut world, &user, "_");
    world.ok("stop_traffic", user.params(json!({})));
    assert_eq!(user.event_types(&mut world), [10, 0, 11, 1]);
    world.ok("stop_traffic", user.params(json!({"profile_id": "*"})));
    assert_eq!(user.event_types(&mut world), [] as [u64; 0]);
}

#[test]
fn the_port_ends_with_its_last_profile() {
    let mut world = World::new(1);
    let user = User::with_port(&mut world, "ann", 1);
    for profile in ["a", "b"] {
        add(&mut world, &user, profile);
        start_profile(&mut world, &user, profile);
    }
    assert_eq!(user.event_types(&mut world), [5, 10, 0, 10]);
    let runs = std::mem::take(&mut world.started);
    world.done(runs[0]);
    assert_eq!(user.event_types(&mut world), [14]);
    let status = world.ok("get_port_status", user.params(json!({"profile_id": "*"})));
    assert_eq!(status["state"], "TX");
    assert_eq!(
        status["state_profile"],
        json!({"_": "IDLE", "a": "STREAMS", "b": "TX"})
    );
    world.ok("stop_traffic", user.params(json!({"profile_id": "*"})));
    assert_eq!(user.event_types(&mut world), [11, 1]);
}

#[test]
fn a_late_answer_of_an_old_run_changes_nothing() {
    let mut world = World::new(1);
    let user = User::with_port(&mut world, "ann", 1);
    add(&mut world, &user, "_");
    start_profile(&mut world, &user, "_");
    let old = world.started[0];
    world.ok("stop_traffic", user.params(json!({})));
    start_profile(&mut world, &user, "_");
    user.event_types(&mut world);
    world.done(old);
    assert_eq!(user.event_types(&mut world), [] as [u64; 0]);
    let status = world.ok("get_port_status", user.params(json!({})));
    assert_eq!(status["state"], "TX");
}

#[test]
fn a_thread_that_does_not_answer_delays_the_stop_and_not_the_server() {
    let mut world = World::new(1);
    world.obedient = false;
    let user = User::with_port(&mut world, "ann", 1);
    add(&mut world, &user, "_");
    start_profile(&mut world, &user, "_");
    world.ok("stop_traffic", user.params(json!({})));
    let (_, text) = world.refused("start_traffic", user.params(start("raw", 1.0)));
    assert!(text.contains("still stopping"), "{text}");
    user.event_types(&mut world);
    let run = world.started[0];
    world.done(run);
    assert_eq!(user.event_types(&mut world), [11, 1]);
    start_profile(&mut world, &user, "_");
}

#[test]
fn two_users_and_one_port() {
    let mut world = World::new(1);
    let mut ann = User::with_port(&mut world, "ann", 1);
    let mut bob = User::connect(&mut world, "bob", 2);
    assert!(bob.acquire(&mut world, 0, false).is_err());
    let handler = ann.handlers[0].clone();
    ann.acquire(&mut world, 0, false)
        .expect("it is ann's already");
    assert_eq!(
        ann.handlers[0], handler,
        "the same session gets the same handler"
    );
    let mut other = User::connect(&mut world, "ann", 3);
    let error = other
        .acquire(&mut world, 0, false)
        .expect_err("another session");
    assert!(error.contains("another session of 'ann'"), "{error}");
    let owner = world.ok("get_owner", ann.params(json!({})));
    assert_eq!(owner["owner"], "ann");

    bob.acquire(&mut world, 0, true).expect("by force");
    let taken = json!({"port_id": 0, "who": "bob", "session_id": 2, "force": true});
    assert_eq!(ann.events(&mut world)[1..], [(5, taken, 1)]);
    let params = ann.params(json!({"stream_id": 1, "stream": stream()}));
    assert!(
        world
            .refused("add_stream", params)
            .1
            .contains("not owned by you")
    );
    add(&mut world, &bob, "_");

    world.ok("release", bob.params(json!({})));
    let released = json!({"port_id": 0, "who": "bob", "session_id": 2});
    assert_eq!(ann.events(&mut world), [(6, released, 2)]);
    let params = bob.params(json!({"stream_id": 2, "stream": stream()}));
    let text = world.refused("add_stream", params).1;
    assert_eq!(text, "please acquire the port before modifying port state");
    assert_eq!(
        world.ok("get_owner", ann.params(json!({})))["owner"],
        "<FREE>"
    );
}

#[test]
fn traffic_starts_together_at_the_time_asked_for() {
    let mut world = World::new(3);
    let user = User::with_port(&mut world, "ann", 1);
    add(&mut world, &user, "_");
    let mut params = start("raw", 1.0);
    params["core_mask"] = json!(5);
    params["duration"] = json!(0.25);
    let reply = world.ok("start_traffic", user.params(params));
    let shares = std::mem::take(&mut world.started);
    assert_eq!(shares.iter().map(|s| s.core).collect::<Vec<_>>(), [0, 2]);
    for share in &shares {
        assert_eq!(share.start_at, world.now_ns + MILLISECOND);
        assert_eq!(share.duration, Some(SECOND / 4));
    }
    assert_eq!(reply["ts"], shares[0].start_at as f64 / 1e9);
    world.ok("stop_traffic", user.params(json!({})));

    let now_s = world.ok("ping", json!({}))["ts"].as_f64().expect("seconds");
    let mut params = start("raw", 1.0);
    params["start_at_ts"] = json!(now_s + 0.5);
    world.ok("start_traffic", user.params(params));
    assert_eq!(world.started[0].start_at, world.now_ns + SECOND / 2);
}

#[test]
fn multipliers_are_measured_by_the_profile_s_highest_rate() {
    // 100 packets of 64 bytes a second: 51,200 bps at layer 2, 67,200 at layer 1.
    let cases = [
        ("raw", 2.5, 2.5),
        ("pps", 10_000.0, 100.0),
        ("bps", 1e6, 19.531_25),
        ("bpsl1", 2e6, 29.761_904_761_904_763),
        ("percentage", 0.5, 744.047_619_047_619),
    ];
    for (kind, value, factor) in cases {
        let mut world = World::new(1);
        let user = User::with_port(&mut world, "ann", 1);
        add(&mut world, &user, "_");
        let reply = world.ok("start_traffic", user.params(start(kind, value)));
        let multiplier = reply["multiplier"].as_f64().expect("a number");
        assert!(
            (multiplier / factor - 1.0).abs() < 1e-9,
            "{kind}: {multiplier}"
        );
    }
}

#[test]
fn statistics_are_counters_and_rates() {
    let mut world = World::new(1);
    let user = User::with_port(&mut world, "ann", 1);
    world.pass(SECOND / 2);
    for _ in 0..2 {
        world.snapshot.ports[0].transmit.sent.count(500, 60);
        world.snapshot.ports[1].receive.count(400, 60);
        world.snapshot.ports[1].receive_lost_packets += 100;
        world.snapshot.cores[0].busy_ns += SECOND / 8;
        world.snapshot.cores[0].total_ns += SECOND / 2;
        world.pass(SECOND / 2);
    }
    world.snapshot.ports[0].transmit.missed_packets = 7;
    let stats = world.ok("get_port_stats", user.params(json!({"by_size": true})));
    assert_eq!(
        (&stats["opackets"], &stats["obytes"]),
        (&json!(1000), &json!(64_000))
    );
    assert_eq!(stats["m_total_tx_pps"], 1000.0);
    assert_eq!(stats["m_total_tx_bps"], 512_000.0);
    assert_eq!(
        (&stats["missed_packets"], &stats["tx_by_size"]["64"]),
        (&json!(7), &json!(1000))
    );
    let stats = world.ok("get_port_stats", user.params(json!({"port_id": 1})));
    let mut values = stats.as_object().expect("an object").values();
    assert!(
        values.all(Value::is_number),
        "TRex's client adds up what it finds: {stats}"
    );
    assert_eq!(
        (&stats["ipackets"], &stats["rx_lost_packets"]),
        (&json!(800), &json!(200))
    );
    let global = world.ok("get_global_stats", user.params(json!({})));
    assert_eq!(
        (&global["m_tx_pps"], &global["m_rx_pps"]),
        (&json!(1000.0), &json!(800.0))
    );
    assert_eq!(global["m_cpu_util"], 25.0);
    assert_eq!(global["m_rx_drop_bps"], 200.0 * 512.0);
    assert_eq!(global["m_total_missed_packets"], 7);
    let names = world.ok("get_port_xstats_names", user.params(json!({})));
    let values = world.ok("get_port_xstats_values", user.params(json!({})));
    let at = names["xstats_names"].as_array().expect("a list");
    let at = at
        .iter()
        .position(|name| name == "tx_good_bytes")
        .expect("it is there");
    assert_eq!(values["xstats_values"][at], 60_000);
    let load = world.ok("get_utilization", user.params(json!({})));
    assert_eq!(load["cpu"][0]["history"], json!([25, 25]));
}

#[test]
fn statistics_frames_pause_when_nobody_asks() {
    let mut world = World::new(1);
    world.pass(5 * SECOND);
    assert_eq!(world.published.len(), 0, "nobody was ever here");
    let user = User::connect(&mut world, "ann", 1);
    world.published.clear();
    world.pass(60 * SECOND);
    let frames = world.published.len();
    assert_eq!(frames, 120, "two a second for a minute");
    let frame: Value = serde_json::from_slice(&world.published[0]).expect("JSON");
    assert_eq!(
        (&frame["name"], &frame["type"]),
        (&json!("trex-global"), &json!(0))
    );
    assert!(frame["data"]["m_tx_bps"].is_f64() && frame["data"]["opackets-1"].is_u64());
    world.pass(5 * SECOND);
    assert_eq!(world.published.len(), frames);
    world.ok(
        "publish_now",
        user.params(json!({"key": 1, "baseline": true})),
    );
    let baseline: Value = serde_json::from_slice(&world.published[frames]).expect("JSON");
    assert_eq!(baseline["baseline"], true);
    assert_eq!(world.published[frames + 1], b"{}");
}

#[test]
fn a_reset_leaves_a_port_as_new() {
    let mut world = World::new(1);
    let mut user = User::with_port(&mut world, "ann", 1);
    add(&mut world, &user, "_");
    start_profile(&mut world, &user, "_");
    user.acquire(&mut world, 0, true).expect("by force");
    world.ok("stop_traffic", user.params(json!({"profile_id": "*"})));
    world.ok(
        "remove_all_streams",
        user.params(json!({"profile_id": "*"})),
    );
    let attr = json!({"attr": {"promiscuous": {"enabled": true}}});
    world.ok("set_port_attr", user.params(attr));
    world.ok(
        "set_rx_feature",
        user.params(json!({"type": "queue", "enabled": false})),
    );
    assert_eq!(
        world.ok("capture", user.params(json!({"command": "status"}))),
        json!([])
    );
    world.ok(
        "service",
        user.params(json!({"enabled": false, "filtered": false})),
    );
    assert_eq!(world.receive, [(0, true, false)]);
    let status = world.ok("get_port_status", user.params(json!({"profile_id": "_"})));
    assert_eq!(
        (&status["state"], &status["state_profile"]),
        (&json!("IDLE"), &json!("IDLE"))
    );
    assert_eq!(status["attr"]["promiscuous"]["enabled"], true);
    let streams = world.ok("get_all_streams", user.params(json!({"profile_id": "*"})));
    assert_eq!(streams, json!({"profiles": {}}));
}

#[test]
fn what_cannot_be_set_is_refused_and_changes_nothing() {
    let mut world = World::new(1);
    let user = User::connect(&mut world, "ann", 1);
    for (name, text) in [
        (
            "led_status",
            "Error applying led_status: operation is not supported for this NIC.",
        ),
        ("colour", "unknown attribute type: 'colour'"),
    ] {
        let attr = json!({"attr": {"promiscuous": {"enabled": true}, name: {"on": false}}});
        let (code, found) = world.refused("set_port_attr", user.params(attr));
        assert_eq!((code, found.as_str()), (-32000, text));
    }
    let status = world.ok("get_port_status", user.params(json!({})));
    assert_eq!(status["attr"]["promiscuous"]["enabled"], false);
    assert_eq!(world.receive, []);
}

#[test]
fn streams_come_back_as_they_were_given() {
    let mut world = World::new(1);
    let user = User::with_port(&mut world, "ann", 1);
    let mut given = stream();
    given["note"] = json!({"of": ["the", "client"], "n": 1.0});
    world.ok(
        "add_stream",
        user.params(json!({"stream_id": 7, "stream": given})),
    );
    let one = world.ok(
        "get_stream",
        user.params(json!({"stream_id": 7, "get_pkt": true})),
    );
    assert_eq!(one["stream"], given);
    let all = world.ok("get_all_streams", user.params(json!({"profile_id": "*"})));
    assert_eq!(all, json!({"profiles": {"_": {"7": given}}}));
    assert_eq!(
        world.ok("get_stream_list", user.params(json!({}))),
        json!([7])
    );
    world.ok("remove_stream", user.params(json!({"stream_id": 7})));
    let (_, text) = world.refused("remove_stream", user.params(json!({"stream_id": 7})));
    assert_eq!(text, "stream 7 does not exists in profile_id(_)");
}

#[test]
fn shutdown_respects_owners() {
    let mut world = World::new(1);
    let ann = User::with_port(&mut world, "ann", 1);
    let bob = User::connect(&mut world, "bob", 2);
    let (_, text) = world.refused(
        "shutdown",
        bob.params(json!({"user": "bob", "force": false})),
    );
    assert!(text.contains("port 0 belongs to another user"), "{text}");
    assert!(!world.shut_down);
    ann.event_types(&mut world);
    world.ok(
        "shutdown",
        bob.params(json!({"user": "bob", "force": true})),
    );
    assert!(world.shut_down);
    assert_eq!(ann.event_types(&mut world), [100]);
}

#[test]
fn a_changed_attribute_is_told_once_and_without_the_layers() {
    let mut world = World::new(1);
    let user = User::with_port(&mut world, "ann", 1);
    assert_eq!(user.event_types(&mut world), [5]);
    let set = |enabled: bool| json!({"attr": {"promiscuous": {"enabled": enabled}}});
    world.ok("set_port_attr", user.params(set(true)));
    world.ok("set_port_attr", user.params(set(true)));
    let events = user.events(&mut world);
    assert_eq!(events.len(), 1, "nothing changed the second time");
    let (id, data, _) = &events[0];
    let status = world.ok("get_port_status", user.params(json!({})));
    let mut attributes = status["attr"].clone();
    let map = attributes.as_object_mut().expect("an object");
    assert!(map.remove("layer_cfg").is_some() && map.remove("vlan").is_some());
    assert_eq!(attributes["promiscuous"]["enabled"], true);
    assert_eq!((*id, data), (8, &json!({"port_id": 0, "attr": attributes})));
    world.ok("set_port_attr", user.params(set(false)));
    world.refused(
        "set_port_attr",
        user.params(json!({"attr": {"colour": {}, "multicast": {"enabled": true}}})),
    );
    assert_eq!(
        user.event_types(&mut world),
        [8],
        "what is refused changes nothing"
    );
}

#[test]
fn who_listens_hears_why_the_server_ends_and_is_waited_for() {
    let mut world = World::new(1);
    let ann = User::with_port(&mut world, "ann", 1);
    assert!(!world.control.has_unread_end());
    // Bob does not fetch what happened before the end: nobody waits for him.
    let bob = User::connect(&mut world, "bob", 2);
    world.ok("release", ann.params(json!({})));
    assert_eq!(ann.event_types(&mut world), [5, 6]);
    world.doorbells();
    let now_ns = world.now_ns;
    world.control.handle_end("received signal SIGTERM", now_ns);
    world.drain();
    assert_eq!(world.doorbells(), 1);
    assert!(world.control.has_unread_end());
    let cause = json!({"cause": "received signal SIGTERM"});
    assert_eq!(ann.events(&mut world), [(100, cause, 2)]);
    assert!(!world.control.has_unread_end());
    assert_eq!(bob.event_types(&mut world), [6, 100]);
}

#[test]
fn sessions_without_a_port_come_by_asking_and_go_by_silence() {
    let mut world = World::new(1);
    let ann = User::with_port(&mut world, "ann", 1);
    let reader = User::connect(&mut world, "reader", 77);
    let toggle = |world: &mut World, n: u32| {
        let attr = json!({"attr": {"multicast": {"enabled": n % 2 == 0}}});
        world.ok("set_port_attr", ann.params(attr));
    };
    assert_eq!(ann.event_types(&mut world), [5]);
    // Silence without anything to fetch costs nothing, however long it is.
    world.pass(60 * SECOND);
    (0..3).for_each(|n| toggle(&mut world, n));
    let seqs = |user: &User, world: &mut World| -> Vec<u64> {
        user.events(world).iter().map(|event| event.2).collect()
    };
    assert_eq!(seqs(&ann, &mut world), [1, 2, 3]);
    assert_eq!(seqs(&reader, &mut world), [0, 1, 2]);
    // Ten seconds with something to fetch: the owner gets no more until it asks, then goes on
    // with the next number; the reader is forgotten, and begins anew when it comes back.
    toggle(&mut world, 3);
    world.pass(11 * SECOND);
    (4..6).for_each(|n| toggle(&mut world, n));
    assert_eq!(seqs(&ann, &mut world), [4]);
    assert_eq!(seqs(&reader, &mut world), [] as [u64; 0]);
    toggle(&mut world, 6);
    assert_eq!(seqs(&ann, &mut world), [5]);
    assert_eq!(seqs(&reader, &mut world), [0]);
}

#[test]
fn a_port_that_is_paused_and_gets_another_profile_transmits_again() {
    let mut world = World::new(1);
    let user = User::with_port(&mut world, "ann", 1);
    for profile in ["a", "b"] {
        add(&mut world, &user, profile);
    }
    start_profile(&mut world, &user, "a");
    let profile = |name: &str| user.params(json!({"profile_id": name}));
    world.ok("pause_traffic", profile("a"));
    assert_eq!(user.event_types(&mut world), [5, 10, 0, 12, 2]);
    start_profile(&mut world, &user, "b");
    assert_eq!(user.event_types(&mut world), [10, 0]);
    world.ok("stop_traffic", profile("b"));
    assert_eq!(
        user.event_types(&mut world),
        [11, 2],
        "what is left is paused"
    );
    world.ok("resume_traffic", profile("a"));
    assert_eq!(user.event_types(&mut world), [13, 3]);
    world.ok("stop_traffic", profile("*"));
    assert_eq!(user.event_types(&mut world), [11, 1]);
}

/// Calls that read counters, and their parameters beside the port.
const COUNTER_CALLS: [&str; 6] = [
    "get_port_stats",
    "get_global_stats",
    "get_port_xstats_values",
    "get_pgid_stats",
    "get_utilization",
    "get_active_pgids",
];

/// Rates, shares and times, and the flows of stateful mode, which TRex has as doubles: all that
/// may be no integer. Everything else counts something.
fn is_rate(path: &str) -> bool {
    let names = [
        "_bps",
        "_pps",
        "_cps",
        "_util",
        "_util_raw",
        "_per_core",
        "_factor",
        "_flows",
    ];
    let parts = [
        ".rps.", ".tps.", ".rbs.", ".tbs.", ".rbs_L1.", ".tbs_L1.", ".lat.",
    ];
    names.iter().any(|end| path.ends_with(end)) || parts.iter().any(|part| path.contains(part))
}

/// The numbers of a reply by their paths.
fn numbers(path: &str, value: &Value, found: &mut Vec<(String, serde_json::Number)>) {
    match value {
        Value::Object(map) => {
            let fields = map.iter();
            fields.for_each(|(name, value)| numbers(&format!("{path}.{name}"), value, found));
        }
        Value::Array(list) => list
            .iter()
            .for_each(|v| numbers(&format!("{path}.0"), v, found)),
        Value::Number(number) => found.push((path.to_owned(), number.clone())),
        _ => {}
    }
}

#[test]
fn counters_are_integers_however_large() {
    let mut world = World::new(1);
    let user = User::with_port(&mut world, "ann", 1);
    let mut counted = stream();
    counted["flow_stats"] = json!({"enabled": true, "stream_id": 5, "rule_type": "latency"});
    let params = json!({"stream_id": 1, "stream": counted});
    world.ok("add_stream", user.params(params));
    start_profile(&mut world, &user, "_");
    for port in &mut world.snapshot.ports {
        // Beyond what a double holds exactly, and not a multiple of anything.
        port.transmit.sent.count((1 << 53) + 1, 60);
        port.receive.count((1 << 53) + 1, 60);
        port.transmit.missed_packets = (1 << 53) + 1;
    }
    world.pass(SECOND);
    for method in COUNTER_CALLS {
        let reply = world.ok(method, user.params(json!({"pgids": [], "by_size": true})));
        let mut found = Vec::new();
        numbers(method, &reply, &mut found);
        assert!(!found.is_empty(), "{method}: {reply}");
        for (path, number) in found {
            assert!(is_rate(&path) || !number.is_f64(), "{path} is {number}");
        }
    }
    let stats = world.ok("get_port_stats", user.params(json!({})));
    assert_eq!(stats["opackets"].to_string(), "9007199254740993");
}

#[test]
fn a_data_thread_that_breaks_down_is_told_and_its_share_is_over() {
    let mut world = World::new(2);
    let user = User::with_port(&mut world, "ann", 1);
    add(&mut world, &user, "_");
    start_profile(&mut world, &user, "_");
    user.event_types(&mut world);
    let shares = std::mem::take(&mut world.started);
    let lose = |world: &mut World, core: usize| {
        let now_ns = world.now_ns;
        world.control.handle_lost_core(core, now_ns);
        world.drain();
    };
    world.doorbells();
    lose(&mut world, 1);
    assert_eq!(world.doorbells(), 1);
    let events = user.events(&mut world);
    let data = json!({"port_id": 0, "profile_id": "_", "thread_id": 1});
    assert_eq!((events[0].0, &events[0].1), (17, &data));
    let data = json!({"port_id": 0, "thread_id": 1});
    assert_eq!((events[1].0, &events[1].1), (7, &data));
    assert_eq!(events.len(), 2, "the other thread goes on");
    world.done(shares[0]);
    assert_eq!(user.event_types(&mut world), [14, 4]);
    lose(&mut world, 1);
    assert_eq!(user.event_types(&mut world), [] as [u64; 0]);

    start_profile(&mut world, &user, "_");
    let cores: Vec<usize> = world.started.iter().map(|share| share.core).collect();
    assert_eq!(cores, [0], "who broke down gets no more to do");
    user.event_types(&mut world);
    lose(&mut world, 0);
    assert_eq!(user.event_types(&mut world), [17, 7, 14, 4]);
    world.ok("stop_traffic", user.params(json!({})));
    let packet = json!({"binary": PACKET, "use_port_dst_mac": true, "use_port_src_mac": true});
    let capture = json!({
        "pcap_filename": "any.pcap", "ipg_usec": -1, "speedup": 1, "count": 1, "duration": -1,
    });
    for (method, params) in [
        ("start_traffic", start("raw", 1.0)),
        ("push_pkts", json!({"pkts": [packet]})),
        ("push_remote", capture),
    ] {
        let (_, text) = world.refused(method, user.params(params));
        assert!(text.contains("restart the server"), "{method}: {text}");
    }
}
