//! Clients, their addresses and their network: what is told to data threads, and what is refused.

use allosaur_engine::stateful::StatefulCommand;
use allosaur_packet::MacAddress;
use allosaur_server::control::worker_command::FlowCommand;
use serde_json::{Value, json};

use super::world::{Owned, profile};

const CLIENT: u32 = 0x1000_0001;

#[test]
fn clients_are_asked_about_and_let_rest() {
    let mut server = Owned::new(1);
    let ask = |server: &mut Owned, attr: Value, is_range: bool| {
        let params = json!({"attr": attr, "is_range": is_range});
        assert_eq!(server.ok("get_clients_info_start", params), Value::Null);
        server.ok("get_clients_info_pull", json!({}))
    };
    let (_, told) = server.refused("get_clients_info_pull", json!({}));
    assert!(
        told.starts_with("The clients info is not ready yet"),
        "{told}"
    );
    let one = json!([{"client_ip": CLIENT}]);
    let nobody = json!({CLIENT.to_string(): {"Found": 0}});
    assert_eq!(ask(&mut server, one.clone(), false), nobody);
    server.load("_", &profile(&[]));
    server.start("_", json!({}));
    server.words();
    let active = json!({"Found": 1, "state": "Active"});
    assert_eq!(
        ask(&mut server, one.clone(), false)[CLIENT.to_string()],
        active
    );
    let rest = json!({"attr": one, "is_enable": false, "is_range": false});
    assert_eq!(server.ok("enable_disable_client", rest), json!({}));
    assert_eq!(server.words(), ["0 clients false"]);
    let range = json!([{"client_start_ip": CLIENT, "client_end_ip": CLIENT + 1}]);
    let info = ask(&mut server, range.clone(), true);
    assert_eq!(info[CLIENT.to_string()]["state"], "Inactive");
    assert_eq!(info[(CLIENT + 1).to_string()]["state"], "Active");
    let wake = json!({"attr": range, "is_enable": true, "is_range": true});
    server.ok("enable_disable_client", wake);
    assert_eq!(ask(&mut server, one, false)[CLIENT.to_string()], active);
    // Those of the second pair of ports would be found, too; there is none.
    let beyond = json!([{"client_ip": 0x1100_0001}]);
    assert_eq!(ask(&mut server, beyond, false)["285212673"]["Found"], 0);
}

#[test]
fn wrong_addresses_are_named_with_their_place() {
    let mut server = Owned::new(1);
    let upside_down = json!([{"client_start_ip": 5, "client_end_ip": 4}]);
    for (method, params, named) in [
        (
            "get_clients_info_start",
            json!({"attr": [{"x": 1}], "is_range": false}),
            "attr[0].client_ip",
        ),
        (
            "get_clients_info_start",
            json!({"attr": upside_down, "is_range": true}),
            "attr[0].client_end_ip",
        ),
        (
            "set_ignored_macs",
            json!({"mac_list": [{"mac_addr": 1u64 << 48}]}),
            "mac_list[0].mac_addr",
        ),
        (
            "set_ignored_ips",
            json!({"ip_list": [{"ip": 1u64 << 32}]}),
            "ip_list[0].ip",
        ),
        (
            "set_ignored_ips",
            json!({"ip_list": vec![json!({"ip": 1}); 1001]}),
            "ip_list",
        ),
    ] {
        let (code, told) = server.refused(method, params);
        assert_eq!(code, -32602, "{told}");
        assert!(told.contains(&format!("'{named}'")), "{told}");
    }
    let all =
        json!({"attr": [{"client_start_ip": 0, "client_end_ip": u32::MAX}], "is_range": true});
    let (_, told) = server.refused("get_clients_info_start", all);
    assert!(told.contains("4294967296 clients are too many"), "{told}");
}

#[test]
fn whom_to_ignore_is_kept_and_told() {
    let mut server = Owned::new(2);
    let macs = json!([{"mac_addr": 0x0200_0000_0099_u64}]);
    let addresses = json!([{"ip": 0x1000_0009}]);
    server.ok("set_ignored_macs", json!({"mac_list": macs}));
    server.ok("set_ignored_ips", json!({"ip_list": addresses}));
    assert_eq!(server.ok("get_ignored_macs", json!({})), macs);
    assert_eq!(server.ok("get_ignored_ips", json!({})), addresses);
    let Some((1, FlowCommand::Command(StatefulCommand::SetIgnored(ignored)))) = server.told.pop()
    else {
        panic!("the data threads heard nothing");
    };
    assert!(ignored.has_mac(MacAddress([2, 0, 0, 0, 0, 0x99])));
    assert!(ignored.has_ipv4("16.0.0.9".parse().expect("an address")));
    server.words();
    server.ok("set_ignored_macs", json!({"mac_list": []}));
    assert_eq!(server.ok("get_ignored_macs", json!({})), json!([]));
    assert_eq!(server.words(), ["0 ignored", "1 ignored"]);
}

