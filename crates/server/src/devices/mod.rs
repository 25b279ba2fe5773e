//! What this machine has for ports, in words: for `allosaur ports`, for a first configuration file,
//! and for warnings at the start.
//!
//! * [`show`]: the table, and the same as JSON.
//! * [`prepare`]: the commands that prepare one.
//!
//! It says what facts mean for who wants a port; finding them is `allosaur_netdev::inventory`. Nothing
//! here changes the machine.

pub mod prepare;
pub mod show;

use allosaur_netdev::InterfaceError;
use allosaur_netdev::inventory::{InterfaceInfo, Machine, PciDevice, Use, drivers};
use allosaur_port::PortError;
use allosaur_port::description::{DpdkDevice, PortDescription};
use allosaur_port::dpdk;
use allosaur_port::kinds::{self, kind_like};

use crate::config::begin;

/// A network card or an interface, and what the other half of it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    interface: Option<&'a InterfaceInfo>,
    device: Option<&'a PciDevice>,
}

/// A port that it could be.
#[derive(Clone, Debug, PartialEq)]
struct Choice {
    kind: &'static str,
    /// As a user writes it.
    port: String,
    /// What it would be like.
    note: &'static str,
    /// What must be done first, if anything.
    remedy: Option<String>,
}

/// Network cards first, by their place on the bus, then interfaces of software by name.
fn entries(machine: &Machine) -> Vec<Entry<'_>> {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    for device in &machine.devices {
        let interfaces: Vec<_> = machine.interfaces_of(&device.address).collect();
        if interfaces.is_empty() {
            entries.push(Entry {
                interface: None,
                device: Some(device),
            });
        }
        entries.extend(interfaces.into_iter().map(|interface| Entry {
            interface: Some(interface),
            device: Some(device),
        }));
    }
    let on_listed = |interface: &InterfaceInfo| {
        let address = interface.pci.as_deref();
        address.is_some_and(|address| machine.device(address).is_some())
    };
    let others = machine.interfaces.iter().filter(|one| !on_listed(one));
    let (hardware, software): (Vec<_>, Vec<_>) = others.partition(|one| one.is_hardware());
    entries.extend(hardware.into_iter().chain(software).map(|interface| Entry {
        interface: Some(interface),
        device: None,
    }));
    entries
}

impl Entry<'_> {
    /// The driver, or what made it.
    fn driver(&self) -> Option<&str> {
        match self.interface {
            Some(interface) => interface.driver.as_deref().or(interface.kind.as_deref()),
            None => self.device.and_then(|device| device.driver.as_deref()),
        }
    }

    fn numa_node(&self) -> Option<u32> {
        let of_interface = self.interface.and_then(|interface| interface.numa_node);
        of_interface.or(self.device.and_then(|device| device.numa_node))
    }

    /// Who uses it, in words.
    fn users(&self) -> Vec<String> {
        if let Some(interface) = self.interface {
            return users(interface);
        }
        let Some(device) = self.device else {
            return Vec::new();
        };
        let driver = device
            .driver
            .as_deref()
            .filter(|driver| drivers::is_userspace(driver));
        let handed = driver.map(|driver| format!("{driver} hands it to DPDK"));
        let claimed = device
            .is_claimed
            .then(|| "a server of Allosaur's".to_owned());
        let holder = device.holder.as_ref();
        let holder = holder.map(|holder| format!("by {} ({})", holder.name, holder.process));
        handed.into_iter().chain(claimed).chain(holder).collect()
    }

    /// The ports that it could be.
    fn choices(&self, machine: &Machine) -> Vec<Choice> {
        let mut choices = Vec::new();
        if let Some(interface) = self.interface.filter(|one| one.is_ethernet) {
            choices.extend(kernel_choices(interface));
        }
        if let Some(device) = self.device {
            choices.push(device_choice(device, machine));
        }
        choices
    }
}

