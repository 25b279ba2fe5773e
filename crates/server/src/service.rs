//! The service: has the threads started, and is the control thread.

use std::io::Write;
use std::os::fd::AsRawFd;

use allosaur_engine::time::{MILLISECOND, Nanos, SECOND};
use allosaur_netdev::inventory::Machine;
use allosaur_port::PortError;
use allosaur_port::buffers::Buffers;
use allosaur_port::kind;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use thiserror::Error;

use crate::affinity;
use crate::clock::Clock;
use crate::control::{Action, Control, Reply, StartAddresses, View};
use crate::counters::{Counters, Snapshot};
use crate::devices;
use crate::files::DiskFiles;
use crate::layout::{self, LayoutError, plan};
use crate::netdevs::Netdevs;
use crate::rpc::{Codec, SocketError, Sockets, dispatch};
use crate::settings::Settings;
use crate::startup_info::{control_config, flow_configs, take_source_macs};
use crate::table;
use crate::threads::data::Report;
use crate::threads::{Refusal, RxHandle, Threads, refused};

/// How often counters are read and rates derived.
const TICK: Nanos = SECOND / 2;
/// How long a request waits for the data threads, at most.
const ANSWER_MAX: Nanos = 500 * MILLISECOND;
/// How long a server that ends waits for its sessions to fetch why, at most.
const FAREWELL_MAX: Nanos = 250 * MILLISECOND;

/// Messages that are answered before threads and signals are heard again.
const MESSAGES_PER_TURN: u32 = 32;

/// Why the server could not start.
#[derive(Debug, Error)]
pub enum ServiceError {
    /// A socket.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// A port.
    #[error(transparent)]
    Port(#[from] PortError),
    /// How threads shall be laid out.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// Something that the system refused.
    #[error(transparent)]
    System(#[from] Refusal),
}

/// Starts a server, says that it is ready on `ready`, and serves until it is told to end: by
/// SIGINT, SIGTERM or the `shutdown` request.
pub fn serve(settings: &Settings, ready: &mut impl Write) -> Result<(), ServiceError> {
    // Before any thread starts: threads inherit what is blocked.
    let signals = end_signals()?;
    let sockets = Sockets::bind(&settings.listen, settings.rpc_port, settings.events_port())?;
    // Before ports are opened: their own programs and sockets are nothing to warn of.
    let warnings = warnings(settings)?;
    let mut service = Service::start(settings, sockets)?;
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    let announced = writeln!(
        ready,
        "ready rpc={} pub={} ports={} cores={}{}",
        service.sockets.rpc_endpoint(),
        service.sockets.pub_endpoint(),
        settings.ports.len(),
        settings.cores(),
        if settings.stateful {
            " mode=stateful"
        } else {
            ""
        }
    );
    announced
        .and_then(|()| ready.flush())
        .map_err(refused("to write that it is ready"))?;
    let table = settings
        .table
        .then(|| table::start(&service.sight.counters, &losses_are_errors(settings)));
    service.run(&signals);
    drop(table);
    service.end();
    Ok(())
}

/// On which ports a frame that was lost on arrival is an error: a link in memory only does as it is
/// told.
fn losses_are_errors(settings: &Settings) -> Vec<bool> {
    let ports = settings.ports.iter().map(|port| &port.description);
    ports.map(|port| port.link().is_none()).collect()
}

/// Who else is on the interfaces that ports are on.
///
/// # Errors
///
/// When a port would cut the user off.
fn warnings(settings: &Settings) -> Result<Vec<String>, PortError> {
    let ports = settings.ports.iter().map(|port| &port.description);
    let on_interfaces: Vec<_> = ports.filter(|port| port.interface().is_some()).collect();
    if on_interfaces.is_empty() {
        return Ok(Vec::new());
    }
    let machine = Machine::look();
    let refusal = on_interfaces
        .iter()
        .find_map(|port| devices::refusal(&machine, port));
    let warnings = on_interfaces
        .iter()
        .flat_map(|port| devices::warnings(&machine, port));
    refusal.map_or_else(|| Ok(warnings.collect()), Err)
}

/// The control thread, with all it holds.
struct Service {
    control: Control,
    sockets: Sockets,
    threads: Threads,
    sight: ControlContext,
    stalls: Stalls,
    next_tick: Nanos,
    ending: bool,
}

/// What control sees of the world.
struct ControlContext {
    counters: Counters,
    snapshot: Snapshot,
    clock: Clock,
    outlook: RxHandle,
    attached: Netdevs,
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
            time: &self.clock,
            files: &DiskFiles,
            observer: &self.outlook,
            devices: &self.attached,
        }
    }
}

