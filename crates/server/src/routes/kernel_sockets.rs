//! Sockets of the kernel, in network namespaces, with an epoll that says which are ready.

use std::collections::HashMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr};
use std::os::fd::AsFd;

use allosaur_netdev::tcp::{set_md5_key, unacknowledged_bytes};
use allosaur_nodes::NodesError;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use socket2::{Domain, Protocol, Socket, Type};

use super::request::SpeakerPlace;
use super::sockets::{
    BgpSockets, Dial, SessionKey, SocketEvent, SocketKey, SocketOwner, SpeakerId,
};

/// Peers that may wait to be accepted.
const BACKLOG: i32 = 1024;
/// The number of the file that wakes the thread; sockets have others.
const WAKER: u64 = 0;
/// Events that are taken at once.
const EVENTS: usize = 256;

/// What the thread waits for.
#[derive(Debug)]
pub(super) struct KernelSockets {
    epoll: Epoll,
    sockets: HashMap<SocketKey, OwnedSocket>,
    last: u64,
}

#[derive(Debug)]
struct OwnedSocket {
    socket: Socket,
    owner: SocketOwner,
    is_write_watched: bool,
}

/// What became ready.
#[derive(Debug, Default)]
pub(super) struct Ready {
    /// The thread was woken.
    pub(super) is_woken: bool,
    /// Sockets.
    pub(super) sockets: Vec<SocketEvent>,
}

impl KernelSockets {
    /// None yet; `waker` ends a wait when it is readable.
    ///
    /// # Errors
    ///
    /// The system has no more files.
    pub(super) fn new(waker: &impl AsFd) -> io::Result<KernelSockets> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        epoll.add(waker, EpollEvent::new(EpollFlags::EPOLLIN, WAKER))?;
        Ok(KernelSockets {
            epoll,
            sockets: HashMap::new(),
            last: WAKER,
        })
    }

    /// Waits, so many milliseconds at most, or until something is ready.
    pub(super) fn wait(&self, timeout_ms: Option<u32>, ready: &mut Ready) {
        ready.is_woken = false;
        ready.sockets.clear();
        let mut events = [EpollEvent::empty(); EVENTS];
        let timeout = match timeout_ms {
            Some(ms) => EpollTimeout::try_from(ms).unwrap_or(EpollTimeout::MAX),
            None => EpollTimeout::NONE,
        };
        let count = match self.epoll.wait(&mut events, timeout) {
            Ok(count) => count,
            Err(error) => {
                tracing::debug!("waiting was interrupted: {error}");
                0
            }
        };
        for event in &events[..count] {
            if event.data() == WAKER {
                ready.is_woken = true;
                continue;
            }
            let key = SocketKey(event.data());
            let Some(socket) = self.sockets.get(&key) else {
                continue;
            };
            let flags = event.events();
            let ended = EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP;
            ready.sockets.push(SocketEvent {
                key,
                owner: socket.owner,
                is_readable: flags.intersects(EpollFlags::EPOLLIN | ended),
                is_writable: flags.intersects(EpollFlags::EPOLLOUT | ended),
            });
        }
    }

    fn keep(
        &mut self,
        socket: Socket,
        owner: SocketOwner,
        is_write_watched: bool,
    ) -> io::Result<SocketKey> {
        let key = SocketKey(self.last + 1);
        let event = EpollEvent::new(flags_of(is_write_watched), key.0);
        self.epoll.add(&socket, event)?;
        self.last = key.0;
        let owned = OwnedSocket {
            socket,
            owner,
            is_write_watched,
        };
        self.sockets.insert(key, owned);
        Ok(key)
    }

    fn socket(&self, key: SocketKey) -> io::Result<&Socket> {
        let found = self.sockets.get(&key).map(|owned| &owned.socket);
        found.ok_or_else(|| ErrorKind::NotConnected.into())
    }
}

