//! Stateful profiles: how they come, how they go, and what is told of them.
//!
//! A profile that was loaded goes in two steps, as clients expect: event 60 with state 6, and later
//! event 61. TRex's client forgets the changes that it has not looked at when it reads event 61, and
//! waits for state 6 for ever if that was among them. So event 61 waits until the owner's session
//! has fetched the first, and longer ([`HEARD_MIN`]).

use std::sync::Arc;

use allosaur_api::commands::ports::profile_id;
use allosaur_api::commands::stateful::profiles::{Fragment, StatefulProfileList};
use allosaur_api::commands::status::{ProfileState, ProfileUse, RunUse};
use allosaur_api::events::{Event, StatefulPhase};
use allosaur_api::limits::{
    PROFILE_NAME_BYTES_MAX, STATEFUL_PROFILE_BYTES_MAX, STATEFUL_PROFILES_BYTES_MAX,
    STATEFUL_PROFILES_MAX,
};
use allosaur_api::{Error, Fields};
use allosaur_engine::stateful::StatefulCommand;
use allosaur_engine::template::{CompiledProfile, Layout};
use allosaur_engine::time::{MILLISECOND, Nanos, SECOND};
use serde_json::{Map, Value, json};

use super::StatefulState;
use super::run::Run;
use super::upload::{Text, Upload, not_begun};
use crate::control::pending::Wait;
use crate::control::ports::port::{ALL_PROFILES, DEFAULT_PROFILE, Port};
use crate::control::server::status::seconds_since;
use crate::control::{Control, Reply, View};

/// How often it is looked whether a profile may go.
const LOOK_INTERVAL: Nanos = 10 * MILLISECOND;
/// How long ago its event must have been fetched. TRex's client looks every millisecond at what it
/// has; on machines that are short of time its other threads have come first for up to 20 ms.
const HEARD_MIN: Nanos = 100 * MILLISECOND;
/// After this time it goes, whether its event was fetched or not.
const CLEAR_MAX: Nanos = SECOND;

/// A profile.
#[derive(Debug, Default)]
pub(super) struct Profile {
    pub(super) phase: StatefulPhase,
    /// Its text, once it is whole.
    pub(super) text: Option<Text>,
    /// Its text, until then.
    upload: Option<Upload>,
    /// What its text means, once it was read: plainly, and with all addresses IPv6.
    pub(super) compiled: [Option<(Layout, Arc<CompiledProfile>)>; 2],
    /// What is waited for, to start it then.
    pub(super) starting: Option<Starting>,
    /// What its rates shall be multiplied by instead, asked for while it was starting.
    pub(super) factor_updated: Option<f64>,
    /// How often it was started.
    pub(super) epoch: u64,
    /// What runs, or ran last.
    pub(super) run: Option<Run>,
    /// It is about to go.
    pub(super) clearing: Option<Clearing>,
}

/// A profile that shall start, once its text is understood and its hosts are known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Starting {
    /// The job that reads its text, or the question about its hosts.
    pub(super) wait: Wait,
    /// Who starts it.
    pub(super) session: u32,
    /// How long the answer may take.
    pub(super) until: Option<Nanos>,
}

/// A profile that is about to go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clearing {
    pub(super) next_look_at: Nanos,
    until: Nanos,
    /// Since when the owner has fetched all events.
    heard_at: Option<Nanos>,
}

impl Profile {
    fn text_bytes(&self) -> usize {
        let whole = self.text.as_ref().map_or(0, |text| text.text.len());
        whole + self.upload.as_ref().map_or(0, Upload::bytes)
    }

    /// Whether it has flows, or may begin some, because this session has started it.
    pub(super) fn is_sending_for(&self, session: u32) -> bool {
        let run = self.run.as_ref().filter(|_| self.is_busy());
        let starter = match self.starting {
            Some(starting) => Some(starting.session),
            None => run.map(|run| run.session),
        };
        starter == Some(session)
    }

    /// Whether it has flows, or may begin some.
    pub(super) fn is_busy(&self) -> bool {
        !matches!(self.phase, StatefulPhase::Idle | StatefulPhase::Loaded)
    }
}

