//! A profile that runs on a port: its streams, and the changes that are to come.
//!
//! A change takes effect at a time of the schedule, not when a core hears of it: what is due
//! before leaves as it was planned, also when the core is late, and what is due from then on
//! follows the change. All cores are told the same time, so they change alike. A core that hears
//! of a change too late has sent some packets early, and is in step again from there.

use std::collections::VecDeque;

use crate::stream::run::StreamRun;
use crate::stream::{CoreProgram, ProfileKey, Replay, StreamId};
use crate::time::{Due, Nanos};
use crate::wheel::Scheduler;

/// What becomes of a profile while it runs. Lists are in the order of the streams' numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Everything stands still, and nothing counts as missed.
    Pause,
    /// Everything goes on where it stood still, but what is paused by itself.
    Resume,
    /// All streams are sent at this factor of their rates.
    Update(f64),
    /// These streams stand still.
    PauseStreams(Box<[StreamId]>),
    /// These streams go on where they stood still.
    ResumeStreams(Box<[StreamId]>),
    /// Each of these streams is sent at its factor of its rate.
    UpdateStreams(Box<[(StreamId, f64)]>),
}

/// What comes due: a stream of a run, a change of it, or its end. What is due at the same time
/// has its turn in this order, the same on all cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Item {
    pub(super) run: u32,
    part: u32,
}

/// A change comes before the streams and the replay, the end after them.
const CHANGE: u32 = 0;
const REPLAY: u32 = u32::MAX - 1;
const END: u32 = u32::MAX;

/// An [`Item`], taken apart.
pub(super) enum Part {
    Change,
    Stream(usize),
    Replay,
    End,
}

impl Item {
    pub(super) fn change(run: usize) -> Item {
        let run = run as u32;
        Item { run, part: CHANGE }
    }

    pub(super) fn stream(run: usize, stream: usize) -> Item {
        let (run, part) = (run as u32, stream as u32 + 1);
        Item { run, part }
    }

    pub(super) fn replay(run: usize) -> Item {
        let run = run as u32;
        Item { run, part: REPLAY }
    }

    pub(super) fn end(run: usize) -> Item {
        let run = run as u32;
        Item { run, part: END }
    }

    #[inline]
    pub(super) fn part(self) -> Part {
        match self.part {
            CHANGE => Part::Change,
            REPLAY => Part::Replay,
            END => Part::End,
            part => Part::Stream(part as usize - 1),
        }
    }
}

/// A profile that runs.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) profile: ProfileKey,
    pub(super) program: Box<CoreProgram>,
    /// No packet leaves that is due at this time or later.
    pub(super) end: Nanos,
    /// No packet that is due at this time or later leaves yet: the end, or the next change.
    pub(super) bound: Nanos,
    /// Streams that have packets to come before the end.
    pub(super) active: u32,
    /// Active streams that stand still.
    frozen: u32,
    /// Streams whose next packet is due only after the end, so the run lasts until then.
    pub(super) cut: u32,
    paused: bool,
    changes: VecDeque<(Nanos, Change)>,
}

