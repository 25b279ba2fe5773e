//! What all peers of a transport may take together: connections, bytes of messages that arrive or are
//! answered, bytes of replies that wait to be read.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::AbortHandle;

use super::wire::SocketKind;

/// Connections for requests, and for what is published.
pub const CONNECTIONS_MAX: usize = 512;
/// Connections whose handshake is not over; one more ends the oldest.
pub const HANDSHAKES_MAX: usize = 64;
/// How long a handshake lasts.
pub const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// Bytes of replies that wait for their readers, of all peers.
pub const REPLY_BYTES_MAX: usize = 256 << 20;
/// Requests of so many bytes are always received.
pub(super) const SMALL_BYTES: usize = 64 << 10;
/// Who sends a larger one may pause so long, and take so long in all, while others wait for room.
const PAUSE_MAX: Duration = Duration::from_secs(1);
const RECEIVE_MAX: Duration = Duration::from_secs(10);
/// A line of the log about peers that were ended comes no sooner after the last.
const LOG_PAUSE: Duration = Duration::from_secs(1);

/// What a connection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    ShakingHands,
    /// Nothing was asked that is not answered.
    Idle,
    /// A large request arrives.
    Receiving,
    /// Its request is being answered.
    Asked,
    /// So many bytes of a reply wait to be read.
    Replying(usize),
}

/// A reply: the parts of proxies, and the text.
pub(super) type Reply = (Vec<Vec<u8>>, Vec<u8>);

/// One connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) kind: SocketKind,
    pub(super) address: String,
    pub(super) doing: Doing,
    /// Since when.
    since: Instant,
    /// When bytes of a large request came last.
    progress: Instant,
    pub(super) replies: UnboundedSender<Reply>,
    pub(super) published: Sender<Arc<[u8]>>,
    task: Option<AbortHandle>,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Connections {
    all: BTreeMap<u64, Connection>,
    last_id: u64,
    connections_max: usize,
    reply_bytes_max: usize,
    log: LogPause,
}

impl Connections {
    pub(super) fn new(connections_max: usize) -> Connections {
        Connections {
            all: BTreeMap::new(),
            last_id: 0,
            connections_max,
            reply_bytes_max: REPLY_BYTES_MAX,
            log: LogPause::default(),
        }
    }

    /// Adds one and makes room for it, if there can be any.
    pub(super) fn add(
        &mut self,
        kind: SocketKind,
        address: String,
        replies: UnboundedSender<Reply>,
        published: Sender<Arc<[u8]>>,
    ) -> Option<u64> {
        let handshakes = self
            .all
            .values()
            .filter(|one| one.doing == Doing::ShakingHands);
        if handshakes.count() >= HANDSHAKES_MAX {
            let oldest = self.longest(|one| one.doing == Doing::ShakingHands);
            self.end(oldest?, "too many connections do not say who they are");
        }
        let same = self.all.values().filter(|one| one.kind == kind);
        if same.count() >= self.connections_max {
            let idle = self.longest(|one| {
                one.kind == kind && kind == SocketKind::Router && one.doing == Doing::Idle
            });
            let Some(idle) = idle else {
                self.log.warn(&address, "there are too many connections");
                return None;
            };
            self.end(
                idle,
                "there are too many connections, and it has been silent longest",
            );
        }
        self.last_id += 1;
        let now = Instant::now();
        let connection = Connection {
            kind,
            address,
            doing: Doing::ShakingHands,
            since: now,
            progress: now,
            replies,
            published,
            task: None,
        };
        self.all.insert(self.last_id, connection);
        Some(self.last_id)
    }

    /// The task of a connection that was added; ended already when the connection was.
    pub(super) fn set_task(&mut self, id: u64, task: AbortHandle) {
        match self.all.get_mut(&id) {
            Some(connection) => connection.task = Some(task),
            None => task.abort(),
        }
    }

    pub(super) fn remove(&mut self, id: u64) {
        self.all.remove(&id);
    }

    pub(super) fn begin(&mut self, id: u64, doing: Doing) {
        if let Some(connection) = self.all.get_mut(&id) {
            connection.doing = doing;
            connection.since = Instant::now();
            connection.progress = connection.since;
        }
    }

    /// Bytes of a large request have arrived.
    pub(super) fn note_progress(&mut self, id: u64) {
        if let Some(connection) = self.all.get_mut(&id) {
            connection.progress = Instant::now();
        }
    }

    /// Hands a reply to its connection, unless that has gone. Those whose replies have waited longest
    /// are ended when all together are too many.
    pub(super) fn reply(&mut self, id: u64, route: Vec<Vec<u8>>, frame: Vec<u8>) {
        let Some(connection) = self.all.get_mut(&id) else {
            return;
        };
        let bytes = frame.len();
        connection.doing = Doing::Replying(bytes);
        connection.since = Instant::now();
        // Its task may be ending.
        let _ = connection.replies.send((route, frame));
        while self.reply_bytes() > self.reply_bytes_max {
            let oldest =
                self.longest(|one| matches!(one.doing, Doing::Replying(bytes) if bytes > 0));
            let Some(oldest) = oldest else {
                return;
            };
            self.end(
                oldest,
                "it does not read its reply, and too many bytes of replies wait",
            );
        }
    }

