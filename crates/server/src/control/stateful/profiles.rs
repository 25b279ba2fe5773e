//! Stateful profiles: how they come, how they go, and what is told of them.
//!
//! A profile that was loaded goes in two steps, as clients expect: event 60 with state 6, and later
//! event 61. TRex's client forgets the changes that it has not looked at when it reads event 61, and
//! waits for state 6 for ever if that was among them. So event 61 waits until the owner's session
//! has fetched the first, and longer ([`HEARD_MIN`]).

use allosaur_api::commands::stateful::profiles::{
    Fragment, FragmentReply, ListedProfile, StatefulProfile, StatefulProfileList,
    StatefulProfileNames,
};
use allosaur_api::commands::status::{ProfileState, ProfileUse, RunUse};
use allosaur_api::events::{Event, StatefulPhase};
use allosaur_api::limits::{
    PROFILE_NAME_BYTES_MAX, STATEFUL_PROFILE_BYTES_MAX, STATEFUL_PROFILES_BYTES_MAX,
    STATEFUL_PROFILES_MAX,
};
use allosaur_api::{Error, Fields};
use allosaur_engine::stateful::StatefulCommand;
use allosaur_engine::time::{MILLISECOND, Nanos, SECOND};
use serde_json::Value;

use super::loaded::{Clearing, Profile, wrong_state};
use super::run::Run;
use super::state::Stateful;
use super::upload::{finish, not_begun};
use crate::control::config::View;
use crate::control::core::Core;
use crate::control::core::port::Port;
use crate::control::domain::Others;
use crate::control::profile_name::{ALL_PROFILES, DEFAULT_PROFILE};
use crate::control::reply::{Reply, reply};
use crate::control::time::seconds_since;
use crate::control::upload::Upload;

/// How often it is looked whether a profile may go.
const LOOK_INTERVAL: Nanos = 10 * MILLISECOND;
/// How long ago its event must have been fetched. TRex's client looks every millisecond at what it
/// has; on machines that are short of time its other threads have come first for up to 20 ms.
const HEARD_MIN: Nanos = 100 * MILLISECOND;
/// After this time it goes, whether its event was fetched or not.
const CLEAR_MAX: Nanos = SECOND;

impl Stateful {
    /// A profile that is there.
    pub(super) fn profile(&self, name: &str) -> Result<&Profile, Error> {
        self.profiles.get(name).ok_or_else(|| unknown(name))
    }

    /// A profile that is there, to be changed.
    pub(super) fn profile_mut(&mut self, name: &str) -> Result<&mut Profile, Error> {
        self.profiles.get_mut(name).ok_or_else(|| unknown(name))
    }

    fn check_new(&self, name: &str) -> Result<(), Error> {
        if name.is_empty() || name == ALL_PROFILES || name.len() > PROFILE_NAME_BYTES_MAX {
            return Err(Error::execution(format!(
                "profile_id '{name:.32}' cannot be used: give a name of 1 to \
                 {PROFILE_NAME_BYTES_MAX} bytes that is not '*'"
            )));
        }
        if self.profiles.len() >= STATEFUL_PROFILES_MAX {
            return Err(Error::execution(format!(
                "there are {STATEFUL_PROFILES_MAX} profiles, which is the most: clear one first"
            )));
        }
        Ok(())
    }

    /// Whether there is room for so many bytes more in the text of a profile.
    fn check_room(&self, name: &str, bytes: usize) -> Result<(), Error> {
        let own = self.profiles.get(name).and_then(|p| p.upload.as_ref());
        let own = own.map_or(0, Upload::bytes) + bytes;
        if own > STATEFUL_PROFILE_BYTES_MAX {
            return Err(Error::execution(format!(
                "profile_id {name} has {own} bytes of JSON and more; the most is \
                 {STATEFUL_PROFILE_BYTES_MAX}: describe long buffers by base, size and fill"
            )));
        }
        let all: usize = self.profiles.values().map(Profile::text_bytes).sum();
        if all + bytes > STATEFUL_PROFILES_BYTES_MAX {
            return Err(Error::execution(format!(
                "all profiles together have more than {STATEFUL_PROFILES_BYTES_MAX} bytes of \
                 JSON, which is the most: clear one first"
            )));
        }
        Ok(())
    }

    /// Whether another profile has just this text.
    fn check_unique(&self, name: &str, md5: &str) -> Result<(), Error> {
        let has = |profile: &Profile| profile.text.as_ref().is_some_and(|text| text.md5 == md5);
        let mut others = self.profiles.iter().filter(|(other, _)| *other != name);
        match others.find(|(_, profile)| has(profile)) {
            None => Ok(()),
            Some((other, _)) => Err(Error::execution(format!(
                "Fragment already added on other profile_id: clear '{other}' first, or change a byte of this one"
            ))),
        }
    }
}

