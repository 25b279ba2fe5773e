//! Our own form: a map of keys, strictly read.

use std::str::FromStr;

use allosaur_api::commands::layers::{VNI_MAX, VxlanTunnel};
use allosaur_port::memory::LinkSettings;

use super::groups::{self, Group, cpu};
use super::read::{Findings, Item, Key, Map, flag, ipv4, mac, number, text, unicast_mac};
use super::yaml::{Node, Value};
use super::{
    BIRD_PORT, EMU_PORT, FLOWS, FLOWS_MAX, FLOWS_MIN, PortSettings, RECEIVE_THREADS_MAX, RPC_PORT,
    Settings, Stack, Surroundings, check_ports, http_address, names,
};
use crate::config::polling::Poll;
use crate::control::StartAddresses;
use crate::control::worker_command::Modes;

/// The version of the form.
const VERSION: u64 = 1;
/// Tags of 802.1Q that a port may have.
const VLAN_TAGS_MAX: usize = 2;

/// The keys of the whole file.
pub const SERVER_KEYS: [Key; 24] = [
    Key {
        name: "version",
        value: "`1`",
        default: "`1`",
        meaning: "the version of this form",
        example: "1",
    },
    Key {
        name: "ports",
        value: "a list, see below",
        default: "two `memory` ports",
        meaning: "the ports in order: the first is port 0",
        example: "[memory, memory, memory]",
    },
    Key {
        name: "stateful",
        value: "`true` or `false`",
        default: "`false`",
        meaning: "all ports are in stateful mode, always: TCP and UDP flows run through a stack of the server's own, see [stateful](stateful.md); streams run beside them. Without it each port is in the mode of who acquires it",
        example: "true",
    },
    Key {
        name: "stateless",
        value: "`true` or `false`",
        default: "`false`",
        meaning: "all ports are in stateless mode, always; not with `stateful`",
        example: "true",
    },
    Key {
        name: "flows_max",
        value: "1024 to 67108864",
        default: "2097152",
        meaning: "flows at the same time, of all threads together; each end that is on this server counts. Memory is taken when they come",
        example: "1048576",
    },
    Key {
        name: "cores",
        value: "1 to 64, or a list of CPUs such as `[2, 3]`",
        default: "1",
        meaning: "how many threads send; a list binds each of them to a CPU",
        example: "2",
    },
    Key {
        name: "groups",
        value: "a list, see below",
        default: "one group of all ports",
        meaning: "ports that have threads of their own, see [cores](cores.md); instead of `cores`",
        example: "[{ports: [0], cores: 1}, {ports: [1], cores: 2}]",
    },
    Key {
        name: "pin",
        value: "`true` or `false`",
        default: "`false`",
        meaning: "binds threads that have no CPU to one of their own, near their ports: those that send, then those that receive",
        example: "true",
    },
    Key {
        name: "receive_threads",
        value: "1 to 16",
        default: "1",
        meaning: "how many threads receive; several share out by flow what arrives at a port",
        example: "2",
    },
    Key {
        name: "receive_cpu",
        value: "the number of a CPU, or a list of one for each thread that receives",
        default: "any",
        meaning: "the CPU that the thread that receives is bound to",
        example: "0",
    },
    Key {
        name: "control_cpu",
        value: "the number of a CPU",
        default: "any",
        meaning: "the CPU that the thread that answers requests is bound to",
        example: "0",
    },
    Key {
        name: "poll",
        value: "`adaptive` or `busy`",
        default: "`busy` for threads that send on CPUs of their own, else `adaptive`",
        meaning: "how threads wait: they sleep when idle, or each takes a CPU whole and is never late",
        example: "busy",
    },
    Key {
        name: "listen",
        value: "an address, or `\"*\"` for all",
        default: "`127.0.0.1`",
        meaning: "where the server listens. Beyond this machine it needs `rpc_auth`, or `open`",
        example: "192.0.2.1",
    },
    Key {
        name: "open",
        value: "`true` or `false`",
        default: "`false`",
        meaning: "whether everyone who can connect may use it, without a token. See [access](access.md)",
        example: "true",
    },
    Key {
        name: "rpc_auth",
        value: "a file",
        default: "none",
        meaning: "lines `NAME:TOKEN`: who connects from beyond loopback must have one. \
                  See [access](access.md)",
        example: "/etc/allosaur/tokens",
    },
    Key {
        name: "rpc_port",
        value: "0 to 65535",
        default: "4501",
        meaning: "the TCP port of requests; 0 picks a free one",
        example: "14501",
    },
    Key {
        name: "pub_port",
        value: "0 to 65535",
        default: "one below `rpc_port`",
        meaning: "the TCP port of events; 0 picks a free one",
        example: "14500",
    },
    Key {
        name: "emu_port",
        value: "0 to 65535",
        default: "no emulated clients",
        meaning: "the TCP port of requests to [emulated clients](emulation/server.md), TRex's is 4510; 0 picks a free one",
        example: "4510",
    },
    Key {
        name: "bird_port",
        value: "0 to 65535",
        default: "no BIRD",
        meaning: "the TCP port of requests to [BIRD](bird.md), TRex's is 4509; 0 picks a free one",
        example: "4509",
    },
    Key {
        name: "stack",
        value: "`legacy` or `linux_based`",
        default: "`legacy`",
        meaning: "who answers for the addresses of ports: the server, or the kernel, in [a network namespace a port](nodes.md#ports-in-namespaces)",
        example: "linux_based",
    },
    Key {
        name: "emu_exports",
        value: "`true` or `false`",
        default: "`false`",
        meaning: "whether emulated clients may [write files, send by the server's sockets and post](emulation/server.md#what-reaches-out-of-it)",
        example: "true",
    },
    Key {
        name: "http",
        value: "a TCP port, or an address with one such as `192.0.2.1:4502`",
        default: "no HTTP",
        meaning: "where metrics are, see [metrics](metrics.md); 0 picks a free port, an address is loopback unless given, `\"*:4502\"` is all",
        example: "4502",
    },
    Key {
        name: "http_hosts",
        value: "a list of names",
        default: "none",
        meaning: "names that HTTP is answered to, besides addresses, names without a dot and the machine's own",
        example: "[lab.example]",
    },
    Key {
        name: "captures_folder",
        value: "a folder",
        default: "the one that the server was started in",
        meaning: "where capture files are that clients may have the server send (`push --remote`), and where it may write key logs of TLS; `/` is all files",
        example: "/srv/captures",
    },
];

