//! Control: who may do what, and what it means. A pure state machine.
//!
//! It has no clock, no threads, no files and no sockets, and never waits: time and counters come in
//! with each call ([`View`]); commands to threads, questions, jobs and frames to publish come out as
//! [`Action`]s; the only randomness is drawn from a seed ([`ControlConfig::seed`]).
//!
//! Drive it like this: [`Control::handle`] for each request, [`Control::handle_event`] for each
//! event of a data thread, [`Control::handle_answer`] for each answer of the receive thread,
//! [`Control::handle_job`] for each job that is done, [`Control::handle_link`] with what the system
//! says of links, [`Control::handle_tick`] about every half second; after each of them
//! [`Control::poll_action`] until it is empty, doing what it says in that order. A request is
//! answered at once or later, by [`Action::Reply`] ([`pending`]).
//! When a data thread breaks down, call [`Control::handle_lost_core`]; before the server ends,
//! [`Control::handle_end`]. At the time that [`Control::poll_timeout`] says, call
//! [`Control::handle_timeout`]. Who reads counters beside control asks [`Control::catalog`] what
//! there is to read.
//!
//! A folder for each domain, with its commands and its state: `server` and its sessions, `ports`,
//! `capture`, [`stateless`] and [`stateful`] traffic.

mod capture;
mod catalog;
mod config;
mod files;
pub mod job;
mod lost;
pub mod pending;
mod ports;
mod secret;
mod server;
pub mod stateful;
pub mod stateless;
pub mod worker_command;

use std::collections::VecDeque;

use allosaur_api::commands::server::GlobalConfig;
use allosaur_api::events::Event as ApiEvent;
use allosaur_api::{Access, Error, Fields, Method, Mode, Request, command};
use allosaur_engine::stateless::{ProfileEvent, StatelessCommand};
use allosaur_engine::stream::ProfileKey;
use allosaur_engine::time::{Nanos, SECOND};
use serde::Serialize;
use serde_json::Value;

use crate::counters::LatencyTerms;
use crate::rx_taps;
pub use config::{
    BuildInfo, ControlConfig, DeviceCounters, FrameSpace, LinkOwner, PortConfig, StartAddresses,
    View,
};
pub use files::{CaptureFiles, FileError};
pub use job::{Job, JobResult};
use pending::Pendings;
pub use pending::{Handled, JobId, PendingId, QuestionId};
use ports::modes::in_other_mode;
use ports::port::{self, Port};
use secret::Secrets;
use server::session::Sessions;
use server::statistics::Rates;
use stateful::StatefulState;
use stateless::pgid::Groups;
use worker_command::{FlowCommand, FlowReport, PortMode};

/// What a request is answered with: a result, or an error.
pub type Reply = Result<Value, Error>;

/// What control wants done.
#[derive(Debug)]
pub enum Action {
    /// Tell the receive thread what to expect of a group whose latency is measured. Comes before
    /// the commands that send its packets.
    ExpectLatency {
        /// Its number among them.
        group: u16,
        /// What to expect.
        terms: LatencyTerms,
    },
    /// Tell a data thread.
    Command {
        /// The data thread.
        core: usize,
        /// What it shall do.
        command: StatelessCommand,
    },
    /// Tell a data thread something about flows; only in stateful mode.
    Flows {
        /// The data thread.
        core: usize,
        /// What it shall do.
        order: FlowCommand,
    },
    /// Ask the receive thread, and hand in what it answers ([`Control::handle_answer`]).
    Ask {
        /// The question's name.
        question: QuestionId,
        /// What is asked.
        request: rx_taps::Request,
    },
    /// Have a job done, and hand in what comes of it ([`Control::handle_job`]).
    Job {
        /// The job's name.
        job: JobId,
        /// What is to be done.
        work: Job,
    },
    /// Answer a request that waited.
    Reply {
        /// The request.
        pending: PendingId,
        /// Its reply.
        reply: Reply,
    },
    /// Publish this text on the asynchronous channel.
    Publish(Vec<u8>),
    /// Choose what a port receives beside the frames that are addressed to it.
    SetReceive {
        /// The port.
        port: u8,
        /// Those to other stations.
        promiscuous: bool,
        /// Those to all multicast addresses.
        multicast: bool,
    },
    /// Have the threads of a mode read what arrives at a port; only where a server has both. Comes
    /// before all commands that need it.
    SetPortMode {
        /// The port.
        port: u8,
        /// Its mode from now on.
        mode: PortMode,
    },
    /// End the server, after the reply.
    Shutdown,
}

/// When no request has come for so long, nobody needs `trex-global` frames.
const AUDIENCE_MAX: Nanos = 60 * SECOND;

/// The state of the whole server.
#[derive(Debug)]
pub struct Control {
    config: ControlConfig,
    ports: Vec<Port>,
    sessions: Sessions,
    rates: Rates,
    groups: Groups,
    global_config: GlobalConfig,
    secrets: Secrets,
    /// What requests carry after the handshake, by the mode that they are for.
    api_handles: ApiHandles,
    next_profile_key: u32,
    heard_ns: Option<Nanos>,
    started_ns: Nanos,
    ticked_ns: Nanos,
    events_queued: bool,
    pendings: Pendings,
    /// Stateful traffic; empty in stateless mode.
    room: StatefulState,
    actions: VecDeque<Action>,
}

