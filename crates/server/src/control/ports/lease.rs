//! Leases: when a client that acquired with `lease_s` is silent for so long, because it was killed or cut
//! off, what it started is stopped, and what it acquired is released. Traffic of others goes on.
//!
//! Silence is added up at ticks, and one tick adds at most [`TICK_COUNTED_MAX`]: when the server
//! itself stood still, the requests that wait are read before anybody is taken for silent.

use allosaur_engine::time::{Nanos, SECOND};

use super::state::Ports;
use crate::control::config::View;
use crate::control::core::Core;
use crate::control::core::owner::Step;
use crate::control::domain::{Others, Scope};

/// What one tick adds to the silence of an owner at most; ticks are half a second apart.
const TICK_COUNTED_MAX: Nanos = SECOND;

impl Ports {
    /// Ends the leases of owners that have been silent too long; to be called at each tick.
    pub(super) fn run_leases(
        &mut self,
        control: &mut Core,
        others: &mut Others<'_>,
        view: &View<'_>,
    ) {
        let passed = view.now_ns.saturating_sub(self.ticked_ns);
        let passed = passed.min(TICK_COUNTED_MAX);
        self.ticked_ns = view.now_ns;
        for id in control.port_ids() {
            let owner = control.ports[usize::from(id)].owner.as_mut();
            match owner.map_or(Step::Holds, |owner| owner.pass(passed)) {
                Step::Holds => {}
                Step::Ends => end_lease_of_port(control, others, id, view),
                Step::IsOver => release_at_rest(control, others, id, view.now_ns),
                Step::IsOverdue => control.release_port(id, view.now_ns),
            }
        }
        let owner = control.mode_owner.as_mut();
        match owner.map_or(Step::Holds, |owner| owner.pass(passed)) {
            Step::Holds => {}
            Step::Ends => end_lease_of_mode(control, others, view),
            Step::IsOver => release_mode_at_rest(control, others, view.now_ns),
            Step::IsOverdue => control.release_stateful_ports(view.now_ns),
        }
    }
}

/// The data threads are through with what a port sent: if its lease is over, it is released.
pub(super) fn release_at_rest(control: &mut Core, others: &Others<'_>, id: u8, now_ns: Nanos) {
    let Some(port) = control.ports.get(usize::from(id)) else {
        return;
    };
    let Some(owner) = &port.owner else { return };
    let is_over = owner.lease.is_some_and(|lease| lease.over.is_some());
    if is_over && !is_sent_for(others, Scope::Port(id), owner.session) {
        control.release_port(id, now_ns);
    }
}

fn is_sent_for(others: &Others<'_>, scope: Scope, session: u32) -> bool {
    let mut domains = others.iter();
    domains.any(|domain| domain.sends_for(scope, session))
}

fn end_lease_of_port(control: &mut Core, others: &mut Others<'_>, id: u8, view: &View<'_>) {
    let Some(owner) = control.ports[usize::from(id)].owner.clone() else {
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
    for domain in others.iter_mut() {
        domain.halt(control, Scope::Port(id), owner.session, view);
    }
    release_at_rest(control, others, id, view.now_ns);
}

fn end_lease_of_mode(control: &mut Core, others: &mut Others<'_>, view: &View<'_>) {
    let Some(owner) = control.mode_owner.clone() else {
        return;
    };
    tracing::warn!(
        user = owner.user,
        session = owner.session,
        "the lease of the server is over, its owner was not heard for {} s: what it started is stopped, \
         and the server is released",
        owner.lease.map_or(0.0, |lease| lease.length_s())
    );
    for domain in others.iter_mut() {
        domain.halt(control, Scope::Mode, owner.session, view);
    }
    release_mode_at_rest(control, others, view.now_ns);
}

fn release_mode_at_rest(control: &mut Core, others: &Others<'_>, now_ns: Nanos) {
    let Some(owner) = &control.mode_owner else {
        return;
    };
    if !is_sent_for(others, Scope::Mode, owner.session) {
        control.release_stateful_ports(now_ns);
    }
}