    fn reply_bytes(&self) -> usize {
        let bytes = self.all.values().map(|one| match one.doing {
            Doing::Replying(bytes) => bytes,
            _ => 0,
        });
        bytes.sum()
    }

    /// Tells all that listen; who has too much to read already is not told.
    pub(super) fn publish(&self, frame: &Arc<[u8]>) {
        for one in self.all.values() {
            if one.kind == SocketKind::Pub && one.published.try_send(Arc::clone(frame)).is_err() {
                tracing::debug!("a frame could not be published to {}", one.address);
            }
        }
    }

    /// Ends one whose large request does not arrive, while others wait for its room.
    pub(super) fn end_slowest(&mut self) {
        let now = Instant::now();
        let slowest = self.longest(|one| {
            one.doing == Doing::Receiving
                && (now - one.progress > PAUSE_MAX || now - one.since > RECEIVE_MAX)
        });
        if let Some(slowest) = slowest {
            self.end(
                slowest,
                "it does not finish its request, and others wait to send theirs",
            );
        }
    }

    /// Whether anything waits to be sent.
    pub(super) fn is_unsent(&self) -> bool {
        self.all.values().any(|one| {
            matches!(one.doing, Doing::Replying(_))
                || one.published.capacity() < one.published.max_capacity()
        })
    }

    /// Says that a peer was ended by itself, not more than once in a while.
    pub(super) fn log(&mut self, address: &str, why: &str) {
        self.log.warn(address, why);
    }

    fn longest(&self, filter: impl Fn(&Connection) -> bool) -> Option<u64> {
        let found = self.all.iter().filter(|(_, one)| filter(one));
        found.min_by_key(|(_, one)| one.since).map(|(id, _)| *id)
    }

    fn end(&mut self, id: u64, why: &str) {
        if let Some(connection) = self.all.remove(&id) {
            self.log.warn(&connection.address, why);
            if let Some(task) = connection.task {
                task.abort();
            }
        }
    }
}

/// Keeps the log short, whatever peers do.
#[derive(Debug, Default)]
struct LogPause {
    last: Option<Instant>,
    left_out: u64,
}

impl LogPause {
    fn warn(&mut self, address: &str, why: &str) {
        if self.last.is_some_and(|last| last.elapsed() < LOG_PAUSE) {
            self.left_out += 1;
            return;
        }
        self.last = Some(Instant::now());
        match std::mem::take(&mut self.left_out) {
            0 => tracing::warn!("RPC: disconnected {address}: {why}"),
            others => tracing::warn!(
                "RPC: disconnected {address}: {why}; {others} others since the last such line"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;

    fn add(connections: &mut Connections, kind: SocketKind) -> Option<u64> {
        let (replies, published) = (mpsc::unbounded_channel().0, mpsc::channel(1).0);
        connections.add(kind, "192.0.2.1".to_owned(), replies, published)
    }

    fn idle(connections: &mut Connections) -> u64 {
        let id = add(connections, SocketKind::Router).expect("room");
        connections.begin(id, Doing::Idle);
        id
    }

    #[test]
    fn the_silent_make_room_and_those_who_work_do_not() {
        let mut connections = Connections::new(3);
        let ids = [(); 3].map(|()| idle(&mut connections));
        connections.begin(ids[0], Doing::Asked);
        let more = idle(&mut connections);
        assert!(!connections.all.contains_key(&ids[1]));
        for busy in [ids[2], more] {
            connections.begin(busy, Doing::Asked);
        }
        assert_eq!(add(&mut connections, SocketKind::Router), None);
        assert!(add(&mut connections, SocketKind::Pub).is_some());
    }

    #[test]
    fn who_does_not_say_who_it_is_makes_room() {
        let mut connections = Connections::new(1000);
        for _ in 0..2 * HANDSHAKES_MAX {
            add(&mut connections, SocketKind::Router).expect("room");
        }
        assert_eq!(connections.all.len(), HANDSHAKES_MAX);
    }

    #[test]
    fn replies_that_nobody_reads_end_with_the_oldest() {
        let mut connections = Connections::new(1000);
        connections.reply_bytes_max = 1000;
        let ids = [(); 4].map(|()| idle(&mut connections));
        for id in ids {
            connections.reply(id, Vec::new(), vec![0; 400]);
        }
        let left: Vec<u64> = connections.all.keys().copied().collect();
        assert_eq!(left, ids[2..]);
    }
}
