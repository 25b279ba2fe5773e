//! What all messages begin with (RFC 4271 §4.1), as it is written: marker, length and type.

/// Octets of a header.
pub const HEADER_LEN: usize = 19;
/// Most octets of a message.
pub const MESSAGE_LEN_MAX: usize = 4096;
/// Most octets of a message where both ends can do extended messages (RFC 8654).
pub const EXTENDED_MESSAGE_LEN_MAX: usize = 65_535;

/// Octets of the marker, all ones, that a message begins with.
pub(super) const MARKER_LEN: usize = 16;

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BgpMessageType {
    /// OPEN.
    Open,
    /// UPDATE.
    Update,
    /// NOTIFICATION.
    Notification,
    /// KEEPALIVE.
    Keepalive,
    /// ROUTE-REFRESH (RFC 2918).
    RouteRefresh,
}

impl BgpMessageType {
    pub(super) fn parse(octet: u8) -> Option<Self> {
        Some(match octet {
            1 => Self::Open,
            2 => Self::Update,
            3 => Self::Notification,
            4 => Self::Keepalive,
            5 => Self::RouteRefresh,
            _ => return None,
        })
    }

    fn octet(self) -> u8 {
        match self {
            Self::Open => 1,
            Self::Update => 2,
            Self::Notification => 3,
            Self::Keepalive => 4,
            Self::RouteRefresh => 5,
        }
    }

    /// The lengths that a message of this type may have, header included. OPEN and KEEPALIVE are never
    /// extended (RFC 8654 §3). A ROUTE-REFRESH of a wrong length has a notification of its own (RFC 7313 §5).
    pub(super) fn is_length(self, length: usize) -> bool {
        match self {
            Self::Open => (29..=MESSAGE_LEN_MAX).contains(&length),
            Self::Update => length >= 23,
            Self::Notification => length >= 21,
            Self::Keepalive => length == HEADER_LEN,
            Self::RouteRefresh => true,
        }
    }
}

/// Appends the header of a message with `body_len` octets behind it.
///
/// # Panics
/// Where the message would be longer than 65,535 octets: who emits keeps to the limit of the session.
pub fn emit_header(message_type: BgpMessageType, body_len: usize, out: &mut Vec<u8>) {
    let length = u16::try_from(HEADER_LEN + body_len).expect("a message of 65,535 octets at most");
    out.extend_from_slice(&[0xff; MARKER_LEN]);
    out.extend_from_slice(&length.to_be_bytes());
    out.push(message_type.octet());
}

/// Appends a KEEPALIVE: a header alone.
pub fn emit_keepalive(out: &mut Vec<u8>) {
    emit_header(BgpMessageType::Keepalive, 0, out);
}