impl Service {
    fn start(settings: &Settings, sockets: Sockets) -> Result<Service, ServiceError> {
        let clock = Clock::start();
        let descriptions = settings.ports.iter().map(|port| port.description.clone());
        let descriptions: Vec<_> = descriptions.collect();
        let layout = plan(settings, &machine_of(settings))?;
        for warning in &layout.warnings {
            tracing::warn!("{warning}");
        }
        if settings.pin {
            for line in layout.in_words() {
                tracing::info!("{line}");
            }
        }
        let queues = layout.queues(descriptions.len());
        let mut ports = kind::open_each(&descriptions, &queues)?;
        let counters = Counters::new(ports.len(), layout.data.len());
        let mut counters = counters.with_receive_threads(layout.receive.len());
        if settings.stateful {
            counters = counters.with_flows();
        }
        let mut config = control_config(&descriptions, &layout, &ports)?;
        take_source_macs(&mut config, &settings.ports);
        for (number, port) in config.ports.iter().enumerate() {
            if ports[number].details.is_some() {
                tracing::info!("port {number}: {}", port.description);
            }
        }
        let flows = settings
            .stateful
            .then(|| flow_configs(&config, &descriptions, &layout, settings.flows_max))
            .transpose()?;
        let control = Control::new(config, clock.now_ns());
        let buffers = ports.iter().map(|port| Buffers::of(&port.tx)).collect();
        let attached = ports.iter_mut().map(|port| port.control.take());
        let attached = Netdevs::new(attached.collect(), buffers);
        let (threads, outlook) = Threads::start(ports, &layout, flows, &counters, &clock)?;
        if let Some(cpu) = layout.control {
            // After all threads have started, which would run there too.
            affinity::bind(cpu).map_err(refused("a CPU for the control thread"))?;
        }
        let mut service = Service {
            control,
            sockets,
            threads,
            stalls: Stalls::default(),
            next_tick: clock.now_ns(),
            sight: ControlContext {
                counters,
                snapshot: Snapshot::default(),
                clock,
                outlook,
                attached,
            },
            ending: false,
        };
        service.apply_initial_addresses(settings);
        Ok(service)
    }

    /// Gives the ports the addresses and attributes that they have from the start.
    fn apply_initial_addresses(&mut self, all: &Settings) {
        for (port, settings) in (0..).zip(&all.ports) {
            if let Some(max_bps) = settings.load_max_bps {
                let limited = self.control.limit_load(port, max_bps);
                limited.expect("the port is there");
            }
            let view = self.sight.view(self.sight.now_ns());
            let begun = self.control.begin_mac_filter(port, all.promiscuous, &view);
            if let Err(error) = begun {
                tracing::error!(port, "the MAC filter of a port was not set: {error:?}");
            }
            if settings.addresses == StartAddresses::default() {
                continue;
            }
            let set = self
                .control
                .set_start_addresses(port, &settings.addresses, &view);
            if let Err(error) = set {
                tracing::error!(port, "the addresses of a port were not set: {error:?}");
            }
        }
    }

    fn run(&mut self, signals: &SignalFd) {
        let mut codec = Codec::default();
        while !self.ending {
            let timeout = self.control.poll_timeout();
            let until = timeout.map_or(self.next_tick, |at| at.min(self.next_tick));
            self.wait(until, Some(signals));
            if let Ok(Some(signal)) = signals.read_signal() {
                let signal = Signal::try_from(signal.ssi_signo as i32);
                let name = signal.map_or("to end", Signal::as_str);
                tracing::info!("ending on signal {name}");
                let cause = format!("received signal {name}");
                self.control.handle_end(&cause, self.sight.now_ns());
                self.act();
                break;
            }
            self.hear_threads();
            self.serve_requests(&mut codec);
            self.tick();
        }
        self.drain_before_exit(signals, &mut codec);
    }

    /// Lets those who listen fetch why the server ends. A second signal ends it at once.
    fn drain_before_exit(&mut self, signals: &SignalFd, codec: &mut Codec) {
        let until = self.sight.now_ns() + FAREWELL_MAX;
        while self.control.awaits_farewell() && self.sight.now_ns() < until {
            self.wait(until, Some(signals));
            if let Ok(Some(_)) = signals.read_signal() {
                return;
            }
            self.hear_threads();
            self.serve_requests(codec);
        }
    }

    /// Waits for the data threads, and with `signals` for requests and signals too; at most until
    /// `until`.
    fn wait(&self, until: Nanos, signals: Option<&SignalFd>) {
        let left = until.saturating_sub(self.sight.now_ns());
        let timeout_ms = left.div_ceil(MILLISECOND) as i64;
        let control_notify = self.threads.control_notify.file().as_raw_fd();
        let mut items = vec![zmq::PollItem::from_fd(control_notify, zmq::POLLIN)];
        if let Some(signals) = signals {
            items.push(self.sockets.poll_item());
            items.push(zmq::PollItem::from_fd(signals.as_raw_fd(), zmq::POLLIN));
        }
        if let Err(error) = zmq::poll(&mut items, timeout_ms) {
            tracing::debug!("waiting was interrupted: {error}");
        }
    }

