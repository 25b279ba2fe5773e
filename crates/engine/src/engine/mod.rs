//! The engine of one core: verbs in, verbs out.
//!
//! What lives here: [`Command`] and [`Event`], the words between control and a data thread, and
//! [`Engine`], which drives the compiled streams of every port of its group. What does not: the
//! schedule of a stream (`stream::run`), the bytes of a packet (`vm`), the queues (`transmit`).
//!
//! Honest load: a stream without end that falls more than [`LATE_MAX`] behind gives up what it
//! cannot send in time and counts it as missed; a burst is sent whole, however late, unless the
//! run's duration ends first. What was due before the end may still leave for [`DRAIN_MAX`].

mod burst;

use std::collections::VecDeque;

use crate::stats::{StreamCounters, TransmitCounters};
use crate::stream::run::StreamRun;
use crate::stream::{CoreProgram, ProfileKey, StreamId};
use crate::time::{Due, MICROSECOND, MILLISECOND, Nanos};
use crate::transmit::{Outlets, PortIndex};
use crate::vm;
use crate::wheel::Scheduler;

/// How far a stream without end may fall behind before it gives up packets, and so how much it
/// catches up after the thread was held up.
pub const LATE_MAX: Nanos = 100 * MILLISECOND;
/// How long after the end of a run what was due before it may still leave.
pub const DRAIN_MAX: Nanos = 30 * MILLISECOND;
/// How long a burst waits that found the queue full.
pub const RETRY_AFTER: Nanos = 10 * MICROSECOND;
/// Most bursts of one turn, so that a core that is behind still hears its commands.
pub const BURSTS_PER_TURN: u32 = 32;

/// What control tells the engine of a core.
#[derive(Debug)]
pub enum Command {
    /// Starts a profile's share of this core.
    StartProfile {
        /// The port to send from.
        port: PortIndex,
        /// The profile's number, for later commands and events.
        profile: ProfileKey,
        /// What to send, compiled for this core.
        program: Box<CoreProgram>,
        /// When time zero of the profile is.
        start_at: Nanos,
        /// How long the run lasts; `None` is until it is stopped or all streams are done.
        duration: Option<Nanos>,
    },
    /// Stops a profile at once; answered by [`Event::ProfileStopped`]. One that is not running is
    /// answered likewise.
    StopProfile {
        /// The port.
        port: PortIndex,
        /// The profile.
        profile: ProfileKey,
    },
}

/// What the engine of a core tells control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// All of this core's streams of the profile have ended, or its duration has.
    ProfileDone {
        /// The port.
        port: PortIndex,
        /// The profile.
        profile: ProfileKey,
        /// When.
        at: Nanos,
    },
    /// The profile was stopped by command.
    ProfileStopped {
        /// The port.
        port: PortIndex,
        /// The profile.
        profile: ProfileKey,
        /// When.
        at: Nanos,
    },
}

/// The engine of one core. Drive it like this, once a turn: any commands by
/// [`handle_command`](Engine::handle_command), one [`poll_transmit`](Engine::poll_transmit), then
/// [`poll_event`](Engine::poll_event) and [`poll_retired`](Engine::poll_retired) until they are
/// empty; [`poll_timeout`](Engine::poll_timeout) says when the next turn has something to do.
#[derive(Debug)]
pub struct Engine {
    scheduler: Scheduler<Item>,
    runs: Vec<Option<Run>>,
    counters: Vec<TransmitCounters>,
    stage: vm::Stage,
    events: VecDeque<Event>,
    retired: VecDeque<Box<CoreProgram>>,
}

/// What comes due: a stream of a run, or ([`END`]) the run's end.
#[derive(Clone, Copy, Debug)]
struct Item {
    run: u32,
    stream: u32,
}

/// Stands for the end of the run's duration.
const END: u32 = u32::MAX;

/// A profile that runs.
#[derive(Debug)]
struct Run {
    port: PortIndex,
    profile: ProfileKey,
    program: Box<CoreProgram>,
    /// No packet leaves that is due at this time or later.
    end: Nanos,
    /// Streams that have packets to come.
    active: u32,
    /// A stream was cut by the duration, so the run lasts until its end.
    cut: bool,
}

/// What is left to do with an item after its turn.
enum Next {
    /// Look again then.
    At(Nanos),
    /// The stream has no more packets before the run's end.
    Cut,
    /// The stream has ended, with its last packet then.
    Ended(Due),
}

