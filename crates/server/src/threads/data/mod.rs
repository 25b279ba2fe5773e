//! The data thread: where engines and ports meet.
//!
//! Each has a stateless engine and a tx queue of each port that it serves, which engines see through
//! an adapter by type (`Queues`). The flows, their engine and the rx queues that they read, are there
//! only where a port is in stateful mode; emulated clients where the server emulates some.

mod attach;
mod clients;
mod control;
mod flows;
mod messages;
mod publisher;
mod rx_port;

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use allosaur_engine::StatelessEngine;
use allosaur_engine::stateful::StatefulEngine;
use allosaur_engine::stats::TransmitCounters;
use allosaur_engine::time::{Due, Gap, Nanos};
use allosaur_engine::transmit::{FrameHandle, PortIndex, QueueOp, Transmit, TxQueues};
use allosaur_packet::offload::TxChecksumOffload;
use allosaur_packet::shared_payload::SharedPayload;
use allosaur_port::kind::PortTx;
use allosaur_port::tap::{TapIn, TapSwitch, Tapped};
use allosaur_port::{FrameId, TxQueue, by_kind};

use super::idle::{self, BusyTime, FrameWakes, Turn};
use crate::config::polling::Poll;
use crate::counters::CoreBlock;
use crate::threads::clock::Clock;
use crate::threads::mailbox::WorkerEnd;
use crate::threads::tx_losses::{TxLosses, send_frame};
use crate::threads::waker::Waker;
pub use clients::{ClientLinks, EmulationState};
pub use flows::{FlowLinks, FlowState};
pub use messages::{Report, WorkerCommand};
use rx_port::RxResult;
pub use rx_port::{FlowRx, RxQueues};

/// Why a queue is there.
const SERVED: &str = "control tells a thread only of ports that it serves";

/// One data thread: its engines, its queues of the ports that it serves, and the mail from control.
#[derive(Debug)]
pub struct DataThread {
    streams: StatelessEngine,
    flows: Option<Box<FlowState>>,
    clients: Option<Box<EmulationState>>,
    /// Ports that flows read no more, and control has not heard of that.
    detached: VecDeque<(PortIndex, Option<Box<FlowRx>>)>,
    tx_queues: Queues,
    tap_switch: TapSwitch,
    mail: WorkerEnd<WorkerCommand, Report>,
    /// Wake those that read on links in memory what is sent here, the first receive thread too, which
    /// sees it in the tap.
    readers: Vec<Waker>,
    /// Other data threads may write what this one reads on links in memory.
    is_fed: bool,
    /// Something was sent since this thread last waited.
    has_sent: bool,
    block: Arc<CoreBlock>,
    clock: Clock,
    time: BusyTime,
    turns: u32,
}

impl DataThread {
    /// A thread that sends through `tx_queues`, one of each port that it serves.
    pub fn new(
        tx_queues: Vec<Option<PortTx>>,
        mail: WorkerEnd<WorkerCommand, Report>,
        block: Arc<CoreBlock>,
        clock: Clock,
    ) -> DataThread {
        let now = clock.now_ns();
        DataThread {
            streams: StatelessEngine::new(tx_queues.len(), now),
            flows: None,
            clients: None,
            detached: VecDeque::new(),
            tx_queues: Queues::new(tx_queues, now),
            tap_switch: TapSwitch::default(),
            mail,
            readers: Vec::new(),
            is_fed: false,
            has_sent: false,
            block,
            clock,
            time: BusyTime::new(now),
            turns: 0,
        }
    }

    /// The same, with flows.
    #[must_use]
    pub fn with_flows(mut self, flows: Box<FlowState>) -> DataThread {
        self.flows = Some(flows);
        self
    }

    /// The same, with emulated clients.
    #[must_use]
    pub fn with_clients(mut self, clients: Box<EmulationState>) -> DataThread {
        self.clients = Some(clients);
        self
    }

    /// The same, with copies into `tap` of what those ports send that `switch` says.
    #[must_use]
    pub fn tapped_by(mut self, tap: TapIn, switch: TapSwitch) -> DataThread {
        self.tx_queues.tap = Some(tap);
        self.tap_switch = switch;
        self
    }

    /// The same, where `readers` wake the threads that receive what is sent here on links in memory.
    #[must_use]
    pub fn waking(mut self, readers: Vec<Waker>) -> DataThread {
        self.readers = readers;
        self
    }

    /// The same, where other data threads may write what this one reads on links in memory: they have
    /// its waker among their [`readers`](DataThread::waking).
    #[must_use]
    pub fn fed(mut self) -> DataThread {
        self.is_fed = true;
        self
    }

    /// Works until control is gone.
    pub fn run(&mut self, poll: Poll) {
        let (clock, waker) = (self.clock.clone(), self.mail.waker().clone());
        idle::run(self, poll, clock, &waker, |thread| thread.mail.is_closed());
    }

