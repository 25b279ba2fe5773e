//! The kernel's interfaces and who uses them, put together from all that the others in this folder
//! find.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::routes::{self, Route};
use super::sessions::{self, Session};
use super::tree::Tree;
use super::{Live, pci, sockets};

/// Where the kernel shows interfaces.
const INTERFACES: &str = "sys/class/net";
/// `ARPHRD_LOOPBACK` of the kernel.
const LOOPBACK: u16 = 772;
/// `ARPHRD_ETHER` of the kernel.
const ETHERNET: u16 = 1;
/// `IFF_UP` of the kernel.
const IFF_UP: u32 = 1;

/// An interface.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InterfaceInfo {
    /// Its name.
    pub name: String,
    /// The kernel's number for it.
    pub index: i32,
    /// What made it, where that is no hardware: `veth`, `bridge`, `tun`.
    pub kind: Option<String>,
    /// Its driver, where it is a device.
    pub driver: Option<String>,
    /// The PCI device that it is on.
    pub pci: Option<String>,
    /// The part of the machine that its device belongs to.
    pub numa_node: Option<u32>,
    /// Its MAC address, as the kernel writes it.
    pub mac: String,
    /// The longest payload of Ethernet, in bytes.
    pub mtu_bytes: u32,
    /// Its speed, if it says so.
    pub speed_mbps: Option<u64>,
    /// Whether it carries Ethernet frames.
    pub is_ethernet: bool,
    /// Whether it is switched on.
    pub is_up: bool,
    /// Whether it has a link.
    pub has_link: bool,
    /// Who uses it.
    pub uses: Vec<Use>,
}

/// Who uses an interface, and for what.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Use {
    /// A user's session on this machine goes through it.
    Session,
    /// The machine's way to other networks leads through it.
    DefaultRoute,
    /// The machine has an address there that somebody gave it, in a network of so many bits.
    Address(IpAddr, u8),
    /// It is part of a bridge or a bond.
    MemberOf(String),
    /// Another interface lies on it, such as that of a VLAN.
    Below(String),
    /// An XDP program takes frames before all others; the kernel's number for it.
    Xdp(u32),
    /// A server of Allosaur's has claimed it.
    Allosaur,
    /// So many packet sockets.
    PacketSockets(usize),
}

impl InterfaceInfo {
    /// Whether it is a device, and not made by software.
    pub fn is_hardware(&self) -> bool {
        self.driver.is_some() || self.pci.is_some()
    }

    /// Whether somebody uses it so.
    pub fn has_use(&self, wanted: &Use) -> bool {
        self.uses.contains(wanted)
    }

    /// The addresses that the machine has there, with the bits of their networks: `10.0.0.1/24`.
    pub fn addresses(&self) -> Vec<String> {
        let addresses = self.uses.iter().filter_map(|one| match one {
            Use::Address(ip, bits) => Some(format!("{ip}/{bits}")),
            _ => None,
        });
        addresses.collect()
    }

    /// The bridge or bond that it is part of.
    pub fn master(&self) -> Option<&str> {
        self.uses.iter().find_map(|one| match one {
            Use::MemberOf(master) => Some(master.as_str()),
            _ => None,
        })
    }

    /// The XDP program on it.
    pub fn xdp(&self) -> Option<u32> {
        self.uses.iter().find_map(|one| match one {
            Use::Xdp(program) => Some(*program),
            _ => None,
        })
    }
}

/// All interfaces by name, without loopback.
pub(super) fn all(tree: Tree<'_>, live: &Live) -> Vec<InterfaceInfo> {
    let names = tree.names(INTERFACES);
    let mut interfaces: Vec<InterfaceInfo> =
        names.iter().filter_map(|name| read(tree, name)).collect();
    let routes = routes::all(tree);
    let sessions = sessions::all(tree, live.ssh_connection.as_deref());
    let (counts, claimed) = (
        sockets::packet_socket_counts(tree),
        sockets::claimed(tree).0,
    );
    for interface in &mut interfaces {
        add_links(interface, tree, live);
        add_network(interface, &routes, &sessions, live);
        if claimed.contains(&interface.index) {
            interface.uses.push(Use::Allosaur);
        }
        if let Some(&count) = counts.get(&interface.index) {
            interface.uses.push(Use::PacketSockets(count));
        }
    }
    inherit_uses(&mut interfaces);
    for interface in &mut interfaces {
        interface.uses.sort();
        interface.uses.dedup();
    }
    interfaces
}

