//! The receive threads: take what arrives at every port, count it, and show it to who watches.
//!
//! The first of them, most often the only one, stands here: it alone measures latency and has the
//! rx taps. Others, and data threads whose flows read a port, forward to it what it needs.

mod meters;
mod port;
pub mod secondary;
pub mod watch;

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use allosaur_engine::capture::Origin;
use allosaur_engine::flow_stats::receive::FlowTag;
use allosaur_engine::time::Nanos;
use allosaur_engine::transmit::PortIndex;
use allosaur_port::RxFrame;
use allosaur_port::kind::PortRx;

use super::arrivals::Arrivals;
use super::forward::{ForwardRx, ForwardedFrames, Purpose, Watched};
use super::idle::{self, BusyTime, FrameWakes, SLEEP_EXPECTING, SLEEP_IDLE, Turn};
use crate::config::polling::Poll;
use crate::counters::ReceiveBlock;
use crate::rx_taps::RxTaps;
use crate::threads::clock::Clock;
use crate::threads::mailbox::WorkerEnd;
use crate::threads::waker::Waker;
use meters::Meters;
use port::RxPort;
pub use port::{RxCommand, RxReport};
use watch::Watch;

/// Budgets that are taken at most before control is answered about frames of the past: as much as
/// the ring of a port in memory holds of the shortest frames.
const LOOKS_MAX: usize = 256;

/// The receive side of all ports, or the first share of it.
#[derive(Debug)]
pub struct Receiver {
    ports: Vec<RxPort>,
    mail: Option<WorkerEnd<RxCommand, RxReport>>,
    meters: Meters,
    watch: Option<Watch>,
    /// What other threads forward, where there are some.
    forwarded: Option<ForwardedFrames>,
    /// Frames that watchers had sent since this thread last waited, and that have not arrived at
    /// another port here.
    own: usize,
    /// The last turn did nothing but what such frames brought with them.
    was_routine: bool,
    block: Arc<ReceiveBlock>,
    clock: Clock,
    time: BusyTime,
}

impl Receiver {
    /// A receiver that reads `queues`, one of each port; none of those that data threads read.
    pub fn new(
        queues: impl IntoIterator<Item = Option<PortRx>>,
        block: Arc<ReceiveBlock>,
        clock: Clock,
    ) -> Receiver {
        Receiver {
            ports: queues.into_iter().map(RxPort::new).collect(),
            mail: None,
            meters: Meters::new(Arc::clone(&block), clock.clone()),
            watch: None,
            forwarded: None,
            own: 0,
            was_routine: false,
            block,
            time: BusyTime::new(clock.now_ns()),
            clock,
        }
    }

    /// The same, for queues that control takes and gives.
    #[must_use]
    pub fn told_by(mut self, mail: WorkerEnd<RxCommand, RxReport>) -> Receiver {
        self.mail = Some(mail);
        self
    }

    /// The same, with an observer.
    pub fn watched_by(mut self, watch: Watch) -> Receiver {
        self.watch = Some(watch);
        self
    }

    /// The same, with other threads that forward to it; `watched` tells them which ports are watched.
    pub fn joined_by(mut self, forward_rx: Vec<ForwardRx>, watched: Watched) -> Receiver {
        let ports = self.ports.len();
        self.forwarded =
            (!forward_rx.is_empty()).then(|| ForwardedFrames::new(forward_rx, watched, ports));
        self
    }

    /// Works until `stop` is set. While it waits, `waker` wakes it, and so does a frame that arrives
    /// at a port of the kernel's.
    pub fn run(mut self, poll: Poll, stop: &AtomicBool, waker: &Waker) {
        let clock = self.clock.clone();
        idle::run(&mut self, poll, clock, waker, |_| {
            stop.load(Ordering::Relaxed)
        });
    }

    /// One turn of the loop. Returns how many frames arrived, or were sent or seen for watchers.
    pub fn turn(&mut self) -> usize {
        let now = self.clock.now_ns();
        self.time.begin_turn(now);
        port::take_commands(&mut self.mail, &mut self.ports);
        if let Some(watch) = &mut self.watch {
            watch.observer.refresh();
        }
        let answered = self.look_back() + self.answer(now);
        let arrived = self.take_frames();
        let sent = self.send();
        self.was_routine = answered == 0 && arrived <= self.own;
        self.own = self.own.saturating_sub(arrived) + sent;
        let frames = answered + arrived + sent;
        if frames > 0 {
            self.meters.publish();
        }
        self.time.end_turn(frames as u64);
        self.block.arrivals.publish_time(self.time.counters());
        frames
    }

    /// Answers control. All threads are told what follows from it before. Returns how many frames
    /// were shown, and an answer counts as one.
    fn answer(&mut self, now: Nanos) -> usize {
        let Some(watch) = &mut self.watch else {
            return 0;
        };
        let (ports, forwarded) = (&mut self.ports, &mut self.forwarded);
        watch.answer(now, |observer| {
            for (port, reception) in observer.receptions().enumerate() {
                ports[port].set(reception);
                if let Some(forwarded) = forwarded {
                    forwarded.set(port, reception);
                }
            }
            if let Some(forwarded) = forwarded {
                forwarded.watch(observer);
                forwarded.tell();
            }
        })
    }

