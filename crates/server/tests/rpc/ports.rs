//! Attributes of ports over the RPC: the link, and the UDP ports that carry VXLAN.

use crate::common::{User, World, start, stream, vxlan_packet};
use allosaur_api::commands::ports::MtuChange;
use allosaur_engine::flow_stats::VxlanPorts;
use allosaur_netdev::interface::LinkState;
use allosaur_server::rx_taps::Reception;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

fn world() -> (World, User) {
    let mut world = World::new(1);
    let user = User::with_port(&mut world, "ann", 1);
    user.events(&mut world);
    (world, user)
}

fn set(world: &mut World, user: &User, port: u8, attr: Value) {
    let params = user.params(json!({"port_id": port, "attr": attr}));
    assert_eq!(world.ok("set_port_attr", params), json!({}));
}

/// The attributes that `get_port_status` shows.
fn attributes(world: &mut World, user: &User, port: u8) -> Value {
    world.ok("get_port_status", user.params(json!({"port_id": port})))["attr"].take()
}

fn links(world: &mut World, user: &User) -> [Value; 2] {
    [0, 1].map(|port| attributes(world, user, port)["link"]["up"].take())
}

/// The ports of which an event said that they have changed, with the whole event's attributes.
fn changed(world: &mut World, user: &User) -> Vec<(Value, Value)> {
    let events = user.events(world).into_iter();
    let changes = events.filter(|(kind, _, _)| *kind == 8);
    changes
        .map(|(_, mut data, _)| (data["port_id"].take(), data["attr"].take()))
        .collect()
}

fn receptions(world: &World) -> Vec<Reception> {
    world.watchers.0.borrow().receptions().collect()
}

#[test]
fn a_link_goes_down_and_up_for_both_its_ports() {
    let (mut world, user) = world();
    let info = world.ok("get_system_info", json!({"api_h": user.api_h}));
    assert_eq!(info["ports"][1]["is_link_supported"], true);
    assert_eq!(links(&mut world, &user), [true, true]);
    for (port, up) in [(0, false), (0, true), (1, false), (0, true)] {
        set(&mut world, &user, port, json!({"link_status": {"up": up}}));
        assert_eq!(links(&mut world, &user), [up, up]);
        assert!(receptions(&world).iter().all(|r| r.link_up == up));
        let mut events = changed(&mut world, &user);
        events.sort_by_key(|(port, _)| port.as_u64());
        let ports: Vec<_> = events.iter().map(|(port, _)| port).collect();
        assert_eq!(ports, [0, 1]);
        assert!(events.iter().all(|(_, attr)| attr["link"]["up"] == up));
        // A second time nothing changes.
        set(&mut world, &user, port, json!({"link_status": {"up": up}}));
        assert_eq!(changed(&mut world, &user), []);
    }
}

#[test]
fn an_interface_that_goes_away_is_an_event_that_says_so() {
    let mut world = World::on_interfaces(1);
    let user = User::with_port(&mut world, "ann", 1);
    user.events(&mut world);
    let gone = "the interface is gone";
    for (is_up, cause, is_news) in [
        (true, "", false),
        (false, "no carrier", true),
        (false, gone, true),
        (false, gone, false),
        (true, "", true),
    ] {
        assert_eq!(world.control.handle_link(1, is_up, cause, 0), is_news);
        let told = changed(&mut world, &user);
        assert_eq!(told.len(), usize::from(is_news));
        for (port, attr) in told {
            assert_eq!((port, &attr["link"]["up"]), (json!(1), &json!(is_up)));
            let said = attr["link"].get("cause").map_or(json!(""), Value::clone);
            assert_eq!(said, cause);
        }
        let link = attributes(&mut world, &user, 1)["link"].take();
        assert_eq!(link["up"], is_up);
    }
    // TRex's fields alone while all is well.
    assert_eq!(
        attributes(&mut world, &user, 1)["link"],
        json!({"up": true})
    );
    let mut memory = World::new(1);
    assert!(!memory.control.handle_link(1, false, gone, 0));
}

#[test]
fn an_mtu_that_changes_is_an_event_that_says_so() {
    let mut world = World::on_interfaces(1);
    let user = User::with_port(&mut world, "ann", 1);
    user.events(&mut world);
    let cut = Some(MtuChange {
        now: 1300,
        at_start: 1500,
    });
    for (change, is_news) in [(None, false), (cut, true), (cut, false), (None, true)] {
        assert_eq!(world.control.handle_mtu(1, change, 0), is_news);
        let told = changed(&mut world, &user);
        assert_eq!(told.len(), usize::from(is_news));
        let link = attributes(&mut world, &user, 1)["link"].take();
        assert_eq!(
            link["mtu"]["now"].as_u64(),
            change.map(|change| change.now as u64)
        );
    }
}

#[test]
fn what_a_port_without_its_interface_needs_is_said() {
    let mut world = World::on_interfaces(1);
    let user = User::with_port(&mut world, "ann", 1);
    let add = user.params(json!({"stream_id": 1, "stream": stream()}));
    world.ok("add_stream", add);
    for (state, remedy) in [
        (LinkState::SetDown, "Bring the interface"),
        (LinkState::Gone, "make it again, and restart the server"),
        (LinkState::Replaced, "restart the server"),
    ] {
        world.control.handle_link(0, false, state.cause(), 0);
        let (_, text) = world.refused("start_traffic", user.params(start("raw", 1.0)));
        assert!(text.contains(remedy), "{text}");
    }
}