impl Control {
    /// A server without owners, streams or traffic.
    pub fn new(config: ControlConfig, now_ns: Nanos) -> Control {
        let mut secrets = Secrets::new(config.seed);
        let mode = config.modes.first();
        let ports = config.ports.iter().cloned();
        Control {
            ports: ports.map(|port| Port::new(port, mode)).collect(),
            sessions: Sessions::default(),
            rates: Rates::default(),
            groups: Groups::new(config.ports.len()),
            global_config: GlobalConfig::default(),
            api_handles: ApiHandles {
                stateless: secrets.draw(),
                stateful: secrets.draw(),
            },
            secrets,
            next_profile_key: 0,
            heard_ns: None,
            started_ns: now_ns,
            ticked_ns: now_ns,
            events_queued: false,
            pendings: Pendings::default(),
            room: StatefulState::default(),
            actions: VecDeque::new(),
            config,
        }
    }

    /// Does what a request asks, or refuses.
    pub fn handle(&mut self, request: &Request, view: &View<'_>) -> Handled {
        self.heard_ns = Some(view.now_ns);
        self.pendings.begin();
        let reply = self.answer(request, view);
        self.ring_doorbell();
        self.pendings.end(&request.method, reply, view.now_ns)
    }

    fn answer(&mut self, request: &Request, view: &View<'_>) -> Reply {
        let fields = Fields::new(&request.params);
        let mode = self.mode_of(&fields);
        let command = command(&request.method, mode.map_or(Mode::Any, api_mode))
            .ok_or_else(|| Error::method_not_found(&request.method))?;
        self.check_access(command.access, &fields)?;
        self.renew_leases(command.access, command.method, &fields);
        self.call(command.method, &fields, view)
    }

    /// Takes note of what a data thread did.
    pub fn handle_event(&mut self, core: usize, event: ProfileEvent, now_ns: Nanos) {
        self.note_worker_event(core, event, now_ns);
        self.ring_doorbell();
    }

    /// Takes note of what a data thread tells of its flows.
    pub fn handle_flow_report(&mut self, core: usize, report: FlowReport, now_ns: Nanos) {
        self.note_flow_report(core, report, now_ns);
        self.ring_doorbell();
    }

    /// Tells all sessions that the server ends, and why. Those that listen will ask for it:
    /// serve them a little longer, while [`Control::awaits_farewell`] is true.
    pub fn handle_end(&mut self, cause: &str, now_ns: Nanos) {
        let cause = cause.to_owned();
        self.queue_event(ApiEvent::ServerStopped { cause }, now_ns);
        self.ring_doorbell();
    }

    /// Whether a session that listens has not yet fetched why the server ends.
    pub fn awaits_farewell(&self) -> bool {
        self.sessions.await_farewell()
    }

    /// Reads the counters and publishes them; to be called about every half second.
    pub fn handle_tick(&mut self, view: &View<'_>) {
        self.rates.read(view.now_ns, view.snapshot);
        self.groups.read(view);
        self.read_flows(view);
        self.ask_for_gateways();
        self.run_leases(view);
        self.ring_doorbell();
        let audience = |heard_ns| view.now_ns.saturating_sub(heard_ns) <= AUDIENCE_MAX;
        if self.heard_ns.is_some_and(audience) {
            self.publish_statistics(view, false);
        }
        self.ring_doorbell();
    }

