//! Captures, receive queues, capture ports, service mode and ports as hosts, over the RPC.

use crate::common::{User, World};
use allosaur_engine::capture::Origin;
use allosaur_engine::time::SECOND;
use allosaur_server::control::StartAddresses;
use allosaur_server::rx_taps::RxTaps;
use serde_json::{Value, json};

/// UDP from 16.0.0.1 to 48.0.0.1 and `port`, with this last byte.
fn udp(port: u16, last: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.extend([0x45, 0, 0, 46, 0, 1, 0, 0, 64, 17, 0, 0]);
    frame.extend([16, 0, 0, 1, 48, 0, 0, 1, 4, 1]);
    frame.extend(port.to_be_bytes());
    frame.extend([0, 26, 0, 0]);
    frame.resize(59, b'x');
    frame.push(last);
    frame
}

fn observer(world: &World, act: impl FnOnce(&mut RxTaps)) {
    act(&mut world.watchers.0.borrow_mut());
}

fn capture(world: &mut World, user: &User, params: Value) -> Value {
    world.ok("capture", user.params(params))
}

fn refused(world: &mut World, user: &User, params: Value) -> (i64, String) {
    world.refused("capture", user.params(params))
}

/// Parameters that start a capture of what port 0 sends and port 1 receives.
fn start(more: Value) -> Value {
    let mut params =
        json!({"command": "start", "limit": 10, "mode": "fixed", "tx": [0], "rx": [1]});
    if let (Value::Object(params), Value::Object(more)) = (&mut params, more) {
        params.extend(more);
    }
    params
}

fn world() -> (World, User) {
    let mut world = World::new(1);
    let mut user = User::with_port(&mut world, "ann", 7);
    user.acquire(&mut world, 1, false)
        .expect("the port is free");
    (world, user)
}

#[test]
fn a_capture_is_started_read_stopped_and_removed() {
    let (mut world, user) = world();
    let reply = capture(
        &mut world,
        &user,
        start(json!({"filter": "udp and dst port 12"})),
    );
    assert_eq!(reply["capture_id"], 1);
    assert_eq!(reply["start_ts"], 5.0);
    observer(&world, |o| {
        assert_eq!(o.sending_ports(), 0b01);
        assert!(o.watches(1) && !o.watches(0));
        o.handle_sent(6_000_000_000, 0, &udp(12, 1));
        o.handle_received(6_500_000_000, 1, &udp(12, 2));
        o.handle_received(6_600_000_000, 1, &udp(13, 3));
        o.handle_received(6_700_000_000, 0, &udp(12, 4));
        o.note_lost(Origin::Transmitted, 3);
    });
    let status = capture(&mut world, &user, json!({"command": "status"}));
    let expected = json!([{
        "id": 1, "state": "ACTIVE", "matched": 2, "fetched": 0, "count": 2, "bytes": 120, "lost": 3,
        "limit": 10, "snaplen": 0, "mode": "fixed",
        "filter": {"tx": 1, "rx": 2, "bpf": "udp and dst port 12"},
    }]);
    assert_eq!(status, expected);
    let fetch = json!({"command": "fetch", "capture_id": 1, "pkt_limit": 1});
    let first = capture(&mut world, &user, fetch);
    assert_eq!(
        (&first["pending"], &first["start_ts"]),
        (&json!(1), &json!(5.0))
    );
    let packet = &first["pkts"][0];
    assert_eq!(
        (
            &packet["ts"],
            &packet["origin"],
            &packet["port"],
            &packet["index"],
            &packet["wirelen"]
        ),
        (&json!(6.0), &json!("TX"), &json!(0), &json!(1), &json!(60))
    );
    let stop = capture(
        &mut world,
        &user,
        json!({"command": "stop", "capture_id": 1}),
    );
    assert_eq!(stop, json!({"pkt_count": 1, "endpoint": ""}));
    observer(&world, |o| {
        assert_eq!(o.sending_ports(), 0);
        o.handle_received(7_000_000_000, 1, &udp(12, 5));
    });
    let fetch = json!({"command": "fetch", "capture_id": 1, "pkt_limit": 50, "snaplen": 20});
    let second = capture(&mut world, &user, fetch.clone());
    let packets = second["pkts"].as_array().expect("a list");
    assert_eq!(packets.len(), 1);
    assert_eq!(
        (&packets[0]["origin"], &packets[0]["wirelen"]),
        (&json!("RX"), &json!(60))
    );
    assert_eq!(packets[0]["binary"].as_str().map(str::len), Some(28));
    let remove = json!({"command": "remove", "capture_id": 1});
    assert_eq!(capture(&mut world, &user, remove.clone()), json!({}));
    for gone in [remove, fetch, json!({"command": "stop", "capture_id": 1})] {
        let (code, text) = refused(&mut world, &user, gone);
        assert_eq!(code, -32000);
        assert!(text.starts_with("capture ID 1 does not exist"), "{text}");
    }
}