/// The keys of a port.
pub const PORT_KEYS: [Key; 8] = [
    Key {
        name: "port",
        value: "as in `--ports`, such as `memory:delay=1ms`",
        default: "must be there",
        meaning: "what the port is: see [ports](ports.md)",
        example: "memory",
    },
    Key {
        name: "ip",
        value: "an IPv4 address",
        default: "none",
        meaning: "the port's own address, which it announces and answers for; `default_gateway` goes with it",
        example: "10.0.0.1",
    },
    Key {
        name: "default_gateway",
        value: "an IPv4 address",
        default: "none",
        meaning: "where its packets go; the port asks for its MAC address once a second until it answers",
        example: "10.0.0.254",
    },
    Key {
        name: "vlan",
        value: "1 to 4094, or a list of two for QinQ, outer first",
        default: "none",
        meaning: "the VLAN that the port's host is in; one with `stateful`",
        example: "100",
    },
    Key {
        name: "vxlan",
        value: "a number of 0 to 16777215, or a map with `vni`, `local`, `remote`, `udp_port`, `inner_mac`, `any_vni`",
        default: "none",
        meaning: "the network of VXLAN that the port's flows and streams are in, from `local` (`ip`) to `remote` (`default_gateway`)",
        example: "100",
    },
    Key {
        name: "destination_mac",
        value: "a MAC address",
        default: "the port's peer",
        meaning: "where frames go whose stream does not say; with `ip` it is the gateway's, and nothing needs resolving",
        example: "02:00:00:00:00:02",
    },
    Key {
        name: "source_mac",
        value: "a MAC address",
        default: "the port's own",
        meaning: "the address that the port has on its network",
        example: "02:00:00:00:00:01",
    },
    Key {
        name: "load_max",
        value: "a rate with its unit, such as `1gbps`",
        default: "the line rate",
        meaning: "the most that users may send on the port, at layer 1, also when they force it",
        example: "1gbps",
    },
];

