//! The server as a whole in stateful mode: who owns it, what its profiles do together, service mode.

use allosaur_api::commands::stateful::context::{AcquireContext, ContextService, Sync};
use allosaur_api::events::{Event, StatefulPhase};
use allosaur_api::{Error, Fields};
use serde_json::{Map, Value, json};

use super::StatefulState;
use crate::control::ports::layers::answers_echo;
use crate::control::ports::owner::{Lease, Owner};
use crate::control::{Control, Reply, View, owns_a_port};
use crate::rx_taps::{Request, ServiceMask, ServiceMode};

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
        let params = AcquireContext::parse(fields)?;
        if let (Some(owner), false) = (&self.room.owner, params.force) {
            return Err(Error::execution(format!(
                "context is already taken (use 'force' argument to override), by '{}'",
                owner.user
            )));
        }
        let ports = &self.ports;
        let owns = |id| owns_a_port(ports, id);
        self.sessions.touch(params.session, view.now_ns, owns)?;
        let owner = Owner {
            user: params.user,
            session: params.session,
            handler: self.secrets.draw(),
            lease: params.lease_s.map(Lease::new),
        };
        let before = self.room.owner.take();
        let mut handlers = Map::new();
        for (number, port) in self.ports.iter_mut().enumerate() {
            let handler = self.secrets.draw();
            handlers.insert(number.to_string(), json!(handler));
            port.owner = Some(Owner {
                handler,
                // That of the server is for all.
                lease: None,
                ..owner.clone()
            });
        }
        let handler = owner.handler.clone();
        if before.is_some_and(|before| before.session != owner.session) {
            self.tell_of_takeover(&owner, view.now_ns);
        }
        self.room.owner = Some(owner);
        self.forget_unread_profiles(view.now_ns);
        Ok(json!({"handler": handler, "ports": handlers}))
    }

    /// Whoever had the server hears who has it now. A server of TRex's tells nobody.
    fn tell_of_takeover(&mut self, owner: &Owner, now_ns: u64) {
        for port in 0..self.ports.len() as u8 {
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
        for port in &mut self.ports {
            port.owner = None;
        }
        Ok(Value::Null)
    }

    pub(super) fn sync_profiles(&self, fields: &Fields<'_>) -> Reply {
        let params = Sync::parse(fields)?;
        let mut reply = json!({"epoch": self.room.epoch, "state": self.room.phase as u8});
        if params.with_profiles {
            let profiles = self.room.profiles.iter();
            let states = profiles.map(|(name, profile)| (name.clone(), json!(profile.phase as u8)));
            reply["state_profile"] = Value::Object(states.collect());
        }
        Ok(reply)
    }

    pub(super) fn inc_epoch(&mut self) -> Reply {
        self.room.epoch += 1;
        Ok(json!({"epoch": self.room.epoch}))
    }

    pub(super) fn context_service(&mut self, fields: &Fields<'_>) -> Reply {
        let params = ContextService::parse(fields)?;
        let mode = match (params.filtered, params.enabled) {
            (true, _) => ServiceMode::Filtered(ServiceMask(params.mask).beside_flows()),
            (false, true) => ServiceMode::On,
            (false, false) => ServiceMode::Off,
        };
        let answers_echo = answers_echo(self.config.stateful, mode);
        for id in 0..self.ports.len() as u8 {
            let port = &mut self.ports[usize::from(id)];
            port.service = mode;
            let settings = port.layers.host(port.config.hw_mac, answers_echo);
            self.tell(Request::SetService { port: id, mode });
            self.tell(Request::SetHost { port: id, settings });
        }
        Ok(json!({}))
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
