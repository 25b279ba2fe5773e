//! Flows in TIME-WAIT: most flows of a test are, and wait there for what mostly never comes.
//!
//! Each is an entry of 52 bytes in a queue, as all wait equally long: it needs no timer, and those
//! that are over next lie side by side. What comes late for one makes it a full flow again, which it
//! then stays. So does one from the beginning whose program has something left to do, or who did not
//! come last.

use super::close::LINGER;
use super::entry::{FlowEntry, FlowFlags};
use super::run::{Run, place};
use super::{RUNS_MAX, RunIndex, StatefulEngine, WOKEN_AHEAD, WOKEN_PER_TURN};
use crate::flow::{Fifo, FlowIndex, FlowKey};
use crate::session::{BeginTime, Pools, TimeWaitSession};
use crate::template::{Side, TemplateIndex};
use crate::time::{MILLISECOND, Nanos};

/// In `run` of an entry: it is a server's.
const SERVER: u16 = 1 << 15;
/// It is over; only its key is still needed.
const LINGERING: u16 = 1 << 14;
/// The run itself.
const RUN: u16 = LINGERING - 1;
const _: () = assert!(RUNS_MAX - 1 <= RUN);

/// A flow in TIME-WAIT, and whose it is.
#[derive(Debug)]
pub(super) struct TimeWaitEntry {
    session: TimeWaitSession,
    /// When it began, see [`BeginTime::to_coarse`].
    began: u32,
    run: u16,
    /// Of a client, the clients that it belongs to, which have a template; of a server, the template.
    whose: [u8; 3],
}

/// With 12 bytes in the table, 64 in all.
const _: () = assert!(size_of::<Option<TimeWaitEntry>>() == 52);

impl TimeWaitEntry {
    /// What is left of a flow; `None` when it cannot be kept in so little.
    #[inline(always)]
    fn of(now: Nanos, entry: &FlowEntry, run: &Run, pools: &Pools) -> Option<TimeWaitEntry> {
        let (side, whose) = match entry.side() {
            Side::Client => (0, entry.clients()),
            Side::Server => (SERVER, u32::from(entry.template.0)),
        };
        let [low, middle, high, _] = whose.to_le_bytes();
        let rest = TimeWaitEntry {
            session: entry.session.to_time_wait(now, pools)?,
            began: entry.session.begin_time().to_coarse(),
            run: entry.run.0 | side,
            whose: [low, middle, high],
        };
        (rest.template(run) == entry.template).then_some(rest)
    }

    /// What is left of its session.
    #[inline]
    pub(super) fn session(&self) -> &TimeWaitSession {
        &self.session
    }

    /// The key by which it is found.
    #[inline]
    pub(super) fn key(&self) -> FlowKey {
        self.session.key()
    }

    /// When it began.
    pub(super) fn begin_time(&self) -> BeginTime {
        BeginTime::from_coarse(self.began)
    }

    /// Its run.
    #[inline]
    pub(super) fn run(&self) -> RunIndex {
        RunIndex(self.run & RUN)
    }

    /// Which side of it is ours.
    #[inline]
    pub(super) fn side(&self) -> Side {
        match self.run & SERVER {
            0 => Side::Client,
            _ => Side::Server,
        }
    }

    /// Whether it is over, and only its key is still needed.
    #[inline]
    pub(super) fn is_lingering(&self) -> bool {
        self.run & LINGERING != 0
    }

    /// The template that it belongs to, in its run.
    pub(super) fn template(&self, run: &Run) -> TemplateIndex {
        match self.side() {
            Side::Client => run.template_of(self.whose()),
            Side::Server => TemplateIndex(self.whose() as u16),
        }
    }

    fn whose(&self) -> u32 {
        let [low, middle, high] = self.whose;
        u32::from_le_bytes([low, middle, high, 0])
    }
}

/// The flows in TIME-WAIT, in the order of their ends.
#[derive(Debug)]
pub(super) struct TimeWaitQueue {
    entries: Fifo<TimeWaitEntry>,
    /// When the last that came is over, by TCP's clock.
    last_ms: u32,
    /// When it came.
    last_came: Nanos,
}

impl TimeWaitQueue {
    /// Room for so many.
    pub(super) fn new(flows_max: usize) -> TimeWaitQueue {
        TimeWaitQueue {
            entries: Fifo::new(flows_max),
            last_ms: 0,
            last_came: 0,
        }
    }

    /// Adds one, if there is room, and none before it is over later.
    #[inline(always)]
    fn push(&mut self, now: Nanos, rest: TimeWaitEntry) -> Option<FlowIndex> {
        let until_ms = rest.session.until_ms();
        if !self.entries.is_empty() && is_before(until_ms, self.last_ms) {
            return None;
        }
        let index = self.entries.push(rest)?;
        (self.last_ms, self.last_came) = (until_ms, now);
        Some(index)
    }

    /// One of them.
    #[inline]
    pub(super) fn at(&self, index: FlowIndex) -> Option<&TimeWaitEntry> {
        self.entries.at(index)
    }

