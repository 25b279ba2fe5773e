//! A speaker on kernel sockets, for measurements: `bgp_announce PORT ROUTES ipv4|ipv6 SESSIONS [FILE]`.
//!
//! Takes so many connections on the port, announces a table on all of them as soon as the last is established,
//! and says on standard output, a line each, what happened when. The address that a peer connects to is its
//! session's own: 127.0.0.0 + n is AS 65000 + n. With `FILE`, the same messages for the first session are
//! written there. It ends when its standard input does.

use std::env;
use std::error::Error;
use std::fs;
use std::io::{ErrorKind, Read, Write, stdin};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use allosaur_bgp::replay::{OwnValues, RouteReplay};
use allosaur_bgp::routes::generate::internet;
use allosaur_bgp::session::config::BgpSessionConfig;
use allosaur_bgp::session::event::BgpEvent;
use allosaur_bgp::speaker::{BgpSessionId, BgpSpeaker};
use allosaur_bgp::stream::RouteStream;
use allosaur_bgp::wire::prefix::AddressFamily;

/// What is handed to a socket at once.
const CHUNK: usize = 256 * 1024;
const NEXT_HOP_IPV6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);

/// A connection, and what its socket has not taken yet.
struct Connection {
    socket: TcpStream,
    unsent: Vec<u8>,
}

struct Driver {
    speaker: BgpSpeaker,
    connections: Vec<Connection>,
    began: Instant,
    buffer: Vec<u8>,
}

fn config(local: Ipv4Addr, family: AddressFamily) -> BgpSessionConfig {
    BgpSessionConfig {
        local_as: 65_000 + (local.to_bits() & 0x00ff_ffff),
        peer_as: None,
        identifier: local,
        hold_time_s: 0,
        connect_retry_ns: 1_000_000_000,
        passive: true,
        families: vec![family],
        extended_messages: false,
        restart_time_s: None,
        next_hop_ipv4: Ipv4Addr::new(192, 0, 2, 1),
        next_hop_ipv6: NEXT_HOP_IPV6,
    }
}

impl Driver {
    fn now_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    fn accept(
        &mut self,
        listener: &TcpListener,
        family: AddressFamily,
    ) -> Result<(), Box<dyn Error>> {
        let (socket, _) = listener.accept()?;
        let IpAddr::V4(local) = socket.local_addr()?.ip() else {
            return Err("a connection over IPv6: connect to 127.0.0.0/8".into());
        };
        socket.set_nonblocking(true)?;
        let id = self.speaker.add_session(config(local, family), 1)?;
        let now_ns = self.now_ns();
        self.speaker.session_mut(id).start(now_ns);
        self.speaker.session_mut(id).handle_connected(now_ns);
        self.connections.push(Connection {
            socket,
            unsent: Vec::new(),
        });
        Ok(())
    }

    /// Sends and receives what there is, once on each session; whether there was anything.
    fn turn(&mut self) -> Result<bool, Box<dyn Error>> {
        let now_ns = self.now_ns();
        let mut moved = false;
        for (index, connection) in self.connections.iter_mut().enumerate() {
            let id = BgpSessionId(index);
            let session = self.speaker.session_mut(id);
            if connection.unsent.is_empty() {
                session.poll_transmit(now_ns, CHUNK, &mut connection.unsent);
            }
            if !connection.unsent.is_empty() {
                let sent = taken(connection.socket.write(&connection.unsent))?;
                connection.unsent.drain(..sent);
                moved |= sent > 0;
            }
            let received = taken(connection.socket.read(&mut self.buffer))?;
            session.handle_bytes(now_ns, &self.buffer[..received]);
            moved |= received > 0;
            session.handle_timeout(now_ns);
            while let Some(event) = self.speaker.poll_event(id) {
                if let BgpEvent::Down(reason) = event {
                    return Err(reason.to_string().into());
                }
            }
        }
        Ok(moved)
    }

    fn run_until(&mut self, is_done: impl Fn(&BgpSpeaker) -> bool) -> Result<(), Box<dyn Error>> {
        while !is_done(&self.speaker) {
            if !self.turn()? {
                thread::sleep(Duration::from_micros(200));
            }
        }
        Ok(())
    }
}

/// The octets that a socket took or gave now.
fn taken(result: std::io::Result<usize>) -> std::io::Result<usize> {
    match result {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
        result => result,
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [port, routes, family, sessions, file @ ..] = arguments.as_slice() else {
        return Err("usage: bgp_announce PORT ROUTES ipv4|ipv6 SESSIONS [FILE]".into());
    };
    let family = if family == "ipv6" {
        AddressFamily::Ipv6
    } else {
        AddressFamily::Ipv4
    };
    let (routes, sessions): (u32, usize) = (routes.parse()?, sessions.parse()?);
    let table = Arc::new(internet(family, routes, 1, 1)?);
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port.parse()?))?;
    println!("listening");
    let mut driver = Driver {
        speaker: BgpSpeaker::default(),
        connections: Vec::new(),
        began: Instant::now(),
        buffer: vec![0; CHUNK],
    };
    for _ in 0..sessions {
        driver.accept(&listener, family)?;
    }
    let each = |speaker: &BgpSpeaker, is_done: &dyn Fn(u64, u64) -> bool| {
        let mut counters = speaker.sessions().map(|(_, s)| s.counters());
        counters.all(|c| is_done(c.established, c.announced))
    };
    driver.run_until(|speaker| each(speaker, &|established, _| established == 1))?;
    println!("established {:.3}", driver.began.elapsed().as_secs_f64());
    if let [path] = file {
        let (_, session) = driver.speaker.sessions().next().ok_or("no session")?;
        let encoding = session.negotiated().ok_or("the session is down")?.encoding;
        let own = OwnValues {
            local_as: session.config().local_as,
            next_hop_ipv4: session.config().next_hop_ipv4,
            next_hop_ipv6: NEXT_HOP_IPV6,
        };
        let mut messages = Vec::new();
        let stream = Arc::new(RouteStream::announce(&table, encoding)?);
        RouteReplay::new(stream, None).transmit(0, &own, usize::MAX, &mut messages);
        fs::write(path, messages)?;
    }
    let began = Instant::now();
    println!("announcing");
    driver.speaker.announce("all", table, None)?;
    println!("encoded {:.3}", began.elapsed().as_secs_f64());
    driver.run_until(|speaker| each(speaker, &|_, announced| announced == routes.into()))?;
    println!("sent {:.3}", began.elapsed().as_secs_f64());
    let memory = driver
        .speaker
        .sessions()
        .map(|(_, s)| s.memory())
        .sum::<usize>();
    println!(
        "memory shared {} sessions {memory}",
        driver.speaker.shared_memory()
    );
    let ended = thread::spawn(|| stdin().read_to_end(&mut Vec::new()));
    while !ended.is_finished() {
        if !driver.turn()? {
            thread::sleep(Duration::from_millis(1));
        }
    }
    Ok(())
}
