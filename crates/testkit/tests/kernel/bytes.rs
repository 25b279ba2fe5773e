//! Applications over bytes against the kernel: an echo at either end, and a client that fetches a file
//! of 100 MB from nginx over a bad link and compares its hash.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use allosaur_engine::app::{
    AppCore, AppFlowInfo, AppFlows, Application, ApplicationContext, ApplicationFactory, CoreInfo,
    FlowEvent, Output, ProgramCommand as Step, Transport,
};
use allosaur_engine::template::{
    CompiledProfile, Layout, PoolSpec, ProfileSpec, ProgramIndex, Side, Tunable,
};
use allosaur_testkit::applications::{Askers, Echoes, Habits, Tally, byte_at};

use crate::core::Core;
use crate::host::{Host, Kernel, Place};
use crate::link::Faults;
use crate::needs_taps;
use crate::profiles::carry;
use crate::socket;

const CLIENT: ProgramIndex = ProgramIndex(0);
const SERVER: ProgramIndex = ProgramIndex(1);
const FLOWS: u32 = 10;
/// The server where it is ours, and where it is the kernel.
const OUR_SERVER: u32 = 0x3000_0001;
const KERNELS_SERVER: u32 = 0x0a09_0002;

const BAD: Faults = Faults {
    delay: Duration::from_millis(2),
    lost: 10,
    doubled: 10,
    late: 30,
    late_by: Duration::from_millis(3),
    marked: 0,
};

/// A profile in the place of whose programs applications run.
fn profile(server: u32, flows: u32) -> ProfileSpec {
    let wait = Step::Receive {
        bytes: 1,
        clear: false,
    };
    let pools = [
        PoolSpec::new(Side::Client, 0x1000_0001, 0x1000_00fa),
        PoolSpec::new(Side::Server, server, server),
    ];
    let programs = [vec![wait], vec![wait]];
    let mut profile = ProfileSpec::single(Transport::Stream, programs, Vec::new(), pools, 100.0);
    profile.templates[0].client.limit = Some(flows);
    profile
}

fn compiled(profile: &ProfileSpec) -> CompiledProfile {
    CompiledProfile::compile(profile, Layout::SMALLEST).expect("the profile is right")
}

/// The kernel's end, with ways to all addresses of ours.
fn kernel(place: Place) -> Host {
    let host = Host::make(place, &Kernel::default()).expect("it could be made before");
    let ours = place.other().address(false).ip();
    for network in ["16.0.0.0/8", "48.0.0.0/8"] {
        host.namespace
            .ip(&format!("route add {network} via {ours}"));
    }
    host
}

fn port_80(address: u32) -> SocketAddr {
    SocketAddr::new(Ipv4Addr::from(address).into(), 80)
}

#[test]
fn clients_that_compare_talk_to_an_echo_of_the_kernel() {
    needs_taps!();
    let host = kernel(Place::Server);
    let listen = || socket::listen(port_80(KERNELS_SERVER), &Kernel::default());
    let listener = host.namespace.within(listen);
    thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            thread::spawn(move || io::copy(&mut &stream, &mut &stream));
        }
    });
    let tally = Arc::new(Tally::default());
    let askers = Askers {
        habits: Habits {
            bytes: 200_000,
            gulp: 0,
            pause: 0,
        },
        tally: Arc::clone(&tally),
    };
    let profile = compiled(&profile(KERNELS_SERVER, FLOWS));
    let profile = profile.with_application(CLIENT, Arc::new(askers));
    let mut core = Core::with_profile(Place::Client, profile);
    let is_done = || tally.ends.lock().expect("no panic").len() >= 2 * FLOWS as usize;
    carry((&mut core, Place::Client), &host, BAD, is_done);
    let (right, wrong) = (&tally.right, &tally.wrong);
    assert_eq!(right.load(Ordering::Relaxed), u64::from(FLOWS) * 200_000);
    assert_eq!(wrong.load(Ordering::Relaxed), 0);
}

