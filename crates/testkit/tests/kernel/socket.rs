//! An application on a socket of the kernel, which runs a script.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::thread;
use std::time::Duration;

use nix::sys::socket::{
    self, AddressFamily, Backlog, SockFlag, SockType, SockaddrStorage, sockopt,
};

use crate::host::Kernel;
use crate::script::{self, Ended, Report, Step};

/// How long a step may take. Nothing takes so long that goes on at all.
const PATIENCE: Duration = Duration::from_secs(60);

fn open(own: SocketAddr, kernel: &Kernel) -> nix::Result<OwnedFd> {
    let family = match own.ip() {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    };
    let flags = SockFlag::SOCK_CLOEXEC;
    let made = socket::socket(family, SockType::Stream, flags, None)?;
    socket::setsockopt(&made, sockopt::ReuseAddr, &true)?;
    if let Some(bytes) = kernel.receive_buffer_bytes {
        socket::setsockopt(&made, sockopt::RcvBuf, &bytes)?;
    }
    if let Some(seconds) = kernel.keepalive_s {
        socket::setsockopt(&made, sockopt::KeepAlive, &true)?;
        socket::setsockopt(&made, sockopt::TcpKeepIdle, &seconds)?;
        socket::setsockopt(&made, sockopt::TcpKeepInterval, &1)?;
    }
    socket::bind(made.as_raw_fd(), &SockaddrStorage::from(own))?;
    Ok(made)
}

/// A socket that waits for clients.
pub(crate) fn listen(own: SocketAddr, kernel: &Kernel) -> TcpListener {
    let made = open(own, kernel).expect("the address is this namespace's own, and free");
    socket::listen(&made, Backlog::new(4096).expect("small enough")).expect("it is bound");
    TcpListener::from(made)
}

/// Accepts one client, and runs the script.
pub(crate) fn serve(listener: TcpListener, script: &[Step]) -> Report {
    match listener.accept() {
        Ok((stream, _)) => run(stream, script),
        Err(_) => Report::default(),
    }
}

/// Connects, and runs the script.
pub(crate) fn connect(own: SocketAddr, to: SocketAddr, kernel: &Kernel, script: &[Step]) -> Report {
    let made = open(own, kernel).expect("the address is this namespace's own, and free");
    match socket::connect(made.as_raw_fd(), &SockaddrStorage::from(to)) {
        Ok(()) => run(TcpStream::from(made), script),
        Err(errno) => {
            let mut report = Report::default();
            note(&mut report, &errno.into());
            report
        }
    }
}

fn note(report: &mut Report, error: &io::Error) {
    report.ended = match error.kind() {
        ErrorKind::TimedOut | ErrorKind::WouldBlock => Ended::TimedOut,
        _ => Ended::Reset,
    };
}

/// Runs a script on a connection.
pub(crate) fn run(stream: TcpStream, script: &[Step]) -> Report {
    let patient = stream.set_read_timeout(Some(PATIENCE));
    let patient = patient.and_then(|()| stream.set_write_timeout(Some(PATIENCE)));
    patient.expect("a minute is a time");
    let mut application = Application {
        stream,
        sent: 0,
        report: Report {
            connected: true,
            ..Report::default()
        },
    };
    for step in script {
        if let Err(error) = application.act(*step) {
            note(&mut application.report, &error);
            break;
        }
    }
    application.report
}

struct Application {
    stream: TcpStream,
    sent: u64,
    report: Report,
}

impl Application {
    fn act(&mut self, step: Step) -> io::Result<()> {
        match step {
            Step::Send(bytes) => self.send(bytes),
            Step::Trade(bytes) => self.trade(bytes),
            Step::Receive(bytes) => self.receive(bytes),
            Step::ReceiveEnd => self.receive(u64::MAX),
            Step::Finish => self.stream.shutdown(Shutdown::Write),
            Step::Reset => {
                let at_once = nix::libc::linger {
                    l_onoff: 1,
                    l_linger: 0,
                };
                Ok(socket::setsockopt(
                    &self.stream.as_fd(),
                    sockopt::Linger,
                    &at_once,
                )?)
            }
            Step::Rest(milliseconds) => {
                thread::sleep(Duration::from_millis(milliseconds));
                Ok(())
            }
        }
    }

    fn send(&mut self, bytes: u64) -> io::Result<()> {
        let from = self.sent;
        self.sent += bytes;
        write(&self.stream, from, self.sent)
    }

    fn trade(&mut self, bytes: u64) -> io::Result<()> {
        let (from, until) = (self.sent, self.sent + bytes);
        self.sent = until;
        let writer = self.stream.try_clone()?;
        let writer = thread::spawn(move || write(&writer, from, until));
        let received = self.receive(bytes);
        let written = writer.join().expect("it panics nowhere");
        received.and(written)
    }

    fn receive(&mut self, bytes: u64) -> io::Result<()> {
        let until = self.report.received.saturating_add(bytes);
        let mut chunk = vec![0; 64 << 10];
        while self.report.received < until {
            let left = until - self.report.received;
            let length = left.min(chunk.len() as u64) as usize;
            let read = self.stream.read(&mut chunk[..length])?;
            let place = self.report.received;
            assert!(
                script::is_right(place, &chunk[..read]),
                "other bytes at {place}"
            );
            if read == 0 {
                self.report.ended = Ended::Finished;
                return Ok(());
            }
            self.report.received += read as u64;
        }
        Ok(())
    }
}

/// Writes the bytes from one place to another.
fn write(mut stream: &TcpStream, from: u64, until: u64) -> io::Result<()> {
    let mut chunk = vec![0; 64 << 10];
    let mut place = from;
    while place < until {
        let length = (until - place).min(chunk.len() as u64) as usize;
        script::fill(place, &mut chunk[..length]);
        stream.write_all(&chunk[..length])?;
        place += length as u64;
    }
    Ok(())
}
