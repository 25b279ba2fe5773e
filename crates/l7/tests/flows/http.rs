//! HTTP between our clients and our servers, over TCP and over TLS.

use std::sync::Arc;

use allosaur_engine::app::{ApplicationFactory, BufferIndex, BufferSpec, Buffers};
use allosaur_engine::template::{CompiledProfile, Layout, ProfileSpec};
use allosaur_engine::time::{MILLISECOND, SECOND};
use allosaur_l7::http::{
    Expected, HttpClientSettings, HttpClients, HttpRequest, HttpRequestBody, HttpRoute,
    HttpServerSettings, HttpServers, HttpValue, HttpValueSource,
};
use allosaur_l7::protocol::{AppProtocol, OverTcp};
use allosaur_l7::tls::{ClientTls, TlsFlows};

use super::world::{self, World};
use super::{CLIENT, FLOWS, Outcome, SERVER, profile, run_in, server_tls};

/// Bytes of the bodies by their place: none at all, one segment, many.
const BODIES: [u64; 3] = [1, 1_000, 100_000];
/// The SHA-256 of 1,000 times `b`.
const HASH_OF_1000: &str = "f6f118e120e52be0bd0cfdf2794cd12c07686cc871235ac2f11459378e6d235b";

fn spec() -> ProfileSpec {
    let mut spec = profile();
    spec.buffers.extend(BODIES.map(|bytes| BufferSpec {
        base: Vec::new(),
        bytes: Some(bytes),
        fill: vec![b'b'],
    }));
    spec
}

fn body(place: u32) -> Option<BufferIndex> {
    // Behind those of the programs that stand in the profile.
    Some(BufferIndex(2 + place))
}

fn get(path: &str) -> HttpRequest {
    HttpRequest {
        method: "GET".to_owned(),
        path: path.to_owned(),
        ..HttpRequest::default()
    }
}

fn clients(requests: Vec<HttpRequest>) -> HttpClientSettings {
    HttpClientSettings {
        requests_per_connection: requests.len() as u32,
        requests,
        ..HttpClientSettings::default()
    }
}

fn route(path: &str, status: u16, body: Option<BufferIndex>) -> HttpRoute {
    HttpRoute {
        path: path.to_owned(),
        status,
        body,
        ..HttpRoute::default()
    }
}

fn servers() -> HttpServerSettings {
    let chunked = |place, chunk_bytes| HttpRoute {
        chunk_bytes,
        ..route("/chunked", 200, body(place))
    };
    HttpServerSettings {
        routes: vec![
            route("/one", 200, body(0)),
            route("/small", 200, body(1)),
            route("/large", 200, body(2)),
            chunked(2, 777),
            route("/none", 204, None),
            route("/moved/*", 301, None),
            route("/broken", 500, body(1)),
            HttpRoute {
                delay: 300 * MILLISECOND,
                ..route("/slow", 200, body(1))
            },
            route("/upload", 201, None),
        ],
        requests_per_connection: 0,
    }
}

fn factory<P: AppProtocol>(protocol: P) -> Arc<dyn ApplicationFactory> {
    Arc::new(OverTcp(protocol))
}

fn make_clients(settings: &HttpClientSettings, buffers: &Arc<Buffers>) -> HttpClients {
    HttpClients::new(settings, Arc::clone(buffers)).expect("they are right")
}

fn make_servers(settings: &HttpServerSettings, buffers: &Arc<Buffers>) -> HttpServers {
    HttpServers::new(settings, Arc::clone(buffers)).expect("they are right")
}

