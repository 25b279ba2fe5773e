//! TRex's form, as `/etc/trex_cfg.yaml` has it: a list with one map.

use std::net::Ipv4Addr;
use std::str::FromStr;

use super::groups::Group;
use super::ours::check_pair;
use super::read::{Findings, Item, Map, flag, ipv4, mac, number, text, unicast_mac};
use super::yaml::{Node, Value};
use super::{Cpus, names};
use super::{
    FLOWS, FLOWS_MAX, FLOWS_MIN, PUB_PORT, PortSettings, RPC_PORT, Settings, Stack, Surroundings,
    check_ports,
};
use crate::config::polling::Poll;
use crate::control::StartAddresses;
use crate::sim::CORES_MAX;

/// The version of TRex's form.
const VERSION: u64 = 2;
/// More threads or ports than anybody has.
const MANY: u64 = 4095;

/// A key of TRex's.
#[derive(Clone, Copy, Debug)]
pub struct TrexKey {
    /// Its name.
    pub name: &'static str,
    /// What it means here; none when it means nothing.
    pub meaning: Option<&'static str>,
    /// Why it means nothing.
    pub reason: &'static str,
}

const fn used(name: &'static str, meaning: &'static str) -> TrexKey {
    TrexKey {
        name,
        meaning: Some(meaning),
        reason: "",
    }
}

const fn unused(name: &'static str, reason: &'static str) -> TrexKey {
    TrexKey {
        name,
        meaning: None,
        reason,
    }
}

const NO_DPDK: &str = "is for DPDK, which this server does not use yet";

/// The keys of the whole file.
pub const KEYS: [TrexKey; 29] = [
    used("version", "must be 2"),
    used("interfaces", "the ports, see below"),
    used("port_limit", "use the first ports only, so many"),
    used("port_info", "the addresses of the ports, see below"),
    used("c", "threads that send, for each two ports"),
    used("zmq_rpc_port", "the TCP port of requests"),
    used("zmq_pub_port", "the TCP port of events"),
    used("platform", "the CPUs that threads are bound to, see below"),
    used(
        "low_end",
        "one thread that sends, and threads sleep when idle",
    ),
    used(
        "low_end_core",
        "with `low_end`: the CPU of the thread that sends",
    ),
    used(
        "prefix",
        "nothing needs it here: servers on one machine share nothing but TCP ports",
    ),
    used("enable_zmq_pub", "`true` only: events are always published"),
    used(
        "stack",
        "`legacy`, or `linux_based`: the kernel answers, in a network namespace a port",
    ),
    unused("telnet_port", "is of no use in TRex either"),
    unused(
        "ezqm_ch_port",
        "is 4511 here; --emu-zmq-port of allosaur-server names another for an emulation server beside",
    ),
    unused(
        "port_bandwidth_gb",
        "scales TRex's memory; memory here needs no size",
    ),
    unused(
        "port_speed",
        "cannot be forced: a port has the speed it has",
    ),
    unused(
        "port_mtu",
        "cannot be set here: set it with `ip link set IF mtu N`",
    ),
    unused("rx_desc", NO_DPDK),
    unused("tx_desc", NO_DPDK),
    unused("dpdk_devargs", NO_DPDK),
    unused("ext_dpdk_opt", NO_DPDK),
    unused("interfaces_vdevs", NO_DPDK),
    unused("new_memory", NO_DPDK),
    unused("limit_memory", NO_DPDK),
    unused(
        "services_core",
        "is for TRex's helpers (Scapy server, BIRD, emulation), which are not processes here",
    ),
    used("memory", "how many flows there may be, see below"),
    unused("tw", "sizes TRex's timers; timers here need no size"),
    unused(
        "interface_mask",
        "is of no use in TRex either: name fewer interfaces",
    ),
];

const NO_SIZE: &str = "sizes TRex's memory; memory here needs no size";

