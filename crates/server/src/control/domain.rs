//! What a domain is: a part of control with its own commands, its own state and its own messages to
//! threads. It reaches other domains by the hooks of [`Domain`] only.

use std::fmt;
use std::ops::ControlFlow;

use allosaur_api::commands::ports::ProfileStates;
use allosaur_api::commands::statistics::GlobalStats;
use allosaur_api::commands::status::ProfileUse;
use allosaur_api::{Error, Fields, Method};
use allosaur_engine::time::Nanos;

use super::config::View;
use super::core::Core;
use super::core::pending::Wait;
use super::job::JobResult;
use super::reply::Reply;
use super::worker_command::WorkerReport;
use crate::metrics::Catalog;
use crate::routes::SpeakerPlace;
use crate::rx_taps::Answer;

/// How what a domain waits for comes to it: once for all that keep it in an
/// [`Awaited`](super::awaited::Awaited).
pub(in crate::control) trait TakesOutcomes: fmt::Debug {
    /// Takes what it waits for: gives the reply of the request, or the outcome back when another domain
    /// waits for it.
    fn handle_outcome(
        &mut self,
        control: &mut Core,
        others: &mut Others<'_>,
        wait: Wait,
        outcome: Outcome,
        view: &View<'_>,
    ) -> ControlFlow<Reply, Outcome>;

    /// It need not wait for that any more.
    fn forget(&mut self, wait: Wait);
}

/// A part of control. The first methods are what control drives it by, as
/// [`Control`](super::Control) describes; the others are hooks, by which domains know of each other:
/// what a port is used for, and what has to end when its owner or its mode does. A domain that sends
/// nothing leaves the hooks as they are.
pub(in crate::control) trait Domain: TakesOutcomes {
    /// Does a command, if it is one of this domain.
    fn call(
        &mut self,
        _control: &mut Core,
        _others: &mut Others<'_>,
        _method: Method,
        _fields: &Fields<'_>,
        _view: &View<'_>,
    ) -> Option<Reply> {
        None
    }

    /// Takes note of what a data thread reports, or gives the report back when it is another domain's.
    fn handle_report(
        &mut self,
        _control: &mut Core,
        _thread: usize,
        report: WorkerReport,
        _now_ns: Nanos,
    ) -> ControlFlow<(), WorkerReport> {
        ControlFlow::Continue(report)
    }

    /// A data thread broke down, which served these ports: what it sent is over.
    fn handle_lost_thread(
        &mut self,
        _control: &mut Core,
        _thread: usize,
        _ports: &[u8],
        _now_ns: Nanos,
    ) {
    }

    /// Does what is done about every half second.
    fn handle_tick(&mut self, _control: &mut Core, _others: &mut Others<'_>, _view: &View<'_>) {}

    /// When it has something due: [`handle_timeout`](Domain::handle_timeout).
    fn poll_timeout(&self) -> Option<Nanos> {
        None
    }

