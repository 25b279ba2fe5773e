//! The ports of a server, opened as they are described.

use crate::af_packet::AfPacketPort;
use crate::af_xdp::AfXdpPort;
use crate::control::PortControl;
use crate::description::{DpdkDevice, PortDescription, ring_ends};
use crate::distribution::RxDistribution;
use crate::dpdk::DpdkPort;
use crate::kind::{PortRx, PortTx};
use crate::memory::{self, LinkSettings, MemoryPort};
use crate::{Capabilities, Port, PortError, QueueCounts, TxQueue};

/// A port of any kind.
#[derive(Debug)]
pub struct AnyPort {
    /// One for each thread that sends.
    pub tx: Vec<PortTx>,
    /// As many as were asked for, or fewer: one where the port cannot share out by flow what arrives.
    /// What one of them counts as lost, no other counts.
    pub rx: Vec<PortRx>,
    /// Which of them a frame arrives at.
    pub distribution: RxDistribution,
    /// What it can do.
    pub capabilities: Capabilities,
    /// The address of its hardware, when it has any.
    pub mac: Option<[u8; 6]>,
    /// The port at the other end, where that is known.
    pub peer: Option<usize>,
    /// For who decides about its interface, if it is on one.
    pub control: Option<PortControl>,
    /// What was chosen for it when it was opened, in words.
    pub details: Option<String>,
}

/// Opens the ports of a server in their order, each with so many queues, see [`open_each`].
///
/// # Errors
///
/// As [`open_each`].
pub fn open(
    descriptions: &[PortDescription],
    queues: QueueCounts,
) -> Result<Vec<AnyPort>, PortError> {
    open_each(descriptions, &vec![queues; descriptions.len()])
}

/// Opens the ports of a server in their order, with its own number of `queues` each. Memory ports
/// are joined in pairs, the first with the second and so on, whatever stands between them; an odd
/// last one is a sink. Two ports of rings with one name are joined.
///
/// # Errors
///
/// Those of [`AfPacketPort::open`], [`AfXdpPort::open`], [`DpdkPort::open`] and
/// [`DpdkPort::open_pair`].
///
/// # Panics
///
/// When there are not as many `queues` as `descriptions`.
pub fn open_each(
    descriptions: &[PortDescription],
    queues: &[QueueCounts],
) -> Result<Vec<AnyPort>, PortError> {
    assert_eq!(descriptions.len(), queues.len(), "each port has its queues");
    let described = descriptions.iter().zip(queues);
    let links = described.filter_map(|(port, queues)| Some((*port.link()?, *queues)));
    let mut memory_ports = memory_ports(&links.collect::<Vec<_>>()).into_iter();
    let pci = descriptions.iter().filter_map(PortDescription::device);
    let pci: Vec<String> = pci.filter_map(DpdkDevice::pci).collect();
    let mut ports = Vec::with_capacity(descriptions.len());
    let mut veths = Vec::new();
    let mut rings = RingPorts {
        descriptions,
        queues,
        pci: &pci,
        waiting: Vec::new(),
    };
    for (number, (description, &queues)) in descriptions.iter().zip(queues).enumerate() {
        ports.push(match description {
            PortDescription::Memory(_) => {
                let port = memory_ports.next().expect("there is one for each link");
                let peer = memory_peer(descriptions, number);
                AnyPort { peer, ..port }
            }
            PortDescription::Dummy => in_memory(memory::sink(queues.tx), queues),
            PortDescription::AfPacket(name) => on_interface(AfPacketPort::open(name, queues)?),
            PortDescription::AfXdp(name, settings) => {
                let port = AfXdpPort::open(name, settings, queues)?;
                veths.extend(VethEnd::of(number, &port));
                on_hardware_queues(port)
            }
            PortDescription::Dpdk(device) => on_device(DpdkPort::open(device, &pci, queues)?),
            PortDescription::Ring(name) => rings.open(number, name)?,
        });
    }
    for (one, other) in joined(&veths) {
        for end in [one, other] {
            ports[end.port].distribution = RxDistribution::ByTxQueue;
        }
    }
    Ok(ports)
}