/// The keys of `memory`.
pub const MEMORY_KEYS: [TrexKey; 18] = [
    used(
        "dp_flows",
        "flows at the same time in stateful mode, of all threads together",
    ),
    unused("global_flows", NO_SIZE),
    unused("mbuf_64", NO_SIZE),
    unused("mbuf_128", NO_SIZE),
    unused("mbuf_256", NO_SIZE),
    unused("mbuf_512", NO_SIZE),
    unused("mbuf_1024", NO_SIZE),
    unused("mbuf_2048", NO_SIZE),
    unused("mbuf_4096", NO_SIZE),
    unused("mbuf_9k", NO_SIZE),
    unused("traffic_mbuf_64", NO_SIZE),
    unused("traffic_mbuf_128", NO_SIZE),
    unused("traffic_mbuf_256", NO_SIZE),
    unused("traffic_mbuf_512", NO_SIZE),
    unused("traffic_mbuf_1024", NO_SIZE),
    unused("traffic_mbuf_2048", NO_SIZE),
    unused("traffic_mbuf_4096", NO_SIZE),
    unused("traffic_mbuf_9k", NO_SIZE),
];

/// The keys of an entry of `port_info`.
pub const PORT_KEYS: [TrexKey; 8] = [
    used("ip", "the port's own IPv4 address"),
    used(
        "default_gw",
        "its gateway; the port asks for its MAC address once a second until it answers",
    ),
    used("vlan", "the VLAN that the port's host is in; 0 is none"),
    used(
        "dest_mac",
        "where frames go: text, or a list of six numbers",
    ),
    used(
        "src_mac",
        "the address that the port has: text, or a list of six numbers",
    ),
    unused("mask", "is not needed: packets go to the gateway"),
    unused(
        "mpls",
        "is not there yet: put the label into the packets of the streams",
    ),
    unused(
        "eompls",
        "is not there yet: put the labels into the packets of the streams",
    ),
];

/// The keys of `platform`.
pub const PLATFORM_KEYS: [TrexKey; 4] = [
    used(
        "master_thread_id",
        "the CPU of the thread that answers requests",
    ),
    used("latency_thread_id", "the CPU of the thread that receives"),
    used("rx_thread_id", "the same"),
    used(
        "dual_if",
        "a list: for each two ports `threads`, the CPUs of the threads that send",
    ),
];

/// The keys of an entry of `dual_if`.
pub const DUAL_KEYS: [TrexKey; 2] = [
    used("threads", "CPUs, of which the first `c` are used"),
    used(
        "socket",
        "the NUMA node of these CPUs; a warning where they are on another",
    ),
];

/// The values of a map; a warning for what means nothing or is not known.
fn open<'a>(item: &Item<'a>, keys: &[TrexKey], findings: &mut Findings) -> Map<'a> {
    let mut entries = Vec::new();
    for (name, item) in item.entries(findings) {
        match keys.iter().find(|key| key.name == name) {
            None => item.warn(findings, "is not known, and ignored"),
            Some(TrexKey {
                meaning: None,
                reason,
                ..
            }) => {
                item.warn(findings, format!("{reason}; ignored"));
            }
            // TRex takes a key without a value for one that is not there.
            Some(_) if item.node.value == Value::Nothing => {}
            Some(_) => entries.push((name, item)),
        }
    }
    Map(entries)
}

