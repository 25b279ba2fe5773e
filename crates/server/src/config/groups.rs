//! Groups of ports, each with threads that send on them and on no others.

use allosaur_port::description::PORTS_MAX;

use super::read::{Findings, Item, Key, Map, number};
use super::yaml::{Node, Value};
use super::{Settings, Surroundings};
use crate::sim::CORES_MAX;

/// More CPUs than any machine has.
const CPU_MAX: u64 = 4095;

/// Ports, and the threads that send on them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The numbers of the ports, at least one.
    pub ports: Vec<usize>,
    /// Threads that send on all of them.
    pub threads: u16,
    /// The CPUs that these threads are bound to, in their order: of each, or of none.
    pub cpus: Vec<usize>,
    /// The NUMA node that the CPUs shall be on, if the user said so.
    pub node: Option<usize>,
}

impl Group {
    /// So many threads for all of so many ports.
    pub fn of_all(ports: usize, threads: u16) -> Vec<Group> {
        vec![Group::plain((0..ports).collect(), threads)]
    }

    /// So many threads for each two of so many ports, and as many for an odd last one; fewer where
    /// that would be more than there can be.
    pub fn of_pairs(ports: usize, threads: u16) -> Vec<Group> {
        let pairs = ports.div_ceil(2).max(1);
        let threads = threads.min((CORES_MAX / pairs).max(1) as u16);
        let group = |first| Group::plain((first..ports.min(first + 2)).collect(), threads);
        (0..ports).step_by(2).map(group).collect()
    }

    fn plain(ports: Vec<usize>, threads: u16) -> Group {
        Group {
            ports,
            threads,
            cpus: Vec::new(),
            node: None,
        }
    }
}

/// Leaves out ports from `ports` on, and groups that have no others.
pub(super) fn truncate(groups: &mut Vec<Group>, ports: usize) {
    for group in groups.iter_mut() {
        group.ports.retain(|port| *port < ports);
    }
    groups.retain(|group| !group.ports.is_empty());
}

/// The keys of a group.
pub const GROUP_KEYS: [Key; 2] = [
    Key {
        name: "ports",
        value: "a list of port numbers",
        default: "must be there",
        meaning: "the ports of the group; each port is in one group",
        example: "[0, 1]",
    },
    Key {
        name: "cores",
        value: "1 to 64, or a list of CPUs such as `[2, 3]`",
        default: "1",
        meaning: "how many threads send on these ports; a list binds each of them to a CPU",
        example: "2",
    },
];

/// Reads `cores` or `groups` for so many ports, if either is there.
pub(super) fn read(
    map: &Map<'_>,
    ports: usize,
    around: &Surroundings,
    settings: &mut Settings,
    findings: &mut Findings,
) {
    settings.groups = Group::of_all(ports, 1);
    if let Some(item) = map.find("cores") {
        let mut seen = Vec::new();
        let (threads, cpus) = read_cores(item, around, &mut seen, findings);
        settings.groups[0].threads = threads;
        settings.groups[0].cpus = cpus;
    }
    let Some(item) = map.find("groups") else {
        return;
    };
    if map.find("cores").is_some() {
        item.refuse(
            findings,
            "cores is there too: write cores within each group",
        );
        return;
    }
    let before = findings.problems.len();
    let groups = read_groups(item, ports, around, findings);
    if findings.problems.len() > before {
        return;
    }
    check_whole(item, &groups, ports, findings);
    settings.groups = groups;
}