fn read(tree: Tree<'_>, name: &str) -> Option<InterfaceInfo> {
    let file = |file: &str| format!("{INTERFACES}/{name}/{file}");
    // Some entries (bonding_masters) are no interfaces.
    let kind: u16 = tree.number(&file("type"))?;
    if kind == LOOPBACK {
        return None;
    }
    let flags = tree.text(&file("flags"));
    let flags = u32::from_str_radix(flags.trim_start_matches("0x"), 16).unwrap_or(0);
    let parts = tree.real_parts(&file("device"));
    let is_known = |mbps: &u64| (1..u64::from(u32::MAX)).contains(mbps);
    Some(InterfaceInfo {
        name: name.to_owned(),
        index: tree.number(&file("ifindex")).unwrap_or(0),
        driver: tree.link(&file("device/driver")),
        pci: parts.into_iter().rfind(|part| pci::is_address(part)),
        numa_node: tree.number(&file("device/numa_node")),
        mac: tree.text(&file("address")),
        mtu_bytes: tree.number(&file("mtu")).unwrap_or(0),
        speed_mbps: tree.number(&file("speed")).filter(is_known),
        is_ethernet: kind == ETHERNET,
        is_up: flags & IFF_UP != 0,
        has_link: tree.text(&file("carrier")) == "1",
        ..InterfaceInfo::default()
    })
}

/// Who is above it, what it is, and which program is on it.
fn add_links(interface: &mut InterfaceInfo, tree: Tree<'_>, live: &Live) {
    let folder = format!("{INTERFACES}/{}", interface.name);
    let master = tree.link(&format!("{folder}/master"));
    for name in tree.names(&folder) {
        let above = name.strip_prefix("upper_").map(str::to_owned);
        let above = above.filter(|above| Some(above) != master.as_ref());
        interface.uses.extend(above.map(Use::Below));
    }
    interface.uses.extend(master.map(Use::MemberOf));
    let link = live.links.iter().find(|link| link.index == interface.index);
    if let Some(link) = link {
        interface.kind.clone_from(&link.kind);
        interface.uses.extend(link.xdp.map(Use::Xdp));
    }
}

/// What the machine's own network does there.
fn add_network(interface: &mut InterfaceInfo, routes: &[Route], sessions: &[Session], live: &Live) {
    let own = live
        .addresses
        .iter()
        .filter(|address| address.index == interface.index);
    let own: Vec<_> = own.collect();
    let is_default = |route: &Route| route.is_default() && route.interface == interface.name;
    if routes.iter().any(is_default) {
        interface.uses.push(Use::DefaultRoute);
    }
    let carries = |session: &Session| {
        let named = session.interface.as_ref() == Some(&interface.name);
        let is_route = routes::lookup(routes, session.remote) == Some(&interface.name);
        named
            || own.iter().any(|address| address.ip == session.local)
            || (is_route && !session.remote.is_loopback())
    };
    if sessions.iter().any(carries) {
        interface.uses.push(Use::Session);
    }
    // The kernel gives itself link-local addresses wherever IPv6 is on.
    let given = own.into_iter().filter(|address| match address.ip {
        IpAddr::V4(_) => true,
        IpAddr::V6(ip) => !ip.is_unicast_link_local(),
    });
    let given = given.map(|address| Use::Address(address.ip, address.prefix_bits));
    interface.uses.extend(given);
}

/// What an interface carries, those below it carry too.
fn inherit_uses(interfaces: &mut [InterfaceInfo]) {
    // As many rounds as interfaces can lie on each other.
    for _ in 0..interfaces.len() {
        let carried = interfaces.iter().map(|interface| {
            let inherited = [Use::Session, Use::DefaultRoute];
            let inherited = inherited.into_iter().filter(|one| interface.has_use(one));
            (interface.name.clone(), inherited.collect::<Vec<Use>>())
        });
        let carried: BTreeMap<String, Vec<Use>> = carried.collect();
        let mut is_done = true;
        for interface in interfaces.iter_mut() {
            let above = interface.uses.iter().filter_map(|one| match one {
                Use::MemberOf(name) | Use::Below(name) => carried.get(name),
                _ => None,
            });
            let new: Vec<Use> = above.flatten().cloned().collect();
            for one in new {
                if !interface.has_use(&one) {
                    interface.uses.push(one);
                    is_done = false;
                }
            }
        }
        if is_done {
            return;
        }
    }
}