/// Reads a file of TRex's form. When there are problems the settings are not whole.
pub(super) fn read(root: &Node, around: &Surroundings, findings: &mut Findings) -> Settings {
    let mut settings = Settings::default();
    let items = Item::root(root).list(findings);
    let [first, others @ ..] = &items[..] else {
        Item::root(root).refuse(findings, "the list is empty: write one map into it");
        return settings;
    };
    for other in others {
        other.warn(
            findings,
            "TRex reads the first map of the list only; ignored",
        );
    }
    // The way to a key is what people know it by: interfaces, not [0].interfaces.
    let first = Item::root(first.node);
    let map = open(&first, &KEYS, findings);
    match map.find("version") {
        Some(version) => {
            version.read(findings, number(VERSION..=VERSION));
        }
        None => first.refuse(findings, "version is missing: write `version: 2`"),
    }
    settings.ports = read_ports(&first, &map, around, findings);
    read_cores(&map, around, &mut settings, findings);
    // TRex has no 0; here it picks a free one, as in our form.
    let port = number(0..=u64::from(u16::MAX));
    let rpc_port = map.read("zmq_rpc_port", findings, &port);
    settings.rpc_port = rpc_port.map_or(RPC_PORT, |port| port as u16);
    let pub_port = map.read("zmq_pub_port", findings, &port);
    // As in TRex, it does not follow a port of requests that the file names.
    let default = rpc_port.map(|_| PUB_PORT);
    settings.pub_port = pub_port.map(|port| port as u16).or(default);
    if settings.pub_port == Some(settings.rpc_port) && settings.rpc_port != 0 {
        first.refuse(
            findings,
            "zmq_rpc_port and zmq_pub_port are the same: write another",
        );
    }
    if let Some(memory) = map.find("memory") {
        let memory = open(memory, &MEMORY_KEYS, findings);
        let flows = number(1..=FLOWS_MAX as u64);
        let flows_max = memory.read("dp_flows", findings, flows);
        settings.flows_max = flows_max.map_or(FLOWS, |flows| (flows as usize).max(FLOWS_MIN));
    }
    let stack = map.read("stack", findings, |node| Stack::from_str(text(node)?));
    settings.stack = stack.unwrap_or_default();
    map.read("prefix", findings, text);
    warn_unless_default(&map, findings);
    settings
}

/// Keys of which only the usual value is true here.
fn warn_unless_default(map: &Map<'_>, findings: &mut Findings) {
    if map.read("enable_zmq_pub", findings, flag) == Some(false) {
        let item = map.find("enable_zmq_pub").expect("it was read");
        item.warn(findings, "events are always published; ignored");
    }
}

fn read_ports(
    first: &Item<'_>,
    map: &Map<'_>,
    around: &Surroundings,
    findings: &mut Findings,
) -> Vec<PortSettings> {
    let Some(interfaces) = map.find("interfaces") else {
        first.refuse(findings, "interfaces are missing: write a list of them");
        return Vec::new();
    };
    let mut items = interfaces.list(findings);
    if let Some(limit) = map.find("port_limit") {
        let max = items.len().max(1) as u64;
        let limit = limit.read(findings, number(1..=max));
        items.truncate(limit.map_or(items.len(), |limit| limit as usize));
    }
    items.truncate(around.ports_max.unwrap_or(usize::MAX));
    let before = findings.problems.len();
    let descriptions: Vec<_> = items
        .iter()
        .map(|item| item.read(findings, |node| names::trex(text(node)?)))
        .collect();
    for item in &items {
        item.mark_port(findings);
    }
    let addresses = read_port_info(map, items.len(), findings);
    if findings.problems.len() > before {
        return Vec::new();
    }
    let ports = descriptions.into_iter().flatten().zip(addresses);
    let ports: Vec<_> = ports
        .map(|(description, addresses)| PortSettings {
            description,
            addresses,
            load_max_bps: None,
        })
        .collect();
    if let Err(error) = check_ports(&ports) {
        interfaces.refuse(findings, error.to_string());
    }
    ports
}

/// The addresses of so many ports.
fn read_port_info(map: &Map<'_>, ports: usize, findings: &mut Findings) -> Vec<StartAddresses> {
    let mut addresses = vec![StartAddresses::default(); ports];
    let Some(info) = map.find("port_info") else {
        return addresses;
    };
    let items = info.list(findings);
    if items.len() > ports {
        let text = format!(
            "{} entries for {ports} ports: the last are ignored",
            items.len()
        );
        info.warn(findings, text);
    }
    for (item, addresses) in items.iter().zip(&mut addresses) {
        *addresses = read_port(item, findings);
    }
    addresses
}

