//! NOTIFICATION (RFC 4271 §4.5 and §6): why a session ends.

use std::fmt;

use super::framing::{BgpMessageType, HEADER_LEN, emit_header};

/// Error codes.
pub mod code {
    /// Message Header Error.
    pub const MESSAGE_HEADER: u8 = 1;
    /// OPEN Message Error.
    pub const OPEN_MESSAGE: u8 = 2;
    /// UPDATE Message Error.
    pub const UPDATE_MESSAGE: u8 = 3;
    /// Hold Timer Expired.
    pub const HOLD_TIMER_EXPIRED: u8 = 4;
    /// Finite State Machine Error; the subcode says in which state (RFC 6608).
    pub const STATE_MACHINE: u8 = 5;
    /// Cease; the subcode says why (RFC 4486).
    pub const CEASE: u8 = 6;
    /// ROUTE-REFRESH Message Error (RFC 7313).
    pub const ROUTE_REFRESH: u8 = 7;
}

/// The names of codes, and of their subcodes from 1.
const NAMES: [(&str, &[&str]); 7] = [
    (
        "Message Header Error",
        &[
            "Connection Not Synchronized",
            "Bad Message Length",
            "Bad Message Type",
        ],
    ),
    (
        "OPEN Message Error",
        &[
            "Unsupported Version Number",
            "Bad Peer AS",
            "Bad BGP Identifier",
            "Unsupported Optional Parameter",
            "Authentication Failure",
            "Unacceptable Hold Time",
            "Unsupported Capability",
        ],
    ),
    (
        "UPDATE Message Error",
        &[
            "Malformed Attribute List",
            "Unrecognized Well-known Attribute",
            "Missing Well-known Attribute",
            "Attribute Flags Error",
            "Attribute Length Error",
            "Invalid ORIGIN Attribute",
            "AS Routing Loop",
            "Invalid NEXT_HOP Attribute",
            "Optional Attribute Error",
            "Invalid Network Field",
            "Malformed AS_PATH",
        ],
    ),
    ("Hold Timer Expired", &[]),
    (
        "Finite State Machine Error",
        &[
            "Unexpected Message in OpenSent",
            "Unexpected Message in OpenConfirm",
            "Unexpected Message in Established",
        ],
    ),
    (
        "Cease",
        &[
            "Maximum Number of Prefixes Reached",
            "Administrative Shutdown",
            "Peer De-configured",
            "Administrative Reset",
            "Connection Rejected",
            "Other Configuration Change",
            "Connection Collision Resolution",
            "Out of Resources",
            "Hard Reset",
        ],
    ),
    ("ROUTE-REFRESH Message Error", &["Invalid Message Length"]),
];

/// A NOTIFICATION message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// The error code.
    pub code: u8,
    /// The subcode, 0 where there is none.
    pub subcode: u8,
    /// What helps to find the error.
    pub data: Vec<u8>,
}

impl Notification {
    /// A notification without data.
    pub fn new(code: u8, subcode: u8) -> Self {
        Self::with_data(code, subcode, Vec::new())
    }

    /// A notification with data.
    pub fn with_data(code: u8, subcode: u8, data: Vec<u8>) -> Self {
        Self {
            code,
            subcode,
            data,
        }
    }

    /// Reads what stands behind the header, which [`MessageHeader::parse`] found to be two octets at least.
    pub fn parse(body: &[u8]) -> Option<Self> {
        let (head, data) = body.split_first_chunk::<2>()?;
        Some(Self::with_data(head[0], head[1], data.to_vec()))
    }

    /// Appends the message. Data that no message has room for is cut off.
    pub fn emit(&self, out: &mut Vec<u8>) {
        let room = super::framing::MESSAGE_LEN_MAX - HEADER_LEN - 2;
        let data = &self.data[..self.data.len().min(room)];
        emit_header(BgpMessageType::Notification, 2 + data.len(), out);
        out.extend_from_slice(&[self.code, self.subcode]);
        out.extend_from_slice(data);
    }
}

impl fmt::Display for Notification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (code, subcode) = (usize::from(self.code), usize::from(self.subcode));
        let names = code.checked_sub(1).and_then(|index| NAMES.get(index));
        let (name, subcodes) = names.copied().unwrap_or(("unknown error", &[]));
        f.write_str(name)?;
        if let Some(name) = subcode.checked_sub(1).and_then(|index| subcodes.get(index)) {
            write!(f, ", {name}")?;
        }
        write!(f, " ({code}/{subcode})")
    }
}
