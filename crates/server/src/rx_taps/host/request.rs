//! What can be asked of ports as hosts.

use allosaur_engine::host::HostSettings;
use allosaur_engine::transmit::PortIndex;

use crate::rx_taps::tap_request::TapRequest;

/// What can be asked of ports as hosts.
#[derive(Debug)]
pub enum HostRequest {
    /// Who a port is on its network.
    Set {
        /// The port.
        port: PortIndex,
        /// Its addresses.
        settings: HostSettings,
    },
}

/// What hosts answer.
#[derive(Debug, PartialEq)]
pub enum HostAnswer {
    /// It is done.
    Done,
}

impl TapRequest for HostRequest {
    type Answer = HostAnswer;
}
