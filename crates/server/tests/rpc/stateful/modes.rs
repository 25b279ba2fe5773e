//! What is there in which mode, and what goes beside stateful traffic.

use allosaur_api::{Mode, commands};
use allosaur_engine::time::{MILLISECOND, SECOND};
use allosaur_server::rx_taps::ServiceMode;
use serde_json::{Value, json};

use super::world::{Owned, profile, sync};
use crate::common::{World, start, stream};

#[test]
fn each_mode_has_its_own_commands_and_no_others() {
    let mut stateless = World::new(1);
    let mut stateful = World::stateful(1);
    let api_h = [stateless.sync(), sync(&mut stateful)];
    for command in commands() {
        let mode = command.method.mode();
        let worlds = [
            (Mode::Stateless, &mut stateless, &api_h[0]),
            (Mode::Stateful, &mut stateful, &api_h[1]),
        ];
        for (own, world, api_h) in worlds {
            let others = commands().filter(|other| other.name == command.name);
            if others.count() > 1 || command.name == "shutdown" {
                continue;
            }
            let reply = world.call(command.name, json!({"api_h": api_h}));
            let is_known = reply["error"]["code"] != -32601;
            assert_eq!(
                is_known,
                mode == Mode::Any || mode == own,
                "{}",
                command.name
            );
            if !is_known {
                let text = format!("Method {} not registered", command.name);
                assert_eq!(reply["error"]["message"], text);
            }
        }
    }
}

#[test]
fn a_client_of_the_other_mode_is_told_so() {
    let mut world = World::stateful(1);
    let stl = json!({"name": "STL", "major": 5, "minor": 1});
    let (_, told) = world.refused("api_sync_v2", stl);
    assert!(told.contains("'ASTF'") && told.contains("'STL'"), "{told}");
    let newer = json!({"name": "ASTF", "major": 2, "minor": 4});
    let (_, told) = world.refused("api_sync_v2", newer);
    assert!(
        told.contains("too new") && told.contains("server: '2.3'"),
        "{told}"
    );
    assert_eq!(world.ok("get_version", json!({}))["mode"], "ASTF");
    let mut world = World::new(1);
    let astf = json!({"name": "ASTF", "major": 2, "minor": 3});
    let (_, told) = world.refused("api_sync_v2", astf);
    assert!(told.contains("server RPC configuration: 'STL'"), "{told}");
}

#[test]
fn the_commands_that_are_listed_are_those_of_the_mode() {
    let mut server = Owned::new(1);
    let list = server.ok("get_supported_cmds", json!({}));
    let names: Vec<&str> = list
        .as_array()
        .expect("names")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    for name in [
        "get_profile_list",
        "start",
        "acquire",
        "add_stream",
        "get_tg_names",
    ] {
        let times = names.iter().filter(|other| **other == name).count();
        assert_eq!(times, 1, "{name}");
    }
}

#[test]
fn stateless_streams_go_beside_stateful_traffic() {
    let mut server = Owned::new(1);
    server.load("_", &profile(&[]));
    server.start("_", json!({}));
    let handler = server.ports["0"].clone();
    let owned = |params: Value| {
        let mut params = params;
        params["port_id"] = json!(0);
        params["handler"] = handler.clone();
        params
    };
    server.ok(
        "add_stream",
        owned(json!({"stream_id": 1, "stream": stream()})),
    );
    server.ok("start_traffic", owned(start("raw", 1.0)));
    assert_eq!(server.world.started.len(), 1);
    let list = server.ok("get_profile_list", json!({"profiles_in_ports": true}));
    assert_eq!(list, json!(["_", {"0": ["_"], "1": ["_"]}]));
    server.ok("stop_traffic", owned(json!({})));
    let types: Vec<u64> = server.events().iter().map(|(kind, _)| *kind).collect();
    assert!(
        types.contains(&10) && types.contains(&11) && types.contains(&60),
        "{types:?}"
    );
}

