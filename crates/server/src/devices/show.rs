//! `allosaur ports`: a table for people, and the same as JSON.

use std::fmt::Write;

use allosaur_netdev::inventory::{Holder, MEMORY_MIB_MIN, Machine};
use allosaur_port::dpdk;
use allosaur_port::kinds::{KINDS, PortKind};
use serde_json::{Value, json};

use super::{Choice, Entry, entries};

/// The width that lines keep to.
const WIDTH: usize = 80;
/// What stands before a line that belongs to the one above.
const INDENT: &str = "  ";
/// Heads of the columns, and their widths. Text is put to the left, numbers to the right.
const COLUMNS: [(&str, usize, bool); 7] = [
    ("interface", 15, false),
    ("PCI address", 12, false),
    ("driver", 14, false),
    ("node", 4, true),
    ("link", 4, true),
    ("speed", 5, true),
    ("MTU", 5, true),
];

/// The table of a machine.
pub fn table(machine: &Machine, holders: &[(i32, Holder)]) -> String {
    let entries = entries(machine);
    let mut text = String::new();
    if entries.is_empty() {
        text += "This machine has no network card and no interface. Ports in memory need none.\n";
    } else {
        row(&mut text, COLUMNS.map(|(head, ..)| head.to_owned()));
        row(&mut text, COLUMNS.map(|(_, width, _)| "-".repeat(width)));
    }
    for entry in &entries {
        row(&mut text, cells(entry));
        for (head, words) in details(entry, machine, holders) {
            wrapped(&mut text, &format!("{INDENT}{head:<6}"), &words);
        }
    }
    text + &foot(machine)
}

fn row<const N: usize>(text: &mut String, cells: [String; N]) {
    let mut line = String::new();
    for (cell, (_, width, is_right)) in cells.iter().zip(COLUMNS) {
        let _ = match is_right {
            true => write!(line, "{cell:>width$}  "),
            false => write!(line, "{cell:<width$}  "),
        };
    }
    let _ = writeln!(text, "{}", line.trim_end());
}

fn cells(entry: &Entry<'_>) -> [String; 7] {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let interface = entry.interface;
    [
        or_dash(interface.map(|one| one.name.clone())),
        or_dash(entry.device.map(|device| device.address.clone())),
        // The table stays in its columns: JSON has the whole name.
        or_dash(
            entry
                .driver()
                .map(|driver| driver.chars().take(14).collect()),
        ),
        or_dash(entry.numa_node().map(|node| node.to_string())),
        or_dash(interface.map(|one| link(one.is_up, one.has_link).to_owned())),
        or_dash(interface.and_then(|one| one.speed_mbps).map(speed)),
        or_dash(interface.map(|one| one.mtu_bytes.to_string())),
    ]
}

/// `off` is switched off by the user, `down` has no link.
fn link(is_up: bool, has_link: bool) -> &'static str {
    match (is_up, has_link) {
        (false, _) => "off",
        (true, false) => "down",
        (true, true) => "up",
    }
}

/// `25G`, `2.5G`, `100M`: bits per second.
fn speed(mbps: u64) -> String {
    match mbps {
        1000.. => format!("{}G", mbps as f64 / 1000.0),
        _ => format!("{mbps}M"),
    }
}

/// The lines below the one of an entry.
fn details(
    entry: &Entry<'_>,
    machine: &Machine,
    holders: &[(i32, Holder)],
) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    match (entry.interface, entry.device) {
        (Some(interface), _) => lines.push(("MAC", interface.mac.clone())),
        (None, Some(device)) => lines.push(("ID", device.id.clone())),
        (None, None) => {}
    }
    let mut users = entry.users();
    if users.is_empty() {
        users.push("nobody".to_owned());
    }
    let programs = holders_of(entry, holders);
    if !programs.is_empty() {
        users.push(format!("by {}", programs.join(", ")));
    }
    lines.push(("used", users.join("; ")));
    let choices = entry.choices(machine);
    lines.push(match choices.is_empty() {
        true => (
            "ports",
            "none: it does not carry Ethernet frames".to_owned(),
        ),
        false => ("ports", choices_in_words(&choices)),
    });
    lines
}

/// Ports that need the same first stand together.
fn choices_in_words(choices: &[Choice]) -> String {
    let groups = choices.chunk_by(|one, next| one.remedy == next.remedy);
    let groups = groups.map(|group| {
        let ports = group.iter().map(|choice| match choice.note {
            "" => choice.port.clone(),
            note => format!("{} ({note})", choice.port),
        });
        let ports = ports.collect::<Vec<_>>().join(", ");
        match &group[0].remedy {
            Some(remedy) => format!("{ports} after: {}", kept(remedy)),
            None => ports,
        }
    });
    groups.collect::<Vec<_>>().join("; ")
}

