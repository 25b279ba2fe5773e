//! Devices on the PCI bus, and what keeps DPDK from taking one.

use super::processes::{Holder, other_with};
use super::tree::Tree;
use super::{HugePages, drivers, sockets};
use crate::names::suggestion;

/// Where the kernel shows the bus.
const DEVICES: &str = "sys/bus/pci/devices";
/// How the class of network controllers begins (PCI Code and ID Assignment, base class 02h).
const NETWORK_CLASS: &str = "0x02";
/// How the class of bridges begins; they do not hinder vfio.
const BRIDGE_CLASS: &str = "0x06";

/// A device on the PCI bus.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PciDevice {
    /// Its address: `0000:03:00.0`.
    pub address: String,
    /// The numbers of who made it and of what it is: `8086:1572`.
    pub id: String,
    /// Whether it is a network card.
    pub is_network: bool,
    /// The driver that has it.
    pub driver: Option<String>,
    /// The interfaces that the kernel has on it.
    pub interfaces: Vec<String>,
    /// The part of the machine that it belongs to.
    pub numa_node: Option<u32>,
    /// Whether a server of Allosaur's has claimed it.
    pub is_claimed: bool,
    /// The process that drives it now, as far as it is known.
    pub holder: Option<Holder>,
    /// The devices that the hardware cannot keep apart from it, by address, without bridges.
    pub iommu_group: Vec<String>,
}

impl PciDevice {
    /// Why DPDK cannot take it, and the remedy; `None` when it can.
    pub fn obstacle(&self) -> Option<(String, String)> {
        let address = &self.address;
        let prepare = format!("`allosaur ports prepare {address}` prints how to give it to DPDK");
        if !self.is_network {
            let remedy = "`allosaur ports` lists the network cards that are".to_owned();
            return Some(("this PCI device is no network card".to_owned(), remedy));
        }
        let Some(driver) = &self.driver else {
            return Some((
                "no driver has it, so nobody hands it over".to_owned(),
                prepare,
            ));
        };
        if drivers::is_userspace(driver) || drivers::is_shared(driver) {
            return None;
        }
        let interfaces = match &self.interfaces[..] {
            [] => String::new(),
            names => format!(", as interface {}", names.join(", ")),
        };
        let problem = format!("the kernel's driver {driver} has it{interfaces}");
        let remedy = match self.interfaces.first() {
            Some(name) => format!("{prepare}; or leave it to the kernel and use port {name}"),
            None => prepare,
        };
        Some((problem, remedy))
    }

    /// Who drives it already, and the remedy.
    pub fn taken(&self) -> Option<(String, String)> {
        let Holder { process, name } = self.holder.as_ref()?;
        Some((
            format!("process {process} ({name}) has it already"),
            format!("End that one (kill {process}), or use another card"),
        ))
    }
}

/// The files by which programs drive a device: its group of vfio, its own file, or that of uio.
fn files(tree: Tree<'_>, folder: &str) -> Vec<String> {
    let names = |kind: &str| tree.names(&format!("{folder}/{kind}"));
    let group = tree.link(&format!("{folder}/iommu_group"));
    let groups = group.into_iter().flat_map(|group| {
        [
            format!("/dev/vfio/{group}"),
            format!("/dev/vfio/noiommu-{group}"),
        ]
    });
    let own = names("vfio-dev")
        .into_iter()
        .map(|name| format!("/dev/vfio/devices/{name}"));
    let uio = names("uio").into_iter().map(|name| format!("/dev/{name}"));
    groups.chain(own).chain(uio).collect()
}

/// Whether a text is an address in full: `0000:03:00.0`.
pub fn is_address(text: &str) -> bool {
    let shape: Vec<usize> = text.split([':', '.']).map(str::len).collect();
    let is_hex = |c: char| c.is_ascii_hexdigit() || ":.".contains(c);
    shape == [4, 2, 2, 1] && text.chars().all(is_hex) && text.as_bytes()[10] == b'.'
}

/// Whether DPDK can take a device. The error is the problem and the remedy.
pub(super) fn check(tree: Tree<'_>, address: &str) -> Result<(), (String, String)> {
    if let Some(device) = find(tree, address) {
        return device.obstacle().or(device.taken()).map_or(Ok(()), Err);
    }
    let cards: Vec<String> = all(tree).into_iter().map(|card| card.address).collect();
    let hint = suggestion(address, &cards);
    let hint = match hint.is_empty() {
        true => hint,
        false => format!(" ({hint})"),
    };
    Err((
        format!("there is no such PCI device{hint}"),
        "`allosaur ports` lists the network cards that are".to_owned(),
    ))
}

/// Whether there is memory for these devices; those that the kernel drives too make do without
/// hugepages.
pub(super) fn check_memory(tree: Tree<'_>, devices: &[String]) -> Result<(), (String, String)> {
    let needs_pages = |device: &String| {
        let address = device.split(',').next().unwrap_or_default();
        let driver = find(tree, address).and_then(|device| device.driver);
        !driver.is_some_and(|driver| drivers::is_shared(&driver))
    };
    let pages = HugePages::read(tree);
    match pages.shortage() {
        Some(shortage) if devices.iter().any(needs_pages) => {
            Err((shortage, format!("Make more of them: {}", pages.command())))
        }
        _ => Ok(()),
    }
}

/// The network cards by address.
pub(super) fn all(tree: Tree<'_>) -> Vec<PciDevice> {
    let addresses = tree.names(DEVICES);
    let devices = addresses.iter().filter_map(|address| find(tree, address));
    devices.filter(|device| device.is_network).collect()
}

/// A device by its address.
pub(super) fn find(tree: Tree<'_>, address: &str) -> Option<PciDevice> {
    let folder = format!("{DEVICES}/{address}");
    if !is_address(address) || !tree.has(&folder) {
        return None;
    }
    let text = |name: &str| tree.text(&format!("{folder}/{name}"));
    let id = |name: &str| text(name).trim_start_matches("0x").to_owned();
    let members = tree.names(&format!("{folder}/iommu_group/devices"));
    let is_bridge = |one: &String| {
        tree.text(&format!("{DEVICES}/{one}/class"))
            .starts_with(BRIDGE_CLASS)
    };
    let is_other = |one: &String| one != address && !is_bridge(one);
    let driver = tree.link(&format!("{folder}/driver"));
    let is_in_userspace = driver.as_deref().is_some_and(drivers::is_userspace);
    let files = if is_in_userspace {
        files(tree, &folder)
    } else {
        Vec::new()
    };
    Some(PciDevice {
        address: address.to_owned(),
        holder: other_with(tree, &files),
        id: format!("{}:{}", id("vendor"), id("device")),
        is_network: text("class").starts_with(NETWORK_CLASS),
        driver,
        interfaces: interfaces_of(tree, &folder),
        // -1 where the machine has no parts.
        numa_node: tree.number(&format!("{folder}/numa_node")),
        is_claimed: sockets::claimed(tree).1.iter().any(|one| one == address),
        iommu_group: members.into_iter().filter(is_other).collect(),
    })
}

/// The interfaces of a device; those of virtio are one folder deeper.
fn interfaces_of(tree: Tree<'_>, folder: &str) -> Vec<String> {
    let mut interfaces = tree.names(&format!("{folder}/net"));
    for name in tree.names(folder) {
        if name.starts_with("virtio") {
            interfaces.extend(tree.names(&format!("{folder}/{name}/net")));
        }
    }
    interfaces
}
