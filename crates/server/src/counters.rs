//! Counters as control sees them: a copy of what every thread counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use allosaur_engine::flow_stats::{GROUPS, Group, GroupTable, LATENCY_GROUPS, PacketGroupCounters};
use allosaur_engine::latency::{Histogram, LatencyStats};
use allosaur_engine::stateful::FlowTableCounters;
use allosaur_engine::stats::{DirectionCounters, SIZE_CLASSES, TransmitCounters};
use allosaur_engine::time::Nanos;

mod echo;
mod emulation;
mod flows;
mod latency;
mod routes;

pub use echo::{EchoBlock, EchoTraffic};
pub use emulation::{EmulationBlock, EmulationTotals};
pub use flows::RunBlock;
use latency::LatencyCell;
pub use latency::LatencyTerms;
pub use routes::{BgpSessionBlock, BgpSessionReading};

/// What all threads counted since the server started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Of each port, by port number.
    pub ports: Vec<PortCounters>,
    /// Of each data thread.
    pub cores: Vec<CoreCounters>,
    /// Of each data thread, what the tables of flows counted: clients, servers. All zero without
    /// flows.
    pub flow_tables: Vec<[FlowTableCounters; 2]>,
    /// Of each receive thread.
    pub receive: Vec<CoreCounters>,
    /// Lines of key logs of TLS that were not written.
    pub key_log_lines_dropped: u64,
}

/// One port, summed over the threads that use it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// What the data threads sent, and what they missed.
    pub transmit: TransmitCounters,
    /// What the receive threads received.
    pub receive: DirectionCounters,
    /// Frames that the link towards this port lost, as it was told to.
    pub receive_lost_packets: u64,
    /// Frames to the end of its tunnel that are not of it, while the port is for streams.
    pub tunnel_errors: TunnelErrors,
}

/// Frames that came to the end of a port's tunnel and are not of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TunnelErrors {
    /// They are of a network (VNI) that the port is not in.
    pub other_network: u64,
    /// They have a wrong header or outer checksum there.
    pub bad_header: u64,
}

impl TunnelErrors {
    fn add(&mut self, other: TunnelErrors) {
        self.other_network += other.other_network;
        self.bad_header += other.bad_header;
    }
}

/// What was counted of one packet group on one port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupTraffic {
    /// What the data threads sent.
    pub sent: PacketGroupCounters,
    /// What the receive threads received.
    pub received: PacketGroupCounters,
}

/// Packets with the sign of latency that belong to no group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LatencyErrors {
    /// Packets of a run that is over.
    pub old_flow: u64,
    /// Packets without a trailer, or of a group that there is not.
    pub bad_header: u64,
}

/// Where the counters of packet groups and of emulated clients are read. They are many, so they are no
/// part of the snapshot: only those that somebody asks for are read.
pub trait GroupReadout: std::fmt::Debug {
    /// What was counted of a group on a port since the server started.
    fn group(&self, port: usize, group: Group) -> GroupTraffic;

    /// What was measured of the `n`-th group whose latency is measured, if it was made anew by
    /// that version.
    fn latency(&self, n: u16, version: u32) -> Option<LatencyStats>;

    /// The times of that version of the group, of which `stats` were the sums.
    fn latency_times(&self, n: u16, version: u32, stats: &LatencyStats) -> Option<Histogram>;

    /// What is wrong with packets that carry the sign of latency.
    fn latency_errors(&self) -> LatencyErrors;

    /// What emulated clients have counted, where there are any.
    fn emulation(&self) -> Option<EmulationTotals>;
}

/// How busy one thread was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreCounters {
    /// Time spent in turns that did something.
    pub busy_ns: u64,
    /// All the time since the thread started.
    pub total_ns: u64,
}

/// The blocks of all threads. Each thread holds its own block and is the only one that writes
/// there; control reads them all.
#[derive(Clone, Debug)]
pub struct Counters {
    /// Of each data thread.
    pub cores: Vec<Arc<CoreBlock>>,
    /// Of the first receive thread.
    pub receive: Arc<ReceiveBlock>,
    /// Of the other receive threads.
    pub secondaries: Vec<Arc<ArrivalBlock>>,
    /// Of data threads that receive, those of stateful mode.
    pub flows: Vec<Arc<ArrivalBlock>>,
    /// Of the emulated clients of each data thread.
    pub emulation: Vec<Arc<EmulationBlock>>,
    /// Lines of key logs of TLS that were not written; who writes them counts it.
    pub key_log_lines_dropped: Arc<AtomicU64>,
}