/// Ports that leave the interface with the kernel.
fn kernel_choices(interface: &InterfaceInfo) -> Vec<Choice> {
    let name = &interface.name;
    let remedy = match interface.has_use(&Use::Allosaur) {
        true => Some("end the server that has it".to_owned()),
        false => (!interface.is_up).then(|| format!("ip link set {name} up")),
    };
    let driver = interface.driver.as_deref().unwrap_or_default();
    let choices = kinds::on_interfaces()
        .enumerate()
        .map(|(place, kind)| Choice {
            kind: kind.name,
            // The first kind is meant where none is named.
            port: match place {
                0 => name.clone(),
                _ => format!("{}:{name}", kind.name),
            },
            note: match (kind.may_be_zero_copy, drivers::has_zero_copy(driver)) {
                (false, _) => "",
                (true, true) => "zero copy, on a kernel that is new enough",
                (true, false) => "copies",
            },
            remedy: remedy.clone(),
        });
    choices.collect()
}

/// The port that takes the whole device.
fn device_choice(device: &PciDevice, machine: &Machine) -> Choice {
    let address = &device.address;
    let driver = device.driver.as_deref().unwrap_or_default();
    let remedy = if !dpdk::IS_BUILT {
        Some("a build with DPDK".to_owned())
    } else if device.is_claimed {
        Some("end the server that has it".to_owned())
    } else if let Some(holder) = &device.holder {
        Some(format!("kill {}", holder.process))
    } else if device.obstacle().is_some() || !machine.hugepages.suffice() {
        Some(format!("allosaur ports prepare {address}"))
    } else {
        None
    };
    Choice {
        kind: kinds::DPDK.name,
        port: format!("pci:{address}"),
        note: match drivers::is_shared(driver) {
            true => "the kernel keeps it too",
            false => "",
        },
        remedy,
    }
}

/// Who uses an interface, in words.
fn users(interface: &InterfaceInfo) -> Vec<String> {
    let mut users = Vec::new();
    for one in &interface.uses {
        users.push(match one {
            Use::Session => "your own session".to_owned(),
            Use::DefaultRoute => "the kernel: default route".to_owned(),
            Use::Address(..) => continue,
            Use::MemberOf(master) => format!("the kernel: part of {master}"),
            Use::Below(upper) => format!("the kernel: {upper} lies on it"),
            Use::Xdp(program) => format!("XDP program {program}"),
            Use::Allosaur => "a server of Allosaur's".to_owned(),
            Use::PacketSockets(1) => "a packet socket".to_owned(),
            Use::PacketSockets(count) => format!("{count} packet sockets"),
        });
    }
    let addresses = interface.addresses();
    if !addresses.is_empty() {
        let first = users
            .iter()
            .take_while(|user| user.as_str() == "your own session")
            .count();
        users.insert(
            first,
            format!("the kernel: address {}", addresses.join(", ")),
        );
    }
    users
}

/// The interfaces as a first configuration file wants to know them.
pub fn for_first_file(machine: &Machine) -> Vec<begin::Interface> {
    let interfaces = machine.interfaces.iter().filter(|one| one.is_ethernet);
    let known = interfaces.map(|interface| begin::Interface {
        name: interface.name.clone(),
        driver: interface.driver.clone().or(interface.kind.clone()),
        speed_mbps: interface.speed_mbps,
        is_up: interface.is_up,
        used: reason_to_leave(interface),
    });
    known.collect()
}

/// Why a port on an interface would disturb, and the remedy.
fn reason_to_leave(interface: &InterfaceInfo) -> Option<String> {
    let is = |one: Use| interface.has_use(&one);
    if is(Use::Session) {
        return Some("your own session goes through it: leave it alone".to_owned());
    }
    if is(Use::DefaultRoute) {
        return Some("the machine's own way out: leave it alone".to_owned());
    }
    if !interface.addresses().is_empty() {
        let why = "the machine has an address there: remove it first, or leave it alone";
        return Some(why.to_owned());
    }
    if let Some(master) = interface.master() {
        return Some(format!("part of {master}: leave it alone"));
    }
    is(Use::Allosaur).then(|| "another server of Allosaur's has it".to_owned())
}

