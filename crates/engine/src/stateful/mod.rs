//! The stateful engine of one core: flows that begin, talk and end.
//!
//! | what | where |
//! |---|---|
//! | the verbs | here |
//! | the words between control and a core | `messages` |
//! | a profile that runs | `run` |
//! | who begins flows, from which port | `clients`, `client_pool`, `rss_ports` |
//! | how fast | `pace` |
//! | frames that arrive, in bursts, and whose they are | `rx`; those that are not as most are `slow_path`, `admit` |
//! | those of no flow: who serves them | `accept`, and `slow_path` where an application tells its flows apart itself |
//! | what they will need, read beforehand | `look_ahead` |
//! | flows that only wait | `time_wait` |
//! | flows at work, and what is known of each | `dispatch`, `entry` |
//! | flows that are due, or waited for room | `due` |
//! | flows that begin, and those that end | `open`, `close` |
//! | flows that programs make | `exec_template` |
//! | whose clients may be nobody | `half_open` |
//! | what the flow table counts | `counters` |
//! | what a flow takes of memory | `memory` |
//! | what always holds | `audit` |
//! | which clients rest, and whom nobody answers | `filters` |
//! | where clients' frames go, by their address | `topology` |
//! | what can be seen of flows | `records` |

mod accept;
mod admit;
mod audit;
mod client_pool;
mod clients;
mod close;
mod counters;
mod dispatch;
mod due;
mod entry;
mod exec_template;
mod filters;
mod half_open;
mod look_ahead;
pub mod memory;
mod messages;
mod open;
mod pace;
mod records;
mod rss_ports;
mod run;
mod rx;
mod slow_path;
mod time_wait;
pub mod topology;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use allosaur_packet::rss::RssShare;

use crate::app::CoreInfo;
use crate::flow::{FlowIndex, Slab, Table, Timers};
use crate::rng::Lcg;
use crate::session::app_latency::Connections;
use crate::session::{FlowTimes, Pools};
use crate::stats::TransmitCounters;
use crate::tcp::Seq;
use crate::template::{PoolShare, Side};
use crate::time::Nanos;
use crate::transmit::{PortIndex, TxQueues};

pub use audit::Holdings;
pub use clients::PORT_MIN as CLIENT_PORT_MIN;
use clients::Terms;
pub use counters::FlowTableCounters;
use dispatch::{ForgetPayloads, Sent};
use entry::FlowEntry;
use exec_template::Executions;
use filters::DisabledClients;
pub use filters::{Blocklist, IGNORED_MAX};
use half_open::HalfOpen;
use look_ahead::{BEGUN_AHEAD, Beginner};
pub use messages::{
    Config, Disposition, EndCause, Event, FlowPortInfo, RUNS_MAX, RunIndex, RunLimits,
    StatefulCommand,
};
use pace::Ramp;
pub use records::FlowRecord;
pub use run::GroupCounters;
use run::Run;
use time_wait::TimeWaitQueue;
use topology::Topology;

/// Flows of a profile that begin in a turn at most.
const BEGUN_PER_TURN: u32 = 256;
/// The same while frames wait: those that there are come first, or none would ever end.
const BEGUN_WHILE_BUSY: u32 = 1;
/// Flows of a profile that are cut off in a turn at most.
const CUT_OFF_PER_TURN: usize = 1024;
/// Flows that are woken in a turn at most.
const WOKEN_PER_TURN: u32 = 1024;
/// Flows whose time has come that are read at once.
const WOKEN_AHEAD: u32 = 32;

/// The stateful engine of a core. Drive it like this, once a turn: any commands by
/// [`handle_command`](StatefulEngine::handle_command), all frames by
/// [`handle_frames`](StatefulEngine::handle_frames), one
/// [`poll_transmit`](StatefulEngine::poll_transmit), then [`poll_event`](StatefulEngine::poll_event) until
/// there is none; [`poll_timeout`](StatefulEngine::poll_timeout) says when the next turn has something
/// to do.
#[derive(Debug)]
pub struct StatefulEngine {
    ports: Vec<Option<FlowPortInfo>>,
    /// What cards bring to this core, by port.
    rss: Vec<Option<Arc<RssShare>>>,
    flows: Slab<FlowEntry>,
    time_wait: TimeWaitQueue,
    table: Table,
    timers: Timers,
    pools: Pools,
    /// Flows whose other side may be nobody.
    half_open: HalfOpen,
    /// The flows of clients whose messages say whose they are.
    connections: HashMap<u32, FlowIndex>,
    /// Up to the highest number that was ever used.
    runs: Vec<Option<Run>>,
    /// Those of `runs` that work or serve, in the order of their start. Only these are looked at in
    /// each turn: there may be a thousand that are over.
    active: Vec<RunIndex>,
    seed: u64,
    /// What to add to the time for that since 1970.
    unix_offset: Nanos,
    /// Of each port, the flows that wait for room.
    blocked: Vec<VecDeque<FlowIndex>>,
    /// Clients, servers.
    counters: [FlowTableCounters; 2],
    events: VecDeque<Event>,
    /// Empty between calls.
    beginners: Vec<Beginner>,
    executions: Executions,
    /// Flows that others woke are called then, or at once where it is over.
    woken_at: Nanos,
    /// Clients that begin no flows.
    disabled: DisabledClients,
    ignored: Arc<Blocklist>,
    /// Ports whose unmatched frames are somebody else's, as bits.
    passes_unmatched: u64,
    topology: Arc<Topology>,
    sent: Sent,
    /// A split frame in one piece.
    scratch: Vec<u8>,
}

