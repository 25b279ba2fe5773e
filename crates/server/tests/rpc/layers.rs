//! The addresses of a port, and packets that are pushed out of it.

use crate::common::{PACKET, User, World, start, stream};
use serde_json::{Value, json};

fn world() -> (World, User) {
    let mut world = World::new(2);
    let user = User::with_port(&mut world, "ann", 1);
    (world, user)
}

fn layer_cfg(world: &mut World, user: &User) -> Value {
    world.ok("get_port_status", user.params(json!({})))["attr"]["layer_cfg"].take()
}

#[test]
fn a_port_in_layer_3_mode_sends_nothing_to_a_gateway_it_does_not_know() {
    let (mut world, user) = world();
    let add = json!({"stream_id": 1, "stream": stream()});
    world.ok("add_stream", user.params(add));
    let unresolved = json!({"src_addr": "192.0.2.1", "dst_addr": "192.0.2.2"});
    world.ok("set_l3", user.params(unresolved.clone()));
    let layers = layer_cfg(&mut world, &user);
    assert_eq!(layers["ether"]["state"], "unconfigured");
    let ipv4 = json!({"state": "unresolved", "src": "192.0.2.1", "dst": "192.0.2.2"});
    assert_eq!(layers["ipv4"], ipv4);
    let (_, text) = world.refused("start_traffic", user.params(start("raw", 1.0)));
    assert!(
        text.contains("stream 1") && text.contains("192.0.2.2"),
        "{text}"
    );
    assert!(text.contains("set_l3"), "{text}");

    let mut resolved = unresolved;
    resolved["resolved_mac"] = json!("02:00:00:00:00:99");
    world.ok("set_l3", user.params(resolved));
    let layers = layer_cfg(&mut world, &user);
    assert_eq!(layers["ether"]["dst"], "02:00:00:00:00:99");
    assert_eq!(
        (&layers["ether"]["state"], &layers["ipv4"]["state"]),
        (&json!("configured"), &json!("resolved"))
    );
    world.ok("start_traffic", user.params(start("raw", 1.0)));
}

#[test]
fn a_stream_with_its_own_destination_needs_no_gateway() {
    let (mut world, user) = world();
    let mut own = stream();
    own["flags"] = json!(2);
    world.ok(
        "add_stream",
        user.params(json!({"stream_id": 1, "stream": own})),
    );
    let unresolved = json!({"src_addr": "192.0.2.1", "dst_addr": "192.0.2.2"});
    world.ok("set_l3", user.params(unresolved));
    world.ok("start_traffic", user.params(start("raw", 1.0)));
}

#[test]
fn force_starts_before_the_gateway_is_known() {
    let (mut world, user) = world();
    let more = json!({"stream_id": 1, "stream": stream()});
    world.ok("add_stream", user.params(more));
    let unresolved = json!({"src_addr": "192.0.2.1", "dst_addr": "192.0.2.2"});
    world.ok("set_l3", user.params(unresolved));
    let (_, text) = world.refused("start_traffic", user.params(start("raw", 1.0)));
    assert!(text.contains("or use force"), "{text}");
    let mut forced = user.params(start("raw", 1.0));
    forced["force"] = json!(true);
    world.ok("start_traffic", forced);
}

#[test]
fn layer_2_mode_ends_layer_3_mode() {
    let (mut world, user) = world();
    world.ok(
        "set_l3",
        user.params(json!({"src_addr": "192.0.2.1", "dst_addr": "192.0.2.2"})),
    );
    world.ok(
        "set_l2",
        user.params(json!({"dst_mac": "02:00:00:00:00:aa"})),
    );
    let layers = layer_cfg(&mut world, &user);
    assert_eq!(layers["ether"]["dst"], "02:00:00:00:00:aa");
    assert_eq!(layers["ipv4"], json!({"state": "none"}));
}

