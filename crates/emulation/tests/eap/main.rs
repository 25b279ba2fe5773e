//! Supplicants over TLS against a server of rustls, in virtual time.

mod server;

use std::sync::Arc;

use allosaur_emulation::{Emulation, Settings};
use allosaur_engine::time::{Nanos, SECOND};
use allosaur_testkit::data::workspace_root;
use proptest::prelude::*;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::version::{TLS12, TLS13};
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use serde_json::{Value, json};
use server::{Fault, PEAP, Switch, TLS, TTLS};

/// The year 2027, when all certificates but the expired one are valid.
const UNIX_TIME: Nanos = 1_800_000_000 * SECOND;
const LIMIT: usize = 500;

fn pem(name: &str) -> String {
    let path = workspace_root().join("tests/data/tls").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The server's side, with a certificate of `tests/data/tls`; for EAP-TLS it asks for the client's.
fn config(cert: &str, version: &'static SupportedProtocolVersion, method: u8) -> Arc<ServerConfig> {
    let provider = Arc::new(ring::default_provider());
    let chain =
        vec![CertificateDer::from_pem_slice(pem(&format!("{cert}.pem")).as_bytes()).unwrap()];
    let key = if cert == "server-rsa" { cert } else { "server" };
    let key = PrivateKeyDer::from_pem_slice(pem(&format!("{key}.key")).as_bytes()).unwrap();
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(pem("ca.pem").as_bytes()).unwrap())
        .unwrap();
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[version])
        .unwrap();
    let builder = if method == TLS {
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        builder.with_client_cert_verifier(verifier.build().unwrap())
    } else {
        builder.with_no_client_auth()
    };
    Arc::new(builder.with_single_cert(chain, key).unwrap())
}

fn emulation() -> Emulation {
    emulation_with(Value::Null)
}

/// With the init JSON of the namespace's plugins.
fn emulation_with(plugins: Value) -> Emulation {
    let settings = Settings {
        unix_offset: UNIX_TIME,
        ..Settings::default()
    };
    let mut emulation = Emulation::new(settings, 0);
    let namespace = json!({"tunnels": [{"vport": 1, "plugs": plugins}]});
    emulation.handle_request(0, "ctx_add", &namespace).unwrap();
    emulation
}

fn add(emulation: &mut Emulation, last: u8, init: &Value) -> Result<Value, String> {
    let client = json!({"mac": [2, 0, 0, 0, 0, last], "plugs": {"dot1x": init}});
    let params = json!({"tun": {"vport": 1}, "clients": [client]});
    let added = emulation.handle_request(0, "ctx_client_add", &params);
    added.map_err(|error| error.to_string())
}

fn ask(emulation: &mut Emulation, method: &str, last: u8) -> Value {
    let mac = [2, 0, 0, 0, 0, last];
    let params = json!({"tun": {"vport": 1}, "mac": mac, "macs": [mac]});
    emulation.handle_request(0, method, &params).unwrap()
}

fn info(emulation: &mut Emulation, last: u8) -> Value {
    ask(emulation, "dot1x_client_info", last)[0].take()
}

fn counters(emulation: &mut Emulation, last: u8) -> Value {
    ask(emulation, "dot1x_client_cnt", last)["dot1xTls"].take()
}

/// Carries frames to and fro until both sides are silent, and says how many the clients sent.
fn settle(emulation: &mut Emulation, switch: &mut Switch) -> usize {
    let mut count = 0;
    loop {
        let mut frames = vec![];
        while let Some(transmit) = emulation.poll_transmit() {
            assert!(transmit.frame.len() <= 1514, "{}", transmit.frame.len());
            frames.push(transmit.frame.to_vec());
        }
        if frames.is_empty() {
            return count;
        }
        count += frames.len();
        assert!(count < LIMIT, "they never come to an end");
        for frame in frames {
            for answer in switch.answer(&frame) {
                emulation.handle_frame(0, 1, &answer);
            }
        }
    }
}

fn login(more: Value) -> Value {
    let mut init = json!({"user": "alice", "password": "secret", "ca_cert": pem("ca.pem")});
    for (name, value) in more.as_object().unwrap() {
        init[name] = value.clone();
    }
    init
}

fn with_cert(name: &str) -> Value {
    login(json!({
        "method": "tls",
        "client_cert": pem(&format!("{name}.pem")),
        "private_key": pem(&format!("{name}.key")),
    }))
}

