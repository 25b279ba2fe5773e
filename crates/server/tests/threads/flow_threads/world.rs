//! Data threads of stateful mode between two memory ports, driven by hand in virtual time, with a
//! receive thread that really runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use allosaur_engine::encapsulation::Encapsulation;
use allosaur_engine::stateful::{
    Config, EndCause, Event, FlowPortInfo, GroupCounters, RunIndex, RunLimits, StatefulCommand,
};
use allosaur_engine::template::{CompiledProfile, Layout, PoolShare, PoolSpec, ProfileSpec, Side};
use allosaur_engine::time::{MILLISECOND, Nanos};
use allosaur_packet::MacAddress;
use allosaur_port::kind::PortTx;
use allosaur_port::memory::{self, FRAME_BYTES_MAX, LinkSettings};
use allosaur_port::sharing::Sharing;
use allosaur_port::tap::{TapSwitch, tap};
use allosaur_server::config::polling::Poll;
use allosaur_server::control::worker_command::{FlowCommand, FlowReport};
use allosaur_server::counters::{Counters, RunBlock, Snapshot};
use allosaur_server::threads::clock::{Clock, Hand};
use allosaur_server::threads::data::{
    DataThread, FlowLinks, FlowRx, FlowState, Report, WorkerCommand,
};
use allosaur_server::threads::forward::{Watched, forward_channel};
use allosaur_server::threads::mailbox::{ControlEnd, mailbox};
use allosaur_server::threads::receive::Receiver;
use allosaur_server::threads::receive::watch::Watch;
use allosaur_server::threads::waker::{Notify, Waker};

pub(crate) const RUN: RunIndex = RunIndex(3);
pub(crate) const REQUEST_BYTES: u64 = 100;
/// Full segments: no last one waits for an acknowledgment that waits too.
pub(crate) const RESPONSE_BYTES: u64 = 14 * 1460;
/// When profiles start after they are told.
pub(crate) const AHEAD: Nanos = MILLISECOND;

/// The longest sleep.
const SLEEP: Nanos = MILLISECOND;

pub(crate) fn mac(port: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, port]
}

/// A turn that sent or received something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Active {
    pub(crate) first: Nanos,
    pub(crate) last: Nanos,
}

pub(crate) struct World {
    pub(crate) hand: Hand,
    pub(crate) clock: Clock,
    pub(crate) counters: Counters,
    pub(crate) control: Vec<ControlEnd<WorkerCommand, Report>>,
    pub(crate) threads: Vec<DataThread>,
    pub(crate) blocks: Vec<Arc<RunBlock>>,
    pub(crate) asking: crate::asking::Asking,
    pub(crate) reports: Vec<(usize, Report)>,
    /// When frames came or went.
    pub(crate) active: Option<Active>,
    waker: Waker,
    stop: Arc<AtomicBool>,
    receive: Option<JoinHandle<()>>,
}