/// The programs that have packet sockets there, such as `tcpdump (812)`.
fn holders_of(entry: &Entry<'_>, holders: &[(i32, Holder)]) -> Vec<String> {
    let Some(interface) = entry.interface else {
        return Vec::new();
    };
    let there = holders
        .iter()
        .filter(|(index, _)| *index == interface.index);
    let named = there.map(|(_, holder)| format!("{} ({})", holder.name, holder.process));
    named.collect()
}

/// What stands for a space within a command, where no line ends.
const KEPT_SPACE: char = '\u{a0}';

/// A command that stays on one line.
fn kept(command: &str) -> String {
    command.replace(' ', &KEPT_SPACE.to_string())
}

/// Text behind a head, in lines that begin below its start.
fn wrapped(text: &mut String, head: &str, words: &str) {
    let mut line = head.to_owned();
    let mut is_first = true;
    for word in words.split(' ') {
        let length = line.chars().count() + usize::from(!is_first) + word.chars().count();
        if !is_first && length > WIDTH {
            text.push_str(line.trim_end());
            text.push('\n');
            line = " ".repeat(head.len());
            is_first = true;
        }
        if !is_first {
            line.push(' ');
        }
        line.extend(word.chars().map(|c| if c == KEPT_SPACE { ' ' } else { c }));
        is_first = false;
    }
    text.push_str(line.trim_end());
    text.push('\n');
}

fn foot(machine: &Machine) -> String {
    let mut text = String::new();
    let dpdk = match dpdk::IS_BUILT {
        true => {
            let pages = &machine.hugepages;
            let remedy = match pages.suffice() {
                true => String::new(),
                false => format!(": {}", kept(&pages.command())),
            };
            format!(
                "built in; {} MiB are free in hugepages, network cards need {MEMORY_MIB_MIN}{remedy}",
                pages.free_mib
            )
        }
        false => {
            "not built in: where libdpdk-dev is installed, `make install` builds it".to_owned()
        }
    };
    text.push('\n');
    wrapped(&mut text, "DPDK: ", &dpdk);
    wrapped(
        &mut text,
        "",
        "`allosaur ports prepare NAME` prints the commands that prepare an interface or a card.",
    );
    text
}

/// A kind of port and what it needs, for programs.
fn kind(kind: &PortKind) -> Value {
    let needs = &kind.needs;
    json!({
        "name": kind.name,
        "title": kind.title,
        "words": kind.words,
        "on": kind.base.name(),
        "takes_all": kind.takes_all,
        "built": kind.is_built,
        "needs": {
            "linux": needs.linux,
            "capabilities": needs.capabilities,
            "capabilities_given": needs.capabilities_given,
            "sockets": needs.sockets,
            "protocol": needs.protocol,
            "kernel_option": needs.kernel_option,
            "locked_mib": needs.locked_mib,
            "hugepages_mib": needs.hugepages_mib,
        },
    })
}

/// What the table says, and the kinds of port, as JSON.
pub fn json(machine: &Machine, holders: &[(i32, Holder)]) -> Value {
    let pages = &machine.hugepages;
    let devices = entries(machine);
    json!({
        "command": "ports",
        "ok": true,
        "devices": devices.iter().map(|entry| device(entry, machine, holders)).collect::<Vec<_>>(),
        "kinds": KINDS.map(kind),
        "dpdk": {
            "built": dpdk::IS_BUILT,
            "iommu": machine.has_iommu,
            "hugepages": {
                "page_kib": pages.page_kib,
                "total": pages.total,
                "free": pages.free,
                "free_mib": pages.free_mib,
                "needed_mib": MEMORY_MIB_MIN,
            },
        },
    })
}

fn device(entry: &Entry<'_>, machine: &Machine, holders: &[(i32, Holder)]) -> Value {
    let interface = entry.interface;
    let ports: Vec<Value> = entry.choices(machine).iter().map(choice_json).collect();
    json!({
        "interface": interface.map(|one| &one.name),
        "pci": entry.device.map(|device| &device.address),
        "id": entry.device.map(|device| &device.id),
        "driver": entry.driver(),
        "numa_node": entry.numa_node(),
        "mac": interface.map(|one| &one.mac),
        "mtu": interface.map(|one| one.mtu_bytes),
        "speed_mbps": interface.and_then(|one| one.speed_mbps),
        "link": interface.map(|one| link(one.is_up, one.has_link)),
        "used_by": entry.users(),
        "addresses": interface.map(|one| one.addresses()).unwrap_or_default(),
        "programs": holders_of(entry, holders),
        "ports": ports,
    })
}

fn choice_json(choice: &Choice) -> Value {
    json!({
        "kind": choice.kind,
        "port": choice.port,
        "note": Some(choice.note).filter(|note| !note.is_empty()),
        "ready": choice.remedy.is_none(),
        "remedy": choice.remedy,
    })
}

