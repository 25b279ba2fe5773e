//! What is sent of streams on a port: profiles with their streams, what runs of them, and captures.

use std::collections::BTreeMap;
use std::sync::Arc;

use allosaur_api::Error;
use allosaur_api::limits::{PROFILE_NAME_BYTES_MAX, PROFILES_MAX, STREAMS_MAX};
use allosaur_engine::stream::{Profile as Compiled, ProfileKey, StreamId, StreamSpec};
use allosaur_engine::time::Nanos;

use crate::control::core::pending::JobId;
use crate::control::profile_name::{ALL_PROFILES, DEFAULT_PROFILE};

/// The engine refuses profiles that are larger; they are not let in.
const _: () = assert!(STREAMS_MAX <= allosaur_engine::stream::spec::STREAMS_MAX);

/// What is sent of streams on a port.
#[derive(Debug)]
pub(in crate::control) struct StreamPort {
    pub(in crate::control) profiles: BTreeMap<String, Profile>,
    /// What it sends of a capture; no profile runs then.
    pub(in crate::control) playing: Option<Playing>,
    /// The capture that is read for it, to be sent.
    pub(in crate::control) reading: Option<Reading>,
}

impl Default for StreamPort {
    fn default() -> StreamPort {
        StreamPort {
            profiles: BTreeMap::from([(DEFAULT_PROFILE.to_owned(), Profile::default())]),
            playing: None,
            reading: None,
        }
    }
}

/// A profile: streams, and their run while they are sent.
#[derive(Debug, Default)]
pub(in crate::control) struct Profile {
    pub(in crate::control) streams: BTreeMap<StreamId, StoredStream>,
    pub(in crate::control) run: Option<Run>,
}

/// A stream as it was given, and what it means.
#[derive(Clone, Debug)]
pub(in crate::control) struct StoredStream {
    pub(in crate::control) json: String,
    pub(in crate::control) spec: StreamSpec,
    /// The packet group that it is in.
    pub(in crate::control) pg_id: Option<u32>,
}

/// A profile that is being sent.
#[derive(Clone, Debug)]
pub(in crate::control) struct Run {
    pub(in crate::control) key: ProfileKey,
    /// The data threads that have not answered yet that they are through.
    pub(in crate::control) running: Vec<usize>,
    /// It was told to stop.
    pub(in crate::control) stopping: bool,
    /// Its highest rate at layer 1.
    pub(in crate::control) l1_bps: f64,
    pub(in crate::control) compiled: Arc<Compiled>,
    /// What the rates of its streams are multiplied by.
    pub(in crate::control) factor: f64,
    /// Of streams that were updated by themselves.
    pub(in crate::control) stream_factors: BTreeMap<StreamId, f64>,
    /// The session that started it.
    pub(in crate::control) session: u32,
    pub(in crate::control) start_at: Nanos,
    /// How long it lasts; `None` until it is stopped.
    pub(in crate::control) duration_s: Option<f64>,
    pub(in crate::control) paused: bool,
    /// The data threads that have not answered yet that a change has taken effect, and when it
    /// does.
    pub(in crate::control) changing: Vec<usize>,
    pub(in crate::control) changing_at: Nanos,
}

/// A capture that is being sent.
#[derive(Clone, Debug)]
pub(in crate::control) struct Playing {
    pub(in crate::control) key: ProfileKey,
    /// Who started it.
    pub(in crate::control) session: u32,
    /// The data thread that sends it.
    pub(in crate::control) core: usize,
    /// It was told to stop.
    pub(in crate::control) stopping: bool,
    /// The port that sends the other direction, and by which key: stopped together with this one.
    pub(in crate::control) peer: Option<(u8, ProfileKey)>,
}

/// A capture that is being read for a port.
#[derive(Clone, Copy, Debug)]
pub(in crate::control) struct Reading {
    pub(in crate::control) job: JobId,
    /// Who asked for it.
    pub(in crate::control) session: u32,
}

/// What a profile or a port is doing; the later, the busier. The link is no part of it: TRex's
/// client takes a state `DOWN` for an error of the server, and reads the attribute `link`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::control) enum State {
    Idle,
    Streams,
    Pause,
    Transmit,
    /// A capture is sent.
    Playing,
}

impl State {
    /// As the RPC calls it.
    pub(in crate::control) fn name(self) -> &'static str {
        match self {
            State::Idle => "IDLE",
            State::Streams => "STREAMS",
            State::Pause => "PAUSE",
            State::Transmit => "TX",
            State::Playing => "PCAP_TX",
        }
    }
}

impl StreamPort {
    /// The busiest of its profiles, unless it sends a capture or is about to.
    pub(in crate::control) fn state(&self) -> State {
        if self.playing.is_some() || self.reading.is_some() {
            return State::Playing;
        }
        let states = self.profiles.values().map(Profile::state);
        states.max().unwrap_or(State::Idle)
    }