/// The keys of a port's tunnel.
const VXLAN_KEYS: [Key; 6] = [
    Key {
        name: "vni",
        value: "0 to 16777215",
        default: "",
        meaning: "the number of the network",
        example: "100",
    },
    Key {
        name: "local",
        value: "an IPv4 address",
        default: "`ip`",
        meaning: "the address of this end",
        example: "192.0.2.1",
    },
    Key {
        name: "remote",
        value: "an IPv4 address",
        default: "`default_gateway`",
        meaning: "the address of the other end",
        example: "192.0.2.2",
    },
    Key {
        name: "udp_port",
        value: "1 to 65535",
        default: "4789",
        meaning: "the UDP port of both ends",
        example: "4789",
    },
    Key {
        name: "inner_mac",
        value: "a MAC address",
        default: "the port's destination",
        meaning: "where frames go inside of the tunnel",
        example: "02:00:00:00:00:02",
    },
    Key {
        name: "any_vni",
        value: "true or false",
        default: "false",
        meaning: "frames of any network are taken, and answered in it",
        example: "true",
    },
];

/// Reads a file of our form. When there are problems the settings are not whole.
pub(super) fn read(root: &Node, around: &Surroundings, findings: &mut Findings) -> Settings {
    let mut settings = Settings::default();
    if root.value == Value::Nothing {
        Item::root(root).refuse(findings, "the file is empty: `config init` writes one");
        return settings;
    }
    let map = Item::root(root).map(&SERVER_KEYS, findings);
    map.read("version", findings, number(VERSION..=VERSION));
    if let Some(ports) = map.find("ports") {
        settings.ports = read_ports(ports, findings);
    }
    // How many there are is not known when one of them is wrong.
    let is_known = findings.problems.is_empty();
    let ports = if is_known { settings.ports.len() } else { 0 };
    settings
        .ports
        .truncate(around.ports_max.unwrap_or(usize::MAX));
    read_threads(&map, ports, around, &mut settings, findings);
    groups::truncate(&mut settings.groups, settings.ports.len());
    settings.modes = read_modes(&map, findings);
    if settings.modes == Modes::Stateful && findings.problems.is_empty() {
        let marks = settings.ports.iter().zip(&findings.ports);
        let wrong = marks.filter_map(|(port, mark)| Some((mark.clone(), port.tags_problem()?)));
        let wrong = wrong.map(|(mark, text)| mark.problem("vlan", text));
        findings.problems.extend(wrong.collect::<Vec<_>>());
    }
    let flows = number(FLOWS_MIN as u64..=FLOWS_MAX as u64);
    let flows_max = map.read("flows_max", findings, flows);
    settings.flows_max = flows_max.map_or(FLOWS, |flows| flows as usize);
    settings.poll = map.read("poll", findings, |node| Poll::from_str(text(node)?));
    if let Some(listen) = map.read("listen", findings, address) {
        settings.listen = listen;
    }
    settings.rpc_auth = map.read("rpc_auth", findings, |node| Ok(text(node)?.into()));
    settings.open = map.read("open", findings, flag) == Some(true);
    settings.http_hosts = map
        .read("http_hosts", findings, host_names)
        .unwrap_or_default();
    let folder = |node: &Node| Ok(text(node)?.into());
    settings.captures_folder = map.read("captures_folder", findings, folder);
    settings.rpc_port = read_tcp_port("rpc_port", RPC_PORT, &map, findings);
    settings.pub_port = map
        .find("pub_port")
        .map(|_| read_tcp_port("pub_port", 0, &map, findings));
    settings.emu_port = map
        .find("emu_port")
        .map(|_| read_tcp_port("emu_port", EMU_PORT, &map, findings));
    settings.bird_port = map
        .find("bird_port")
        .map(|_| read_tcp_port("bird_port", BIRD_PORT, &map, findings));
    let stack = map.read("stack", findings, |node| Stack::from_str(text(node)?));
    settings.stack = stack.unwrap_or_default();
    settings.emu_exports = map.read("emu_exports", findings, flag) == Some(true);
    settings.http = map.read("http", findings, |node| http_address(text(node)?));
    check_tcp_ports(&settings, &map, findings);
    settings
}

/// Refuses TCP ports that are the same.
fn check_tcp_ports(settings: &Settings, map: &Map<'_>, findings: &mut Findings) {
    let same = settings.pub_port == Some(settings.rpc_port) && settings.rpc_port != 0;
    if let (true, Some(item)) = (same, map.find("pub_port").or(map.find("rpc_port"))) {
        item.refuse(findings, "both TCP ports are the same: write another");
    }
    let mut others = vec![Some(settings.rpc_port), Some(settings.events_port())];
    for (key, port) in [
        ("emu_port", settings.emu_port),
        ("bird_port", settings.bird_port),
    ] {
        let is_taken = port.is_some_and(|port| port != 0) && others.contains(&port);
        if let (true, Some(item)) = (is_taken, map.find(key)) {
            let text = "other requests or events of the server have this TCP port: write another";
            item.refuse(findings, text);
        }
        others.push(port);
    }
}

