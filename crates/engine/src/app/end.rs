//! How what runs on a flow came to its end.

/// How a run of a program came to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProgramEnd {
    /// It has not, or was stopped before.
    #[default]
    None,
    /// All its commands ran.
    Done,
    /// It gave up: the peer was done before what it waited for began to come.
    PeerClosedBetween,
    /// It gave up: the peer was done when only a part had come.
    PeerClosedWithin,
    /// Of an application over bytes: it says so.
    Failed,
}