#[test]
fn clients_of_the_kernel_talk_to_an_echo_of_ours() {
    needs_taps!();
    const BYTES: u64 = 200_000;
    let host = kernel(Place::Client);
    let profile = compiled(&profile(OUR_SERVER, FLOWS));
    let profile = profile.with_application(SERVER, Arc::new(Echoes));
    let mut core = Core::with_profile(Place::Server, profile);
    let done = Arc::new(AtomicU64::new(0));
    let right = Arc::new(AtomicU64::new(0));
    for _ in 0..FLOWS {
        let (namespace, done, right) = (host.namespace.clone(), done.clone(), right.clone());
        thread::spawn(move || {
            let is_right = namespace.within(|| trade(port_80(OUR_SERVER), BYTES));
            right.fetch_add(u64::from(is_right), Ordering::Relaxed);
            done.fetch_add(1, Ordering::Relaxed);
        });
    }
    let is_done = || done.load(Ordering::Relaxed) == u64::from(FLOWS);
    carry((&mut core, Place::Server), &host, BAD, is_done);
    assert_eq!(right.load(Ordering::Relaxed), u64::from(FLOWS));
}

/// Says a text on a socket, and whether it came back.
fn trade(to: SocketAddr, bytes: u64) -> bool {
    let Ok(stream) = TcpStream::connect(to) else {
        return false;
    };
    let text: Vec<u8> = (0..bytes).map(byte_at).collect();
    let mut back = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            let said = (&stream).write_all(&text);
            said.and_then(|()| stream.shutdown(std::net::Shutdown::Write))
        });
        (&stream).read_to_end(&mut back).is_ok()
    }) && back == text
}

/// FNV-1a of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fnv(u64);

impl Fnv {
    const EMPTY: Fnv = Fnv(0xcbf2_9ce4_8422_2325);

    fn and(self, bytes: &[u8]) -> Fnv {
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        Fnv(bytes.iter().fold(self.0, step))
    }
}

/// What a client got: how many bytes of the body, and their hash.
type Fetched = Arc<Mutex<Vec<(u64, Fnv)>>>;

/// Asks for a file, and hashes what comes behind the headers of the response.
#[derive(Debug)]
struct Fetch {
    headers: Vec<u8>,
    is_body: bool,
    bytes: u64,
    hash: Fnv,
    is_peer_closed: bool,
    has_asked: bool,
    fetched: Fetched,
}

impl Application for Fetch {
    type Shared = Fetched;

    fn start(shared: &mut Fetched, _: &mut ApplicationContext<'_>, _: &AppFlowInfo) -> Fetch {
        Fetch {
            headers: Vec::new(),
            is_body: false,
            bytes: 0,
            hash: Fnv::EMPTY,
            is_peer_closed: false,
            has_asked: false,
            fetched: Arc::clone(shared),
        }
    }

    fn handle_event(&mut self, _: &mut Fetched, _: &mut ApplicationContext<'_>, event: FlowEvent) {
        self.is_peer_closed |= event == FlowEvent::PeerClosed;
    }

    fn handle_data(
        &mut self,
        _: &mut Fetched,
        _: &mut ApplicationContext<'_>,
        data: &[u8],
    ) -> usize {
        if self.is_body {
            self.bytes += data.len() as u64;
            self.hash = self.hash.and(data);
            return data.len();
        }
        let known = self.headers.len();
        self.headers.extend(data);
        let end = b"\r\n\r\n";
        match self.headers.windows(end.len()).position(|text| text == end) {
            None => data.len(),
            Some(at) => {
                assert!(self.headers.starts_with(b"HTTP/1.1 200"));
                self.is_body = true;
                // The rest comes again.
                at + end.len() - known
            }
        }
    }

    fn poll_output(
        &mut self,
        _: &mut Fetched,
        _: &mut ApplicationContext<'_>,
        _: usize,
        out: &mut Vec<u8>,
    ) -> Option<Output> {
        if !std::mem::replace(&mut self.has_asked, true) {
            let request = b"GET /file HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
            out.extend_from_slice(request);
            return Some(Output::Data);
        }
        if !std::mem::take(&mut self.is_peer_closed) {
            return None;
        }
        let mut fetched = self.fetched.lock().expect("no panic");
        fetched.push((self.bytes, self.hash));
        Some(Output::Close)
    }
}

