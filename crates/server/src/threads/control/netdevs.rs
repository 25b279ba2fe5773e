//! What ports are attached to: interfaces of the kernel, and devices of DPDK's.
//!
//! Used by the control thread.

use std::collections::HashSet;

use allosaur_api::commands::ports::MtuChange;
use allosaur_port::buffers::Buffers;
use allosaur_port::control::PortControl;

use crate::control::{Control, DeviceCounters, FrameSpace};

/// What the ports are attached to, in order; memory ports are not.
#[derive(Debug)]
pub(super) struct Netdevs {
    ports: Vec<Option<PortControl>>,
    /// The MTU of each port's interface when the server started.
    mtus: Vec<Option<usize>>,
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
            mtus: ports.iter().map(mtu_bytes).collect(),
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
            self.watch_mtu(port, control, now_ns);
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

    /// Tells control and the log when the MTU of a port's interface changes.
    fn watch_mtu(&self, port: u8, control: &mut Control, now_ns: u64) {
        let place = usize::from(port);
        let (Some(at_start), Some(now)) = (self.mtus[place], mtu_bytes(&self.ports[place])) else {
            return;
        };
        let change = (now != at_start).then_some(MtuChange { now, at_start });
        if control.handle_mtu(port, change, now_ns) {
            tracing::warn!(port, now, at_start, "the MTU of the interface was changed");
        }
    }

    /// What is wrong with ports for as long as the server runs.
    pub(super) fn problems(&self) -> Vec<String> {
        let told = |(port, attached): (usize, &Option<PortControl>)| {
            let attached = attached.as_ref()?;
            let link = attached.link();
            let (name, cause) = (attached.name(), link.cause());
            let text =
                format!("port {port} ({name}): {cause}; restart the server when it is there");
            link.is_final().then_some(text)
        };
        self.ports.iter().enumerate().filter_map(told).collect()
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

fn mtu_bytes(port: &Option<PortControl>) -> Option<usize> {
    port.as_ref().and_then(PortControl::mtu_bytes)
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
