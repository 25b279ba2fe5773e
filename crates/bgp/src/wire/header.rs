//! The header of all messages (RFC 4271 §4.1): where one ends, and what it is.

use super::notification::{Notification, code};

/// Octets of a header.
pub const HEADER_LEN: usize = 19;
/// Most octets of a message.
pub const MESSAGE_LEN_MAX: usize = 4096;
/// Most octets of a message where both ends can do extended messages (RFC 8654).
pub const EXTENDED_MESSAGE_LEN_MAX: usize = 65_535;

const MARKER_LEN: usize = 16;

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageType {
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

impl MessageType {
    fn parse(octet: u8) -> Option<Self> {
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
    fn is_length(self, length: usize) -> bool {
        match self {
            Self::Open => (29..=MESSAGE_LEN_MAX).contains(&length),
            Self::Update => length >= 23,
            Self::Notification => length >= 21,
            Self::Keepalive => length == HEADER_LEN,
            Self::RouteRefresh => true,
        }
    }
}

/// What a header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// What the message is.
    pub message_type: MessageType,
    /// Its octets, those of the header included.
    pub length: usize,
}

impl Header {
    /// The header at the front of received bytes, `None` while too few are there. The message itself may
    /// still be on its way.
    ///
    /// # Errors
    /// The notification that RFC 4271 §6.1 wants.
    pub fn parse(bytes: &[u8], length_max: usize) -> Result<Option<Self>, Notification> {
        let marker = &bytes[..bytes.len().min(MARKER_LEN)];
        if marker.iter().any(|octet| *octet != 0xff) {
            return Err(Notification::new(code::MESSAGE_HEADER, 1));
        }
        let Some(rest) = bytes.get(MARKER_LEN..HEADER_LEN) else {
            return Ok(None);
        };
        let length = usize::from(u16::from_be_bytes([rest[0], rest[1]]));
        let bad_length =
            || Notification::with_data(code::MESSAGE_HEADER, 2, vec![rest[0], rest[1]]);
        if !(HEADER_LEN..=length_max).contains(&length) {
            return Err(bad_length());
        }
        let Some(message_type) = MessageType::parse(rest[2]) else {
            let data = vec![rest[2]];
            return Err(Notification::with_data(code::MESSAGE_HEADER, 3, data));
        };
        if !message_type.is_length(length) {
            return Err(bad_length());
        }
        Ok(Some(Self {
            message_type,
            length,
        }))
    }

    /// Appends the header of a message with `body_len` octets behind it.
    ///
    /// # Panics
    /// Where the message would be longer than 65,535 octets: who emits keeps to the limit of the session.
    pub fn emit(message_type: MessageType, body_len: usize, out: &mut Vec<u8>) {
        let length =
            u16::try_from(HEADER_LEN + body_len).expect("a message of 65,535 octets at most");
        out.extend_from_slice(&[0xff; MARKER_LEN]);
        out.extend_from_slice(&length.to_be_bytes());
        out.push(message_type.octet());
    }
}

/// Appends a KEEPALIVE: a header alone.
pub fn emit_keepalive(out: &mut Vec<u8>) {
    Header::emit(MessageType::Keepalive, 0, out);
}