#[test]
fn ten_captures_run_at_once_and_an_eleventh_is_refused() {
    let (mut world, user) = world();
    for id in 1..=10 {
        let reply = capture(
            &mut world,
            &user,
            start(json!({"mode": "cyclic", "limit": 2})),
        );
        assert_eq!(reply["capture_id"], id);
    }
    let (_, text) = refused(&mut world, &user, start(json!({})));
    assert_eq!(
        text,
        "there are 10 captures, which is the most: remove one first"
    );
    observer(&world, |o| {
        (1..=3).for_each(|n| o.handle_received(n, 1, &udp(12, n as u8)))
    });
    for id in 1..=10 {
        let fetch = json!({"command": "fetch", "capture_id": id, "pkt_limit": 50});
        let reply = capture(&mut world, &user, fetch);
        let packets = reply["pkts"].as_array().expect("a list");
        let indices: Vec<_> = packets
            .iter()
            .map(|packet| packet["index"].as_u64())
            .collect();
        assert_eq!(indices, [Some(2), Some(3)]);
    }
    capture(
        &mut world,
        &user,
        json!({"command": "remove", "capture_id": 5}),
    );
    assert_eq!(
        capture(&mut world, &user, start(json!({})))["capture_id"],
        11
    );
}

#[test]
fn what_cannot_be_captured_says_why() {
    let (mut world, user) = world();
    for (more, code, part) in [
        (
            json!({"filter": "udp and prot 12"}),
            -32602,
            "field 'filter': the filter 'udp and prot",
        ),
        (
            json!({"filter": "x".repeat(5000)}),
            -32602,
            "the filter has 5000 bytes; the most is",
        ),
        (
            json!({"tx": [2]}),
            -32000,
            "invalid port id 2 - should be: 0 to 1",
        ),
        (json!({"rx": [300]}), -32602, "'rx[0]'"),
        (
            json!({"tx": [], "rx": []}),
            -32000,
            "fields 'tx' and 'rx' name no port",
        ),
        (
            json!({"limit": 1_000_001}),
            -32602,
            "field 'limit' is 1000001; the most is 1000000",
        ),
        (json!({"limit": -1}), -32602, "'limit'"),
        (json!({"mode": "round"}), -32602, "'mode'"),
        (
            json!({"snaplen": 65536}),
            -32602,
            "field 'snaplen' is 65536; the most is 65535 bytes",
        ),
        (
            json!({"endpoint": "file:///bad"}),
            -32000,
            "endpoint: file:///bad cannot be opened",
        ),
        (json!({"command": "begin"}), -32602, "'command'"),
    ] {
        let (found, text) = refused(&mut world, &user, start(more));
        assert_eq!(found, code, "{text}");
        assert!(text.contains(part), "{text}");
    }
    assert_eq!(
        capture(&mut world, &user, json!({"command": "status"})),
        json!([])
    );
    observer(&world, |o| assert!(o.is_idle()));
}

#[test]
fn a_capture_with_an_endpoint_keeps_nothing_and_has_no_limit_of_zero() {
    let (mut world, user) = world();
    let endpoint = json!({"endpoint": "tcp://10.0.0.1:5001?pcap", "limit": 0, "snaplen": 50});
    capture(&mut world, &user, start(endpoint));
    observer(&world, |o| {
        (0..30).for_each(|n| o.handle_received(n, 1, &udp(12, 0)))
    });
    let status = capture(&mut world, &user, json!({"command": "status"}));
    let capture_of = &status[0];
    assert_eq!(
        (
            &capture_of["endpoint"],
            &capture_of["format"],
            &capture_of["snaplen"]
        ),
        (&json!("tcp://10.0.0.1:5001"), &json!("pcap"), &json!(50))
    );
    assert_eq!(
        (
            &capture_of["matched"],
            &capture_of["bytes"],
            &capture_of["count"]
        ),
        (&json!(30), &json!(1500), &json!(0))
    );
    let stop = capture(
        &mut world,
        &user,
        json!({"command": "stop", "capture_id": 1}),
    );
    assert_eq!(
        stop,
        json!({"pkt_count": 0, "endpoint": "tcp://10.0.0.1:5001"})
    );
}