    /// Does what is due.
    fn handle_timeout(&mut self, _control: &mut Core, _view: &View<'_>) {}

    /// Something that was sent on a port has ended.
    fn handle_rest(
        &mut self,
        _control: &mut Core,
        _others: &mut Others<'_>,
        _port: u8,
        _now_ns: Nanos,
    ) {
    }

    /// Adds what it has that is counted.
    fn describe(&self, _control: &Core, _view: &View<'_>, _catalog: &mut Catalog) {}

    /// What it does on a port.
    fn port_use(&self, _control: &Core, _port: u8) -> PortUse {
        PortUse::default()
    }

    /// Whether a data thread sends for it on a port.
    fn sends_from(&self, _control: &Core, _port: u8, _thread: usize) -> bool {
        false
    }

    /// Whether it sends anything that a session has started.
    fn sends_for(&self, _scope: Scope, _session: u32) -> bool {
        false
    }

    /// Whether it sends anything at all.
    fn is_transmitting(&self) -> bool {
        false
    }

    /// The lease of a session is over: what it has started ends.
    fn halt(&mut self, _control: &mut Core, _scope: Scope, _session: u32, _view: &View<'_>) {}

    /// A port goes into another mode: what it sends ends.
    fn leave_port(&mut self, _control: &mut Core, _port: u8) {}

    /// Other ports are in stateful mode from now on: what runs over all of them ends at once.
    fn leave_mode(&mut self, _control: &mut Core, _view: &View<'_>) {}

    /// The name of something that runs over all ports in stateful mode.
    fn running_in_mode(&self) -> Option<String> {
        None
    }

    /// Stateful mode has another owner, and perhaps other ports than before.
    fn mode_acquired(&mut self, _control: &mut Core, _has_other_ports: bool, _now_ns: Nanos) {}

    /// The addresses of a port have changed.
    fn addresses_changed(&mut self, _control: &mut Core, _port: u8) {}

    /// What it has loaded on a port; nothing when it loads nothing on ports.
    fn port_profiles(&self, _port: u8) -> Option<PortProfiles> {
        None
    }

    /// The state of a profile of a port, or of all.
    fn profile_state(&self, _port: u8, _profile: &str) -> Result<Option<ProfileStates>, Error> {
        Ok(None)
    }

    /// Its profiles for `get_status`: those of a port, or those that run over all ports.
    fn profile_uses(&self, _control: &Core, _scope: Scope, _now_ns: Nanos) -> Vec<ProfileUse> {
        Vec::new()
    }

    /// Where a Linux node of a port is; nothing when it has no nodes to do with.
    fn node_place(&self, _port: u8, _mac: [u8; 6]) -> Option<Result<SpeakerPlace, String>> {
        None
    }

    /// Adds what it has in the counters of the whole server.
    fn add_stats(&self, _control: &Core, _now_ns: Nanos, _stats: &mut GlobalStats) {}
}

/// What somebody owns: a port, or stateful mode with all ports that are in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::control) enum Scope {
    Port(u8),
    Mode,
}

/// What comes of a question or a job.
#[derive(Debug)]
pub(in crate::control) enum Outcome {
    Answer(Answer),
    Job(JobResult),
}

/// What a domain does on a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::control) struct PortUse {
    /// What the port does, as `get_port_status` calls it.
    pub(in crate::control) state: Option<&'static str>,
    /// Something was started and has not ended; it may pause.
    pub(in crate::control) is_running: bool,
    /// Something is sent.
    pub(in crate::control) is_sending: bool,
    /// What runs goes to the gateway that there was when it began, and none must take its place.
    pub(in crate::control) has_fixed_gateway: bool,
}

/// What is loaded on a port.
#[derive(Clone, Debug, Default)]
pub(in crate::control) struct PortProfiles {
    pub(in crate::control) names: Vec<String>,
    pub(in crate::control) stream_id_max: u32,
}

/// All domains but the one that is called.
#[derive(Debug)]
pub(in crate::control) struct Others<'d> {
    before: &'d mut [Box<dyn Domain>],
    behind: &'d mut [Box<dyn Domain>],
}

impl<'d> Others<'d> {
    /// A domain of a list, and the others.
    pub(in crate::control) fn of(
        domains: &'d mut [Box<dyn Domain>],
        place: usize,
    ) -> (&'d mut dyn Domain, Others<'d>) {
        let (before, rest) = domains.split_at_mut(place);
        let (domain, behind) = rest.split_first_mut().expect("a place of the list");
        (domain.as_mut(), Others { before, behind })
    }

    /// The others, in their order.
    pub(in crate::control) fn iter(&self) -> impl Iterator<Item = &dyn Domain> {
        let all = self.before.iter().chain(self.behind.iter());
        all.map(|domain| domain.as_ref())
    }

    /// The others, in their order, to be told something.
    pub(in crate::control) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Box<dyn Domain>> {
        self.before.iter_mut().chain(self.behind.iter_mut())
    }

    /// What all of them do on a port: the first that says what the port does, has the say.
    pub(in crate::control) fn port_use(&self, control: &Core, port: u8) -> PortUse {
        let uses = self.iter().map(|domain| domain.port_use(control, port));
        uses.fold(PortUse::default(), |all, one| PortUse {
            state: all.state.or(one.state),
            is_running: all.is_running || one.is_running,
            is_sending: all.is_sending || one.is_sending,
            has_fixed_gateway: all.has_fixed_gateway || one.has_fixed_gateway,
        })
    }
}
