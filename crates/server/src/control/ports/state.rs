//! The state of ports that only their commands need.

use allosaur_engine::time::Nanos;

use crate::control::awaited::Awaited;

/// Ports and who owns them, as commands change them. What they are is in the core.
#[derive(Debug)]
pub(in crate::control) struct Ports {
    pub(super) awaited: Awaited<Ports>,
    /// When leases were looked at last.
    pub(super) ticked_ns: Nanos,
    /// Of which ports the receive thread was asked for the MAC address of the gateway.
    pub(super) asks_for_gateway: Vec<bool>,
}

impl Ports {
    /// So many ports.
    pub(in crate::control) fn new(ports: usize, now_ns: Nanos) -> Ports {
        Ports {
            awaited: Awaited::default(),
            ticked_ns: now_ns,
            asks_for_gateway: vec![false; ports],
        }
    }
}
