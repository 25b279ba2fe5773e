//! The thread that takes requests to emulated clients: it reads and writes their JSON, and has the data
//! threads, where the clients are, do them one after the other.
//!
//! Control has no part in it, so neither waits for the other.

mod calls;

use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use allosaur_emulation::rpc::dialect::EmulationDialect;

use self::calls::{Calls, Done, Part};
use crate::control::QuestionId;
use crate::emulation::{EmulationAnswer, EmulationRequest};
use crate::threads::emulated::{CallLinks, ClientSender};
use crate::threads::message_port::MessagePort;
use crate::threads::process_usage::process_usage;
use crate::threads::refusal::{Refusal, refused};
use crate::threads::waker::Notify;
use crate::transport::{BoxedTransport, EMULATION_BYTES_MAX};

/// The thread, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct EmulationThread {
    is_ending: Arc<AtomicBool>,
    notify: Notify,
    thread: Option<JoinHandle<()>>,
}

impl EmulationThread {
    /// Starts it. What is asked goes to the data threads, which wake this one.
    ///
    /// # Errors
    ///
    /// When the system has no threads.
    pub(super) fn start(
        transports: Vec<BoxedTransport>,
        links: CallLinks,
    ) -> Result<EmulationThread, Refusal> {
        let CallLinks {
            requests,
            map,
            notify,
        } = links;
        let refused = || refused("a thread for emulated clients");
        let is_ending = Arc::<AtomicBool>::default();
        let (name, tell) = ("emulation messages", notify.clone());
        let messages = MessagePort::start(transports, name, EMULATION_BYTES_MAX, tell);
        let service = EmulationService {
            messages: messages.map_err(refused())?,
            requests,
            calls: Calls::new(map),
            last_question: 0,
            notify: notify.clone(),
            is_ending: Arc::clone(&is_ending),
        };
        let thread = thread::Builder::new().name("emulation".to_owned());
        let thread = thread.spawn(move || service.run());
        Ok(EmulationThread {
            is_ending,
            notify,
            thread: Some(thread.map_err(refused())?),
        })
    }
}

impl Drop for EmulationThread {
    fn drop(&mut self) {
        self.is_ending.store(true, Ordering::Relaxed);
        self.notify.notify();
        if let Some(thread) = self.thread.take() {
            if thread.join().is_err() {
                tracing::error!("the thread for emulated clients had panicked; see above");
            }
        }
    }
}

/// What the thread has.
struct EmulationService {
    messages: MessagePort<EmulationDialect>,
    /// To each data thread.
    requests: Vec<ClientSender>,
    calls: Calls,
    last_question: u64,
    notify: Notify,
    is_ending: Arc<AtomicBool>,
}

impl EmulationService {
    fn run(mut self) {
        while !self.is_ending.load(Ordering::Relaxed) {
            if self.wait() {
                self.messages.receive();
            }
            self.messages.handle_converted();
            self.take_answers();
            self.begin_calls();
            self.give_parts();
            self.messages.send_replies();
        }
        while let Some(done) = self.calls.give_up() {
            self.complete(done);
        }
        self.messages.send_replies();
    }

    /// Waits for messages, for what data threads answer, and for the end. Whether a message may
    /// have arrived.
    fn wait(&self) -> bool {
        let has_arrived = self.messages.has_arrived();
        let timeout_ms = match self.calls.poll_timeout() {
            _ if has_arrived || self.may_begin() => 0,
            Some(at) => at.saturating_duration_since(Instant::now()).as_millis() as i64 + 1,
            None => -1,
        };
        let own = self.notify.file().as_raw_fd();
        let files = std::iter::once(own).chain(self.messages.descriptors());
        let items = files.map(|file| zmq::PollItem::from_fd(file, zmq::POLLIN));
        let mut items: Vec<_> = items.collect();
        if let Err(error) = zmq::poll(&mut items, timeout_ms) {
            tracing::debug!("waiting was interrupted: {error}");
        }
        if items[0].is_readable() {
            self.notify.drain();
        }
        has_arrived || items[1..].iter().any(zmq::PollItem::is_readable)
    }

    fn may_begin(&self) -> bool {
        self.messages.is_ready() && self.calls.has_room()
    }

    fn begin_calls(&mut self) {
        while self.may_begin() {
            let Some((peer, call)) = self.messages.next_request() else {
                return;
            };
            let pending = self.calls.begin(call, Instant::now());
            self.messages.wait(peer, pending);
        }
    }

    fn give_parts(&mut self) {
        while let Some(Part { of, shard, call }) = self.calls.poll_part() {
            self.last_question += 1;
            let usage = call.wants_usage().then(process_usage);
            let request = EmulationRequest::Call {
                call,
                number: of.0,
                usage,
            };
            let question = QuestionId(self.last_question);
            self.requests[shard].send(question, request);
        }
    }

    /// Takes what data threads have done, in the order of the parts, and gives up what they take too long
    /// for.
    fn take_answers(&mut self) {
        let now = Instant::now();
        while let Some(shard) = self.calls.next_shard() {
            let Some((_, answer)) = self.requests[shard].receive() else {
                break;
            };
            let EmulationAnswer::Called(reply) = answer else {
                tracing::error!("not what was asked: {answer:?}");
                continue;
            };
            if let Some(done) = self.calls.handle_reply(reply, now) {
                self.complete(done);
            }
        }
        while let Some(done) = self.calls.handle_timeout(now) {
            self.complete(done);
        }
    }

    fn complete(&mut self, (pending, reply): Done) {
        self.messages.complete(pending, reply);
    }
}
