//! Flows at work: calling them with all they need, and seeing to what follows.

use super::flow_entry::{FlowEntry, FlowFlags};
use super::run::{Run, place};
use super::{FlowPortInfo, RunIndex, StatefulEngine};
use crate::flow::{FlowIndex, FlowKey};
use crate::rng::Lcg;
use crate::session::{
    FlowContext, FlowStatus, FrameTx, HeaderDefaults, Pools, Session, SideCounters,
};
use crate::stats::TransmitCounters;
use crate::template::{CompiledProfile, Side, SideTunables, TemplateIndex};
use crate::time::{MILLISECOND, Nanos};
use crate::transmit::{PortIndex, QueueOp, Transmit, TxQueues};
use std::net::Ipv6Addr;

/// The time to live when the user does not say.
const TIME_TO_LIVE: u8 = 64;
/// How long what is left of a connection that we ended early stays, to swallow what was under way.
pub(super) const LINGER: Nanos = 500 * MILLISECOND;

/// A flow that is to be made.
pub(super) struct FlowSpec {
    pub(super) run: RunIndex,
    pub(super) template: TemplateIndex,
    pub(super) side: Side,
    /// The clients that it belongs to, in its run.
    pub(super) clients: u32,
    /// A program asked for it.
    pub(super) is_executed: bool,
    /// Its key; the number of its prefixes may be [`PrefixIndex::UNKNOWN`].
    pub(super) key: FlowKey,
    /// Our address and the other, whose prefixes it has; `None` for IPv4.
    pub(super) network: Option<(Ipv6Addr, Ipv6Addr)>,
}

/// A frame for a queue.
struct WriteFrame<F> {
    now: Nanos,
    bytes: usize,
    write: F,
}

impl<F: FnOnce(&mut [u8])> QueueOp for WriteFrame<F> {
    type Output = bool;

    #[inline]
    fn run<T: Transmit>(self, queue: &mut T) -> bool {
        let Some(slot) = queue.slot(self.now, self.bytes) else {
            return false;
        };
        (self.write)(slot);
        true
    }
}

/// What was sent.
#[derive(Debug)]
pub(super) struct Sent {
    /// Frames in this turn.
    pub(super) in_turn: u64,
    /// Of each port.
    pub(super) ports: Vec<TransmitCounters>,
}

impl Sent {
    pub(super) fn new(ports: usize) -> Sent {
        Sent {
            in_turn: 0,
            ports: vec![TransmitCounters::default(); ports],
        }
    }

    /// Counts a frame that was sent, or found no room.
    #[inline]
    fn note(&mut self, port: PortIndex, bytes: usize, is_sent: bool) {
        let counters = &mut self.ports[usize::from(port)];
        if is_sent {
            self.in_turn += 1;
            counters.sent.count(1, bytes);
        } else {
            counters.queue_full += 1;
        }
    }
}

/// Where the frames of flows leave: one port's queue.
pub(super) struct PortFrameTx<'a, O> {
    pub(super) tx_queues: &'a mut O,
    pub(super) port: PortIndex,
    pub(super) now: Nanos,
    pub(super) sent: &'a mut Sent,
}

impl<O: TxQueues> FrameTx for PortFrameTx<'_, O> {
    fn send(&mut self, bytes: usize, write: impl FnOnce(&mut [u8])) -> bool {
        let now = self.now;
        let job = WriteFrame { now, bytes, write };
        let sent = self.tx_queues.with_queue(self.port, job);
        self.sent.note(self.port, bytes, sent);
        sent
    }
}

/// What is in the headers of the frames of one side of a template on a port.
fn header_defaults(tunables: &SideTunables, info: &FlowPortInfo) -> HeaderDefaults {
    HeaderDefaults {
        type_of_service: tunables.tos,
        time_to_live: tunables.ttl.unwrap_or(TIME_TO_LIVE),
        frame_bytes_max: info.frame_bytes_max,
    }
}

/// What a flow is called with.
pub(super) fn context<'a>(
    now: Nanos,
    run: &'a mut Run,
    (template, side): (TemplateIndex, Side),
    info: &FlowPortInfo,
    pools: &'a mut Pools,
    rng: &'a mut Lcg,
) -> FlowContext<'a> {
    let profile: &CompiledProfile = &run.profile;
    let template = profile.template(template);
    let (program, tunables) = match side {
        Side::Client => (template.client.program, &template.client.tunables),
        Side::Server => (template.server.program, &template.server.tunables),
    };
    let group = &mut run.groups[usize::from(template.group)][place(side)];
    let counters: &mut SideCounters = &mut group.flows;
    FlowContext {
        now,
        program: profile.program(program),
        buffers: profile.buffers(),
        tunables: &tunables.tcp,
        headers: header_defaults(tunables, info),
        counters,
        pools,
        rng,
    }
}