impl Engine {
    /// An engine for ports `0..ports`, at time `now`.
    pub fn new(ports: usize, now: Nanos) -> Engine {
        Engine {
            scheduler: Scheduler::new(now),
            runs: Vec::new(),
            counters: vec![TransmitCounters::default(); ports],
            stage: vm::Stage::default(),
            events: VecDeque::new(),
            retired: VecDeque::new(),
        }
    }

    /// Does what control asks for.
    pub fn handle_command(&mut self, now: Nanos, command: Command, outlets: &mut impl Outlets) {
        match command {
            Command::StartProfile {
                port,
                profile,
                program,
                start_at,
                duration,
            } => {
                let end = duration.map_or(Nanos::MAX, |length| start_at.saturating_add(length));
                let run = Run {
                    port,
                    profile,
                    program,
                    end,
                    active: 0,
                    cut: false,
                };
                self.start(run, start_at, now, outlets);
            }
            Command::StopProfile { port, profile } => {
                if let Some(index) = self.find(port, profile) {
                    self.retire(index, outlets);
                }
                self.events.push_back(Event::ProfileStopped {
                    port,
                    profile,
                    at: now,
                });
            }
        }
    }

    /// Sends all that is due by `now`, a bounded number of bursts. Returns the packets sent; when
    /// it is zero, nothing is due before [`poll_timeout`](Engine::poll_timeout).
    pub fn poll_transmit(&mut self, now: Nanos, outlets: &mut impl Outlets) -> u64 {
        self.scheduler.advance(now);
        let mut sent = 0;
        for _ in 0..BURSTS_PER_TURN {
            let Some((_, item)) = self.scheduler.pop_due(now) else {
                break;
            };
            if item.stream == END {
                self.handle_end(item, now, outlets);
            } else {
                sent += self.handle_stream(item, now, outlets);
            }
        }
        sent
    }

    /// When something is due next: never later than that. `None` when nothing runs.
    pub fn poll_timeout(&self) -> Option<Nanos> {
        self.scheduler.next_due()
    }

    /// The next thing that control should know.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// A program that is no longer in use, to be freed where freeing does not hurt.
    pub fn poll_retired(&mut self) -> Option<Box<CoreProgram>> {
        self.retired.pop_front()
    }

    /// What was counted of each port since the engine was made.
    pub fn counters(&self) -> &[TransmitCounters] {
        &self.counters
    }

    /// Whether any profile runs.
    pub fn is_idle(&self) -> bool {
        self.runs.iter().all(Option::is_none)
    }

    fn find(&self, port: PortIndex, profile: ProfileKey) -> Option<usize> {
        let is_it = |run: &Run| run.port == port && run.profile == profile;
        self.runs
            .iter()
            .position(|run| run.as_ref().is_some_and(is_it))
    }

    fn start(&mut self, mut run: Run, start_at: Nanos, now: Nanos, outlets: &mut impl Outlets) {
        let index = self
            .runs
            .iter()
            .position(Option::is_none)
            .unwrap_or(self.runs.len());
        if index == self.runs.len() {
            self.runs.push(None);
        }
        for (i, stream) in run.program.streams.iter_mut().enumerate() {
            stream.frame = burst::register(stream, run.port, outlets);
            if stream.plan.self_start {
                stream.start(Due::at(start_at));
                run.active += 1;
                let item = Item {
                    run: index as u32,
                    stream: i as u32,
                };
                self.scheduler.insert(stream.due_at(), item);
            }
        }
        let (port, profile) = (run.port, run.profile);
        let nothing_to_do = run.active == 0;
        if run.end != Nanos::MAX {
            self.scheduler.insert(
                run.end,
                Item {
                    run: index as u32,
                    stream: END,
                },
            );
        }
        self.runs[index] = Some(run);
        if nothing_to_do {
            self.retire(index, outlets);
            self.events.push_back(Event::ProfileDone {
                port,
                profile,
                at: now,
            });
        }
    }

    /// Takes a run out; nothing of it stays in the scheduler or in the queue.
    fn retire(&mut self, index: usize, outlets: &mut impl Outlets) {
        let Some(run) = self.runs[index].take() else {
            return;
        };
        self.scheduler.retain(|item| item.run as usize != index);
        for stream in &run.program.streams {
            burst::unregister(stream, run.port, outlets);
        }
        self.retired.push_back(run.program);
    }

    fn finish(&mut self, index: usize, at: Nanos, outlets: &mut impl Outlets) {
        if let Some(run) = &self.runs[index] {
            let (port, profile) = (run.port, run.profile);
            self.retire(index, outlets);
            self.events
                .push_back(Event::ProfileDone { port, profile, at });
        }
    }

