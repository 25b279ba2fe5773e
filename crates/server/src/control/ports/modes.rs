//! How ports change between the modes: a port is in the mode of who acquired it last.
//!
//! Who leaves a mode behind takes nothing along: streams are stopped, flows are ended, service mode
//! is over. Addresses, attributes, streams and profiles that were loaded stay as they are.

use std::collections::{BTreeMap, BTreeSet};

use allosaur_api::commands::ports::Acquire;
use allosaur_api::commands::stateful::context::{AcquireContext, ContextHandlers};
use allosaur_api::events::Event;
use allosaur_api::{Error, Fields};

use crate::control::config::View;
use crate::control::core::Core;
use crate::control::core::owner::{Lease, Owner};
use crate::control::core::port::unknown_port;
use crate::control::domain::Others;
use crate::control::reply::{Reply, reply};
use crate::control::worker_command::PortMode;

/// Acquires stateful mode, with its ports.
pub(super) fn acquire_context(
    control: &mut Core,
    others: &mut Others<'_>,
    fields: &Fields<'_>,
    view: &View<'_>,
) -> Reply {
    let params = fields.read::<AcquireContext>()?;
    if let (Some(owner), false) = (&control.mode_owner, params.force) {
        return Err(Error::execution(format!(
            "context is already taken (use 'force' argument to override), by '{}'",
            owner.user
        )));
    }
    let ports = ports_to_acquire(control, others, &params)?;
    control.touch_session(params.session, fields, view)?;
    let owner = Owner {
        user: params.user,
        session: params.session,
        handler: control.secrets.draw(),
        lease: params.lease_s.map(Lease::new),
    };
    control.mode_owner = None;
    let of_ports = |id: &u8| Some(control.ports[usize::from(*id)].owner.as_ref()?.session);
    let taken = ports
        .iter()
        .filter(|id| of_ports(id).is_some_and(|one| one != owner.session));
    let taken: Vec<u8> = taken.copied().collect();
    let has_other_ports = enter_stateful_mode(control, others, &ports, view);
    let mut handlers = BTreeMap::new();
    for id in ports {
        let handler = control.secrets.draw();
        handlers.insert(id, handler.clone());
        control.ports[usize::from(id)].owner = Some(Owner {
            handler,
            // That of the server is for all.
            lease: None,
            ..owner.clone()
        });
    }
    let handler = owner.handler.clone();
    tell_of_takeover(control, &taken, &owner, view.now_ns);
    control.mode_owner = Some(owner);
    for domain in others.iter_mut() {
        domain.mode_acquired(control, has_other_ports, view.now_ns);
    }
    reply(&ContextHandlers {
        handler,
        ports: handlers,
    })
}

/// Whoever had these ports hears who has them now. A server of TRex's tells nobody.
fn tell_of_takeover(control: &mut Core, ports: &[u8], owner: &Owner, now_ns: u64) {
    for &port in ports {
        let event = Event::PortAcquired {
            port,
            who: owner.user.clone(),
            session: owner.session,
            force: true,
        };
        control.queue_event(event, now_ns);
    }
}

/// Releases stateful mode.
pub(super) fn release_context(control: &mut Core) -> Reply {
    control.mode_owner = None;
    for port in control.ports.iter_mut().filter(|port| port.is_stateful()) {
        port.owner = None;
    }
    reply(&())
}

/// Lets a port go into stateless mode, for who acquires it there.
pub(super) fn leave_stateful_mode(
    control: &mut Core,
    others: &mut Others<'_>,
    params: &Acquire,
    view: &View<'_>,
) -> Result<(), Error> {
    let id = params.port;
    if !control.port(id)?.is_stateful() {
        return Ok(());
    }
    if !params.force {
        if let Some(owner) = &control.mode_owner {
            return Err(Error::execution(format!(
                "port {id} is already taken by '{}' in stateful mode: release it there, or use \
                 'force'",
                owner.user
            )));
        }
        if let Some(name) = running_in_mode(others) {
            return Err(Error::execution(format!(
                "port {id} has flows of profile '{name}' in stateful mode: stop them there, or \
                 use 'force'"
            )));
        }
    }
    leave_mode(control, others, view);
    control.release_stateful_ports(view.now_ns);
    control.set_port_mode(id, PortMode::Stateless);
    Ok(())
}