impl World {
    pub(crate) fn new(cores: usize, link: LinkSettings) -> World {
        let (clock, hand) = Clock::by_hand();
        let counters = Counters::new(2, cores).with_flows();
        let (waker, control_notify) = (new_waker(), Notify::new().expect("a file"));
        let (asking, answering) = crate::asking::asking(waker.clone());
        let wakers: Vec<_> = (0..cores).map(|_| new_waker()).collect();
        let (a, b) = memory::pair(cores + 1, cores + 1, &link);
        let (mut tx, mut own, mut rx) = (per_core(cores), Vec::new(), per_core(cores));
        for (number, mut port) in [a, b].into_iter().enumerate() {
            own.push(PortTx::from(
                port.tx.pop().expect("one for the receive thread"),
            ));
            for (queues, queue) in tx.iter_mut().zip(port.tx) {
                queues.push(Some(PortTx::from(queue)));
            }
            for (queues, queue) in rx
                .iter_mut()
                .zip(receivers(port.rx, number, cores, &wakers))
            {
                queues.push(Some(queue));
            }
        }
        let (switch, watched) = (TapSwitch::default(), Watched::default());
        let (mut control, mut threads) = (Vec::new(), Vec::new());
        let (mut forward_rx, mut taps) = (Vec::new(), Vec::new());
        for (core, (tx, rx)) in tx.into_iter().zip(rx).enumerate() {
            let (control_end, mail) = mailbox(&control_notify, &wakers[core]);
            let (forward, links_forward) =
                forward_channel(wakers[core].clone(), waker.clone(), watched.clone());
            let (tap_in, tap_out) = tap();
            taps.push(tap_out);
            forward_rx.push(forward);
            control.push(control_end);
            let links = FlowLinks {
                forward: links_forward,
                arrivals: counters.flows[core].clone(),
                receive: counters.receive.clone(),
            };
            let flows = FlowState::new(config(core, cores), rx, links, clock.now_ns());
            let thread = DataThread::new(tx, mail, counters.cores[core].clone(), clock.clone());
            let thread = thread.tapped_by(tap_in, switch.clone());
            threads.push(thread.with_flows(Box::new(flows)));
        }
        let watch = Watch::new(own, taps, switch, answering).waking(wakers);
        let receiver = Receiver::new([None, None], counters.receive.clone(), clock.clone());
        let receiver = receiver.watched_by(watch).joined_by(forward_rx, watched);
        let stop = Arc::new(AtomicBool::new(false));
        let (told, own) = (Arc::clone(&stop), waker.clone());
        let receive = std::thread::spawn(move || receiver.run(Poll::Adaptive, &told, &own));
        World {
            hand,
            clock,
            counters,
            control,
            threads,
            blocks: Vec::new(),
            asking,
            reports: Vec::new(),
            active: None,
            waker,
            stop,
            receive: Some(receive),
        }
    }

    /// Starts a profile on all threads.
    pub(crate) fn start(&mut self, profile: &ProfileSpec, duration: Option<Nanos>) {
        let cores = self.threads.len() as u32;
        let layout = Layout { cores, pairs: 1 };
        let profile = CompiledProfile::compile(profile, layout).expect("the profile is right");
        let profile = Arc::new(profile);
        for control in &mut self.control {
            let block = Arc::new(RunBlock::new(1, 0));
            self.blocks.push(block.clone());
            control.send(FlowCommand::Publish { run: RUN, block });
            control.send(StatefulCommand::Start {
                run: RUN,
                profile: profile.clone(),
                factor: 1.0,
                start_at: self.clock.now_ns() + AHEAD,
                duration,
                clients: u32::MAX,
                limits: RunLimits::default(),
            });
        }
    }

    /// All threads work until none has anything to do, and then sleep until one has.
    pub(crate) fn step(&mut self) {
        let mut work = 1;
        while work > 0 {
            work = self.threads.iter_mut().map(DataThread::turn).sum();
            if work > 0 {
                let now = self.clock.now_ns();
                let first = self.active.map_or(now, |active| active.first);
                self.active = Some(Active { first, last: now });
            }
        }
        for (core, control) in self.control.iter_mut().enumerate() {
            while let Some(report) = control.receive() {
                self.reports.push((core, report));
            }
        }
        let now = self.clock.now_ns();
        let due = self.threads.iter_mut().filter_map(DataThread::next_due);
        let due = due.min().map_or(now + SLEEP, |due| due.min(now + SLEEP));
        let due = due.max(now + 1_000);
        self.hand.advance(due - now);
    }

    /// Goes on until something is so; gives up after a virtual minute.
    pub(crate) fn until(&mut self, what: &str, mut is_so: impl FnMut(&mut World) -> bool) {
        let give_up = self.clock.now_ns() + 60_000 * MILLISECOND;
        while !is_so(self) {
            assert!(self.clock.now_ns() < give_up, "never: {what}");
            self.step();
        }
    }

