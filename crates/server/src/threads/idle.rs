//! What a thread does when it has nothing to do: one loop and one policy for those that send and
//! those that receive.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use allosaur_engine::time::{MICROSECOND, MILLISECOND, Nanos};
use allosaur_port::description::PORTS_MAX;
use nix::poll::{PollFd, PollFlags, ppoll};

use crate::config::polling::Poll;
use crate::counters::CoreCounters;
use crate::threads::clock::Clock;
use crate::threads::waker::Waker;

/// The shortest sleep of adaptive polling. Packets may leave this much late, and then several
/// together.
const SLEEP_MIN: Nanos = 50 * MICROSECOND;
/// The longest sleep, after which a thread looks whether the server has ended.
const SLEEP_MAX: Nanos = 100 * MILLISECOND;
/// The longest sleep of a thread that receives, while nothing arrives: control wakes it when it
/// starts traffic.
pub(super) const SLEEP_IDLE: Nanos = 50 * MILLISECOND;
/// The same while something is likely to come: on a link in memory, and from another thread's
/// tap, frames wake nobody.
pub(super) const SLEEP_EXPECTING: Nanos = MILLISECOND;
/// The longest wait before what a port did not take is offered again: an interface may be down
/// for long.
const RETRY_MAX: Nanos = 2 * MILLISECOND;
/// The longest time that a thread stays awake before something is due, since sleeps end late.
const AWAKE_MAX: Nanos = 25 * MICROSECOND;
/// The kernel may end a sleep in `ppoll` late by this part of it, to save power.
const SLACK: Nanos = 1000;

/// How a thread that sleeps learns of frames that arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameWakes {
    /// Of some it does not: it has to look.
    No,
    /// All wake it once it [wants them](Waker::want_frames).
    Wanted,
    /// All wake it, or it sends them itself.
    Always,
}

/// What a thread does over and over.
pub(super) trait Turn {
    /// One turn of the loop. Returns how much there was to do, in frames and commands.
    fn turn(&mut self) -> u64;

    /// Whether the last turn only did what was due by itself, and what came of that: more is no
    /// likelier than before.
    fn was_routine(&self) -> bool {
        false
    }

    /// There was nothing to do in this turn.
    fn note_idle(&mut self) {}

    /// When there is something to do again, as far as the thread knows.
    fn next_due(&mut self) -> Option<Nanos>;

    /// Whether frames wait that a port did not take.
    fn is_blocked(&self) -> bool;

    /// Whether frames that may come wake it.
    fn frame_wakes(&self) -> FrameWakes;

    /// The longest sleep while something may come that wakes nobody; none where there is no such
    /// thing. Now each frame wakes the thread if it `is_woken`.
    fn sleep_max(&mut self, now: Nanos, is_woken: bool) -> Option<Nanos>;

    /// Whether a sleep would be measured.
    fn must_stay_awake(&mut self, now: Nanos) -> bool;

    /// What becomes readable when a frame arrives, where the kernel tells; `is_quiet` when nothing
    /// has come for a while.
    fn files(&self, is_quiet: bool) -> impl Iterator<Item = BorrowedFd<'_>>;
}

/// Has a thread work until it is over. While it waits, `waker` wakes it, and so does each of its
/// files.
pub(super) fn run<T: Turn>(
    thread: &mut T,
    poll: Poll,
    clock: Clock,
    waker: &Waker,
    is_over: impl Fn(&T) -> bool,
) {
    sharpen_sleep();
    let mut policy = IdlePolicy::new(clock);
    while !is_over(thread) {
        if thread.turn() > 0 {
            if !thread.was_routine() {
                policy.expect_more();
            }
            policy.retry = SLEEP_MIN;
            continue;
        }
        thread.note_idle();
        if poll == Poll::Busy {
            stay_awake();
            continue;
        }
        let now = policy.clock.now_ns();
        match thread.must_stay_awake(now) {
            true => stay_awake(),
            false => policy.sleep(now, thread, waker),
        }
    }
}

/// How long a thread sleeps that knows when there is something to do, and how late its sleeps end.
///
/// Once it has slept for the sake of a time, it stays awake for what is left until then. Who has
/// something to do all the time sleeps whole, and then does all that is due by then together. Where
/// something may come at any time that wakes nobody, each sleep is twice as long as the one before; when
/// they are long, the next frame wakes the thread, where that can be.
#[derive(Debug)]
struct IdlePolicy {
    clock: Clock,
    /// How much later than asked sleeps end, the latest ones of late.
    late: Nanos,
    /// What the last sleep was for.
    slept_for: Option<Nanos>,
    /// How long the next sleep is at most, where something may come that wakes nobody.
    interval: Nanos,
    /// The next frame on a link in memory wakes the thread.
    wants_frames: bool,
    /// How long to wait before what a port did not take is offered again.
    retry: Nanos,
}

impl IdlePolicy {
    fn new(clock: Clock) -> IdlePolicy {
        IdlePolicy {
            clock,
            late: 0,
            slept_for: None,
            interval: SLEEP_MIN,
            wants_frames: false,
            retry: SLEEP_MIN,
        }
    }

