//! Which thread does what, and where: from what the user said and what the machine has.
//!
//! [`plan`] is pure: [`affinity`] and `devices` ask the machine.
//!
//! [`affinity`]: crate::threads::affinity

use allosaur_engine::template::Side;
use allosaur_port::QueueCounts;
use allosaur_port::sharing::Sharing;
use thiserror::Error;

use crate::config::Settings;
use crate::config::groups::Group;
use crate::config::polling::Poll;
use crate::control::worker_command::Modes;
use crate::threads::affinity::Cpu;

/// What must be known of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// The CPUs that this process may use; none when the system does not say.
    pub cpus: Vec<Cpu>,
    /// The NUMA node of each port's device, where it has one.
    pub port_nodes: Vec<Option<usize>>,
}

/// Which thread does what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The data threads, in order of their numbers.
    pub data: Vec<DataCore>,
    /// How data threads wait.
    pub data_poll: Poll,
    /// The CPU of each receive thread, if it is bound to one.
    pub receive: Vec<Option<usize>>,
    /// How receive threads wait.
    pub receive_poll: Poll,
    /// The CPU of the control thread.
    pub control: Option<usize>,
    /// Of each port, how many queues data threads read while it is in stateful mode.
    pub flow_queues: Vec<usize>,
    /// Ports are in stateful mode from the start, and stay there.
    pub is_stateful: bool,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// What one data thread serves, and where it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataCore {
    /// The ports that it sends on.
    pub ports: Vec<usize>,
    /// The CPU that it is bound to.
    pub cpu: Option<usize>,
}

/// Why threads cannot be laid out so.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// More threads that send than CPUs.
    #[error(
        "{threads} threads send, and there are {cpus} CPU(s) for this process: use at most {cpus} \
         (cores in the file, --cores, or -c of t-rex-64), or let them share CPUs, which costs \
         timing (poll: adaptive in the file, or --poll adaptive)"
    )]
    TooManyThreads {
        /// Threads that send.
        threads: usize,
        /// CPUs that there are.
        cpus: usize,
    },
    /// Threads shall be bound, and there are not enough CPUs that nothing else is bound to.
    #[error(
        "{threads} threads that send shall have CPUs of their own (pin), and {cpus} are left: use \
         fewer threads, or leave pin out"
    )]
    TooFewFree {
        /// Threads that want one.
        threads: usize,
        /// CPUs that nobody else has.
        cpus: usize,
    },
}

/// Lays threads out.
///
/// # Errors
///
/// More threads that send than CPUs, unless they may share them: the user said `adaptive`, or all
/// ports are in memory and the user did not say `busy`. Fewer free CPUs than threads to be pinned.
pub fn plan(settings: &Settings, machine: &Machine) -> Result<Layout, LayoutError> {
    let shares_cpus = check_number(settings, machine)?;
    let mut groups = settings.groups.clone();
    let mut receive_cpus = settings.cpus.receive.clone();
    let mut warnings = Vec::new();
    if settings.pin && shares_cpus {
        warnings.push("threads that send share CPUs: none of them is pinned".to_owned());
    } else if settings.pin {
        pin(&mut groups, &mut receive_cpus, settings, machine)?;
    }
    for group in &settings.groups {
        warn_of_far_cpus(group, settings, machine, &mut warnings);
    }
    let data = groups.iter().flat_map(threads_of).collect::<Vec<_>>();
    let bound = receive_cpus.into_iter().map(Some);
    let unbound = std::iter::repeat(None);
    let receive = bound
        .chain(unbound)
        .take(usize::from(settings.receive_threads.max(1)));
    let mut receive: Vec<_> = receive.collect();
    let is_stateful = settings.modes == Modes::Stateful;
    if is_stateful && receive.len() > 1 {
        let words = "in stateful mode the threads that send receive as well: there is one more that \
                     answers and captures, and receive_threads does nothing";
        warnings.push(words.to_owned());
        receive.truncate(1);
    }
    Ok(Layout {
        data_poll: settings.poll.unwrap_or(poll_of(&data, settings, machine)),
        flow_queues: flow_queues(settings, &data),
        is_stateful,
        data,
        receive,
        receive_poll: settings.poll.unwrap_or(Poll::Adaptive),
        control: settings.cpus.control,
        warnings,
    })
}

/// Whether there are more threads that send than CPUs.
fn check_number(settings: &Settings, machine: &Machine) -> Result<bool, LayoutError> {
    let (threads, cpus) = (settings.cores(), machine.cpus.len());
    if cpus == 0 || threads <= cpus {
        return Ok(false);
    }
    let mut ports = settings.ports.iter();
    let may_share = match settings.poll {
        Some(poll) => poll == Poll::Adaptive,
        None => ports.all(|port| port.description.is_in_memory()),
    };
    match may_share {
        true => Ok(true),
        false => Err(LayoutError::TooManyThreads { threads, cpus }),
    }
}

