//! A speaker before FRR's bgpd: what it takes of one session, it tells another.
//!
//! It is skipped, with a line that says so, where bgpd is not installed. bgpd connects to sockets of this test
//! on loopback addresses, listens nowhere, and installs no route.

use std::error::Error;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use allosaur_bgp::routes::generate::internet;
use allosaur_bgp::session::config::BgpSessionConfig;
use allosaur_bgp::session::event::{BgpEvent, BgpSessionCounters};
use allosaur_bgp::speaker::{BgpSessionId, BgpSpeaker};
use allosaur_bgp::wire::prefix::AddressFamily;

const BGPD: &str = "/usr/lib/frr/bgpd";
const ROUTES: u32 = 1_000;
/// Ends what is broken.
const DEADLINE: Duration = Duration::from_secs(120);

/// A bgpd, which ends with this.
struct Bgpd {
    process: Child,
    folder: PathBuf,
}

impl Bgpd {
    /// AS 65000, with a neighbor at each of the addresses, which connects to them.
    fn start(neighbors: &[(Ipv4Addr, u16, u32)]) -> Result<Self, Box<dyn Error>> {
        let folder = std::env::temp_dir().join(format!("allosaur-bgpd-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let mut text = "router bgp 65000\n bgp router-id 192.0.2.254\n \
                        no bgp ebgp-requires-policy\n"
            .to_owned();
        for (address, port, number) in neighbors {
            text += &format!(
                " neighbor {address} remote-as {number}\n neighbor {address} port {port}\n \
                 neighbor {address} timers connect 1\n neighbor {address} ebgp-multihop 2\n \
                 neighbor {address} disable-connected-check\n"
            );
        }
        text += " address-family ipv6 unicast\n";
        for (address, ..) in neighbors {
            text += &format!("  neighbor {address} activate\n");
        }
        text += " exit-address-family\n";
        let config = folder.join("bgpd.conf");
        fs::write(&config, text)?;
        let path = |name: &str| folder.join(name);
        let process = Command::new(BGPD)
            .args([
                "--no_kernel",
                "--no_zebra",
                "--skip_runas",
                "--bgp_port",
                "0",
            ])
            .args(["--vty_port", "0", "--config_file"])
            .arg(config)
            .arg("--pid_file")
            .arg(path("pid"))
            .arg("--vty_socket")
            .arg(&folder)
            .arg("--socket")
            .arg(path("zserv"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { process, folder })
    }
}

impl Drop for Bgpd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A speaker with one session, and its connection.
struct End {
    speaker: BgpSpeaker,
    socket: TcpStream,
}

impl End {
    fn new(
        socket: TcpStream,
        config: BgpSessionConfig,
        now_ns: u64,
    ) -> Result<Self, Box<dyn Error>> {
        socket.set_read_timeout(Some(Duration::from_millis(1)))?;
        let mut speaker = BgpSpeaker::default();
        let session = speaker.add_session(config, 1)?;
        speaker.session_mut(session).start(now_ns);
        speaker.session_mut(session).handle_connected(now_ns);
        Ok(Self { speaker, socket })
    }

    fn counters(&self) -> BgpSessionCounters {
        let (_, session) = self.speaker.sessions().next().expect("the one session");
        session.counters()
    }

    /// Sends and receives once.
    fn exchange(&mut self, now_ns: u64) {
        let id = BgpSessionId(0);
        let session = self.speaker.session_mut(id);
        let mut out = Vec::new();
        session.poll_transmit(now_ns, 65_536, &mut out);
        self.socket
            .write_all(&out)
            .expect("the peer takes what it is sent");
        let mut buffer = [0; 65_536];
        match self.socket.read(&mut buffer) {
            Ok(0) => session.handle_disconnected(now_ns),
            Ok(length) => session.handle_bytes(now_ns, &buffer[..length]),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(e) => panic!("reading from bgpd: {e}"),
        }
        session.handle_timeout(now_ns);
        while let Some(event) = self.speaker.poll_event(id) {
            if let BgpEvent::Down(reason) = event {
                panic!("{reason}");
            }
        }
    }
}

/// Who announces, and who listens.
struct Ends {
    announcer: End,
    listener: End,
    began: Instant,
}

impl Ends {
    /// Carries bytes until `is_done` says so.
    fn run_until(&mut self, what: &str, is_done: impl Fn(&Self) -> bool) {
        while !is_done(self) {
            let counted = [self.announcer.counters(), self.listener.counters()];
            assert!(self.began.elapsed() < DEADLINE, "{what}: {counted:?}");
            let now_ns = nanoseconds_since(self.began);
            self.announcer.exchange(now_ns);
            self.listener.exchange(now_ns);
        }
    }
}

fn nanoseconds_since(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_nanos()).expect("a test takes less than 500 years")
}

fn config(local_as: u32, address: Ipv4Addr) -> BgpSessionConfig {
    BgpSessionConfig {
        local_as,
        peer_as: Some(65_000),
        identifier: address,
        hold_time_s: 180,
        connect_retry_ns: 1_000_000_000,
        passive: true,
        families: vec![AddressFamily::Ipv4, AddressFamily::Ipv6],
        extended_messages: true,
        restart_time_s: Some(120),
        // No router takes a loopback address for a next hop.
        next_hop_ipv4: Ipv4Addr::new(192, 0, 2, 1),
        next_hop_ipv6: Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1),
    }
}

fn connected(numbers: [u32; 2]) -> Result<(Bgpd, Ends), Box<dyn Error>> {
    let addresses = [Ipv4Addr::new(127, 0, 0, 11), Ipv4Addr::new(127, 0, 0, 12)];
    let bind = |address| TcpListener::bind((address, 0));
    let listeners = [bind(addresses[0])?, bind(addresses[1])?];
    let ports = [
        listeners[0].local_addr()?.port(),
        listeners[1].local_addr()?.port(),
    ];
    let neighbor = |index: usize| (addresses[index], ports[index], numbers[index]);
    let bgpd = Bgpd::start(&[neighbor(0), neighbor(1)])?;
    let began = Instant::now();
    let end = |index: usize| {
        let (socket, _) = listeners[index].accept()?;
        let config = config(numbers[index], addresses[index]);
        End::new(socket, config, nanoseconds_since(began))
    };
    let ends = Ends {
        announcer: end(0)?,
        listener: end(1)?,
        began,
    };
    Ok((bgpd, ends))
}

fn is_installed() -> bool {
    let is_there = Path::new(BGPD).exists();
    if !is_there {
        eprintln!("skipped: {BGPD} is not installed (Debian and Ubuntu: frr)");
    }
    is_there
}

#[test]
fn bgpd_tells_another_session_what_it_was_told() -> Result<(), Box<dyn Error>> {
    if !is_installed() {
        return Ok(());
    }
    let (_bgpd, mut ends) = connected([65_001, 4_200_000_001])?;
    ends.run_until("established", |ends| {
        ends.announcer.counters().established == 1 && ends.listener.counters().established == 1
    });
    for family in [AddressFamily::Ipv4, AddressFamily::Ipv6] {
        let table = Arc::new(internet(family, ROUTES, 1, 1)?);
        ends.announcer
            .speaker
            .announce(&format!("{family:?}"), table, None)?;
    }
    let all = u64::from(2 * ROUTES);
    ends.run_until("announced", |ends| {
        ends.listener.counters().announcements_received >= all
    });
    for family in [AddressFamily::Ipv4, AddressFamily::Ipv6] {
        ends.announcer
            .speaker
            .withdraw(&format!("{family:?}"), None)?;
    }
    ends.run_until("withdrawn", |ends| {
        ends.listener.counters().withdrawals_received >= all
    });
    for counters in [ends.announcer.counters(), ends.listener.counters()] {
        assert_eq!(
            (counters.treated_as_withdrawn, counters.discarded_attributes),
            (0, 0)
        );
        assert_eq!(counters.notifications_received, 0);
    }
    Ok(())
}
