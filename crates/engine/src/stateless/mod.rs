//! The engine of one core: verbs in, verbs out.
//!
//! [`StatelessCommand`] and [`ProfileEvent`] pass between control and a data thread. [`StatelessEngine`] shares its
//! turns out among the ports of its group: a `Sender` each, with the profiles that run there in the order
//! of time. `burst` has the packets of a burst, `change` is for profiles that control changes while they
//! run, `replay` for captures.
//!
//! Honest load: a stream without end that falls more than [`LATE_MAX`] behind gives up what it
//! cannot send in time and counts it as missed; a burst is sent whole, however late, unless the
//! run's duration ends first. What was due before the end may still leave for [`DRAIN_MAX`].
//!
//! A full queue ends the port's turn and nothing else: what could not leave stays the first in
//! order, so that no stream is starved by others with shorter frames.
//!
//! Streams end in the order of their schedules, also when a core is late: whether a chain finds
//! its next stream running must not depend on who was late.

mod burst;
mod change;
mod messages;
mod replay;

use std::collections::VecDeque;

use crate::flow_stats::GroupTable;
use crate::stats::{StreamCounters, TransmitCounters};
use crate::stream::run::StreamRun;
use crate::stream::{CoreProgram, ProfileKey, StreamId};
use crate::time::{Due, MILLISECOND, Nanos};
use crate::transmit::{PortIndex, TxQueues};
use crate::vm;
use crate::wheel::Scheduler;

pub use messages::{Change, ProfileEvent, StatelessCommand};

/// How far a stream without end may fall behind before it gives up packets, and so how much it
/// catches up after the thread was held up.
pub const LATE_MAX: Nanos = 100 * MILLISECOND;
/// How long after the end of a run what was due before it may still leave.
pub const DRAIN_MAX: Nanos = 30 * MILLISECOND;
/// Most bursts of one turn of a port, so that a core that is behind still hears its commands.
pub const BURSTS_PER_TURN: u32 = 32;

/// The engine of one core. Drive it like this, once a turn: any commands by
/// [`handle_command`](StatelessEngine::handle_command), one [`poll_transmit`](StatelessEngine::poll_transmit), then
/// [`poll_event`](StatelessEngine::poll_event) and [`poll_retired`](StatelessEngine::poll_retired) until they are
/// empty; [`poll_timeout`](StatelessEngine::poll_timeout) says when the next turn has something to do.
#[derive(Debug)]
pub struct StatelessEngine {
    senders: Vec<Sender>,
    counters: Vec<TransmitCounters>,
    stage: vm::Stage,
    outbox: Outbox,
}

/// What the engine has to say.
#[derive(Debug, Default)]
struct Outbox {
    events: VecDeque<ProfileEvent>,
    retired: VecDeque<Box<CoreProgram>>,
}

impl StatelessEngine {
    /// An engine for ports `0..ports`, at time `now`.
    pub fn new(ports: usize, now: Nanos) -> StatelessEngine {
        StatelessEngine {
            senders: (0..ports)
                .map(|port| Sender::new(port as PortIndex, now))
                .collect(),
            counters: vec![TransmitCounters::default(); ports],
            stage: vm::Stage::default(),
            outbox: Outbox::default(),
        }
    }

    /// Does what control asks for.
    pub fn handle_command(
        &mut self,
        now: Nanos,
        command: StatelessCommand,
        tx_queues: &mut impl TxQueues,
    ) {
        match command {
            StatelessCommand::StartProfile {
                port,
                profile,
                program,
                start_at,
                duration,
            } => {
                let end = duration.map_or(Nanos::MAX, |length| start_at.saturating_add(length));
                let sender = &mut self.senders[usize::from(port)];
                sender.start(
                    profile,
                    program,
                    start_at,
                    end,
                    now,
                    tx_queues,
                    &mut self.outbox,
                );
            }
            StatelessCommand::StopProfile { port, profile } => {
                self.senders[usize::from(port)].stop(profile, tx_queues, &mut self.outbox);
                self.outbox.events.push_back(ProfileEvent::ProfileStopped {
                    port,
                    profile,
                    at: now,
                });
            }
            StatelessCommand::ChangeProfile {
                port,
                profile,
                at,
                change,
            } => {
                let sender = &mut self.senders[usize::from(port)];
                sender.change(profile, at, change, &mut self.outbox);
            }
        }
    }

    /// Sends all that is due by `now`, a bounded number of bursts of each port. Returns the
    /// packets sent.
    pub fn poll_transmit(&mut self, now: Nanos, tx_queues: &mut impl TxQueues) -> u64 {
        let mut sent = 0;
        for (sender, counters) in self.senders.iter_mut().zip(&mut self.counters) {
            sent += sender.turn(now, &mut self.stage, counters, tx_queues, &mut self.outbox);
        }
        sent
    }

