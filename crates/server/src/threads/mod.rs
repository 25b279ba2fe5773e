//! The threads beside control: how they are started, reached and ended.
//!
//! Data threads send, and receive what is for flows; receive threads take all that arrives at other
//! ports. All of them work and wait by one loop ([`idle`]).

pub mod affinity;
mod arrivals;
mod awake;
mod background;
mod bird;
pub mod client_frames;
pub mod clock;
pub mod control;
pub mod data;
mod emulated;
mod emulation;
pub mod endpoint;
mod exports;
mod flow_sharing;
pub mod forward;
mod handover;
mod idle;
pub mod job;
pub mod layout;
pub mod mailbox;
mod message_port;
mod process_usage;
mod queues;
pub mod receive;
mod refusal;
pub mod request_channel;
mod run_time;
pub mod shard_links;
mod table;
mod tx_losses;
pub mod waker;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use allosaur_emulation::Settings as EmulationSettings;
use allosaur_engine::stateful;
use allosaur_nodes::namespace::NetworkNamespace;
use allosaur_port::kind::PortRx;
use allosaur_port::open::AnyPort;
use allosaur_port::tap::{TapOut, TapSwitch, tap};

use crate::config::polling::Poll;
use crate::control::QuestionId;
use crate::control::worker_command::PortMode;
use crate::counters::Counters;
use crate::emulation::ProcessUsage;
use crate::rx_taps::emu_channel::EmuChannel;
use crate::rx_taps::{Answer, Endpoint, Endpoints, NodeSocket, PacketSink, Request, Wire};
use crate::threads::clock::Clock;
use crate::threads::endpoint::{open_capture, open_emu_channel, open_node_socket, open_wire};
use crate::threads::layout::{Layout, thread_name};
use crate::threads::mailbox::{ControlEnd, WorkerEnd, mailbox};
use crate::threads::process_usage::process_usage;
use crate::threads::request_channel::{RequestSender, request_channel};
use crate::threads::run_time::RunTime;
use crate::threads::waker::{Notify, Waker};
use client_frames::{ClientFrames, InhabitedPorts};
use data::{DataThread, EmulationState, FlowLinks, FlowState, Report, WorkerCommand};
use emulated::{CallLinks, EmulatedParts, EmulationLinks, Surroundings};
use forward::{ForwardRx, Watched, forward_channel};
pub use handover::HandoverError;
use handover::{FlowParts, PortOwner};
use queues::{DataQueues, Queues};
use receive::secondary::SecondaryReceiver;
use receive::watch::Watch;
use receive::{Receiver, RxCommand, RxReport};
pub use refusal::{Refusal, refused};

/// All threads but control's, and the way to them.
#[derive(Debug)]
pub struct Threads {
    /// Of each data thread.
    mail: Vec<ControlEnd<WorkerCommand, Report>>,
    /// What the first receive thread is asked.
    questions: RequestSender,
    /// The ways to emulated clients, where there may be such.
    emulation: Option<EmulationLinks>,
    /// Reports that came while control waited for others.
    unheard: VecDeque<(usize, Report)>,
    /// Of each receive thread, where ports change their mode.
    receive_mail: Vec<ControlEnd<RxCommand, RxReport>>,
    /// Who reads which port.
    ports: Vec<PortOwner>,
    /// Of each data thread that has no flows yet and may get them.
    flow_parts: Vec<Option<FlowParts>>,
    /// Tells control that a data thread has reported.
    pub control_notify: Notify,
    data: Vec<JoinHandle<()>>,
    /// Data threads that are known to have broken down.
    known_lost: Vec<usize>,
    receive: Vec<JoinHandle<()>>,
    /// Each wakes a receive thread.
    receive_wakers: Vec<Waker>,
    stop_receive: Arc<AtomicBool>,
}

/// Who is emulated on the ports besides what control knows.
#[derive(Debug, Default)]
pub struct Emulated {
    /// What our own emulated clients begin with.
    pub clients: Option<EmulationSettings>,
    /// The sockets to an emulation server of another process: for what it receives, and what it sends.
    pub channel: Option<[String; 2]>,
}

/// Opens what the receive thread hands packets to.
#[derive(Debug)]
pub struct RxHandle {
    receive: Waker,
    /// The time since 1970 at the clock's zero.
    epoch_ns: u64,
    time: RunTime,
}

impl RxHandle {
    /// What wakes the receive thread, when its clock's time began, and how it spends its time.
    fn new(receive: Waker, clock: &Clock, time: RunTime) -> RxHandle {
        RxHandle {
            receive,
            epoch_ns: epoch_ns(clock),
            time,
        }
    }