    /// Something came: more may follow soon.
    fn expect_more(&mut self) {
        self.interval = SLEEP_MIN;
        self.wants_frames = false;
    }

    fn sleep<T: Turn>(&mut self, now: Nanos, thread: &mut T, waker: &Waker) {
        let frame_wakes = thread.frame_wakes();
        let is_long = self.interval >= SLEEP_EXPECTING;
        if is_long && !self.wants_frames && frame_wakes == FrameWakes::Wanted {
            self.wants_frames = true;
            // What came before is looked for once more: it wakes nobody.
            return waker.want_frames();
        }
        let is_woken_by_all = self.wants_frames || frame_wakes == FrameWakes::Always;
        let due = self.next_due(now, thread);
        let Some(sleep) = self.sleep_until(now, due) else {
            // So short that others need not go first: who does may come back milliseconds late.
            return std::hint::spin_loop();
        };
        let interval = match frame_wakes {
            FrameWakes::Always => SLEEP_MAX,
            FrameWakes::No | FrameWakes::Wanted => self.interval,
        };
        let sleep = match thread.sleep_max(now, is_woken_by_all) {
            Some(max) => sleep.min(interval.min(max).max(SLEEP_MIN)),
            None => sleep,
        };
        let is_quiet = self.interval > SLEEP_MIN;
        let is_woken = !waker.park() || wait(waker, thread.files(is_quiet), sleep);
        waker.unpark();
        self.slept_for = due;
        match is_woken {
            true => self.expect_more(),
            false => self.interval = (self.interval * 2).min(SLEEP_MAX),
        }
        // Who was woken before the time learns nothing.
        if let Some(late) = self.clock.now_ns().checked_sub(now + sleep) {
            let late = late.saturating_sub(sleep / SLACK);
            self.late = late.max(self.late - self.late / 32);
        }
    }

    fn next_due(&mut self, now: Nanos, thread: &mut impl Turn) -> Option<Nanos> {
        let due = thread.next_due();
        if !thread.is_blocked() {
            return due;
        }
        let again = now + self.retry;
        self.retry = (self.retry * 2).min(RETRY_MAX);
        Some(due.map_or(again, |due| due.min(again)))
    }

    /// How long to sleep, or `None` to stay awake.
    fn sleep_until(&self, now: Nanos, due: Option<Nanos>) -> Option<Nanos> {
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
    (left - awake - left / SLACK).clamp(SLEEP_MIN, SLEEP_MAX)
}

/// Files that a thread waits for: one of each port, and its own.
const FILES_MAX: usize = PORTS_MAX + 1;

/// Waits for so long at most. True when the thread was woken, or one of the files is readable.
fn wait<'a>(waker: &'a Waker, files: impl Iterator<Item = BorrowedFd<'a>>, sleep: Nanos) -> bool {
    let readable = |file| PollFd::new(file, PollFlags::POLLIN);
    let mut items: [PollFd<'_>; FILES_MAX] =
        std::array::from_fn(|_| readable(waker.file().as_fd()));
    let mut count = 1;
    for (item, file) in items[1..].iter_mut().zip(files) {
        *item = readable(file);
        count += 1;
    }
    let sleep = Duration::from_nanos(sleep);
    let ready = ppoll(&mut items[..count], Some(sleep.into()), None);
    if let Err(error) = &ready {
        tracing::debug!("waiting was interrupted: {error}");
    }
    if items[0].any().unwrap_or(false) {
        waker.drain();
    }
    ready != Ok(0)
}

/// Waits for what may come at any moment, without sleep: a sleep would be seen in what is measured.
///
/// All other threads may go first. Where nobody else wants the core, that is over in a fraction of a
/// microsecond; where somebody does, who gives way in idle moments is not stopped for milliseconds
/// in others.
#[inline]
fn stay_awake() {
    std::thread::yield_now();
}

/// Asks the kernel to end this thread's sleeps on time: by default it may add 50 µs.
fn sharpen_sleep() {
    if let Err(error) = nix::sys::prctl::set_timerslack(1) {
        tracing::debug!(%error, "sleeps of this thread may be 50 µs long");
    }
}

/// How busy a thread is: the time from turns in which something was done to the next one.
#[derive(Debug)]
pub(super) struct BusyTime {
    started_at: Nanos,
    turn_at: Nanos,
    was_busy: bool,
    busy_ns: Nanos,
}

impl BusyTime {
    pub(super) fn new(now: Nanos) -> BusyTime {
        BusyTime {
            started_at: now,
            turn_at: now,
            was_busy: false,
            busy_ns: 0,
        }
    }

    /// A turn begins.
    #[inline]
    pub(super) fn begin_turn(&mut self, now: Nanos) {
        if self.was_busy {
            self.busy_ns += now - self.turn_at;
        }
        self.turn_at = now;
    }

    /// A turn ends, in which so many frames came or went.
    #[inline]
    pub(super) fn end_turn(&mut self, frames: u64) {
        self.was_busy = frames > 0;
    }

