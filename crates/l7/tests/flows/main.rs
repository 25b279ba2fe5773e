//! Programs over TLS, and HTTP with and without, between a client port and a server port of one core, in virtual time.

mod http;
#[path = "../../../engine/tests/stateful/world.rs"]
#[allow(dead_code)]
mod world;

use std::sync::{Arc, Mutex};

use allosaur_engine::app::{BufferSpec, ProgramCommand as Step};
use allosaur_engine::stateful::{Holdings, StatefulCommand};
use allosaur_engine::template::{CompiledProfile, Layout, ProfileSpec, ProgramIndex, Tunable};
use allosaur_engine::time::{MILLISECOND, Nanos, SECOND};
use allosaur_l7::program::Programs;
use allosaur_l7::tls::{
    ClientTls, FlowTls, Identity, KeyKind, KeyLines, ServerTls, TlsFlows, TlsVersion, Verify,
};
use allosaur_testkit::data::workspace_root;
use world::{RUN, World};

const CLIENT: ProgramIndex = ProgramIndex(0);
const SERVER: ProgramIndex = ProgramIndex(1);
/// The year 2027, when all certificates but the expired one are valid.
const UNIX_TIME: Nanos = 1_800_000_000 * SECOND;
const FLOWS: u64 = 20;
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n";
const ANSWER_BYTES: u64 = 60_000;
const VERSIONS: [TlsVersion; 2] = [TlsVersion::V1_2, TlsVersion::V1_3];

