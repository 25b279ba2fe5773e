//! The driver over sockets in memory, in virtual time: two speakers of one driver, of which one connects to
//! the other.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use allosaur_api::commands::routes::{BgpSessionInfo, RoutesAnnounced};
use allosaur_bgp::routes::generate::internet;
use allosaur_bgp::session::config::BgpSessionConfig;
use allosaur_bgp::wire::prefix::AddressFamily;

use super::driver::RouteDriver;
use super::request::{RouteAnswer, RouteRequest, SessionSpec, SpeakerPlace, SpeakerSpec};
use super::sockets::{
    BgpSockets, Dial, SessionKey, SocketEvent, SocketKey, SocketOwner, SpeakerId,
};
use crate::counters::BgpSessionBlock;

const SECOND_NS: u64 = 1_000_000_000;
/// What a socket takes before its peer reads.
const CAPACITY: usize = 10_000;
const ACTIVE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const PASSIVE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);

/// A socket, and what has arrived at it.
struct MemorySocket {
    owner: SocketOwner,
    address: SocketAddr,
    /// The other end; none of a socket that listens.
    peer: Option<SocketKey>,
    arrived: VecDeque<u8>,
    /// Connections that wait to be accepted.
    waiting: VecDeque<SocketKey>,
    is_write_watched: bool,
}

#[derive(Default)]
struct MemorySockets {
    sockets: BTreeMap<SocketKey, MemorySocket>,
    last: u64,
    /// What arrives at this one is not read.
    stalled: Option<SocketKey>,
}

impl MemorySockets {
    fn add(
        &mut self,
        owner: SocketOwner,
        address: SocketAddr,
        peer: Option<SocketKey>,
    ) -> SocketKey {
        self.last += 1;
        let socket = MemorySocket {
            owner,
            address,
            peer,
            arrived: VecDeque::new(),
            waiting: VecDeque::new(),
            // A connection that is being opened is waited for until there is room.
            is_write_watched: peer.is_some(),
        };
        self.sockets.insert(SocketKey(self.last), socket);
        SocketKey(self.last)
    }

    fn room(&self, key: SocketKey) -> Option<usize> {
        let peer = self.sockets.get(&self.sockets.get(&key)?.peer?)?;
        Some(CAPACITY - peer.arrived.len())
    }

    fn ready(&self) -> Vec<SocketEvent> {
        let sockets = self
            .sockets
            .iter()
            .filter(|(key, _)| self.stalled != Some(**key));
        let events = sockets.map(|(key, socket)| {
            let is_closed = socket.peer.is_some() && self.room(*key).is_none();
            SocketEvent {
                key: *key,
                owner: socket.owner,
                is_readable: is_closed || !socket.arrived.is_empty() || !socket.waiting.is_empty(),
                is_writable: socket.is_write_watched && self.room(*key) != Some(0),
            }
        });
        events
            .filter(|event| event.is_readable || event.is_writable)
            .collect()
    }
}

impl BgpSockets for MemorySockets {
    fn connect(&mut self, owner: SessionKey, dial: Dial<'_>) -> io::Result<SocketKey> {
        let mut sockets = self.sockets.iter();
        let found =
            sockets.find(|(_, socket)| socket.peer.is_none() && socket.address == dial.peer);
        let (listener, listening) = found.ok_or(ErrorKind::ConnectionRefused)?;
        let (listener, listening) = (*listener, listening.owner);
        let own = dial
            .place
            .address_to(dial.peer.ip())
            .expect("speakers have addresses");
        let near = SocketKey(self.last + 1);
        let far = SocketKey(self.last + 2);
        self.add(
            SocketOwner::Session(owner),
            SocketAddr::new(own, 0),
            Some(far),
        );
        self.add(listening, dial.peer, Some(near));
        let listener = self.sockets.get_mut(&listener).expect("it was found");
        listener.waiting.push_back(far);
        Ok(near)
    }

    fn listen(
        &mut self,
        owner: SpeakerId,
        _place: &SpeakerPlace,
        address: SocketAddr,
    ) -> io::Result<SocketKey> {
        Ok(self.add(SocketOwner::Listener(owner), address, None))
    }

