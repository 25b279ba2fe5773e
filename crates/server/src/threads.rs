//! The threads beside control: how they are started, reached and ended.
//!
//! What lives here: which queues each has, the rings and bells between them and control. What does
//! not: how they work (`worker`, `receive`), and when they are told what (`service`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use allosaur_engine::Command;
use allosaur_port::kind::{AnyPort, PortRx, PortTx};
use allosaur_port::tap::{TapSwitch, tap};
use thiserror::Error;

use crate::affinity;
use crate::clock::Clock;
use crate::counters::Counters;
use crate::desk::{AskingEnd, desk};
use crate::endpoint::{open_capture, open_wire};
use crate::mailbox::{ControlEnd, Doorbell, mailbox};
use crate::observe::{Answer, Endpoint, Observe, PacketSink, Request, Wire};
use crate::polling::Poll;
use crate::receive::Receiver;
use crate::receive::watch::Watch;
use crate::settings::Cpus;
use crate::worker::Worker;

/// All threads but control's, and the way to them.
#[derive(Debug)]
pub struct Threads {
    /// Of each data thread.
    pub mail: Vec<ControlEnd>,
    /// Rings when a data thread reports.
    pub doorbell: Doorbell,
    data: Vec<JoinHandle<()>>,
    /// Data threads that are known to have broken down.
    known_lost: Vec<usize>,
    receive: JoinHandle<()>,
    /// Wakes the receive thread.
    pub receive_bell: Doorbell,
    stop_receive: Arc<AtomicBool>,
}

/// Control's way to who watches frames.
#[derive(Debug)]
pub struct Outlook {
    desk: AskingEnd,
    receive: Doorbell,
    /// The time since 1970 at the clock's zero.
    epoch_ns: u64,
}

impl Observe for Outlook {
    fn ask(&self, request: Request) -> Option<Answer> {
        self.desk.ask(request)
    }

    fn open_endpoint(
        &self,
        endpoint: &Endpoint,
        snap_bytes: usize,
    ) -> Result<Box<dyn PacketSink>, String> {
        open_capture(endpoint, snap_bytes, self.epoch_ns)
    }

    fn open_wire(&self, endpoint: &str) -> Result<Box<dyn Wire>, String> {
        open_wire(endpoint, self.receive.clone())
    }
}

impl Threads {
    /// Starts them on `ports`, which have a transmit queue for each data thread and one more.
    ///
    /// # Errors
    ///
    /// What the system refused.
    pub fn start(
        ports: Vec<AnyPort>,
        counters: &Counters,
        clock: &Clock,
        poll: Poll,
        cpus: &Cpus,
    ) -> Result<(Threads, Outlook), Refusal> {
        let doorbell = Doorbell::new().map_err(refused("a doorbell"))?;
        let (mut queues, receivers) = queues_of_threads(ports, counters.cores.len() + 1);
        let own_queues = queues.pop().expect("one for the receive thread");
        let switch = TapSwitch::default();
        let (mut mail, mut data, mut taps) = (Vec::new(), Vec::new(), Vec::new());
        for (core, queues) in queues.into_iter().enumerate() {
            let (mut control_end, worker_end) = mailbox(&doorbell);
            let block = Arc::clone(&counters.cores[core]);
            let (tap_in, tap_out) = tap();
            taps.push(tap_out);
            let worker = Worker::new(queues, worker_end, block, clock.clone());
            let worker = worker.tapped_by(tap_in, switch.clone());
            let thread = spawn(
                format!("data-{core}"),
                cpus.data.get(core).copied(),
                move || worker.run(poll),
            )?;
            control_end.wake_with(thread.thread().clone());
            mail.push(control_end);
            data.push(thread);
        }
        let receive_bell = Doorbell::new().map_err(refused("a doorbell"))?;
        let (asking, answering) = desk(receive_bell.clone());
        let watch = Watch::new(own_queues, taps, switch, answering);
        let receiver = Receiver::new(receivers, Arc::clone(&counters.receive), clock.clone());
        let receiver = receiver.watched_by(watch);
        let stop_receive = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stop_receive);
        let bell = receive_bell.clone();
        let receive = spawn("receive".to_owned(), cpus.receive, move || {
            receiver.run(poll, &stop, &bell);
        })?;
        let outlook = Outlook {
            desk: asking,
            receive: receive_bell.clone(),
            epoch_ns: epoch_ns(clock),
        };
        let threads = Threads {
            mail,
            doorbell,
            data,
            known_lost: Vec::new(),
            receive,
            receive_bell,
            stop_receive,
        };
        Ok((threads, outlook))
    }

    /// Sends a command to a data thread.
    pub fn send(&mut self, core: usize, command: Command) {
        if matches!(command, Command::StartProfile { .. }) {
            // It may sleep deeply after a long silence.
            self.receive_bell.ring();
        }
        self.mail[core].send(command);
    }

    /// The data threads that ended by themselves; each is told once.
    pub fn lost(&mut self) -> Vec<usize> {
        let data = self.data.iter().enumerate();
        let ended = data.filter(|(_, thread)| thread.is_finished());
        let ended = ended.map(|(core, _)| core);
        let new: Vec<usize> = ended
            .filter(|core| !self.known_lost.contains(core))
            .collect();
        self.known_lost.extend(&new);
        new
    }

    /// Ends all of them, and waits until they have ended.
    pub fn end(self) {
        drop(self.mail);
        self.stop_receive.store(true, Ordering::Relaxed);
        self.receive_bell.ring();
        for thread in self.data.into_iter().chain([self.receive]) {
            thread.thread().unpark();
            if thread.join().is_err() {
                tracing::error!("a thread had panicked; see above");
            }
        }
    }
}

/// The transmit queues of each thread, one of each port, and the receive queues.
fn queues_of_threads(ports: Vec<AnyPort>, threads: usize) -> (Vec<Vec<PortTx>>, Vec<PortRx>) {
    let mut queues: Vec<Vec<_>> = (0..threads).map(|_| Vec::new()).collect();
    let mut receivers = Vec::new();
    for port in ports {
        for (thread, queue) in queues.iter_mut().zip(port.tx) {
            thread.push(queue);
        }
        receivers.extend(port.rx);
    }
    (queues, receivers)
}

/// The time since 1970 at the clock's zero.
fn epoch_ns(clock: &Clock) -> u64 {
    let since_1970 = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = since_1970.map_or(0, |time| time.as_nanos() as u64);
    now.saturating_sub(clock.now_ns())
}

/// Starts a thread; on a CPU of its own, if there is one.
fn spawn(
    name: String,
    cpu: Option<usize>,
    body: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, Refusal> {
    let builder = std::thread::Builder::new().name(name);
    let bound = move || {
        if let Some(Err(error)) = cpu.map(affinity::bind) {
            tracing::warn!(cpu, "a thread cannot be bound to its CPU: {error}");
        }
        body();
    };
    builder.spawn(bound).map_err(refused("a thread"))
}

/// What the system refused, and what it said.
#[derive(Debug, Error)]
#[error("the system refused {what}: {error}")]
pub struct Refusal {
    /// What was asked for.
    pub what: &'static str,
    /// What it said.
    pub error: std::io::Error,
}

/// Makes a refusal of `what` out of an error.
pub fn refused(what: &'static str) -> impl FnOnce(std::io::Error) -> Refusal {
    move |error| Refusal { what, error }
}
