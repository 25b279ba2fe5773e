//! The control thread: waits for requests, for what data threads report, for signals and for the next
//! tick, and does what control says.

mod context;
mod signals;
mod startup;
mod watchdog;

use std::io::Write;
use std::os::fd::AsRawFd;

use allosaur_engine::time::{MILLISECOND, Nanos, SECOND};
use allosaur_port::PortError;
use nix::sys::signal::Signal;
use nix::sys::signalfd::SignalFd;
use thiserror::Error;

use crate::control::{Action, Control, Reply};
use crate::layout::LayoutError;
use crate::rpc::{Codec, SocketError, Sockets, dispatch};
use crate::settings::Settings;
use crate::table;
use crate::threads::data::Report;
use crate::threads::{Refusal, Threads, refused};
use context::ControlContext;
use signals::end_signals;
pub use startup::machine_of;
use startup::{losses_are_errors, warnings};
use watchdog::Watchdog;
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
    let mut control_thread = ControlThread::start(settings, sockets)?;
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    let announced = writeln!(
        ready,
        "ready rpc={} pub={} ports={} cores={}{}",
        control_thread.sockets.rpc_endpoint(),
        control_thread.sockets.pub_endpoint(),
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
    let table = settings.table.then(|| {
        table::start(
            &control_thread.context.counters,
            &losses_are_errors(settings),
        )
    });
    control_thread.run(&signals);
    drop(table);
    control_thread.end();
    Ok(())
}

/// The control thread, with all it holds.
struct ControlThread {
    control: Control,
    sockets: Sockets,
    threads: Threads,
    context: ControlContext,
    watchdog: Watchdog,
    next_tick: Nanos,
    ending: bool,
}

impl ControlThread {
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
                self.control.handle_end(&cause, self.context.now_ns());
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
        let until = self.context.now_ns() + FAREWELL_MAX;
        while self.control.awaits_farewell() && self.context.now_ns() < until {
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
        let left = until.saturating_sub(self.context.now_ns());
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
                let now_ns = self.context.now_ns();
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
            let now_ns = self.context.now_ns();
            self.context.netdevs.watch_links(&mut self.control, now_ns);
            let reply = dispatch(codec, &frame, |request| self.answer(request));
            self.sockets.reply(&reply);
            self.tick();
        }
    }

    /// One request of a message, with all that must be done before its reply leaves.
    fn answer(&mut self, request: &allosaur_api::Request) -> Reply {
        self.context.refresh();
        let now_ns = self.context.now_ns();
        let reply = self.control.handle(request, &self.context.view(now_ns));
        self.act();
        while self.control.awaits_workers() {
            if self.context.now_ns() > now_ns + ANSWER_MAX {
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
        let now_ns = self.context.now_ns();
        if self.control.poll_timeout().is_some_and(|at| at <= now_ns) {
            self.control.handle_timeout(now_ns);
            self.act();
        }
        if now_ns < self.next_tick {
            return;
        }
        self.next_tick = now_ns + TICK;
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
                Action::Flows { core, order } => self.threads.send(core, order),
                Action::Publish(text) => self.sockets.publish(text),
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
                Action::Shutdown => self.ending = true,
            }
        }
    }

    fn end(self) {
        self.threads.end();
        tracing::info!("ended");
    }
}