    fn set_listener_key(&mut self, _: SocketKey, _: IpAddr, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn accept(&mut self, listener: SocketKey) -> Option<(SocketKey, IpAddr)> {
        let key = self.sockets.get_mut(&listener)?.waiting.pop_front()?;
        let peer = self.sockets.get(&self.sockets.get(&key)?.peer?)?;
        Some((key, peer.address.ip()))
    }

    fn adopt(&mut self, key: SocketKey, owner: SessionKey) {
        if let Some(socket) = self.sockets.get_mut(&key) {
            socket.owner = SocketOwner::Session(owner);
        }
    }

    fn take_error(&mut self, _: SocketKey) -> io::Result<()> {
        Ok(())
    }

    fn read(&mut self, key: SocketKey, buffer: &mut [u8]) -> io::Result<usize> {
        let is_closed = self.room(key).is_none();
        let socket = self.sockets.get_mut(&key).ok_or(ErrorKind::NotConnected)?;
        let bytes = buffer.len().min(socket.arrived.len());
        if bytes == 0 && !is_closed {
            return Err(ErrorKind::WouldBlock.into());
        }
        for (place, byte) in buffer.iter_mut().zip(socket.arrived.drain(..bytes)) {
            *place = byte;
        }
        Ok(bytes)
    }

    fn write(&mut self, key: SocketKey, bytes: &[u8]) -> io::Result<usize> {
        let room = self.room(key).ok_or(ErrorKind::BrokenPipe)?;
        if room == 0 {
            return Err(ErrorKind::WouldBlock.into());
        }
        let taken = &bytes[..room.min(bytes.len())];
        let peer = self.sockets[&key].peer.expect("there is room in it");
        let peer = self.sockets.get_mut(&peer).expect("there is room in it");
        peer.arrived.extend(taken);
        Ok(taken.len())
    }

    fn watch_writable(&mut self, key: SocketKey, is_watched: bool) {
        if let Some(socket) = self.sockets.get_mut(&key) {
            socket.is_write_watched = is_watched;
        }
    }

    fn unacknowledged_bytes(&self, key: SocketKey) -> u64 {
        self.room(key).map_or(0, |room| (CAPACITY - room) as u64)
    }

    fn close(&mut self, key: SocketKey) {
        self.sockets.remove(&key);
    }
}

/// Two speakers.
struct Bench {
    driver: RouteDriver<MemorySockets>,
    now_ns: u64,
}

impl Bench {
    fn new() -> Bench {
        let mut bench = Bench {
            driver: RouteDriver::new(MemorySockets::default(), 1),
            now_ns: 0,
        };
        for (name, asn, address) in [("active", 65_001, ACTIVE), ("passive", 65_002, PASSIVE)] {
            let spec = SpeakerSpec {
                name: name.to_owned(),
                asn,
                router_id: address,
                hold_time_s: 0,
                place: SpeakerPlace {
                    namespace: None,
                    addresses: vec![address.into()],
                },
                tcp_port: 179,
            };
            bench
                .ask(RouteRequest::AddSpeaker(spec))
                .expect("a new name");
        }
        bench
    }

    fn connected() -> Bench {
        let mut bench = Bench::new();
        bench.add_session("passive");
        bench.add_session("active");
        bench.run(SECOND_NS);
        assert_eq!(bench.session("active").state, "Established");
        bench
    }

    fn add_session(&mut self, speaker: &str) {
        let is_passive = speaker == "passive";
        let (own, asn, peer) = match is_passive {
            true => (PASSIVE, 65_002, ACTIVE),
            false => (ACTIVE, 65_001, PASSIVE),
        };
        let config = BgpSessionConfig {
            local_as: asn,
            peer_as: None,
            identifier: own,
            hold_time_s: 0,
            connect_retry_ns: SECOND_NS,
            passive: is_passive,
            families: vec![AddressFamily::Ipv4],
            extended_messages: false,
            restart_time_s: None,
            next_hop_ipv4: own,
            next_hop_ipv6: std::net::Ipv6Addr::UNSPECIFIED,
        };
        let session = SessionSpec {
            config,
            peer: SocketAddr::new(peer.into(), 179),
            md5: None,
            block: Arc::<BgpSessionBlock>::default(),
        };
        let added = self.ask(RouteRequest::AddSession {
            speaker: speaker.to_owned(),
            session: Box::new(session),
        });
        added.expect("a new session");
    }

    fn ask(&mut self, request: RouteRequest) -> Result<RouteAnswer, String> {
        self.driver.handle_request(request, self.now_ns)
    }

    fn session(&mut self, speaker: &str) -> BgpSessionInfo {
        let speaker = Some(speaker.to_owned());
        match self.ask(RouteRequest::Show { speaker }) {
            Ok(RouteAnswer::Shown(mut shown)) => shown.speakers.remove(0).sessions.remove(0),
            other => panic!("{other:?}"),
        }
    }