fn read_port(item: &Item<'_>, findings: &mut Findings) -> StartAddresses {
    let map = open(item, &PORT_KEYS, findings);
    let ip = map.read("ip", findings, any_ipv4).flatten();
    let gateway = map.read("default_gw", findings, any_ipv4).flatten();
    check_pair(
        item,
        map.find("ip").filter(|_| ip.is_some()),
        map.find("default_gw").filter(|_| gateway.is_some()),
        findings,
    );
    let tag = map.read("vlan", findings, number(0..=4095));
    let source_mac = map.read("src_mac", findings, mac);
    StartAddresses {
        ipv4: ip.zip(gateway),
        vlan: tag
            .filter(|&tag| tag != 0)
            .map(|tag| tag as u16)
            .into_iter()
            .collect(),
        vxlan: None,
        destination_mac: map.read("dest_mac", findings, mac),
        // Zeros are TRex's way to write none.
        source_mac: source_mac
            .filter(|mac| *mac != [0; 6])
            .and_then(|_| map.read("src_mac", findings, unicast_mac)),
    }
}

/// An address; 0.0.0.0 is TRex's way to write none.
fn any_ipv4(node: &Node) -> Result<Option<Ipv4Addr>, String> {
    match text(node) {
        Ok("0.0.0.0") => Ok(None),
        _ => ipv4(node).map(Some),
    }
}

fn read_cores(
    map: &Map<'_>,
    around: &Surroundings,
    settings: &mut Settings,
    findings: &mut Findings,
) {
    let pairs = settings.ports.len().div_ceil(2).max(1);
    let cores_max = (CORES_MAX / pairs).max(1);
    let of_file = map.read("c", findings, number(1..=cores_max as u64));
    let asked = around.cores_per_pair.map(u64::from).or(of_file);
    let per_pair = asked.unwrap_or(1).clamp(1, cores_max as u64) as usize;
    let low_end = map.read("low_end", findings, flag) == Some(true);
    let low_end_core = map.read("low_end_core", findings, number(0..=MANY));
    settings.groups = match low_end {
        true => Group::of_all(settings.ports.len(), 1),
        false => Group::of_pairs(settings.ports.len(), per_pair as u16),
    };
    if let Some(platform) = map.find("platform") {
        read_platform(platform, low_end, settings, findings);
    }
    if low_end {
        settings.poll = Some(Poll::Adaptive);
        settings.groups[0].cpus = low_end_core.map(|cpu| cpu as usize).into_iter().collect();
    } else {
        if let (Some(_), Some(item)) = (low_end_core, map.find("low_end_core")) {
            item.warn(findings, "means nothing without `low_end: true`; ignored");
        }
    }
    check_cpus(map, around, settings, findings);
}

/// The CPUs of all threads; with `low_end` another key says where the thread that sends runs.
fn read_platform(
    platform: &Item<'_>,
    low_end: bool,
    settings: &mut Settings,
    findings: &mut Findings,
) {
    let map = open(platform, &PLATFORM_KEYS, findings);
    let receive = map.read("rx_thread_id", findings, cpu);
    let receive = map.read("latency_thread_id", findings, cpu).or(receive);
    settings.cpus = Cpus {
        receive: receive.into_iter().collect(),
        control: map.read("master_thread_id", findings, cpu),
    };
    if let Some(dual) = map.find("dual_if").filter(|_| !low_end) {
        read_dual(dual, &mut settings.groups, findings);
    }
}

fn cpu(node: &Node) -> Result<usize, String> {
    number(0..=MANY)(node).map(|cpu| cpu as usize)
}

