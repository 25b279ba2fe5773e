//! Data threads by groups of ports, over the RPC: who is told what, and what is said of them.

use crate::common::{User, World, start, stream};
use allosaur_engine::time::SECOND;
use allosaur_server::counters::CoreCounters;
use serde_json::{Value, json};

/// One thread for port 0, two for port 1; both ports taken.
fn world() -> (World, User) {
    let mut world = World::grouped(3, [vec![0], vec![1, 2]]);
    let mut user = User::with_port(&mut world, "ann", 1);
    user.acquire(&mut world, 1, false)
        .expect("the port is free");
    (world, user)
}

fn on_port(user: &User, port: usize, more: Value) -> Value {
    let mut params = user.params(more);
    params["port_id"] = json!(port);
    params["handler"] = json!(user.handlers[port]);
    params
}

fn pinned(core: i64) -> Value {
    let mut pinned = stream();
    pinned["core_id"] = json!(core);
    json!({"stream_id": core + 10, "stream": pinned})
}

#[test]
fn a_port_is_sent_on_by_its_own_threads_only() {
    let (mut world, user) = world();
    for (port, expected) in [(0, vec![0]), (1, vec![1, 2])] {
        let params = on_port(&user, port, json!({"stream_id": 1, "stream": stream()}));
        world.ok("add_stream", params);
        world.ok("start_traffic", on_port(&user, port, start("raw", 1.0)));
        let told: Vec<usize> = world.started.drain(..).map(|start| start.core).collect();
        assert_eq!(told, expected);
    }
}

#[test]
fn core_id_and_core_mask_count_along_the_threads_of_the_port() {
    let (mut world, user) = world();
    let params = on_port(&user, 0, pinned(1));
    let (_, text) = world.refused("add_stream", params);
    let expected = "field 'core_id' is 1. It must be an integer between 0 and 0 (inclusive)";
    assert!(text.contains(expected), "{text}");
    let (_, text) = world.refused("add_stream", on_port(&user, 1, pinned(2)));
    assert!(text.contains("between 0 and 1 (inclusive)"), "{text}");
    for core in [0, 1] {
        world.ok("add_stream", on_port(&user, 1, pinned(core)));
    }
    let mut params = start("raw", 1.0);
    params["core_mask"] = json!(1);
    let (_, text) = world.refused("start_traffic", on_port(&user, 1, params));
    assert!(text.contains("stream 11: field 'core_id' is 1"), "{text}");
    world.ok("start_traffic", on_port(&user, 1, start("raw", 1.0)));
    assert_eq!(world.started.len(), 2);
}

#[test]
fn the_load_of_a_port_is_that_of_its_own_threads() {
    let (mut world, user) = world();
    for port in [0, 1] {
        let params = on_port(&user, port, json!({"stream_id": 1, "stream": stream()}));
        world.ok("add_stream", params);
        world.ok("start_traffic", on_port(&user, port, start("raw", 1.0)));
    }
    for _ in 0..3 {
        for (core, share) in world.snapshot.cores.iter_mut().zip([10, 40, 60]) {
            core.total_ns += SECOND / 2;
            core.busy_ns += SECOND / 200 * share;
        }
        // Two threads receive; the busiest is what limits.
        world.snapshot.receive.resize(2, CoreCounters::default());
        for (receive, share) in world.snapshot.receive.iter_mut().zip([30, 20]) {
            receive.total_ns += SECOND / 2;
            receive.busy_ns += SECOND / 200 * share;
        }
        world.pass(SECOND / 2);
    }
    let port = |world: &mut World, port| {
        let stats = world.ok("get_port_stats", on_port(&user, port, json!({})));
        stats["m_cpu_util"].as_f64().expect("a number").round()
    };
    assert_eq!([port(&mut world, 0), port(&mut world, 1)], [10.0, 50.0]);
    let all = world.ok("get_global_stats", user.params(json!({})));
    let number = |name: &str| all[name].as_f64().expect("a number").round();
    assert_eq!(number("m_cpu_util"), 37.0);
    assert_eq!(number("m_rx_cpu_util"), 30.0);
    let cores = world.ok("get_utilization", user.params(json!({})));
    let cores = cores["cpu"].as_array().expect("a list").iter();
    let ports: Vec<Value> = cores.map(|core| core["ports"].clone()).collect();
    assert_eq!(ports, [json!([0, -1]), json!([1, -1]), json!([1, -1])]);
}

