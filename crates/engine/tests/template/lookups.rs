//! What a compiled profile answers.

use allosaur_engine::app::{Addon, ProgramCommand, Transport};
use allosaur_engine::template::{L7Map, PoolShare, Server, TemplateIndex, Tunable};

use crate::profile::{compile, profile, right, template};

const TCP: Transport = Transport::Stream;
const UDP: Transport = Transport::Datagram;

fn only(template: u16) -> Option<Server> {
    Some(Server::Template(TemplateIndex(template)))
}

#[test]
fn a_template_is_resolved() {
    let profile = right(|p| {
        p.client.set(Tunable::Mss, 1000);
        p.client.set(Tunable::RampupSec, 5);
        p.server.set(Tunable::Mss, 900);
        p.templates[0].server.tunables.set(Tunable::Mss, 800);
        p.templates[0].group = 1;
    });
    let template = profile.template(TemplateIndex(0));
    assert_eq!(template.client.tunables.tcp.mss_bytes, 1000);
    assert_eq!(template.server.tunables.tcp.mss_bytes, 800);
    assert_eq!((template.transport, template.bytes), (TCP, 8));
    assert_eq!(profile.rampup_s(), Some(5));
    assert_eq!(profile.rate_cps(), 2.5);
    assert_eq!(profile.rate_bps(), 2.5 * 64.0);
    assert_eq!(profile.templates_of(1), [TemplateIndex(0)]);
    assert!(profile.templates_of(0).is_empty() && profile.templates_of(2).is_empty());
    let addresses = profile.addresses(template.client.client_pool, PoolShare::ONLY);
    assert_eq!((addresses.first, addresses.count()), (0x1000_0001, 254));
    assert_eq!(profile.program(template.client.program).len(), 2);
}

#[test]
fn servers_are_found_by_port_and_protocol() {
    let profile = right(|p| p.templates.push(template(2, 3, 80)));
    let find = |transport, port| profile.servers().find(transport, port, 1);
    assert_eq!((find(TCP, 80), find(UDP, 80)), (only(0), only(1)));
    assert_eq!((find(TCP, 81), find(UDP, 79)), (None, None));
}

#[test]
fn servers_are_found_by_address() {
    let profile = right(|p| {
        for (i, first) in [50, 10, 30].into_iter().enumerate() {
            if i > 0 {
                p.templates.push(template(0, 1, 80));
            }
            p.templates[i].server.associations[0].first = first;
            p.templates[i].server.associations[0].last = first + 9;
        }
    });
    let find = |address| profile.servers().find(TCP, 80, address);
    assert_eq!([find(50), find(59), find(60)], [only(0), only(0), None]);
    assert_eq!([find(9), find(10), find(30)], [None, only(1), only(2)]);
}

#[test]
fn one_template_may_serve_several_ports() {
    let profile = right(|p| {
        let mut second = p.templates[0].server.associations[0].clone();
        second.port = 8080;
        p.templates[0].server.associations.push(second);
    });
    assert_eq!(profile.servers().find(TCP, 8080, 1), only(0));
}

#[test]
fn servers_are_told_apart_by_the_first_bytes() {
    let profile = right(|p| {
        for i in 0..3 {
            if i > 0 {
                p.templates.push(template(0, 1, 80));
            }
            p.templates[i].server.associations[0].l7_map = (i > 0).then(|| L7Map {
                offsets: vec![0, 2],
                masks: vec![0xff, 0xdf],
                // Template 1 takes what its client sends: "GET /".
                values: (i == 2).then(|| b"Pt".to_vec()),
            });
        }
    });
    let servers = profile.servers();
    assert_eq!(
        servers.find(TCP, 80, 1),
        Some(Server::Payload(TemplateIndex(1)))
    );
    let find = |payload: &[u8]| servers.by_payload(TCP, 80, 1, payload);
    assert_eq!(find(b"GET"), Some(TemplateIndex(1)));
    assert_eq!(find(b"GEt and more"), Some(TemplateIndex(1)));
    assert_eq!(find(b"PUT"), Some(TemplateIndex(2)));
    assert_eq!(find(b"XYZ"), Some(TemplateIndex(0)));
    assert_eq!(find(b"GE"), Some(TemplateIndex(0)));
    assert_eq!(servers.by_payload(TCP, 81, 1, b"GET"), None);
}

#[test]
fn what_a_profile_chooses_must_be_the_same_in_each_message() {
    let map = Some(L7Map {
        offsets: vec![0],
        ..L7Map::default()
    });
    let mut spec = profile();
    spec.templates[0] = template(2, 3, 53);
    spec.templates[0].server.associations[0].l7_map = map;
    assert!(compile(&spec).is_ok());
    let other = ProgramCommand::SendMessage { buffer: 1 };
    spec.programs[2].commands.push(other);
    let text = compile(&spec).expect_err("G and 2 differ").to_string();
    assert!(text.contains("messages of the client differ"), "{text}");
}

#[test]
fn offsets_count_what_an_add_on_writes_in_front() {
    let of = |offset| {
        let mut spec = profile();
        spec.programs[2].addon = Some(Addon::Latency);
        spec.templates[0] = template(2, 3, 53);
        spec.templates[0].server.associations[0].l7_map = Some(L7Map {
            offsets: vec![offset],
            ..L7Map::default()
        });
        compile(&spec)
    };
    let profile = of(12).expect("the first byte of the message");
    let by = |first: u8| {
        let payload: Vec<u8> = (0..12).chain([first]).collect();
        let servers = profile.servers();
        servers.by_payload(Transport::Datagram, 53, 1, &payload)
    };
    assert_eq!((by(b'G'), by(b'H')), (Some(TemplateIndex(0)), None));
    let text = of(11).expect_err("it belongs to the add-on").to_string();
    assert!(text.contains("use offsets from 12 on"), "{text}");
}

#[test]
fn many_templates_are_compiled_quickly_and_found() {
    let profile = right(|p| {
        p.templates = (0..10_000)
            .map(|i| {
                let mut one = template(0, 1, 80);
                one.server.associations[0].first = i * 2;
                one.server.associations[0].last = i * 2 + 1;
                one
            })
            .collect();
    });
    let last = profile.servers().find(TCP, 80, 19_999);
    assert_eq!(last, only(9_999));
}
