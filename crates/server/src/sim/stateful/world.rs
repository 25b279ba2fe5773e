//! Clients, servers, the link between them, and the time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use allosaur_engine::encapsulation::Encapsulation;
use allosaur_engine::session::FlowTimes;
use allosaur_engine::stateful::{
    Config, Event, FlowPortInfo, FlowTableCounters, GroupCounters, Holdings, RunIndex, RunLimits,
    StatefulCommand, StatefulEngine,
};
use allosaur_engine::stream::spec::PACKET_BYTES_MAX;
use allosaur_engine::template::{CompiledProfile, PoolShare, Side};
use allosaur_engine::time::{MICROSECOND, Nanos, SECOND};
use allosaur_packet::MacAddress;
use allosaur_packet::frame::{self, Transport};
use allosaur_packet::transport::tcp::TcpView;
use allosaur_packet::transport::udp::UdpView;

use super::faults::{Device, Fault, FaultShare};
use super::link::{Link, LinkCounters, LinkSettings};
use super::queue::Queue;
use super::rng::SimRng;
use super::watch::{LinkWatch, Passing};

/// The one profile that runs.
const RUN: RunIndex = RunIndex(0);
/// When the simulation begins, by the clock of the engines.
const START: Nanos = SECOND;
/// The MAC address of the clients' port.
pub const CLIENT_MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
/// The MAC address of the servers' port.
pub const SERVER_MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);
/// Bytes of an Ethernet header.
const ETHERNET_BYTES: usize = 14;
/// The largest MTU, which is that of a server's memory ports.
pub const MTU_MAX: u16 = (PACKET_BYTES_MAX - ETHERNET_BYTES) as u16;
/// The smallest MTU: what every station forwards in one piece (RFC 791, section 3.2).
pub const MTU_MIN: u16 = 68;
/// The purpose of the random numbers of faults; those of links and engines count from 0.
const FAULTS: u64 = 1 << 32;
/// How long a turn takes at least.
const TURN: Nanos = MICROSECOND;
/// When a queue without room has some again.
const ROOM_AFTER: Nanos = 10 * MICROSECOND;

/// What a simulation is made of.
#[derive(Clone, Debug)]
pub struct SimSettings {
    /// Where all that is random begins.
    pub seed: u64,
    /// How long it is since 1970 when it begins: by this, certificates are judged.
    pub unix_time: Nanos,
    /// Data cores of each side.
    pub cores: u32,
    /// Flows at the same time, of each core and side.
    pub flows_max: usize,
    /// The longest IP packet that the ports take: [`MTU_MIN`] to [`MTU_MAX`].
    pub mtu: u16,
    /// Frames that a port takes in a turn: fewer than there are lets flows wait.
    pub room: usize,
    /// The link.
    pub link: LinkSettings,
    /// What a device on the way does.
    pub faults: Vec<FaultShare>,
}

impl SimSettings {
    /// One core of each side, on a perfect link.
    pub fn perfect(seed: u64, round_trip: Nanos) -> SimSettings {
        SimSettings {
            seed,
            unix_time: 0,
            cores: 1,
            flows_max: 1 << 20,
            mtu: MTU_MAX,
            room: usize::MAX,
            link: LinkSettings::perfect(round_trip),
            faults: Vec::new(),
        }
    }

    /// Whether anything but time happens to frames on the way.
    pub fn is_disturbed(&self) -> bool {
        !self.link.is_perfect() || self.link.rate_bps.is_some() || !self.faults.is_empty()
    }
}

/// The engine of one core and side.
#[derive(Debug)]
struct Host {
    engine: StatefulEngine,
    queue: Queue,
    /// It was called, and what it sent and told is not taken yet.
    is_fresh: bool,
}

/// A frame that is under way.
#[derive(Debug)]
struct InFlight {
    at: Nanos,
    /// Frames of one time arrive in the order of sending.
    number: u64,
    to: Side,
    frame: Vec<u8>,
}

