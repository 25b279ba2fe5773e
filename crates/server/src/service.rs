//! The service: starts the threads, and is the control thread.
//!
//! What lives here: the loop that waits for requests, for what data threads report, for signals
//! and for the next tick; and how the server ends. What does not: what any of it means
//! (`control`) or how threads work (`worker`, `receive`).

use std::io::Write;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use allosaur_engine::Command;
use allosaur_engine::flow_stats::Marking;
use allosaur_engine::time::{MILLISECOND, Nanos, SECOND};
use allosaur_engine::vm::Checksums;
use allosaur_port::description::PortDescription;
use allosaur_port::kind::{self, AnyPort, PortControl, PortRx, PortTx};
use allosaur_port::tap::{TapSwitch, tap};
use allosaur_port::{PortError, QueueCounts};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use thiserror::Error;

use crate::affinity;
use crate::clock::Clock;
use crate::control::{
    Action, BuildFacts, Control, ControlConfig, LinkOwner, PortConfig, Reply, StartAddresses, View,
};
use crate::counters::{Counters, Snapshot};
use crate::desk::{AskingEnd, desk};
use crate::endpoint::{open_capture, open_wire};
use crate::files::DiskFiles;
use crate::mailbox::{ControlEnd, Doorbell, Report, mailbox};
use crate::observe::{Answer, Endpoint, Observe, PacketSink, Request, Wire};
use crate::polling::Poll;
use crate::receive::Receiver;
use crate::receive::watch::Watch;
use crate::rpc::{Codec, SocketError, Sockets, dispatch};
use crate::settings::{Cpus, PortSettings, Settings};
use crate::table;
use crate::worker::Worker;

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
    /// Something that the system refused.
    #[error("the system refused {what}: {error}")]
    System {
        /// What was asked for.
        what: &'static str,
        /// What it said.
        error: std::io::Error,
    },
}

/// Starts a server, says that it is ready on `ready`, and serves until it is told to end: by
/// SIGINT, SIGTERM or the `shutdown` request.
pub fn serve(settings: &Settings, ready: &mut impl Write) -> Result<(), ServiceError> {
    // Before any thread starts: threads inherit what is blocked.
    let signals = end_signals()?;
    let sockets = Sockets::bind(&settings.listen, settings.rpc_port, settings.pub_port)?;
    let mut service = Service::start(settings, sockets)?;
    let announced = writeln!(
        ready,
        "ready rpc={} pub={} ports={} cores={}",
        service.sockets.rpc_endpoint(),
        service.sockets.pub_endpoint(),
        settings.ports.len(),
        settings.cores
    );
    announced
        .and_then(|()| ready.flush())
        .map_err(refused("to write that it is ready"))?;
    let table = settings.table.then(|| table::start(&service.counters));
    service.run(&signals);
    drop(table);
    service.end();
    Ok(())
}

/// The control thread, with all it holds.
struct Service {
    control: Control,
    sockets: Sockets,
    threads: Threads,
    /// Of each port, where it is on an interface.
    interfaces: Vec<Option<PortControl>>,
    counters: Counters,
    snapshot: Snapshot,
    clock: Clock,
    stalls: Stalls,
    next_tick: Nanos,
    ending: bool,
}

/// The other threads, and the way to them.
struct Threads {
    mail: Vec<ControlEnd>,
    doorbell: Doorbell,
    data: Vec<JoinHandle<()>>,
    /// Data threads that are known to have broken down.
    known_lost: Vec<usize>,
    outlook: Outlook,
    receive: JoinHandle<()>,
    receive_bell: Doorbell,
    stop_receive: Arc<AtomicBool>,
}

