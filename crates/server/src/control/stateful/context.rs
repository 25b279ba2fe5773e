//! The server as a whole in stateful mode: who owns it, what its profiles do together, service mode.

use allosaur_api::commands::stateful::context::{ContextService, Epoch, Sync, Synced};
use allosaur_api::events::{Event, StatefulPhase};
use allosaur_api::{Empty, Fields};

use super::state::Stateful;
use crate::control::core::Core;
use crate::control::reply::{Reply, reply};
use crate::rx_taps::{ServiceMask, ServiceMode};

impl Stateful {
    pub(super) fn sync_profiles(&self, fields: &Fields<'_>) -> Reply {
        let params: Sync = fields.read()?;
        let states = || {
            let profiles = self.profiles.iter();
            profiles.map(|(name, profile)| (name.clone(), profile.phase))
        };
        reply(&Synced {
            epoch: self.epoch,
            state: self.phase,
            state_profile: params.profile_id.map(|_| states().collect()),
        })
    }

    pub(super) fn inc_epoch(&mut self) -> Reply {
        self.epoch += 1;
        reply(&Epoch { epoch: self.epoch })
    }

    pub(super) fn context_service(&mut self, control: &mut Core, fields: &Fields<'_>) -> Reply {
        let params = ContextService::parse(fields)?;
        let mode = match (params.filtered, params.enabled) {
            (true, _) => ServiceMode::Filtered(ServiceMask(params.mask).beside_flows()),
            (false, true) => ServiceMode::On,
            (false, false) => ServiceMode::Off,
        };
        for id in control.stateful_ports() {
            control.set_service(id, mode)?;
        }
        reply(&Empty {})
    }

    /// What ports are doing while there are flows, as `get_port_status` calls it.
    pub(in crate::control) fn flow_state(&self) -> Option<&'static str> {
        match self.phase {
            StatefulPhase::Parse => Some("ASTF_PARSE"),
            StatefulPhase::Build => Some("ASTF_BUILD"),
            StatefulPhase::Transmit => Some("TX"),
            StatefulPhase::Cleanup => Some("ASTF_CLEANUP"),
            StatefulPhase::Idle | StatefulPhase::Loaded | StatefulPhase::Delete => None,
        }
    }

    /// Tells what all profiles do together, if that has changed.
    pub(super) fn tell_together(&mut self, control: &mut Core, now_ns: u64) {
        let phase = self.together();
        if phase == self.phase {
            return;
        }
        self.phase = phase;
        let state = Event::StatefulState {
            state: phase,
            epoch: self.epoch,
        };
        control.queue_event(state, now_ns);
    }
}
