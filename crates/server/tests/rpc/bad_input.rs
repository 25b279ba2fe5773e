//! Bad input: each gets an error that names the stream, field or limit and what to do, and the
//! server goes on.

use allosaur_api::{Command, Mode};

use crate::common::{User, World, start, stateless_commands, stream};
use allosaur_server::transport::{Codec, framing};
use serde_json::{Value, json};

/// A world with a user who owns port 0.
fn world() -> (World, User) {
    let mut world = World::new(1);
    let user = User::with_port(&mut world, "ann", 1);
    (world, user)
}

/// Adds stream 3 after `change`; gives the error's text.
fn refused_stream(change: impl FnOnce(&mut Value)) -> String {
    let (mut world, user) = world();
    let mut stream = stream();
    change(&mut stream);
    let params = user.params(json!({"stream_id": 3, "stream": stream}));
    let (code, text) = world.refused("add_stream", params);
    assert_eq!(code, -32000, "{text}");
    let list = world.ok("get_stream_list", user.params(json!({})));
    assert_eq!(list, json!([]), "a refused stream must not be kept");
    text
}

fn packet(bytes: usize) -> Value {
    use base64::Engine as _;
    json!(base64::engine::general_purpose::STANDARD.encode(vec![0x55_u8; bytes]))
}

#[test]
fn a_stream_without_a_packet() {
    let text = refused_stream(|s| _ = s.as_object_mut().expect("an object").remove("packet"));
    assert_eq!(text, "stream 3: field 'packet' is missing");
}

#[test]
fn a_packet_that_is_too_short_or_too_long() {
    for bytes in [13, 9239] {
        let text = refused_stream(|s| s["packet"]["binary"] = packet(bytes));
        assert_eq!(
            text,
            format!("stream 3: packet is {bytes} bytes; it must be 14 to 9238")
        );
    }
}

#[test]
fn a_field_engine_that_writes_past_the_packet() {
    let text = refused_stream(|s| {
        s["vm"]["instructions"] = json!([
            {"type": "flow_var", "name": "a", "size": 4, "op": "inc", "step": 1,
             "init_value": 1, "min_value": 1, "max_value": 9},
            {"type": "write_flow_var", "name": "a", "pkt_offset": 58, "add_value": 0,
             "is_big_endian": true},
        ]);
    });
    assert!(text.starts_with("stream 3: "), "{text}");
    assert!(text.contains("58") && text.contains("60"), "{text}");
}

#[test]
fn a_field_engine_that_names_an_unknown_variable() {
    let text = refused_stream(|s| {
        s["vm"]["instructions"] = json!([{"type": "write_flow_var", "name": "nobody",
            "pkt_offset": 26, "add_value": 0, "is_big_endian": true}]);
    });
    assert!(
        text.starts_with("stream 3: ") && text.contains("nobody"),
        "{text}"
    );
}

#[test]
fn a_rate_of_zero() {
    let text = refused_stream(|s| s["mode"]["rate"]["value"] = json!(0));
    assert_eq!(
        text,
        "stream 3: field 'mode.rate.value' is 0; it must be above 0"
    );
    let (mut world, user) = world();
    world.ok(
        "add_stream",
        user.params(json!({"stream_id": 3, "stream": stream()})),
    );
    let (code, text) = world.refused("start_traffic", user.params(start("pps", 0.0)));
    assert_eq!(code, -32602);
    assert_eq!(text, "field 'mul.value' is 0; it must be above 0");
}

#[test]
fn an_unknown_port() {
    let (mut world, user) = world();
    for method in [
        "get_port_status",
        "get_port_stats",
        "stop_traffic",
        "get_stream_list",
    ] {
        let params = user.params(json!({"port_id": 7}));
        let (code, text) = world.refused(method, params);
        assert_eq!(code, -32000);
        assert_eq!(text, "invalid port id 7 - should be: 0 to 1", "{method}");
    }
    let params = json!({"api_h": user.api_h, "port_id": 7, "user": "ann", "session_id": 1,
        "force": false});
    assert!(
        world
            .refused("acquire", params)
            .1
            .contains("invalid port id 7")
    );
}

