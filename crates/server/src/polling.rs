//! What a thread does when it has nothing to do.

use std::os::fd::{AsFd, BorrowedFd};
use std::str::FromStr;
use std::time::Duration;

use allosaur_engine::time::{MICROSECOND, MILLISECOND, Nanos};
use nix::poll::{PollFd, PollFlags, ppoll};

use crate::clock::Clock;
use crate::mailbox::Notify;

/// The shortest sleep of adaptive polling. Packets may leave this much late, and then several
/// together.
pub const SLEEP_MIN: Nanos = 50 * MICROSECOND;
/// The longest sleep, after which a thread looks whether the server has ended.
pub const SLEEP_MAX: Nanos = 100 * MILLISECOND;

/// The longest time that a thread stays awake before something is due, since sleeps end late.
const AWAKE_MAX: Nanos = 25 * MICROSECOND;

/// How threads wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Poll {
    /// They never sleep: the best timing, and each takes a whole core that nobody else wants.
    Busy,
    /// They sleep until something is due.
    Adaptive,
}

impl FromStr for Poll {
    type Err = String;

    fn from_str(text: &str) -> Result<Poll, String> {
        match text {
            "busy" => Ok(Poll::Busy),
            "adaptive" => Ok(Poll::Adaptive),
            _ => Err(format!(
                "'{text}' is not a way to poll: write busy or adaptive"
            )),
        }
    }
}

impl Poll {
    /// As users write it.
    pub fn name(self) -> &'static str {
        match self {
            Poll::Busy => "busy",
            Poll::Adaptive => "adaptive",
        }
    }

    /// Waits, at most until `due`, for a thread that `notify` wakes, or any of `files` when it becomes readable.
    pub fn wait_for<'a>(
        self,
        notify: &'a Notify,
        files: impl Iterator<Item = BorrowedFd<'a>>,
        now: Nanos,
        due: Option<Nanos>,
    ) {
        match self {
            Poll::Busy => stay_awake(),
            Poll::Adaptive => wait(notify, files, sleep_until(now, due)),
        }
    }
}

/// How a thread waits that knows when there is something to do, and how late its sleeps end.
///
/// Once it has slept for the sake of a time, it stays awake for what is left until then. Who has
/// something to do all the time sleeps whole, and then does all that is due by then together.
#[derive(Debug)]
pub struct Waiter {
    poll: Poll,
    clock: Clock,
    /// How much later than asked sleeps end, the latest ones of late.
    late: Nanos,
    /// What the last sleep was for.
    slept_for: Option<Nanos>,
}

impl Waiter {
    /// One that waits in this way.
    pub fn new(poll: Poll, clock: Clock) -> Waiter {
        Waiter {
            poll,
            clock,
            late: 0,
            slept_for: None,
        }
    }

    /// Waits, at most until `due`. Another thread ends the wait by unparking this one.
    pub fn wait_until(&mut self, due: Option<Nanos>) {
        self.wait_by(due, std::thread::park_timeout);
    }

    /// The same for a thread that `notify` wakes, or any of `files` when it becomes readable.
    pub fn wait_for<'a>(
        &mut self,
        notify: &'a Notify,
        files: impl Iterator<Item = BorrowedFd<'a>>,
        due: Option<Nanos>,
    ) {
        self.wait_by(due, |sleep| wait(notify, files, sleep));
    }

    fn wait_by(&mut self, due: Option<Nanos>, wait: impl FnOnce(Duration)) {
        if self.poll == Poll::Busy {
            return stay_awake();
        }
        let now = self.clock.now_ns();
        let Some(sleep) = self.sleep(now, due) else {
            // So short that others need not go first: who does may come back milliseconds late.
            return std::hint::spin_loop();
        };
        wait(Duration::from_nanos(sleep));
        self.slept_for = due;
        // Who was woken before the time learns nothing.
        if let Some(late) = self.clock.now_ns().checked_sub(now + sleep) {
            self.late = late.max(self.late - self.late / 32);
        }
    }

    /// How long to sleep, or `None` to stay awake.
    fn sleep(&self, now: Nanos, due: Option<Nanos>) -> Option<Nanos> {
        let left = due.map_or(SLEEP_MAX, |due| due.saturating_sub(now));
        let is_aim = due.is_some() && due == self.slept_for;
        match is_aim && left <= AWAKE_MAX {
            true => None,
            false => Some(sleep_for(left, self.late)),
        }
    }
}

