//! What a thread does when it has nothing to do.
//!
//! What lives here: busy and adaptive polling. What does not: deciding that there is nothing to
//! do (the threads), and waking them (`mailbox`).

use std::str::FromStr;
use std::time::Duration;

use allosaur_engine::time::{MICROSECOND, MILLISECOND, Nanos};

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
            Poll::Adaptive => {
                let sleep = due.map_or(SLEEP_MAX, |due| due.saturating_sub(now));
                std::thread::park_timeout(Duration::from_nanos(sleep.clamp(SLEEP_MIN, SLEEP_MAX)));
            }
        }
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
