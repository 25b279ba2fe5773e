//! Limits, rates, ways out and devices under virtual time; and init JSON that is wrong.

use allosaur_engine::time::{MILLISECOND, Nanos, SECOND};
use allosaur_packet::MacAddress;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::Settings;
use crate::exports::{
    Destination, Export, ExportCounts, ExportReport, ExporterId, Folder, PostReport, Udp,
};
use crate::test_net::Net;

const MAC: MacAddress = MacAddress([0, 0, 0, 0x70, 1, 1]);
const SERVER: &str = "48.0.0.1:4739";
/// Where the payload of a datagram over IPv4 begins, and over IPv6.
const PAYLOAD: usize = 42;
const PAYLOAD_V6: usize = 62;

fn net() -> Net {
    Net::with(
        &[],
        Settings {
            exports: true,
            ..Settings::default()
        },
    )
}

fn generator(name: &str, template_id: u16, more: Value) -> Value {
    let mut generator = json!({
        "name": name, "template_id": template_id, "rate_pps": 1, "data_records_num": 2,
        "fields": [{"name": "protocolIdentifier", "type": 4, "length": 1, "data": [17]}],
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        generator[name] = value.clone();
    }
    generator
}

fn init(destination: &str, generators: &[Value]) -> Value {
    json!({"dst": destination, "domain_id": 7, "generators": generators})
}

/// Adds a client whose gateways are known.
fn add(net: &mut Net, init: Value) -> Result<(), String> {
    let gateway = [0, 0, 0, 0, 0, 9];
    let fields = json!({
        "ipv4": [16, 0, 0, 1], "ipv6": [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
        "ipv4_force_dg": true, "ipv4_force_mac": gateway,
        "ipv6_force_dg": true, "ipv6_force_mac": gateway,
    });
    net.add(MAC, fields, json!({ "ipfix": init }))
}

/// Times of packets and the numbers of their sets.
fn sets(net: &mut Net) -> Vec<(Nanos, u16)> {
    let sent = net.sent().into_iter();
    sent.map(|(at, frame)| {
        let set = PAYLOAD + 16;
        (at, u16::from_be_bytes([frame[set], frame[set + 1]]))
    })
    .collect()
}

fn exports(net: &mut Net) -> Vec<Export> {
    std::iter::from_fn(|| net.emulation.poll_export()).collect()
}

#[test]
fn a_client_waits_for_its_gateway_and_for_its_user() {
    let mut net = net();
    let fields = json!({"ipv4": [16, 0, 0, 1], "ipv4_dg": [16, 0, 0, 2]});
    let init_json = init(SERVER, &[generator("g", 260, json!({}))]);
    let plugins = json!({"arp": {}, "ipfix": init_json});
    net.add(MAC, fields, plugins).expect("it is right");
    net.wait(5 * SECOND);
    let sent = net.sent();
    assert!(sent.iter().all(|(_, frame)| frame[12..14] == [8, 6]));
    net.remove(MAC);

    let mut init_json = init(SERVER, &[generator("g", 260, json!({}))]);
    init_json["auto_start"] = json!(false);
    add(&mut net, init_json).expect("it is right");
    net.wait(2 * SECOND);
    assert_eq!(sets(&mut net), []);
    let params = json!({"mac": MAC.octets(), "enable": true});
    let begin = net.now;
    net.request("ipfix_c_set_state", params.clone())
        .expect("it can");
    // Twice changes nothing.
    net.request("ipfix_c_set_state", params).expect("it can");
    net.wait(SECOND);
    let both = |at| [(at, 2), (at, 260)];
    assert_eq!(sets(&mut net), [both(begin), both(begin + SECOND)].concat());
    let params = json!({"mac": MAC.octets(), "enable": false});
    net.request("ipfix_c_set_state", params).expect("it can");
    net.wait(10 * SECOND);
    assert_eq!(sets(&mut net), []);
}

#[test]
fn limits_end_one_kind_and_both_end_all() {
    let mut net = net();
    let mut init_json = init(SERVER, &[generator("g", 260, json!({"rate_pps": 2}))]);
    init_json["max_data_records"] = json!(5);
    add(&mut net, init_json.clone()).expect("it is right");
    net.wait(10 * SECOND);
    let data = sets(&mut net).into_iter().filter(|(_, set)| *set == 260);
    assert_eq!(data.count(), 3, "two records, two, and one");
    let counters = net.counters("ipfix_c_cnt", MAC);
    assert_eq!(counters["txDataRecords"], 5);
    net.remove(MAC);

    init_json["max_template_records"] = json!(4);
    add(&mut net, init_json.clone()).expect("it is right");
    net.wait(20 * SECOND);
    assert_eq!(sets(&mut net).len(), 7);
    let params = json!({"mac": MAC.octets()});
    let info = net
        .request("ipfix_c_get_exp_info", params)
        .expect("it is there");
    assert_eq!(info["enabled"], "false");
    net.remove(MAC);

    init_json["max_time"] = json!("1400ms");
    init_json["max_template_records"] = json!(0);
    init_json["max_data_records"] = json!(0);
    add(&mut net, init_json).expect("it is right");
    net.wait(20 * SECOND);
    assert_eq!(sets(&mut net).len(), 2 + 3);
}

#[test]
fn high_rates_are_kept() {
    let mut net = net();
    let fast = generator(
        "g",
        260,
        json!({"rate_pps": 12_345, "template_rate_pps": 0}),
    );
    add(&mut net, init(SERVER, &[fast])).expect("it is right");
    net.wait(SECOND - MILLISECOND);
    assert_eq!(sets(&mut net).len(), 12_345);
    let params = json!({"mac": MAC.octets(), "gen_name": "g", "rate": 50});
    net.request("ipfix_c_set_gen_state", params)
        .expect("it can");
    net.wait(SECOND);
    assert_eq!(sets(&mut net).len(), 50);
    let params = json!({"mac": MAC.octets(), "gen_name": "g", "rate": 1e9});
    let error = net
        .request("ipfix_c_set_gen_state", params)
        .expect_err("too many");
    assert!(error.starts_with("rate "), "{error}");
}

#[test]
fn packets_over_ipv6_are_filled_to_its_mtu() {
    let mut net = net();
    let full = generator("g", 260, json!({"data_records_num": 0}));
    let twice = generator("h", 261, json!({"data_records_num": 3000}));
    add(&mut net, init("[2001:db8::9]:4739", &[full, twice])).expect("it is right");
    let lengths: Vec<usize> = net.sent().iter().map(|(_, frame)| frame.len()).collect();
    let most = PAYLOAD_V6 + 1452;
    assert_eq!(lengths, [PAYLOAD_V6 + 28, most, PAYLOAD_V6 + 28, most]);
    let params = json!({"mac": MAC.octets(), "mask": ["ipfix"]});
    let counters = net.request("ipfix_c_cnt", params).expect("it is there");
    assert_eq!(counters["ipfix"]["recordsMtuMissErr"], 3000 - 1432);
}

#[test]
fn records_that_do_not_fit_are_counted_with_each_packet() {
    let missed = |net: &mut Net| {
        let params = json!({"mac": MAC.octets(), "mask": ["ipfix"]});
        let counters = net.request("ipfix_c_cnt", params).expect("it is there");
        let number = |name: &str| counters["ipfix"][name].as_u64().unwrap_or(0);
        (number("pktDataSent"), number("recordsMtuMissErr"))
    };
    // 1452 of a byte fit into a packet, or 145 of ten, one of them the length of the field.
    let fixed = generator("g", 260, json!({"data_records_num": 2000}));
    let variable = generator(
        "g",
        260,
        json!({"data_records_num": 200,
            "fields": [{"name": "applicationName", "type": 96, "length": 0xffff}],
            "engines": [{"engine_name": "applicationName", "engine_type": "string_list",
                "params": {"size": 9, "offset": 0, "op": "inc", "list": ["nine_char"]}}]}),
    );
    for (given, each) in [(fixed, 2000 - 1452), (variable, 200 - 145)] {
        let mut net = net();
        let mut init_json = init(SERVER, &[given]);
        add(&mut net, init_json.clone()).expect("it is right");
        assert_eq!(missed(&mut net), (1, each));
        net.wait(9 * SECOND);
        assert_eq!(missed(&mut net), (10, 10 * each));
        net.remove(MAC);
        // What is left of a limit is no record that does not fit.
        init_json["max_data_records"] = json!(3);
        add(&mut net, init_json).expect("it is right");
        net.wait(9 * SECOND);
        assert_eq!(missed(&mut net), (1, 0));
    }
}

#[test]
fn a_socket_of_the_server_is_given_packets_until_too_many_wait() {
    let mut net = net();
    let fast = generator("g", 260, json!({"rate_pps": 1000, "template_rate_pps": 0}));
    add(&mut net, init("udp://127.0.0.1:9", &[fast])).expect("it is right");
    net.wait(5 * SECOND);
    let done = exports(&mut net);
    let address = Destination::Udp(Udp {
        to: "127.0.0.1:9".to_owned(),
        from: None,
        interface: None,
    });
    assert_eq!(done[0], Export::Open(ExporterId(1), address));
    assert_eq!(done.len(), 1 + 1600);
    let params = json!({"mac": MAC.octets()});
    let counters = net
        .request("ipfix_c_cnt", params.clone())
        .expect("it is there");
    let (ipfix, udp) = (&counters["ipfix"], &counters["IPFIX udp exporter"]);
    assert!(ipfix["genPausedSkipWrite"].as_u64() > Some(3000), "{ipfix}");
    assert_eq!(
        (&udp["writeChanLen"], &udp["writeChanEvHighWatermark"]),
        (&json!(1600), &json!(1))
    );
    let counts = ExportCounts {
        handled: 1200,
        writes: 1100,
        writes_failed: 100,
        ..ExportCounts::default()
    };
    let report = |exporter, counts| ExportReport {
        exporter: ExporterId(exporter),
        counts,
        posts: Vec::new(),
    };
    net.emulation
        .handle_export_report(net.now, report(1, counts));
    net.emulation
        .handle_export_report(net.now, report(99, counts));
    net.wait(SECOND / 10);
    assert_eq!(exports(&mut net).len(), 100);
    let counters = net.request("ipfix_c_cnt", params).expect("it is there");
    let udp = &counters["IPFIX udp exporter"];
    assert_eq!(
        (&udp["writeChanLen"], &udp["writeChanPeakLen"]),
        (&json!(500), &json!(1600))
    );
    assert_eq!(
        (&udp["txWrites"], &udp["txPackets"]),
        (&json!(1200), &json!(1100))
    );
    net.remove(MAC);
    assert_eq!(exports(&mut net), [Export::Close(ExporterId(1))]);
}

#[test]
fn files_that_were_posted_are_told_of() {
    let mut net = net();
    let mut init_json = init(
        "http://localhost:80/%t/%Us/%u",
        &[generator("g", 260, json!({}))],
    );
    init_json["exporter_params"] = json!({
        "name": "http.ipfix", "max_interval": "1s", "max_posts": 3, "header_fields": {"a": "b"},
    });
    add(&mut net, init_json).expect("it is right");
    let Export::Open(exporter, Destination::Post(files, post)) = exports(&mut net).remove(0) else {
        panic!("files are posted");
    };
    assert_eq!(
        (files.prefix.as_str(), files.extension.as_str()),
        ("http", "ipfix")
    );
    assert_eq!(
        (files.interval_max_ns, files.compress, files.folder.as_str()),
        (SECOND, true, "")
    );
    assert_eq!(post.header_fields, [("a".to_owned(), "b".to_owned())]);
    let parts: Vec<&str> = post.url.split('/').collect();
    assert_eq!(
        (parts[2], parts[3], parts[4].len(), parts[5].len()),
        ("127.0.0.1:80", "", 36, 36)
    );
    let posted = |name: &str, reply| PostReport {
        name: name.to_owned(),
        time: "now".to_owned(),
        reply,
        message: "ok".to_owned(),
        bytes: 100,
        templates: 1,
        records: 2,
        will_retry: false,
    };
    let lost = posted("lost", Err("refused".to_owned()));
    let mut posts = vec![
        lost.clone(),
        posted("bad", Ok((404, "Not Found".to_owned()))),
    ];
    posts.extend((0..30).map(|_| posted("good", Ok((200, "OK".to_owned())))));
    let report = ExportReport {
        exporter,
        counts: ExportCounts::default(),
        posts,
    };
    net.emulation.handle_export_report(net.now, report);
    let params = json!({"mac": MAC.octets()});
    let info = net
        .request("ipfix_c_get_exp_info", params.clone())
        .expect("it is there");
    let files = info["files"].as_array().expect("files");
    assert_eq!(
        (files.len(), &files[0]["http_status_code"]),
        (30, &json!("200 OK"))
    );
    let counters = net.request("ipfix_c_cnt", params).expect("it is there");
    let http = &counters["IPFIX http exporter"];
    let values = [
        "filesExport",
        "filesExportFailed",
        "httpStatus4xx",
        "bytesUploaded",
    ];
    let values = values.map(|name| http[name].as_u64().unwrap_or(0));
    assert_eq!(values, [32, 2, 1, 3000]);
}

fn trigger(more: Value) -> Value {
    let fields =
        json!([{"name": "clientIPv4Address", "type": 8, "length": 4, "data": [0, 0, 0, 0]}]);
    let data = generator("g", 260, json!({"fields": fields, "rate_pps": 3}));
    let other = generator("h", 261, json!({"rate_pps": 1}));
    let options = json!({"rate_pps": 9, "is_options_template": true, "scope_count": 1});
    let mut trigger = json!({
        "device_mac": [0, 0, 0, 1, 0, 255], "device_ipv4": [10, 0, 0, 1], "device_domain_id": 50,
        "devices_num": 4, "rampup_time": "2s", "sites_per_tenant": 2, "devices_per_site": 1,
        "total_rate_pps": 16,
        "clients_generator": {
            "client_ipv4": [20, 0, 0, 1], "clients_per_device": 3, "data_records_per_client": 2,
        },
        "device_init": init("http://c/%t/%s/%d", &[data, other, generator("o", 262, options)]),
    });
    for (name, value) in more.as_object().into_iter().flatten() {
        trigger[name] = value.clone();
    }
    json!({ "devices_auto_trigger": trigger })
}

fn add_trigger(net: &mut Net, init: &Value) -> Result<Value, String> {
    net.request("ctx_remove", json!({"tunnels": [{"vport": 1}]}))
        .expect("it is empty");
    let tunnel = json!({"vport": 1, "plugs": {"ipfix": init}});
    net.request("ctx_add", json!({"tunnels": [tunnel]}))
}

fn macs(net: &mut Net) -> Vec<Value> {
    let params = json!({"reset": true, "count": 255});
    let page = net.request("ctx_client_iter", params).expect("a page");
    page["data"].as_array().cloned().unwrap_or_default()
}

#[test]
fn devices_come_one_after_the_other_with_numbers_of_their_own() {
    let mut net = net();
    add_trigger(&mut net, &trigger(json!({}))).expect("it is right");
    for devices in 0..=4 {
        assert_eq!(macs(&mut net).len(), devices);
        net.wait(SECOND / 2);
    }
    let last = MacAddress([0, 0, 0, 1, 1, 2]);
    assert_eq!(macs(&mut net)[3], json!(last.octets()));
    assert_eq!(net.info(last)["ipv4"], json!([10, 0, 0, 4]));
    let params = json!({"mac": last.octets()});
    let info = net
        .request("ipfix_c_get_gens_info", params)
        .expect("it is there");
    let rates = ["g", "h", "o"].map(|name| info["generators_info"][name]["data_rate_pps"].clone());
    assert_eq!(
        rates,
        [json!(3), json!(1), json!(9)],
        "of 16 a second each device has 4"
    );
    let exports = exports(&mut net).into_iter();
    let urls: Vec<String> = exports
        .clone()
        .filter_map(|export| match export {
            Export::Open(_, Destination::Post(_, post)) => Some(post.url),
            _ => None,
        })
        .collect();
    assert_eq!(
        urls,
        [
            "http://c/0/0/0",
            "http://c/0/1/0",
            "http://c/1/0/0",
            "http://c/1/1/0"
        ]
    );
    let mut messages = exports.filter_map(|export| match export {
        Export::Message {
            exporter, bytes, ..
        } => Some((exporter, bytes)),
        _ => None,
    });
    let first = messages.find(|(exporter, bytes)| {
        *exporter == ExporterId(2) && bytes[16..18] == 260_u16.to_be_bytes()
    });
    let (_, bytes) = first.expect("data of the second device");
    assert_eq!(bytes[12..16], 51_u32.to_be_bytes(), "the domain");
    assert_eq!(
        bytes[20..],
        [20, 0, 0, 4, 20, 0, 0, 4],
        "each client has two records"
    );
}

#[test]
fn no_more_devices_come_when_they_are_stopped_or_taken() {
    let mut net = net();
    add_trigger(&mut net, &trigger(json!({}))).expect("it is right");
    net.wait(SECOND);
    let stopped = net.request("ctx_stop_autotriggers", json!({}));
    assert_eq!(stopped, Ok(json!(true)));
    net.wait(5 * SECOND);
    let devices = macs(&mut net);
    assert_eq!(devices.len(), 2);
    let removed = net.request("ctx_client_remove", json!({"macs": devices}));
    assert_eq!(removed, Ok(json!(true)));

    add_trigger(&mut net, &trigger(json!({}))).expect("it is right");
    net.add(MAC, json!({"ipv4": [10, 0, 0, 2]}), json!({}))
        .expect("it is new");
    net.wait(5 * SECOND);
    let counters = net.request("ipfix_ns_cnt", json!({})).expect("it is there");
    assert_eq!(counters["Devices auto trigger"]["devicesTriggered"], 3);
    assert_eq!(macs(&mut net).len(), 4);
}

#[test]
fn files_that_are_there_need_no_generators() {
    let mut net = net();
    let params = json!({"dir": "/flows", "dir_scans_num": 2, "files_wait_time_speedup": 1.5});
    let mut given = json!({"dst": "udp://127.0.0.1:9/"});
    given["exporter_params"] = json!({
        "export_from_dir": true, "export_from_dir_params": params, "use_emu_client_ip_addr": true,
        "raw_socket_interface_name": "lo",
    });
    add(&mut net, given).expect("it is right");
    let folder = Folder {
        path: "/flows".to_owned(),
        scans: 2,
        file_wait_ns: None,
        speedup_percent: 150,
        packet_wait_ns: 0,
    };
    let udp = Udp {
        to: "127.0.0.1:9".to_owned(),
        from: Some(std::net::Ipv4Addr::new(16, 0, 0, 1)),
        interface: Some("lo".to_owned()),
    };
    let opened = Export::Open(ExporterId(1), Destination::FolderUdp(folder, udp));
    assert_eq!(net.emulation.poll_export(), Some(opened));
    net.wait(5 * SECOND);
    assert_eq!(net.emulation.poll_export(), None);
}

#[test]
fn an_address_of_its_own_needs_an_address() {
    let mut net = net();
    let mut given = init("udp://127.0.0.1:9", &[]);
    given["exporter_params"] = json!({"use_emu_client_ip_addr": true});
    let plugs = json!({"ipfix": given});
    let error = net.add(MAC, json!({}), plugs).expect_err("it has none");
    assert!(
        error.contains("needs a client with an IPv4 address"),
        "{error}"
    );
}

#[test]
fn errors_of_files_that_are_there_name_what_is_wrong() {
    let mut net = net();
    for (destination, params, words) in [
        (
            "udp://127.0.0.1:9",
            json!({}),
            "dir of export_from_dir_params is missing",
        ),
        ("udp://127.0.0.1:9", json!({"dir": 5}), "number"),
        (
            "udp://127.0.0.1:9",
            json!({"dir": "/x", "files_wait_time": "9"}),
            "missing unit in duration",
        ),
        (
            "udp://127.0.0.1:9",
            json!({"dir": "/x", "files_wait_time_speedup": 0}),
            "out of range",
        ),
        (
            "udp://127.0.0.1:9",
            json!({"dir": "/x", "scans": 1}),
            "unknown field \"scans\"",
        ),
        (
            "file:///tmp/x",
            json!({"dir": "/x"}),
            "needs a dst of udp or http",
        ),
        (SERVER, json!({"dir": "/x"}), "needs a dst of udp or http"),
    ] {
        let mut wrong = init(destination, &[]);
        wrong["exporter_params"] =
            json!({"export_from_dir": true, "export_from_dir_params": params});
        let error = add(&mut net, wrong).expect_err(words);
        assert!(error.contains(words), "{error}");
        net.remove(MAC);
    }
}

#[test]
fn errors_name_what_is_wrong() {
    let mut net = net();
    let refused = |net: &mut Net, init: Value, words: &str| {
        let error = add(net, init).expect_err(words);
        assert!(error.contains(words), "{error}");
        net.remove(MAC);
    };
    let good = generator("g", 260, json!({}));
    refused(
        &mut net,
        init("file://x.ipfix", &[]),
        "dir of exporter_params is missing",
    );
    refused(
        &mut net,
        init("udp://nowhere", &[]),
        "Invalid dst 'udp://nowhere'",
    );
    refused(&mut net, init("emu-udp://x:1", &[]), "Invalid dst 'x:1'");
    let fast = generator("g", 260, json!({"rate_pps": 1e7}));
    refused(&mut net, init(SERVER, &[fast]), "rate_pps");
    let scope = generator(
        "g",
        260,
        json!({"is_options_template": true, "scope_count": 2}),
    );
    refused(&mut net, init(SERVER, &[scope]), "invalid scope count 2");
    let mut with_address = init("udp://127.0.0.1:9", std::slice::from_ref(&good));
    with_address["exporter_params"] = json!({"use_emu_client_ip": true});
    refused(
        &mut net,
        with_address.clone(),
        "\"use_emu_client_ip\": is it \"use_emu_client_ip_addr\"?",
    );
    with_address["exporter_params"] = json!({"raw_socket_interface_name": "0123456789abcdef"});
    refused(&mut net, with_address, "raw_socket_interface_name");
    let mut with_folder = init("file:///tmp/x", &[good]);
    with_folder["exporter_params"] = json!({"name": "../../etc/x"});
    refused(&mut net, with_folder, "must be the name of a file");
    let wrong = trigger(json!({"device_init": {"dst": SERVER, "generators": [5]}}));
    let error = add_trigger(&mut net, &wrong).expect_err("a generator is an object");
    assert!(error.contains("IPFixGenParams"), "{error}");
}

/// Values that are wrong in many places, and right in some.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        Just(json!(true)),
        any::<u16>().prop_map(|number| json!(number)),
        any::<i64>().prop_map(|number| json!(number)),
        any::<f64>().prop_map(|number| json!(number)),
        "[a-z0-9:/%.\\[\\]U]{0,12}".prop_map(|text| json!(text)),
        prop::collection::vec(any::<u8>(), 0..6).prop_map(|bytes| json!(bytes)),
    ];
    leaf.boxed()
}

