//! `allosaur ports prepare`: the commands that prepare a port.

use std::fmt::Write;

use allosaur_netdev::inventory::{
    HugePages, InterfaceInfo, MEMORY_MIB_MIN, Machine, PciDevice, Use, drivers,
};
use allosaur_netdev::names::suggestion;
use allosaur_port::description::{DpdkDevice, PortDescription};
use allosaur_port::dpdk;
use allosaur_port::kinds;

use crate::config::names;

/// The driver that hands devices over, unless the user names another.
const DRIVER: &str = "vfio-pci";
/// Where the kernel shows PCI devices.
const PCI: &str = "/sys/bus/pci/devices";

/// What a user asks for.
#[derive(Clone, Debug)]
pub struct Wish<'a> {
    /// A PCI address, or an interface.
    pub target: &'a str,
    /// The driver that shall hand the device to DPDK; with it an interface means its device.
    pub driver: Option<&'a str>,
    /// Whether the default route may go.
    pub anyway: bool,
}

/// The commands, with words for people in comments.
///
/// # Errors
///
/// When there is no such thing, or when somebody needs it as it is; with the remedy.
pub fn prepare(machine: &Machine, wish: &Wish<'_>) -> Result<String, String> {
    if let Some(driver) = wish.driver.filter(|driver| !drivers::is_userspace(driver)) {
        let known = drivers::USERSPACE.join(", ");
        return Err(format!(
            "--driver '{driver:.40}' hands no device over. Write one of: {known}"
        ));
    }
    if let Some(address) = address_of(wish.target) {
        return for_dpdk(machine, find_device(machine, &address)?, wish);
    }
    let interface = find_interface(machine, wish.target)?;
    match (wish.driver, &interface.pci) {
        (None, _) => for_kernel(interface, wish),
        (Some(_), Some(address)) => for_dpdk(machine, find_device(machine, address)?, wish),
        (Some(_), None) => Err(format!(
            "interface '{}' is on no PCI device, so DPDK cannot take it whole. Leave --driver out to \
             use it as the port {0}",
            interface.name
        )),
    }
}

/// The PCI address that is meant, in full, if it is one: `pci:` and the domain may be left out.
fn address_of(target: &str) -> Option<String> {
    let in_full = match target.starts_with("pci:") || names::is_pci_address(target) {
        true => format!("pci:{}", target.trim_start_matches("pci:")),
        false => return None,
    };
    let description: Option<PortDescription> = in_full.parse().ok();
    let device = description.as_ref().and_then(PortDescription::device);
    // What is no address is left as it is: the search then says so.
    let name = device.map_or(&in_full[4..], DpdkDevice::name);
    Some(name.to_owned())
}

fn find_device<'a>(machine: &'a Machine, address: &str) -> Result<&'a PciDevice, String> {
    machine.device(address).ok_or_else(|| {
        let addresses = machine.devices.iter().map(|device| device.address.clone());
        let hint = suggestion(address, &addresses.collect::<Vec<_>>());
        not_there(
            &format!("network card at PCI address '{address:.40}'"),
            &hint,
        )
    })
}

fn find_interface<'a>(machine: &'a Machine, name: &str) -> Result<&'a InterfaceInfo, String> {
    machine.interface(name).ok_or_else(|| {
        let names = machine.interfaces.iter().map(|one| one.name.clone());
        let hint = suggestion(name, &names.collect::<Vec<_>>());
        not_there(&format!("interface '{name:.40}'"), &hint)
    })
}

fn not_there(what: &str, hint: &str) -> String {
    let hint = if hint.is_empty() {
        String::new()
    } else {
        format!(" ({hint})")
    };
    format!("there is no {what}{hint}. `allosaur ports` lists all that there are")
}

/// Refuses what would cut somebody off.
fn check_spared(interface: &InterfaceInfo, anyway: bool) -> Result<(), String> {
    let name = &interface.name;
    if interface.has_use(&Use::Session) {
        return Err(format!(
            "interface '{name}' carries your own session, which these commands would cut off. Use \
             another interface, or come in by another way (a console) first"
        ));
    }
    if interface.has_use(&Use::Allosaur) {
        return Err(format!(
            "a server of Allosaur's has interface '{name}'. End that server first"
        ));
    }
    if interface.has_use(&Use::DefaultRoute) && !anyway {
        return Err(format!(
            "interface '{name}' is this machine's way to other networks (its default route). Use \
             another interface, or add --anyway if the machine can do without"
        ));
    }
    Ok(())
}