#[test]
fn a_port_of_another_user_and_his_traffic_are_untouched() {
    let (mut world, ann) = world();
    world.ok(
        "add_stream",
        ann.params(json!({"stream_id": 3, "stream": stream()})),
    );
    world.ok("start_traffic", ann.params(start("raw", 1.0)));
    let mut bob = User::connect(&mut world, "bob", 2);
    let error = bob.acquire(&mut world, 0, false).expect_err("it is ann's");
    assert!(error.contains("port is already taken by 'ann'"), "{error}");
    for method in [
        "stop_traffic",
        "remove_all_streams",
        "release",
        "start_traffic",
    ] {
        let params = bob.params(json!({"handler": "guess"}));
        let (code, text) = world.refused(method, params);
        assert_eq!(code, -32000, "{method}");
        assert!(text.contains("not owned by you"), "{method}: {text}");
    }
    assert!(world.stopped.is_empty());
    let status = world.ok("get_port_status", ann.params(json!({})));
    assert_eq!(
        (&status["state"], &status["owner"]),
        (&json!("TX"), &json!("ann"))
    );
}

#[test]
fn a_truncated_request() {
    let (mut world, _) = world();
    let request = br#"{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {}}"#;
    for length in 0..request.len() {
        let reply = world.ask_raw(&request[..length]);
        let reply: Value = serde_json::from_slice(&reply).expect("JSON");
        assert_eq!(reply["error"]["code"], -32700, "{length}");
        assert_eq!(reply["error"]["message"], "Bad JSON Format");
    }
    let zipped = Codec::default().zip(request);
    for length in 0..zipped.len() {
        let reply = world.ask_raw(&zipped[..length]);
        let reply: Value = serde_json::from_slice(&reply).expect("JSON");
        assert_eq!(reply["error"]["code"], -32700, "{length}");
    }
    assert!(world.ok("ping", json!({}))["ts"].is_f64());
}

#[test]
fn a_request_of_two_megabytes() {
    let (mut world, _) = world();
    let large = format!(
        r#"{{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {{"x": "{}"}}}}"#,
        "x".repeat(2_000_000)
    );
    for frame in [
        large.clone().into_bytes(),
        Codec::default().zip(large.as_bytes()),
    ] {
        let reply = world.ask_raw(&frame);
        let zipped = framing::is_zipped(&frame);
        assert_eq!(framing::is_zipped(&reply), zipped);
        let text = Codec::default()
            .decode(&reply)
            .expect("small")
            .bytes
            .into_owned();
        let reply: Value = serde_json::from_slice(&text).expect("JSON");
        assert_eq!(
            (&reply["error"]["code"], &reply["id"]),
            (&json!(-32603), &Value::Null)
        );
        let message = reply["error"]["message"].as_str().expect("a text");
        assert!(
            message.contains("999999") && message.contains("split"),
            "{message}"
        );
    }
    assert!(world.ok("ping", json!({}))["ts"].is_f64());
}

#[test]
fn bytes_that_are_not_json() {
    let (mut world, _) = world();
    for message in [
        &b"hello"[..],
        b"\xff\xfe\x00",
        b"{'a': 1}",
        b"",
        b"[1,2",
        b"\0\0\0\0\0\0\0\0",
    ] {
        let reply = world.ask_raw(message);
        let reply: Value = serde_json::from_slice(&reply).expect("JSON");
        assert_eq!(reply["error"]["code"], -32700);
        assert_eq!(reply["id"], Value::Null);
    }
    for message in [&b"[1,2]"[..], b"5", b"\"s\"", b"[[]]"] {
        let reply: Value = serde_json::from_slice(&world.ask_raw(message)).expect("JSON");
        let first = reply.get(0).unwrap_or(&reply);
        assert_eq!(first["error"]["code"], -32600);
    }
    assert!(world.ok("ping", json!({}))["ts"].is_f64());
}

#[test]
fn an_unknown_method_and_a_wrong_handshake() {
    let (mut world, user) = world();
    let reply = world.call("no_such", json!({}));
    assert_eq!(
        reply["error"],
        json!({"code": -32601, "message": "Method no_such not registered"})
    );
    let (code, text) = world.refused("get_system_info", json!({}));
    assert_eq!((code, text.as_str()), (-32602, "field 'api_h' is missing"));
    let (code, text) = world.refused("get_system_info", json!({"api_h": "zzzz"}));
    assert_eq!(code, -32000);
    assert!(
        text.starts_with("API verification failed - API handler provided mismatch"),
        "{text}"
    );
    let sync =
        |name: &str, major: i64, minor: i64| json!({"name": name, "major": major, "minor": minor});
    let (_, text) = world.refused("api_sync_v2", sync("ASTF", 2, 3));
    assert!(text.starts_with("RPC configuration mismatch"), "{text}");
    let (_, text) = world.refused("api_sync_v2", sync("STL", 4, 0));
    assert!(
        text.contains("a newer client version is required"),
        "{text}"
    );
    let (_, text) = world.refused("api_sync_v2", sync("STL", 5, 99));
    assert!(
        text.contains("too new") && text.contains("client: '5.99'"),
        "{text}"
    );
    assert_eq!(
        world.ok("api_sync_v2", sync("STL", 5, 0))["api_h"],
        json!(user.api_h)
    );
}

