//! The threads beside control: how they are started, reached and ended.
//!
//! What lives here: the rings and bells between them and control; in `queues` which queues each has.
//! What does not: how they work (`worker`, `flows`, `receive`), and when they are told what (`service`).

pub mod flows;
mod queues;
pub mod receive;
mod tx_queues;
pub mod worker;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, Thread};

use allosaur_engine::{Command, stateful};
use allosaur_port::kind::{AnyPort, PortRx, PortTx};
use allosaur_port::tap::{TapOut, TapSwitch, tap};
use thiserror::Error;

use crate::affinity;
use crate::clock::Clock;
use crate::counters::Counters;
use crate::endpoint::{open_capture, open_wire};
use crate::layout::{Layout, thread_name};
use crate::mailbox::{ControlEnd, Notify, ThreadWaker, Waker, mailbox};
use crate::observe::{Answer, Endpoint, Observe, PacketSink, Request, Wire};
use crate::polling::Poll;
use crate::request_channel::{RequestSender, request_channel};
use crate::worker_command::{FlowCommand, WorkerCommand};
use flows::{Flows, WorkerLinks};
use queues::{FlowQueues, OwnQueues, Queues};
use receive::Receiver;
use receive::secondary::{ForwardRx, SecondaryReceiver, Watched, forward_channel};
use receive::watch::Watch;
use worker::Worker;

/// All threads but control's, and the way to them.
#[derive(Debug)]
pub struct Threads {
    /// Of each data thread.
    pub mail: Vec<ControlEnd>,
    /// Rings when a data thread reports.
    pub control_notify: Notify,
    data: Vec<JoinHandle<()>>,
    /// Data threads that are known to have broken down.
    known_lost: Vec<usize>,
    receive: Vec<JoinHandle<()>>,
    /// Each wakes a receive thread.
    receive_notifies: Vec<Notify>,
    stop_receive: Arc<AtomicBool>,
}

/// Control's way to who watches frames.
#[derive(Debug)]
pub struct RxHandle {
    request_channel: RequestSender,
    receive: Notify,
    /// The time since 1970 at the clock's zero.
    epoch_ns: u64,
}

impl Observe for RxHandle {
    fn ask(&self, request: Request) -> Option<Answer> {
        self.request_channel.ask(request)
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
        flows: Option<Vec<stateful::Config>>,
        counters: &Counters,
        clock: &Clock,
    ) -> Result<(Threads, RxHandle), Refusal> {
        let mut threads = Threads {
            mail: Vec::new(),
            control_notify: Notify::new().map_err(refused("an eventfd"))?,
            data: Vec::new(),
            known_lost: Vec::new(),
            receive: Vec::new(),
            receive_notifies: Vec::new(),
            stop_receive: Arc::default(),
        };
        for _ in &layout.receive {
            let notify = Notify::new().map_err(refused("an eventfd"))?;
            threads.receive_notifies.push(notify);
        }
        let first = threads.receive_notifies[0].clone();
        let (asking, answering) = request_channel(first.clone());
        let around = SpawnContext {
            layout,
            counters,
            clock,
        };
        let (switch, watched) = (TapSwitch::default(), Watched::default());
        let (taps, own, receive, forward_rx, wakers) = match flows {
            None => {
                let mut queues = Queues::share_out(ports, layout);
                let data = std::mem::take(&mut queues.data);
                let taps = threads.start_workers(data, &switch, around)?;
                let forward_rx = threads.start_secondaries(queues.gather, &watched, around)?;
                (taps, queues.own, queues.receive, forward_rx, Vec::new())
            }
            Some(configs) => {
                let wakers = (0..configs.len()).map(|_| Waker::new());
                let wakers = wakers.collect::<Result<Vec<_>, _>>();
                let wakers = wakers.map_err(refused("a waker"))?;
                let queues = FlowQueues::share_out(ports, layout, &wakers);
                let (taps, forward_rx) = threads.start_flows(
                    configs,
                    queues.data,
                    &wakers,
                    &switch,
                    &watched,
                    around,
                )?;
                (taps, queues.own, queues.nothing, forward_rx, wakers)
            }
        };
        let watch = Watch::new(own, taps, switch, answering).waking(wakers);
        let receiver = Receiver::new(receive, Arc::clone(&counters.receive), clock.clone());
        let receiver = receiver.watched_by(watch).joined_by(forward_rx, watched);
        threads.start_receive(0, layout, move |poll, stop, notify| {
            receiver.run(poll, stop, notify);
        })?;
        let outlook = RxHandle {
            request_channel: asking,
            receive: first,
            epoch_ns: epoch_ns(clock),
        };
        Ok((threads, outlook))
    }