/// Commands for a port that stays with the kernel.
fn for_kernel(interface: &InterfaceInfo, wish: &Wish<'_>) -> Result<String, String> {
    check_spared(interface, wish.anyway)?;
    if !interface.is_ethernet {
        return Err(format!(
            "interface '{}' does not carry Ethernet frames, so it cannot be a port. Use another one",
            interface.name
        ));
    }
    let name = &quoted(&interface.name);
    let (addresses, mtu) = (interface.addresses(), interface.mtu_bytes);
    let mut text = head(&format!("Prepares interface {name} as a port"));
    if !addresses.is_empty() {
        let _ = writeln!(
            text,
            "# The kernel would answer at {}:",
            addresses.join(", ")
        );
        let _ = writeln!(text, "ip address flush dev {name}");
    }
    if let Some(master) = interface.master() {
        let _ = writeln!(text, "# {master} would take what arrives there:");
        let _ = writeln!(text, "ip link set dev {name} nomaster");
    }
    if let Some(program) = interface.xdp() {
        let _ = writeln!(
            text,
            "# XDP program {program} takes frames before a port sees them:"
        );
        let _ = writeln!(text, "ip link set dev {name} xdp off");
    }
    let silence = format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6");
    let _ = write!(
        text,
        "# So that the kernel sends nothing there by itself:\n\
         echo 1 > {silence}\n\
         ip link set dev {name} up\n\
         # Only for packets longer than {} bytes (the MTU is {mtu}):\n\
         # ip link set dev {name} mtu 9000\n\
         \n# Let ordinary users start the server; root needs none of it:\n",
        mtu + 14
    );
    text += &for_users(name);
    let _ = writeln!(text, "\n# Give it back:\necho 0 > {silence}");
    for address in addresses {
        let _ = writeln!(text, "ip address add {address} dev {name}");
    }
    if let Some(master) = interface.master() {
        let _ = writeln!(text, "ip link set dev {name} master {}", quoted(master));
    }
    if !interface.is_up {
        let _ = writeln!(text, "ip link set dev {name} down");
    }
    Ok(text)
}

/// What lets ordinary users start a server with a port on an interface, of each kind that may be on it,
/// and how they do.
fn for_users(name: &str) -> String {
    let mut text = String::new();
    let (mut others, mut instead) = (String::new(), String::new());
    for (place, kind) in kinds::on_interfaces().enumerate() {
        let given = kind.needs.capabilities_given.join(",").to_lowercase();
        let command = format!("setcap {given}+ep \"$(command -v allosaur-server)\"");
        if place == 0 {
            let _ = writeln!(text, "{command}");
            continue;
        }
        let port = format!("{}:{name}", kind.name);
        let _ = writeln!(others, "# The same for the port {port}:\n# {command}");
        let effect = match kind.takes_all {
            true => ", which takes all that arrives",
            false => "",
        };
        let _ = write!(instead, " (or {port}{effect})");
    }
    let _ = write!(
        text,
        "{others}\n# Use it{instead}:\nallosaur server --ports {name}\n"
    );
    text
}

/// Commands for a port on DPDK's driver of a network card.
fn for_dpdk(machine: &Machine, device: &PciDevice, wish: &Wish<'_>) -> Result<String, String> {
    let address = &device.address;
    let driver = wish.driver.unwrap_or(DRIVER);
    let interfaces: Vec<&InterfaceInfo> = machine.interfaces_of(address).collect();
    let current = device.driver.as_deref();
    let is_shared = current.is_some_and(drivers::is_shared);
    let has_it = match current {
        Some(current) => format!("has driver {current}"),
        None => "has no driver".to_owned(),
    };
    let mut text = head(&format!(
        "Gives network card {address} to DPDK; it {has_it} now"
    ));
    let is_ready = is_shared || current == Some(driver);
    if is_shared {
        text += "# That driver shares it with DPDK: it stays where it is.\n";
        for interface in &interfaces {
            let _ = writeln!(text, "ip link set dev {} up", quoted(&interface.name));
        }
    } else if device.is_claimed {
        return Err(format!(
            "a server of Allosaur's has network card {address}. End that server first"
        ));
    } else if is_ready {
        text += "# That driver hands it over: nothing is to be done for that.\n";
    } else {
        for interface in &interfaces {
            check_spared(interface, wish.anyway)?;
        }
        text += &take_from_kernel(machine, device, &interfaces, driver);
    }
    text += &memory(&machine.hugepages, device.numa_node);
    if !dpdk::IS_BUILT {
        text += "\n# This server was built without DPDK. Install libdpdk-dev 22.11 or newer, then:\nmake install\n";
    }
    let _ = writeln!(text, "\n# Use it:\nallosaur server --ports pci:{address}");
    if !is_ready {
        text += &give_back(machine, device, &interfaces);
    }
    Ok(text)
}