/// What stands in the way of a port on this machine now, and what to warn of; each is one line with
/// its remedy.
pub fn concerns(machine: &Machine, port: &PortDescription) -> Vec<String> {
    let mut concerns = Vec::new();
    if let Some(name) = port.interface() {
        match machine.interface(name) {
            None if name == "lo" => {}
            None => {
                let meant = kind_like(name).map(|kind| format!(" (did you mean {kind}?)"));
                let meant = meant.unwrap_or_default();
                concerns.push(format!(
                    "there is no interface {name} on this machine{meant}. `allosaur ports` lists those \
                     that are"
                ));
            }
            Some(interface) if !interface.is_up => concerns.push(format!(
                "interface {name} is switched off. Switch it on: ip link set {name} up"
            )),
            Some(_) => {}
        }
        concerns.extend(refusal(machine, port).map(|error| error.to_string()));
        concerns.extend(warnings(machine, port));
    }
    let address = port.device().filter(|device| device.pci().is_some());
    if let Some(address) = address.map(DpdkDevice::name) {
        let obstacle = match machine.device(address) {
            Some(device) => device.obstacle().or(device.taken()),
            None => Some((
                format!("there is no network card at {address} on this machine"),
                "`allosaur ports` lists those that are".to_owned(),
            )),
        };
        concerns.extend(obstacle.map(|(problem, remedy)| format!("{problem}. {remedy}")));
        let driver = machine
            .device(address)
            .and_then(|device| device.driver.as_deref());
        let shortage = machine
            .hugepages
            .shortage()
            .filter(|_| !driver.is_some_and(drivers::is_shared));
        concerns.extend(
            shortage.map(|text| format!("{text}. Make more: {}", machine.hugepages.command())),
        );
    }
    concerns
}

/// Why there must be no such port, if so: one that takes all that arrives would cut the user off.
pub fn refusal(machine: &Machine, port: &PortDescription) -> Option<PortError> {
    let (name, kind) = (port.interface()?, port.kind());
    let carries = machine.interface(name)?.has_use(&Use::Session);
    (carries && kind.takes_all).then(|| {
        let title = kind.title;
        let problem =
            format!("it carries your own session, and an {title} port takes all that arrives");
        let remedy = "Use another interface: `allosaur ports` lists them";
        PortError::Interface(InterfaceError::unusable(name, problem, remedy))
    })
}

/// What to warn of before a port on an interface is used; each is one line with its remedy.
pub fn warnings(machine: &Machine, port: &PortDescription) -> Vec<String> {
    let Some(interface) = port.interface().and_then(|name| machine.interface(name)) else {
        return Vec::new();
    };
    let takes_all = port.kind().takes_all;
    let own = own_network(interface, takes_all);
    let member = interface.master().map(|master| {
        let name = &interface.name;
        let effect = match takes_all {
            true => format!("{master} gets nothing from it any more"),
            false => format!("{master} takes what arrives there too"),
        };
        format!("interface {name} is part of {master}: {effect}. Take it out: ip link set {name} nomaster")
    });
    let program = interface.xdp().filter(|_| !takes_all).map(|program| {
        let name = &interface.name;
        format!(
            "interface {name} has XDP program {program}: what that takes does not arrive here. \
             Remove it: ip link set {name} xdp off"
        )
    });
    own.into_iter().chain(member).chain(program).collect()
}