fn service(user: &User, enabled: bool, filtered: bool, mask: u8) -> Value {
    user.params(json!({"enabled": enabled, "filtered": filtered, "mask": mask}))
}

fn queue(user: &User, size: u32) -> Value {
    let enabled = size > 0;
    user.params(json!({"type": "queue", "enabled": enabled, "size": size}))
}

fn status(world: &mut World, user: &User) -> Value {
    world.ok("get_port_status", user.params(json!({})))
}

#[test]
fn a_receive_queue_needs_service_mode_and_keeps_the_last_frames() {
    let (mut world, user) = world();
    let (_, text) = world.refused("set_rx_feature", queue(&user, 3));
    assert!(text.contains("needs service mode on port 0"), "{text}");
    let (_, text) = world.refused("get_rx_queue_pkts", user.params(json!({})));
    assert!(text.contains("port 0 is not in service mode"), "{text}");
    world.ok("service", service(&user, true, false, 0));
    let (_, text) = world.refused("get_rx_queue_pkts", user.params(json!({})));
    assert!(text.contains("port 0 has no receive queue"), "{text}");
    let size_0 = user.params(json!({"type": "queue", "enabled": true, "size": 0}));
    let (code, text) = world.refused("set_rx_feature", size_0);
    assert_eq!(
        (code, text.as_str()),
        (-32602, "field 'size' is 0; give 1 to 1000000 packets")
    );
    let proxy = user.params(json!({"type": "capwap_proxy", "enabled": true}));
    let (_, text) = world.refused("set_rx_feature", proxy);
    assert!(text.contains("'capwap_proxy' is not supported"), "{text}");
    world.ok("set_rx_feature", queue(&user, 3));
    observer(&world, |o| {
        (0..5).for_each(|n| o.handle_received(n, 0, &udp(12, n as u8)));
        o.handle_received(9, 1, &udp(12, 9));
    });
    let rx_info = status(&mut world, &user)["rx_info"].take();
    assert_eq!(
        rx_info["queue"],
        json!({"is_active": true, "size": 3, "count": 3})
    );
    let reply = world.ok("get_rx_queue_pkts", user.params(json!({})));
    let packets = reply["pkts"].as_array().expect("a list").iter();
    let seen: Vec<_> = packets
        .map(|p| (p["index"].as_u64(), p["origin"].as_str()))
        .collect();
    assert_eq!(seen, [3, 4, 5].map(|index| (Some(index), Some("RX"))));
    let again = world.ok("get_rx_queue_pkts", user.params(json!({})));
    assert_eq!(again, json!({"pkts": []}));
    world.ok("set_rx_feature", queue(&user, 0));
    let rx_info = status(&mut world, &user)["rx_info"].take();
    assert_eq!(rx_info["queue"], json!({"is_active": false}));
}

#[test]
fn a_filtered_port_shows_only_its_classes_of_frames() {
    let (mut world, user) = world();
    for (mask, expected) in [
        (1, vec![0]),
        (4, vec![67]),
        (8, vec![12, 67, 5353]),
        (16, vec![5353]),
        (20, vec![67, 5353]),
        (255, vec![0, 12, 67, 5353]),
    ] {
        world.ok("service", service(&user, true, true, mask));
        let state = status(&mut world, &user);
        assert_eq!(
            (&state["service"], &state["service_filtered"]),
            (&json!(false), &json!(true))
        );
        world.ok("set_rx_feature", queue(&user, 9));
        observer(&world, |o| {
            let arp = [&[2; 12][..], &[8, 6], &[0; 46]].concat();
            o.handle_received(0, 0, &arp);
            for port in [12, 67, 5353] {
                o.handle_received(u64::from(port) * 1_000_000_000, 0, &udp(port, 0));
            }
        });
        let reply = world.ok("get_rx_queue_pkts", user.params(json!({})));
        let packets = reply["pkts"].as_array().expect("a list").iter();
        let seen: Vec<_> = packets
            .map(|p| p["ts"].as_f64().map_or(9, |ts| ts as u64))
            .collect();
        assert_eq!(seen, expected, "mask {mask}");
    }
    world.ok("service", service(&user, false, false, 0));
    let state = status(&mut world, &user);
    assert_eq!(
        (&state["service"], &state["service_filtered"]),
        (&json!(false), &json!(false))
    );
}