    /// Sends what watchers want sent. Returns how many frames.
    fn send(&mut self) -> usize {
        // The time is read again: what is measured carries it.
        let now = || self.clock.now_ns();
        let others_read = !self.ports.iter().all(RxPort::is_read_here);
        let watch = self.watch.as_mut();
        watch.map_or(0, |watch| watch.send(now(), &self.block, others_read))
    }

    /// When control asks about frames of the past: takes what is there now. Returns how many frames.
    fn look_back(&mut self) -> usize {
        let mut frames = 0;
        let must_look = |watch: &Watch| watch.must_look_first();
        if self.watch.as_ref().is_some_and(must_look) {
            for _ in 0..LOOKS_MAX {
                let shown = self.watch.as_mut().map_or(0, Watch::show_sent);
                let taken = shown + self.take_frames();
                frames += taken;
                if taken == 0 {
                    break;
                }
            }
        }
        frames
    }

    /// Takes what has arrived, here and at other receive threads. Returns how many frames.
    fn take_frames(&mut self) -> usize {
        let (mut arrived, counted) = self.take_forwarded();
        for (number, port) in self.ports.iter_mut().enumerate() {
            let watch = self.watch.as_mut().filter(|w| w.observer.watches(number));
            let watch = watch.map(|watch| (&mut watch.observer, number as PortIndex));
            // The time is read again: what was done since would be taken for the age of frames.
            let n = receive(port, self.clock.now_ns(), &mut self.meters, watch);
            if port.is_news(n) || (counted >> number) & 1 == 1 {
                port.arrivals.publish(number, &self.block.arrivals);
                arrived += n;
            }
        }
        arrived
    }

    /// Takes what other threads forward. Returns how many frames, and the ports of which
    /// groups were counted, as bits.
    fn take_forwarded(&mut self) -> (usize, u64) {
        let Some(forwarded) = &mut self.forwarded else {
            return (0, 0);
        };
        let mut counted = 0;
        let (ports, meters) = (&mut self.ports, &mut self.meters);
        let mut observer = self.watch.as_mut().map(|watch| &mut watch.observer);
        if let Some(observer) = &observer {
            forwarded.watch(observer);
        }
        forwarded.tell();
        let copies = forwarded.receive(|purpose, at, port, frame| match purpose {
            Purpose::Measure => {
                if let Some(group) = meters.measure_at(at, frame) {
                    ports[usize::from(port)].arrivals.count_group(group, frame);
                    counted |= 1 << port;
                }
            }
            Purpose::Show => {
                if let Some(observer) = &mut observer {
                    observer.handle_received(at, port, frame);
                }
            }
        });
        if let (Some(observer), lost @ 1..) = (observer, forwarded.take_lost()) {
            observer.note_lost(Origin::Received, lost);
        }
        (copies, counted)
    }
}

/// Takes what has arrived at a port, counts it, measures it, and shows it to who watches.
fn receive(
    port: &mut RxPort,
    now: Nanos,
    meters: &mut Meters,
    mut watch: Option<(&mut RxTaps, PortIndex)>,
) -> usize {
    let knows_arrivals = port.knows_arrivals();
    let measures =
        |(observer, port): &(&mut RxTaps, PortIndex)| observer.measured_ports() >> port & 1 == 1;
    let is_timed = !knows_arrivals && watch.as_ref().is_some_and(measures);
    port.receive_bursts(now, |arrivals: &mut Arrivals, frames| {
        if let Some((observer, port)) = watch.as_ref().filter(|_| frames.len() > 1) {
            observer.prefetch(*port, frames.iter().map(|frame| frame.bytes));
        }
        for RxFrame { at_ns, bytes } in frames {
            // First of all what is measured by the clock.
            let group = match arrivals.flow_tag(bytes) {
                None => None,
                Some(FlowTag::Flow(group)) => Some(group),
                Some(FlowTag::Latency) if knows_arrivals => meters.measure_at(*at_ns, bytes),
                Some(FlowTag::Latency) => meters.measure(bytes),
            };
            if let Some(group) = group {
                arrivals.count_group(group, bytes);
            }
            if let Some((observer, port)) = &mut watch {
                let at = if is_timed { meters.now_ns() } else { *at_ns };
                observer.handle_received(at, *port, bytes);
            }
        }
        arrivals.count_burst(frames.iter().map(|frame| frame.bytes.len()));
    })
}

impl Turn for Receiver {
    fn turn(&mut self) -> u64 {
        Receiver::turn(self) as u64
    }

    /// Timers of emulated clients and answers to what they ask keep nobody awake, where frames wake
    /// this thread.
    fn was_routine(&self) -> bool {
        self.was_routine && self.frame_wakes() != FrameWakes::No
    }

    fn note_idle(&mut self) {
        self.own = 0;
    }

    fn next_due(&mut self) -> Option<Nanos> {
        let watch = self.watch.as_ref();
        watch.and_then(|watch| watch.observer.poll_urgent_timeout())
    }

