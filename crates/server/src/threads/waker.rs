//! Waking threads that wait for files: [`Notify`] always, [`Waker`] only when they sleep.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering, fence};

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
    /// The thread waits long: frames in memory shall wake it.
    wants_frames: Arc<AtomicBool>,
}

impl Waker {
    /// Of a thread that works.
    pub fn new() -> std::io::Result<Waker> {
        Ok(Waker {
            notify: Notify::new()?,
            state: Arc::default(),
            wants_frames: Arc::default(),
        })
    }

    /// Ends the thread's wait, or its next one if it works.
    #[inline]
    pub fn wake(&self) {
        if self.state.swap(NOTIFIED, Ordering::AcqRel) == PARKED {
            self.notify.notify();
        }
    }

    /// Wakes the thread if it [wants frames](Waker::want_frames): for who has just put one where
    /// the kernel does not see it. While the thread works, that is one load of a line that nobody
    /// writes.
    ///
    /// A frame may be overlooked that came in the same moment as the wish. Who sends on asks again,
    /// and who does not calls [`wake_for_past_frames`](Waker::wake_for_past_frames).
    #[inline]
    pub fn wake_for_frames(&self) {
        if self.wants_frames.load(Ordering::Relaxed) {
            self.wake_who_wants();
        }
    }

    /// The same, of all frames until now, none of which is overlooked: either this sees the wish or
    /// the thread, which looks once more after [`want_frames`](Waker::want_frames), the frames.
    pub fn wake_for_past_frames(&self) {
        fence(Ordering::SeqCst);
        self.wake_for_frames();
    }

    #[cold]
    fn wake_who_wants(&self) {
        if self.wants_frames.swap(false, Ordering::AcqRel) {
            self.wake();
        }
    }

    /// The thread wants to be woken by the next frame. Then it must look once more for frames before
    /// it waits.
    pub(crate) fn want_frames(&self) {
        self.wants_frames.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
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

    #[test]
    fn frames_wake_once_whoever_wants_them() {
        let waker = Waker::new().expect("a file descriptor");
        let is_woken = || {
            let is_parked = waker.park();
            waker.unpark();
            !is_parked
        };
        waker.wake_for_frames();
        waker.wake_for_past_frames();
        assert!(!is_woken(), "nobody wanted any");
        let wakes: [fn(&Waker); 2] = [Waker::wake_for_frames, Waker::wake_for_past_frames];
        for wake in wakes {
            waker.want_frames();
            wake(&waker);
            assert!(is_woken());
            wake(&waker);
            assert!(!is_woken(), "it was told before");
        }
    }

    #[test]
    fn no_frame_is_overlooked() {
        const FRAMES: u32 = 20_000;
        let waker = Waker::new().expect("a file descriptor");
        let sent = Arc::new(std::sync::atomic::AtomicU32::new(0));
        let (sender, counter) = (waker.clone(), Arc::clone(&sent));
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            // The next frame follows the sight of the last one, at whatever moment that is.
            for frame in 1..=FRAMES {
                counter.store(frame, Ordering::Release);
                sender.wake_for_past_frames();
                told.recv().expect("the other end waits");
            }
        });
        let mut seen = 0;
        while seen < FRAMES {
            waker.want_frames();
            if sent.load(Ordering::Acquire) == seen && waker.park() {
                let file = nix::poll::PollFd::new(
                    std::os::fd::AsFd::as_fd(waker.file()),
                    nix::poll::PollFlags::POLLIN,
                );
                let woken = nix::poll::ppoll(&mut [file], None, None);
                assert_eq!(woken, Ok(1));
                waker.drain();
            }
            waker.unpark();
            if sent.load(Ordering::Acquire) > seen {
                seen += 1;
                let _ = tell.send(());
            }
        }
        thread.join().expect("it sent all");
    }
}