impl BgpSockets for KernelSockets {
    fn connect(&mut self, owner: SessionKey, dial: Dial<'_>) -> io::Result<SocketKey> {
        let socket = open(dial.place, dial.peer)?;
        socket.set_tcp_nodelay(true)?;
        if let Some(key) = dial.md5 {
            set_md5_key(&socket, dial.peer.ip(), key.as_bytes())?;
        }
        if let Some(own) = dial.place.address_to(dial.peer.ip()) {
            socket.bind(&SocketAddr::new(own, 0).into())?;
        }
        match socket.connect(&dial.peer.into()) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(Errno::EINPROGRESS as i32) => {}
            Err(error) => return Err(error),
        }
        self.keep(socket, SocketOwner::Session(owner), true)
    }

    fn listen(
        &mut self,
        owner: SpeakerId,
        place: &SpeakerPlace,
        address: SocketAddr,
    ) -> io::Result<SocketKey> {
        let socket = open(place, address)?;
        socket.set_reuse_address(true)?;
        if address.is_ipv6() {
            socket.set_only_v6(true)?;
        }
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        self.keep(socket, SocketOwner::Listener(owner), false)
    }

    fn set_listener_key(&mut self, listener: SocketKey, peer: IpAddr, key: &str) -> io::Result<()> {
        set_md5_key(self.socket(listener)?, peer, key.as_bytes())
    }

    fn accept(&mut self, listener: SocketKey) -> Option<(SocketKey, IpAddr)> {
        let listening = self.sockets.get(&listener)?;
        let owner = listening.owner;
        let (socket, peer) = listening.socket.accept().ok()?;
        let peer = peer.as_socket()?.ip();
        socket.set_nonblocking(true).ok()?;
        socket.set_tcp_nodelay(true).ok()?;
        let key = self.keep(socket, owner, false).ok()?;
        Some((key, peer))
    }

    fn adopt(&mut self, key: SocketKey, owner: SessionKey) {
        if let Some(owned) = self.sockets.get_mut(&key) {
            owned.owner = SocketOwner::Session(owner);
        }
    }

    fn take_error(&mut self, key: SocketKey) -> io::Result<()> {
        match self.socket(key)?.take_error()? {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    fn read(&mut self, key: SocketKey, buffer: &mut [u8]) -> io::Result<usize> {
        let mut socket = self.socket(key)?;
        socket.read(buffer)
    }

    fn write(&mut self, key: SocketKey, bytes: &[u8]) -> io::Result<usize> {
        let mut socket = self.socket(key)?;
        socket.write(bytes)
    }

    fn watch_writable(&mut self, key: SocketKey, is_watched: bool) {
        let Some(owned) = self.sockets.get_mut(&key) else {
            return;
        };
        if owned.is_write_watched == is_watched {
            return;
        }
        owned.is_write_watched = is_watched;
        let mut event = EpollEvent::new(flags_of(is_watched), key.0);
        if let Err(error) = self.epoll.modify(&owned.socket, &mut event) {
            tracing::error!("a BGP connection is not waited for any more: {error}");
        }
    }

    fn unacknowledged_bytes(&self, key: SocketKey) -> u64 {
        let socket = self.socket(key);
        let bytes = socket.and_then(unacknowledged_bytes);
        bytes.map_or(0, u64::from)
    }

    fn close(&mut self, key: SocketKey) {
        if let Some(owned) = self.sockets.remove(&key) {
            // What was written leaves before the end.
            let _ = owned.socket.shutdown(Shutdown::Write);
            let _ = self.epoll.delete(&owned.socket);
        }
    }
}

fn flags_of(is_write_watched: bool) -> EpollFlags {
    match is_write_watched {
        true => EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT,
        false => EpollFlags::EPOLLIN,
    }
}

/// A socket of an address's family, in the namespace of a place.
fn open(place: &SpeakerPlace, address: SocketAddr) -> io::Result<Socket> {
    let open = || {
        let socket = Socket::new(
            Domain::for_address(address),
            Type::STREAM,
            Some(Protocol::TCP),
        )?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    };
    let Some(namespace) = &place.namespace else {
        return open();
    };
    let within =
        namespace.within(|| open().map_err(|error| NodesError::System("open a socket", error)));
    within.map_err(|error| match error {
        NodesError::System(_, error) => error,
        other => io::Error::other(other.to_string()),
    })
}