fn compiled(
    client: &HttpClientSettings,
    server: &HttpServerSettings,
    is_tls: bool,
) -> CompiledProfile {
    let compiled = CompiledProfile::compile(&spec(), Layout::SMALLEST).expect("it is right");
    let buffers = Arc::clone(compiled.buffers());
    let (client, server) = (
        make_clients(client, &buffers),
        make_servers(server, &buffers),
    );
    let [client, server] = if is_tls {
        let tls = ClientTls::default();
        let client = TlsFlows::client(&tls, client).expect("it is right");
        let server = TlsFlows::server(&server_tls(), server).expect("it is right");
        let made: [Arc<dyn ApplicationFactory>; 2] = [Arc::new(client), Arc::new(server)];
        made
    } else {
        [factory(client), factory(server)]
    };
    compiled
        .with_application(CLIENT, client)
        .with_application(SERVER, server)
}

fn run(client: &HttpClientSettings, server: &HttpServerSettings, is_tls: bool) -> Outcome {
    run_in(World::new(1_000), compiled(client, server, is_tls))
}

impl Outcome {
    fn failures(&self) -> u64 {
        let rows = self.compiled.application_rows();
        let counted = self.world.sides().each_ref().map(|side| {
            let rows = rows.iter().zip(&*side.flows.rows);
            let failures = rows.filter(|(row, _)| row.is_error);
            failures.map(|(_, count)| *count).sum::<u64>()
        });
        counted.iter().sum()
    }
}

#[test]
fn requests_are_answered_by_path_on_one_connection() {
    let paths = [
        "/one",
        "/small",
        "/large?x=1",
        "/chunked",
        "/none",
        "/moved/a",
    ];
    let mut requests: Vec<_> = paths.into_iter().map(get).collect();
    requests.push(HttpRequest {
        method: "HEAD".to_owned(),
        ..get("/large")
    });
    requests.push(HttpRequest {
        method: "POST".to_owned(),
        body: HttpRequestBody::Buffer(BufferIndex(4)),
        ..get("/upload")
    });
    let content = 1 + 1_000 + 2 * 100_000;
    for is_tls in [false, true] {
        let told = run(&clients(requests.clone()), &servers(), is_tls);
        assert_eq!(told.completed(), [FLOWS; 2], "TLS {is_tls}");
        assert_eq!(told.failures(), 0, "TLS {is_tls}");
        assert_eq!(told.rows("http_requests", "GET"), [6 * FLOWS; 2]);
        assert_eq!(told.rows("http_requests", "HEAD"), [FLOWS; 2]);
        assert_eq!(told.rows("http_requests", "POST"), [FLOWS; 2]);
        assert_eq!(told.rows("http_responses", "200"), [5 * FLOWS; 2]);
        assert_eq!(told.rows("http_responses", "204"), [FLOWS; 2]);
        assert_eq!(told.rows("http_responses", "301"), [FLOWS; 2]);
        assert_eq!(told.rows("http_responses", "201"), [FLOWS; 2]);
        let received = told.rows("http_body_bytes", "received");
        assert_eq!(received, [content * FLOWS, 100_000 * FLOWS]);
        let sent = told.rows("http_body_bytes", "sent");
        assert_eq!(sent, [100_000 * FLOWS, content * FLOWS]);
        let times = told.world.engine.times(world::RUN).expect("it runs");
        assert_eq!(times.response.total(), 8 * FLOWS);
        assert_eq!(times.response_begin.total(), 8 * FLOWS);
        assert_eq!(told.world.sides()[0].flows.outcomes.http_2xx, 7 * FLOWS);
    }
}

#[test]
fn messages_survive_links_that_lose_and_reorder() {
    let requests = ["/large", "/chunked", "/one"].map(get).to_vec();
    for is_tls in [false, true] {
        let mut world = World::new(1_000);
        world.delay = 2 * MILLISECOND;
        (world.lost_ppm, world.doubled_ppm, world.late_ppm) = (20_000, 20_000, 100_000);
        world.seed_link(7);
        let told = run_in(
            world,
            compiled(&clients(requests.clone()), &servers(), is_tls),
        );
        assert_eq!(told.completed(), [FLOWS; 2], "TLS {is_tls}");
        assert_eq!(told.failures(), 0, "TLS {is_tls}");
        assert_eq!(told.rows("http_responses", "200"), [3 * FLOWS; 2]);
    }
}