#[derive(Debug)]
struct Fetches(Fetched);

impl ApplicationFactory for Fetches {
    fn core(&self, _: &CoreInfo) -> Box<dyn AppCore> {
        Box::new(AppFlows::<Fetch>::new(Arc::clone(&self.0)))
    }
}

/// nginx with a folder of its own; both are gone when this is dropped.
struct Nginx {
    process: Child,
    folder: PathBuf,
}

impl Nginx {
    fn start(host: &Host, file: &[u8]) -> Nginx {
        let name = format!("allosaur-nginx-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).expect("a folder for tests");
        fs::write(folder.join("file"), file).expect("room for the file");
        let address = Ipv4Addr::from(KERNELS_SERVER);
        let at = folder.display();
        let settings = format!(
            "daemon off; master_process off; pid {at}/pid; error_log {at}/error.log;
            events {{}}
            http {{
                access_log off;
                client_body_temp_path {at}/1; proxy_temp_path {at}/2; fastcgi_temp_path {at}/3;
                uwsgi_temp_path {at}/4; scgi_temp_path {at}/5;
                server {{ listen {address}:80; root {at}; sendfile on; }}
            }}"
        );
        fs::write(folder.join("conf"), settings).expect("room for the settings");
        let process = host.namespace.within(|| {
            Command::new("nginx")
                .arg("-e")
                .arg(folder.join("error.log"))
                .arg("-c")
                .arg(folder.join("conf"))
                .stderr(Stdio::null())
                .spawn()
        });
        let process = process.expect("nginx was found before");
        let nginx = Nginx { process, folder };
        nginx.wait_for_socket(host);
        nginx
    }

    /// Until the kernel listens, as /proc/net/tcp numbers that state.
    fn wait_for_socket(&self, host: &Host) {
        let begun = Instant::now();
        let listens = |line: &str| line.split_whitespace().nth(3) == Some("0A");
        while !host
            .namespace
            .read("/proc/thread-self/net/tcp")
            .lines()
            .any(listens)
        {
            let log = fs::read_to_string(self.folder.join("error.log")).unwrap_or_default();
            assert!(begun.elapsed() < Duration::from_secs(60), "no nginx: {log}");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Either may be gone already.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn a_file_of_100_mb_from_nginx_is_right_to_the_byte() {
    needs_taps!();
    if Command::new("nginx").arg("-v").output().is_err() {
        eprintln!("skipped: there is no `nginx`");
        return;
    }
    const BYTES: u64 = 100_000_000;
    let file: Vec<u8> = (0..BYTES).map(byte_at).collect();
    let expected = Fnv::EMPTY.and(&file);
    let host = kernel(Place::Server);
    let nginx = Nginx::start(&host, &file);
    drop(file);
    let mut spec = profile(KERNELS_SERVER, 1);
    spec.client.set(Tunable::ReceiveBuffer, 1 << 20);
    let fetched = Fetched::default();
    let profile = compiled(&spec);
    let profile = profile.with_application(CLIENT, Arc::new(Fetches(Arc::clone(&fetched))));
    let mut core = Core::with_profile(Place::Client, profile);
    // What is late is overtaken, and what is lost comes later than much that follows it.
    let faults = Faults {
        delay: Duration::from_micros(500),
        lost: 2,
        doubled: 2,
        late: 20,
        late_by: Duration::from_millis(2),
        marked: 0,
    };
    let is_done = || !fetched.lock().expect("no panic").is_empty();
    carry((&mut core, Place::Client), &host, faults, is_done);
    drop(nginx);
    assert_eq!(fetched.lock().expect("no panic")[..], [(BYTES, expected)]);
    let tcp = &core.counters()[0].flows.tcp;
    assert!(
        tcp.rcvoopack > 1_000,
        "much came out of order: {}",
        tcp.rcvoopack
    );
}