#[test]
fn a_capture_port_is_joined_once_and_parted() {
    let (mut world, user) = world();
    let join = |endpoint: &str| user.params(json!({"endpoint": endpoint, "bpf_filter": "udp"}));
    let (_, text) = world.refused("set_capture_port_bpf", user.params(json!({})));
    assert!(text.contains("port 0 is joined to no socket"), "{text}");
    let (code, text) = world.refused("start_capture_port", join("ipc"));
    assert_eq!(code, -32602);
    assert!(text.starts_with("field 'endpoint' is too short"), "{text}");
    let (_, text) = world.refused("start_capture_port", join("ipc:///bad"));
    assert_eq!(text, "endpoint: ipc:///bad cannot be opened");
    world.ok("start_capture_port", join("ipc:///tmp/packets"));
    let (_, text) = world.refused("start_capture_port", join("ipc:///tmp/others"));
    assert!(
        text.contains("port 0 is joined to ipc:///tmp/packets already"),
        "{text}"
    );
    world.ok(
        "set_capture_port_bpf",
        user.params(json!({"bpf_filter": "tcp"})),
    );
    let (code, _) = world.refused(
        "set_capture_port_bpf",
        user.params(json!({"bpf_filter": "("})),
    );
    assert_eq!(code, -32602);
    let expected = json!({
        "is_active": true, "endpoint": "ipc:///tmp/packets", "bpf_filter": "tcp",
        "socket_open": true,
    });
    assert_eq!(
        status(&mut world, &user)["rx_info"]["capture_port"],
        expected
    );
    world.ok("stop_capture_port", user.params(json!({})));
    world.ok("stop_capture_port", user.params(json!({})));
    let expected = json!({"is_active": false});
    assert_eq!(
        status(&mut world, &user)["rx_info"]["capture_port"],
        expected
    );
}

/// An ARP request of 1.1.1.2 for 1.1.1.1.
fn arp_request() -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend([
        2, 0, 0, 0, 0, 2, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 2,
    ]);
    frame.extend([1, 1, 1, 2, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1]);
    frame
}

/// Echo request of 1.1.1.2 to 1.1.1.1.
fn echo_request() -> Vec<u8> {
    let mut frame = vec![2, 0xa1, 5, 0, 0, 0, 2, 0, 0, 0, 0, 2, 8, 0];
    frame.extend([
        0x45, 0, 0, 28, 0, 1, 0, 0, 64, 1, 0x76, 0xdc, 1, 1, 1, 2, 1, 1, 1, 1,
    ]);
    frame.extend([8, 0, 0xf7, 0xfd, 0, 1, 0, 1]);
    frame
}

/// What ports send because of a frame that port 0 received.
fn answers(world: &World, frame: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut sent = Vec::new();
    observer(world, |o| {
        o.handle_received(0, 0, frame);
        o.poll_transmit(0, |port, frame| {
            sent.push((port, frame.to_vec()));
            true
        });
    });
    sent
}