    /// One turn of the loop: what control says, what arrived, what is due, the flush of each port,
    /// and what control is told. Returns how many frames came and went, and how many commands.
    #[inline]
    pub fn turn(&mut self) -> u64 {
        let now = self.clock.now_ns();
        self.time.begin_turn(now);
        self.tx_queues.begin_turn(now, self.tap_switch.ports());
        let commands = self.take_commands(now);
        let mut frames = self.receive(now);
        frames += self.streams.poll_transmit(now, &mut self.tx_queues);
        if let Some(flows) = &mut self.flows {
            frames += flows.poll_transmit(now, &mut self.tx_queues);
        }
        let mut has_unsent = self.tx_queues.flush();
        if let Some(clients) = &mut self.clients {
            // What streams and flows wrote has left: it does not wait for clients.
            let tx_queues = &mut self.tx_queues;
            let done = clients.turn(now, |port, frame, counters| {
                tx_queues.send_frame(port, frame, counters);
            });
            if done > 0 {
                has_unsent = self.tx_queues.flush();
                frames += done;
            }
        }
        let is_ending = has_unsent && self.end_traffic();
        if frames > 0 {
            self.has_sent = true;
            self.readers.iter().for_each(Waker::wake_for_frames);
        }
        self.time.end_turn(frames);
        self.publish_in_time(now, frames);
        if !is_ending {
            self.report(now);
        }
        commands + frames
    }

    /// Frames wait in a queue that could not pass all on. Where nothing more is to be sent they are
    /// given up in the end. Returns whether they may still leave there.
    #[cold]
    fn end_traffic(&mut self) -> bool {
        let flows = self.flows.as_ref();
        if flows.is_some_and(|flows| flows.engine().poll_timeout().is_some()) {
            return false;
        }
        let streams = &self.streams;
        self.tx_queues.end_traffic(|port| !streams.has_more(port))
    }

    /// Takes what has arrived for flows. Returns how many frames.
    #[inline]
    fn receive(&mut self, now: Nanos) -> u64 {
        let Some(flows) = &mut self.flows else {
            return 0;
        };
        flows.take_changes();
        let unmatched = flows.unmatched_ports(now, &self.streams);
        flows.engine.pass_unmatched(unmatched);
        let (engine, forward) = (&mut flows.engine, &mut flows.forward);
        let mut all = RxResult::default();
        for rx_port in &mut flows.rx_ports {
            let tx_queues = &mut self.tx_queues;
            all.add(rx_port.receive(now, &self.clock, engine, tx_queues, forward));
        }
        flows.note_received(now, &all);
        all.frames as u64
    }

    /// Does what control says. Returns how many commands.
    #[inline]
    fn take_commands(&mut self, now: Nanos) -> u64 {
        let mut commands = 0;
        while let Some(command) = self.mail.receive() {
            commands += 1;
            self.handle_command(now, command);
        }
        commands
    }

    /// The engine of its flows, if it has flows.
    pub fn flows(&self) -> Option<&StatefulEngine> {
        self.flows.as_ref().map(|flows| flows.engine())
    }

    /// When it has something to do again; how long it sleeps at most is said elsewhere.
    pub fn next_due(&mut self) -> Option<Nanos> {
        let flows = self.flows.as_mut().and_then(|flows| flows.next_due());
        self.streams.poll_timeout().into_iter().chain(flows).min()
    }
}

impl Turn for DataThread {
    fn turn(&mut self) -> u64 {
        DataThread::turn(self)
    }

    fn note_idle(&mut self) {
        if std::mem::take(&mut self.has_sent) {
            self.readers.iter().for_each(Waker::wake_for_past_frames);
        }
        self.publish_sent();
    }

    fn next_due(&mut self) -> Option<Nanos> {
        DataThread::next_due(self)
    }

    fn is_blocked(&self) -> bool {
        let flows = self.flows.as_ref();
        self.tx_queues.has_unsent() || flows.is_some_and(|flows| flows.engine().is_blocked())
    }

    fn frame_wakes(&self) -> FrameWakes {
        let flows = self.flows.as_ref();
        match flows.map(|flows| flows.is_woken_by_frames()) {
            Some(false) => FrameWakes::No,
            Some(true) if self.is_fed => FrameWakes::Wanted,
            // Who hands frames over to emulated clients wakes it.
            Some(true) | None => FrameWakes::Always,
        }
    }

    fn sleep_max(&mut self, now: Nanos, is_woken: bool) -> Option<Nanos> {
        let flows = self.flows.as_ref();
        let flows = flows.map(|flows| flows.sleep_max(is_woken));
        // Nobody stays awake shortly before a timer of a client.
        let clients = self
            .clients
            .as_ref()
            .and_then(|clients| clients.poll_timeout());
        let clients = clients.map(|at| at.saturating_sub(now));
        flows.into_iter().chain(clients).min()
    }

