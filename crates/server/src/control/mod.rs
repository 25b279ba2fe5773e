//! Control: who may do what, and what it means. A pure state machine.
//!
//! It has no clock, no threads, no files and no sockets, and never waits: time and counters come in
//! with each call ([`View`]); commands to threads, questions, jobs and frames to publish come out as
//! [`Action`]s; the only randomness is drawn from a seed ([`ControlConfig::seed`]).
//!
//! Drive it like this: [`Control::handle`] for each request, [`Control::handle_report`] for each
//! report of a data thread, [`Control::handle_answer`] for each answer of the receive thread,
//! [`Control::handle_job`] for each job that is done, [`Control::handle_link`] with what the system
//! says of links, [`Control::handle_tick`] about every half second; after each of them
//! [`Control::poll_action`] until it is empty, doing what it says in that order. A request is
//! answered at once or later, by [`Action::Reply`].
//! When a data thread breaks down, call [`Control::handle_lost_core`]; before the server ends,
//! [`Control::handle_end`]. At the time that [`Control::poll_timeout`] says, call
//! [`Control::handle_timeout`]. Who reads counters beside control asks [`Control::catalog`] what
//! there is to read.
//!
//! It is a core, which all share (`core`), and domains, a folder each, in one list ([`all_domains`]). A domain
//! has its own state and commands; what it may know of others is in the trait of all (`domain`).

mod action;
mod awaited;
mod capture;
mod catalog;
mod config;
mod core;
mod domain;
mod emulation;
mod files;
pub mod job;
mod nodes;
mod percentiles;
mod ports;
mod profile_name;
mod reply;
mod routes;
mod server;
pub(crate) mod split_mix;
pub mod stateful;
pub mod stateless;
#[cfg(test)]
mod tests;
mod time;
pub(crate) mod upload;
pub mod worker_command;

use std::ops::ControlFlow;

use allosaur_api::commands::ports::MtuChange;
use allosaur_api::events::Event;
use allosaur_api::{Access, Error, Fields, Method, Mode, Request, command};
use allosaur_engine::time::Nanos;

use self::capture::Captures;
use self::core::Core;
use self::core::access::api_mode;
use self::core::layers::Ipv4Layer;
use self::core::pending::{Wait, no_answer, too_slow};
use self::domain::{Domain, Others, Outcome};
use self::emulation::EmulatedClients;
use self::nodes::Nodes;
use self::ports::Ports;
use self::ports::attributes::attributes_changed;
use self::routes::Routes;
use self::server::Server;
use self::stateful::Stateful;
use self::stateless::Stateless;
use crate::metrics::Catalog;
use crate::rx_taps::Answer;
pub use action::Action;
pub use config::{
    BuildInfo, ControlConfig, DeviceCounters, FrameSpace, LinkOwner, PortConfig, StartAddresses,
    View,
};
pub use core::pending::{Handled, JobId, PendingId, QuestionId};
pub use files::{CaptureFiles, FileError, NoFiles};
pub use job::{Job, JobResult, Work};
pub use reply::Reply;
use worker_command::WorkerReport;

/// The state of the whole server.
#[derive(Debug)]
pub struct Control {
    core: Core,
    domains: Vec<Box<dyn Domain>>,
}

/// A command of the table or, where it has none of that name, one of emulated clients.
fn find(name: &str, mode: Mode) -> Option<(Access, Method)> {
    let own = command(name, mode).map(|command| (command.access, command.method));
    own.or_else(|| {
        let command = allosaur_emulation::rpc::commands::command(name)?;
        Some((command.access, Method::Emulation(command.name)))
    })
}

/// The list of all domains, in the order in which they are told what happens: those that send
/// first, then those that ask what is sent.
fn all_domains(config: &ControlConfig, now_ns: Nanos) -> Vec<Box<dyn Domain>> {
    vec![
        Box::new(Stateful::default()),
        Box::new(Stateless::new(config.ports.len())),
        Box::new(Captures::default()),
        Box::new(EmulatedClients::default()),
        Box::new(Nodes::new(config.ports.len(), config.nodes_owner.clone())),
        Box::new(Routes::new(config.seed)),
        Box::new(Ports::new(config.ports.len(), now_ns)),
        Box::new(Server::default()),
    ]
}

impl Control {
    /// A server without owners, streams or traffic.
    pub fn new(config: ControlConfig, now_ns: Nanos) -> Control {
        Control {
            domains: all_domains(&config, now_ns),
            core: Core::new(config, now_ns),
        }
    }

    /// Does what a request asks, or refuses.
    pub fn handle(&mut self, request: &Request, view: &View<'_>) -> Handled {
        self.core.heard_ns = Some(view.now_ns);
        self.core.pendings.begin();
        let reply = self.answer(request, view);
        self.finish(view.now_ns);
        self.core.pendings.end(&request.method, reply, view.now_ns)
    }

