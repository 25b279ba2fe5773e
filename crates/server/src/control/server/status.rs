//! What the server does: who owns what, and what runs since when.

use allosaur_api::Fields;
use allosaur_api::commands::status::{
    PortOwner, PortUse, ProfileState, ProfileUse, RunUse, Status,
};
use allosaur_engine::time::{Nanos, SECOND};

use crate::control::ports::owner::Owner;
use crate::control::ports::port::{Port, State};
use crate::control::server::mode_name;
use crate::control::{Control, Reply, View, reply};

impl Control {
    pub(in crate::control) fn status(&self, fields: &Fields<'_>, view: &View<'_>) -> Reply {
        let now_ns = view.now_ns;
        let ports = (0_u8..).zip(&self.ports);
        let ports = ports.map(|(id, port)| PortUse {
            port_id: id,
            mode: mode_name(port.mode),
            owner: self.owner_of(port).map(owner),
            state: self.port_state(port),
            profiles: profiles(port, now_ns),
        });
        reply(&Status {
            mode: self.api(fields).name,
            modes: self.mode_names(),
            uptime_s: seconds_since(self.started_ns, now_ns),
            ports: ports.collect(),
            profiles: self.stateful_profiles(now_ns),
        })
    }
}

fn owner(owner: &Owner) -> PortOwner {
    PortOwner {
        user: owner.user.clone(),
        session_id: owner.session,
        lease_s: owner.lease.map(|lease| lease.length_s()),
    }
}

fn profiles(port: &Port, now_ns: Nanos) -> Vec<ProfileUse> {
    let there = port.profiles.iter();
    let there = there.filter(|(_, profile)| profile.state() != State::Idle);
    let used = there.map(|(name, profile)| ProfileUse {
        profile_id: name.clone(),
        state: ProfileState::Stateless(profile.state().name()),
        streams: Some(profile.streams.len()),
        run: profile.run.as_ref().map(|run| RunUse {
            running_s: seconds_since(run.start_at, now_ns),
            duration_s: run.duration_s,
            multiplier: run.factor,
        }),
    });
    used.collect()
}

/// From one time to another, which may be before it.
pub(in crate::control) fn seconds_since(then: Nanos, now_ns: Nanos) -> f64 {
    let seconds = |nanos: Nanos| nanos as f64 / SECOND as f64;
    if now_ns >= then {
        seconds(now_ns - then)
    } else {
        -seconds(then - now_ns)
    }
}