/// Control's way to who watches frames.
#[derive(Debug)]
struct Outlook {
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

impl Service {
    fn start(settings: &Settings, sockets: Sockets) -> Result<Service, ServiceError> {
        let clock = Clock::start();
        let cores = usize::from(settings.cores);
        let descriptions = settings.ports.iter().map(|port| port.description.clone());
        let descriptions: Vec<_> = descriptions.collect();
        // One queue for each data thread, and one for the receive thread.
        let queues = QueueCounts {
            tx: cores + 1,
            rx: 1,
        };
        let mut ports = kind::open(&descriptions, queues)?;
        let counters = Counters::new(ports.len(), cores);
        let mut config = control_config(&descriptions, cores, &ports)?;
        take_source_macs(&mut config, &settings.ports);
        let control = Control::new(config, clock.now_ns());
        let interfaces = ports.iter_mut().map(|port| port.control.take());
        let interfaces = interfaces.collect();
        let cpus = &settings.cpus;
        let threads = Threads::start(ports, &counters, &clock, settings.poll, cpus)?;
        if let Some(cpu) = cpus.control {
            // After all threads have started, which would run there too.
            affinity::bind(cpu).map_err(refused("a CPU for the control thread"))?;
        }
        let mut service = Service {
            control,
            sockets,
            threads,
            interfaces,
            counters,
            snapshot: Snapshot::default(),
            stalls: Stalls::default(),
            next_tick: clock.now_ns(),
            clock,
            ending: false,
        };
        service.introduce(&settings.ports);
        Ok(service)
    }

    /// Gives the ports the addresses that they have from the start.
    fn introduce(&mut self, ports: &[PortSettings]) {
        for (port, settings) in (0..).zip(ports) {
            if let Some(max_bps) = settings.load_max_bps {
                let limited = self.control.limit_load(port, max_bps);
                limited.expect("the port is there");
            }
            if settings.addresses == StartAddresses::default() {
                continue;
            }
            let view = View {
                now_ns: self.clock.now_ns(),
                snapshot: &self.snapshot,
                groups: &self.counters,
                time: &self.clock,
                files: &DiskFiles,
                observer: &self.threads.outlook,
            };
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
            self.wait(self.next_tick, Some(signals));
            if let Ok(Some(signal)) = signals.read_signal() {
                let signal = Signal::try_from(signal.ssi_signo as i32);
                let name = signal.map_or("to end", Signal::as_str);
                tracing::info!("ending on signal {name}");
                let cause = format!("received signal {name}");
                self.control.handle_end(&cause, self.clock.now_ns());
                self.act();
                break;
            }
            self.hear_threads();
            self.serve_requests(&mut codec);
            self.tick();
        }
        self.take_leave(signals, &mut codec);
    }