const PLACES: [&str; 22] = [
    "/dst",
    "/netflow_version",
    "/domain_id",
    "/max_time",
    "/max_data_records",
    "/generators",
    "/generators/0",
    "/generators/0/name",
    "/generators/0/rate_pps",
    "/generators/0/template_id",
    "/generators/0/template_rate_pps",
    "/generators/0/data_records_num",
    "/generators/0/scope_count",
    "/generators/0/is_options_template",
    "/generators/0/fields",
    "/generators/0/fields/0",
    "/generators/0/fields/0/length",
    "/generators/0/fields/0/data",
    "/generators/0/fields/0/type",
    "/generators/0/engines",
    "/exporter_params",
    "/exporter_params/name",
];

proptest! {
    #[test]
    fn no_init_panics(changes in prop::collection::vec((0..PLACES.len(), value()), 1..4)) {
        let engine = json!({"engine_name": "protocolIdentifier", "engine_type": "uint",
            "params": {"size": 1, "offset": 0, "op": "inc", "max": 9}});
        let one = generator("g", 260, json!({
            "engines": [engine], "template_rate_pps": 1, "scope_count": 1,
            "is_options_template": false,
        }));
        let mut init_json = init(SERVER, &[one]);
        for name in ["netflow_version", "max_time", "max_data_records"] {
            init_json[name] = json!(null);
        }
        init_json["exporter_params"] = json!({"name": "x.y", "dir": "/tmp"});
        for (place, value) in changes {
            if let Some(there) = init_json.pointer_mut(PLACES[place]) {
                *there = value;
            }
        }
        let mut net = net();
        if add(&mut net, init_json).is_ok() {
            net.wait(SECOND / 5);
        }
        net.remove(MAC);
    }

    #[test]
    fn no_trigger_panics(field in 0..10_usize, value in value()) {
        let fields = ["device_mac", "device_ipv4", "device_domain_id", "devices_num", "rampup_time",
            "sites_per_tenant", "devices_per_site", "total_rate_pps", "clients_generator", "device_init"];
        let mut net = net();
        let wrong = trigger(json!({fields[field]: value}));
        if add_trigger(&mut net, &wrong).is_ok() {
            net.wait(SECOND / 2);
        }
    }
}