/// Opens ports that DPDK's rings join, both when the first is asked for.
struct RingPorts<'a> {
    descriptions: &'a [PortDescription],
    queues: &'a [QueueCounts],
    pci: &'a [String],
    /// Those that are open and were not asked for.
    waiting: Vec<(usize, AnyPort)>,
}

impl RingPorts<'_> {
    fn open(&mut self, number: usize, name: &str) -> Result<AnyPort, PortError> {
        let [one, other] = ring_ends(self.descriptions, name)[..] else {
            return Err(PortError::Dpdk {
                device: format!("ring:{name}"),
                problem: "rings join two ports".to_owned(),
                remedy: format!("Name two: ring:{name},ring:{name}"),
            });
        };
        let is_other = |(waiting, _): &(usize, AnyPort)| *waiting == number;
        let port = match self.waiting.iter().position(is_other) {
            Some(place) => self.waiting.swap_remove(place).1,
            None => {
                let queues = [self.queues[one], self.queues[other]];
                let ends = DpdkPort::open_pair(name, self.pci, queues)?;
                let [first, second] = ends.map(on_device);
                self.waiting.push((other, second));
                first
            }
        };
        Ok(AnyPort {
            peer: Some(one ^ other ^ number),
            ..port
        })
    }
}

/// A port by AF_XDP on a veth whose other end is in the same network namespace, and sends it frames that
/// keep their queue.
#[derive(Debug)]
struct VethEnd {
    port: usize,
    index: i32,
    peer: i32,
    receivers: usize,
}

impl VethEnd {
    fn of(number: usize, port: &AfXdpPort) -> Option<VethEnd> {
        Some(VethEnd {
            port: number,
            index: port.interface.index,
            peer: port.veth_peer?,
            receivers: port.rx.len(),
        })
    }
}

/// The ends that are joined, and have as many receivers: the kernel hands what veth sends on a queue to
/// the other end's queue of that number.
fn joined(ends: &[VethEnd]) -> impl Iterator<Item = (&VethEnd, &VethEnd)> {
    let pairs = ends.iter().enumerate().flat_map(|(place, one)| {
        let later = ends[place + 1..].iter();
        later.map(move |other| (one, other))
    });
    pairs.filter(|(one, other)| {
        let are_joined = one.peer == other.index && other.peer == one.index;
        are_joined && one.receivers == other.receivers
    })
}

/// Memory ports, the first joined with the second and so on, an odd last one a sink. The settings of
/// each are those of the direction that leaves it.
fn memory_ports(links: &[(LinkSettings, QueueCounts)]) -> Vec<AnyPort> {
    let mut ports = Vec::with_capacity(links.len());
    for two in links.chunks(2) {
        match two {
            [(leaving_a, queues_a), (leaving_b, queues_b)] => {
                let (a, b) = memory::pair_with(queues_a.tx, queues_b.tx, leaving_a, leaving_b);
                ports.extend([in_memory(a, *queues_a), in_memory(b, *queues_b)]);
            }
            rest => {
                let sinks = rest.iter();
                ports.extend(sinks.map(|(_, queues)| in_memory(memory::sink(queues.tx), *queues)));
            }
        }
    }
    ports
}

fn in_memory<Tx: TxQueue + Into<PortTx>>(port: MemoryPort<Tx>, queues: QueueCounts) -> AnyPort {
    let capabilities = port.capabilities();
    let (tx, rx) = (port.tx, port.rx.split(queues.rx));
    AnyPort {
        tx: tx.into_iter().map(Into::into).collect(),
        rx: rx.into_iter().map(PortRx::Memory).collect(),
        distribution: RxDistribution::ByTxQueue,
        capabilities,
        mac: None,
        peer: None,
        control: None,
        details: None,
    }
}

