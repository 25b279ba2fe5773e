//! Where the packets of captures go: real files and real sockets on this machine.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use allosaur_engine::capture::{Captured, Origin};
use allosaur_packet::file::read;
use allosaur_server::rx_taps::{Endpoint, Format, PacketSink};
use allosaur_server::threads::endpoint::{open_capture, open_wire};
use allosaur_server::threads::waker::Waker;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

/// Long enough for a machine that is busy with something else.
const PATIENCE_MS: i32 = 20_000;

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("a folder for the test");
    folder
}

fn packet(number: u8) -> Captured {
    Captured {
        at: u64::from(number) * 1000,
        port: 0,
        origin: Origin::Received,
        index: number.into(),
        wire_bytes: 100,
        bytes: vec![number; 60].into(),
    }
}

/// Waits until all packets have reached the endpoint.
fn settle(sink: &dyn PacketSink) {
    while sink.pending() > 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn check(file: &[u8], packets: u8, epoch_ns: u64) {
    let capture = read(file).expect("a whole file");
    let mut expected = 1..=packets;
    for record in &capture.records {
        let number = expected.next().expect("no packet too many");
        assert_eq!(record.data, [number; 60]);
        assert_eq!(record.original_len, 100);
        assert_eq!(record.time_ns, epoch_ns + u64::from(number) * 1000);
    }
    assert_eq!(expected.next(), None, "packets are missing");
}

#[test]
fn packets_reach_files_of_both_forms() {
    for format in [Format::Pcap, Format::PcapNg] {
        let path = folder("files").join(format!("capture.{}", format.name()));
        let endpoint = Endpoint {
            text: format!("file://{}", path.display()),
            format,
        };
        let epoch_ns = 1_790_000_000_000_000_000;
        let mut sink = open_capture(&endpoint, 60, epoch_ns).expect("a file");
        for number in 1..=50 {
            assert!(sink.push(packet(number)));
        }
        settle(&*sink);
        let file = std::fs::read(&path).expect("the file is there");
        check(&file, 50, epoch_ns);
    }
}

#[test]
fn an_endpoint_that_cannot_be_opened_says_why() {
    let open = |text: &str| {
        let endpoint = Endpoint {
            text: text.to_owned(),
            format: Format::Pcap,
        };
        open_capture(&endpoint, 0, 0).expect_err("no endpoint")
    };
    let folder = folder("none");
    let is_folder = open(&format!("file://{}", folder.display()));
    assert!(is_folder.contains("cannot be written"), "{is_folder}");
    let missing = open(&format!("file://{}/not/there.pcap", folder.display()));
    assert!(missing.contains("No such file"), "{missing}");
    let relative = open("file://capture.pcap");
    assert!(relative.contains("absolute path"), "{relative}");
    let odd = open("nonsense");
    assert!(
        odd.starts_with("the socket 'nonsense' cannot be connected"),
        "{odd}"
    );
}

#[test]
fn a_pipe_that_nobody_reads_is_refused_at_once() {
    let path = folder("pipes").join("fifo");
    let _ = std::fs::remove_file(&path);
    mkfifo(&path, Mode::S_IRWXU).expect("a file system with pipes");
    let endpoint = Endpoint {
        text: format!("file://{}", path.display()),
        format: Format::Pcap,
    };
    let refused = open_capture(&endpoint, 60, 0).expect_err("nobody reads it");
    assert!(refused.contains("start the reader first"), "{refused}");
    let mut reader = OpenOptions::new()
        .read(true)
        .custom_flags(OFlag::O_NONBLOCK.bits())
        .open(&path)
        .expect("it is there");
    fcntl(&reader, FcntlArg::F_SETFL(OFlag::empty())).expect("a flag");
    let mut sink = open_capture(&endpoint, 60, 0).expect("somebody reads it");
    // More than a pipe holds: the writer waits for the reader, and nothing is lost.
    let file = std::thread::spawn(move || {
        let mut file = Vec::new();
        reader.read_to_end(&mut file).expect("a file");
        file
    });
    for _ in 0..20 {
        for number in 1..=250 {
            assert!(sink.push(packet(number)));
        }
    }
    settle(&*sink);
    drop(sink);
    let file = file.join().expect("it was read");
    assert_eq!(read(&file).expect("a whole file").records.len(), 20 * 250);
}

fn socket(name: &str) -> (zmq::Socket, String) {
    let socket = zmq::Context::new().socket(zmq::PAIR).expect("a socket");
    let address = format!("ipc://{}", folder("sockets").join(name).display());
    socket.bind(&address).expect("an address for the test");
    socket.set_rcvtimeo(PATIENCE_MS).expect("an option");
    (socket, address)
}

#[test]
fn packets_reach_a_socket_header_first() {
    let (socket, text) = socket("capture");
    let endpoint = Endpoint {
        text,
        format: Format::Pcap,
    };
    let mut sink = open_capture(&endpoint, 60, 0).expect("a socket listens");
    for number in 1..=9 {
        sink.push(packet(number));
    }
    settle(&*sink);
    drop(sink);
    let whole = 24 + 9 * (16 + 60);
    let mut file = Vec::new();
    while file.len() < whole {
        file.extend(socket.recv_bytes(0).expect("more of the file"));
    }
    check(&file, 9, 0);
}

#[test]
fn a_wire_carries_frames_both_ways() {
    let (socket, address) = socket("wire");
    let mut wire =
        open_wire(&address, Waker::new().expect("a file descriptor")).expect("a socket listens");
    for number in 0..100 {
        assert!(wire.push(&[number; 60]));
    }
    for number in 0..100 {
        assert_eq!(socket.recv_bytes(0).expect("a frame"), [number; 60]);
    }
    for frame in [
        vec![1; 13],
        vec![2; 14],
        vec![3; 9238],
        vec![4; 9239],
        vec![5; 60],
    ] {
        socket.send(frame, 0).expect("somebody listens");
    }
    let mut lengths = Vec::new();
    while lengths.len() < 3 {
        match wire.receive() {
            Some(frame) => lengths.push(frame.len()),
            None => std::thread::park_timeout(Duration::from_millis(10)),
        }
    }
    assert_eq!(lengths, [14, 9238, 60]);
}
