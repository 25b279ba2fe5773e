//! Bursts: the packets of one stream, into one queue.

use allosaur_packet::offload::TxChecksumOffload;

use crate::latency::{ChecksumFixup, TRAILER_BYTES, Trailer};
use crate::stats::TransmitCounters;
use crate::stream::run::{Plan, StreamRun};
use crate::time::{Due, Gap, Nanos};
use crate::transmit::{FrameHandle, PortIndex, QueueOp, Transmit, TxQueues};
use crate::vm;

/// A queue keeps the frames of a field engine program where that saves copying so many bytes.
const REUSED_BYTES_MIN: usize = 64;

/// Gives the port's queue the stream's frame, if every packet is the same, or the same but for its
/// beginning.
pub(super) fn register(
    stream: &mut StreamRun,
    port: PortIndex,
    tx_queues: &mut impl TxQueues,
) -> Option<FrameHandle> {
    let plan = &stream.plan;
    if let Some(frame) = register_offloaded(stream, port, tx_queues) {
        stream.leaves_checksums = true;
        return Some(frame);
    }
    let is_reused = match (&plan.program, &stream.state) {
        (Some(program), Some(_)) if keeps_its_end(program, plan.stamped) => true,
        (Some(_), Some(_)) => return None,
        _ if plan.stamped => return None,
        _ => false,
    };
    if plan.dummy {
        return None;
    }
    let frame = &plan.packet;
    tx_queues.with_queue(port, Register { frame, is_reused })
}

/// The same for a stream whose checksums the queue computes, if it does.
fn register_offloaded(
    stream: &StreamRun,
    port: PortIndex,
    tx_queues: &mut impl TxQueues,
) -> Option<FrameHandle> {
    let plan = &stream.plan;
    let left = plan
        .left
        .as_ref()
        .filter(|_| !plan.dummy && !plan.stamped)?;
    let (frame, checksums) = (&plan.packet, &left.checksums);
    tx_queues.with_queue(port, RegisterOffloaded { frame, checksums })
}

/// The program for the next burst. While a queue that computes checksums is watched, its frames are
/// made whole, to be seen as they leave.
#[inline]
fn program_for<'a>(
    plan: &'a Plan,
    leaves_checksums: bool,
    port: PortIndex,
    tx_queues: &mut impl TxQueues,
) -> Option<&'a vm::FieldProgram> {
    match &plan.left {
        Some(left) if leaves_checksums && tx_queues.with_queue(port, Reuses) => Some(&left.program),
        _ => plan.program.as_deref(),
    }
}

/// Whether much of a program's packets is always the template's. A trailer changes the end, and
/// a checksum by what was there before: measured packets are written whole.
fn keeps_its_end(program: &vm::FieldProgram, has_trailer: bool) -> bool {
    !has_trailer && program.constant_end_bytes() >= REUSED_BYTES_MIN
}

/// Takes the stream's frame back from the queue.
pub(super) fn unregister(stream: &StreamRun, port: PortIndex, tx_queues: &mut impl TxQueues) {
    if let Some(frame) = stream.frame {
        tx_queues.with_queue(port, Unregister(frame));
    }
}

/// Sends the next `count` packets of the stream, at most [`vm::BURST`]. Returns how many the
/// queue took, and their bytes with FCS.
#[inline]
pub(super) fn send(
    stream: &mut StreamRun,
    port: PortIndex,
    count: u32,
    now: Nanos,
    stage: &mut vm::Stage,
    counters: &mut TransmitCounters,
    tx_queues: &mut impl TxQueues,
) -> (u32, u64) {
    let (first, gap) = (stream.next, stream.gap);
    let stamp = stream.trailer(now).map(|first| Stamp {
        first,
        fixup: stream.plan.fixup,
    });
    let template: &[u8] = &stream.plan.packet;
    let bytes_before = counters.sent.bytes;
    let program = program_for(&stream.plan, stream.leaves_checksums, port, tx_queues);
    let sent = match (program, &mut stream.state, stream.frame) {
        (Some(program), Some(state), frame) => {
            stage.run(program, state, template, count as usize);
            let burst = Program {
                stage,
                template,
                frame,
                first,
                gap,
                count,
                stamp,
            };
            let sent = tx_queues.with_queue(port, burst);
            count_lengths(program.fixed_length(), sent, stage, counters);
            // What the queue did not take is made again.
            state.rewind(u64::from(count - sent));
            sent
        }
        (_, _, frame) => {
            let sent = match frame {
                Some(frame) => tx_queues.with_queue(
                    port,
                    Repeat {
                        frame,
                        first,
                        gap,
                        count,
                    },
                ),
                None => tx_queues.with_queue(
                    port,
                    Copy {
                        template,
                        first,
                        gap,
                        count,
                        stamp,
                    },
                ),
            };
            counters.sent.count(u64::from(sent), template.len());
            sent
        }
    };
    let bytes = counters.sent.bytes - bytes_before;
    stream.note_sent(sent);
    stream.counters.packets += u64::from(sent);
    stream.counters.bytes += bytes;
    (sent, bytes)
}

/// Counts the first `n` packets of the stage.
#[inline]
fn count_lengths(fixed: Option<usize>, n: u32, stage: &vm::Stage, counters: &mut TransmitCounters) {
    match fixed {
        Some(length) => counters.sent.count(u64::from(n), length),
        None => (0..n as usize).for_each(|i| counters.sent.count(1, stage.length(i))),
    }
}

