//! The thread that takes requests to emulated clients: it reads and writes their JSON, and has the
//! first receive thread, where the clients are, do them one after the other.
//!
//! Control has no part in it, so neither waits for the other.

use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use allosaur_emulation::params::RpcError;
use allosaur_emulation::rpc::envelope::Message;
use nix::time::ClockId;
use nix::unistd::SysconfVar;
use serde_json::Value;

use crate::control::QuestionId;
use crate::rx_taps::{Answer, ProcessUsage, Request};
use crate::threads::request_channel::RequestSender;
use crate::threads::waker::Notify;
use crate::threads::{Refusal, refused};
use crate::transport::{Codec, Transport, ZmqTransport};

/// How long the receive thread may take for one call: 100,000 clients are added in a second.
const CALL_MAX: Duration = Duration::from_secs(30);
/// What calls begin with whose answer tells of the whole process.
const MONITOR: &str = "ctx_resource_monitor_";
/// What the user hears then.
const NO_ANSWER: &str = "the receive thread does not answer: try again with less in one request, and \
                         look at the server's log if that does not help";
/// A message and its text: as much as 100,000 clients need.
const MESSAGE_BYTES_MAX: usize = 32 << 20;
/// Messages of a transport that are answered before another has its turn.
const MESSAGES_PER_TURN: u32 = 32;

/// The thread, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct EmulationThread {
    is_ending: Arc<AtomicBool>,
    notify: Notify,
    thread: Option<JoinHandle<()>>,
}

impl EmulationThread {
    /// Starts it. `calls` goes to the receive thread, which wakes this one by `notify`.
    ///
    /// # Errors
    ///
    /// When the system has no threads.
    pub(super) fn start(
        transports: Vec<ZmqTransport>,
        calls: RequestSender,
        notify: Notify,
    ) -> Result<EmulationThread, Refusal> {
        let is_ending = Arc::<AtomicBool>::default();
        let front_door = FrontDoor {
            transports,
            calls,
            last_call: 0,
            notify: notify.clone(),
            is_ending: Arc::clone(&is_ending),
            codec: Codec::default().limited_to(MESSAGE_BYTES_MAX),
        };
        let thread = thread::Builder::new().name("emulation".to_owned());
        let thread = thread.spawn(move || front_door.run());
        Ok(EmulationThread {
            is_ending,
            notify,
            thread: Some(thread.map_err(refused("a thread for emulated clients"))?),
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
struct FrontDoor {
    transports: Vec<ZmqTransport>,
    calls: RequestSender,
    last_call: u64,
    notify: Notify,
    is_ending: Arc<AtomicBool>,
    codec: Codec,
}

impl FrontDoor {
    fn run(mut self) {
        while !self.is_ending() {
            self.wait_for_messages();
            for number in 0..self.transports.len() {
                for _ in 0..MESSAGES_PER_TURN {
                    let Some(message) = self.transports[number].receive() else {
                        break;
                    };
                    let frame = self.answer(&message.frame);
                    self.transports[number].reply(message.from, frame);
                }
            }
        }
    }

    fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Relaxed)
    }

    /// The reply to a message, whatever its bytes are.
    fn answer(&mut self, frame: &[u8]) -> Vec<u8> {
        let (mut message, zipped) = match self.codec.decode(frame) {
            Ok(text) => (Message::read(&text.bytes), text.zipped),
            Err(error) => (Message::refused(error.to_string()), false),
        };
        while let Some((method, params)) = message.next_call() {
            let reply = self.call(method, params);
            message.answer(reply);
        }
        self.codec.encode(message.into_text(), zipped)
    }

    /// Has the receive thread do a call, and waits for it.
    fn call(&mut self, method: String, params: Value) -> Result<Value, RpcError> {
        self.last_call += 1;
        let own = QuestionId(self.last_call);
        let usage = method.starts_with(MONITOR).then(process_usage);
        self.calls.send(
            own,
            Request::Emulate {
                method,
                params,
                usage,
            },
        );
        let until = Instant::now() + CALL_MAX;
        loop {
            match self.calls.receive() {
                Some((question, Answer::Emulated(reply))) if question == own => return reply,
                // The answer to a call that was given up.
                Some(_) => {}
                None if self.is_ending() => return Err(RpcError::new("the server ends")),
                None if Instant::now() >= until => return Err(RpcError::new(NO_ANSWER)),
                None => self.wait_for_answer(until),
            }
        }
    }

    /// Waits for messages, and for the end.
    fn wait_for_messages(&self) {
        if self.transports.iter().any(Transport::is_ready) {
            return;
        }
        let transports = self.transports.iter().map(Transport::descriptor);
        let files = std::iter::once(self.notify.file().as_raw_fd()).chain(transports);
        wait(files, -1);
        self.notify.drain();
    }

    /// Waits for what the receive thread tells, and for the end.
    fn wait_for_answer(&self, until: Instant) {
        let left = until.saturating_duration_since(Instant::now());
        let file = self.notify.file().as_raw_fd();
        wait(std::iter::once(file), left.as_millis() as i64 + 1);
        self.notify.drain();
    }
}

/// What all of the server has used, which is what TRex's users see of the emulation's process.
fn process_usage() -> ProcessUsage {
    let clock = nix::time::clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID);
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = pages.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    let page_bytes = nix::unistd::sysconf(SysconfVar::PAGE_SIZE);
    let page_bytes = page_bytes.ok().flatten().unwrap_or(4096) as u64;
    ProcessUsage {
        cpu_time: clock.map_or(0, |time| Duration::from(time).as_nanos() as u64),
        rss_bytes: pages.unwrap_or(0u64) * page_bytes,
    }
}

/// Waits until one of the files is readable; -1 is for ever.
fn wait(files: impl Iterator<Item = RawFd>, timeout_ms: i64) {
    let items = files.map(|file| zmq::PollItem::from_fd(file, zmq::POLLIN));
    let mut items: Vec<_> = items.collect();
    if let Err(error) = zmq::poll(&mut items, timeout_ms) {
        tracing::debug!("waiting was interrupted: {error}");
    }
}
