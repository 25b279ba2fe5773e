//! Thousands of short connections: profiles on our side, many sockets of the kernel on the other.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::core::{Core, PREFIX, Talk};
use crate::host::{Host, Kernel, Place};
use crate::link::{Faults, Link};
use crate::needs_taps;
use crate::script;
use crate::socket;
use crate::steal::{self, Stolen};
use crate::watch::{Seen, Watch};

/// The kernel's threads that serve, or ask.
const THREADS: u32 = 8;
const PATIENCE: Duration = Duration::from_secs(90);
const CLIENTS: (u32, u32) = (0x1000_0001, 250);
/// How often a talk is tried whose machine stood still.
const TRIES: u32 = 5;
/// A machine stood still when its host took so much of a CPU: a quarter of the kernel's shortest
/// retransmission timeout, since other things wait, too.
const STANDSTILL: Duration = Duration::from_millis(50);

/// An address as a profile has it, in the kernel's words.
fn address(low: u32, ipv6: bool) -> SocketAddr {
    if !ipv6 {
        return SocketAddr::new(Ipv4Addr::from(low).into(), 80);
    }
    let mut bytes = [0; 16];
    bytes[..12].copy_from_slice(&PREFIX);
    bytes[12..].copy_from_slice(&low.to_be_bytes());
    SocketAddr::new(Ipv6Addr::from(bytes).into(), 80)
}

/// Reads so many bytes, and says whether they are right.
fn reads(stream: &mut TcpStream, bytes: u64) -> bool {
    let mut data = vec![0; bytes as usize];
    stream.read_exact(&mut data).is_ok() && script::is_right(0, &data)
}

/// Writes so many bytes, and says whether that went well.
fn writes(stream: &mut TcpStream, bytes: u64) -> bool {
    let mut data = vec![0; bytes as usize];
    script::fill(0, &mut data);
    stream.write_all(&data).is_ok()
}

/// Whether the peer ends, and says nothing more.
fn ends(stream: &mut TcpStream) -> bool {
    matches!(stream.read(&mut [0]), Ok(0))
}

fn serve(mut stream: TcpStream, talk: &Talk) -> bool {
    reads(&mut stream, talk.request_bytes)
        && writes(&mut stream, talk.response_bytes)
        && ends(&mut stream)
}

fn ask(to: SocketAddr, talk: &Talk) -> bool {
    TcpStream::connect(to).is_ok_and(|mut stream| {
        writes(&mut stream, talk.request_bytes)
            && reads(&mut stream, talk.response_bytes)
            && stream.shutdown(Shutdown::Write).is_ok()
            && ends(&mut stream)
    })
}

/// What the kernel's applications did.
#[derive(Debug, Default)]
struct Tally {
    right: AtomicU64,
    wrong: AtomicU64,
    is_over: AtomicBool,
}

impl Tally {
    fn add(&self, right: bool) {
        let counter = if right { &self.right } else { &self.wrong };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn done(&self) -> u64 {
        self.right.load(Ordering::Relaxed) + self.wrong.load(Ordering::Relaxed)
    }
}

/// Starts the kernel's side of a talk.
fn start_kernel(host: &Host, place: Place, talk: Talk, tally: &Arc<Tally>) {
    let to = address(talk.server, talk.ipv6);
    let listens = || socket::listen(to, &Kernel::default());
    let listener = (place == Place::Server).then(|| host.namespace.within(listens));
    for number in 0..THREADS {
        let tally = Arc::clone(tally);
        match &listener {
            Some(listener) => {
                let listener = listener.try_clone().expect("there are descriptors left");
                // It waits for ever in the end, and dies with the process.
                thread::spawn(move || {
                    while let Ok((stream, _)) = listener.accept() {
                        tally.add(serve(stream, &talk));
                        if tally.is_over.load(Ordering::Relaxed) {
                            break;
                        }
                    }
                });
            }
            None => {
                let namespace = host.namespace.clone();
                let share = talk.flows / THREADS + u32::from(number < talk.flows % THREADS);
                thread::spawn(move || {
                    namespace.within(|| (0..share).for_each(|_| tally.add(ask(to, &talk))));
                });
            }
        }
    }
}

/// What came of a talk.
struct Talked {
    core: Core,
    tally: Arc<Tally>,
    /// What we sent, what the kernel sent.
    seen: [Seen; 2],
    /// What the kernel counted, by its names.
    kernel: Vec<(String, u64)>,
}

/// Runs a talk between us at `place` and the kernel.
fn talk(place: Place, talk: Talk, faults: Faults) -> Talked {
    let host = Host::make(place.other(), &Kernel::default()).expect("it could be made before");
    let (own4, own6) = (place.address(false).ip(), place.address(true).ip());
    host.namespace
        .ip(&format!("route add 16.0.0.0/8 via {own4}"));
    host.namespace
        .ip(&format!("route add 48.0.0.0/8 via {own4}"));
    host.namespace
        .ip(&format!("route add fd09::1000:0/100 via {own6}"));
    host.namespace
        .ip(&format!("route add fd09::3000:0/100 via {own6}"));
    let tally = Arc::new(Tally::default());
    let mut core = Core::new(place, &talk);
    start_kernel(&host, place.other(), talk, &tally);
    let is_done = || tally.done() >= u64::from(talk.flows);
    let watches = carry((&mut core, place), &host, faults, is_done);
    tally.is_over.store(true, Ordering::Relaxed);
    Talked {
        kernel: host.counters(),
        core,
        tally,
        seen: watches.map(|watch| watch.seen),
    }
}

/// Carries frames between us at `place` and the kernel until all is done and no flow is left. Returns
/// what passed: what we sent, what the kernel sent.
pub(crate) fn carry(
    (core, place): (&mut Core, Place),
    host: &Host,
    faults: Faults,
    is_done: impl Fn() -> bool,
) -> [Watch; 2] {
    let mut link = Link::new(faults, 11);
    let mut watches = [Watch::default(), Watch::default()];
    let mut bytes = vec![0; 1 << 16];
    let begun = Instant::now();
    while !is_done() || core.flows() > 0 || link.next_due().is_some() {
        let now = Instant::now();
        for frame in core.take_sent() {
            watches[0].take(&frame);
            link.send(now, place.other(), frame);
        }
        while let Some(length) = host.tap.receive(&mut bytes).expect("the tap is up") {
            watches[1].take(&bytes[..length]);
            link.send(now, place, bytes[..length].to_vec());
        }
        let mut has_moved = false;
        while let Some((to, frame)) = link.pop(now) {
            match to == place {
                true => core.handle_frame(&frame),
                false => host.tap.send(&frame).expect("the tap is up"),
            }
            has_moved = true;
        }
        assert!(
            now - begun < PATIENCE,
            "{:?} {}",
            core.counters(),
            core.table()
        );
        if !has_moved {
            thread::sleep(Duration::from_micros(200));
        }
    }
    watches
}

impl Talked {
    fn kernel(&self, name: &str) -> u64 {
        let found = self.kernel.iter().find(|(known, _)| known == name);
        found
            .unwrap_or_else(|| panic!("the kernel counts no {name}"))
            .1
    }

