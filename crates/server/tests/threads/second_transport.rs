//! A second way to reach control, beside ZeroMQ: JSON with its length before it, over a Unix socket.
//! The worked page `docs/how-to-add/transport.md` shows it.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use allosaur_server::cli::{CommandLine, Subcommands};
use allosaur_server::threads::control::{ExtraTransports, serve_also};
use allosaur_server::threads::waker::Notify;
use allosaur_server::transport::{Envelope, Message, Transport};
use clap::Parser;
use serde_json::{Value, json};

type Streams = Arc<Mutex<HashMap<u64, UnixStream>>>;

/// The transport: a thread a connection reads, and tells control.
#[derive(Debug)]
struct LengthPrefixed {
    arrived: Receiver<(u64, Vec<u8>)>,
    streams: Streams,
    notify: Notify,
}

impl LengthPrefixed {
    fn bind(path: &Path) -> LengthPrefixed {
        let listener = UnixListener::bind(path).expect("the path is free");
        let notify = Notify::new().expect("a file descriptor");
        let (sender, arrived) = channel();
        let streams = Streams::default();
        let (all, bell) = (Arc::clone(&streams), notify.clone());
        thread::spawn(move || {
            for (number, stream) in (0..).zip(listener.incoming().map_while(Result::ok)) {
                let writer = stream.try_clone().expect("a file descriptor");
                writer.set_nonblocking(false).expect("an option");
                all.lock().expect("no panic").insert(number, writer);
                let (sender, notify) = (sender.clone(), bell.clone());
                thread::spawn(move || read_all(number, stream, &sender, &notify));
            }
        });
        LengthPrefixed {
            arrived,
            streams,
            notify,
        }
    }

    fn send(&self, number: u64, text: &[u8]) {
        let mut streams = self.streams.lock().expect("no panic");
        if let Some(stream) = streams.get_mut(&number) {
            if write_text(stream, text).is_err() {
                streams.remove(&number);
            }
        }
    }
}

fn read_all(number: u64, mut stream: UnixStream, sender: &Sender<(u64, Vec<u8>)>, notify: &Notify) {
    while let Ok(text) = read_text(&mut stream) {
        if sender.send((number, text)).is_err() {
            return;
        }
        notify.notify();
    }
}

fn read_text(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut text = vec![0; u32::from_be_bytes(length) as usize];
    stream.read_exact(&mut text)?;
    Ok(text)
}

fn write_text(stream: &mut UnixStream, text: &[u8]) -> io::Result<()> {
    stream.write_all(&(text.len() as u32).to_be_bytes())?;
    stream.write_all(text)
}

impl Transport for LengthPrefixed {
    fn receive(&mut self) -> Option<Message> {
        let arrived = self.arrived.try_recv().or_else(|_| {
            // Silent first, then one look more: what comes after that is told again.
            self.notify.drain();
            self.arrived.try_recv()
        });
        let (number, frame) = arrived.ok()?;
        let from = Envelope {
            peer: number.to_be_bytes().to_vec(),
            ..Envelope::default()
        };
        Some(Message {
            from,
            frame,
            left_out: 0,
        })
    }

    fn reply(&mut self, to: Envelope, text: Vec<u8>) {
        let number: [u8; 8] = to.peer.try_into().expect("we made it");
        self.send(u64::from_be_bytes(number), &text);
    }

    fn publish(&mut self, text: &[u8]) {
        let all: Vec<u64> = self
            .streams
            .lock()
            .expect("no panic")
            .keys()
            .copied()
            .collect();
        for number in all {
            self.send(number, text);
        }
    }

    fn descriptor(&self) -> RawFd {
        self.notify.file().as_raw_fd()
    }

    fn is_ready(&self) -> bool {
        false
    }
}

/// Either kind of client.
enum Client {
    Zmq(zmq::Socket),
    Unix(UnixStream),
}

impl Client {
    fn send(&mut self, method: &str, params: &Value) {
        let request = json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params});
        let text = request.to_string().into_bytes();
        match self {
            Client::Zmq(socket) => socket.send(text, 0).expect("connected"),
            Client::Unix(stream) => write_text(stream, &text).expect("connected"),
        }
    }

    /// The reply; what is published in between is left out.
    fn receive(&mut self) -> Value {
        loop {
            let text = match self {
                Client::Zmq(socket) => socket.recv_bytes(0).expect("a reply"),
                Client::Unix(stream) => read_text(stream).expect("a reply"),
            };
            let reply: Value = serde_json::from_slice(&text).expect("a reply is JSON");
            if reply.get("jsonrpc").is_some() {
                return reply;
            }
        }
    }

    fn ok(&mut self, method: &str, params: Value) -> Value {
        self.send(method, &params);
        let mut reply = self.receive();
        assert!(reply.get("error").is_none(), "{method}: {reply}");
        reply["result"].take()
    }

    fn sync(&mut self) -> Value {
        let version = json!({"name": "STL", "major": 5, "minor": 1});
        self.ok("api_sync_v2", version)["api_h"].take()
    }
}