#[test]
fn traffic_does_not_start_into_a_link_that_is_down_unless_it_is_forced() {
    let (mut world, user) = world();
    let add = user.params(json!({"stream_id": 1, "stream": stream()}));
    world.ok("add_stream", add);
    // The other end of the cable.
    set(&mut world, &user, 1, json!({"link_status": {"up": false}}));
    let (code, text) = world.refused("start_traffic", user.params(start("raw", 1.0)));
    assert_eq!(code, -32000);
    assert!(text.starts_with("Link state is DOWN."), "{text}");
    assert!(
        text.contains("link_status") && text.contains("force"),
        "{text}"
    );
    // Clients that do not know a state DOWN go on working.
    let status = world.ok("get_port_status", user.params(json!({})));
    assert_eq!(status["state"], "STREAMS");
    let mut forced = start("raw", 1.0);
    forced["force"] = json!(true);
    world.ok("start_traffic", user.params(forced));
    assert_eq!(world.started.len(), 1);
}

#[test]
fn the_ports_of_vxlan_are_those_of_one_port_and_an_empty_list_resets_them() {
    let (mut world, user) = world();
    let info = world.ok("get_system_info", json!({"api_h": user.api_h}));
    assert_eq!(info["ports"][0]["is_vxlan_supported"], true);
    for ports in [vec![8472_u16], vec![1, 65535, 4789], vec![]] {
        set(&mut world, &user, 0, json!({"vxlan_fs": ports}));
        let expected = VxlanPorts::with(&ports).expect("few");
        let found: Vec<_> = receptions(&world).iter().map(|r| r.vxlan).collect();
        assert_eq!(found, [expected, VxlanPorts::STANDARD]);
        assert_eq!(attributes(&mut world, &user, 0)["vxlan_fs"], json!(ports));
        assert_eq!(attributes(&mut world, &user, 1)["vxlan_fs"], json!([]));
        let events = changed(&mut world, &user);
        assert_eq!(events.len(), 1);
        assert_eq!(
            (&events[0].0, &events[0].1["vxlan_fs"]),
            (&json!(0), &json!(ports))
        );
    }
}

#[test]
fn attributes_that_cannot_be_are_refused_and_change_nothing() {
    let (mut world, user) = world();
    for (attr, words) in [
        (json!({"link_status": {"up": 1}}), "up"),
        (json!({"link_status": {}}), "up"),
        (json!({"link_status": true}), "link_status"),
        (json!({"vxlan_fs": 4790}), "vxlan_fs"),
        (json!({"vxlan_fs": [70_000]}), "vxlan_fs[0]"),
        (json!({"vxlan_fs": [-1]}), "vxlan_fs[0]"),
        (json!({"vxlan_fs": [0]}), "1 to 65535"),
        (
            json!({"vxlan_fs": [1, 2, 3, 4, 5, 6, 7, 8, 9]}),
            "the most is 8",
        ),
        (
            json!({"link_status": {"up": false}, "vxlan_fs": [5], "flow_ctrl_mode": {"mode": 0}}),
            "Error applying flow_ctrl_mode: operation is not supported for this NIC.",
        ),
    ] {
        let reply = world.call("set_port_attr", user.params(json!({"attr": attr})));
        let text = reply["error"].to_string();
        assert!(text.contains(words), "{text}");
    }
    assert_eq!(receptions(&world), [Reception::default(); 2]);
    assert_eq!(links(&mut world, &user), [true, true]);
    assert_eq!(changed(&mut world, &user), []);
}

/// A stream of [`vxlan_packet`]s, counted by the inner packet.
fn vxlan_stream(port: u16) -> Value {
    let mut stream = stream();
    stream["packet"]["binary"] = json!(STANDARD.encode(vxlan_packet(port)));
    stream["flow_stats"] = json!({
        "enabled": true, "stream_id": 5, "vxlan": true, "ieee_1588": false, "rule_type": "stats",
    });
    stream
}

#[test]
fn streams_are_counted_within_the_ports_of_vxlan_that_their_port_has() {
    let (mut world, user) = world();
    let add = |id: u32, port| user.params(json!({"stream_id": id, "stream": vxlan_stream(port)}));
    world.ok("add_stream", add(1, 4789));
    let (_, text) = world.refused("add_stream", add(2, 8472));
    assert!(
        text.contains("vxlan_fs") && text.contains("stream 2"),
        "{text}"
    );
    set(&mut world, &user, 0, json!({"vxlan_fs": [8472]}));
    world.ok("add_stream", add(2, 8472));
    set(&mut world, &user, 0, json!({"vxlan_fs": []}));
    let (_, text) = world.refused("start_traffic", user.params(start("raw", 1.0)));
    assert!(
        text.contains("vxlan_fs") && text.contains("stream 2"),
        "{text}"
    );
    set(&mut world, &user, 0, json!({"vxlan_fs": [9, 8472]}));
    world.ok("start_traffic", user.params(start("raw", 1.0)));
}