/// Logs one client in. The switch's result, and what the client says about it.
fn run(
    (cert, version): (&str, &'static SupportedProtocolVersion),
    (method, fault): (u8, Fault),
    init: &Value,
) -> (Option<bool>, Value, Value) {
    let mut switch = Switch::new(config(cert, version, method), method, fault);
    let mut emulation = emulation();
    add(&mut emulation, 1, init).unwrap();
    settle(&mut emulation, &mut switch);
    let result = switch.results.get(&[2, 0, 0, 0, 0, 1]).copied();
    let counters = counters(&mut emulation, 1);
    (result, info(&mut emulation, 1), counters)
}

const METHODS: [(&str, &str, u8); 4] = [
    ("tls", "mschapv2", TLS),
    ("peap", "mschapv2", PEAP),
    ("ttls", "pap", TTLS),
    ("ttls", "mschapv2", TTLS),
];

/// The init JSON of a client for one of [`METHODS`].
fn init(method: &str, phase2: &str) -> Value {
    let mut init = with_cert("client");
    init["method"] = json!(method);
    init["phase2"] = json!(phase2);
    init
}

#[test]
fn each_method_lets_in_who_may_in_both_versions_and_with_all_fragments() {
    for (method, phase2, number) in METHODS {
        for (version, name) in [(&TLS12, "1.2"), (&TLS13, "1.3")] {
            for (cert, bytes) in [("server", 1398), ("server-rsa", 100), ("server-rsa", 1480)] {
                for fault in [Fault::None, Fault::Repeats] {
                    let mut init = init(method, phase2);
                    init["fragment_size"] = json!(bytes);
                    let what = format!("{method} {phase2} {name} {cert} {bytes} {fault:?}");
                    let (result, info, counters) = run((cert, version), (number, fault), &init);
                    let expected = json!({
                        "state": 4, "method": number, "eap_version": 2,
                        "tls_version": name, "reason": null,
                    });
                    assert_eq!(
                        (result, &info),
                        (Some(true), &expected),
                        "{what}: {counters}"
                    );
                    assert_eq!(counters["tlsEstablished"], 1, "{what}");
                    let again = counters["tlsRxAgain"].as_u64();
                    assert_eq!(again.is_some(), fault == Fault::Repeats, "{what}");
                }
            }
        }
    }
}

/// A login that must fail: the switch and the client agree, a counter says it, and a reason.
fn fails(
    server: (&str, &'static SupportedProtocolVersion),
    number: u8,
    init: &Value,
    (counter, reason): (&str, &str),
) {
    let (result, info, counters) = run(server, (number, Fault::None), init);
    let what = format!("{init} {info} {counters}");
    assert_eq!((result, &info["state"]), (Some(false), &json!(5)), "{what}");
    assert!(info["reason"].as_str().unwrap().contains(reason), "{what}");
    assert!(counter.is_empty() || counters[counter] == 1, "{what}");
}

#[test]
fn who_does_not_know_the_password_stays_out() {
    for version in [&TLS12, &TLS13] {
        for (method, phase2, number) in &METHODS[1..] {
            let mut init = init(method, phase2);
            init["password"] = json!("guess");
            // This server of TTLS says it by the failure of EAP alone.
            let expected = match *number {
                PEAP => ("tlsInnerRefused", "user or password"),
                _ => ("", "authenticator"),
            };
            fails(("server", version), *number, &init, expected);
        }
    }
}

#[test]
fn whose_certificate_is_refused_stays_out_and_knows_why() {
    let counter = "tlsErrCertificate";
    for version in [&TLS12, &TLS13] {
        for (method, phase2, number) in METHODS {
            let mut init = init(method, phase2);
            fails(("expired", version), number, &init, (counter, "xpired"));
            init["ca_cert"] = json!(pem("other-ca.pem"));
            let reason = (counter, "UnknownIssuer");
            fails(("server", version), number, &init, reason);
        }
        let named = |name: &str| login(json!({"method": "peap", "server_name": name}));
        let reason = (counter, "not valid for name");
        fails(
            ("server", version),
            PEAP,
            &named("other.example.org"),
            reason,
        );
        let right = named("radius.example.org");
        let (result, ..) = run(("server", version), (PEAP, Fault::None), &right);
        assert_eq!(result, Some(true));
    }
    // With TLS 1.3, a client hears what becomes of its certificate after its own end.
    let strange = with_cert("stranger");
    fails(("server", &TLS12), TLS, &strange, ("tlsErrAlert", "alert"));
    fails(("server", &TLS13), TLS, &strange, ("", ""));
    let other_version = login(json!({"method": "peap", "tls_version": "1.3"}));
    fails(("server", &TLS12), PEAP, &other_version, ("", ""));
}

#[test]
fn who_verifies_nothing_trusts_an_expired_stranger() {
    let init = json!({"user": "alice", "password": "secret", "method": "peap", "verify": false});
    for version in [&TLS12, &TLS13] {
        let (result, info, _) = run(("expired", version), (PEAP, Fault::None), &init);
        assert_eq!((result, &info["state"]), (Some(true), &json!(4)));
    }
}

#[test]
fn a_server_that_proves_nothing_is_not_trusted() {
    for version in [&TLS12, &TLS13] {
        for (method, phase2, number) in [METHODS[1], METHODS[3]] {
            let init = init(method, phase2);
            let (result, info, counters) =
                run(("server", version), (number, Fault::ProvesNothing), &init);
            assert_eq!((result, &info["state"]), (None, &json!(3)), "{method}");
            assert_eq!(counters["tlsErrProof"], 1);
        }
        for (method, phase2, number) in METHODS {
            let init = init(method, phase2);
            let (_, info, _) = run(("server", version), (number, Fault::SucceedsEarly), &init);
            assert_eq!(info["state"], 2, "{method}");
        }
    }
}

#[test]
fn the_name_outside_may_be_another_and_the_wanted_methods_are_said_in_order() {
    let init = login(json!({"method": ["ttls", "peap", "md5"], "anonymous_identity": "nobody"}));
    let mut switch = Switch::new(config("server", &TLS13, TTLS), TLS, Fault::None);
    let mut emulation = emulation();
    add(&mut emulation, 1, &init).unwrap();
    settle(&mut emulation, &mut switch);
    let mac = [2, 0, 0, 0, 0, 1];
    assert_eq!(switch.names[&mac], b"nobody");
    assert_eq!(switch.wanted, [[TTLS, PEAP, 4]]);
    assert!(switch.results[&mac]);
    assert_eq!(info(&mut emulation, 1)["method"], TTLS);
}

#[test]
fn a_namespace_has_the_fields_that_its_clients_share() {
    let shared = json!({"method": "peap", "ca_cert": pem("ca.pem"), "password": "secret"});
    let mut emulation = emulation_with(json!({"dot1x": shared}));
    for last in 1..=20 {
        let password = if last == 20 { "guess" } else { "secret" };
        let init = match last {
            20 => json!({"user": "alice", "password": password}),
            _ => json!({"user": "alice"}),
        };
        add(&mut emulation, last, &init).unwrap();
    }
    let mut switch = Switch::new(config("server", &TLS13, PEAP), PEAP, Fault::None);
    settle(&mut emulation, &mut switch);
    let states: Vec<_> = (1..=20)
        .map(|last| info(&mut emulation, last)["state"].clone())
        .collect();
    let expected: Vec<_> = (1..=20)
        .map(|last| json!(if last == 20 { 5 } else { 4 }))
        .collect();
    assert_eq!(states, expected);
}

/// Init JSON that is refused, with this in the error.
fn refuses(cases: &[(Value, &str)]) {
    for (more, error) in cases {
        let mut emulation = emulation();
        let told = add(&mut emulation, 1, &login(more.clone())).unwrap_err();
        assert!(told.contains(error), "{more}: {told}");
    }
}

#[test]
fn what_is_wrong_is_named_with_its_remedy() {
    refuses(&[
        (
            json!({"method": "leap"}),
            "method: \"leap\" is not known; there are md5, mschapv2, tls, peap, ttls",
        ),
        (json!({"methods": "peap"}), "unknown field \"methods\""),
        (json!({"method": []}), "method: an empty list"),
        (
            json!({"method": ["tls", "tls"]}),
            "method: \"tls\" is there twice",
        ),
        (json!({"method": 13}), "cannot unmarshal"),
        (json!({"method": "peap", "flags": 1}), "leave out flags"),
        (
            json!({"method": "peap", "ca_cert": ""}),
            "ca_cert: missing; give the authority",
        ),
        (
            json!({"method": "peap", "ca_cert": "ca.pem"}),
            "ca_cert: has no certificate",
        ),
        (
            json!({"method": "peap", "ca_cert": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"}),
            "ca_cert: has a certificate that cannot be read",
        ),
        (json!({"method": "peap", "verify": "no"}), "bool"),
        (
            json!({"method": "peap", "verify": false, "server_name": "a.b"}),
            "server_name: nothing",
        ),
        (
            json!({"method": "peap", "server_name": "a b"}),
            "server_name: \"a b\" is no name",
        ),
        (
            json!({"method": "peap", "phase2": "pap"}),
            "phase2: pap is inside ttls only",
        ),
        (
            json!({"method": "ttls", "phase2": "chap"}),
            "phase2: \"chap\" is not known",
        ),
        (
            json!({"method": "ttls", "fragment_size": 99}),
            "fragment_size: 99; it is 100 to 1480",
        ),
        (
            json!({"method": "ttls", "tls_version": 1.3}),
            "tls_version: it is",
        ),
    ]);
}

#[test]
fn own_certificates_must_be_complete_and_go_together() {
    let encrypted = pem("client.key").replace("PRIVATE", "ENCRYPTED PRIVATE");
    let own =
        |cert: &str, key: &str| json!({"method": "tls", "client_cert": cert, "private_key": key});
    let (cert, key) = (pem("client.pem"), pem("client.key"));
    refuses(&[
        (
            json!({"method": "ttls", "anonymous_identity": "x".repeat(254)}),
            "anonymous_identity has 254",
        ),
        (
            json!({"method": "tls"}),
            "client_cert: missing; tls needs it",
        ),
        (own(&cert, ""), "private_key: missing"),
        (
            json!({"method": "peap", "private_key": key}),
            "client_cert: missing; it goes with",
        ),
        (own(&cert, "nonsense"), "private_key: has no private key"),
        (own(&cert, &encrypted), "private_key: is encrypted"),
        (own("nonsense", &key), "client_cert: has no certificate"),
        (
            own(&cert, &pem("stranger.key")),
            "private_key: is not the key of client_cert",
        ),
    ]);
}

/// A frame of EAP to the client.
fn request(identifier: u8, data: &[u8]) -> Vec<u8> {
    let length = (4 + data.len() as u16).to_be_bytes();
    let header = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0xff, 1, 0x88, 0x8e, 2, 0];
    let eap = [1, identifier, length[0], length[1]];
    [&header[..], &length, &eap, data].concat()
}

/// A client that was asked for its name and told to begin.
fn begun(method: &str, number: u8) -> Emulation {
    let mut emulation = emulation();
    add(&mut emulation, 1, &init(method, "mschapv2")).unwrap();
    for (identifier, data) in [(1, &[1][..]), (2, &[number, 0x20])] {
        emulation.handle_frame(0, 1, &request(identifier, data));
    }
    while emulation.poll_transmit().is_some() {}
    emulation
}

#[test]
fn endless_fragments_end() {
    // A message that never ends, an acknowledgment that never ends, and one byte at a time.
    for (first, next) in [
        (&[0xc0, 0, 1, 0, 0, 22][..], &[0x40, 3][..]),
        (&[0], &[0]),
        (&[0xc0, 0, 0, 0xff, 0xff, 22], &[0x40, 3]),
    ] {
        let mut emulation = begun("peap", PEAP);
        let mut answers = 0;
        for round in 0..5_000 {
            let data = if round == 0 { first } else { next };
            let data = [&[PEAP], data].concat();
            emulation.handle_frame(0, 1, &request((3 + round % 250) as u8, &data));
            while emulation.poll_transmit().is_some() {
                answers += 1;
            }
        }
        assert!(answers <= 1_000, "{answers}");
        assert_eq!(counters(&mut emulation, 1)["tlsErrEndless"], 1);
        let told = info(&mut emulation, 1);
        assert_eq!(told["reason"], "more requests than a login needs");
        // It begins anew when it is told to.
        emulation.handle_frame(0, 1, &request(9, &[1]));
        emulation.handle_frame(0, 1, &request(10, &[PEAP, 0x20]));
        assert_eq!(
            std::iter::from_fn(|| emulation.poll_transmit().map(|_| ())).count(),
            2
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn whatever_a_server_sends_has_at_most_one_answer_and_lets_nobody_in(
        number in prop::sample::select(vec![TLS, TTLS, PEAP]),
        requests in prop::collection::vec(
            (any::<u8>(), prop::sample::select(vec![0u8, 0x20, 0x40, 0x80, 0xc0]),
             prop::collection::vec(any::<u8>(), 0..60), any::<bool>()),
            0..60,
        ),
    ) {
        let method = METHODS.iter().find(|(_, _, it)| *it == number).unwrap().0;
        let mut emulation = begun(method, number);
        for (identifier, flags, mut data, plausible) in requests {
            if plausible && data.len() > 5 {
                // A record of TLS, or a length that holds.
                let length = (data.len() - 5) as u8;
                data[..5].copy_from_slice(&[22, 3, 3, 0, length]);
            }
            if flags & 0x80 != 0 && data.len() > 4 {
                let length = data.len() as u32 - 4;
                data[..4].copy_from_slice(&length.to_be_bytes());
            }
            let data = [&[number, flags][..], &data].concat();
            emulation.handle_frame(0, 1, &request(identifier, &data));
            let mut answers = 0;
            while emulation.poll_transmit().is_some() {
                answers += 1;
            }
            prop_assert!(answers <= 1);
            let mut success = request(identifier, &[]);
            success[18] = 3;
            emulation.handle_frame(0, 1, &success);
            prop_assert_ne!(&info(&mut emulation, 1)["state"], &json!(4));
        }
    }
}