/// A warning of the machine's own network.
fn own_network(interface: &InterfaceInfo, takes_all: bool) -> Option<String> {
    let name = &interface.name;
    let effect = match takes_all {
        true => "the port takes all that arrives, and the machine hears nothing there any more",
        false => "the kernel answers what arrives, and its own packets are counted as received",
    };
    let another = "Use another interface: `allosaur ports` lists them";
    let addresses = interface.addresses().join(", ");
    if interface.has_use(&Use::Session) {
        Some(format!(
            "interface {name} carries your own session: traffic may cut it off, and its packets are \
             counted as received. {another}"
        ))
    } else if interface.has_use(&Use::DefaultRoute) {
        Some(format!(
            "interface {name} has the machine's default route: {effect}. {another}"
        ))
    } else if !addresses.is_empty() {
        Some(format!(
            "interface {name} has the machine's address {addresses}: {effect}. Remove it: \
             ip address flush dev {name}"
        ))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The only interface of a machine, with these users.
    fn machine(uses: Vec<Use>) -> Machine {
        let eth0 = InterfaceInfo {
            name: "eth0".to_owned(),
            is_up: true,
            is_ethernet: true,
            uses,
            ..InterfaceInfo::default()
        };
        Machine {
            interfaces: vec![eth0],
            ..Machine::default()
        }
    }

    fn address() -> Use {
        Use::Address("10.0.0.7".parse().expect("an address"), 24)
    }

    fn port(text: &str) -> PortDescription {
        text.parse().expect("well formed")
    }

    fn warned(machine: &Machine, text: &str) -> Vec<String> {
        warnings(machine, &port(text))
    }

    #[test]
    fn a_port_that_takes_all_spares_the_session() {
        let carrying = machine(vec![Use::Session, address()]);
        let error = refusal(&carrying, &port("af_xdp:eth0")).expect("never");
        let text = error.to_string();
        assert!(
            text.contains("'eth0'") && text.contains("your own session"),
            "{text}"
        );
        assert_eq!(refusal(&carrying, &port("eth0")), None);
        assert_eq!(refusal(&carrying, &port("af_xdp:eth1")), None);
        let addressed = machine(vec![address(), Use::Xdp(3)]);
        assert_eq!(refusal(&addressed, &port("af_xdp:eth0")), None);
        let found = warned(&addressed, "af_xdp:eth0");
        assert!(
            found.len() == 1 && found[0].contains("hears nothing"),
            "{found:?}"
        );
    }

    #[test]
    fn who_disturbs_a_port_is_named_with_the_remedy() {
        for (uses, words) in [
            (vec![], &[][..]),
            (
                vec![Use::PacketSockets(3), Use::Below("eth0.7".to_owned())],
                &[],
            ),
            (
                vec![address()],
                &["10.0.0.7/24", "ip address flush dev eth0"],
            ),
            (
                vec![Use::DefaultRoute, address()],
                &["default route", "Use another interface"],
            ),
            (
                vec![Use::Session, Use::DefaultRoute],
                &["your own session", "Use another interface"],
            ),
            (
                vec![Use::MemberOf("br0".to_owned())],
                &["part of br0", "ip link set eth0 nomaster"],
            ),
            (
                vec![Use::Xdp(9)],
                &["XDP program 9", "ip link set eth0 xdp off"],
            ),
        ] {
            let found = warned(&machine(uses.clone()), "eth0");
            assert_eq!(found.len(), usize::from(!words.is_empty()), "{found:?}");
            assert!(
                words.iter().all(|word| found[0].contains(word)),
                "{found:?}"
            );
            assert!(found.iter().all(|line| !line.contains('\n')), "{found:?}");
            let machine = machine(uses);
            let ours = begin::text(&for_first_file(&machine), 32);
            let is_port = ours.contains("  - af_packet:eth0");
            let blocking = ["10.0.0.7", "route", "session", "br0"];
            let is_blocked = words
                .iter()
                .any(|word| blocking.iter().any(|b| word.contains(b)));
            assert_eq!(is_port, !is_blocked, "{ours}");
        }
        assert_eq!(
            warned(&machine(vec![address()]), "eth7"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn what_is_not_as_a_file_says_is_a_concern() {
        let mut machine = machine(vec![]);
        let concerns =
            |machine: &Machine, port: &str| super::concerns(machine, &self::port(port)).join("; ");
        assert_eq!(concerns(&machine, "eth0"), "");
        assert_eq!(concerns(&machine, "memory"), "");
        assert_eq!(concerns(&machine, "lo"), "");
        assert!(concerns(&machine, "eth1").contains("no interface eth1"));
        machine.interfaces[0].is_up = false;
        assert!(concerns(&machine, "eth0").contains("ip link set eth0 up"));
        let text = concerns(&machine, "pci:0000:03:00.0");
        assert!(
            text.contains("no network card at 0000:03:00.0") && text.contains("hugepages"),
            "{text}"
        );
    }
}
