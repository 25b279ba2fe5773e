//! How many instructions a request of HTTP costs its client and its server, and how long each takes.
//!
//! Two engines, one with the client port and one with the server port, rings between, virtual time. The
//! first argument is how many connections are measured, the second what they do:
//!
//! | word | a connection |
//! |---|---|
//! | `http` | 100 requests, one after another |
//! | `new` | one request |
//! | `pipeline` | 100 requests, ten at once |
//! | `values` | 100 requests of which path, a header and a body have values |
//! | `https` | one request over TLS 1.3, with a full handshake |
//! | `resumed` | the same with a session that is resumed |
//! | `https-keep` | 100 requests over TLS |
//!
//! Instructions of the client are counted with
//!
//!     cargo build --release -p allosaur-l7 --example http_speed
//!     valgrind --tool=callgrind --toggle-collect='*client_turn*' target/release/examples/http_speed 1000 http
//!
//! and those of the server with `*server_turn*`; divide by all requests, which are printed. Those of a
//! handshake differ from run to run, for its keys do; Valgrind knows none of the processor's instructions
//! for it, so that times tell more of them.

#[path = "../../engine/examples/loopback/mod.rs"]
#[allow(dead_code)]
mod loopback;

use std::sync::Arc;
use std::time::Instant;

use allosaur_engine::app::{ApplicationFactory, BufferIndex, BufferSpec, Buffers};
use allosaur_engine::encapsulation::Encapsulation;
use allosaur_engine::stateful::StatefulEngine;
use allosaur_engine::template::{CompiledProfile, Layout, ProgramIndex, Tunable};
use allosaur_engine::time::{MICROSECOND, Nanos, SECOND};
use allosaur_engine::transmit::PortIndex;
use allosaur_l7::http::{
    HttpClientSettings, HttpClients, HttpRequest, HttpRequestBody, HttpRoute, HttpServerSettings,
    HttpServers, HttpValue, HttpValueSource,
};
use allosaur_l7::protocol::OverTcp;
use allosaur_l7::tls::{ClientTls, FlowTls, Identity, KeyKind, ServerTls, TlsFlows, TlsVersion};
use loopback::{RUN, Rings, engine_of, profile, start};

/// Connections that begin in a second, and requests of those that have many.
const RATE_CPS: f64 = 50_000.0;
const REQUESTS: u32 = 100;
const AT_ONCE: u32 = 10;
const TURN: Nanos = 20 * MICROSECOND;
const BODY_BYTES: u64 = 1_000;
/// Connections before the first that is measured.
const WARM: u64 = 500;
/// The year 2027.
const UNIX_TIME: Nanos = 1_800_000_000 * SECOND;
/// Parts of a run that are timed by themselves, for who shares a machine with others.
const PARTS: u64 = 20;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let connections = arguments.next().and_then(|text| text.parse().ok());
    let connections: u64 = connections.unwrap_or(10_000);
    let word = arguments.next().unwrap_or_else(|| "http".to_owned());
    let mut spec = profile(BODY_BYTES, RATE_CPS);
    for tunables in [&mut spec.client, &mut spec.server] {
        tunables.set(Tunable::NoDelay, 1);
    }
    spec.buffers.push(BufferSpec {
        base: Vec::new(),
        bytes: Some(BODY_BYTES),
        fill: b"b".to_vec(),
    });
    let body = BufferIndex(spec.buffers.len() as u32 - 1);
    let compiled = CompiledProfile::compile(&spec, Layout::SMALLEST).expect("it is right");
    let [client, server] = applications(&word, body, compiled.buffers());
    let compiled = compiled
        .with_application(ProgramIndex(0), client)
        .with_application(ProgramIndex(1), server);
    let mut world = World {
        engines: [[true, false], [false, true]]
            .map(|has| engine_of(Encapsulation::Ethernet, has).with_unix_offset(UNIX_TIME)),
        rings: Rings::new(TURN),
        now: SECOND,
        each: [0; 2],
    };
    for engine in &mut world.engines {
        start(engine, compiled.clone(), &mut world.rings);
    }
    world.run(WARM);
    let before = world.requests(&compiled);
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..PARTS {
        let begin = (world.requests(&compiled), world.each);
        world.run((connections / PARTS).max(1));
        let requests = (world.requests(&compiled) - begin.0).max(1);
        for (side, times) in times.iter_mut().enumerate() {
            times.push((world.each[side] - begin.1[side]) / u128::from(requests));
        }
    }
    let requests = world.requests(&compiled) - before;
    let [client, server] = times.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2]
    });
    println!("{requests} requests: client {client} ns each, server {server} ns each");
    println!("{} requests in all", world.requests(&compiled));
    assert_eq!(world.failures(&compiled), 0, "requests failed");
}

