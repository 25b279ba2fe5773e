//! What is done with a connection once it stands: requests in and replies out, or what is published.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use thiserror::Error;
use tokio::sync::mpsc::{Receiver, UnboundedReceiver};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::budget::{Connections, Doing, Reply, SMALL_BYTES};
use super::message::{Event, MessageReader, Request, Violation};
use super::stream::{First, PeerStream, first};
use super::wire::{FrameHeader, command, part, read_command};

/// After so long without room for a request, see who holds it.
const LOOK: Duration = Duration::from_millis(200);
/// What a subscriber may send at once, and may listen to.
const SUBSCRIPTION_BYTES_MAX: u64 = 1 << 10;
const SUBSCRIPTIONS_MAX: usize = 64;
/// Bytes of a PING's context (RFC 37/ZMTP), which come back; and of the time before it.
const CONTEXT_BYTES_MAX: usize = 16;
const TTL_BYTES: usize = 2;

/// Why a connection ends.
#[derive(Debug, Error)]
pub(super) enum Closing {
    #[error("it has gone: {0}")]
    Gone(#[from] io::Error),
    #[error(transparent)]
    Violation(#[from] Violation),
    #[error(
        "it subscribes to more than {SUBSCRIPTIONS_MAX} topics, or to one of more than {SUBSCRIPTION_BYTES_MAX} bytes"
    )]
    Subscriptions,
    #[error("the server ends")]
    End,
}

/// What all connections of a transport share.
pub(super) struct Shared {
    connections: Mutex<Connections>,
    /// Kilobytes of large requests that may arrive or be answered.
    room: Arc<Semaphore>,
    kilobytes: usize,
    pub(super) frame_bytes_max: usize,
}

impl Shared {
    pub(super) fn new(connections_max: usize, frame_bytes_max: usize, bytes_max: usize) -> Shared {
        let kilobytes = bytes_max >> 10;
        Shared {
            connections: Mutex::new(Connections::new(connections_max)),
            room: Arc::new(Semaphore::new(kilobytes)),
            kilobytes,
            frame_bytes_max,
        }
    }

    pub(super) fn connections(&self) -> MutexGuard<'_, Connections> {
        let connections = self.connections.lock();
        connections.expect("who changes the connections does not panic")
    }

    /// Waits for room for so many bytes, and ends who keeps it without need.
    async fn reserve(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Closing> {
        let kilobytes = bytes.div_ceil(1 << 10).min(self.kilobytes) as u32;
        let permit = Arc::clone(&self.room).acquire_many_owned(kilobytes);
        let mut permit = std::pin::pin!(permit);
        loop {
            match timeout(LOOK, permit.as_mut()).await {
                Ok(permit) => return permit.map_err(|_| Closing::End),
                Err(_) => self.connections().end_slowest(),
            }
        }
    }
}

/// A connection for requests. One is answered at a time, as control does the requests of a peer in
/// order anyway: the next waits where it costs nothing, with its sender.
pub(super) struct Requests<'s> {
    pub(super) id: u64,
    pub(super) shared: &'s Shared,
    pub(super) stream: PeerStream,
    pub(super) replies: UnboundedReceiver<Reply>,
}

impl Requests<'_> {
    /// Hands requests to `deliver` and sends the replies, until the peer goes or does what it must not.
    pub(super) async fn serve(mut self, deliver: impl Fn(Request)) -> Closing {
        match self.run(deliver).await {
            Ok(never) => never,
            Err(closing) => closing,
        }
    }

    async fn run(&mut self, deliver: impl Fn(Request)) -> Result<Closing, Closing> {
        let mut reader = MessageReader::new(self.shared.frame_bytes_max);
        let mut room: Vec<OwnedSemaphorePermit> = Vec::new();
        let mut reserved = 0;
        let mut is_asked = false;
        loop {
            let (used, event) = reader.take(self.stream.bytes(), !is_asked)?;
            self.stream.consume(used);
            match event {
                Event::Request(request) => {
                    is_asked = true;
                    self.shared.connections().begin(self.id, Doing::Asked);
                    deliver(request);
                }
                Event::Command(body) => {
                    answer_ping(&mut self.stream, &body).await?;
                    if !is_asked && reserved == 0 {
                        // Who says that it is there is not silent.
                        self.shared.connections().begin(self.id, Doing::Idle);
                    }
                }
                Event::Begins(held) => {
                    if held > SMALL_BYTES && held > reserved {
                        if reserved == 0 {
                            self.shared.connections().begin(self.id, Doing::Receiving);
                        }
                        room.push(self.shared.reserve(held - reserved).await?);
                        self.shared.connections().note_progress(self.id);
                        reserved = held;
                    }
                }
                Event::Incomplete | Event::Held => {
                    let is_held = event == Event::Held;
                    if let Some((route, frame)) = self.wait(is_held).await? {
                        // The request is needed no more.
                        room.clear();
                        reserved = 0;
                        self.send(&route, &frame).await?;
                        is_asked = false;
                        self.shared.connections().begin(self.id, Doing::Idle);
                    } else if reserved > 0 && !is_asked {
                        self.shared.connections().note_progress(self.id);
                    }
                }
            }
        }
    }

    /// Waits for more bytes, unless the next request has begun to arrive, and for the reply.
    async fn wait(&mut self, is_held: bool) -> Result<Option<Reply>, Closing> {
        let reply = self.replies.recv();
        if is_held {
            return Ok(Some(reply.await.ok_or(Closing::End)?));
        }
        match first(reply, self.stream.fill()).await {
            First::One(reply) => Ok(Some(reply.ok_or(Closing::End)?)),
            First::Other(filled) => {
                filled?;
                Ok(None)
            }
        }
    }

    async fn send(&mut self, route: &[Vec<u8>], frame: &[u8]) -> io::Result<()> {
        let mut head = Vec::new();
        for hop in route {
            head.extend(part(hop, true));
        }
        head.extend(part(b"", true));
        let last = FrameHeader {
            more: false,
            is_command: false,
            bytes: frame.len() as u64,
        };
        last.emit(&mut head);
        if frame.len() <= SMALL_BYTES {
            head.extend_from_slice(frame);
            return self.stream.write(&head).await;
        }
        self.stream.write(&head).await?;
        self.stream.write(frame).await
    }
}