#[test]
fn ipv6_and_vlan_are_shown() {
    let (mut world, user) = world();
    world.ok(
        "conf_ipv6",
        user.params(json!({"enabled": true, "src_ipv6": "2001:db8::1"})),
    );
    let ipv6 = layer_cfg(&mut world, &user)["ipv6"].take();
    assert_eq!(ipv6, json!({"enabled": true, "src": "2001:db8::1"}));
    world.ok(
        "conf_ipv6",
        user.params(json!({"enabled": true, "src_ipv6": ""})),
    );
    let source = layer_cfg(&mut world, &user)["ipv6"]["src"].take();
    assert!(
        source
            .as_str()
            .is_some_and(|text| text.starts_with("fe80::")),
        "{source}"
    );
    world.ok("conf_ipv6", user.params(json!({"enabled": false})));
    assert_eq!(
        layer_cfg(&mut world, &user)["ipv6"],
        json!({"enabled": false})
    );
    world.ok("set_vlan", user.params(json!({"vlan": [100, 200]})));
    let status = world.ok("get_port_status", user.params(json!({})));
    assert_eq!(status["attr"]["vlan"], json!({"tags": [100, 200]}));
}

#[test]
fn wrong_addresses_are_named() {
    let (mut world, user) = world();
    for (method, params, words) in [
        (
            "set_l2",
            json!({"dst_mac": "02:00:00:00:00"}),
            ["dst_mac", "02:00:00:00:00:01"],
        ),
        (
            "set_l2",
            json!({"dst_mac": "02:00:00:00:00:00:00"}),
            ["dst_mac", "MAC address"],
        ),
        (
            "set_l3",
            json!({"src_addr": "2001:db8::1", "dst_addr": "192.0.2.2"}),
            ["src_addr", "192.0.2.1"],
        ),
        (
            "set_l3",
            json!({"src_addr": "192.0.2.1", "dst_addr": "nobody"}),
            ["dst_addr", "IPv4"],
        ),
        (
            "conf_ipv6",
            json!({"enabled": true, "src_ipv6": "192.0.2.1"}),
            ["src_ipv6", "IPv6"],
        ),
        (
            "set_vlan",
            json!({"vlan": [1, 2, 3]}),
            ["vlan", "most is 2"],
        ),
        ("set_vlan", json!({"vlan": [0]}), ["vlan", "1 to 4095"]),
        ("set_vlan", json!({"vlan": [4096]}), ["vlan[0]", "uint16"]),
    ] {
        let (_, text) = world.refused(method, user.params(params));
        assert!(
            words.iter().all(|word| text.contains(word)),
            "{method}: {text}"
        );
    }
}

#[test]
fn addresses_stay_while_the_port_transmits() {
    let (mut world, user) = world();
    world.ok(
        "add_stream",
        user.params(json!({"stream_id": 1, "stream": stream()})),
    );
    world.ok("start_traffic", user.params(start("raw", 1.0)));
    for (method, params) in [
        ("set_l2", json!({"dst_mac": "02:00:00:00:00:aa"})),
        (
            "set_l3",
            json!({"src_addr": "192.0.2.1", "dst_addr": "192.0.2.2"}),
        ),
        ("conf_ipv6", json!({"enabled": true})),
        ("set_vlan", json!({"vlan": [5]})),
    ] {
        let (_, text) = world.refused(method, user.params(params));
        assert!(text.contains("stop its traffic first"), "{method}: {text}");
    }
}

fn pushed(packets: usize, binary: &str) -> Value {
    let packet = json!({"binary": binary, "use_port_dst_mac": true, "use_port_src_mac": false});
    json!({"pkts": vec![packet; packets], "ipg_usec": 1000})
}

#[test]
fn pushed_packets_leave_by_one_data_thread() {
    let (mut world, user) = world();
    let reply = world.ok("push_pkts", user.params(pushed(3, PACKET)));
    assert_eq!(reply["sent"], 3);
    let [started] = world.started[..] else {
        panic!("one data thread sends them: {:?}", world.started);
    };
    assert_eq!((started.core, started.port, started.duration), (0, 0, None));
    // Their end is nobody's event, and the port is as idle as before.
    world.done(started);
    let status = world.ok("get_port_status", user.params(json!({})));
    assert_eq!(status["state"], "IDLE");
}

