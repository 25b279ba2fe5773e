//! A TCP connection, with what was received and not used yet.

use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind};
use std::pin::pin;
use std::task::Poll;

use tokio::net::TcpStream;

/// Bytes that are received at once.
const BUFFER_BYTES: usize = 16 << 10;

/// The connection. Reading may be given up at any time; nothing is lost.
#[derive(Debug)]
pub(super) struct PeerStream {
    stream: TcpStream,
    buffer: Vec<u8>,
    used: usize,
}

impl PeerStream {
    pub(super) fn new(stream: TcpStream) -> PeerStream {
        PeerStream {
            stream,
            buffer: Vec::new(),
            used: 0,
        }
    }

    /// What has arrived and was not used.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.used..]
    }

    /// The next bytes are used.
    pub(super) fn consume(&mut self, bytes: usize) {
        self.used += bytes;
    }

    /// Waits for more bytes.
    pub(super) async fn fill(&mut self) -> io::Result<()> {
        self.buffer.drain(..self.used);
        self.used = 0;
        loop {
            self.stream.readable().await?;
            let had = self.buffer.len();
            self.buffer.resize(had + BUFFER_BYTES, 0);
            let read = self.stream.try_read(&mut self.buffer[had..]);
            self.buffer.truncate(had + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Waits until there are so many bytes.
    pub(super) async fn fill_to(&mut self, bytes: usize) -> io::Result<()> {
        while self.bytes().len() < bytes {
            self.fill().await?;
        }
        Ok(())
    }

    /// Sends all of it.
    pub(super) async fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.stream.try_write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.stream.writable().await?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// What came first of two.
pub(super) enum First<A, B> {
    One(A),
    Other(B),
}

/// Waits for the first of two; `one` goes before.
pub(super) async fn first<A, B>(
    one: impl Future<Output = A>,
    other: impl Future<Output = B>,
) -> First<A, B> {
    let (mut one, mut other) = (pin!(one), pin!(other));
    poll_fn(move |context| {
        if let Poll::Ready(came) = one.as_mut().poll(context) {
            return Poll::Ready(First::One(came));
        }
        other.as_mut().poll(context).map(First::Other)
    })
    .await
}
