//! The thread that has BIRD: it starts it, starts it again when it ends, and does what clients ask of it.
//!
//! The thread is in BIRD's network namespace, and BIRD ends with it. Control has no part in it, so neither
//! waits for the other.

mod calls;
mod fragments;

use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use allosaur_api::BirdDialect;
use allosaur_nodes::NodesError;
use allosaur_nodes::bird::Bird;
use allosaur_nodes::owner::Owner;
use thiserror::Error;

use self::calls::Calls;
use crate::threads::message_port::MessagePort;
use crate::threads::refusal::{Refusal, refused};
use crate::threads::waker::Notify;
use crate::transport::{BIRD_BYTES_MAX, BoxedTransport};

/// Why there is no BIRD.
#[derive(Debug, Error)]
pub(super) enum BirdStartError {
    /// BIRD itself, or its namespace.
    #[error(transparent)]
    Bird(#[from] NodesError),
    /// The thread.
    #[error(transparent)]
    System(#[from] Refusal),
}

/// The thread, which ends when this is dropped, and BIRD with it.
#[derive(Debug)]
pub(super) struct BirdThread {
    owner: Arc<Owner>,
    is_ending: Arc<AtomicBool>,
    notify: Notify,
    thread: Option<JoinHandle<()>>,
}

impl BirdThread {
    /// Starts it, and waits until BIRD answers. Handlers are drawn from the seed.
    ///
    /// # Errors
    ///
    /// BIRD is not installed, a privilege is missing, and what else the system says.
    pub(super) fn start(
        transports: Vec<BoxedTransport>,
        seed: u64,
    ) -> Result<BirdThread, BirdStartError> {
        let refused = || refused("a thread for BIRD");
        let notify = Notify::new().map_err(refused())?;
        let messages =
            MessagePort::start(transports, "BIRD messages", BIRD_BYTES_MAX, notify.clone());
        let is_ending = Arc::<AtomicBool>::default();
        let service = BirdService {
            messages: messages.map_err(refused())?,
            notify: notify.clone(),
            is_ending: Arc::clone(&is_ending),
        };
        let (started, has_started) = channel();
        let thread = thread::Builder::new().name("BIRD".to_owned());
        let thread = thread.spawn(move || service.start(seed, &started));
        let thread = thread.map_err(refused())?;
        let owner = has_started.recv().map_err(|_| {
            let error = NodesError::Unfit("the thread for BIRD ended; see above".to_owned());
            BirdStartError::Bird(error)
        });
        Ok(BirdThread {
            owner: owner??,
            is_ending,
            notify,
            thread: Some(thread),
        })
    }

    /// The right to the namespaces of the server, of which BIRD has one.
    pub(super) fn owner(&self) -> Arc<Owner> {
        Arc::clone(&self.owner)
    }
}

impl Drop for BirdThread {
    fn drop(&mut self) {
        self.is_ending.store(true, Ordering::Relaxed);
        self.notify.notify();
        if let Some(thread) = self.thread.take() {
            if thread.join().is_err() {
                tracing::error!("the thread for BIRD had panicked; see above");
            }
        }
    }
}

/// What the thread has.
struct BirdService {
    messages: MessagePort<BirdDialect>,
    notify: Notify,
    is_ending: Arc<AtomicBool>,
}

impl BirdService {
    fn start(self, seed: u64, started: &Sender<Result<Arc<Owner>, NodesError>>) {
        let bird = Owner::new().and_then(|mut owner| {
            let bird = Bird::start(&mut owner, Instant::now())?;
            Ok((Arc::new(owner), bird))
        });
        match bird {
            Ok((owner, bird)) => {
                tracing::info!("BIRD {} runs", bird.version());
                let namespace = owner.bird().map_or("", |namespace| namespace.name());
                let calls = Calls::new(bird, namespace.to_owned(), seed);
                // Nobody waits where the server ends already.
                let _ = started.send(Ok(owner));
                self.run(calls);
            }
            Err(error) => {
                let _ = started.send(Err(error));
            }
        }
    }

    fn run(mut self, mut calls: Calls) {
        while !self.is_ending.load(Ordering::Relaxed) {
            if self.wait(&calls.bird) {
                self.messages.receive();
            }
            self.messages.handle_converted();
            if let Some(event) = calls.bird.supervise(Instant::now()) {
                tracing::warn!("{event}");
            }
            if let Some((peer, request)) = self.messages.next_request() {
                let reply = calls.handle(&request, Instant::now());
                self.messages.answer(peer, reply);
            }
            self.messages.send_replies();
        }
    }

    /// Waits for messages, for the end of BIRD, for its next start, and for the end. Whether a message may
    /// have arrived.
    fn wait(&self, bird: &Bird) -> bool {
        let has_arrived = self.messages.has_arrived();
        let timeout_ms = match bird.poll_timeout() {
            _ if has_arrived || self.messages.is_ready() => 0,
            Some(at) => at.saturating_duration_since(Instant::now()).as_millis() as i64 + 1,
            None => -1,
        };
        let own: Vec<RawFd> = std::iter::once(self.notify.file().as_raw_fd())
            .chain(bird.exit_file())
            .collect();
        let files = own.iter().copied().chain(self.messages.descriptors());
        let items = files.map(|file| zmq::PollItem::from_fd(file, zmq::POLLIN));
        let mut items: Vec<_> = items.collect();
        if let Err(error) = zmq::poll(&mut items, timeout_ms) {
            tracing::debug!("waiting was interrupted: {error}");
        }
        if items[0].is_readable() {
            self.notify.drain();
        }
        has_arrived || items[own.len()..].iter().any(zmq::PollItem::is_readable)
    }
}