impl StatefulEngine {
    /// Calls `act` on a flow, and does what follows from how it stands then.
    pub(super) fn with_flow<O: TxQueues>(
        &mut self,
        now: Nanos,
        index: FlowIndex,
        tx_queues: &mut O,
        act: impl FnOnce(&mut Session, &mut FlowContext<'_>, &mut PortFrameTx<'_, O>) -> FlowStatus,
    ) {
        let Some(entry) = self.flows.at_mut(index) else {
            return;
        };
        let port = entry.session.key().port;
        let run = self.runs[usize::from(entry.run.0)].as_mut();
        let info = self.ports[usize::from(port)].as_ref();
        let (Some(run), Some(info)) = (run, info) else {
            return;
        };
        let whose = (entry.template, entry.side());
        let mut cx = context(now, run, whose, info, &mut self.pools, &mut self.rng);
        let mut tx = PortFrameTx {
            tx_queues,
            port,
            now,
            sent: &mut self.sent,
        };
        let was_in_time_wait = entry.session.is_in_time_wait();
        let status = act(&mut entry.session, &mut cx, &mut tx);
        let is_in_time_wait = entry.session.is_in_time_wait();
        match (was_in_time_wait, is_in_time_wait) {
            (false, true) => run.in_time_wait += 1,
            (true, false) => run.in_time_wait -= 1,
            _ => {}
        }
        if !entry.is(FlowFlags::Counted) && entry.session.is_established() {
            entry.set_flag(FlowFlags::Counted);
            let group = run.profile.template(entry.template).group;
            run.groups[usize::from(group)][place(entry.side())].established += 1;
            run.has_established |= entry.side() == Side::Client;
        }
        if entry.is(FlowFlags::HalfOpen) && entry.session.is_proven() {
            entry.clear_flag(FlowFlags::HalfOpen);
            self.half_open.leave();
        }
        let asks = !entry.is(FlowFlags::Asks) && entry.session.executes().is_some();
        if asks && status != FlowStatus::Over {
            entry.set_flag(FlowFlags::Asks);
            self.executions.ask(index);
        }
        let is_open = matches!(status, FlowStatus::Open(_));
        if is_in_time_wait && is_open && self.enter_time_wait(now, index) {
            return;
        }
        self.settle(now, index, status);
    }

    /// A flow runs the program of its template from the beginning.
    pub(super) fn run_instead(&mut self, now: Nanos, index: FlowIndex) {
        let Some(entry) = self.flows.at_mut(index) else {
            return;
        };
        let run = self.runs[usize::from(entry.run.0)].as_mut();
        let info = self.ports[usize::from(entry.session.key().port)].as_ref();
        if let (Some(run), Some(info)) = (run, info) {
            let whose = (entry.template, entry.side());
            let mut cx = context(now, run, whose, info, &mut self.pools, &mut self.rng);
            entry.session.run_instead(&mut cx);
        }
    }

    fn settle(&mut self, now: Nanos, index: FlowIndex, status: FlowStatus) {
        let due = match status {
            FlowStatus::Open(due) => due,
            FlowStatus::Blocked(due) => {
                let entry = self.flows.at_mut(index).expect("it was just called");
                let port = usize::from(entry.session.key().port);
                if entry.set_flag(FlowFlags::Blocked) {
                    self.blocked[port].push_back(index);
                }
                due
            }
            FlowStatus::Over => return self.end(now, index),
        };
        match due {
            Some(due) => self.timers.set_by(index, due),
            None => self.timers.stop(index),
        }
    }

