//! The state that all domains share, and what is done with it everywhere.

use std::collections::VecDeque;

use allosaur_api::events::Event;
use allosaur_api::{Error, Fields};
use allosaur_engine::stateless::StatelessCommand;
use allosaur_engine::time::Nanos;

use super::handles::ApiHandles;
use super::owner::Owner;
use super::pending::{JobId, Pendings, QuestionId, Wait};
use super::port::{Port, unknown_port};
use super::rates::Rates;
use super::secret::Secrets;
use super::sessions::Sessions;
use crate::control::action::Action;
use crate::control::config::{ControlConfig, View};
use crate::control::job::Job;
use crate::control::reply::Reply;
use crate::control::worker_command::{FlowCommand, PortMode};
use crate::rx_taps::Request;

/// What all domains share.
#[derive(Debug)]
pub(in crate::control) struct Core {
    pub(in crate::control) config: ControlConfig,
    pub(in crate::control) ports: Vec<Port>,
    /// Who owns stateful mode, with all ports that are in it.
    pub(in crate::control) mode_owner: Option<Owner>,
    pub(in crate::control) sessions: Sessions,
    pub(in crate::control) secrets: Secrets,
    /// What requests carry after the handshake, by the mode that they are for.
    pub(in crate::control) api_handles: ApiHandles,
    pub(in crate::control) rates: Rates,
    pub(in crate::control) started_ns: Nanos,
    /// When a request came last.
    pub(in crate::control) heard_ns: Option<Nanos>,
    /// Sessions that listen are to be told that there are events.
    pub(in crate::control) must_notify: bool,
    pub(in crate::control) pendings: Pendings,
    actions: VecDeque<Action>,
    /// Ports on which something has ended that was sent.
    at_rest: Vec<u8>,
}

impl Core {
    /// Without owners.
    pub(in crate::control) fn new(config: ControlConfig, now_ns: Nanos) -> Core {
        let mut secrets = Secrets::new(config.seed);
        let mode = config.modes.first();
        let ports = config.ports.iter().cloned();
        Core {
            ports: ports.map(|port| Port::new(port, mode)).collect(),
            mode_owner: None,
            sessions: Sessions::default(),
            api_handles: ApiHandles::draw(&mut secrets),
            secrets,
            rates: Rates::default(),
            started_ns: now_ns,
            heard_ns: None,
            must_notify: false,
            pendings: Pendings::default(),
            actions: VecDeque::new(),
            at_rest: Vec::new(),
            config,
        }
    }

    /// The numbers of all ports.
    pub(in crate::control) fn port_ids(&self) -> std::ops::Range<u8> {
        0..self.ports.len() as u8
    }

    /// A port that is there.
    pub(in crate::control) fn port(&self, id: u8) -> Result<&Port, Error> {
        let found = self.ports.get(usize::from(id));
        found.ok_or_else(|| unknown_port(id, self.ports.len()))
    }

    /// A port that is there, to be changed.
    pub(in crate::control) fn port_mut(&mut self, id: u8) -> Result<&mut Port, Error> {
        let ports = self.ports.len();
        let found = self.ports.get_mut(usize::from(id));
        found.ok_or_else(|| unknown_port(id, ports))
    }

    /// The ports in stateful mode, in order.
    pub(in crate::control) fn stateful_ports(&self) -> Vec<u8> {
        let ports = (0..).zip(&self.ports);
        let ports = ports.filter(|(_, port)| port.is_stateful());
        ports.map(|(id, _)| id).collect()
    }

    /// Of stateful ports: with how many pairs before its own one shares what is shared out.
    pub(in crate::control) fn pair_of(&self, id: u8) -> u32 {
        let ports = self.stateful_ports();
        let before = ports
            .iter()
            .filter(|other| *other % 2 == 0 && **other < (id & !1));
        before.count() as u32
    }

    /// Who has a port: the owner of stateful mode has all that are in it.
    pub(in crate::control) fn owner_of<'a>(&'a self, port: &'a Port) -> Option<&'a Owner> {
        let of_mode = self.mode_owner.as_ref().filter(|_| port.is_stateful());
        of_mode.or(port.owner.as_ref())
    }