struct Server {
    folder: PathBuf,
    zmq: String,
    thread: thread::JoinHandle<()>,
}

impl Server {
    fn start(name: &str) -> Server {
        let folder = std::env::temp_dir().join(format!("allosaur-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let line = "allosaur-server serve --rpc-port 0 --pub-port 0 --emu-port 0 --cores 1";
        let mut settings = match CommandLine::parse_from(line.split_whitespace()).command {
            Subcommands::Serve(options) => options.settings(None),
            other => panic!("not serve: {other:?}"),
        };
        settings.captures_folder = Some(folder.clone());
        let path = folder.join("control.sock");
        let emulation_path = folder.join("emulation.sock");
        let (sender, lines) = channel();
        let thread = thread::spawn(move || {
            let others = ExtraTransports {
                control: vec![Box::new(LengthPrefixed::bind(&path))],
                emulation: vec![Box::new(LengthPrefixed::bind(&emulation_path))],
            };
            serve_also(&settings, others, &mut Lines(sender)).expect("it serves");
        });
        let line: String = lines.recv().expect("it is ready");
        let zmq = line
            .split_whitespace()
            .find_map(|word| word.strip_prefix("rpc="));
        Server {
            folder,
            zmq: zmq.expect("the line has the address").to_owned(),
            thread,
        }
    }

    fn zmq(&self) -> Client {
        let socket = zmq::Context::new().socket(zmq::REQ).expect("a socket");
        socket.set_rcvtimeo(60_000).expect("an option");
        socket.connect(&self.zmq).expect("it listens");
        Client::Zmq(socket)
    }

    fn unix(&self) -> Client {
        self.unix_to("control.sock")
    }

    fn unix_to(&self, name: &str) -> Client {
        let stream = UnixStream::connect(self.folder.join(name)).expect("it listens");
        Client::Unix(stream)
    }

    fn end(self, mut client: Client) {
        let api_h = client.sync();
        client.ok(
            "shutdown",
            json!({"api_h": api_h, "user": "me", "force": true}),
        );
        self.thread.join().expect("it ends");
        std::fs::remove_dir_all(&self.folder).expect("it is ours");
    }
}

struct Lines(Sender<String>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes).into_owned();
        // The line comes in two parts, and only the first is waited for.
        let _ = self.0.send(text);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn acquire(api_h: &Value, port: u8) -> Value {
    json!({"api_h": api_h, "port_id": port, "user": "me", "session_id": 1, "force": false})
}

#[test]
fn both_ways_lead_to_the_same_server_at_once() {
    let server = Server::start("ways");
    let (mut zmq, mut unix) = (server.zmq(), server.unix());
    let api_h = zmq.sync();
    assert_eq!(unix.sync(), api_h);
    let handler = unix.ok("acquire", acquire(&api_h, 0));
    let owner = zmq.ok("get_owner", json!({"api_h": api_h, "port_id": 0}));
    assert_eq!(owner["owner"], "me");
    // Both have a request under way, and each gets its own reply.
    zmq.send("get_port_status", &json!({"api_h": api_h, "port_id": 1}));
    unix.send(
        "release",
        &json!({"api_h": api_h, "port_id": 0, "handler": handler}),
    );
    assert_eq!(unix.receive()["id"], "release");
    assert_eq!(zmq.receive()["id"], "get_port_status");
    // Who vanishes, or says nonsense, does no harm.
    drop(unix);
    let mut unix = server.unix();
    if let Client::Unix(stream) = &mut unix {
        write_text(stream, b"nonsense").expect("connected");
    }
    assert_eq!(unix.receive()["error"]["code"], -32700);
    zmq.ok("ping", json!({}));
    server.end(unix);
}

#[test]
fn emulated_clients_are_reached_by_more_than_one_way() {
    let server = Server::start("emulation-ways");
    let mut clients = server.unix_to("emulation.sock");
    let version = json!({"name": "EMU", "major": 1, "minor": 1});
    let api_h = clients.ok("api_sync_v2", version)["api_h"].take();
    let added = json!({"api_h": api_h, "tunnels": [{"vport": 0}]});
    assert_eq!(clients.ok("ctx_add", added), true);
    if let Client::Unix(stream) = &mut clients {
        write_text(stream, b"nonsense").expect("connected");
    }
    assert_eq!(clients.receive()["error"]["code"], -32700);
    let mut other = server.unix_to("emulation.sock");
    let all = json!({"api_h": api_h, "reset": true, "count": 9});
    let found = other.ok("ctx_iter", all);
    assert_eq!(found["data"].as_array().map(Vec::len), Some(1));
    let client = server.unix();
    server.end(client);
}

/// What asks for a capture file of a gigabyte, which is read and found to be none.
fn large_file(server: &Server, api_h: &Value, handler: &Value) -> Value {
    let path = server.folder.join("large.pcap");
    let file = std::fs::File::create(&path).expect("a file");
    // It has no bytes on the disk, and a gigabyte to read.
    file.set_len(1 << 30).expect("a file system with holes");
    json!({
        "api_h": api_h, "port_id": 0, "handler": handler, "pcap_filename": path, "ipg_usec": -1,
        "speedup": 1.0, "count": 1, "duration": -1, "is_dual": false, "slave_handler": "",
        "min_ipg_usec": 0,
    })
}

fn is_read(client: &mut Client, api_h: &Value) -> bool {
    let status = client.ok("get_port_status", json!({"api_h": api_h, "port_id": 0}));
    status["state"] == "PCAP_TX"
}

fn expect_no_capture(client: &mut Client) {
    let problem = client.receive()["error"]["specific_err"].to_string();
    // It was read, and is none: where it lies is not what is wrong with it.
    assert!(
        problem.contains("large.pcap") && !problem.contains("--captures-folder"),
        "{problem}"
    );
}

#[test]
fn a_large_file_that_one_client_asks_for_holds_up_nobody_else() {
    let server = Server::start("large");
    let (mut slow, mut quick) = (server.zmq(), server.unix());
    let api_h = slow.sync();
    let handler = slow.ok("acquire", acquire(&api_h, 0));
    let push = large_file(&server, &api_h, &handler);
    // The machine may be so busy that the file is read before another request arrives.
    let is_held_up = (0..10).all(|_| {
        slow.send("push_remote", &push);
        let is_held_up = !is_read(&mut quick, &api_h);
        expect_no_capture(&mut slow);
        is_held_up
    });
    assert!(!is_held_up, "nobody was answered while the file was read");
    server.end(quick);
}

#[test]
fn counters_go_on_while_a_large_file_is_read() {
    let server = Server::start("counting");
    let (mut slow, mut quick) = (server.zmq(), server.unix());
    let api_h = slow.sync();
    let handler = slow.ok("acquire", acquire(&api_h, 0));
    let push = large_file(&server, &api_h, &handler);
    let sender = quick.ok("acquire", acquire(&api_h, 1));
    let stream = json!({
        "enabled": true, "self_start": true, "isg": 0.0, "next_stream_id": -1, "flags": 0,
        "action_count": 0, "random_seed": 0, "flow_stats": {"enabled": false},
        "mode": {"type": "continuous", "rate": {"type": "pps", "value": 50_000}},
        "packet": {"binary": "A".repeat(80), "meta": ""}, "vm": {"instructions": []},
    });
    let mine = json!({"api_h": api_h, "port_id": 1, "handler": sender});
    let with = |more: Value| {
        let mut params = mine.clone();
        let more = more.as_object().expect("an object").clone();
        params.as_object_mut().expect("an object").extend(more);
        params
    };
    quick.ok(
        "add_stream",
        with(json!({"stream_id": 1, "stream": stream})),
    );
    let start = json!({"mul": {"type": "raw", "op": "abs", "value": 1.0}, "duration": -1.0,
                       "force": false});
    quick.ok("start_traffic", with(start));
    let sent = |quick: &mut Client| {
        let stats = quick.ok("get_port_stats", json!({"api_h": api_h, "port_id": 1}));
        stats["opackets"].as_u64().expect("a number")
    };
    let goes_on = (0..10).any(|_| {
        slow.send("push_remote", &push);
        let mut counts = Vec::new();
        while is_read(&mut quick, &api_h) {
            counts.push(sent(&mut quick));
        }
        expect_no_capture(&mut slow);
        // The last count may be of after.
        counts.pop();
        counts.windows(2).any(|two| two[0] < two[1])
    });
    assert!(goes_on, "no counter grew while the file was read");
    server.end(quick);
}
