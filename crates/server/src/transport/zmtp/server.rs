//! The thread: it accepts connections, and has a task for each.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tokio::net::TcpStream;
use tokio::runtime;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};

use super::budget::{Doing, HANDSHAKE_MAX};
use super::connection::{Closing, Requests, Shared, Subscriber};
use super::handshake::{Access, NoHandshake, shake_hands};
use super::message::Request;
use super::stream::PeerStream;
use super::wire::SocketKind;
use crate::transport::access::AccessList;

/// How long nobody is accepted after the system could not: it is short of files or memory.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long a server that ends tries to deliver its last replies, and looks whether it has.
const LINGER: Duration = Duration::from_millis(500);
const LINGER_LOOK: Duration = Duration::from_millis(2);
/// Published frames that wait for one slow subscriber; later ones are not sent to it.
const PUBLISHED_MAX: usize = 1000;

/// What is listened on, and for whom.
pub(in super::super) struct Listening {
    pub(in super::super) requests: Vec<TcpListener>,
    pub(in super::super) published: Vec<TcpListener>,
    pub(in super::super) access: Option<AccessList>,
    pub(in super::super) connections_max: usize,
    /// Of one request; and of all that arrive or are answered.
    pub(in super::super) frame_bytes_max: usize,
    pub(in super::super) bytes_max: usize,
}

/// A request, and the number of who sent it.
#[derive(Debug)]
pub(in super::super) struct Arrived {
    pub(in super::super) peer: u64,
    pub(in super::super) route: Vec<Vec<u8>>,
    pub(in super::super) frame: Vec<u8>,
    pub(in super::super) left_out: usize,
}

/// The thread, which ends when this is dropped.
pub(in super::super) struct ZmtpServer {
    shared: Arc<Shared>,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// What the tasks have.
struct Tasks {
    shared: Arc<Shared>,
    access: Option<Access>,
    arrived: Sender<Arrived>,
    notify: Box<dyn Fn() + Send + Sync>,
}

impl ZmtpServer {
    /// Starts it, on the CPUs of the thread that calls this. Requests go to `arrived`, of which
    /// `notify` tells.
    pub(in super::super) fn start(
        listening: Listening,
        arrived: Sender<Arrived>,
        notify: impl Fn() + Send + Sync + 'static,
    ) -> io::Result<ZmtpServer> {
        let shared = Arc::new(Shared::new(
            listening.connections_max,
            listening.frame_bytes_max,
            listening.bytes_max,
        ));
        let tasks = Arc::new(Tasks {
            shared: Arc::clone(&shared),
            access: listening.access.map(Access::new),
            arrived,
            notify: Box::new(notify),
        });
        let (end, ended) = oneshot::channel::<()>();
        let mut builder = runtime::Builder::new_current_thread();
        let runtime = builder.enable_io().enable_time().build()?;
        let requests = listening.requests.into_iter();
        let requests = requests.map(|one| (SocketKind::Router, one));
        let published = listening.published.into_iter();
        let published = published.map(|one| (SocketKind::Pub, one));
        let listeners: Vec<_> = requests.chain(published).collect();
        let body = move || {
            runtime.block_on(async {
                for (kind, listener) in listeners {
                    tokio::spawn(accept(kind, listener, Arc::clone(&tasks)));
                }
                // Nothing is ever sent: it ends when its other end is gone.
                let _ = ended.await;
                let until = Instant::now() + LINGER;
                while tasks.shared.connections().is_unsent() && Instant::now() < until {
                    sleep(LINGER_LOOK).await;
                }
            });
        };
        let thread = thread::Builder::new().name("rpc".to_owned()).spawn(body)?;
        Ok(ZmtpServer {
            shared,
            end: Some(end),
            thread: Some(thread),
        })
    }

    /// Sends a reply to who has asked. Nothing happens when it has gone.
    pub(in super::super) fn reply(&self, peer: u64, route: Vec<Vec<u8>>, frame: Vec<u8>) {
        self.shared.connections().reply(peer, route, frame);
    }

