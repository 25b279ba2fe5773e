//! What can be asked of the sockets that ports are joined to.

use allosaur_engine::transmit::PortIndex;

use crate::rx_taps::endpoint::Wire;
use crate::rx_taps::filter::Filter;
use crate::rx_taps::tap_request::TapRequest;

/// What can be asked of the sockets of ports.
#[derive(Debug)]
pub enum SocketRequest {
    /// Join a port to a socket: what it receives goes there, what comes from there it sends. A port
    /// that is joined already stays so.
    Open {
        /// The port.
        port: PortIndex,
        /// The socket's address.
        endpoint: String,
        /// Which received frames.
        filter: Filter,
        /// The socket.
        wire: Box<dyn Wire>,
    },
    /// Another filter for the frames that go to the socket.
    SetFilter {
        /// The port.
        port: PortIndex,
        /// Which received frames.
        filter: Filter,
    },
    /// Part a port from its socket.
    Close(PortIndex),
}

/// What the sockets of ports answer.
#[derive(Debug, PartialEq)]
pub enum SocketAnswer {
    /// It is done.
    Done,
    /// The port is joined to no socket.
    Unknown,
    /// The port is joined to this socket already.
    Joined {
        /// Its address.
        endpoint: String,
    },
}

impl TapRequest for SocketRequest {
    type Answer = SocketAnswer;
}
