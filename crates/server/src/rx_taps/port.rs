//! How ports receive, which all taps share.

use allosaur_engine::encapsulation::Tunnel;
use allosaur_engine::flow_stats::VxlanPorts;
use allosaur_engine::transmit::PortIndex;

use super::mac_filter::MacFilter;
use super::service::ServiceMode;
use super::tap_request::TapRequest;

/// What can be asked about a port.
#[derive(Debug)]
pub enum PortRequest {
    /// Tell what watches a port.
    State(PortIndex),
    /// Which frames of a port are shown to watchers.
    SetService {
        /// The port.
        port: PortIndex,
        /// Its mode.
        mode: ServiceMode,
    },
    /// What the receive thread must know of a port's link and frames.
    SetReception {
        /// The port.
        port: PortIndex,
        /// All of it.
        reception: Reception,
    },
}

/// What is answered about a port.
#[derive(Debug, PartialEq)]
pub enum PortAnswer {
    /// It is done.
    Done,
    /// What watches a port.
    State(PortState),
}

impl TapRequest for PortRequest {
    type Answer = PortAnswer;
}

/// What the receive thread must know of a port's link and frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reception {
    /// The link is up.
    pub link_up: bool,
    /// The UDP ports that carry VXLAN.
    pub vxlan: VxlanPorts,
    /// The tunnel that its streams are in.
    pub tunnel: Option<Tunnel>,
    /// Which frames are for watchers, not for flows.
    pub service: ServiceMode,
    /// With flows: which frames the port takes at all.
    pub mac_filter: MacFilter,
}

impl Default for Reception {
    fn default() -> Self {
        Reception {
            link_up: true,
            vxlan: VxlanPorts::STANDARD,
            tunnel: None,
            service: ServiceMode::Off,
            mac_filter: MacFilter::Any,
        }
    }
}

/// What watches a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PortState {
    /// Frames that its receive queue keeps at most, and that it has; none without a queue.
    pub queue: Option<(u32, u64)>,
    /// Address and filter of the socket that it is joined to.
    pub wire: Option<(String, String)>,
    /// The MAC address of the gateway that it was told to find.
    pub gateway_mac: Option<[u8; 6]>,
}
