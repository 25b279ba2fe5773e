//! Stops traffic, and takes note of what data threads say of it: that it ended, or has changed.

use allosaur_api::commands::traffic::ProfilesParams;
use allosaur_api::events::Event as ApiEvent;
use allosaur_api::{Empty, Error, Fields};
use allosaur_engine::stateless::{ProfileEvent, StatelessCommand};
use allosaur_engine::stream::ProfileKey;
use allosaur_engine::time::Nanos;

use super::port::{Run, State, StreamPort};
use super::state::Stateless;
use crate::control::core::Core;
use crate::control::core::pending::Wait;
use crate::control::profile_name::{ALL_PROFILES, DEFAULT_PROFILE};
use crate::control::reply::{Reply, reply};

impl Stateless {
    pub(super) fn stop_traffic(&mut self, control: &mut Core, fields: &Fields<'_>) -> Reply {
        let params = fields.read::<ProfilesParams>()?;
        self.stop_profiles(control, params.port, &params.profile)?;
        reply(&Empty {})
    }

    /// Tells the data threads to stop a profile of a port, or all for `*`.
    pub(super) fn stop_profiles(
        &mut self,
        control: &mut Core,
        id: u8,
        profile: &str,
    ) -> Result<(), Error> {
        let port = self.port_mut(control, id)?;
        let mut commands = Vec::new();
        for name in port.profile_names(profile)? {
            if let Some(run) = &mut port.profile_mut(&name)?.run {
                run.stopping = true;
                let profile = run.key;
                commands.extend(run.running.iter().map(|core| (*core, profile)));
            }
        }
        for (core, profile) in commands {
            control.pendings.await_end(profile);
            let command = StatelessCommand::StopProfile { port: id, profile };
            control.command(core, command);
        }
        if [ALL_PROFILES, DEFAULT_PROFILE].contains(&profile) {
            self.stop_playing(control, id);
        }
        Ok(())
    }

    /// Takes note of what a data thread did, and answers who waits for it.
    pub(super) fn note_worker_event(
        &mut self,
        control: &mut Core,
        core: usize,
        event: ProfileEvent,
        now_ns: Nanos,
    ) {
        let (port, key) = match event {
            ProfileEvent::ProfileDone { port, profile, .. }
            | ProfileEvent::ProfileStopped { port, profile, .. } => {
                if !self.note_played(control, port, profile, now_ns) {
                    self.note_ended(control, core, port, profile, now_ns);
                }
                (port, profile)
            }
            ProfileEvent::ProfileChanged { port, profile, at } => {
                if let Some((_, run)) = self.find_run(port, profile) {
                    run.note_changed(core, at);
                }
                (port, profile)
            }
        };
        let changing = self
            .find_run(port, key)
            .map(|(_, run)| !run.changing.is_empty());
        if changing.is_none() {
            control.settle(Wait::End(key), None);
        }
        if changing != Some(true) {
            control.settle(Wait::Change(key), None);
        }
    }

    /// A data thread is through with a profile. When all are, the profile is.
    fn note_ended(
        &mut self,
        control: &mut Core,
        core: usize,
        port: u8,
        profile: ProfileKey,
        now_ns: Nanos,
    ) {
        let before = self.ports.get(usize::from(port)).map(StreamPort::state);
        let Some((name, stopped)) = self.end_on_core(core, port, profile) else {
            return;
        };
        let after = self.ports[usize::from(port)].state();
        let profile = name;
        let (profile_event, port_event) = if stopped {
            (
                ApiEvent::ProfileStopped { port, profile },
                ApiEvent::PortStopped { port },
            )
        } else {
            (
                ApiEvent::ProfileFinished { port, profile },
                ApiEvent::PortFinished { port },
            )
        };
        control.queue_event(profile_event, now_ns);
        if after < State::Pause {
            control.queue_event(port_event, now_ns);
        } else if after == State::Pause && before != Some(after) {
            control.queue_event(ApiEvent::PortPaused { port }, now_ns);
        }
        control.note_at_rest(port);
    }

    /// The profile that runs by that key.
    fn find_run(&mut self, port: u8, key: ProfileKey) -> Option<(&str, &mut Run)> {
        let profiles = &mut self.ports.get_mut(usize::from(port))?.profiles;
        let mut runs = profiles
            .iter_mut()
            .filter_map(|(name, profile)| Some((name.as_str(), profile.run.as_mut()?)));
        runs.find(|(_, run)| run.key == key)
    }

    /// Strikes a core off the run of that key. When it was the last, the run is over: gives the
    /// profile's name and whether it had been told to stop. Answers of runs that are over are
    /// late and mean nothing.
    fn end_on_core(&mut self, core: usize, port: u8, key: ProfileKey) -> Option<(String, bool)> {
        let (name, run) = self.find_run(port, key)?;
        run.running.retain(|running| *running != core);
        run.note_changed(core, Nanos::MAX);
        if !run.running.is_empty() {
            return None;
        }
        let (name, stopped) = (name.to_owned(), run.stopping);
        self.ports[usize::from(port)].profiles.get_mut(&name)?.run = None;
        Some((name, stopped))
    }

    /// Stops all that a port does because a session has started it.
    pub(super) fn halt_port(&mut self, control: &mut Core, id: u8, session: u32) {
        let port = &self.ports[usize::from(id)];
        let profiles = port.profiles.iter();
        let runs = profiles.filter_map(|(name, profile)| Some((name, profile.run.as_ref()?)));
        let its = runs.filter(|(_, run)| run.session == session);
        let its: Vec<String> = its.map(|(name, _)| name.clone()).collect();
        let plays = port.playing.as_ref().map(|playing| playing.session);
        let reads = port.reading.map(|reading| reading.session);
        let plays = [plays, reads].contains(&Some(session));
        for name in its {
            let stopped = self.stop_profiles(control, id, &name);
            stopped.expect("the profile is there, as it runs");
        }
        if plays {
            self.stop_playing(control, id);
        }
    }

    /// A data thread broke down: what it sent is over, and everybody is told.
    pub(super) fn lose_thread(&mut self, control: &mut Core, thread: usize, now_ns: Nanos) {
        for id in control.port_ids() {
            for (key, profile) in sending(&self.ports[usize::from(id)], thread) {
                tell_of_loss(control, id, profile, thread, now_ns);
                let (port, profile, at) = (id, key, now_ns);
                let over = ProfileEvent::ProfileDone { port, profile, at };
                self.note_worker_event(control, thread, over, now_ns);
            }
        }
    }
}

fn tell_of_loss(
    control: &mut Core,
    port: u8,
    profile: Option<String>,
    thread: usize,
    now_ns: Nanos,
) {
    if let Some(profile) = profile {
        let event = ApiEvent::ProfileError {
            port,
            profile,
            thread,
        };
        control.queue_event(event, now_ns);
    }
    control.queue_event(ApiEvent::PortError { port, thread }, now_ns);
}

/// What a data thread sends on a port: profiles, or a capture, which has no name.
fn sending(port: &StreamPort, core: usize) -> Vec<(ProfileKey, Option<String>)> {
    let runs = port.profiles.iter().filter_map(|(name, profile)| {
        let run = profile.run.as_ref()?;
        let concerned = run.running.contains(&core);
        concerned.then(|| (run.key, Some(name.clone())))
    });
    let playing = port.playing.as_ref().filter(|playing| playing.core == core);
    runs.chain(playing.map(|playing| (playing.key, None)))
        .collect()
}