#[test]
fn pools_are_shared_out_over_data_threads() {
    let pool = |first: &str, last: &str| json!({"start_ip": first, "end_ip": last, "dual_ip": "1.0.0.0", "seq_split": false});
    let mut server = Owned::new(2);
    let shares = server.ok("get_traffic_dist", pool("16.0.0.0", "16.0.0.255"));
    let expected = json!({"0": {
        "0": {"start": "16.0.0.0", "end": "16.0.0.127"},
        "1": {"start": "16.0.0.128", "end": "16.0.0.255"},
    }});
    assert_eq!(shares, expected);
    let (_, told) = server.refused("get_traffic_dist", pool("16.0.0.1", "16.0.0.1"));
    assert!(
        told.contains("1 addresses are too few for 2 data threads"),
        "{told}"
    );
    let (_, told) = server.refused("get_traffic_dist", pool("16.0.0.9", "16.0.0.1"));
    assert!(told.contains("end_ip") && told.contains("swap"), "{told}");
    let (_, told) = server.refused("get_traffic_dist", pool("host", "16.0.0.1"));
    assert!(told.contains("'start_ip' is 'host'"), "{told}");
}

/// A topology of an interface with two gateways' clients.
fn topology() -> Value {
    json!({
        "vifs": [{"trex_port": 0, "sub_if": 1, "src_mac": "02:00:00:00:01:01", "src_ipv4": "",
            "src_ipv6": "", "vlan": 7}],
        "gws": [
            {"trex_port": 0, "sub_if": 1, "src_start": "16.0.0.1", "src_end": "16.0.0.9",
                "dst": "192.0.2.1", "dst_mac": "02:00:00:00:00:11"},
            {"trex_port": 0, "sub_if": 0, "src_start": "16.0.0.10", "src_end": "16.0.0.20",
                "dst": "192.0.2.2", "dst_mac": "02:00:00:00:00:22"},
        ],
    })
}

fn whole(value: &Value) -> Value {
    json!({"profile_id": "_", "fragment": value.to_string(), "frag_first": true, "frag_last": true})
}

#[test]
fn a_topology_is_checked_told_shown_and_forgotten() {
    use allosaur_engine::encapsulation::Encapsulation;
    use allosaur_engine::session::LinkAddresses;
    let mut server = Owned::new(1);
    server.ok("topo_fragment", whole(&topology()));
    let Some((0, FlowCommand::Command(StatefulCommand::SetTopology(routes)))) = server.told.pop()
    else {
        panic!("the data thread heard nothing");
    };
    let own = LinkAddresses {
        own: MacAddress([2, 0, 0, 0, 0, 1]),
        peer: MacAddress([2, 0, 0, 0, 0, 2]),
        encapsulation: Encapsulation::Ethernet,
    };
    let by_interface = routes.link(0, 0x1000_0005, own);
    assert_eq!(by_interface.own, MacAddress([2, 0, 0, 0, 1, 1]));
    assert_eq!(by_interface.peer, MacAddress([2, 0, 0, 0, 0, 0x11]));
    assert_eq!(by_interface.encapsulation, Encapsulation::Vlan(7));
    let by_port = routes.link(0, 0x1000_000a, own);
    assert_eq!(
        (by_port.own, by_port.encapsulation),
        (own.own, Encapsulation::Ethernet)
    );
    assert_eq!(by_port.peer, MacAddress([2, 0, 0, 0, 0, 0x22]));
    assert_eq!(routes.link(0, 0x1000_0015, own).peer, own.peer);
    let shown = server.ok("topo_get", json!({}));
    assert_eq!(shown, json!({"topo_data": topology()}));
    server.load("_", &profile(&[]));
    server.start("_", json!({}));
    for method in ["topo_clear", "topo_fragment"] {
        let (_, told) = server.refused(method, whole(&topology()));
        assert!(told.contains("while profile_id _ runs"), "{told}");
    }
    let run = server.runs()[0];
    server.end_all(run);
    assert_eq!(server.ok("topo_clear", json!({})), Value::Null);
    let shown = server.ok("topo_get", json!({}));
    assert_eq!(shown, json!({"topo_data": {"vifs": null, "gws": null}}));
}

#[test]
fn a_topology_that_does_not_fit_is_refused_and_the_old_one_stays() {
    let mut server = Owned::new(1);
    server.ok("topo_fragment", whole(&topology()));
    let cases = [
        (
            "/vifs/0/trex_port",
            json!(1),
            "vifs[0].trex_port is 1, which has no clients",
        ),
        ("/gws/1/trex_port", json!(9), "gws[1].trex_port is 9"),
        ("/gws/0/sub_if", json!(5), "no interface 0.5"),
        ("/gws/1/src_start", json!("16.0.0.9"), "overlap"),
        ("/gws/0/dst_mac", json!(null), "gws[0].dst_mac"),
        ("/vifs/0/vlan", json!(4095), "vifs[0].vlan"),
        ("/vifs", json!({}), "vifs"),
    ];
    for (place, value, named) in cases {
        let mut wrong = topology();
        *wrong.pointer_mut(place).expect("the place is there") = value;
        let (_, told) = server.refused("topo_fragment", whole(&wrong));
        assert!(told.contains(named), "{place}: {told}");
    }
    let (_, told) = server.refused(
        "topo_fragment",
        json!({"fragment": "{", "frag_first": true,
        "frag_last": true}),
    );
    assert!(told.contains("not JSON"), "{told}");
    assert_eq!(
        server.ok("topo_get", json!({})),
        json!({"topo_data": topology()})
    );
}