    fn hear_threads(&mut self) {
        self.threads.control_notify.drain();
        for core in 0..self.threads.mail.len() {
            self.threads.mail[core].flush();
            while let Some(report) = self.threads.mail[core].receive() {
                let now_ns = self.sight.now_ns();
                match report {
                    Report::Event(event) => {
                        // Who hears of the end of a run looks at what arrived next.
                        self.threads.wake_receive();
                        self.control.handle_event(core, event, now_ns);
                    }
                    Report::Retired(program) => drop(program),
                    Report::Flows(report) => self.control.handle_flow_report(core, report, now_ns),
                }
            }
        }
        self.act();
    }

    fn serve_requests(&mut self, codec: &mut Codec) {
        for _ in 0..MESSAGES_PER_TURN {
            let Some(frame) = self.sockets.receive() else {
                break;
            };
            // Once a message, as it asks the kernel: a batch may have thousands of requests.
            let now_ns = self.sight.now_ns();
            self.sight.attached.watch_links(&mut self.control, now_ns);
            let reply = dispatch(codec, &frame, |request| self.answer(request));
            self.sockets.reply(&reply);
            self.tick();
        }
    }

    /// One request of a message, with all that must be done before its reply leaves.
    fn answer(&mut self, request: &allosaur_api::Request) -> Reply {
        self.sight.refresh();
        let now_ns = self.sight.now_ns();
        let reply = self.control.handle(request, &self.sight.view(now_ns));
        self.act();
        while self.control.awaits_workers() {
            if self.sight.now_ns() > now_ns + ANSWER_MAX {
                tracing::warn!(method = request.method, "a data thread does not answer");
                self.control.give_up_waiting();
                break;
            }
            self.wait(now_ns + ANSWER_MAX, None);
            self.hear_threads();
        }
        reply
    }

    fn tick(&mut self) {
        let now_ns = self.sight.now_ns();
        if self.control.poll_timeout().is_some_and(|at| at <= now_ns) {
            self.control.handle_timeout(now_ns);
            self.act();
        }
        if now_ns < self.next_tick {
            return;
        }
        self.next_tick = now_ns + TICK;
        self.sight.refresh();
        self.stalls.watch(&self.sight.snapshot);
        for core in self.threads.lost() {
            tracing::error!(
                core,
                "a data thread broke down: restart the server to have it again"
            );
            self.control.handle_lost_core(core, now_ns);
        }
        self.sight.attached.watch_links(&mut self.control, now_ns);
        self.control.handle_tick(&self.sight.view(now_ns));
        self.act();
    }

    /// Does what control wants done.
    fn act(&mut self) {
        while let Some(action) = self.control.poll_action() {
            match action {
                Action::Command { core, command } => self.threads.send(core, command),
                Action::Flows { core, order } => self.threads.send(core, order),
                Action::Publish(text) => self.sockets.publish(text),
                Action::ExpectLatency { group, terms } => {
                    self.sight.counters.receive.expect_latency(group, terms);
                }
                Action::SetReceive {
                    port,
                    promiscuous,
                    multicast,
                } => {
                    let attached = &mut self.sight.attached;
                    attached.set_receive(port, promiscuous, multicast);
                }
                Action::Shutdown => self.ending = true,
            }
        }
    }

    fn end(self) {
        self.threads.end();
        tracing::info!("ended");
    }
}

/// Tells of threads that do not turn. Nothing is ended because of it: the machine may be short of
/// time, and traffic goes on when it comes back.
#[derive(Default)]
struct Stalls {
    seen: Vec<Seen>,
}

#[derive(Clone, Copy, Default)]
struct Seen {
    total_ns: Nanos,
    ticks_still: u32,
}

/// A thread publishes its time at least every 0.1 s; this many ticks without is worth a word.
const STALL_TICKS: u32 = 4;

impl Stalls {
    fn watch(&mut self, snapshot: &Snapshot) {
        self.seen.resize(snapshot.cores.len(), Seen::default());
        for (core, (seen, now)) in self.seen.iter_mut().zip(&snapshot.cores).enumerate() {
            if now.total_ns != seen.total_ns {
                *seen = Seen {
                    total_ns: now.total_ns,
                    ticks_still: 0,
                };
                continue;
            }
            seen.ticks_still = seen.ticks_still.saturating_add(1);
            if seen.ticks_still == STALL_TICKS {
                let seconds = u64::from(STALL_TICKS) * TICK / SECOND;
                tracing::warn!(core, "a data thread has not turned for {seconds} s");
            }
        }
    }
}

/// What must be known of this machine to lay out threads.
pub fn machine_of(settings: &Settings) -> layout::Machine {
    let ports = settings.ports.iter();
    layout::Machine {
        cpus: affinity::cpus(),
        port_nodes: ports
            .map(|port| affinity::node_of_port(&port.description))
            .collect(),
    }
}

/// SIGINT and SIGTERM as a file to wait for.
fn end_signals() -> Result<SignalFd, ServiceError> {
    let set: SigSet = [Signal::SIGINT, Signal::SIGTERM].into_iter().collect();
    let system = |error: nix::Error| refused("to wait for signals")(error.into()).into();
    set.thread_block().map_err(system)?;
    let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
    SignalFd::with_flags(&set, flags).map_err(system)
}