fn pem(name: &str) -> String {
    let path = workspace_root().join("tests/data/tls").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn identity(certificate: &str, key: &str) -> Identity {
    Identity {
        certificate: pem(certificate),
        key: pem(key),
    }
}

/// Clients that ask for an answer of HTTP, and servers that give it.
fn profile() -> ProfileSpec {
    let request = b"GET / HTTP/1.1\r\nHost: radius.example.org\r\n\r\n".to_vec();
    let bytes = request.len() as u64;
    let mut profile = world::http(ANSWER_BYTES, 500.0);
    let constant = |base: Vec<u8>, bytes| BufferSpec {
        base,
        bytes,
        fill: vec![b'.'],
    };
    profile.buffers = vec![
        constant(request, None),
        constant(ANSWER.to_vec(), Some(ANSWER_BYTES)),
    ];
    profile.programs[0].commands = vec![Step::Send { buffer: 0 }, world::receive(ANSWER_BYTES)];
    profile.programs[1].commands = vec![world::receive(bytes), Step::Send { buffer: 1 }];
    profile.templates[0].client.limit = Some(FLOWS as u32);
    profile
}

fn server_tls() -> ServerTls {
    ServerTls {
        common: FlowTls::default(),
        identity: identity("server.pem", "server.key"),
        authorities: None,
        resume: true,
    }
}

fn groups(names: &[&str]) -> FlowTls {
    FlowTls {
        groups: names.iter().map(|&name| name.to_owned()).collect(),
        ..FlowTls::default()
    }
}

fn only(version: TlsVersion) -> FlowTls {
    FlowTls {
        version: Some(version),
        ..FlowTls::default()
    }
}

fn compiled(
    spec: &ProfileSpec,
    client: Option<&ClientTls>,
    server: Option<&ServerTls>,
) -> CompiledProfile {
    let mut compiled = CompiledProfile::compile(spec, Layout::SMALLEST).expect("it is right");
    let buffers = Arc::clone(compiled.buffers());
    if let Some(client) = client {
        let program = compiled.program(CLIENT).clone();
        let made = TlsFlows::client(client, Programs::new(program, Arc::clone(&buffers)));
        compiled = compiled.with_application(CLIENT, Arc::new(made.expect("it is right")));
    }
    if let Some(server) = server {
        let program = compiled.program(SERVER).clone();
        let made = TlsFlows::server(server, Programs::new(program, buffers));
        compiled = compiled.with_application(SERVER, Arc::new(made.expect("it is right")));
    }
    compiled
}

struct Outcome {
    world: World,
    compiled: CompiledProfile,
}

impl Outcome {
    /// What a side counted in the row of this name and label.
    fn row(&self, side: usize, name: &str, label: &str) -> u64 {
        let rows = self.compiled.application_rows();
        let is_it =
            |row: &&allosaur_engine::app::AppRow| row.name == name && row.label.unwrap().1 == label;
        let place = rows.iter().position(|row| is_it(&row)).expect("a row");
        self.world.sides()[side].flows.rows[place]
    }

    /// What both sides counted in the rows of this name.
    fn rows(&self, name: &str, label: &str) -> [u64; 2] {
        [self.row(0, name, label), self.row(1, name, label)]
    }

    fn completed(&self) -> [u64; 2] {
        let sides = self.world.sides().each_ref();
        sides.map(|side| side.flows.outcomes.completed)
    }

    fn judged(&self) -> [u64; 2] {
        let sides = self.world.sides().each_ref();
        sides.map(|side| side.flows.outcomes.judged())
    }
}

fn run_in(mut world: World, compiled: CompiledProfile) -> Outcome {
    world.engine = world.engine.with_unix_offset(UNIX_TIME);
    world.start_compiled(compiled.clone());
    for _ in 0..600 {
        world.run_for(SECOND / 5);
        world.engine.audit().expect("all holds");
        let judged = world.sides()[0].flows.outcomes.judged();
        if judged >= FLOWS && world.engine.flows() == 0 {
            break;
        }
    }
    assert_eq!(world.engine.holdings(), Holdings::default());
    Outcome { world, compiled }
}

fn run(client: &ClientTls, server: &ServerTls) -> Outcome {
    run_in(
        World::new(1_000),
        compiled(&profile(), Some(client), Some(server)),
    )
}

#[test]
fn programs_run_over_both_versions() {
    for version in VERSIONS {
        let client = ClientTls {
            common: only(version),
            server_name: Some("radius.example.org".to_owned()),
            verify: Verify::Authorities(pem("ca.pem")),
            ..ClientTls::default()
        };
        let told = run(&client, &server_tls());
        assert_eq!(told.completed(), [FLOWS; 2], "{version}");
        assert_eq!(told.rows("tls_handshakes", "full"), [FLOWS; 2]);
        assert_eq!(told.rows("tls_handshakes", "resumed"), [0; 2]);
        assert_eq!(told.world.sides()[0].flows.outcomes.http_2xx, FLOWS);
        for side in told.world.sides() {
            assert_eq!(
                side.flows.tcp.rcvafterclose, 0,
                "both wait for close_notify"
            );
        }
        let times = told.world.engine.times(RUN).expect("it runs");
        assert_eq!(times.handshake.total(), FLOWS);
    }
}

#[test]
fn records_survive_links_that_lose_and_reorder() {
    for version in VERSIONS {
        let client = ClientTls {
            common: only(version),
            ..ClientTls::default()
        };
        let mut world = World::new(1_000);
        world.delay = 2 * MILLISECOND;
        (world.lost_ppm, world.doubled_ppm, world.late_ppm) = (20_000, 20_000, 100_000);
        world.seed_link(7);
        let mut spec = profile();
        for side in [&mut spec.client, &mut spec.server] {
            side.set(Tunable::ReceiveBuffer, 3_000);
        }
        let told = run_in(world, compiled(&spec, Some(&client), Some(&server_tls())));
        assert_eq!(told.completed(), [FLOWS; 2], "{version}");
        assert_eq!(told.rows("tls_handshakes", "full"), [FLOWS; 2]);
    }
}

#[test]
fn certificates_that_are_made_are_good_for_their_name() {
    for kind in [KeyKind::P256, KeyKind::P384, KeyKind::Ed25519] {
        for (name, asked) in [
            ("a.example.org", "a.example.org"),
            ("192.0.2.1", "192.0.2.1"),
        ] {
            let made = Identity::made(kind, name).expect("it can be");
            let client = ClientTls {
                server_name: Some(asked.to_owned()),
                verify: Verify::Authorities(made.certificate.clone()),
                ..ClientTls::default()
            };
            let server = ServerTls {
                identity: made,
                ..server_tls()
            };
            let told = run(&client, &server);
            assert_eq!(told.completed(), [FLOWS; 2], "{kind:?} {name}");
            assert_eq!(told.rows("tls_handshakes", "full"), [FLOWS; 2]);
        }
    }
}

#[test]
fn sessions_are_resumed_by_share() {
    for version in VERSIONS {
        for (resume, least, most) in [(0.0, 0, 0), (0.5, 2, 18), (1.0, 18, 20)] {
            let client = ClientTls {
                common: only(version),
                resume,
                server_name: Some("radius.example.org".to_owned()),
                ..ClientTls::default()
            };
            let told = run(&client, &server_tls());
            assert_eq!(told.completed(), [FLOWS; 2], "{version}");
            let [clients, servers] = told.rows("tls_handshakes", "resumed");
            assert_eq!(clients, servers);
            assert!(
                (least..=most).contains(&clients),
                "{version} {resume}: {clients}"
            );
        }
    }
    let client = ClientTls {
        resume: 1.0,
        ..ClientTls::default()
    };
    let server = ServerTls {
        resume: false,
        ..server_tls()
    };
    let told = run(&client, &server);
    assert_eq!(told.rows("tls_handshakes", "resumed"), [0; 2]);
}

#[test]
fn keys_are_exchanged_over_each_group_and_over_the_one_that_both_have() {
    let served = ServerTls {
        common: groups(&["secp384r1", "secp256r1", "X25519"]),
        ..server_tls()
    };
    let cases = [
        (groups(&["X25519MLKEM768"]), server_tls()),
        (groups(&["secp256r1"]), server_tls()),
        (groups(&["secp384r1"]), server_tls()),
        // What it sends a key of is unknown to the server, which asks for another.
        (groups(&["X25519MLKEM768", "secp256r1"]), served.clone()),
        // Its half is enough.
        (groups(&["X25519MLKEM768", "X25519"]), served),
    ];
    for (common, server) in cases {
        let client = ClientTls {
            common,
            ..ClientTls::default()
        };
        let told = run(&client, &server);
        assert_eq!(told.completed(), [FLOWS; 2], "{:?}", client.common.groups);
    }
}

#[test]
fn without_a_common_group_handshakes_fail() {
    let client = ClientTls {
        common: groups(&["X25519MLKEM768"]),
        ..ClientTls::default()
    };
    let server = ServerTls {
        common: groups(&["secp256r1"]),
        ..server_tls()
    };
    assert_refused(&client, &server, 1, "handshake_failure");
}

#[test]
fn clients_show_the_certificates_that_servers_ask_for() {
    let server = ServerTls {
        authorities: Some(pem("ca.pem")),
        ..server_tls()
    };
    for version in VERSIONS {
        let shows = |certificate: &str, key: &str| ClientTls {
            common: only(version),
            identity: Some(identity(certificate, key)),
            resume: 0.5,
            ..ClientTls::default()
        };
        let told = run(&shows("client.pem", "client.key"), &server);
        assert_eq!(told.completed(), [FLOWS; 2], "{version}");
        let told = run(&shows("stranger.pem", "stranger.key"), &server);
        assert_eq!(told.row(1, "tls_alerts_sent", "unknown_ca"), FLOWS);
        let nothing = ClientTls {
            common: only(version),
            ..ClientTls::default()
        };
        let told = run(&nothing, &server);
        let refused = told.row(1, "tls_alerts_sent", "certificate_required");
        assert_eq!(refused, FLOWS, "{version}");
    }
}

/// A run in which no program begins: the alert that one side sent and the other received.
fn assert_refused(client: &ClientTls, server: &ServerTls, sender: usize, alert: &str) {
    let told = run(client, server);
    assert_eq!(told.completed(), [0; 2], "{alert}");
    assert_eq!(told.judged(), [FLOWS; 2], "{alert}");
    assert_eq!(told.row(sender, "tls_alerts_sent", alert), FLOWS, "{alert}");
    let received = told.row(1 - sender, "tls_alerts_received", alert);
    assert_eq!(received, FLOWS, "{alert}");
}

#[test]
fn refusals_are_counted_by_the_names_of_their_alerts() {
    let client = ClientTls {
        server_name: Some("radius.example.org".to_owned()),
        verify: Verify::Authorities(pem("ca.pem")),
        ..ClientTls::default()
    };
    let server = server_tls();
    let newer = ServerTls {
        common: only(TlsVersion::V1_3),
        ..server_tls()
    };
    let older = ClientTls {
        common: only(TlsVersion::V1_2),
        ..client.clone()
    };
    assert_refused(&older, &newer, 1, "protocol_version");
    let suites = |name: &str| FlowTls {
        suites: vec![name.to_owned()],
        ..FlowTls::default()
    };
    let one = ClientTls {
        common: suites("TLS13_AES_128_GCM_SHA256"),
        ..client.clone()
    };
    let another = ServerTls {
        common: suites("TLS13_AES_256_GCM_SHA384"),
        ..server_tls()
    };
    assert_refused(&one, &another, 1, "handshake_failure");
    let expired = ServerTls {
        identity: identity("expired.pem", "server.key"),
        ..server_tls()
    };
    assert_refused(&client, &expired, 0, "certificate_expired");
    let other_name = ClientTls {
        server_name: Some("other.example.org".to_owned()),
        ..client.clone()
    };
    assert_refused(&other_name, &server, 0, "bad_certificate");
    let other_authority = ClientTls {
        verify: Verify::Authorities(pem("other-ca.pem")),
        ..client.clone()
    };
    assert_refused(&other_authority, &server, 0, "unknown_ca");
    let other_pin = ClientTls {
        verify: Verify::Pinned(pem("stranger.pem")),
        ..client.clone()
    };
    assert_refused(&other_pin, &server, 0, "access_denied");
    let alpn = |name: &str| FlowTls {
        alpn: vec![name.to_owned()],
        ..FlowTls::default()
    };
    let asks = ClientTls {
        common: alpn("h2"),
        ..client
    };
    let has = ServerTls {
        common: alpn("http/1.1"),
        ..server
    };
    assert_refused(&asks, &has, 1, "no_application_protocol");
}

#[test]
fn a_certificate_that_is_pinned_is_good_whatever_it_says() {
    let client = ClientTls {
        server_name: Some("any.example.org".to_owned()),
        verify: Verify::Pinned(pem("expired.pem")),
        ..ClientTls::default()
    };
    let expired = ServerTls {
        identity: identity("expired.pem", "server.key"),
        ..server_tls()
    };
    assert_eq!(run(&client, &expired).completed(), [FLOWS; 2]);
}

#[test]
fn a_peer_that_speaks_no_tls_is_told_by_name() {
    let client = ClientTls::default();
    // A server of plain text takes the client's first message for a request.
    let mut spec = profile();
    spec.programs[1].commands[0] = world::receive(40);
    let told = run_in(World::new(1_000), compiled(&spec, Some(&client), None));
    assert_eq!(told.completed()[0], 0);
    assert_eq!(told.row(0, "tls_failures", "no_tls"), FLOWS);
    let told = run_in(
        World::new(1_000),
        compiled(&profile(), None, Some(&server_tls())),
    );
    assert_eq!(told.completed(), [0; 2]);
    assert_eq!(told.row(1, "tls_failures", "no_tls"), FLOWS);
}

#[test]
fn what_is_cut_off_within_the_handshake_is_unfinished() {
    let mut world = World::new(1_000);
    world.delay = 400 * MILLISECOND;
    let compiled = compiled(&profile(), Some(&ClientTls::default()), Some(&server_tls()));
    world.start_compiled(compiled.clone());
    world.run_for(SECOND);
    world.tell(StatefulCommand::Stop {
        run: RUN,
        abort: true,
    });
    world.run_for(5 * SECOND);
    assert_eq!(world.engine.holdings(), Holdings::default());
    let told = Outcome { world, compiled };
    assert_eq!(told.completed(), [0; 2]);
    assert!(told.row(0, "tls_failures", "unfinished") > 0);
}

#[test]
fn a_reset_or_an_end_within_the_handshake_is_told_by_name() {
    for (step, reason) in [(Some(Step::Reset), "reset"), (None, "closed")] {
        // The server takes the first bytes of the client's message, and goes.
        let mut spec = profile();
        spec.programs[1].commands = [Some(world::receive(40)), step]
            .into_iter()
            .flatten()
            .collect();
        let told = run_in(
            World::new(1_000),
            compiled(&spec, Some(&ClientTls::default()), None),
        );
        assert_eq!(told.completed()[0], 0);
        assert_eq!(told.row(0, "tls_failures", reason), FLOWS, "{reason}");
        assert_eq!(told.judged()[0], FLOWS);
    }
}

/// A program that never ends is cut off at the end of the run, and nothing of it is left.
#[test]
fn a_program_without_end_is_cut_off() {
    let mut spec = profile();
    // More than anybody sends.
    spec.programs[1].commands = vec![world::receive(1_000_000)];
    let compiled = compiled(&spec, Some(&ClientTls::default()), Some(&server_tls()));
    let mut world = World::new(1_000);
    world.start_compiled(compiled.clone());
    world.run_for(3 * SECOND);
    let held = world.engine.holdings();
    assert_eq!(
        (held.applications, held.owned_buffers),
        (2 * FLOWS as usize, 0)
    );
    world.tell(StatefulCommand::Stop {
        run: RUN,
        abort: true,
    });
    world.run_for(5 * SECOND);
    assert_eq!(world.engine.holdings(), Holdings::default());
    let told = Outcome { world, compiled };
    assert_eq!(told.rows("tls_handshakes", "full"), [FLOWS; 2]);
    let sides = told.world.sides().each_ref();
    assert_eq!(sides.map(|side| side.flows.outcomes.cut_off), [FLOWS; 2]);
}

#[derive(Debug, Default)]
struct Lines(Mutex<Vec<String>>);

impl KeyLines for Lines {
    fn write(&self, line: String) {
        self.0.lock().expect("no panic").push(line);
    }
}

#[test]
fn secrets_are_logged_in_the_format_of_nss() {
    for (version, label) in [
        (TlsVersion::V1_2, "CLIENT_RANDOM"),
        (TlsVersion::V1_3, "CLIENT_TRAFFIC_SECRET_0"),
    ] {
        let lines = Arc::new(Lines::default());
        let client = ClientTls {
            common: FlowTls {
                key_log: Some(Arc::clone(&lines) as _),
                ..only(version)
            },
            ..ClientTls::default()
        };
        run(&client, &server_tls());
        let lines = lines.0.lock().unwrap();
        let its: Vec<_> = lines
            .iter()
            .filter(|line| line.starts_with(label))
            .collect();
        assert_eq!(its.len() as u64, FLOWS, "{label}");
        let words: Vec<_> = its[0].split(' ').collect();
        assert_eq!((words.len(), words[1].len()), (3, 64));
        assert!(words[2].bytes().all(|byte| byte.is_ascii_hexdigit()));
    }
}

#[test]
fn groups_and_authorities_that_cannot_be_are_refused() {
    let profile = CompiledProfile::compile(&profile(), Layout::SMALLEST).expect("it is right");
    let program = profile.program(CLIENT).clone();
    let programs = || Programs::new(program.clone(), Arc::clone(profile.buffers()));
    let client = |tls: ClientTls| {
        let made = TlsFlows::client(&tls, programs());
        made.expect_err("it is wrong").to_string()
    };
    let told = client(ClientTls {
        common: groups(&["X448"]),
        ..ClientTls::default()
    });
    assert_eq!(
        told,
        "groups: \"X448\" is not known; there are X25519, secp256r1, secp384r1, X25519MLKEM768"
    );
    let told = client(ClientTls {
        common: FlowTls {
            version: Some(TlsVersion::V1_2),
            ..groups(&["X25519MLKEM768"])
        },
        ..ClientTls::default()
    });
    assert!(
        told.starts_with("groups: has none for that version"),
        "{told}"
    );
    let asks = ServerTls {
        authorities: Some("no".to_owned()),
        ..server_tls()
    };
    let told = TlsFlows::server(&asks, programs());
    let told = told.expect_err("it is wrong").to_string();
    assert!(
        told.starts_with("authorities: has no certificate"),
        "{told}"
    );
}

#[test]
fn what_cannot_be_is_refused_by_the_name_of_its_field() {
    let profile = CompiledProfile::compile(&profile(), Layout::SMALLEST).expect("it is right");
    let program = profile.program(CLIENT).clone();
    let buffers = profile.buffers();
    let programs = || Programs::new(program.clone(), Arc::clone(buffers));
    let client = |tls: ClientTls| {
        let made = TlsFlows::client(&tls, programs());
        made.expect_err("it is wrong").to_string()
    };
    let server = |tls: ServerTls| {
        let made = TlsFlows::server(&tls, programs());
        made.expect_err("it is wrong").to_string()
    };
    let told = server(ServerTls {
        identity: identity("server.pem", "client.key"),
        ..server_tls()
    });
    assert_eq!(
        told,
        "key: is not the key of certificate; give the one that the certificate was made for"
    );
    let told = server(ServerTls {
        identity: Identity {
            certificate: "no".to_owned(),
            key: pem("server.key"),
        },
        ..server_tls()
    });
    assert!(
        told.starts_with("certificate: has no certificate"),
        "{told}"
    );
    let told = client(ClientTls {
        resume: 1.5,
        ..ClientTls::default()
    });
    assert_eq!(told, "resume: must be a share from 0 to 1, not 1.5");
    let told = client(ClientTls {
        server_name: Some("no name".to_owned()),
        ..ClientTls::default()
    });
    assert!(told.starts_with("server_name: \"no name\""), "{told}");
    let told = client(ClientTls {
        common: FlowTls {
            suites: vec!["TLS_NONE".to_owned()],
            ..FlowTls::default()
        },
        ..ClientTls::default()
    });
    assert!(told.contains("TLS13_AES_128_GCM_SHA256"), "{told}");
    let told = client(ClientTls {
        common: FlowTls {
            suites: vec!["TLS13_AES_128_GCM_SHA256".to_owned()],
            ..only(TlsVersion::V1_2)
        },
        ..ClientTls::default()
    });
    assert!(
        told.starts_with("suites: has none for that version"),
        "{told}"
    );
    let told = client(ClientTls {
        verify: Verify::Authorities(String::new()),
        ..ClientTls::default()
    });
    assert!(
        told.starts_with("authorities: has no certificate"),
        "{told}"
    );
}
