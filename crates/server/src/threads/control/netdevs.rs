//! What ports are attached to: interfaces of the kernel, and devices of DPDK's.
//!
//! Used by the control thread.

use std::collections::HashSet;

use allosaur_port::buffers::Buffers;
use allosaur_port::control::PortControl;

use crate::control::{Control, DeviceCounters, FrameSpace};

/// What the ports are attached to, in order; memory ports are not.
#[derive(Debug)]
pub(super) struct Netdevs {
    ports: Vec<Option<PortControl>>,
    /// The room of each port's transmit queues, also in memory.
    buffers: Vec<Buffers>,
    /// Frames are sent and taken for others than the ports, whatever users set.
    has_emulation: bool,
    /// Of the counters of all, each once.
    names: Vec<String>,
}

impl Netdevs {
    /// What is attached to each port, and the room of its transmit queues. Emulated clients have MAC
    /// addresses of their own.
    pub(super) fn new(
        ports: Vec<Option<PortControl>>,
        buffers: Vec<Buffers>,
        has_emulation: bool,
    ) -> Netdevs {
        let mut seen = HashSet::new();
        let counters = ports.iter().flatten().flat_map(PortControl::counters);
        let names = counters.map(|(name, _)| name);
        let mut netdevs = Netdevs {
            names: names.filter(|name| seen.insert(name.clone())).collect(),
            ports,
            buffers,
            has_emulation,
        };
        if has_emulation {
            for port in 0..netdevs.ports.len() {
                netdevs.set_receive(port as u8, false, false);
            }
        }
        netdevs
    }

    /// Tells control how the links are, and the log how they change.
    pub(super) fn watch_links(&self, control: &mut Control, now_ns: u64) {
        for (port, attached) in (0..).zip(&self.ports) {
            let Some(attached) = attached else { continue };
            let link = attached.link();
            if !control.handle_link(port, link.is_up(), link.cause(), now_ns) {
                continue;
            }
            let name = attached.name();
            match link.cause() {
                "" => tracing::info!(port, "the link of {name} came up"),
                cause => tracing::warn!(port, "the link of {name} went down: {cause}"),
            }
        }
    }

    /// Lets frames to other stations through, and those to all multicast addresses.
    pub(super) fn set_receive(&mut self, port: u8, promiscuous: bool, multicast: bool) {
        let all = self.has_emulation;
        if let Some(attached) = &mut self.ports[usize::from(port)] {
            if let Err(error) = attached.set_receive(promiscuous || all, multicast || all) {
                tracing::warn!(port, %error, "the interface does not change what it receives");
            }
        }
    }
}

impl DeviceCounters for Netdevs {
    fn names(&self) -> &[String] {
        &self.names
    }

    fn read(&self, port: u8) -> Vec<(String, u64)> {
        let attached = self.ports.get(usize::from(port)).and_then(Option::as_ref);
        attached.map_or_else(Vec::new, PortControl::counters)
    }

    fn room(&self, port: u8, frame_bytes: usize) -> FrameSpace {
        let buffers = self.buffers.get(usize::from(port));
        let room = buffers.map(|buffers| buffers.space(frame_bytes));
        room.map_or(FrameSpace::default(), |room| FrameSpace {
            free: room.free,
            total: room.total,
        })
    }
}
