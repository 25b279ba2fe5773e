//! The sockets that sessions need, as the driver knows them.

use std::io;
use std::net::{IpAddr, SocketAddr};

use allosaur_bgp::speaker::BgpSessionId;

use super::request::SpeakerPlace;

/// A socket, by a number that is never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SocketKey(pub(super) u64);

/// A speaker, by a number that is never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SpeakerId(pub(super) u32);

/// A session of a speaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SessionKey {
    pub(super) speaker: SpeakerId,
    pub(super) session: BgpSessionId,
}

/// Whose socket it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SocketOwner {
    /// A speaker waits there for peers.
    Listener(SpeakerId),
    /// It is the connection of a session.
    Session(SessionKey),
}

/// A socket is ready.
#[derive(Clone, Copy, Debug)]
pub(super) struct SocketEvent {
    pub(super) key: SocketKey,
    pub(super) owner: SocketOwner,
    pub(super) is_readable: bool,
    pub(super) is_writable: bool,
}

/// A connection to a peer, as it shall be opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dial<'a> {
    pub(super) place: &'a SpeakerPlace,
    pub(super) peer: SocketAddr,
    pub(super) md5: Option<&'a str>,
}

/// Opens, reads, writes and closes sockets; none of it waits. Which are ready, the driver is
/// [told](SocketEvent).
pub(super) trait BgpSockets {
    /// Begins to connect. When that came to an end the socket is writable.
    fn connect(&mut self, owner: SessionKey, dial: Dial<'_>) -> io::Result<SocketKey>;

    /// Waits for peers at an address.
    fn listen(
        &mut self,
        owner: SpeakerId,
        place: &SpeakerPlace,
        address: SocketAddr,
    ) -> io::Result<SocketKey>;

    /// Takes a key for a peer from now on; an empty one takes it away.
    fn set_listener_key(&mut self, listener: SocketKey, peer: IpAddr, key: &str) -> io::Result<()>;

    /// The next connection of a peer, if there is one.
    fn accept(&mut self, listener: SocketKey) -> Option<(SocketKey, IpAddr)>;

    /// A connection that was accepted is that of a session.
    fn adopt(&mut self, key: SocketKey, owner: SessionKey);

    /// Why a connection was not opened, or nothing where it was.
    fn take_error(&mut self, key: SocketKey) -> io::Result<()>;

    /// Reads what has arrived; 0 is the end.
    fn read(&mut self, key: SocketKey, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes what there is room for.
    fn write(&mut self, key: SocketKey, bytes: &[u8]) -> io::Result<usize>;

    /// Whether the driver is told when there is room.
    fn watch_writable(&mut self, key: SocketKey, is_watched: bool);

    /// Bytes that were written, and that the peer has not acknowledged.
    fn unacknowledged_bytes(&self, key: SocketKey) -> u64;

    /// Closes it, after what was written.
    fn close(&mut self, key: SocketKey);
}