    /// Tells all subscribers.
    pub(in super::super) fn publish(&self, frame: Vec<u8>) {
        self.shared.connections().publish(&frame.into());
    }
}

impl Drop for ZmtpServer {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            if thread.join().is_err() {
                tracing::error!("the thread for ZeroMQ's protocol had panicked; see above");
            }
        }
    }
}

async fn accept(kind: SocketKind, listener: TcpListener, tasks: Arc<Tasks>) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!("requests are not answered: {error}");
            return;
        }
    };
    loop {
        match listener.accept().await {
            Ok((stream, address)) => begin(kind, stream, address, &tasks),
            Err(error) => {
                tracing::warn!("a connection was not accepted: {error}");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn begin(kind: SocketKind, stream: TcpStream, address: SocketAddr, tasks: &Arc<Tasks>) {
    let address = address.ip().to_canonical().to_string();
    let (reply_sender, replies) = mpsc::unbounded_channel();
    let (publish_sender, published) = mpsc::channel(PUBLISHED_MAX);
    let mut connections = tasks.shared.connections();
    let Some(id) = connections.add(kind, address.clone(), reply_sender, publish_sender) else {
        return;
    };
    let connection = RegisteredConnection {
        id,
        tasks: Arc::clone(tasks),
    };
    let task = tokio::spawn(async move {
        // It is slower without, no more.
        let _ = stream.set_nodelay(true);
        let tasks = Arc::clone(&connection.tasks);
        let stream = PeerStream::new(stream);
        let Some(stream) = connection.shake_hands(kind, stream, &address).await else {
            return;
        };
        let closing = match kind {
            SocketKind::Router => {
                let requests = Requests {
                    id,
                    shared: &tasks.shared,
                    stream,
                    replies,
                };
                requests.serve(|request| tasks.deliver(id, request)).await
            }
            SocketKind::Pub => Subscriber { stream, published }.serve().await,
        };
        connection.note_closing(&address, &closing);
    });
    connections.set_task(id, task.abort_handle());
}

impl Tasks {
    fn deliver(&self, peer: u64, request: Request) {
        let arrived = Arrived {
            peer,
            route: request.route,
            frame: request.frame,
            left_out: request.left_out,
        };
        // Nobody receives any more when the server ends.
        let _ = self.arrived.send(arrived);
        (self.notify)();
    }
}

/// A connection is in the list as long as its task is there.
struct RegisteredConnection {
    id: u64,
    tasks: Arc<Tasks>,
}

impl RegisteredConnection {
    async fn shake_hands(
        &self,
        kind: SocketKind,
        mut stream: PeerStream,
        address: &str,
    ) -> Option<PeerStream> {
        let hands = shake_hands(&mut stream, kind, address, self.tasks.access.as_ref());
        let connections = || self.tasks.shared.connections();
        match timeout(HANDSHAKE_MAX, hands).await {
            Ok(Ok(())) => {
                connections().begin(self.id, Doing::Idle);
                return Some(stream);
            }
            // A look whether somebody listens, as our client does.
            Ok(Err(NoHandshake::Gone(error))) => tracing::debug!("RPC: {address} left: {error}"),
            Ok(Err(NoHandshake::Refused)) => {}
            Ok(Err(problem)) => connections().log(address, &problem.to_string()),
            Err(_) => connections().log(address, "its handshake takes too long"),
        }
        None
    }

    fn note_closing(&self, address: &str, closing: &Closing) {
        match closing {
            Closing::Gone(_) | Closing::End => tracing::debug!("RPC: {address}: {closing}"),
            Closing::Violation(_) | Closing::Subscriptions => {
                let mut connections = self.tasks.shared.connections();
                connections.log(address, &closing.to_string());
            }
        }
    }
}

impl Drop for RegisteredConnection {
    fn drop(&mut self) {
        self.tasks.shared.connections().remove(self.id);
    }
}