impl InFlight {
    fn order(&self) -> (Nanos, u64) {
        (self.at, self.number)
    }
}

impl PartialEq for InFlight {
    fn eq(&self, other: &InFlight) -> bool {
        self.order() == other.order()
    }
}

impl Eq for InFlight {}

impl PartialOrd for InFlight {
    fn partial_cmp(&self, other: &InFlight) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for InFlight {
    /// The first to arrive is the greatest: heaps give the greatest first.
    fn cmp(&self, other: &InFlight) -> Ordering {
        other.order().cmp(&self.order())
    }
}

/// Clients on one side, servers on the other. Start a profile, then let time pass.
#[derive(Debug)]
pub struct World<W> {
    now: Nanos,
    /// Clients, servers; by core.
    sides: [Vec<Host>; 2],
    /// To the clients, to the servers.
    links: [Link; 2],
    device: Device,
    /// What has just left the device.
    passed: Vec<(Side, Vec<u8>)>,
    under_way: BinaryHeap<InFlight>,
    sent: u64,
    cores: u32,
    watch: W,
    /// Cores whose clients have ended all flows, and begin no more.
    ended: u32,
}

fn place(side: Side) -> usize {
    match side {
        Side::Client => 0,
        Side::Server => 1,
    }
}

impl<W: LinkWatch> World<W> {
    /// A world where nothing runs yet.
    pub fn new(settings: &SimSettings, watch: W) -> World<W> {
        let link = |side| Link::new(settings.link, SimRng::new(settings.seed, side));
        World {
            now: START,
            sides: [Side::Client, Side::Server].map(|side| {
                let hosts = 0..settings.cores;
                hosts.map(|rank| Host::new(settings, side, rank)).collect()
            }),
            links: [link(0), link(1)],
            device: Device::new(&settings.faults, SimRng::new(settings.seed, FAULTS)),
            passed: Vec::new(),
            under_way: BinaryHeap::new(),
            sent: 0,
            cores: settings.cores,
            watch,
            ended: 0,
        }
    }

    /// Starts a profile at `factor` times its rates. Flows begin for `duration`; `None` is until all
    /// templates have reached their limits.
    pub fn start(&mut self, profile: &Arc<CompiledProfile>, factor: f64, duration: Option<Nanos>) {
        for (side, clients) in [(Side::Client, u32::MAX), (Side::Server, 0)] {
            let command = |duration| StatefulCommand::Start {
                run: RUN,
                profile: Arc::clone(profile),
                factor,
                start_at: START,
                duration,
                clients,
                limits: RunLimits::default(),
            };
            // Servers answer as long as somebody asks.
            let duration = duration.filter(|_| side == Side::Client);
            for host in &mut self.sides[place(side)] {
                host.tell(self.now, command(duration));
            }
        }
    }

    /// Ends all flows at once, and lets none begin; let a little time pass for it.
    pub fn cut(&mut self) {
        for host in self.sides.iter_mut().flatten() {
            let abort = true;
            host.tell(self.now, StatefulCommand::Stop { run: RUN, abort });
        }
    }

    /// Lets time pass until nothing is left to happen, or until so long after the beginning.
    /// Returns whether all is over: no flow begins, and none is left.
    pub fn run_until(&mut self, until: Nanos) -> bool {
        let until = START.saturating_add(until);
        loop {
            self.turn();
            let Some(next) = self.next_due().filter(|next| *next <= until) else {
                break;
            };
            // As a thread's, each turn takes a little time.
            self.now = next.max(self.now + TURN);
        }
        self.is_over()
    }

    /// The time since the beginning.
    pub fn passed(&self) -> Nanos {
        self.now - START
    }

    /// Whether no flow begins any more, and none is left, on either side.
    pub fn is_over(&self) -> bool {
        self.ended == self.cores && self.flows() == [0, 0]
    }

    /// Flows of clients and of servers that there are, those that only swallow stragglers among
    /// them.
    pub fn flows(&self) -> [usize; 2] {
        self.count(StatefulEngine::flows)
    }

