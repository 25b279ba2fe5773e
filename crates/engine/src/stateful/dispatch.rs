//! Flows at work: calling one with all it needs, the queue that its frames leave by among it, and seeing
//! to what follows.

use allosaur_packet::shared_payload::SharedPayload;

use super::entry::FlowFlags;
use super::run::{Run, place};
use super::{FlowPortInfo, StatefulEngine};
use crate::flow::FlowIndex;
use crate::session::{
    FlowContext, FlowStatus, FrameTx, HeaderDefaults, Pools, Session, SideCounters,
};
use crate::stats::TransmitCounters;
use crate::template::{CompiledProfile, Side, SideTunables, TemplateIndex};
use crate::time::Nanos;
use crate::transmit::{PortIndex, QueueOp, Transmit, TxQueues};

/// The time to live when the user does not say.
const TIME_TO_LIVE: u8 = 64;

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

/// A frame for a queue whose payload others share.
struct WriteHead<'a, F> {
    now: Nanos,
    head_bytes: usize,
    payload: SharedPayload<'a>,
    write: F,
}

impl<F: FnOnce(&mut [u8])> QueueOp for WriteHead<'_, F> {
    type Output = bool;

    #[inline]
    fn run<T: Transmit>(self, queue: &mut T) -> bool {
        let slot = queue.slot_sharing(self.now, self.head_bytes, self.payload);
        let Some(head) = slot else {
            return false;
        };
        (self.write)(head);
        true
    }
}

/// Frames for a queue whose payloads others share.
struct WriteHeads<I, F> {
    now: Nanos,
    head_bytes: usize,
    payloads: I,
    write: F,
}

impl<'p, I, F> QueueOp for WriteHeads<I, F>
where
    I: Iterator<Item = SharedPayload<'p>>,
    F: FnMut(&SharedPayload<'p>, &mut [u8]),
{
    /// The lengths of those that had room: how many, and of each that of the last, as all are.
    type Output = (u32, usize);

    #[inline]
    fn run<T: Transmit>(mut self, queue: &mut T) -> (u32, usize) {
        let (mut sent, mut bytes) = (0, 0);
        for payload in self.payloads {
            let Some(head) = queue.slot_sharing(self.now, self.head_bytes, payload) else {
                break;
            };
            (self.write)(&payload, head);
            bytes = self.head_bytes + payload.len;
            sent += 1;
        }
        (sent, bytes)
    }
}

/// The payloads of a profile that is gone are let go.
pub(super) struct ForgetPayloads;

impl QueueOp for ForgetPayloads {
    type Output = ();

    fn run<T: Transmit>(self, queue: &mut T) {
        queue.forget_payloads();
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

    /// Counts frames of the same length that were sent.
    #[inline]
    fn note_run(&mut self, port: PortIndex, bytes: usize, frames: u32) {
        let frames = u64::from(frames);
        self.in_turn += frames;
        self.ports[usize::from(port)].sent.count(frames, bytes);
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

    fn send_sharing(
        &mut self,
        head_bytes: usize,
        payload: SharedPayload<'_>,
        write: impl FnOnce(&mut [u8]),
    ) -> bool {
        let job = WriteHead {
            now: self.now,
            head_bytes,
            payload,
            write,
        };
        let sent = self.tx_queues.with_queue(self.port, job);
        self.sent.note(self.port, head_bytes + payload.len, sent);
        sent
    }

    fn send_run<'p>(
        &mut self,
        head_bytes: usize,
        payloads: impl Iterator<Item = SharedPayload<'p>>,
        write: impl FnMut(&SharedPayload<'p>, &mut [u8]),
    ) -> u32 {
        let job = WriteHeads {
            now: self.now,
            head_bytes,
            payloads,
            write,
        };
        let (sent, bytes) = self.tx_queues.with_queue(self.port, job);
        self.sent.note_run(self.port, bytes, sent);
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
#[inline(always)]
pub(super) fn context<'a>(
    now: Nanos,
    run: &'a mut Run,
    (number, side): (TemplateIndex, Side),
    info: &FlowPortInfo,
    pools: &'a mut Pools,
) -> FlowContext<'a> {
    let profile: &CompiledProfile = &run.profile;
    let template = profile.template(number);
    let (program, tunables) = match side {
        Side::Client => (template.client.program, &template.client.tunables),
        Side::Server => (template.server.program, &template.server.tunables),
    };
    let group = &mut run.groups[usize::from(template.group)][place(side)];
    let counters: &mut SideCounters = &mut group.flows;
    pools.set_clock(now);
    FlowContext {
        now,
        program: profile.program(program),
        buffers: profile.buffers(),
        tunables: &tunables.tcp,
        headers: header_defaults(tunables, info),
        counters,
        pools,
        times: &mut run.times,
        template: number.0,
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
        let mut cx = context(now, run, whose, info, &mut self.pools);
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
        let executes = !entry.is(FlowFlags::Executing) && entry.session.executes().is_some();
        if executes && status != FlowStatus::Over {
            entry.set_flag(FlowFlags::Executing);
            self.executions.ask(index);
        }
        let is_open = matches!(status, FlowStatus::Open(_));
        if is_in_time_wait && is_open && self.enter_time_wait(now, index) {
            return;
        }
        self.settle(now, index, status);
    }

    #[inline]
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
}
