//! A profile that runs on one core: its clients, and what it counts.
//!
//! What lives here: which clients are due. What does not: their flows.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::clients::{Clients, Terms, ramp_ns};
use crate::session::SideCounters;
use crate::template::{CompiledProfile, Side, TemplateIndex};
use crate::time::Nanos;
use crate::transmit::PortIndex;

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
    clients: Vec<(PortIndex, Clients)>,
    /// Those of `clients` whose next flow may begin, by the time that it is due.
    order: BinaryHeap<Reverse<(Nanos, u32)>>,
    ramp: Option<(Nanos, Nanos)>,
    /// When no more flows begin.
    pub(super) until: Option<Nanos>,
    /// No more flows begin.
    pub(super) is_stopping: bool,
    /// Its flows were ended: what comes for it is too late.
    pub(super) is_closed: bool,
    /// Flows that there are, of both sides.
    pub(super) flows: u64,
    /// What was told of its end.
    pub(super) has_ended: bool,
}

impl Run {
    pub(super) fn new(
        profile: Arc<CompiledProfile>,
        ports: &[(PortIndex, Terms)],
        until: Option<Nanos>,
    ) -> Run {
        let mut clients = Vec::new();
        for (port, terms) in ports {
            for number in 0..profile.templates().len() {
                let template = TemplateIndex(number as u16);
                let made = Clients::new(&profile, template, terms);
                clients.extend(made.map(|made| (*port, made)));
            }
        }
        let due = clients.iter().zip(0..);
        let due = due.filter_map(|((_, one), place)| Some(Reverse((one.next_due()?, place))));
        let start_at = ports.first().map_or(0, |(_, terms)| terms.start_at);
        let groups = profile.groups().len() + 1;
        Run {
            groups: (0..groups).map(|_| Default::default()).collect(),
            order: due.collect(),
            clients,
            ramp: ramp_ns(profile.rampup_s()).map(|span| (span, start_at)),
            until,
            is_stopping: false,
            is_closed: false,
            flows: 0,
            has_ended: false,
            profile,
        }
    }

    /// Other rates from now on.
    pub(super) fn set_factor(&mut self, factor: f64, terms: &Terms) {
        let terms = Terms { factor, ..*terms };
        for (_, clients) in &mut self.clients {
            let template = self.profile.template(clients.template);
            clients.set_rate(&template.client, &terms);
        }
    }

    /// When the next flow is due.
    pub(super) fn next_due(&self) -> Option<Nanos> {
        if self.is_stopping {
            return None;
        }
        let due = self.order.peek().map(|Reverse((due, _))| *due);
        match (due, self.until) {
            (due, None) => due,
            (due, Some(until)) => Some(due.map_or(until, |due| due.min(until))),
        }
    }

    /// Whether it begins no more flows.
    pub(super) fn is_done(&self) -> bool {
        self.is_stopping || self.order.is_empty() && !self.waits_for_ends()
    }

    /// Stops beginning flows when its time is over.
    pub(super) fn watch_the_end(&mut self, now: Nanos) {
        if self.until.is_some_and(|until| until <= now) {
            self.is_stopping = true;
        }
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
        if due > now {
            return None;
        }
        self.order.pop();
        let (_, clients) = &mut self.clients[place as usize];
        let missed = clients.give_up_late(now);
        if missed > 0 {
            let group = self.profile.template(clients.template).group;
            self.groups[usize::from(group)][0].missed += missed;
        }
        clients.take(self.ramp);
        let next = clients.next_due();
        self.order.extend(next.map(|due| Reverse((due, place))));
        Some(place)
    }

    /// Those clients, and their port.
    pub(super) fn clients(&mut self, place: u32) -> (PortIndex, &mut Clients) {
        let (port, clients) = &mut self.clients[place as usize];
        (*port, clients)
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
