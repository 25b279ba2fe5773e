//! HTTP as clients find it who are slow, stuck, too many or out of their minds; control is played.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use allosaur_server::counters::Counters;
use allosaur_server::http::{HEADER_BYTES_MAX, HEADERS_MAX, HttpListener, Limits};
use allosaur_server::metrics::Catalog;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// A deadline only ends what is broken.
const DEADLINE: Duration = Duration::from_secs(60);
const GET: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
const HEALTH: &[u8] = b"GET /healthz HTTP/1.0\r\n\r\n";

/// A server whose control says what it is told to, or nothing.
struct Server {
    address: SocketAddr,
    answers: Arc<AtomicBool>,
    end: Arc<AtomicBool>,
    control: Option<JoinHandle<()>>,
}

impl Server {
    fn start(limits: Limits, problems: &[&str]) -> Server {
        let listener = HttpListener::bind(([127, 0, 0, 1], 0).into()).expect("a free port");
        let address = listener.address().expect("it listens");
        let (notify, notified) = channel();
        let wake = move || {
            let _ = notify.send(());
        };
        let http = listener.serve(Counters::new(2, 1), limits, wake);
        let http = http.expect("there is a thread");
        let (answers, end) = (
            Arc::new(AtomicBool::new(true)),
            Arc::<AtomicBool>::default(),
        );
        let (is_answering, is_over) = (Arc::clone(&answers), Arc::clone(&end));
        let catalog = Arc::new(catalog(problems));
        let control = thread::spawn(move || {
            let mut unanswered = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                wait(&notified);
                while let Some(request) = http.poll_request() {
                    match is_answering.load(Ordering::Relaxed) {
                        true => drop(request.send(Arc::clone(&catalog))),
                        false => unanswered.push(request),
                    }
                }
            }
        });
        Server {
            address,
            answers,
            end,
            control: Some(control),
        }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(DEADLINE)).expect("an option");
        stream.set_write_timeout(Some(DEADLINE)).expect("an option");
        stream
    }

    fn ask(&self, request: &[u8]) -> String {
        let mut stream = self.connect();
        // It may answer, and close, before it has heard all.
        let _ = stream.write_all(request);
        read_all(&mut stream)
    }

    fn is_well(&self) -> bool {
        self.ask(HEALTH).ends_with("\r\n\r\nok\n")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        let ended = self.control.take().map(JoinHandle::join);
        assert!(ended.is_none_or(|ended| ended.is_ok()), "control panicked");
    }
}

fn wait(notified: &Receiver<()>) {
    let _ = notified.recv_timeout(Duration::from_millis(10));
}

fn catalog(problems: &[&str]) -> Catalog {
    Catalog {
        version: "v1".to_owned(),
        uptime_s: 1.5,
        problems: problems.iter().map(|text| (*text).to_owned()).collect(),
        ..Catalog::default()
    }
}