    /// Carries bytes, and goes on in time for so long.
    fn run(&mut self, span_ns: u64) {
        let until_ns = self.now_ns + span_ns;
        loop {
            let ready = self.driver.sockets.ready();
            for event in &ready {
                self.driver.handle_ready(*event, self.now_ns);
            }
            self.driver.handle_timeout(self.now_ns);
            if ready.is_empty() {
                let due = self.driver.poll_timeout();
                match due.filter(|due_ns| *due_ns <= until_ns) {
                    Some(due_ns) => self.now_ns = self.now_ns.max(due_ns),
                    None => break,
                }
            }
        }
        self.now_ns = until_ns;
    }

    fn announce(&mut self, count: u32) -> RoutesAnnounced {
        let table = internet(AddressFamily::Ipv4, count, 1, 1).expect("a right count");
        let announced = self.ask(RouteRequest::Announce {
            speaker: "active".to_owned(),
            name: "all".to_owned(),
            table: Arc::new(table),
            rate: None,
        });
        match announced {
            Ok(RouteAnswer::Announced(announced)) => announced,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_table_reaches_the_peer_and_is_acknowledged() {
    let mut bench = Bench::connected();
    assert_eq!(bench.announce(5_000).sessions, 1);
    bench.run(SECOND_NS);
    let session = bench.session("active");
    assert_eq!(session.counters.announced, 5_000);
    assert!(session.acknowledged_s.is_some(), "{session:?}");
    let peer = bench.session("passive").counters;
    assert_eq!(peer.announcements_received, 5_000);
    assert_eq!(peer.bytes_received, session.counters.bytes_sent);
}

#[test]
fn a_peer_that_does_not_read_takes_a_chunk_of_memory_and_nobody_elses_time() {
    let mut bench = Bench::connected();
    let sockets = &mut bench.driver.sockets;
    let accepted = sockets
        .sockets
        .iter()
        .find(|(_, socket)| socket.peer.is_some() && socket.address.ip() == IpAddr::from(PASSIVE));
    sockets.stalled = accepted.map(|(key, _)| *key);
    assert!(sockets.stalled.is_some());
    bench.announce(50_000);
    bench.run(SECOND_NS);
    let session = bench.session("active");
    assert_eq!((session.queued, session.sent_s), (1, None));
    // What the socket took, one chunk of 32 KiB and a message: of five routes each in 100 bytes or so.
    assert!(session.counters.announced < 20_000, "{session:?}");
    assert_eq!(session.counters.bytes_unacknowledged, CAPACITY as u64);
    bench.driver.sockets.stalled = None;
    bench.run(SECOND_NS);
    assert_eq!(bench.session("active").counters.announced, 50_000);
    assert_eq!(
        bench.session("passive").counters.announcements_received,
        50_000
    );
}

#[test]
fn a_connection_that_is_refused_is_named_and_tried_again() {
    let mut bench = Bench::new();
    bench.add_session("active");
    let refused = bench.session("active");
    let error = refused.last_error.expect("nobody listens");
    assert!(error.contains("cannot connect to 192.0.2.2:179"), "{error}");
    assert_eq!(refused.counters.connections_failed, 1);
    bench.add_session("passive");
    // What is announced before it is up, is sent when it is.
    assert_eq!(bench.announce(100).sessions, 0);
    bench.run(2 * SECOND_NS);
    assert_eq!(
        bench.session("passive").counters.announcements_received,
        100
    );
}

#[test]
fn who_is_removed_tells_the_peer_and_leaves_no_socket() {
    let mut bench = Bench::connected();
    let removed = bench.ask(RouteRequest::Remove {
        speaker: "active".to_owned(),
        peer: None,
    });
    removed.expect("it is there");
    bench.run(SECOND_NS);
    let left = bench.session("passive");
    let error = left.last_error.expect("the peer has ended it");
    assert!(error.contains("the peer ended it"), "{error}");
    assert_eq!(left.state, "Active");
    // The one on which it waits.
    assert_eq!(bench.driver.sockets.sockets.len(), 1);
    let unknown = bench.ask(RouteRequest::Remove {
        speaker: "active".to_owned(),
        peer: None,
    });
    let unknown = unknown.expect_err("it is gone");
    assert!(unknown.contains("there are passive"), "{unknown}");
}
