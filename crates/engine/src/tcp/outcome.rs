//! What a segment, a timeout or a command means to the application.

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Both FINs were received and acknowledged.
    Closed,
    /// A RST ended it, the peer's or ours, or the peer refused it.
    Reset,
    /// The peer did not answer.
    TimedOut,
    /// The test ended before it did.
    CutOff,
}

/// What happened to a connection. After it, the connection may have something to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Bytes that arrived in order and are new.
    pub delivered_bytes: u32,
    /// Bytes of the application that the peer acknowledged; their memory may be released.
    pub acknowledged_bytes: u32,
    /// The connection was established.
    pub connected: bool,
    /// The peer's FIN was received, and all data before it.
    pub peer_closed: bool,
    /// The segment belongs to another connection: its sender gets
    /// [`reset_in_reply`](super::Segment::reset_in_reply).
    pub refused: bool,
    /// How the connection ended. It may be dropped when
    /// [`Connection::is_closed`](super::Connection::is_closed); before, it has still something to send.
    pub ended: Option<End>,
}
