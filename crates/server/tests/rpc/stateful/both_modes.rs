//! One server with both modes: a port is in the mode of who acquired it, and who wants it in the
//! other is told who has it and how.

use allosaur_engine::stateful::StatefulCommand;
use allosaur_engine::template::PoolShare;
use allosaur_server::control::worker_command::{FlowCommand, PortMode};
use serde_json::{Value, json};

use super::world::{profile, start_params, sync};
use crate::common::{User, World, start, stream};

const STATEFUL: PortMode = PortMode::Stateful;

/// A user with flows.
struct FlowUser {
    api_h: String,
    handler: String,
    /// The ports that it got.
    ports: Vec<String>,
}

impl FlowUser {
    fn connect(world: &mut World) -> FlowUser {
        FlowUser {
            api_h: sync(world),
            handler: String::new(),
            ports: Vec::new(),
        }
    }

    /// Takes ports, or tells why not.
    fn acquire(&mut self, world: &mut World, force: bool, ports: Option<&[u8]>) -> Option<String> {
        let mut params =
            json!({"api_h": self.api_h, "user": "flo", "session_id": 8, "force": force});
        if let Some(ports) = ports {
            params["ports"] = json!(ports);
        }
        let reply = world.call("acquire", params);
        if let Some(error) = reply.get("error") {
            return Some(error["specific_err"].to_string());
        }
        let result = &reply["result"];
        self.handler = result["handler"].as_str().expect("a string").to_owned();
        let ports = result["ports"].as_object().expect("an object");
        self.ports = ports.keys().cloned().collect();
        None
    }

    fn params(&self, mut params: Value) -> Value {
        params["api_h"] = json!(self.api_h);
        params["handler"] = json!(self.handler);
        params
    }

    fn start(&self, world: &mut World) {
        let fragment = json!({"profile_id": "_", "fragment": profile(&[]), "frag_first": true,
            "frag_last": true});
        world.ok("profile_fragment", self.params(fragment));
        world.ok("start", self.params(start_params("_", json!({}))));
    }
}

/// The modes of all ports, as anybody can ask.
fn modes(world: &mut World) -> String {
    let api_h = world.sync();
    let status = world.ok("get_status", json!({"api_h": api_h}));
    let ports = status["ports"].as_array().expect("a list").iter();
    let modes: Vec<&str> = ports.filter_map(|port| port["mode"].as_str()).collect();
    modes.join(" ")
}

fn state(world: &mut World, port: u8) -> String {
    let api_h = world.sync();
    let status = world.ok("get_port_status", json!({"api_h": api_h, "port_id": port}));
    status["state"].as_str().expect("a string").to_owned()
}

#[test]
fn the_handshake_says_which_commands_are_meant() {
    let mut world = World::both();
    let (stl, astf) = (world.sync(), sync(&mut world));
    assert_ne!(stl, astf);
    let version = |world: &mut World, params: Value| world.ok("get_version", params);
    assert_eq!(version(&mut world, json!({}))["mode"], "STL");
    assert_eq!(version(&mut world, json!({"api_h": stl}))["mode"], "STL");
    let of_flows = version(&mut world, json!({"api_h": astf}));
    assert_eq!(of_flows["mode"], "ASTF");
    assert_eq!(of_flows["modes"], json!(["STL", "ASTF"]));
    let reply = world.call("get_counter_desc", json!({"api_h": stl}));
    assert_eq!(reply["error"]["code"], -32601, "{reply}");
    world.ok("get_counter_desc", json!({"api_h": astf}));
    // Who was here before the server started anew learns that, whatever is asked.
    for method in ["get_counter_desc", "get_active_pgids"] {
        let (_, told) = world.refused(method, json!({"api_h": "old"}));
        assert!(told.contains("api_sync_v2"), "{method}: {told}");
    }
}

#[test]
fn streams_and_flows_have_a_pair_each_and_then_the_other() {
    let mut world = World::both();
    let mut sam = User::with_port(&mut world, "sam", 7);
    sam.acquire(&mut world, 1, false).expect("the port is free");
    let mut flo = FlowUser::connect(&mut world);
    assert_eq!(flo.acquire(&mut world, false, None), None);
    assert_eq!(flo.ports, ["2", "3"], "what nobody has");
    assert_eq!(modes(&mut world), "STL STL ASTF ASTF");
    assert_eq!(world.port_modes, [(2, STATEFUL), (3, STATEFUL)]);
    let shares: Vec<(usize, u8, PoolShare)> = world.orders.iter().filter_map(share).collect();
    let alone = PoolShare {
        rank: 0,
        cores: 1,
        pair: 0,
        pairs: 1,
    };
    assert_eq!(shares, [(1, 2, alone), (1, 3, alone)], "as if it were all");
    world.orders.clear();
    flo.start(&mut world);
    let added = sam.params(json!({"stream_id": 1, "stream": stream()}));
    world.ok("add_stream", added);
    world.ok("start_traffic", sam.params(start("raw", 1.0)));
    let starts: Vec<(usize, u32)> = world.orders.iter().filter_map(clients).collect();
    assert_eq!(starts, [(1, 0b100)], "only the threads of its ports");
    assert_eq!(
        (state(&mut world, 0), state(&mut world, 2)),
        ("TX".to_owned(), "TX".to_owned())
    );
    assert_eq!(state(&mut world, 1), "IDLE", "whose streams do not send");
    // Now each takes what the other has.
    world.port_modes.clear();
    assert_eq!(flo.acquire(&mut world, true, Some(&[0, 1])), None);
    assert_eq!(flo.ports, ["0", "1"]);
    assert_eq!(modes(&mut world), "ASTF ASTF STL STL");
    let told = sam.events(&mut world);
    let lost = told
        .iter()
        .filter(|(kind, data, _)| *kind == 5 && data["force"] == true);
    let lost: Vec<&Value> = lost.map(|(_, data, _)| &data["port_id"]).collect();
    assert_eq!(lost, [0, 1], "{told:?}");
    assert_eq!(world.stopped.len(), 1, "its streams were stopped");
    assert!(world.orders.iter().any(is_abort), "and the flows there");
    let (_, refused) = world.refused("start_traffic", sam.params(start("raw", 1.0)));
    assert!(
        refused.contains("stateful mode") && refused.contains("'flo'"),
        "{refused}"
    );
    let acquire = json!({"api_h": sam.api_h, "port_id": 2, "user": "sam", "session_id": 7,
        "force": false});
    world.ok("acquire", acquire);
}