    /// Who makes this request listens, and is told of events from now on.
    pub(in crate::control) fn touch_session(
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

    /// Queues an event for all sessions that listen.
    pub(in crate::control) fn queue_event(&mut self, event: Event, now_ns: Nanos) {
        let ports = &self.ports;
        let owns = |session| owns_a_port(ports, session);
        self.sessions.queue(event, now_ns, owns);
        self.must_notify = true;
    }

    /// One notification for all events of one call: sessions fetch them all at once.
    pub(in crate::control) fn notify_sessions(&mut self) {
        if std::mem::take(&mut self.must_notify) {
            self.push(Action::Publish(b"{}".to_vec()));
        }
    }

    /// Has something done, after all that was pushed before.
    pub(in crate::control) fn push(&mut self, action: Action) {
        self.actions.push_back(action);
    }

    /// The next thing to do, in order.
    pub(in crate::control) fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Tells a data thread.
    pub(in crate::control) fn command(&mut self, core: usize, command: StatelessCommand) {
        self.push(Action::Command { core, command });
    }

    /// Tells a data thread something about its flows.
    pub(in crate::control) fn command_flows(&mut self, core: usize, command: FlowCommand) {
        self.push(Action::Flows { core, command });
    }

    /// Tells the receive thread something; the request at hand is answered when it has done that.
    pub(in crate::control) fn tell(&mut self, request: impl Into<Request>) {
        self.ask(request.into());
    }

    /// The same, and no request waits for it.
    pub(in crate::control) fn tell_aside(&mut self, request: impl Into<Request>) {
        self.ask_aside(request.into());
    }

    /// Asks the receive thread; the request at hand waits for the answer.
    pub(in crate::control) fn ask(&mut self, request: Request) -> QuestionId {
        let question = self.ask_aside(request);
        self.pendings.await_also(Wait::Question(question));
        question
    }

    /// Asks the receive thread; no request waits for the answer.
    pub(in crate::control) fn ask_aside(&mut self, request: Request) -> QuestionId {
        let question = QuestionId(self.pendings.next_id());
        self.push(Action::Ask { question, request });
        question
    }

    /// Has a job done, for which no request waits.
    pub(in crate::control) fn begin_job(&mut self, work: Job) -> JobId {
        let job = JobId(self.pendings.next_id());
        self.push(Action::Job { job, work });
        job
    }

    /// What requests may wait for has happened; `reply` takes the place of theirs.
    pub(in crate::control) fn settle(&mut self, wait: Wait, reply: Option<Reply>) {
        for (pending, reply) in self.pendings.settle(wait, reply) {
            self.push(Action::Reply { pending, reply });
        }
    }

    /// Something that was sent on a port has ended. If its owner's lease is over and nothing else is
    /// sent for that owner, the port is released.
    pub(in crate::control) fn note_at_rest(&mut self, port: u8) {
        self.at_rest.push(port);
    }

    /// Takes the ports on which something has ended.
    pub(in crate::control) fn take_at_rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.at_rest)
    }

    /// A data thread serves no port any more.
    pub(in crate::control) fn remove_thread(&mut self, core: usize) {
        for port in &mut self.ports {
            port.config.cores.retain(|of_port| *of_port != core);
        }
    }

    /// Has the threads of a mode read what arrives at a port.
    pub(in crate::control) fn set_port_mode(&mut self, id: u8, mode: PortMode) {
        self.ports[usize::from(id)].mode = mode;
        self.push(Action::SetPortMode { port: id, mode });
        self.update_reception(id);
        // With it, who answers pings.
        let ended = self.set_service(id, crate::rx_taps::ServiceMode::Off);
        ended.expect("the port is there");
    }
}

fn owns_a_port(ports: &[Port], session: u32) -> bool {
    let mut owners = ports.iter().filter_map(|port| port.owner.as_ref());
    owners.any(|owner| owner.session == session)
}