#[test]
fn what_is_not_expected_is_a_failure_by_name() {
    let expecting = |expected: Expected, path: &str| HttpRequest {
        expected,
        ..get(path)
    };
    let statuses = |statuses: &[u16]| Expected {
        statuses: statuses.to_vec(),
        ..Expected::default()
    };
    let bytes = |bytes| Expected {
        body_bytes: Some(bytes),
        ..Expected::default()
    };
    let hash = |first| Expected {
        body_sha256: Some([first; 32]),
        ..Expected::default()
    };
    for (request, reason) in [
        (get("/nothing"), "status"),
        (get("/broken"), "status"),
        (expecting(statuses(&[200]), "/none"), "status"),
        (expecting(bytes(999), "/small"), "body_length"),
        (expecting(hash(7), "/small"), "body_hash"),
    ] {
        let told = run(&clients(vec![request.clone()]), &servers(), false);
        assert_eq!(told.row(0, "http_failures", reason), FLOWS, "{request:?}");
        assert_eq!(told.failures(), FLOWS, "{request:?}");
        assert_eq!(told.completed(), [FLOWS; 2], "{request:?}");
    }
    let right = Expected {
        statuses: vec![500],
        body_bytes: Some(1_000),
        body_sha256: Some(hash_of_1000()),
    };
    let told = run(
        &clients(vec![expecting(right, "/broken")]),
        &servers(),
        false,
    );
    assert_eq!(told.failures(), 0);
}

fn hash_of_1000() -> [u8; 32] {
    let digits = HASH_OF_1000.as_bytes();
    std::array::from_fn(|at| {
        let pair = std::str::from_utf8(&digits[2 * at..2 * at + 2]).expect("digits");
        u8::from_str_radix(pair, 16).expect("digits")
    })
}

#[test]
fn an_answer_that_is_late_is_a_timeout() {
    let settings = HttpClientSettings {
        timeout: Some(100 * MILLISECOND),
        ..clients(vec![get("/slow")])
    };
    for is_tls in [false, true] {
        let told = run(&settings, &servers(), is_tls);
        assert_eq!(told.row(0, "http_failures", "timeout"), FLOWS);
    }
    let patient = HttpClientSettings {
        timeout: Some(SECOND),
        ..settings
    };
    let told = run(&patient, &servers(), false);
    assert_eq!((told.failures(), told.completed()), (0, [FLOWS; 2]));
}

fn upload(text: &str) -> HttpRequest {
    HttpRequest {
        method: "POST".to_owned(),
        body: HttpRequestBody::Text(text.to_owned()),
        expected: Expected {
            statuses: vec![201],
            ..Expected::default()
        },
        ..get("/upload")
    }
}

fn counter(name: &str, first: u64, last: u64) -> HttpValue {
    HttpValue {
        name: name.to_owned(),
        source: HttpValueSource::Counter {
            first,
            last,
            step: 1,
            digits: 0,
        },
        is_of_connection: false,
    }
}

#[test]
fn requests_that_are_sent_at_once_are_judged_in_their_order() {
    let constant = HttpRequest {
        body: HttpRequestBody::Buffer(BufferIndex(4)),
        ..upload("")
    };
    let of_bytes = |path: &str, bytes| HttpRequest {
        expected: Expected {
            body_bytes: Some(bytes),
            ..Expected::default()
        },
        ..get(path)
    };
    let requests = vec![
        of_bytes("/one", 1),
        of_bytes("/small", 1_000),
        constant,
        of_bytes("/chunked", 100_000),
        upload("text"),
        of_bytes("/slow", 1_000),
        of_bytes("/none", 0),
    ];
    for (is_tls, pipeline) in [(false, 2), (false, 7), (true, 3), (true, 100)] {
        let settings = HttpClientSettings {
            pipeline,
            ..clients(requests.clone())
        };
        let told = run(&settings, &servers(), is_tls);
        assert_eq!(told.completed(), [FLOWS; 2], "{pipeline}, TLS {is_tls}");
        assert_eq!(told.failures(), 0, "{pipeline}, TLS {is_tls}");
        assert_eq!(told.rows("http_requests", "GET"), [5 * FLOWS; 2]);
        assert_eq!(told.rows("http_responses", "201"), [2 * FLOWS; 2]);
        let times = told.world.engine.times(world::RUN).expect("it runs");
        assert_eq!(times.response.total(), 7 * FLOWS);
        assert_eq!(times.response_begin.total(), 7 * FLOWS);
    }
}

