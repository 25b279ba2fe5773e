//! Ports on DPDK's drivers: network cards on the PCI bus, devices without hardware, and pairs of these that
//! rings join.
//!
//! Built only with the feature `dpdk`; `absent.rs` stands here without it.

mod device;
mod distribution;
mod eal;
mod ffi;
mod leftover;
mod payloads;
mod pool;
mod receive;
mod rings;
mod short;
#[cfg(test)]
mod tests;
mod transmit;

use std::io;
use std::sync::Arc;

use crate::description::DpdkDevice;
use crate::distribution::RxDistribution;
use crate::{Capabilities, PortError, QueueCounts};
use device::Device;
use eal::Failure;

pub use receive::DpdkRx;
pub use transmit::{DpdkTx, FRAMES_MAX};

/// The line rate of a device that does not tell its speed, in bits per second.
const NOMINAL_RATE_BPS: f64 = 100e9;

/// Whether this build has DPDK ports.
pub const IS_BUILT: bool = true;

/// A port on a device of DPDK's.
#[derive(Debug)]
pub struct DpdkPort {
    /// One for each thread that sends.
    pub tx: Vec<DpdkTx>,
    /// One, or as many as wanted where the device shares out by flow what arrives.
    pub rx: Vec<DpdkRx>,
    /// Which of them a frame arrives at.
    pub distribution: RxDistribution,
    /// For who decides about the device.
    pub control: DpdkControl,
    /// Its address, if it has any.
    pub mac: Option<[u8; 6]>,
    /// How it works, in words.
    pub details: String,
    capabilities: Capabilities,
}

impl DpdkPort {
    /// Opens a device, with so many transmit queues: those that the device has, shared by several
    /// threads where they are fewer. The first call of a process starts DPDK, and allows it the PCI
    /// devices `pci`, all that this process will open.
    ///
    /// # Errors
    ///
    /// Names the device, what is wrong, and the remedy: when DPDK does not start, when it cannot
    /// make or set up the device, or when memory is short.
    pub fn open(
        description: &DpdkDevice,
        pci: &[String],
        queues: QueueCounts,
    ) -> Result<DpdkPort, PortError> {
        let refused = |(problem, remedy)| PortError::Dpdk {
            device: description.to_string(),
            problem,
            remedy,
        };
        let device = Device::open(description, pci, queues).map_err(refused)?;
        DpdkPort::of(device, queues).map_err(refused)
    }

    /// Opens two devices of net_ring that are joined by rings: what the one sends the other receives,
    /// without a copy. Each transmit queue of a port is a receive queue of the other, and its receive
    /// queues are by turns those. Past 16 transmit queues threads share them, and there is one receive
    /// queue. `pci` is as in [`open`](DpdkPort::open).
    ///
    /// # Errors
    ///
    /// As [`open`](DpdkPort::open); also when this process has rings of this name.
    pub fn open_pair(
        name: &str,
        pci: &[String],
        queues: [QueueCounts; 2],
    ) -> Result<[DpdkPort; 2], PortError> {
        let refused = |(problem, remedy)| PortError::Dpdk {
            device: format!("ring:{name}"),
            problem,
            remedy,
        };
        let [one, other] = Device::open_pair(name, pci, queues).map_err(refused)?;
        let one = DpdkPort::of(one, queues[0]).map_err(refused)?;
        let other = DpdkPort::of(other, queues[1]).map_err(refused)?;
        Ok([one, other])
    }

    /// The port on a device that runs.
    fn of(device: Device, queues: QueueCounts) -> Result<DpdkPort, Failure> {
        let device = Arc::new(device);
        let tx = (0..queues.tx).map(|thread| DpdkTx::new(Arc::clone(&device), thread));
        let tx: Option<Vec<DpdkTx>> = tx.collect();
        Ok(DpdkPort {
            tx: tx.ok_or_else(device::no_memory)?,
            rx: DpdkRx::all(&device),
            distribution: distribution::of_device(&device),
            mac: device.mac(),
            details: device.in_words(),
            capabilities: Capabilities {
                line_rate_bps: device.link().0.unwrap_or(NOMINAL_RATE_BPS),
                frame_bytes_max: device.untagged_bytes_max(),
            },
            control: DpdkControl {
                device,
                promiscuous: false,
                multicast: false,
            },
        })
    }
}

impl crate::Port for DpdkPort {
    type Tx = DpdkTx;
    type Rx = DpdkRx;

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn into_queues(self) -> (Vec<DpdkTx>, Vec<DpdkRx>) {
        (self.tx, self.rx)
    }
}

/// A device, for who decides about it.
#[derive(Debug)]
pub struct DpdkControl {
    device: Arc<Device>,
    promiscuous: bool,
    multicast: bool,
}

impl DpdkControl {
    /// Whether the device has a link.
    pub fn has_link(&self) -> bool {
        self.device.link().1
    }

    /// All that the driver counts (DPDK's extended statistics), by its names.
    pub fn counters(&self) -> Vec<(String, u64)> {
        self.device.counters()
    }

    /// Lets frames to other stations through, and those to all multicast addresses.
    pub fn set_receive(&mut self, promiscuous: bool, multicast: bool) -> io::Result<()> {
        // Not every driver knows both: what is as it shall be is left alone.
        if self.promiscuous != promiscuous {
            let set = self.device.set_promiscuous(promiscuous);
            set.map_err(io::Error::other)?;
            self.promiscuous = promiscuous;
        }
        if self.multicast != multicast {
            let set = self.device.set_multicast(multicast);
            set.map_err(io::Error::other)?;
            self.multicast = multicast;
        }
        Ok(())
    }
}
