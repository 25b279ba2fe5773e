//! The header of a received message: where it ends, and what it is.

use super::framing::{BgpMessageType, HEADER_LEN, MARKER_LEN};
use super::notification::{Notification, code};

/// What a header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageHeader {
    /// What the message is.
    pub message_type: BgpMessageType,
    /// Its octets, those of the header included.
    pub length: usize,
}

impl MessageHeader {
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
        let Some(message_type) = BgpMessageType::parse(rest[2]) else {
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
}
