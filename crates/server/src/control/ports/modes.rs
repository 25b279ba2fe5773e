//! How ports change between the modes: a port is in the mode of who acquired it last.
//!
//! Who leaves a mode behind takes nothing along: streams are stopped, flows are ended, service mode
//! is over. Addresses, attributes, streams and profiles that were loaded stay as they are.

use std::collections::BTreeSet;

use allosaur_api::Error;
use allosaur_api::commands::ports::Acquire;
use allosaur_api::commands::stateful::context::AcquireContext;
use allosaur_engine::time::Nanos;

use crate::control::ports::owner::Owner;
use crate::control::ports::port::{ALL_PROFILES, Port, State};
use crate::control::worker_command::PortMode;
use crate::control::{Action, Control, View, unknown_port};
use crate::rx_taps::ServiceMode;

/// Refuses to do something to a port that is in the other mode.
pub(in crate::control) fn in_other_mode(id: u8, port: &Port) -> Error {
    let (mode, other) = match port.is_stateful() {
        true => ("stateful", "stateless"),
        false => ("stateless", "stateful"),
    };
    let who = port.owner.as_ref().map_or("nobody", |owner| &owner.user);
    Error::execution(format!(
        "port {id} is in {mode} mode, where '{who}' has it: acquire it in {other} mode first, with \
         'force' if it is somebody else's"
    ))
}

impl Control {
    /// The ports in stateful mode, in order.
    pub(in crate::control) fn stateful_ports(&self) -> Vec<u8> {
        let ports = (0..).zip(&self.ports);
        let ports = ports.filter(|(_, port)| port.is_stateful());
        ports.map(|(id, _)| id).collect()
    }

    /// Who has a port: the owner of stateful mode has all that are in it.
    pub(in crate::control) fn owner_of<'a>(&'a self, port: &'a Port) -> Option<&'a Owner> {
        let of_mode = self.room.owner.as_ref().filter(|_| port.is_stateful());
        of_mode.or(port.owner.as_ref())
    }

    /// What a port does, as `get_port_status` calls it.
    pub(in crate::control) fn port_state(&self, port: &Port) -> &'static str {
        let flows = self.flow_state_of(port);
        flows.unwrap_or(port.state().name())
    }

    /// Lets a port go into stateless mode, for who acquires it there.
    pub(in crate::control) fn leave_stateful_mode(
        &mut self,
        params: &Acquire,
        view: &View<'_>,
    ) -> Result<(), Error> {
        let id = params.port;
        if !self.port(id)?.is_stateful() {
            return Ok(());
        }
        if !params.force {
            if let Some(owner) = &self.room.owner {
                return Err(Error::execution(format!(
                    "port {id} is already taken by '{}' in stateful mode: release it there, or use \
                     'force'",
                    owner.user
                )));
            }
            if let Some(name) = self.busy_profile() {
                return Err(Error::execution(format!(
                    "port {id} has flows of profile '{name}' in stateful mode: stop them there, or \
                     use 'force'"
                )));
            }
        }
        self.abort_flows(view);
        self.release_stateful_ports(view.now_ns);
        self.set_port_mode(id, PortMode::Stateless);
        Ok(())
    }

    /// Has exactly these ports in stateful mode, for its owner: see [`Self::ports_to_acquire`].
    /// Returns whether they are others than before.
    pub(in crate::control) fn enter_stateful_mode(
        &mut self,
        ports: &[u8],
        view: &View<'_>,
    ) -> bool {
        let before = self.stateful_ports();
        if before == ports {
            return false;
        }
        self.abort_flows(view);
        for id in before.into_iter().filter(|id| !ports.contains(id)) {
            self.release_port(id, view.now_ns);
            self.set_port_mode(id, PortMode::Stateless);
        }
        for &id in ports {
            if self.ports[usize::from(id)].is_stateful() {
                continue;
            }
            let stopped = self.stop_profiles(id, ALL_PROFILES);
            stopped.expect("the port is there");
            self.set_port_mode(id, PortMode::Stateful);
        }
        true
    }

    /// The ports that who acquires stateful mode gets.
    pub(in crate::control) fn ports_to_acquire(
        &self,
        params: &AcquireContext,
    ) -> Result<Vec<u8>, Error> {
        let all: Vec<u8> = (0..self.ports.len() as u8).collect();
        let before = self.stateful_ports();
        if self.config.modes.only().is_some() {
            return match &params.ports {
                Some(ports) if *ports != all => Err(Error::execution(format!(
                    "'ports' is {ports:?}, and the server is in stateful mode with all its ports: \
                     name all, leave it out, or start a server that has both modes"
                ))),
                _ => Ok(all),
            };
        }
        let busy = self.busy_profile();
        let ports = match &params.ports {
            Some(ports) => self.check_pairs(ports)?,
            None if params.force => all,
            None if busy.is_some() => before.clone(),
            None => self.free_pairs(&all)?,
        };
        if let (false, Some(name), true) = (params.force, busy, ports != before) {
            return Err(Error::execution(format!(
                "profile '{name}' has flows on ports {before:?}: stop it before you acquire \
                 {ports:?}, or use 'force'"
            )));
        }
        for &id in &ports {
            self.check_can_enter(id, params.force)?;
        }
        Ok(ports)
    }

    fn check_pairs(&self, ports: &[u8]) -> Result<Vec<u8>, Error> {
        let there = self.ports.len();
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
    fn free_pairs(&self, all: &[u8]) -> Result<Vec<u8>, Error> {
        let is_taken = |id: &u8| self.check_can_enter(*id, false).is_err();
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
            Some(id) => self.check_can_enter(*id, false).map(|()| free),
            None => Ok(free),
        }
    }

    /// Whether a port may go into stateful mode, or is in it.
    fn check_can_enter(&self, id: u8, force: bool) -> Result<(), Error> {
        let port = self.port(id)?;
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
            None if port.state() > State::Streams => Err(Error::execution(format!(
                "port {id} sends streams in stateless mode: stop them there, or use 'force'"
            ))),
            None => Ok(()),
        }
    }

    /// Nobody has stateful mode any more, and those who listen hear of it.
    pub(in crate::control) fn release_stateful_ports(&mut self, now_ns: Nanos) {
        self.room.owner = None;
        for id in self.stateful_ports() {
            self.release_port(id, now_ns);
        }
    }

    fn set_port_mode(&mut self, id: u8, mode: PortMode) {
        self.ports[usize::from(id)].mode = mode;
        self.actions
            .push_back(Action::SetPortMode { port: id, mode });
        self.filter_macs(id);
        // With it, who answers pings.
        let ended = self.set_service(id, ServiceMode::Off);
        ended.expect("the port is there");
    }

    /// Of stateful ports: with how many pairs before its own one shares what is shared out.
    pub(in crate::control) fn pair_of(&self, id: u8) -> u32 {
        let ports = self.stateful_ports();
        let before = ports
            .iter()
            .filter(|other| *other % 2 == 0 && **other < (id & !1));
        before.count() as u32
    }
}
