//! What a port is attached to, for who decides about it.

use std::io;

use allosaur_netdev::interface::{InterfaceControl, LinkState};

use crate::dpdk::DpdkControl;

/// What a port is attached to, for who decides about it.
#[derive(Debug)]
pub enum PortControl {
    /// An interface.
    Interface(InterfaceControl),
    /// A device of DPDK's.
    Dpdk(DpdkControl),
}

impl PortControl {
    /// How its link is.
    pub fn link(&self) -> LinkState {
        match self {
            PortControl::Interface(interface) => interface.link(),
            PortControl::Dpdk(device) if device.has_link() => LinkState::Up,
            PortControl::Dpdk(_) => LinkState::NoCarrier,
        }
    }

    /// The MTU of an interface now, while it is there.
    pub fn mtu_bytes(&self) -> Option<usize> {
        match self {
            PortControl::Interface(interface) => interface.mtu_bytes(),
            PortControl::Dpdk(_) => None,
        }
    }

    /// What it is called: the name of an interface.
    pub fn name(&self) -> &str {
        match self {
            PortControl::Interface(interface) => interface.name(),
            PortControl::Dpdk(_) => "a device of DPDK's",
        }
    }

    /// All that is counted of it by those who know it best, the kernel or its driver, by their names.
    pub fn counters(&self) -> Vec<(String, u64)> {
        match self {
            PortControl::Interface(interface) => interface.counters(),
            PortControl::Dpdk(device) => device.counters(),
        }
    }

    /// Lets frames to other stations through, and those to all multicast addresses.
    pub fn set_receive(&mut self, promiscuous: bool, multicast: bool) -> io::Result<()> {
        match self {
            PortControl::Interface(interface) => interface.set_receive(promiscuous, multicast),
            PortControl::Dpdk(device) => device.set_receive(promiscuous, multicast),
        }
    }
}