    /// Lets those who listen fetch why the server ends. A second signal ends it at once.
    fn take_leave(&mut self, signals: &SignalFd, codec: &mut Codec) {
        let until = self.clock.now_ns() + FAREWELL_MAX;
        while self.control.awaits_farewell() && self.clock.now_ns() < until {
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
        let left = until.saturating_sub(self.clock.now_ns());
        let timeout_ms = left.div_ceil(MILLISECOND) as i64;
        let doorbell = self.threads.doorbell.file().as_raw_fd();
        let mut items = vec![zmq::PollItem::from_fd(doorbell, zmq::POLLIN)];
        if let Some(signals) = signals {
            items.push(self.sockets.poll_item());
            items.push(zmq::PollItem::from_fd(signals.as_raw_fd(), zmq::POLLIN));
        }
        if let Err(error) = zmq::poll(&mut items, timeout_ms) {
            tracing::debug!("waiting was interrupted: {error}");
        }
    }

    fn hear_threads(&mut self) {
        self.threads.doorbell.silence();
        for core in 0..self.threads.mail.len() {
            self.threads.mail[core].flush();
            while let Some(report) = self.threads.mail[core].receive() {
                if let Report::Event(event) = report {
                    // Who hears of the end of a run looks at what arrived next.
                    self.threads.receive_bell.ring();
                    self.control.handle_event(core, event, self.clock.now_ns());
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
            self.watch_links(self.clock.now_ns());
            let reply = dispatch(codec, &frame, |request| self.answer(request));
            self.sockets.reply(&reply);
            self.tick();
        }
    }

    /// One request of a message, with all that must be done before its reply leaves.
    fn answer(&mut self, request: &allosaur_api::Request) -> Reply {
        self.counters.read(&mut self.snapshot);
        let now_ns = self.clock.now_ns();
        let reply = self.control.handle(
            request,
            &View {
                now_ns,
                snapshot: &self.snapshot,
                groups: &self.counters,
                time: &self.clock,
                files: &DiskFiles,
                observer: &self.threads.outlook,
            },
        );
        self.act();
        while self.control.awaits_workers() {
            if self.clock.now_ns() > now_ns + ANSWER_MAX {
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
        let now_ns = self.clock.now_ns();
        if now_ns < self.next_tick {
            return;
        }
        self.next_tick = now_ns + TICK;
        self.counters.read(&mut self.snapshot);
        self.stalls.watch(&self.snapshot);
        for core in self.threads.lost() {
            tracing::error!(
                core,
                "a data thread broke down: restart the server to have it again"
            );
            self.control.handle_lost_core(core, now_ns);
        }
        self.watch_links(now_ns);
        self.control.handle_tick(&View {
            now_ns,
            snapshot: &self.snapshot,
            groups: &self.counters,
            time: &self.clock,
            files: &DiskFiles,
            observer: &self.threads.outlook,
        });
        self.act();
    }

    /// Tells control how the links of interfaces are.
    fn watch_links(&mut self, now_ns: Nanos) {
        for (port, interface) in (0..).zip(&self.interfaces) {
            if let Some(interface) = interface {
                self.control.handle_link(port, interface.has_link(), now_ns);
            }
        }
    }

    /// Does what control wants done.
    fn act(&mut self) {
        while let Some(action) = self.control.poll_action() {
            match action {
                Action::Command { core, command } => self.threads.send(core, command),
                Action::Publish(text) => self.sockets.publish(text),
                Action::ExpectLatency { group, terms } => {
                    self.counters.receive.expect_latency(group, terms);
                }
                Action::SetReceive {
                    port,
                    promiscuous,
                    multicast,
                } => self.set_receive(port, promiscuous, multicast),
                Action::Shutdown => self.ending = true,
            }
        }
    }

    fn set_receive(&mut self, port: u8, promiscuous: bool, multicast: bool) {
        if let Some(interface) = &mut self.interfaces[usize::from(port)] {
            if let Err(error) = interface.set_receive(promiscuous, multicast) {
                tracing::warn!(port, %error, "the interface does not change what it receives");
            }
        }
    }

    fn end(self) {
        self.threads.end();
        tracing::info!("ended");
    }
}

impl Threads {
    fn start(
        ports: Vec<AnyPort>,
        counters: &Counters,
        clock: &Clock,
        poll: Poll,
        cpus: &Cpus,
    ) -> Result<Threads, ServiceError> {
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
        Ok(Threads {
            mail,
            doorbell,
            data,
            known_lost: Vec::new(),
            outlook: Outlook {
                desk: asking,
                receive: receive_bell.clone(),
                epoch_ns: epoch_ns(clock),
            },
            receive,
            receive_bell,
            stop_receive,
        })
    }

    fn send(&mut self, core: usize, command: Command) {
        if matches!(command, Command::StartProfile { .. }) {
            // It may sleep deeply after a long silence.
            self.receive_bell.ring();
        }
        self.mail[core].send(command);
    }

    /// The data threads that ended by themselves; each is told once.
    fn lost(&mut self) -> Vec<usize> {
        let data = self.data.iter().enumerate();
        let ended = data.filter(|(_, thread)| thread.is_finished());
        let ended = ended.map(|(core, _)| core);
        let new: Vec<usize> = ended
            .filter(|core| !self.known_lost.contains(core))
            .collect();
        self.known_lost.extend(&new);
        new
    }

    fn end(self) {
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

/// Starts a thread; on a CPU of its own, if there is one.
fn spawn(
    name: String,
    cpu: Option<usize>,
    body: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, ServiceError> {
    let builder = std::thread::Builder::new().name(name);
    let bound = move || {
        if let Some(Err(error)) = cpu.map(affinity::bind) {
            tracing::warn!(cpu, "a thread cannot be bound to its CPU: {error}");
        }
        body();
    };
    builder.spawn(bound).map_err(refused("a thread"))
}

fn refused(what: &'static str) -> impl FnOnce(std::io::Error) -> ServiceError {
    move |error| ServiceError::System { what, error }
}

/// SIGINT and SIGTERM as a file to wait for.
fn end_signals() -> Result<SignalFd, ServiceError> {
    let set: SigSet = [Signal::SIGINT, Signal::SIGTERM].into_iter().collect();
    let system = |error: nix::Error| refused("to wait for signals")(error.into());
    set.thread_block().map_err(system)?;
    let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
    SignalFd::with_flags(&set, flags).map_err(system)
}

fn control_config(
    descriptions: &[PortDescription],
    cores: usize,
    ports: &[AnyPort],
) -> Result<ControlConfig, ServiceError> {
    let mac = |number: usize| ports[number].mac.unwrap_or(memory_mac(number));
    let described = ports.iter().zip(descriptions).enumerate();
    let config = described.map(|(number, (port, description))| PortConfig {
        driver: description.kind().to_owned(),
        description: description.in_words(),
        line_rate_bps: port.capabilities.line_rate_bps,
        frame_bytes_max: port.capabilities.frame_bytes_max,
        link: match description {
            PortDescription::Memory(_) | PortDescription::Dummy => LinkOwner::Server {
                peer: port.peer.map(|peer| peer as u8),
            },
            PortDescription::AfPacket(_) | PortDescription::Dpdk(_) => LinkOwner::System,
        },
        hw_mac: mac(number),
        destination_mac: mac(peer(ports, number)),
        checksums: Checksums::Complete,
        cores: (0..cores).collect(),
    });
    Ok(ControlConfig {
        ports: config.collect(),
        data_cores: cores,
        hostname: first_line("/proc/sys/kernel/hostname"),
        core_type: processor(),
        started: date_of(std::time::SystemTime::now())
            .format("%b %d %Y @ %H:%M:%S")
            .to_string(),
        build: build_facts(),
        marking: Marking::Server,
        seed: seed().map_err(refused("random numbers"))?,
    })
}

/// Gives ports the MAC addresses that the user chose, and their peers the news.
fn take_source_macs(config: &mut ControlConfig, ports: &[PortSettings]) {
    let chosen = ports.iter().map(|port| port.addresses.source_mac);
    let own = config.ports.iter().map(|port| port.hw_mac);
    let changes: Vec<_> = own.zip(chosen).collect();
    for (port, (_, chosen)) in config.ports.iter_mut().zip(&changes) {
        port.hw_mac = chosen.unwrap_or(port.hw_mac);
        let peer = changes.iter().find(|(own, _)| *own == port.destination_mac);
        if let Some((_, Some(mac))) = peer {
            port.destination_mac = *mac;
        }
    }
}

/// The port at the other end of a port. Where nobody knows, its neighbor in the list, as if both
/// were joined by a cable; without one the port itself.
fn peer(ports: &[AnyPort], number: usize) -> usize {
    let neighbor = Some(number ^ 1).filter(|peer| *peer < ports.len());
    ports[number].peer.or(neighbor).unwrap_or(number)
}

/// Locally administered: no card has it.
fn memory_mac(port: usize) -> [u8; 6] {
    [0x02, 0xa1, 0x05, 0, 0, port as u8]
}

fn build_facts() -> BuildFacts {
    let binary = std::env::current_exe().and_then(std::fs::metadata);
    let built = binary.and_then(|file| file.modified()).map(date_of).ok();
    let format = |pattern| built.map_or(String::new(), |at| at.format(pattern).to_string());
    BuildFacts {
        version: concat!("v", env!("CARGO_PKG_VERSION")).to_owned(),
        date: format("%b %d %Y"),
        time: format("%H:%M:%S"),
        by: "allosaur".to_owned(),
    }
}

fn date_of(time: std::time::SystemTime) -> chrono::DateTime<chrono::Local> {
    time.into()
}

fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    let model = model
        .and_then(|line| line.split_once(": "))
        .map(|(_, name)| name);
    model.unwrap_or(std::env::consts::ARCH).to_owned()
}

fn first_line(path: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().next().unwrap_or_default().to_owned()
}

fn seed() -> std::io::Result<u64> {
    use std::io::Read;
    let mut bytes = [0; 8];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(u64::from_ne_bytes(bytes))
}