/// The CPUs of the threads that send, for each pair of ports.
fn read_dual(dual: &Item<'_>, groups: &mut [Group], findings: &mut Findings) {
    let (mut is_enough, mut seen) = (true, Vec::<usize>::new());
    let per_pair = groups.first().map_or(1, |group| usize::from(group.threads));
    let items = dual.list(findings);
    for (item, group) in items.iter().zip(groups.iter_mut()) {
        let map = open(item, &DUAL_KEYS, findings);
        let socket = map.read("socket", findings, number(0..=MANY));
        group.node = socket.map(|socket| socket as usize);
        let threads = map
            .find("threads")
            .map(|item| item.list(findings))
            .unwrap_or_default();
        is_enough &= threads.len() >= per_pair;
        let threads = threads.iter().filter_map(|item| item.read(findings, cpu));
        group.cpus = threads.collect();
        group.cpus.truncate(per_pair);
        seen.extend(&group.cpus);
    }
    let pairs = groups.len();
    let twice = (1..seen.len()).find(|&n| seen[..n].contains(&seen[n]));
    let text = if !is_enough || items.len() < pairs {
        format!("has not {per_pair} threads for each of {pairs} pairs of ports")
    } else if let Some(n) = twice {
        format!("names CPU {} twice", seen[n])
    } else {
        return;
    };
    dual.warn(
        findings,
        format!("{text}: threads that send run on any CPU"),
    );
    for group in groups {
        group.cpus.clear();
    }
}