/// Names of a machine: one, or a list.
fn host_names(node: &Node) -> Result<Vec<String>, String> {
    let name = |node: &Node| {
        let given = text(node)?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
        match !given.is_empty() && given.chars().all(is_name) {
            true => Ok(given.to_owned()),
            false => Err(format!("'{given:.60}': write a name such as lab.example")),
        }
    };
    match &node.value {
        Value::List(names) => names.iter().map(name).collect(),
        _ => Ok(vec![name(node)?]),
    }
}

/// A TCP port; 0 is any.
fn read_tcp_port(name: &str, default: u16, map: &Map<'_>, findings: &mut Findings) -> u16 {
    let port = map.read(name, findings, number(0..=u64::from(u16::MAX)));
    port.map_or(default, |port| port as u16)
}

/// An address to listen on, as ZeroMQ takes it.
fn address(node: &Node) -> Result<String, String> {
    let given = text(node)?;
    let is_address = |c: char| c.is_ascii_alphanumeric() || "*.:-_%[]".contains(c);
    if given.is_empty() || !given.chars().all(is_address) {
        return Err(format!(
            "'{given:.60}': write an address such as 127.0.0.1, or \"*\" for all"
        ));
    }
    Ok(given.to_owned())
}

fn read_threads(
    map: &Map<'_>,
    ports: usize,
    around: &Surroundings,
    settings: &mut Settings,
    findings: &mut Findings,
) {
    settings.cpus.control = map.read("control_cpu", findings, cpu(around));
    settings.pin = map.read("pin", findings, flag) == Some(true);
    let threads = number(1..=u64::from(RECEIVE_THREADS_MAX));
    let threads = map.read("receive_threads", findings, threads);
    let threads = threads.map(|threads| threads as u16);
    settings.cpus.receive = match map.find("receive_cpu") {
        None => Vec::new(),
        Some(item) => read_receive_cpus(item, threads, around, findings),
    };
    let named = settings.cpus.receive.len().max(1) as u16;
    settings.receive_threads = threads.unwrap_or(named);
    groups::read(map, ports, around, settings, findings);
    if let Some(threads) = around.cores_per_pair {
        settings.groups = Group::of_pairs(settings.ports.len(), threads);
    }
}

/// The CPU of the one receive thread, or a list for several.
fn read_receive_cpus(
    item: &Item<'_>,
    threads: Option<u16>,
    around: &Surroundings,
    findings: &mut Findings,
) -> Vec<usize> {
    let cpus = match item.node.value {
        Value::List(_) => groups::read_cpus(item, around, &mut Vec::new(), findings),
        _ => {
            let cpu = item.read(findings, cpu(around));
            cpu.into_iter().collect()
        }
    };
    let wanted = usize::from(threads.unwrap_or(cpus.len() as u16));
    if !cpus.is_empty() && (cpus.len() != wanted || wanted > usize::from(RECEIVE_THREADS_MAX)) {
        let text = format!(
            "{} CPU(s) for {wanted} receive thread(s): name as many, 1 to {RECEIVE_THREADS_MAX}",
            cpus.len()
        );
        item.refuse(findings, text);
    }
    cpus
}

/// The modes that ports can be in.
fn read_modes(map: &Map<'_>, findings: &mut Findings) -> Modes {
    let is_stateful = map.read("stateful", findings, flag) == Some(true);
    let is_stateless = map.read("stateless", findings, flag) == Some(true);
    match (is_stateless, is_stateful) {
        (true, true) => {
            let text = "true, and so is stateful: keep one, or none to have both modes";
            if let Some(item) = map.find("stateless") {
                item.refuse(findings, text);
            }
            Modes::Both
        }
        (true, false) => Modes::Stateless,
        (false, true) => Modes::Stateful,
        (false, false) => Modes::Both,
    }
}

fn read_ports(item: &Item<'_>, findings: &mut Findings) -> Vec<PortSettings> {
    let before = findings.problems.len();
    let items = item.list(findings);
    let ports: Vec<_> = items
        .iter()
        .filter_map(|item| read_port(item, findings))
        .collect();
    if findings.problems.len() == before {
        if let Err(error) = check_ports(&ports) {
            item.refuse(findings, error.to_string());
        }
    }
    ports
}