impl Counters {
    /// Blocks for so many ports and data threads, and one receive thread, all zero.
    pub fn new(ports: usize, cores: usize) -> Counters {
        let core = |_| {
            Arc::new(CoreBlock {
                ports: (0..ports).map(|_| CounterCells::default()).collect(),
                groups: (0..ports).map(|_| GroupCounterCells::default()).collect(),
                flow_tables: Default::default(),
                time: CounterCells::default(),
            })
        };
        let receive = ReceiveBlock {
            arrivals: ArrivalBlock::new(ports),
            sent: (0..ports).map(|_| CounterCells::default()).collect(),
            latency: (0..LATENCY_GROUPS)
                .map(|_| LatencyCell::default())
                .collect(),
            expectations: AtomicU64::new(0),
            latency_errors: CounterCells::default(),
        };
        Counters {
            cores: (0..cores).map(core).collect(),
            receive: Arc::new(receive),
            secondaries: Vec::new(),
            flows: Vec::new(),
            emulation: (0..cores).map(|_| Arc::default()).collect(),
            key_log_lines_dropped: Arc::default(),
        }
    }

    /// The same, with so many receive threads.
    #[must_use]
    pub fn with_receive_threads(mut self, threads: usize) -> Counters {
        let ports = self.receive.sent.len();
        let block = |_| Arc::new(ArrivalBlock::new(ports));
        self.secondaries = (1..threads).map(block).collect();
        self
    }

    /// The same, where data threads receive.
    #[must_use]
    pub fn with_flows(mut self) -> Counters {
        let ports = self.receive.sent.len();
        let block = |_| Arc::new(ArrivalBlock::new(ports));
        self.flows = self.cores.iter().map(block).collect();
        self
    }

    /// What arrived, of all receive threads.
    fn arrivals(&self) -> impl Iterator<Item = &ArrivalBlock> {
        let others = self.secondaries.iter().map(|block| &**block);
        std::iter::once(&self.receive.arrivals).chain(others)
    }

    /// What arrived, of all threads.
    fn all_arrivals(&self) -> impl Iterator<Item = &ArrivalBlock> {
        self.arrivals()
            .chain(self.flows.iter().map(|block| &**block))
    }

    /// Copies what all threads have published into `snapshot`.
    pub fn read(&self, snapshot: &mut Snapshot) {
        snapshot.ports.clear();
        for port in 0..self.receive.sent.len() {
            let (mut receive, mut receive_lost_packets) = (DirectionCounters::default(), 0);
            let mut tunnel_errors = TunnelErrors::default();
            for arrivals in self.all_arrivals() {
                let (received, lost_packets) = arrivals.port(port);
                receive.add(&received);
                receive_lost_packets += lost_packets;
                tunnel_errors.add(arrivals.tunnel_errors(port));
            }
            let mut transmit = self.receive.sent[port].load_transmit();
            for core in &self.cores {
                transmit.add(&core.port(port));
            }
            snapshot.ports.push(PortCounters {
                transmit,
                receive,
                receive_lost_packets,
                tunnel_errors,
            });
        }
        snapshot.cores.clear();
        snapshot
            .cores
            .extend(self.cores.iter().map(|core| core_counters(&core.time)));
        snapshot.flow_tables.clear();
        let tables = self.cores.iter().map(|core| core.flow_tables());
        snapshot.flow_tables.extend(tables);
        snapshot.receive.clear();
        let receive = self.arrivals().map(|block| core_counters(&block.time));
        snapshot.receive.extend(receive);
        snapshot.key_log_lines_dropped = self.key_log_lines_dropped.load(Ordering::Relaxed);
    }
}