/// Gives each thread of the groups without CPUs one of its own: on the node of its ports if there
/// are some left, and the first thread of each physical core before the second. Then the receive
/// threads, if they have none and one more is left for all others.
fn pin(
    groups: &mut [Group],
    receive: &mut Vec<usize>,
    settings: &Settings,
    machine: &Machine,
) -> Result<(), LayoutError> {
    let mut taken = settings.data_cpus();
    taken.extend(settings.cpus.receive.iter().chain(&settings.cpus.control));
    let is_free = |cpu: &&Cpu| !taken.contains(&cpu.number);
    let mut free: Vec<&Cpu> = machine.cpus.iter().filter(is_free).collect();
    let unpinned = groups.iter_mut().filter(|group| group.cpus.is_empty());
    let mut unpinned: Vec<&mut Group> = unpinned.collect();
    let threads = unpinned
        .iter()
        .map(|group| usize::from(group.threads))
        .sum();
    if threads > free.len() {
        let cpus = free.len();
        return Err(LayoutError::TooFewFree { threads, cpus });
    }
    // Who has a node goes first, so that nobody else takes its CPUs.
    unpinned.sort_by_key(|group| node_of(group, machine).is_none());
    for group in unpinned {
        group.cpus = take(&mut free, node_of(group, machine), group.threads);
    }
    if receive.is_empty() && free.len() > usize::from(settings.receive_threads) {
        let nodes: Vec<Option<usize>> = groups.iter().map(|g| node_of(g, machine)).collect();
        let first = nodes.first().copied().flatten();
        let node = first.filter(|_| nodes.iter().all(|node| *node == first));
        *receive = take(&mut free, node, settings.receive_threads);
    }
    Ok(())
}

/// Takes so many CPUs, the best for a node first.
fn take(free: &mut Vec<&Cpu>, node: Option<usize>, threads: u16) -> Vec<usize> {
    let is_far = |cpu: &Cpu| node.is_some() && cpu.node != node;
    free.sort_by_key(|cpu| (is_far(cpu), cpu.sibling, cpu.number));
    let taken = free.drain(..usize::from(threads));
    taken.map(|cpu| cpu.number).collect()
}

/// The NUMA node that a group's threads should be on: what the user said, or that of its ports if
/// they agree.
fn node_of(group: &Group, machine: &Machine) -> Option<usize> {
    let nodes = group
        .ports
        .iter()
        .filter_map(|port| port_node(*port, machine));
    let mut nodes: Vec<usize> = nodes.collect();
    nodes.dedup();
    let of_ports = nodes.first().copied().filter(|_| nodes.len() == 1);
    group.node.or(of_ports)
}

fn port_node(port: usize, machine: &Machine) -> Option<usize> {
    machine.port_nodes.get(port).copied().flatten()
}

/// CPUs that the user named on another node than a port that they serve, or than the user said.
fn warn_of_far_cpus(
    group: &Group,
    settings: &Settings,
    machine: &Machine,
    warnings: &mut Vec<String>,
) {
    for &number in &group.cpus {
        let cpu = machine.cpus.iter().find(|cpu| cpu.number == number);
        let Some(node) = cpu.and_then(|cpu| cpu.node) else {
            continue;
        };
        for &port in &group.ports {
            if let Some(far) = port_node(port, machine).filter(|far| *far != node) {
                let name = &settings.ports[port].description;
                warnings.push(format!(
                    "port {port} ({name}) is on NUMA node {far}, and CPU {number}, which sends on it, \
                     on node {node}: memory between nodes is slow{}",
                    near(far, machine)
                ));
            }
        }
        if let Some(said) = group.node.filter(|said| *said != node) {
            warnings.push(format!(
                "CPU {number} is on NUMA node {node}, and the configuration says node {said} \
                 (socket){}",
                near(said, machine)
            ));
        }
    }
}

/// The CPUs of a node, as a remedy.
fn near(node: usize, machine: &Machine) -> String {
    let cpus = machine.cpus.iter().filter(|cpu| cpu.node == Some(node));
    let names: Vec<String> = cpus.map(|cpu| cpu.number.to_string()).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!("; those on node {node} are {}", names.join(", ")),
    }
}

fn threads_of(group: &Group) -> impl Iterator<Item = DataCore> + '_ {
    (0..usize::from(group.threads)).map(|n| DataCore {
        ports: group.ports.clone(),
        cpu: group.cpus.get(n).copied(),
    })
}