fn on_interface(port: AfPacketPort) -> AnyPort {
    AnyPort {
        capabilities: port.capabilities(),
        tx: port.tx.into_iter().map(PortTx::AfPacket).collect(),
        rx: port.rx.into_iter().map(PortRx::AfPacket).collect(),
        distribution: port.distribution,
        mac: Some(port.interface.mac),
        peer: None,
        control: Some(PortControl::Interface(port.control)),
        details: None,
    }
}

fn on_hardware_queues(port: AfXdpPort) -> AnyPort {
    AnyPort {
        capabilities: port.capabilities(),
        tx: port.tx.into_iter().map(PortTx::AfXdp).collect(),
        rx: port.rx.into_iter().map(PortRx::AfXdp).collect(),
        distribution: port.distribution,
        mac: Some(port.interface.mac),
        peer: None,
        control: Some(PortControl::Interface(port.control)),
        details: Some(port.details),
    }
}

fn on_device(port: DpdkPort) -> AnyPort {
    AnyPort {
        capabilities: port.capabilities(),
        tx: port.tx.into_iter().map(PortTx::Dpdk).collect(),
        rx: port.rx.into_iter().map(PortRx::Dpdk).collect(),
        distribution: port.distribution,
        mac: port.mac,
        peer: None,
        control: Some(PortControl::Dpdk(port.control)),
        details: Some(port.details),
    }
}

/// The port that a memory port is joined to.
fn memory_peer(descriptions: &[PortDescription], number: usize) -> Option<usize> {
    let in_memory = |number: &usize| descriptions[*number].link().is_some();
    let memory: Vec<usize> = (0..descriptions.len()).filter(in_memory).collect();
    let place = memory.iter().position(|port| *port == number)?;
    memory.get(place ^ 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RxQueue;
    use crate::description::parse_ports;

    #[test]
    fn memory_ports_are_paired_and_an_odd_last_one_is_a_sink() {
        let descriptions = parse_ports("memory,memory:delay=3ns,memory").expect("well formed");
        let mut ports = open(
            &descriptions,
            QueueCounts {
                tx: 2,
                ..QueueCounts::ONE
            },
        )
        .expect("in memory");
        assert!(ports.iter().all(|port| port.tx.len() == 2));
        let mut send = |port: usize, frames: u16| {
            let queue: &mut PortTx = &mut ports[port].tx[1];
            let taken = (0..frames).take_while(|_| queue.slot(1, 60).is_some());
            let taken = taken.count();
            queue.flush();
            taken
        };
        assert_eq!(send(1, 1), 1);
        assert_eq!(send(2, 60_000), 60_000);
        let mut arrived = |port: usize, now_ns| {
            let mut times = Vec::new();
            ports[port].rx[0].receive(now_ns, usize::MAX, |at, _| times.push(at));
            times
        };
        assert_eq!(arrived(0, 4), [4]);
        assert_eq!(arrived(2, u64::MAX), []);
        assert_eq!(ports[2].rx[0].next_arrival_ns(), None);
        let peers: Vec<_> = ports.iter().map(|port| port.peer).collect();
        assert_eq!(peers, [Some(1), Some(0), None]);
    }

    #[test]
    fn memory_ports_find_their_peers_past_other_kinds() {
        let ports = parse_ports("memory,eth0,memory,memory,eth1").expect("well formed");
        let peers: Vec<_> = (0..5).map(|port| memory_peer(&ports, port)).collect();
        assert_eq!(peers, [Some(2), None, Some(0), None, None]);
    }

    #[test]
    fn an_interface_that_is_not_there_opens_nothing() {
        let ports = parse_ports("memory,af_packet:no-such-one").expect("well formed");
        let error = open(&ports, QueueCounts::ONE).expect_err("there is no such interface");
        assert!(error.to_string().contains("'no-such-one'"), "{error}");
    }
}