/// A file may be from another machine: CPUs that are not here are nothing to fail for.
fn check_cpus(
    map: &Map<'_>,
    around: &Surroundings,
    settings: &mut Settings,
    findings: &mut Findings,
) {
    let mut all = settings.data_cpus();
    all.extend(settings.cpus.receive.iter().chain(&settings.cpus.control));
    all.retain(|cpu| !around.cpus.is_empty() && !around.cpus.contains(cpu));
    let missing: Vec<String> = all.iter().map(usize::to_string).collect();
    if missing.is_empty() {
        return;
    }
    let text = format!(
        "CPU {} is not there for this process: all threads run on any CPU",
        missing.join(", ")
    );
    if let Some(item) = map.find("platform").or(map.find("low_end_core")) {
        item.warn(findings, text);
    }
    settings.cpus = Cpus::default();
    for group in &mut settings.groups {
        (group.cpus, group.node) = (Vec::new(), None);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Form, Loaded, load};
    use super::*;

    fn around() -> Surroundings {
        Surroundings {
            cpus: (0..8).collect(),
            ..Surroundings::default()
        }
    }

    fn loaded(text: &str) -> Loaded {
        let loaded = load(text, &around());
        let loaded = loaded.unwrap_or_else(|findings| panic!("{text}: {findings:?}"));
        assert_eq!(loaded.form, Form::Trex);
        loaded
    }

    fn names(loaded: &Loaded) -> Vec<String> {
        let ports = loaded.settings.ports.iter();
        ports.map(|port| port.description.to_string()).collect()
    }

    fn warned(loaded: &Loaded) -> Vec<&str> {
        loaded
            .warnings
            .iter()
            .map(|warning| &*warning.key)
            .collect()
    }

    /// Made up, with the shape of those that people have.
    const ROUTED: &str = r#"
### Ports that are routed, two threads each
- version: 2
  interfaces: ["ens7", "--vdev=net_af_packet3,iface=tap3", "dummy", 'memory']
  port_limit: 4
  c: 2
  prefix: lab1
  zmq_pub_port: 24500
  zmq_rpc_port: 24501
  limit_memory: 1024
  port_info:
    - ip: 198.51.100.2
      default_gw: 198.51.100.1
      vlan: 30
    - dest_mac: [0x2, 0x0, 0x0, 0x0, 0x5, 0x1]   # the router
      src_mac: '02:00:00:00:05:02'
    - ip: 0.0.0.0
      default_gw: 0.0.0.0
      vlan: 0
  platform:
    master_thread_id: 0
    latency_thread_id: 1
    dual_if:
      - socket: 0
        threads: [2, 3, 4]
      - socket: 1
        threads: [5, 6]
"#;

    #[test]
    fn a_whole_file_is_read() {
        let loaded = loaded(ROUTED);
        assert_eq!(
            names(&loaded),
            ["af_packet:ens7", "af_packet:tap3", "dummy", "memory"]
        );
        let settings = &loaded.settings;
        assert_eq!(
            (settings.rpc_port, settings.events_port(), settings.cores()),
            (24501, 24500, 4)
        );
        let group = |ports: [usize; 2], cpus: [usize; 2], node| Group {
            ports: ports.into(),
            threads: 2,
            cpus: cpus.into(),
            node: Some(node),
        };
        let groups = [group([0, 1], [2, 3], 0), group([2, 3], [5, 6], 1)];
        assert_eq!(settings.groups, groups);
        let cpus = Cpus {
            receive: vec![1],
            control: Some(0),
        };
        assert_eq!(settings.cpus, cpus);
        let address = |last| Ipv4Addr::new(198, 51, 100, last);
        let expected = [
            StartAddresses {
                ipv4: Some((address(2), address(1))),
                vlan: vec![30],
                vxlan: None,
                ..StartAddresses::default()
            },
            StartAddresses {
                destination_mac: Some([2, 0, 0, 0, 5, 1]),
                source_mac: Some([2, 0, 0, 0, 5, 2]),
                ..StartAddresses::default()
            },
            StartAddresses::default(),
            StartAddresses::default(),
        ];
        for (port, expected) in settings.ports.iter().zip(expected) {
            assert_eq!(port.addresses, expected);
        }
        assert_eq!(warned(&loaded), ["limit_memory"]);
        assert_eq!(settings.listen, "127.0.0.1");
    }

    #[test]
    fn memory_says_how_many_flows_there_may_be() {
        let flows = |lines: &str| {
            let loaded = loaded(&with(lines));
            (loaded.settings.flows_max, loaded.warnings.len())
        };
        assert_eq!(flows(""), (FLOWS, 0));
        assert_eq!(
            flows("  memory:\n    dp_flows: 100000\n    mbuf_64: 9\n"),
            (100_000, 1)
        );
        assert_eq!(flows("  memory:\n    dp_flows: 5\n"), (FLOWS_MIN, 0));
    }

    fn with(lines: &str) -> String {
        format!("- version: 2\n  interfaces: [memory, memory, memory]\n{lines}")
    }

    #[test]
    fn keys_that_mean_nothing_are_warned_of_one_by_one() {
        for key in KEYS.iter().filter(|key| key.meaning.is_none()) {
            let loaded = loaded(&with(&format!("  {}: 1\n", key.name)));
            assert_eq!(warned(&loaded), [key.name]);
        }
        for (lines, key) in [
            ("  speed_of_light: 3\n", "speed_of_light"),
            ("  enable_zmq_pub: false\n", "enable_zmq_pub"),
            ("  low_end_core: 1\n", "low_end_core"),
            ("- more: 1\n", "[1]"),
            ("  port_info: [{}, {}, {}, {}]\n", "port_info"),
            ("  port_info: [{mask: 255.255.0.0}]\n", "port_info[0].mask"),
            (
                "  platform: {dual_if: [{threads: [1]}]}\n",
                "platform.dual_if",
            ),
            (
                "  platform: {dual_if: [{threads: [1]}, {threads: [1]}]}\n",
                "platform.dual_if",
            ),
            ("  platform: {master_thread_id: 8}\n", "platform"),
        ] {
            let loaded = loaded(&with(lines));
            assert_eq!(warned(&loaded), [key], "{lines}");
            assert_eq!(loaded.settings.cpus, Cpus::default());
            assert_eq!(loaded.settings.data_cpus(), [0; 0]);
        }
    }

    #[test]
    fn usual_values_and_empty_keys_are_quiet() {
        let lines =
            "  enable_zmq_pub: true\n  stack: legacy\n  prefix: a\n  port_info:\n  platform:\n";
        assert_eq!(warned(&loaded(&with(lines))), [""; 0]);
    }

    #[test]
    fn ports_and_threads_may_be_fewer() {
        let settings = |lines: &str| loaded(&with(lines)).settings;
        assert_eq!(settings("  port_limit: 2\n").ports.len(), 2);
        assert_eq!(
            settings("").cores(),
            2,
            "one for each two ports, and one for the last"
        );
        assert_eq!(settings("  port_limit: 1\n  c: 5\n").cores(), 5);
        let low = settings("  low_end: true\n  low_end_core: 3\n  c: 2\n");
        assert_eq!((low.cores(), low.poll), (1, Some(Poll::Adaptive)));
        assert_eq!(low.data_cpus(), [3]);
        let around = Surroundings {
            cores_per_pair: Some(1),
            ports_max: Some(2),
            ..around()
        };
        let chosen = load(ROUTED, &around).expect("right").settings;
        assert_eq!((chosen.ports.len(), chosen.cores()), (2, 1));
        assert_eq!(chosen.data_cpus(), [2]);
    }

    /// Texts, and what is wrong with them: the place, the key, and words of the message.
    const WRONG: &[(&str, &str, &str, &str)] = &[
        ("[]", "1:1", "", "write one map"),
        ("- 1", "1:3", "", "write keys"),
        ("- interfaces: [memory]", "1:3", "", "version: 2"),
        (
            "- version: 1\n  interfaces: [memory]",
            "1:12",
            "version",
            "2 to 2",
        ),
        ("- version: 2", "1:3", "", "interfaces are missing"),
        (
            "- version: 2\n  interfaces: memory",
            "2:15",
            "interfaces",
            "write a list",
        ),
        (
            "- version: 2\n  interfaces: []",
            "2:15",
            "interfaces",
            "at least one",
        ),
        (
            "- version: 2\n  interfaces: ['af_xdp:a:queues=0', x]",
            "2:16",
            "interfaces[0]",
            "queues",
        ),
        (
            "- version: 2\n  interfaces: [a b]",
            "2:16",
            "interfaces[0]",
            "`ip link`",
        ),
        (
            "- version: 2\n  interfaces: [x, x]",
            "2:15",
            "interfaces",
            "same interface",
        ),
    ];

    /// The same, for lines behind version and interfaces.
    const WRONG_LINES: &[(&str, &str, &str, &str)] = &[
        ("  port_limit: 4\n", "3:15", "port_limit", "1 to 3"),
        ("  c: 0\n", "3:6", "c", "1 to 32"),
        (
            "  zmq_rpc_port: 65536\n",
            "3:17",
            "zmq_rpc_port",
            "0 to 65535",
        ),
        ("  zmq_rpc_port: 4500\n", "1:3", "", "the same"),
        (
            "  port_info: [{ip: 1.2.3}]\n",
            "3:20",
            "port_info[0].ip",
            "such as",
        ),
        (
            "  port_info: [{ip: 1.2.3.4}]\n",
            "3:20",
            "port_info[0].ip",
            "no gateway",
        ),
        (
            "  port_info: [{vlan: 4096}]\n",
            "3:22",
            "port_info[0].vlan",
            "0 to 4095",
        ),
        (
            "  port_info: [{dest_mac: [1]}]\n",
            "3:26",
            "port_info[0].dest_mac",
            "02:00",
        ),
        ("  port_info: {}\n", "3:14", "port_info", "write a list"),
        ("  platform: [1]\n", "3:13", "platform", "write keys"),
        (
            "  platform: {dual_if: [{threads: [1, x]}]}\n",
            "3:38",
            "platform.dual_if[0].threads[1]",
            "whole number",
        ),
    ];

    #[test]
    fn every_error_names_its_place_and_its_key() {
        let lines = WRONG_LINES.iter();
        let lines = lines.map(|&(text, place, key, words)| (with(text), place, key, words));
        let whole = WRONG.iter();
        let whole = whole.map(|&(text, place, key, words)| (text.to_owned(), place, key, words));
        for (text, place, key, words) in whole.chain(lines) {
            let findings = load(&text, &around()).expect_err(&text);
            let found = findings.problems.iter().any(|problem| {
                problem.place.to_string() == place
                    && problem.key == key
                    && problem.text.contains(words)
            });
            assert!(found, "{text:?}: {findings:?}");
        }
    }
}
