//! A profile that runs on one core: its clients, and what it counts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::clients::{Clients, Terms, Tuple};
use super::{EndCause, RunLimits};
use crate::flow::FlowIndex;
use crate::session::{FlowTimes, SideCounters};
use crate::tcp::TcpCounters;
use crate::template::{CompiledProfile, Side, SideTunables, TemplateIndex};
use crate::time::{MILLISECOND, Nanos};
use crate::transmit::PortIndex;

/// How long after the end of a run flows begin that were due before it.
const CATCH_UP_MAX: Nanos = 30 * MILLISECOND;

/// What one side of a template group counts, with how many flows there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupCounters {
    /// What its flows count.
    pub flows: SideCounters,
    /// Flows that there are.
    pub active: u64,
    /// Of these, those whose ends know of each other.
    pub established: u64,
    /// Clients only: flows that were due, and were not begun in time.
    pub missed: u64,
}

/// Which side of a flow is ours, as a place in arrays.
pub(super) fn place(side: Side) -> usize {
    match side {
        Side::Client => 0,
        Side::Server => 1,
    }
}

/// A profile that runs.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) profile: Arc<CompiledProfile>,
    /// Of each template group, client and server; group 0 has those without a name.
    pub(super) groups: Vec<[GroupCounters; 2]>,
    /// How long the flows of its clients took.
    pub(super) times: Box<FlowTimes>,
    clients: Vec<(PortIndex, Clients)>,
    /// Those of `clients` whose next flow may begin, by the time that it is due.
    order: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// When no more flows begin.
    pub(super) until: Option<Nanos>,
    /// No core begins flows: it waits for those of others, until its time is over.
    only_serves: bool,
    /// No more flows begin.
    pub(super) is_stopping: bool,
    /// Its flows were ended: what comes for it is too late.
    pub(super) is_closed: bool,
    /// Flows that programs asked for.
    pub(super) executed: u64,
    /// Flows that there are, of both sides.
    pub(super) flows: u64,
    /// Of these, those in TIME-WAIT.
    pub(super) in_time_wait: u64,
    /// Its flows in TIME-WAIT are over.
    pub(super) is_finishing: bool,
    limits: RunLimits,
    /// When the first of its clients' flows began.
    began_at: Option<Nanos>,
    /// A flow of its clients was established.
    pub(super) has_established: bool,
    /// Flows that are to be cut off.
    pub(super) left: Vec<FlowIndex>,
    /// When the flows that are left are cut off.
    cut_off_at: Option<Nanos>,
    /// Why it began no more flows.
    cause: EndCause,
    /// Its end was told.
    pub(super) has_ended: bool,
    /// By side: one template of each application that tells its flows apart itself.
    pub(super) demultiplexed: [Vec<TemplateIndex>; 2],
}

impl Run {
    pub(super) fn new(
        profile: Arc<CompiledProfile>,
        ports: &[(PortIndex, Terms)],
        until: Option<Nanos>,
        limits: RunLimits,
        only_serves: bool,
    ) -> Run {
        let mut clients = Vec::new();
        for (port, terms) in ports {
            for number in 0..profile.templates().len() {
                let template = TemplateIndex(number as u16);
                let made = Clients::new(&profile, template, *port, terms);
                clients.extend(made.map(|made| (*port, made)));
            }
        }
        Run {
            times: Box::default(),
            groups: groups_of(&profile),
            order: order(&clients),
            clients,
            until,
            only_serves,
            is_stopping: false,
            is_closed: false,
            executed: 0,
            flows: 0,
            in_time_wait: 0,
            is_finishing: false,
            limits,
            began_at: None,
            has_established: false,
            cut_off_at: None,
            left: Vec::new(),
            cause: EndCause::Done,
            has_ended: false,
            demultiplexed: Default::default(),
            profile,
        }
    }

    /// Datagrams that no flow has are shown to the applications of these templates, by side.
    pub(super) fn with_demultiplexed(self, demultiplexed: [Vec<TemplateIndex>; 2]) -> Run {
        Run {
            demultiplexed,
            ..self
        }
    }

