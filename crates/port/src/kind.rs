//! Ports of any kind, side by side.
//!
//! The queues are enums, so that a caller can branch once a burst and run its loop on the kind
//! ([`by_kind`](crate::by_kind)).

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use allosaur_netdev::interface::{InterfaceControl, LinkState};

use crate::af_packet::{AfPacketPort, AfPacketRx, AfPacketTx};
use crate::af_xdp::{AfXdpPort, AfXdpRx, AfXdpTx};
use crate::buffers::{Buffers, Gauge};
use crate::description::{DpdkDevice, PortDescription, ring_ends};
use crate::distribution::RxDistribution;
use crate::dpdk::{DpdkControl, DpdkPort, DpdkRx, DpdkTx};
use crate::memory::{self, FRAME_BYTES_MAX, LinkSettings, MemoryPort, MemoryRx, RingTx, SinkTx};
use allosaur_packet::shared_payload::{SharedPayload, SplitFrame};

use crate::{Capabilities, FrameId, Port, PortError, QueueCounts, RxFrame, RxQueue, TxQueue};

/// A transmit queue of any kind of port.
#[derive(Debug)]
pub enum PortTx {
    /// In memory, with a peer.
    Memory(RingTx),
    /// In memory, without a peer.
    Sink(SinkTx),
    /// On an interface.
    AfPacket(AfPacketTx),
    /// On a hardware queue of an interface.
    AfXdp(AfXdpTx),
    /// On a device of DPDK's.
    Dpdk(DpdkTx),
}

/// A receive queue of any kind of port.
#[derive(Debug)]
pub enum PortRx {
    /// In memory.
    Memory(MemoryRx),
    /// On an interface.
    AfPacket(AfPacketRx),
    /// On hardware queues of an interface.
    AfXdp(AfXdpRx),
    /// On a device of DPDK's.
    Dpdk(DpdkRx),
}

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

/// Does something with a [`PortTx`], by the type of its kind: what it does compiles once for each.
#[macro_export]
macro_rules! by_kind {
    ($any:expr, $queue:ident => $does:expr) => {
        match $any {
            $crate::kind::PortTx::Memory($queue) => $does,
            $crate::kind::PortTx::Sink($queue) => $does,
            $crate::kind::PortTx::AfPacket($queue) => $does,
            $crate::kind::PortTx::AfXdp($queue) => $does,
            $crate::kind::PortTx::Dpdk($queue) => $does,
        }
    };
}

impl PortTx {
    /// How full it is, for others to look at.
    pub(crate) fn gauge(&self) -> Arc<dyn Gauge> {
        by_kind!(self, queue => queue.gauge())
    }

    /// The longest frame, in bytes without FCS.
    pub fn frame_bytes_max(&self) -> usize {
        match self {
            PortTx::Memory(_) | PortTx::Sink(_) => FRAME_BYTES_MAX,
            PortTx::AfPacket(queue) => queue.frame_bytes_max(),
            PortTx::AfXdp(queue) => queue.frame_bytes_max(),
            PortTx::Dpdk(queue) => queue.frame_bytes_max(),
        }
    }
}

impl Buffers {
    /// Those of these queues.
    pub fn of(queues: &[PortTx]) -> Buffers {
        let longest = queues.iter().map(PortTx::frame_bytes_max).max();
        let gauges = queues.iter().map(PortTx::gauge).collect();
        Buffers::new(gauges, longest.unwrap_or(0))
    }
}

/// What a port is attached to, for who decides about it.
#[derive(Debug)]
pub enum PortControl {
    /// An interface.
    Interface(InterfaceControl),
    /// A device of DPDK's.
    Dpdk(DpdkControl),
}

impl PortControl {
    /// How its link is.
    pub fn link(&self) -> LinkState {
        match self {
            PortControl::Interface(interface) => interface.link(),
            PortControl::Dpdk(device) if device.has_link() => LinkState::Up,
            PortControl::Dpdk(_) => LinkState::NoCarrier,
        }
    }

    /// What it is called: the name of an interface.
    pub fn name(&self) -> &str {
        match self {
            PortControl::Interface(interface) => interface.name(),
            PortControl::Dpdk(_) => "a device of DPDK's",
        }
    }

    /// All that is counted of it by those who know it best, the kernel or its driver, by their names.
    pub fn counters(&self) -> Vec<(String, u64)> {
        match self {
            PortControl::Interface(interface) => interface.counters(),
            PortControl::Dpdk(device) => device.counters(),
        }
    }

    /// Lets frames to other stations through, and those to all multicast addresses.
    pub fn set_receive(&mut self, promiscuous: bool, multicast: bool) -> io::Result<()> {
        match self {
            PortControl::Interface(interface) => interface.set_receive(promiscuous, multicast),
            PortControl::Dpdk(device) => device.set_receive(promiscuous, multicast),
        }
    }
}

impl From<RingTx> for PortTx {
    fn from(queue: RingTx) -> PortTx {
        PortTx::Memory(queue)
    }
}

impl From<SinkTx> for PortTx {
    fn from(queue: SinkTx) -> PortTx {
        PortTx::Sink(queue)
    }
}

impl From<MemoryRx> for PortRx {
    fn from(queue: MemoryRx) -> PortRx {
        PortRx::Memory(queue)
    }
}

impl TxQueue for PortTx {
    fn slot(&mut self, now_ns: u64, len: usize) -> Option<&mut [u8]> {
        by_kind!(self, queue => queue.slot(now_ns, len))
    }

