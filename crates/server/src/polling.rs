//! What a thread does when it has nothing to do.
//!
//! What lives here: busy and adaptive polling, also for a thread that waits for files. What does
//! not: deciding that there is nothing to do (the threads), and the bell (`mailbox`).

use std::os::fd::{AsFd, BorrowedFd};
use std::str::FromStr;
use std::time::Duration;

use allosaur_engine::time::{MICROSECOND, MILLISECOND, Nanos};
use nix::poll::{PollFd, PollFlags, ppoll};

use crate::mailbox::Doorbell;

/// The shortest sleep of adaptive polling. Packets may leave this much late, and then several
/// together.
pub const SLEEP_MIN: Nanos = 50 * MICROSECOND;
/// The longest sleep, after which a thread looks whether the server has ended.
pub const SLEEP_MAX: Nanos = 100 * MILLISECOND;

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
    /// Waits, at most until `due`. Another thread ends the wait by unparking this one.
    pub fn wait_until(self, now: Nanos, due: Option<Nanos>) {
        match self {
            Poll::Busy => stay_awake(),
            Poll::Adaptive => std::thread::park_timeout(sleep_until(now, due)),
        }
    }

    /// The same for a thread that `bell` wakes, or any of `files` when it becomes readable.
    pub fn wait_for<'a>(
        self,
        bell: &'a Doorbell,
        files: impl Iterator<Item = BorrowedFd<'a>>,
        now: Nanos,
        due: Option<Nanos>,
    ) {
        match self {
            Poll::Busy => stay_awake(),
            Poll::Adaptive => wait(bell, files, sleep_until(now, due)),
        }
    }
}

fn sleep_until(now: Nanos, due: Option<Nanos>) -> Duration {
    let sleep = due.map_or(SLEEP_MAX, |due| due.saturating_sub(now));
    Duration::from_nanos(sleep.clamp(SLEEP_MIN, SLEEP_MAX))
}

/// Files that one thread can wait for besides its bell.
pub const FILES_MAX: usize = 32;

/// Waits for a ring, for one of the files, or for so long. The bell is silent then.
fn wait<'a>(bell: &'a Doorbell, files: impl Iterator<Item = BorrowedFd<'a>>, sleep: Duration) {
    let readable = |file| PollFd::new(file, PollFlags::POLLIN);
    let mut items: [PollFd<'_>; FILES_MAX + 1] =
        std::array::from_fn(|_| readable(bell.file().as_fd()));
    let mut count = 1;
    for (item, file) in items[1..].iter_mut().zip(files) {
        *item = readable(file);
        count += 1;
    }
    if let Err(error) = ppoll(&mut items[..count], Some(sleep.into()), None) {
        tracing::debug!("waiting was interrupted: {error}");
    }
    if items[0].any().unwrap_or(false) {
        bell.silence();
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
    fn a_bell_that_rang_ends_the_next_wait_and_no_other() {
        let bell = Doorbell::new().expect("a file descriptor");
        bell.clone().ring();
        // Would wait for an hour otherwise.
        wait(&bell, std::iter::empty(), Duration::from_secs(3600));
        let file = Doorbell::new().expect("a file descriptor");
        file.ring();
        wait(
            &bell,
            [file.file().as_fd()].into_iter(),
            Duration::from_secs(3600),
        );
        wait(&bell, std::iter::empty(), Duration::from_millis(1));
    }
}
