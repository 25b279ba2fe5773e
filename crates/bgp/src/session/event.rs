//! What a session tells who drives it, and what it counts.

use crate::session::negotiate::Negotiated;
use crate::wire::notification::Notification;
use crate::wire::prefix::AddressFamily;

/// The states of RFC 4271 §8.2.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BgpState {
    /// It waits to be started, or for the time of its next try.
    Idle,
    /// A connection is being opened.
    Connect,
    /// The peer is to open a connection.
    Active,
    /// OPEN was sent.
    OpenSent,
    /// The peer's OPEN was taken.
    OpenConfirm,
    /// Routes are exchanged.
    Established,
}

impl BgpState {
    /// The name in the RFC.
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "Idle",
            Self::Connect => "Connect",
            Self::Active => "Active",
            Self::OpenSent => "OpenSent",
            Self::OpenConfirm => "OpenConfirm",
            Self::Established => "Established",
        }
    }
}

/// Why a session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DownReason {
    /// We found an error, and told the peer.
    Sent(Notification),
    /// The peer found one, and told us.
    Received(Notification),
    /// The connection was closed or could not be opened.
    Disconnected,
}

impl std::fmt::Display for DownReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sent(notification) => write!(f, "we ended it: {notification}"),
            Self::Received(notification) => write!(f, "the peer ended it: {notification}"),
            Self::Disconnected => f.write_str("the connection was closed"),
        }
    }
}

/// What a session tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BgpEvent {
    /// Open a connection to the peer, and say whether it came to be.
    Connect,
    /// Send what [`poll_transmit`](super::BgpSession::poll_transmit) still gives, then close the connection.
    Disconnect,
    /// Routes may be sent.
    Established(Negotiated),
    /// The session, or the try to make one, ended.
    Down(DownReason),
    /// The peer wants all routes of a family again.
    RefreshRequested(AddressFamily),
    /// The peer has sent all routes of a family that it has.
    EndOfRib(AddressFamily),
}

/// What a session counts, from its begin on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BgpSessionCounters {
    /// How often it came to be established.
    pub established: u64,
    /// Routes announced to the peer.
    pub announced: u64,
    /// Routes withdrawn from the peer.
    pub withdrawn: u64,
    /// UPDATE messages received.
    pub updates_received: u64,
    /// Routes that the peer announced.
    pub announcements_received: u64,
    /// Routes of the peer that were ignored, since their path has our own AS number.
    pub looped_received: u64,
    /// Routes that the peer withdrew.
    pub withdrawals_received: u64,
    /// UPDATE messages whose routes counted as withdrawn for an error in them (RFC 7606).
    pub treated_as_withdrawn: u64,
    /// Attributes that were ignored for an error in them (RFC 7606).
    pub discarded_attributes: u64,
    /// NOTIFICATION messages sent.
    pub notifications_sent: u64,
    /// NOTIFICATION messages received.
    pub notifications_received: u64,
}