    fn must_stay_awake(&mut self, now: Nanos) -> bool {
        let flows = self.flows.as_mut();
        flows.is_some_and(|flows| flows.must_stay_awake(now))
    }

    fn files(&self, _is_quiet: bool) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.flows.iter().flat_map(|flows| flows.files())
    }
}

/// The transmit queues of one thread, one of each port that it serves, and the time of the turn.
#[derive(Debug)]
struct Queues {
    now: Nanos,
    queues: Vec<Option<PortTx>>,
    /// What each of them lost.
    losses: Vec<TxLosses>,
    /// Of each port, what left.
    left: Vec<TransmitCounters>,
    tap: Option<TapIn>,
    /// The ports whose frames are copied, as bits.
    tapped: u64,
}

impl Queues {
    /// Queues, one of each port that is served.
    fn new(queues: Vec<Option<PortTx>>, now: Nanos) -> Queues {
        Queues {
            now,
            losses: queues.iter().map(|_| TxLosses::default()).collect(),
            left: vec![TransmitCounters::default(); queues.len()],
            queues,
            tap: None,
            tapped: 0,
        }
    }

    /// Frames leave at `now` until the next turn; those of the ports in `tapped` are copied.
    #[inline]
    fn begin_turn(&mut self, now: Nanos, tapped: u64) {
        self.now = now;
        self.tapped = tapped;
    }

    /// What was written leaves. Returns whether a queue could not pass all on.
    #[inline]
    fn flush(&mut self) -> bool {
        let mut has_unsent = false;
        for (queue, losses) in self.queues.iter_mut().zip(&mut self.losses) {
            let Some(queue) = queue else { continue };
            by_kind!(queue, queue => {
                queue.flush();
                losses.take(queue);
                has_unsent |= queue.has_unsent();
            });
        }
        if let Some(tap) = &mut self.tap {
            tap.flush();
        }
        has_unsent
    }

    /// On ports where nothing more is to be sent, what waits is given up in the end. Returns whether some
    /// may still leave.
    fn end_traffic(&mut self, is_over: impl Fn(PortIndex) -> bool) -> bool {
        let mut is_ending = false;
        let queues = self.queues.iter_mut().zip(&mut self.losses);
        for (port, (queue, losses)) in (0..).zip(queues) {
            if let Some(queue) = queue.as_mut().filter(|queue| queue.has_unsent()) {
                if is_over(port) {
                    is_ending |= queue.end_traffic();
                    losses.take(queue);
                }
            }
        }
        is_ending
    }

    /// What left each port, of what was written.
    fn left(&mut self, written: &[TransmitCounters]) -> &[TransmitCounters] {
        let queues = self.queues.iter_mut().zip(&self.losses);
        let all = self.left.iter_mut().zip(written).zip(queues);
        for ((left, written), (queue, losses)) in all {
            *left = match queue {
                Some(queue) => by_kind!(queue, queue => losses.left(written, queue)),
                None => *written,
            };
        }
        &self.left
    }

    /// Whether a queue could not pass all on.
    fn has_unsent(&self) -> bool {
        self.queues.iter().flatten().any(PortTx::has_unsent)
    }

    /// Sends a frame of an emulated client, if the thread sends on that port.
    fn send_frame(&mut self, port: PortIndex, frame: &[u8], counters: &mut TransmitCounters) {
        let (now, is_tapped) = (self.now, self.tapped >> port & 1 == 1);
        let queue = self.queues.get_mut(usize::from(port));
        let Some(queue) = queue.and_then(Option::as_mut) else {
            return;
        };
        let frame_bytes_max = queue.frame_bytes_max();
        let _is_sent = match &mut self.tap {
            Some(tap) if is_tapped => {
                let queue = &mut Tapped::new(queue, tap, port);
                send_frame(queue, now, frame, frame_bytes_max, counters)
            }
            _ => send_frame(queue, now, frame, frame_bytes_max, counters),
        };
    }

    /// As `with_queue`, for a port that is watched.
    #[cold]
    fn with_tapped_queue<J: QueueOp>(&mut self, port: PortIndex, op: J) -> J::Output {
        let now = self.now;
        let queue = self.queues[usize::from(port)].as_mut().expect(SERVED);
        let Some(tap) = &mut self.tap else {
            return op.run(&mut Adapter { queue, now });
        };
        let queue = &mut Tapped::new(queue, tap, port);
        op.run(&mut Adapter { queue, now })
    }
}