#[test]
fn a_core_mask_that_selects_no_thread_says_how_to_have_more() {
    let (mut world, user) = world();
    for (port, expected) in [
        (
            0,
            "the port has 1 data thread, the lowest bit: set it, or start the server with more (--cores)",
        ),
        (
            1,
            "the port has 2 data threads, the lowest bits: set one of them, or start the server with more (--cores)",
        ),
    ] {
        let params = on_port(&user, port, json!({"stream_id": 1, "stream": stream()}));
        world.ok("add_stream", params);
        let mut params = start("raw", 1.0);
        params["core_mask"] = json!(0xaaaa_aaa8_u32);
        let (_, text) = world.refused("start_traffic", on_port(&user, port, params));
        assert!(text.contains(expected), "{text}");
    }
}

/// The ports that each data thread transmits on.
fn busy(world: &mut World, user: &User) -> Vec<Value> {
    let cores = world.ok("get_utilization", user.params(json!({})));
    let cores = cores["cpu"].as_array().expect("a list").iter();
    cores.map(|core| core["ports"].clone()).collect()
}

fn add(world: &mut World, user: &User, port: usize, id: u32, stream: Value) {
    let params = on_port(user, port, json!({"stream_id": id, "stream": stream}));
    world.ok("add_stream", params);
}

fn measured(pg_id: u32) -> Value {
    let mut measured = stream();
    measured["flow_stats"] = json!({
        "enabled": true, "stream_id": pg_id, "rule_type": "latency", "vxlan": false,
    });
    measured
}

/// Two threads, each for both ports; both ports taken.
fn shared_world() -> (World, User) {
    let mut world = World::new(2);
    let mut user = User::with_port(&mut world, "ann", 1);
    user.acquire(&mut world, 1, false)
        .expect("the port is free");
    (world, user)
}

fn start_masked(world: &mut World, user: &User, port: usize, mask: u64) {
    let mut params = start("raw", 1.0);
    params["core_mask"] = json!(mask);
    world.ok("start_traffic", on_port(user, port, params));
}

#[test]
fn threads_are_busy_with_what_the_core_mask_gave_them() {
    let (mut world, user) = shared_world();
    for (port, mask) in [(0, 0b01), (1, 0b10)] {
        add(&mut world, &user, port, 1, stream());
        start_masked(&mut world, &user, port, mask);
    }
    assert_eq!(busy(&mut world, &user), [json!([0, -1]), json!([-1, 1])]);
    world.ok("stop_traffic", on_port(&user, 0, json!({})));
    assert_eq!(busy(&mut world, &user), [json!([-1, -1]), json!([-1, 1])]);
    start_masked(&mut world, &user, 0, u64::MAX);
    assert_eq!(busy(&mut world, &user), [json!([0, -1]), json!([0, 1])]);
}

#[test]
fn threads_are_busy_with_the_streams_that_are_pinned_to_them() {
    let (mut world, user) = shared_world();
    let mut pinned = stream();
    pinned["core_id"] = json!(1);
    add(&mut world, &user, 0, 1, pinned);
    world.ok("start_traffic", on_port(&user, 0, start("raw", 1.0)));
    assert_eq!(busy(&mut world, &user), [json!([-1, -1]), json!([0, -1])]);
    let told: Vec<usize> = world.started.iter().map(|start| start.core).collect();
    assert_eq!(told, [1], "a thread with nothing to send is told nothing");
}

/// As in TRex: their packets are numbered, so one thread sends them, and always the same.
#[test]
fn measured_streams_leave_from_the_first_thread_whatever_the_mask() {
    let (mut world, user) = shared_world();
    for port in [0, 1] {
        add(&mut world, &user, port, 1, stream());
        add(&mut world, &user, port, 2, measured(port as u32));
    }
    start_masked(&mut world, &user, 0, 0b01);
    start_masked(&mut world, &user, 1, 0b10);
    assert_eq!(busy(&mut world, &user), [json!([0, 1]), json!([-1, 1])]);
    world.ok("stop_traffic", on_port(&user, 1, json!({})));
    world.ok("remove_stream", on_port(&user, 1, json!({"stream_id": 1})));
    start_masked(&mut world, &user, 1, 0b11);
    assert_eq!(busy(&mut world, &user), [json!([0, 1]), json!([-1, -1])]);
}