impl StatefulEngine {
    /// An engine without any flow, at time `now`.
    pub fn new(config: Config, now: Nanos) -> StatefulEngine {
        let mut ports = config.ports.iter().flatten();
        let share = ports.find(|info| info.side == Side::Client);
        let share = share.map_or(PoolShare::ONLY, |info| info.share);
        let cores = share.cores * share.pairs;
        let connections = Connections::of_core(share.pair * share.cores + share.rank, cores);
        let sent = Sent::new(config.ports.len());
        StatefulEngine {
            blocked: config.ports.iter().map(|_| VecDeque::new()).collect(),
            ports: config.ports,
            rss: config.rss,
            flows: Slab::new(config.flows_max),
            time_wait: TimeWaitQueue::new(config.flows_max),
            table: Table::new(config.flows_max, config.seed),
            timers: Timers::new(now),
            pools: Pools {
                connections,
                rng: Lcg::new(config.seed as u32),
                ..Pools::default()
            },
            half_open: HalfOpen::default(),
            connections: HashMap::new(),
            runs: Vec::new(),
            active: Vec::new(),
            seed: config.seed,
            unix_offset: 0,
            counters: Default::default(),
            events: VecDeque::new(),
            beginners: Vec::new(),
            executions: Executions::default(),
            woken_at: 0,
            disabled: DisabledClients::default(),
            ignored: Arc::default(),
            passes_unmatched: 0,
            topology: Arc::default(),
            sent,
            scratch: Vec::new(),
        }
    }

    /// Has TCP's clock begin at `began_ms`. It must not go back when a server starts again: who
    /// remembers a connection (TIME-WAIT) takes a new one between the same ends only when its
    /// timestamps or numbers are later (RFC 6191; RFC 7323, section 5).
    #[must_use]
    pub fn with_tcp_clock(mut self, began_ms: u32) -> StatefulEngine {
        self.pools.tcp_began_ms = began_ms;
        self
    }

    /// Has applications know the time since 1970: it is `unix_offset` more than that of the engine.
    #[must_use]
    pub fn with_unix_offset(mut self, unix_offset: Nanos) -> StatefulEngine {
        self.unix_offset = unix_offset;
        self
    }

    /// The number of a SYN, by a clock of 4 µs (RFC 9293, section 3.4.1) and a little chance.
    /// Whoever sees it may guess the next: a generator has nothing to lose by that.
    fn first_number(&mut self, now: Nanos) -> Seq {
        let ticks = self.pools.tcp_ms(now).wrapping_mul(250);
        Seq(ticks.wrapping_add(self.pools.rng.next31() >> 16))
    }