impl TxQueues for Queues {
    #[inline]
    fn with_queue<J: QueueOp>(&mut self, port: PortIndex, op: J) -> J::Output {
        let now = self.now;
        if self.tapped >> port & 1 == 1 {
            return self.with_tapped_queue(port, op);
        }
        let queue = self.queues[usize::from(port)].as_mut().expect(SERVED);
        by_kind!(queue, queue => op.run(&mut Adapter { queue, now }))
    }
}

/// A port's queue as the engine sees it. Packets leave at the time of the turn: their exact time
/// is the engine's account, which the simulator keeps and a port cannot.
struct Adapter<'a, Q> {
    queue: &'a mut Q,
    now: Nanos,
}

impl<Q: TxQueue> Transmit for Adapter<'_, Q> {
    const REUSES: bool = Q::REUSES;

    #[inline(always)]
    fn slot(&mut self, _at: Nanos, len: usize) -> Option<&mut [u8]> {
        self.queue.slot(self.now, len)
    }

    #[inline(always)]
    fn slot_sharing(
        &mut self,
        _at: Nanos,
        head_bytes: usize,
        payload: SharedPayload<'_>,
    ) -> Option<&mut [u8]> {
        self.queue.slot_sharing(self.now, head_bytes, payload)
    }

    fn forget_payloads(&mut self) {
        self.queue.forget_payloads();
    }

    #[inline(always)]
    fn repeat(&mut self, frame: FrameHandle, _first: Due, _gap: Gap, count: u32) -> u32 {
        self.queue.repeat(self.now, FrameId(frame.0), count)
    }

    #[inline(always)]
    fn reuse(&mut self, _at: Nanos, frame: FrameHandle, len: usize) -> Option<&mut [u8]> {
        self.queue.reuse(self.now, FrameId(frame.0), len)
    }

    fn register(&mut self, frame: &[u8]) -> Option<FrameHandle> {
        self.queue.register(frame).map(|id| FrameHandle(id.0))
    }

    fn register_offloaded(
        &mut self,
        frame: &[u8],
        offload: &TxChecksumOffload,
    ) -> Option<FrameHandle> {
        let id = self.queue.register_offloaded(frame, offload)?;
        Some(FrameHandle(id.0))
    }

    fn unregister(&mut self, frame: FrameHandle) {
        self.queue.unregister(FrameId(frame.0));
    }
}

#[cfg(test)]
mod tests {
    use allosaur_engine::StatelessCommand;
    use allosaur_engine::stream::ProfileKey;
    use allosaur_engine::stream::recording::{Pace, one_way};
    use allosaur_engine::stream::replay::Macs;
    use allosaur_packet::file::Resolution;
    use allosaur_packet::file::pcap::PcapWriter;
    use allosaur_port::memory::{self, LinkSettings};

    use super::*;
    use crate::counters::Counters;
    use crate::threads::mailbox::mailbox;
    use crate::threads::waker::Notify;

    #[test]
    fn what_is_sent_wakes_all_who_may_read_it_and_nobody_before() {
        let waker = || Waker::new().expect("a file descriptor");
        let (clock, hand) = Clock::by_hand();
        let notify = Notify::new().expect("a file descriptor");
        let (mut control, mail) = mailbox(&notify, &waker());
        let (mut port, _peer) = memory::pair(1, 1, &LinkSettings::default());
        let queues = vec![Some(port.tx.remove(0).into())];
        let block = Arc::clone(&Counters::new(1, 1).cores[0]);
        let readers = [waker(), waker()];
        let mut thread = DataThread::new(queues, mail, block, clock.clone());
        thread = thread.waking(readers.to_vec());
        let is_woken = |reader: &Waker| {
            let was_parked = reader.park();
            reader.unpark();
            !was_parked
        };
        let mut capture = PcapWriter::new(Resolution::Nanoseconds);
        capture.write_frame(0, &[2; 60]).expect("a small time");
        let pace = Pace {
            gap_ns: Some(1e3),
            gap_min_ns: 0.0,
            speedup: 1.0,
            rounds: std::num::NonZeroU32::new(1),
        };
        let replay = one_way(capture.bytes(), &pace, Macs::default()).expect("it is right");
        control.send(StatelessCommand::StartProfile {
            port: 0,
            profile: ProfileKey(1),
            program: Box::new(replay.into()),
            start_at: 1_000,
            duration: None,
        });
        readers.iter().for_each(Waker::want_frames);
        while thread.turn() > 0 {}
        assert!(!readers.iter().any(is_woken), "nothing was due");
        hand.advance(2_000);
        assert!(thread.turn() > 0);
        assert!(readers.iter().all(is_woken));
        // One that wished in the same moment is told when the thread has nothing more to do.
        readers.iter().for_each(Waker::want_frames);
        thread.note_idle();
        assert!(readers.iter().all(is_woken));
        readers.iter().for_each(Waker::want_frames);
        thread.note_idle();
        assert!(!readers.iter().any(is_woken), "nothing was sent since");
    }
}
