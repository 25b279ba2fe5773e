//! Flows that end: each when it is over, all of a profile with it.

use super::dispatch::context;
use super::entry::{FlowEntry, FlowFlags};
use super::run::place;
use super::{RunIndex, StatefulEngine, WOKEN_AHEAD};
use crate::flow::{FlowIndex, FlowKey};
use crate::session::FlowStatus;
use crate::template::Side;
use crate::time::{MILLISECOND, Nanos};
use crate::transmit::TxQueues;

/// How long what is left of a connection that we ended early stays, to swallow what was under way.
pub(super) const LINGER: Nanos = 500 * MILLISECOND;

impl StatefulEngine {
    /// A flow is over. What we ended early stays a little, so that what is under way finds it.
    pub(super) fn end(&mut self, now: Nanos, index: FlowIndex) {
        let entry = self.flows.at_mut(index).expect("it was just called");
        if entry.is(FlowFlags::Lingering) {
            return self.forget(index);
        }
        if !entry.session.is_judged() {
            self.judge(now, index);
        }
        let entry = self.flows.at_mut(index).expect("it was just called");
        if entry.clear_flag(FlowFlags::HalfOpen) {
            self.half_open.leave();
        }
        if entry.is(FlowFlags::Executed) || entry.is(FlowFlags::Executing) {
            entry.clear_flag(FlowFlags::Executing);
            self.executions.leave(index, entry.session.next_group());
        }
        let was_waiting = entry.session.is_in_time_wait();
        entry.session.release(&mut self.pools);
        let mut lingers = entry.session.was_reset_by_us();
        let (run, side) = (entry.run, entry.side());
        if let Some(run) = &mut self.runs[usize::from(run.0)] {
            let group = run.profile.template(entry.template).group;
            let counters = &mut run.groups[usize::from(group)][place(side)];
            counters.active -= 1;
            counters.established -= u64::from(entry.is(FlowFlags::Counted));
            run.flows -= 1;
            run.in_time_wait -= u64::from(was_waiting);
            lingers |= run.is_finishing;
            if side == Side::Client && !entry.is(FlowFlags::Executed) {
                run.handle_end(entry.clients(), now);
            }
        }
        if lingers {
            entry.set_flag(FlowFlags::Lingering);
            self.timers.set(index, now + LINGER);
        } else {
            self.forget(index);
        }
    }

    /// Counts how a flow ended whose end is known now.
    #[inline(never)]
    pub(super) fn judge(&mut self, now: Nanos, index: FlowIndex) {
        let Some(entry) = self.flows.at_mut(index) else {
            return;
        };
        let run = self.runs[usize::from(entry.run.0)].as_mut();
        let info = self.ports[usize::from(entry.session.key().port)].as_ref();
        let (Some(run), Some(info)) = (run, info) else {
            return;
        };
        let template = run.profile.template(entry.template);
        let peer = match entry.side() {
            Side::Client => template.server.program,
            Side::Server => template.client.program,
        };
        let may_be_reset = run.profile.program(peer).resets();
        let whose = (entry.template, entry.side());
        let mut cx = context(now, run, whose, info, &mut self.pools);
        entry.session.judge(&mut cx, may_be_reset);
    }

    /// Takes a flow out of all lists.
    pub(super) fn forget(&mut self, index: FlowIndex) {
        if index.is_in_fifo() {
            return self.forget_waiting(index);
        }
        let Some(entry) = self.flows.at(index) else {
            return;
        };
        let key = *entry.session.key();
        if let Some(number) = entry.session.connection_number() {
            self.connections.remove(&number);
        }
        self.table.remove(key.packed(), index);
        self.timers.stop(index);
        self.flows.remove(index);
        self.release_space(&key);
    }

    pub(super) fn release_space(&mut self, key: &FlowKey) {
        if let Some(number) = key.space {
            self.pools.spaces.release(number);
        }
    }

    /// The time of a profile's flows is over: those that are left are reset in the next turns, and
    /// what comes for them is not answered.
    pub(super) fn cut_off(&mut self, index: RunIndex) {
        let left = self.flows_of(index);
        if let Some(run) = self.run_mut(index) {
            run.is_closed = true;
            run.left = left;
        }
    }

    /// Flows in TIME-WAIT wait for a straggler of their other end. Where all other ends are here and
    /// gone, nobody will send one: those flows are over in the next turns.
    pub(super) fn finish(&mut self, index: RunIndex) {
        let left = self.flows_of(index);
        if let Some(run) = self.run_mut(index) {
            run.is_finishing = true;
            run.left = left;
        }
    }

    /// Ends some of the flows that are to be cut off, by a reset, or finished, as they are.
    pub(super) fn cut_off_some(
        &mut self,
        now: Nanos,
        index: RunIndex,
        count: usize,
        tx_queues: &mut impl TxQueues,
    ) {
        let looks_ahead = self.looks_ahead();
        for number in 0..count {
            if looks_ahead && number % WOKEN_AHEAD as usize == 0 {
                self.fetch_left(index);
            }
            let run = self.run_mut(index);
            let Some((flow, all)) = run.and_then(|run| Some((run.left.pop()?, run.is_closed)))
            else {
                return;
            };
            if flow.is_in_fifo() {
                let rest = self.time_wait.at(flow);
                if rest.is_some_and(|rest| rest.run() == index && !rest.is_lingering()) {
                    self.end_waiting(now, flow);
                }
                continue;
            }
            // Its place may have been given to another since.
            let is_meant = |entry: &FlowEntry| {
                let is_its = entry.run == index && !entry.is(FlowFlags::Lingering);
                is_its && (all || entry.session.is_in_time_wait())
            };
            if !self.flows.at(flow).is_some_and(is_meant) {
                continue;
            }
            self.with_flow(now, flow, tx_queues, |session, cx, tx| {
                if session.is_in_time_wait() {
                    session.finish(cx)
                } else {
                    session.cut_off(cx, tx)
                }
            });
        }
    }

    /// Forgets what is left of a profile's flows.
    pub(super) fn forget_flows(
        &mut self,
        now: Nanos,
        run: RunIndex,
        tx_queues: &mut impl TxQueues,
    ) {
        let looks_ahead = self.looks_ahead();
        for next in self.flows_of(run).chunks(WOKEN_AHEAD as usize) {
            if looks_ahead {
                self.fetch_flows(next.iter());
            }
            for &index in next {
                if index.is_in_fifo() {
                    self.end_waiting(now, index);
                } else {
                    self.with_flow(now, index, tx_queues, |_, _, _| FlowStatus::Over);
                }
                self.forget(index);
            }
        }
    }

    fn flows_of(&self, run: RunIndex) -> Vec<FlowIndex> {
        let is_its = |index: &FlowIndex| {
            let owner = self.owner_of(*index);
            owner.is_some_and(|(its, ..)| its == run)
        };
        let all = self.flows.indices().chain(self.time_wait.indices());
        all.filter(is_its).collect()
    }
}