    fn slot_sharing(
        &mut self,
        now_ns: u64,
        head_bytes: usize,
        payload: SharedPayload<'_>,
    ) -> Option<&mut [u8]> {
        by_kind!(self, queue => queue.slot_sharing(now_ns, head_bytes, payload))
    }

    fn forget_payloads(&mut self) {
        by_kind!(self, queue => queue.forget_payloads())
    }

    fn has_room(&mut self, now_ns: u64, len: usize) -> bool {
        by_kind!(self, queue => queue.has_room(now_ns, len))
    }

    fn repeat(&mut self, now_ns: u64, frame: FrameId, count: u32) -> u32 {
        by_kind!(self, queue => queue.repeat(now_ns, frame, count))
    }

    fn register(&mut self, frame: &[u8]) -> Option<FrameId> {
        by_kind!(self, queue => queue.register(frame))
    }

    fn unregister(&mut self, frame: FrameId) {
        by_kind!(self, queue => queue.unregister(frame))
    }

    fn copy_registered(&self, frame: FrameId, copy: &mut Vec<u8>) {
        by_kind!(self, queue => queue.copy_registered(frame, copy))
    }

    #[inline]
    fn flush(&mut self) {
        by_kind!(self, queue => queue.flush())
    }

    fn has_unsent(&self) -> bool {
        by_kind!(self, queue => queue.has_unsent())
    }
}

impl PortRx {
    /// Shares the queues of one port out anew, over `count` threads if they can be: rings in memory.
    /// Others stay as they are.
    pub fn reshare(queues: Vec<PortRx>, count: usize) -> Vec<PortRx> {
        let (mut memory, mut others) = (Vec::new(), Vec::new());
        for queue in queues {
            match queue {
                PortRx::Memory(queue) => memory.push(queue),
                queue => others.push(queue),
            }
        }
        if !memory.is_empty() {
            let shares = MemoryRx::join(memory).split(count);
            others.extend(shares.into_iter().map(PortRx::Memory));
        }
        others
    }

    /// Frames that were lost on the way to this queue: those that a link was told to lose, and
    /// those that an interface had no room for.
    pub fn lost_packets(&self) -> u64 {
        match self {
            PortRx::Memory(queue) => queue.lost_packets(),
            PortRx::AfPacket(queue) => queue.lost_packets(),
            PortRx::AfXdp(queue) => queue.lost_packets(),
            PortRx::Dpdk(queue) => queue.lost_packets(),
        }
    }

    /// Brings a link in memory up or down; that of an interface is the system's.
    pub fn set_up(&mut self, up: bool) {
        match self {
            PortRx::Memory(queue) => queue.set_up(up),
            PortRx::AfPacket(_) | PortRx::AfXdp(_) | PortRx::Dpdk(_) => {}
        }
    }

    /// When the next frame arrives (or has), where that is known beforehand; on a device of
    /// DPDK's, which tells nobody, when to look for one.
    pub fn next_arrival_ns(&mut self) -> Option<u64> {
        match self {
            PortRx::Memory(queue) => queue.next_arrival_ns(),
            PortRx::AfPacket(_) | PortRx::AfXdp(_) => None,
            PortRx::Dpdk(queue) => Some(queue.next_look_ns()),
        }
    }

    /// Whether it tells of each frame when it arrived, also when that is read later.
    pub fn knows_arrivals(&self) -> bool {
        matches!(self, PortRx::AfPacket(_))
    }

    /// Whether only threads of this process send to it.
    pub fn is_memory(&self) -> bool {
        matches!(self, PortRx::Memory(_))
    }

    /// What becomes readable when a frame arrives, where the kernel tells.
    pub fn file(&self) -> Option<BorrowedFd<'_>> {
        match self {
            PortRx::Memory(_) | PortRx::Dpdk(_) => None,
            PortRx::AfPacket(queue) => Some(queue.as_fd()),
            PortRx::AfXdp(queue) => Some(queue.as_fd()),
        }
    }
}

impl RxQueue for PortRx {
    #[inline]
    fn receive(&mut self, now_ns: u64, budget: usize, each: impl FnMut(u64, &[u8])) -> usize {
        match self {
            PortRx::Memory(queue) => queue.receive(now_ns, budget, each),
            PortRx::AfPacket(queue) => queue.receive(now_ns, budget, each),
            PortRx::AfXdp(queue) => queue.receive(now_ns, budget, each),
            PortRx::Dpdk(queue) => queue.receive(now_ns, budget, each),
        }
    }

    #[inline]
    fn receive_bursts(
        &mut self,
        now_ns: u64,
        budget: usize,
        each: impl FnMut(&[RxFrame<'_>]),
    ) -> usize {
        match self {
            PortRx::Memory(queue) => queue.receive_bursts(now_ns, budget, each),
            PortRx::AfPacket(queue) => queue.receive_bursts(now_ns, budget, each),
            PortRx::AfXdp(queue) => queue.receive_bursts(now_ns, budget, each),
            PortRx::Dpdk(queue) => queue.receive_bursts(now_ns, budget, each),
        }
    }

    #[inline]
    fn receive_split(
        &mut self,
        now_ns: u64,
        budget: usize,
        each: impl FnMut(&[SplitFrame<'_>]),
    ) -> usize {
        match self {
            PortRx::Memory(queue) => queue.receive_split(now_ns, budget, each),
            PortRx::AfPacket(queue) => queue.receive_split(now_ns, budget, each),
            PortRx::AfXdp(queue) => queue.receive_split(now_ns, budget, each),
            PortRx::Dpdk(queue) => queue.receive_split(now_ns, budget, each),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
