//! What passes between control and the stateless engine of a core.

use crate::stream::{CoreProgram, ProfileKey, StreamId};
use crate::time::Nanos;
use crate::transmit::PortIndex;

/// What control tells the engine of a core.
#[derive(Debug)]
pub enum StatelessCommand {
    /// Starts a profile's share of this core.
    StartProfile {
        /// The port to send from.
        port: PortIndex,
        /// The profile's number, for later commands and events.
        profile: ProfileKey,
        /// What to send, compiled for this core.
        program: Box<CoreProgram>,
        /// When time zero of the profile is.
        start_at: Nanos,
        /// How long the run lasts; `None` is until it is stopped or all streams are done.
        duration: Option<Nanos>,
    },
    /// Stops a profile at once; answered by [`ProfileEvent::ProfileStopped`]. One that is not running is
    /// answered likewise.
    StopProfile {
        /// The port.
        port: PortIndex,
        /// The profile.
        profile: ProfileKey,
    },
    /// Changes a profile that runs; answered by [`ProfileEvent::ProfileChanged`] when everything that was
    /// due before has left or was given up. One that is not running is answered likewise.
    ChangeProfile {
        /// The port.
        port: PortIndex,
        /// The profile.
        profile: ProfileKey,
        /// From when on, the same for all cores: far enough ahead that all hear of it in time.
        at: Nanos,
        /// What becomes of it.
        change: Change,
    },
}

impl StatelessCommand {
    /// The port that it is about.
    pub fn port(&self) -> PortIndex {
        match self {
            StatelessCommand::StartProfile { port, .. }
            | StatelessCommand::StopProfile { port, .. }
            | StatelessCommand::ChangeProfile { port, .. } => *port,
        }
    }
}

/// What the engine of a core tells control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProfileEvent {
    /// All of this core's streams of the profile have ended, or its duration has.
    ProfileDone {
        /// The port.
        port: PortIndex,
        /// The profile.
        profile: ProfileKey,
        /// When.
        at: Nanos,
    },
    /// The profile was stopped by command.
    ProfileStopped {
        /// The port.
        port: PortIndex,
        /// The profile.
        profile: ProfileKey,
        /// When.
        at: Nanos,
    },
    /// A change of the profile has taken effect.
    ProfileChanged {
        /// The port.
        port: PortIndex,
        /// The profile.
        profile: ProfileKey,
        /// From when on.
        at: Nanos,
    },
}

/// What becomes of a profile while it runs. Lists are in the order of the streams' numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Everything stands still, and nothing counts as missed.
    Pause,
    /// Everything goes on where it stood still, but what is paused by itself.
    Resume,
    /// All streams are sent at this factor of their rates.
    Update(f64),
    /// These streams stand still.
    PauseStreams(Box<[StreamId]>),
    /// These streams go on where they stood still.
    ResumeStreams(Box<[StreamId]>),
    /// Each of these streams is sent at its factor of its rate.
    UpdateStreams(Box<[(StreamId, f64)]>),
}