/// A PING is answered with its context; other commands ask nothing.
async fn answer_ping(stream: &mut PeerStream, body: &[u8]) -> io::Result<()> {
    let Some((b"PING", rest)) = read_command(body) else {
        return Ok(());
    };
    let context = rest.get(TTL_BYTES..).unwrap_or_default();
    let context = &context[..context.len().min(CONTEXT_BYTES_MAX)];
    stream.write(&command("PONG", context)).await
}

/// A connection for what is published.
pub(super) struct Subscriber {
    pub(super) stream: PeerStream,
    pub(super) published: Receiver<Arc<[u8]>>,
}

impl Subscriber {
    /// Sends what the peer listens to, until it goes or does what it must not.
    pub(super) async fn serve(mut self) -> Closing {
        match self.run().await {
            Ok(never) => never,
            Err(closing) => closing,
        }
    }

    async fn run(&mut self) -> Result<Closing, Closing> {
        let mut topics: Vec<Vec<u8>> = Vec::new();
        loop {
            while let Some((is_command, body)) = self.frame()? {
                match (is_command, read_command(&body)) {
                    (true, Some((b"SUBSCRIBE", topic))) => add_topic(&mut topics, topic)?,
                    (true, Some((b"CANCEL", topic))) => remove_topic(&mut topics, topic),
                    (true, _) => answer_ping(&mut self.stream, &body).await?,
                    (false, _) => match body.split_first() {
                        Some((1, topic)) => add_topic(&mut topics, topic)?,
                        Some((0, topic)) => remove_topic(&mut topics, topic),
                        _ => {}
                    },
                }
            }
            match first(self.stream.fill(), self.published.recv()).await {
                First::One(filled) => filled?,
                First::Other(None) => return Ok(Closing::End),
                First::Other(Some(frame)) => {
                    if topics.iter().any(|topic| frame.starts_with(topic)) {
                        self.stream.write(&part(&frame, false)).await?;
                    }
                }
            }
        }
    }

    /// The next frame that is whole: whether it is a command, and its bytes.
    fn frame(&mut self) -> Result<Option<(bool, Vec<u8>)>, Closing> {
        let bytes = self.stream.bytes();
        let header = FrameHeader::parse(bytes).map_err(Violation::from)?;
        let Some((header, at)) = header else {
            return Ok(None);
        };
        if header.bytes > SUBSCRIPTION_BYTES_MAX {
            return Err(Closing::Subscriptions);
        }
        let end = at + header.bytes as usize;
        let Some(body) = bytes.get(at..end).map(<[u8]>::to_vec) else {
            return Ok(None);
        };
        self.stream.consume(end);
        Ok(Some((header.is_command, body)))
    }
}

fn add_topic(topics: &mut Vec<Vec<u8>>, topic: &[u8]) -> Result<(), Closing> {
    if topics.len() >= SUBSCRIPTIONS_MAX {
        return Err(Closing::Subscriptions);
    }
    topics.push(topic.to_vec());
    Ok(())
}

fn remove_topic(topics: &mut Vec<Vec<u8>>, topic: &[u8]) {
    if let Some(at) = topics.iter().position(|one| one == topic) {
        topics.swap_remove(at);
    }
}