    /// Whether anything runs that this session has started.
    pub(in crate::control) fn sends_for(&self, session: u32) -> bool {
        let runs = self.profiles.values().filter_map(|p| p.run.as_ref());
        let mut starters = runs.map(|run| run.session);
        let playing = self.playing.as_ref().map(|playing| playing.session);
        starters.any(|starter| starter == session) || playing == Some(session)
    }

    /// Whether a data thread sends on it, streams or a capture.
    pub(in crate::control) fn is_sent_on_by(&self, core: usize) -> bool {
        let mut runs = self.profiles.values().filter_map(|p| p.run.as_ref());
        let plays = |playing: &Playing| playing.core == core;
        runs.any(|run| run.running.contains(&core)) || self.playing.as_ref().is_some_and(plays)
    }

    /// A profile that is there.
    pub(in crate::control) fn profile(&self, name: &str) -> Result<&Profile, Error> {
        self.profiles.get(name).ok_or_else(|| unknown_profile(name))
    }

    /// A profile that is there, to be changed.
    pub(in crate::control) fn profile_mut(&mut self, name: &str) -> Result<&mut Profile, Error> {
        let found = self.profiles.get_mut(name);
        found.ok_or_else(|| unknown_profile(name))
    }

    /// A profile, made if it is not there.
    pub(in crate::control) fn profile_or_new(&mut self, name: &str) -> Result<&mut Profile, Error> {
        if !self.profiles.contains_key(name) {
            self.check_new_profile(name)?;
        }
        Ok(self.profiles.entry(name.to_owned()).or_default())
    }

    /// The names that a profile parameter means: itself, or all there are.
    pub(in crate::control) fn profile_names(&self, name: &str) -> Result<Vec<String>, Error> {
        if name == ALL_PROFILES {
            return Ok(self.profiles.keys().cloned().collect());
        }
        self.profile(name)?;
        Ok(vec![name.to_owned()])
    }

    fn check_new_profile(&mut self, name: &str) -> Result<(), Error> {
        if name.is_empty() || name == ALL_PROFILES || name.len() > PROFILE_NAME_BYTES_MAX {
            let text = format!(
                "profile_id '{name:.32}' cannot be used: give a name of 1 to {PROFILE_NAME_BYTES_MAX} \
                 bytes that is not '*'"
            );
            return Err(Error::execution(text));
        }
        if self.profiles.len() >= PROFILES_MAX {
            self.profiles
                .retain(|name, p| name == DEFAULT_PROFILE || p.state() != State::Idle);
        }
        if self.profiles.len() >= PROFILES_MAX {
            let text = format!(
                "the port has {PROFILES_MAX} profiles, which is the most: remove the streams of \
                 one first"
            );
            return Err(Error::execution(text));
        }
        Ok(())
    }
}

impl Profile {
    pub(in crate::control) fn state(&self) -> State {
        match (&self.run, self.streams.is_empty()) {
            (Some(run), _) if run.paused => State::Pause,
            (Some(_), _) => State::Transmit,
            (None, false) => State::Streams,
            (None, true) => State::Idle,
        }
    }

    /// Refuses `command` while the profile is being sent.
    pub(in crate::control) fn check_not_transmitting(
        &self,
        command: &str,
        name: &str,
    ) -> Result<(), Error> {
        let Some(run) = &self.run else {
            return Ok(());
        };
        let remedy = if run.stopping {
            "It is still stopping: try again, and look at the server's log if that does not help."
        } else {
            "Stop its traffic first."
        };
        Err(wrong_state(command, self.state(), name, remedy))
    }

    /// Adds a stream.
    pub(in crate::control) fn add(
        &mut self,
        stream: StoredStream,
        name: &str,
    ) -> Result<(), Error> {
        self.check_not_transmitting("add", name)?;
        let id = stream.spec.id;
        if self.streams.contains_key(&id) {
            let text = format!(
                "stream {id} already exists in profile_id({name}): remove it first, or give \
                 another stream_id"
            );
            return Err(Error::execution(text));
        }
        if self.streams.len() >= STREAMS_MAX {
            let text =
                format!("stream {id}: profile_id({name}) has {STREAMS_MAX} streams, the most");
            return Err(Error::execution(text));
        }
        self.streams.insert(id, stream);
        Ok(())
    }
}

/// The error of a command that a profile's state forbids.
pub(in crate::control) fn wrong_state(
    command: &str,
    state: State,
    profile: &str,
    remedy: &str,
) -> Error {
    let state = state.name();
    Error::execution(format!(
        "command '{command}' cannot be executed on current state: '{state} on \
         profile_id({profile}). {remedy}"
    ))
}

fn unknown_profile(name: &str) -> Error {
    Error::execution(format!(
        "profile_id {name:.64} does not exists on this port: get_profile_list names those that do"
    ))
}