impl GroupReadout for Counters {
    fn group(&self, port: usize, group: Group) -> GroupTraffic {
        let mut sent = PacketGroupCounters::default();
        for core in &self.cores {
            sent.add(core.groups[port].load(group));
        }
        let mut received = PacketGroupCounters::default();
        for arrivals in self.all_arrivals() {
            received.add(arrivals.groups[port].load(group));
        }
        GroupTraffic { sent, received }
    }

    fn latency(&self, n: u16, version: u32) -> Option<LatencyStats> {
        self.receive.latency[usize::from(n)].load(version)
    }

    fn latency_times(&self, n: u16, version: u32, stats: &LatencyStats) -> Option<Histogram> {
        self.receive.latency[usize::from(n)].times(version, stats)
    }

    fn latency_errors(&self) -> LatencyErrors {
        LatencyErrors {
            old_flow: self.receive.latency_errors.load(0),
            bad_header: self.receive.latency_errors.load(1),
        }
    }

    fn emulation(&self) -> Option<EmulationTotals> {
        let blocks = self.emulation.iter().filter_map(|block| block.read());
        blocks.reduce(EmulationTotals::added_to)
    }
}

/// What one data thread publishes.
#[derive(Debug)]
pub struct CoreBlock {
    ports: Box<[CounterCells<TRANSMIT_WORDS>]>,
    groups: Box<[GroupCounterCells]>,
    flow_tables: [CounterCells<FLOW_TABLE_WORDS>; 2],
    time: CounterCells<2>,
}

const FLOW_TABLE_WORDS: usize = FlowTableCounters::NAMES.len();
const DIRECTION_WORDS: usize = 2 + SIZE_CLASSES;
const TRANSMIT_WORDS: usize = DIRECTION_WORDS + 3;

impl CoreBlock {
    /// Publishes the counters of all ports, and the thread's time. Only its own thread may.
    pub fn publish(&self, ports: &[TransmitCounters], time: CoreCounters) {
        for (words, counters) in self.ports.iter().zip(ports) {
            words.store_transmit(counters);
        }
        self.time.store(0, time.busy_ns);
        self.time.store(1, time.total_ns);
    }

    /// Publishes what has changed of the packet groups of a port. Only its own thread may.
    pub fn publish_groups(&self, port: usize, table: &mut GroupTable) {
        self.groups[port].store_changed(table);
    }

    /// Publishes what the tables of flows counted: clients, servers. Only its own thread may.
    pub fn publish_flow_tables(&self, tables: &[FlowTableCounters; 2]) {
        for (words, counters) in self.flow_tables.iter().zip(tables) {
            for (index, value) in counters.values().into_iter().enumerate() {
                words.store(index, value);
            }
        }
    }

    fn flow_tables(&self) -> [FlowTableCounters; 2] {
        let load = |words: &CounterCells<FLOW_TABLE_WORDS>| {
            FlowTableCounters::from_values(std::array::from_fn(|index| words.load(index)))
        };
        [load(&self.flow_tables[0]), load(&self.flow_tables[1])]
    }

    fn port(&self, port: usize) -> TransmitCounters {
        self.ports[port].load_transmit()
    }
}

/// What any receive thread publishes: what arrived, and its time.
#[derive(Debug)]
pub struct ArrivalBlock {
    ports: Box<[CounterCells<{ DIRECTION_WORDS + 3 }>]>,
    groups: Box<[GroupCounterCells]>,
    time: CounterCells<2>,
}

impl ArrivalBlock {
    fn new(ports: usize) -> ArrivalBlock {
        ArrivalBlock {
            ports: (0..ports).map(|_| CounterCells::default()).collect(),
            groups: (0..ports).map(|_| GroupCounterCells::default()).collect(),
            time: CounterCells::default(),
        }
    }

    /// Publishes what one port received and what was lost on the way to this thread. Only its own
    /// thread may.
    pub fn publish_port(&self, port: usize, received: &DirectionCounters, lost_packets: u64) {
        let words = &self.ports[port];
        words.store_direction(received);
        words.store(DIRECTION_WORDS, lost_packets);
    }

    /// Publishes which frames of one port are not of its tunnel. Only its own thread may.
    pub fn publish_tunnel_errors(&self, port: usize, errors: TunnelErrors) {
        let words = &self.ports[port];
        words.store(DIRECTION_WORDS + 1, errors.other_network);
        words.store(DIRECTION_WORDS + 2, errors.bad_header);
    }