    /// Whether any application of this side tells its flows apart itself.
    #[inline]
    pub(super) fn demultiplexes(&self, side: Side) -> bool {
        !self.demultiplexed[place(side)].is_empty()
    }

    /// Where one side of a template counts.
    pub(super) fn counters_of(
        &mut self,
        template: TemplateIndex,
        side: Side,
    ) -> &mut GroupCounters {
        let group = self.profile.template(template).group;
        &mut self.groups[usize::from(group)][place(side)]
    }

    /// Other rates from now on.
    pub(super) fn set_rates(&mut self, now: Nanos, terms: &Terms) {
        for (_, clients) in &mut self.clients {
            let template = self.profile.template(clients.template);
            clients.set_rate(now, &template.client, terms);
        }
        self.order = order(&self.clients);
    }

    /// When there is something to do: flows that begin, or its end.
    pub(super) fn next_due(&self) -> Option<Nanos> {
        if !self.left.is_empty() {
            // At once.
            return Some(0);
        }
        if self.is_stopping {
            return self.cut_off_at;
        }
        let due = self.order.peek().map(|Reverse((due, _))| *due);
        let times = [due, self.until, self.establish_until()];
        times.into_iter().flatten().min()
    }

    /// Whether it begins no more flows.
    fn is_done(&self) -> bool {
        let waits = self.only_serves || !self.order.is_empty() || self.waits_for_ends();
        self.is_stopping || !waits
    }

    /// Begins no more flows.
    pub(super) fn stop(&mut self, now: Nanos, cause: EndCause) {
        if !self.is_stopping {
            self.is_stopping = true;
            self.cause = cause;
            let close_max = self.limits.close_max;
            self.cut_off_at = close_max.map(|close_max| now + close_max);
        }
    }

    /// When a flow must be established, while none is.
    fn establish_until(&self) -> Option<Nanos> {
        let began_at = self.began_at.filter(|_| !self.has_established)?;
        Some(began_at + self.limits.establish_max?)
    }

    /// A client's flow began.
    pub(super) fn note_begun(&mut self, now: Nanos) {
        self.began_at.get_or_insert(now);
    }

    /// Stops beginning flows when it is time. Returns whether it is time to cut off those that
    /// are left, which is said once.
    pub(super) fn watch_the_end(&mut self, now: Nanos) -> bool {
        let is_over = |time: Option<Nanos>| time.is_some_and(|time| time <= now);
        if is_over(self.until) && !self.catches_up(now) {
            self.give_up_rest();
            self.stop(now, EndCause::Done);
        } else if is_over(self.establish_until()) {
            self.stop(now, EndCause::NotEstablished);
        }
        let cuts_off = is_over(self.cut_off_at);
        if cuts_off {
            self.cut_off_at = None;
        }
        cuts_off
    }

    /// Whether flows that were due before the end still may begin after it.
    fn catches_up(&self, now: Nanos) -> bool {
        let until = self.until.unwrap_or(Nanos::MAX);
        let is_left = self
            .order
            .peek()
            .is_some_and(|Reverse((due, _))| *due < until);
        is_left && !self.is_stopping && now < until.saturating_add(CATCH_UP_MAX)
    }

    /// Flows that were due before the end and did not begin are missed.
    fn give_up_rest(&mut self) {
        let (Some(until), false) = (self.until, self.is_stopping) else {
            return;
        };
        for (_, clients) in &self.clients {
            let group = self.profile.template(clients.template).group;
            self.groups[usize::from(group)][0].missed += clients.due_before(until);
        }
    }

    /// Whether all that is left are flows in TIME-WAIT whose other ends were here, and are gone;
    /// said once.
    pub(super) fn is_all_in_time_wait(&self) -> bool {
        let is_all_waiting = self.in_time_wait > 0 && self.in_time_wait == self.flows;
        if self.is_finishing || !is_all_waiting || !self.is_done() {
            return false;
        }
        let sum = |side: Side, counter: fn(&TcpCounters) -> u64| -> u64 {
            let sides = self.groups.iter().map(|group| &group[place(side)]);
            sides.map(|counters| counter(&counters.flows.tcp)).sum()
        };
        let accepts = sum(Side::Server, |tcp| tcp.accepts);
        accepts > 0 && accepts == sum(Side::Client, |tcp| tcp.connects)
    }

