//! The engine of one core: verbs in, verbs out.
//!
//! What lives here: [`Event`], the words between control and a data thread, and
//! [`Engine`], which drives the compiled streams of every port of its group.

use crate::stream::ProfileKey;
use crate::time::Nanos;
use crate::transmit::PortIndex;

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