    /// When something is due next: never later than that. `None` when nothing runs.
    pub fn poll_timeout(&self) -> Option<Nanos> {
        let senders = self.senders.iter();
        senders.filter_map(|one| one.scheduler.next_due()).min()
    }

    /// Whether a port has something to send, now or later.
    pub fn has_more(&self, port: PortIndex) -> bool {
        let sender = self.senders.get(usize::from(port));
        sender.is_some_and(|sender| sender.scheduler.next_due().is_some())
    }

    /// The next thing that control should know.
    pub fn poll_event(&mut self) -> Option<ProfileEvent> {
        self.outbox.events.pop_front()
    }

    /// A program that is no longer in use, to be freed where freeing does not hurt.
    pub fn poll_retired(&mut self) -> Option<Box<CoreProgram>> {
        self.outbox.retired.pop_front()
    }

    /// What was counted of each port since the engine was made.
    pub fn counters(&self) -> &[TransmitCounters] {
        &self.counters
    }

    /// What was sent of each group, port by port, to be published.
    pub fn groups_mut(&mut self) -> impl Iterator<Item = &mut GroupTable> {
        self.senders.iter_mut().map(|sender| &mut sender.groups)
    }

    /// What was counted of each stream of a profile that runs, on this core.
    pub fn stream_counters(
        &self,
        port: PortIndex,
        profile: ProfileKey,
    ) -> impl Iterator<Item = (StreamId, StreamCounters)> + '_ {
        self.senders[usize::from(port)].stream_counters(profile)
    }

    /// Whether no profile runs.
    pub fn is_idle(&self) -> bool {
        self.senders.iter().all(Sender::is_idle)
    }
}

/// The streams of one port on one core.
#[derive(Debug)]
struct Sender {
    port: PortIndex,
    scheduler: Scheduler<Item>,
    runs: Vec<Option<Run>>,
    /// Outlives the runs.
    groups: GroupTable,
}