/// All that comes until the server closes.
fn read_all(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
        Err(error) => panic!("the server does not close: {error}"),
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn status(response: &str) -> &str {
    response.split(' ').nth(1).unwrap_or("none")
}

fn limits() -> Limits {
    Limits {
        connection: DEADLINE,
        ..Limits::default()
    }
}

#[test]
fn what_is_asked_for_decides_the_answer() {
    let server = Server::start(limits(), &[]);
    for (request, code) in [
        ("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "200"),
        ("GET /metrics?x=%20 HTTP/1.0\r\n\r\n", "200"),
        ("GET http://x/healthz HTTP/1.1\r\nHost: x\r\n\r\n", "200"),
        ("GET / HTTP/1.1\r\nHost: x\r\n\r\n", "200"),
        ("GET /metrics/ HTTP/1.1\r\nHost: x\r\n\r\n", "404"),
        ("GET /../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", "404"),
        (
            "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\nx",
            "405",
        ),
        ("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", "405"),
        ("nonsense\r\n\r\n", "400"),
    ] {
        let response = server.ask(request.as_bytes());
        assert_eq!(status(&response), code, "{request:?}: {response}");
    }
    let response = server.ask(GET);
    assert!(response.contains("content-type: application/openmetrics-text; version=1.0.0"));
    assert!(response.ends_with("# EOF\n") && response.contains("allosaur_uptime_seconds 1.5"));
    let response = server.ask(b"HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(
        status(&response) == "200" && response.ends_with("\r\n\r\n"),
        "{response}"
    );
}

#[test]
fn requests_that_are_too_large_are_refused() {
    let server = Server::start(limits(), &[]);
    let long = format!(
        "GET / HTTP/1.1\r\nX: {}\r\n\r\n",
        "x".repeat(2 * HEADER_BYTES_MAX)
    );
    let many = format!(
        "GET / HTTP/1.1\r\n{}\r\n",
        "X: y\r\n".repeat(HEADERS_MAX + 1)
    );
    let most = format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(HEADERS_MAX));
    for (request, code) in [(long, "431"), (many, "431"), (most, "200")] {
        assert_eq!(status(&server.ask(request.as_bytes())), code, "{request}");
    }
}

#[test]
fn who_says_nothing_or_half_of_it_or_does_not_read_is_ended() {
    let short = Limits {
        connection: Duration::from_millis(50),
        ..Limits::default()
    };
    let server = Server::start(short, &[]);
    for half in [&b""[..], b"G", &GET[..GET.len() - 1]] {
        let mut stream = server.connect();
        stream.write_all(half).expect("connected");
        assert_eq!(read_all(&mut stream), "", "{half:?}");
    }
}

#[test]
fn clients_that_are_stuck_keep_nobody_out() {
    let server = Server::start(limits(), &[]);
    let mut stuck: Vec<TcpStream> = (0..3 * limits().connections)
        .map(|_| server.connect())
        .collect();
    for stream in &mut stuck {
        // Those that were ended already notice here, or when they read.
        let _ = stream.write_all(&GET[..9]);
    }
    assert!(server.is_well());
    assert_eq!(read_all(&mut stuck[0]), "", "the oldest made room");
}

#[test]
fn a_control_thread_that_does_not_answer_is_told_of() {
    let short = Limits {
        control: Duration::from_millis(20),
        ..limits()
    };
    let server = Server::start(short, &[]);
    server.answers.store(false, Ordering::Relaxed);
    for request in [GET, HEALTH] {
        let response = server.ask(request);
        assert_eq!(status(&response), "503");
        assert!(
            response.contains("control thread does not answer"),
            "{response}"
        );
    }
}

#[test]
fn what_is_wrong_is_in_the_health() {
    let server = Server::start(limits(), &["data thread 1 has not turned for 2 s"]);
    let response = server.ask(HEALTH);
    assert_eq!(status(&response), "503");
    assert!(
        response.ends_with("\r\n\r\ndata thread 1 has not turned for 2 s\n"),
        "{response}"
    );
    assert_eq!(
        status(&server.ask(GET)),
        "200",
        "figures are wanted most now"
    );
}

/// Pieces of requests, right and wrong, in any order; and any bytes.
fn odd_request() -> impl Strategy<Value = Vec<u8>> {
    let pieces = prop::sample::select(vec![
        &b"GET "[..],
        b"HEAD ",
        b"POST ",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"/metrics",
        b"/healthz",
        b"/%00%ff",
        b"*",
        b"http://",
        b" HTTP/1.1",
        b" HTTP/1.0",
        b" HTTP/9.9",
        b"\r\n",
        b"\n",
        b"\r",
        b"Host: x\r\n",
        b"Accept: text/plain\r\n",
        b"Accept: \xff\r\n",
        b"Connection: upgrade\r\n",
        b"Content-Length: 5\r\n",
        b"Content-Length: -1\r\n",
        b"Content-Length: 99999999999999999999\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: x\r\n",
        b"Expect: 100-continue\r\n",
        b"5\r\nhello\r\n0\r\n\r\n",
        b"FFFFFFFFFFFFFFFF\r\n",
        b": \r\n",
        b"\0",
        b"\x16\x03\x01\x02\x00",
        b"\r\n\r\n",
    ]);
    let pieces = pieces.prop_map(<[u8]>::to_vec);
    let any = prop::collection::vec(any::<u8>(), 0..40);
    let mixed = prop::collection::vec(prop_oneof![9 => pieces, 1 => any], 0..12);
    mixed.prop_map(|pieces| pieces.concat())
}

#[test]
fn no_request_does_harm() {
    let server = Server::start(limits(), &[]);
    let config = Config {
        cases: 300,
        ..Config::default()
    };
    let ran = TestRunner::new(config).run(&odd_request(), |request| {
        let mut stream = server.connect();
        let _ = stream.write_all(&request);
        // Nothing more will come: half a request is over, too.
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let response = read_all(&mut stream);
        let code = status(&response);
        let codes = [
            "none", "200", "400", "404", "405", "414", "417", "431", "501", "505",
        ];
        prop_assert!(response.is_empty() || codes.contains(&code), "{response}");
        Ok(())
    });
    ran.expect("every request is answered, or its connection is closed");
    assert!(server.is_well());
}
