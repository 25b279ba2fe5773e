//! Leases: when a client that acquired with `lease_s` is silent for so long, because it was killed or cut
//! off, what it started is stopped, and what it acquired is released. Traffic of others goes on.
//!
//! Silence is added up at ticks, and one tick adds at most [`TICK_COUNTED_MAX`]: when the server
//! itself stood still, the requests that wait are read before anybody is taken for silent.

use allosaur_api::events::Event;
use allosaur_api::{Access, Fields, Method, ServerMethod};
use allosaur_engine::time::{Nanos, SECOND};

use crate::control::ports::owner::Step;
use crate::control::{Control, View};

/// What one tick adds to the silence of an owner at most; ticks are half a second apart.
const TICK_COUNTED_MAX: Nanos = SECOND;
impl Control {
    /// The owner who makes this request is there: its leases begin anew. One that is over stays over.
    pub(in crate::control) fn renew_leases(
        &mut self,
        access: Access,
        method: Method,
        fields: &Fields<'_>,
    ) {
        let session = match access {
            Access::Owner => fields
                .byte("port_id")
                .ok()
                .and_then(|id| self.ports.get(usize::from(id)))
                .and_then(|port| Some(port.owner.as_ref()?.session)),
            Access::Context => self.room.owner.as_ref().map(|owner| owner.session),
            _ if method == Method::Server(ServerMethod::AsyncEvents) => {
                fields.uint32("session_id").ok()
            }
            _ => None,
        };
        let Some(session) = session else { return };
        let of_ports = self.ports.iter_mut().map(|port| &mut port.owner);
        let owners = of_ports.chain([&mut self.room.owner]).flatten();
        for owner in owners.filter(|owner| owner.session == session) {
            if let Some(lease) = &mut owner.lease {
                lease.silent = 0;
            }
        }
    }

    /// Ends the leases of owners that have been silent too long; to be called at each tick.
    pub(in crate::control) fn run_leases(&mut self, view: &View<'_>) {
        let passed = view.now_ns.saturating_sub(self.ticked_ns);
        let passed = passed.min(TICK_COUNTED_MAX);
        self.ticked_ns = view.now_ns;
        for id in 0..self.ports.len() as u8 {
            let owner = self.ports[usize::from(id)].owner.as_mut();
            match owner.map_or(Step::Holds, |owner| owner.pass(passed)) {
                Step::Holds => {}
                Step::Ends => self.end_lease_of_port(id, view),
                Step::IsOver => self.release_at_rest(id, view.now_ns),
                Step::IsOverdue => self.release_port(id, view.now_ns),
            }
        }
        let owner = self.room.owner.as_mut();
        match owner.map_or(Step::Holds, |owner| owner.pass(passed)) {
            Step::Holds => {}
            Step::Ends => self.end_lease_of_server(view),
            Step::IsOver => self.release_server_at_rest(view.now_ns),
            Step::IsOverdue => self.release_stateful_ports(view.now_ns),
        }
    }

    /// The data threads are through with what a port sent: if its lease is over, it is released.
    pub(in crate::control) fn release_at_rest(&mut self, id: u8, now_ns: Nanos) {
        let Some(port) = self.ports.get(usize::from(id)) else {
            return;
        };
        let Some(owner) = &port.owner else { return };
        let is_over = owner.lease.is_some_and(|lease| lease.over.is_some());
        if is_over && !port.sends_for(owner.session) {
            self.release_port(id, now_ns);
        }
    }

    fn end_lease_of_port(&mut self, id: u8, view: &View<'_>) {
        let Some(owner) = self.ports[usize::from(id)].owner.clone() else {
            return;
        };
        tracing::warn!(
            port = id,
            user = owner.user,
            session = owner.session,
            "the lease of a port is over, its owner was not heard for {} s: what it started is \
             stopped, and the port is released",
            owner.lease.map_or(0.0, |lease| lease.length_s())
        );
        self.halt_port(id, owner.session);
        self.release_at_rest(id, view.now_ns);
    }

    /// Stops all that a port does because a session has started it.
    fn halt_port(&mut self, id: u8, session: u32) {
        self.end_service_of(id, session);
        let port = &self.ports[usize::from(id)];
        let profiles = port.profiles.iter();
        let runs = profiles.filter_map(|(name, profile)| Some((name, profile.run.as_ref()?)));
        let its = runs.filter(|(_, run)| run.session == session);
        let its: Vec<String> = its.map(|(name, _)| name.clone()).collect();
        let plays = port.playing.as_ref().map(|playing| playing.session);
        let reads = port.reading.map(|reading| reading.session);
        let plays = [plays, reads].contains(&Some(session));
        for name in its {
            let stopped = self.stop_profiles(id, &name);
            stopped.expect("the profile is there, as it runs");
        }
        if plays {
            self.stop_playing(id);
        }
    }

    fn end_lease_of_server(&mut self, view: &View<'_>) {
        let Some(owner) = self.room.owner.clone() else {
            return;
        };
        tracing::warn!(
            user = owner.user,
            session = owner.session,
            "the lease of the server is over, its owner was not heard for {} s: what it started is stopped, \
             and the server is released",
            owner.lease.map_or(0.0, |lease| lease.length_s())
        );
        for id in self.stateful_ports() {
            self.halt_port(id, owner.session);
        }
        self.stop_flows_of(owner.session, view);
        self.stop_latency_of(owner.session);
        self.release_server_at_rest(view.now_ns);
    }

    fn release_server_at_rest(&mut self, now_ns: Nanos) {
        let Some(owner) = &self.room.owner else {
            return;
        };
        let session = owner.session;
        let sends = self.ports.iter().any(|port| port.sends_for(session));
        if !sends && !self.has_flows_of(session) {
            self.release_stateful_ports(now_ns);
        }
    }

    pub(super) fn release_port(&mut self, id: u8, now_ns: Nanos) {
        if let Some(owner) = self.ports[usize::from(id)].owner.take() {
            let event = Event::PortReleased {
                port: id,
                who: owner.user,
                session: owner.session,
            };
            self.queue_event(event, now_ns);
        }
    }
}