impl Sender {
    fn new(port: PortIndex, now: Nanos) -> Sender {
        Sender {
            port,
            scheduler: Scheduler::new(now),
            runs: Vec::new(),
            groups: GroupTable::default(),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of one command")]
    fn start(
        &mut self,
        profile: ProfileKey,
        program: Box<CoreProgram>,
        start_at: Nanos,
        end: Nanos,
        now: Nanos,
        tx_queues: &mut impl TxQueues,
        outbox: &mut Outbox,
    ) {
        let index = self
            .runs
            .iter()
            .position(Option::is_none)
            .unwrap_or(self.runs.len());
        let mut run = Run::new(profile, program, end);
        for stream in 0..run.program.streams.len() {
            let starting = &mut run.program.streams[stream];
            starting.frame = burst::register(starting, self.port, tx_queues);
            if starting.plan.self_start {
                let item = Item::stream(index, stream);
                run.begin(item, Due::at(start_at), &mut self.scheduler);
            }
        }
        run.begin_replay(Item::replay(index), start_at, &mut self.scheduler);
        if end != Nanos::MAX {
            self.scheduler.insert(end, Item::end(index));
        }
        if index == self.runs.len() {
            self.runs.push(None);
        }
        let nothing_to_do = run.active == 0 && run.cut == 0;
        self.runs[index] = Some(run);
        if nothing_to_do {
            self.finish(index, now, tx_queues, outbox);
        }
    }

    fn stop(&mut self, profile: ProfileKey, tx_queues: &mut impl TxQueues, outbox: &mut Outbox) {
        if let Some(index) = self.find(profile) {
            self.retire(index, tx_queues, outbox);
        }
    }

    /// Sends what is due by `now`, a bounded number of bursts.
    #[inline]
    fn turn(
        &mut self,
        now: Nanos,
        stage: &mut vm::Stage,
        counters: &mut TransmitCounters,
        tx_queues: &mut impl TxQueues,
        outbox: &mut Outbox,
    ) -> u64 {
        self.scheduler.advance(now);
        let mut sent = 0;
        for _ in 0..BURSTS_PER_TURN {
            let Some((at, item)) = self.scheduler.pop_due(now) else {
                break;
            };
            let stream = match item.part() {
                Part::Stream(stream) => stream,
                Part::Replay => {
                    let played = self.play(item, now, counters, tx_queues, outbox);
                    sent += played.sent;
                    if played.full {
                        break;
                    }
                    continue;
                }
                Part::Change => {
                    self.apply_change(item, at, outbox);
                    continue;
                }
                Part::End => {
                    self.handle_end(item, now, tx_queues, outbox);
                    continue;
                }
            };
            let run = self.runs[item.run as usize]
                .as_mut()
                .expect("a retired run has no items");
            let stream = &mut run.program.streams[stream];
            let until = now.min(run.bound.saturating_sub(1));
            if let Some(last) = stream.end(until) {
                self.follow_chain(item, last, now, tx_queues, outbox);
                continue;
            }
            give_up_late(stream, counters, &mut self.groups, now, run.end, run.bound);
            let count = stream.due_count(until, vm::BURST as u32);
            if count > 0 {
                let (taken, bytes) =
                    burst::send(stream, self.port, count, now, stage, counters, tx_queues);
                if let Some(rule) = stream.plan.rule {
                    self.groups.count(rule.group, u64::from(taken), bytes);
                }
                stream.advance(u64::from(taken));
                sent += u64::from(taken);
                if taken < count {
                    counters.queue_full += 1;
                    self.scheduler.insert(stream.due_at(), item);
                    break;
                }
            }
            stream.begin_bursts(until);
            if stream.due_at() < run.end {
                self.scheduler.insert(stream.due_at(), item);
            } else {
                self.cut(item, now, tx_queues, outbox);
            }
        }
        sent
    }

    fn is_idle(&self) -> bool {
        self.runs.iter().all(Option::is_none)
    }

    fn stream_counters(
        &self,
        profile: ProfileKey,
    ) -> impl Iterator<Item = (StreamId, StreamCounters)> + '_ {
        let run = self
            .find(profile)
            .and_then(|index| self.runs[index].as_ref());
        let streams = run.into_iter().flat_map(|run| &run.program.streams);
        streams.map(|stream| (stream.plan.id, stream.counters))
    }

    fn find(&self, profile: ProfileKey) -> Option<usize> {
        let is_it = |run: &Run| run.profile == profile;
        self.runs
            .iter()
            .position(|run| run.as_ref().is_some_and(is_it))
    }

    fn cut(&mut self, item: Item, now: Nanos, tx_queues: &mut impl TxQueues, outbox: &mut Outbox) {
        let run = self.runs[item.run as usize]
            .as_mut()
            .expect("the caller has it");
        run.cut(item);
        if now >= run.end && run.is_over(now) {
            self.finish(item.run as usize, now, tx_queues, outbox);
        }
    }

    fn follow_chain(
        &mut self,
        item: Item,
        last: Due,
        now: Nanos,
        tx_queues: &mut impl TxQueues,
        outbox: &mut Outbox,
    ) {
        let Part::Stream(stream) = item.part() else {
            return;
        };
        let index = item.run as usize;
        let run = self.runs[index].as_mut().expect("the caller has it");
        run.active -= 1;
        let next = run.program.streams[stream].successor();
        if let Some(next) = next {
            // A stream that runs already is not started again by another chain.
            if !run.program.streams[next as usize].active {
                let item = Item::stream(index, next as usize);
                run.begin(item, last, &mut self.scheduler);
            }
        }
        if run.is_over(now) {
            self.finish(index, now, tx_queues, outbox);
        }
    }

    /// The run's duration is over. What was due before gets [`DRAIN_MAX`] to leave; then the
    /// streams give up the rest, each in its own turn, and the last of them ends the run.
    fn handle_end(
        &mut self,
        item: Item,
        now: Nanos,
        tx_queues: &mut impl TxQueues,
        outbox: &mut Outbox,
    ) {
        let run = self.runs[item.run as usize]
            .as_ref()
            .expect("a retired run has no items");
        if !run.is_over(now) {
            let last_call = run.end.saturating_add(DRAIN_MAX);
            self.scheduler.insert(last_call.max(now + 1), item);
        } else {
            self.finish(item.run as usize, now, tx_queues, outbox);
        }
    }

    fn finish(
        &mut self,
        index: usize,
        at: Nanos,
        tx_queues: &mut impl TxQueues,
        outbox: &mut Outbox,
    ) {
        if let Some(run) = &self.runs[index] {
            let (port, profile) = (self.port, run.profile);
            self.retire(index, tx_queues, outbox);
            outbox
                .events
                .push_back(ProfileEvent::ProfileDone { port, profile, at });
        }
    }

    /// Takes a run out; nothing of it stays in the scheduler or in the queue.
    fn retire(&mut self, index: usize, tx_queues: &mut impl TxQueues, outbox: &mut Outbox) {
        let Some(run) = self.runs[index].take() else {
            return;
        };
        self.scheduler.retain(|item| item.run as usize != index);
        for stream in &run.program.streams {
            burst::unregister(stream, self.port, tx_queues);
        }
        outbox.retired.push_back(run.program);
    }
}

/// A profile that runs.
#[derive(Debug)]
struct Run {
    profile: ProfileKey,
    program: Box<CoreProgram>,
    /// No packet leaves that is due at this time or later.
    end: Nanos,
    /// No packet that is due at this time or later leaves yet: the end, or the next change.
    bound: Nanos,
    /// Streams that have packets to come before the end.
    active: u32,
    /// Active streams that stand still.
    frozen: u32,
    /// Streams whose next packet is due only after the end, so the run lasts until then.
    cut: u32,
    paused: bool,
    changes: VecDeque<(Nanos, Change)>,
}

impl Run {
    fn new(profile: ProfileKey, program: Box<CoreProgram>, end: Nanos) -> Run {
        Run {
            profile,
            program,
            end,
            bound: end,
            active: 0,
            frozen: 0,
            cut: 0,
            paused: false,
            changes: VecDeque::new(),
        }
    }

