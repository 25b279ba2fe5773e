//! Mailboxes: two rings between control and a thread, commands one way and reports the other.
//!
//! Nothing is lost: control keeps what a full ring does not take and offers it again
//! ([`ControlEnd::flush`]); a thread keeps its reports until there is room.

use std::collections::VecDeque;

use rtrb::{Consumer, Producer, RingBuffer};

use crate::threads::waker::{Notify, Waker};

/// Commands that may be under way to one thread.
const COMMANDS: usize = 256;
/// Reports that may be under way from one thread.
const REPORTS: usize = 1024;

/// Control's end, of one thread.
#[derive(Debug)]
pub struct ControlEnd<C, R> {
    commands: Producer<C>,
    waiting: VecDeque<C>,
    reports: Consumer<R>,
    worker: Waker,
}

/// The thread's end. When it is gone, [`ControlEnd::is_closed`] says so; when control's is gone,
/// [`WorkerEnd::is_closed`] does.
#[derive(Debug)]
pub struct WorkerEnd<C, R> {
    commands: Consumer<C>,
    reports: Producer<R>,
    control: Notify,
    worker: Waker,
}

/// The two ends of a mailbox between control and the thread that `worker` wakes.
pub fn mailbox<C, R>(control: &Notify, worker: &Waker) -> (ControlEnd<C, R>, WorkerEnd<C, R>) {
    let (commands, commands_out) = RingBuffer::new(COMMANDS);
    let (reports_in, reports) = RingBuffer::new(REPORTS);
    let control_end = ControlEnd {
        commands,
        waiting: VecDeque::new(),
        reports,
        worker: worker.clone(),
    };
    let worker_end = WorkerEnd {
        commands: commands_out,
        reports: reports_in,
        control: control.clone(),
        worker: worker.clone(),
    };
    (control_end, worker_end)
}

impl<C, R> ControlEnd<C, R> {
    /// Sends a command; it waits here while the ring is full.
    pub fn send(&mut self, command: impl Into<C>) {
        self.waiting.push_back(command.into());
        self.flush();
    }

    /// Offers what waits to the ring again, and wakes the thread. True when nothing waits.
    pub fn flush(&mut self) -> bool {
        let mut sent = false;
        while !self.commands.is_full() {
            let Some(command) = self.waiting.pop_front() else {
                break;
            };
            // There is room: nobody else puts anything in.
            sent |= self.commands.push(command).is_ok();
        }
        if sent {
            self.worker.wake();
        }
        self.waiting.is_empty()
    }

    /// The next report of the thread.
    pub fn receive(&mut self) -> Option<R> {
        self.reports.pop().ok()
    }

    /// What wakes the thread.
    pub fn waker(&self) -> &Waker {
        &self.worker
    }

    /// Tells the thread that control is gone.
    pub fn close(self) {
        let worker = self.worker.clone();
        drop(self);
        worker.wake();
    }

    /// Whether the thread has ended.
    pub fn is_closed(&self) -> bool {
        self.reports.is_abandoned()
    }
}

impl<C, R> WorkerEnd<C, R> {
    /// The next command.
    #[inline]
    pub fn receive(&mut self) -> Option<C> {
        self.commands.pop().ok()
    }

    /// What wakes this thread.
    pub fn waker(&self) -> &Waker {
        &self.worker
    }

    /// Room for another report.
    pub fn has_room(&self) -> bool {
        !self.reports.is_full()
    }

    /// Sends a report and wakes control. Call it only when there is [room](Self::has_room).
    pub fn send(&mut self, report: R) {
        self.reports
            .push(report)
            .expect("the caller has asked for room");
        self.control.notify();
    }

    /// Whether control has ended: then the thread does too.
    pub fn is_closed(&self) -> bool {
        self.commands.is_abandoned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (ControlEnd<usize, usize>, WorkerEnd<usize, usize>) {
        let (notify, waker) = (Notify::new(), Waker::new());
        mailbox(
            &notify.expect("a file descriptor"),
            &waker.expect("a file descriptor"),
        )
    }

    #[test]
    fn more_commands_than_the_ring_holds_arrive_in_order() {
        let (mut control, mut worker) = pair();
        let many = 3 * COMMANDS;
        for n in 0..many {
            control.send(n);
        }
        assert!(!control.flush());
        for n in 0..many {
            control.flush();
            assert_eq!(worker.receive(), Some(n));
        }
        assert!(control.flush());
    }

    #[test]
    fn each_end_sees_that_the_other_is_gone() {
        let (control, worker) = pair();
        assert!(!control.is_closed() && !worker.is_closed());
        drop(control);
        assert!(worker.is_closed());
        let (control, worker) = pair();
        drop(worker);
        assert!(control.is_closed());
    }

    #[test]
    fn a_full_ring_of_reports_says_so_and_the_notification_can_be_taken_back() {
        let (mut control, mut worker) = pair();
        while worker.has_room() {
            worker.send(0);
        }
        worker.control.drain();
        worker.control.drain();
        let received = std::iter::from_fn(|| control.receive()).count();
        assert_eq!(received, REPORTS);
        assert!(worker.has_room());
    }
}
