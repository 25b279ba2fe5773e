//! Whatever comes in, there is a reply, and the server goes on.

use crate::common::{User, World, stateless_commands, stream};
use allosaur_api::Access;
use allosaur_server::transport::Codec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Any JSON, a few levels deep, with a taste for what matters here.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (0_u64..20).prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z_*]{0,8}".prop_map(Value::from),
        prop::sample::select(vec!["_", "*", "pps", "raw", "abs", "flow_var", "inc"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z_]{1,10}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// The parameters of a method's example, and a user's own strings, with some replaced.
fn params(user: &User, example: &str, owner: bool, changes: &[(usize, Value)]) -> Value {
    let mut params: Map<String, Value> = serde_json::from_str(example).expect("an object");
    params.insert("api_h".into(), json!(user.api_h));
    if owner {
        params.insert("handler".into(), json!(user.handlers[0]));
    }
    for (at, value) in changes {
        let at = at % params.len();
        let name = params.keys().nth(at).expect("below the length").clone();
        params.insert(name, value.clone());
    }
    Value::Object(params)
}

/// Replaces the n-th leaf of a JSON tree.
fn replace_leaf(tree: &mut Value, n: &mut usize, with: &Value) {
    match tree {
        Value::Object(map) => map.values_mut().for_each(|v| replace_leaf(v, n, with)),
        Value::Array(list) => list.iter_mut().for_each(|v| replace_leaf(v, n, with)),
        leaf => {
            if *n == 0 {
                *leaf = with.clone();
            }
            *n = n.wrapping_sub(1);
        }
    }
}

/// A stream with every instruction, to be spoilt.
fn rich_stream() -> Value {
    let mut stream = stream();
    stream["random_seed"] = json!(7);
    stream["mode"] = json!({"type": "multi_burst", "pkts_per_burst": 3, "ibg": 10.0, "count": 2,
        "rate": {"type": "percentage", "value": 1.0}});
    stream["vm"] = json!({"cache": 0, "instructions": [
        {"type": "flow_var", "name": "a", "size": 4, "op": "random", "step": 1,
         "init_value": 1, "min_value": 1, "max_value": 9, "next_var": null,
         "split_to_cores": true},
        {"type": "flow_var", "name": "b", "size": 2, "op": "inc", "step": 1,
         "value_list": [60, 61, 62]},
        {"type": "write_flow_var", "name": "a", "pkt_offset": 26, "add_value": -1,
         "is_big_endian": true},
        {"type": "fix_checksum_ipv4", "pkt_offset": 14},
        {"type": "trim_pkt_size", "name": "b"}]});
    stream
}

fn is_reply(reply: &Value) -> bool {
    reply["jsonrpc"] == "2.0" && (reply.get("result").is_some() != reply["error"]["code"].is_i64())
}

fn parse_reply(reply: &[u8]) -> Value {
    let text = Codec::default()
        .decode(reply)
        .expect("a reply that is small")
        .bytes
        .into_owned();
    serde_json::from_slice(&text).expect("a reply is JSON")
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut world = World::new(1);
        for frame in [bytes.clone(), Codec::default().zip(&bytes)] {
            let reply = parse_reply(&world.ask_raw(&frame));
            prop_assert!(is_reply(&reply), "{reply}");
        }
    }

    #[test]
    fn any_json_is_answered(message in any_json()) {
        let mut world = World::new(1);
        let reply = parse_reply(&world.ask_raw(message.to_string().as_bytes()));
        match (&message, &reply) {
            (Value::Array(batch), Value::Null) => prop_assert!(batch.is_empty()),
            (Value::Array(batch), Value::Array(replies)) => {
                prop_assert_eq!(batch.len(), replies.len());
                prop_assert!(replies.iter().all(is_reply));
            }
            (_, reply) => prop_assert!(is_reply(reply), "{}", reply),
        }
    }

    #[test]
    fn any_parameters_of_any_method_are_answered(
        calls in prop::collection::vec(
            (any::<prop::sample::Index>(), prop::collection::vec((0_usize..9, any_json()), 0..3)),
            1..30,
        )
    ) {
        let mut world = World::new(2);
        let user = User::with_port(&mut world, "ann", 1);
        let table: Vec<_> = stateless_commands().collect();
        for (index, changes) in calls {
            let command = index.get(&table);
            let owner = command.access == Access::Owner;
            let params = params(&user, command.example.params, owner, &changes);
            let reply = world.call(command.name, params);
            prop_assert!(is_reply(&reply), "{}: {}", command.name, reply);
        }
        let pong = world.ok("ping", json!({}));
        prop_assert!(pong["ts"].is_f64(), "{}", pong);
    }

    #[test]
    fn a_spoilt_stream_is_refused_by_name_or_can_be_started(
        leaf in 0_usize..50, value in any_json()
    ) {
        let mut world = World::new(2);
        let user = User::with_port(&mut world, "ann", 1);
        let mut stream = rich_stream();
        replace_leaf(&mut stream, &mut { leaf }, &value);
        let reply = world.call("add_stream", user.params(json!({"stream_id": 3, "stream": stream})));
        if let Some(text) = reply["error"]["specific_err"].as_str() {
            prop_assert!(text.starts_with("stream 3: "), "{}", text);
            return Ok(());
        }
        let mut start = crate::common::start("raw", 1.0);
        start["force"] = json!(true);
        let reply = world.call("start_traffic", user.params(start));
        prop_assert!(is_reply(&reply), "{}", reply);
    }
}