#[test]
fn starting_what_cannot_start() {
    let (mut world, user) = world();
    let refuse = |world: &mut World, more: Value| {
        let mut params = start("raw", 1.0);
        params
            .as_object_mut()
            .expect("an object")
            .extend(more.as_object().expect("one").clone());
        world.refused("start_traffic", user.params(params)).1
    };
    let text = refuse(&mut world, json!({}));
    assert_eq!(
        text,
        "command 'start' cannot be executed on current state: 'IDLE on profile_id(_). Add a \
         stream to it first."
    );
    world.ok(
        "add_stream",
        user.params(json!({"stream_id": 3, "stream": stream()})),
    );
    let text = refuse(
        &mut world,
        json!({"mul": {"type": "pps", "op": "abs", "value": 1e9}}),
    );
    let start = "Expected L1 B/W: '672.00 Gbps' exceeds port line rate: '10.00 Gbps'.";
    assert!(text.starts_with(start), "{text}");
    assert!(refuse(&mut world, json!({"core_mask": 2})).contains("selects no data thread"));
    assert!(refuse(&mut world, json!({"duration": 0})).contains("-1 for no end"));
    assert!(refuse(&mut world, json!({"duration": 1e10})).contains("-1 for no end"));
    for time in [1.0, 1e6] {
        let text = refuse(&mut world, json!({"start_at_ts": time}));
        assert!(text.contains("later time within a day"), "{text}");
    }
    let text = refuse(
        &mut world,
        json!({"mul": {"type": "foo", "op": "abs", "value": 1}}),
    );
    assert!(text.contains("can only be one of ['raw', 'bps'"), "{text}");
    assert!(refuse(&mut world, json!({"profile_id": "nobody"})).contains("nobody"));
    assert!(world.started.is_empty());
    world.ok(
        "start_traffic",
        user.params(crate::common::start("raw", 1.0)),
    );
    assert!(refuse(&mut world, json!({})).contains("Stop its traffic first"));
    let (_, text) = world.refused("remove_all_streams", user.params(json!({})));
    assert!(text.contains("'TX on profile_id(_)"), "{text}");
    let again = user.params(json!({"stream_id": 4, "stream": stream()}));
    assert!(
        world
            .refused("add_stream", again)
            .1
            .contains("Stop its traffic first")
    );
}

#[test]
fn numbers_beyond_all_use() {
    let (mut world, user) = world();
    let mut slow = stream();
    slow["mode"]["rate"]["value"] = json!(1e-300);
    world.ok(
        "add_stream",
        user.params(json!({"stream_id": 3, "stream": slow})),
    );
    let mut params = start("pps", 1e300);
    params["force"] = json!(true);
    let (_, text) = world.refused("start_traffic", user.params(params));
    assert!(text.contains("'mul' is too large"), "{text}");
    let params = json!({"api_h": user.api_h, "port_id": 1, "user": "x".repeat(257),
        "session_id": 9, "force": false});
    let (_, text) = world.refused("acquire", params);
    assert_eq!(text, "field 'user' has 257 bytes; the most is 256");
}

#[test]
fn a_chain_that_leads_nowhere_is_named_at_start() {
    let (mut world, user) = world();
    let mut burst = stream();
    burst["mode"] = json!({"type": "single_burst", "total_pkts": 2,
        "rate": {"type": "pps", "value": 10}});
    burst["next_stream_id"] = json!(99);
    world.ok(
        "add_stream",
        user.params(json!({"stream_id": 3, "stream": burst})),
    );
    let (code, text) = world.refused("start_traffic", user.params(start("raw", 1.0)));
    assert_eq!(code, -32000);
    assert!(
        text.starts_with("stream 3: ") && text.contains("99"),
        "{text}"
    );
}