    /// Those of them that are in TIME-WAIT.
    pub fn flows_in_time_wait(&self) -> [usize; 2] {
        self.count(StatefulEngine::flows_in_time_wait)
    }

    fn count(&self, of: impl Fn(&StatefulEngine) -> usize) -> [usize; 2] {
        let count = |hosts: &Vec<Host>| hosts.iter().map(|host| of(&host.engine)).sum();
        [count(&self.sides[0]), count(&self.sides[1])]
    }

    /// Looks at all that the engines hold.
    ///
    /// # Errors
    /// What does not hold, in words: a rule, or what is held by nobody when all is over.
    pub fn audit(&self) -> Result<(), String> {
        for host in self.sides.iter().flatten() {
            host.engine.audit()?;
            let holdings = host.engine.holdings();
            if holdings.flows == 0 && holdings != Holdings::default() {
                return Err(format!("held by nobody: {holdings:?}"));
            }
        }
        Ok(())
    }

    /// What clients and servers of a template group counted; group 0 has those without a name.
    pub fn group(&self, group: usize) -> [GroupCounters; 2] {
        let mut sides: [GroupCounters; 2] = Default::default();
        for (side, hosts) in self.sides.iter().enumerate() {
            for host in hosts {
                let groups = host.engine.groups(RUN);
                if let Some(one) = groups.and_then(|groups| groups.get(group)) {
                    sides[side].add(&one[side]);
                }
            }
        }
        sides
    }

    /// What clients and servers of all groups counted together.
    pub fn totals(&self, groups: usize) -> [GroupCounters; 2] {
        let mut sides: [GroupCounters; 2] = Default::default();
        for group in 0..=groups {
            for (all, one) in sides.iter_mut().zip(&self.group(group)) {
                all.add(one);
            }
        }
        sides
    }

    /// How long the flows of clients took.
    pub fn times(&self) -> FlowTimes {
        let mut times = FlowTimes::default();
        let clients = self.sides[place(Side::Client)].iter();
        for one in clients.filter_map(|host| host.engine.times(RUN)) {
            times.add(one);
        }
        times
    }

    /// What the flow tables of clients and servers counted.
    pub fn flow_tables(&self) -> [FlowTableCounters; 2] {
        let mut sides: [FlowTableCounters; 2] = Default::default();
        for (side, hosts) in self.sides.iter().enumerate() {
            for host in hosts {
                sides[side].add(&host.engine.counters()[side]);
            }
        }
        sides
    }

    /// What the link did with frames to the clients, and to the servers.
    pub fn links(&self) -> [LinkCounters; 2] {
        [self.links[0].counters, self.links[1].counters]
    }

    /// How often the device made each fault, in their order.
    pub fn faults(&self) -> &[u64; Fault::COUNT] {
        self.device.counters()
    }

    /// Gives all that arrived to its engine, and calls those whose time has come.
    fn turn(&mut self) {
        while self.under_way.peek().is_some_and(|one| one.at <= self.now) {
            let one = self.under_way.pop().expect("there is one");
            let at = self.now - START;
            self.watch.see(at, one.to, Passing::Arrives, &one.frame);
            let core =
                client_port(&one.frame, one.to).map_or(0, |port| u32::from(port) % self.cores);
            let host = &mut self.sides[place(one.to)][core as usize];
            host.receive(self.now, place(one.to) as u8, &one.frame);
        }
        for host in self.sides.iter_mut().flatten() {
            let due = host.engine.poll_timeout();
            let is_due = due.is_some_and(|due| due <= self.now) || host.engine.is_blocked();
            if is_due || host.is_fresh {
                host.work(self.now);
            }
        }
        self.collect();
    }

