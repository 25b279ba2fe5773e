//! The control thread: waits for requests, for what data threads report, for signals and for the next
//! tick, and does what control says.

mod descriptors;
mod netdevs;
mod signals;
mod sockets;
mod startup;
mod startup_info;
mod watchdog;

use std::io::Write;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use allosaur_api::MainDialect;
use allosaur_engine::time::{MILLISECOND, Nanos, SECOND};
use allosaur_nodes::owner::Owner;
use allosaur_nodes::{NodesError, PortNodes};
use allosaur_port::PortError;
use nix::sys::signal::Signal;
use nix::sys::signalfd::{SignalFd, siginfo};
use thiserror::Error;

use crate::config::{Settings, Stack};
use crate::control::worker_command::Modes;
use crate::control::{Action, Control, Handled, View};
use crate::counters::{Counters, Snapshot};
use crate::http::{HttpListener, HttpServer, Limits};
use crate::threads::bird::{BirdStartError, BirdThread};
use crate::threads::clock::Clock;
use crate::threads::data::Report;
use crate::threads::emulation::EmulationThread;
use crate::threads::job::{DiskFiles, JobThread};
use crate::threads::layout::LayoutError;
use crate::threads::message_port::MessagePort;
use crate::threads::table;
use crate::threads::{Refusal, RxHandle, Threads, refused};
use crate::transport::{BoxedTransport, SocketError, ZmqTransport};
use netdevs::Netdevs;
use signals::end_signals;
pub use startup::machine_of;
use startup::{losses_are_errors, warnings};
use watchdog::Watchdog;
/// How often counters are read and rates derived.
const TICK: Nanos = SECOND / 2;
/// How long a server that ends waits for its sessions to fetch why, at most.
const FAREWELL_MAX: Nanos = 250 * MILLISECOND;

/// Requests that are done before threads and signals are heard again.
const REQUESTS_PER_TURN: u32 = 32;

