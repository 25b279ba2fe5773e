//! How a data thread of stateful mode works and waits.

use allosaur_engine::time::{MILLISECOND, Nanos};

use super::Flows;
use super::rx_queue::FlowRxQueue;
use crate::mailbox::Waker;
use crate::polling::{Poll, SLEEP_MIN, Waiter, sharpen_sleep, stay_awake};

/// The longest sleep while there are flows: on a link in memory, what another thread sends wakes
/// nobody.
const SLEEP_WITH_FLOWS: Nanos = MILLISECOND;
/// The longest sleep when there is nothing to do. Control wakes the thread.
const SLEEP_IDLE: Nanos = 20 * MILLISECOND;
/// The longest wait before what a port did not take is offered again.
const RETRY_MAX: Nanos = 2 * MILLISECOND;

/// How long the thread sleeps when it does not know for how long: each time twice as long, until
/// something happens.
#[derive(Debug)]
pub(super) struct Backoff {
    /// When nothing is known to be due.
    sleep: Nanos,
    /// Before what a port did not take is offered again.
    retry: Nanos,
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff {
            sleep: SLEEP_MIN,
            retry: SLEEP_MIN,
        }
    }
}

impl Flows {
    /// Works until control is gone. While it waits, `waker` wakes it, and so does a frame that
    /// arrives at a port of the kernel's.
    pub fn run(mut self, poll: Poll, waker: &Waker) {
        sharpen_sleep();
        let mut waiter = Waiter::new(poll, self.clock.clone());
        while !self.mail.is_closed() {
            if self.turn() > 0 {
                self.backoff = Backoff::default();
            } else if poll == Poll::Busy || self.must_stay_awake() {
                stay_awake();
            } else {
                self.rest(&mut waiter, waker);
            }
        }
        self.publish();
    }

    /// Whether a sleep would be measured.
    fn must_stay_awake(&mut self) -> bool {
        let measures =
            self.attention.expect_more(self.last_turn_at) || self.end.watched.timed() != 0;
        measures && self.rx_queues.iter().any(FlowRxQueue::is_timed_here)
    }

    fn rest(&mut self, waiter: &mut Waiter, waker: &Waker) {
        let due = self.next_due();
        waker.park();
        // Who has put something there before does not ring; who does later, will.
        if !self.mail.has_orders() && !self.rx_queues.iter_mut().any(FlowRxQueue::has_passed_on) {
            let files = self.rx_queues.iter().filter_map(FlowRxQueue::file);
            waiter.wait_for(waker.notify(), files, Some(due));
        }
        waker.unpark();
    }

    /// When there is something to do again.
    pub fn next_due(&mut self) -> Nanos {
        let now = self.last_turn_at;
        let arrivals = self
            .rx_queues
            .iter_mut()
            .filter_map(FlowRxQueue::next_arrival_ns);
        let times = arrivals
            .chain(self.engine.poll_timeout())
            .chain(self.streams.poll_timeout())
            .chain([self.publisher.next_due()]);
        let mut due = times.min().unwrap_or(Nanos::MAX);
        if self.queues.has_unsent() || self.engine.is_blocked() {
            // An interface may be down for long.
            due = due.min(now + self.backoff.retry);
            self.backoff.retry = (self.backoff.retry * 2).min(RETRY_MAX);
        }
        let sleep_max = match self.engine.flows() {
            0 => SLEEP_IDLE,
            _ => SLEEP_WITH_FLOWS,
        };
        let sleep = self.backoff.sleep.min(sleep_max);
        self.backoff.sleep = (sleep * 2).min(sleep_max);
        due.min(now + sleep)
    }
}