#[cfg(test)]
mod tests {
    use allosaur_netdev::inventory::{HugePages, InterfaceInfo, PciDevice, Use};

    use super::*;

    fn machine() -> Machine {
        let eth0 = InterfaceInfo {
            name: "eth0".to_owned(),
            index: 2,
            driver: Some("virtio_net".to_owned()),
            pci: Some("0000:00:03.0".to_owned()),
            mac: "02:00:00:00:00:01".to_owned(),
            mtu_bytes: 1500,
            is_ethernet: true,
            is_up: true,
            has_link: true,
            uses: vec![
                Use::Session,
                Use::DefaultRoute,
                Use::Address("192.0.2.2".parse().expect("an address"), 24),
            ],
            ..InterfaceInfo::default()
        };
        let veth = InterfaceInfo {
            name: "a-long-name-015".to_owned(),
            index: 9,
            kind: Some("veth".to_owned()),
            speed_mbps: Some(2_500),
            is_up: false,
            is_ethernet: true,
            uses: vec![Use::PacketSockets(1), Use::Xdp(7)],
            ..InterfaceInfo::default()
        };
        let tunnel = InterfaceInfo {
            name: "wg0".to_owned(),
            is_up: true,
            ..InterfaceInfo::default()
        };
        let device = |address: &str, driver: &str| PciDevice {
            address: address.to_owned(),
            id: "8086:1572".to_owned(),
            is_network: true,
            driver: Some(driver.to_owned()),
            numa_node: Some(1),
            ..PciDevice::default()
        };
        let mut own = device("0000:03:00.0", "vfio-pci");
        own.is_claimed = true;
        own.holder = Some(Holder {
            process: 79,
            name: "allosaur-server".to_owned(),
        });
        Machine {
            interfaces: vec![veth, eth0, tunnel],
            devices: vec![device("0000:00:03.0", "virtio-pci"), own],
            hugepages: HugePages {
                page_kib: 2048,
                ..HugePages::default()
            },
            ..Machine::default()
        }
    }

    fn holders() -> Vec<(i32, Holder)> {
        let name = "tcpdump".to_owned();
        vec![(9, Holder { process: 812, name })]
    }

    #[test]
    fn the_table_fits_a_terminal_and_says_it_all() {
        let text = table(&machine(), &holders());
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
        let at = |words: &str| {
            text.find(words)
                .unwrap_or_else(|| panic!("no {words} in {text}"))
        };
        // Hardware first, in the order of the bus.
        assert!(at("eth0") < at("vfio-pci") && at("vfio-pci") < at("a-long-name-015"));
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for words in [
            "eth0 0000:00:03.0 virtio_net 1 up - 1500",
            "- 0000:03:00.0 vfio-pci 1 - - -",
            "a-long-name-015 - veth - off 2.5G",
            "your own session; the kernel: address 192.0.2.2/24; the kernel: default route",
            "vfio-pci hands it to DPDK; a server of Allosaur's; by allosaur-server (79)",
            "a packet socket; XDP program 7; by tcpdump (812)",
            "ports a-long-name-015, af_xdp:a-long-name-015 (copies) after: ip link set a-long-name-015 up",
            "none: it does not carry Ethernet frames",
            "pci:0000:00:03.0 after: ",
        ] {
            assert!(flat.contains(words), "no {words} in {text}");
        }
        assert_eq!(
            text.contains("sysctl -w vm.nr_hugepages=128"),
            dpdk::IS_BUILT
        );
    }

    #[test]
    fn an_empty_machine_says_so() {
        let text = table(&Machine::default(), &[]);
        assert!(
            text.contains("no network card") && text.contains("in memory"),
            "{text}"
        );
    }

    #[test]
    fn json_has_what_the_table_has() {
        let value = json(&machine(), &holders());
        let devices = value["devices"].as_array().expect("a list");
        assert_eq!(devices.len(), 4);
        assert_eq!(devices[0]["interface"], "eth0");
        assert_eq!(devices[0]["addresses"], json!(["192.0.2.2/24"]));
        assert_eq!(
            devices[0]["ports"][0],
            json!({
                "kind": "af_packet", "port": "eth0", "note": null, "ready": true, "remedy": null,
            })
        );
        assert_eq!(
            (&devices[1]["interface"], &devices[1]["pci"]),
            (&Value::Null, &json!("0000:03:00.0"))
        );
        assert_eq!(devices[2]["ports"][0]["ready"], false);
        assert_eq!(devices[2]["programs"], json!(["tcpdump (812)"]));
        assert_eq!(value["dpdk"]["built"], dpdk::IS_BUILT);
    }
}