    /// Why it is over, once it is; said once.
    pub(super) fn take_end(&mut self) -> Option<EndCause> {
        let is_over = self.flows == 0 && !self.has_ended && self.is_done();
        self.has_ended |= is_over;
        is_over.then_some(self.cause)
    }

    /// Whether flows that end make room for others.
    fn waits_for_ends(&self) -> bool {
        self.clients.iter().any(|(_, clients)| !clients.is_done())
    }

    /// Clients whose flow is due at `now`, by their place; what is too late is counted as missed.
    pub(super) fn pop_due(&mut self, now: Nanos) -> Option<u32> {
        if self.is_stopping {
            return None;
        }
        let &Reverse((due, place)) = self.order.peek()?;
        if due > now || self.until.is_some_and(|until| until <= due) {
            return None;
        }
        self.order.pop();
        let (_, clients) = &mut self.clients[place as usize];
        let missed = clients.give_up_late(now);
        if missed > 0 {
            let group = self.profile.template(clients.template).group;
            self.groups[usize::from(group)][0].missed += missed;
        }
        clients.take();
        let next = clients.next_due();
        self.order.extend(next.map(|due| Reverse((due, place))));
        Some(place)
    }

    /// The template of those clients.
    pub(super) fn template_of(&self, place: u32) -> TemplateIndex {
        self.clients[place as usize].1.template
    }

    /// How one side of a template behaves.
    pub(super) fn tunables(&self, template: TemplateIndex, side: Side) -> &SideTunables {
        let template = self.profile.template(template);
        match side {
            Side::Client => &template.client.tunables,
            Side::Server => &template.server.tunables,
        }
    }

    /// Their port.
    pub(super) fn port_of(&self, place: u32) -> PortIndex {
        self.clients[place as usize].0
    }

    /// Those clients, to look at.
    pub(super) fn clients_at(&self, place: u32) -> &Clients {
        &self.clients[place as usize].1
    }

    /// Those clients, and their port.
    pub(super) fn clients(&mut self, place: u32) -> (PortIndex, &mut Clients) {
        let (port, clients) = &mut self.clients[place as usize];
        (*port, clients)
    }

    /// Another port for a flow of a template between the same ends.
    pub(super) fn draw_port(&mut self, place: u32, template: TemplateIndex, tuple: Tuple) -> Tuple {
        let (_, clients) = &mut self.clients[place as usize];
        clients.draw_port(tuple, template, &self.profile.template(template).client)
    }

    /// A flow of those clients is over.
    pub(super) fn handle_end(&mut self, place: u32, now: Nanos) {
        let (_, clients) = &mut self.clients[place as usize];
        let could_begin = clients.next_due().is_some();
        clients.handle_end(now);
        if let (false, Some(due)) = (could_begin, clients.next_due()) {
            self.order.push(Reverse((due, place)));
        }
    }
}

/// The counters of a profile's groups, all zero.
fn groups_of(profile: &CompiledProfile) -> Vec<[GroupCounters; 2]> {
    let rows = profile.application_rows().len();
    let side = || {
        let mut side = GroupCounters::default();
        side.flows.rows = vec![0; rows].into();
        side
    };
    let groups = profile.groups().len() + 1;
    (0..groups).map(|_| [side(), side()]).collect()
}

/// Those clients whose next flow may begin, by the time that it is due.
fn order(clients: &[(PortIndex, Clients)]) -> BinaryHeap<Reverse<(Nanos, u32)>> {
    let due = clients.iter().zip(0..);
    let due = due.filter_map(|((_, one), place)| Some(Reverse((one.next_due()?, place))));
    due.collect()
}
