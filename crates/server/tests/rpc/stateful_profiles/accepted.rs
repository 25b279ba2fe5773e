//! What is taken, and what it becomes.

use allosaur_engine::app::{Addon, BufferIndex, Transport};
use allosaur_engine::template::{Layout, PoolShare, Server, Side, TemplateIndex};
use allosaur_server::control::stateful::read_profile::{compile, read};
use allosaur_testkit::data;

use super::small;

/// Facts of some profiles: templates, programs, connections per second, bytes of the first flow.
const FACTS: [(&str, usize, usize, f64, u64); 8] = [
    ("http_simple_limit", 1, 2, 1.0, 32_343),
    ("http_eflow4", 1, 2, 1.0, 1_391),
    ("res", 255, 2, 32_640.0, 383),
    ("udp_sip", 1, 2, 1.0, 2_373),
    ("shared_port", 6, 9, 6.0, 377),
    ("template_groups", 2, 2, 3.0, 377),
    ("http_manual_commands_pipeline2", 1, 2, 1.0, 1_890),
    ("udp_latency", 1, 2, 1.0, 377),
];

#[test]
fn all_profiles_of_the_data_are_taken() {
    let mut count = 0;
    for path in data::files("profiles-stateful", ".json") {
        let text = data::text(&path);
        let compiled = compile(&text, Layout::SMALLEST);
        let compiled = compiled.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(compiled.rate_cps() > 0.0 && compiled.rate_bps() > 0.0);
        for template in compiled.templates() {
            let server = compiled.servers();
            let addresses = compiled.addresses(template.client.server_pool, PoolShare::ONLY);
            let found = server.find(template.transport, template.client.port, addresses.first);
            assert!(found.is_some(), "{}: nobody answers", path.display());
        }
        count += 1;
    }
    assert_eq!(count, 33);
}

#[test]
fn profiles_of_the_data_become_what_they_say() {
    let folder = data::folder("profiles-stateful");
    for (name, templates, programs, rate, bytes) in FACTS {
        let text = data::text(&folder.join(name).with_extension("json"));
        let spec = read(&text).expect("the profile is right").spec;
        assert_eq!(spec.programs.len(), programs, "{name}");
        let compiled = compile(&text, Layout::SMALLEST).expect("the profile is right");
        assert_eq!(compiled.templates().len(), templates, "{name}");
        assert!((compiled.rate_cps() - rate).abs() < 1e-9, "{name}");
        let first = compiled.template(TemplateIndex(0));
        assert_eq!(first.bytes, bytes, "{name}");
    }
}

#[test]
fn the_add_on_of_the_data_is_known() {
    let folder = data::folder("profiles-stateful");
    let text = data::text(&folder.join("udp_latency.json"));
    let compiled = compile(&text, Layout::SMALLEST).expect("the profile is right");
    let template = compiled.template(TemplateIndex(0));
    let program = compiled.program(template.client.program);
    assert_eq!(program.addon(), Some(Addon::Latency));
}

#[test]
fn each_field_finds_its_place() {
    let compiled = compile(&small::profile().to_string(), Layout::SMALLEST);
    let compiled = compiled.expect("the small profile is right");
    let web = compiled.template(TemplateIndex(0));
    assert_eq!((web.transport, web.client.port), (Transport::Stream, 80));
    assert_eq!((web.client.limit, web.client.continuous), (Some(7), true));
    assert_eq!((web.client.rate_cps, web.group), (1.5, 1));
    assert_eq!(web.client.tunables.tcp.mss_bytes, 500);
    assert!(web.client.tunables.ipv6);
    let prefix = [32, 1, 13, 184, 0, 0, 0, 0, 0, 0, 0, 1];
    assert_eq!(web.client.tunables.prefixes.client, prefix);
    assert_eq!(compiled.rampup_s(), Some(5));
    assert_eq!(compiled.groups(), ["web"]);
    let server = &compiled.tunables(Side::Server).tcp;
    assert_eq!(server.keepalive_idle_ms, 10_000);
    assert!(server.no_delay && server.always_push);
    let dns = compiled.template(TemplateIndex(1));
    assert_eq!(
        (dns.server.tunables.tos, dns.server.tunables.ttl),
        (9, Some(64))
    );
    let mut end = [0; 3];
    compiled.buffers().copy_to(BufferIndex(1), 997, &mut end);
    assert_eq!(
        (compiled.buffers().len(BufferIndex(1)), &end),
        (1000, b"xxx")
    );
    let found = compiled.servers().find(Transport::Stream, 80, 0x3000_0001);
    assert_eq!(found, Some(Server::Payload(TemplateIndex(0))));
    let servers = compiled.servers();
    let by_bytes = servers.by_payload(Transport::Stream, 80, 0x3000_0001, b"GE and more");
    assert_eq!(by_bytes, Some(TemplateIndex(0)));
    let by_bytes = servers.by_payload(Transport::Datagram, 53, 1, b"get");
    assert_eq!(by_bytes, Some(TemplateIndex(1)));
}

#[test]
fn connections_draw_what_the_profile_lists() {
    let mut profile = small::profile();
    profile["draw_lists"] = serde_json::json!([
        {"distribution": "seq", "values": ["QUI=", "Q0Q="]},
        {"distribution": "rand", "values": ["eA==", "eQ==", "eg=="]},
    ]);
    let draw = serde_json::json!([{"offset": 0, "list": 0}, {"offset": 3, "list": 1}]);
    profile["program_list"][0]["commands"][2]["draw"] = draw;
    profile["templates"][0]["server_template"]["assoc"][0]["l7_map"] = serde_json::Value::Null;
    let compiled = compile(&profile.to_string(), Layout::SMALLEST).expect("it is right");
    let template = compiled.template(TemplateIndex(0));
    let program = compiled.program(template.client.program);
    let first = program.first_sent().expect("it sends first");
    let sent = |variant: u32| {
        let mut bytes = [0; 5];
        let buffer = BufferIndex(first.0 + variant);
        compiled.buffers().copy_to(buffer, 0, &mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let all: Vec<String> = (0..6).map(sent).collect();
    assert_eq!(all, ["ABTx/", "CDTx/", "ABTy/", "CDTy/", "ABTz/", "CDTz/"]);
}

#[test]
fn thirty_megabytes_are_taken() {
    let mut profile = small::profile();
    let long = "QUJD".repeat(30 << 18);
    profile["buf_list"][0] = long.into();
    let text = profile.to_string();
    assert!(text.len() > 30 << 20);
    let compiled = compile(&text, Layout::SMALLEST).expect("it is below the limit");
    assert_eq!(
        compiled.buffers().len(BufferIndex(0)) as usize,
        3 * (30 << 18)
    );
}

#[test]
fn many_small_commands_are_taken() {
    let command = |_| serde_json::json!({"name": "rx", "min_bytes": 1});
    let commands: Vec<_> = (0..60_000).map(command).collect();
    let mut profile = small::profile();
    for _ in 0..4 {
        let list = profile["program_list"].as_array_mut().expect("a list");
        list.push(serde_json::json!({"commands": commands}));
    }
    compile(&profile.to_string(), Layout::SMALLEST).expect("it is right");
}