    /// Puts on the link what was sent, and notes what was told.
    fn collect(&mut self) {
        for side in [Side::Client, Side::Server] {
            for core in 0..self.sides[place(side)].len() {
                let host = &mut self.sides[place(side)][core];
                if !std::mem::take(&mut host.is_fresh) {
                    continue;
                }
                while let Some(Event::Ended { .. }) = host.engine.poll_event() {
                    self.ended += u32::from(side == Side::Client);
                }
                for frame in host.queue.take() {
                    self.send(side, frame);
                }
            }
        }
    }

    fn send(&mut self, from: Side, frame: Vec<u8>) {
        self.watch
            .see(self.now - START, from, Passing::Leaves, &frame);
        let to = match from {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        };
        self.device.pass(to, frame, &mut self.passed);
        for (to, frame) in std::mem::take(&mut self.passed) {
            let [first, second] = self.links[place(to)].send(self.now, frame.len());
            if let Some(at) = second {
                self.put_under_way(at, to, frame.clone());
            }
            if let Some(at) = first {
                self.put_under_way(at, to, frame);
            }
        }
    }

    fn put_under_way(&mut self, at: Nanos, to: Side, frame: Vec<u8>) {
        self.sent += 1;
        let number = self.sent;
        self.under_way.push(InFlight {
            at,
            number,
            to,
            frame,
        });
    }

    fn next_due(&self) -> Option<Nanos> {
        let hosts = self.sides.iter().flatten();
        let due = hosts.filter_map(|host| host.next_due(self.now));
        due.chain(self.under_way.peek().map(|one| one.at)).min()
    }
}

impl Host {
    fn new(settings: &SimSettings, side: Side, rank: u32) -> Host {
        let facts = FlowPortInfo {
            side,
            own_mac: [CLIENT_MAC, SERVER_MAC][place(side)],
            peer_mac: [SERVER_MAC, CLIENT_MAC][place(side)],
            encapsulation: Encapsulation::Ethernet,
            frame_bytes_max: ETHERNET_BYTES + usize::from(settings.mtu),
            share: PoolShare {
                rank,
                cores: settings.cores,
                ..PoolShare::ONLY
            },
        };
        let mut ports = vec![None; 2];
        ports[place(side)] = Some(facts);
        let purpose = 2 + 2 * u64::from(rank) + place(side) as u64;
        let config = Config {
            ports,
            rss: Vec::new(),
            flows_max: settings.flows_max,
            seed: SimRng::new(settings.seed, purpose).bits(),
        };
        Host {
            engine: StatefulEngine::new(config, START)
                .with_unix_offset(settings.unix_time.saturating_sub(START)),
            queue: Queue::new(settings.room),
            is_fresh: false,
        }
    }

    fn tell(&mut self, now: Nanos, command: StatefulCommand) {
        self.engine.handle_command(now, command, &mut self.queue);
        self.is_fresh = true;
    }

    fn receive(&mut self, now: Nanos, port: u8, frame: &[u8]) {
        self.engine.handle_frame(now, port, frame, &mut self.queue);
        self.is_fresh = true;
    }

    fn work(&mut self, now: Nanos) {
        self.engine.poll_transmit(now, false, &mut self.queue);
        self.is_fresh = true;
    }

    /// When it has something to do; what waits for room tries again a little later.
    fn next_due(&self, now: Nanos) -> Option<Nanos> {
        let blocked = self.engine.is_blocked().then_some(now + ROOM_AFTER);
        self.engine.poll_timeout().into_iter().chain(blocked).min()
    }
}

/// The client's port of a frame on its way to a side: by it, cores share out the flows.
fn client_port(bytes: &[u8], to: Side) -> Option<u16> {
    let layout = frame::parse(bytes);
    let segment = layout.segment(bytes);
    let (from, other) = match layout.transport {
        Transport::Tcp => {
            let view = TcpView::new_unchecked(segment);
            (view.source_port(), view.destination_port())
        }
        Transport::Udp => {
            let view = UdpView::new_unchecked(segment);
            (view.source_port(), view.destination_port())
        }
        _ => return None,
    };
    Some(match to {
        Side::Client => other,
        Side::Server => from,
    })
}
