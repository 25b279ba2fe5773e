//! Changes of a profile that runs.
//!
//! A change takes effect at a time of the schedule, not when a core hears of it: what is due
//! before leaves as it was planned, also when the core is late, and what is due from then on
//! follows the change. All cores are told the same time, so they change alike. A core that hears
//! of a change too late has sent some packets early, and is in step again from there.

use super::messages::{Change, ProfileEvent};
use super::{Item, Outbox, Part, Run, Sender, stream_of};
use crate::stream::{ProfileKey, StreamId};
use crate::time::Nanos;
use crate::wheel::Scheduler;

impl Sender {
    /// Plans a change of a profile from `at` on; one that does not run has nothing to change.
    pub(super) fn change(
        &mut self,
        profile: ProfileKey,
        at: Nanos,
        change: Change,
        outbox: &mut Outbox,
    ) {
        let found = self.find(profile);
        let run = found.and_then(|index| Some((index, self.runs[index].as_mut()?)));
        match run {
            Some((index, run)) => {
                let at = run.plan(at, change);
                self.scheduler.insert(at, Item::change(index));
            }
            None => {
                let port = self.port;
                let event = ProfileEvent::ProfileChanged { port, profile, at };
                outbox.events.push_back(event);
            }
        }
    }

    /// Every stream has sent what was due before the change.
    pub(super) fn apply_change(&mut self, item: Item, at: Nanos, outbox: &mut Outbox) {
        let index = item.run as usize;
        let run = self.runs[index]
            .as_mut()
            .expect("a retired run has no items");
        run.apply(index, &mut self.scheduler);
        let (port, profile) = (self.port, run.profile);
        let event = ProfileEvent::ProfileChanged { port, profile, at };
        outbox.events.push_back(event);
    }
}

impl Run {
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