#[test]
fn what_was_sent_with_a_request_that_fails_fails_with_it() {
    let settings = HttpClientSettings {
        pipeline: 3,
        requests_per_connection: 5,
        ..clients(vec![get("/small")])
    };
    let closing = HttpServerSettings {
        requests_per_connection: 2,
        ..servers()
    };
    let told = run(&settings, &closing, false);
    assert_eq!(told.rows("http_responses", "200"), [2 * FLOWS; 2]);
    assert_eq!(told.row(0, "http_failures", "closed"), FLOWS);
    let unsent = told.row(0, "http_requests_unsent", "server_closed");
    assert_eq!(unsent, 2 * FLOWS);
    let late = HttpClientSettings {
        timeout: Some(100 * MILLISECOND),
        requests: vec![get("/small"), get("/slow")],
        ..settings
    };
    let told = run(&late, &servers(), false);
    assert_eq!(told.row(0, "http_responses", "200"), FLOWS);
    assert_eq!(told.row(0, "http_failures", "timeout"), 2 * FLOWS);
}

#[test]
fn values_stand_in_paths_headers_and_bodies() {
    let texts = ["one", "small"].map(str::to_owned).to_vec();
    let of_connection = HttpValue {
        is_of_connection: true,
        ..counter("user", 1, FLOWS)
    };
    let path = HttpValue {
        name: "path".to_owned(),
        source: HttpValueSource::List {
            texts,
            is_random: false,
        },
        is_of_connection: false,
    };
    let asks = HttpRequest {
        headers: vec![("Cookie".to_owned(), "user=${user}; $$=${n}".to_owned())],
        ..get("/${path}?n=${n}")
    };
    for is_tls in [false, true] {
        let settings = HttpClientSettings {
            values: vec![of_connection.clone(), path.clone(), counter("n", 98, 101)],
            pipeline: 4,
            ..clients(vec![
                asks.clone(),
                asks.clone(),
                upload("${n}${n}"),
                upload(""),
            ])
        };
        let told = run(&settings, &servers(), is_tls);
        assert_eq!((told.failures(), told.completed()), (0, [FLOWS; 2]));
        assert_eq!(told.rows("http_responses", "201"), [2 * FLOWS; 2]);
        // One byte and 1,000, in turns: 20 of each.
        let received = told.row(0, "http_body_bytes", "received");
        assert_eq!(received, 1_001 * FLOWS);
        // Three of four numbers are drawn by a connection, and one is used for the body: of 20 in a row of
        // four, so five of each, with 2 to 3 digits twice.
        let sent = told.rows("http_body_bytes", "sent");
        assert_eq!(sent[0], told.row(1, "http_body_bytes", "received"));
        assert_eq!(sent[0], 5 * 2 * (2 + 2 + 3 + 3));
    }
}

#[test]
fn a_server_may_close_between_requests() {
    let settings = HttpClientSettings {
        requests_per_connection: 5,
        think: 10 * MILLISECOND,
        ..clients(vec![get("/small")])
    };
    let server = HttpServerSettings {
        requests_per_connection: 2,
        ..servers()
    };
    let told = run(&settings, &server, false);
    assert_eq!(told.rows("http_responses", "200"), [2 * FLOWS; 2]);
    assert_eq!(
        told.row(0, "http_requests_unsent", "server_closed"),
        3 * FLOWS
    );
    assert_eq!((told.failures(), told.completed()), (0, [FLOWS; 2]));
}

