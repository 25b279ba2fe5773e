//! The thread that takes requests to emulated clients: it reads and writes their JSON, and has the
//! first receive thread, where the clients are, do them one after the other.
//!
//! Control has no part in it, so neither waits for the other.

use std::collections::VecDeque;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use allosaur_emulation::params::RpcError;
use allosaur_emulation::rpc::call::RpcCall;
use allosaur_emulation::rpc::envelope::Message;
use nix::time::ClockId;
use nix::unistd::SysconfVar;
use serde_json::Value;

use crate::control::QuestionId;
use crate::rx_taps::{Answer, EmulationAnswer, EmulationRequest, ProcessUsage};
use crate::threads::request_channel::RequestSender;
use crate::threads::waker::Notify;
use crate::threads::{Refusal, refused};
use crate::transport::{
    self, Codec, EMULATION_BYTES_MAX, Envelope, Transport, ZmqTransport, framing,
};

/// How long the receive thread may take for one call, or one part of a long one.
const CALL_MAX: Duration = Duration::from_secs(30);
/// Clients of one part of a long call. Between two parts the receive thread looks at frames and
/// timers, and sends what these clients say when they come.
const PART_CLIENTS: usize = 32;
/// Parts that may be under way, so that the receive thread need not wait for the next.
const PARTS_MAX: u64 = 8;
/// What calls begin with whose answer tells of the whole process.
const MONITOR: &str = "ctx_resource_monitor_";
/// What the user hears then.
const NO_ANSWER: &str = "the receive thread does not answer: try again with less in one request, and \
                         look at the server's log if that does not help";
/// Calls of a message that are done before another message has its turn.
const TURN_CALLS: u32 = 64;
/// Messages that are read and not answered; one that is alone may have any length.
const OPEN_MAX: usize = 4;
/// Bytes of their texts.
const OPEN_BYTES_MAX: usize = 8 << 20;
/// Bytes of the replies to one message; what is left of it is refused then.
const REPLY_BYTES_MAX: usize = 64 << 20;
const TOO_MANY_REPLIES: &str = "this message has replies of more than 67108864 bytes already, which is \
                                the most: send the calls that were refused again, fewer at a time";

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
            codec: Codec::default().limited_to(EMULATION_BYTES_MAX),
            waiting: VecDeque::new(),
            open: VecDeque::new(),
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

/// The parts of a call that the receive thread was given.
#[derive(Debug, Default)]
struct Parts {
    asked: u64,
    under_way: u64,
}

/// What the thread has.
struct FrontDoor {
    transports: Vec<ZmqTransport>,
    calls: RequestSender,
    last_call: u64,
    notify: Notify,
    is_ending: Arc<AtomicBool>,
    codec: Codec,
    /// Messages that are not read, with the numbers of their transports.
    waiting: VecDeque<(usize, transport::Message)>,
    /// Those of which calls are done in turn.
    open: VecDeque<Open>,
}

/// A message that is being answered.
struct Open {
    transport: usize,
    from: Envelope,
    message: Message,
    text_bytes: usize,
    zipped: bool,
}

impl FrontDoor {
    fn run(mut self) {
        while !self.is_ending() {
            if self.open.is_empty() {
                self.wait_for_messages();
            }
            for (number, transport) in self.transports.iter_mut().enumerate() {
                // A peer has one message under way, so these are not many.
                while let Some(message) = transport.receive() {
                    self.waiting.push_back((number, message));
                }
            }
            self.open_messages();
            if let Some(open) = self.open.pop_front() {
                self.answer(open);
            }
        }
    }

    /// Reads messages, as many as may be open: as values they take many times their bytes.
    fn open_messages(&mut self) {
        while let Some((_, message)) = self.waiting.front() {
            let open_bytes: usize = self.open.iter().map(|open| open.text_bytes).sum();
            let text_bytes = framing::text_bytes(&message.frame).min(EMULATION_BYTES_MAX);
            let is_full = self.open.len() >= OPEN_MAX || open_bytes + text_bytes > OPEN_BYTES_MAX;
            if is_full && !self.open.is_empty() {
                return;
            }
            let (transport, message) = self.waiting.pop_front().expect("it was just seen");
            let (read, zipped) = self.read(&message);
            self.open.push_back(Open {
                transport,
                from: message.from,
                message: read,
                text_bytes,
                zipped,
            });
        }
    }

    /// Takes a message apart, whatever its bytes are.
    fn read(&mut self, message: &transport::Message) -> (Message, bool) {
        let read = match message.left_out {
            0 => self.codec.decode(&message.frame),
            more => {
                let bytes = message.frame.len() + more;
                Err(allosaur_api::Error::too_large(bytes, EMULATION_BYTES_MAX))
            }
        };
        match read {
            Ok(text) => (Message::read(&text.bytes), text.zipped),
            Err(error) => (Message::refused(error.to_string()), false),
        }
    }

    /// Does a turn of a message, and replies when it was the last.
    fn answer(&mut self, mut open: Open) {
        for _ in 0..TURN_CALLS {
            let Some(call) = open.message.next_call() else {
                let text = open.message.into_text();
                let frame = self.codec.encode(text, open.zipped);
                self.transports[open.transport].reply(open.from, frame);
                return;
            };
            open.message
                .answer(match open.message.reply_bytes() > REPLY_BYTES_MAX {
                    true => Err(RpcError::new(TOO_MANY_REPLIES)),
                    false => self.call(call),
                });
        }
        self.open.push_back(open);
    }

    fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Relaxed)
    }

    /// Has the receive thread do a call, a long one part after part, and waits for it. The reply is
    /// that of the last part, or the first error: what is behind it is not done.
    fn call(&mut self, mut call: RpcCall) -> Result<Value, RpcError> {
        let usage = call.method.starts_with(MONITOR).then(process_usage);
        let mut parts = Parts::default();
        while let Some(part) = call.split_off(PART_CLIENTS) {
            self.ask(part, None, &mut parts);
            if parts.under_way >= PARTS_MAX {
                self.wait_for_part(&mut parts)?;
            }
        }
        self.ask(call, usage, &mut parts);
        let mut reply = Value::Null;
        while parts.under_way > 0 {
            reply = self.wait_for_part(&mut parts)?;
        }
        Ok(reply)
    }

    /// Gives a part of a call to the receive thread.
    fn ask(&mut self, call: RpcCall, usage: Option<ProcessUsage>, parts: &mut Parts) {
        self.last_call += 1;
        let request = EmulationRequest::Call {
            call,
            is_rest: parts.asked > 0,
            usage,
        };
        self.calls.send(QuestionId(self.last_call), request.into());
        parts.asked += 1;
        parts.under_way += 1;
    }

    /// Waits for the answer to the earliest part that is under way. Answers to parts behind one that
    /// failed come later, to nobody.
    fn wait_for_part(&mut self, parts: &mut Parts) -> Result<Value, RpcError> {
        let own = QuestionId(self.last_call - parts.under_way + 1);
        let until = Instant::now() + CALL_MAX;
        loop {
            match self.calls.receive() {
                Some((question, Answer::Emulation(EmulationAnswer::Called(reply))))
                    if question == own =>
                {
                    parts.under_way -= 1;
                    return reply;
                }
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