    /// Does what control says.
    pub fn handle_command(
        &mut self,
        now: Nanos,
        command: StatefulCommand,
        tx_queues: &mut impl TxQueues,
    ) {
        match command {
            StatefulCommand::Start {
                run,
                profile,
                factor,
                start_at,
                duration,
                clients,
                limits,
            } => {
                let ramp = Ramp::new(profile.rampup_s(), start_at);
                let ports = self.client_ports(clients, factor, start_at, ramp);
                let until = duration.map(|duration| start_at + duration);
                let place = usize::from(run.0);
                if place >= self.runs.len() {
                    self.runs.resize_with(place + 1, || None);
                }
                let info = self.core_info();
                let applications = &mut self.pools.applications;
                applications.hold_cores(profile.applications(), &info);
                let sides = [Side::Client, Side::Server];
                let demultiplexed = sides.map(|side| self.demultiplexed(&profile, side));
                let made = Run::new(profile, &ports, until, limits, clients == 0);
                let made = made.with_demultiplexed(demultiplexed);
                let before = self.runs[place].replace(made);
                self.release_cores(before.as_ref());
                self.retire(run);
                self.active.push(run);
            }
            StatefulCommand::Update { run, factor } => {
                let ports = self.client_ports(u32::MAX, factor, now, None);
                if let (Some(run), Some((_, terms))) = (self.run_mut(run), ports.first()) {
                    run.set_rates(now, terms);
                }
            }
            StatefulCommand::Stop { run, abort } => {
                if let Some(run) = self.run_mut(run) {
                    run.stop(now, EndCause::Stopped);
                }
                if abort {
                    self.cut_off(run);
                }
            }
            StatefulCommand::Retire { run } => self.retire(run),
            StatefulCommand::Remove { run } => {
                self.retire(run);
                self.cut_off(run);
                self.cut_off_some(now, run, usize::MAX, tx_queues);
                self.forget_flows(now, run, tx_queues);
                let run = self.runs.get_mut(usize::from(run.0));
                let run = run.and_then(Option::take);
                self.release_cores(run.as_ref());
                self.forget_payloads(tx_queues);
            }
            StatefulCommand::SetLink { .. }
            | StatefulCommand::SetShare { .. }
            | StatefulCommand::SetTopology(_)
            | StatefulCommand::EnableClients { .. }
            | StatefulCommand::SetIgnored(_) => self.set(command),
        }
    }

    /// What the applications of this core are told of it.
    fn core_info(&self) -> CoreInfo {
        let share = self.ports.iter().flatten().map(|info| info.share).next();
        let share = share.unwrap_or(PoolShare::ONLY);
        CoreInfo {
            seed: self.seed,
            unix_offset: self.unix_offset,
            rank: share.rank,
            cores: share.cores,
        }
    }

    /// A run is gone, and so are its flows.
    fn release_cores(&mut self, run: Option<&Run>) {
        let profile = run.map(|run| &run.profile);
        let factories = profile
            .into_iter()
            .flat_map(|profile| profile.applications());
        self.pools.applications.release_cores(factories);
    }

    /// What holds for all profiles.
    fn set(&mut self, command: StatefulCommand) {
        match command {
            StatefulCommand::SetLink {
                port,
                own_mac,
                peer_mac,
                encapsulation,
            } => {
                if let Some(Some(info)) = self.ports.get_mut(usize::from(port)) {
                    info.own_mac = own_mac;
                    info.peer_mac = peer_mac;
                    info.encapsulation = encapsulation;
                }
            }
            StatefulCommand::SetShare { port, share } => {
                if let Some(Some(info)) = self.ports.get_mut(usize::from(port)) {
                    info.share = share;
                }
            }
            StatefulCommand::SetTopology(topology) => self.topology = topology,
            StatefulCommand::EnableClients {
                first,
                last,
                enabled,
            } => self.disabled.set(first, last, !enabled),
            StatefulCommand::SetIgnored(ignored) => self.ignored = ignored,
            _ => {}
        }
    }

    /// Of these ports, as bits, frames of no flow and no template are somebody else's from now on:
    /// they are neither counted nor answered.
    #[inline]
    pub fn pass_unmatched(&mut self, ports: u64) {
        self.passes_unmatched = ports;
    }

    /// Lets the queues go of the payloads of a profile; those of others they meet again.
    fn forget_payloads(&self, tx_queues: &mut impl TxQueues) {
        for (info, port) in self.ports.iter().zip(0u8..) {
            if info.is_some() {
                tx_queues.with_queue(port, ForgetPayloads);
            }
        }
    }

    /// A run serves nobody any more, and has nothing to do.
    fn retire(&mut self, run: RunIndex) {
        self.active.retain(|active| *active != run);
    }

    fn run(&self, run: RunIndex) -> Option<&Run> {
        self.runs.get(usize::from(run.0))?.as_ref()
    }

    fn run_mut(&mut self, run: RunIndex) -> Option<&mut Run> {
        self.runs.get_mut(usize::from(run.0))?.as_mut()
    }

    /// The client ports among `mask`, with what their clients begin by.
    fn client_ports(
        &self,
        mask: u32,
        factor: f64,
        start_at: Nanos,
        ramp: Option<Ramp>,
    ) -> Vec<(PortIndex, Terms)> {
        let ports = self.ports.iter().zip(0u8..);
        let clients = ports.filter_map(|(info, port)| {
            let info = info.as_ref().filter(|info| info.side == Side::Client)?;
            let terms = Terms {
                share: info.share,
                rss: self.rss.get(usize::from(port)).cloned().flatten(),
                factor,
                start_at,
                ramp,
                seed: self.seed as u32 ^ u32::from(port),
            };
            (mask >> port & 1 == 1).then_some((port, terms))
        });
        clients.collect()
    }