#[test]
fn a_port_with_an_address_answers_for_it() {
    let (mut world, user) = world();
    assert_eq!(answers(&world, &arp_request()), []);
    world.ok(
        "set_l3",
        user.params(json!({"src_addr": "1.1.1.1", "dst_addr": "1.1.1.2"})),
    );
    observer(&world, |o| {
        assert_eq!(o.poll_transmit(0, |_, _| true), 0, "before its time");
        assert_eq!(o.poll_transmit(6_000_000_000, |port, _| port == 0), 1);
        assert_eq!(o.poll_transmit(7_000_000_000, |_, _| true), 0, "twice");
    });
    let answer = answers(&world, &arp_request());
    assert_eq!(answer.len(), 1);
    let (port, reply) = &answer[0];
    assert_eq!(
        (*port, &reply[..6], &reply[20..22]),
        (0, &[2, 0, 0, 0, 0, 2][..], &[0, 2][..])
    );
    assert_eq!(answers(&world, &echo_request()), [], "without service mode");
    world.ok("service", service(&user, true, false, 0));
    let echo = answers(&world, &echo_request());
    assert_eq!((echo.len(), echo[0].1[34]), (1, 0));
    world.ok("set_vlan", user.params(json!({"vlan": [5]})));
    assert_eq!(answers(&world, &arp_request()), []);
    let rx_info = status(&mut world, &user)["rx_info"].take();
    assert_eq!(
        rx_info["grat_arp"],
        json!({"is_active": true, "interval_sec": 120})
    );
    world.ok(
        "set_l2",
        user.params(json!({"dst_mac": "02:00:00:00:00:02"})),
    );
    world.ok("set_vlan", user.params(json!({"vlan": []})));
    assert_eq!(answers(&world, &arp_request()), []);
    let rx_info = status(&mut world, &user)["rx_info"].take();
    assert_eq!(rx_info["grat_arp"], json!({"is_active": false}));
}

#[test]
fn what_a_port_answers_is_captured_as_sent() {
    let (mut world, user) = world();
    world.ok(
        "set_l3",
        user.params(json!({"src_addr": "1.1.1.1", "dst_addr": "1.1.1.2"})),
    );
    capture(&mut world, &user, start(json!({"rx": [0]})));
    answers(&world, &arp_request());
    let fetch = json!({"command": "fetch", "capture_id": 1, "pkt_limit": 50});
    let reply = capture(&mut world, &user, fetch);
    let packets = reply["pkts"].as_array().expect("a list").iter();
    let origins: Vec<_> = packets.map(|packet| packet["origin"].as_str()).collect();
    assert_eq!(origins, [Some("RX"), Some("TX")]);
}

#[test]
fn a_port_finds_the_gateway_of_its_configuration_by_itself() {
    let (mut world, user) = world();
    let addresses = StartAddresses {
        ipv4: Some(([1, 1, 1, 1].into(), [1, 1, 1, 2].into())),
        ..StartAddresses::default()
    };
    world.set_start_addresses(0, &addresses);
    let layers = |world: &mut World| status(world, &user)["attr"]["layer_cfg"].take();
    assert_eq!(layers(&mut world)["ipv4"]["state"], "unresolved");
    let mut asked = Vec::new();
    observer(&world, |o| {
        o.poll_transmit(6_000_000_000, |_, frame| {
            asked.push(frame[38..42].to_vec());
            true
        });
    });
    assert_eq!(
        asked,
        [[1, 1, 1, 1], [1, 1, 1, 2]],
        "an announcement, a request"
    );
    world.pass(SECOND);
    assert_eq!(layers(&mut world)["ipv4"]["state"], "unresolved");
    let mut answer = vec![
        2, 0xa1, 5, 0, 0, 0, 2, 0, 0, 0, 0, 9, 8, 6, 0, 1, 8, 0, 6, 4, 0, 2,
    ];
    answer.extend([
        2, 0, 0, 0, 0, 9, 1, 1, 1, 2, 2, 0xa1, 5, 0, 0, 0, 1, 1, 1, 1,
    ]);
    assert_eq!(answers(&world, &answer), []);
    user.events(&mut world);
    world.doorbells();
    world.pass(SECOND);
    // Who connected before hears of it, with the addresses.
    let events = user.events(&mut world);
    assert_eq!(events.len(), 1, "{events:?}");
    let (id, data, _) = &events[0];
    assert_eq!((*id, &data["port_id"]), (8, &json!(0)));
    assert_eq!(data["attr"], status(&mut world, &user)["attr"]);
    assert_eq!(data["attr"]["layer_cfg"]["ipv4"]["state"], "resolved");
    assert_eq!(world.doorbells(), 1);
    let found = layers(&mut world);
    assert_eq!(
        (&found["ipv4"]["state"], &found["ether"]["dst"]),
        (&json!("resolved"), &json!("02:00:00:00:00:09"))
    );
    // A client's gateway is the client's affair.
    let other = json!({"src_addr": "1.1.1.1", "dst_addr": "1.1.1.3"});
    world.ok("set_l3", user.params(other));
    observer(&world, |o| {
        assert_eq!(o.poll_transmit(20_000_000_000, |_, _| true), 0)
    });
}