struct Register<'a> {
    frame: &'a [u8],
    is_reused: bool,
}

impl QueueOp for Register<'_> {
    type Output = Option<FrameHandle>;

    fn run<T: Transmit>(self, queue: &mut T) -> Option<FrameHandle> {
        match self.is_reused && !T::REUSES {
            true => None,
            false => queue.register(self.frame),
        }
    }
}

struct RegisterOffloaded<'a> {
    frame: &'a [u8],
    checksums: &'a TxChecksumOffload,
}

impl QueueOp for RegisterOffloaded<'_> {
    type Output = Option<FrameHandle>;

    fn run<T: Transmit>(self, queue: &mut T) -> Option<FrameHandle> {
        match T::REUSES {
            true => queue.register_offloaded(self.frame, self.checksums),
            false => None,
        }
    }
}

/// Whether the queue sends frames that it keeps.
struct Reuses;

impl QueueOp for Reuses {
    type Output = bool;

    #[inline]
    fn run<T: Transmit>(self, _queue: &mut T) -> bool {
        T::REUSES
    }
}

struct Unregister(FrameHandle);

impl QueueOp for Unregister {
    type Output = ();

    fn run<T: Transmit>(self, queue: &mut T) {
        queue.unregister(self.0);
    }
}

struct Repeat {
    frame: FrameHandle,
    first: Due,
    gap: Gap,
    count: u32,
}

impl QueueOp for Repeat {
    type Output = u32;

    #[inline]
    fn run<T: Transmit>(self, queue: &mut T) -> u32 {
        queue.repeat(self.frame, self.first, self.gap, self.count)
    }
}

struct Copy<'a> {
    template: &'a [u8],
    first: Due,
    gap: Gap,
    count: u32,
    stamp: Option<Stamp>,
}

impl QueueOp for Copy<'_> {
    type Output = u32;

    #[inline]
    fn run<T: Transmit>(self, queue: &mut T) -> u32 {
        let mut due = self.first;
        for i in 0..self.count {
            let Some(slot) = queue.slot(due.at, self.template.len()) else {
                return i;
            };
            copy_frame(self.template, slot);
            stamp(self.stamp, i, slot);
            due = due.after(self.gap);
        }
        self.count
    }
}

/// Copies a frame. The shortest ones, which are sent most often, take two copies of constant size, which
/// overlap.
#[inline(always)]
fn copy_frame(frame: &[u8], out: &mut [u8]) {
    const HALF: usize = 32;
    let is_short = frame.len() <= 2 * HALF && out.len() == frame.len();
    match (frame.first_chunk::<HALF>(), frame.last_chunk::<HALF>()) {
        (Some(head), Some(tail)) if is_short => {
            out[..HALF].copy_from_slice(head);
            let tail_at = out.len() - HALF;
            out[tail_at..].copy_from_slice(tail);
        }
        _ => out.copy_from_slice(frame),
    }
}

struct Program<'a> {
    stage: &'a vm::Stage,
    template: &'a [u8],
    /// The template as the queue keeps it, if it does.
    frame: Option<FrameHandle>,
    first: Due,
    gap: Gap,
    count: u32,
    stamp: Option<Stamp>,
}

impl QueueOp for Program<'_> {
    type Output = u32;

    #[inline]
    fn run<T: Transmit>(self, queue: &mut T) -> u32 {
        match self.frame.filter(|_| T::REUSES) {
            Some(frame) => self.write_beginnings(queue, frame),
            None => self.write_packets(queue),
        }
    }
}

impl Program<'_> {
    #[inline(always)]
    fn write_packets<T: Transmit>(self, queue: &mut T) -> u32 {
        let mut due = self.first;
        for i in 0..self.count {
            let length = self.stage.length(i as usize);
            let Some(slot) = queue.slot(due.at, length) else {
                return i;
            };
            self.stage.write(i as usize, self.template, slot);
            stamp(self.stamp, i, slot);
            due = due.after(self.gap);
        }
        self.count
    }

    #[inline(always)]
    fn write_beginnings<T: Transmit>(self, queue: &mut T, frame: FrameHandle) -> u32 {
        let mut due = self.first;
        for i in 0..self.count {
            let length = self.stage.length(i as usize);
            let Some(slot) = queue.reuse(due.at, frame, length) else {
                return i;
            };
            self.stage.write_beginning(i as usize, slot);
            due = due.after(self.gap);
        }
        self.count
    }
}

/// What each packet of a burst has of its own whose latency is measured.
#[derive(Clone, Copy)]
struct Stamp {
    /// The trailer of the first packet.
    first: Trailer,
    fixup: Option<ChecksumFixup>,
}

/// Writes the trailer of the `i`-th packet of a burst. A packet that the field engine made too
/// short for it has none.
#[inline(always)]
fn stamp(stamp: Option<Stamp>, i: u32, slot: &mut [u8]) {
    if let Some(Stamp { first, fixup }) = stamp.filter(|_| slot.len() >= TRAILER_BYTES) {
        let sequence = first.sequence.wrapping_add(i);
        let trailer = Trailer { sequence, ..first };
        match fixup {
            Some(fixup) => fixup.write(trailer, slot),
            None => trailer.write(slot),
        }
    }
}