#[test]
fn limits_hold() {
    let (mut world, user) = world();
    let add = |world: &mut World, profile: &str, id: u32| {
        let params = json!({"profile_id": profile, "stream_id": id, "stream": stream()});
        world.call("add_stream", user.params(params))
    };
    for n in 0..127 {
        assert!(add(&mut world, &format!("p{n}"), 1)["error"].is_null());
    }
    let reply = add(&mut world, "one more", 1);
    assert!(
        reply["error"]["specific_err"]
            .as_str()
            .expect("a text")
            .contains("128 profiles")
    );
    assert!(
        add(&mut world, "p0", 1)["error"].is_object(),
        "the same number twice"
    );
    let params = user.params(json!({"profile_id": "p0"}));
    world.ok("remove_all_streams", params);
    assert!(
        add(&mut world, "one more", 1)["error"].is_null(),
        "an empty profile makes room"
    );
    for name in ["", "*", &"x".repeat(129)] {
        assert!(add(&mut world, name, 1)["error"].is_object(), "{name}");
    }
}

#[test]
fn a_profile_holds_twenty_thousand_streams() {
    let (mut world, user) = world();
    for id in 0..20_000 {
        world.ok(
            "add_stream",
            user.params(json!({"stream_id": id, "stream": stream()})),
        );
    }
    let params = user.params(json!({"stream_id": 20_000, "stream": stream()}));
    let (_, text) = world.refused("add_stream", params);
    assert!(
        text.contains("stream 20000") && text.contains("20000 streams"),
        "{text}"
    );
    world.ok("start_traffic", user.params(start("raw", 1.0)));
    assert_eq!(world.started.len(), 1);
}

/// Something of each JSON type, and what no number of ours may be.
fn odd_values() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(-1),
        json!(0.5),
        json!(1e300),
        json!(u64::MAX),
        json!(""),
        json!("x"),
        json!([]),
        json!([[]]),
        json!({}),
        json!({"x": null}),
    ]
}

#[test]
fn every_parameter_that_is_wrong_is_named_by_every_method() {
    let (mut world, user) = world();
    let mut refused = 0;
    let all = allosaur_api::table::commands_with_params();
    let stateless = |command: &Command| command.method.is_in(Mode::Stateless);
    let there = all.iter().filter(|(command, _)| stateless(command));
    for (command, params_of_it) in there {
        if command.name == "shutdown" {
            continue;
        }
        let example: Value = serde_json::from_str(command.example.params).expect("JSON");
        for param in params_of_it {
            for odd in odd_values() {
                let mut params = user.params(example.clone());
                params[param.name.as_str()] = odd.clone();
                let reply = world.call(command.name, params);
                let Some(error) = reply.get("error") else {
                    continue;
                };
                refused += 1;
                let text = error["specific_err"].as_str().unwrap_or_default();
                let case = format!("{} {} = {odd}: {error}", command.name, param.name);
                assert!(text.len() > 20, "{case}");
                // Bad parameters are named, with the path to the value when it lies deeper.
                let named = text.contains(&format!("'{}", param.name))
                    || text.contains(&format!(".{}", param.name));
                assert!(named || error["code"] == -32000, "{case}");
            }
        }
    }
    assert!(refused > 500, "only {refused} calls were refused");
}

#[test]
fn what_a_user_may_not_do_is_said_with_what_he_may() {
    let (mut world, ann) = world();
    let bob = User::connect(&mut world, "bob", 2);
    let acquire = |session: Value, user: &str| {
        json!({"api_h": ann.api_h, "port_id": 0, "user": user, "session_id": session,
            "force": false})
    };
    for (params, words) in [
        (acquire(json!(0), "bob"), ["session_id", "0"]),
        (acquire(json!(2), "bob"), ["already taken", "ann"]),
        (acquire(json!(2), "ann"), ["another session", "ann"]),
        (acquire(json!(-1), "bob"), ["session_id", "uint32"]),
        (acquire(json!(2), ""), ["user", "empty"]),
    ] {
        let (_, text) = world.refused("acquire", params.clone());
        assert!(
            words.iter().all(|word| text.contains(word)),
            "{params}: {text}"
        );
    }
    let nobody = json!({"api_h": ann.api_h, "port_id": 1, "handler": "guess"});
    for command in stateless_commands() {
        if command.access != allosaur_api::Access::Owner {
            continue;
        }
        let example: Value = serde_json::from_str(command.example.params).expect("JSON");
        let mut params = bob.params(example);
        params["port_id"] = json!(0);
        params["handler"] = json!("guess");
        let (code, text) = world.refused(command.name, params);
        assert_eq!(code, -32000, "{}", command.name);
        assert!(
            text.contains("not owned by you"),
            "{}: {text}",
            command.name
        );
        let (_, text) = world.refused(command.name, nobody.clone());
        assert!(
            text.contains("acquire the port"),
            "{}: {text}",
            command.name
        );
    }
}
