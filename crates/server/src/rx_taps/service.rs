//! Service mode: which of the frames that a port receives are shown to watchers.

use allosaur_packet::frame::{self, Network, Transport};

/// The port of the Border Gateway Protocol (RFC 4271).
const BGP_PORT: u16 = 179;
/// The ports of DHCP (RFC 2131).
const DHCP_PORTS: [u16; 2] = [67, 68];
/// The ports of DHCPv6 (RFC 8415).
const DHCPV6_PORTS: [u16; 2] = [546, 547];
/// The port of multicast DNS (RFC 6762).
const MDNS_PORT: u16 = 5353;

/// Ports from here on are for services beside flows.
const HIGH_PORT: u16 = 0xff00;

/// Classes of frames, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServiceMask(pub u8);

impl ServiceMask {
    /// Neither TCP nor UDP.
    pub const NO_TCP_UDP: u8 = 1;
    /// BGP.
    pub const BGP: u8 = 2;
    /// DHCP, of IPv4 and IPv6.
    pub const DHCP: u8 = 4;
    /// All of TCP and UDP.
    pub const TRANSPORT: u8 = 8;
    /// Multicast DNS.
    pub const MDNS: u8 = 16;
    /// TCP and UDP on a port from 0xff00 on: what [`TRANSPORT`](ServiceMask::TRANSPORT) means
    /// beside flows.
    pub const HIGH_PORTS: u8 = 32;

    /// The mask of a server that has flows: its class of transport are high ports only.
    #[must_use]
    pub fn beside_flows(self) -> ServiceMask {
        let others = self.0 & !(ServiceMask::TRANSPORT | ServiceMask::HIGH_PORTS);
        match self.0 & ServiceMask::TRANSPORT {
            0 => ServiceMask(others),
            _ => ServiceMask(others | ServiceMask::HIGH_PORTS),
        }
    }

    /// Whether it has the class of a frame.
    pub fn takes(self, frame: &[u8]) -> bool {
        self.0 & class_of(frame) != 0
    }
}

/// The service mode of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServiceMode {
    /// Ordinary traffic. Watchers see all frames; the port answers no echo requests.
    #[default]
    Off,
    /// Watchers see all frames, and the port answers echo requests.
    On,
    /// As [`ServiceMode::On`], but watchers see only some classes of frames.
    Filtered(ServiceMask),
}

impl ServiceMode {
    /// Whether watchers see a frame.
    pub fn shows(self, frame: &[u8]) -> bool {
        match self {
            ServiceMode::Off | ServiceMode::On => true,
            ServiceMode::Filtered(mask) => mask.takes(frame),
        }
    }

    /// Whether a frame is for watchers alone, and no flow may have it.
    #[inline]
    pub fn redirects(self, frame: &[u8]) -> bool {
        match self {
            ServiceMode::Off | ServiceMode::On => false,
            ServiceMode::Filtered(mask) => mask.takes(frame),
        }
    }

    /// Whether only some classes of frames are for watchers.
    pub fn is_filtered(self) -> bool {
        matches!(self, ServiceMode::Filtered(_))
    }

    /// Whether it is on, filtered or not.
    pub fn is_on(self) -> bool {
        self != ServiceMode::Off
    }
}

fn class_of(frame: &[u8]) -> u8 {
    let layout = frame::parse(frame);
    let is_ip = matches!(layout.network, Network::Ipv4 | Network::Ipv6);
    let is_tcp = match layout.transport {
        Transport::Tcp if is_ip => true,
        Transport::Udp if is_ip => false,
        _ => return ServiceMask::NO_TCP_UDP,
    };
    let ports = frame.get(usize::from(layout.transport_offset)..);
    let port =
        |at: usize| ports.and_then(|b| Some(u16::from_be_bytes([*b.get(at)?, *b.get(at + 1)?])));
    let has = |port_number: u16| port(0) == Some(port_number) || port(2) == Some(port_number);
    let mut class = ServiceMask::TRANSPORT;
    if (0..=2)
        .step_by(2)
        .any(|at| port(at).is_some_and(|port| port >= HIGH_PORT))
    {
        class |= ServiceMask::HIGH_PORTS;
    }
    if is_tcp {
        if has(BGP_PORT) {
            class |= ServiceMask::BGP;
        }
        return class;
    }
    if DHCP_PORTS.into_iter().chain(DHCPV6_PORTS).any(has) {
        class |= ServiceMask::DHCP;
    }
    if has(MDNS_PORT) {
        class |= ServiceMask::MDNS;
    }
    class
}
