//! Profiles that cannot start, as clients hear of it: which stream, and what to do. The checks are
//! those of the engine (`stream::compile`), each tested there too.

use crate::common::{User, World, start, stream};
use serde_json::{Value, json};

fn burst() -> Value {
    let mut burst = stream();
    burst["mode"]["type"] = json!("single_burst");
    burst["mode"]["total_pkts"] = json!(2);
    burst
}

fn with(mut stream: Value, fields: &[(&str, Value)]) -> Value {
    for (name, value) in fields {
        stream[*name] = value.clone();
    }
    stream
}

fn measured(pg_id: u32) -> (&'static str, Value) {
    let rule = json!({
        "enabled": true, "stream_id": pg_id, "vxlan": false, "ieee_1588": false,
        "rule_type": "latency",
    });
    ("flow_stats", rule)
}

/// What is said of streams 1, 2 and so on, when they are added or when they start.
fn refusal(streams: &[Value]) -> String {
    let mut world = World::new(2);
    let user = User::with_port(&mut world, "ann", 1);
    for (id, stream) in (1..).zip(streams) {
        let params = user.params(json!({"stream_id": id, "stream": stream}));
        let reply = world.call("add_stream", params);
        if let Some(text) = reply["error"]["specific_err"].as_str() {
            return text.to_owned();
        }
    }
    let (code, text) = world.refused("start_traffic", user.params(start("raw", 1.0)));
    assert_eq!(code, -32000);
    assert!(world.started.is_empty());
    text
}

/// Streams, how the refusal starts, and what to do.
type Case = (Vec<Value>, &'static str, &'static str);

fn check(cases: Vec<Case>) {
    for (streams, start, remedy) in cases {
        let text = refusal(&streams);
        assert!(text.starts_with(start) && text.contains(remedy), "{text}");
    }
}

#[test]
fn chains_that_cannot_work_name_stream_and_remedy() {
    let next = |id: i64| ("next_stream_id", json!(id));
    let asleep = ("self_start", json!(false));
    let disabled = ("enabled", json!(false));
    let cases: Vec<Case> = vec![
        (
            vec![stream(), with(stream(), std::slice::from_ref(&asleep))],
            "stream 2 never starts: ",
            "set self_start, or name it as the next",
        ),
        (
            vec![with(burst(), &[next(9)])],
            "stream 1: next stream 9 does not exist or is disabled",
            "add or enable it",
        ),
        (
            vec![with(burst(), &[next(2)]), with(stream(), &[disabled])],
            "stream 1: next stream 2 does not exist or is disabled",
            "add or enable it",
        ),
        (
            vec![with(burst(), &[next(1)])],
            "stream 1: its next stream is itself without an action_count",
            "set action_count",
        ),
        (
            vec![with(stream(), &[next(2)]), burst()],
            "stream 1: a continuous stream never ends",
            "make it a burst",
        ),
    ];
    check(cases);
}

#[test]
fn what_core_sends_a_stream_is_consistent() {
    let next = |id: i64| ("next_stream_id", json!(id));
    let asleep = ("self_start", json!(false));
    let core = |core: i64| ("core_id", json!(core));
    let cases: Vec<Case> = vec![
        (
            vec![
                with(burst(), &[next(2), measured(7)]),
                with(stream(), std::slice::from_ref(&asleep)),
            ],
            "stream 1 and its next stream 2: only one of them is measured for latency",
            "measure both or none",
        ),
        (
            vec![
                with(burst(), &[next(2)]),
                with(stream(), &[asleep.clone(), measured(7)]),
            ],
            "stream 1 and its next stream 2: only one of them is measured for latency",
            "measure both or none",
        ),
        (
            vec![with(stream(), &[core(1), measured(7)])],
            "stream 1: core_id cannot be set for a stream whose latency is measured",
            "leave core_id -1",
        ),
        (
            vec![
                with(burst(), &[core(0), next(2)]),
                with(stream(), &[asleep, core(1)]),
            ],
            "stream 1 and its next stream 2 have different core_ids",
            "give all streams of a chain the same",
        ),
        (
            vec![with(stream(), &[core(2)])],
            "stream 1: field 'core_id' is 2",
            "must be an integer between 0 and 1 (inclusive)",
        ),
        (
            vec![with(stream(), &[measured(7), ("flags", json!(8))])],
            "stream 1: field 'flow_stats.enabled' is true for a dummy stream",
            "leave flow_stats out",
        ),
    ];
    check(cases);
}