/// A port: only its name, or a map.
fn read_port(item: &Item<'_>, findings: &mut Findings) -> Option<PortSettings> {
    let description = |node: &Node| names::ours(text(node)?);
    if let Value::Text(_) = item.node.value {
        item.mark_port(findings);
        return item.read(findings, description).map(PortSettings::plain);
    }
    let map = item.map(&PORT_KEYS, findings);
    let addresses = read_addresses(item, &map, findings);
    let Some(port) = map.find("port") else {
        if matches!(item.node.value, Value::Map(_)) {
            item.refuse(findings, "says not what the port is: write `port: memory`");
        }
        return None;
    };
    port.mark_port(findings);
    Some(PortSettings {
        load_max_bps: map.read("load_max", findings, rate),
        description: port.read(findings, description)?,
        addresses,
    })
}

fn read_addresses(item: &Item<'_>, map: &Map<'_>, findings: &mut Findings) -> StartAddresses {
    let ip = map.read("ip", findings, ipv4);
    let gateway = map.read("default_gateway", findings, ipv4);
    let (ip_item, gateway_item) = (map.find("ip"), map.find("default_gateway"));
    if ip.is_some() == ip_item.is_some() && gateway.is_some() == gateway_item.is_some() {
        check_pair(item, ip_item, gateway_item, findings);
    }
    if let (Some(item), true) = (map.find("default_gateway"), ip.is_some() && ip == gateway) {
        item.refuse(findings, "is the port's own address: write its neighbor's");
    }
    StartAddresses {
        ipv4: ip.zip(gateway),
        vlan: map.read("vlan", findings, vlan).unwrap_or_default(),
        vxlan: map
            .find("vxlan")
            .and_then(|item| read_vxlan(item, findings)),
        destination_mac: map.read("destination_mac", findings, mac),
        source_mac: map.read("source_mac", findings, unicast_mac),
    }
}

/// A tunnel: the number of its network, or a map.
fn read_vxlan(item: &Item<'_>, findings: &mut Findings) -> Option<VxlanTunnel> {
    let vni = number(0..=VNI_MAX.into());
    if let Value::Text(_) = item.node.value {
        let vni = item.read(findings, vni)?;
        return Some(VxlanTunnel::new(vni as u32));
    }
    let map = item.map(&VXLAN_KEYS, findings);
    if map.find("vni").is_none() {
        item.refuse(findings, "has no number of a network: write `vni: 100`");
    }
    let tunnel = VxlanTunnel::new(map.read("vni", findings, vni)? as u32);
    let port = map.read("udp_port", findings, number(1..=0xffff));
    Some(VxlanTunnel {
        local: map.read("local", findings, ipv4),
        remote: map.read("remote", findings, ipv4),
        udp_port: port.map_or(tunnel.udp_port, |port| port as u16),
        inner_mac: map.read("inner_mac", findings, mac),
        any_vni: map.read("any_vni", findings, flag).unwrap_or_default(),
        ..tunnel
    })
}

/// An address and its gateway: both or neither.
pub(super) fn check_pair(
    port: &Item<'_>,
    ip: Option<&Item<'_>>,
    gateway: Option<&Item<'_>>,
    findings: &mut Findings,
) {
    match (ip, gateway) {
        (Some(ip), None) => ip.refuse(
            findings,
            format!("{} has no gateway: write one too", port.key),
        ),
        (None, Some(gateway)) => {
            gateway.refuse(
                findings,
                format!("{} has no address of its own: write ip too", port.key),
            );
        }
        _ => {}
    }
}

/// A rate with its unit, as links have it.
fn rate(node: &Node) -> Result<f64, String> {
    let given = text(node)?;
    let link: Option<LinkSettings> = format!("rate={given}").parse().ok();
    let rate = link
        .filter(|_| !given.contains(':'))
        .and_then(|link| link.rate_bps);
    rate.ok_or_else(|| format!("'{given:.40}': write a rate from 1kbps to 1000gbps with its unit"))
}