impl Stateful {
    /// What each profile does, for `get_status`.
    pub(in crate::control) fn stateful_profiles(
        &self,
        control: &Core,
        now_ns: Nanos,
    ) -> Vec<ProfileUse> {
        if !control.ports.iter().any(Port::is_stateful) {
            return Vec::new();
        }
        let profiles = self.profiles.iter().map(|(name, profile)| {
            let run = profile.run.as_ref().filter(|_| profile.is_busy());
            ProfileUse {
                profile_id: name.clone(),
                state: ProfileState::Stateful(profile.phase as u8),
                streams: None,
                run: run.map(|run| RunUse {
                    running_s: seconds_since(run.start_at, now_ns),
                    duration_s: run.duration_s,
                    multiplier: run.factor,
                }),
            }
        });
        profiles.collect()
    }

    pub(super) fn profile_fragment(
        &mut self,
        control: &mut Core,
        fields: &Fields<'_>,
        view: &View<'_>,
    ) -> Reply {
        let fragment = Fragment::parse(fields)?;
        if fragment.is_first {
            // Also before its text is refused, so that a client that goes on with the name finds it.
            self.make_profile(control, &fragment.profile, view.now_ns)?;
            if self.is_loaded(&fragment)? {
                return reply(&FragmentReply {
                    matches_loaded: true,
                });
            }
            self.begin_upload(control, &fragment, view.now_ns)?;
        } else {
            let name = &fragment.profile;
            self.profile(name)?;
            self.check_room(name, fragment.text.len())?;
            let upload = &mut self.profile_mut(name)?.upload;
            upload.as_mut().ok_or_else(not_begun)?.add(fragment.text);
        }
        if fragment.is_last {
            let profile = self.profile_mut(&fragment.profile)?;
            let upload = profile.upload.take().ok_or_else(not_begun)?;
            profile.text = Some(finish(upload)?);
            self.set_phase(
                control,
                &fragment.profile,
                StatefulPhase::Loaded,
                view.now_ns,
            );
        }
        Ok(Value::Null)
    }

    /// Whether the text that begins so is there already. Clients then send no more of it.
    fn is_loaded(&self, fragment: &Fragment<'_>) -> Result<bool, Error> {
        let Some(md5) = fragment.md5.filter(|_| !fragment.is_last) else {
            return Ok(false);
        };
        let md5 = md5.to_ascii_lowercase();
        self.check_unique(&fragment.profile, &md5)?;
        let profile = self.profiles.get(&fragment.profile);
        let text = profile.and_then(|profile| profile.text.as_ref());
        Ok(text.is_some_and(|text| text.md5 == md5))
    }

    /// Makes a profile that is not there, without a text, and tells of it.
    fn make_profile(&mut self, control: &mut Core, name: &str, now_ns: Nanos) -> Result<(), Error> {
        if !self.profiles.contains_key(name) {
            self.check_new(name)?;
            let profile = Profile::default();
            self.profiles.insert(name.to_owned(), profile);
            self.tell_phase(control, name, None, now_ns);
        }
        Ok(())
    }

    /// Takes the first part of a text; what the profile had is gone.
    fn begin_upload(
        &mut self,
        control: &mut Core,
        fragment: &Fragment<'_>,
        now_ns: Nanos,
    ) -> Result<(), Error> {
        let name = &fragment.profile;
        let profile = self.profile_mut(name)?;
        if profile.is_busy() {
            return Err(wrong_state("profile_fragment", profile, name));
        }
        profile.upload = None;
        profile.text = None;
        self.check_room(name, fragment.text.len())?;
        let profile = self.profile_mut(name)?;
        profile.upload = Some(Upload::begin(fragment.text, fragment.md5));
        profile.compiled = [None, None];
        self.set_phase(control, name, StatefulPhase::Idle, now_ns);
        Ok(())
    }

    pub(super) fn profile_clear(
        &mut self,
        control: &mut Core,
        fields: &Fields<'_>,
        view: &View<'_>,
    ) -> Reply {
        let StatefulProfile { profile: name } = fields.read()?;
        let profile = self.profile_mut(&name)?;
        match profile.phase {
            StatefulPhase::Idle => self.remove_profile(control, &name, view.now_ns),
            StatefulPhase::Loaded => {
                profile.clearing = Some(Clearing {
                    next_look_at: view.now_ns + LOOK_INTERVAL,
                    until: view.now_ns + CLEAR_MAX,
                    heard_at: None,
                });
                self.set_phase(control, &name, StatefulPhase::Delete, view.now_ns);
            }
            _ => return Err(wrong_state("profile_clear", profile, &name)),
        }
        Ok(Value::Null)
    }

