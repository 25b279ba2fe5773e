//! Waking threads that wait for files: [`Notify`] always, [`Waker`] only when they sleep.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use nix::sys::eventfd::{EfdFlags, EventFd};

/// Wakes a thread that waits for files: one that becomes readable.
#[derive(Clone, Debug)]
pub struct Notify(Arc<EventFd>);

impl Notify {
    /// An eventfd that is not readable yet.
    pub fn new() -> std::io::Result<Notify> {
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        Ok(Notify(Arc::new(EventFd::from_flags(flags)?)))
    }

    /// Wakes the thread, now or at its next wait.
    pub fn notify(&self) {
        // It can only fail when it was written 2⁶⁴ - 2 times, and then it is readable already.
        let _ = self.0.write(1);
    }

    /// Makes it unreadable again.
    pub fn drain(&self) {
        // Fails when it was not readable, which is as well.
        let _ = self.0.read();
    }

    /// The file to wait for.
    pub fn file(&self) -> &EventFd {
        &self.0
    }
}

/// The thread works.
const AWAKE: u8 = 0;
/// It was woken since it last began to wait.
const NOTIFIED: u8 = 1;
/// It waits for its file.
const PARKED: u8 = 2;

/// Wakes one thread now or at its next wait, without a system call while it works.
///
/// It keeps the promise of [`std::thread::park`] for a thread that waits for files too: what was
/// done before [`wake`](Waker::wake) is seen by the thread after the wait that this ends.
#[derive(Clone, Debug)]
pub struct Waker {
    notify: Notify,
    state: Arc<AtomicU8>,
}

impl Waker {
    /// Of a thread that works.
    pub fn new() -> std::io::Result<Waker> {
        Ok(Waker {
            notify: Notify::new()?,
            state: Arc::default(),
        })
    }

    /// Ends the thread's wait, or its next one if it works.
    #[inline]
    pub fn wake(&self) {
        if self.state.swap(NOTIFIED, Ordering::AcqRel) == PARKED {
            self.notify.notify();
        }
    }

    /// The thread is about to wait. False when it was woken since the last time, and shall not.
    pub(crate) fn park(&self) -> bool {
        let parked =
            self.state
                .compare_exchange(AWAKE, PARKED, Ordering::AcqRel, Ordering::Acquire);
        parked.is_ok()
    }

    /// The thread works again.
    pub(crate) fn unpark(&self) {
        self.state.swap(AWAKE, Ordering::AcqRel);
    }

    /// What the thread waits for.
    pub(crate) fn file(&self) -> &EventFd {
        self.notify.file()
    }

    /// Makes the file unreadable again.
    pub(crate) fn drain(&self) {
        self.notify.drain();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_woken_while_at_work_does_not_wait_once() {
        let waker = Waker::new().expect("a file descriptor");
        waker.clone().wake();
        waker.wake();
        assert!(!waker.park());
        waker.unpark();
        assert!(waker.park());
        assert!(waker.notify.0.read().is_err(), "nobody has woken it");
        waker.wake();
        assert!(waker.notify.0.read().is_ok());
    }
}