    fn answer(&mut self, request: &Request, view: &View<'_>) -> Reply {
        let fields = Fields::new(&request.params);
        let mode = self.core.mode_of(&fields);
        let (access, method) = find(&request.method, mode.map_or(Mode::Any, api_mode))
            .ok_or_else(|| Error::method_not_found(&request.method))?;
        self.core.check_access(access, &fields)?;
        self.core.renew_leases(access, method, &fields);
        let replies = (0..self.domains.len()).map(|place| {
            let (domain, mut others) = Others::of(&mut self.domains, place);
            domain.call(&mut self.core, &mut others, method, &fields, view)
        });
        let reply = replies.flatten().next();
        reply.expect("each command of the table is one of a domain")
    }

    /// Takes note of what a data thread did, or tells.
    pub fn handle_report(&mut self, thread: usize, report: impl Into<WorkerReport>, now_ns: Nanos) {
        let mut report = report.into();
        for domain in &mut self.domains {
            match domain.handle_report(&mut self.core, thread, report, now_ns) {
                ControlFlow::Break(()) => break,
                ControlFlow::Continue(others) => report = others,
            }
        }
        self.finish(now_ns);
    }

    /// Takes note that a data thread ended by itself. Its share of what is being sent is over;
    /// other data threads go on with theirs, and with whatever is started from now on.
    pub fn handle_lost_core(&mut self, thread: usize, now_ns: Nanos) {
        let served = |port: &u8| {
            let port = &self.core.ports[usize::from(*port)];
            port.config.cores.contains(&thread)
        };
        let served: Vec<u8> = self.core.port_ids().filter(served).collect();
        for domain in &mut self.domains {
            domain.handle_lost_thread(&mut self.core, thread, &served, now_ns);
        }
        self.core.remove_thread(thread);
        self.finish(now_ns);
    }

    /// The receive thread has answered.
    pub fn handle_answer(&mut self, question: QuestionId, answer: Answer, view: &View<'_>) {
        self.handle_outcome(Wait::Question(question), Outcome::Answer(answer), view);
    }

    /// A job is done.
    pub fn handle_job(&mut self, job: JobId, result: JobResult, view: &View<'_>) {
        self.handle_outcome(Wait::Job(job), Outcome::Job(result), view);
    }

    fn handle_outcome(&mut self, wait: Wait, outcome: Outcome, view: &View<'_>) {
        self.core.pendings.begin();
        let reply = self.reply_of(wait, outcome, view);
        self.core.pendings.go_on(wait, view.now_ns);
        self.core.settle(wait, reply);
        self.finish(view.now_ns);
    }

    /// What the domain that waits for an outcome makes of it.
    fn reply_of(&mut self, wait: Wait, outcome: Outcome, view: &View<'_>) -> Option<Reply> {
        let mut outcome = outcome;
        for place in 0..self.domains.len() {
            let (domain, mut others) = Others::of(&mut self.domains, place);
            match domain.handle_outcome(&mut self.core, &mut others, wait, outcome, view) {
                ControlFlow::Break(reply) => return Some(reply),
                ControlFlow::Continue(not_taken) => outcome = not_taken,
            }
        }
        None
    }

    /// Tells all sessions that the server ends, and why. Those that listen will ask for it:
    /// serve them a little longer, while [`Control::has_unread_end`] is true.
    pub fn handle_end(&mut self, cause: &str, now_ns: Nanos) {
        let cause = cause.to_owned();
        self.core
            .queue_event(Event::ServerStopped { cause }, now_ns);
        self.core.notify_sessions();
    }

    /// Whether a session that listens has not yet fetched why the server ends.
    pub fn has_unread_end(&self) -> bool {
        self.core.sessions.have_unread_end()
    }

    /// Reads the counters and publishes them; to be called about every half second.
    pub fn handle_tick(&mut self, view: &View<'_>) {
        self.core.rates.read(view.now_ns, view.snapshot);
        for place in 0..self.domains.len() {
            let (domain, mut others) = Others::of(&mut self.domains, place);
            domain.handle_tick(&mut self.core, &mut others, view);
        }
        self.finish(view.now_ns);
    }

