//! What there is on this machine that could be a port, and who uses it.
//!
//! * [`InterfaceInfo`]: the kernel's interfaces.
//! * [`PciDevice`]: network cards on the PCI bus, also those that the kernel does not drive.
//! * [`HugePages`]: the memory that DPDK wants.
//! * `routes`, `sessions`, `sockets`, `processes`: who uses them.
//! * [`drivers`]: what is known of drivers.
//!
//! Looking changes nothing. What to say about what is found is the server's. All but what
//! [`netlink`] tells is read of files below a root, so tests bring a tree of their own.

pub mod drivers;
mod hugepages;
mod interface;
mod pci;
mod processes;
mod routes;
mod sessions;
mod sockets;
#[cfg(test)]
mod tests;
mod tree;

use std::path::Path;

use crate::netlink;
use tree::Tree;

pub use hugepages::{HugePages, MEMORY_MIB_MIN};
pub use interface::{InterfaceInfo, Use};
pub use pci::{PciDevice, is_address};
pub use processes::Holder;
pub use sessions::Session;

/// A machine, as it was when somebody looked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machine {
    /// The kernel's interfaces by name, without loopback.
    pub interfaces: Vec<InterfaceInfo>,
    /// Network cards on the PCI bus by address.
    pub devices: Vec<PciDevice>,
    /// Its hugepages.
    pub hugepages: HugePages,
    /// Whether the hardware keeps devices within the memory that they were given.
    pub has_iommu: bool,
    /// Whether `dpdk-devbind.py` is installed.
    pub has_devbind: bool,
}

/// What no file tells.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Live {
    /// The addresses of interfaces.
    pub addresses: Vec<netlink::Address>,
    /// Kinds of interfaces, and the programs on them.
    pub links: Vec<netlink::Link>,
    /// The variable SSH_CONNECTION of this process.
    pub ssh_connection: Option<String>,
}

impl Live {
    /// Asks the system. What it does not tell is left out.
    pub fn ask() -> Live {
        Live {
            addresses: netlink::addresses().unwrap_or_default(),
            links: netlink::links().unwrap_or_default(),
            ssh_connection: std::env::var("SSH_CONNECTION").ok(),
        }
    }
}

/// Where `dpdk-devbind.py` may be.
const DEVBIND: [&str; 4] = ["usr/bin", "usr/sbin", "usr/local/bin", "usr/local/sbin"];

impl Machine {
    /// Looks at this machine.
    pub fn look() -> Machine {
        Machine::look_at(Path::new("/"), &Live::ask())
    }

    /// Looks at the machine whose `/sys` and `/proc` lie below `root`.
    pub fn look_at(root: &Path, live: &Live) -> Machine {
        let tree = Tree(root);
        let devbind = |folder: &str| tree.has(&format!("{folder}/dpdk-devbind.py"));
        Machine {
            interfaces: interface::all(tree, live),
            devices: pci::all(tree),
            hugepages: HugePages::read(tree),
            has_iommu: !tree.names("sys/kernel/iommu_groups").is_empty(),
            has_devbind: DEVBIND.iter().copied().any(devbind),
        }
    }

    /// An interface by its name.
    pub fn interface(&self, name: &str) -> Option<&InterfaceInfo> {
        self.interfaces.iter().find(|one| one.name == name)
    }

    /// A network card by its address.
    pub fn device(&self, address: &str) -> Option<&PciDevice> {
        self.devices.iter().find(|one| one.address == address)
    }

    /// The interfaces of a network card.
    pub fn interfaces_of(&self, address: &str) -> impl Iterator<Item = &InterfaceInfo> {
        let is_on = move |one: &&InterfaceInfo| one.pci.as_deref() == Some(address);
        self.interfaces.iter().filter(is_on)
    }
}

/// Who has packet sockets, by the index of the interface: processes of which this one may know.
pub fn holders() -> Vec<(i32, Holder)> {
    sockets::holders(Tree(Path::new("/")))
}

/// Whether DPDK can take a device of this machine.
///
/// # Errors
///
/// The problem and the remedy.
pub fn check_device(address: &str) -> Result<(), (String, String)> {
    let tree = Tree(Path::new("/"));
    pci::check(tree, address)
}

/// Whether this machine has memory for these PCI devices, as DPDK needs it. Devices are as DPDK
/// takes them: arguments may follow the address.
///
/// # Errors
///
/// The problem and the remedy.
pub fn check_memory(devices: &[String]) -> Result<(), (String, String)> {
    let tree = Tree(Path::new("/"));
    pci::check_memory(tree, devices)
}

/// The hugepages of this machine.
pub fn hugepages() -> HugePages {
    HugePages::read(Tree(Path::new("/")))
}