    /// How many there are.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Their places, the oldest first.
    pub(super) fn indices(&self) -> impl Iterator<Item = FlowIndex> + '_ {
        self.entries.indices()
    }

    /// The next that is over, if it is now.
    fn due(&self, now_ms: u32) -> Option<FlowIndex> {
        let (index, rest) = self.entries.front()?;
        (!is_before(now_ms, rest.session.until_ms())).then_some(index)
    }

    /// When the next is over.
    pub(super) fn next_due(&self, pools: &Pools) -> Option<Nanos> {
        let (_, rest) = self.entries.front()?;
        let left_ms = rest.session.until_ms();
        let left_ms = left_ms.wrapping_sub(pools.tcp_ms(self.last_came)) as i32;
        let came_ms = self.last_came / MILLISECOND;
        Some(came_ms.saturating_add_signed(left_ms.into()) * MILLISECOND)
    }
}

fn is_before(one_ms: u32, other_ms: u32) -> bool {
    (one_ms.wrapping_sub(other_ms) as i32) < 0
}

impl StatefulEngine {
    /// Keeps of a flow in TIME-WAIT only what it needs there. Returns whether that could be.
    pub(super) fn enter_time_wait(&mut self, now: Nanos, index: FlowIndex) -> bool {
        let Some(entry) = self.flows.at_mut(index).filter(|entry| entry.only_waits()) else {
            return false;
        };
        if !entry.session.is_judged() {
            self.judge(now, index);
        }
        let entry = self.flows.at_mut(index).expect("it was there");
        let run = self.runs[usize::from(entry.run.0)].as_ref();
        let rest = run.and_then(|run| TimeWaitEntry::of(now, entry, run, &self.pools));
        let Some(place) = rest.and_then(|rest| self.time_wait.push(now, rest)) else {
            return false;
        };
        entry.session.release_all_but_link(&mut self.pools);
        let key = entry.session.key().packed();
        self.table.replace(key, index, place);
        self.timers.stop(index);
        self.flows.remove(index);
        true
    }

    /// Makes a flow in TIME-WAIT a full one again, as something came for it. Returns its place.
    pub(super) fn leave_time_wait(&mut self, place: FlowIndex) -> Option<FlowIndex> {
        let rest = self.time_wait.entries.remove(place)?;
        let run = self.runs[usize::from(rest.run().0)].as_ref();
        let run = run.expect("flows belong to what runs");
        let (template, side) = (rest.template(run), rest.side());
        let tunables = run.tunables(template, side);
        let session = rest.session.session(&tunables.tcp, rest.begin_time());
        let clients = match side {
            Side::Client => rest.whose(),
            Side::Server => 0,
        };
        let mut entry = FlowEntry::new(session, rest.run(), (template, side), clients);
        entry.set_flag(FlowFlags::Counted);
        let index = self.flows.insert(entry);
        let index = index.expect("there is room for as many as are in TIME-WAIT");
        self.table.replace(rest.key().packed(), place, index);
        Some(index)
    }

    /// Ends flows whose time in TIME-WAIT is over.
    pub(super) fn end_time_wait(&mut self, now: Nanos) {
        let looks_ahead = self.looks_ahead();
        let now_ms = self.pools.tcp_ms(now);
        for number in 0..WOKEN_PER_TURN {
            let Some(place) = self.time_wait.due(now_ms) else {
                break;
            };
            if looks_ahead && number % WOKEN_AHEAD == 0 {
                let next = self.time_wait.entries.first_ones();
                let keys = next.take(WOKEN_AHEAD as usize).map(TimeWaitEntry::key);
                self.fetch_places(keys);
            }
            self.end_waiting(now, place);
        }
    }

    /// A flow in TIME-WAIT is over. Where all of its run are finished, it stays a little.
    pub(super) fn end_waiting(&mut self, now: Nanos, index: FlowIndex) {
        let Some(rest) = self.time_wait.entries.at_mut(index) else {
            return;
        };
        if rest.is_lingering() {
            return self.forget(index);
        }
        let run = self.runs[usize::from(rest.run().0)].as_mut();
        let run = run.expect("flows belong to what runs");
        let (template, side) = (rest.template(run), rest.side());
        let group = usize::from(run.profile.template(template).group);
        let counters = &mut run.groups[group][place(side)];
        let until_ms = self.pools.tcp_ms(now + LINGER);
        let flows = &mut counters.flows;
        rest.session.finish(flows, &mut self.pools, until_ms);
        rest.run |= LINGERING;
        counters.active -= 1;
        counters.established -= 1;
        run.flows -= 1;
        run.in_time_wait -= 1;
        let whose = rest.whose();
        if side == Side::Client {
            run.handle_end(whose, now);
        }
        if !run.is_finishing {
            self.forget(index);
        }
    }

    /// Forgets the key of a flow that was in TIME-WAIT.
    pub(super) fn forget_waiting(&mut self, index: FlowIndex) {
        if let Some(rest) = self.time_wait.entries.remove(index) {
            let key = rest.key();
            self.table.remove(key.packed(), index);
            self.release_space(&key);
        }
    }
}