    fn is_blocked(&self) -> bool {
        self.watch.as_ref().is_some_and(Watch::has_unsent)
    }

    /// Who forwards to this thread wakes it; who sends is asked to, for links in memory and the tap.
    fn frame_wakes(&self) -> FrameWakes {
        let shows_sent = |watch: &Watch| watch.observer.sending_ports() != 0;
        let sees_frames = self.ports.iter().any(RxPort::is_read_here)
            || self.watch.as_ref().is_some_and(shows_sent);
        match self.ports.iter().all(RxPort::wakes) {
            false => FrameWakes::No,
            true if sees_frames => FrameWakes::Wanted,
            true => FrameWakes::Always,
        }
    }

    fn sleep_max(&mut self, now: Nanos, is_woken: bool) -> Option<Nanos> {
        let observer = self.watch.as_ref().map(|watch| &watch.observer);
        let max = match observer {
            Some(observer) if !is_woken && !observer.is_idle() => SLEEP_EXPECTING,
            _ => SLEEP_IDLE,
        };
        let timeout = observer.and_then(RxTaps::poll_timeout);
        let max = timeout.map_or(max, |at| max.min(at.saturating_sub(now)));
        Some(port::sleep_max(self.ports.iter_mut(), now, max))
    }

    fn must_stay_awake(&mut self, now: Nanos) -> bool {
        let watch = self.watch.as_ref();
        let echoes = watch.is_some_and(|watch| watch.observer.measured_ports() != 0);
        let measures = self.meters.expect_more(now) || echoes;
        measures && self.ports.iter().any(RxPort::is_timed_here)
    }

    fn files(&self, is_quiet: bool) -> impl Iterator<Item = BorrowedFd<'_>> {
        let taps = self.watch.iter().flat_map(|watch| watch.observer.files());
        port::files(self.ports.iter(), is_quiet).chain(taps)
    }
}

#[cfg(test)]
mod tests {

    use allosaur_port::TxQueue;
    use allosaur_port::kind::PortTx;
    use allosaur_port::memory::{self, LinkSettings};
    use allosaur_port::tap::TapSwitch;

    use super::*;
    use crate::control::QuestionId;
    use crate::counters::Counters;
    use crate::rx_taps::{CaptureRequest, RxTap};
    use crate::threads::request_channel::request_channel;
    use crate::threads::waker::Notify;

    const FRAME: [u8; 60] = [2; 60];

    /// Sends frames by port 0 as soon as it may.
    #[derive(Debug)]
    struct Sender(usize);

    impl RxTap for Sender {
        fn wants(&self, _: Origin) -> u64 {
            0
        }

        fn handle_frame(&mut self, _: Nanos, _: PortIndex, _: Origin, _: &[u8]) -> bool {
            false
        }

        fn poll_transmit(&mut self, _: Nanos, send: &mut dyn FnMut(PortIndex, &[u8]) -> bool) {
            for _ in 0..std::mem::take(&mut self.0) {
                assert!(send(0, &FRAME), "there is room");
            }
        }
    }

    #[test]
    fn who_reads_no_port_is_woken_by_all_that_comes() {
        let counters = Counters::new(1, 1);
        let receiver = Receiver::new([None], Arc::clone(&counters.receive), Clock::start());
        assert_eq!(receiver.frame_wakes(), FrameWakes::Always);
    }

    #[test]
    fn what_its_own_frames_bring_is_routine_and_all_else_is_not() {
        let clock = Clock::start();
        let counters = Counters::new(2, 1);
        let waker = Waker::new().expect("an eventfd");
        let (mut asking, answering) =
            request_channel(waker.clone(), Notify::new().expect("an eventfd"));
        let (mut a, b) = memory::pair(2, 1, &LinkSettings::default());
        let mut other = PortTx::from(a.tx.remove(1));
        let own = [
            a.tx.remove(0).into(),
            b.tx.into_iter().next().expect("one").into(),
        ];
        let watch = Watch::new(own.into(), Vec::new(), TapSwitch::default(), answering);
        let watch = watch.tapped_by(Box::new(Sender(3)));
        let queues = [a.rx, b.rx].map(|rx| Some(rx.into()));
        let receiver = Receiver::new(queues, Arc::clone(&counters.receive), clock);
        let mut receiver = receiver.watched_by(watch);
        assert_eq!(receiver.frame_wakes(), FrameWakes::Wanted);
        let mut turn = |frames| {
            assert_eq!(Turn::turn(&mut receiver), frames);
            if frames == 0 {
                receiver.note_idle();
            }
            receiver.was_routine()
        };
        assert!(turn(3), "three leave");
        assert!(turn(3), "they arrive");
        turn(0);
        other
            .slot(0, FRAME.len())
            .expect("room")
            .copy_from_slice(&FRAME);
        other.flush();
        assert!(!turn(1), "it came from elsewhere");
        turn(0);
        asking.send(QuestionId(1), CaptureRequest::List.into());
        assert!(!turn(1), "control asked");
    }
}