    /// Publishes what has changed of the packet groups of a port. Only its own thread may.
    pub fn publish_groups(&self, port: usize, table: &mut GroupTable) {
        self.groups[port].store_changed(table);
    }

    /// Publishes the thread's time.
    pub fn publish_time(&self, time: CoreCounters) {
        self.time.store(0, time.busy_ns);
        self.time.store(1, time.total_ns);
    }

    fn port(&self, port: usize) -> (DirectionCounters, u64) {
        let words = &self.ports[port];
        (words.load_direction(), words.load(DIRECTION_WORDS))
    }

    fn tunnel_errors(&self, port: usize) -> TunnelErrors {
        let words = &self.ports[port];
        TunnelErrors {
            other_network: words.load(DIRECTION_WORDS + 1),
            bad_header: words.load(DIRECTION_WORDS + 2),
        }
    }
}

/// What the first receive thread publishes.
#[derive(Debug)]
pub struct ReceiveBlock {
    /// What arrived.
    pub arrivals: ArrivalBlock,
    /// What it sent itself.
    sent: Box<[CounterCells<TRANSMIT_WORDS>]>,
    latency: Box<[LatencyCell]>,
    /// How often control has said what to expect.
    expectations: AtomicU64,
    latency_errors: CounterCells<2>,
}

impl ReceiveBlock {
    /// Tells the receive thread what to expect of a group. Only control may.
    pub fn expect_latency(&self, n: u16, terms: LatencyTerms) {
        self.latency[usize::from(n)].expect(terms);
        self.expectations.fetch_add(1, Ordering::Release);
    }

    /// Changes whenever control says what to expect.
    #[inline]
    pub fn expectations(&self) -> u64 {
        self.expectations.load(Ordering::Acquire)
    }

    /// What control expects of a group; none of a group that there is not.
    #[inline]
    pub fn latency_terms(&self, n: u16) -> LatencyTerms {
        let cell = self.latency.get(usize::from(n));
        cell.map(LatencyCell::terms).unwrap_or_default()
    }

    /// Counts the time of a packet of a group that control expects. Only the receive thread may.
    #[inline]
    pub fn count_latency(&self, n: u16, latency_ns: Nanos) {
        self.latency[usize::from(n)].count(latency_ns);
    }

    /// A group is made anew: forgets the times of the last version, of which `stats` was all.
    /// Only the receive thread may.
    pub fn forget_latency(&self, n: u16, stats: &LatencyStats) {
        self.latency[usize::from(n)].forget(stats);
    }

    /// Publishes what was measured of a version of a group. Only the receive thread may.
    pub fn publish_latency(&self, n: u16, version: u32, stats: &LatencyStats) {
        self.latency[usize::from(n)].store(version, stats);
    }

    /// Publishes what is wrong with packets. Only the receive thread may.
    pub fn publish_latency_errors(&self, errors: LatencyErrors) {
        self.latency_errors.store(0, errors.old_flow);
        self.latency_errors.store(1, errors.bad_header);
    }

    /// Publishes what the receive thread sent through a port. Only the receive thread may.
    pub fn publish_sent(&self, port: usize, sent: &TransmitCounters) {
        self.sent[port].store_transmit(sent);
    }
}

fn core_counters(time: &CounterCells<2>) -> CoreCounters {
    CoreCounters {
        busy_ns: time.load(0),
        total_ns: time.load(1),
    }
}

/// Numbers with one writer and any readers, on cache lines of their own. A reader may see some
/// numbers newer than others, never one half written.
#[derive(Debug)]
#[repr(align(128))]
struct CounterCells<const N: usize>([AtomicU64; N]);

impl<const N: usize> Default for CounterCells<N> {
    fn default() -> Self {
        CounterCells([const { AtomicU64::new(0) }; N])
    }
}

impl<const N: usize> CounterCells<N> {
    fn store(&self, index: usize, value: u64) {
        self.0[index].store(value, Ordering::Relaxed);
    }

    fn load(&self, index: usize) -> u64 {
        self.0[index].load(Ordering::Relaxed)
    }