    /// Starts the data threads of stateless mode; gives the taps of what they send.
    fn start_workers(
        &mut self,
        queues: Vec<Vec<Option<PortTx>>>,
        switch: &TapSwitch,
        around: SpawnContext<'_>,
    ) -> Result<Vec<TapOut>, Refusal> {
        let mut taps = Vec::new();
        for (core, queues) in queues.into_iter().enumerate() {
            let (tap_in, tap_out) = tap();
            taps.push(tap_out);
            let block = Arc::clone(&around.counters.cores[core]);
            let (mut control_end, worker_end) = mailbox(&self.control_notify);
            let worker = Worker::serving(queues, worker_end, block, around.clock.clone());
            let worker = worker.tapped_by(tap_in, switch.clone());
            let poll = around.layout.data_poll;
            let thread = self.start_data(core, around, move || worker.run(poll))?;
            control_end.wake_with(ThreadWaker::Parked(thread));
            self.mail.push(control_end);
        }
        Ok(taps)
    }

    /// Starts the data threads of stateful mode; gives the taps of what they send, and the ways on
    /// which they pass on what is no flow's.
    fn start_flows(
        &mut self,
        configs: Vec<stateful::Config>,
        queues: Vec<OwnQueues>,
        wakers: &[Waker],
        switch: &TapSwitch,
        watched: &Watched,
        around: SpawnContext<'_>,
    ) -> Result<(Vec<TapOut>, Vec<ForwardRx>), Refusal> {
        let (mut taps, mut forward_rx) = (Vec::new(), Vec::new());
        for (core, (config, own)) in configs.into_iter().zip(queues).enumerate() {
            let (tap_in, tap_out) = tap();
            taps.push(tap_out);
            let waker = wakers[core].clone();
            let first = self.receive_notifies[0].clone();
            let (near, end) = forward_channel(waker.notify().clone(), first, watched.clone());
            forward_rx.push(near);
            let (mut control_end, mail) = mailbox(&self.control_notify);
            let joints = WorkerLinks {
                mail,
                end,
                core: Arc::clone(&around.counters.cores[core]),
                arrivals: Arc::clone(&around.counters.flows[core]),
                first: Arc::clone(&around.counters.receive),
            };
            let flows = Flows::new(config, own.tx, own.rx, joints, around.clock.clone());
            let flows = flows.tapped_by(tap_in, switch.clone());
            let poll = around.layout.data_poll;
            control_end.wake_with(ThreadWaker::Waiting(waker.clone()));
            self.mail.push(control_end);
            self.start_data(core, around, move || flows.run(poll, &waker))?;
        }
        Ok((taps, forward_rx))
    }

    fn start_data(
        &mut self,
        core: usize,
        around: SpawnContext<'_>,
        run: impl FnOnce() + Send + 'static,
    ) -> Result<Thread, Refusal> {
        let cpu = around.layout.data[core].cpu;
        let thread = spawn(format!("data-{core}"), cpu, run)?;
        let handle = thread.thread().clone();
        self.data.push(thread);
        Ok(handle)
    }

    /// Starts the receive threads but the first, which are told what is `watched`; gives the ways to
    /// them.
    fn start_secondaries(
        &mut self,
        queues: Vec<Vec<Option<PortRx>>>,
        watched: &Watched,
        around: SpawnContext<'_>,
    ) -> Result<Vec<ForwardRx>, Refusal> {
        let SpawnContext {
            layout,
            counters,
            clock,
        } = around;
        let mut forward_rx = Vec::new();
        for (number, (queues, block)) in (1..).zip(queues.into_iter().zip(&counters.secondaries)) {
            let notify = self.receive_notifies[number].clone();
            let (near, forward_tx) =
                forward_channel(notify, self.receive_notifies[0].clone(), watched.clone());
            let first = Arc::clone(&counters.receive);
            let secondary =
                SecondaryReceiver::new(queues, forward_tx, Arc::clone(block), first, clock.clone());
            forward_rx.push(near);
            self.start_receive(number, layout, move |poll, stop, notify| {
                secondary.run(poll, stop, notify);
            })?;
        }
        Ok(forward_rx)
    }

    fn start_receive(
        &mut self,
        number: usize,
        layout: &Layout,
        run: impl FnOnce(Poll, &AtomicBool, &Notify) + Send + 'static,
    ) -> Result<(), Refusal> {
        let (poll, stop) = (layout.receive_poll, Arc::clone(&self.stop_receive));
        let notify = self.receive_notifies[number].clone();
        let thread = spawn(thread_name(number), layout.receive[number], move || {
            run(poll, &stop, &notify);
        })?;
        self.receive.push(thread);
        Ok(())
    }

    /// Wakes the receive threads.
    pub fn wake_receive(&self) {
        for notify in &self.receive_notifies {
            notify.notify();
        }
    }

    /// Sends a command to a data thread.
    pub fn send(&mut self, core: usize, order: impl Into<WorkerCommand>) {
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
        for notify in &self.receive_notifies {
            notify.notify();
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
fn is_start(order: &WorkerCommand) -> bool {
    matches!(
        order,
        WorkerCommand::Streams(Command::StartProfile { .. })
            | WorkerCommand::Flows(FlowCommand::Command(stateful::Command::Start { .. }))
    )
}

/// What all threads are started with.
#[derive(Clone, Copy)]
struct SpawnContext<'a> {
    layout: &'a Layout,
    counters: &'a Counters,
    clock: &'a Clock,
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