    /// When the turn began.
    #[inline]
    pub(super) fn turn_at(&self) -> Nanos {
        self.turn_at
    }

    pub(super) fn counters(&self) -> CoreCounters {
        CoreCounters {
            busy_ns: self.busy_ns,
            total_ns: self.turn_at - self.started_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::waker::Notify;

    #[test]
    fn sleeps_end_before_the_time_by_what_they_are_late_within_limits() {
        let us = |n: u64| n * MICROSECOND;
        assert_eq!(sleep_for(us(1000), us(10)), us(989));
        assert_eq!(
            sleep_for(us(1000), us(80)),
            us(974),
            "at most so long awake"
        );
        assert_eq!(
            sleep_for(us(80), us(25)),
            us(60) - 80,
            "a quarter of the time"
        );
        assert_eq!(sleep_for(us(74), us(25)), us(74) - 74);
        assert_eq!(sleep_for(us(3), us(25)), SLEEP_MIN);
        assert_eq!(sleep_for(Nanos::MAX, us(10)), SLEEP_MAX);
    }

    #[test]
    fn who_slept_for_a_time_stays_awake_until_then() {
        let policy = IdlePolicy {
            late: 10 * MICROSECOND,
            slept_for: Some(5 * MILLISECOND),
            ..IdlePolicy::new(Clock::start())
        };
        let sleep = |due: Option<Nanos>, left: Nanos| {
            let now = due.map_or(0, |due| due - left);
            policy.sleep_until(now, due)
        };
        assert_eq!(sleep(Some(5 * MILLISECOND), AWAKE_MAX), None);
        assert_eq!(sleep(Some(5 * MILLISECOND), 0), None);
        // It was woken long before, or for another time.
        assert!(sleep(Some(5 * MILLISECOND), AWAKE_MAX + 1).is_some());
        assert!(sleep(Some(6 * MILLISECOND), AWAKE_MAX).is_some());
        assert!(sleep(None, 0).is_some());
    }

    /// A thread with nothing to do, which frames wake or not.
    struct Idle {
        frame_wakes: FrameWakes,
        /// What it was told of the last sleep.
        wanted_frames: Option<bool>,
    }

    impl Turn for Idle {
        fn turn(&mut self) -> u64 {
            0
        }

        fn frame_wakes(&self) -> FrameWakes {
            self.frame_wakes
        }

        fn next_due(&mut self) -> Option<Nanos> {
            None
        }

        fn is_blocked(&self) -> bool {
            false
        }

        fn sleep_max(&mut self, _: Nanos, wants_frames: bool) -> Option<Nanos> {
            self.wanted_frames = Some(wants_frames);
            Some(SLEEP_MIN)
        }

        fn must_stay_awake(&mut self, _: Nanos) -> bool {
            false
        }

        fn files(&self, _: bool) -> impl Iterator<Item = BorrowedFd<'_>> {
            std::iter::empty()
        }
    }

    /// Whether each of some sleeps was of a thread that frames wake; none where it looks once more
    /// instead.
    fn sleeps(frame_wakes: FrameWakes, wake: bool) -> Vec<Option<bool>> {
        let waker = Waker::new().expect("a file descriptor");
        let mut policy = IdlePolicy::new(Clock::start());
        let mut thread = Idle {
            frame_wakes,
            wanted_frames: None,
        };
        let mut sleep = |policy: &mut IdlePolicy| {
            thread.wanted_frames = None;
            policy.sleep(policy.clock.now_ns(), &mut thread, &waker);
            thread.wanted_frames
        };
        let mut all: Vec<_> = (0..8).map(|_| sleep(&mut policy)).collect();
        if wake {
            waker.wake_for_frames();
            all.extend((0..2).map(|_| sleep(&mut policy)));
        }
        all
    }

    #[test]
    fn who_slept_long_wants_to_be_woken_by_frames_and_looks_once_more_before() {
        // 50 µs, 100, 200, 400, 800, then long.
        let short = [Some(false); 5];
        let long = [None, Some(true), Some(true)];
        // The wake ends the next sleep, or has it left out; then all begins anew.
        let again = [Some(true), Some(false)];
        let wanted = sleeps(FrameWakes::Wanted, true);
        assert_eq!(wanted, [&short[..], &long, &again].concat());
        assert_eq!(sleeps(FrameWakes::No, true), [Some(false); 10]);
        assert_eq!(sleeps(FrameWakes::Always, true), [Some(true); 10]);
    }

    #[test]
    fn a_wait_ends_when_the_thread_is_woken_or_a_file_is_readable() {
        const HOUR: Nanos = 3600 * 1000 * MILLISECOND;
        let waker = Waker::new().expect("a file descriptor");
        assert!(waker.park());
        waker.clone().wake();
        assert!(wait(&waker, std::iter::empty(), HOUR));
        waker.unpark();
        let file = Notify::new().expect("a file descriptor");
        file.notify();
        assert!(waker.park());
        assert!(wait(&waker, [file.file().as_fd()].into_iter(), HOUR));
        waker.unpark();
        assert!(!wait(&waker, std::iter::empty(), MILLISECOND));
    }
}