fn head(what: &str) -> String {
    format!("# {what}.\n# Nothing was changed. Read these commands, then run them as root.\n\n")
}

/// The commands that put the driver there.
fn take_from_kernel(
    machine: &Machine,
    device: &PciDevice,
    interfaces: &[&InterfaceInfo],
    driver: &str,
) -> String {
    let address = &device.address;
    let mut text = String::new();
    for member in device
        .iommu_group
        .iter()
        .filter_map(|member| machine.device(member))
    {
        let kept = member
            .driver
            .as_deref()
            .filter(|driver| !drivers::is_userspace(driver));
        if let Some(kept) = kept {
            let _ = writeln!(
                text,
                "# The hardware cannot keep {} (driver {kept}) apart from it: that one must be given too.",
                member.address
            );
        }
    }
    let _ = writeln!(text, "modprobe {driver}");
    if driver == DRIVER && !machine.has_iommu {
        text += "# This machine uses no IOMMU, so the card could write to any memory. Safer: switch it on\n\
                 # (intel_iommu=on or amd_iommu=on on the kernel's command line). Else:\n\
                 echo 1 > /sys/module/vfio/parameters/enable_unsafe_noiommu_mode\n";
    }
    for interface in interfaces {
        let addresses = interface.addresses();
        if !addresses.is_empty() {
            let _ = writeln!(
                text,
                "# The machine loses its address {}:",
                addresses.join(", ")
            );
        }
        let _ = writeln!(text, "ip link set dev {} down", quoted(&interface.name));
    }
    if machine.has_devbind {
        let _ = writeln!(text, "dpdk-devbind.py --bind={driver} {address}");
        return text;
    }
    let _ = writeln!(text, "echo {driver} > {PCI}/{address}/driver_override");
    if device.driver.is_some() {
        let _ = writeln!(text, "echo {address} > {PCI}/{address}/driver/unbind");
    }
    let _ = writeln!(text, "echo {address} > /sys/bus/pci/drivers_probe");
    text
}

/// Words and commands about hugepages.
fn memory(pages: &HugePages, numa_node: Option<u32>) -> String {
    if pages.suffice() {
        return format!(
            "\n# Hugepages: {} MiB are free, which is enough.\n",
            pages.free_mib
        );
    }
    let mut text = format!(
        "\n# Hugepages: {} MiB are free, {MEMORY_MIB_MIN} MiB are needed at least:\n{}\n",
        pages.free_mib,
        pages.command()
    );
    if let Some(node) = numa_node {
        let (kib, needed) = (pages.page_kib, pages.needed());
        let _ = write!(
            text,
            "# The card belongs to node {node}. Should its memory be elsewhere, ask for it there:\n\
             # echo {needed} > /sys/devices/system/node/node{node}/hugepages/hugepages-{kib}kB/nr_hugepages\n",
        );
    }
    text
}

/// The commands that undo it.
fn give_back(machine: &Machine, device: &PciDevice, interfaces: &[&InterfaceInfo]) -> String {
    let address = &device.address;
    let mut text = "\n# Give it back to the kernel:\n".to_owned();
    match (&device.driver, machine.has_devbind) {
        (Some(driver), true) => {
            let _ = writeln!(text, "dpdk-devbind.py --bind={driver} {address}");
        }
        (driver, _) => {
            let _ = writeln!(text, "echo > {PCI}/{address}/driver_override");
            let _ = writeln!(text, "echo {address} > {PCI}/{address}/driver/unbind");
            if driver.is_some() {
                let _ = writeln!(text, "echo {address} > /sys/bus/pci/drivers_probe");
            }
        }
    }
    for interface in interfaces {
        let name = quoted(&interface.name);
        for given in interface.addresses() {
            let _ = writeln!(text, "ip address add {given} dev {name}");
        }
        if interface.is_up {
            let _ = writeln!(text, "ip link set dev {name} up");
        }
    }
    text
}