/// How long to sleep when so much time is left: sleeps end `late`.
fn sleep_for(left: Nanos, late: Nanos) -> Nanos {
    let awake = match left {
        // Awake for a quarter of the time at most.
        left if left >= SLEEP_MIN + AWAKE_MAX => late.min(AWAKE_MAX).min(left / 4),
        _ => 0,
    };
    (left - awake).clamp(SLEEP_MIN, SLEEP_MAX)
}

fn sleep_until(now: Nanos, due: Option<Nanos>) -> Duration {
    let sleep = due.map_or(SLEEP_MAX, |due| due.saturating_sub(now));
    Duration::from_nanos(sleep.clamp(SLEEP_MIN, SLEEP_MAX))
}

/// Files that one thread can wait for besides its bell.
pub const FILES_MAX: usize = 32;

/// Waits for a ring, for one of the files, or for so long. The bell is silent then.
fn wait<'a>(notify: &'a Notify, files: impl Iterator<Item = BorrowedFd<'a>>, sleep: Duration) {
    let readable = |file| PollFd::new(file, PollFlags::POLLIN);
    let mut items: [PollFd<'_>; FILES_MAX + 1] =
        std::array::from_fn(|_| readable(notify.file().as_fd()));
    let mut count = 1;
    for (item, file) in items[1..].iter_mut().zip(files) {
        *item = readable(file);
        count += 1;
    }
    if let Err(error) = ppoll(&mut items[..count], Some(sleep.into()), None) {
        tracing::debug!("waiting was interrupted: {error}");
    }
    if items[0].any().unwrap_or(false) {
        notify.drain();
    }
}

/// Waits for what may come at any moment, without sleep: a sleep would be seen in what is measured.
///
/// All other threads may go first. Where nobody else wants the core, that is over in a fraction of a
/// microsecond; where somebody does, who gives way in idle moments is not stopped for milliseconds
/// in others.
#[inline]
pub fn stay_awake() {
    std::thread::yield_now();
}

/// Asks the kernel to end this thread's sleeps on time: by default it may add 50 µs.
pub fn sharpen_sleep() {
    if let Err(error) = nix::sys::prctl::set_timerslack(1) {
        tracing::debug!(%error, "sleeps of this thread may be 50 µs long");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_end_before_the_time_by_what_they_are_late_within_limits() {
        let us = |n: u64| n * MICROSECOND;
        assert_eq!(sleep_for(us(1000), us(10)), us(990));
        assert_eq!(
            sleep_for(us(1000), us(80)),
            us(975),
            "at most so long awake"
        );
        assert_eq!(sleep_for(us(80), us(25)), us(60), "a quarter of the time");
        assert_eq!(sleep_for(us(74), us(25)), us(74));
        assert_eq!(sleep_for(us(3), us(25)), SLEEP_MIN);
        assert_eq!(sleep_for(Nanos::MAX, us(10)), SLEEP_MAX);
    }

    #[test]
    fn who_slept_for_a_time_stays_awake_until_then() {
        let waiter = Waiter {
            late: 10 * MICROSECOND,
            slept_for: Some(5 * MILLISECOND),
            ..Waiter::new(Poll::Adaptive, Clock::start())
        };
        let sleep = |due: Option<Nanos>, left: Nanos| {
            let now = due.map_or(0, |due| due - left);
            waiter.sleep(now, due)
        };
        assert_eq!(sleep(Some(5 * MILLISECOND), AWAKE_MAX), None);
        assert_eq!(sleep(Some(5 * MILLISECOND), 0), None);
        // It was woken long before, or for another time.
        assert!(sleep(Some(5 * MILLISECOND), AWAKE_MAX + 1).is_some());
        assert!(sleep(Some(6 * MILLISECOND), AWAKE_MAX).is_some());
        assert!(sleep(None, 0).is_some());
    }

    #[test]
    fn a_bell_that_rang_ends_the_next_wait_and_no_other() {
        let notify = Notify::new().expect("a file descriptor");
        notify.clone().notify();
        // Would wait for an hour otherwise.
        wait(&notify, std::iter::empty(), Duration::from_secs(3600));
        let file = Notify::new().expect("a file descriptor");
        file.notify();
        wait(
            &notify,
            [file.file().as_fd()].into_iter(),
            Duration::from_secs(3600),
        );
        wait(&notify, std::iter::empty(), Duration::from_millis(1));
    }
}