    /// Whether there is nothing more to come at `now`. Until the end a change may bring back what
    /// was cut or stands still.
    fn is_over(&self, now: Nanos) -> bool {
        let waiting = self.cut + self.frozen;
        let ended = now >= self.end && self.bound == self.end;
        self.active == self.frozen && (waiting == 0 || ended)
    }

    /// Starts a stream.
    fn begin(&mut self, item: Item, at: Due, scheduler: &mut Scheduler<Item>) {
        let stream = stream_of(&mut self.program, item);
        stream.start(at);
        if self.paused || stream.paused {
            stream.freeze(at.at);
        }
        self.enter(item, scheduler);
    }

    /// A stream of the run has no more packets before the end.
    fn cut(&mut self, item: Item) {
        stream_of(&mut self.program, item).cut = true;
        self.active -= 1;
        self.cut += 1;
    }

    /// Counts an active stream, and puts it into the scheduler where it has packets to come.
    fn enter(&mut self, item: Item, scheduler: &mut Scheduler<Item>) {
        let stream = stream_of(&mut self.program, item);
        let (due_at, frozen) = (stream.due_at(), stream.is_frozen());
        self.active += 1;
        if frozen {
            self.frozen += 1;
        } else if due_at < self.end {
            scheduler.insert(due_at, item);
        } else {
            self.cut(item);
        }
    }
}

/// The stream that an item is about.
fn stream_of(program: &mut CoreProgram, item: Item) -> &mut StreamRun {
    &mut program.streams[item.part as usize - 1]
}

/// What comes due: a stream of a run, a change of it, or its end. What is due at the same time
/// has its turn in this order, the same on all cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Item {
    run: u32,
    part: u32,
}

/// A change comes before the streams and the replay, the end after them.
const CHANGE: u32 = 0;
const REPLAY: u32 = u32::MAX - 1;
const END: u32 = u32::MAX;

/// An [`Item`], taken apart.
enum Part {
    Change,
    Stream(usize),
    Replay,
    End,
}

impl Item {
    fn change(run: usize) -> Item {
        let run = run as u32;
        Item { run, part: CHANGE }
    }

    fn stream(run: usize, stream: usize) -> Item {
        let (run, part) = (run as u32, stream as u32 + 1);
        Item { run, part }
    }

    fn replay(run: usize) -> Item {
        let run = run as u32;
        Item { run, part: REPLAY }
    }

    fn end(run: usize) -> Item {
        let run = run as u32;
        Item { run, part: END }
    }

    #[inline]
    fn part(self) -> Part {
        match self.part {
            CHANGE => Part::Change,
            REPLAY => Part::Replay,
            END => Part::End,
            part => Part::Stream(part as usize - 1),
        }
    }
}

/// Skips what a stream is too late for.
#[inline]
fn give_up_late(
    stream: &mut StreamRun,
    counters: &mut TransmitCounters,
    groups: &mut GroupTable,
    now: Nanos,
    end: Nanos,
    bound: Nanos,
) {
    let before_end = bound.saturating_sub(1);
    let behind = now.saturating_sub(LATE_MAX);
    if stream.next.at < behind && stream.left > 0 && stream.is_continuous() {
        give_up(stream, counters, groups, behind.min(before_end));
    }
    if now >= end.saturating_add(DRAIN_MAX) {
        give_up(stream, counters, groups, before_end);
    }
}

/// Skips the packets of the current burst that are due by `until`, and counts them as missed.
#[cold]
fn give_up(
    stream: &mut StreamRun,
    counters: &mut TransmitCounters,
    groups: &mut GroupTable,
    until: Nanos,
) {
    loop {
        let n = u64::from(stream.due_count(until, u32::MAX));
        if n == 0 {
            return;
        }
        stream.advance(n);
        if let Some(state) = &mut stream.state {
            state.skip(n);
        }
        stream.counters.missed_packets += n;
        counters.missed_packets += n;
        if let Some(rule) = stream.plan.rule {
            groups.miss(rule.group, n);
        }
    }
}