    fn store_transmit(&self, counters: &TransmitCounters) {
        self.store_direction(&counters.sent);
        self.store(DIRECTION_WORDS, counters.missed_packets);
        self.store(DIRECTION_WORDS + 1, counters.queue_full);
        self.store(DIRECTION_WORDS + 2, counters.lost_packets);
    }

    fn load_transmit(&self) -> TransmitCounters {
        TransmitCounters {
            sent: self.load_direction(),
            missed_packets: self.load(DIRECTION_WORDS),
            queue_full: self.load(DIRECTION_WORDS + 1),
            lost_packets: self.load(DIRECTION_WORDS + 2),
        }
    }

    fn store_direction(&self, counters: &DirectionCounters) {
        self.store(0, counters.packets);
        self.store(1, counters.bytes);
        for (i, &n) in counters.by_size.iter().enumerate() {
            self.store(2 + i, n);
        }
    }

    fn load_direction(&self) -> DirectionCounters {
        DirectionCounters {
            packets: self.load(0),
            bytes: self.load(1),
            by_size: std::array::from_fn(|i| self.load(2 + i)),
        }
    }
}

/// The counters of all packet groups of one port, with one writer.
#[derive(Debug)]
struct GroupCounterCells(Box<[[AtomicU64; 3]]>);

impl Default for GroupCounterCells {
    fn default() -> Self {
        let zero = || [const { AtomicU64::new(0) }; 3];
        GroupCounterCells(std::iter::repeat_with(zero).take(GROUPS).collect())
    }
}

impl GroupCounterCells {
    fn store_changed(&self, table: &mut GroupTable) {
        table.take_changed(|index, counters| {
            let [packets, bytes, missed_packets] = &self.0[index];
            packets.store(counters.packets, Ordering::Relaxed);
            bytes.store(counters.bytes, Ordering::Relaxed);
            missed_packets.store(counters.missed_packets, Ordering::Relaxed);
        });
    }

    fn load(&self, group: Group) -> PacketGroupCounters {
        let [packets, bytes, missed_packets] = &self.0[group.index()];
        PacketGroupCounters {
            packets: packets.load(Ordering::Relaxed),
            bytes: bytes.load(Ordering::Relaxed),
            missed_packets: missed_packets.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_the_sum_of_what_threads_published() {
        let counters = Counters::new(2, 2).with_receive_threads(2);
        for (core, block) in counters.cores.iter().enumerate() {
            let mut port = TransmitCounters {
                missed_packets: 1,
                queue_full: 2,
                lost_packets: 3,
                ..Default::default()
            };
            port.sent.count(10 + core as u64, 60);
            let time = CoreCounters {
                busy_ns: core as u64,
                total_ns: 9,
            };
            block.publish(&[TransmitCounters::default(), port], time);
            let mut tables = <[FlowTableCounters; 2]>::default();
            tables[1].err_no_syn = 4 + core as u64;
            block.publish_flow_tables(&tables);
        }
        let mut received = DirectionCounters::default();
        received.count(20, 1514);
        counters.receive.arrivals.publish_port(0, &received, 5);
        counters.secondaries[0].publish_port(0, &received, 2);
        let mut snapshot = Snapshot::default();
        counters.read(&mut snapshot);
        counters.read(&mut snapshot);
        let sent = snapshot.ports[1].transmit;
        assert_eq!(
            (sent.sent.packets, sent.sent.bytes, sent.sent.by_size[0]),
            (21, 21 * 64, 21)
        );
        assert_eq!((sent.missed_packets, sent.queue_full), (2, 4));
        assert_eq!(sent.lost_packets, 6);
        received.count(20, 1514);
        assert_eq!(snapshot.ports[0].receive, received);
        assert_eq!(snapshot.ports[0].receive_lost_packets, 7);
        let no_syn = snapshot.flow_tables.iter().map(|core| core[1].err_no_syn);
        assert_eq!(no_syn.collect::<Vec<_>>(), [4, 5]);
        assert_eq!(snapshot.receive.len(), 2);
        assert_eq!(
            snapshot.cores[1],
            CoreCounters {
                busy_ns: 1,
                total_ns: 9
            }
        );
    }
}