/// Why the server could not start.
#[derive(Debug, Error)]
pub enum ServiceError {
    /// A socket.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// A port.
    #[error(transparent)]
    Port(#[from] PortError),
    /// BIRD, or network namespaces.
    #[error(transparent)]
    Nodes(#[from] NodesError),
    /// How threads shall be laid out.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// Something that the system refused.
    #[error(transparent)]
    System(#[from] Refusal),
}

impl From<BirdStartError> for ServiceError {
    fn from(error: BirdStartError) -> ServiceError {
        match error {
            BirdStartError::Bird(error) => error.into(),
            BirdStartError::System(error) => error.into(),
        }
    }
}

/// Starts a server, says that it is ready on `ready`, and serves until it is told to end: by
/// SIGINT, SIGTERM or the `shutdown` request.
pub fn serve(settings: &Settings, ready: &mut impl Write) -> Result<(), ServiceError> {
    serve_also(settings, ExtraTransports::default(), ready)
}

/// Ways to reach a server besides ZeroMQ.
#[derive(Debug, Default)]
pub struct ExtraTransports {
    /// To control.
    pub control: Vec<BoxedTransport>,
    /// To emulated clients.
    pub emulation: Vec<BoxedTransport>,
}

/// The same, with more ways to reach it than ZeroMQ.
pub fn serve_also(
    settings: &Settings,
    others: ExtraTransports,
    ready: &mut impl Write,
) -> Result<(), ServiceError> {
    // Before any thread starts: threads inherit what is blocked.
    let signals = end_signals()?;
    descriptors::check_and_raise(settings).map_err(SocketError::System)?;
    let zmq = sockets::open(settings)?;
    let emulation = ZmqTransport::bind_emulation;
    let emulation = sockets::open_others(settings, settings.emu_port, emulation)?;
    let bird = sockets::open_others(settings, settings.bird_port, ZmqTransport::bind_bird)?;
    let http = listen_for_http(settings)?;
    let beside = [("emu", emulation.first()), ("bird", bird.first())];
    let line = ready_line(settings, &zmq[0], beside, http.as_ref());
    // Before ports are opened: their own programs and sockets are nothing to warn of.
    let warnings = warnings(settings)?;
    let bird = start_bird(bird)?;
    let owner = namespace_owner(settings, bird.as_ref())?;
    let mut control_thread = ControlThread::start(settings, joined(zmq, others.control), owner)?;
    control_thread.serve_http(http)?;
    control_thread.serve_emulation(joined(emulation, others.emulation))?;
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    writeln!(ready, "{line}")
        .and_then(|()| ready.flush())
        .map_err(refused("to write that it is ready"))?;
    let table = settings.table.then(|| {
        let counters = &control_thread.context.counters;
        table::start(counters, &losses_are_errors(settings))
    });
    control_thread.run(&signals);
    drop(table);
    drop(bird);
    control_thread.end();
    Ok(())
}

/// Starts BIRD, if it is wanted.
fn start_bird(transports: Vec<ZmqTransport>) -> Result<Option<BirdThread>, ServiceError> {
    if transports.is_empty() {
        return Ok(None);
    }
    let seed = startup_info::seed().map_err(refused("random numbers"))?;
    Ok(Some(BirdThread::start(
        joined(transports, Vec::new()),
        seed,
    )?))
}

/// The right to network namespaces, where the server has some from the start. Who may not make them hears
/// of it before anything is opened.
fn namespace_owner(
    settings: &Settings,
    bird: Option<&BirdThread>,
) -> Result<Option<Arc<Owner>>, NodesError> {
    let owner = bird.map(BirdThread::owner);
    if settings.stack == Stack::Legacy {
        return Ok(owner);
    }
    let owner = owner.map_or_else(|| Owner::new().map(Arc::new), Ok)?;
    drop(PortNodes::open(Arc::clone(&owner), 0)?);
    Ok(Some(owner))
}

/// ZeroMQ's ways in and others.
fn joined(zmq: Vec<ZmqTransport>, others: Vec<BoxedTransport>) -> Vec<BoxedTransport> {
    let zmq = zmq.into_iter().map(|one| Box::new(one) as BoxedTransport);
    zmq.chain(others).collect()
}

/// An address that HTTP is listened on, and its name for users.
type NamedListener = (HttpListener, String);

fn listen_for_http(settings: &Settings) -> Result<Option<NamedListener>, SocketError> {
    let Some(wanted) = settings.http else {
        return Ok(None);
    };
    let listener = HttpListener::bind(wanted).and_then(|listener| {
        let listener = listener.answering_to(&settings.http_hosts);
        let address = listener.address()?;
        Ok((listener, format!("http://{address}")))
    });
    listener.map(Some).map_err(|error| SocketError::Bind {
        endpoint: format!("http://{wanted}"),
        reason: error.to_string(),
        remedy: "Choose another address or port for --http.",
    })
}

fn ready_line(
    settings: &Settings,
    zmq: &ZmqTransport,
    beside: [(&str, Option<&ZmqTransport>); 2],
    http: Option<&NamedListener>,
) -> String {
    let beside = beside.into_iter().filter_map(|(name, socket)| {
        let endpoint = socket?.rpc_endpoint();
        Some(format!(" {name}={endpoint}"))
    });
    format!(
        "ready rpc={} pub={} ports={} cores={}{}{}{}",
        zmq.rpc_endpoint(),
        zmq.pub_endpoint(),
        settings.ports.len(),
        settings.cores(),
        beside.collect::<String>(),
        http.map_or(String::new(), |(_, url)| format!(" http={url}")),
        match settings.modes {
            Modes::Both => "",
            Modes::Stateless => " mode=stateless",
            Modes::Stateful => " mode=stateful",
        },
    )
}

/// What became readable beside messages. What did not is not read: most often a request came, and its
/// client waits.
#[derive(Clone, Copy)]
struct Woken {
    reports: bool,
    signal: bool,
}

impl Woken {
    fn signal(self, signals: &SignalFd) -> Option<siginfo> {
        let signal = self.signal.then(|| signals.read_signal());
        signal.and_then(|signal| signal.ok().flatten())
    }
}

/// The control thread, with all it holds.
struct ControlThread {
    control: Control,
    messages: MessagePort<MainDialect>,
    threads: Threads,
    jobs: JobThread,
    files: DiskFiles,
    http: Option<HttpServer>,
    emulation: Option<EmulationThread>,
    context: ControlContext,
    watchdog: Watchdog,
    next_tick: Nanos,
    ending: bool,
}

impl ControlThread {
    fn run(&mut self, signals: &SignalFd) {
        while !self.ending {
            let timeout = self.control.poll_timeout();
            let until = timeout.map_or(self.next_tick, |at| at.min(self.next_tick));
            let woken = self.wait(until, signals);
            if let Some(signal) = woken.signal(signals) {
                let signal = Signal::try_from(signal.ssi_signo as i32);
                let name = signal.map_or("to end", Signal::as_str);
                tracing::info!("ending on signal {name}");
                let cause = format!("received signal {name}");
                self.control.handle_end(&cause, self.context.now_ns());
                self.act();
                break;
            }
            self.handle_reports(woken);
            self.serve_requests();
            self.give_catalogs();
            self.tick();
        }
        self.drain_before_exit(signals);
        self.files.end();
    }

    fn serve_http(&mut self, listener: Option<NamedListener>) -> Result<(), Refusal> {
        let Some((listener, _)) = listener else {
            return Ok(());
        };
        let notify = self.threads.control_notify.clone();
        let counters = self.context.counters.clone();
        let server = listener.serve(counters, Limits::default(), move || notify.notify());
        self.http = Some(server.map_err(refused("a thread for HTTP"))?);
        Ok(())
    }

    fn serve_emulation(&mut self, transports: Vec<BoxedTransport>) -> Result<(), Refusal> {
        if let Some(calls) = self.threads.take_calls() {
            self.emulation = Some(EmulationThread::start(transports, calls)?);
        }
        Ok(())
    }

    /// Says to all who want to know it what there is to be counted: once, however many they are.
    fn give_catalogs(&self) {
        let Some(http) = &self.http else { return };
        let mut catalog = None;
        while let Some(request) = http.poll_request() {
            let catalog = catalog.get_or_insert_with(|| {
                let mut catalog = self
                    .control
                    .catalog(&self.context.view(self.context.now_ns()));
                catalog.problems = self.watchdog.problems();
                catalog.problems.extend(self.context.netdevs.problems());
                Arc::new(catalog)
            });
            // Its connection may have ended.
            let _ = request.send(Arc::clone(catalog));
        }
    }

    /// Lets those who listen fetch why the server ends, and those who wait have their replies. A
    /// second signal ends it at once.
    fn drain_before_exit(&mut self, signals: &SignalFd) {
        let until = self.context.now_ns() + FAREWELL_MAX;
        while self.control.has_unread_end()
            || self.control.pending() > 0
            || self.messages.is_converting()
        {
            if self.context.now_ns() >= until {
                return;
            }
            let woken = self.wait(until, signals);
            if woken.signal(signals).is_some() {
                return;
            }
            self.handle_reports(woken);
            self.serve_requests();
        }
    }

    /// Waits for threads, messages and signals, at most until `until`.
    fn wait(&self, until: Nanos, signals: &SignalFd) -> Woken {
        let is_ready = self.messages.is_ready() || self.messages.has_arrived();
        let left = match is_ready {
            true => 0,
            false => until.saturating_sub(self.context.now_ns()),
        };
        let timeout_ms = left.div_ceil(MILLISECOND) as i64;
        let control_notify = self.threads.control_notify.file().as_raw_fd();
        let own = [control_notify, signals.as_raw_fd()];
        let files = own.into_iter().chain(self.messages.descriptors());
        let items = files.map(|file| zmq::PollItem::from_fd(file, zmq::POLLIN));
        let mut items: Vec<_> = items.collect();
        if let Err(error) = zmq::poll(&mut items, timeout_ms) {
            tracing::debug!("waiting was interrupted: {error}");
        }
        let [reports, signal] = [0, 1].map(|own| items[own].is_readable());
        Woken { reports, signal }
    }

    /// Hands in what other threads have told.
    fn handle_reports(&mut self, woken: Woken) {
        if woken.reports {
            self.threads.control_notify.drain();
        }
        while let Some((core, report)) = self.threads.poll_report() {
            let now_ns = self.context.now_ns();
            match report {
                Report::Event(event) => {
                    // Who hears of the end of a run looks at what arrived next.
                    self.threads.wake_receive();
                    self.control.handle_report(core, event, now_ns);
                }
                Report::Retired(program) => self.jobs.free(program),
                Report::Flows(report) => self.control.handle_report(core, report, now_ns),
                Report::Detached { port, queue } => self.threads.note_detached(port, queue),
            }
        }
        self.act();
        while let Some((question, answer)) = self.threads.poll_answer() {
            let view = self.context.view(self.context.now_ns());
            self.control.handle_answer(question, answer, &view);
            self.act();
        }
        while let Some((job, result)) = self.jobs.receive() {
            self.context.refresh();
            let view = self.context.view(self.context.now_ns());
            self.control.handle_job(job, result, &view);
            self.act();
        }
    }

    fn serve_requests(&mut self) {
        self.messages.receive();
        if self.messages.is_ready() {
            // Once for all of them, as it asks the kernel: a batch may have thousands.
            let now_ns = self.context.now_ns();
            self.context.netdevs.watch_links(&mut self.control, now_ns);
        }
        for _ in 0..REQUESTS_PER_TURN {
            let Some((peer, request)) = self.messages.next_request() else {
                break;
            };
            self.context.refresh();
            let view = self.context.view(self.context.now_ns());
            let handled = self.control.handle(&request, &view);
            match handled {
                Handled::Pending(pending) => {
                    self.messages.wait(peer, pending);
                    self.act();
                }
                Handled::Replied(reply) => {
                    // All that must be done before the reply leaves.
                    self.act();
                    self.messages.answer(peer, reply);
                }
            }
            self.messages.send_replies();
            self.tick();
        }
        self.messages.send_replies();
    }

    fn tick(&mut self) {
        let now_ns = self.context.now_ns();
        if self.control.poll_timeout().is_some_and(|at| at <= now_ns) {
            self.control.handle_timeout(&self.context.view(now_ns));
            self.act();
        }
        if now_ns < self.next_tick {
            return;
        }
        self.next_tick = now_ns + TICK;
        let is_waited_for = self.control.pending() > 0;
        self.context.rx_handle.note_waiting(is_waited_for);
        self.context.refresh();
        self.watchdog.watch(&self.context.snapshot);
        for core in self.threads.lost() {
            tracing::error!(
                core,
                "a data thread broke down: restart the server to have it again"
            );
            self.control.handle_lost_core(core, now_ns);
        }
        self.context.netdevs.watch_links(&mut self.control, now_ns);
        self.control.handle_tick(&self.context.view(now_ns));
        self.act();
    }

    /// Does what control wants done.
    fn act(&mut self) {
        while let Some(action) = self.control.poll_action() {
            match action {
                Action::Command { core, command } => self.threads.send(core, command),
                Action::Flows { core, command } => self.threads.send(core, command),
                Action::Ask { question, request } => self.threads.ask(question, request),
                Action::Job { job, work } => self.jobs.send(job, work),
                Action::Reply { pending, reply } => self.messages.complete(pending, reply),
                Action::Publish(text) => self.messages.publish(&text),
                Action::ExpectLatency { group, terms } => {
                    self.context.counters.receive.expect_latency(group, terms);
                }
                Action::SetReceive {
                    port,
                    promiscuous,
                    multicast,
                } => {
                    let netdevs = &mut self.context.netdevs;
                    netdevs.set_receive(port, promiscuous, multicast);
                }
                Action::SetPortMode { port, mode } => {
                    if let Err(error) = self.threads.set_port_mode(port, mode) {
                        tracing::error!(port, "a port did not change its mode: {error}");
                    }
                }
                Action::Shutdown => self.ending = true,
            }
        }
        self.messages.send_replies();
    }

    fn end(self) {
        // It asks the receive thread, which ends below.
        drop(self.emulation);
        self.threads.end();
        tracing::info!("ended");
    }
}

/// What control sees of the world: counters, time, watchers and devices.
struct ControlContext {
    counters: Counters,
    snapshot: Snapshot,
    clock: Clock,
    rx_handle: RxHandle,
    netdevs: Netdevs,
}

impl ControlContext {
    fn now_ns(&self) -> Nanos {
        self.clock.now_ns()
    }

    /// Looks at what the threads have counted.
    fn refresh(&mut self) {
        self.counters.read(&mut self.snapshot);
    }

    /// What control sees at that time.
    fn view(&self, now_ns: Nanos) -> View<'_> {
        View {
            now_ns,
            snapshot: &self.snapshot,
            groups: &self.counters,
            endpoints: &self.rx_handle,
            devices: &self.netdevs,
        }
    }
}