/// Has exactly these ports in stateful mode, for its owner: see [`Self::ports_to_acquire`].
/// Returns whether they are others than before.
pub(super) fn enter_stateful_mode(
    control: &mut Core,
    others: &mut Others<'_>,
    ports: &[u8],
    view: &View<'_>,
) -> bool {
    let before = control.stateful_ports();
    if before == ports {
        return false;
    }
    leave_mode(control, others, view);
    for id in before.into_iter().filter(|id| !ports.contains(id)) {
        control.release_port(id, view.now_ns);
        control.set_port_mode(id, PortMode::Stateless);
    }
    for &id in ports {
        if control.ports[usize::from(id)].is_stateful() {
            continue;
        }
        for domain in others.iter_mut() {
            domain.leave_port(control, id);
        }
        control.set_port_mode(id, PortMode::Stateful);
    }
    true
}

/// The ports that who acquires stateful mode gets.
pub(super) fn ports_to_acquire(
    control: &Core,
    others: &Others<'_>,
    params: &AcquireContext,
) -> Result<Vec<u8>, Error> {
    let all: Vec<u8> = (0..control.ports.len() as u8).collect();
    let before = control.stateful_ports();
    if control.config.modes.only().is_some() {
        return match &params.ports {
            Some(ports) if *ports != all => Err(Error::execution(format!(
                "'ports' is {ports:?}, and the server is in stateful mode with all its ports: \
                 name all, leave it out, or start a server that has both modes"
            ))),
            _ => Ok(all),
        };
    }
    let busy = running_in_mode(others);
    let ports = match &params.ports {
        Some(ports) => check_pairs(control, ports)?,
        None if params.force => all,
        None if busy.is_some() => before.clone(),
        None => free_pairs(control, others, &all)?,
    };
    if let (false, Some(name), true) = (params.force, busy, ports != before) {
        return Err(Error::execution(format!(
            "profile '{name}' has flows on ports {before:?}: stop it before you acquire \
             {ports:?}, or use 'force'"
        )));
    }
    for &id in &ports {
        check_can_enter(control, others, id, params.force)?;
    }
    Ok(ports)
}

fn check_pairs(control: &Core, ports: &[u8]) -> Result<Vec<u8>, Error> {
    let there = control.ports.len();
    for &id in ports {
        if usize::from(id) >= there {
            return Err(unknown_port(id, there));
        }
        let partner = id ^ 1;
        if !ports.contains(&partner) {
            return Err(Error::execution(format!(
                "'ports' has {id} and not {partner}: clients of an even port and servers of the \
                 next one go together; name both"
            )));
        }
    }
    Ok(ports.to_vec())
}

/// The pairs of ports that nobody has or uses in stateless mode.
fn free_pairs(control: &Core, others: &Others<'_>, all: &[u8]) -> Result<Vec<u8>, Error> {
    let is_taken = |id: &u8| check_can_enter(control, others, *id, false).is_err();
    let taken: BTreeSet<u8> = all
        .iter()
        .filter(|id| is_taken(id))
        .map(|id| id / 2)
        .collect();
    let free: Vec<u8> = all
        .iter()
        .filter(|id| !taken.contains(&(**id / 2)))
        .copied()
        .collect();
    match all
        .iter()
        .find(|id| is_taken(id))
        .filter(|_| free.is_empty())
    {
        Some(id) => check_can_enter(control, others, *id, false).map(|()| free),
        None => Ok(free),
    }
}

/// Whether a port may go into stateful mode, or is in it.
fn check_can_enter(control: &Core, others: &Others<'_>, id: u8, force: bool) -> Result<(), Error> {
    let port = control.port(id)?;
    if port.is_stateful() {
        return Ok(());
    }
    let tags = port.layers.tags().len();
    if tags > 1 {
        return Err(Error::execution(format!(
            "port {id} has {tags} VLAN tags, and stateful mode carries one: set_vlan first"
        )));
    }
    match &port.owner {
        _ if force => Ok(()),
        Some(owner) => Err(Error::execution(format!(
            "port {id} is already taken by '{}' in stateless mode: release it there, or use \
             'force'",
            owner.user
        ))),
        None if others.port_use(control, id).is_running => Err(Error::execution(format!(
            "port {id} sends streams in stateless mode: stop them there, or use 'force'"
        ))),
        None => Ok(()),
    }
}

/// The name of something that runs over all ports in stateful mode.
fn running_in_mode(others: &Others<'_>) -> Option<String> {
    others.iter().find_map(|domain| domain.running_in_mode())
}

/// What runs over all ports in stateful mode ends at once.
fn leave_mode(control: &mut Core, others: &mut Others<'_>, view: &View<'_>) {
    for domain in others.iter_mut() {
        domain.leave_mode(control, view);
    }
}
