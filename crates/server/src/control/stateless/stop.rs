//! Stops traffic, and takes note of what data threads say of it: that it ended, or has changed.

use allosaur_api::commands::traffic::ProfilesParams;
use allosaur_api::events::Event as ApiEvent;
use allosaur_api::{Empty, Error, Fields};
use allosaur_engine::stateless::{ProfileEvent, StatelessCommand};
use allosaur_engine::stream::ProfileKey;
use allosaur_engine::time::Nanos;

use crate::control::pending::Wait;
use crate::control::ports::port::{ALL_PROFILES, DEFAULT_PROFILE, Port, Run, State};
use crate::control::{Action, Control, Reply, reply};

impl Control {
    pub(in crate::control) fn stop_traffic(&mut self, fields: &Fields<'_>) -> Reply {
        let params = fields.read::<ProfilesParams>()?;
        self.stop_profiles(params.port, &params.profile)?;
        reply(&Empty {})
    }

    /// Tells the data threads to stop a profile of a port, or all for `*`.
    pub(in crate::control) fn stop_profiles(&mut self, id: u8, profile: &str) -> Result<(), Error> {
        let port = self.port_mut(id)?;
        let mut commands = Vec::new();
        for name in port.profile_names(profile)? {
            if let Some(run) = &mut port.profile_mut(&name)?.run {
                run.stopping = true;
                let profile = run.key;
                commands.extend(run.running.iter().map(|core| (*core, profile)));
            }
        }
        for (core, profile) in commands {
            self.pendings.await_end(profile);
            let command = StatelessCommand::StopProfile { port: id, profile };
            self.actions.push_back(Action::Command { core, command });
        }
        if [ALL_PROFILES, DEFAULT_PROFILE].contains(&profile) {
            self.stop_playing(id);
        }
        Ok(())
    }

    /// Takes note of what a data thread did, and answers who waits for it.
    pub(in crate::control) fn note_worker_event(
        &mut self,
        core: usize,
        event: ProfileEvent,
        now_ns: Nanos,
    ) {
        let (port, key) = match event {
            ProfileEvent::ProfileDone { port, profile, .. }
            | ProfileEvent::ProfileStopped { port, profile, .. } => {
                if !self.note_played(port, profile, now_ns) {
                    self.note_ended(core, port, profile, now_ns);
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
            self.settle(Wait::End(key), None);
        }
        if changing != Some(true) {
            self.settle(Wait::Change(key), None);
        }
    }

    /// A data thread is through with a profile. When all are, the profile is.
    fn note_ended(&mut self, core: usize, port: u8, profile: ProfileKey, now_ns: Nanos) {
        let before = self.ports.get(usize::from(port)).map(Port::state);
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
        self.queue_event(profile_event, now_ns);
        if after < State::Pause {
            self.queue_event(port_event, now_ns);
        } else if after == State::Pause && before != Some(after) {
            self.queue_event(ApiEvent::PortPaused { port }, now_ns);
        }
        self.release_at_rest(port, now_ns);
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
}