/// One tag, or a list of up to two.
fn vlan(node: &Node) -> Result<Vec<u16>, String> {
    let tag = |node: &Node| number(1..=4094)(node).map(|tag| tag as u16);
    match &node.value {
        Value::List(items) if (1..=VLAN_TAGS_MAX).contains(&items.len()) => {
            items.iter().map(tag).collect()
        }
        Value::List(items) => Err(format!("{} tags: write one or two", items.len())),
        _ => Ok(vec![tag(node)?]),
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::super::{Cpus, Form, Loaded, load};
    use super::*;

    fn around() -> Surroundings {
        Surroundings {
            cpus: vec![0, 1, 3],
            ..Surroundings::default()
        }
    }

    fn right(text: &str) -> Settings {
        let loaded = load(text, &around());
        let loaded: Loaded = loaded.unwrap_or_else(|findings| panic!("{text}: {findings:?}"));
        assert_eq!(
            (loaded.form, &loaded.warnings[..]),
            (Form::Allosaur, &[][..])
        );
        loaded.settings
    }

    #[test]
    fn a_whole_file_is_read() {
        let settings = right(
            "version: 1\nlisten: '*'\nrpc_port: 14501\npub_port: 0\nhttp: 10.0.0.1:80\ncores: [3, 0]\nreceive_cpu: 1\n\
             control_cpu: 1\npoll: busy\nports:\n  - memory:delay=1ms\n  - port: memory\n    \
             ip: 10.0.0.1\n    default_gateway: 10.0.0.2\n    vlan: [100, 200]\n    \
             destination_mac: 02:00:00:00:00:02\n    source_mac: 02:00:00:00:00:01\n",
        );
        assert_eq!(
            (&*settings.listen, settings.rpc_port, settings.events_port()),
            ("*", 14501, 0)
        );
        let http = settings.http.map(|address| address.to_string());
        assert_eq!(http.as_deref(), Some("10.0.0.1:80"));
        assert_eq!((settings.cores(), settings.poll), (2, Some(Poll::Busy)));
        assert_eq!(settings.data_cpus(), [3, 0]);
        let cpus = Cpus {
            receive: vec![1],
            control: Some(1),
        };
        assert_eq!(settings.cpus, cpus);
        let [first, second] = &settings.ports[..] else {
            panic!("{settings:?}");
        };
        assert_eq!(first.description.to_string(), "memory:delay=1ms");
        assert_eq!(first.addresses, StartAddresses::default());
        let addresses = StartAddresses {
            ipv4: Some((Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2))),
            vlan: vec![100, 200],
            vxlan: None,
            destination_mac: Some([2, 0, 0, 0, 0, 2]),
            source_mac: Some([2, 0, 0, 0, 0, 1]),
        };
        assert_eq!(second.addresses, addresses);
    }

    #[test]
    fn what_is_not_written_is_as_usual() {
        assert_eq!(right("version: 1"), Settings::default());
    }

    #[test]
    fn every_key_is_read_as_its_example_shows() {
        for key in SERVER_KEYS {
            let settings = right(&format!("{}: {}\n", key.name, key.example));
            let is_new = settings != Settings::default();
            assert_eq!(is_new, key.name != "version", "{}", key.name);
        }
        for key in PORT_KEYS {
            let pair = match key.name {
                "port" => "vlan: 7",
                "ip" => "port: memory, default_gateway: 10.0.0.254",
                "default_gateway" => "port: memory, ip: 10.0.0.1",
                _ => "port: memory",
            };
            let text = format!("ports: [{{{}: {}, {pair}}}]\n", key.name, key.example);
            let settings = right(&text);
            let port = &settings.ports[0];
            if key.name == "load_max" {
                assert_eq!(port.load_max_bps, Some(1e9));
                continue;
            }
            assert_ne!(port.addresses, StartAddresses::default(), "{text}");
        }
    }

    #[test]
    fn groups_have_threads_of_their_own() {
        let text = "ports: [dummy, dummy, dummy]\ngroups:\n- {ports: [0, 2], cores: [3, 0]}\n\
                    - ports: [1]\nreceive_cpu: [0, 1]\n";
        let settings = right(text);
        let [first, second] = &settings.groups[..] else {
            panic!("{settings:?}");
        };
        assert_eq!((&first.ports[..], first.threads), (&[0, 2][..], 2));
        assert_eq!(first.cpus, [3, 0]);
        assert_eq!((&second.ports[..], second.threads), (&[1][..], 1));
        assert_eq!(second.cpus, [0; 0]);
        assert_eq!((settings.cores(), settings.receive_threads), (3, 2));
        let around = Surroundings {
            ports_max: Some(1),
            ..around()
        };
        let fewer = load(text, &around).expect("right").settings;
        assert_eq!(
            (fewer.groups.len(), &fewer.groups[0].ports[..]),
            (1, &[0][..])
        );
    }

    #[test]
    fn every_key_of_a_group_is_read_as_its_example_shows() {
        for key in groups::GROUP_KEYS {
            let other = if key.name == "ports" {
                "cores: 2"
            } else {
                "ports: [0, 1]"
            };
            let settings = right(&format!(
                "groups: [{{{}: {}, {other}}}]",
                key.name, key.example
            ));
            assert_eq!((settings.groups.len(), settings.cores()), (1, 2));
        }
    }

    /// Texts, and what is wrong with them: the place, the key, and words of the message.
    const WRONG: &[(&str, &str, &str, &str)] = &[
        ("", "1:1", "", "config init"),
        ("# nothing\n", "1:1", "", "empty"),
        ("just words", "1:1", "", "write keys"),
        ("version: 2", "1:10", "version", "1 to 1"),
        (
            "port: memory",
            "1:7",
            "port",
            "The keys here are: version, ports",
        ),
        ("ports:\n", "1:1", "ports", "is nothing: write a list"),
        ("ports: memory", "1:8", "ports", "write a list"),
        ("ports: []", "1:8", "ports", "at least one"),
        (
            "ports: [memory, [memory]]",
            "1:17",
            "ports[1]",
            "is a list: write keys",
        ),
        (
            "ports:\n- memory\n- isa:a\n",
            "3:3",
            "ports[1]",
            "unknown kind",
        ),
        (
            "ports:\n- port: af_xdp:eth0:queues=0\n",
            "2:9",
            "ports[0].port",
            "queues",
        ),
        ("ports:\n- isa:eth0\n", "2:3", "ports[0]", "The kinds are"),
        ("ports:\n- memory:loss=200%\n", "2:3", "ports[0]", "loss"),
        (
            "ports:\n- ip: 10.0.0.1\n  default_gateway: 10.0.0.2\n",
            "2:3",
            "ports[0]",
            "port: memory",
        ),
        (
            "ports:\n- memory\n- memory\n- memory:delay=1ms\n",
            "2:3",
            "ports",
            "no peer",
        ),
        (
            "ports:\n- port: memory\n  vlan: 0\n",
            "3:9",
            "ports[0].vlan",
            "1 to 4094",
        ),
        (
            "ports:\n- port: memory\n  vlan: [1, 4095]\n",
            "3:9",
            "ports[0].vlan",
            "1 to 4094",
        ),
        (
            "ports:\n- port: memory\n  vlan: [1, 2, 3]\n",
            "3:9",
            "ports[0].vlan",
            "one or two",
        ),
        (
            "stateful: true\nports:\n- port: memory\n- port: memory\n  vlan: [1, 2]\n",
            "4:9",
            "ports[1].vlan",
            "stateful mode carries one",
        ),
        (
            "ports:\n- port: memory\n  ip: 10.0.0\n",
            "3:7",
            "ports[0].ip",
            "such as 10.0.0.1",
        ),
        (
            "ports:\n- port: memory\n  ip: 10.0.0.1\n",
            "3:7",
            "ports[0].ip",
            "no gateway",
        ),
        (
            "ports:\n- port: memory\n  default_gateway: 10.0.0.1\n",
            "3:20",
            "ports[0].default_gateway",
            "write ip too",
        ),
        (
            "ports:\n- port: memory\n  ip: 10.0.0.1\n  default_gateway: 10.0.0.1\n",
            "4:20",
            "ports[0].default_gateway",
            "own address",
        ),
        (
            "ports:\n- port: memory\n  load_max: 1gbps:delay=1ms\n",
            "3:13",
            "ports[0].load_max",
            "with its unit",
        ),
        (
            "ports:\n- port: memory\n  load_max: fast\n",
            "3:13",
            "ports[0].load_max",
            "1kbps to 1000gbps",
        ),
        (
            "ports:\n- port: memory\n  source_mac: 01:00:00:00:00:00\n",
            "3:15",
            "ports[0].source_mac",
            "first byte is even",
        ),
        (
            "ports:\n- port: memory\n  destination_mac: fast\n",
            "3:20",
            "ports[0].destination_mac",
            "such as 02:",
        ),
        (
            "ports:\n- port: memory\n  mtu: 9000\n",
            "3:8",
            "ports[0].mtu",
            "The keys here are: port",
        ),
        ("cores: 0", "1:8", "cores", "1 to 64"),
        ("cores: two", "1:8", "cores", "1 to 64"),
        ("cores: []", "1:8", "cores", "1 to 64"),
        (
            "cores: [0, 2]",
            "1:12",
            "cores[1]",
            "those that are: 0, 1, 3",
        ),
        ("cores: [0, 0]", "1:12", "cores[1]", "already"),
        (
            "cores: 2\ngroups: [{ports: [0, 1]}]",
            "2:9",
            "groups",
            "within each group",
        ),
        (
            "groups: [{ports: [0]}]",
            "1:9",
            "groups",
            "no group has port 1",
        ),
        (
            "groups: [{ports: [0, 1]}, {ports: [1]}]",
            "1:36",
            "groups[1].ports[0]",
            "one group",
        ),
        (
            "groups: [{ports: [0, 2]}]",
            "1:22",
            "groups[0].ports[1]",
            "0 to 1",
        ),
        (
            "groups: [{ports: [0, 1]}, {ports: []}]",
            "1:9",
            "groups",
            "group 1 has no port",
        ),
        ("groups: [{cores: 1}]", "1:10", "groups[0]", "ports: [0, 1]"),
        ("groups: []", "1:9", "groups", "no group has port 0, 1"),
        (
            "groups: [{ports: [0], cores: [1]}, {ports: [1], cores: [0, 1]}]",
            "1:60",
            "groups[1].cores[1]",
            "already",
        ),
        (
            "groups: [{ports: [0], cores: 64}, {ports: [1]}]",
            "1:9",
            "groups",
            "65 threads",
        ),
        (
            "groups: [{ports: [0, 1], cpu: 3}]",
            "1:31",
            "groups[0].cpu",
            "ports, cores",
        ),
        ("receive_threads: 0", "1:18", "receive_threads", "1 to 16"),
        (
            "receive_threads: 2\nreceive_cpu: 1",
            "2:14",
            "receive_cpu",
            "1 CPU(s) for 2 receive thread(s)",
        ),
        ("pin: maybe", "1:6", "pin", "true"),
        ("stateful: 2", "1:11", "stateful", "true"),
        ("flows_max: 7", "1:12", "flows_max", "1024"),
        ("receive_cpu: 9999", "1:14", "receive_cpu", "0 to 4095"),
        ("poll: often", "1:7", "poll", "busy or adaptive"),
        ("poll: [busy]", "1:7", "poll", "single value"),
        ("listen: 'a b'", "1:9", "listen", "such as 127.0.0.1"),
        ("rpc_port: 70000", "1:11", "rpc_port", "0 to 65535"),
        ("pub_port: 4501", "1:11", "pub_port", "the same"),
        ("emu_port: 4500", "1:11", "emu_port", "write another"),
        ("bird_port: 4501", "1:12", "bird_port", "write another"),
        ("emu_port: yes", "1:11", "emu_port", "0 to 65535"),
        ("emu_exports: 1", "1:14", "emu_exports", "true"),
        ("http: localhost:80", "1:7", "http", "such as 4502"),
        ("http: [4502]", "1:7", "http", "single value"),
    ];

    #[test]
    fn every_error_names_its_place_its_key_and_what_is_right() {
        let many = format!("ports: [{}]", "memory,".repeat(33));
        for (text, place, key, words) in
            WRONG
                .iter()
                .copied()
                .chain([(&*many, "1:8", "ports", "at most 32")])
        {
            let findings = load(text, &around()).expect_err(text);
            let found = findings.problems.iter().any(|problem| {
                problem.place.to_string() == place
                    && problem.key == key
                    && problem.text.contains(words)
            });
            assert!(found, "{text:?}: {findings:?}");
        }
    }

    #[test]
    fn all_problems_are_told_in_the_order_of_the_text() {
        let text = "speed: 1\ncores: 0\nports:\n- port: memory\n  ip: x\n  vlan: y\n";
        let findings = load(text, &around()).expect_err(text);
        let keys: Vec<&str> = findings
            .problems
            .iter()
            .map(|problem| &*problem.key)
            .collect();
        assert_eq!(keys, ["speed", "cores", "ports[0].ip", "ports[0].vlan"]);
        assert_eq!(
            findings.problems[1].to_string(),
            "2:8: cores: '0': write a whole number of 1 to 64"
        );
    }

    #[test]
    fn options_of_the_command_line_choose_ports_and_threads() {
        let around = Surroundings {
            cores_per_pair: Some(3),
            ports_max: Some(3),
            ..around()
        };
        let loaded = load(
            "cores: [0, 1]\nports: [dummy, dummy, dummy, dummy, dummy]",
            &around,
        );
        let settings = loaded.expect("right").settings;
        assert_eq!(settings.ports.len(), 3);
        let groups = settings.groups.iter();
        let groups: Vec<_> = groups
            .map(|g| (&g.ports[..], g.threads, g.cpus.len()))
            .collect();
        assert_eq!(groups, [(&[0, 1][..], 3, 0), (&[2][..], 3, 0)]);
    }
}