    /// A flow is over. What we ended early stays a little, so that what is under way finds it.
    pub(super) fn end(&mut self, now: Nanos, index: FlowIndex) {
        let entry = self.flows.at_mut(index).expect("it was just called");
        if entry.is(FlowFlags::Lingering) {
            return self.forget(index);
        }
        if entry.clear_flag(FlowFlags::HalfOpen) {
            self.half_open.leave();
        }
        if entry.is(FlowFlags::Executed) || entry.is(FlowFlags::Asks) {
            entry.clear_flag(FlowFlags::Asks);
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

    /// A flow belongs to another template than was thought.
    pub(super) fn move_group(
        &mut self,
        index: FlowIndex,
        before: TemplateIndex,
        after: TemplateIndex,
    ) {
        let Some(entry) = self.flows.at(index) else {
            return;
        };
        let Some(run) = &mut self.runs[usize::from(entry.run.0)] else {
            return;
        };
        let group = |template| usize::from(run.profile.template(template).group);
        let (from, to) = (group(before), group(after));
        let side = place(entry.side());
        run.groups[from][side].active -= 1;
        run.groups[to][side].active += 1;
        if entry.is(FlowFlags::Counted) {
            run.groups[from][side].established -= 1;
            run.groups[to][side].established += 1;
        }
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
        self.release_prefixes(&key);
    }

    pub(super) fn release_prefixes(&mut self, key: &FlowKey) {
        if let Some(number) = key.prefixes {
            self.pools.prefixes.release(number);
        }
    }

    /// The time of a flow has come.
    pub(super) fn wake(&mut self, now: Nanos, index: FlowIndex, tx_queues: &mut impl TxQueues) {
        let is_lingering = self
            .flows
            .at(index)
            .is_some_and(|entry| entry.is(FlowFlags::Lingering));
        if is_lingering {
            return self.forget(index);
        }
        self.with_flow(now, index, tx_queues, |session, cx, tx| {
            session.handle_timeout(cx, tx)
        });
    }

    /// Lets flows go on that waited for room, in their order, until a port is full again.
    pub(super) fn retry_blocked(&mut self, now: Nanos, tx_queues: &mut impl TxQueues) {
        for port in 0..self.blocked.len() {
            for _ in 0..self.blocked[port].len() {
                let Some(index) = self.blocked[port].pop_front() else {
                    break;
                };
                let Some(entry) = self
                    .flows
                    .at_mut(index)
                    .filter(|entry| entry.is(FlowFlags::Blocked))
                else {
                    continue;
                };
                entry.clear_flag(FlowFlags::Blocked);
                if entry.is(FlowFlags::Lingering) {
                    continue;
                }
                self.with_flow(now, index, tx_queues, |session, cx, tx| {
                    session.handle_writable(cx, tx)
                });
                if self
                    .flows
                    .at(index)
                    .is_some_and(|entry| entry.is(FlowFlags::Blocked))
                {
                    break;
                }
            }
        }
    }

    /// The flow with this key.
    pub(super) fn find(&self, key: &FlowKey) -> Option<FlowIndex> {
        let is_it = |index: FlowIndex| {
            if index.is_in_fifo() {
                let rest = self.time_wait.at(index);
                return rest.is_some_and(|rest| rest.key() == *key);
            }
            let entry = self.flows.at(index);
            entry.is_some_and(|entry| entry.session.key() == key)
        };
        self.table.find(key.packed(), is_it)
    }

    /// Whose a flow is: its run, its template, and which side of it is ours.
    pub(super) fn owner_of(&self, index: FlowIndex) -> Option<(RunIndex, TemplateIndex, Side)> {
        if index.is_in_fifo() {
            let rest = self.time_wait.at(index)?;
            let run = self.run(rest.run())?;
            return Some((rest.run(), rest.template(run), rest.side()));
        }
        let entry = self.flows.at(index)?;
        Some((entry.run, entry.template, entry.side()))
    }

    /// Makes a flow by `make`, and a place for it; `None` when there are too many.
    pub(super) fn make(
        &mut self,
        now: Nanos,
        new: FlowSpec,
        make: impl FnOnce(&mut FlowContext<'_>, FlowKey) -> Session,
    ) -> Option<FlowIndex> {
        let (template, side) = (new.template, new.side);
        let Some(key) = self.room_for(now, &new) else {
            self.count_overflow(side);
            return None;
        };
        let info = self.ports[usize::from(key.port)].as_ref();
        let info = info.expect("who makes flows has a port");
        let run = self.runs[usize::from(new.run.0)].as_mut();
        let run = run.expect("who makes flows runs");
        let whose = (template, side);
        let mut cx = context(now, run, whose, info, &mut self.pools, &mut self.rng);
        let session = make(&mut cx, key);
        let mut entry = FlowEntry::new(now, session, new.run, whose, new.clients);
        entry.set(FlowFlags::Executed, new.is_executed);
        entry.set(FlowFlags::HalfOpen, side == Side::Server);
        let index = self.flows.insert(entry).ok()?;
        let has_place = self.table.insert(key.packed(), index);
        debug_assert!(has_place, "the table has room for all flows");
        if side == Side::Server {
            self.half_open.enter();
        }
        let group = run.profile.template(template).group;
        run.groups[usize::from(group)][place(side)].active += 1;
        run.flows += 1;
        Some(index)
    }

    pub(super) fn count_overflow(&mut self, side: Side) {
        let counters = &mut self.counters[place(side)];
        counters.err_flow_overflow += 1;
        match side {
            Side::Client => counters.err_c_nf_throttled += 1,
            Side::Server => counters.err_s_nf_throttled += 1,
        }
    }

    /// The key of a flow that is to be made, with its prefixes held; `None` when there are too
    /// many of either.
    fn room_for(&mut self, now: Nanos, new: &FlowSpec) -> Option<FlowKey> {
        self.make_room(now, new.side);
        if self.flows() == self.flows.len_max() {
            return None;
        }
        let mut key = new.key;
        if let Some((ours, others)) = new.network {
            key.prefixes = Some(self.pools.prefixes.hold(ours, others)?);
        }
        Some(key)
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
        for _ in 0..count {
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
        for index in self.flows_of(run) {
            if index.is_in_fifo() {
                self.end_waiting(now, index);
            } else {
                self.with_flow(now, index, tx_queues, |_, _, _| FlowStatus::Over);
            }
            self.forget(index);
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