    fn assert_right(&self, place: Place, talk: &Talk, faults: &Faults) {
        let flows = u64::from(talk.flows);
        let [client, server] = self.core.counters();
        let what = format!(
            "{talk:?} {faults:?} {:?} {}",
            self.core.counters(),
            self.core.table()
        );
        assert_eq!(
            self.tally.right.load(Ordering::Relaxed),
            flows,
            "{:?} {what}",
            self.tally
        );
        let (ours, received, sent) = match place {
            Place::Client => (client, talk.response_bytes, talk.request_bytes),
            Place::Server => (server, talk.request_bytes, talk.response_bytes),
        };
        let tcp = &ours.flows.tcp;
        assert_eq!(
            (tcp.rcvbyte, tcp.sndbyte),
            (flows * received, flows * sent),
            "{what}"
        );
        assert_eq!(
            (tcp.connects, tcp.closed, tcp.drops),
            (flows, flows, 0),
            "{what}"
        );
        let [own, other] = &self.seen;
        assert_eq!((own.wrong, own.unreadable), (0, 0), "{own:?}");
        assert_eq!((other.wrong, other.unreadable), (0, 0), "{other:?}");
        // The kernel counts the same.
        let opened = match place {
            Place::Client => "PassiveOpens",
            Place::Server => "ActiveOpens",
        };
        assert_eq!(self.kernel(opened), flows, "{what}");
        assert_eq!(
            (self.kernel("AttemptFails"), self.kernel("InCsumErrors")),
            (0, 0),
            "{what}"
        );
        if !faults.is_bad() {
            assert_eq!(self.kernel("InSegs"), own.frames, "{what}");
            assert_eq!(self.kernel("OutSegs"), other.frames, "{what}");
            assert_eq!(self.faults(), [0; 4], "{what}");
        }
    }

    /// What there is nothing of on a good link: segments that the kernel sent again, resets of us and of
    /// the kernel (of what is sent again when all is over, too), and what the kernel did not understand.
    fn faults(&self) -> [u64; 4] {
        let [own, other] = &self.seen;
        let (again, errors) = (self.kernel("RetransSegs"), self.kernel("InErrs"));
        [again, own.resets, other.resets, errors]
    }
}

/// Talks on a good link; once more when the machine stood still, and it shows.
fn talk_undisturbed(place: Place, case: Talk) -> Talked {
    let mut tries = 1;
    loop {
        let stolen = Stolen::now();
        let talked = talk(place, case, Faults::NONE);
        let is_disturbed = talked.faults() != [0; 4] && stolen.since() >= STANDSTILL;
        if !is_disturbed || tries == TRIES {
            return talked;
        }
        eprintln!("again: the host took {:?} of a CPU", stolen.since());
        steal::wait_for_calm(4 * STANDSTILL, PATIENCE);
        tries += 1;
    }
}

/// Both roles, both versions of IP.
fn both_ways(flows: u32, rate_cps: f64, faults: Faults) {
    for ipv6 in [false, true] {
        // Of IPv6, the kernel's own addresses are fd09::1 and fd09::2; of IPv4, 10.9.0.1 and 10.9.0.2.
        let own = |place: Place| match ipv6 {
            true => u32::from(place.number()),
            false => 0x0a09_0000 | u32::from(place.number()),
        };
        for place in [Place::Client, Place::Server] {
            let server = match place {
                Place::Client => own(Place::Server),
                Place::Server => 0x3000_0001,
            };
            let case = Talk {
                request_bytes: 100,
                response_bytes: 4000,
                flows,
                rate_cps,
                ipv6,
                clients: CLIENTS,
                server,
            };
            let talked = match faults.is_bad() {
                true => talk(place, case, faults),
                false => talk_undisturbed(place, case),
            };
            talked.assert_right(place, &case, &faults);
        }
    }
}

#[test]
fn thousands_of_connections_on_a_good_link() {
    needs_taps!();
    both_ways(2_000, 2_000.0, Faults::NONE);
}

#[test]
fn hundreds_of_connections_on_a_bad_link() {
    needs_taps!();
    let faults = Faults {
        delay: Duration::from_millis(10),
        lost: 10,
        doubled: 10,
        late: 50,
        late_by: Duration::from_millis(12),
        marked: 0,
    };
    both_ways(300, 300.0, faults);
}