    /// One turn: flows that have something to do, and flows that begin; few while `is_busy`: while
    /// frames that arrived wait. Returns how many frames were sent since the last turn.
    pub fn poll_transmit(
        &mut self,
        now: Nanos,
        is_busy: bool,
        tx_queues: &mut impl TxQueues,
    ) -> u64 {
        self.retry_blocked(now, tx_queues);
        let begun_max = if is_busy || self.is_blocked() {
            BEGUN_WHILE_BUSY
        } else {
            BEGUN_PER_TURN
        };
        self.end_time_wait(now);
        let looks_ahead = self.looks_ahead();
        for number in 0..WOKEN_PER_TURN {
            let Some(flow) = self.timers.pop_due(now) else {
                break;
            };
            if looks_ahead && number % WOKEN_AHEAD == 0 {
                self.fetch_due(now);
            }
            self.wake(now, flow, tx_queues);
        }
        self.execute(now, tx_queues);
        if self.pools.applications.woken() > 0 {
            self.call_woken(now, tx_queues);
        }
        for place in 0..self.active.len() {
            let run = self.active[place];
            self.begin_due(now, run, begun_max, tx_queues);
        }
        std::mem::take(&mut self.sent.in_turn)
    }

    /// Begins the flows of a profile that are due, and sees to its end.
    fn begin_due(
        &mut self,
        now: Nanos,
        index: RunIndex,
        begun_max: u32,
        tx_queues: &mut impl TxQueues,
    ) {
        let number = usize::from(index.0);
        let Some(run) = &mut self.runs[number] else {
            return;
        };
        if run.watch_the_end(now) {
            self.cut_off(index);
        }
        if self.runs[number]
            .as_ref()
            .is_some_and(Run::is_all_in_time_wait)
        {
            self.finish(index);
        }
        self.cut_off_some(now, index, CUT_OFF_PER_TURN, tx_queues);
        let together = if self.table.is_large() {
            BEGUN_AHEAD
        } else {
            1
        };
        let mut left = begun_max as usize;
        while left > 0 {
            let count = self.begin_some(now, index, left.min(together), tx_queues);
            if count == 0 {
                break;
            }
            left -= count;
        }
        let run = self.runs[number].as_mut().expect("it was there");
        if let Some(cause) = run.take_end() {
            self.events.push_back(Event::Ended {
                run: index,
                at: now,
                cause,
            });
        }
    }

    /// When the next turn has something to do.
    pub fn poll_timeout(&self) -> Option<Nanos> {
        let runs = self.active.iter().filter_map(|run| self.run(*run));
        let runs = runs.filter_map(Run::next_due);
        let executions = self.executions.has_work().then_some(0);
        let woken = (self.pools.applications.woken() > 0).then_some(self.woken_at);
        let waits = self.time_wait.next_due(&self.pools);
        let timers = self.timers.next_due().into_iter().chain(waits);
        runs.chain(timers).chain(executions).chain(woken).min()
    }

    /// What happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Whether flows wait for room in a port's queue.
    #[inline]
    pub fn is_blocked(&self) -> bool {
        self.blocked.iter().any(|flows| !flows.is_empty())
    }

    /// What the groups of a profile count: client and server of each; the first has the templates
    /// without a group. `None` when it does not run.
    pub fn groups(&self, run: RunIndex) -> Option<&[[GroupCounters; 2]]> {
        self.run(run).map(|run| run.groups.as_slice())
    }

    /// How long the flows of a profile's clients took. `None` when it does not run.
    pub fn times(&self, run: RunIndex) -> Option<&FlowTimes> {
        self.run(run).map(|run| &*run.times)
    }

    /// Tells `each` what has changed of them since the last time, see [`FlowTimes::take_changes`].
    pub fn take_times(&mut self, run: RunIndex, each: impl FnMut(usize, u64)) {
        if let Some(run) = self.run_mut(run) {
            run.times.take_changes(each);
        }
    }

    /// What the flow table counts: clients, servers.
    pub fn counters(&self) -> &[FlowTableCounters; 2] {
        &self.counters
    }

    /// Of each port, what flows sent; `queue_full` are frames that found no room and come later.
    pub fn transmitted(&self) -> &[TransmitCounters] {
        &self.sent.ports
    }

    /// Flows that there are, those that only answer stragglers among them.
    pub fn flows(&self) -> usize {
        self.flows.len() + self.time_wait.len()
    }

    /// Those of them that are kept in the few bytes of TIME-WAIT, see [`memory::end_in_time_wait`].
    pub fn flows_in_time_wait(&self) -> usize {
        self.time_wait.len()
    }
}