/// A name as a shell takes it.
fn quoted(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-@:".contains(c);
    match name.chars().all(is_plain) {
        true => name.to_owned(),
        false => format!("'{}'", name.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(name: &str, pci: Option<&str>, uses: Vec<Use>) -> InterfaceInfo {
        InterfaceInfo {
            name: name.to_owned(),
            pci: pci.map(str::to_owned),
            mtu_bytes: 1500,
            is_ethernet: true,
            is_up: true,
            uses,
            ..InterfaceInfo::default()
        }
    }

    fn card(address: &str, driver: Option<&str>) -> PciDevice {
        PciDevice {
            address: address.to_owned(),
            is_network: true,
            driver: driver.map(str::to_owned),
            ..PciDevice::default()
        }
    }

    fn address() -> Use {
        Use::Address("10.0.0.7".parse().expect("an address"), 24)
    }

    /// A machine with a card of each sort.
    fn machine() -> Machine {
        let mut shared = card("0000:04:00.0", Some("mlx5_core"));
        shared.numa_node = Some(1);
        let mut member = card("0000:03:00.0", Some("i40e"));
        member.iommu_group = vec!["0000:00:03.0".to_owned()];
        Machine {
            interfaces: vec![
                interface("br0", None, vec![]),
                interface(
                    "eth0",
                    Some("0000:00:03.0"),
                    vec![Use::Session, Use::DefaultRoute],
                ),
                interface(
                    "eth3",
                    Some("0000:03:00.0"),
                    vec![address(), Use::MemberOf("br0".into())],
                ),
                interface("eth4", Some("0000:04:00.0"), vec![]),
                interface(
                    "up1",
                    Some("0000:05:00.0"),
                    vec![Use::DefaultRoute, address()],
                ),
                interface("own", None, vec![Use::Allosaur]),
                interface("a$(b)'c", None, vec![]),
            ],
            devices: vec![
                card("0000:00:03.0", Some("virtio-pci")),
                member,
                shared,
                card("0000:05:00.0", Some("igb")),
                card("0000:06:00.0", Some("vfio-pci")),
                card("0000:07:00.0", None),
            ],
            hugepages: HugePages {
                page_kib: 2048,
                total: 10,
                free: 4,
                free_mib: 8,
            },
            has_iommu: true,
            has_devbind: false,
        }
    }

    fn ask(
        machine: &Machine,
        target: &str,
        driver: Option<&str>,
        anyway: bool,
    ) -> Result<String, String> {
        let wish = Wish {
            target,
            driver,
            anyway,
        };
        prepare(machine, &wish)
    }

    /// The lines that a shell would run.
    fn commands(text: &str) -> Vec<&str> {
        let is_command = |line: &&str| !line.is_empty() && !line.starts_with('#');
        text.lines().filter(is_command).collect()
    }

    #[test]
    fn a_card_of_the_kernel_is_given_and_comes_back() {
        let text = ask(&machine(), "03:00.0", None, false).expect("possible");
        let folder = "/sys/bus/pci/devices/0000:03:00.0";
        let expected = [
            "modprobe vfio-pci",
            "ip link set dev eth3 down",
            &format!("echo vfio-pci > {folder}/driver_override"),
            &format!("echo 0000:03:00.0 > {folder}/driver/unbind"),
            "echo 0000:03:00.0 > /sys/bus/pci/drivers_probe",
            "sysctl -w vm.nr_hugepages=134",
            "allosaur server --ports pci:0000:03:00.0",
            &format!("echo > {folder}/driver_override"),
            &format!("echo 0000:03:00.0 > {folder}/driver/unbind"),
            "echo 0000:03:00.0 > /sys/bus/pci/drivers_probe",
            "ip address add 10.0.0.7/24 dev eth3",
            "ip link set dev eth3 up",
        ];
        let mut found = commands(&text);
        found.retain(|line| *line != "make install");
        assert_eq!(found, expected);
        for words in [
            "0000:00:03.0 (driver virtio-pci)",
            "Nothing was changed",
            "8 MiB are free",
        ] {
            assert!(text.contains(words), "no {words} in {text}");
        }
        for same in ["0000:03:00.0", "pci:0000:03:00.0"] {
            assert_eq!(ask(&machine(), same, None, false).as_ref(), Ok(&text));
        }
        assert_eq!(
            ask(&machine(), "eth3", Some("vfio-pci"), false).as_ref(),
            Ok(&text)
        );
    }

    #[test]
    fn the_tool_of_dpdk_is_used_where_it_is() {
        let machine = Machine {
            has_devbind: true,
            has_iommu: false,
            ..machine()
        };
        let text = ask(&machine, "0000:03:00.0", None, false).expect("possible");
        assert!(
            text.contains("dpdk-devbind.py --bind=vfio-pci 0000:03:00.0"),
            "{text}"
        );
        assert!(
            text.contains("dpdk-devbind.py --bind=i40e 0000:03:00.0"),
            "{text}"
        );
        assert!(text.contains("enable_unsafe_noiommu_mode"), "{text}");
        let text = ask(&machine, "0000:03:00.0", Some("uio_pci_generic"), false).expect("possible");
        assert!(
            text.contains("modprobe uio_pci_generic") && !text.contains("noiommu"),
            "{text}"
        );
    }

    #[test]
    fn what_is_ready_is_left_alone() {
        for (target, words) in [
            ("0000:04:00.0", "shares it"),
            ("0000:06:00.0", "hands it over"),
        ] {
            let text = ask(&machine(), target, None, false).expect("possible");
            assert!(
                text.contains(words) && text.contains("nr_hugepages"),
                "{text}"
            );
            assert!(
                !text.contains("modprobe") && !text.contains("Give it back"),
                "{text}"
            );
        }
        let text = ask(&machine(), "0000:07:00.0", None, false).expect("possible");
        assert!(
            text.contains("driver_override") && !text.contains("ip link"),
            "{text}"
        );
    }

    #[test]
    fn an_interface_is_freed_of_what_the_kernel_does_there() {
        let text = ask(&machine(), "eth3", None, false).expect("possible");
        let expected = [
            "ip address flush dev eth3",
            "ip link set dev eth3 nomaster",
            "echo 1 > /proc/sys/net/ipv6/conf/eth3/disable_ipv6",
            "ip link set dev eth3 up",
            "setcap cap_net_raw+ep \"$(command -v allosaur-server)\"",
            "allosaur server --ports eth3",
            "echo 0 > /proc/sys/net/ipv6/conf/eth3/disable_ipv6",
            "ip address add 10.0.0.7/24 dev eth3",
            "ip link set dev eth3 master br0",
        ];
        assert_eq!(commands(&text), expected);
        let text = ask(&machine(), "a$(b)'c", None, false).expect("possible");
        assert!(text.contains(r"ip link set dev 'a$(b)'\''c' up"), "{text}");
    }

    #[test]
    fn nobody_is_cut_off() {
        for (target, driver, words) in [
            (
                "eth0",
                None,
                &["'eth0'", "your own session", "another interface"][..],
            ),
            ("0000:00:03.0", None, &["'eth0'", "your own session"]),
            ("up1", None, &["'up1'", "default route", "--anyway"]),
            (
                "0000:05:00.0",
                None,
                &["'up1'", "default route", "--anyway"],
            ),
            ("own", None, &["'own'", "End that server"]),
            (
                "eth33",
                None,
                &["'eth33'", "did you mean eth3?", "allosaur ports"],
            ),
            (
                "0000:03:00.1",
                None,
                &["'0000:03:00.1'", "did you mean 0000:03:00.0?"],
            ),
            ("pci:nonsense", None, &["'nonsense'", "allosaur ports"]),
            (
                "br0",
                Some("vfio-pci"),
                &["'br0'", "no PCI device", "--driver"],
            ),
            ("eth3", Some("e1000"), &["--driver 'e1000'", "vfio-pci"]),
        ] {
            let error = ask(&machine(), target, driver, false).expect_err(target);
            assert!(
                words.iter().all(|word| error.contains(word)),
                "{target}: {error}"
            );
        }
        for target in ["eth0", "0000:00:03.0", "own"] {
            ask(&machine(), target, None, true).expect_err("never");
        }
        for target in ["up1", "0000:05:00.0"] {
            ask(&machine(), target, None, true).expect("the user insists");
        }
    }
}
