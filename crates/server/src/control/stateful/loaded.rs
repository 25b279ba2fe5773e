//! A profile that is loaded: its text, what it means, and what runs of it.

use std::sync::Arc;

use allosaur_api::Error;
use allosaur_api::events::StatefulPhase;
use allosaur_engine::template::{CompiledProfile, Layout};
use allosaur_engine::time::Nanos;

use super::run::Run;
use super::upload::Text;
use crate::control::core::pending::Wait;
use crate::control::upload::Upload;

/// A profile.
#[derive(Debug, Default)]
pub(super) struct Profile {
    pub(super) phase: StatefulPhase,
    /// Its text, once it is whole.
    pub(super) text: Option<Text>,
    /// Its text, until then.
    pub(super) upload: Option<Upload>,
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
    pub(super) until: Nanos,
    /// Since when the owner has fetched all events.
    pub(super) heard_at: Option<Nanos>,
}

impl Profile {
    /// The bytes of its text.
    pub(super) fn text_bytes(&self) -> usize {
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