    /// Whether something waits for the receive thread; to be told now and then.
    fn note_waiting(&self, is_waited_for: bool) {
        self.time.note(is_waited_for);
    }
}

impl Endpoints for RxHandle {
    fn process_usage(&self) -> ProcessUsage {
        process_usage()
    }

    fn receive_time(&self) -> Option<String> {
        self.time.in_words()
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

    fn open_nodes(&self, outer: &NetworkNamespace) -> Result<Box<dyn NodeSocket>, String> {
        open_node_socket(outer)
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
        emulated: Emulated,
    ) -> Result<(Threads, RxHandle), Refusal> {
        let control_notify = Notify::new().map_err(refused("an eventfd"))?;
        let receive_wakers = new_wakers(layout.receive.len())?;
        let first = receive_wakers[0].clone();
        let (questions, request_receiver) = request_channel(first.clone(), control_notify.clone());
        let mut threads = Threads {
            mail: Vec::new(),
            questions,
            emulation: None,
            unheard: VecDeque::new(),
            receive_mail: Vec::new(),
            ports: port_owners(ports.len(), layout),
            flow_parts: Vec::new(),
            control_notify,
            data: Vec::new(),
            known_lost: Vec::new(),
            receive: Vec::new(),
            receive_wakers,
            stop_receive: Arc::default(),
        };
        let wakers = new_wakers(layout.data.len())?;
        let peers: Vec<_> = ports.iter().map(|port| port.peer).collect();
        let inhabited = InhabitedPorts::new(layout.data.len());
        let context = SpawnContext {
            layout,
            peers: &peers,
            counters,
            clock,
            switch: &TapSwitch::default(),
            watched: &Watched::new(inhabited.clone()),
        };
        let (clients, client_frames) =
            threads.open_clients(emulated.clients.as_ref(), &wakers, &inhabited, context)?;
        let receive_mail = threads.open_receive_mail();
        let queues = Queues::share_out(ports, layout, &wakers);
        let (mut taps, mut forward_rx) = (Vec::new(), Vec::new());
        for (core, parts) in data_parts(queues.data, flows, clients).enumerate() {
            let (tap, forward) = threads.start_data(core, parts, &wakers, context)?;
            taps.push(tap);
            forward_rx.extend(forward);
        }
        let woken = if forward_rx.is_empty() {
            Vec::new()
        } else {
            wakers
        };
        if threads.flow_parts.is_empty() {
            // Nothing changes hands.
            threads.receive_mail.clear();
        }
        let mut rx_queues = queues.receive.into_iter().zip(receive_mail);
        let (first_rx, first_mail) = rx_queues.next().expect("there is a receive thread");
        for (number, (queues, mail)) in (1..).zip(rx_queues) {
            forward_rx.push(threads.start_secondary(number, queues, mail, context)?);
        }
        let watch = Watch::new(
            queues.receive_tx,
            taps,
            context.switch.clone(),
            request_receiver,
        );
        let watch = threads.emulate(watch, emulated.channel, client_frames)?;
        let receiver = Receiver::new(first_rx, Arc::clone(&counters.receive), clock.clone());
        let receiver = receiver.watched_by(watch.waking(woken)).told_by(first_mail);
        let receiver = receiver.joined_by(forward_rx, context.watched.clone());
        let time = threads.start_first_receive(receiver, layout)?;
        Ok((threads, RxHandle::new(first, clock, time)))
    }

    /// Emulated clients of each data thread, and the way of frames to them, if there shall be such.
    fn open_clients(
        &mut self,
        settings: Option<&EmulationSettings>,
        wakers: &[Waker],
        inhabited: &InhabitedPorts,
        context: SpawnContext<'_>,
    ) -> Result<(Vec<EmulationState>, Option<ClientFrames>), Refusal> {
        let Some(settings) = settings else {
            return Ok((Vec::new(), None));
        };
        let surroundings = Surroundings {
            ports: self.ports.len(),
            layout: context.layout,
            wakers,
            receiver: &self.receive_wakers[0],
            inhabited,
            counters: context.counters,
            clock: context.clock,
        };
        let parts = EmulatedParts::new(settings, surroundings, &self.control_notify)?;
        self.emulation = Some(parts.links);
        Ok((parts.states, Some(parts.frames)))
    }

    /// The same watch, with the ways of frames to who is emulated.
    fn emulate(
        &self,
        mut watch: Watch,
        channel: Option<[String; 2]>,
        clients: Option<ClientFrames>,
    ) -> Result<Watch, Refusal> {
        if let Some([outward, inward]) = channel {
            let first = self.receive_wakers[0].clone();
            let wire = open_emu_channel(&outward, &inward, first);
            let wire = wire.map_err(|error| Refusal {
                what: "sockets to an emulation server",
                error: io::Error::other(error),
            })?;
            watch = watch.tapped_by(Box::new(EmuChannel::new(wire, self.ports.len())));
        }
        Ok(match clients {
            Some(clients) => watch.tapped_by(Box::new(clients)),
            None => watch,
        })
    }

    /// Asks the first receive thread, or about emulated clients the data thread that has them.
    pub fn ask(&mut self, question: QuestionId, request: Request) {
        match (request, &mut self.emulation) {
            (Request::Emulation(request), Some(emulation)) => emulation.ask(question, request),
            (request, _) => self.questions.send(question, request),
        }
    }

    /// The next answer of one of them.
    pub fn poll_answer(&mut self) -> Option<(QuestionId, Answer)> {
        let answer = self.questions.receive();
        answer.or_else(|| self.emulation.as_mut()?.poll_answer())
    }

    /// The way to call emulated clients, once.
    fn take_calls(&mut self) -> Option<CallLinks> {
        self.emulation.as_mut()?.take_calls()
    }

    /// Opens a mailbox of each receive thread; gives their ends.
    fn open_receive_mail(&mut self) -> Vec<WorkerEnd<RxCommand, RxReport>> {
        let notify = &self.control_notify;
        let boxes = self.receive_wakers.iter().map(|own| mailbox(notify, own));
        let (control_ends, ends) = boxes.unzip();
        self.receive_mail = control_ends;
        ends
    }

    /// Starts a data thread, with flows if its parts say so; gives the tap of what it sends, and the
    /// way on which its flows forward what is not theirs. `wakers` wake all data threads.
    fn start_data(
        &mut self,
        core: usize,
        parts: DataParts,
        wakers: &[Waker],
        context: SpawnContext<'_>,
    ) -> Result<(TapOut, Option<ForwardRx>), Refusal> {
        let SpawnContext {
            layout,
            peers,
            counters,
            clock,
            switch,
            watched,
        } = context;
        let DataParts {
            queues,
            flows,
            clients,
        } = parts;
        let (waker, first) = (&wakers[core], &self.receive_wakers[0]);
        let others = layout.readers_of(core, peers).into_iter();
        let readers = std::iter::once(first).chain(others.map(|other| &wakers[other]));
        let readers = readers.cloned().collect();
        let (tap_in, tap_out) = tap();
        let (control_end, mail) = mailbox(&self.control_notify, waker);
        self.mail.push(control_end);
        let block = Arc::clone(&counters.cores[core]);
        let mut thread = DataThread::new(queues.tx, mail, block, clock.clone());
        thread = thread.tapped_by(tap_in, switch.clone());
        thread = thread.waking(readers);
        if layout.is_fed(core, peers) {
            thread = thread.fed();
        }
        if let Some(clients) = clients {
            thread = thread.with_clients(clients);
        }
        let mut forward_rx = None;
        if let Some(config) = flows {
            let (rx, tx) = forward_channel(waker.clone(), first.clone(), watched.clone());
            forward_rx = Some(rx);
            let links = FlowLinks {
                forward: tx,
                arrivals: Arc::clone(&counters.flows[core]),
                receive: Arc::clone(&counters.receive),
            };
            if layout.is_stateful {
                let flows = FlowState::new(config, queues.rx, links, clock.now_ns());
                thread = thread.with_flows(Box::new(flows));
            } else {
                let clock = clock.clone();
                self.flow_parts.push(Some(FlowParts {
                    config,
                    links,
                    clock,
                }));
            }
        }
        let (poll, cpu) = (layout.data_poll, layout.data[core].cpu);
        let name = format!("data-{core}");
        self.data.push(spawn(name, cpu, move || thread.run(poll))?);
        Ok((tap_out, forward_rx))
    }

    /// Starts a receive thread beside the first; gives the way on which it forwards.
    fn start_secondary(
        &mut self,
        number: usize,
        queues: Vec<Option<PortRx>>,
        mail: WorkerEnd<RxCommand, RxReport>,
        context: SpawnContext<'_>,
    ) -> Result<ForwardRx, Refusal> {
        let (own, first) = (&self.receive_wakers[number], &self.receive_wakers[0]);
        let (rx, tx) = forward_channel(own.clone(), first.clone(), context.watched.clone());
        let block = Arc::clone(&context.counters.secondaries[number - 1]);
        let first = Arc::clone(&context.counters.receive);
        let secondary = SecondaryReceiver::new(queues, tx, block, first, context.clock.clone());
        let secondary = secondary.told_by(mail);
        self.start_receive(number, context.layout, move |poll, stop, waker| {
            secondary.run(poll, stop, waker);
        })?;
        Ok(rx)
    }

    /// Starts the first receive thread; gives what tells how it spends its time.
    fn start_first_receive(
        &mut self,
        receiver: Receiver,
        layout: &Layout,
    ) -> Result<RunTime, Refusal> {
        let time = RunTime::default();
        let note_thread = time.thread_noter();
        self.start_receive(0, layout, move |poll, stop, waker| {
            note_thread();
            receiver.run(poll, stop, waker);
        })?;
        Ok(time)
    }

    fn start_receive(
        &mut self,
        number: usize,
        layout: &Layout,
        run: impl FnOnce(Poll, &AtomicBool, &Waker) + Send + 'static,
    ) -> Result<(), Refusal> {
        let (poll, stop) = (layout.receive_poll, Arc::clone(&self.stop_receive));
        let waker = self.receive_wakers[number].clone();
        let thread = spawn(thread_name(number), layout.receive[number], move || {
            run(poll, &stop, &waker);
        })?;
        self.receive.push(thread);
        Ok(())
    }

    /// Wakes the receive threads.
    pub fn wake_receive(&self) {
        self.receive_wakers.iter().for_each(Waker::wake);
    }

    /// Sends a command to a data thread.
    pub fn send(&mut self, core: usize, command: impl Into<WorkerCommand>) {
        let command = command.into();
        if command.starts_traffic() {
            // They may sleep deeply after a long silence.
            self.wake_receive();
        }
        self.mail[core].send(command);
    }

    /// The next report of a data thread, and whose it is.
    pub fn poll_report(&mut self) -> Option<(usize, Report)> {
        let mut mail = self.mail.iter_mut().enumerate();
        self.unheard.pop_front().or_else(|| {
            mail.find_map(|(core, mail)| {
                mail.flush();
                Some((core, mail.receive()?))
            })
        })
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
        self.mail.into_iter().for_each(ControlEnd::close);
        self.stop_receive.store(true, Ordering::Relaxed);
        self.receive_wakers.iter().for_each(Waker::wake);
        for thread in self.data.into_iter().chain(self.receive) {
            if thread.join().is_err() {
                tracing::error!("a thread had panicked; see above");
            }
        }
    }
}

/// What a data thread is started with.
struct DataParts {
    queues: DataQueues,
    flows: Option<stateful::Config>,
    clients: Option<Box<EmulationState>>,
}

/// The parts of each data thread, which has its queues.
fn data_parts(
    queues: Vec<DataQueues>,
    flows: Option<Vec<stateful::Config>>,
    clients: Vec<EmulationState>,
) -> impl Iterator<Item = DataParts> {
    let mut flows = flows.into_iter().flatten();
    let mut clients = clients.into_iter();
    queues.into_iter().map(move |queues| DataParts {
        queues,
        flows: flows.next(),
        clients: clients.next().map(Box::new),
    })
}

/// What all threads are started with.
#[derive(Clone, Copy)]
struct SpawnContext<'a> {
    layout: &'a Layout,
    /// The port that each is joined with, if there is one.
    peers: &'a [Option<usize>],
    counters: &'a Counters,
    clock: &'a Clock,
    /// The ports of which data threads copy what they send.
    switch: &'a TapSwitch,
    /// The ports of which all threads forward what they receive.
    watched: &'a Watched,
}

/// Who reads which port at first.
fn port_owners(ports: usize, layout: &Layout) -> Vec<PortOwner> {
    let mode = match layout.is_stateful {
        true => PortMode::Stateful,
        false => PortMode::Stateless,
    };
    let owner = |port| PortOwner::new(mode, layout.cores_of(port), layout.flow_queues[port]);
    (0..ports).map(owner).collect()
}

fn new_wakers(threads: usize) -> Result<Vec<Waker>, Refusal> {
    let wakers = (0..threads).map(|_| Waker::new());
    wakers
        .collect::<Result<_, _>>()
        .map_err(refused("an eventfd"))
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