#[test]
fn who_wants_a_port_in_the_other_mode_is_told_who_has_it() {
    let mut world = World::both();
    let mut sam = User::with_port(&mut world, "sam", 7);
    let mut flo = FlowUser::connect(&mut world);
    let refused = [
        (
            Some([0, 1].as_slice()),
            "port 0 is already taken by 'sam' in stateless mode",
        ),
        (Some(&[2]), "'ports' has 2 and not 3"),
        (Some(&[4, 5]), "invalid port id 4"),
    ];
    for (ports, words) in refused {
        let told = flo.acquire(&mut world, false, ports).unwrap_or_default();
        assert!(told.contains(words), "{ports:?}: {told}");
    }
    let none = json!({"api_h": flo.api_h, "user": "flo", "session_id": 8, "force": true,
        "ports": []});
    let (code, _) = world.refused("acquire", none);
    assert_eq!(code, -32602);
    assert_eq!(modes(&mut world), "STL STL STL STL", "nothing has changed");
    assert_eq!(flo.acquire(&mut world, false, Some(&[2, 3])), None);
    let told = sam.acquire(&mut world, 3, false).expect_err("it is taken");
    assert!(
        told.contains("port 3 is already taken by 'flo' in stateful mode"),
        "{told}"
    );
    // Nobody has it now, and flows run.
    flo.start(&mut world);
    world.ok("release", flo.params(json!({})));
    let told = sam.acquire(&mut world, 3, false).expect_err("it has flows");
    assert!(told.contains("has flows of profile '_'"), "{told}");
    sam.handlers = Default::default();
    let forced = json!({"api_h": sam.api_h, "port_id": 3, "user": "sam", "session_id": 7,
        "force": true});
    world.ok("acquire", forced);
    assert!(world.orders.iter().any(is_abort), "its flows were ended");
    assert_eq!(modes(&mut world), "STL STL ASTF STL");
}

#[test]
fn a_whole_server_is_taken_by_force_as_trex_does_it() {
    let mut world = World::both();
    let sam = User::with_port(&mut world, "sam", 7);
    let mut flo = FlowUser::connect(&mut world);
    assert_eq!(flo.acquire(&mut world, true, None), None);
    assert_eq!(flo.ports, ["0", "1", "2", "3"]);
    assert_eq!(modes(&mut world), "ASTF ASTF ASTF ASTF");
    let (_, told) = world.refused("set_vlan", sam.params(json!({"vlan": [1, 2]})));
    assert!(told.contains("stateful mode carries one"), "{told}");
    world.ok("release", flo.params(json!({})));
    let mut sam = sam;
    for port in 0..2 {
        sam.acquire(&mut world, port, false).expect("nobody has it");
    }
    assert_eq!(modes(&mut world), "STL STL ASTF ASTF");
    world.ok("set_vlan", sam.params(json!({"vlan": [1, 2]})));
    world.ok("release", sam.params(json!({})));
    let told = flo.acquire(&mut world, true, None).unwrap_or_default();
    assert!(told.contains("port 0 has 2 VLAN tags"), "{told}");
    assert_eq!(flo.acquire(&mut world, true, Some(&[2, 3])), None);
}

#[test]
fn a_server_of_one_mode_lends_all_its_ports() {
    let mut world = World::stateful(1);
    let mut flo = FlowUser::connect(&mut world);
    assert_eq!(flo.acquire(&mut world, false, Some(&[0, 1])), None);
    let told = flo
        .acquire(&mut world, true, Some(&[0]))
        .unwrap_or_default();
    assert!(told.contains("stateful mode with all its ports"), "{told}");
    assert_eq!(world.port_modes, [], "it was always theirs");
}

fn share((core, order): &(usize, FlowCommand)) -> Option<(usize, u8, PoolShare)> {
    match order {
        FlowCommand::Command(StatefulCommand::SetShare { port, share }) => {
            Some((*core, *port, *share))
        }
        _ => None,
    }
}

fn clients((core, order): &(usize, FlowCommand)) -> Option<(usize, u32)> {
    match order {
        FlowCommand::Command(StatefulCommand::Start { clients, .. }) => Some((*core, *clients)),
        _ => None,
    }
}

fn is_abort((_, order): &(usize, FlowCommand)) -> bool {
    matches!(
        order,
        FlowCommand::Command(StatefulCommand::Stop { abort: true, .. })
    )
}
