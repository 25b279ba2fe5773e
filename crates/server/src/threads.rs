//! The threads beside control: how they are started, reached and ended.
//!
//! What lives here: the rings and bells between them and control; in `sharing` which queues each has.
//! What does not: how they work (`worker`, `flows`, `receive`), and when they are told what (`service`).

mod sharing;

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
use crate::desk::{AskingEnd, desk};
use crate::endpoint::{open_capture, open_wire};
use crate::flows::{Flows, Joints};
use crate::layout::{Layout, thread_name};
use crate::mailbox::{Alarm, ControlEnd, Doorbell, Sleeper, mailbox};
use crate::observe::{Answer, Endpoint, Observe, PacketSink, Request, Wire};
use crate::orders::{FlowOrder, Order};
use crate::polling::Poll;
use crate::receive::Receiver;
use crate::receive::gather::{Gatherer, Watched, Way, way};
use crate::receive::watch::Watch;
use crate::worker::Worker;
use sharing::{FlowQueues, OwnQueues, Queues};

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
        flows: Option<Vec<stateful::Config>>,
        counters: &Counters,
        clock: &Clock,
    ) -> Result<(Threads, Outlook), Refusal> {
        let mut threads = Threads {
            mail: Vec::new(),
            doorbell: Doorbell::new().map_err(refused("a doorbell"))?,
            data: Vec::new(),
            known_lost: Vec::new(),
            receive: Vec::new(),
            receive_bells: Vec::new(),
            stop_receive: Arc::default(),
        };
        for _ in &layout.receive {
            let bell = Doorbell::new().map_err(refused("a doorbell"))?;
            threads.receive_bells.push(bell);
        }
        let first = threads.receive_bells[0].clone();
        let (asking, answering) = desk(first.clone());
        let around = Around {
            layout,
            counters,
            clock,
        };
        let (switch, watched) = (TapSwitch::default(), Watched::default());
        let (taps, own, receive, ways, alarms) = match flows {
            None => {
                let mut queues = Queues::share_out(ports, layout);
                let data = std::mem::take(&mut queues.data);
                let taps = threads.start_workers(data, &switch, around)?;
                let ways = threads.start_gatherers(queues.gather, &watched, around)?;
                (taps, queues.own, queues.receive, ways, Vec::new())
            }
            Some(configs) => {
                let alarms = (0..configs.len()).map(|_| Alarm::new());
                let alarms = alarms.collect::<Result<Vec<_>, _>>();
                let alarms = alarms.map_err(refused("an alarm"))?;
                let queues = FlowQueues::share_out(ports, layout, &alarms);
                let (taps, ways) = threads.start_flows(
                    configs,
                    queues.data,
                    &alarms,
                    &switch,
                    &watched,
                    around,
                )?;
                (taps, queues.own, queues.nothing, ways, alarms)
            }
        };
        let watch = Watch::new(own, taps, switch, answering).waking(alarms);
        let receiver = Receiver::new(receive, Arc::clone(&counters.receive), clock.clone());
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

    /// Starts the data threads of stateless mode; gives the taps of what they send.
    fn start_workers(
        &mut self,
        queues: Vec<Vec<Option<PortTx>>>,
        switch: &TapSwitch,
        around: Around<'_>,
    ) -> Result<Vec<TapOut>, Refusal> {
        let mut taps = Vec::new();
        for (core, queues) in queues.into_iter().enumerate() {
            let (tap_in, tap_out) = tap();
            taps.push(tap_out);
            let block = Arc::clone(&around.counters.cores[core]);
            let (mut control_end, worker_end) = mailbox(&self.doorbell);
            let worker = Worker::serving(queues, worker_end, block, around.clock.clone());
            let worker = worker.tapped_by(tap_in, switch.clone());
            let poll = around.layout.data_poll;
            let thread = self.start_data(core, around, move || worker.run(poll))?;
            control_end.wake_with(Sleeper::Parked(thread));
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
        alarms: &[Alarm],
        switch: &TapSwitch,
        watched: &Watched,
        around: Around<'_>,
    ) -> Result<(Vec<TapOut>, Vec<Way>), Refusal> {
        let (mut taps, mut ways) = (Vec::new(), Vec::new());
        for (core, (config, own)) in configs.into_iter().zip(queues).enumerate() {
            let (tap_in, tap_out) = tap();
            taps.push(tap_out);
            let alarm = alarms[core].clone();
            let first = self.receive_bells[0].clone();
            let (near, end) = way(alarm.bell().clone(), first, watched.clone());
            ways.push(near);
            let (mut control_end, mail) = mailbox(&self.doorbell);
            let joints = Joints {
                mail,
                end,
                core: Arc::clone(&around.counters.cores[core]),
                arrivals: Arc::clone(&around.counters.flows[core]),
                first: Arc::clone(&around.counters.receive),
            };
            let flows = Flows::new(config, own.tx, own.rx, joints, around.clock.clone());
            let flows = flows.tapped_by(tap_in, switch.clone());
            let poll = around.layout.data_poll;
            control_end.wake_with(Sleeper::Alarmed(alarm.clone()));
            self.mail.push(control_end);
            self.start_data(core, around, move || flows.run(poll, &alarm))?;
        }
        Ok((taps, ways))
    }

    fn start_data(
        &mut self,
        core: usize,
        around: Around<'_>,
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
    fn start_gatherers(
        &mut self,
        queues: Vec<Vec<Option<PortRx>>>,
        watched: &Watched,
        around: Around<'_>,
    ) -> Result<Vec<Way>, Refusal> {
        let Around {
            layout,
            counters,
            clock,
        } = around;
        let mut ways = Vec::new();
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
        Ok(ways)
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

/// What all threads are started with.
#[derive(Clone, Copy)]
struct Around<'a> {
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