    /// Goes on until all threads have told that the run is over.
    pub(crate) fn until_ended(&mut self) -> Vec<EndCause> {
        let cores = self.threads.len();
        self.until("the run is over", |world| world.ends().len() == cores);
        self.ends()
    }

    fn ends(&self) -> Vec<EndCause> {
        let ends = self.reports.iter().filter_map(|(_, report)| match report {
            Report::Flows(FlowReport::Event(Event::Ended { cause, .. })) => Some(*cause),
            _ => None,
        });
        ends.collect()
    }

    /// What clients and servers of the run counted, of all threads.
    pub(crate) fn totals(&self) -> [GroupCounters; 2] {
        let mut totals = <[GroupCounters; 2]>::default();
        for block in &self.blocks {
            for (total, counters) in totals.iter_mut().zip(block.totals()) {
                total.add(&counters);
            }
        }
        totals
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot::default();
        self.counters.read(&mut snapshot);
        snapshot
    }

    /// One counter of the flow tables by its name, clients' and servers' of all threads together.
    pub(crate) fn table_counter(&self, name: &str) -> u64 {
        use allosaur_engine::stateful::FlowTableCounters as Table;
        let place = Table::NAMES.iter().position(|known| *known == name);
        let place = place.expect("a counter of the table");
        let tables = self.snapshot().flow_tables;
        let tables = tables.iter().flatten();
        tables.map(|table| table.values()[place]).sum()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.waker.wake();
        if let Some(receive) = self.receive.take() {
            let ended = receive.join();
            assert!(
                ended.is_ok() || std::thread::panicking(),
                "the receive thread ends"
            );
        }
    }
}

fn new_waker() -> Waker {
    Waker::new().expect("a file descriptor")
}

fn per_core<T>(cores: usize) -> Vec<Vec<T>> {
    std::iter::repeat_with(Vec::new).take(cores).collect()
}

/// What each thread reads of a port: its own ring, or its share of the only queue.
fn receivers(rx: memory::MemoryRx, port: usize, cores: usize, wakers: &[Waker]) -> Vec<FlowRx> {
    let mut queues = rx.split(cores);
    if queues.len() == cores {
        return queues
            .into_iter()
            .map(|queue| FlowRx::Whole(queue.into()))
            .collect();
    }
    let sharing = [Sharing::ByDestinationPort, Sharing::BySourcePort][port];
    let queue = queues.pop().expect("there is one");
    FlowRx::share_out(queue.into(), wakers[1..].to_vec(), sharing)
}

fn config(core: usize, cores: usize) -> Config {
    let facts = |side, own: u8| {
        Some(FlowPortInfo {
            side,
            own_mac: MacAddress(mac(own)),
            peer_mac: MacAddress(mac(1 - own)),
            encapsulation: Encapsulation::Ethernet,
            frame_bytes_max: FRAME_BYTES_MAX,
            share: PoolShare {
                rank: core as u32,
                cores: cores as u32,
                pair: 0,
                pairs: 1,
            },
        })
    };
    Config {
        ports: vec![facts(Side::Client, 0), facts(Side::Server, 1)],
        rss: Vec::new(),
        flows_max: 1 << 16,
        seed: 7 + core as u64,
    }
}

/// So many connections a second, each with a request and an answer; without `limit` as long as it
/// runs.
pub(crate) fn profile(rate_cps: f64, limit: Option<u32>) -> ProfileSpec {
    let pools = [
        PoolSpec::new(Side::Client, 0x1000_0001, 0x1000_00ff),
        PoolSpec::new(Side::Server, 0x3000_0001, 0x3000_00ff),
    ];
    let bytes = [REQUEST_BYTES, RESPONSE_BYTES];
    let mut profile = ProfileSpec::request_response(bytes, pools, rate_cps);
    profile.templates[0].client.limit = limit;
    profile
}