    /// The next thing to do, in order.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.core.poll_action()
    }

    /// When control wants to be called again without being asked: [`Control::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Nanos> {
        let domains = self.domains.iter();
        let timeouts = domains.filter_map(|domain| domain.poll_timeout());
        timeouts.chain(self.core.pendings.poll_timeout()).min()
    }

    /// Does what is due; see [`Control::poll_timeout`].
    pub fn handle_timeout(&mut self, view: &View<'_>) {
        self.give_up_waiting(view);
        for domain in &mut self.domains {
            domain.handle_timeout(&mut self.core, view);
        }
        self.finish(view.now_ns);
    }

    /// Answers the requests that have waited long enough: without the data threads, or that the
    /// receive thread or a job does not answer.
    fn give_up_waiting(&mut self, view: &View<'_>) {
        for (pending, mut request) in self.core.pendings.take_late(view.now_ns) {
            for wait in std::mem::take(&mut request.waits) {
                match wait {
                    Wait::End(_) | Wait::Change(_) => {}
                    Wait::Question(_) => {
                        self.forget(wait);
                        request.reply = Err(no_answer(view));
                    }
                    Wait::Job(_) => {
                        let late = Outcome::Job(JobResult::Failed(too_slow()));
                        if let Some(reply) = self.reply_of(wait, late, view) {
                            request.reply = reply;
                        }
                    }
                }
            }
            let reply = request.reply;
            self.core.push(Action::Reply { pending, reply });
        }
    }

    fn forget(&mut self, wait: Wait) {
        for domain in &mut self.domains {
            domain.forget(wait);
        }
    }

    /// What follows from all that was done in one call.
    fn finish(&mut self, now_ns: Nanos) {
        for port in self.core.take_at_rest() {
            for place in 0..self.domains.len() {
                let (domain, mut others) = Others::of(&mut self.domains, place);
                domain.handle_rest(&mut self.core, &mut others, port, now_ns);
            }
        }
        for wait in self.core.pendings.take_abandoned() {
            self.forget(wait);
        }
        self.core.notify_sessions();
    }

    /// How many requests wait for their replies.
    pub fn pending(&self) -> usize {
        self.core.pendings.count()
    }

    /// Whether any profile or capture is being sent, or there are flows.
    pub fn is_transmitting(&self) -> bool {
        self.domains.iter().any(|domain| domain.is_transmitting())
    }

    /// What there is to be counted.
    pub fn catalog(&self, view: &View<'_>) -> Catalog {
        let mut catalog = self.core.catalog(view.now_ns);
        for domain in &self.domains {
            domain.describe(&self.core, view, &mut catalog);
        }
        catalog
    }
}

impl Control {
    /// Gives a port its addresses, and tells who answers for them; before the first request.
    pub fn set_start_addresses(&mut self, id: u8, addresses: &StartAddresses) -> Result<(), Error> {
        self.core.port(id)?;
        self.core.change_layers(id, |layers, _| {
            if let Some(mac) = addresses.destination_mac {
                layers.destination_mac = mac;
            }
            layers.vlan.clone_from(&addresses.vlan);
            layers.ipv4 = addresses.ipv4.map(|(source, destination)| Ipv4Layer {
                source,
                destination,
                resolved: addresses.destination_mac.is_some(),
                seeking: true,
            });
        });
        if let Some(given) = &addresses.vxlan {
            let end = self.core.port(id)?.layers.vxlan_end(given, id % 2 == 0);
            let end = end.map_err(|(field, problem)| {
                Error::execution(format!("port {id}: vxlan.{field} {problem}"))
            })?;
            self.core
                .change_layers(id, |layers, _| layers.vxlan = Some(end));
        }
        for domain in &mut self.domains {
            domain.addresses_changed(&mut self.core, id);
        }
        Ok(())
    }

    /// Lets users send no more than this on a port, at layer 1, also when they force it.
    pub fn limit_load(&mut self, id: u8, max_bps: f64) -> Result<(), Error> {
        self.core.port_mut(id)?.load_max_bps = Some(max_bps);
        Ok(())
    }

    /// Lets a port with flows take its own frames only, as long as it is not promiscuous; before the
    /// first request.
    pub fn begin_mac_filter(&mut self, id: u8, promiscuous: bool) -> Result<(), Error> {
        if promiscuous {
            let port = self.core.port_mut(id)?;
            port.promiscuous = true;
            let action = port.set_receive(id);
            self.core.push(action);
        }
        self.core.port(id)?;
        self.core.update_reception(id);
        Ok(())
    }

    /// The system tells how the link of a port is, and `cause`, why it is down. Sessions hear of it
    /// when it has changed; returns whether it has.
    pub fn handle_link(&mut self, id: u8, is_up: bool, cause: &'static str, now_ns: Nanos) -> bool {
        let Some(port) = self.core.ports.get_mut(usize::from(id)) else {
            return false;
        };
        let is_same = port.reception.link_up == is_up && port.link_cause == cause;
        if port.config.link != LinkOwner::System || is_same {
            return false;
        }
        port.reception.link_up = is_up;
        port.link_cause = cause;
        let event = attributes_changed(id, port);
        self.core.queue_event(event, now_ns);
        true
    }

    /// The MTU of a port's interface is another than at the start, or the same again. Returns whether
    /// that is news.
    pub fn handle_mtu(&mut self, id: u8, change: Option<MtuChange>, now_ns: Nanos) -> bool {
        let port = self.core.ports.get_mut(usize::from(id));
        let Some(port) = port.filter(|port| port.mtu_change != change) else {
            return false;
        };
        port.mtu_change = change;
        let event = attributes_changed(id, port);
        self.core.queue_event(event, now_ns);
        true
    }
}