    /// Lets profiles go whose owner has heard that they will.
    pub(in crate::control) fn finish_clears(&mut self, control: &mut Core, now_ns: Nanos) {
        let owner = control.mode_owner.as_ref().map(|owner| owner.session);
        let is_heard = owner.is_none_or(|session| control.sessions.has_fetched(session));
        let mut gone = Vec::new();
        for (name, profile) in &mut self.profiles {
            let Some(clearing) = &mut profile.clearing else {
                continue;
            };
            if clearing.next_look_at > now_ns {
                continue;
            }
            if is_heard {
                clearing.heard_at.get_or_insert(now_ns);
            }
            let is_known = clearing.heard_at.is_some_and(|at| at + HEARD_MIN <= now_ns);
            if is_known || clearing.until <= now_ns {
                gone.push(name.clone());
            }
            clearing.next_look_at = now_ns + LOOK_INTERVAL;
        }
        for name in gone {
            self.remove_profile(control, &name, now_ns);
        }
    }

    /// Takes a profile away; the default profile is made anew.
    fn remove_profile(&mut self, control: &mut Core, name: &str, now_ns: Nanos) {
        let Some(removed) = self.profiles.remove(name) else {
            return;
        };
        if let Some(run) = removed.run {
            self.forget_run(control, &run);
        }
        let event = Event::StatefulProfileCleared {
            profile: name.to_owned(),
            epoch: self.epoch,
        };
        control.queue_event(event, now_ns);
        if name == DEFAULT_PROFILE {
            let again = Profile {
                epoch: removed.epoch,
                ..Profile::default()
            };
            self.profiles.insert(name.to_owned(), again);
            self.tell_phase(control, name, None, now_ns);
        }
        self.tell_together(control, now_ns);
    }

    /// Takes a run out of the data threads; what it counted stays in the sum of this epoch.
    pub(super) fn forget_run(&mut self, control: &mut Core, run: &Run) {
        if run.server_epoch == self.epoch {
            self.retired.add(&run.totals());
        }
        control.command_all_flows(|| StatefulCommand::Remove { run: run.index });
    }

    pub(super) fn stateful_profile_list(
        &self,
        control: &Core,
        others: &Others<'_>,
        fields: &Fields<'_>,
    ) -> Reply {
        let params: StatefulProfileList = fields.read()?;
        let names = self.profiles.keys().cloned().map(ListedProfile::Name);
        let mut list: Vec<ListedProfile> = names.collect();
        if params.with_ports {
            let names = control.port_ids().map(|id| {
                let mut loaded = others.iter().map(|domain| domain.port_profiles(id));
                let loaded = loaded.find_map(|loaded| loaded).unwrap_or_default();
                (id, loaded.names)
            });
            list.push(ListedProfile::OfPorts(names.collect()));
        }
        reply(&StatefulProfileNames(list))
    }

    /// A new owner finds no profiles that were loaded and never understood.
    pub(super) fn forget_unread_profiles(&mut self, control: &mut Core, now_ns: Nanos) {
        let unread = |profile: &Profile| {
            let is_read = profile.compiled.iter().any(Option::is_some);
            profile.phase == StatefulPhase::Loaded && !is_read
        };
        let profiles = self.profiles.iter();
        let unread = profiles.filter(|(_, profile)| unread(profile));
        let names: Vec<String> = unread.map(|(name, _)| name.clone()).collect();
        for name in names {
            if let Some(profile) = self.profiles.get_mut(&name) {
                profile.text = None;
                profile.upload = None;
            }
            self.set_phase(control, &name, StatefulPhase::Idle, now_ns);
        }
    }

    /// Moves a profile to another state, and tells everybody. Nothing is told when it is there.
    pub(super) fn set_phase(
        &mut self,
        control: &mut Core,
        name: &str,
        phase: StatefulPhase,
        now_ns: Nanos,
    ) {
        self.move_on(control, name, phase, None, now_ns);
    }

    /// The same, with the reason when something went wrong.
    pub(super) fn move_on(
        &mut self,
        control: &mut Core,
        name: &str,
        phase: StatefulPhase,
        error: Option<String>,
        now_ns: Nanos,
    ) {
        let Some(profile) = self.profiles.get_mut(name) else {
            return;
        };
        if profile.phase == phase && error.is_none() {
            return;
        }
        profile.phase = phase;
        self.tell_phase(control, name, error, now_ns);
        self.tell_together(control, now_ns);
    }

    fn tell_phase(&mut self, control: &mut Core, name: &str, error: Option<String>, now_ns: Nanos) {
        let phase = self.profiles.get(name).map(|profile| profile.phase);
        let event = Event::StatefulProfileState {
            profile: name.to_owned(),
            state: phase.unwrap_or_default(),
            epoch: self.epoch,
            error,
        };
        control.queue_event(event, now_ns);
    }
}

fn unknown(name: &str) -> Error {
    Error::execution(format!(
        "Invalid profile : {name:.64}. get_profile_list names those that there are"
    ))
}