/// How many queues of each port data threads read with flows: one each, if it can have so many. Ports that
/// are joined have one for each thread that sends to them, so flows stay where they began, if all have as
/// many threads.
fn flow_queues(settings: &Settings, data: &[DataCore]) -> Vec<usize> {
    let threads = |port: &usize| {
        data.iter()
            .filter(|thread| thread.ports.contains(port))
            .count()
    };
    let is_joined = |port: &usize| settings.ports[*port].description.is_joined();
    let ports = 0..settings.ports.len();
    let joined = ports.clone().filter(is_joined);
    let mut counts: Vec<usize> = joined.map(|port| threads(&port)).collect();
    counts.dedup();
    let queues = |port| match is_joined(&port) && counts.len() != 1 {
        true => 1,
        false => threads(&port).max(1),
    };
    ports.map(queues).collect()
}

/// Threads that each have a CPU which no other thread is bound to may keep it busy, if one more is
/// left for all the others.
fn poll_of(data: &[DataCore], settings: &Settings, machine: &Machine) -> Poll {
    let others = &settings.cpus;
    let is_own = |cpu: usize| !others.receive.contains(&cpu) && others.control != Some(cpu);
    let have_own = data.iter().all(|thread| thread.cpu.is_some_and(is_own));
    match have_own && data.len() < machine.cpus.len() {
        true => Poll::Busy,
        false => Poll::Adaptive,
    }
}

impl Layout {
    /// A line for each thread that sends or receives: what it does, and where.
    pub fn in_words(&self) -> Vec<String> {
        let at = |cpu: Option<usize>| cpu.map_or("any CPU".to_owned(), |cpu| format!("CPU {cpu}"));
        let data = self.data.iter().enumerate().map(|(number, thread)| {
            let ports: Vec<String> = thread.ports.iter().map(usize::to_string).collect();
            let (ports, at, poll) = (ports.join(", "), at(thread.cpu), self.data_poll.name());
            format!("data-{number} sends on port {ports}, on {at}, {poll}")
        });
        let receive = self.receive.iter().enumerate().map(|(number, cpu)| {
            let name = thread_name(number);
            format!("{name} runs on {}, {}", at(*cpu), self.receive_poll.name())
        });
        data.chain(receive).collect()
    }

    /// The data threads that send on a port.
    pub fn cores_of(&self, port: usize) -> Vec<usize> {
        let threads = self.data.iter().enumerate();
        let own = threads.filter(|(_, thread)| thread.ports.contains(&port));
        own.map(|(number, _)| number).collect()
    }

    /// The other data threads that may read what `core` sends on ports that are joined with `peers`, one of
    /// each port: who has the same place at the peer, whose ring it is, and the first, which reads what
    /// threads share.
    pub fn readers_of(&self, core: usize, peers: &[Option<usize>]) -> Vec<usize> {
        let mut readers = Vec::new();
        for &port in &self.data[core].ports {
            let Some(peer) = peers[port] else {
                continue;
            };
            let place = self.cores_of(port).iter().position(|other| *other == core);
            let threads = self.cores_of(peer);
            let same = place.and_then(|place| threads.get(place));
            readers.extend(same.into_iter().chain(threads.first()));
        }
        readers.sort_unstable();
        readers.dedup();
        readers.retain(|other| *other != core);
        readers
    }

    /// Whether others may write what `core` reads on ports that are joined with `peers`.
    pub fn is_fed(&self, core: usize, peers: &[Option<usize>]) -> bool {
        let writes = |other| self.readers_of(other, peers).contains(&core);
        (0..self.data.len()).any(writes)
    }

    /// The queues of each of so many ports: to send, one for each of its data threads, and one for
    /// the first receive thread; to receive, one for each receive thread, or what data threads read.
    pub fn queues(&self, ports: usize) -> Vec<QueueCounts> {
        let counts = |port| QueueCounts {
            tx: self.cores_of(port).len() + 1,
            rx: match self.is_stateful {
                true => self.flow_queues[port],
                false => self.receive.len(),
            },
            sharing: match self.is_stateful {
                true => rule_of(side_of(port)),
                false => Sharing::ByFlow,
            },
        };
        (0..ports).map(counts).collect()
    }
}

/// Which side of flows a port has: even ones have clients, odd ones servers.
pub(super) fn side_of(port: usize) -> Side {
    match port % 2 {
        0 => Side::Client,
        _ => Side::Server,
    }
}

/// The rule by which the frames of a port belong to data threads: by the port of the client.
pub(super) fn rule_of(side: Side) -> Sharing {
    match side {
        Side::Client => Sharing::ByDestinationPort,
        Side::Server => Sharing::BySourcePort,
    }
}

/// What a receive thread is called.
pub fn thread_name(number: usize) -> String {
    match number {
        0 => "receive".to_owned(),
        _ => format!("receive-{number}"),
    }
}

#[cfg(test)]
mod tests;