fn read_groups(
    item: &Item<'_>,
    ports: usize,
    around: &Surroundings,
    findings: &mut Findings,
) -> Vec<Group> {
    let (mut seen_ports, mut seen_cpus) = (Vec::new(), Vec::new());
    let mut groups = Vec::new();
    for item in item.list(findings) {
        let map = item.map(&GROUP_KEYS, findings);
        let Some(of_group) = map.find("ports") else {
            if matches!(item.node.value, Value::Map(_)) {
                item.refuse(findings, "says not which ports: write `ports: [0, 1]`");
            }
            continue;
        };
        let mut group = Group::plain(Vec::new(), 1);
        for item in of_group.list(findings) {
            let Some(port) = item.read(findings, port(ports)) else {
                continue;
            };
            if seen_ports.contains(&port) {
                let text = format!("port {port} is in a group already: a port is in one group");
                item.refuse(findings, text);
            }
            seen_ports.push(port);
            group.ports.push(port);
        }
        if let Some(item) = map.find("cores") {
            (group.threads, group.cpus) = read_cores(item, around, &mut seen_cpus, findings);
        }
        groups.push(group);
    }
    groups
}

/// Each port is in a group, and there are not too many threads.
fn check_whole(item: &Item<'_>, groups: &[Group], ports: usize, findings: &mut Findings) {
    let is_left_out = |port: &usize| groups.iter().all(|group| !group.ports.contains(port));
    let left_out: Vec<usize> = (0..ports).filter(is_left_out).collect();
    if !left_out.is_empty() {
        let names: Vec<String> = left_out.iter().map(usize::to_string).collect();
        let names = names.join(", ");
        item.refuse(
            findings,
            format!("no group has port {names}: add it to one, or write a group for it"),
        );
    }
    if let Some(empty) = groups.iter().position(|group| group.ports.is_empty()) {
        item.refuse(findings, format!("group {empty} has no port: name one"));
    }
    let threads: usize = groups.iter().map(|group| usize::from(group.threads)).sum();
    if threads > CORES_MAX {
        item.refuse(
            findings,
            format!("{threads} threads in all: write at most {CORES_MAX}"),
        );
    }
}

/// The number of a port that is there. `ports` is 0 when that is not known.
fn port(ports: usize) -> impl Fn(&Node) -> Result<usize, String> {
    let last = if ports == 0 { PORTS_MAX } else { ports } - 1;
    move |node| number(0..=last as u64)(node).map(|port| port as usize)
}

/// A number of threads, or their CPUs, none of them in `seen`.
fn read_cores(
    item: &Item<'_>,
    around: &Surroundings,
    seen: &mut Vec<usize>,
    findings: &mut Findings,
) -> (u16, Vec<usize>) {
    if !matches!(item.node.value, Value::List(_)) {
        let threads = item.read(findings, number(1..=CORES_MAX as u64));
        return (threads.unwrap_or(1) as u16, Vec::new());
    }
    let cpus = read_cpus(item, around, seen, findings);
    (cpus.len().max(1) as u16, cpus)
}

/// A list of different CPUs, none of them in `seen`.
pub(super) fn read_cpus(
    item: &Item<'_>,
    around: &Surroundings,
    seen: &mut Vec<usize>,
    findings: &mut Findings,
) -> Vec<usize> {
    let items = item.list(findings);
    if items.is_empty() || items.len() > CORES_MAX {
        item.refuse(
            findings,
            format!("{} CPUs: name 1 to {CORES_MAX}", items.len()),
        );
        return Vec::new();
    }
    let mut cpus = Vec::new();
    for item in &items {
        let Some(cpu) = item.read(findings, cpu(around)) else {
            continue;
        };
        if seen.contains(&cpu) {
            item.refuse(
                findings,
                format!("CPU {cpu} is there already: name another"),
            );
        }
        seen.push(cpu);
        cpus.push(cpu);
    }
    cpus
}

/// A CPU that this process may use.
pub(super) fn cpu(around: &Surroundings) -> impl Fn(&Node) -> Result<usize, String> {
    let may_use = around.cpus.clone();
    move |node| {
        let cpu = number(0..=CPU_MAX)(node)? as usize;
        if may_use.is_empty() || may_use.contains(&cpu) {
            return Ok(cpu);
        }
        let names: Vec<String> = may_use.iter().map(usize::to_string).collect();
        let names = names.join(", ");
        Err(format!(
            "CPU {cpu} is not there for this process: those that are: {names}"
        ))
    }
}
