//! The engine of one core: verbs in, verbs out.
//!
//! What lives here: [`Command`] and [`Event`], the words between control and a data thread, and
//! [`Engine`], which drives the compiled streams of every port of its group.

use crate::stream::ProfileKey;
use crate::time::Nanos;
use crate::transmit::PortIndex;

/// What control tells the engine of a core.
#[derive(Debug)]
pub enum Command {
    /// Starts a profile's share of this core.
    StartProfile {
        /// The port to send from.
        port: PortIndex,
        /// The profile's number, for later commands and events.
        profile: ProfileKey,
        /// What to send, compiled for this core.
        program: Box<crate::stream::CoreProgram>,
        /// When time zero of the profile is.
        start_at: Nanos,
        /// How long the run lasts; `None` is until it is stopped or all streams are done.
        duration: Option<Nanos>,
    },
    /// Stops a profile at once; answered by [`Event::ProfileStopped`]. One that is not running is
    /// answered likewise.
    StopProfile {
        /// The port.
        port: PortIndex,
        /// The profile.
        profile: ProfileKey,
    },
}

/// What the engine of a core tells control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
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
}

/// The engine of one core.
#[derive(Debug, Default)]
pub struct Engine {}
