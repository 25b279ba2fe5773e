//! The threads beside control: how they are started, reached and ended.
//!
//! What lives here: which queues each has, the rings and bells between them and control. What does
//! not: how they work (`worker`, `receive`), and when they are told what (`service`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use allosaur_engine::{Command, stateful};
use allosaur_port::kind::{AnyPort, PortRx, PortTx};
use allosaur_port::tap::{TapSwitch, tap};
use thiserror::Error;

use crate::affinity;
use crate::clock::Clock;
use crate::counters::Counters;
use crate::desk::{AskingEnd, desk};
use crate::endpoint::{open_capture, open_wire};
use crate::layout::{Layout, thread_name};
use crate::mailbox::{ControlEnd, Doorbell, mailbox};
use crate::observe::{Answer, Endpoint, Observe, PacketSink, Request, Wire};
use crate::orders::{FlowOrder, Order};
use crate::polling::Poll;
use crate::receive::Receiver;
use crate::receive::gather::{Gatherer, Way, way};
use crate::receive::watch::Watch;
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
    receive: Vec<JoinHandle<()>>,
    /// Each wakes a receive thread.
    receive_bells: Vec<Doorbell>,
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
    /// Starts them on `ports`, which have the queues that `layout` says.
    ///
    /// # Errors
    ///
    /// What the system refused.
    pub fn start(
        ports: Vec<AnyPort>,
        layout: &Layout,
        counters: &Counters,
        clock: &Clock,
    ) -> Result<(Threads, Outlook), Refusal> {
        let mut queues = Queues::share_out(ports, layout);
        let mut threads = Threads {
            mail: Vec::new(),
            doorbell: Doorbell::new().map_err(refused("a doorbell"))?,
            data: Vec::new(),
            known_lost: Vec::new(),
            receive: Vec::new(),
            receive_bells: Vec::new(),
            stop_receive: Arc::default(),
        };
        let switch = TapSwitch::default();
        let mut taps = Vec::new();
        for (core, queues) in queues.data.drain(..).enumerate() {
            let (tap_in, tap_out) = tap();
            taps.push(tap_out);
            let block = Arc::clone(&counters.cores[core]);
            let (control_end, worker_end) = mailbox(&threads.doorbell);
            let worker = Worker::serving(queues, worker_end, block, clock.clone());
            let worker = worker.tapped_by(tap_in, switch.clone());
            threads.start_data(core, worker, control_end, layout)?;
        }
        for _ in &layout.receive {
            let bell = Doorbell::new().map_err(refused("a doorbell"))?;
            threads.receive_bells.push(bell);
        }
        let first = threads.receive_bells[0].clone();
        let (asking, answering) = desk(first.clone());
        let watch = Watch::new(queues.own, taps, switch, answering);
        let receiver = Receiver::new(queues.receive, Arc::clone(&counters.receive), clock.clone());
        let (ways, watched) = threads.start_gatherers(queues.gather, layout, counters, clock)?;
        let receiver = receiver.watched_by(watch).joined_by(ways, watched);
        threads.start_receive(0, layout, move |poll, stop, bell| {
            receiver.run(poll, stop, bell);
        })?;
        let outlook = Outlook {
            desk: asking,
            receive: first,
            epoch_ns: epoch_ns(clock),
        };
        Ok((threads, outlook))
    }

    fn start_data(
        &mut self,
        core: usize,
        worker: Worker,
        mut control_end: ControlEnd,
        layout: &Layout,
    ) -> Result<(), Refusal> {
        let poll = layout.data_poll;
        let cpu = layout.data[core].cpu;
        let thread = spawn(format!("data-{core}"), cpu, move || worker.run(poll))?;
        control_end.wake_with(thread.thread().clone());
        self.mail.push(control_end);
        self.data.push(thread);
        Ok(())
    }

    /// Starts the receive threads but the first; gives the ways to them, and the switch that tells
    /// them which ports are watched.
    fn start_gatherers(
        &mut self,
        queues: Vec<Vec<Option<PortRx>>>,
        layout: &Layout,
        counters: &Counters,
        clock: &Clock,
    ) -> Result<(Vec<Way>, TapSwitch), Refusal> {
        let (mut ways, watched) = (Vec::new(), TapSwitch::default());
        for (number, (queues, block)) in (1..).zip(queues.into_iter().zip(&counters.gatherers)) {
            let bell = self.receive_bells[number].clone();
            let (near, far) = way(bell, self.receive_bells[0].clone(), watched.clone());
            let first = Arc::clone(&counters.receive);
            let gatherer = Gatherer::new(queues, far, Arc::clone(block), first, clock.clone());
            ways.push(near);
            self.start_receive(number, layout, move |poll, stop, bell| {
                gatherer.run(poll, stop, bell);
            })?;
        }
        Ok((ways, watched))
    }

    fn start_receive(
        &mut self,
        number: usize,
        layout: &Layout,
        run: impl FnOnce(Poll, &AtomicBool, &Doorbell) + Send + 'static,
    ) -> Result<(), Refusal> {
        let (poll, stop) = (layout.receive_poll, Arc::clone(&self.stop_receive));
        let bell = self.receive_bells[number].clone();
        let thread = spawn(thread_name(number), layout.receive[number], move || {
            run(poll, &stop, &bell);
        })?;
        self.receive.push(thread);
        Ok(())
    }

    /// Wakes the receive threads.
    pub fn wake_receive(&self) {
        for bell in &self.receive_bells {
            bell.ring();
        }
    }

    /// Sends an order to a data thread.
    pub fn send(&mut self, core: usize, order: impl Into<Order>) {
        let order = order.into();
        if is_start(&order) {
            // They may sleep deeply after a long silence.
            self.wake_receive();
        }
        self.mail[core].send(order);
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
        for bell in &self.receive_bells {
            bell.ring();
        }
        for thread in self.data.into_iter().chain(self.receive) {
            thread.thread().unpark();
            if thread.join().is_err() {
                tracing::error!("a thread had panicked; see above");
            }
        }
    }
}

/// Whether frames will come soon because of an order.
fn is_start(order: &Order) -> bool {
    matches!(
        order,
        Order::Streams(Command::StartProfile { .. })
            | Order::Flows(FlowOrder::Command(stateful::Command::Start { .. }))
    )
}

/// The queues of all ports, by the threads that own them.
struct Queues {
    /// Of each data thread, one of each port that it serves.
    data: Vec<Vec<Option<PortTx>>>,
    /// What the first receive thread sends through, one of each port.
    own: Vec<PortTx>,
    /// What the first receive thread reads, one of each port.
    receive: Vec<PortRx>,
    /// What each other receive thread reads, one of each port that has so many.
    gather: Vec<Vec<Option<PortRx>>>,
}

impl Queues {
    fn share_out(ports: Vec<AnyPort>, layout: &Layout) -> Queues {
        let mut queues = Queues {
            data: layout.data.iter().map(|_| Vec::new()).collect(),
            own: Vec::new(),
            receive: Vec::new(),
            gather: layout.receive[1..].iter().map(|_| Vec::new()).collect(),
        };
        for (number, port) in ports.into_iter().enumerate() {
            let mut tx = port.tx.into_iter();
            for (thread, own) in layout.data.iter().zip(&mut queues.data) {
                let serves = thread.ports.contains(&number);
                own.push(if serves { tx.next() } else { None });
            }
            queues.own.extend(tx.next());
            let mut rx = port.rx.into_iter();
            queues.receive.extend(rx.next());
            for own in &mut queues.gather {
                own.push(rx.next());
            }
        }
        queues
    }
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
