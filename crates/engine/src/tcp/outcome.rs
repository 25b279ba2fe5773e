//! What a segment, a timeout or a command meant for the application.

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Both sides said that they are done.
    Closed,
    /// The other side reset it, or refused it.
    Reset,
    /// The other side did not answer.
    TimedOut,
    /// The test ended before it did.
    CutOff,
}

/// What happened. After it, the connection may have something to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Bytes that arrived in order and are new.
    pub delivered_bytes: u32,
    /// Bytes of the application that the other side now has; their memory may be forgotten.
    pub acknowledged_bytes: u32,
    /// The connection came to be.
    pub connected: bool,
    /// The other side will send no more.
    pub peer_closed: bool,
    /// The segment belongs to no connection that there is: its sender gets
    /// [`reset_in_reply`](super::Segment::reset_in_reply).
    pub refused: bool,
    /// The connection is over: when [`Connection::is_closed`](super::Connection::is_closed) too,
    /// it may be forgotten; else when it has sent its last.
    pub ended: Option<End>,
}