impl StatefulState {
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

impl Control {
    /// What each profile does, for `get_status`.
    pub(in crate::control) fn stateful_profiles(&self, now_ns: Nanos) -> Vec<ProfileUse> {
        if !self.ports.iter().any(Port::is_stateful) {
            return Vec::new();
        }
        let profiles = self.room.profiles.iter().map(|(name, profile)| {
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

    pub(super) fn profile_fragment(&mut self, fields: &Fields<'_>, view: &View<'_>) -> Reply {
        let fragment = Fragment::parse(fields)?;
        if fragment.is_first {
            // Also before its text is refused, so that a client that goes on with the name finds it.
            self.make_profile(&fragment.profile, view.now_ns)?;
            if self.is_loaded(&fragment)? {
                return Ok(json!({"matches_loaded": true}));
            }
            self.begin_upload(&fragment, view.now_ns)?;
        } else {
            let name = &fragment.profile;
            self.room.profile(name)?;
            self.room.check_room(name, fragment.text.len())?;
            let upload = &mut self.room.profile_mut(name)?.upload;
            upload.as_mut().ok_or_else(not_begun)?.add(&fragment);
        }
        if fragment.is_last {
            let profile = self.room.profile_mut(&fragment.profile)?;
            let upload = profile.upload.take().ok_or_else(not_begun)?;
            profile.text = Some(upload.finish()?);
            self.set_phase(&fragment.profile, StatefulPhase::Loaded, view.now_ns);
        }
        Ok(Value::Null)
    }

    /// Whether the text that begins so is there already. Clients then send no more of it.
    fn is_loaded(&self, fragment: &Fragment<'_>) -> Result<bool, Error> {
        let Some(md5) = fragment.md5.filter(|_| !fragment.is_last) else {
            return Ok(false);
        };
        let md5 = md5.to_ascii_lowercase();
        self.room.check_unique(&fragment.profile, &md5)?;
        let profile = self.room.profiles.get(&fragment.profile);
        let text = profile.and_then(|profile| profile.text.as_ref());
        Ok(text.is_some_and(|text| text.md5 == md5))
    }

    /// Makes a profile that is not there, without a text, and tells of it.
    fn make_profile(&mut self, name: &str, now_ns: Nanos) -> Result<(), Error> {
        if !self.room.profiles.contains_key(name) {
            self.room.check_new(name)?;
            let profile = Profile::default();
            self.room.profiles.insert(name.to_owned(), profile);
            self.tell_phase(name, None, now_ns);
        }
        Ok(())
    }

    /// Takes the first part of a text; what the profile had is gone.
    fn begin_upload(&mut self, fragment: &Fragment<'_>, now_ns: Nanos) -> Result<(), Error> {
        let name = &fragment.profile;
        let profile = self.room.profile_mut(name)?;
        if profile.is_busy() {
            return Err(wrong_state("profile_fragment", profile, name));
        }
        profile.upload = None;
        profile.text = None;
        self.room.check_room(name, fragment.text.len())?;
        let profile = self.room.profile_mut(name)?;
        profile.upload = Some(Upload::begin(fragment));
        profile.compiled = [None, None];
        self.set_phase(name, StatefulPhase::Idle, now_ns);
        Ok(())
    }

    pub(super) fn profile_clear(&mut self, fields: &Fields<'_>, view: &View<'_>) -> Reply {
        let name = profile_id(fields)?;
        let profile = self.room.profile_mut(&name)?;
        match profile.phase {
            StatefulPhase::Idle => self.remove_profile(&name, view.now_ns),
            StatefulPhase::Loaded => {
                profile.clearing = Some(Clearing {
                    next_look_at: view.now_ns + LOOK_INTERVAL,
                    until: view.now_ns + CLEAR_MAX,
                    heard_at: None,
                });
                self.set_phase(&name, StatefulPhase::Delete, view.now_ns);
            }
            _ => return Err(wrong_state("profile_clear", profile, &name)),
        }
        Ok(Value::Null)
    }

    /// Lets profiles go whose owner has heard that they will.
    pub(in crate::control) fn finish_clears(&mut self, now_ns: Nanos) {
        let owner = self.room.owner.as_ref().map(|owner| owner.session);
        let is_heard = owner.is_none_or(|session| self.sessions.has_fetched(session));
        let mut gone = Vec::new();
        for (name, profile) in &mut self.room.profiles {
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
            self.remove_profile(&name, now_ns);
        }
    }

    /// Takes a profile away; the default profile is made anew.
    fn remove_profile(&mut self, name: &str, now_ns: Nanos) {
        let Some(removed) = self.room.profiles.remove(name) else {
            return;
        };
        if let Some(run) = removed.run {
            self.forget_run(&run);
        }
        let event = Event::StatefulProfileCleared {
            profile: name.to_owned(),
            epoch: self.room.epoch,
        };
        self.queue_event(event, now_ns);
        if name == DEFAULT_PROFILE {
            let again = Profile {
                epoch: removed.epoch,
                ..Profile::default()
            };
            self.room.profiles.insert(name.to_owned(), again);
            self.tell_phase(name, None, now_ns);
        }
        self.tell_together(now_ns);
    }

    /// Takes a run out of the data threads; what it counted stays in the sum of this epoch.
    pub(super) fn forget_run(&mut self, run: &Run) {
        if run.room_epoch == self.room.epoch {
            self.room.retired.add(&run.totals());
        }
        self.order_all(|| StatefulCommand::Remove { run: run.index });
    }

    pub(super) fn stateful_profile_list(&self, fields: &Fields<'_>) -> Reply {
        let params = StatefulProfileList::parse(fields)?;
        let mut list: Vec<Value> = self.room.profiles.keys().map(|name| json!(name)).collect();
        if params.with_ports {
            let ports = self.ports.iter().enumerate();
            let names = ports.map(|(number, port)| {
                let names: Vec<&String> = port.profiles.keys().collect();
                (number.to_string(), json!(names))
            });
            list.push(Value::Object(names.collect::<Map<_, _>>()));
        }
        Ok(json!(list))
    }

    /// A new owner finds no profiles that were loaded and never understood.
    pub(super) fn forget_unread_profiles(&mut self, now_ns: Nanos) {
        let unread = |profile: &Profile| {
            let is_read = profile.compiled.iter().any(Option::is_some);
            profile.phase == StatefulPhase::Loaded && !is_read
        };
        let profiles = self.room.profiles.iter();
        let unread = profiles.filter(|(_, profile)| unread(profile));
        let names: Vec<String> = unread.map(|(name, _)| name.clone()).collect();
        for name in names {
            if let Some(profile) = self.room.profiles.get_mut(&name) {
                profile.text = None;
                profile.upload = None;
            }
            self.set_phase(&name, StatefulPhase::Idle, now_ns);
        }
    }

    /// Moves a profile to another state, and tells everybody. Nothing is told when it is there.
    pub(super) fn set_phase(&mut self, name: &str, phase: StatefulPhase, now_ns: Nanos) {
        self.move_on(name, phase, None, now_ns);
    }

    /// The same, with the reason when something went wrong.
    pub(super) fn move_on(
        &mut self,
        name: &str,
        phase: StatefulPhase,
        error: Option<String>,
        now_ns: Nanos,
    ) {
        let Some(profile) = self.room.profiles.get_mut(name) else {
            return;
        };
        if profile.phase == phase && error.is_none() {
            return;
        }
        profile.phase = phase;
        self.tell_phase(name, error, now_ns);
        self.tell_together(now_ns);
    }

    fn tell_phase(&mut self, name: &str, error: Option<String>, now_ns: Nanos) {
        let phase = self.room.profiles.get(name).map(|profile| profile.phase);
        let event = Event::StatefulProfileState {
            profile: name.to_owned(),
            state: phase.unwrap_or_default(),
            epoch: self.room.epoch,
            error,
        };
        self.queue_event(event, now_ns);
    }
}

fn unknown(name: &str) -> Error {
    Error::execution(format!(
        "Invalid profile : {name:.64}. get_profile_list names those that there are"
    ))
}

/// The error of a command that a profile's state forbids.
pub(super) fn wrong_state(command: &str, profile: &Profile, name: &str) -> Error {
    let (state, remedy) = match profile.phase {
        StatefulPhase::Idle => ("nothing is loaded", "load it first (profile_fragment)"),
        StatefulPhase::Loaded => ("it does not run", "start it first"),
        StatefulPhase::Parse | StatefulPhase::Build => ("it starts", "stop it first"),
        StatefulPhase::Transmit => ("it runs", "stop it first"),
        StatefulPhase::Cleanup => ("its flows end", "wait for the event that they have"),
        StatefulPhase::Delete => ("it is about to go", "wait for the event that it has"),
    };
    Error::execution(format!(
        "command '{command}' cannot be executed on profile_id {name}: {state}; {remedy}"
    ))
}
