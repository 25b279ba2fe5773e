//! The server as a whole in stateful mode: who owns it, what its profiles do together, service mode.

use std::collections::BTreeMap;

use allosaur_api::commands::stateful::context::{
    AcquireContext, ContextHandlers, ContextService, Epoch, Sync, Synced,
};
use allosaur_api::events::{Event, StatefulPhase};
use allosaur_api::{Empty, Error, Fields};

use super::StatefulState;
use crate::control::ports::owner::{Lease, Owner};
use crate::control::ports::port::Port;
use crate::control::{Control, Reply, View, reply};
use crate::rx_taps::{ServiceMask, ServiceMode};

impl Control {
    /// Refuses what only the owner of the server may do.
    pub(in crate::control) fn check_context_owner(&self, handler: &str) -> Result<(), Error> {
        match &self.room.owner {
            Some(owner) if owner.handler == handler => Ok(()),
            _ => Err(Error::execution(
                "must acquire the context for this operation: call 'acquire' and pass its handler",
            )),
        }
    }

    pub(super) fn acquire_context(&mut self, fields: &Fields<'_>, view: &View<'_>) -> Reply {
        let params: AcquireContext = fields.read()?;
        if let (Some(owner), false) = (&self.room.owner, params.force) {
            return Err(Error::execution(format!(
                "context is already taken (use 'force' argument to override), by '{}'",
                owner.user
            )));
        }
        let ports = self.ports_to_acquire(&params)?;
        self.touch_session(params.session, fields, view)?;
        let owner = Owner {
            user: params.user,
            session: params.session,
            handler: self.secrets.draw(),
            lease: params.lease_s.map(Lease::new),
        };
        self.room.owner = None;
        let of_ports = |id: &u8| Some(self.ports[usize::from(*id)].owner.as_ref()?.session);
        let taken = ports
            .iter()
            .filter(|id| of_ports(id).is_some_and(|one| one != owner.session));
        let taken: Vec<u8> = taken.copied().collect();
        if self.enter_stateful_mode(&ports, view) {
            self.apply_port_set();
        }
        let mut handlers = BTreeMap::new();
        for id in ports {
            let handler = self.secrets.draw();
            handlers.insert(id, handler.clone());
            self.ports[usize::from(id)].owner = Some(Owner {
                handler,
                // That of the server is for all.
                lease: None,
                ..owner.clone()
            });
        }
        let handler = owner.handler.clone();
        self.tell_of_takeover(&taken, &owner, view.now_ns);
        self.room.owner = Some(owner);
        self.forget_unread_profiles(view.now_ns);
        reply(&ContextHandlers {
            handler,
            ports: handlers,
        })
    }

    /// Whoever had these ports hears who has them now. A server of TRex's tells nobody.
    fn tell_of_takeover(&mut self, ports: &[u8], owner: &Owner, now_ns: u64) {
        for &port in ports {
            let event = Event::PortAcquired {
                port,
                who: owner.user.clone(),
                session: owner.session,
                force: true,
            };
            self.queue_event(event, now_ns);
        }
    }

    pub(super) fn release_context(&mut self) -> Reply {
        self.room.owner = None;
        for port in self.ports.iter_mut().filter(|port| port.is_stateful()) {
            port.owner = None;
        }
        reply(&())
    }

    pub(super) fn sync_profiles(&self, fields: &Fields<'_>) -> Reply {
        let params: Sync = fields.read()?;
        let states = || {
            let profiles = self.room.profiles.iter();
            profiles.map(|(name, profile)| (name.clone(), profile.phase))
        };
        reply(&Synced {
            epoch: self.room.epoch,
            state: self.room.phase,
            state_profile: params.profile_id.map(|_| states().collect()),
        })
    }

    pub(super) fn inc_epoch(&mut self) -> Reply {
        self.room.epoch += 1;
        reply(&Epoch {
            epoch: self.room.epoch,
        })
    }

    pub(super) fn context_service(&mut self, fields: &Fields<'_>) -> Reply {
        let params = ContextService::parse(fields)?;
        let mode = match (params.filtered, params.enabled) {
            (true, _) => ServiceMode::Filtered(ServiceMask(params.mask).beside_flows()),
            (false, true) => ServiceMode::On,
            (false, false) => ServiceMode::Off,
        };
        for id in self.stateful_ports() {
            self.set_service(id, mode)?;
        }
        reply(&Empty {})
    }

    /// What a port is doing while there are flows, as `get_port_status` calls it.
    pub(in crate::control) fn flow_state_of(&self, port: &Port) -> Option<&'static str> {
        port.is_stateful().then(|| self.flow_state()).flatten()
    }

    /// What ports are doing while there are flows, as `get_port_status` calls it.
    pub(in crate::control) fn flow_state(&self) -> Option<&'static str> {
        match self.room.phase {
            StatefulPhase::Parse => Some("ASTF_PARSE"),
            StatefulPhase::Build => Some("ASTF_BUILD"),
            StatefulPhase::Transmit => Some("TX"),
            StatefulPhase::Cleanup => Some("ASTF_CLEANUP"),
            StatefulPhase::Idle | StatefulPhase::Loaded | StatefulPhase::Delete => None,
        }
    }

    /// Tells what all profiles do together, if that has changed.
    pub(super) fn tell_together(&mut self, now_ns: u64) {
        let phase = self.room.together();
        if phase == self.room.phase {
            return;
        }
        self.room.phase = phase;
        let state = Event::StatefulState {
            state: phase,
            epoch: self.room.epoch,
        };
        self.queue_event(state, now_ns);
    }
}

impl StatefulState {
    /// What all profiles do together: what the busiest does. A profile that goes is still there.
    fn together(&self) -> StatefulPhase {
        let phases = self.profiles.values().map(|profile| match profile.phase {
            StatefulPhase::Delete => StatefulPhase::Loaded,
            phase => phase,
        });
        phases.max_by_key(|phase| rank(*phase)).unwrap_or_default()
    }
}

fn rank(phase: StatefulPhase) -> u8 {
    match phase {
        StatefulPhase::Idle => 0,
        StatefulPhase::Loaded | StatefulPhase::Delete => 1,
        StatefulPhase::Parse => 2,
        StatefulPhase::Build => 3,
        StatefulPhase::Cleanup => 4,
        StatefulPhase::Transmit => 5,
    }
}