#[test]
fn service_mode_is_that_of_all_ports() {
    let mut server = Owned::new(1);
    let status = |server: &mut Owned, port: u8| {
        let status = server.ok("get_port_status", json!({"port_id": port}));
        (
            status["service"] == true,
            status["service_filtered"] == true,
        )
    };
    server.ok("service", json!({"enabled": true, "filtered": false}));
    assert_eq!(
        (status(&mut server, 0), status(&mut server, 1)),
        ((true, false), (true, false))
    );
    server.ok(
        "service",
        json!({"enabled": false, "filtered": true, "mask": 5}),
    );
    assert_eq!(
        (status(&mut server, 0), status(&mut server, 1)),
        ((false, true), (false, true))
    );
    let (code, told) = server.refused(
        "service",
        json!({"enabled": false, "filtered": true, "mask": 4}),
    );
    assert_eq!((code, told.contains("'mask'")), (-32602, true), "{told}");
    server.ok("service", json!({"enabled": false}));
    assert_eq!(status(&mut server, 0), (false, false));
    assert_eq!(ServiceMode::default(), ServiceMode::Off);
}

#[test]
fn ports_say_that_they_are_busy_while_flows_are() {
    let mut server = Owned::new(1);
    let state = |server: &mut Owned| {
        let status = server.ok("get_port_status", json!({"port_id": 0, "profile_id": "*"}));
        (status["state"].clone(), status["state_profile"].clone())
    };
    let streams = json!({"_": "IDLE"});
    server.load("_", &profile(&[]));
    assert_eq!(state(&mut server), (json!("IDLE"), streams.clone()));
    server.start("_", json!({}));
    assert_eq!(state(&mut server), (json!("TX"), streams.clone()));
    let cpu = server.ok("get_utilization", json!({}))["cpu"].clone();
    assert_eq!(cpu[0]["ports"], json!([0, 1]));
    assert!(server.world.control.is_transmitting());
    let vlan = json!({"port_id": 0, "vlan": [7], "handler": server.ports["0"]});
    let (_, told) = server.refused("set_vlan", vlan);
    assert!(told.contains("while port 0 transmits"), "{told}");
    server.ok("stop", json!({}));
    assert_eq!(state(&mut server).0, "ASTF_CLEANUP");
    let run = server.runs()[0];
    server.end_all(run);
    assert_eq!(state(&mut server), (json!("IDLE"), streams));
}

#[test]
fn tunnels_are_not_there_and_that_is_said() {
    let mut server = Owned::new(1);
    let asked = server.ok("is_tunnel_supported", json!({"tunnel_type": 1}));
    assert_eq!(asked["is_tunnel_supported"], false);
    assert!(
        asked["error_msg"]
            .as_str()
            .is_some_and(|text| text.contains("no tunnels"))
    );
    let activate = json!({"tunnel_type": 1, "activate": true, "loopback": false});
    for (method, params) in [
        ("activate_tunnel_mode", activate),
        ("tunnel_topo_get", json!({})),
    ] {
        let (code, told) = server.refused(method, params);
        assert_eq!(
            (code, told.contains("no tunnels")),
            (-32000, true),
            "{told}"
        );
    }
}

#[test]
fn records_of_flows_are_kept_for_ten_seconds_and_numbered() {
    use allosaur_server::control::worker_command::FlowReport;
    let mut server = Owned::new(1);
    server.load("_", &profile(&[]));
    server.start("_", json!({"dump_interval": 0.5}));
    let run = server.runs()[0];
    let look = |server: &mut Owned, from: u64| {
        let records = server.ok("get_flow_info", json!({"index": from}));
        let records = records.as_array().expect("a list").iter();
        records
            .map(|record| record["index"].as_u64().expect("a number"))
            .collect::<Vec<_>>()
    };
    for second in 0..20 {
        let records = vec![super::records::record()];
        let at = second * SECOND;
        server.report(0, FlowReport::Samples { run, at, records });
    }
    let empty = Vec::new();
    server.report(
        0,
        FlowReport::Samples {
            run,
            at: 20 * SECOND,
            records: empty,
        },
    );
    assert_eq!(look(&mut server, 0), (9..20).collect::<Vec<_>>());
    assert_eq!(look(&mut server, 18), [18, 19]);
    let told = server.ok("get_flow_info", json!({"index": 19}));
    let flow = &told[0]["16.0.0.1:1024-48.0.0.1:80"];
    assert_eq!(
        (&flow["origin"], &flow["state"]),
        (&json!("client"), &json!(4))
    );
    assert_eq!(
        (&flow["duration"], &flow["rtt"]),
        (&json!(120), &json!(1.5))
    );
    assert_eq!(
        (&flow["options"], &flow["rcv_wscale"]),
        (&json!("/timestamps/wscale"), &json!(2))
    );
    // After the end they can be read still.
    server.end_all(run);
    server.world.now_ns += MILLISECOND;
    assert_eq!(look(&mut server, 19), [19]);
}