impl Run {
    pub(super) fn new(profile: ProfileKey, program: Box<CoreProgram>, end: Nanos) -> Run {
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
    pub(super) fn is_over(&self, now: Nanos) -> bool {
        let waiting = self.cut + self.frozen;
        let ended = now >= self.end && self.bound == self.end;
        self.active == self.frozen && (waiting == 0 || ended)
    }

    /// Starts a stream.
    pub(super) fn begin(&mut self, item: Item, at: Due, scheduler: &mut Scheduler<Item>) {
        let stream = stream_of(&mut self.program, item);
        stream.start(at);
        if self.paused || stream.paused {
            stream.freeze(at.at);
        }
        self.enter(item, scheduler);
    }

    /// Starts the capture of the run, if it has one.
    pub(super) fn begin_replay(&mut self, item: Item, at: Nanos, scheduler: &mut Scheduler<Item>) {
        if let Some(replay) = &mut self.program.replay {
            replay.start(at);
            self.active += 1;
            self.continue_replay(item, scheduler);
        }
    }

    /// The capture waits for its next frame, or has none to send any more.
    pub(super) fn continue_replay(&mut self, item: Item, scheduler: &mut Scheduler<Item>) {
        let due_at = self.program.replay.as_ref().and_then(Replay::due_at);
        if let Some(due_at) = due_at.filter(|due_at| *due_at < self.end) {
            scheduler.insert(due_at, item);
            return;
        }
        self.active -= 1;
        self.cut += u32::from(due_at.is_some());
    }

    /// A stream of the run has no more packets before the end.
    pub(super) fn cut(&mut self, item: Item) {
        stream_of(&mut self.program, item).cut = true;
        self.active -= 1;
        self.cut += 1;
    }

    /// Takes note of a change to come; gives the time when it will take effect. Changes keep
    /// their order.
    pub(super) fn plan(&mut self, at: Nanos, change: Change) -> Nanos {
        let at = self.changes.back().map_or(at, |(last, _)| at.max(*last));
        self.changes.push_back((at, change));
        self.set_bound();
        at
    }

    /// The next change takes effect: what is due before it is done with.
    pub(super) fn apply(&mut self, index: usize, scheduler: &mut Scheduler<Item>) {
        let Some((at, change)) = self.changes.pop_front() else {
            return;
        };
        self.set_bound();
        self.paused = match change {
            Change::Pause => true,
            Change::Resume => false,
            _ => self.paused,
        };
        let is_meant = |item: &Item| match item.part() {
            Part::Stream(stream) => {
                item.run as usize == index && change.means(self.program.streams[stream].plan.id)
            }
            _ => false,
        };
        scheduler.retain(|item| !is_meant(item));
        for stream in 0..self.program.streams.len() {
            if change.means(self.program.streams[stream].plan.id) {
                self.change_stream(Item::stream(index, stream), at, &change, scheduler);
            }
        }
    }

    fn set_bound(&mut self) {
        let next = self.changes.front();
        self.bound = next.map_or(self.end, |(at, _)| self.end.min(*at));
    }

    /// Changes one stream, which is not in the scheduler now.
    fn change_stream(
        &mut self,
        item: Item,
        at: Nanos,
        change: &Change,
        scheduler: &mut Scheduler<Item>,
    ) {
        let paused = self.paused;
        let stream = stream_of(&mut self.program, item);
        let (active, cut, was_frozen) = (stream.active, stream.cut, stream.is_frozen());
        match change {
            Change::Pause | Change::Resume => {}
            Change::PauseStreams(_) => stream.paused = true,
            Change::ResumeStreams(_) => stream.paused = false,
            Change::Update(factor) => stream.set_factor(*factor, at),
            Change::UpdateStreams(list) => {
                let found = list.binary_search_by_key(&stream.plan.id, |(id, _)| *id);
                let found = found.expect("the change means this stream");
                stream.set_factor(list[found].1, at);
            }
        }
        if !active {
            return;
        }
        match (stream.paused || paused, was_frozen) {
            (true, false) => stream.freeze(at),
            (false, true) => stream.thaw(at),
            _ => {}
        }
        stream.cut = false;
        if cut {
            self.cut -= 1;
        } else {
            self.active -= 1;
            self.frozen -= u32::from(was_frozen);
        }
        self.enter(item, scheduler);
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

impl Change {
    fn means(&self, stream: StreamId) -> bool {
        match self {
            Change::Pause | Change::Resume | Change::Update(_) => true,
            Change::PauseStreams(list) | Change::ResumeStreams(list) => {
                list.binary_search(&stream).is_ok()
            }
            Change::UpdateStreams(list) => {
                list.binary_search_by_key(&stream, |(id, _)| *id).is_ok()
            }
        }
    }
}

fn stream_of(program: &mut CoreProgram, item: Item) -> &mut StreamRun {
    &mut program.streams[item.part as usize - 1]
}
