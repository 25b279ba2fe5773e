//! How receive threads work and wait, the first and the others.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use allosaur_engine::time::{MILLISECOND, Nanos, SECOND};
use allosaur_port::description::PORTS_MAX;
use allosaur_port::kind::PortRx;

use crate::clock::Clock;
use crate::counters::ReceiveBlock;
use crate::mailbox::Notify;
use crate::polling::{FILES_MAX, Poll, SLEEP_MIN, sharpen_sleep, stay_awake};

/// A thread waits for one file of each port.
const _: () = assert!(PORTS_MAX <= FILES_MAX);
/// The longest sleep when nothing arrives. Control wakes the threads when it starts traffic.
pub(super) const SLEEP_IDLE: Nanos = 20 * MILLISECOND;
/// The longest sleep while somebody watches: sent frames are shown without waking the thread.
pub(super) const SLEEP_WATCHING: Nanos = MILLISECOND;
/// For so long after a frame whose latency was measured, or after control has said that there will
/// be some, the thread stays awake: a sleep would be measured with the next frame.
pub(super) const MEASURING: Nanos = 2 * SECOND;

/// What a receive thread does over and over.
pub(super) trait Turn {
    /// One turn of the loop. Returns how many frames arrived, or were sent or seen for watchers.
    fn turn(&mut self) -> usize;
    /// Whether a sleep would be measured.
    fn must_stay_awake(&mut self, now: Nanos) -> bool;
    /// When it has something to send.
    fn send_due(&self) -> Option<Nanos> {
        None
    }
    /// The longest sleep as things are.
    fn sleep_max(&self) -> Nanos;
    /// The receive queues.
    fn queues(&mut self) -> impl Iterator<Item = &mut PortRx>;
}

/// Works until `stop` is set. While it waits, `notify` wakes it, and so does a frame that arrives at
/// a port of the kernel's.
pub(super) fn run(
    mut receiver: impl Turn,
    clock: &Clock,
    poll: Poll,
    stop: &AtomicBool,
    notify: &Notify,
) {
    sharpen_sleep();
    let mut sleep = SLEEP_MIN;
    while !stop.load(Ordering::Relaxed) {
        if receiver.turn() > 0 {
            sleep = SLEEP_MIN;
            continue;
        }
        let now = clock.now_ns();
        if receiver.must_stay_awake(now) {
            stay_awake();
            continue;
        }
        let quiet_until = now + sleep;
        let arrivals = receiver.queues().filter_map(PortRx::next_arrival_ns);
        let due = arrivals.min().into_iter().chain(receiver.send_due());
        let due = due.fold(quiet_until, Nanos::min);
        // While frames come, a short sleep gathers some; to be woken for each would cost more.
        let is_quiet = sleep > SLEEP_MIN;
        let queues = receiver.queues().filter(|_| is_quiet);
        let files = queues.filter_map(|queue| -> Option<BorrowedFd<'_>> { queue.file() });
        poll.wait_for(notify, files, now, Some(due));
        // Who is woken early shall expect something.
        let woken = clock.now_ns() < due;
        sleep = if woken {
            SLEEP_MIN
        } else {
            (sleep * 2).min(receiver.sleep_max())
        };
    }
}

/// Knows when frames to measure are likely soon.
#[derive(Debug)]
pub(crate) struct AwakePolicy {
    /// When the last frame was measured, or announced.
    measured_at: Option<Nanos>,
    /// What control has announced up to now.
    expectations: u64,
    block: Arc<ReceiveBlock>,
}

impl AwakePolicy {
    pub(crate) fn new(block: Arc<ReceiveBlock>) -> AwakePolicy {
        AwakePolicy {
            measured_at: None,
            expectations: 0,
            block,
        }
    }

    /// A frame was measured.
    pub(crate) fn note(&mut self, now: Nanos) {
        self.measured_at = Some(now);
    }

    /// Whether frames to measure are likely soon.
    pub(crate) fn expect_more(&mut self, now: Nanos) -> bool {
        let expectations = self.block.expectations();
        if self.expectations != expectations {
            self.expectations = expectations;
            self.measured_at = Some(now);
        }
        let last = self.measured_at;
        last.is_some_and(|at| now.saturating_sub(at) < MEASURING)
    }
}