#[test]
fn what_cannot_be_is_refused_by_the_name_of_its_field() {
    let compiled = CompiledProfile::compile(&spec(), Layout::SMALLEST).expect("it is right");
    let client = |settings: HttpClientSettings| {
        let made = HttpClients::new(&settings, Arc::clone(compiled.buffers()));
        made.expect_err("it is wrong").field
    };
    let server = |routes: Vec<HttpRoute>| {
        let settings = HttpServerSettings {
            routes,
            requests_per_connection: 0,
        };
        let made = HttpServers::new(&settings, Arc::clone(compiled.buffers()));
        made.expect_err("it is wrong").field
    };
    let header = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
    let with = |name: &str, value: &str| HttpRequest {
        headers: header(name, value),
        ..get("/")
    };
    let method = HttpRequest {
        method: "GET IT".to_owned(),
        ..get("/")
    };
    for (requests, field) in [
        (vec![], "requests"),
        (vec![get("/"); 1_001], "requests"),
        (vec![get("/"), get("a b")], "requests[1].path"),
        (vec![method], "requests[0].method"),
        (vec![with("a:b", "c")], "requests[0].headers.a:b"),
        (vec![with("a", "b\r\nc")], "requests[0].headers.a"),
        (
            vec![with("Content-Length", "7")],
            "requests[0].headers.Content-Length",
        ),
        (vec![with("a", &"b".repeat(9_000))], "requests[0].headers"),
    ] {
        assert_eq!(client(clients(requests)), field);
    }
    let none = HttpClientSettings {
        requests_per_connection: 0,
        ..clients(vec![get("/")])
    };
    assert_eq!(client(none), "requests_per_connection");
    let host = HttpClientSettings {
        host: Some("a/b".to_owned()),
        ..clients(vec![get("/")])
    };
    assert_eq!(client(host), "host");
    assert_eq!(server(vec![]), "routes");
    assert_eq!(server(vec![route("/", 700, None)]), "routes[0].status");
    assert_eq!(server(vec![route("/", 204, body(0))]), "routes[0].body");
}

#[test]
fn values_that_cannot_be_are_refused_by_the_name_of_their_field() {
    let compiled = CompiledProfile::compile(&spec(), Layout::SMALLEST).expect("it is right");
    let client = |settings: HttpClientSettings| {
        let made = HttpClients::new(&settings, Arc::clone(compiled.buffers()));
        made.expect_err("it is wrong").field
    };
    let with_header = |name: &str, value: &str| HttpRequest {
        headers: vec![(name.to_owned(), value.to_owned())],
        ..get("/")
    };
    let many = HttpClientSettings {
        pipeline: 129,
        ..clients(vec![get("/")])
    };
    assert_eq!(client(many), "pipeline");
    let spaced = HttpValue {
        source: HttpValueSource::List {
            texts: vec!["a b".to_owned()],
            is_random: true,
        },
        ..counter("spaced", 0, 1)
    };
    for (request, field) in [
        (get("/${other}"), "requests[0].path"),
        (get("/$n"), "requests[0].path"),
        (get("/${n"), "requests[0].path"),
        (get("/${spaced}"), "requests[0].path"),
        (get("${n}/"), "requests[0].path"),
        (with_header("a", "${other}"), "requests[0].headers.a"),
        (upload("${other}"), "requests[0].body"),
        (upload(&"${n}".repeat(101)), "requests[0]"),
        (upload(&"x".repeat(70_000)), "requests[0].body"),
    ] {
        let settings = HttpClientSettings {
            values: vec![counter("n", 0, 1), spaced.clone()],
            ..clients(vec![request])
        };
        assert_eq!(client(settings), field);
    }
}
