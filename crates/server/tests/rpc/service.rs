//! Whole servers in this process: start, traffic, end.

use std::io::Write;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use crate::common::vxlan_packet;
use allosaur_server::cli::{CommandLine, Subcommands};
use allosaur_server::config::Settings;
use allosaur_server::threads::control;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Parser;
use serde_json::{Value, json};

/// A server on a thread, and a client of it.
struct Server {
    thread: JoinHandle<Result<(), control::ServiceError>>,
    requests: zmq::Socket,
    api_handle: Value,
}

/// Gives the `ready` line to whoever waits for it.
struct Announce(Sender<String>);

impl Write for Announce {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(bytes).into_owned();
        self.0.send(text).map_err(std::io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn options(line: &str) -> Settings {
    let line = format!("allosaur-server serve --rpc-port 0 --pub-port 0 {line}");
    match CommandLine::parse_from(line.split_whitespace()).command {
        Subcommands::Serve(options) => options.settings(None),
        other => panic!("not serve: {other:?}"),
    }
}

fn ready(lines: &Receiver<String>) -> String {
    let mut line = String::new();
    while !line.ends_with('\n') {
        line += &lines.recv().expect("the server says that it is ready");
    }
    line
}

impl Server {
    fn start(line: &str) -> Server {
        let options = options(line);
        let (sender, lines) = channel();
        let serve = move || control::serve(&options, &mut Announce(sender));
        let thread = std::thread::spawn(serve);
        let line = ready(&lines);
        let address = line
            .split_whitespace()
            .find_map(|word| word.strip_prefix("rpc="));
        let requests = zmq::Context::new().socket(zmq::REQ).expect("a socket");
        requests.set_rcvtimeo(20_000).expect("an option of REQ");
        requests
            .connect(address.expect("the line has the address"))
            .expect("it listens");
        let mut server = Server {
            thread,
            requests,
            api_handle: Value::Null,
        };
        let version = json!({"name": "STL", "major": 5, "minor": 1});
        server.api_handle = server.call("api_sync_v2", version)["api_h"].take();
        server
    }

    fn call(&self, method: &str, mut params: Value) -> Value {
        params["api_h"] = self.api_handle.clone();
        let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.requests
            .send(request.to_string().as_bytes(), 0)
            .expect("connected");
        let reply = self.requests.recv_bytes(0).expect("a reply in time");
        let mut reply: Value = serde_json::from_slice(&reply).expect("a reply is JSON");
        assert!(reply.get("error").is_none(), "{method}: {reply}");
        reply["result"].take()
    }

    fn acquire(&self, port: u8) -> Value {
        let user = json!({"port_id": port, "user": "me", "session_id": 1, "force": false});
        self.call("acquire", user)
    }

    /// A burst, at line rate or near.
    fn send_burst(&self, port: u8, handler: &Value, packets: u64) {
        let flow_stats = json!({"enabled": false});
        self.send_burst_of(port, handler, packets, &[0x5a; 60], flow_stats);
    }

    fn send_burst_of(
        &self,
        port: u8,
        handler: &Value,
        packets: u64,
        packet: &[u8],
        flow_stats: Value,
    ) {
        let packet = STANDARD.encode(packet);
        let stream = json!({
            "enabled": true, "self_start": true, "isg": 0.0, "next_stream_id": -1,
            "flags": 0, "action_count": 0, "random_seed": 0,
            "mode": {"type": "single_burst", "total_pkts": packets,
                     "rate": {"type": "pps", "value": 1_000_000}},
            "packet": {"binary": packet, "meta": ""},
            "vm": {"instructions": []}, "flow_stats": flow_stats,
        });
        let add = json!({"port_id": port, "handler": handler, "stream_id": 1, "stream": stream});
        self.call("add_stream", add);
        self.start_traffic(port, handler, false);
    }

    fn start_traffic(&self, port: u8, handler: &Value, force: bool) {
        let mul = json!({"type": "raw", "op": "abs", "value": 1.0});
        let start = json!({"port_id": port, "handler": handler, "mul": mul, "duration": -1.0,
                           "force": force});
        self.call("start_traffic", start);
    }

    /// Asks until the state is `state`; the server's own bounds keep this finite.
    fn wait_for_state(&self, port: u8, state: &str) {
        let asked = json!({"port_id": port});
        while self.call("get_port_status", asked.clone())["state"] != state {
            std::thread::yield_now();
        }
    }

    fn counter(&self, port: u8, name: &str) -> u64 {
        let stats = self.call("get_port_stats", json!({"port_id": port}));
        stats[name]
            .as_u64()
            .unwrap_or_else(|| panic!("{name} in {stats}"))
    }

    fn shut_down(self) {
        self.call("shutdown", json!({"user": "me", "force": true}));
        let ended = self
            .thread
            .join()
            .expect("the control thread does not panic");
        ended.expect("the server ends without an error");
    }
}

#[test]
fn two_servers_live_in_one_process_and_end_when_asked() {
    let (one, two) = (Server::start("--cores 2"), Server::start("--ports memory"));
    let ports = |server: &Server| server.call("get_system_info", json!({}))["port_count"].clone();
    assert_eq!((ports(&one), ports(&two)), (json!(2), json!(1)));
    one.shut_down();
    two.call("ping", json!({}));
    two.shut_down();
}

#[test]
fn a_burst_over_several_cores_arrives_whole_and_is_counted() {
    for line in [
        "--cores 3",
        "--poll busy",
        "--cores 2 --ports memory:delay=2ms,memory",
    ] {
        let server = Server::start(line);
        let handler = server.acquire(0);
        server.send_burst(0, &handler, 20_000);
        server.wait_for_state(0, "STREAMS");
        assert_eq!(server.counter(0, "opackets"), 20_000, "{line}");
        while server.counter(1, "ipackets") < 20_000 {
            std::thread::yield_now();
        }
        assert_eq!(server.counter(1, "ibytes"), 20_000 * 64, "{line}");
        assert_eq!(server.counter(0, "missed_packets"), 0, "{line}");
        server.shut_down();
    }
}

#[test]
fn what_the_link_loses_is_counted_as_lost() {
    let server = Server::start("--ports memory:loss=100%,memory");
    let handler = server.acquire(0);
    server.send_burst(0, &handler, 500);
    while server.counter(1, "rx_lost_packets") < 500 {
        std::thread::yield_now();
    }
    assert_eq!(server.counter(1, "ipackets"), 0);
    server.shut_down();
}

#[test]
fn what_is_sent_into_a_link_that_is_down_is_lost_and_counted() {
    let server = Server::start("--ports memory,memory --cores 2");
    let handler = server.acquire(0);
    let switch = |port: u8, up: bool| {
        let attr = json!({"link_status": {"up": up}});
        server.call("set_port_attr", json!({"port_id": port, "attr": attr}));
    };
    server.send_burst(0, &handler, 300);
    while server.counter(1, "ipackets") < 300 {
        std::thread::yield_now();
    }
    switch(1, false);
    server.wait_for_state(0, "STREAMS");
    server.start_traffic(0, &handler, true);
    while server.counter(1, "rx_lost_packets") < 300 {
        std::thread::yield_now();
    }
    server.wait_for_state(0, "STREAMS");
    switch(0, true);
    server.start_traffic(0, &handler, false);
    while server.counter(1, "ipackets") < 600 {
        std::thread::yield_now();
    }
    let counters = ["ipackets", "rx_lost_packets"].map(|name| server.counter(1, name));
    assert_eq!(counters, [600, 300]);
    server.shut_down();
}

#[test]
fn what_arrives_within_vxlan_is_counted_on_the_ports_that_know_its_udp_port() {
    let server = Server::start("--ports memory,memory");
    let handler = server.acquire(0);
    let know = |port: u8| {
        let attr = json!({"vxlan_fs": [8472]});
        server.call("set_port_attr", json!({"port_id": port, "attr": attr}));
    };
    know(0);
    let counted = json!({"enabled": true, "stream_id": 7, "vxlan": true, "ieee_1588": false,
                         "rule_type": "stats"});
    server.send_burst_of(0, &handler, 200, &vxlan_packet(8472), counted);
    while server.counter(1, "ipackets") < 200 {
        std::thread::yield_now();
    }
    let received = || {
        let stats = server.call("get_pgid_stats", json!({"pgids": [7]}));
        stats["flow_stats"]["7"]["rp"]["1"].clone()
    };
    assert_eq!(received(), 0);
    know(1);
    server.wait_for_state(0, "STREAMS");
    server.start_traffic(0, &handler, false);
    while server.counter(1, "ipackets") < 400 || received() == 0 {
        std::thread::yield_now();
    }
    assert_eq!(received(), 200);
    server.shut_down();
}

#[test]
fn a_sink_takes_everything_and_gives_nothing() {
    let server = Server::start("--ports memory");
    let handler = server.acquire(0);
    server.send_burst(0, &handler, 5_000);
    server.wait_for_state(0, "STREAMS");
    assert_eq!(
        (server.counter(0, "opackets"), server.counter(0, "ipackets")),
        (5_000, 0)
    );
    server.shut_down();
}

#[test]
fn a_port_that_is_taken_is_an_error_with_a_remedy() {
    let holder = zmq::Context::new().socket(zmq::REP).expect("a socket");
    holder.bind("tcp://127.0.0.1:*").expect("a free port");
    let endpoint = holder.get_last_endpoint().expect("bound").expect("text");
    let port: u16 = endpoint
        .rsplit(':')
        .next()
        .and_then(|p| p.parse().ok())
        .expect("a number");
    let options = Settings {
        rpc_port: port,
        ..options("")
    };
    let error = control::serve(&options, &mut Vec::new()).expect_err("the port is taken");
    let error = error.to_string();
    assert!(
        error.contains(&port.to_string()) && error.contains("--rpc-port"),
        "{error}"
    );
}