#[test]
fn what_cannot_be_pushed_is_named() {
    let (mut world, user) = world();
    for (params, word) in [
        (pushed(0, PACKET), "1 to 20000"),
        (pushed(1001, PACKET), "longer than 1 s"),
        (pushed(1, "AAAA"), "pkts[0]: packet is 3 bytes"),
        (pushed(1, "?"), "base64"),
    ] {
        let (_, text) = world.refused("push_pkts", user.params(params));
        assert!(text.contains(word), "{text}");
    }
    assert!(world.started.is_empty());
}

#[test]
fn the_scheduler_s_switches_are_remembered_and_checked() {
    let mut world = World::new(1);
    let api_h = world.sync();
    let set = |more: Value| {
        let mut params = json!({"api_h": api_h});
        let object = params.as_object_mut().expect("an object");
        object.extend(more.as_object().expect("an object").clone());
        params
    };
    let zero = json!({"do_mbuf_cache": false, "process_at_cp": false, "sched_max_stretch": 0.0});
    assert_eq!(world.ok("get_global_cfg", set(json!({}))), zero);
    let wanted = json!({"sched_max_stretch": 2, "process_at_cp": true, "of_another_version": 1});
    assert_eq!(world.ok("set_global_cfg", set(wanted)), Value::Null);
    // What is left out stays.
    world.ok("set_global_cfg", set(json!({"do_mbuf_cache": true})));
    let now = json!({"do_mbuf_cache": true, "process_at_cp": true, "sched_max_stretch": 2.0});
    assert_eq!(world.ok("get_global_cfg", set(json!({}))), now);
    for (wrong, text) in [
        (
            json!({"sched_max_stretch": -0.1}),
            "field 'sched_max_stretch' is -0.1; give 0 or more",
        ),
        (
            json!({"sched_max_stretch": "1"}),
            "'sched_max_stretch' is 'string', expecting 'double'",
        ),
        (
            json!({"process_at_cp": 1}),
            "'process_at_cp' is 'int', expecting 'boolean'",
        ),
        (
            json!({"do_mbuf_cache": "no"}),
            "'do_mbuf_cache' is 'string', expecting 'boolean'",
        ),
    ] {
        let (code, said) = world.refused("set_global_cfg", set(wrong));
        assert_eq!(code, -32602);
        assert!(said.contains(text), "{said}");
    }
    assert_eq!(world.ok("get_global_cfg", set(json!({}))), now);
}

/// TRex asks for no handler here, and some of its clients send none.
#[test]
fn addresses_are_set_without_a_handler() {
    let mut world = World::new(1);
    let stranger = User::connect(&mut world, "bob", 2);
    for (method, more) in [
        ("set_l2", json!({"dst_mac": "02:00:00:00:00:aa"})),
        (
            "set_l3",
            json!({"src_addr": "192.0.2.1", "dst_addr": "192.0.2.2"}),
        ),
        ("conf_ipv6", json!({"enabled": true})),
        ("set_vlan", json!({"vlan": [5]})),
    ] {
        let mut params = json!({"api_h": stranger.api_h, "port_id": 0});
        let object = params.as_object_mut().expect("an object");
        object.extend(more.as_object().expect("an object").clone());
        assert_eq!(world.ok(method, params), json!({}), "{method}");
    }
    let status = world.ok("get_port_status", stranger.params(json!({})));
    assert_eq!(status["attr"]["vlan"]["tags"], json!([5]));
}

#[test]
fn pushed_packets_leave_at_once_and_before_the_answer() {
    let (mut world, user) = world();
    let mut params = pushed(20, PACKET);
    params["ipg_usec"] = json!(20.0);
    world.obedient = false;
    let reply = world.call("push_pkts", user.params(params.clone()));
    assert_eq!(reply["result"]["sent"], 20);
    assert_eq!(world.started[0].start_at, world.now_ns);
    // While they leave, the answer waits; a test that does not obey gave up waiting.
    world.obedient = true;
    world.ok("push_pkts", user.params(params.clone()));
    assert_eq!(world.control.pending(), 0);
    // Packets that take long are not waited for: nobody answers here.
    world.obedient = false;
    params["ipg_usec"] = json!(1000);
    world.ok("push_pkts", user.params(params));
    assert_eq!(world.gave_up, [true, false]);
}
