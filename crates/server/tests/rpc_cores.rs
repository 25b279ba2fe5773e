//! Data threads by groups of ports, over the RPC: who is told what, and what is said of them.

mod rpc_common;

use allosaur_engine::time::SECOND;
use allosaur_server::counters::CoreCounters;
use rpc_common::{User, World, start, stream};
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
    assert!(text.contains("the port has 1 data threads"), "{text}");
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