    /// The next thing to do, in order.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When control wants to be called again without being asked: [`Control::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Nanos> {
        let timeouts = [self.pendings.poll_timeout(), self.flows_timeout()];
        timeouts.into_iter().flatten().min()
    }

    /// Does what is due; see [`Control::poll_timeout`].
    pub fn handle_timeout(&mut self, view: &View<'_>) {
        let now_ns = view.now_ns;
        self.give_up_waiting(view);
        self.finish_clears(now_ns);
        self.abort_slow_runs(now_ns);
        self.give_up_starts(now_ns);
        self.ring_doorbell();
    }

    /// Whether any profile or capture is being sent, or there are flows.
    pub fn is_transmitting(&self) -> bool {
        self.flow_state().is_some()
            || self.runs().next().is_some()
            || self.ports.iter().any(|port| port.playing.is_some())
    }

    /// The mode that a request is for, by the handle that it carries; without one the mode that the
    /// server has, and none where it has both.
    fn mode_of(&self, fields: &Fields<'_>) -> Option<PortMode> {
        let handle = fields.string("api_h").ok();
        let handles = &self.api_handles;
        let both = [PortMode::Stateless, PortMode::Stateful];
        let of_handle = both.into_iter().find(|mode| {
            self.config.modes.has(*mode) && handle.is_some_and(|handle| handle == handles.of(*mode))
        });
        of_handle.or_else(|| self.config.modes.only())
    }

    /// The same; without a handshake before, the mode that ports begin in.
    fn request_mode(&self, fields: &Fields<'_>) -> PortMode {
        let mode = self.mode_of(fields);
        mode.unwrap_or(self.config.modes.first())
    }

    /// Who makes this request listens, and hears of events from now on.
    fn touch_session(
        &mut self,
        session: u32,
        fields: &Fields<'_>,
        view: &View<'_>,
    ) -> Result<(), Error> {
        let who = (session, self.request_mode(fields));
        let ports = &self.ports;
        let owns = |id| owns_a_port(ports, id);
        self.sessions.touch(who, view.now_ns, owns)
    }

    fn next_key(&mut self) -> ProfileKey {
        self.next_profile_key = self.next_profile_key.wrapping_add(1);
        ProfileKey(self.next_profile_key)
    }

    fn runs(&self) -> impl Iterator<Item = &port::Run> {
        let profiles = self.ports.iter().flat_map(|port| port.profiles.values());
        profiles.filter_map(|profile| profile.run.as_ref())
    }

    fn check_access(&self, access: Access, fields: &Fields<'_>) -> Result<(), Error> {
        if access == Access::Open {
            return Ok(());
        }
        let handle = fields.string("api_h")?;
        let mode = self.mode_of(fields);
        if mode.is_none_or(|mode| handle != self.api_handles.of(mode)) {
            return Err(Error::execution(
                "API verification failed - API handler provided mismatch for class: 'common'. \
                 Call api_sync_v2 and pass the api_h that it answers.",
            ));
        }
        if access == Access::Owner {
            let id = fields.byte("port_id")?;
            let port = self.port(id)?;
            let handler = fields.string("handler")?;
            return check_owner(port, handler).map_err(|error| match mode {
                Some(mode) if mode != port.mode => in_other_mode(id, port),
                _ => error,
            });
        }
        if access == Access::Context {
            return self.check_context_owner(fields.string("handler")?);
        }
        Ok(())
    }

    /// What is in the table works: each domain has an arm for each of its commands.
    fn call(&mut self, method: Method, fields: &Fields<'_>, view: &View<'_>) -> Reply {
        match method {
            Method::Server(method) => self.call_server(method, fields, view),
            Method::Ports(method) => self.call_ports(method, fields, view),
            Method::Capture(method) => self.call_capture(method, fields, view),
            Method::Stateless(method) => self.call_stateless(method, fields, view),
            Method::Stateful(method) => self.call_stateful(method, fields, view),
        }
    }

    fn port(&self, id: u8) -> Result<&Port, Error> {
        let found = self.ports.get(usize::from(id));
        found.ok_or_else(|| unknown_port(id, self.ports.len()))
    }

    fn port_mut(&mut self, id: u8) -> Result<&mut Port, Error> {
        let ports = self.ports.len();
        let found = self.ports.get_mut(usize::from(id));
        found.ok_or_else(|| unknown_port(id, ports))
    }

    fn queue_event(&mut self, event: ApiEvent, now_ns: Nanos) {
        let ports = &self.ports;
        let owns = |session| owns_a_port(ports, session);
        self.sessions.queue(event, now_ns, owns);
        self.events_queued = true;
    }

    /// One notification for all events of one call: sessions fetch them all at once.
    fn ring_doorbell(&mut self) {
        if std::mem::take(&mut self.events_queued) {
            self.actions.push_back(Action::Publish(b"{}".to_vec()));
        }
    }
}

fn owns_a_port(ports: &[Port], session: u32) -> bool {
    let mut owners = ports.iter().filter_map(|port| port.owner.as_ref());
    owners.any(|owner| owner.session == session)
}

fn check_owner(port: &Port, handler: &str) -> Result<(), Error> {
    match &port.owner {
        None => Err(Error::execution(
            "please acquire the port before modifying port state",
        )),
        Some(owner) if owner.handler != handler => Err(Error::execution(
            "port is not owned by you or your current executing session",
        )),
        Some(_) => Ok(()),
    }
}

/// What requests carry that are for a mode.
#[derive(Debug)]
struct ApiHandles {
    stateless: String,
    stateful: String,
}

impl ApiHandles {
    fn of(&self, mode: PortMode) -> &str {
        match mode {
            PortMode::Stateless => &self.stateless,
            PortMode::Stateful => &self.stateful,
        }
    }
}

fn api_mode(mode: PortMode) -> Mode {
    match mode {
        PortMode::Stateless => Mode::Stateless,
        PortMode::Stateful => Mode::Stateful,
    }
}

fn unknown_port(id: u8, ports: usize) -> Error {
    let last = ports.saturating_sub(1);
    Error::execution(format!("invalid port id {id} - should be: 0 to {last}"))
}

/// A reply out of a struct of `allosaur_api`.
fn reply<T: Serialize>(value: &T) -> Reply {
    Ok(serde_json::to_value(value).expect("replies are plain structs with string keys"))
}