    /// One stream's turn: at most one burst of packets.
    #[inline]
    fn handle_stream(&mut self, item: Item, now: Nanos, outlets: &mut impl Outlets) -> u64 {
        let run = self.runs[item.run as usize]
            .as_mut()
            .expect("a retired run has no items");
        let stream = &mut run.program.streams[item.stream as usize];
        let counters = &mut self.counters[usize::from(run.port)];
        let until = now.min(run.end.saturating_sub(1));
        if now >= run.end.saturating_add(DRAIN_MAX) {
            give_up(stream, counters, until);
        }
        let behind = now.saturating_sub(LATE_MAX);
        if stream.next.at < behind && stream.left > 0 && stream.is_continuous() {
            give_up(stream, counters, behind.min(until));
        }
        let mut queue_full = false;
        let count = stream.due_count(until, vm::BURST as u32);
        let mut sent = 0;
        if count > 0 {
            sent = burst::send(stream, run.port, count, &mut self.stage, counters, outlets);
            stream.advance(u64::from(sent));
            queue_full = sent < count;
        }
        let next = if queue_full {
            counters.queue_full += 1;
            Next::At(now + RETRY_AFTER)
        } else {
            step(stream, until, run.end)
        };
        match next {
            Next::At(at) => self.scheduler.insert(at, item),
            Next::Cut => self.cut(item, now, outlets),
            Next::Ended(at) => self.follow_chain(item, at, now, outlets),
        }
        u64::from(sent)
    }

    fn cut(&mut self, item: Item, now: Nanos, outlets: &mut impl Outlets) {
        let run = self.runs[item.run as usize]
            .as_mut()
            .expect("the caller has it");
        run.program.streams[item.stream as usize].active = false;
        run.active -= 1;
        run.cut = true;
        if run.active == 0 && now >= run.end {
            self.finish(item.run as usize, now, outlets);
        }
    }

    fn follow_chain(&mut self, item: Item, last: Due, now: Nanos, outlets: &mut impl Outlets) {
        let run = self.runs[item.run as usize]
            .as_mut()
            .expect("the caller has it");
        run.active -= 1;
        let next = run.program.streams[item.stream as usize].successor();
        if let Some(next) = next {
            let stream = &mut run.program.streams[next as usize];
            // A stream that runs already is not started again by another chain.
            if !stream.active {
                stream.start(last);
                run.active += 1;
                let at = stream.due_at();
                self.scheduler.insert(
                    at,
                    Item {
                        run: item.run,
                        stream: next,
                    },
                );
            }
        }
        if run.active == 0 && (!run.cut || now >= run.end) {
            self.finish(item.run as usize, now, outlets);
        }
    }

    /// The run's duration is over. What was due before gets [`DRAIN_MAX`] to leave; then the
    /// streams give up the rest, each in its own turn, and the last of them ends the run.
    fn handle_end(&mut self, item: Item, now: Nanos, outlets: &mut impl Outlets) {
        let run = self.runs[item.run as usize]
            .as_ref()
            .expect("a retired run has no items");
        if run.active > 0 {
            let last_call = run.end.saturating_add(DRAIN_MAX);
            self.scheduler
                .insert(last_call.max(now + RETRY_AFTER), item);
        } else {
            self.finish(item.run as usize, now, outlets);
        }
    }

    /// What was counted of each stream of a profile that runs, on this core.
    pub fn stream_counters(
        &self,
        port: PortIndex,
        profile: ProfileKey,
    ) -> impl Iterator<Item = (StreamId, StreamCounters)> + '_ {
        let run = self
            .find(port, profile)
            .and_then(|index| self.runs[index].as_ref());
        let streams = run.into_iter().flat_map(|run| &run.program.streams);
        streams.map(|stream| (stream.plan.id, stream.counters))
    }
}

/// Goes as far in the stream's schedule as `until` allows, without sending.
#[inline]
fn step(stream: &mut StreamRun, until: Nanos, end: Nanos) -> Next {
    while stream.left == 0 && stream.due_at() <= until {
        if let Some(last) = stream.end_burst() {
            return Next::Ended(last);
        }
    }
    match stream.due_at() {
        at if at >= end => Next::Cut,
        at => Next::At(at),
    }
}

/// Skips the packets of the current burst that are due by `until`, and counts them as missed.
#[cold]
fn give_up(stream: &mut StreamRun, counters: &mut TransmitCounters, until: Nanos) {
    loop {
        let n = stream.due_count(until, u32::MAX);
        if n == 0 {
            return;
        }
        stream.advance(u64::from(n));
        if let Some(state) = &mut stream.state {
            state.skip(u64::from(n));
        }
        stream.counters.missed_packets += u64::from(n);
        counters.missed_packets += u64::from(n);
    }
}
