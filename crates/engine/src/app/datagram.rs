//! Datagrams as an application sees them that tells its flows apart itself: with the addresses that
//! they came by or go to, and with their bits of ECN. [`Demultiplexer`](super::Demultiplexer) is given
//! them.

use std::net::SocketAddr;

/// The two bits of the IP header for congestion notification (RFC 3168, section 5), where they are
/// not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EcnCodepoint {
    /// ECT(1): the sender understands marks, in its other word.
    Ect1 = 0b01,
    /// ECT(0): the sender understands marks.
    Ect0 = 0b10,
    /// CE: a router marked the packet.
    Ce = 0b11,
}

impl EcnCodepoint {
    /// The bits that it is in.
    pub const MASK: u8 = 0b11;

    /// That of a type of service, or traffic class; `None` for 0.
    pub fn of(type_of_service: u8) -> Option<EcnCodepoint> {
        match type_of_service & EcnCodepoint::MASK {
            0b01 => Some(EcnCodepoint::Ect1),
            0b10 => Some(EcnCodepoint::Ect0),
            0b11 => Some(EcnCodepoint::Ce),
            _ => None,
        }
    }
}

/// A datagram that arrived.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// Where it came to: our address and port.
    pub local: SocketAddr,
    /// Where it came from.
    pub remote: SocketAddr,
    /// Its bits of ECN.
    pub ecn: Option<EcnCodepoint>,
    /// What it says.
    pub data: &'a [u8],
}

/// Datagrams to send, one behind the other in what an application wrote: what `UDP_SEGMENT` (GSO) is
/// to a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramBatch {
    /// The length of each; the last may be shorter.
    pub segment_bytes: usize,
    /// Where they go; `None` is where the flow goes.
    pub remote: Option<SocketAddr>,
    /// Their bits of ECN, in the place of those of the template.
    pub ecn: Option<EcnCodepoint>,
}