/// What the clients and the servers of a word do.
fn applications(
    word: &str,
    body: BufferIndex,
    buffers: &Arc<Buffers>,
) -> [Arc<dyn ApplicationFactory>; 2] {
    let is_once = matches!(word, "new" | "https" | "resumed");
    let clients = HttpClientSettings {
        host: Some("site.example".to_owned()),
        requests: vec![request(word)],
        requests_per_connection: if is_once { 1 } else { REQUESTS },
        pipeline: if word == "pipeline" { AT_ONCE } else { 1 },
        values: if word == "values" {
            values()
        } else {
            Vec::new()
        },
        ..HttpClientSettings::default()
    };
    let servers = HttpServerSettings {
        routes: vec![HttpRoute {
            path: "*".to_owned(),
            status: 200,
            body: Some(body),
            ..HttpRoute::default()
        }],
        requests_per_connection: 0,
    };
    let clients = HttpClients::new(&clients, Arc::clone(buffers)).expect("they are right");
    let servers = HttpServers::new(&servers, Arc::clone(buffers)).expect("they are right");
    if !matches!(word, "https" | "resumed" | "https-keep") {
        return [Arc::new(OverTcp(clients)), Arc::new(OverTcp(servers))];
    }
    let common = FlowTls {
        version: Some(TlsVersion::V1_3),
        ..FlowTls::default()
    };
    let identity = Identity::made(KeyKind::P256, "site.example");
    let client = ClientTls {
        common: common.clone(),
        resume: if word == "resumed" { 1.0 } else { 0.0 },
        ..ClientTls::default()
    };
    let server = ServerTls {
        common,
        identity: identity.expect("there are random numbers"),
        authorities: None,
        resume: word == "resumed",
    };
    [
        Arc::new(TlsFlows::client(&client, clients).expect("it is right")),
        Arc::new(TlsFlows::server(&server, servers).expect("it is right")),
    ]
}

fn request(word: &str) -> HttpRequest {
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let plain = HttpRequest {
        method: "GET".to_owned(),
        path: "/index.html".to_owned(),
        headers: vec![
            header(
                "User-Agent",
                "Mozilla/5.0 (X11; Linux x86_64) Firefox/128.0",
            ),
            header("Accept", "*/*"),
        ],
        ..HttpRequest::default()
    };
    if word != "values" {
        return plain;
    }
    HttpRequest {
        method: "POST".to_owned(),
        path: "/items/${item}".to_owned(),
        headers: vec![header("Cookie", "session=${session}")],
        body: HttpRequestBody::Text("{\"item\": ${item}}".to_owned()),
        ..plain
    }
}

fn values() -> Vec<HttpValue> {
    let value = |name: &str, source, is_of_connection| HttpValue {
        name: name.to_owned(),
        source,
        is_of_connection,
    };
    let counter = HttpValueSource::Counter {
        first: 1,
        last: 1_000_000,
        step: 1,
        digits: 0,
    };
    let token = HttpValueSource::Token { length: 24 };
    vec![value("item", counter, false), value("session", token, true)]
}

/// A client and a server.
struct World {
    engines: [StatefulEngine; 2],
    rings: Rings,
    now: Nanos,
    /// How long each took, in nanoseconds.
    each: [u128; 2],
}

impl World {
    /// Runs until so many more connections are over.
    fn run(&mut self, connections: u64) {
        let before = self.closed();
        while self.closed() - before < connections {
            self.now += TURN;
            let begin = Instant::now();
            client_turn(&mut self.engines[0], &mut self.rings, self.now);
            let between = Instant::now();
            server_turn(&mut self.engines[1], &mut self.rings, self.now);
            self.each[0] += (between - begin).as_nanos();
            self.each[1] += between.elapsed().as_nanos();
        }
    }

    /// Connections that servers have closed.
    fn closed(&self) -> u64 {
        let groups = self.engines[1].groups(RUN).expect("it runs");
        groups[0][1].flows.tcp.closed
    }

    fn requests(&self, compiled: &CompiledProfile) -> u64 {
        self.counted(compiled, 0, |row| row.name == "http_responses")
    }

    fn failures(&self, compiled: &CompiledProfile) -> u64 {
        let failures = |side| self.counted(compiled, side, |row| row.is_error);
        failures(0) + failures(1)
    }

    fn counted(
        &self,
        compiled: &CompiledProfile,
        side: usize,
        is_it: impl Fn(&allosaur_engine::app::AppRow) -> bool,
    ) -> u64 {
        let groups = self.engines[side].groups(RUN).expect("it runs");
        let rows = compiled.application_rows();
        let counts = &groups[0][side].flows.rows;
        let counted = rows.iter().zip(counts.iter()).filter(|(row, _)| is_it(row));
        counted.map(|(_, count)| *count).sum()
    }
}

#[inline(never)]
fn client_turn(engine: &mut StatefulEngine, rings: &mut Rings, now: Nanos) {
    turn(engine, 0, rings, now);
}

#[inline(never)]
fn server_turn(engine: &mut StatefulEngine, rings: &mut Rings, now: Nanos) {
    turn(engine, 1, rings, now);
}

/// Receives what the other port sent, and sends.
fn turn(engine: &mut StatefulEngine, port: PortIndex, rings: &mut Rings, now: Nanos) {
    let mut arrived = rings.take(usize::from(1 - port));
    let all = (0..arrived.len).map(|place| arrived.frame(place));
    engine.fetch_asked(port, all);
    for place in 0..arrived.len {
        engine.handle_frame(now, port, arrived.frame(place), rings);
    }
    arrived.len = 0;
    rings.spare = arrived;
    engine.poll_transmit(now, false, rings);
}
